//! What is offered to clients: the built-in tools, with what they honestly do to the world.

use crate::tools::for_other_programs;
use aish_engine::Engine;
use aish_mcp::Hints;
use aish_mcp::serve::Tool;

/// The tools, in their order.
pub(super) fn tools(engine: &Engine) -> Vec<Tool> {
    if !engine.settings().tools {
        return Vec::new();
    }
    let specs = for_other_programs(&engine.tools.now()).specs();
    specs
        .into_iter()
        .map(|spec| Tool {
            hints: hints(&spec.name),
            spec,
        })
        .collect()
}

/// What a client's model should know of them.
pub(super) fn instructions(engine: &Engine) -> String {
    let directory = engine.settings().context.directory;
    format!(
        "aish's own tools, on the machine where it runs, in {}. Relative paths are taken from there. Each call is judged by the \
         rules of whoever runs aish: it may run, be asked about, or be refused. Results are JSON; a failure is {{\"error\": …}}.",
        directory.display()
    )
}

/// What a tool does at its worst; one that is not known here does anything.
fn hints(name: &str) -> Hints {
    let (read_only, destructive, idempotent) = match name {
        "glob" | "file_read" | "grep" | "web_get" => (true, false, true),
        // The same content written twice is there once.
        "file_write" => (false, true, true),
        _ => (false, true, false),
    };
    Hints {
        read_only: Some(read_only),
        destructive: Some(destructive),
        idempotent: Some(idempotent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aish_provider::client::Network;
    use std::sync::Arc;

    /// SPEC 6.10: annotations are honest; a tool that is added says what it does.
    #[test]
    fn every_tool_is_known() {
        let ledger = Arc::new(aish_store::memory::MemoryStore::new());
        let builtin = crate::tools::builtin(Network::default(), ledger);
        let read_only: Vec<String> = for_other_programs(&builtin)
            .specs()
            .into_iter()
            .map(|spec| spec.name)
            .filter(|name| hints(name).read_only == Some(true))
            .collect();
        assert_eq!(read_only, ["glob", "file_read", "grep", "web_get"]);
    }
}
