//! What the battery asks: short, and such that the smallest model has a chance.

use aish_core::id::CallId;
use aish_core::message::{Message, MessageCall, Part, ToolSpec};
use serde_json::{Value, json};

/// The name the model has while it is probed.
pub(super) const MODEL: &str = "probe";
/// The tool that is offered.
pub(super) const TOOL: &str = "lookup";

/// One pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

/// A request of the battery.
pub(super) struct Question {
    pub(super) system: &'static str,
    pub(super) messages: Vec<Message>,
    pub(super) tools: Vec<ToolSpec>,
    pub(super) schema: Option<Value>,
}

impl Question {
    fn of(messages: Vec<Message>) -> Self {
        Self {
            system: "",
            messages,
            tools: Vec::new(),
            schema: None,
        }
    }

    fn with_tool(self) -> Self {
        let tool = ToolSpec {
            name: TOOL.to_owned(),
            description: "Tells the weather of a city.".to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {"city": {"type": "string", "description": "The city"}},
                "required": ["city"],
            }),
        };
        Self {
            tools: vec![tool],
            ..self
        }
    }
}

/// A line of a person.
fn said(text: &str) -> Message {
    Message::User {
        parts: vec![Part::text(text)],
    }
}

/// Long enough to come in pieces.
pub(super) fn count() -> Question {
    Question::of(vec![said("Count from one to ten in words.")])
}

pub(super) fn instructed() -> Question {
    Question {
        system: "You answer in one word.",
        ..Question::of(vec![said("Say ok.")])
    }
}

pub(super) fn one_call() -> Question {
    Question::of(vec![said("Call the tool lookup for the city Oslo.")]).with_tool()
}

pub(super) fn three_calls() -> Question {
    let text = "Call the tool lookup three times at once: for Oslo, for Rome and for Lima.";
    Question::of(vec![said(text)]).with_tool()
}

/// A call with an id of our usual form, and its result.
fn conversation() -> Vec<Message> {
    let id = CallId::new("call_1_1");
    vec![
        said("How is the weather in Oslo?"),
        Message::Assistant {
            parts: Vec::new(),
            calls: vec![MessageCall {
                id: id.clone(),
                provider_id: None,
                name: TOOL.to_owned(),
                arguments: "{\"city\":\"Oslo\"}".to_owned(),
            }],
            model: Some(MODEL.to_owned()),
        },
        Message::Tool {
            call_id: id,
            provider_id: None,
            name: TOOL.to_owned(),
            output: "sunny, 20 degrees".to_owned(),
            success: true,
            parts: Vec::new(),
        },
    ]
}

pub(super) fn result() -> Question {
    Question::of(conversation()).with_tool()
}

pub(super) fn result_then_user() -> Question {
    let mut messages = conversation();
    messages.push(said("Never mind. Say ok."));
    Question::of(messages).with_tool()
}

pub(super) fn image() -> Question {
    let image = Part::Image {
        media_type: "image/png".to_owned(),
        data: PNG.to_owned(),
    };
    Question::of(vec![Message::User {
        parts: vec![Part::text("What colour is this? One word."), image],
    }])
}

pub(super) fn structured() -> Question {
    Question {
        schema: Some(json!({
            "type": "object",
            "properties": {"answer": {"type": "integer"}},
            "required": ["answer"],
            "additionalProperties": false,
        })),
        ..Question::of(vec![said("How much is two and two?")])
    }
}

/// Whether a reply keeps to the schema of [`structured`].
pub(super) fn fits(text: &str) -> bool {
    let value: Option<Value> = serde_json::from_str(text.trim()).ok();
    value.is_some_and(|value| value.get("answer").is_some_and(Value::is_i64))
}
