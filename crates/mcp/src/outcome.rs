//! What a call came to: the content blocks of a result as text for a model, and what else is in them.
//!
//! Prompts and resources are made of the same blocks and are read here too. Whatever a server sends, there is an outcome:
//! blocks of unknown or broken form are named in a remark. Text is the server's, hostile until escaped; remarks are escaped.

mod image;
#[cfg(test)]
mod tests;

use crate::Alias;
use crate::offer::remarks::{Remarks, shortened, shown};
use aish_core::image::{IMAGES_MAX, Image, RESULT_IMAGES_BASE64_BYTES_MAX, decoded_bytes};
use aish_core::message::Part;
use aish_tools::capture::Capture;
use serde_json::{Map, Value};

/// Characters of a resource's address that are shown: one that is cut here names nothing any more.
const URI_CHARS_MAX: usize = 2_000;

/// A result, read from the raw JSON of `tools/call`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// All text, joined with line feeds (SPEC 6.5). A resource in it stands under its name, `[resource alias:uri]`, and a link to
    /// one is that line alone: so a person can mention it (SPEC 6.9).
    pub text: String,
    /// Images, for models that take them.
    pub images: Vec<Part>,
    /// What else was there and goes no further, one line each, e.g. `a sound (audio/wav, 12 KB)`.
    pub remarks: Vec<String>,
    /// `isError`.
    pub is_error: bool,
}

impl Outcome {
    /// Reads a result of that server, keeping at most `bytes_max` of text; what was cut is said in a last line (SPEC 4.3).
    ///
    /// The result of a server that knows no content blocks is its own text: a bare string as it is, all else as compact JSON.
    pub fn read(alias: &Alias, result: &Value, bytes_max: usize) -> Self {
        let Value::Object(map) = result else {
            return match result {
                Value::Array(_) | Value::String(_) => Gathered::new(bytes_max).of(alias).content(Some(result)).finish(),
                Value::Null => Self::default(),
                Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
                    let mut gathered = Gathered::new(bytes_max);
                    gathered.push_text(&result.to_string());
                    gathered.finish()
                }
            };
        };
        let mut gathered = Gathered::new(bytes_max).of(alias).content(map.get("content"));
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
    /// The server whose resources are named in the text; none where they are the text.
    alias: Option<Alias>,
    text: Capture,
    has_text: bool,
    images: Vec<Part>,
    remarks: Remarks,
}

impl Gathered {
    fn new(bytes_max: usize) -> Self {
        Self {
            alias: None,
            text: Capture::new(bytes_max),
            has_text: false,
            images: Vec::new(),
            remarks: Remarks::default(),
        }
    }

    /// Reads `content`: a list of blocks, one block, or a bare text.
    pub(crate) fn of_content(content: Option<&Value>, bytes_max: usize) -> Self {
        Self::new(bytes_max).content(content)
    }

    fn of(self, alias: &Alias) -> Self {
        Self {
            alias: Some(alias.clone()),
            ..self
        }
    }

    fn content(mut self, content: Option<&Value>) -> Self {
        match content {
            Some(Value::Array(blocks)) => blocks.iter().for_each(|block| self.push_block(block)),
            Some(block @ (Value::Object(_) | Value::String(_))) => self.push_block(block),
            Some(Value::Bool(_) | Value::Number(_)) => {
                self.remarks.push("content that is no list of blocks".to_owned());
            }
            Some(Value::Null) | None => {}
        }
        self
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
            Some("resource_link") => match self.resource_name(map) {
                Some(line) => self.push_text(&line),
                None => {
                    let uri = text_of(map, "uri").unwrap_or("no address");
                    let name = text_of(map, "name").unwrap_or("a resource");
                    self.remarks.push(format!("a link to {} ({})", shown(name), shown(uri)));
                }
            },
            Some(other) => self.remarks.push(format!("a block of type {}", shown(other))),
        }
    }

    fn push_resource(&mut self, resource: &Value) {
        let Value::Object(map) = resource else {
            return self.remarks.push("a resource that is no object".to_owned());
        };
        match text_of(map, "text") {
            Some(text) => {
                if let Some(line) = self.resource_name(map) {
                    self.push_text(&line);
                }
                self.push_text(text);
            }
            None if map.contains_key("blob") => self.push_data("resource", map, "blob"),
            None => {
                let uri = text_of(map, "uri").unwrap_or_default();
                self.remarks
                    .push(format!("a resource without contents ({})", shown(uri)));
            }
        }
    }

    /// `[resource alias:uri]`, where resources are named and it has an address.
    fn resource_name(&self, resource: &Map<String, Value>) -> Option<String> {
        let alias = self.alias.as_ref()?;
        let uri = text_of(resource, "uri").filter(|uri| !uri.is_empty())?;
        Some(format!("[resource {alias}:{}]", shortened(uri, URI_CHARS_MAX)))
    }

    /// Bytes in base64: an image where they are one that models take, else a remark on them.
    fn push_data(&mut self, noun: &str, map: &Map<String, Value>, key: &str) {
        let mime = text_of(map, "mimeType").unwrap_or("unknown type");
        let Some(data) = text_of(map, key) else {
            return self.remarks.push(format!("{} without data", with_article(noun)));
        };
        let kilobytes = decoded_bytes(data).div_ceil(1_000);
        let mut remark = format!("{} ({}, {kilobytes} KB)", with_article(noun), shown(mime));
        let is_image = noun == "image" || mime.starts_with("image/");
        if is_image {
            match self.push_image(data) {
                Ok(()) => return,
                Err(reason) => remark.push_str(&format!(", left out: {reason}")),
            }
        }
        self.remarks.push(remark);
    }

    fn push_image(&mut self, data: &str) -> Result<(), &'static str> {
        if self.images.len() >= IMAGES_MAX {
            return Err("there are too many");
        }
        let held: usize = Image::all(&self.images).map(|image| image.data.len()).sum();
        let part = image::part(data)?;
        if Image::of(&part).is_some_and(|image| held + image.data.len() > RESULT_IMAGES_BASE64_BYTES_MAX) {
            return Err("together they are too large");
        }
        self.images.push(part);
        Ok(())
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
