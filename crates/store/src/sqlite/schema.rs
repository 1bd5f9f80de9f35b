//! The tables of the ledger's file, and how a file of an earlier version becomes one of this version.
//!
//! `user_version` counts the migrations a file has seen; `application_id` tells a ledger from any other SQLite
//! database. A migration, once released, is never changed: a new one is added behind it, and a file as the earlier version
//! wrote it is added to `tests/ledgers`.
//!
//! **An event's place.** Sessions are numbered, and the primary key of an event is `number * 2^32 + seq`
//! ([`Place`]). SQLite keeps a table in the order of such a key, so that the events of a session lie side by side on the
//! disk, whichever sessions grew between them, and the key's uniqueness is that of `(session, seq)` (SPEC 2.11). The view
//! `ledger` shows the events with their session and seq, for people with a database browser.

use rusqlite::{Connection, Transaction, TransactionBehavior};

/// `aish` in ASCII.
pub(super) const APPLICATION_ID: i32 = 0x6169_7368;

/// What each version added, from version 1.
const MIGRATIONS: [&str; 3] = [V1, V2, V3];

/// The version this program writes.
pub(super) const SCHEMA_VERSION: usize = MIGRATIONS.len();

const V1: &str = "
CREATE TABLE sessions (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE
);
CREATE TABLE events (
    place INTEGER PRIMARY KEY,
    turn INTEGER NOT NULL,
    time INTEGER NOT NULL,
    version INTEGER NOT NULL,
    kind TEXT NOT NULL,
    content TEXT NOT NULL,
    data TEXT
);
CREATE VIEW ledger AS
    SELECT sessions.id AS session, events.place & 4294967295 AS seq, turn, time, version, kind, content, data
    FROM events JOIN sessions ON sessions.number = events.place >> 32;
CREATE TABLE leases (
    session TEXT PRIMARY KEY,
    owner TEXT,
    fence INTEGER NOT NULL,
    until INTEGER NOT NULL
) WITHOUT ROWID;
-- The tables below are derived from the events and can be rebuilt from them.
CREATE TABLE summaries (
    number INTEGER PRIMARY KEY,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    events INTEGER NOT NULL,
    title TEXT NOT NULL,
    directory TEXT NOT NULL,
    open_turn INTEGER,
    waiting INTEGER NOT NULL
);
CREATE TABLE waiting_calls (
    number INTEGER NOT NULL,
    position INTEGER NOT NULL,
    call TEXT NOT NULL,
    needs_answer INTEGER NOT NULL,
    at_client INTEGER NOT NULL,
    PRIMARY KEY (number, position)
) WITHOUT ROWID;
CREATE TABLE pending (
    continuation TEXT PRIMARY KEY,
    number INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    call TEXT,
    state TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX pending_open ON pending (number, seq) WHERE state = 'open';
";

/// The lines that people typed, by time. The index holds all that is asked of them, so that looking back at thousands never
/// reads the events themselves, whose outputs may be long. Text that cannot be read as JSON is no reason not to open a file.
const V2: &str = "
CREATE INDEX typed ON events (
    time,
    kind,
    substr(CASE WHEN kind = 'command' AND json_valid(data) THEN data ->> '$.line' ELSE content END, 1, 16385),
    CASE WHEN kind = 'command' AND json_valid(data) THEN data ->> '$.directory' END
) WHERE kind IN ('user', 'command');
";

/// Turns of clients elsewhere: who has to drive them on, until when they wait, and which requests began them or answered them.
const V3: &str = "
ALTER TABLE summaries ADD COLUMN served INTEGER NOT NULL DEFAULT 0;
CREATE INDEX to_be_driven ON summaries (updated) WHERE served AND open_turn IS NOT NULL AND NOT waiting;
ALTER TABLE pending ADD COLUMN expires INTEGER;
CREATE INDEX pending_expires ON pending (expires) WHERE state = 'open';
CREATE TABLE requests (
    key TEXT PRIMARY KEY,
    number INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    digest TEXT NOT NULL
) WITHOUT ROWID;
";

/// The number of a session in this file and an event's seq, as one integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(pub(super) i64);

impl Place {
    /// Sequence numbers take the lower half.
    const SEQ_BITS: u32 = 32;

    /// The last seq a session can have.
    pub(super) const SEQ_MAX: u64 = (1 << Self::SEQ_BITS) - 1;

    /// A seq past the last one names the last one: no event is ever after it.
    pub(super) fn new(number: i64, seq: u64) -> Self {
        let seq = i64::try_from(seq.min(Self::SEQ_MAX)).unwrap_or(i64::MAX);
        Self((number << Self::SEQ_BITS) | seq)
    }

    /// The place of a session's last possible event.
    pub(super) fn last_of(number: i64) -> Self {
        Self::new(number, Self::SEQ_MAX)
    }

    /// The seq.
    pub(super) fn seq(self) -> u64 {
        u64::try_from(self.0).unwrap_or_default() & Self::SEQ_MAX
    }
}

/// The version of a file; 0 for an empty one.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<usize> {
    connection
        .query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0))
        .map(|version| {
            // A negative version is none of ours: as good as one from the future.
            usize::try_from(version).unwrap_or(usize::MAX)
        })
}

/// Brings a file to this version. Of several processes that try at once one does it, the others see it done.
pub(super) fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
    let reached = version(&transaction)?;
    for migration in MIGRATIONS.iter().skip(reached) {
        transaction.execute_batch(migration)?;
    }
    if reached < SCHEMA_VERSION {
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
    }
    transaction.commit()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    /// SPEC 2.11: no two events of any sessions share a place, and places sort by session, then seq.
    #[test]
    fn places_are_unique_and_sorted() {
        let places = [
            Place::new(1, 1),
            Place::new(1, 2),
            Place::last_of(1),
            Place::new(2, 1),
            Place::last_of(i64::from(i32::MAX)),
        ];
        assert!(places.is_sorted_by(|a, b| a.0 < b.0));
        assert_eq!(Place::new(7, 41).seq(), 41);
        assert_eq!(Place::last_of(7), Place::new(7, u64::MAX));
    }
}
