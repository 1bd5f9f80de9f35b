//! Replacing a file in one step: whoever reads sees the old contents or the new ones, and a power cut leaves one of the
//! two.
//!
//! The new contents go to a temporary file in the same folder, are synced, and are renamed over the old name; then the
//! folder is synced. Mode and owner are kept. Links are resolved before, so a link stays and its target changes. Hard
//! links to the old contents keep them: that is what a rename means.
//!
//! The folder is opened once, without following a link, and everything is done relative to it: renaming it or putting a
//! link in its place leads nowhere else.

use crate::open;
use crate::path::io_message;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// The mode of a new file, less the umask.
const MODE_NEW: Mode = Mode::from_raw_mode(0o666);
/// The mode of a file that will replace another, until it has that one's.
const MODE_PRIVATE: Mode = Mode::from_raw_mode(0o600);
/// The set-user-id and set-group-id bits, which writing takes away from a file of anybody's but root.
const CLEARED_BY_WRITING: u32 = 0o6000;
/// The mode of a new folder, less the umask.
const MODE_FOLDER: Mode = Mode::from_raw_mode(0o777);

/// Devices that swallow or refuse what is written and do nothing else: null and full.
const SINK_DEVICES: [(u32, u32); 2] = [(1, 3), (1, 7)];

/// What is at a path that is about to be written.
#[derive(Debug)]
pub(super) enum Target {
    /// Nothing: the file will be made.
    Missing,
    /// A regular file: it will be replaced.
    File(Stat),
    /// A device that only swallows: it is written to, never replaced.
    Sink,
}

impl Target {
    /// Looks at a resolved path.
    ///
    /// # Errors
    /// `Is a directory: p`, `Not a regular file: p`, or why it cannot be looked at.
    pub(super) fn of(path: &Path, shown: &str) -> Result<Self, String> {
        Self::from_stat(rustix::fs::lstat(path), shown)
    }

    fn from_stat(stat: Result<Stat, Errno>, shown: &str) -> Result<Self, String> {
        let stat = match stat {
            Ok(stat) => stat,
            Err(Errno::NOENT) => {
                return match shown.ends_with('/') {
                    true => Err(format!("Is a directory: {shown}")),
                    false => Ok(Self::Missing),
                };
            }
            Err(error) => return Err(open::message(shown, error)),
        };
        let device = (rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev));
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(Self::File(stat)),
            FileType::Directory => Err(format!("Is a directory: {shown}")),
            FileType::Symlink => Err(open::changed(shown)),
            FileType::CharacterDevice if SINK_DEVICES.contains(&device) => Ok(Self::Sink),
            FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Fifo
            | FileType::Socket
            | FileType::Unknown => Err(format!("Not a regular file: {shown}")),
        }
    }
}

/// Writes the whole contents of the file at a resolved path; folders that are missing are made.
///
/// # Errors
/// A message in the words of SPEC 4.2 that names `shown`; the old contents are then untouched.
pub(super) fn write(path: &Path, shown: &str, contents: &[u8]) -> Result<(), String> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(format!("Is a directory: {shown}"));
    };
    let folder = Folder::open_or_make(folder).map_err(|error| open::message(shown, error))?;
    let stat = rustix::fs::statat(&folder.last, name, AtFlags::SYMLINK_NOFOLLOW);
    let target = Target::from_stat(stat, shown)?;
    let result = match &target {
        Target::Sink => folder.write_to_sink(name, contents),
        Target::Missing => folder.replace(name, contents, None),
        Target::File(stat) => folder
            .require_writable(name)
            .and_then(|()| folder.replace(name, contents, Some(stat))),
    };
    result.map_err(|failure| match failure {
        Failure::System(error) => open::message(shown, error),
        Failure::Io(error) => io_message(shown, &error),
    })
}

/// Why a file was not written.
enum Failure {
    System(Errno),
    Io(io::Error),
}

impl From<Errno> for Failure {
    fn from(error: Errno) -> Self {
        Self::System(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// An open folder in which a file is made or replaced.
struct Folder {
    last: OwnedFd,
    /// The existing folder that gained one, and those made in it but for the last: their entries must reach the disk too.
    gained: Vec<OwnedFd>,
}

impl Folder {
    /// Opens a folder; it and its parents are made where they are missing.
    fn open_or_make(path: &Path) -> Result<Self, Errno> {
        let mut missing: Vec<&OsStr> = Vec::new();
        let mut at = path;
        let mut last = loop {
            match (open::folder(at), at.parent(), at.file_name()) {
                (Err(Errno::NOENT), Some(parent), Some(name)) => {
                    missing.push(name);
                    at = parent;
                }
                (opened, _, _) => break opened?,
            }
        };
        let mut gained = Vec::with_capacity(missing.len());
        for name in missing.into_iter().rev() {
            match rustix::fs::mkdirat(&last, name, MODE_FOLDER) {
                // Somebody else was quicker; if it is no folder, opening it says so.
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
            let made = open::folder_in(&last, name)?;
            gained.push(std::mem::replace(&mut last, made));
        }
        Ok(Self { last, gained })
    }

    fn write_to_sink(&self, name: &OsStr, contents: &[u8]) -> Result<(), Failure> {
        let mut file = File::from(open::entry(&self.last, name, OFlags::WRONLY)?);
        let stat = rustix::fs::fstat(&file)?;
        // It was a sink a moment ago; whatever it is now must be one too.
        match Target::from_stat(Ok(stat), "") {
            Ok(Target::Sink) => Ok(file.write_all(contents)?),
            Ok(Target::Missing | Target::File(_)) | Err(_) => Err(Errno::LOOP.into()),
        }
    }

    /// A rename needs no permission on the file it replaces; a file that says "read-only" is respected all the same.
    fn require_writable(&self, name: &OsStr) -> Result<(), Failure> {
        match open::entry(&self.last, name, OFlags::WRONLY) {
            // A program that is running can be replaced, not written to.
            Ok(_) | Err(Errno::TXTBSY) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn replace(&self, name: &OsStr, contents: &[u8], old: Option<&Stat>) -> Result<(), Failure> {
        // What replaces a file may be as private as it was, so nobody may read it before it is known who may.
        let mode = if old.is_some() { MODE_PRIVATE } else { MODE_NEW };
        let (temporary, mut file) = Temporary::make(&self.last, mode)?;
        if let Some(old) = old {
            keep_owner_and_mode(&file, old)?;
        }
        file.write_all(contents)?;
        if let Some(old) = old.filter(|old| old.st_mode & CLEARED_BY_WRITING != 0) {
            rustix::fs::fchmod(&file, Mode::from_raw_mode(old.st_mode))?;
        }
        file.sync_all()?;
        temporary.rename(name)?;
        for folder in std::iter::once(&self.last).chain(&self.gained) {
            sync(folder);
        }
        Ok(())
    }
}

/// The owner first: changing it clears the set-user-id bit. That it may not be kept (only root gives files away) is no
/// reason to fail.
fn keep_owner_and_mode(file: &File, old: &Stat) -> Result<(), Errno> {
    let new = rustix::fs::fstat(file)?;
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid) {
        let (owner, group) = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
        let _ = rustix::fs::fchown(file, Some(owner), Some(group));
    }
    rustix::fs::fchmod(file, Mode::from_raw_mode(old.st_mode))
}

/// Not every file system can sync a folder, and not every folder can be read; the contents are synced already.
fn sync(folder: &OwnedFd) {
    if let Ok(folder) = open::entry(folder, OsStr::new("."), OFlags::RDONLY) {
        let _ = rustix::fs::fsync(folder);
    }
}

/// A file that is removed unless it is renamed.
struct Temporary<'a> {
    folder: &'a OwnedFd,
    name: Option<OsString>,
}

impl<'a> Temporary<'a> {
    fn make(folder: &'a OwnedFd, mode: Mode) -> Result<(Self, File), Failure> {
        let random = getrandom::u64().map_err(|error| io::Error::other(error.to_string()))?;
        let name = OsString::from(format!(".aish-{random:016x}.tmp"));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(folder, &name, flags, mode)?;
        let name = Some(name);
        Ok((Self { folder, name }, File::from(file)))
    }

    fn rename(mut self, name: &OsStr) -> Result<(), Errno> {
        if let Some(own) = &self.name {
            rustix::fs::renameat(self.folder, own, self.folder, name)?;
        }
        self.name = None;
        Ok(())
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = rustix::fs::unlinkat(self.folder, name, AtFlags::empty());
        }
    }
}
