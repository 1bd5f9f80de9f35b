//! An MCP client over the program's standard streams: it says what a test wants said, and waits for what comes.

use crate::support::sandbox::Sandbox;
use crate::support::{default_wait, poll_until};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};

/// The version that has no `initialize`.
pub const STATELESS: &str = "2026-07-28";

/// A client, and the server it has started.
pub struct Client {
    pub child: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
}

impl Client {
    /// Starts a server with these further arguments and says nothing.
    pub fn silent(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        let mut command = sandbox.command(&[&["mcp", "serve"], arguments].concat());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::inherit()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (send, messages) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                // Nothing but the protocol comes this way.
                let message = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"));
                if send.send(message).is_err() {
                    return;
                }
            }
        });
        Self {
            input: child.stdin.take(),
            child,
            messages,
        }
    }

    /// Starts a server and begins the older way, as a client that can do this.
    pub fn start(sandbox: &Sandbox, arguments: &[&str], capabilities: &Value) -> Self {
        let mut client = Self::silent(sandbox, arguments);
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "clientInfo": {"name": "tester", "version": "1"},
        });
        client.request(json!("init"), "initialize", &params);
        let reply = client.reply_to(&json!("init"));
        assert_eq!(reply["result"]["serverInfo"]["name"], "aish", "{reply}");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    /// Writes a line as it is.
    pub fn write(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).unwrap();
        input.write_all(b"\n").unwrap();
    }

    pub fn send(&mut self, message: &Value) {
        self.write(message.to_string().as_bytes());
    }

    pub fn request(&mut self, id: Value, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    /// Asks for a call and does not wait.
    pub fn begin(&mut self, id: u64, tool: &str, arguments: &Value) {
        self.request(json!(id), "tools/call", &json!({"name": tool, "arguments": arguments}));
    }

    /// The first message from now on that fits.
    pub fn next(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.messages.recv_timeout(default_wait()).expect("a message");
            if fits(&message) {
                return message;
            }
        }
    }

    pub fn reply_to(&mut self, id: &Value) -> Value {
        self.next(|message| message.get("method").is_none() && message["id"] == *id)
    }

    /// Calls and waits; gives the text of the result, and whether it is an error.
    pub fn call(&mut self, id: u64, tool: &str, arguments: &Value) -> (String, bool) {
        self.begin(id, tool, arguments);
        outcome(&self.reply_to(&json!(id)))
    }

    /// Calls in the way of 2026-07-28, with these further parameters; gives the whole result.
    pub fn call_stateless(&mut self, id: u64, arguments: &Value, further: &Value) -> Value {
        let mut params = json!({
            "name": "bash",
            "arguments": arguments,
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": STATELESS,
                "io.modelcontextprotocol/clientInfo": {"name": "tester", "version": "2"},
                "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
            },
        });
        let further = further.as_object().unwrap().clone();
        params.as_object_mut().unwrap().extend(further);
        self.request(json!(id), "tools/call", &params);
        self.reply_to(&json!(id))["result"].take()
    }

    /// Answers the question that the server asks next; gives what it said.
    pub fn answer_question(&mut self, answer: &Value) -> String {
        let asked = self.next(|message| message["method"] == "elicitation/create");
        self.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer}));
        asked["params"]["message"].as_str().unwrap().to_owned()
    }

    /// Says no more, and waits until the server has ended.
    pub fn hang_up(mut self) -> ExitStatus {
        drop(self.input.take());
        self.ended()
    }

    pub fn ended(&mut self) -> ExitStatus {
        poll_until("the end of the server", default_wait(), || {
            self.child.try_wait().unwrap()
        })
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It has ended already: as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The text of a result, and whether it is an error.
pub fn outcome(reply: &Value) -> (String, bool) {
    let result = &reply["result"];
    let text = result["content"][0]["text"].as_str();
    let text = text.unwrap_or_else(|| panic!("no text: {reply}"));
    (text.to_owned(), result["isError"] == true)
}
