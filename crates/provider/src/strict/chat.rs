//! Chat completions as OpenAI's own API minds them: <https://platform.openai.com/docs/api-reference/chat/create>.

use super::shape::{self, Unique, items, text};
use super::{Passed, refuse};
use serde_json::Value;

/// Fields of a request, as far as a shell could have use for them.
const FIELDS: &[&str] = &[
    "model",
    "messages",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "temperature",
    "top_p",
    "stop",
    "seed",
    "max_tokens",
    "max_completion_tokens",
    "stream",
    "stream_options",
    "response_format",
    "reasoning_effort",
    "verbosity",
    "web_search_options",
    "prompt_cache_key",
    "service_tier",
    "store",
    "metadata",
    "user",
];

/// Fields of each role's messages; others are refused here ("Additional properties are not allowed"), and by Groq and Mistral.
const MESSAGE_FIELDS: &[(&str, &[&str])] = &[
    ("system", &["role", "content", "name"]),
    ("developer", &["role", "content", "name"]),
    ("user", &["role", "content", "name"]),
    ("assistant", &["role", "content", "name", "refusal", "tool_calls"]),
    ("tool", &["role", "content", "tool_call_id"]),
];

/// "Expected a string with maximum length 40": <https://github.com/agno-agi/agno/issues/5382>.
const ID_CHARS_MAX: usize = 40;

/// The kinds of images that are taken: <https://platform.openai.com/docs/guides/images-vision>.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

pub(super) fn check(body: &Value) -> Passed {
    shape::only_known(body, FIELDS, "")?;
    if text(&body["model"]).is_empty() {
        return refuse("you must provide a model parameter");
    }
    if body.get("max_tokens").is_some() && body.get("max_completion_tokens").is_some() {
        return refuse("Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.");
    }
    if body.get("stream_options").is_some() && body["stream"] != Value::Bool(true) {
        return refuse("The 'stream_options' parameter is only allowed when 'stream' is enabled.");
    }
    common(body)?;
    let messages = items(&body["messages"]);
    for (at, message) in messages.iter().enumerate() {
        let known = MESSAGE_FIELDS.iter().find(|(role, _)| message["role"] == *role);
        shape::only_known(message, known.map_or(&[], |(_, fields)| *fields), "messages.")?;
        for call in items(&message["tool_calls"]) {
            let id = text(&call["id"]);
            if id.chars().count() > ID_CHARS_MAX {
                return refuse(format!(
                    "Invalid 'messages[{at}].tool_calls[0].id': string too long. Expected a string with maximum length \
                     {ID_CHARS_MAX}: {id}"
                ));
            }
        }
    }
    answered(messages)
}

/// What every server of this format minds, in the fields and in each message by itself.
pub(super) fn common(body: &Value) -> Passed {
    for field in ["max_tokens", "max_completion_tokens"] {
        shape::tokens_min(body, field, 1)?;
    }
    tools(body)?;
    response_format(&body["response_format"])?;
    let messages = items(&body["messages"]);
    if messages.is_empty() {
        return refuse("[] is too short - 'messages'");
    }
    for (at, message) in messages.iter().enumerate() {
        content(at, message)?;
    }
    Ok(())
}

fn tools(body: &Value) -> Passed {
    let Some(tools) = shape::list_or_nothing(body, "tools")? else {
        // https://github.com/openai/swarm/issues/30, https://github.com/writer/writer-framework/pull/1013
        return match ["tool_choice", "parallel_tool_calls"]
            .iter()
            .find(|field| body.get(**field).is_some())
        {
            Some(field) => refuse(format!("'{field}' is only allowed when 'tools' are specified.")),
            None => Ok(()),
        };
    };
    let mut names = Unique::default();
    for (at, tool) in tools.iter().enumerate() {
        let place = format!("tools[{at}].function");
        let function = &tool["function"];
        let name = shape::name(&function["name"], &format!("{place}.name"))?;
        // Gemini and Anthropic behind compatible endpoints refuse two of one name.
        names.add(name, "Tool names")?;
        shape::object_schema(&function["parameters"], name)?;
        if function["strict"] == Value::Bool(true) {
            shape::strict_schema(&function["parameters"], name)?;
        }
    }
    let choice = &body["tool_choice"];
    if choice.is_null() || choice.is_object() || ["auto", "none", "required"].iter().any(|known| choice == known) {
        Ok(())
    } else {
        refuse(format!("Invalid tool_choice: {choice}"))
    }
}

/// <https://platform.openai.com/docs/guides/structured-outputs>.
fn response_format(format: &Value) -> Passed {
    match text(&format["type"]) {
        "" if format.is_null() => Ok(()),
        "text" | "json_object" => Ok(()),
        "json_schema" => {
            let schema = &format["json_schema"];
            let name = shape::name(&schema["name"], "response_format.json_schema.name")?;
            if !schema["schema"].is_object() {
                return refuse("Missing required parameter: 'response_format.json_schema.schema'.");
            }
            if schema["strict"] == Value::Bool(true) {
                shape::strict_schema(&schema["schema"], name)?;
            }
            Ok(())
        }
        other => refuse(format!(
            "Invalid value: '{other}'. Supported values are: 'json_object', 'json_schema', and 'text'."
        )),
    }
}

/// What a message of that role may hold.
fn content(at: usize, message: &Value) -> Passed {
    let role = text(&message["role"]);
    let content = &message["content"];
    let calls = message.get("tool_calls");
    match role {
        "assistant" if calls.is_some() => {
            shape::list_or_nothing(message, "tool_calls")?;
            if content.is_null() || content.is_string() || content.is_array() {
                Ok(())
            } else {
                refuse(format!("Invalid type for 'messages[{at}].content'"))
            }
        }
        // Only calls make up for a text: https://platform.openai.com/docs/api-reference/chat/create#chat_create-messages
        "assistant" | "system" | "developer" | "tool" => match content {
            Value::String(_) => Ok(()),
            Value::Array(_) => blocks(at, role, items(content)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => refuse(format!(
                "Invalid value for 'content': expected a string, got null. (messages[{at}])"
            )),
        },
        "user" => match content {
            Value::String(text) if !text.is_empty() => Ok(()),
            Value::Array(_) => blocks(at, role, items(content)),
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
                refuse(format!("messages[{at}]: the user said nothing"))
            }
        },
        other => refuse(format!(
            "Invalid value: '{other}'. Supported values are: 'system', 'assistant', 'user', 'tool', and 'developer'."
        )),
    }
}

fn blocks(at: usize, role: &str, blocks: &[Value]) -> Passed {
    if blocks.is_empty() {
        return refuse(format!("Invalid 'messages[{at}].content': empty array."));
    }
    for block in blocks {
        match text(&block["type"]) {
            "text" if text(&block["text"]).is_empty() => {
                return refuse(format!("messages[{at}]: text content blocks must be non-empty"));
            }
            "text" => {}
            // https://github.com/OpenHands/OpenHands/issues/7700, https://github.com/openai/openai-node/issues/1030
            "image_url" if role != "user" => {
                return refuse(format!(
                    "Invalid 'messages[{at}]'. Image URLs are only allowed for messages with role 'user', but this message \
                     with role '{role}' contains an image URL."
                ));
            }
            "image_url" => image(at, text(&block["image_url"]["url"]))?,
            other => {
                return refuse(format!(
                    "Invalid value: '{other}'. Supported values are: 'text', 'image_url'."
                ));
            }
        }
    }
    Ok(())
}

fn image(at: usize, url: &str) -> Passed {
    let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    match inline {
        Some((kind, data)) if IMAGE_TYPES.contains(&kind) && !data.is_empty() => Ok(()),
        None if url.starts_with("https://") => Ok(()),
        Some(_) | None => refuse(format!(
            "Invalid image in 'messages[{at}]': You uploaded an unsupported image."
        )),
    }
}

/// Each call is answered once, directly after the message that made it; nothing else is answered:
/// <https://github.com/simonw/llm/issues/937>, <https://github.com/FoundationAgents/OpenManus/issues/744>.
/// In call order, because templates render results in the order they come.
pub(super) fn answered(messages: &[Value]) -> Passed {
    let mut ids = Unique::default();
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        if message["role"] == "tool" {
            let id = text(&message["tool_call_id"]);
            match open.iter().position(|waiting| *waiting == id) {
                Some(0) => drop(open.remove(0)),
                Some(_) => return refuse(format!("messages[{at}]: result {id} is out of call order")),
                None => {
                    return refuse(format!(
                        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with \
                         'tool_calls'. (messages[{at}]: {id})"
                    ));
                }
            }
            continue;
        }
        not_open(&open)?;
        for (n, call) in items(&message["tool_calls"]).iter().enumerate() {
            let place = format!("messages[{at}].tool_calls[{n}]");
            let id = text(&call["id"]);
            if id.is_empty() {
                return refuse(format!("Missing required parameter: '{place}.id'."));
            }
            ids.add(id, "Ids of tool calls")?;
            if call["type"] != "function" {
                return refuse(format!(
                    "Invalid value for '{place}.type'. Supported values are: 'function'."
                ));
            }
            shape::name(&call["function"]["name"], &format!("{place}.function.name"))?;
            shape::arguments(&call["function"]["arguments"], &format!("{place}.function.arguments"))?;
            open.push(id);
        }
    }
    not_open(&open)
}

fn not_open(open: &[&str]) -> Passed {
    match open {
        [] => Ok(()),
        ids => refuse(format!(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The \
             following tool_call_ids did not have response messages: {}",
            ids.join(", ")
        )),
    }
}
