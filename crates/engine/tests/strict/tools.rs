//! Tools with names and schemas that somebody out there has, doing at random what tools do.

use super::world::Shared;
use aish_core::action::{Action, Effect};
use aish_core::event::CallSource;
use aish_core::message::ToolSpec;
use aish_tools::{Cancel, Progress, Tool, ToolContext, ToolOutput};
use futures_util::future::{BoxFuture, FutureExt as _};
use serde_json::{Value, json};
use std::sync::Arc;

/// Characters of a long result: more than any turn's limit here lets a model see.
const LONG_RESULT_CHARS: usize = 20_000;

/// A tool.
pub struct Odd {
    spec: ToolSpec,
    source: CallSource,
    is_reader: bool,
    shared: Arc<Shared>,
}

/// One of each kind.
pub fn all(shared: &Arc<Shared>) -> Vec<Arc<dyn Tool>> {
    let long = "x".repeat(70);
    let tools: [(&str, CallSource, bool, Value); 9] = [
        ("probe", CallSource::Builtin, true, number()),
        ("boltzmann.read_file", CallSource::Mcp, false, json!({"type": "object"})),
        (
            "boltzmann.a b",
            CallSource::Mcp,
            true,
            json!({"type": "object", "properties": {}, "additionalProperties": false}),
        ),
        (
            "1st.tool",
            CallSource::Mcp,
            false,
            json!({"properties": {"n": {}, "x": true}}),
        ),
        (&long, CallSource::Mcp, true, strange()),
        ("web_search", CallSource::Builtin, false, number()),
        ("either", CallSource::Mcp, true, alternatives("anyOf")),
        ("one", CallSource::Mcp, false, alternatives("oneOf")),
        ("tree", CallSource::Mcp, true, recursive()),
    ];
    let odd = tools.map(|(name, source, is_reader, input_schema)| {
        let tool: Arc<dyn Tool> = Arc::new(Odd {
            spec: ToolSpec {
                name: name.to_owned(),
                description: if is_reader {
                    String::new()
                } else {
                    format!("Does {name}.")
                },
                input_schema,
            },
            source,
            is_reader,
            shared: Arc::clone(shared),
        });
        tool
    });
    odd.into()
}

fn number() -> Value {
    json!({
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 0}},
        "required": ["n"],
        "additionalProperties": false,
    })
}

/// Keywords that one endpoint or another has no word for.
fn strange() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Strange",
        "type": "object",
        "properties": {
            "when": {"type": "string", "format": "uri", "pattern": "^(?!a).*"},
            "kind": {"enum": [1, 2, "three", null]},
            "fixed": {"const": "x"},
            "maybe": {"type": ["string", "null"], "default": null},
            "list": {"type": "array"},
            "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}], "items": false},
            "map": {"type": "object", "additionalProperties": {"type": "string"}, "propertyNames": {"pattern": "a"}},
            "more": {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5},
            "not": {"not": {"type": "string"}},
            "empty": {"type": "string", "enum": ["", "a"]},
        },
        "patternProperties": {"^x-": {"type": "string"}},
        "required": ["when", "unknown"],
        "dependentRequired": {"when": ["kind"]},
        "if": {"properties": {"kind": {"const": 1}}},
        "then": {"required": ["map"]},
    })
}

fn alternatives(keyword: &str) -> Value {
    json!({
        "type": "object",
        keyword: [
            {"properties": {"path": {"type": "string"}}, "required": ["path"]},
            {"properties": {"url": {"type": "string"}}, "required": ["url"]},
        ],
    })
}

fn recursive() -> Value {
    json!({
        "type": "object",
        "properties": {"root": {"$ref": "#/$defs/Node"}, "elsewhere": {"$ref": "https://example.org/schema"}},
        "$defs": {"Node": {"type": "object", "properties": {
            "name": {"type": "string"},
            "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
        }}},
    })
}

impl Tool for Odd {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn source(&self) -> CallSource {
        self.source
    }

    fn inspect(&self, arguments: &Value, context: &ToolContext) -> Result<Action, String> {
        let path = context.directory.clone();
        Ok(Action {
            tool: self.spec.name.clone(),
            arguments: arguments.clone(),
            effects: vec![if self.is_reader {
                Effect::Read { path }
            } else {
                Effect::Remote
            }],
        })
    }

    fn run<'a>(
        &'a self,
        _action: &'a Action,
        _context: &'a ToolContext,
        _progress: &'a dyn Progress,
        mut cancel: Cancel,
    ) -> BoxFuture<'a, ToolOutput> {
        async move {
            let output = match self.shared.below(24) {
                0..12 => json!({"output": "fine", "count": 1}).to_string(),
                12..15 => "plain text\nof two lines".to_owned(),
                15 => String::new(),
                16 => " ".to_owned(),
                17 => "[1,2,3]".to_owned(),
                18 => "\u{FEFF}{\"cut".to_owned(),
                19 => "y".repeat(LONG_RESULT_CHARS),
                20 => return ToolOutput::error("it failed"),
                21 => {
                    // Somebody presses Ctrl-C; a tool may end for it, or not care.
                    self.shared.interrupt();
                    if self.shared.below(2) == 0 {
                        let _ = cancel.wait_for(|cancel| *cancel).await;
                        return ToolOutput::error("Cancelled");
                    }
                    "done all the same".to_owned()
                }
                22 => panic!("a tool of a random conversation panics"),
                _ => {
                    self.shared.switch_model();
                    "another model, please".to_owned()
                }
            };
            ToolOutput {
                summary: output.chars().take(20).collect(),
                output,
                success: true,
                parts: Vec::new(),
            }
        }
        .boxed()
    }
}
