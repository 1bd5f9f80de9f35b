//! Gemini's `generateContent`: requests as the API takes them, replies as it documents them and as gateways get them wrong.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm
)]

use aish_core::message::{Message, Part, ToolChoice, ToolSpec};
use aish_provider::codec::Codec;
use aish_provider::codec::gemini::Gemini;
use aish_provider::profile::Format;
use aish_provider::{ModelProfile, Request};
use serde_json::{Value, json};

#[path = "gemini/conversations.rs"]
mod conversations;
#[path = "gemini/replies.rs"]
mod replies;
#[path = "gemini/requests.rs"]
mod requests;

fn profile_of(model: &str) -> ModelProfile {
    ModelProfile::new(Format::Gemini, "https://generativelanguage.googleapis.com", model)
}

fn profile() -> ModelProfile {
    profile_of("gemini-3.8-flash")
}

fn user(text: &str) -> Message {
    Message::User {
        parts: vec![Part::text(text)],
    }
}

fn tool(name: &str, input_schema: Value) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: "d".to_owned(),
        input_schema,
    }
}

fn reader() -> ToolSpec {
    tool(
        "srv.read",
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "$schema": "x"}),
    )
}

fn request<'a>(messages: &'a [Message], tools: &'a [ToolSpec]) -> Request<'a> {
    Request {
        model: "tested",
        system: "Be brief.",
        messages,
        tools,
        tool_choice: ToolChoice::Auto,
        max_output_tokens: None,
        schema: None,
    }
}

fn encode(profile: &ModelProfile, request: Request<'_>) -> Value {
    serde_json::from_slice(&Gemini.encode(request, profile).unwrap().body).unwrap()
}
