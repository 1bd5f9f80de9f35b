//! Full-text search in the file (FTS5).
//!
//! The index is made by the first search and brought up to date by each: an append pays nothing for it, and neither does
//! somebody who never searches. It holds no text of its own, only where words stand.

use super::fail::Failure;
use super::schema::Place;
use crate::Hit;
use crate::query::{Query, snippet};
use aish_core::id::SessionId;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

/// `indexed` counts how far each session is in the index. What a typed command printed is no part of what is searched.
const TABLES: &str = "
CREATE VIRTUAL TABLE IF NOT EXISTS said USING fts5(text, content = '', tokenize = 'unicode61 remove_diacritics 2');
CREATE TABLE IF NOT EXISTS indexed (number INTEGER PRIMARY KEY, seq INTEGER NOT NULL);
";

/// The text of a row that is searched.
const TEXT: &str = "CASE WHEN kind = 'command' AND json_valid(data) THEN data ->> '$.line' ELSE content END";

/// Finds events that hold everything that is looked for, as far as they are indexed.
pub(super) fn search(connection: &Connection, query: &Query, limit: usize) -> Result<Vec<Hit>, Failure> {
    let Some(first) = query.first_word() else {
        return Ok(Vec::new());
    };
    // Quoted, a term is text to FTS5, whatever it holds; terms hold no quotes.
    let terms: Vec<String> = query.terms.iter().map(|term| format!("\"{term}\"")).collect();
    let mut statement = connection.prepare_cached(&format!(
        "SELECT sessions.id, place, time, kind, {TEXT} FROM said JOIN events ON place = said.rowid
         JOIN sessions ON number = place >> 32 WHERE said MATCH ?1 ORDER BY bm25(said), time DESC LIMIT ?2"
    ))?;
    let found = statement.query_map(params![terms.join(" AND "), limit], |row| {
        Ok(Hit {
            session: SessionId::new(row.get::<_, String>(0)?),
            seq: Place(row.get(1)?).seq(),
            time: row.get(2)?,
            kind: row.get(3)?,
            snippet: snippet(&row.get::<_, String>(4)?, first),
        })
    })?;
    Ok(found.collect::<Result<_, _>>()?)
}

/// The numbers of the sessions in which something was said, or may have been, since they were last indexed.
pub(super) fn unindexed(connection: &Connection) -> Result<Vec<i64>, Failure> {
    connection.execute_batch(TABLES)?;
    let behind = connection
        .prepare_cached(
            "SELECT summaries.number FROM summaries LEFT JOIN indexed USING (number) WHERE events > coalesce(indexed.seq, 0)",
        )?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    Ok(behind)
}

/// Takes in what was said in these sessions. Each has a transaction of its own, so that nobody waits long for the file, and how
/// far it is indexed is read there: somebody else may have done it meanwhile.
pub(super) fn index(connection: &mut Connection, sessions: &[i64]) -> Result<(), Failure> {
    for number in sessions {
        let transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
        index_session(&transaction, *number)?;
        transaction.commit()?;
    }
    Ok(())
}

fn index_session(transaction: &Connection, number: i64) -> rusqlite::Result<()> {
    let (seq, events): (u64, u64) = transaction
        .prepare_cached(
            "SELECT coalesce(indexed.seq, 0), events FROM summaries LEFT JOIN indexed USING (number) WHERE summaries.number = ?1",
        )?
        .query_row([number], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if events <= seq {
        return Ok(());
    }
    transaction
        .prepare_cached(&format!(
            "INSERT INTO said (rowid, text) SELECT place, {TEXT} FROM events
             WHERE place > ?1 AND place <= ?2 AND kind IN ('user', 'assistant', 'command')"
        ))?
        .execute(params![Place::new(number, seq).0, Place::new(number, events).0])?;
    transaction
        .prepare_cached("INSERT OR REPLACE INTO indexed (number, seq) VALUES (?1, ?2)")?
        .execute(params![number, events])?;
    Ok(())
}
