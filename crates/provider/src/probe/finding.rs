//! The steps of the battery and what comes of them, in words for people.

/// What is asked about, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Whether it answers at all.
    Answers,
    /// Whether text comes in pieces.
    Streams,
    /// Whether thinking is told apart.
    Thinks,
    /// Whether standing instructions have a place of their own.
    SystemRole,
    /// Whether it calls a tool when told to.
    Tools,
    /// Whether one reply may hold several calls.
    ParallelCalls,
    /// Whether results are taken as such.
    Results,
    /// Whether ids of calls may have any form.
    CallIds,
    /// Whether the user may speak right after a result.
    FreeTurns,
    /// How much fits its context.
    Context,
    /// Whether it takes images.
    Images,
    /// Whether it keeps to a schema.
    StructuredOutput,
}

impl Step {
    /// A few words for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Answers => "answers",
            Self::Streams => "streams",
            Self::Thinks => "thinking",
            Self::SystemRole => "system role",
            Self::Tools => "tools",
            Self::ParallelCalls => "several calls at once",
            Self::Results => "tool results",
            Self::CallIds => "any call ids",
            Self::FreeTurns => "free turns",
            Self::Context => "context",
            Self::Images => "images",
            Self::StructuredOutput => "structured output",
        }
    }
}

/// What came of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It does.
    Yes,
    /// It does not; the profile gets around it where that is possible.
    No,
    /// It could not be told.
    Unclear,
}

impl Outcome {
    /// The word for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Unclear => "unclear",
        }
    }
}

/// One answer of the battery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// To what.
    pub step: Step,
    /// Whether it does.
    pub outcome: Outcome,
    /// What was seen, a few words; may be empty.
    pub note: String,
}
