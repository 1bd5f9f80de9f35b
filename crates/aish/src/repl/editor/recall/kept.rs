//! The file of `:` lines: the one kind of line that is no event of a session.
//!
//! One line each, the milliseconds since the Unix epoch before a tab. Lines without that were written before the ledger was the
//! history; of them, too, only those that begin with a colon are read.

use std::fs::OpenOptions;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

/// Only its user may read it (SPEC 10.5: it may hold anything).
const MODE: u32 = 0o600;
/// More than this is written anew, with the newest lines only.
const BYTES_MAX: u64 = 256 << 10;
/// What is left of it then.
const LINES_LEFT: usize = 1_000;

/// The file.
#[derive(Clone)]
pub(super) struct Kept {
    path: PathBuf,
}

impl Kept {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The lines with their times, the oldest first; 0 where the time is not known.
    pub(super) fn read(&self) -> Result<Vec<(u64, String)>, String> {
        let mut text = Vec::new();
        let read = std::fs::File::open(&self.path).and_then(|file| {
            let bytes = file.metadata()?.len();
            file.take(BYTES_MAX * 4).read_to_end(&mut text)?;
            Ok(bytes)
        });
        let bytes = match read {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.failed(&error)),
        };
        let text = String::from_utf8_lossy(&text);
        let mut lines: Vec<(u64, String)> = text.lines().filter_map(parsed).collect();
        if bytes > BYTES_MAX {
            lines.drain(..lines.len().saturating_sub(LINES_LEFT));
            self.replace(&lines).map_err(|error| self.failed(&error))?;
        }
        Ok(lines)
    }

    /// Adds a line. One of several rows is no `:` line that anybody wants again.
    pub(super) fn add(&self, time: u64, line: &str) -> Result<(), String> {
        if line.contains('\n') {
            return Ok(());
        }
        let add = || {
            if let Some(folder) = self.path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            let mut file = OpenOptions::new()
                .create(true)
                .append(true)
                .mode(MODE)
                .open(&self.path)?;
            file.write_all(format!("{time}\t{line}\n").as_bytes())
        };
        add().map_err(|error| self.failed(&error))
    }

    fn replace(&self, lines: &[(u64, String)]) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(std::path::Path::new("."));
        // Made readable by its user only.
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        for (time, line) in lines {
            writeln!(file, "{time}\t{line}")?;
        }
        file.persist(&self.path)?;
        Ok(())
    }

    fn failed(&self, error: &io::Error) -> String {
        format!("{}: {error}", self.path.display())
    }
}

fn parsed(row: &str) -> Option<(u64, String)> {
    let timed = row
        .split_once('\t')
        .and_then(|(time, line)| Some((time.parse().ok()?, line)));
    let (time, line) = timed.unwrap_or((0, row));
    line.starts_with(':').then(|| (time, line.to_owned()))
}
