//! What SQLite's failures mean to a caller: somebody's data is not ours to read ([`StoreError::Format`]), or the disk
//! failed ([`StoreError::Io`]). Both name the file and what was attempted.

use crate::StoreError;
use rusqlite::{Error, ErrorCode, ffi};
use std::path::Path;

/// A failure inside a piece of work on the ledger: SQLite's, or already told in the store's own terms.
#[derive(Debug)]
pub(super) enum Failure {
    /// The database said no.
    Sql(Error),
    /// The work itself did.
    Store(StoreError),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Sql(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Failure {
    /// What the caller is told. `attempt` reads like `appending to`.
    pub(super) fn explain(self, attempt: &str, path: &Path) -> StoreError {
        match self {
            Self::Store(error) => error,
            Self::Sql(error) => explain_sql(error, attempt, path),
        }
    }

    /// The same failure, for one more of those whom it concerns.
    pub(super) fn again(&self) -> Self {
        match self {
            Self::Store(error) => Self::Store(error.again()),
            Self::Sql(Error::SqliteFailure(code, message)) => Self::Sql(Error::SqliteFailure(*code, message.clone())),
            Self::Sql(other) => {
                let unnamed = ffi::Error::new(ffi::SQLITE_ERROR);
                Self::Sql(Error::SqliteFailure(unnamed, Some(other.to_string())))
            }
        }
    }

    /// True when another process held the file for longer than SQLite itself waits.
    pub(super) fn is_busy(&self) -> bool {
        matches!(self, Self::Sql(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy))
    }

    /// True when there was no room for what was to be written: for less there may be.
    pub(super) fn is_disk_full(&self) -> bool {
        matches!(self, Self::Sql(error) if error.sqlite_error_code() == Some(ErrorCode::DiskFull))
    }

    /// True when the connection may be of no use any more, and a new one may be once the disk is back.
    pub(super) fn breaks_connection(&self) -> bool {
        match self {
            Self::Store(_) => false,
            Self::Sql(error) => match error.sqlite_error_code() {
                Some(code) => !matches!(code, ErrorCode::DatabaseBusy | ErrorCode::ConstraintViolation),
                None => false,
            },
        }
    }
}

fn explain_sql(error: Error, attempt: &str, path: &Path) -> StoreError {
    let file = path.display();
    let advice = match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => format!(
            "{file} is not a ledger: it is no SQLite database. Move it away, or set AISH_HOME to another directory"
        ),
        Some(ErrorCode::DatabaseCorrupt) => format!(
            "the ledger {file} is damaged ({error}). Move it away to start a new one; `sqlite3 {file} .recover` may save \
             what is in it"
        ),
        Some(ErrorCode::ReadOnly) => format!(
            "the ledger {file} cannot be written: the file or its directory is read-only. Make it writable, or set \
             AISH_HOME to another directory"
        ),
        _ => {
            return StoreError::Io {
                attempt: format!("{attempt} the ledger {file}"),
                source: Box::new(error),
            };
        }
    };
    StoreError::Format(advice)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn check(result_code: i32, expect: &str) {
        let error = Error::SqliteFailure(ffi::Error::new(result_code), None);
        let told = Failure::from(error)
            .explain("appending to", Path::new("/data/ledger.db"))
            .to_string();
        assert!(told.contains(expect) && told.contains("/data/ledger.db"), "{told}");
    }

    /// SPEC 10.4: a failure says which file, what was tried, what is wrong and what to do.
    #[test]
    fn failures_are_told() {
        check(ffi::SQLITE_NOTADB, "no SQLite database. Move it away");
        check(ffi::SQLITE_CORRUPT, "is damaged");
        check(ffi::SQLITE_READONLY, "read-only. Make it writable");
        check(ffi::SQLITE_IOERR, "appending to the ledger");
        check(ffi::SQLITE_FULL, "appending to the ledger");
    }
}
