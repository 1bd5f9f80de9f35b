//! Looking at a ledger's file as a person does who asks whether all is well: its format, how much is in it, and whether it is
//! sound. Nothing is changed.

use super::fail::Failure;
use super::schema;
use rusqlite::Connection;

/// Bytes of a file that is checked page by page; reading more takes longer than anybody waits.
const CHECKED_BYTES_MAX: u64 = 64 << 20;

/// How a ledger's file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// The version of its format.
    pub format: usize,
    /// The version of SQLite that reads it.
    pub sqlite: &'static str,
    /// Sessions in it.
    pub sessions: u64,
    /// Bytes of the file, without what waits in its log.
    pub bytes: u64,
    /// Whether its pages are in order.
    pub pages: Pages,
}

/// Whether the pages of a file are in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pages {
    /// They are.
    Sound,
    /// They are not: SQLite's first complaint.
    Damaged(String),
    /// The file is too large to be looked through in a moment.
    NotChecked,
}

pub(super) fn of(connection: &Connection) -> Result<Health, Failure> {
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let count = |sql: &str| number(sql).map(|count| u64::try_from(count).unwrap_or_default());
    let bytes = count("PRAGMA page_count")?.saturating_mul(count("PRAGMA page_size")?);
    let pages = if bytes > CHECKED_BYTES_MAX {
        Pages::NotChecked
    } else {
        match connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0))? {
            word if word == "ok" => Pages::Sound,
            complaint => Pages::Damaged(complaint),
        }
    };
    Ok(Health {
        format: schema::version(connection)?,
        sqlite: rusqlite::version(),
        sessions: count("SELECT COUNT(*) FROM sessions")?,
        bytes,
        pages,
    })
}
