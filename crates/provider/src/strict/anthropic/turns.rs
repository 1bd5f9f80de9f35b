//! The conversation in a request to Anthropic: who speaks when, and which blocks go with which.

use super::is_id;
use crate::strict::shape::{self, Unique, items, text};
use crate::strict::{Passed, refuse};
use serde_json::Value;

/// What a call's id is named where it is answered.
const ANSWERED_ID: &str = concat!("tool_", "use_id");

/// The kinds of images that are taken: <https://docs.anthropic.com/en/docs/build-with-claude/vision>.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

pub(super) fn check(body: &Value) -> Passed {
    let messages = items(&body["messages"]);
    if messages.is_empty() {
        return refuse("messages: at least one message is required");
    }
    let mut ids = Unique::default();
    for (at, message) in messages.iter().enumerate() {
        let role = if at.is_multiple_of(2) { "user" } else { "assistant" };
        if message["role"] != role {
            return refuse(format!(
                "messages: roles must alternate between \"user\" and \"assistant\", beginning with \"user\" (messages.{at})"
            ));
        }
        let blocks = blocks(message, at)?;
        for (n, block) in blocks.iter().enumerate() {
            self::block(block, role, &format!("messages.{at}.content.{n}"))?;
            if block["type"] == "tool_use" || block["type"] == "server_tool_use" {
                ids.add(text(&block["id"]), "messages: `tool_use` ids")?;
            }
        }
        let is_last = at + 1 == messages.len();
        server_tools(blocks, at, is_last)?;
        let before = at.checked_sub(1).and_then(|before| messages.get(before));
        answers(before, message, at)?;
        if is_last {
            end(message, at)?;
        }
    }
    signed(body, messages)?;
    needs_tools(body, messages)
}

/// The blocks; none for a plain text that is not empty.
fn blocks(message: &Value, at: usize) -> Passed<&[Value]> {
    match &message["content"] {
        Value::String(text) if !text.trim().is_empty() => Ok(&[]),
        Value::Array(blocks) if !blocks.is_empty() => Ok(blocks),
        // https://github.com/home-assistant/core/issues/175637
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            refuse(format!("messages.{at}: all messages must have non-empty content"))
        }
    }
}

fn block(block: &Value, role: &str, place: &str) -> Passed {
    let kind = text(&block["type"]);
    let is_assistant = role == "assistant";
    match kind {
        // https://github.com/LibreChat-AI/agents/pull/124: refused where nothing else is said; refused here everywhere.
        "text" if text(&block["text"]).trim().is_empty() => {
            refuse("messages: text content blocks must contain non-whitespace text")
        }
        "text" => Ok(()),
        "image" if !is_assistant => image(block, place),
        "tool_result" if !is_assistant => result(block, place),
        "tool_use" if is_assistant => call(block, place),
        "thinking" if is_assistant => thinking(block, place),
        "redacted_thinking" if is_assistant && !text(&block["data"]).is_empty() => Ok(()),
        "server_tool_use" if is_assistant => call(block, place),
        kind if is_assistant && kind.ends_with("_tool_result") => Ok(()),
        kind => refuse(format!("{place}: '{kind}' blocks are not allowed in '{role}' messages")),
    }
}

fn image(block: &Value, place: &str) -> Passed {
    let source = &block["source"];
    if source["type"] == "url" {
        return Ok(());
    }
    if !IMAGE_TYPES.contains(&text(&source["media_type"])) {
        return refuse(format!(
            "{place}.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'"
        ));
    }
    if text(&source["data"]).is_empty() {
        return refuse(format!("{place}.image.source.base64.data: image cannot be empty"));
    }
    Ok(())
}

fn call(block: &Value, place: &str) -> Passed {
    if !is_id(text(&block["id"])) {
        return refuse(format!(
            "{place}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
        ));
    }
    shape::name(&block["name"], &format!("{place}.tool_use.name"))?;
    if block["input"].is_object() {
        Ok(())
    } else {
        refuse(format!("{place}.tool_use.input: Input should be a valid dictionary"))
    }
}

fn result(block: &Value, place: &str) -> Passed {
    if !is_id(text(&block[ANSWERED_ID])) {
        return refuse(format!("{place}.tool_result.{ANSWERED_ID}: Field required"));
    }
    match &block["content"] {
        Value::Null | Value::String(_) => Ok(()),
        // https://github.com/vellum-ai/vellum-assistant/pull/18387
        Value::Array(blocks)
            if block["is_error"] == Value::Bool(true) && blocks.iter().any(|inner| inner["type"] != "text") =>
        {
            refuse(format!(
                "{place}.tool_result: all content must be type `text` if `is_error` is true"
            ))
        }
        Value::Array(blocks) => blocks.iter().try_for_each(|inner| match text(&inner["type"]) {
            "text" if text(&inner["text"]).is_empty() => refuse("messages: text content blocks must be non-empty"),
            "text" => Ok(()),
            "image" => image(inner, place),
            kind => refuse(format!("{place}.tool_result.content: '{kind}' is not allowed")),
        }),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            refuse(format!("{place}.tool_result.content: Input should be a valid string"))
        }
    }
}

/// <https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking#preserving-thinking-blocks>.
fn thinking(block: &Value, place: &str) -> Passed {
    if text(&block["signature"]).is_empty() {
        return refuse(format!("{place}.thinking.signature: Field required"));
    }
    if !block["thinking"].is_string() {
        return refuse(format!("{place}.thinking.thinking: Field required"));
    }
    if block.get("cache_control").is_some() {
        return refuse(format!(
            "{place}.thinking.cache_control: Extra inputs are not permitted"
        ));
    }
    Ok(())
}

fn ids<'v>(message: &'v Value, kind: &str, field: &str) -> Vec<&'v str> {
    let blocks = items(&message["content"]).iter().filter(|block| block["type"] == kind);
    blocks.map(|block| text(&block[field])).collect()
}

/// The results of a message answer the calls of the one before it, all of them and no others, in order, before anything else:
/// <https://github.com/anthropics/claude-code/issues/2697>, <https://github.com/anthropics/claude-code/issues/37>.
fn answers(before: Option<&Value>, message: &Value, at: usize) -> Passed {
    let called = before.map(|before| ids(before, "tool_use", "id")).unwrap_or_default();
    let answered = ids(message, "tool_result", ANSWERED_ID);
    if let Some(id) = answered.iter().find(|id| !called.contains(id)) {
        return refuse(format!(
            "messages.{at}.content.0: unexpected `{ANSWERED_ID}` found in `tool_result` blocks: {id}. Each `tool_result` block \
             must have a corresponding `tool_use` block in the previous message."
        ));
    }
    let results = items(&message["content"])
        .iter()
        .take_while(|block| block["type"] == "tool_result");
    if called != answered || results.count() != answered.len() {
        return refuse(format!(
            "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` block \
             must have a corresponding `tool_result` block in the next message.",
            at.saturating_sub(1),
            called.join(", ")
        ));
    }
    Ok(())
}

/// A provider's own call is followed by its result, except at the end of a reply that was paused:
/// <https://docs.anthropic.com/en/docs/build-with-claude/tool-use/web-search-tool>.
fn server_tools(blocks: &[Value], at: usize, is_last: bool) -> Passed {
    let is_result = |block: &Value| text(&block["type"]).ends_with("_tool_result");
    for (n, block) in blocks.iter().enumerate() {
        let (before, after) = blocks.split_at(n);
        if block["type"] == "server_tool_use" {
            let is_answered = after
                .iter()
                .any(|later| is_result(later) && later[ANSWERED_ID] == block["id"]);
            if !(is_answered || is_last) {
                return refuse(format!(
                    "messages.{at}: `{}` tool use with id `{}` was found without a corresponding result block",
                    text(&block["name"]),
                    text(&block["id"])
                ));
            }
        } else if is_result(block) && !before.iter().any(|call| call["id"] == block[ANSWERED_ID]) {
            return refuse(format!(
                "messages.{at}: unexpected result of a server tool without its call"
            ));
        }
    }
    Ok(())
}

/// A reply under way is sent back only when its provider paused it: newer models take no other last assistant message
/// ("This model does not support assistant message prefill"), and none takes one that ends in white space:
/// <https://github.com/tailcallhq/forgecode/issues/1872>.
fn end(message: &Value, at: usize) -> Passed {
    if message["role"] != "assistant" {
        return Ok(());
    }
    let blocks = items(&message["content"]);
    if !blocks.iter().any(|block| block["type"] == "server_tool_use") {
        return refuse(
            "This model does not support assistant message prefill. The conversation must end with a user message.",
        );
    }
    let last = blocks.last().map(|block| text(&block["text"])).unwrap_or_default();
    if last != last.trim_end() {
        return refuse("messages: final assistant content cannot end with trailing whitespace");
    }
    if let Some(id) = ids(message, "tool_use", "id").first() {
        return refuse(format!(
            "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {id}."
        ));
    }
    Ok(())
}

/// With thinking on, the reply that began the turn under way begins with what was thought:
/// <https://github.com/n8n-io/n8n/issues/22550>.
fn signed(body: &Value, messages: &[Value]) -> Passed {
    if body["thinking"]["type"] != "enabled" {
        return Ok(());
    }
    let is_question =
        |message: &Value| message["role"] == "user" && ids(message, "tool_result", ANSWERED_ID).is_empty();
    let began = messages.iter().rposition(is_question).map_or(0, |at| at + 1);
    let Some(first) = messages.get(began).and_then(|reply| items(&reply["content"]).first()) else {
        return Ok(());
    };
    match text(&first["type"]) {
        "thinking" | "redacted_thinking" => Ok(()),
        kind => refuse(format!(
            "messages.{began}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{kind}`. When `thinking` \
             is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of \
             `tool_use` and `tool_result` blocks)."
        )),
    }
}

/// <https://github.com/anthropics/anthropic-sdk-python/issues/494>: a conversation with calls needs the tools field, whoever was called.
fn needs_tools(body: &Value, messages: &[Value]) -> Passed {
    let has_calls = messages
        .iter()
        .any(|message| !ids(message, "tool_use", "id").is_empty());
    if has_calls && body.get("tools").is_none() {
        return refuse("Requests which include `tool_use` or `tool_result` blocks must define tools");
    }
    Ok(())
}
