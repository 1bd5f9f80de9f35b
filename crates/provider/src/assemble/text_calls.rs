//! Calls that a model wrote as text (SPEC 7.4), because its server does not understand its format.
//!
//! It is a guess about what was meant, so it is a narrow one: the calls are the last thing in the text, they stand where
//! their form may begin (`forms` is the table of them), outside code fences and quotations, and each one names a declared
//! tool and has an object as arguments. If any of that fails, all of it is text. The gate judges what comes out like every
//! other call.
//!
//! [`find`] judges a whole text; `hold` keeps what may become a call from being shown.

use super::lines::Lines;
use crate::ReplyCall;
use crate::codec::names::WireNames;
use aish_core::message::ToolSpec;
use serde_json::Value;

mod forms;
pub(super) mod hold;
mod reader;
#[cfg(test)]
mod tests;

/// Places of one text that are looked at: a text with more of them is about markup.
const PLACES_MAX: usize = 64;

/// What ends calls. What begins behind it, when that was none, is no new beginning.
const CLOSES: &[&str] = &[
    "</tool_call>",
    "</function>",
    "</function_calls>",
    "</minimax:tool_call>",
    "<|tool_call_end|>",
    "<|tool_calls_section_end|>",
    "<｜tool▁calls▁end｜>",
];

/// A tool that a call written as text may name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Callable {
    /// Its name, as people know it.
    pub name: String,
    /// Its parameters that are text: what looks like a number stays text there.
    pub texts: Vec<String>,
}

impl Callable {
    /// That tool, its texts those of its parameters that take a string and nothing else.
    pub fn of(tool: &ToolSpec) -> Self {
        let parameters = tool.input_schema.get("properties").and_then(Value::as_object);
        let texts = parameters.into_iter().flatten();
        Self {
            name: tool.name.clone(),
            texts: texts
                .filter(|(_, schema)| schema.get("type").and_then(Value::as_str) == Some("string"))
                .map(|(name, _)| name.clone())
                .collect(),
        }
    }
}

/// The tools that calls may name, and how they are named on the wire.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tools<'t> {
    pub(super) names: &'t WireNames,
    pub(super) callable: &'t [Callable],
}

impl<'t> Tools<'t> {
    /// The tool that a model's word stands for.
    fn declared(self, word: &str) -> Option<&'t Callable> {
        let word = word.trim();
        let word = word.strip_prefix("functions.").unwrap_or(word);
        let name = self.names.people(word);
        self.callable.iter().find(|tool| tool.name == name)
    }
}

/// Calls found in a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// How much of the text stays text.
    pub(super) text_bytes: usize,
    /// The calls, in order.
    pub(super) calls: Vec<ReplyCall>,
}

/// The calls at the end of a text; `lines` tells where it stands.
pub(super) fn find(text: &str, mut lines: Lines, tools: Tools<'_>) -> Option<Found> {
    let mut from = 0;
    for _ in 0..PLACES_MAX {
        let rest = text.get(from..)?;
        let (at, place) = lines.next(rest, forms::may_begin)?;
        let before = text.get(..from + at)?.trim_end();
        let is_beginning = !CLOSES.iter().any(|close| before.ends_with(close));
        if is_beginning && let Ok(calls) = forms::read(rest.get(at..)?, place, tools) {
            return Some(Found {
                text_bytes: before.len(),
                calls,
            });
        }
        let letter = rest.get(at..)?.chars().next()?;
        letter.to_string().bytes().for_each(|byte| lines.pass(byte));
        from += at + letter.len_utf8();
    }
    None
}
