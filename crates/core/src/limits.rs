//! The bounds of one turn. They are written into its first event, so that folding an old turn never depends on
//! today's configuration (DESIGN rule 8).

use serde::{Deserialize, Serialize};

/// The bounds in force for one turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Rounds of tool calls, over all tools (SPEC 3.6).
    pub max_tool_turns: u32,
    /// Rounds that contain a call of an MCP tool (SPEC 3.6).
    pub max_tool_depth: u32,
    /// Requests to a model for one reply, the first included (SPEC 3.5, 7.6).
    pub max_model_attempts: u32,
    /// Characters of one result that the model sees; head and tail are kept (SPEC 4.3).
    pub max_result_chars: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_tool_turns: 50,
            max_tool_depth: 8,
            max_model_attempts: 4,
            max_result_chars: 24_000,
        }
    }
}
