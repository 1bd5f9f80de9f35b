//! The file with the tokens: one of the user's own, in the data directory.

use crate::paths::write_private;
use aish_mcp::oauth::Shelf;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

const FILE_NAME: &str = "mcp-tokens.json";
const LOCK_NAME: &str = "mcp-tokens.lock";
/// Bytes of it that are read; more is no file of ours.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// Only the user reads and writes it.
const MODE: u32 = 0o600;
/// How often the lock is tried: with the pause between for twenty seconds, longer than a token takes to be refreshed.
const LOCK_ATTEMPTS_MAX: u32 = 1_000;
const LOCK_PAUSE_MS: u64 = 20;

/// Where the tokens are kept.
pub(super) struct TokenFile {
    folder: PathBuf,
}

impl TokenFile {
    /// The file in that folder, which is made when there is something to keep.
    pub(super) fn in_folder(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.join(FILE_NAME)
    }
}

impl Shelf for TokenFile {
    fn read(&self) -> io::Result<Option<String>> {
        let file = match File::open(self.path()) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut text = String::new();
        file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
        let is_whole = u64::try_from(text.len()).is_ok_and(|bytes| bytes <= FILE_BYTES_MAX);
        Ok(is_whole.then_some(text))
    }

    fn write(&self, text: &str) -> io::Result<()> {
        let path = self.path();
        if path.exists() {
            // A file that somebody made readable for others keeps its rights when it is written anew.
            fs::set_permissions(&path, fs::Permissions::from_mode(MODE))?;
        }
        write_private(&path, text.as_bytes())
    }

    fn lock(&self) -> io::Result<Box<dyn Send>> {
        crate::paths::make_private_dir(&self.folder)?;
        let mut options = File::options();
        let lock = options.create(true).truncate(false).write(true).mode(MODE);
        let lock = lock.open(self.folder.join(LOCK_NAME))?;
        for _ in 0..LOCK_ATTEMPTS_MAX {
            match lock.try_lock() {
                Ok(()) => return Ok(Box::new(lock)),
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(LOCK_PAUSE_MS)),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "another aish is changing the tokens and does not finish",
        ))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// SPEC 10.5: tokens are their user's alone, even where the file was not; SPEC 12: a file of another size is none.
    #[test]
    fn private_and_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::in_folder(folder.path());
        assert_eq!(file.read().unwrap(), None);
        let rights = || fs::metadata(file.path()).unwrap().permissions().mode() & 0o777;
        file.write("one").unwrap();
        assert_eq!(rights(), MODE);
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o644)).unwrap();
        file.write("two").unwrap();
        assert_eq!((rights(), file.read().unwrap().as_deref()), (MODE, Some("two")));
        let long = File::options().write(true).open(file.path()).unwrap();
        long.set_len(FILE_BYTES_MAX + 1).unwrap();
        assert_eq!(file.read().unwrap(), None);
    }

    /// Two processes do not change the tokens at once.
    #[test]
    fn one_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::in_folder(folder.path());
        let held = file.lock().unwrap();
        let other = File::open(folder.path().join(LOCK_NAME)).unwrap();
        assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
        drop(held);
        other.try_lock().unwrap();
    }
}
