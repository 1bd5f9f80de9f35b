//! A fake app: `aish serve` as an app's developer meets it, with nothing between the test and the wire.
//!
//! [`Served`] is a running server; [`place`] is a home for one. What the app's tools do is up to each test: most answer by hand,
//! [`Served::drive`] answers by a function.

use crate::support::fake_server::{FakeServer, Received};
use crate::support::http::{self, Response};
use crate::support::ledger::text;
use crate::support::sandbox::{Output, Running, Sandbox};
use crate::support::{default_wait, poll_until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io;
use std::net::TcpStream;

/// The token that the tests set, and the variable it is in.
pub const TOKEN: &str = "a-token-for-the-tests";
pub const TOKEN_VARIABLE: &str = "SERVE_TEST_TOKEN";

/// What it says before its port.
const LISTENING: &str = "[aish] listening on http://127.0.0.1:";

/// Envelopes that one message may lead to before a test gives up on its end.
const ENVELOPES_MAX: usize = 100;

/// A home for a server whose model is that one.
pub fn place(model: &FakeServer) -> Sandbox {
    Sandbox::with_model(model).env(TOKEN_VARIABLE, TOKEN)
}

/// A tool as an app declares it, with any arguments.
pub fn tool(name: &str) -> Value {
    json!({"name": name, "description": format!("Does {name} in the app."), "input_schema": {"type": "object"}})
}

/// A message with the declaration of these tools.
pub fn message(text: &str, tools: &[&str]) -> Value {
    let tools: Vec<Value> = tools.iter().map(|name| tool(name)).collect();
    json!({"message": text, "tools": tools})
}

/// The results that a request to the model carries, in order, as the model sees them.
pub fn results(request: &Received) -> Vec<String> {
    let messages = request.messages().iter();
    let tools = messages.filter(|message| message["role"] == "tool");
    tools.map(|message| text(&message["content"]).to_owned()).collect()
}

/// A running server.
pub struct Served {
    running: Running,
    /// Where it listens, at 127.0.0.1.
    pub port: u16,
}

impl Served {
    /// Serves at a free port, with the token of the tests. The home has to live for as long as this: it is removed at its end.
    pub fn start(sandbox: &Sandbox) -> Self {
        Self::start_with(sandbox, &["--token-env", TOKEN_VARIABLE])
    }

    /// Serves at a free port, with these further arguments.
    pub fn start_with(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        let arguments = [&["serve", "--listen", "127.0.0.1:0"], arguments].concat();
        let running = sandbox.start(&arguments);
        running.wait_for_stderr(LISTENING);
        let port = poll_until("the line with its port", default_wait(), || {
            let said = running.stderr_so_far();
            let (port, _) = said.split_once(LISTENING)?.1.split_once('\n')?;
            Some(port.parse().unwrap())
        });
        Self { running, port }
    }

    /// What it has said on stderr.
    pub fn said(&self) -> String {
        self.running.stderr_so_far()
    }

    /// Its process.
    pub fn running(&self) -> &Running {
        &self.running
    }

    /// Ends it as a crash would.
    pub fn kill_9(self) {
        self.running.signal(Signal::KILL);
        self.running.finish();
    }

    /// Posts something, and ends the server as a crash would once `happened` returns: nobody is answered.
    pub fn kill_9_meanwhile(self, path: &str, further: &[(&str, &str)], body: &Value, happened: impl FnOnce()) {
        let mut cut = self.begin(path, further, body).unwrap();
        happened();
        self.kill_9();
        assert!(http::read_response(&mut cut).is_err(), "a killed server answered");
    }

    /// Asks it to end, and waits for that.
    pub fn terminate(self) -> Output {
        self.running.signal(Signal::TERM);
        self.running.finish()
    }

    /// A request as a good app sends it, with further headers; an error when the connection breaks.
    pub fn ask(&self, method: &str, path: &str, further: &[(&str, &str)], body: &str) -> io::Result<Response> {
        let (host, token) = self.names();
        let headers = [&good(&host, &token), further].concat();
        http::ask(self.port, method, path, &headers, body)
    }

    /// Posts something and does not wait for the answer: dropping what is given back is hanging up.
    pub fn begin(&self, path: &str, further: &[(&str, &str)], body: &Value) -> io::Result<TcpStream> {
        let (host, token) = self.names();
        let headers = [&good(&host, &token), further].concat();
        http::begin(self.port, "POST", path, &headers, &body.to_string())
    }

    /// Its name, and its token, as headers have them.
    pub fn names(&self) -> (String, String) {
        (format!("127.0.0.1:{}", self.port), format!("Bearer {TOKEN}"))
    }

    /// Asks for something.
    pub fn get(&self, path: &str) -> Response {
        self.ask("GET", path, &[], "").unwrap()
    }

    /// Posts something.
    pub fn post(&self, path: &str, body: &Value) -> Response {
        self.post_with(path, &[], body)
    }

    /// Posts something with these further headers.
    pub fn post_with(&self, path: &str, further: &[(&str, &str)], body: &Value) -> Response {
        self.ask("POST", path, further, &body.to_string()).unwrap()
    }

    /// Says something, declaring these tools; gives the envelope.
    pub fn chat(&self, text: &str, tools: &[&str]) -> Value {
        accepted(&self.post("/api/chat", &message(text, tools)))
    }

    /// Posts a result of what that envelope waits for.
    pub fn answer(&self, pending: &Value, content: &str) -> Response {
        let body = json!({"call_id": pending["call_id"], "content": content});
        self.post(&route(pending, "tool_result"), &body)
    }

    /// Posts an approval or a denial of what that envelope shows.
    pub fn approval(&self, pending: &Value, answer: &str) -> Response {
        let body = json!({"call_id": pending["call_id"], "digest": pending["digest"], "answer": answer});
        self.post(&route(pending, "approval"), &body)
    }

    /// Answers client calls with what `run` makes of them until something else comes, and gives that.
    pub fn drive(&self, mut envelope: Value, mut run: impl FnMut(&Value) -> String) -> Value {
        for _ in 0..ENVELOPES_MAX {
            if envelope["tool_pending"] != true {
                return envelope;
            }
            let content = run(&envelope);
            envelope = accepted(&self.answer(&envelope, &content));
        }
        panic!("no end after {ENVELOPES_MAX} envelopes: {envelope}");
    }
}

/// The headers of a good request.
pub fn good<'a>(host: &'a str, token: &'a str) -> [(&'a str, &'a str); 3] {
    [
        ("Host", host),
        ("Authorization", token),
        ("Content-Type", "application/json"),
    ]
}

/// The route of a waiting call: `tool_result`, `approval`, or what else there is.
pub fn route(pending: &Value, what: &str) -> String {
    format!("/api/sessions/{}/{what}", text(&pending["session_id"]))
}

/// The envelope of an answer with status 200.
pub fn accepted(response: &Response) -> Value {
    assert_eq!(response.status, 200, "{response:?}");
    response.json()
}

/// Fails unless it was refused with that status and an error of that kind, in the one shape that errors have.
pub fn refused(response: &Response, status: u16, kind: &str) {
    assert_eq!(response.status, status, "{response:?}");
    let body = response.json();
    assert_eq!(keys(&body), "error", "{body}");
    let error = &body["error"];
    assert!(
        matches!(keys(error).as_str(), "kind message" | "hint kind message"),
        "{body}"
    );
    assert_eq!(error["kind"], kind, "{body}");
    assert!(!text(&error["message"]).is_empty(), "{body}");
}

/// The names of an object's fields, sorted, joined by a space.
pub fn keys(object: &Value) -> String {
    let object = object.as_object().unwrap_or_else(|| panic!("not an object: {object}"));
    let mut names: Vec<&str> = object.keys().map(String::as_str).collect();
    names.sort_unstable();
    names.join(" ")
}

/// Fails unless that is a final reply with that text.
pub fn replied(envelope: &Value, reply: &str) {
    assert_eq!(envelope["reply"], reply, "{envelope}");
    assert_eq!(
        keys(envelope),
        "agentic conversation_id model reply tools_used",
        "{envelope}"
    );
}

/// Fails unless that waits for the app to run that tool.
pub fn waits_for(envelope: &Value, tool: &str) {
    assert_eq!(envelope["tool_pending"], true, "{envelope}");
    assert_eq!(envelope["tool_name"], tool, "{envelope}");
}
