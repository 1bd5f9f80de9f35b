//! The messages of a request as they stand on the wire.
//!
//! Only shapes: what goes where is decided in `messages`. Everything is borrowed that can be, because an image or a result
//! may be megabytes.

use crate::codec::words;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// A message on the wire.
#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub(super) enum Wire<'a> {
    System {
        content: String,
    },
    Developer {
        content: String,
    },
    User {
        content: Content<'a>,
    },
    Assistant(Said<'a>),
    Tool {
        tool_call_id: String,
        content: Cow<'a, str>,
    },
}

/// What an assistant said.
#[derive(Serialize, Default)]
pub(super) struct Said<'a> {
    pub(super) content: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tool_calls: Vec<WireCall<'a>>,
    /// Fields that its provider put beside the text and wants back.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(super) own: Option<&'a Map<String, Value>>,
}

/// Text, or blocks where there are images: not every server takes blocks.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Text(String),
    Blocks(Vec<Block<'a>>),
}

impl<'a> Content<'a> {
    /// Adds the content of the next message of the same role.
    pub(super) fn join(&mut self, next: Content<'a>) {
        match (self, next) {
            (Self::Text(text), Self::Text(next)) => words::join(text, &next),
            (Self::Blocks(blocks), Self::Blocks(next)) => blocks.extend(next),
            (Self::Blocks(blocks), Self::Text(text)) => blocks.push(Block::Text { text }),
            (this @ Self::Text(_), Self::Blocks(next)) => {
                let first = std::mem::replace(this, Self::Blocks(Vec::new()));
                if let (Self::Text(text), Self::Blocks(blocks)) = (first, this) {
                    if !text.is_empty() {
                        blocks.push(Block::Text { text });
                    }
                    blocks.extend(next);
                }
            }
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block<'a> {
    Text { text: String },
    ImageUrl { image_url: ImageUrl<'a> },
}

/// An image as a data URL.
pub(super) struct ImageUrl<'a> {
    pub(super) media_type: &'a str,
    pub(super) data: &'a str,
}

impl Serialize for ImageUrl<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut object = serializer.serialize_struct("ImageUrl", 1)?;
        // `format_args` goes straight into the output: an image is megabytes.
        object.serialize_field("url", &format_args!("data:{};base64,{}", self.media_type, self.data))?;
        object.end()
    }
}

#[derive(Serialize)]
pub(super) struct WireCall<'a> {
    pub(super) id: String,
    pub(super) r#type: &'static str,
    pub(super) function: WireFunction<'a>,
    /// What its provider signed it with, as received (Gemini's compatible endpoint).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) extra_content: Option<&'a RawValue>,
}

#[derive(Serialize)]
pub(super) struct WireFunction<'a> {
    pub(super) name: String,
    pub(super) arguments: &'a str,
}
