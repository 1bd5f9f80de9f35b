//! One script of a reply, written as the servers of each format stream it: the documented shape, no quirks.

use aish_provider::profile::Format;
use serde_json::{Value, json};

/// What happens in a reply, in order.
#[derive(Clone, Copy, Debug)]
pub enum Say<'s> {
    /// The model speaks.
    Text(&'s str),
    /// The model thinks, and its provider signs it where the format has signatures.
    Thinking {
        /// What can be read of it.
        text: &'s str,
        /// The signature, or the encrypted form.
        signature: &'s str,
    },
    /// A call begins.
    Open {
        /// Which of the reply, from 0.
        call: usize,
        /// The provider's id.
        id: &'s str,
        /// The tool's name on the wire.
        name: &'s str,
    },
    /// A piece of a call's arguments.
    Arguments {
        /// Which call.
        call: usize,
        /// The piece.
        piece: &'s str,
    },
    /// A call is whole. Gemini sends it only now.
    Close {
        /// Which call.
        call: usize,
    },
    /// An event of a kind that was added to the format later.
    Unknown,
    /// The provider reports a failure.
    Error(&'s str),
    /// The provider says why the reply ends.
    End(End),
}

/// Why a reply ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It is complete.
    Stop,
    /// It waits for its calls' results.
    Calls,
    /// It was withheld.
    Refused,
}

/// The stream of a script in a format.
pub fn stream(format: Format, script: &[Say<'_>]) -> Vec<u8> {
    let mut pen = Pen {
        format,
        out: String::new(),
        blocks: 0,
        calls: Vec::new(),
        signature: None,
    };
    pen.begin();
    for say in script {
        pen.write(*say);
    }
    pen.out.into_bytes()
}

struct Call {
    block: usize,
    id: String,
    name: String,
    arguments: String,
}

struct Pen {
    format: Format,
    out: String,
    /// Blocks or items so far.
    blocks: usize,
    calls: Vec<Call>,
    /// Gemini signs thinking on the part that follows it.
    signature: Option<String>,
}

impl Pen {
    fn begin(&mut self) {
        match self.format {
            Format::OpenaiChat => self.delta(json!({"role": "assistant", "content": ""})),
            Format::OpenaiResponses => {
                self.event(json!({"type": "response.created", "response": {"status": "in_progress", "model": "m"}}))
            }
            Format::Anthropic => self.event(json!({"type": "message_start", "message": {
                "role": "assistant", "content": [], "model": "m", "usage": {"input_tokens": 9, "output_tokens": 1}}})),
            Format::Gemini => {}
        }
    }

    fn write(&mut self, say: Say<'_>) {
        match say {
            Say::Text(text) => self.text(text),
            Say::Thinking { text, signature } => self.thinking(text, signature),
            Say::Open { call, id, name } => self.open(call, id, name),
            Say::Arguments { call, piece } => self.arguments(call, piece),
            Say::Close { call } => self.close(call),
            Say::Unknown => self.unknown(),
            Say::Error(message) => self.error(message),
            Say::End(end) => self.end(end),
        }
    }

    fn data(&mut self, payload: &Value) {
        self.out.push_str(&format!("data: {payload}\n\n"));
    }

    /// An event that says its type twice.
    #[expect(clippy::needless_pass_by_value, reason = "payloads are written where they are sent")]
    fn event(&mut self, payload: Value) {
        self.out
            .push_str(&format!("event: {}\n", payload["type"].as_str().unwrap()));
        self.data(&payload);
    }

    #[expect(clippy::needless_pass_by_value, reason = "payloads are written where they are sent")]
    fn delta(&mut self, delta: Value) {
        self.data(&json!({"object": "chat.completion.chunk", "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": null}]}));
    }

    #[expect(clippy::needless_pass_by_value, reason = "payloads are written where they are sent")]
    fn part(&mut self, part: Value) {
        self.data(&json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}]}));
    }

    fn next_block(&mut self) -> usize {
        self.blocks += 1;
        self.blocks - 1
    }

    fn text(&mut self, text: &str) {
        match self.format {
            Format::OpenaiChat => self.delta(json!({"content": text})),
            Format::OpenaiResponses => {
                let at = self.next_block();
                let id = format!("msg_{at}");
                let item = json!({"type": "message", "id": id, "role": "assistant", "content": []});
                self.event(json!({"type": "response.output_item.added", "output_index": at, "item": item}));
                self.event(
                    json!({"type": "response.output_text.delta", "output_index": at, "item_id": id,
                    "content_index": 0, "delta": text}),
                );
                let item = json!({"type": "message", "id": id, "role": "assistant",
                    "content": [{"type": "output_text", "text": text, "annotations": []}]});
                self.event(json!({"type": "response.output_item.done", "output_index": at, "item": item}));
            }
            Format::Anthropic => {
                let at = self.next_block();
                self.event(
                    json!({"type": "content_block_start", "index": at, "content_block": {"type": "text", "text": ""}}),
                );
                self.event(
                    json!({"type": "content_block_delta", "index": at, "delta": {"type": "text_delta", "text": text}}),
                );
                self.event(json!({"type": "content_block_stop", "index": at}));
            }
            Format::Gemini => self.part(json!({"text": text})),
        }
    }

    fn thinking(&mut self, text: &str, signature: &str) {
        match self.format {
            Format::OpenaiChat => self.delta(json!({"reasoning_content": text})),
            Format::OpenaiResponses => {
                let at = self.next_block();
                let id = format!("rs_{at}");
                let item = json!({"type": "reasoning", "id": id, "summary": []});
                self.event(json!({"type": "response.output_item.added", "output_index": at, "item": item}));
                self.event(
                    json!({"type": "response.reasoning_summary_text.delta", "output_index": at, "item_id": id,
                    "summary_index": 0, "delta": text}),
                );
                let item = json!({"type": "reasoning", "id": id, "encrypted_content": signature,
                    "summary": [{"type": "summary_text", "text": text}]});
                self.event(json!({"type": "response.output_item.done", "output_index": at, "item": item}));
            }
            Format::Anthropic => {
                let at = self.next_block();
                let block = json!({"type": "thinking", "thinking": "", "signature": ""});
                self.event(json!({"type": "content_block_start", "index": at, "content_block": block}));
                for delta in [
                    json!({"type": "thinking_delta", "thinking": text}),
                    json!({"type": "signature_delta", "signature": signature}),
                ] {
                    self.event(json!({"type": "content_block_delta", "index": at, "delta": delta}));
                }
                self.event(json!({"type": "content_block_stop", "index": at}));
            }
            Format::Gemini => {
                self.part(json!({"text": text, "thought": true}));
                self.signature = Some(signature.to_owned());
            }
        }
    }

    fn open(&mut self, call: usize, id: &str, name: &str) {
        let block = self.next_block();
        assert_eq!(self.calls.len(), call, "calls are numbered in the order they begin");
        self.calls.push(Call {
            block,
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: String::new(),
        });
        match self.format {
            Format::OpenaiChat => self.delta(json!({"tool_calls": [{"index": call, "id": id, "type": "function",
                "function": {"name": name, "arguments": ""}}]})),
            Format::OpenaiResponses => self.event(json!({"type": "response.output_item.added", "output_index": block,
                "item": {"type": "function_call", "id": format!("fc_{block}"), "call_id": id, "name": name, "arguments": ""}})),
            Format::Anthropic => self.event(json!({"type": "content_block_start", "index": block,
                "content_block": {"type": "tool_use", "id": id, "name": name, "input": {}}})),
            Format::Gemini => {}
        }
    }

    fn arguments(&mut self, call: usize, piece: &str) {
        self.calls[call].arguments.push_str(piece);
        let block = self.calls[call].block;
        match self.format {
            Format::OpenaiChat => {
                self.delta(json!({"tool_calls": [{"index": call, "function": {"arguments": piece}}]}));
            }
            Format::OpenaiResponses => self.event(json!({"type": "response.function_call_arguments.delta",
                "output_index": block, "item_id": format!("fc_{block}"), "delta": piece})),
            Format::Anthropic => self.event(json!({"type": "content_block_delta", "index": block,
                "delta": {"type": "input_json_delta", "partial_json": piece}})),
            Format::Gemini => {}
        }
    }

    fn close(&mut self, call: usize) {
        let Call {
            block,
            id,
            name,
            arguments,
        } = &self.calls[call];
        match self.format {
            Format::OpenaiChat => {}
            Format::OpenaiResponses => {
                let fields = json!({"type": "function_call", "id": format!("fc_{block}"), "call_id": id, "name": name,
                    "arguments": arguments, "status": "completed"});
                let done = json!({"type": "response.output_item.done", "output_index": block, "item": fields});
                self.event(done);
            }
            Format::Anthropic => {
                let stop = json!({"type": "content_block_stop", "index": block});
                self.event(stop);
            }
            Format::Gemini => {
                let args: Value = serde_json::from_str(arguments).unwrap();
                let mut part = json!({"functionCall": {"name": name, "args": args}});
                if let Some(signature) = self.signature.take() {
                    part["thoughtSignature"] = signature.into();
                }
                self.part(part);
            }
        }
    }

    fn unknown(&mut self) {
        match self.format {
            Format::OpenaiChat => self.data(&json!({"object": "chat.completion.weather", "sky": "clear"})),
            Format::OpenaiResponses => {
                self.event(json!({"type": "response.weather.delta", "output_index": 99, "delta": "x"}))
            }
            Format::Anthropic => self.event(json!({"type": "weather_report", "sky": "clear"})),
            Format::Gemini => self.data(&json!({"weatherReport": {"sky": "clear"}})),
        }
    }

    fn error(&mut self, message: &str) {
        match self.format {
            Format::OpenaiChat => self.data(&json!({"error": {"message": message, "code": 503}})),
            Format::OpenaiResponses => self.event(json!({"type": "error", "code": "server_error", "message": message})),
            Format::Anthropic => {
                self.event(json!({"type": "error", "error": {"type": "overloaded_error", "message": message}}))
            }
            Format::Gemini => self.data(&json!({"error": {"code": 503, "message": message, "status": "UNAVAILABLE"}})),
        }
    }

    fn end(&mut self, end: End) {
        match self.format {
            Format::OpenaiChat => {
                let reason = match end {
                    End::Stop => "stop",
                    End::Calls => "tool_calls",
                    End::Refused => "content_filter",
                };
                self.data(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}));
                self.out.push_str("data: [DONE]\n\n");
            }
            Format::OpenaiResponses => self.event(match end {
                End::Stop | End::Calls => {
                    json!({"type": "response.completed", "response": {"status": "completed", "model": "m", "output": []}})
                }
                End::Refused => json!({"type": "response.incomplete", "response": {"status": "incomplete", "model": "m",
                    "output": [], "incomplete_details": {"reason": "content_filter"}}}),
            }),
            Format::Anthropic => {
                let reason = match end {
                    End::Stop => "end_turn",
                    End::Calls => "tool_use",
                    End::Refused => "refusal",
                };
                self.event(json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 7}}));
                self.event(json!({"type": "message_stop"}));
            }
            Format::Gemini => {
                let reason = match end {
                    End::Stop | End::Calls => "STOP",
                    End::Refused => "SAFETY",
                };
                let parts = self.signature.take().map(|signature| json!({"text": "", "thoughtSignature": signature}));
                let parts: Vec<Value> = parts.into_iter().collect();
                self.data(&json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": parts},
                    "finishReason": reason}]}));
            }
        }
    }
}
