//! What a server offers: its lists, page by page (`pages`), read leniently and bounded.
//!
//! Nothing of it is believed: a name, a description or a schema that makes no sense costs that one item and a remark, never the
//! server; hints of a wrong type are absent. Text is kept as the server wrote it, for it to know its own names again, and is
//! hostile until escaped. Remarks are escaped already.

mod beyond;
mod pages;
pub(crate) mod remarks;
mod schema;
#[cfg(test)]
mod tests;

pub use beyond::{Argument, Filled, Prompt, PromptMessage, Resource, Role, Template};
pub(crate) use schema::checkable;

use crate::{McpError, Peer, ServerConfig};
use pages::{Listed, list};
use remarks::{Remarks, shown};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::time::Duration;

/// Bytes of a name or an address; a longer one is left out, since a part of it would name nothing.
const NAME_BYTES_MAX: usize = 1_024;
/// Bytes of a description; the rest is cut.
const DESCRIPTION_BYTES_MAX: usize = 16 << 10;

/// What a server says its tool does to the world. Only shown, unless the server is trusted (SPEC 5.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hints {
    /// `readOnlyHint`.
    pub read_only: Option<bool>,
    /// `destructiveHint`.
    pub destructive: Option<bool>,
    /// `idempotentHint`.
    pub idempotent: Option<bool>,
}

/// A tool as its server defines it. All text is the server's: hostile until escaped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Definition {
    /// Its bare name.
    pub name: String,
    /// What it does, for a model.
    pub description: String,
    /// A JSON Schema of its arguments, an object.
    pub input_schema: Value,
    /// A JSON Schema of its structured result, where it has one.
    pub output_schema: Option<Value>,
    /// What it does to the world.
    pub hints: Hints,
}

/// Everything a server offers, as far as it was asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Offer {
    /// Its tools, in its order.
    pub tools: Vec<Definition>,
    /// What was left out and why, one line each.
    pub remarks: Vec<String>,
}

impl Offer {
    /// Fetches the tools, following `nextCursor` (SPEC 6.4).
    ///
    /// # Errors
    /// The list cannot be had. A single tool that makes no sense is left out and remarked on instead.
    pub async fn fetch(peer: &dyn Peer, patience: Duration) -> Result<Self, McpError> {
        let mut remarks = Remarks::default();
        let tools = list(peer, patience, &mut remarks).await?;
        Ok(Self {
            tools,
            remarks: remarks.finish(),
        })
    }

    /// Takes out the tools that the configuration does not want; a name there that no tool has is remarked on.
    pub fn narrow(&mut self, config: &ServerConfig) {
        let (enabled, disabled) = (&config.enabled_tools, &config.disabled_tools);
        let mut remarks = Remarks::default();
        for (setting, names) in [("enabled_tools", enabled), ("disabled_tools", disabled)] {
            for name in names {
                if !self.tools.iter().any(|tool| tool.name == *name) {
                    remarks.push(format!("{setting} names {}, which is not offered", shown(name)));
                }
            }
        }
        self.remarks.extend(remarks.finish());
        self.tools
            .retain(|tool| (enabled.is_empty() || enabled.contains(&tool.name)) && !disabled.contains(&tool.name));
    }
}

impl Listed for Definition {
    const METHOD: &'static str = "tools/list";
    const FIELD: &'static str = "tools";
    const CAPABILITY: &'static str = "tools";
    const NOUN: &'static str = "tool";

    fn read(item: &Value, remarks: &mut Remarks) -> Result<Self, String> {
        let item = object_of(item, Self::NOUN)?;
        let name = name_of(item, "name", Self::NOUN)?;
        let left_out = |reason: String| format!("tool {} is left out: it {reason}", shown(&name));
        let input_schema = schema::input_schema(item.get("inputSchema")).map_err(left_out)?;
        let output_schema = schema::output_schema(item.get("outputSchema")).unwrap_or_else(|reason| {
            remarks.push(format!("the result of tool {} {reason}", shown(&name)));
            None
        });
        let hint = |key: &str| item.get("annotations")?.get(key)?.as_bool();
        Ok(Self {
            description: description_of(item, &name, remarks),
            input_schema,
            output_schema,
            hints: Hints {
                read_only: hint("readOnlyHint"),
                destructive: hint("destructiveHint"),
                idempotent: hint("idempotentHint"),
            },
            name,
        })
    }

    fn key(&self) -> &str {
        &self.name
    }

    fn bytes(&self) -> usize {
        let output = self.output_schema.as_ref().map_or(0, |schema| schema.to_string().len());
        self.name.len() + self.description.len() + self.input_schema.to_string().len() + output
    }
}

fn object_of<'a>(item: &'a Value, noun: &str) -> Result<&'a Map<String, Value>, String> {
    item.as_object()
        .ok_or_else(|| format!("a {noun} that is no object is left out"))
}

/// The text an item is known by.
fn name_of(item: &Map<String, Value>, key: &str, noun: &str) -> Result<String, String> {
    match item.get(key).and_then(Value::as_str) {
        None | Some("") => Err(format!("a {noun} without a {key} is left out")),
        Some(name) if name.len() > NAME_BYTES_MAX => Err(format!(
            "{noun} {} is left out: its {key} has {} bytes, more than {NAME_BYTES_MAX}",
            shown(name),
            name.len()
        )),
        Some(name) => Ok(name.to_owned()),
    }
}

/// What an item says of itself, cut where it says too much.
fn description_of(item: &Map<String, Value>, name: &str, remarks: &mut Remarks) -> String {
    let text = item.get("description").and_then(Value::as_str).unwrap_or_default();
    let kept = text.floor_char_boundary(DESCRIPTION_BYTES_MAX);
    if kept < text.len() {
        remarks.push(format!(
            "the description of {} is cut: {} bytes, more than {DESCRIPTION_BYTES_MAX}",
            shown(name),
            text.len()
        ));
    }
    text.get(..kept).unwrap_or_default().to_owned()
}
