//! The one statement that writes an append: the session's row, the events, and what is derived of them.
//!
//! It writes all of it or, where the session is not at the event that was expected or the lease is another's by now, nothing. So it
//! needs no transaction around it where nothing else has to be asked, and costs one way to the database and back.
//!
//! **The lease** is locked before the session's row is looked at: a take-over comes wholly before, and then nothing is
//! written, or wholly after. Whoever waits here for a row sees it as it is when it gets it (READ COMMITTED). A drive's first and last
//! append take it and give it back by the same statement; one that takes it waits for nobody (`SKIP LOCKED`): who has it, has it.

use super::fail::Failure;
use super::lease::{DATABASE_NOW, ends, lasts_ms};
use super::rows::{self, Words, signed, storable, unsigned};
use crate::index::{SessionIndex, WaitingCall};
use crate::{Hold, Pending};
use aish_core::event::{Body, Event};
use aish_core::id::SessionId;
use deadpool_postgres::GenericClient;
use std::fmt::Write as _;
use tokio_postgres::types::ToSql;

/// What is written.
pub(super) struct Placing<'a> {
    pub(super) session: &'a SessionId,
    /// Where the session must be; 0 if it must not be there.
    pub(super) expected_seq: u64,
    /// As the database has it: of the suspensions, those that wait.
    pub(super) before: &'a SessionIndex,
    /// As it is once the events are there.
    pub(super) after: &'a SessionIndex,
    pub(super) rows: &'a EventRows,
    pub(super) hold: &'a Hold,
    /// By the owner's clock: when a lease that is taken begins.
    pub(super) now: u64,
}

/// What came of it.
pub(super) enum Placed {
    /// Nothing: somebody else has appended, made the session, or has the lease.
    Not,
    /// It is written.
    Written(Option<Taken>),
}

/// A lease that was taken by the way.
pub(super) struct Taken {
    pub(super) fence: u64,
    /// What the database's clock said, in milliseconds since the Unix epoch.
    pub(super) database_now: u64,
}

/// The columns of some events, one list each: as many as there are go in one statement.
#[derive(Default)]
pub(super) struct EventRows {
    /// Tells the append from every other; stands with its first event.
    number: i64,
    seqs: Vec<i64>,
    turns: Vec<i64>,
    times: Vec<i64>,
    versions: Vec<i64>,
    kinds: Vec<String>,
    contents: Vec<String>,
    data: Vec<Option<String>>,
    exact: Vec<Option<Vec<u8>>>,
    words: Vec<Option<String>>,
    /// The model that the last turn among them was begun for.
    model: Option<String>,
}

impl EventRows {
    pub(super) fn new(number: i64, events: &[Event]) -> Self {
        let mut rows = Self {
            number,
            ..Self::default()
        };
        events.iter().for_each(|event| rows.push(event));
        rows.note_model(events);
        rows
    }

    /// Looks for the model among further events, which are in the database already.
    pub(super) fn note_model(&mut self, events: &[Event]) {
        let begun = events.iter().rev().find_map(|event| {
            let Body::TurnStarted(data) = &event.body else {
                return None;
            };
            Some(storable(&data.model).into_owned())
        });
        self.model = begun.or(self.model.take());
    }

    fn push(&mut self, event: &Event) {
        let data = event.body.data_json();
        self.seqs.push(signed(event.seq));
        self.turns.push(signed(event.turn));
        self.times.push(signed(event.time));
        self.versions.push(i64::from(event.version));
        self.kinds.push(storable(event.body.kind()).into_owned());
        self.contents.push(storable(&event.content).into_owned());
        self.data.push((data != "null").then_some(data));
        self.exact.push(rows::exact(&event.content));
        self.words.push(Words::of(event).map(|words| words.vector()));
    }
}

/// Writes it, or nothing.
pub(super) async fn place(client: &impl GenericClient, placing: &Placing<'_>) -> Result<Placed, Failure> {
    let waits = Waits::changed(placing.before, placing.after);
    let parts = waits.parts();
    let statement = client
        .prepare_cached(&text(placing.expected_seq, placing.hold, &parts))
        .await?;
    let (after, rows) = (placing.after, placing.rows);
    let session = storable(placing.session.as_str());
    let first = signed(placing.expected_seq.saturating_add(1));
    let (last, expected) = (signed(after.events), signed(placing.expected_seq));
    let (created, updated) = (signed(after.created), signed(after.updated));
    let (title, directory) = (storable(&after.title), storable(&after.directory));
    let open_turn = after.open_turn.map(signed);
    let (is_waiting, is_to_be_driven, awaits) = (after.is_waiting(), after.is_to_be_driven(), awaits(after));
    let (owner, number) = match placing.hold {
        Hold::Nothing => (None, None),
        Hold::Keeps(lease) | Hold::GivesBack(lease) => (Some(&lease.owner), Some(signed(lease.fence))),
        Hold::Takes { owner, until } => (Some(owner), Some(lasts_ms(placing.now, *until))),
    };
    let owner = owner.map(|owner| storable(&owner.0));
    let mut values: Vec<&(dyn ToSql + Sync)> = vec![
        &session,
        &last,
        &expected,
        &created,
        &updated,
        &title,
        &directory,
        &open_turn,
        &after.served,
        &is_waiting,
        &is_to_be_driven,
        &awaits,
        &rows.model,
        &owner,
        &number,
        &first,
        &rows.number,
        &rows.seqs,
        &rows.turns,
        &rows.times,
        &rows.versions,
        &rows.kinds,
        &rows.contents,
        &rows.data,
        &rows.exact,
        &rows.words,
    ];
    values.extend(parts.iter().flat_map(|part| part.values.iter().copied()));
    let row = client.query_one(&statement, &values).await?;
    if row.try_get::<_, i64>(0)? == 0 {
        return Ok(Placed::Not);
    }
    let fence: Option<i64> = row.try_get(1)?;
    let database_now = unsigned(row.try_get(2)?);
    Ok(Placed::Written(fence.map(|fence| Taken {
        fence: unsigned(fence),
        database_now,
    })))
}

/// Whether the next append has to look at more than the session's row.
fn awaits(index: &SessionIndex) -> bool {
    !index.waiting_calls.is_empty() || index.pending.iter().any(Pending::is_open)
}

/// The owner of a lease and its fence, or how long it lasts where it is yet to be taken; of no lease, nothing.
const OWNER: &str = "$14::text";
const FENCE: &str = "$15::bigint";
const LASTS: &str = FENCE;

/// What the statement does about the lease.
struct LeasePart {
    /// Before the session's row is looked at, as parts that come before it.
    before: String,
    /// What must hold.
    condition: String,
    /// Once the session's row is written, as parts that come after it.
    after: String,
    /// What gives the fence of the lease that was taken.
    taken: &'static str,
}

impl LeasePart {
    fn of(hold: &Hold, expected_seq: u64) -> Self {
        let taken = "NULL::bigint";
        let held = |lock: &str| {
            format!(
                "held AS MATERIALIZED (SELECT FROM aish.leases
                    WHERE session = $1 AND owner = {OWNER} AND fence = {FENCE} {lock}), "
            )
        };
        let is_held = "EXISTS (SELECT FROM held)".to_owned();
        match hold {
            Hold::Nothing => Self {
                before: String::new(),
                condition: format!("{OWNER} IS NULL AND {FENCE} IS NULL"),
                after: String::new(),
                taken,
            },
            Hold::Keeps(_) => Self {
                before: held("FOR SHARE"),
                condition: is_held,
                after: String::new(),
                taken,
            },
            Hold::GivesBack(_) => Self {
                before: held("FOR NO KEY UPDATE"),
                condition: is_held,
                after: format!(
                    ", given_back AS (UPDATE aish.leases SET owner = NULL FROM placed
                        WHERE session = $1 AND owner = {OWNER} AND fence = {FENCE})"
                ),
                taken,
            },
            Hold::Takes { .. } => Self {
                before: String::new(),
                condition: "true".to_owned(),
                after: taking(expected_seq),
                taken: "(SELECT fence FROM taken)",
            },
        }
    }
}

/// A session that has just been made has no lease, unless somebody thought of it before: then it is theirs. Where there is none behind
/// an old session's name, it is left to [`super::lease`].
fn taking(expected_seq: u64) -> String {
    let until = ends(LASTS);
    if expected_seq == 0 {
        return format!(
            ", taken AS (INSERT INTO aish.leases (session, owner, fence, until) SELECT $1, {OWNER}, 1, {until} FROM placed
                ON CONFLICT (session) DO NOTHING RETURNING fence)"
        );
    }
    format!(
        ", free AS MATERIALIZED (SELECT FROM aish.leases
                WHERE session = $1 AND (owner IS NULL OR until <= {DATABASE_NOW}) FOR NO KEY UPDATE SKIP LOCKED),
            taken AS (UPDATE aish.leases SET owner = {OWNER}, fence = leases.fence + 1, until = {until}
                FROM placed, free WHERE leases.session = $1 RETURNING leases.fence)"
    )
}

/// A new session's row.
const BEGIN: &str = "INSERT INTO aish.sessions
        (id, last_seq, created, updated, title, directory, open_turn, served, waiting, to_drive, awaits, model)
    SELECT $1, $2, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13 WHERE $3 = 0::bigint AND ";
/// That of one that is where it is expected. Without a new model the old one stays.
const GO_ON: &str = "UPDATE aish.sessions SET last_seq = $2, created = $4, updated = $5, title = $6, directory = $7,
        open_turn = $8, served = $9, waiting = $10, to_drive = $11, awaits = $12, model = coalesce($13, model)
    WHERE id = $1 AND last_seq = $3 AND ";

const EVENTS: &str = "INSERT INTO aish.events (session, seq, turn, time, version, kind, content, data, exact, words, write)
    SELECT $1, e.seq, e.turn, e.time, e.version, e.kind, e.content, e.data, e.exact, e.words::tsvector,
        CASE WHEN e.seq = $16 THEN $17::bigint END
    FROM placed, unnest($18::bigint[], $19::bigint[], $20::bigint[], $21::bigint[], $22::text[], $23::text[], $24::text[],
        $25::bytea[], $26::text[]) AS e (seq, turn, time, version, kind, content, data, exact, words)";

/// The number of the first parameter behind those above.
const FIRST_FREE: usize = 27;

/// A session's first append differs from the later ones, and most change nothing of what waits.
fn text(expected_seq: u64, hold: &Hold, parts: &[Part<'_>]) -> String {
    let LeasePart {
        before,
        condition,
        after,
        taken,
    } = LeasePart::of(hold, expected_seq);
    let row = if expected_seq == 0 {
        format!("{BEGIN}{condition} ON CONFLICT (id) DO NOTHING")
    } else {
        format!("{GO_ON}{condition}")
    };
    let mut text = format!("WITH {before}placed AS ({row} RETURNING 1), written AS ({EVENTS}){after}");
    let mut first = FIRST_FREE;
    for part in parts {
        let (name, sql) = (part.name, (part.sql)(first));
        // Writing to a string cannot fail.
        let _ = write!(text, ", {name} AS ({sql})");
        first += part.values.len();
    }
    let _ = write!(text, " SELECT (SELECT count(*) FROM placed), {taken}, {DATABASE_NOW}");
    text
}

/// One more thing that the statement does.
struct Part<'a> {
    name: &'static str,
    /// What it does, its parameters beginning with that number.
    sql: fn(usize) -> String,
    values: Vec<&'a (dyn ToSql + Sync)>,
}

/// Removes the calls behind those that wait now.
fn drop_calls(n: usize) -> String {
    format!("DELETE FROM aish.waiting_calls USING placed WHERE session = $1 AND position > ${n}::bigint")
}

/// Those that wait take the places of those that did.
fn put_calls(n: usize) -> String {
    let (calls, need_answers, at_client) = (n, n + 1, n + 2);
    format!(
        "INSERT INTO aish.waiting_calls (session, position, call, needs_answer, at_client)
         SELECT $1, w.position, w.call, w.needs_answer, w.at_client
         FROM placed, unnest(${calls}::text[], ${need_answers}::bool[], ${at_client}::bool[]) WITH ORDINALITY
             AS w (call, needs_answer, at_client, position)
         ON CONFLICT (session, position) DO UPDATE
             SET call = excluded.call, needs_answer = excluded.needs_answer, at_client = excluded.at_client"
    )
}

/// An id that was used before is an error of its maker: the events are the truth, and the first use stands.
fn open_waits(n: usize) -> String {
    let (ids, seqs, calls, expire, states) = (n, n + 1, n + 2, n + 3, n + 4);
    format!(
        "INSERT INTO aish.pending (continuation, session, seq, call, expires, state)
         SELECT p.continuation, $1, p.seq, p.call, p.expires, p.state
         FROM placed, unnest(${ids}::text[], ${seqs}::bigint[], ${calls}::text[], ${expire}::bigint[], ${states}::text[])
             AS p (continuation, seq, call, expires, state)
         ON CONFLICT (continuation) DO NOTHING"
    )
}

fn settle_waits(n: usize) -> String {
    let (ids, states) = (n, n + 1);
    format!(
        "UPDATE aish.pending SET state = s.state
         FROM placed, unnest(${ids}::text[], ${states}::text[]) AS s (continuation, state)
         WHERE pending.continuation = s.continuation AND session = $1 AND pending.state = 'open'"
    )
}

/// What changed of the calls that wait and of the suspensions, as columns.
#[derive(Default)]
struct Waits {
    calls_before: usize,
    calls_changed: bool,
    call_count: i64,
    calls: Vec<String>,
    need_answers: Vec<bool>,
    at_client: Vec<bool>,
    opened: Vec<String>,
    opened_at: Vec<i64>,
    opened_for: Vec<Option<String>>,
    expire: Vec<Option<i64>>,
    opened_as: Vec<&'static str>,
    settled: Vec<String>,
    settled_as: Vec<&'static str>,
}

impl Waits {
    fn changed(before: &SessionIndex, after: &SessionIndex) -> Self {
        let mut waits = Self {
            calls_before: before.waiting_calls.len(),
            calls_changed: before.waiting_calls != after.waiting_calls,
            ..Self::default()
        };
        for pending in &after.pending {
            let is_known = before
                .pending
                .iter()
                .any(|known| known.continuation == pending.continuation);
            if !is_known {
                waits.open(pending);
            } else if !pending.is_open() {
                waits.settled.push(storable(pending.continuation.as_str()).into_owned());
                waits.settled_as.push(pending.state.as_str());
            }
        }
        after.waiting_calls.iter().for_each(|waiting| waits.call(waiting));
        waits
    }

    fn call(&mut self, waiting: &WaitingCall) {
        self.call_count += 1;
        self.calls.push(storable(waiting.call.as_str()).into_owned());
        self.need_answers.push(waiting.needs_answer);
        self.at_client.push(waiting.at_client);
    }

    fn open(&mut self, pending: &Pending) {
        self.opened.push(storable(pending.continuation.as_str()).into_owned());
        self.opened_at.push(signed(pending.seq));
        self.opened_for
            .push(pending.call.as_ref().map(|call| storable(call.as_str()).into_owned()));
        self.expire.push(pending.expires.map(signed));
        self.opened_as.push(pending.state.as_str());
    }

    /// What has to be done about it: most appends change nothing of it, and each part costs.
    fn parts(&self) -> Vec<Part<'_>> {
        let mut parts: Vec<Part<'_>> = Vec::new();
        let mut add = |name, sql, values| parts.push(Part { name, sql, values });
        if self.calls_changed && self.calls_before > self.calls.len() {
            add(
                "dropped",
                drop_calls as fn(usize) -> String,
                vec![&self.call_count as &(dyn ToSql + Sync)],
            );
        }
        if self.calls_changed && !self.calls.is_empty() {
            add(
                "called",
                put_calls,
                vec![&self.calls, &self.need_answers, &self.at_client],
            );
        }
        if !self.opened.is_empty() {
            let values: Vec<&(dyn ToSql + Sync)> = vec![
                &self.opened,
                &self.opened_at,
                &self.opened_for,
                &self.expire,
                &self.opened_as,
            ];
            add("opened", open_waits, values);
        }
        if !self.settled.is_empty() {
            add("settled", settle_waits, vec![&self.settled, &self.settled_as]);
        }
        parts
    }
}
