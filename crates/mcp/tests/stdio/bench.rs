//! Starts servers for the tests, hears what they say, and looks for what is left of them.

use aish_core::secret::Secret;
use aish_mcp::host::{News, Question, Reply};
use aish_mcp::stdio::Child;
use aish_mcp::{Alias, Host, StdioEndpoint};
use futures_util::future::BoxFuture;
use rmcp::model::{ClientJsonRpcMessage, RequestId, ServerJsonRpcMessage};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Where the programs of the tests are.
pub const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Only bounds a hang.
const WAIT: Duration = Duration::from_secs(60);

/// Starts servers and keeps their news.
pub struct Bench(Arc<Heard>);

#[derive(Default)]
struct Heard(Mutex<Vec<News>>);

impl Host for Heard {
    fn ask<'a>(&'a self, _server: &'a Alias, _question: Question) -> BoxFuture<'a, Reply> {
        panic!("nothing is asked here");
    }

    fn sample<'a>(&'a self, _server: &'a Alias, _params: Value) -> BoxFuture<'a, Result<Value, String>> {
        panic!("no model is asked here");
    }

    fn news(&self, _server: &Alias, news: News) {
        self.0.lock().unwrap().push(news);
    }
}

impl Bench {
    pub fn new() -> Self {
        Self(Arc::default())
    }

    pub fn host(&self) -> Arc<dyn Host> {
        Arc::clone(&self.0) as Arc<dyn Host>
    }

    pub async fn start(&self, endpoint: &StdioEndpoint) -> Child {
        let alias = Alias::parse("bad").unwrap();
        Child::start(&alias, endpoint, self.host()).await.unwrap()
    }

    /// The lines of standard error so far.
    pub fn stderr(&self) -> Vec<String> {
        self.heard(|news| {
            if let News::Stderr { text } = news {
                Some(text.clone())
            } else {
                None
            }
        })
    }

    /// What was passed over so far.
    pub fn notes(&self) -> Vec<String> {
        self.heard(|news| {
            if let News::Log { text, .. } = news {
                Some(text.clone())
            } else {
                None
            }
        })
    }

    fn heard(&self, kind: fn(&News) -> Option<String>) -> Vec<String> {
        self.0.0.lock().unwrap().iter().filter_map(kind).collect()
    }
}

/// A server that is a script in Python.
pub fn python(script: &str) -> StdioEndpoint {
    endpoint(&["python3", "-c", script])
}

/// A server that is a script of the shell.
pub fn sh(script: &str) -> StdioEndpoint {
    endpoint(&["sh", "-c", script])
}

fn endpoint(command: &[&str]) -> StdioEndpoint {
    StdioEndpoint {
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        environment: vec![("PATH".to_owned(), Secret::new(PATH))],
        directory: "/".into(),
    }
}

pub fn ping(id: i64) -> ClientJsonRpcMessage {
    serde_json::from_value(json!({"jsonrpc": "2.0", "id": id, "method": "ping"})).unwrap()
}

/// The id of a response; none for anything else.
pub fn response_id(message: Option<ServerJsonRpcMessage>) -> Option<i64> {
    match message {
        Some(ServerJsonRpcMessage::Response(response)) => match response.id {
            RequestId::Number(id) => Some(id),
            RequestId::String(_) => None,
        },
        _ => None,
    }
}

/// Waits for what must come true.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + WAIT;
    while !is_so() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The state of a process and its parent; none for one that is gone.
fn stat(id: i32) -> Option<(char, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

/// True while a process exists and is no zombie.
pub fn is_alive(id: i32) -> bool {
    stat(id).is_some_and(|(state, _)| state != 'Z')
}

/// The children of this process, zombies among them. Each test has a process of its own.
pub fn children() -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").unwrap();
    let ids = entries.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse::<i32>().ok());
    ids.filter(|id| stat(*id).is_some_and(|(_, parent)| parent == std::process::id()))
        .collect()
}

/// Memory this process has now.
pub fn resident_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = text.split_whitespace().nth(1).unwrap().parse().unwrap();
    pages * 4096
}
