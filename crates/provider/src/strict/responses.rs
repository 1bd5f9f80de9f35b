//! OpenAI's Responses: <https://platform.openai.com/docs/api-reference/responses/create>.

use super::shape::{self, Unique, fields, text};
use super::{Passed, refuse};
use serde_json::Value;

/// Fields of a request, as far as a shell could have use for them.
const FIELDS: &[&str] = &[
    "model",
    "input",
    "instructions",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "temperature",
    "top_p",
    "max_output_tokens",
    "max_tool_calls",
    "stream",
    "stream_options",
    "store",
    "include",
    "reasoning",
    "text",
    "truncation",
    "metadata",
    "prompt_cache_key",
    "service_tier",
    "user",
];

/// The longest id of a call: <https://github.com/openclaw/openclaw/pull/875>, <https://github.com/archestra-ai/archestra/issues/401>.
const CALL_ID_CHARS_MAX: usize = 64;

/// The fewest tokens a reply may be held to.
const OUTPUT_TOKENS_MIN: u64 = 16;

/// Items that a provider's own tools leave, and that go back as they came.
const PROVIDER_ITEMS: &[&str] = &[
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_call",
    "mcp_list_tools",
    "compaction",
];

pub(super) fn check(body: &Value) -> Passed {
    shape::only_known(body, FIELDS, "")?;
    if text(&body["model"]).is_empty() {
        return refuse("Missing required parameter: 'model'.");
    }
    shape::tokens_min(body, "max_output_tokens", OUTPUT_TOKENS_MIN)?;
    tools(body)?;
    format(&body["text"]["format"])?;
    match &body["input"] {
        Value::String(text) if !text.is_empty() => Ok(()),
        Value::Array(input) if !input.is_empty() => Input::new(body).check(input),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            refuse("Missing required parameter: 'input'.")
        }
    }
}

fn tools(body: &Value) -> Passed {
    let Some(tools) = shape::list_or_nothing(body, "tools")? else {
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
        match text(&tool["type"]) {
            "function" => {
                let name = shape::name(&tool["name"], &format!("tools[{at}].name"))?;
                names.add(name, "Tool names")?;
                shape::object_schema(&tool["parameters"], name)?;
                if tool["strict"] == Value::Bool(true) {
                    shape::strict_schema(&tool["parameters"], name)?;
                }
            }
            "web_search" | "web_search_preview" => {}
            other => return refuse(format!("Invalid value: '{other}' for 'tools[{at}].type'.")),
        }
    }
    Ok(())
}

/// <https://platform.openai.com/docs/guides/structured-outputs>.
fn format(format: &Value) -> Passed {
    if format["type"] != "json_schema" {
        return Ok(());
    }
    let name = shape::name(&format["name"], "text.format.name")?;
    if !format["schema"].is_object() {
        return refuse("Missing required parameter: 'text.format.schema'.");
    }
    if format["strict"] == Value::Bool(true) {
        shape::strict_schema(&format["schema"], name)?;
    }
    Ok(())
}

/// The input, item by item.
struct Input<'v> {
    is_stored: bool,
    ids: Unique<'v>,
    calls: Unique<'v>,
    /// Calls that have no output yet.
    open: Vec<&'v str>,
    /// The reasoning that waits for the item it led to.
    reasoning: Option<&'v str>,
}

impl<'v> Input<'v> {
    fn new(body: &Value) -> Self {
        Self {
            is_stored: body["store"] != Value::Bool(false),
            ids: Unique::default(),
            calls: Unique::default(),
            open: Vec::new(),
            reasoning: None,
        }
    }

    fn check(mut self, input: &'v [Value]) -> Passed {
        for (at, item) in input.iter().enumerate() {
            self.item(at, item)?;
        }
        self.no_reasoning()?;
        match self.open.first() {
            // https://github.com/bytedance/trae-agent/issues/245
            Some(id) => refuse(format!("No tool output found for function call {id}.")),
            None => Ok(()),
        }
    }

    fn item(&mut self, at: usize, item: &'v Value) -> Passed {
        if let Some(id) = item["id"].as_str() {
            self.ids.add(id, "Duplicate item found: ids")?;
        }
        match text(&item["type"]) {
            "" | "message" => self.message(at, item),
            "function_call" => self.call(at, item),
            "function_call_output" => self.output(at, item),
            "reasoning" => self.reasoning(at, item),
            kind if PROVIDER_ITEMS.contains(&kind) => {
                self.reasoning = None;
                if kind.ends_with("_call") && text(&item["id"]).is_empty() {
                    return refuse(format!("Missing required parameter: 'input[{at}].id'."));
                }
                Ok(())
            }
            kind => refuse(format!("Invalid value: '{kind}' for 'input[{at}].type'.")),
        }
    }

    fn message(&mut self, at: usize, item: &'v Value) -> Passed {
        let kinds: &[&str] = match text(&item["role"]) {
            "assistant" => &["output_text", "refusal"],
            "user" | "system" | "developer" => &["input_text", "input_image"],
            other => return refuse(format!("Invalid value: '{other}' for 'input[{at}].role'.")),
        };
        if item["role"] == "assistant" {
            self.reasoning = None;
            own_id(at, item, "msg")?;
        } else {
            self.no_reasoning()?;
        }
        match &item["content"] {
            Value::String(text) if !text.is_empty() => Ok(()),
            Value::Array(blocks) if !blocks.is_empty() => blocks.iter().try_for_each(|block| content(at, block, kinds)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                refuse(format!("Invalid 'input[{at}].content': it is empty."))
            }
        }
    }

    fn call(&mut self, at: usize, item: &'v Value) -> Passed {
        self.reasoning = None;
        own_id(at, item, "fc")?;
        let id = text(&item["call_id"]);
        if !(1..=CALL_ID_CHARS_MAX).contains(&id.chars().count()) {
            return refuse(format!(
                "Invalid 'input[{at}].call_id': string too long. Expected a string with maximum length {CALL_ID_CHARS_MAX}."
            ));
        }
        self.calls.add(id, "Ids of function calls")?;
        shape::name(&item["name"], &format!("input[{at}].name"))?;
        shape::arguments(&item["arguments"], &format!("input[{at}].arguments"))?;
        self.open.push(id);
        Ok(())
    }

    fn output(&mut self, at: usize, item: &'v Value) -> Passed {
        self.no_reasoning()?;
        let id = text(&item["call_id"]);
        let Some(place) = self.open.iter().position(|open| *open == id) else {
            // https://github.com/continuedev/continue/issues/10092
            return refuse(format!(
                "No tool call found for function call output with call_id {id}."
            ));
        };
        self.open.remove(place);
        match &item["output"] {
            Value::String(_) => Ok(()),
            Value::Array(blocks) if !blocks.is_empty() => blocks
                .iter()
                .try_for_each(|block| content(at, block, &["input_text", "input_image"])),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                refuse(format!("Missing required parameter: 'input[{at}].output'."))
            }
        }
    }

    /// <https://platform.openai.com/docs/guides/reasoning#encrypted-reasoning-items>.
    fn reasoning(&mut self, at: usize, item: &'v Value) -> Passed {
        own_id(at, item, "rs")?;
        // https://github.com/newo-ether/Agora/issues/141
        if !item["summary"].is_array() {
            return refuse(format!("Missing required parameter: 'input[{at}].summary'."));
        }
        if !self.is_stored && text(&item["encrypted_content"]).is_empty() {
            return refuse(format!(
                "Item with id '{}' not found. Items are not persisted when `store` is set to false.",
                text(&item["id"])
            ));
        }
        self.reasoning = Some(text(&item["id"]));
        Ok(())
    }

    /// <https://github.com/vercel/ai/issues/7099>, <https://github.com/continuedev/continue/issues/11721>.
    fn no_reasoning(&self) -> Passed {
        match self.reasoning {
            Some(id) => refuse(format!(
                "Item '{id}' of type 'reasoning' was provided without its required following item."
            )),
            None => Ok(()),
        }
    }
}

/// "Expected an ID that begins with 'fc'": an item's id is the server's own or not there.
fn own_id(at: usize, item: &Value, begins: &str) -> Passed {
    match item.get("id") {
        Some(id) if !text(id).starts_with(begins) => refuse(format!(
            "Invalid 'input[{at}].id': {id}. Expected an ID that begins with '{begins}'."
        )),
        Some(_) | None => Ok(()),
    }
}

fn content(at: usize, block: &Value, kinds: &[&str]) -> Passed {
    let kind = text(&block["type"]);
    if !kinds.contains(&kind) {
        return refuse(format!(
            "Invalid value: '{kind}'. Supported values are: '{}'. (input[{at}])",
            kinds.join("' and '")
        ));
    }
    let (field, is_there) = match kind {
        "input_image" => ("image_url", text(&block["image_url"]).contains(':')),
        "refusal" => ("refusal", !text(&block["refusal"]).is_empty()),
        _ => ("text", !text(&block["text"]).is_empty()),
    };
    if is_there && fields(block).count() > 1 {
        Ok(())
    } else {
        refuse(format!("Missing required parameter: 'input[{at}].content[0].{field}'."))
    }
}
