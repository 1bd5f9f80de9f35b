//! Opening what was judged and nothing else.
//!
//! Policy judges a path with every link resolved; a link found on that path while opening it was put there since. So
//! nothing here follows a link, in any part of a path: what is opened is what was shown, or the call is refused. Opening
//! never waits (a FIFO) and never takes a terminal.

use crate::path::io_message;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, openat, openat2, statat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};

/// What every file is opened with.
const FLAGS: OFlags = OFlags::NONBLOCK
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOFOLLOW);
/// A folder that is only stepped through: that needs no permission to list it.
const STEP: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(FLAGS);

/// Says that a link was found where there was none.
pub(crate) fn changed(shown: &str) -> String {
    format!("The path changed while the call was starting: {shown}")
}

/// An error of opening or changing a resolved path, in the words of SPEC 4.2.
pub(crate) fn message(shown: &str, error: Errno) -> String {
    match error {
        Errno::LOOP => changed(shown),
        // A socket, or a device that is not there.
        Errno::NXIO => format!("Not a regular file: {shown}"),
        other => io_message(shown, &io::Error::from(other)),
    }
}

/// Opens a regular file for reading, with its size.
///
/// # Errors
/// `Is a directory: p`, `Not a regular file: p`, that the path changed, or why it cannot be opened.
pub(crate) fn regular_file(path: &Path, shown: &str) -> Result<(File, u64), String> {
    let file = open(CWD, path, OFlags::RDONLY).map_err(|error| message(shown, error))?;
    require_regular(File::from(file), shown)
}

/// The same for a file below an open folder; the path is relative to that.
pub(crate) fn regular_file_in(folder: impl AsFd, path: &Path, shown: &str) -> Result<(File, u64), String> {
    let file = open(folder.as_fd(), path, OFlags::RDONLY).map_err(|error| message(shown, error))?;
    require_regular(File::from(file), shown)
}

fn require_regular(file: File, shown: &str) -> Result<(File, u64), String> {
    let metadata = file.metadata().map_err(|error| io_message(shown, &error))?;
    if metadata.is_dir() {
        return Err(format!("Is a directory: {shown}"));
    }
    if !metadata.is_file() {
        return Err(format!("Not a regular file: {shown}"));
    }
    Ok((file, metadata.len()))
}

/// Opens a file or folder for reading.
///
/// # Errors
/// [`Errno::LOOP`]: there is a link on the path. Any other: why it cannot be opened.
pub(crate) fn readable(path: &Path) -> Result<OwnedFd, Errno> {
    open(CWD, path, OFlags::RDONLY)
}

/// Opens a folder to reach what is in it; it need not be readable.
///
/// # Errors
/// As [`readable`].
pub(crate) fn folder(path: &Path) -> Result<OwnedFd, Errno> {
    open(CWD, path, STEP)
}

/// Opens one entry of a folder.
///
/// # Errors
/// As [`readable`].
pub(crate) fn entry(folder: impl AsFd, name: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    open(folder.as_fd(), Path::new(name), flags)
}

/// One entry of a folder that is a folder itself.
pub(crate) fn folder_in(folder: impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    open(folder.as_fd(), Path::new(name), STEP)
}

/// A path that leads to an open folder wherever that has been moved, for code that takes only paths. It ends in a slash,
/// since without one it names a link.
pub(crate) fn path_of(folder: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/", folder.as_raw_fd()))
}

fn open(start: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let no_links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match openat2(start, path, flags | FLAGS, Mode::empty(), no_links) {
        // A kernel before 5.6, or a sandbox that does not know the call.
        Err(Errno::NOSYS | Errno::PERM | Errno::INVAL) => open_by_steps(start, path, flags),
        opened => opened,
    }
}

/// Opens folder after folder, each without following a link.
fn open_by_steps(start: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let first = if path.is_absolute() { "/" } else { "." };
    let mut at = openat(start, first, STEP, Mode::empty())?;
    let mut names = path
        .components()
        .filter(|part| matches!(part, Component::Normal(_)))
        .peekable();
    if names.peek().is_none() {
        return openat(at, ".", flags | FLAGS, Mode::empty());
    }
    while let Some(name) = names.next() {
        let wanted = if names.peek().is_some() { STEP } else { flags | FLAGS };
        at = match openat(&at, name.as_os_str(), wanted, Mode::empty()) {
            // What is no folder may be a link to one.
            Err(Errno::NOTDIR) if is_link(&at, name.as_os_str()) => return Err(Errno::LOOP),
            opened => opened?,
        };
    }
    Ok(at)
}

fn is_link(folder: impl AsFd, name: &OsStr) -> bool {
    statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    type Way = fn(BorrowedFd<'_>, &Path, OFlags) -> Result<OwnedFd, Errno>;

    /// SPEC 3.3: both ways of opening reach a file by its real path and refuse a link anywhere on it.
    #[test]
    fn links_are_refused_anywhere() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("real/in")).unwrap();
        std::fs::write(root.join("real/in/file"), "x").unwrap();
        symlink("real", root.join("first")).unwrap();
        symlink("in", root.join("real/middle")).unwrap();
        symlink("file", root.join("real/in/last")).unwrap();
        let ways: [Way; 2] = [open, open_by_steps];
        for way in ways {
            let check = |path: &str, flags, expect: Result<(), Errno>| {
                assert_eq!(way(CWD, &root.join(path), flags).map(drop), expect, "{path}");
            };
            let mut text = String::new();
            let opened = way(CWD, &root.join("real/in/file"), OFlags::RDONLY).unwrap();
            File::from(opened).read_to_string(&mut text).unwrap();
            assert_eq!(text, "x");
            check("real/in", STEP, Ok(()));
            check("first/in/file", OFlags::RDONLY, Err(Errno::LOOP));
            check("real/middle/file", OFlags::RDONLY, Err(Errno::LOOP));
            check("real/in/last", OFlags::RDONLY, Err(Errno::LOOP));
            check("first", STEP, Err(Errno::LOOP));
            check("real/none", OFlags::RDONLY, Err(Errno::NOENT));
            check("real/in/file/x", OFlags::RDONLY, Err(Errno::NOTDIR));
            let start = way(CWD, &root.join("real"), STEP).unwrap();
            assert!(way(start.as_fd(), Path::new("in/file"), OFlags::RDONLY).is_ok());
            assert!(way(CWD, Path::new("/"), STEP).is_ok());
        }
    }
}
