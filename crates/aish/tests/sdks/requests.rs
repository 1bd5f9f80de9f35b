//! A family of rich requests: a conversation with everything in it, written in each format with each switch of the profile.

use aish_core::id::CallId;
use aish_core::message::{Message, MessageCall, Part, ToolChoice, ToolSpec};
use aish_provider::assemble::{Assembler, Ending};
use aish_provider::codec::codec_of;
use aish_provider::codec::names::WireNames;
use aish_provider::profile::{
    Alternation, CallsPerReply, Format, ProviderTool, Reasoning, Support, SystemRole, ToolRole, WireCallIds, WireNaming,
};
use aish_provider::{ModelProfile, Reply, Request};
use serde_json::{Value, json};

/// A request.
pub struct Case {
    pub name: String,
    pub format: Format,
    pub body: Value,
    /// Whether it has everything in it.
    pub is_rich: bool,
}

/// One switch.
type Switch = (&'static str, fn(&mut ModelProfile));

const SWITCHES: [Switch; 11] = [
    ("as it is", |_| {}),
    ("thinks hard", |p| p.reasoning = Some(Reasoning::High)),
    ("does not think", |p| p.reasoning = Some(Reasoning::Off)),
    ("searches", |p| p.provider_tools = vec![ProviderTool::WebSearch]),
    ("whole", |p| p.streaming = Support::No),
    ("held to one call", |p| p.calls = CallsPerReply::One),
    ("developer", |p| p.system_role = SystemRole::Developer),
    ("instructed by the user", |p| p.system_role = SystemRole::User),
    ("results as text", |p| p.tool_role = ToolRole::Text),
    ("strict", |p| {
        p.alternation = Alternation::Strict;
        p.wire_call_ids = WireCallIds::NineCharacters;
    }),
    ("blind", |p| {
        p.images = Support::No;
        p.structured_output = Support::No;
        p.cache_marks = Support::No;
    }),
];

/// Every request.
pub fn all() -> Vec<Case> {
    let models = [
        (Format::OpenaiChat, "https://api.openai.com/v1", "gpt-4o"),
        (Format::OpenaiResponses, "https://api.openai.com/v1", "gpt-5"),
        (Format::Anthropic, "https://api.anthropic.com", "claude-sonnet-4-5"),
        (
            Format::Gemini,
            "https://generativelanguage.googleapis.com",
            "gemini-3-pro",
        ),
    ];
    let mut all = Vec::new();
    for (format, base_url, model) in models {
        let messages = conversation(format, model);
        for (switch, set) in SWITCHES {
            let mut profile = ModelProfile::new(format, base_url, model);
            set(&mut profile);
            let name = format!("{}, {switch}", format.name());
            let request = Request {
                model: "this",
                system: "Be brief.",
                messages: &messages,
                tools: &tools(),
                tool_choice: ToolChoice::Auto,
                max_output_tokens: Some(4096),
                schema: None,
            };
            all.push(written(name.clone(), request, &profile));
            let schema = reply_schema();
            let closing = Request {
                model: "another",
                tool_choice: ToolChoice::None,
                schema: Some(&schema),
                max_output_tokens: None,
                ..request
            };
            all.push(written(format!("{name}, said by another"), closing, &profile));
        }
    }
    all
}

fn written(name: String, request: Request<'_>, profile: &ModelProfile) -> Case {
    let encoded = codec_of(profile.format).encode(request, profile).unwrap();
    Case {
        is_rich: name.ends_with("as it is"),
        name,
        format: profile.format,
        body: serde_json::from_slice(&encoded.body).unwrap(),
    }
}

fn reply_schema() -> Value {
    json!({"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"], "additionalProperties": false})
}

fn tools() -> Vec<ToolSpec> {
    let tool = |name: &str, input_schema| ToolSpec {
        name: name.to_owned(),
        description: format!("Does {name}."),
        input_schema,
    };
    let deep = json!({
        "type": "object",
        "properties": {
            "when": {"type": ["string", "null"], "format": "date-time"},
            "kind": {"enum": ["a", "b"]},
            "list": {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]}},
            "tree": {"$ref": "#/$defs/Node"},
        },
        "$defs": {"Node": {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}}}},
        "required": ["kind"],
    });
    vec![
        tool(
            "glob",
            json!({"type": "object", "properties": {"pattern": {"type": "string"}}, "required": ["pattern"]}),
        ),
        tool("boltzmann.read_file", json!({"type": "object"})),
        tool("deep", deep),
    ]
}

fn image() -> Part {
    Part::Image {
        media_type: "image/png".to_owned(),
        data: "iVBORw0KGgo=".to_owned(),
    }
}

/// A conversation with everything in it, whose replies came from a model of that format.
fn conversation(format: Format, model: &str) -> Vec<Message> {
    let context = Part::Context {
        label: "stdin".to_owned(),
        text: "a.rs\nb.rs\n".to_owned(),
    };
    let user = |parts| Message::User { parts };
    let first = reply(format, &first_body(format, model));
    let mut messages = vec![user(vec![context, image(), Part::text("Which files?")])];
    said(&mut messages, first, 1);
    said(&mut messages, reply(format, &second_body(format, model)), 2);
    messages.push(user(vec![Part::text("And now?")]));
    said(&mut messages, reply(format, &first_body(format, model)), 3);
    messages
}

fn reply(format: Format, body: &Value) -> Reply {
    let mut assembler = Assembler::new(
        WireNames::new(WireNaming::Underscore, ["glob", "boltzmann.read_file"]),
        Vec::new(),
    );
    let mut deltas = Vec::new();
    let mut decoder = codec_of(format).decoder();
    decoder
        .body(&body.to_string(), &mut |piece| assembler.push(piece, &mut deltas))
        .unwrap();
    assembler.finish(Ending::Read)
}

/// Adds a reply and the results of its calls.
fn said(messages: &mut Vec<Message>, reply: Reply, turn: u64) {
    let calls: Vec<MessageCall> = (1u32..)
        .zip(reply.calls)
        .map(|(n, call)| MessageCall {
            id: CallId::new(format!("t{turn}_c{n}")),
            provider_id: call.provider_id,
            name: call.name,
            arguments: call.arguments,
        })
        .collect();
    let results = calls.iter().enumerate().map(|(n, call)| Message::Tool {
        call_id: call.id.clone(),
        provider_id: call.provider_id.clone(),
        name: call.name.clone(),
        output: if n == 0 {
            r#"{"files":["a.rs"]}"#.to_owned()
        } else {
            String::new()
        },
        success: n == 0,
        parts: if n == 0 { vec![image()] } else { Vec::new() },
    });
    let results: Vec<Message> = results.collect();
    messages.push(Message::Assistant {
        parts: reply.parts,
        calls,
        model: Some("this".to_owned()),
    });
    messages.extend(results);
}

/// A reply that thinks, says something and calls two tools.
fn first_body(format: Format, model: &str) -> Value {
    let arguments = r#"{"pattern":"*"}"#;
    match format {
        Format::OpenaiChat => {
            let call = |id: &str, name: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
            let calls = json!([call("call_1", "glob"), call("call_2", "boltzmann__read_file")]);
            let message =
                json!({"role": "assistant", "content": "Looking.", "reasoning_content": "hm", "tool_calls": calls});
            json!({"model": model, "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]})
        }
        Format::OpenaiResponses => json!({
            "object": "response", "model": model, "status": "completed", "output": [
                {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "c2VhbA=="},
                {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                 "content": [{"type": "output_text", "text": "Looking.", "annotations": []}]},
                {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "glob", "arguments": arguments},
                {"type": "function_call", "id": "fc_2", "call_id": "call_2", "name": "boltzmann__read_file", "arguments": "{}"},
            ],
        }),
        Format::Anthropic => json!({
            "type": "message", "role": "assistant", "model": model, "stop_reason": "tool_use", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "c2VhbA=="},
                {"type": "redacted_thinking", "data": "c2VhbA=="},
                {"type": "text", "text": "Looking."},
                {"type": "tool_use", "id": "toolu_1", "name": "glob", "input": {"pattern": "*"}},
                {"type": "tool_use", "id": "toolu_2", "name": "boltzmann__read_file", "input": {}},
            ],
        }),
        Format::Gemini => json!({
            "modelVersion": model, "candidates": [{"finishReason": "STOP", "content": {"role": "model", "parts": [
                {"text": "hm", "thought": true},
                {"text": "Looking.", "thoughtSignature": "c2VhbA=="},
                {"functionCall": {"id": "f1", "name": "glob", "args": {"pattern": "*"}}, "thoughtSignature": "c2VhbA=="},
                {"functionCall": {"name": "boltzmann__read_file", "args": {}}},
            ]}}],
        }),
    }
}

/// A reply that uses what the provider runs itself, and answers.
fn second_body(format: Format, model: &str) -> Value {
    match format {
        Format::OpenaiChat => {
            let message = json!({"role": "assistant", "content": "Two."});
            json!({"model": model, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
        }
        Format::OpenaiResponses => json!({
            "object": "response", "model": model, "status": "completed", "output": [
                {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "rust"}},
                {"type": "message", "id": "msg_2", "role": "assistant", "status": "completed",
                 "content": [{"type": "output_text", "text": "Two.", "annotations": []}]},
            ],
        }),
        Format::Anthropic => {
            let found = json!([{"type": "web_search_result", "url": "https://example.org", "title": "t", "encrypted_content": "c2VhbA=="}]);
            let result =
                json!({"type": "web_search_tool_result", concat!("tool_", "use_id"): "srvtoolu_1", "content": found});
            let call = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "rust"}});
            let content = json!([call, result, {"type": "text", "text": "Two."}]);
            json!({"type": "message", "role": "assistant", "model": model, "stop_reason": "end_turn", "content": content})
        }
        Format::Gemini => json!({
            "modelVersion": model, "candidates": [{"finishReason": "STOP", "content": {"role": "model", "parts": [
                {"executableCode": {"language": "PYTHON", "code": "print(2)"}},
                {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}},
                {"text": "Two."},
            ]}}],
        }),
    }
}

/// The places of the objects in a request that the format has fields for: not schemas, arguments and results, which are free.
pub fn own_objects(case: &Case) -> Vec<String> {
    let mut places = Vec::new();
    walk(&case.body, String::new(), &mut places);
    places
}

fn walk(value: &Value, place: String, places: &mut Vec<String>) {
    const FREE: [&str; 8] = [
        "parametersJsonSchema",
        "parameters",
        "input_schema",
        "schema",
        "args",
        "response",
        "properties",
        "input",
    ];
    match value {
        Value::Object(fields) => {
            for (key, inner) in fields {
                let is_free = FREE.contains(&key.as_str()) && inner.is_object();
                if !is_free {
                    walk(inner, format!("{place}/{key}"), places);
                }
            }
            places.push(place);
        }
        Value::Array(items) => {
            for (at, inner) in items.iter().enumerate() {
                walk(inner, format!("{place}/{at}"), places);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
