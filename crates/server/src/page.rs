//! The page at `/` (SPEC 9.9): its files, which are part of the program, and the headers that go with them.
//!
//! Plain HTML, style sheets and modules from `crates/server/page`, served as they are written: nothing is built, nothing is loaded from
//! elsewhere. The page holds no data: what it shows it asks the API for, with the token that its user gave it, so that these files need
//! none. It believes no text: [`HEADERS`] forbid all code that is not in these files, and `page/dom.js` is the only one that writes.

use std::hash::{DefaultHasher, Hasher};

/// What code and what else the page may load: its own files. `require-trusted-types-for` makes a browser refuse to read text as markup.
pub(crate) const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' \
     data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// Headers of every file, besides `Content-Type` and `ETag`.
pub(crate) const HEADERS: [(&str, &str); 6] = [
    ("content-security-policy", CONTENT_SECURITY_POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    // Asked for again each time, which the tag answers: all files are then of one version.
    ("cache-control", "no-cache"),
];

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The file that the page begins with.
pub(crate) const INDEX: &str = "index.html";

/// Name, type and content of every file.
const FILES: [(&str, &str, &str); 22] = [
    (INDEX, HTML, include_str!("../page/index.html")),
    ("style.css", STYLE, include_str!("../page/style.css")),
    ("frame.css", STYLE, include_str!("../page/frame.css")),
    ("conversation.css", STYLE, include_str!("../page/conversation.css")),
    ("panels.css", STYLE, include_str!("../page/panels.css")),
    ("api.js", SCRIPT, include_str!("../page/api.js")),
    ("app.js", SCRIPT, include_str!("../page/app.js")),
    ("arguments.js", SCRIPT, include_str!("../page/arguments.js")),
    ("dom.js", SCRIPT, include_str!("../page/dom.js")),
    ("items.js", SCRIPT, include_str!("../page/items.js")),
    ("markdown.js", SCRIPT, include_str!("../page/markdown.js")),
    ("model.js", SCRIPT, include_str!("../page/model.js")),
    ("pending.js", SCRIPT, include_str!("../page/pending.js")),
    ("plots.js", SCRIPT, include_str!("../page/plots.js")),
    ("prose.js", SCRIPT, include_str!("../page/prose.js")),
    ("room.js", SCRIPT, include_str!("../page/room.js")),
    ("session.js", SCRIPT, include_str!("../page/session.js")),
    ("sessions.js", SCRIPT, include_str!("../page/sessions.js")),
    ("spans.js", SCRIPT, include_str!("../page/spans.js")),
    ("sse.js", SCRIPT, include_str!("../page/sse.js")),
    ("transcript.js", SCRIPT, include_str!("../page/transcript.js")),
    ("words.js", SCRIPT, include_str!("../page/words.js")),
];

/// One file of the page.
#[derive(Clone, Debug)]
pub(crate) struct PageFile {
    /// Its `Content-Type`.
    pub(crate) content_type: &'static str,
    /// Its `ETag`, with the quotes: the same for the same bytes.
    pub(crate) etag: String,
    /// All of it.
    pub(crate) bytes: &'static [u8],
    name: &'static str,
}

/// The files of the page.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    files: Vec<PageFile>,
}

impl Page {
    /// Reads nothing and waits for nothing: the files are in the program.
    pub(crate) fn new() -> Self {
        let files = FILES.iter().map(|(name, content_type, text)| PageFile {
            content_type,
            etag: tag(text),
            bytes: text.as_bytes(),
            name,
        });
        Self { files: files.collect() }
    }

    /// The file of this name.
    pub(crate) fn file(&self, name: &str) -> Option<&PageFile> {
        self.files.iter().find(|file| file.name == name)
    }
}

impl Default for Page {
    fn default() -> Self {
        Self::new()
    }
}

/// It tells versions of a file apart; nobody gains by making two of them alike.
fn tag(text: &str) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(text.as_bytes());
    format!("\"{:016x}\"", hasher.finish())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    /// What reads text as markup or as code, in one file or another way.
    const BANNED: [&str; 14] = [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "setHTML",
        "srcdoc",
        "document.write",
        "DOMParser",
        "createContextualFragment",
        "eval(",
        "Function(",
        "javascript:",
        "http://",
        "localStorage",
        "document.cookie",
    ];
    const FILE_LINES_MAX: usize = 500;

    fn code_lines(text: &str) -> impl Iterator<Item = &str> {
        text.lines()
            .filter(|line| !line.trim_start().starts_with("//") && !line.trim_start().starts_with('*'))
    }

    /// SPEC 9.9: the page is in the program, every file of it, under the path that the others call it by.
    #[test]
    fn every_file_is_served() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
        let there = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let served: BTreeSet<String> = FILES.iter().map(|(name, ..)| (*name).to_owned()).collect();
        assert_eq!(there.collect::<BTreeSet<_>>(), served);
        let page = Page::new();
        let tags: BTreeSet<&str> = page.files.iter().map(|file| file.etag.as_str()).collect();
        assert_eq!(tags.len(), FILES.len());
        for (name, _, text) in FILES {
            assert_eq!(page.file(name).unwrap().bytes, text.as_bytes());
            for (from, quote) in [("from './", '\''), ("href=\"page/", '"'), ("src=\"page/", '"')] {
                for other in text.split(from).skip(1).filter_map(|rest| rest.split(quote).next()) {
                    assert!(served.contains(other), "{name} asks for {other}");
                }
            }
        }
        assert_eq!(page.file(INDEX).unwrap().content_type, HTML);
        for name in ["", "/", "../page/app.js", "/app.js", "page/app.js", "Cargo.toml"] {
            assert!(page.file(name).is_none(), "{name}");
        }
    }

    /// SPEC 9.9: nothing in the page reads text as markup or as code, or keeps the token beyond its tab; nothing is loaded from elsewhere.
    #[test]
    fn text_stays_text() {
        for (name, content_type, text) in FILES {
            for (line, banned) in code_lines(text).flat_map(|line| BANNED.map(|banned| (line, banned))) {
                let names_svg = line.contains("http://www.w3.org/2000/svg");
                assert!(names_svg || !line.contains(banned), "{name}: {banned}: {line}");
            }
            assert!(text.lines().count() <= FILE_LINES_MAX, "{name} is long");
            let begins = if content_type == SCRIPT {
                "// "
            } else if content_type == STYLE {
                "/* "
            } else {
                "<!doctype html>"
            };
            assert!(text.starts_with(begins), "{name} does not say what it owns");
            assert!(
                !text.contains("@import") && !text.contains("url("),
                "{name} loads something"
            );
        }
        let (_, _, index) = FILES[0];
        for inline in [
            "<style", " style=", " onclick", " onload", "<script>", "<base", "<iframe",
        ] {
            assert!(!index.contains(inline), "{inline}");
        }
    }

    /// SPEC 9.9: no code but that of these files runs, and the page is in nobody's frame.
    #[test]
    fn the_policy_is_strict() {
        assert!(
            CONTENT_SECURITY_POLICY
                .starts_with("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; ")
        );
        for strict in [
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "img-src 'self' data:",
        ] {
            assert!(
                CONTENT_SECURITY_POLICY.split("; ").any(|rule| rule == strict),
                "{strict}"
            );
        }
        assert!(!CONTENT_SECURITY_POLICY.contains("unsafe") && !CONTENT_SECURITY_POLICY.contains('*'));
        assert!(
            HEADERS
                .iter()
                .all(|(name, value)| name.is_ascii() && value.is_ascii() && !value.contains("  "))
        );
    }
}
