//! What a server said, kept whole on its way through the SDK.
//!
//! The SDK reads a result as the first of some twenty types that fits, whatever was asked for; what that type does not know
//! of is gone, and one odd value makes the whole of it unreadable. So both halves of a connection pass every message
//! through [`keep`] before the SDK reads it: a result is put into an object of one member that fits no type, and a request
//! gets a name that no type has. [`restore`] and [`called`] take that off again.
//!
//! Some results the SDK must understand itself (the version that was agreed on, the tools whose arguments become headers):
//! those keep their form and carry a copy of themselves in their `_meta`.

use rmcp::model::ServerResult;
use serde_json::{Map, Value, json};

/// The member that holds a result. Whatever a server puts there itself is overwritten or wrapped once more.
const RAW_KEY: &str = "aish/raw";
/// What begins the names of the requests and notifications that are ours to read.
const RAW_METHOD: &str = "aish/raw/";
/// Those whose parameters the SDK must not read for us.
const RAW_METHODS: [&str; 3] = ["elicitation/create", "sampling/createMessage", "notifications/message"];

/// Makes a message of a server one that the SDK carries without loss. Not a message: left as it is.
pub(crate) fn keep(mut message: Value) -> Value {
    let Some(members) = message.as_object_mut() else {
        return message;
    };
    members.entry("jsonrpc").or_insert_with(|| json!("2.0"));
    if let Some(Value::String(method)) = members.get_mut("method") {
        if RAW_METHODS.contains(&method.as_str()) {
            method.insert_str(0, RAW_METHOD);
        }
    } else if let Some(result) = members.get_mut("result") {
        let whole = result.take();
        *result = if is_read_by_the_sdk(&whole) {
            with_copy(whole)
        } else {
            json!({ RAW_KEY: whole })
        };
    }
    message
}

/// The result as the server said it.
pub(crate) fn restore(result: ServerResult) -> Value {
    if let ServerResult::ListToolsResult(list) = result {
        let accepted: Vec<String> = list.tools.iter().map(|tool| tool.name.to_string()).collect();
        let raw = restore_value(serde_json::to_value(list).unwrap_or_default());
        return without_refused_tools(raw, &accepted);
    }
    restore_value(serde_json::to_value(result).unwrap_or_default())
}

/// A method as the server called it.
pub(crate) fn called(method: &str) -> &str {
    method.strip_prefix(RAW_METHOD).unwrap_or(method)
}

fn restore_value(mut value: Value) -> Value {
    if let Some(whole) = value.get_mut(RAW_KEY) {
        return whole.take();
    }
    if let Some(whole) = value.pointer_mut("/_meta").and_then(|meta| meta.get_mut(RAW_KEY)) {
        return whole.take();
    }
    value
}

/// The SDK leaves out tools whose headers could be misused (2026-07-28, `x-mcp-header`); so do we.
fn without_refused_tools(mut raw: Value, accepted: &[String]) -> Value {
    if let Some(tools) = raw.get_mut("tools").and_then(Value::as_array_mut) {
        tools.retain(|tool| {
            let name = tool.get("name").and_then(Value::as_str);
            name.is_none_or(|name| accepted.iter().any(|accepted| accepted == name))
        });
    }
    raw
}

/// The answers to `initialize`, `server/discover` and `tools/list`.
fn is_read_by_the_sdk(result: &Value) -> bool {
    result.get("protocolVersion").is_some_and(Value::is_string)
        || result.get("supportedVersions").is_some_and(Value::is_array)
        || result.get("tools").is_some_and(Value::is_array)
}

fn with_copy(whole: Value) -> Value {
    let mut seen = whole.clone();
    if let Some(members) = seen.as_object_mut() {
        let meta = members.entry("_meta").or_insert_with(|| Value::Object(Map::new()));
        if !meta.is_object() {
            *meta = Value::Object(Map::new());
        }
        if let Some(meta) = meta.as_object_mut() {
            meta.insert(RAW_KEY.to_owned(), whole);
        }
    }
    seen
}

#[cfg(test)]
#[path = "raw_tests.rs"]
mod tests;
