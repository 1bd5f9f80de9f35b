//! The tools a session offers.
//!
//! A [`ToolSet`] is an ordered collection: tools are appended and never re-sorted, so that the tool list of a request
//! stays byte for byte the same and a server's prompt cache holds. It also checks the arguments of a call against the
//! tool's schema ([`ToolSet::validate`]); validators are compiled on first use and kept.

use crate::arguments;
use crate::bash::BashTool;
use crate::files::{FileEditTool, FileReadTool, FileWriteTool};
use crate::finder::SearchTools;
use crate::search::{GlobTool, GrepTool};
use crate::{Tool, ToolOutput};
use aish_core::event::CallSource;
use aish_core::message::ToolSpec;
use jsonschema::Validator;
use serde_json::Value;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Tools in the order they were added. Cloning shares the tools, and the background jobs of `bash` with them.
#[derive(Clone, Default)]
pub struct ToolSet {
    entries: Vec<Entry>,
    /// The search among those of servers: not one of the list, since it is offered only where they are left out.
    search: Option<Entry>,
}

#[derive(Clone)]
struct Entry {
    tool: Arc<dyn Tool>,
    /// `None` when the schema itself is not valid: then there is nothing to check against.
    validator: Arc<OnceLock<Option<Validator>>>,
}

/// A tool of that name is in the set already.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("a tool named {0} is there already")]
pub struct DuplicateTool(pub String);

impl ToolSet {
    /// No tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// The built-in tools that need nothing but this machine, in their fixed order.
    pub fn builtin() -> Self {
        let mut set = Self::new();
        let tools: [Arc<dyn Tool>; 6] = [
            Arc::new(GlobTool::new()),
            Arc::new(FileReadTool::new()),
            Arc::new(GrepTool::new()),
            Arc::new(FileWriteTool::new()),
            Arc::new(FileEditTool::new()),
            Arc::new(BashTool::new()),
        ];
        for tool in tools {
            set.push(tool);
        }
        set
    }

    /// Adds a tool after all others.
    ///
    /// # Errors
    /// [`DuplicateTool`]: the set is unchanged.
    pub fn append(&mut self, tool: Arc<dyn Tool>) -> Result<(), DuplicateTool> {
        let name = &tool.spec().name;
        if self.get(name).is_some() {
            return Err(DuplicateTool(name.clone()));
        }
        self.push(tool);
        Ok(())
    }

    fn push(&mut self, tool: Arc<dyn Tool>) {
        self.entries.push(Entry {
            tool,
            validator: Arc::default(),
        });
    }

    /// Takes out every tool whose name is refused by `keep`; the order of the others stays.
    pub fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) {
        self.entries.retain(|entry| keep(&entry.tool.spec().name));
        self.search = self.search.take().filter(|entry| keep(&entry.tool.spec().name));
    }

    /// Makes the tools of servers that are in the set now findable: `search_tools` can be called from now on. Which of them are
    /// left out of a request, and whether the search is in it, is for whoever builds the request (SPEC 6.9).
    pub fn add_search(&mut self) {
        let of_servers = self.iter().filter(|tool| match tool.source() {
            CallSource::Mcp => true,
            CallSource::Builtin | CallSource::Client => false,
        });
        let specs: Vec<ToolSpec> = of_servers.map(|tool| tool.spec().clone()).collect();
        self.search = (!specs.is_empty()).then(|| Entry {
            tool: Arc::new(SearchTools::over(specs)),
            validator: Arc::default(),
        });
    }

    /// The search among the tools of servers, where there are any.
    pub fn search(&self) -> Option<&ToolSpec> {
        self.search.as_ref().map(|entry| entry.tool.spec())
    }

    /// The tools, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.entries.iter().map(|entry| &entry.tool)
    }

    /// What a model is offered, in order.
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.entries.iter().map(|entry| entry.tool.spec().clone()).collect()
    }

    /// The tool of exactly that name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.entry(name).map(|entry| &entry.tool)
    }

    /// True when no tool is in it: a request then has no tool list at all (SPEC 6.7).
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The checked arguments of a call, put right where only one meaning was possible; an object. Empty text means `{}`.
    ///
    /// # Errors
    /// A message for the model without the JSON around it (see [`error_json`]): `Invalid JSON arguments: …`,
    /// `Missing required parameter: …`, `Unknown parameter: …`, `Parameter … must be …`, `Unknown tool: …`.
    pub fn validate(&self, name: &str, arguments_text: &str) -> Result<Value, String> {
        let Some(entry) = self.entry(name) else {
            return Err(format!("Unknown tool: {name}"));
        };
        let schema = entry.tool.validation_schema();
        let mut map = arguments::parse(arguments_text)?;
        arguments::coerce(&mut map, schema);
        let value = Value::Object(map);
        if let Some(validator) = entry.validator.get_or_init(|| jsonschema::validator_for(schema).ok()) {
            arguments::check(&value, schema, validator)?;
        }
        Ok(value)
    }

    fn entry(&self, name: &str) -> Option<&Entry> {
        let mut all = self.entries.iter().chain(&self.search);
        all.find(|entry| entry.tool.spec().name == name)
    }
}

impl fmt::Debug for ToolSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.entries.iter().map(|entry| &entry.tool.spec().name);
        f.debug_list().entries(names).finish()
    }
}

/// A message as the result of a failed call: `{"error":"message"}`.
pub fn error_json(message: &str) -> String {
    ToolOutput::error(message).output
}

/// What is wrong with a schema of arguments, if anything: one line.
pub fn schema_problem(schema: &Value) -> Option<String> {
    match schema.get("type").map(Value::as_str) {
        _ if !schema.is_object() => Some("its input_schema is no JSON object".to_owned()),
        None | Some(Some("object")) => jsonschema::validator_for(schema)
            .err()
            .map(|error| format!("its input_schema is no JSON Schema: {error}")),
        Some(_) => Some("its input_schema is not of \"type\": \"object\"".to_owned()),
    }
}

/// The built-in tool that served mode also knows by `name` (SPEC 4.5); any other name is itself.
pub fn served_name(name: &str) -> &str {
    match name {
        "read_file" => "file_read",
        "write_file" => "file_write",
        "run_command" => "bash",
        other => other,
    }
}
