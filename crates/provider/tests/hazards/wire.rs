//! What stands in a request, read the naive way: calls, results and words, in order, whatever the format.

use aish_core::message::{Message, ToolChoice, ToolSpec};
use aish_provider::Request;
use aish_provider::codec::codec_of;
use aish_provider::profile::{Format, ModelProfile, ThinkingBack};
use aish_provider::strict::{Api, check};
use serde_json::{Value, json};

/// What a request says.
#[derive(Debug, Default)]
pub struct Sent {
    /// Name on the wire and arguments of each call.
    pub calls: Vec<(String, Value)>,
    /// What each result says.
    pub results: Vec<String>,
    /// Everything else that can be read, without the tools offered.
    pub words: String,
    /// All of it.
    pub body: Value,
}

impl Sent {
    /// True when this very value stands somewhere in the request.
    pub fn holds(&self, value: &Value) -> bool {
        holds(&self.body, value)
    }
}

/// The model of a format, by its configured name: names say which format it is.
pub fn name_of(format: Format) -> &'static str {
    match format {
        Format::OpenaiChat => "desk",
        Format::OpenaiResponses => "oai",
        Format::Anthropic => "claude",
        Format::Gemini => "gem",
    }
}

/// How to talk to it.
pub fn profile(format: Format) -> ModelProfile {
    match format {
        Format::OpenaiChat => ModelProfile::new(format, "http://127.0.0.1:8080/v1", "qwen3"),
        Format::OpenaiResponses => ModelProfile::new(format, "https://api.openai.com/v1", "gpt-5"),
        Format::Anthropic => ModelProfile::new(format, "https://api.anthropic.com", "claude-sonnet-4-5"),
        Format::Gemini => ModelProfile::new(
            format,
            "https://generativelanguage.googleapis.com",
            "gemini-3-pro-preview",
        ),
    }
}

/// The tools of every request here.
pub fn tools() -> Vec<ToolSpec> {
    ["glob", "srv.read"]
        .map(|name| ToolSpec {
            name: name.to_owned(),
            description: "Looks.".to_owned(),
            input_schema: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
        })
        .to_vec()
}

/// Encodes a conversation for a model, by its configured name, and reads what was written; what the real API would refuse is
/// a failure.
#[track_caller]
pub fn send(model: &str, profile: &ModelProfile, messages: &[Message]) -> Sent {
    let tools = tools();
    let request = Request {
        model,
        system: "Be brief.",
        messages,
        tools: &tools,
        tool_choice: ToolChoice::Auto,
        max_output_tokens: Some(2_048),
        schema: None,
    };
    let encoded = codec_of(profile.format).encode(request, profile).unwrap();
    let body: Value = serde_json::from_slice(&encoded.body).unwrap();
    let headers: Vec<(&str, &str)> = encoded.headers.iter().map(|(name, value)| (*name, &**value)).collect();
    let api = match profile.format {
        // OpenAI itself takes no thinking back, the servers that want it do.
        Format::OpenaiChat if profile.thinking_back == ThinkingBack::ReasoningContent => Api::LlamaCpp,
        Format::OpenaiChat => Api::OpenaiChat,
        Format::OpenaiResponses => Api::OpenaiResponses,
        Format::Anthropic => Api::Anthropic,
        Format::Gemini => Api::Gemini,
    };
    if let Err(refusal) = check(api, &encoded.path, headers, &body) {
        panic!("{} refuses: {refusal:?}\n{body:#}", profile.format.name());
    }
    read(profile.format, body)
}

fn read(format: Format, body: Value) -> Sent {
    let mut sent = Sent::default();
    match format {
        Format::OpenaiChat => each(&body["messages"]).for_each(|message| chat(message, &mut sent)),
        Format::OpenaiResponses => each(&body["input"]).for_each(|item| responses(item, &mut sent)),
        Format::Anthropic => {
            let messages = each(&body["messages"]);
            let blocks = messages.flat_map(|message| each(&message["content"]));
            blocks.for_each(|block| anthropic(block, &mut sent));
        }
        Format::Gemini => {
            let parts = each(&body["contents"]).flat_map(|content| each(&content["parts"]));
            parts.for_each(|part| gemini(part, &mut sent));
        }
    }
    sent.body = body;
    sent
}

fn chat(message: &Value, sent: &mut Sent) {
    for call in each(&message["tool_calls"]) {
        sent.calls
            .push((text(&call["function"]["name"]), parsed(&call["function"]["arguments"])));
    }
    if message["role"] == "tool" {
        sent.results.push(words_in(&message["content"]));
    } else {
        sent.words += &words_in(&message["content"]);
        sent.words += &text(&message["reasoning_content"]);
    }
}

fn responses(item: &Value, sent: &mut Sent) {
    match item["type"].as_str().unwrap_or("message") {
        "function_call" => sent.calls.push((text(&item["name"]), parsed(&item["arguments"]))),
        "function_call_output" => sent.results.push(words_in(&item["output"])),
        _ => {
            sent.words += &words_in(&item["content"]);
            sent.words += &words_in(&item["summary"]);
        }
    }
}

fn anthropic(block: &Value, sent: &mut Sent) {
    match block["type"].as_str().unwrap() {
        "tool_use" => sent.calls.push((text(&block["name"]), block["input"].clone())),
        "tool_result" => sent.results.push(words_in(&block["content"])),
        _ => {
            sent.words += &text(&block["text"]);
            sent.words += &text(&block["thinking"]);
        }
    }
}

fn gemini(part: &Value, sent: &mut Sent) {
    if part["functionCall"].is_object() {
        let call = &part["functionCall"];
        sent.calls.push((text(&call["name"]), call["args"].clone()));
    } else if part["functionResponse"].is_object() {
        let response = &part["functionResponse"]["response"];
        let fields = response.as_object().into_iter().flat_map(|fields| fields.values());
        sent.results.push(fields.map(words_in).collect());
    } else {
        sent.words += &text(&part["text"]);
    }
}

fn each(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A string, or the texts of a list of blocks.
fn words_in(value: &Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None => each(value).map(|block| text(&block["text"])).collect(),
    }
}

fn parsed(arguments: &Value) -> Value {
    serde_json::from_str(arguments.as_str().unwrap()).unwrap()
}

fn holds(within: &Value, value: &Value) -> bool {
    within == value
        || match within {
            Value::Array(list) => list.iter().any(|item| holds(item, value)),
            Value::Object(map) => map.values().any(|item| holds(item, value)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
}
