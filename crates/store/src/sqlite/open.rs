//! Opening the ledger's file: its permissions, its format, and what to say when it is not ours to open.

use super::fail::Failure;
use super::schema::{self, APPLICATION_ID, SCHEMA_VERSION};
use crate::StoreError;
use rusqlite::{Connection, OpenFlags};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// How long a command waits for another process that holds the file.
pub(super) const BUSY_TIMEOUT_MS: u64 = 5_000;

/// How long between two attempts to open a file that another process is just making.
const OPEN_RETRY_MS: u64 = 5;

/// The first SQLite without the bug that a write-ahead log could be reset under a reader (SPEC 12): 3.51.3.
const SQLITE_VERSION_MIN: i32 = 3_051_003;

/// Statements kept ready: more than this crate has.
const STATEMENTS_CACHED_MAX: usize = 32;

/// Only the owner may read what was said.
const FILE_MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;
const OTHERS_MODE_MASK: u32 = 0o077;

/// Opens the ledger at `path`, making it and its directory if need be.
pub(super) fn open(path: &Path) -> Result<Connection, StoreError> {
    check_library()?;
    prepare_file(path).map_err(|error| StoreError::Io {
        attempt: format!("making the ledger {}", path.display()),
        source: Box::new(error),
    })?;
    let deadline = Instant::now() + Duration::from_millis(BUSY_TIMEOUT_MS);
    loop {
        match try_open(path) {
            // While another process turns a new file to write-ahead logging, SQLite answers "busy" without waiting.
            Err(failure) if failure.is_busy() && Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(OPEN_RETRY_MS));
            }
            result => return result.map_err(|failure| failure.explain("opening", path)),
        }
    }
}

fn check_library() -> Result<(), StoreError> {
    if rusqlite::version_number() < SQLITE_VERSION_MIN {
        return Err(StoreError::Format(format!(
            "SQLite {} is too old to keep a ledger safely: 3.51.3 or later is needed. Build aish with its bundled SQLite",
            rusqlite::version()
        )));
    }
    Ok(())
}

fn prepare_file(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(metadata) => {
            if metadata.is_file() && metadata.permissions().mode() & OTHERS_MODE_MASK != 0 {
                close_to_others(path);
            }
            return Ok(());
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent {
        DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(parent)?;
    }
    // An existing file must not be opened here: closing it again would drop the locks that another connection of this
    // process has on it.
    match OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(FILE_MODE)
        .open(path)
    {
        Ok(file) => {
            file.sync_all()?;
            // The name must survive a power cut as well as the content does.
            File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// A ledger that was copied or made by hand may be open to others. That it cannot be closed (it belongs to somebody else)
/// is no reason not to use it. SQLite gives its side files the mode of the file.
fn close_to_others(path: &Path) {
    for suffix in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        let _ = fs::set_permissions(PathBuf::from(name), fs::Permissions::from_mode(FILE_MODE));
    }
}

fn try_open(path: &Path) -> Result<Connection, Failure> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(Duration::from_millis(BUSY_TIMEOUT_MS))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED_MAX);
    check_is_ledger(&connection, path)?;
    let journal: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
    if !journal.eq_ignore_ascii_case("wal") {
        connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    }
    if schema::version(&connection)? < SCHEMA_VERSION {
        schema::migrate(&mut connection)?;
    }
    Ok(connection)
}

fn check_is_ledger(connection: &Connection, path: &Path) -> Result<(), Failure> {
    let file = path.display();
    let foreign = |what: &str| Failure::Store(StoreError::Format(format!("the ledger {file} {what}")));
    if connection.is_readonly("main")? {
        return Err(foreign(
            "cannot be written: the file is read-only. Make it writable, or set AISH_HOME to another directory",
        ));
    }
    // The tables are counted first: whoever makes them sets the id in the same transaction, possibly just now.
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let application: i32 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let version = schema::version(connection)?;
    if tables > 0 && application != APPLICATION_ID {
        return Err(foreign(
            "is another program's database. Move it away, or set AISH_HOME to another directory",
        ));
    }
    if version > SCHEMA_VERSION {
        return Err(foreign(&format!(
            "was written by a newer aish (format {version}; this one knows up to {SCHEMA_VERSION}). Update aish, or set \
             AISH_HOME to another directory"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    /// SPEC 12: the SQLite in the binary is free of the WAL-reset bug and may be used from several threads.
    #[test]
    fn the_library_is_fit() {
        check_library().unwrap();
        let connection = Connection::open_in_memory().unwrap();
        let mut statement = connection.prepare("PRAGMA compile_options").unwrap();
        let options: Vec<String> = statement
            .query_map([], |row| row.get(0))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert!(options.iter().any(|option| option == "THREADSAFE=1"), "{options:?}");
    }

    /// SPEC 2.10: write-ahead logging, and no waiting for a file that is one already.
    #[test]
    fn the_file_is_in_wal_mode() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ledger.db");
        for _ in 0..2 {
            let connection = open(&path).unwrap();
            let journal: String = connection
                .query_row("PRAGMA journal_mode", [], |row| row.get(0))
                .unwrap();
            assert_eq!(journal, "wal");
        }
    }
}
