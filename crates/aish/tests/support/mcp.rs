//! A scripted MCP server: what it says to each message is told once, and said over HTTP or by a child process alike.
//!
//! ```ignore
//! let script = Script::with_tool("t").on_call(|id| vec![Say::text(id, "hello")]);
//! let server = McpServer::start(Transport::Stdio, script);
//! let sandbox = Sandbox::with_model(&model).config(&server.config("bad"));
//! ```
//!
//! A child process is a shell that hands its input and output on to the test through a socket, so that both transports are
//! answered by one thread of the test. A server whose connection the test closes is a process that dies.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use super::fake_server::{FakeServer, Received};
use super::reply::{Cut, Framing, Reply};

/// The version that is spoken.
pub const PROTOCOL: &str = "2025-06-18";

/// Hands input and output on through the port that is its argument; dies with status 7 when that closes.
const RELAY: &str =
    "exec 3<>/dev/tcp/127.0.0.1/$1 4<&0; cat <&3 & cat <&4 >&3 & wait -n; kill $(jobs -p) 2>/dev/null; exit 7";

/// One thing that a server does.
#[derive(Clone, Debug)]
pub enum Say {
    /// A message.
    Message(Value),
    /// A message so many times.
    Many(Value, usize),
    /// One message too large to hold: what it begins with, what is repeated so many times, what it ends with.
    Long(String, Vec<u8>, usize, String),
    /// What is no message.
    Garbage(Vec<u8>),
    /// Nothing more, ever.
    Nothing,
    /// It dies.
    Death,
}

impl Say {
    /// A result.
    pub fn result(id: &Value, result: Value) -> Self {
        Self::Message(json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    /// The result of a call: one block of text.
    pub fn text(id: &Value, text: &str) -> Self {
        Self::result(id, json!({"content": [{"type": "text", "text": text}]}))
    }

    /// An error of JSON-RPC.
    pub fn error(id: &Value, code: i64, message: &str) -> Self {
        Self::Message(json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}))
    }

    /// A notification.
    pub fn notification(method: &str, params: Value) -> Self {
        Self::Message(json!({"jsonrpc": "2.0", "method": method, "params": params}))
    }
}

type OnMessage = Box<dyn Fn(&Value) -> Option<Vec<Say>> + Send + Sync>;
type OnHttp = Box<dyn Fn(&Received) -> Option<Reply> + Send + Sync>;

/// What a server says. Unless told otherwise it speaks [`PROTOCOL`] well and answers each call `fine`.
pub struct Script {
    tools: Vec<Value>,
    on_message: Vec<OnMessage>,
    on_http: Option<OnHttp>,
    beginning: String,
}

impl Script {
    /// With a tool of that name and no arguments.
    pub fn with_tool(name: &str) -> Self {
        Self::with_tools(vec![tool(name, "does what it is told to")])
    }

    /// With these tools.
    pub fn with_tools(tools: Vec<Value>) -> Self {
        Self {
            tools,
            on_message: Vec::new(),
            on_http: None,
            beginning: String::new(),
        }
    }

    /// What a call is answered, by its id.
    pub fn on_call(self, answer: impl Fn(&Value) -> Vec<Say> + Send + Sync + 'static) -> Self {
        self.on("tools/call", move |message| answer(&message["id"]))
    }

    /// What a message of that method is answered.
    pub fn on(self, method: &'static str, answer: impl Fn(&Value) -> Vec<Say> + Send + Sync + 'static) -> Self {
        self.on_message(move |message| (message["method"] == method).then(|| answer(message)))
    }

    /// What any message is answered; `None` leaves it to what was told before.
    pub fn on_message(mut self, answer: impl Fn(&Value) -> Option<Vec<Say>> + Send + Sync + 'static) -> Self {
        self.on_message.push(Box::new(answer));
        self
    }

    /// What a request of HTTP is answered, whatever its message; `None` leaves it to the rest.
    pub fn on_http(mut self, answer: impl Fn(&Received) -> Option<Reply> + Send + Sync + 'static) -> Self {
        self.on_http = Some(Box::new(answer));
        self
    }

    /// What the shell that is the child process does first, ending with `;` or `&`.
    pub fn beginning(mut self, commands: &str) -> Self {
        self.beginning = format!("{commands} ");
        self
    }

    fn answer(&self, message: &Value) -> Vec<Say> {
        if let Some(said) = self.on_message.iter().rev().find_map(|answer| answer(message)) {
            return said;
        }
        let id = &message["id"];
        if id.is_null() {
            return Vec::new();
        }
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => {
                let about = json!({"name": "scripted", "version": "1"});
                let capabilities = json!({"tools": {"listChanged": true}, "logging": {}});
                let result = json!({"protocolVersion": PROTOCOL, "capabilities": capabilities, "serverInfo": about});
                vec![Say::result(id, result)]
            }
            "tools/list" => vec![Say::result(id, json!({ "tools": self.tools }))],
            "tools/call" => vec![Say::text(id, "fine")],
            "ping" => vec![Say::result(id, json!({}))],
            "" => Vec::new(),
            _ => vec![Say::error(id, -32601, "Method not found")],
        }
    }
}

/// A tool that takes no arguments.
pub fn tool(name: &str, description: &str) -> Value {
    let schema = json!({"type": "object", "properties": {}});
    json!({"name": name, "description": description, "inputSchema": schema})
}

/// How a server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A child process.
    Stdio,
    /// Streamable HTTP.
    Http,
}

/// Both of them.
pub const TRANSPORTS: [Transport; 2] = [Transport::Stdio, Transport::Http];

/// A running server; it ends when it is dropped.
pub struct McpServer {
    reached: Reached,
    shared: Arc<Shared>,
}

enum Reached {
    Stdio(SocketAddr),
    Http(FakeServer),
}

struct Shared {
    script: Script,
    heard: Mutex<Vec<Value>>,
    connections: Mutex<Connections>,
}

#[derive(Default)]
struct Connections {
    open: Vec<TcpStream>,
    is_ending: bool,
}

impl McpServer {
    /// Starts it.
    pub fn start(transport: Transport, script: Script) -> Self {
        let shared = Arc::new(Shared {
            script,
            heard: Mutex::default(),
            connections: Mutex::default(),
        });
        let answering = Arc::clone(&shared);
        let reached = match transport {
            Transport::Http => {
                let server = FakeServer::builder().everything(move |request| answering.http(request));
                Reached::Http(server.start())
            }
            Transport::Stdio => {
                let listener = TcpListener::bind("127.0.0.1:0").expect("bind a loopback port");
                let address = listener.local_addr().expect("the address of a bound listener");
                std::thread::spawn(move || accept(&listener, &answering));
                Reached::Stdio(address)
            }
        };
        Self { reached, shared }
    }

    /// Its section of `config.toml`; more keys may follow.
    pub fn config(&self, alias: &str) -> String {
        let way = match &self.reached {
            Reached::Http(server) => format!("url = \"http://{}/mcp\"", server.address()),
            Reached::Stdio(address) => {
                let script = format!("{}{RELAY}", self.shared.script.beginning);
                let command = json!(["bash", "-c", script, "relay", address.port().to_string()]);
                format!("command = {command}")
            }
        };
        format!("[mcp.servers.{alias}]\n{way}\n")
    }

    /// The HTTP half; fails for a child process.
    pub fn http(&self) -> &FakeServer {
        match &self.reached {
            Reached::Http(server) => server,
            Reached::Stdio(_) => panic!("a child process has no HTTP"),
        }
    }

    /// Every message that was heard, in order.
    pub fn heard(&self) -> Vec<Value> {
        lock(&self.shared.heard).clone()
    }

    /// The methods of all messages that were heard, in order; answers of the client are left out.
    pub fn methods(&self) -> Vec<String> {
        let heard = self.heard();
        heard
            .iter()
            .filter_map(|message| message["method"].as_str().map(str::to_owned))
            .collect()
    }
}

impl Drop for McpServer {
    fn drop(&mut self) {
        let mut connections = lock(&self.shared.connections);
        connections.is_ending = true;
        for connection in &connections.open {
            // Already closed by the client: nothing left to do.
            let _ = connection.shutdown(Shutdown::Both);
        }
        drop(connections);
        if let Reached::Stdio(address) = self.reached {
            // Wakes the accepting thread, which then sees the end.
            let _ = TcpStream::connect(address);
        }
    }
}

impl Shared {
    fn answer(&self, message: &Value) -> Vec<Say> {
        lock(&self.heard).push(message.clone());
        self.script.answer(message)
    }

    fn http(&self, request: &Received) -> Reply {
        if let Some(reply) = self.script.on_http.as_ref().and_then(|answer| answer(request)) {
            return reply;
        }
        match request.method.as_str() {
            "POST" => http_reply(&self.answer(&request.json)),
            _ => Reply::json(405, &json!({"error": "only POST"})),
        }
    }

    /// Serves one child process until it goes or dies.
    fn stdio(&self, mut stream: &TcpStream) -> io::Result<()> {
        for line in BufReader::new(stream.try_clone()?).lines() {
            let Ok(message) = serde_json::from_str(&line?) else {
                continue;
            };
            for said in self.answer(&message) {
                match said {
                    Say::Message(message) => writeln!(stream, "{message}")?,
                    Say::Many(message, times) => repeat(stream, format!("{message}\n").as_bytes(), times)?,
                    Say::Long(before, piece, times, after) => {
                        stream.write_all(before.as_bytes())?;
                        repeat(stream, &piece, times)?;
                        writeln!(stream, "{after}")?;
                    }
                    Say::Garbage(bytes) => stream.write_all(&bytes)?,
                    Say::Nothing => {}
                    Say::Death => return Ok(()),
                }
            }
        }
        Ok(())
    }
}

/// Writes through a buffer: a million small writes take their time.
fn repeat(stream: &TcpStream, bytes: &[u8], times: usize) -> io::Result<()> {
    let mut buffered = io::BufWriter::with_capacity(1 << 20, stream);
    (0..times).try_for_each(|_| buffered.write_all(bytes))?;
    buffered.flush()
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else { return };
        let Ok(handle) = stream.try_clone() else { return };
        {
            let mut connections = lock(&shared.connections);
            if connections.is_ending {
                return;
            }
            connections.open.push(handle);
        }
        let shared = Arc::clone(shared);
        std::thread::spawn(move || {
            // A client that goes away in the middle is what many tests want to see.
            let _ = shared.stdio(&stream);
            let _ = stream.shutdown(Shutdown::Both);
        });
    }
}

/// One message is JSON, several are an event stream, none is 202.
fn http_reply(said: &[Say]) -> Reply {
    let as_json = |reply: Reply| reply.typed("application/json");
    match said {
        [] => Reply::bare_stream().without_body(202),
        [Say::Message(message)] => Reply::json(200, message),
        [Say::Garbage(bytes)] => as_json(Reply::bare_stream().bytes(bytes.clone())),
        [Say::Long(before, piece, times, after)] => {
            let reply = Reply::bare_stream().bytes(before.as_str());
            as_json(reply.repeats(piece.clone(), *times).bytes(after.as_str()))
        }
        [Say::Death] => Reply::bare_stream().cuts(Cut::Reset),
        several => several.iter().fold(Reply::bare_stream(), |reply, said| match said {
            Say::Message(message) => reply.event(message),
            Say::Many(message, times) => reply.repeats(format!("data: {message}\n\n"), *times),
            Say::Long(before, piece, times, after) => {
                let reply = reply.bytes(format!("data: {before}"));
                reply.repeats(piece.clone(), *times).bytes(format!("{after}\n\n"))
            }
            Say::Garbage(bytes) => reply.bytes(bytes.clone()),
            Say::Nothing => reply.sends_head().stalls(),
            Say::Death => reply.sends_head().cuts(Cut::Reset),
        }),
    }
}

impl Reply {
    /// The same with that content type.
    pub fn typed(mut self, content_type: &str) -> Self {
        self.headers.retain(|(name, _)| name != "content-type");
        self.header("content-type", content_type)
    }

    /// A status with neither body nor content type.
    pub fn without_body(mut self, status: u16) -> Self {
        self.status = status;
        self.headers.retain(|(name, _)| name != "content-type");
        self.framed(Framing::Length)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A test that failed while it held the lock has already said why.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
