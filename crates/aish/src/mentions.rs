//! Files named in a question: `@path` puts the file beside the text, `@"a path with spaces.png"` too.
//!
//! A mention is a word that begins with `@` and names something that is there; anything else stays text. Images (told by
//! content, not by name) go along as they are, text as context; both are bounded. Naming a file is leave to read it: the person
//! typed it, so no approval is asked and links are followed. Text that somebody else wrote must not come through here.

mod complete;

pub use complete::completions;

use aish_core::message::Part;
use aish_core::sanitize;
use base64::Engine as _;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Bytes of an image; more is refused by every provider (Anthropic's limit, the lowest, is 5 MB).
const IMAGE_BYTES_MAX: usize = 5_000_000;
/// Bytes of a text file that go along; the rest is cut and said to be.
const TEXT_BYTES_MAX: usize = 256 << 10;
/// Files one question may name: more are a listing, not a question.
const FILES_MAX: usize = 32;
/// Bytes of a file's beginning that tell what it is.
const HEAD_BYTES: usize = 8 << 10;
/// Images that models take (the formats all four wire formats share).
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// What may stand before a mention, besides white space.
const OPENING: [char; 6] = ['(', '[', '{', '"', '\'', '`'];
/// What may stand behind one without being part of it.
const CLOSING: [char; 12] = [',', '.', ';', ':', '!', '?', ')', ']', '}', '"', '\'', '`'];

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
}

/// Reads the files a question names.
///
/// # Errors
/// One that is there cannot go along (too large, not readable): one line. The question should not be asked without it.
pub fn gather(text: &str, places: Places<'_>) -> Result<Mentioned, String> {
    let mut mentioned = Mentioned::default();
    let mut seen: Vec<PathBuf> = Vec::new();
    for word in words(text) {
        let Some((shown, path)) = existing(&word, places) else {
            if word.looks_like_path() {
                let shown = sanitize::single_line(word.text.trim_end_matches(CLOSING));
                mentioned
                    .remarks
                    .push(format!("@{shown} names no file here; it is sent as text"));
            }
            continue;
        };
        if seen.contains(&path) {
            continue;
        }
        if seen.len() == FILES_MAX {
            return Err(format!("a question may name {FILES_MAX} files at most"));
        }
        match read(&path).map_err(|problem| format!("@{}: {problem}", sanitize::single_line(shown)))? {
            Content::Image { media_type, data } => mentioned.parts.push(Part::Image { media_type, data }),
            Content::Text { text, whole_bytes } => {
                let cut = text.len() > TEXT_BYTES_MAX || whole_bytes.is_some();
                let mut label = shown.to_owned();
                if let Some(bytes) = whole_bytes.filter(|_| cut) {
                    label.push_str(&format!(" (the first {TEXT_BYTES_MAX} of {bytes} bytes)"));
                    let shown = sanitize::single_line(shown);
                    mentioned.remarks.push(format!(
                        "@{shown} is cut: the first {TEXT_BYTES_MAX} of its {bytes} bytes go along"
                    ));
                }
                mentioned.parts.push(Part::Context { label, text });
            }
            Content::Directory => {
                let shown = sanitize::single_line(shown);
                mentioned
                    .remarks
                    .push(format!("@{shown} is a directory; it is sent as text"));
            }
        }
        seen.push(path);
    }
    Ok(mentioned)
}

/// The path of each image among a question's parts, as far as its text tells: for showing a conversation again.
pub fn image_names<'a>(text: &'a str, parts: &[Part]) -> Vec<&'a str> {
    let images = parts.iter().filter(|part| matches!(part, Part::Image { .. })).count();
    let is_context = |word: &Word<'_>| {
        parts.iter().any(|part| match part {
            Part::Context { label, .. } => label.starts_with(word.text.trim_end_matches(CLOSING)),
            Part::Text { .. }
            | Part::Thinking { .. }
            | Part::Image { .. }
            | Part::Provider { .. }
            | Part::Call { .. }
            | Part::PartialCall { .. } => false,
        })
    };
    let mut names: Vec<&str> = Vec::new();
    for word in words(text).filter(|word| !is_context(word)) {
        let name = word.text.trim_end_matches(CLOSING);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    // Some word named nothing that was there: then nobody knows which is which.
    if names.len() == images { names } else { Vec::new() }
}

/// How large the bytes behind base64 text are.
pub fn decoded_bytes(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}

/// A word behind an `@`.
struct Word<'a> {
    text: &'a str,
    is_quoted: bool,
}

impl Word<'_> {
    /// Whether somebody who wrote this probably meant a file. `@someone` does not, nor does `@server:uri`.
    fn looks_like_path(&self) -> bool {
        let has_extension = Path::new(self.text.trim_end_matches(CLOSING)).extension().is_some();
        self.is_quoted || ((self.text.contains('/') || has_extension) && !self.text.contains(':'))
    }
}

/// Words that begin with an `@` of their own; one inside a word is an address, or something else.
fn words(text: &str) -> impl Iterator<Item = Word<'_>> {
    text.match_indices('@').filter_map(|(at, _)| {
        let before = text.get(..at)?.chars().next_back();
        if before.is_some_and(|c| !c.is_whitespace() && !OPENING.contains(&c)) {
            return None;
        }
        let rest = text.get(at + 1..)?;
        let word = match rest.strip_prefix('"') {
            Some(quoted) => Word {
                text: quoted.split_once('"')?.0,
                is_quoted: true,
            },
            None => Word {
                text: rest.split(char::is_whitespace).next()?,
                is_quoted: false,
            },
        };
        (!word.text.is_empty()).then_some(word)
    })
}

/// What a word names, if that is there: as it stands, else without the punctuation that may follow a word.
fn existing<'a>(word: &Word<'a>, places: Places<'_>) -> Option<(&'a str, PathBuf)> {
    let mut text = word.text;
    loop {
        let path = placed(text, places);
        if std::fs::metadata(&path).is_ok() {
            return Some((text, path));
        }
        text = text
            .strip_suffix(CLOSING)
            .filter(|text| !text.is_empty() && !word.is_quoted)?;
    }
}

fn placed(text: &str, places: Places<'_>) -> PathBuf {
    match (text.strip_prefix("~/"), places.home) {
        (Some(below), Some(home)) => home.join(below),
        (Some(_) | None, _) => places.directory.join(text),
    }
}

/// What is in a file.
#[derive(Debug, PartialEq)]
enum Content {
    /// An image, in base64.
    Image { media_type: String, data: String },
    /// Text; with the size of the whole where it was cut.
    Text { text: String, whole_bytes: Option<u64> },
    /// Nothing to read.
    Directory,
}

fn read(path: &Path) -> Result<Content, String> {
    let failed = |error: std::io::Error| format!("cannot be read: {error}");
    // Opening a pipe waits for somebody to write; what is no file of bytes is told so instead.
    let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = File::options()
        .read(true)
        .custom_flags(nonblocking)
        .open(path)
        .map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if metadata.is_dir() {
        return Ok(Content::Directory);
    }
    if !metadata.is_file() {
        return Err("is no file of bytes".to_owned());
    }
    let mut bytes = Vec::new();
    let mut limited = file.take(u64::try_from(IMAGE_BYTES_MAX).unwrap_or(u64::MAX) + 1);
    limited.read_to_end(&mut bytes).map_err(failed)?;
    let head = bytes.get(..bytes.len().min(HEAD_BYTES)).unwrap_or_default();
    let kind = infer::get(head).map(|kind| kind.mime_type());
    if let Some(media_type) = kind.filter(|kind| IMAGE_TYPES.contains(kind)) {
        if bytes.len() > IMAGE_BYTES_MAX {
            let megabytes = IMAGE_BYTES_MAX / 1_000_000;
            return Err(format!(
                "is too large: {megabytes} MB of image are the most a model takes"
            ));
        }
        return Ok(Content::Image {
            media_type: media_type.to_owned(),
            data: base64::engine::general_purpose::STANDARD.encode(&bytes),
        });
    }
    if head.contains(&0) {
        let kind = kind.map(|kind| format!(" ({kind})")).unwrap_or_default();
        return Err(format!("is neither text nor an image that models take{kind}"));
    }
    let read = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let whole_bytes = (bytes.len() > TEXT_BYTES_MAX).then(|| metadata.len().max(read));
    bytes.truncate(TEXT_BYTES_MAX);
    Ok(Content::Text {
        text: String::from_utf8_lossy(&bytes).into_owned(),
        whole_bytes,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// The smallest beginning that tells a PNG.
    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn file(self, name: &str, bytes: &[u8]) -> Self {
            let path = self.0.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
            self
        }

        fn gather(&self, text: &str) -> Result<Mentioned, String> {
            let home = self.0.path().join("home");
            gather(
                text,
                Places {
                    directory: self.0.path(),
                    home: Some(&home),
                },
            )
        }

        fn parts(&self, text: &str) -> Vec<Part> {
            self.gather(text).unwrap().parts
        }
    }

    fn context(label: &str, text: &str) -> Part {
        Part::Context {
            label: label.into(),
            text: text.into(),
        }
    }

    fn image(bytes: &[u8]) -> Part {
        Part::Image {
            media_type: "image/png".into(),
            data: base64::engine::general_purpose::STANDARD.encode(bytes),
        }
    }

    /// A word that begins with `@` and names a file; an address, a name and what is not there are text.
    #[test]
    fn what_is_a_mention() {
        let folder = Folder::new()
            .file("a.md", b"one")
            .file("b c.md", b"two")
            .file("home/d", b"three")
            .file("example.org", b"not meant");
        let one = || vec![context("a.md", "one")];
        assert_eq!(folder.parts("look at @a.md"), one());
        assert_eq!(folder.parts("(see @a.md), please; @a.md."), one());
        assert_eq!(folder.parts("is it @a.md?"), one());
        assert_eq!(
            folder.parts(r#"@"b c.md" and @~/d"#),
            [context("b c.md", "two"), context("~/d", "three")]
        );
        assert_eq!(folder.parts("me@example.org asks @someone"), []);
        assert_eq!(folder.parts("@ @\" @\"\""), []);
    }

    /// What looks like a path and is none is said to be sent as text; a name of somebody is not worth a word.
    #[test]
    fn hints() {
        let folder = Folder::new().file("sub/x", b"");
        let check = |text: &str, expect: &[&str]| {
            assert_eq!(folder.gather(text).unwrap().remarks, expect, "{text}");
        };
        check("@nowhere.md", &["@nowhere.md names no file here; it is sent as text"]);
        check("@src/nowhere", &["@src/nowhere names no file here; it is sent as text"]);
        check("@someone, @docs:file:///x", &[]);
        check("@sub", &["@sub is a directory; it is sent as text"]);
    }

    /// Images are told by their content, whatever they are called.
    #[test]
    fn images() {
        let folder = Folder::new()
            .file("a.png", PNG)
            .file("b.txt", PNG)
            .file("c.png", b"text");
        assert_eq!(
            folder.parts("@a.png @b.txt @c.png"),
            [image(PNG), image(PNG), context("c.png", "text")]
        );
        let parts = folder.parts("@a.png, @c.png");
        assert_eq!(image_names("@a.png, @c.png", &parts), ["a.png"]);
        assert_eq!(image_names("@a.png @gone.png", &parts), [""; 0]);
        assert_eq!(decoded_bytes("AAAA"), 3);
        assert_eq!(decoded_bytes("AA=="), 1);
    }

    /// SPEC 12: what is read is bounded: a long text is cut and says so, an image that is too large is an error.
    #[test]
    fn bounds() {
        let mut large = PNG.to_vec();
        large.resize(IMAGE_BYTES_MAX, 0);
        let mut too_large = large.clone();
        too_large.push(0);
        let folder = Folder::new()
            .file("long.txt", &vec![b'x'; TEXT_BYTES_MAX + 1])
            .file("large.png", &large)
            .file("too-large.png", &too_large);
        let long = folder.gather("@long.txt").unwrap();
        assert!(
            matches!(&long.parts[..], [Part::Context { label, text }] if text.len() == TEXT_BYTES_MAX && label.contains("262145")),
        );
        assert_eq!(
            long.remarks,
            ["@long.txt is cut: the first 262144 of its 262145 bytes go along"]
        );
        assert_eq!(folder.parts("@large.png").len(), 1);
        let problem = folder.gather("@too-large.png").unwrap_err();
        assert_eq!(
            problem,
            "@too-large.png: is too large: 5 MB of image are the most a model takes"
        );
        let many: String = (0..=FILES_MAX).map(|n| format!("@f{n}.md ")).collect();
        let folder = (0..=FILES_MAX).fold(Folder::new(), |folder, n| folder.file(&format!("f{n}.md"), b"x"));
        assert!(folder.gather(&many).unwrap_err().contains("32 files"));
    }

    /// SPEC 12: nothing hangs: a pipe that nobody writes to and a device without end are refused.
    #[test]
    fn what_is_no_file() {
        let folder = Folder::new()
            .file("data.bin", b"\0\x01\x02")
            .file("doc.pdf", b"%PDF-1.7\0");
        rustix::fs::mkfifoat(
            rustix::fs::CWD,
            folder.0.path().join("pipe"),
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        )
        .unwrap();
        let problem = |text: &str| folder.gather(text).unwrap_err();
        assert_eq!(problem("@pipe"), "@pipe: is no file of bytes");
        assert_eq!(problem("@/dev/zero"), "@/dev/zero: is no file of bytes");
        assert_eq!(
            problem("@data.bin"),
            "@data.bin: is neither text nor an image that models take"
        );
        assert!(problem("@doc.pdf").contains("application/pdf"));
    }
}
