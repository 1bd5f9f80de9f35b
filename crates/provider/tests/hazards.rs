//! The hazard matrix: what goes wrong between a client and a model, met in each of the four formats.
//!
//! Rows are [`Hazard`]s, columns are formats; [`matrix!`] makes each cell a test of its own. Replies are one script, written
//! as each format streams it ([`stream`]); requests are read naively and shown to what real APIs refuse ([`wire`]). The rows
//! about replies are in [`replies`], those about conversations in [`histories`].
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use aish_provider::profile::Format;

#[path = "hazards/histories.rs"]
mod histories;
#[path = "corpus/reading.rs"]
mod reading;
#[path = "hazards/replies.rs"]
mod replies;
#[path = "hazards/stream.rs"]
mod stream;
#[path = "hazards/wire.rs"]
mod wire;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hazard {
    /// A reply that says nothing, and no reply at all.
    EmptyReply,
    /// The connection breaks in the middle of a call.
    AbortMidCall,
    /// The stream ends at any byte.
    TruncatedAnywhere,
    /// Characters are cut in two by chunks, or are none.
    SplitUtf8,
    /// The ledger has a call without a result and a result without a call.
    OrphanCall,
    /// The pieces of two calls come mixed.
    ParallelCallsInterleaved,
    /// The conversation does not fit.
    Overflow,
    /// The conversation goes on with a model of each other format.
    HandOver,
    /// The provider withholds the reply.
    Refusal,
    /// The provider fails in the middle.
    ErrorInTheMiddle,
    /// Events of kinds nobody knows yet.
    UnknownEvents,
    /// What one model thought, signed for it alone, in a conversation with another.
    CrossProviderThinking,
    /// A text that goes along with a question ends its own envelope.
    ContextEndsItself,
}

/// SPEC 7.3, 7.4, 7.6, 12: no cell lets a cut call run, loses what was said, or draws a refusal.
fn meet(hazard: Hazard, format: Format) {
    match hazard {
        Hazard::EmptyReply => replies::empty_reply(format),
        Hazard::AbortMidCall => replies::abort_mid_call(format),
        Hazard::TruncatedAnywhere => replies::truncated_anywhere(format),
        Hazard::SplitUtf8 => replies::split_utf8(format),
        Hazard::OrphanCall => histories::orphan_call(format),
        Hazard::ParallelCallsInterleaved => replies::parallel_calls_interleaved(format),
        Hazard::Overflow => histories::overflow(format),
        Hazard::HandOver => Format::ALL.into_iter().for_each(|to| histories::hand_over(format, to)),
        Hazard::Refusal => replies::refusal(format),
        Hazard::ErrorInTheMiddle => replies::error_in_the_middle(format),
        Hazard::UnknownEvents => replies::unknown_events(format),
        Hazard::CrossProviderThinking => Format::ALL
            .into_iter()
            .for_each(|to| histories::cross_provider_thinking(format, to)),
        Hazard::ContextEndsItself => histories::context_ends_itself(format),
    }
}

macro_rules! matrix {
    ($($row:ident $hazard:ident,)*) => {
        const ROWS: &[Hazard] = &[$(Hazard::$hazard),*];

        $(mod $row {
            use super::{Format, Hazard, meet};

            #[test]
            fn openai_chat() {
                meet(Hazard::$hazard, Format::OpenaiChat);
            }

            #[test]
            fn openai_responses() {
                meet(Hazard::$hazard, Format::OpenaiResponses);
            }

            #[test]
            fn anthropic() {
                meet(Hazard::$hazard, Format::Anthropic);
            }

            #[test]
            fn gemini() {
                meet(Hazard::$hazard, Format::Gemini);
            }
        })*
    };
}

matrix! {
    row_empty_reply EmptyReply,
    row_abort_mid_call AbortMidCall,
    row_truncated_anywhere TruncatedAnywhere,
    row_split_utf8 SplitUtf8,
    row_orphan_call OrphanCall,
    row_parallel_calls_interleaved ParallelCallsInterleaved,
    row_overflow Overflow,
    row_hand_over HandOver,
    row_refusal Refusal,
    row_error_in_the_middle ErrorInTheMiddle,
    row_unknown_events UnknownEvents,
    row_cross_provider_thinking CrossProviderThinking,
    row_context_ends_itself ContextEndsItself,
}

/// A hazard that is named has its row.
#[test]
fn every_cell_is_filled() {
    // Exhaustive by the match in `meet`; this one says how many there are.
    let last = Hazard::ContextEndsItself as usize;
    assert_eq!(ROWS.len(), last + 1);
    assert!(ROWS.iter().enumerate().all(|(at, row)| *row as usize == at));
    assert_eq!(Format::ALL.len(), 4, "a fifth format is a fifth column");
}
