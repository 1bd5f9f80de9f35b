//! What a call came to: the content blocks of a result as text for a model, and what else is in them.
//!
//! Prompts and resources are made of the same blocks and are read here too. Whatever a server sends, there is an outcome:
//! blocks of unknown or broken form are named in a remark. Text is the server's, hostile until escaped; remarks are escaped.

mod image;
#[cfg(test)]
mod tests;

use crate::offer::remarks::{Remarks, shown};
use aish_core::message::Part;
use aish_tools::capture::Capture;
use serde_json::{Map, Value};

/// Images of one result.
const IMAGES_MAX: usize = 20;

/// A result, read from the raw JSON of `tools/call`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// All text, joined with line feeds (SPEC 6.5).
    pub text: String,
    /// Images, for models that take them.
    pub images: Vec<Part>,
    /// What was there besides text, one line each, e.g. `an image (image/png, 12 KB)`.
    pub remarks: Vec<String>,
    /// `isError`.
    pub is_error: bool,
}

impl Outcome {
    /// Reads a result, keeping at most `bytes_max` of text; what was cut is said in a last line (SPEC 4.3).
    ///
    /// The result of a server that knows no content blocks is its own text: a bare string as it is, all else as compact JSON.
    pub fn read(result: &Value, bytes_max: usize) -> Self {
        let Value::Object(map) = result else {
            return match result {
                Value::Array(_) | Value::String(_) => Gathered::of_content(Some(result), bytes_max).finish(),
                Value::Null => Self::default(),
                Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
                    let mut gathered = Gathered::new(bytes_max);
                    gathered.push_text(&result.to_string());
                    gathered.finish()
                }
            };
        };
        let mut gathered = Gathered::of_content(map.get("content"), bytes_max);
        if !gathered.has_text {
            match map.get("structuredContent") {
                Some(Value::Null) | None => {
                    if !map.contains_key("content") {
                        gathered.push_unknown_fields(map);
                    }
                }
                Some(structured) => gathered.push_text(&structured.to_string()),
            }
        }
        let mut outcome = gathered.finish();
        outcome.is_error = map.get("isError").and_then(Value::as_bool).unwrap_or_default();
        outcome
    }
}

/// Blocks on their way to an [`Outcome`].
pub(crate) struct Gathered {
    text: Capture,
    has_text: bool,
    images: Vec<Part>,
    remarks: Remarks,
}

impl Gathered {
    fn new(bytes_max: usize) -> Self {
        Self {
            text: Capture::new(bytes_max),
            has_text: false,
            images: Vec::new(),
            remarks: Remarks::default(),
        }
    }

    /// Reads `content`: a list of blocks, one block, or a bare text.
    pub(crate) fn of_content(content: Option<&Value>, bytes_max: usize) -> Self {
        let mut gathered = Self::new(bytes_max);
        match content {
            Some(Value::Array(blocks)) => blocks.iter().for_each(|block| gathered.push_block(block)),
            Some(block @ (Value::Object(_) | Value::String(_))) => gathered.push_block(block),
            Some(Value::Bool(_) | Value::Number(_)) => {
                gathered.remarks.push("content that is no list of blocks".to_owned());
            }
            Some(Value::Null) | None => {}
        }
        gathered
    }

    /// Reads the contents of a resource.
    pub(crate) fn of_resources(contents: &[Value], bytes_max: usize) -> Self {
        let mut gathered = Self::new(bytes_max);
        contents.iter().for_each(|resource| gathered.push_resource(resource));
        gathered
    }

    /// What was gathered.
    pub(crate) fn finish(self) -> Outcome {
        Outcome {
            text: self.text.finish(),
            images: self.images,
            remarks: self.remarks.finish(),
            is_error: false,
        }
    }

    fn push_text(&mut self, text: &str) {
        if self.has_text {
            self.text.push("\n");
        }
        self.has_text = true;
        self.text.push(text);
    }

    fn push_block(&mut self, block: &Value) {
        let map = match block {
            Value::String(text) => return self.push_text(text),
            Value::Object(map) => map,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                return self.remarks.push("a block that is no object".to_owned());
            }
        };
        match map.get("type").and_then(Value::as_str) {
            // A block that does not say what it is, but has a text, is meant as one.
            Some("text") | None => match text_of(map, "text") {
                Some(text) => self.push_text(text),
                None => self.remarks.push("a text block without text".to_owned()),
            },
            Some("image") => self.push_data("image", map, "data"),
            Some("audio") => self.push_data("audio", map, "data"),
            Some("resource") => match map.get("resource") {
                Some(resource) => self.push_resource(resource),
                None => self.remarks.push("a resource block without a resource".to_owned()),
            },
            Some("resource_link") => {
                let uri = text_of(map, "uri").unwrap_or("no address");
                let name = text_of(map, "name").unwrap_or("a resource");
                self.remarks.push(format!("a link to {} ({})", shown(name), shown(uri)));
            }
            Some(other) => self.remarks.push(format!("a block of type {}", shown(other))),
        }
    }

    fn push_resource(&mut self, resource: &Value) {
        let Value::Object(map) = resource else {
            return self.remarks.push("a resource that is no object".to_owned());
        };
        match text_of(map, "text") {
            Some(text) => self.push_text(text),
            None if map.contains_key("blob") => self.push_data("resource", map, "blob"),
            None => {
                let uri = text_of(map, "uri").unwrap_or_default();
                self.remarks
                    .push(format!("a resource without contents ({})", shown(uri)));
            }
        }
    }

    /// Bytes in base64: an image where they are one that models take, and a remark on them in any case.
    fn push_data(&mut self, noun: &str, map: &Map<String, Value>, key: &str) {
        let mime = text_of(map, "mimeType").unwrap_or("unknown type");
        let Some(data) = text_of(map, key) else {
            return self.remarks.push(format!("{} without data", with_article(noun)));
        };
        let kilobytes = image::decoded_bytes(data).div_ceil(1_000);
        let mut remark = format!("{} ({}, {kilobytes} KB)", with_article(noun), shown(mime));
        let is_image = noun == "image" || mime.starts_with("image/");
        if is_image {
            match image::part(data) {
                Ok(_) if self.images.len() >= IMAGES_MAX => remark.push_str(", left out: there are too many"),
                Ok(part) => self.images.push(part),
                Err(reason) => remark.push_str(&format!(", left out: {reason}")),
            }
        }
        self.remarks.push(remark);
    }

    /// A result of fields that no version of the protocol knows is its own text.
    fn push_unknown_fields(&mut self, map: &Map<String, Value>) {
        let known = ["_meta", "isError", "resultType", "structuredContent"];
        let fields = map.iter().filter(|(key, _)| !known.contains(&key.as_str()));
        let fields: Map<String, Value> = fields.map(|(key, value)| (key.clone(), value.clone())).collect();
        if !fields.is_empty() {
            self.push_text(&Value::Object(fields).to_string());
        }
    }
}

fn text_of<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    map.get(key).and_then(Value::as_str)
}

fn with_article(noun: &str) -> String {
    match noun {
        "image" => "an image".to_owned(),
        "audio" => "a sound".to_owned(),
        other => format!("a {other}"),
    }
}
