//! What the fake server answers: a [`Reply`] is a head and a list of actions, built in the order they happen.
//!
//! ```ignore
//! Reply::text("hello")                                     // a whole, well-formed stream
//! Reply::call("c1", "glob", json!({"pattern": "*.rs"}))    // one tool call
//! Reply::stream().says("hel").stalls().says("lo").finish("stop").done()
//! Reply::stream().says("half a li").cuts(Cut::Reset)       // the connection breaks
//! Reply::error(429, "slow down").header("retry-after", "1")
//! ```

use std::time::Duration;

use serde_json::{Value, json};

/// How the length of a body is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// `Transfer-Encoding: chunked`, one chunk an action.
    Chunked,
    /// `Content-Length`, the sum of all body actions.
    Length,
    /// `Content-Length` with a number of its own, which may be a lie.
    DeclaredLength(usize),
    /// Neither: the body ends where the connection ends.
    Close,
}

/// How a connection is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// An orderly close (FIN), which a client may mistake for the end of the body.
    Fin,
    /// A reset (RST).
    Reset,
}

/// One thing the server does while it answers.
#[derive(Clone, Debug)]
pub enum Action {
    /// Send the head now; it is sent before the first body bytes in any case.
    Head,
    /// Body bytes, framed as the head says.
    Body(Vec<u8>),
    /// The same body bytes many times over, for bodies too large to hold.
    Repeat(Vec<u8>, usize),
    /// Bytes straight to the socket, past all framing.
    Raw(Vec<u8>),
    /// Wait that long.
    Sleep(Duration),
    /// Wait for a `release` by the test; it ends as well when the client goes away or the server ends.
    Stall,
    /// Break the connection.
    Cut(Cut),
}

/// An answer to one request.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Status code.
    pub status: u16,
    /// Headers, without those of the framing.
    pub headers: Vec<(String, String)>,
    /// How the body is framed.
    pub framing: Framing,
    /// What happens, in order.
    pub actions: Vec<Action>,
    /// Break the connection after that many body bytes.
    pub cut_after: Option<(usize, Cut)>,
    /// Write body bytes to the socket in pieces of at most that many bytes, each a packet of its own.
    pub piece_bytes: Option<usize>,
}

impl Reply {
    fn new(status: u16, content_type: &str, framing: Framing) -> Self {
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        Self {
            status,
            headers,
            framing,
            actions: Vec::new(),
            cut_after: None,
            piece_bytes: None,
        }
    }

    /// A whole stream that says `text` and stops.
    pub fn text(text: &str) -> Self {
        Self::stream().says(text).finish("stop").usage(10, 5).done()
    }

    /// A text that stops in the middle until the server releases it.
    pub fn halting(first: &str, second: &str) -> Self {
        Self::stream().says(first).stalls().says(second).finish("stop").done()
    }

    /// A whole stream with one call; `arguments` goes out as its JSON text, in two fragments.
    pub fn call(id: &str, name: &str, arguments: Value) -> Self {
        Self::calls(&[(id, name, arguments)])
    }

    /// A whole stream with several calls.
    pub fn calls(calls: &[(&str, &str, Value)]) -> Self {
        let mut reply = Self::stream();
        for (index, (id, name, arguments)) in calls.iter().enumerate() {
            let text = arguments.to_string();
            let (head, tail) = text.split_at(text.len().min(1));
            reply = reply
                .call_begins(index, id, name)
                .call_arguments(index, head)
                .call_arguments(index, tail);
        }
        reply.finish("tool_calls").usage(10, 5).done()
    }

    /// The opening of a stream: head and the delta that names the role.
    pub fn stream() -> Self {
        let reply = Self::new(200, "text/event-stream", Framing::Chunked);
        reply.delta(json!({"role": "assistant", "content": null}), None)
    }

    /// A stream with nothing in it yet, not even the role.
    pub fn bare_stream() -> Self {
        Self::new(200, "text/event-stream", Framing::Chunked)
    }

    /// One JSON document, not a stream.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::new(status, "application/json", Framing::Length).bytes(body.to_string())
    }

    /// A whole reply to a request that did not ask for a stream.
    pub fn blocking_text(text: &str) -> Self {
        let choice = json!({"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}});
        let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15});
        Self::json(
            200,
            &json!({"id": "chatcmpl-fake", "object": "chat.completion", "created": 1_700_000_000,
            "model": "fake", "choices": [choice], "usage": usage}),
        )
    }

    /// An error as these servers phrase it. Also fit for status 200, which some servers send.
    pub fn error(status: u16, message: &str) -> Self {
        let error = json!({"code": status, "message": message, "type": "server_error"});
        Self::json(status, &json!({ "error": error }))
    }

    /// A chat template that refuses the roles it was given.
    pub fn template_error() -> Self {
        Self::error(
            500,
            "Jinja Exception: Conversation roles must alternate user/assistant/user/assistant/...",
        )
    }

    /// Takes the request and never answers, until released.
    pub fn hangs() -> Self {
        Self::bare_stream().stalls()
    }

    /// Text of the assistant.
    pub fn says(self, text: &str) -> Self {
        self.delta(json!({ "content": text }), None)
    }

    /// Reasoning, in the field that llama.cpp uses.
    pub fn thinks(self, text: &str) -> Self {
        self.delta(json!({ "reasoning_content": text }), None)
    }

    /// The first fragment of a call: its id and name.
    pub fn call_begins(self, index: usize, id: &str, name: &str) -> Self {
        let function = json!({"name": name, "arguments": ""});
        self.call_fragment(json!({"index": index, "id": id, "type": "function", "function": function}))
    }

    /// A further fragment of a call: a piece of its argument text.
    pub fn call_arguments(self, index: usize, fragment: &str) -> Self {
        self.call_fragment(json!({"index": index, "function": {"arguments": fragment}}))
    }

    /// A fragment of a call with exactly these fields: for servers that omit or misplace some.
    pub fn call_fragment(self, fragment: Value) -> Self {
        self.delta(json!({ "tool_calls": [fragment] }), None)
    }

    /// The finish reason, e.g. `stop`, `tool_calls`, `length`.
    pub fn finish(self, reason: &str) -> Self {
        self.delta(json!({}), Some(reason))
    }

    /// Token counts, in a chunk of their own without choices.
    pub fn usage(self, prompt_tokens: u64, completion_tokens: u64) -> Self {
        let usage = json!({"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens});
        self.event(&chunk(&json!([]), Some(&usage)))
    }

    /// The end mark of the stream.
    pub fn done(self) -> Self {
        self.data("[DONE]")
    }

    /// One chunk with this delta.
    pub fn delta(self, delta: Value, finish_reason: Option<&str>) -> Self {
        let choices = json!([{"index": 0, "delta": delta, "finish_reason": finish_reason}]);
        self.event(&chunk(&choices, None))
    }

    /// One event with this JSON.
    pub fn event(self, json: &Value) -> Self {
        self.data(&json.to_string())
    }

    /// One event with this data, which must have no line break.
    pub fn data(self, data: &str) -> Self {
        self.bytes(format!("data: {data}\n\n"))
    }

    /// Body bytes as they are: broken UTF-8, comments, a line without end.
    pub fn bytes(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.actions.push(Action::Body(bytes.into()));
        self
    }

    /// The same body bytes many times over: a line of a gigabyte costs the test nothing.
    pub fn repeats(mut self, bytes: impl Into<Vec<u8>>, times: usize) -> Self {
        self.actions.push(Action::Repeat(bytes.into(), times));
        self
    }

    /// Bytes past all framing.
    pub fn raw(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.actions.push(Action::Raw(bytes.into()));
        self
    }

    /// Sends the head although no body has come yet.
    pub fn sends_head(mut self) -> Self {
        self.actions.push(Action::Head);
        self
    }

    /// Waits that long.
    pub fn sleeps(mut self, pause: Duration) -> Self {
        self.actions.push(Action::Sleep(pause));
        self
    }

    /// Waits until released.
    pub fn stalls(mut self) -> Self {
        self.actions.push(Action::Stall);
        self
    }

    /// Waits before anything is sent, the head included.
    pub fn stalls_first(mut self) -> Self {
        self.actions.insert(0, Action::Stall);
        self
    }

    /// Breaks the connection here.
    pub fn cuts(mut self, cut: Cut) -> Self {
        self.actions.push(Action::Cut(cut));
        self
    }

    /// Breaks the connection after that many body bytes, wherever that falls.
    pub fn cut_after(mut self, body_bytes: usize, cut: Cut) -> Self {
        self.cut_after = Some((body_bytes, cut));
        self
    }

    /// Sends the body in pieces of that many bytes, which splits events and characters anywhere.
    pub fn in_pieces(mut self, piece_bytes: usize) -> Self {
        self.piece_bytes = Some(piece_bytes.max(1));
        self
    }

    /// Changes how the length is told.
    pub fn framed(mut self, framing: Framing) -> Self {
        self.framing = framing;
        self
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// How many body bytes there are, before framing.
    pub fn body_bytes(&self) -> usize {
        let bytes = |action: &Action| match action {
            Action::Body(bytes) => bytes.len(),
            Action::Repeat(bytes, times) => bytes.len() * times,
            Action::Head | Action::Raw(_) | Action::Sleep(_) | Action::Stall | Action::Cut(_) => 0,
        };
        self.actions.iter().map(bytes).sum()
    }
}

fn chunk(choices: &Value, usage: Option<&Value>) -> Value {
    let mut chunk = json!({"id": "chatcmpl-fake", "object": "chat.completion.chunk", "created": 1_700_000_000,
        "model": "fake", "choices": choices});
    if let Some(usage) = usage {
        chunk["usage"] = usage.clone();
    }
    chunk
}
