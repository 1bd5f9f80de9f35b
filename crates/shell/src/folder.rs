//! The private folder of a shell: its start-up files, and what it is asked. It goes when the shell has gone; what a program that was
//! killed left behind is removed by the next one.

use rustix::process::geteuid;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

/// What its name begins with.
const PREFIX: &str = "aish-shell-";
/// The file that whoever uses the folder holds a lock on.
const LOCK: &str = "lock";
/// Nobody else gets in, whatever the modes of the files.
const FOLDER_MODE: u32 = 0o700;
/// A folder younger than this may not have its lock yet.
const AGE_MIN: Duration = Duration::from_secs(60);
/// Names of the temporary folder that are looked at, and folders that are removed at once: others are for the next time.
const NAMES_MAX: usize = 10_000;
const REMOVED_MAX: usize = 50;

/// A folder that is there as long as this.
pub struct Folder {
    place: TempDir,
    /// Locked as long as it is open, by whoever has it: a killed program has it no more.
    _lock: File,
}

impl Folder {
    /// A new one, for this user only.
    pub fn create() -> io::Result<Self> {
        // Whoever reads it could forge marks, and sees what the shell has exported.
        let place = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(Permissions::from_mode(FOLDER_MODE))
            .tempdir()?;
        let lock = File::create_new(place.path().join(LOCK))?;
        lock.try_lock()?;
        Ok(Self { place, _lock: lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.place.path()
    }
}

/// Removes the folders in `temporary` that are this user's and that nobody uses any more. One that cannot be looked at stays.
pub fn sweep(temporary: &Path, now: SystemTime) {
    let Ok(entries) = fs::read_dir(temporary) else { return };
    let entries = entries.take(NAMES_MAX).filter_map(Result::ok);
    let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    let left = ours.map(|entry| entry.path()).filter(|path| is_left(path, now));
    for path in left.take(REMOVED_MAX) {
        // Whoever else sweeps may have been faster.
        let _ = fs::remove_dir_all(path);
    }
}

/// Whether a folder was left behind: an old one of this user's, no link, whose lock is free.
fn is_left(path: &Path, now: SystemTime) -> bool {
    let Ok(about) = path.symlink_metadata() else {
        return false;
    };
    let age = about.modified().ok().and_then(|then| now.duration_since(then).ok());
    let is_old = age.is_some_and(|age| age >= AGE_MIN);
    about.is_dir()
        && about.uid() == geteuid().as_raw()
        && is_old
        && File::open(path.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// SPEC 12: what a killed program left is removed, and nothing else: no folder in use, none of a moment ago, no link, nothing
    /// of another name.
    #[test]
    fn what_was_left() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let path = temporary.path().join(name);
            fs::create_dir(&path).unwrap();
            (File::create(path.join(LOCK)).unwrap(), path)
        };
        let (used, used_path) = folder("aish-shell-used");
        used.try_lock().unwrap();
        let (_, left) = folder("aish-shell-left");
        let (_, other) = folder("other-shell-left");
        let elsewhere = tempfile::tempdir().unwrap();
        File::create(elsewhere.path().join(LOCK)).unwrap();
        let link = temporary.path().join("aish-shell-link");
        std::os::unix::fs::symlink(elsewhere.path(), &link).unwrap();
        sweep(temporary.path(), SystemTime::now());
        assert!(left.exists(), "it is of a moment ago");
        sweep(temporary.path(), SystemTime::now() + AGE_MIN * 2);
        assert!(!left.exists());
        assert!(used_path.exists() && other.exists() && link.symlink_metadata().is_ok());
        assert!(elsewhere.path().join(LOCK).exists());
    }

    /// SPEC 12: nobody else reads it. One that is there is in use, and gone afterwards.
    #[test]
    fn in_use() {
        let folder = Folder::create().unwrap();
        let path = folder.path().to_owned();
        assert_eq!(path.metadata().unwrap().mode() & 0o777, FOLDER_MODE);
        assert!(!is_left(&path, SystemTime::now() + AGE_MIN * 2));
        drop(folder);
        assert!(!path.exists());
    }
}
