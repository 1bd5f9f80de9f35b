//! Notices: what a front end is told while a turn runs. Ephemeral: all that matters is in the ledger as well.
//!
//! The queue never blocks and never loses order. Its memory is bounded by what the ledger bounds anyway: adjacent pieces of
//! text become one, so a front end that is slow gets longer pieces, not more of them.

use aish_core::event::{Event, ResultEnd, Usage};
use aish_core::id::CallId;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// Command output that waits to be shown beyond this is dropped, oldest first: a terminal that lags sees the end of it.
const OUTPUT_BYTES_MAX: usize = 256 * 1024;

/// One piece of news. Text in it comes from models, tools and servers: hostile until escaped.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// The model is being asked.
    Asking {
        /// Which one, by its configured name.
        model: String,
    },
    /// Text of a reply.
    Text(String),
    /// Thinking of a reply.
    Thinking(String),
    /// The model is writing a call of this tool.
    CallBegun {
        /// The tool.
        name: String,
    },
    /// The reply is whole.
    ReplyEnded,
    /// A call begins to run.
    CallStarted {
        /// Which call.
        call: CallId,
        /// `tool(key=value, …)`.
        readable: String,
    },
    /// A running call printed this.
    ToolOutput {
        /// Which call.
        call: CallId,
        /// What it printed.
        text: String,
    },
    /// A running call says how far it has come.
    CallStep {
        /// Which call.
        call: CallId,
        /// Of which tool.
        tool: String,
        /// One line.
        line: String,
    },
    /// A command the person typed printed this.
    CommandOutput(String),
    /// What the person's own shell showed while no command of theirs had the terminal, whole lines: what a job printed, that one
    /// is done.
    Beside(String),
    /// A call came to its end, run or not.
    CallEnded {
        /// Which call.
        call: CallId,
        /// `tool(key=value, …)`.
        readable: String,
        /// The whole result.
        output: String,
        /// One readable line.
        summary: String,
        /// False for errors, refusals and interruptions.
        success: bool,
        /// What kind of end.
        end: ResultEnd,
    },
    /// The request failed and is made again after a pause.
    Retrying {
        /// Which attempt comes next.
        attempt: u32,
        /// The pause in milliseconds.
        wait_ms: u64,
        /// What went wrong.
        problem: String,
    },
    /// Tokens of one reply.
    Usage(Usage),
    /// An event is in the ledger; only told to who asked for it, see [`Notices::with_events`].
    Recorded(Box<Event>),
    /// Something a person should know, one line.
    Status(String),
}

/// The queue between a driver and a front end. Cheap to clone.
#[derive(Clone, Default)]
pub struct Notices {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    events: bool,
    queue: Mutex<VecDeque<Notice>>,
    changed: Notify,
}

impl Notices {
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty queue that is told every event as well: for a front end that writes the ledger out as it grows.
    pub fn with_events() -> Self {
        Self {
            shared: Arc::new(Shared {
                events: true,
                ..Shared::default()
            }),
        }
    }

    /// Tells of an event, if that is wanted.
    pub(crate) fn recorded(&self, event: &Event) {
        if self.shared.events {
            self.push(Notice::Recorded(Box::new(event.clone())));
        }
    }

    /// Adds a notice; adjacent text becomes one.
    pub fn push(&self, notice: Notice) {
        let mut queue = self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner);
        match (queue.back_mut(), notice) {
            (Some(Notice::Text(before)), Notice::Text(text)) => before.push_str(&text),
            (Some(Notice::Thinking(before)), Notice::Thinking(text)) => before.push_str(&text),
            (
                Some(Notice::ToolOutput {
                    call: same,
                    text: before,
                }),
                Notice::ToolOutput { call, text },
            ) if *same == call => {
                before.push_str(&text);
                drop_beginning(before);
            }
            // Only how far it is now is of interest.
            (
                Some(Notice::CallStep {
                    call: same,
                    line: before,
                    ..
                }),
                Notice::CallStep { call, line, .. },
            ) if *same == call => *before = line,
            (Some(Notice::CommandOutput(before)), Notice::CommandOutput(text)) => {
                before.push_str(&text);
                drop_beginning(before);
            }
            (Some(Notice::Beside(before)), Notice::Beside(text)) => {
                before.push('\n');
                before.push_str(&text);
                drop_beginning(before);
            }
            (_, notice) => queue.push_back(notice),
        }
        drop(queue);
        self.shared.changed.notify_one();
    }

    /// Adds a line a person should know.
    pub fn status(&self, text: impl Into<String>) {
        self.push(Notice::Status(text.into()));
    }

    /// Takes everything that is there.
    pub fn drain(&self) -> VecDeque<Notice> {
        std::mem::take(&mut *self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until something was added since the last wait.
    pub async fn changed(&self) {
        self.shared.changed.notified().await;
    }
}

fn drop_beginning(text: &mut String) {
    if text.len() <= OUTPUT_BYTES_MAX {
        return;
    }
    let mut from = text.len() - OUTPUT_BYTES_MAX / 2;
    while !text.is_char_boundary(from) {
        from += 1;
    }
    text.drain(..from);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DESIGN, cost rules: a front end that is slow never slows a turn and never grows the queue.
    #[test]
    fn adjacent_pieces_become_one() {
        let notices = Notices::new();
        for _ in 0..10_000 {
            notices.push(Notice::Text("ab".into()));
        }
        notices.push(Notice::ReplyEnded);
        for _ in 0..100_000 {
            notices.push(Notice::ToolOutput {
                call: CallId::nth(1, 1),
                text: "0123456789".into(),
            });
        }
        let all = notices.drain();
        assert_eq!(all.len(), 3);
        assert!(matches!(&all[0], Notice::Text(text) if text.len() == 20_000));
        assert!(matches!(&all[2], Notice::ToolOutput { text, .. } if text.len() <= OUTPUT_BYTES_MAX));
    }

    /// SPEC 6.9: of how far a call has come only the newest waits to be shown.
    #[test]
    fn steps_of_a_call() {
        let notices = Notices::new();
        let step = |n: usize, line: &str| Notice::CallStep {
            call: CallId::nth(1, n),
            tool: "one.t".into(),
            line: line.into(),
        };
        for line in ["1", "2", "3"] {
            notices.push(step(1, line));
        }
        notices.push(step(2, "1"));
        assert_eq!(notices.drain(), [step(1, "3"), step(2, "1")]);
    }
}
