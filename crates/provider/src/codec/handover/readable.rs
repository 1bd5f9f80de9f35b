//! What a person could read in a block that only its provider understands.
//!
//! Providers put the same few things under the same few words, whatever the block is called: what was searched for, where
//! it was found, code and what it printed. So one bounded walk looks for those words instead of knowing every block; ids,
//! signatures and encrypted parts are not among them and go.

use super::{BLOCK_TEXT_BYTES_MAX, thinking};
use serde_json::{Map, Value};

/// How deep a block is looked into.
const DEPTH_MAX: usize = 8;

/// Fields that say what was searched for.
const QUERY_FIELDS: &[&str] = &["query", "queries", "webSearchQueries"];

/// Fields that hold text to read, in the order it is read.
const TEXT_FIELDS: &[&str] = &["text", "code", "output", "stdout", "stderr", "error_code"];

/// Fields that say where something was found.
const ADDRESS_FIELDS: &[&str] = &["url", "uri"];

/// Fields that repeat what the reply says anyway.
const REPEATING_FIELDS: &[&str] = &["groundingSupports"];

/// Blocks that are thinking.
const THINKING_BLOCKS: &[&str] = &["reasoning", "thinking", "redacted_thinking"];

/// The block as lines of text; none where nothing can be read.
pub(super) fn readable(block: &Value) -> Option<String> {
    let mut reader = Reader::default();
    reader.value(block, 0);
    let text = reader.lines.join("\n");
    let text = if is_thinking(block) {
        thinking(&text)
    } else {
        head(&text)
    };
    (!text.is_empty()).then_some(text)
}

/// True for a block that is thinking.
pub(super) fn is_thinking(block: &Value) -> bool {
    let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
    THINKING_BLOCKS.contains(&kind)
}

/// The beginning of a text that may be long.
pub(super) fn head(text: &str) -> String {
    let end = text.floor_char_boundary(BLOCK_TEXT_BYTES_MAX);
    match text.get(..end) {
        Some(head) if head.len() < text.len() => format!("{head}…"),
        Some(_) | None => text.to_owned(),
    }
}

#[derive(Default)]
struct Reader {
    lines: Vec<String>,
    bytes: usize,
}

impl Reader {
    fn value(&mut self, value: &Value, depth: usize) {
        if depth > DEPTH_MAX || self.bytes > BLOCK_TEXT_BYTES_MAX {
            return;
        }
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.value(item, depth + 1)),
            Value::Object(fields) => self.fields(fields, depth),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn fields(&mut self, fields: &Map<String, Value>, depth: usize) {
        for field in QUERY_FIELDS {
            match fields.get(*field) {
                Some(Value::Array(queries)) => queries.iter().for_each(|query| self.query(query)),
                Some(query) => self.query(query),
                None => {}
            }
        }
        for text in TEXT_FIELDS.iter().filter_map(|field| text_of(fields, field)) {
            self.line(text.to_owned());
        }
        if let Some(address) = ADDRESS_FIELDS.iter().find_map(|field| text_of(fields, field)) {
            let title = text_of(fields, "title").unwrap_or_default();
            self.line(["-", title, address].join(" ").replace("  ", " "));
        }
        for (name, value) in fields {
            let name = name.as_str();
            if !(QUERY_FIELDS.contains(&name) || REPEATING_FIELDS.contains(&name)) {
                self.value(value, depth + 1);
            }
        }
    }

    fn query(&mut self, query: &Value) {
        if let Some(query) = query.as_str().filter(|query| !query.is_empty()) {
            self.line(format!("[web search: {query}]"));
        }
    }

    /// Adds a line once: some blocks say everything in an old field and in a new one.
    fn line(&mut self, line: String) {
        if self.bytes <= BLOCK_TEXT_BYTES_MAX && !self.lines.contains(&line) {
            self.bytes += line.len() + 1;
            self.lines.push(line);
        }
    }
}

/// A field's text, if it has any.
fn text_of<'v>(fields: &'v Map<String, Value>, field: &str) -> Option<&'v str> {
    let text = fields.get(field).and_then(Value::as_str).map(str::trim);
    text.filter(|text| !text.is_empty())
}
