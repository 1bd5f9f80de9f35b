//! The file behind a mention: where it really is, and what is in it.
//!
//! A file is found first and read later, through the same handle: what was judged is what is read, whatever happens to the
//! path meanwhile. Finding it neither waits (a pipe) nor acts (a device).

use super::Places;
use super::words::mention_of_file;
use aish_core::image::{IMAGE_BASE64_BYTES_MAX, image_type};
use aish_core::policy::{is_secret_path, normal};
use aish_core::sanitize;
use base64::Engine as _;
use rustix::fs::{CWD, Mode, OFlags, openat};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

/// Bytes of an image as a file: base64 makes four of three.
pub(super) const IMAGE_BYTES_MAX: usize = IMAGE_BASE64_BYTES_MAX / 4 * 3;
/// Bytes of a text that go along; the rest is cut and said to be.
pub const TEXT_BYTES_MAX: usize = 256 << 10;
/// Bytes of a file's beginning that tell what it is.
const HEAD_BYTES: usize = 8 << 10;

/// A file that is there.
#[derive(Debug)]
pub(super) struct Found {
    /// Names the file, and cannot read it yet.
    handle: File,
    /// Where it is, with every link resolved.
    pub(super) real: PathBuf,
}

/// How a path leads to a file.
#[derive(Debug, PartialEq)]
pub(super) enum Way {
    /// By the names that were written, or by a link to a plain neighbour.
    Straight,
    /// The same, to a file that looks as if it held keys or passwords: they were written out, so they are meant.
    ToSecret,
    /// By a link to somewhere the person did not name.
    Elsewhere,
}

/// What is in a file.
#[derive(Debug, PartialEq)]
pub(super) enum Content {
    /// An image, in base64.
    Image { media_type: String, data: String },
    /// Text; with the size of the whole in bytes where it was cut.
    Text { text: String, whole_bytes: Option<u64> },
}

impl Found {
    /// What a path names, if that is there.
    pub(super) fn at(path: &Path) -> Option<Self> {
        let handle = File::from(openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?);
        let real = std::fs::read_link(own_path(&handle)).ok()?;
        Some(Self { handle, real })
    }

    /// True for a directory: there is nothing to read.
    pub(super) fn is_directory(&self) -> bool {
        self.handle.metadata().is_ok_and(|metadata| metadata.is_dir())
    }

    /// How the path it was found at leads to it. Where the path begins (the directory one works in, the home) may lie behind
    /// links: these are the person's own. The rest may be somebody else's, who could lend a harmless name to any file.
    pub(super) fn way(&self, path: &Path, places: Places<'_>) -> Way {
        let is_secret = is_secret_path(&self.real);
        let Ok(named) = without_links(path, places) else {
            return Way::Elsewhere;
        };
        if self.real == named {
            return if is_secret { Way::ToSecret } else { Way::Straight };
        }
        let neighbour = named.parent().and_then(|folder| self.real.strip_prefix(folder).ok());
        // Hidden places hold what is not for showing: `.git/config` may have a token in it.
        let is_hidden = |part: &std::ffi::OsStr| part.as_encoded_bytes().starts_with(b".");
        match neighbour {
            Some(below) if !is_secret && !below.iter().any(is_hidden) => Way::Straight,
            Some(_) | None => Way::Elsewhere,
        }
    }

    /// Why a file that a link leads to does not go along, and what to write instead.
    pub(super) fn elsewhere(&self) -> String {
        let real = self.real.to_string_lossy();
        let shown = sanitize::single_line(&real);
        match self.real.to_str().and_then(mention_of_file) {
            Some(mention) => format!("is a link to {shown}: write {mention} to send it"),
            None => format!("is a link to {shown}: copy that file to send it"),
        }
    }

    /// Reads it, as far as it goes along.
    ///
    /// # Errors
    /// Why it cannot go along and what to do, as the end of a sentence.
    pub(super) fn read(&self) -> Result<Content, String> {
        let failed = |error: io::Error| format!("cannot be read: {error}");
        let metadata = self.handle.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Err("is no file of bytes".to_owned());
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = openat(CWD, own_path(&self.handle), flags, Mode::empty());
        let mut file = opened.map(File::from).map_err(|error| failed(error.into()))?;
        let mut bytes = Vec::new();
        let read_to = |file: &mut File, bytes: &mut Vec<u8>, length: usize| {
            let missing = u64::try_from(length.saturating_sub(bytes.len())).unwrap_or(u64::MAX);
            file.take(missing).read_to_end(bytes).map_err(failed)
        };
        read_to(&mut file, &mut bytes, HEAD_BYTES)?;
        let image = taken_type(&bytes)?;
        let bytes_max = if image.is_some() {
            IMAGE_BYTES_MAX
        } else {
            TEXT_BYTES_MAX
        };
        read_to(&mut file, &mut bytes, bytes_max + 1)?;
        // The size is a hint: files of `/proc` have none, and others grow.
        let whole_bytes = metadata.len().max(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        let is_longer = bytes.len() > bytes_max;
        let Some(media_type) = image else {
            bytes.truncate(TEXT_BYTES_MAX);
            return Ok(Content::Text {
                text: String::from_utf8_lossy(&bytes).into_owned(),
                whole_bytes: is_longer.then_some(whole_bytes),
            });
        };
        if is_longer {
            return Err(format!(
                "is too large: models take images of up to {IMAGE_BYTES_MAX} bytes, this one has {whole_bytes}; send a smaller picture"
            ));
        }
        Ok(Content::Image {
            media_type: media_type.to_owned(),
            data: base64::engine::general_purpose::STANDARD.encode(&bytes),
        })
    }
}

/// The path of a file through its handle: it leads there whatever becomes of the names.
fn own_path(handle: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()))
}

/// Where a path would lead if there were no link on it beyond where it begins.
fn without_links(path: &Path, places: Places<'_>) -> io::Result<PathBuf> {
    let starts = [Some(places.directory), places.home].into_iter().flatten();
    let start = starts
        .filter(|start| path.starts_with(start))
        .max_by_key(|start| start.as_os_str().len())
        .unwrap_or(Path::new("/"));
    let rest = path.strip_prefix(start).unwrap_or(path);
    Ok(normal(&start.canonicalize()?.join(rest)))
}

/// The type of an image that models take, nothing for text.
///
/// # Errors
/// It is something else.
fn taken_type(head: &[u8]) -> Result<Option<&'static str>, String> {
    let kind = infer::get(head).map(|kind| kind.mime_type());
    // Either alone is too easily convinced: `infer` takes a text that begins with "GIFs" for one, and ours one with "GIF8".
    if let Some(media_type) = image_type(head).filter(|media_type| kind == Some(*media_type)) {
        return Ok(Some(media_type));
    }
    if !head.contains(&0) {
        return Ok(None);
    }
    Err(match kind {
        Some(kind) if kind.starts_with("image/") => {
            format!("is an image that models do not take ({kind}): convert it to PNG, JPEG, GIF or WebP")
        }
        Some(kind) => format!("is neither text nor an image that models take ({kind}): convert it to text first"),
        None => "is neither text nor an image that models take: convert it to text first".to_owned(),
    })
}
