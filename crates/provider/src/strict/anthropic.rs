//! Anthropic's Messages: <https://docs.anthropic.com/en/api/messages>.

use super::shape::{self, Unique, fields, is_word, items, text};
use super::{Passed, refuse};
use serde_json::Value;

mod turns;

/// Fields of a request, as far as a shell could have use for them; others are "Extra inputs are not permitted".
const FIELDS: &[&str] = &[
    "model",
    "messages",
    "system",
    "max_tokens",
    "tools",
    "tool_choice",
    "temperature",
    "top_p",
    "top_k",
    "stop_sequences",
    "stream",
    "thinking",
    "output_config",
    "output_format",
    "metadata",
    "service_tier",
];

/// "A maximum of 4 blocks with `cache_control` may be provided": <https://github.com/continuedev/continue/pull/6937>.
const CACHE_MARKS_MAX: usize = 4;

/// <https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking>.
const THINKING_TOKENS_MIN: u64 = 1024;

pub(super) fn check(path: &str, headers: &[(&str, &str)], body: &Value) -> Passed {
    if path != "/v1/messages" {
        return refuse(format!("Not found: {path}"));
    }
    // https://docs.anthropic.com/en/api/versioning
    if !headers
        .iter()
        .any(|(name, value)| *name == "anthropic-version" && !value.is_empty())
    {
        return refuse("anthropic-version: header is required");
    }
    shape::only_known(body, FIELDS, "")?;
    if text(&body["model"]).is_empty() {
        return refuse("model: Field required");
    }
    if body["max_tokens"].as_u64().is_none_or(|tokens| tokens == 0) {
        return refuse("max_tokens: Field required");
    }
    thinking(body)?;
    if let Some(schema) = body.pointer("/output_config/format/schema") {
        shape::closed_schema(schema, "output_config.format.schema")?;
    }
    tools(body)?;
    system(&body["system"])?;
    let marks = cache_marks(body);
    if marks > CACHE_MARKS_MAX {
        return refuse(format!(
            "A maximum of {CACHE_MARKS_MAX} blocks with cache_control may be provided. Found {marks}."
        ));
    }
    turns::check(body)
}

/// <https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking>.
fn thinking(body: &Value) -> Passed {
    if body["thinking"]["type"] != "enabled" {
        return Ok(());
    }
    let budget = body["thinking"]["budget_tokens"].as_u64().unwrap_or_default();
    if budget < THINKING_TOKENS_MIN {
        return refuse(format!(
            "thinking.enabled.budget_tokens: Input should be greater than or equal to {THINKING_TOKENS_MIN}"
        ));
    }
    if body["max_tokens"].as_u64().is_none_or(|max| max <= budget) {
        return refuse("`max_tokens` must be greater than `thinking.budget_tokens`.");
    }
    if body
        .get("temperature")
        .is_some_and(|temperature| temperature.as_f64() != Some(1.0))
    {
        return refuse("`temperature` may only be set to 1 when thinking is enabled.");
    }
    if matches!(text(&body["tool_choice"]["type"]), "any" | "tool") {
        return refuse("Thinking may not be enabled when tool_choice forces tool use.");
    }
    Ok(())
}

fn tools(body: &Value) -> Passed {
    let Some(tools) = shape::list_or_nothing(body, "tools")? else {
        if body.get("tool_choice").is_some() {
            return refuse("tool_choice: tool_choice may only be specified while providing tools");
        }
        return Ok(());
    };
    let mut names = Unique::default();
    for (at, tool) in tools.iter().enumerate() {
        let name = shape::name(&tool["name"], &format!("tools.{at}.name"))?;
        names.add(name, "tools: Tool names")?;
        match text(&tool["type"]) {
            "" | "custom" => shape::object_schema(&tool["input_schema"], name)?,
            kind if kind.starts_with("web_search_2") && name == "web_search" => {}
            kind => {
                return refuse(format!(
                    "tools.{at}: Input tag '{kind}' does not match any of the expected tags"
                ));
            }
        }
    }
    match text(&body["tool_choice"]["type"]) {
        "" if body.get("tool_choice").is_none() => Ok(()),
        "auto" | "any" | "none" | "tool" => Ok(()),
        _ => refuse("tool_choice: Input should be an object with a known type"),
    }
}

fn system(system: &Value) -> Passed {
    match system {
        Value::Null => Ok(()),
        Value::String(text) if !text.trim().is_empty() => Ok(()),
        Value::Array(blocks) if !blocks.is_empty() => blocks.iter().try_for_each(|block| {
            if block["type"] == "text" && !text(&block["text"]).trim().is_empty() {
                Ok(())
            } else {
                refuse("system: text content blocks must be non-empty")
            }
        }),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            refuse("system: text content blocks must be non-empty")
        }
    }
}

/// Marks anywhere in the request; a schema cannot hold one, for its fields are called like arguments.
fn cache_marks(value: &Value) -> usize {
    let own = usize::from(value.get("cache_control").is_some());
    let inner: usize = fields(value)
        .filter(|(key, _)| !matches!(key.as_str(), "input" | "input_schema"))
        .map(|(_, inner)| cache_marks(inner))
        .sum();
    own + inner + items(value).iter().map(cache_marks).sum::<usize>()
}

/// `^[a-zA-Z0-9_-]+$`.
fn is_id(id: &str) -> bool {
    is_word(id, usize::MAX, &['_', '-'])
}
