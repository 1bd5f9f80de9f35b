//! What real servers refuse: the rules by which the fake server answers 400 in its strict modes.

use std::collections::HashSet;

use serde_json::Value;

/// How much the fake server minds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strictness {
    /// Takes anything.
    #[default]
    Lenient,
    /// The rules of the chat-completions API: calls and results match, no empty `tools`, valid arguments and names.
    Api,
    /// Also the rules of strict chat templates: user and assistant alternate, a user comes first and an assistant never
    /// last.
    Template,
}

/// The longest tool name that most providers accept.
const TOOL_NAME_CHARS_MAX: usize = 64;

/// Why a server of that strictness would refuse this request body; `None` when it would not.
pub fn violation(body: &Value, strictness: Strictness) -> Option<String> {
    let check = || -> Result<(), String> {
        if strictness == Strictness::Lenient {
            return Ok(());
        }
        check_tools(body)?;
        let messages = body["messages"].as_array().ok_or("messages is missing")?;
        if messages.is_empty() {
            return Err("messages is empty".to_owned());
        }
        check_roles(messages)?;
        check_calls(messages)?;
        if strictness == Strictness::Template {
            check_alternation(messages)?;
        }
        Ok(())
    };
    check().err()
}

fn check_tools(body: &Value) -> Result<(), String> {
    let Some(tools) = body.get("tools") else {
        return match body.get("tool_choice") {
            None => Ok(()),
            Some(_) => Err("tool_choice is only allowed when tools are specified".to_owned()),
        };
    };
    let tools = tools.as_array().ok_or("tools is not an array")?;
    if tools.is_empty() {
        return Err("[] is too short - 'tools'".to_owned());
    }
    let mut seen = HashSet::new();
    for tool in tools {
        let name = tool["function"]["name"].as_str().ok_or("a tool has no function name")?;
        check_name(name)?;
        if !seen.insert(name) {
            return Err(format!("tool names must be unique: {name}"));
        }
        let parameters = &tool["function"]["parameters"];
        if parameters["type"] != "object" {
            return Err(format!("parameters of {name} are not of type object"));
        }
    }
    Ok(())
}

fn check_name(name: &str) -> Result<(), String> {
    let fits = (1..=TOOL_NAME_CHARS_MAX).contains(&name.chars().count());
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if fits && plain {
        Ok(())
    } else {
        Err(format!("a tool name must match ^[a-zA-Z0-9_-]{{1,64}}$: {name:?}"))
    }
}

fn check_roles(messages: &[Value]) -> Result<(), String> {
    for (index, message) in messages.iter().enumerate() {
        match message["role"].as_str() {
            Some("system" | "developer") if index > 0 => {
                return Err("System message must be at the beginning".to_owned());
            }
            Some("system" | "developer" | "user" | "tool" | "assistant") => {}
            other => return Err(format!("messages[{index}]: unknown role {other:?}")),
        }
        let content = &message["content"];
        let has_calls = message["tool_calls"].as_array().is_some_and(|calls| !calls.is_empty());
        if message.get("tool_calls").is_some() && !has_calls {
            return Err(format!("messages[{index}]: tool_calls is an empty array"));
        }
        if !(has_calls || content.is_string() || content.is_array()) {
            return Err(format!("messages[{index}]: neither content nor tool_calls"));
        }
    }
    Ok(())
}

/// Each call is answered once, in call order, directly after the message that made it; nothing else is answered.
fn check_calls(messages: &[Value]) -> Result<(), String> {
    let mut open: Vec<String> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        if message["role"] == "tool" {
            let id = message["tool_call_id"]
                .as_str()
                .ok_or(format!("messages[{index}]: no tool_call_id"))?;
            match open.iter().position(|waiting| waiting == id) {
                Some(0) => drop(open.remove(0)),
                Some(_) => return Err(format!("messages[{index}]: result {id} is out of call order")),
                None => {
                    return Err(format!(
                        "messages[{index}]: role 'tool' must answer a preceding call, not {id}"
                    ));
                }
            }
            continue;
        }
        if let Some(id) = open.first() {
            return Err(format!(
                "messages[{index}]: tool_call_ids did not have response messages: {id}"
            ));
        }
        for call in message["tool_calls"].as_array().map_or(&[][..], Vec::as_slice) {
            open.push(check_call(call, &open).map_err(|why| format!("messages[{index}]: {why}"))?);
        }
    }
    match open.first() {
        Some(id) => Err(format!("tool_call_ids did not have response messages: {id}")),
        None => Ok(()),
    }
}

/// The id of a well-formed call.
fn check_call(call: &Value, before: &[String]) -> Result<String, String> {
    let id = call["id"]
        .as_str()
        .filter(|id| !id.is_empty())
        .ok_or("a call without an id")?;
    if before.iter().any(|other| other == id) {
        return Err(format!("duplicate call id {id}"));
    }
    if call["type"] != "function" {
        return Err(format!("call {id} is not of type function"));
    }
    check_name(
        call["function"]["name"]
            .as_str()
            .ok_or(format!("call {id} has no name"))?,
    )?;
    let arguments = call["function"]["arguments"]
        .as_str()
        .ok_or(format!("arguments of {id} are not a string"))?;
    match serde_json::from_str::<Value>(arguments) {
        Ok(Value::Object(_)) => Ok(id.to_owned()),
        Ok(_) => Err(format!("arguments of {id} are not an object")),
        Err(why) => Err(format!("failed to parse arguments of {id}: {why}")),
    }
}

fn check_alternation(messages: &[Value]) -> Result<(), String> {
    let mut expects_user = true;
    for (index, message) in messages.iter().enumerate() {
        let is_user = match message["role"].as_str() {
            // Results belong to the assistant's side: after them the assistant goes on.
            Some("system" | "developer" | "tool") => continue,
            Some("user") => true,
            _ => false,
        };
        if is_user != expects_user {
            return Err(format!(
                "messages[{index}]: conversation roles must alternate user/assistant"
            ));
        }
        let made_calls = message["tool_calls"].is_array();
        expects_user = !is_user && !made_calls;
    }
    match messages.last().and_then(|last| last["role"].as_str()) {
        Some("user" | "tool") => Ok(()),
        other => Err(format!("the last message must be of role user or tool, not {other:?}")),
    }
}
