//! Replacing a file in one step: whoever reads sees the old contents or the new ones, and a power cut leaves one of the
//! two.
//!
//! The new contents go to a temporary file in the same folder, are synced, and are renamed over the old name; then the
//! folder is synced. Mode and owner are kept. Links are resolved before, so a link stays and its target changes. Hard
//! links to the old contents keep them: that is what a rename means.

use crate::path::io_message;
use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The mode of a new file, less the umask.
const MODE_NEW: u32 = 0o666;
/// The bits of a mode that `chmod` sets.
const MODE_BITS: u32 = 0o7777;

/// Devices that swallow or refuse what is written and do nothing else: null and full.
const SINK_DEVICES: [(u32, u32); 2] = [(1, 3), (1, 7)];

/// What is at a path that is about to be written.
#[derive(Debug)]
pub(super) enum Target {
    /// Nothing: the file will be made.
    Missing,
    /// A regular file: it will be replaced.
    File(Metadata),
    /// A device that only swallows: it is written to, never replaced.
    Sink,
}

impl Target {
    /// Looks at a resolved path.
    ///
    /// # Errors
    /// `Is a directory: p`, `Not a regular file: p`, or why it cannot be looked at.
    pub(super) fn of(path: &Path, shown: &str) -> Result<Self, String> {
        let metadata = match path.symlink_metadata() {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return match shown.ends_with('/') {
                    true => Err(format!("Is a directory: {shown}")),
                    false => Ok(Self::Missing),
                };
            }
            Err(error) => return Err(io_message(shown, &error)),
        };
        if metadata.is_dir() {
            return Err(format!("Is a directory: {shown}"));
        }
        if metadata.is_file() {
            return Ok(Self::File(metadata));
        }
        let device = (rustix::fs::major(metadata.rdev()), rustix::fs::minor(metadata.rdev()));
        if metadata.file_type().is_char_device() && SINK_DEVICES.contains(&device) {
            return Ok(Self::Sink);
        }
        Err(format!("Not a regular file: {shown}"))
    }
}

/// Writes the whole contents of the file at a resolved path; folders that are missing are made.
///
/// # Errors
/// A message in the words of SPEC 4.2 that names `shown`; the old contents are then untouched.
pub(super) fn write(path: &Path, shown: &str, contents: &[u8]) -> Result<(), String> {
    let target = Target::of(path, shown)?;
    let result = match &target {
        Target::Sink => OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|mut file| file.write_all(contents)),
        Target::Missing => replace(path, contents, None),
        Target::File(metadata) => require_writable(path).and_then(|()| replace(path, contents, Some(metadata))),
    };
    result.map_err(|error| io_message(shown, &error))
}

/// A rename needs no permission on the file it replaces; a file that says "read-only" is respected all the same.
fn require_writable(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).open(path) {
        // A program that is running can be replaced, not written to.
        Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => Ok(()),
        other => other.map(drop),
    }
}

fn replace(path: &Path, contents: &[u8], old: Option<&Metadata>) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::IsADirectory)?;
    let made = make_folders(folder)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".aish-").suffix(".tmp");
    builder.permissions(Permissions::from_mode(MODE_NEW));
    let mut temporary = builder.tempfile_in(folder)?;
    temporary.write_all(contents)?;
    if let Some(old) = old {
        keep_owner_and_mode(temporary.as_file(), old)?;
    }
    temporary.as_file().sync_all()?;
    temporary.persist(path).map_err(|error| error.error)?;
    sync_folder(folder);
    for folder in made {
        sync_folder(&folder);
    }
    Ok(())
}

/// The owner first: changing it clears the set-user-id bit. That it may not be kept (only root gives files away) is no
/// reason to fail.
fn keep_owner_and_mode(file: &File, old: &Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        let _ = std::os::unix::fs::fchown(file, Some(old.uid()), Some(old.gid()));
    }
    file.set_permissions(Permissions::from_mode(old.mode() & MODE_BITS))
}

/// Makes a folder and its parents; returns the existing folder that gained the first of them, and all but the last one
/// made, since their entries must reach the disk too.
fn make_folders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let missing: Vec<&Path> = folder.ancestors().take_while(|path| !path.exists()).collect();
    if missing.is_empty() {
        return Ok(Vec::new());
    }
    std::fs::create_dir_all(folder)?;
    Ok(missing
        .into_iter()
        .filter_map(Path::parent)
        .map(Path::to_owned)
        .collect())
}

/// Not every file system can sync a folder; the contents are synced already.
fn sync_folder(folder: &Path) {
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
}
