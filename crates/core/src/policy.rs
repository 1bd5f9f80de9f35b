//! placeholder
use serde::{Deserialize, Serialize};
/// When calls are asked about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalMode {
    /// Everything that is not proven harmless asks.
    #[default]
    Ask,
    /// Non-destructive calls run, destructive or unknown ones ask.
    Auto,
    /// Nothing asks; deny rules still hold.
    Full,
}
/// What the gate says of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It may run.
    Allow,
    /// A person must say yes first.
    Ask,
    /// It may not run.
    Deny,
    /// It cannot run at all: bad arguments, unknown tool.
    Invalid,
}
/// Standing rules.
#[derive(Clone, Debug, Default)]
pub struct Policy {}
