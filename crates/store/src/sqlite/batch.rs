//! Rows on their way from the store's thread to whoever asked: copied into one buffer there, decoded here. Of a long
//! session, one core reads while the other decodes.

use crate::StoreError;
use crate::row::Columns;
use aish_core::event::Event;
use aish_core::id::SessionId;
use std::ops::Range;

/// Some events of one session, in order, undecoded.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// The texts of all rows, one behind the other.
    text: String,
    rows: Vec<RowSpan>,
}

/// The numbers of a row, and where its texts are.
#[derive(Debug)]
struct RowSpan {
    seq: u64,
    turn: u64,
    time: u64,
    version: u32,
    kind: Range<usize>,
    content: Range<usize>,
    data: Range<usize>,
}

impl Batch {
    pub(super) fn push(&mut self, columns: Columns<'_>) {
        let mut keep = |text: &str| {
            let start = self.text.len();
            self.text.push_str(text);
            start..self.text.len()
        };
        let row = RowSpan {
            seq: columns.seq,
            turn: columns.turn,
            time: columns.time,
            version: columns.version,
            kind: keep(columns.kind),
            content: keep(columns.content),
            data: keep(columns.data),
        };
        self.rows.push(row);
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Bytes of text in it.
    pub(super) fn text_bytes(&self) -> usize {
        self.text.len()
    }

    /// Decodes every row behind `events`.
    pub(super) fn decode_into(&self, session: &SessionId, events: &mut Vec<Event>) -> Result<(), StoreError> {
        events.reserve(self.rows.len());
        for row in &self.rows {
            events.push(self.columns(row).decode(session)?);
        }
        Ok(())
    }

    fn columns(&self, row: &RowSpan) -> Columns<'_> {
        let text = |range: &Range<usize>| self.text.get(range.clone()).unwrap_or_default();
        Columns {
            seq: row.seq,
            turn: row.turn,
            time: row.time,
            version: row.version,
            kind: text(&row.kind),
            content: text(&row.content),
            data: text(&row.data),
        }
    }
}
