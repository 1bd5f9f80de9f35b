//! What PostgreSQL's failures mean: whether to try again, whether the connection is still of use, and what the caller is told.
//! Nothing of a failing statement's values is told: they may be what was said.

use super::address::PostgresUrl;
use crate::StoreError;
use deadpool_postgres::PoolError;
use std::error::Error as _;
use std::{fmt, io};
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// A failure inside a piece of work on the ledger.
#[derive(Debug)]
pub(super) enum Failure {
    /// The database said no, or was not there.
    Sql(Error),
    /// The work itself failed, told in the store's own terms.
    Store(StoreError),
    /// No connection could be had.
    Pool(PoolError),
    /// The database did not answer in time.
    Late(&'static str),
    /// Somebody else made the same session at the same moment.
    Raced,
    /// The connection was lost after the database was told to commit: whether it did is not known.
    Unknown(Box<Self>),
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

impl From<PoolError> for Failure {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => Self::Sql(error),
            error @ (PoolError::Timeout(_)
            | PoolError::Closed
            | PoolError::NoRuntimeSpecified
            | PoolError::PostCreateHook(_)) => Self::Pool(error),
        }
    }
}

impl Failure {
    /// True when the same work may well succeed in a moment.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Self::Sql(error) => is_passing(error),
            Self::Pool(PoolError::PostCreateHook(deadpool_postgres::HookError::Backend(error))) => is_passing(error),
            Self::Pool(PoolError::Timeout(_)) | Self::Late(_) | Self::Raced | Self::Unknown(_) => true,
            Self::Store(_) | Self::Pool(_) => false,
        }
    }

    /// True when the database itself said no, for good: then nothing of the statement is kept. A connection that broke, or an answer
    /// that cannot be read, says nothing about that.
    pub(super) fn is_refusal(&self) -> bool {
        match self {
            Self::Sql(error) => error.as_db_error().is_some() && !is_passing(error),
            Self::Store(_) | Self::Pool(_) | Self::Late(_) | Self::Raced | Self::Unknown(_) => false,
        }
    }

    /// True when it would have written where nothing may be.
    pub(super) fn is_read_only(&self) -> bool {
        match self {
            Self::Sql(error) => error.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION),
            Self::Unknown(failure) => failure.is_read_only(),
            Self::Store(_) | Self::Pool(_) | Self::Late(_) | Self::Raced => false,
        }
    }

    /// True when the work failed for a reason of its own: the connection is as good as before.
    pub(super) fn leaves_connection(&self) -> bool {
        matches!(self, Self::Store(_) | Self::Raced)
    }

    /// What the caller is told. `attempt` reads like `appending to`.
    pub(super) fn explain(self, attempt: &str, url: &PostgresUrl) -> StoreError {
        let told = match self {
            Self::Store(error) => return error,
            Self::Sql(error) => tell(&error),
            Self::Pool(PoolError::PostCreateHook(deadpool_postgres::HookError::Backend(error))) => tell(&error),
            Self::Pool(PoolError::Timeout(_)) => {
                "no connection became free in time: the database is slow, or there is more to do than it can".to_owned()
            }
            Self::Pool(error) => error.to_string(),
            Self::Late(what) => format!(
                "{what} took longer than it may: it has too much to do, or somebody holds a lock on the ledger's tables"
            ),
            Self::Raced => "others wrote to the session all the time".to_owned(),
            Self::Unknown(failure) => return failure.explain(attempt, url),
        };
        StoreError::Io {
            attempt: format!("{attempt} the ledger {url}"),
            source: Box::new(Told(told)),
        }
    }
}

/// The database was lost when it was told to commit, and did not come back in time to say whether it had.
pub(super) fn not_known(url: &PostgresUrl, because: &dyn std::error::Error) -> StoreError {
    StoreError::Io {
        attempt: format!("appending to the ledger {url}"),
        source: Box::new(Told(format!(
            "{because}; whether the events are kept is not known: load the session again"
        ))),
    }
}

/// A failure in words.
#[derive(Debug)]
struct Told(String);

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Told {}

fn is_passing(error: &Error) -> bool {
    match error.code() {
        Some(code) => {
            // Class 08: the connection. 57P: somebody stopped the server or the connection, or it is just starting.
            ["08", "57P"].iter().any(|class| code.code().starts_with(class))
                || [
                    &SqlState::T_R_SERIALIZATION_FAILURE,
                    &SqlState::T_R_DEADLOCK_DETECTED,
                    &SqlState::LOCK_NOT_AVAILABLE,
                    &SqlState::UNIQUE_VIOLATION,
                    &SqlState::TOO_MANY_CONNECTIONS,
                    &SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
                    // Another server writes by now: a new connection may find it.
                    &SqlState::READ_ONLY_SQL_TRANSACTION,
                ]
                .contains(&code)
        }
        None => error.is_closed() || io_kind(error).is_some_and(is_passing_io),
    }
}

fn io_kind(error: &Error) -> Option<io::ErrorKind> {
    let source = error.source()?.downcast_ref::<io::Error>()?;
    Some(source.kind())
}

/// A certificate that does not fit is no better in a moment; a server that is not there may be.
fn is_passing_io(kind: io::ErrorKind) -> bool {
    !matches!(
        kind,
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::PermissionDenied
    )
}

/// The driver's own text says only that there was an error; what it was are its sources.
fn tell(error: &Error) -> String {
    let Some(told) = error.as_db_error() else {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            text = format!("{text}: {cause}");
            source = cause.source();
        }
        return text;
    };
    let code = told.code();
    let advice = if *code == SqlState::INVALID_PASSWORD || *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION {
        ". Check user and password of the address, and pg_hba.conf"
    } else if *code == SqlState::INVALID_CATALOG_NAME {
        ". Make it with `createdb`"
    } else if *code == SqlState::INSUFFICIENT_PRIVILEGE {
        ". Its user must own the schema `aish`, or may make one: GRANT CREATE ON DATABASE … TO …; to look only, \
         GRANT USAGE ON SCHEMA aish and SELECT ON ALL TABLES IN SCHEMA aish are enough"
    } else if *code == SqlState::DISK_FULL {
        ". The database's disk is full"
    } else {
        ""
    };
    // Its detail and its context may quote values.
    format!("{} ({}){advice}", told.message(), code.code())
}
