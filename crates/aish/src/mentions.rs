//! Files named in a question: `@path` puts the file beside the text, `@"a path with spaces.png"` and `@a\ path.png` too.
//!
//! A mention is a word that begins with `@` and names something that is there; anything else stays text. Images (told by
//! content, not by name) go along as they are, text as context; both are bounded. Naming a file is leave to read it: the person
//! typed it, so no approval is asked. That leave ends where a link leads somewhere else: a project that somebody else wrote may
//! give any file a harmless name. Text that somebody else wrote must not come through here.

mod complete;
mod file;
mod resource;
#[cfg(test)]
mod tests;
mod words;

pub use complete::{completions, open_reference};
pub use file::TEXT_BYTES_MAX;
pub use resource::{Reference, references};
pub use words::mention_of_file;

use aish_core::image::{IMAGES_MAX, Image};
use aish_core::message::Part;
use aish_core::sanitize;
use file::{Content, Found, Way};
use std::path::{Path, PathBuf};
use words::{CLOSING, Word, words};

/// Files one question may name, and resources: more are a listing, not a question.
const FILES_MAX: usize = 32;

/// Characters of base64 of all of them: Anthropic refuses requests above 32 MB, and an earlier question may have had some.
const IMAGES_CHARS_MAX: usize = 20_000_000;

/// What came of the mentions of a question.
#[derive(Debug, Default, PartialEq)]
pub struct Mentioned {
    /// What goes along with the text, in the order it was named.
    pub parts: Vec<Part>,
    /// What a person should know, one line each.
    pub remarks: Vec<String>,
}

/// Where paths are looked for.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    /// What relative paths begin at.
    pub directory: &'a Path,
    /// What `~/` stands for.
    pub home: Option<&'a Path>,
    /// Aliases of MCP servers: `@alias:uri` names something of theirs, and no file.
    pub servers: &'a [String],
}

/// Reads the files a question names.
///
/// # Errors
/// One that is there cannot go along (too large, not readable, behind a link to elsewhere): one line. The question should not be
/// asked without it.
pub fn gather(text: &str, places: Places<'_>) -> Result<Mentioned, String> {
    let mut mentioned = Mentioned::default();
    let mut seen: Vec<PathBuf> = Vec::new();
    if references(text, places.servers).len() > FILES_MAX {
        return Err(format!("a question may name {FILES_MAX} resources at most"));
    }
    let is_files = |word: &Word<'_>| Reference::of_word(word, places.servers).is_none();
    for word in words(text).filter(Word::is_whole).filter(is_files) {
        let Some((named, path, file)) = existing(&word, places) else {
            if word.looks_like_path() {
                let shown = sanitize::single_line(word.path.trim_end_matches(CLOSING));
                let remark = format!("@{shown} names no file here; it is sent as text");
                mentioned.remarks.push(remark);
            }
            continue;
        };
        if seen.contains(&file.real) {
            continue;
        }
        if seen.len() == FILES_MAX {
            return Err(format!("a question may name {FILES_MAX} files at most"));
        }
        let shown = sanitize::single_line(named);
        if file.is_directory() {
            let remark = format!("@{shown} is a directory; it is sent as text");
            mentioned.remarks.push(remark);
        } else {
            match file.way(&path, places) {
                Way::Straight => mentioned.add(named, &file)?,
                Way::ToSecret => {
                    mentioned.add(named, &file)?;
                    let remark = format!("@{shown} looks like a secret file; it is sent, since you named it");
                    mentioned.remarks.push(remark);
                }
                Way::Elsewhere => return Err(format!("@{shown} {}", file.elsewhere())),
            }
        }
        seen.push(file.real);
    }
    Ok(mentioned)
}

impl Mentioned {
    fn add(&mut self, named: &str, file: &Found) -> Result<(), String> {
        let shown = sanitize::single_line(named);
        match file.read().map_err(|problem| format!("@{shown} {problem}"))? {
            Content::Image { media_type, data } => {
                self.push_image(&format!("@{shown}"), Part::Image { media_type, data })?
            }
            Content::Text { text, whole_bytes } => {
                let mut label = named.to_owned();
                if let Some(bytes) = whole_bytes {
                    label.push_str(&format!(" (the first {TEXT_BYTES_MAX} of {bytes} bytes)"));
                    let remark = format!("@{shown} is cut: the first {TEXT_BYTES_MAX} of its {bytes} bytes go along");
                    self.remarks.push(remark);
                }
                self.parts.push(Part::Context { label, text });
            }
        }
        Ok(())
    }
}

impl Mentioned {
    /// Adds an image, within the bounds of all of them. `shown` is the mention, escaped.
    fn push_image(&mut self, shown: &str, image: Part) -> Result<(), String> {
        if count_images(&self.parts) == IMAGES_MAX {
            return Err(format!(
                "{shown} is one image too many: a question may name {IMAGES_MAX}; name the rest in the next one"
            ));
        }
        self.parts.push(image);
        if image_chars(&self.parts) > IMAGES_CHARS_MAX {
            return Err(format!(
                "{shown} is too much with the images before it: together they may have {} MB; send it in the next question, or \
                 smaller",
                IMAGES_CHARS_MAX / 4 * 3 / 1_000_000
            ));
        }
        Ok(())
    }
}

fn count_images(parts: &[Part]) -> usize {
    Image::all(parts).count()
}

fn image_chars(parts: &[Part]) -> usize {
    Image::all(parts).map(|image| image.data.len()).sum()
}

/// The path of each image among a question's parts, as it was written, as far as its text tells: for showing a conversation
/// again.
pub fn image_names<'a>(text: &'a str, parts: &[Part]) -> Vec<&'a str> {
    let is_context = |word: &Word<'_>| {
        parts.iter().any(|part| match part {
            Part::Context { label, .. } => label.starts_with(word.path.trim_end_matches(CLOSING)),
            Part::Text { .. }
            | Part::Thinking { .. }
            | Part::Image { .. }
            | Part::Provider { .. }
            | Part::Call { .. }
            | Part::PartialCall { .. } => false,
        })
    };
    let mut names: Vec<&str> = Vec::new();
    for word in words(text).filter(|word| word.is_whole() && !is_context(word)) {
        let name = word.written.trim_end_matches(CLOSING);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    // Some word named nothing that was there, or two the same: then nobody knows which is which.
    if names.len() == count_images(parts) {
        names
    } else {
        Vec::new()
    }
}

/// Where the mentions of a question stand, in bytes, be there anything of that name or not.
pub fn spans(text: &str) -> impl Iterator<Item = std::ops::Range<usize>> {
    words(text).filter(Word::is_whole).map(|word| word.at..word.end)
}

/// What a word names, if that is there: as it stands, else without the punctuation that may follow a word.
fn existing<'a>(word: &'a Word<'_>, places: Places<'_>) -> Option<(&'a str, PathBuf, Found)> {
    let mut named = word.path.as_str();
    loop {
        let path = placed(named, places);
        if let Some(file) = Found::at(&path) {
            return Some((named, path, file));
        }
        named = named
            .strip_suffix(CLOSING)
            .filter(|named| !named.is_empty() && !word.is_quoted())?;
    }
}

fn placed(text: &str, places: Places<'_>) -> PathBuf {
    match (text.strip_prefix("~/"), places.home) {
        (Some(below), Some(home)) => home.join(below),
        (Some(_) | None, _) => places.directory.join(text),
    }
}
