//! Calls that stop in the middle to ask something of a person, and go on when it is answered (SPEC 6.9).
//!
//! What a call asks is kept by whoever drives, as it was given; nothing of the call runs meanwhile, in this process or anywhere.
//! Going on has two halves, so that a process that dies while a person thinks loses nothing: [`crate::Tool::put`] asks and
//! changes nothing, [`crate::Tool::go_on`] tells the answers to whoever asked.

use crate::ToolOutput;
use serde_json::Value;

/// What running came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Ran {
    /// It came to its end.
    Output(ToolOutput),
    /// It cannot go on before somebody answers, and nobody was here.
    Asks(Asks),
}

/// What a call asks.
#[derive(Clone, Debug, PartialEq)]
pub struct Asks {
    /// A line for each question, escaped and bounded.
    pub lines: Vec<String>,
    /// What the tool needs to go on: bounded, and for the tool alone to read.
    pub state: Value,
}

/// What putting the questions of a call to a person came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Put {
    /// They are answered: what [`crate::Tool::go_on`] needs.
    Answered(Value),
    /// They could not be put now: the call waits on. One line for a person, escaped.
    Waits(String),
    /// The call cannot go on at all, and this is its end.
    Ended(ToolOutput),
}
