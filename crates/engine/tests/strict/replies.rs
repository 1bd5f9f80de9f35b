//! What a model answers, as its server writes it: a random reply in each wire format, as one JSON body.
//!
//! A reply is planned free of any format and then written in one, with the ids, signatures and blocks of its own that a real
//! server of that format sends; now and then with what servers get wrong.

use super::rng::Rng;
use aish_provider::codec::names::WireNames;
use aish_provider::profile::Format;
use serde_json::{Value, json};

/// What is said: plain, blank, empty, with white space at its end, with tags, with what looks like a call.
const TEXTS: [&str; 12] = [
    "Done.",
    "Two files:\n- a.rs\n- b.rs",
    "",
    " ",
    "\n\n",
    "ends in blanks  \n",
    "  begins with them",
    "añ ✓ \u{1F980}",
    "<think>let me see</think>Fine.",
    "<think>never closed",
    "```json\n{\"name\":\"glob\",\"arguments\":{}}\n```",
    "{\"name\":\"probe\",\"arguments\":{\"n\":1}}",
];

/// Argument texts: good, empty, cut, of another kind.
const ARGUMENTS: [&str; 10] = [
    r#"{"n":1}"#,
    r#"{"n":2}"#,
    r#"{"n":"3","more":[1,{"a":null}]}"#,
    "{}",
    "",
    "null",
    "[]",
    r#""{\"n\":1}""#,
    r#"{"n":1"#,
    "not JSON at all",
];

/// Ids of calls: usual ones, one that every reply has, long ones, strange ones, none.
const IDS: [&str; 7] = ["call_", "call_0", "toolu_", "call:1 ü", "functions.glob:0", "", "fc_"];

/// How a reply ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Whole,
    Length,
    Refused,
    Paused,
}

/// A block of a reply.
enum Block {
    Thinking(String),
    Text(String),
    Call {
        name: String,
        arguments: String,
    },
    /// A block of the provider's own.
    Own,
}

/// What a model may call and what it is.
pub struct Asked<'a> {
    pub format: Format,
    /// The model's name at its provider.
    pub model: &'a str,
    /// Names of tools as people see them; empty when there is nothing to call.
    pub tools: &'a [String],
    pub names: &'a WireNames,
    /// Whether the provider runs tools of its own for it.
    pub has_own_tools: bool,
    /// Whether it was asked to encrypt what it thinks.
    pub is_encrypted: bool,
}

/// A reply of that model.
pub fn body(rng: &mut Rng, asked: &Asked<'_>) -> Value {
    let (blocks, end) = plan(rng, asked);
    match asked.format {
        Format::OpenaiChat => chat(rng, asked, &blocks, end),
        Format::OpenaiResponses => responses(rng, asked, &blocks, end),
        Format::Anthropic => anthropic(rng, asked, &blocks, end),
        Format::Gemini => gemini(rng, asked, &blocks, end),
    }
}

fn plan(rng: &mut Rng, asked: &Asked<'_>) -> (Vec<Block>, End) {
    let mut blocks = Vec::new();
    let text = |rng: &mut Rng| rng.pick(&TEXTS).to_owned();
    for _ in 0..=rng.below(2) {
        if rng.percent(35) {
            blocks.push(Block::Thinking(text(rng)));
        }
        if asked.has_own_tools && rng.percent(25) {
            blocks.push(Block::Own);
        }
        if rng.percent(60) {
            blocks.push(Block::Text(text(rng)));
        }
        if !asked.tools.is_empty() && rng.percent(55) {
            calls(rng, asked.tools, &mut blocks);
        }
    }
    let end = match rng.below(100) {
        0..86 => End::Whole,
        86..92 => End::Length,
        92..95 => End::Refused,
        _ if asked.has_own_tools => End::Paused,
        _ => End::Whole,
    };
    (blocks, end)
}

fn calls(rng: &mut Rng, tools: &[String], blocks: &mut Vec<Block>) {
    for _ in 0..=rng.below(3) {
        let name = if rng.percent(8) {
            rng.pick(&["no_such_tool", "bash.run", "", "glöb"]).to_owned()
        } else {
            rng.pick(tools)
        };
        let arguments = rng.pick(&ARGUMENTS).to_owned();
        for _ in 0..=usize::from(rng.percent(15)) {
            blocks.push(Block::Call {
                name: name.clone(),
                arguments: arguments.clone(),
            });
        }
    }
}

fn id(rng: &mut Rng) -> String {
    let begins = rng.pick(&IDS);
    match begins {
        "call_" | "toolu_" | "fc_" => {
            let digits = rng.pick(&[4, 9, 24, 60]);
            let mut id = begins.to_owned();
            id.extend((0..digits).map(|_| char::from(b"0123456789abcdef"[rng.below(16)])));
            id
        }
        begins => begins.to_owned(),
    }
}

/// A mark that nobody but its maker can read.
fn seal(rng: &mut Rng) -> String {
    format!("c2VhbA{:04}", rng.below(10_000))
}

/// Arguments for formats that send them as JSON; what is none goes as the text.
fn parsed(arguments: &str) -> Value {
    serde_json::from_str(arguments).unwrap_or_else(|_| Value::from(arguments))
}

fn chat(rng: &mut Rng, asked: &Asked<'_>, blocks: &[Block], end: End) -> Value {
    let (mut content, mut thinking, mut calls) = (String::new(), String::new(), Vec::new());
    for block in blocks {
        match block {
            Block::Thinking(text) => thinking.push_str(text),
            Block::Text(text) => content.push_str(text),
            Block::Call { name, arguments } => {
                let arguments = if rng.percent(10) {
                    parsed(arguments)
                } else {
                    json!(arguments)
                };
                let name = asked.names.wire(name);
                calls.push(json!({
                    "index": calls.len(), "id": id(rng), "type": "function", "function": {"name": name, "arguments": arguments},
                }));
            }
            Block::Own => {}
        }
    }
    let reason = match end {
        End::Length => "length",
        End::Refused => "content_filter",
        End::Whole | End::Paused if calls.is_empty() || rng.percent(10) => "stop",
        End::Whole | End::Paused => "tool_calls",
    };
    let mut message = json!({"role": "assistant", "content": content, "reasoning_content": thinking});
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    json!({"model": asked.model, "choices": [{"index": 0, "message": message, "finish_reason": reason}]})
}

fn responses(rng: &mut Rng, asked: &Asked<'_>, blocks: &[Block], end: End) -> Value {
    let mut output = Vec::new();
    for block in blocks {
        let number = format!("{}_{}", rng.below(1_000_000), output.len());
        output.push(match block {
            Block::Thinking(text) => {
                let mut item = json!({"type": "reasoning", "id": format!("rs_{number}"), "summary": []});
                if !text.is_empty() {
                    item["summary"] = json!([{"type": "summary_text", "text": text}]);
                }
                if asked.is_encrypted {
                    item["encrypted_content"] = json!(seal(rng));
                }
                item
            }
            Block::Text(text) => {
                let part = if end == End::Refused {
                    json!({"type": "refusal", "refusal": text})
                } else {
                    json!({"type": "output_text", "text": text, "annotations": []})
                };
                json!({
                    "type": "message", "id": format!("msg_{number}"), "role": "assistant", "status": "completed", "content": [part],
                })
            }
            Block::Call { name, arguments } => json!({
                "type": "function_call", "id": format!("fc_{number}"), "call_id": id(rng), "name": asked.names.wire(name),
                "arguments": arguments, "status": "completed",
            }),
            Block::Own => json!({
                "type": "web_search_call", "id": format!("ws_{number}"), "status": "completed",
                "action": {"type": "search", "query": "rust"},
            }),
        });
    }
    let mut body = json!({"object": "response", "model": asked.model, "status": "completed", "output": output});
    if end == End::Length {
        body["status"] = json!("incomplete");
        body["incomplete_details"] = json!({"reason": "max_output_tokens"});
    }
    body
}

fn anthropic(rng: &mut Rng, asked: &Asked<'_>, blocks: &[Block], end: End) -> Value {
    let mut content = Vec::new();
    let search = |rng: &mut Rng| format!("srvtoolu_{}", rng.below(1_000_000));
    let own_call =
        |id: &str| json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": "rust"}});
    for block in blocks {
        match block {
            Block::Thinking(text) if rng.percent(80) => {
                // Local servers do not sign.
                let signature = if rng.percent(85) { seal(rng) } else { String::new() };
                content.push(json!({"type": "thinking", "thinking": text, "signature": signature}));
            }
            Block::Thinking(_) => content.push(json!({"type": "redacted_thinking", "data": seal(rng)})),
            Block::Text(text) => content.push(json!({"type": "text", "text": text})),
            Block::Call { name, arguments } => content.push(json!({
                "type": "tool_use", "id": id(rng), "name": asked.names.wire(name), "input": parsed(arguments),
            })),
            Block::Own => {
                let id = search(rng);
                content.push(own_call(&id));
                let found = json!([{"type": "web_search_result", "url": "https://example.org", "title": "t", "encrypted_content": seal(rng)}]);
                content
                    .push(json!({"type": "web_search_tool_result", concat!("tool_", "use_id"): id, "content": found}));
            }
        }
    }
    let has_calls = blocks.iter().any(|block| matches!(block, Block::Call { .. }));
    if end == End::Paused && !has_calls {
        content.push(own_call(&search(rng)));
    }
    let reason = match end {
        End::Length => "max_tokens",
        End::Refused => "refusal",
        End::Whole | End::Paused if has_calls => "tool_use",
        End::Paused => "pause_turn",
        End::Whole => "end_turn",
    };
    json!({"type": "message", "role": "assistant", "model": asked.model, "content": content, "stop_reason": reason})
}

fn gemini(rng: &mut Rng, asked: &Asked<'_>, blocks: &[Block], end: End) -> Value {
    let mut parts = Vec::new();
    let signs = asked.model.contains("gemini-3") || rng.percent(50);
    let mut has_signed = false;
    for block in blocks {
        let mut part = match block {
            Block::Thinking(text) => json!({"text": text, "thought": true}),
            Block::Text(text) => json!({"text": text}),
            Block::Call { name, arguments } => {
                let mut call = json!({"name": asked.names.wire(name), "args": parsed(arguments)});
                if rng.percent(30) {
                    call["id"] = json!(id(rng));
                }
                json!({ "functionCall": call })
            }
            Block::Own => json!({"executableCode": {"language": "PYTHON", "code": "print(1)"}}),
        };
        let is_call = matches!(block, Block::Call { .. });
        // The first call of a reply is signed, and now and then something else.
        if signs && ((is_call && !has_signed) || (!is_call && rng.percent(15))) {
            part["thoughtSignature"] = json!(seal(rng));
            has_signed |= is_call;
        }
        parts.push(part);
    }
    if signs && rng.percent(20) {
        parts.push(json!({"text": "", "thoughtSignature": seal(rng)}));
    }
    let reason = match end {
        End::Whole | End::Paused => "STOP",
        End::Length => "MAX_TOKENS",
        End::Refused => "SAFETY",
    };
    let content = json!({"role": "model", "parts": parts});
    json!({"candidates": [{"content": content, "finishReason": reason}], "modelVersion": asked.model})
}
