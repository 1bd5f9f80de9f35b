//! The programs in `PATH`: read in one go, and again only where a directory is another than before.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::SystemTime;

/// Directories of `PATH` that are read; further ones hold nothing a person put there.
const DIRECTORIES_MAX: usize = 64;
/// Entries that are looked at in all of them together.
const ENTRIES_MAX: usize = 50_000;

/// Which directories were read, and when each had last changed; `None` for one that is not there.
pub type Stamp = Vec<(PathBuf, Option<SystemTime>)>;

/// The programs that were found.
#[derive(Default)]
pub struct Programs {
    names: HashSet<Box<str>>,
    stamp: Stamp,
}

impl Programs {
    /// Those of `path`; `None` if nothing changed since `seen`.
    pub fn read(path: &OsStr, seen: &Stamp) -> Option<Self> {
        let stamp: Stamp = std::env::split_paths(path)
            // A relative directory is another one after each `cd`.
            .filter(|directory| directory.is_absolute())
            .take(DIRECTORIES_MAX)
            .map(|directory| {
                let changed = directory.metadata().and_then(|data| data.modified());
                (directory, changed.ok())
            })
            .collect();
        if stamp == *seen {
            return None;
        }
        let entries = stamp
            .iter()
            .filter_map(|(directory, _)| std::fs::read_dir(directory).ok())
            .flatten()
            .take(ENTRIES_MAX);
        let mut names = HashSet::new();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| !names.contains(*name)) else {
                continue;
            };
            // Links are followed: most of the usual programs are some.
            let runs = std::fs::metadata(entry.path())
                .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0);
            if runs {
                names.insert(Box::from(name));
            }
        }
        Some(Self { names, stamp })
    }

    /// Whether there is one of that name.
    pub fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Their names, in no order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| &**name)
    }

    /// What they were read from.
    pub fn stamp(&self) -> Stamp {
        self.stamp.clone()
    }

    /// Of these names.
    #[cfg(test)]
    pub fn of<const N: usize>(names: [&str; N]) -> Self {
        Self {
            names: names.into_iter().map(Box::from).collect(),
            stamp: Stamp::new(),
        }
    }
}

/// Who reads them: one thread at a time, and the `PATH` named last in the end.
#[derive(Debug, Default)]
pub struct Search {
    is_running: bool,
    next: Option<OsString>,
}

impl Search {
    /// Orders a search; true if whoever asks has to run it.
    pub fn begin(&mut self, path: OsString) -> bool {
        self.next = Some(path);
        !std::mem::replace(&mut self.is_running, true)
    }

    /// What to search next; the search is over where there is nothing.
    pub fn take(&mut self) -> Option<OsString> {
        let next = self.next.take();
        self.is_running = next.is_some();
        next
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::fs;

    /// What cannot be run is none, links are followed, what is missing is passed over; unchanged directories are not read again.
    #[test]
    fn programs() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, mode: u32| {
            let path = folder.path().join(name);
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        };
        write("run", 0o755);
        write("text", 0o644);
        fs::create_dir(folder.path().join("directory")).unwrap();
        std::os::unix::fs::symlink("run", folder.path().join("link")).unwrap();
        std::os::unix::fs::symlink("nowhere", folder.path().join("dangling")).unwrap();
        let path = std::env::join_paths([folder.path(), "/no/such/folder".as_ref(), "relative".as_ref()]).unwrap();
        let programs = Programs::read(&path, &Stamp::new()).unwrap();
        let mut names: Vec<&str> = programs.names().collect();
        names.sort_unstable();
        assert_eq!(names, ["link", "run"]);
        assert!(Programs::read(&path, &programs.stamp()).is_none());
        assert!(Programs::read(folder.path().as_os_str(), &programs.stamp()).is_some());
    }

    /// One search runs at a time; what was ordered meanwhile is not lost.
    #[test]
    fn one_at_a_time() {
        let mut search = Search::default();
        assert!(search.begin("a".into()));
        assert_eq!(search.take(), Some("a".into()));
        assert!(!search.begin("b".into()));
        assert!(!search.begin("c".into()));
        assert_eq!(search.take(), Some("c".into()));
        assert_eq!(search.take(), None);
        assert!(search.begin("d".into()));
    }
}
