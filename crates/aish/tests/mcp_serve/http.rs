//! Clients over HTTP: who is let in, both eras, and rudeness. Raw sockets: no client library would say such things.

use crate::support::door::Door;
use crate::support::sandbox::{Running, Sandbox};
use crate::support::{http, processes};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

/// The token that the tests set.
pub const TOKEN: &str = "a-token-for-the-tests";
/// What every client says of what it sends and takes.
const TYPES: [(&str, &str); 2] = [
    ("Content-Type", "application/json"),
    ("Accept", "application/json, text/event-stream"),
];

/// A server over HTTP, and its port.
pub struct Served {
    pub running: Running,
    pub port: u16,
}

impl Served {
    /// Serves at a port that is free, with this token.
    pub fn start(sandbox: Sandbox, arguments: &[&str]) -> (Self, Sandbox) {
        let sandbox = sandbox.env("AISH_MCP_SERVE_TOKEN", TOKEN);
        let arguments = [&["mcp", "serve", "--http", "127.0.0.1:0"], arguments].concat();
        let running = sandbox.start(&arguments);
        running.wait_for_stderr("/mcp\n");
        let said = running.stderr_so_far();
        let port = said.split("127.0.0.1:").nth(1).and_then(|rest| rest.split('/').next());
        let port = port.unwrap().parse().unwrap();
        (Self { running, port }, sandbox)
    }

    /// Begins a request as a good client does, up to where its length follows.
    pub fn head(&self, method: &str) -> String {
        format!(
            "{method} /mcp HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {TOKEN}\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n",
            self.port
        )
    }

    pub fn connect(&self) -> TcpStream {
        http::connect(self.port).unwrap()
    }

    /// Sends a request with these headers; gives status, head and body.
    pub fn ask(&self, method: &str, headers: &[(&str, &str)], body: &str) -> (u16, String, String) {
        let answer = http::ask(self.port, method, "/mcp", headers, body).unwrap();
        (answer.status, answer.head, answer.body)
    }

    /// Sends a message as a good client does, with further headers.
    pub fn post(&self, further: &[(&str, &str)], message: &Value) -> (u16, String, String) {
        let host = format!("127.0.0.1:{}", self.port);
        let token = format!("Bearer {TOKEN}");
        let headers = [
            &[("Host", host.as_str()), ("Authorization", token.as_str())],
            &TYPES[..],
            further,
        ];
        self.ask("POST", &headers.concat(), &message.to_string())
    }

    /// Calls in the way of 2026-07-28, with these further parameters; gives the result.
    pub fn call(&self, name: &str, arguments: Value, further: &Value) -> Value {
        let mut params = json!({"name": name, "arguments": arguments, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "web", "version": "2"},
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}});
        let further = further.as_object().unwrap().clone();
        params.as_object_mut().unwrap().extend(further);
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let headers = [
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", name),
        ];
        let (status, _, body) = self.post(&headers, &message);
        assert_eq!(status, 200, "{body}");
        serde_json::from_str::<Value>(&body).unwrap_or_else(|error| panic!("{error}: {body}"))["result"].take()
    }
}

/// The id of a session that has begun, from the head of the answer.
pub fn session_of(head: &str) -> String {
    let id = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
    id.unwrap_or_else(|| panic!("no session: {head}")).to_owned()
}

/// The message that begins a session.
pub fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "web", "version": "1"}}})
}

/// SPEC 6.10: no token, a wrong one, another host or origin, or a head without end: refused, and nothing else is said.
#[test]
fn who_is_let_in() {
    let (served, _sandbox) = Served::start(Sandbox::new(), &[]);
    let door = Door {
        port: served.port,
        path: "/mcp",
        token: TOKEN,
        headers: &TYPES,
        body: &initialize().to_string(),
    };
    door.assert_lets_in_its_own(|response| {
        assert!(
            response.status == 200 || !response.body.contains("aish"),
            "{response:?}"
        );
    });
    door.assert_bounds_heads();
}

/// SPEC 6.2, 6.10: a session of the older protocols, from its beginning to its end; a forgotten one is 404.
#[test]
fn a_session() {
    let (served, _sandbox) = Served::start(Sandbox::new().file("a.txt", "hello\n"), &[]);
    let (status, head, body) = served.post(&[], &initialize());
    assert_eq!(status, 200, "{body}");
    let session = session_of(&head);
    let header = ("Mcp-Session-Id", session.as_str());
    let begun = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(served.post(&[header], &begun).0, 202);
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "file_read", "arguments": {"path": "a.txt"}}});
    assert!(served.post(&[header], &call).2.contains("hello"));
    assert_eq!(served.post(&[("Mcp-Session-Id", "no-such-session")], &call).0, 404);
    let token = format!("Bearer {TOKEN}");
    let host = format!("127.0.0.1:{}", served.port);
    let end = [("Host", host.as_str()), ("Authorization", token.as_str()), header];
    assert!((200..300).contains(&served.ask("DELETE", &end, "").0));
    assert_eq!(served.post(&[header], &call).0, 404);
}

/// SPEC 6.2, 6.10: 2026-07-28: each request stands for itself; asking is a result.
#[test]
fn stateless() {
    let (served, sandbox) = Served::start(Sandbox::new().file("a.txt", "hello\n"), &[]);
    let read = served.call("file_read", json!({"path": "a.txt"}), &json!({}));
    assert!(read.to_string().contains("hello"), "{read}");
    let command = json!({"command": "touch made"});
    let asked = served.call("bash", command.clone(), &json!({}));
    let yes = json!({"approval": {"action": "accept", "content": {"approve": true}}});
    let again = json!({"requestState": asked["requestState"], "inputResponses": yes});
    assert_eq!(served.call("bash", command, &again)["isError"], false);
    assert!(sandbox.path("made").exists());
}

/// SPEC 6.10, 12: too much, too slow, too strange: answered with a 4xx or closed, and others are served meanwhile.
#[test]
fn rude_clients() {
    let (served, _sandbox) = Served::start(Sandbox::new(), &[]);
    let mut slow = served.connect();
    slow.write_all(b"POST /mcp HTTP/1.1\r\nHost: ").unwrap();
    let head = served.head("POST");
    let mut large = served.connect();
    large
        .write_all(format!("{head}Content-Length: 100000000\r\n\r\n").as_bytes())
        .unwrap();
    let piece = vec![b' '; 1 << 20];
    // It hangs up long before the end: that is the point.
    let sent = (0..100).take_while(|_| large.write_all(&piece).is_ok()).count();
    assert!(sent < 100, "all of it was taken");
    let (status, ..) = served.post(&[], &json!([{}, {}, {}]));
    assert!((400..500).contains(&status), "{status}");
    let many = format!("[{}1]", "1,".repeat(1_000_000));
    let ask = |body: &str| {
        let mut stream = served.connect();
        let request = format!(
            "{head}Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        http::read_response(&mut stream).unwrap().status
    };
    assert_eq!(ask(&many), 413);
    assert!((400..500).contains(&ask("nonsense")));
    assert_eq!(served.post(&[], &initialize()).0, 200);
    let peak_kib = processes::peak_memory_kib(served.running.pid().as_raw_nonzero().get().unsigned_abs()).unwrap();
    assert!(peak_kib < 150 * 1024, "{peak_kib} KiB");
    // A head that never comes to its end: the connection is closed.
    let mut rest = Vec::new();
    let _ = slow.read_to_end(&mut rest);
    assert!(!String::from_utf8_lossy(&rest).contains(" 200 "));
}

/// SPEC 6.10: a token is made and shown once when none is set; none at all is for this machine only, and loud.
#[test]
fn tokens() {
    let sandbox = Sandbox::new();
    let serve = |arguments: &[&str]| sandbox.start(&[&["mcp", "serve", "--http"], arguments].concat());
    let running = serve(&["127.0.0.1:0"]);
    running.wait_for_stderr("clients show this token");
    running.signal(Signal::TERM);
    let output = running.finish().success();
    assert_eq!(output.stdout, "");
    let token = output.stderr.split("ends: ").nth(1).unwrap().trim();
    assert!(token.len() >= 43, "{token}");
    let running = serve(&["127.0.0.1:0", "--no-token"]);
    running.wait_for_stderr("NO TOKEN");
    running.signal(Signal::INT);
    running.finish().success();
    let refused = |arguments: &[&str], expect: &str| {
        let output = serve(arguments).finish().exits(2);
        assert!(output.stderr.contains(expect), "{}", output.stderr);
    };
    refused(&["0.0.0.0:0", "--no-token"], "--no-token is for this machine itself");
    refused(&["127.0.0.1:0", "--token-env", "NOT_SET"], "$NOT_SET is not set");
    let short = Sandbox::new().env("AISH_MCP_SERVE_TOKEN", "short");
    let output = short.run(&["mcp", "serve", "--http", "127.0.0.1:0"]).exits(2);
    assert!(
        output.stderr.contains("too short") && !output.stderr.contains("token is short"),
        "{}",
        output.stderr
    );
}

/// SPEC 6.10, 6.11, 10.5: the token is no variable of a command that a client runs, and where a command finds it all the same, nobody is
/// told.
#[test]
fn the_token_stays() {
    let sandbox = Sandbox::new().env("MY_TOKEN", TOKEN);
    let (served, _sandbox) = Served::start(sandbox, &["--approval", "full", "--token-env", "MY_TOKEN"]);
    let run = |command: &str| served.call("bash", json!({"command": command}), &json!({})).to_string();
    let variables = run("env");
    assert!(
        variables.contains("PATH=") && !variables.contains("MY_TOKEN"),
        "{variables}"
    );
    let found = run(&format!("tr '\\0' '\\n' </proc/{}/environ", served.running.pid()));
    assert!(found.contains("MY_TOKEN=[redacted:"), "{found}");
    assert!(!found.contains(TOKEN), "{found}");
}
