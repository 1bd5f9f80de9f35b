//! The tables of the ledger in a database, and how those of an earlier version become those of this one.
//!
//! They live in a schema of their own, `aish`, so that a database may be shared with others. `aish.format` counts the migrations
//! it has seen. A migration, once released, is never changed: a new one is added behind it. Of several servers that start at
//! once one migrates, under an advisory lock, and the others see it done. Whoever only looks makes and migrates nothing:
//! what is there must be of this version.
//!
//! **Text to the byte.** PostgreSQL's text holds every character but NUL, and `jsonb` would not keep the order of keys: an
//! event's data is text, and a content with NUL in it is kept in `exact` as well, as bytes. Ids sort by their bytes.

use super::address::PostgresUrl;
use super::fail::Failure;
use crate::StoreError;
use deadpool_postgres::{GenericClient, Object, Transaction};

/// What each version added, from version 1.
const MIGRATIONS: [&str; 1] = [V1];

/// The first PostgreSQL that is served. The one before has all that is asked of it as well (`MATERIALIZED`), but gets no
/// repairs any more.
const SERVER_VERSION_MIN: i32 = 130_000;
/// What a version of PostgreSQL is counted in.
const SERVER_VERSION_UNIT: i32 = 10_000;

/// `aish` in ASCII: whoever migrates holds this lock.
const MIGRATION_LOCK: i64 = 0x6169_7368;

/// Waits for another server's migration may take longer than any other statement, in milliseconds.
const MIGRATION_TIMEOUT_MS: u32 = 300_000;

const V1: &str = r#"
CREATE TABLE aish.events (
    session text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    turn bigint NOT NULL,
    time bigint NOT NULL,
    version bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    content text COLLATE "C" NOT NULL,
    data text COLLATE "C",
    -- The content's bytes, where a NUL in it could not be kept as text.
    exact bytea,
    -- Which append wrote it, with the first event of each: how a lost answer to COMMIT is made good.
    write bigint,
    -- The words to search for, with their places.
    words tsvector,
    PRIMARY KEY (session, seq)
);
CREATE INDEX events_words ON aish.events USING gin (words) WHERE words IS NOT NULL;
CREATE INDEX events_typed ON aish.events (time DESC, session DESC, seq DESC) WHERE kind IN ('user', 'command');
CREATE TABLE aish.leases (
    session text COLLATE "C" PRIMARY KEY,
    owner text,
    fence bigint NOT NULL,
    until bigint NOT NULL
);
-- The tables below are derived from the events and can be rebuilt from them.
CREATE TABLE aish.sessions (
    id text COLLATE "C" PRIMARY KEY,
    last_seq bigint NOT NULL,
    created bigint NOT NULL,
    updated bigint NOT NULL,
    title text NOT NULL,
    directory text COLLATE "C" NOT NULL,
    open_turn bigint,
    served boolean NOT NULL,
    waiting boolean NOT NULL,
    to_drive boolean NOT NULL,
    -- Whether it has rows in waiting_calls, or open ones in pending.
    awaits boolean NOT NULL,
    -- The model its last turn was begun for.
    model text COLLATE "C"
);
CREATE INDEX sessions_updated ON aish.sessions (updated DESC, id DESC);
CREATE INDEX sessions_to_drive ON aish.sessions (updated) WHERE to_drive;
CREATE TABLE aish.waiting_calls (
    session text COLLATE "C" NOT NULL,
    position bigint NOT NULL,
    call text NOT NULL,
    needs_answer boolean NOT NULL,
    at_client boolean NOT NULL,
    PRIMARY KEY (session, position)
);
CREATE TABLE aish.pending (
    continuation text COLLATE "C" PRIMARY KEY,
    session text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    call text,
    expires bigint,
    state text NOT NULL
);
CREATE INDEX pending_open ON aish.pending (session, seq) WHERE state = 'open';
CREATE INDEX pending_expires ON aish.pending (expires) WHERE state = 'open' AND expires IS NOT NULL;
CREATE TABLE aish.requests (
    key text COLLATE "C" PRIMARY KEY,
    session text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    digest text NOT NULL
);
"#;

/// What is done where the tables are not there, or of an earlier version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tables {
    /// They are made, or brought to this version: a server's.
    Made,
    /// Nothing: they may be everybody's, and whoever asks only wants to look.
    LookedAt,
}

/// Brings the database to this version, or says why it cannot be looked at.
pub(super) async fn prepare(client: &mut Object, tables: Tables, url: &PostgresUrl) -> Result<(), Failure> {
    match tables {
        Tables::Made => make(client).await,
        Tables::LookedAt if are_there(client, url).await? => Ok(()),
        Tables::LookedAt => Err(format_error(format!(
            "there is no ledger in {url}, and looking makes none: `aish serve` makes its tables when it starts. Is it the \
             right database?"
        ))),
    }
}

/// Whether there are tables, which then are of this version. Nothing is changed.
pub(super) async fn are_there(client: &Object, url: &PostgresUrl) -> Result<bool, Failure> {
    check_server(client).await?;
    match reached(client).await? {
        None => Ok(false),
        Some(version) if version == MIGRATIONS.len() => Ok(true),
        Some(version) => Err(format_error(format!(
            "the ledger in {url} is of an earlier aish (format {version}; this one reads {}), and looking changes nothing. \
             Start `aish serve` of this version once, which brings it up to date, or look with the aish that serves it",
            MIGRATIONS.len()
        ))),
    }
}

async fn make(client: &mut Object) -> Result<(), Failure> {
    check_server(client).await?;
    if reached(client).await? == Some(MIGRATIONS.len()) {
        return Ok(());
    }
    let transaction = GenericClient::transaction(client).await?;
    let patience = format!(
        "SET LOCAL statement_timeout = {MIGRATION_TIMEOUT_MS}; SET LOCAL lock_timeout = {MIGRATION_TIMEOUT_MS};
         SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"
    );
    transaction.batch_execute(&patience).await?;
    migrate(&transaction).await?;
    transaction.commit().await?;
    Ok(())
}

async fn check_server(client: &Object) -> Result<(), Failure> {
    let row = client
        .query_one(
            "SELECT current_setting('server_version_num')::int, current_setting('server_encoding'),
                    current_setting('server_version')",
            &[],
        )
        .await?;
    let (version, encoding, shown): (i32, &str, &str) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    if version < SERVER_VERSION_MIN {
        return Err(format_error(format!(
            "PostgreSQL {shown} is too old to keep a ledger: {} or later is needed",
            SERVER_VERSION_MIN / SERVER_VERSION_UNIT
        )));
    }
    if encoding != "UTF8" {
        return Err(format_error(format!(
            "the database's encoding is {encoding}, and a ledger needs UTF8: make one with `createdb -E UTF8 -T template0`"
        )));
    }
    Ok(())
}

/// The version of the tables; none before there are any.
async fn reached(client: &impl GenericClient) -> Result<Option<usize>, Failure> {
    let is_there = client
        .query_one("SELECT to_regclass('aish.format') IS NOT NULL", &[])
        .await?;
    if !is_there.try_get::<_, bool>(0)? {
        return Ok(None);
    }
    let row = client.query_one("SELECT max(version) FROM aish.format", &[]).await?;
    // A negative version is none of ours: as good as one from the future.
    let version = row
        .try_get::<_, Option<i64>>(0)?
        .map(|version| usize::try_from(version).unwrap_or(usize::MAX));
    match version {
        Some(version) if version > MIGRATIONS.len() => Err(format_error(format!(
            "the ledger in the database was written by a newer aish (format {version}; this one knows up to {}). Update aish, \
             or give it another database",
            MIGRATIONS.len()
        ))),
        version => Ok(version),
    }
}

async fn migrate(transaction: &Transaction<'_>) -> Result<(), Failure> {
    transaction
        .batch_execute(
            "CREATE SCHEMA IF NOT EXISTS aish; CREATE TABLE IF NOT EXISTS aish.format (version bigint NOT NULL)",
        )
        .await?;
    let reached = reached(transaction).await?.unwrap_or(0);
    for migration in MIGRATIONS.iter().skip(reached) {
        transaction.batch_execute(migration).await?;
    }
    if reached < MIGRATIONS.len() {
        let version = format!(
            "DELETE FROM aish.format; INSERT INTO aish.format VALUES ({})",
            MIGRATIONS.len()
        );
        transaction.batch_execute(&version).await?;
    }
    Ok(())
}

fn format_error(text: String) -> Failure {
    Failure::Store(StoreError::Format(text))
}
