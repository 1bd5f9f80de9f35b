//! The programs in `PATH`: read in one go, and again only where a directory is another than before, or where something in one
//! can be run by now.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Directories of `PATH` that are read: more than fit into one that a system takes from its user's files.
const DIRECTORIES_MAX: usize = 4_096;
/// Entries that are looked at in all of them together.
const ENTRIES_MAX: usize = 200_000;
/// Entries that could not be run, and are looked at again.
const IDLE_MAX: usize = 1_000;

/// What was read, as far as it tells whether there may be something new.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// The directories, and when each had last changed; `None` for one that is not there.
    directories: Vec<(PathBuf, Option<SystemTime>)>,
    /// What is in them and could not be run: a `chmod` changes no directory.
    idle: Vec<PathBuf>,
}

/// Whether all of `PATH` was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Extent {
    #[default]
    Whole,
    /// It has more than is read.
    Cut,
}

/// The programs that were found.
#[derive(Default)]
pub struct Programs {
    names: HashSet<Box<str>>,
    stamp: Stamp,
    extent: Extent,
}

impl Programs {
    /// Those of `path`, whose relative directories begin at `from`; `None` if nothing changed since `seen`.
    pub fn read(path: &OsStr, from: &Path, seen: &Stamp) -> Option<Self> {
        let mut named = std::env::split_paths(path)
            .map(|directory| from.join(directory))
            // Nobody knows yet where a relative one is.
            .filter(|directory| directory.is_absolute());
        let directories: Vec<_> = named
            .by_ref()
            .take(DIRECTORIES_MAX)
            .map(|directory| {
                let changed = directory.metadata().and_then(|data| data.modified());
                (directory, changed.ok())
            })
            .collect();
        if directories == seen.directories && !seen.idle.iter().any(|path| runs(path)) {
            return None;
        }
        let mut found = Self {
            extent: if named.next().is_some() {
                Extent::Cut
            } else {
                Extent::Whole
            },
            ..Self::default()
        };
        let entries = directories
            .iter()
            .filter_map(|(directory, _)| std::fs::read_dir(directory).ok())
            .flatten();
        for (count, entry) in entries.enumerate() {
            if count >= ENTRIES_MAX {
                found.extent = Extent::Cut;
                break;
            }
            entry.iter().for_each(|entry| found.look_at(entry));
        }
        found.stamp.directories = directories;
        Some(found)
    }

    fn look_at(&mut self, entry: &std::fs::DirEntry) {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| !self.names.contains(*name)) else {
            return;
        };
        if runs(&entry.path()) {
            self.names.insert(Box::from(name));
        } else if self.stamp.idle.len() < IDLE_MAX {
            self.stamp.idle.push(entry.path());
        }
    }

    /// Whether a name that is not among them is no program: all of `PATH` was read.
    pub fn are_all(&self) -> bool {
        self.extent == Extent::Whole
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
            ..Self::default()
        }
    }
}

/// Whether there is a program at `path`. Links are followed: most of the usual programs are some.
fn runs(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// What is to be searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// A `PATH`.
    pub path: OsString,
    /// Where its relative directories begin.
    pub from: PathBuf,
}

/// Who reads them: one thread at a time, and what was wanted last in the end.
#[derive(Debug, Default)]
pub struct Search {
    is_running: bool,
    next: Option<Wanted>,
}

impl Search {
    /// Orders a search; true if whoever asks has to run it.
    pub fn begin(&mut self, wanted: Wanted) -> bool {
        self.next = Some(wanted);
        !std::mem::replace(&mut self.is_running, true)
    }

    /// What to search next; the search is over where there is nothing.
    pub fn take(&mut self) -> Option<Wanted> {
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

    fn write(path: &Path, mode: u32) {
        fs::write(path, "").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn names(programs: &Programs) -> Vec<&str> {
        let mut names: Vec<&str> = programs.names().collect();
        names.sort_unstable();
        names
    }

    /// What cannot be run is none, links are followed, what is missing is passed over; unchanged directories are not read again.
    #[test]
    fn programs() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        write(&path("run"), 0o755);
        write(&path("text"), 0o644);
        fs::create_dir(path("directory")).unwrap();
        std::os::unix::fs::symlink("run", path("link")).unwrap();
        std::os::unix::fs::symlink("nowhere", path("dangling")).unwrap();
        fs::create_dir(path("bin")).unwrap();
        write(&path("bin/below"), 0o755);
        let from = folder.path();
        let all = std::env::join_paths([from, "/no/such/folder".as_ref(), "bin".as_ref()]).unwrap();
        let programs = Programs::read(&all, from, &Stamp::default()).unwrap();
        assert_eq!(names(&programs), ["below", "link", "run"]);
        assert!(programs.are_all());
        assert!(Programs::read(&all, from, &programs.stamp()).is_none());
        assert!(Programs::read(from.as_os_str(), from, &programs.stamp()).is_some());
        // From somewhere else a relative directory is another one.
        let elsewhere = Programs::read(&all, Path::new("/no/such"), &programs.stamp()).unwrap();
        assert_eq!(names(&elsewhere), ["link", "run"]);
    }

    /// SPEC 8.1: a file that is made a program is one, though no directory changed.
    #[test]
    fn made_executable() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        write(&script, 0o644);
        let path = folder.path().as_os_str();
        let programs = Programs::read(path, folder.path(), &Stamp::default()).unwrap();
        assert!(names(&programs).is_empty());
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let programs = Programs::read(path, folder.path(), &programs.stamp()).unwrap();
        assert_eq!(names(&programs), ["script"]);
    }

    /// SPEC 8.1: a program is known however many directories stand before its own; a `PATH` beyond all measure is not read whole,
    /// and that is known.
    #[test]
    fn long_paths() {
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join("late"), 0o755);
        let path_of = |before: usize| {
            let missing = (0..before).map(|number| PathBuf::from(format!("/no/such/{number}")));
            std::env::join_paths(missing.chain([folder.path().to_owned()])).unwrap()
        };
        let read = |before: usize| Programs::read(&path_of(before), folder.path(), &Stamp::default()).unwrap();
        let programs = read(300);
        assert_eq!((names(&programs), programs.are_all()), (vec!["late"], true));
        let programs = read(DIRECTORIES_MAX);
        assert_eq!((names(&programs), programs.are_all()), (vec![], false));
    }

    /// One search runs at a time; what was ordered meanwhile is not lost.
    #[test]
    fn one_at_a_time() {
        let wanted = |path: &str| Wanted {
            path: path.into(),
            from: PathBuf::from("/"),
        };
        let mut search = Search::default();
        assert!(search.begin(wanted("a")));
        assert_eq!(search.take(), Some(wanted("a")));
        assert!(!search.begin(wanted("b")));
        assert!(!search.begin(wanted("c")));
        assert_eq!(search.take(), Some(wanted("c")));
        assert_eq!(search.take(), None);
        assert!(search.begin(wanted("d")));
    }
}
