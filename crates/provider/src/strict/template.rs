//! Chat completions as chat templates mind them: the jinja text of a model raises an exception, the server answers 400.
//!
//! | rules | roles take turns | ids | system role | tools |
//! |---|---|---|---|---|
//! | [`PLAIN`] | yes, results count as the assistant's side | any | first | yes |
//! | [`MISTRAL`] | the same | nine letters and digits | first | yes |
//! | [`GEMMA`] | yes, message by message | none | none | none |

use super::shape::{self, is_word, items, text};
use super::{Complaint, Passed, chat, refuse};
use serde_json::Value;

/// What a template minds.
pub(super) struct Rules {
    ids: Ids,
    system: System,
    tools: Tools,
}

enum Ids {
    Any,
    Nine,
}

enum System {
    First,
    Refused,
}

enum Tools {
    Known,
    Unknown,
}

/// Roles alone.
pub(super) const PLAIN: Rules = Rules {
    ids: Ids::Any,
    system: System::First,
    tools: Tools::Known,
};

/// <https://github.com/vllm-project/vllm/issues/9019>, <https://github.com/charmbracelet/crush/issues/279>,
/// <https://github.com/editor-code-assistant/eca/issues/233>.
pub(super) const MISTRAL: Rules = Rules {
    ids: Ids::Nine,
    system: System::First,
    tools: Tools::Known,
};

/// "System role not supported" and "Conversation roles must alternate" are in the template itself:
/// <https://huggingface.co/google/gemma-2-9b-it/blob/main/tokenizer_config.json>.
pub(super) const GEMMA: Rules = Rules {
    ids: Ids::Any,
    system: System::Refused,
    tools: Tools::Unknown,
};

/// Letters and digits of a call's id.
const ID_CHARS: usize = 9;

pub(super) fn check(body: &Value, rules: &Rules) -> Passed {
    chat::common(body)?;
    let messages = items(&body["messages"]);
    chat::answered(messages)?;
    for (at, message) in messages.iter().enumerate() {
        role(at, message, rules)?;
        for call in items(&message["tool_calls"]) {
            let id = text(&call["id"]);
            if matches!(rules.ids, Ids::Nine) && !(is_word(id, ID_CHARS, &[]) && id.len() == ID_CHARS) {
                return refuse(format!(
                    "Tool call id was {id} but must be a-z, A-Z, 0-9, with a length of {ID_CHARS}."
                ));
            }
        }
    }
    alternation(messages)
}

fn role(at: usize, message: &Value, rules: &Rules) -> Passed {
    let has_calls = message.get("tool_calls").is_some();
    let role = text(&message["role"]);
    if matches!(role, "system" | "developer") {
        return match rules.system {
            System::Refused => refuse("System role not supported"),
            System::First if role == "developer" => refuse("Unexpected role 'developer'"),
            System::First if at > 0 => refuse("System message must be at the beginning"),
            System::First => Ok(()),
        };
    }
    if matches!(rules.tools, Tools::Unknown) && (has_calls || role == "tool") {
        return refuse("Conversation roles must alternate user/assistant/user/assistant/...");
    }
    // https://github.com/OpenHands/OpenHands/issues/8685
    if role == "assistant" && !has_calls && text(&message["content"]).trim().is_empty() {
        return refuse("Assistant message must have either content or tool_calls, but not none.");
    }
    Ok(())
}

/// User and assistant take turns, a user is first, and a user or a result is last:
/// <https://github.com/PromtEngineer/localGPT/issues/720>. A message with calls and its results are passed over, and the
/// assistant goes on after them.
fn alternation(messages: &[Value]) -> Passed {
    let mut expects_user = true;
    for (at, message) in messages.iter().enumerate() {
        let is_user = match text(&message["role"]) {
            "system" | "tool" => continue,
            role => role == "user",
        };
        if is_user != expects_user {
            return refuse(format!(
                "After the optional system message, conversation roles must alternate user/assistant/user/assistant/... \
                 (messages[{at}])"
            ));
        }
        expects_user = !is_user && message.get("tool_calls").is_none();
    }
    match messages.last().map(|last| text(&last["role"])) {
        Some("user" | "tool") => Ok(()),
        other => refuse(format!(
            "Expected last role User or Tool for serving but got {}",
            other.unwrap_or_default()
        )),
    }
}

/// `llama-server`, as recorded and as its source says (`tools/server`, `common/chat.cpp`, `common/json-schema-to-grammar.cpp`):
/// <https://github.com/ggml-org/llama.cpp>.
pub(super) fn check_llama_cpp(body: &Value) -> Passed {
    chat::common(body)?;
    let messages = items(&body["messages"]);
    for message in messages {
        for call in items(&message["tool_calls"]) {
            shape::arguments(&call["function"]["arguments"], "arguments").map_err(server_error)?;
        }
        // https://github.com/ggml-org/llama.cpp/issues/15377
        if items(&message["content"])
            .iter()
            .any(|block| block["type"] == "image_url")
        {
            return refuse(
                "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
            )
            .map_err(server_error);
        }
    }
    chat::answered(messages)?;
    if messages.last().is_some_and(|last| last["role"] == "assistant") {
        return refuse("Assistant response prefill is incompatible with enable_thinking.");
    }
    for tool in items(&body["tools"]) {
        grammar(&tool["function"]["parameters"])?;
    }
    grammar(&body["response_format"]["json_schema"]["schema"])
}

fn server_error(complaint: Complaint) -> Complaint {
    Complaint {
        status: 500,
        ..complaint
    }
}

/// What no grammar can be made of: <https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md>.
fn grammar(schema: &Value) -> Passed {
    if !schema.is_object() {
        return Ok(());
    }
    if let Some(pattern) = schema["pattern"].as_str() {
        if !(pattern.starts_with('^') && pattern.ends_with('$')) {
            return refuse("JSON schema conversion failed: Pattern must start with '^' and end with '$'");
        }
        if pattern.contains("(?") {
            return refuse("JSON schema conversion failed: Unsupported pattern syntax");
        }
    }
    if schema["$ref"].as_str().is_some_and(|place| !place.starts_with("#/")) {
        return refuse(format!(
            "JSON schema conversion failed: Unsupported ref: {}",
            schema["$ref"]
        ));
    }
    for lists in ["anyOf", "oneOf", "allOf", "prefixItems"] {
        items(&schema[lists]).iter().try_for_each(grammar)?;
    }
    for maps in ["properties", "$defs", "definitions"] {
        shape::fields(&schema[maps]).try_for_each(|(_, inner)| grammar(inner))?;
    }
    for inner in ["items", "additionalProperties"] {
        grammar(&schema[inner])?;
    }
    Ok(())
}
