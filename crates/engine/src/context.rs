//! placeholder
pub const SYSTEM_PROMPT: &str = "";
