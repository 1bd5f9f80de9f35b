//! What the tests ask with: the routes over an engine with a scripted model, and answers that can be looked at.

use crate::support::{World, within};
use aish_engine::{Conversations, ConversationsSettings};
use aish_provider::scripted::Act;
use aish_server::router;
use axum::Router;
use axum::body::{Body, to_bytes};
use http::{HeaderMap, Request, Response};
use serde_json::{Value, json};
use std::sync::Arc;
use tower_service::Service as _;

/// The largest answer that a test expects, in bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The routes, and what is behind them.
pub struct Bench {
    pub world: World,
    pub conversations: Arc<Conversations>,
    router: Router,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: String,
}

/// What usually holds.
pub fn usual() -> ConversationsSettings {
    ConversationsSettings {
        pending_ttl_ms: None,
        strict_call_id: false,
        turns_max: 16,
    }
}

impl Bench {
    /// A model that does these acts.
    pub fn new(acts: impl IntoIterator<Item = Act>) -> Self {
        Self::with(World::new(acts), usual())
    }

    pub fn with(world: World, settings: ConversationsSettings) -> Self {
        let conversations = Conversations::new(Arc::clone(&world.engine), settings);
        Self {
            router: router(Arc::clone(&conversations)),
            world,
            conversations,
        }
    }

    /// Asks with exactly this, and gives what begins to be answered.
    pub async fn respond(&self, request: Request<Body>) -> Response<Body> {
        let answering = self.router.clone().call(request);
        within(answering).await.unwrap()
    }

    /// Asks with exactly this.
    pub async fn send(&self, request: Request<Body>) -> Answer {
        Answer::read(self.respond(request).await).await
    }

    /// Asks as a good client does, with further headers; an empty body is none.
    pub async fn ask(&self, (method, path): (&str, &str), headers: &[(&str, &str)], body: &str) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        if !body.is_empty() {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(Body::from(body.to_owned())).unwrap()).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.ask(("GET", path), &[], "").await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_with(path, &[], body).await
    }

    pub async fn post_with(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
        self.ask(("POST", path), headers, &body.to_string()).await
    }

    /// Says something; gives the envelope.
    pub async fn chat(&self, text: &str, tools: &[&str]) -> Value {
        self.post("/api/chat", &message(text, tools)).await.accepted()
    }

    /// How many events a session has.
    pub async fn event_count(&self, session: &str) -> u64 {
        let page = self.get(&format!("/api/sessions/{session}?limit=1")).await.accepted();
        page["session"]["events"].as_u64().unwrap()
    }

    /// Gives a result of what that envelope waits for.
    pub async fn answer(&self, pending: &Value, content: &str) -> Answer {
        let body = json!({"call_id": pending["call_id"], "content": content});
        self.post(&route(pending, "tool_result"), &body).await
    }
}

impl Answer {
    async fn read(response: Response<Body>) -> Self {
        let (head, body) = response.into_parts();
        let bytes = within(to_bytes(body, ANSWER_BYTES_MAX)).await.unwrap();
        Self {
            status: head.status.as_u16(),
            headers: head.headers,
            body: String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// What it says, being a success.
    pub fn accepted(&self) -> Value {
        assert_eq!(self.status, 200, "{self:?}");
        assert_eq!(self.headers["content-type"], "application/json");
        self.json()
    }

    /// Fails unless it is a refusal of that kind, in the one shape of all refusals, that says this somewhere.
    pub fn refused(&self, status: u16, kind: &str, says: &str) {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.headers["content-type"], "application/json");
        let body = self.json();
        assert_eq!(keys(&body), "error", "{body}");
        assert!(
            matches!(keys(&body["error"]).as_str(), "kind message" | "hint kind message"),
            "{body}"
        );
        assert_eq!(body["error"]["kind"], kind, "{body}");
        assert!(body.to_string().contains(says), "{says}: {body}");
    }
}

/// A message, with tools that the client executes.
pub fn message(text: &str, tools: &[&str]) -> Value {
    let tool = |name: &&str| json!({"name": name, "description": "", "input_schema": {"type": "object"}});
    let tools: Vec<Value> = tools.iter().map(tool).collect();
    json!({"message": text, "tools": tools})
}

/// Where what that envelope waits for is answered.
pub fn route(pending: &Value, what: &str) -> String {
    format!("/api/sessions/{}/{what}", text(&pending["session_id"]))
}

/// The text that a value is.
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

/// The names of an object's fields, sorted, joined by a space.
pub fn keys(object: &Value) -> String {
    let object = object.as_object().unwrap_or_else(|| panic!("no object: {object}"));
    let mut names: Vec<&str> = object.keys().map(String::as_str).collect();
    names.sort_unstable();
    names.join(" ")
}
