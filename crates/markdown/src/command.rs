//! What a text proposes to be run (SPEC 8.4).

/// A line that begins with `CMD:`, without that mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// It as it was shown, without the blanks around it.
    pub line: String,
    /// How much of it that is.
    pub extent: Extent,
}

/// How much of a line is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    Whole,
    /// It is too long to be a command: its beginning, to name it by.
    Beginning,
}
