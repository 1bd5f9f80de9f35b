//! Batches of events: the ledger read a few at a time, by their bytes and not only by their number, since one may be a megabyte.
//!
//! A batch begins small and doubles for as long as it stays far below its bound, so that a session of long events is read one by one
//! and one of short events in a few reads.

use aish_core::id::SessionId;
use aish_engine::{Conversations, RawEvent, ServeError};

/// Bytes of a batch: it is not begun with another event once it has so many.
const BATCH_BYTES_MAX: usize = 256 * 1024;
/// Events of a batch.
const BATCH_EVENTS_MAX: usize = 16;
/// Events of the first batch.
const FIRST_EVENTS: usize = 4;

/// Reads a session batch by batch.
pub(crate) struct Batches {
    events_next: usize,
}

/// What was read at once.
pub(crate) struct Batch {
    pub(crate) events: Vec<RawEvent>,
    /// Whether there was nothing behind it.
    pub(crate) is_last: bool,
}

impl Batches {
    pub(crate) fn new() -> Self {
        Self {
            events_next: FIRST_EVENTS,
        }
    }

    /// The events after a place, at most `limit` and as many as a batch holds, but one at least if there is one.
    pub(crate) async fn next(
        &mut self,
        conversations: &Conversations,
        (session, after): (&SessionId, u64),
        limit: usize,
    ) -> Result<Batch, ServeError> {
        let wanted = self.events_next.min(limit);
        let mut events = conversations.events(session, after, wanted).await?;
        let is_whole = events.len() < wanted;
        let mut bytes = 0;
        let mut kept = 0;
        for event in &events {
            if kept > 0 && bytes >= BATCH_BYTES_MAX {
                break;
            }
            bytes += event.content.len() + event.data.len();
            kept += 1;
        }
        let is_last = is_whole && kept == events.len();
        events.truncate(kept);
        self.events_next = if bytes >= BATCH_BYTES_MAX {
            1
        } else if bytes < BATCH_BYTES_MAX / 4 {
            (self.events_next * 2).min(BATCH_EVENTS_MAX)
        } else {
            self.events_next
        };
        Ok(Batch { events, is_last })
    }
}
