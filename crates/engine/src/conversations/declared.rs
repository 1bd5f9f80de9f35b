//! The tools that a client declares, looked at before a turn begins with them (SPEC 9.2).

use crate::Offered;
use crate::ServeError;
use crate::defer::wire_names;
use aish_core::message::ToolSpec;
use aish_tools::set::{schema_problem, served_name};
use std::collections::HashSet;

/// Tools of one client.
const TOOLS_MAX: usize = 128;
/// Bytes of all of them together: they are written into each turn, and sent with each request.
const BYTES_MAX: usize = 256 * 1024;
/// Characters of a name: what most providers take.
const NAME_CHARS_MAX: usize = 64;

/// Whether these can be offered beside those of this process.
///
/// # Errors
/// The first that cannot, and why.
pub(super) fn check(declared: &[ToolSpec], offered: &Offered) -> Result<(), ServeError> {
    let own = offered.now();
    let wire = wire_names(&own);
    let mut names = HashSet::new();
    let mut bytes = 0;
    if let Some(first_too_many) = declared.get(TOOLS_MAX) {
        return Err(refused(
            first_too_many,
            format!("it is one too many: {TOOLS_MAX} may be declared"),
        ));
    }
    for tool in declared {
        let taken = if own.get(&tool.name).is_some() || served_name(&tool.name) != tool.name {
            Some("this server has a tool of that name; a client cannot stand in for it")
        } else if wire.people(&tool.name) != tool.name || offered.is_of_server(&tool.name) {
            Some("a tool of an MCP server is called that by models")
        } else if !names.insert(tool.name.as_str()) {
            Some("it is declared twice")
        } else {
            None
        };
        if let Some(problem) = taken {
            let name = tool.name.clone();
            return Err(ServeError::ToolTaken { name, problem });
        }
        if let Some(problem) = name_problem(&tool.name).or_else(|| schema_problem(&tool.input_schema)) {
            return Err(refused(tool, problem));
        }
        bytes += tool.name.len() + tool.description.len() + tool.input_schema.to_string().len();
        if bytes > BYTES_MAX {
            return Err(refused(
                tool,
                format!("with it the tools have more than {BYTES_MAX} bytes"),
            ));
        }
    }
    Ok(())
}

fn refused(tool: &ToolSpec, problem: String) -> ServeError {
    ServeError::Tool {
        name: tool.name.clone(),
        problem,
    }
}

fn name_problem(name: &str) -> Option<String> {
    let is_fit = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
    if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(is_fit) {
        return Some(format!("a name has 1 to {NAME_CHARS_MAX} letters, digits, _ and -"));
    }
    None
}
