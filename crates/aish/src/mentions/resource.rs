//! Resources of MCP servers that a question names: `@alias:uri`, beside its files and within the same bounds (SPEC 6.9).
//!
//! Here it is found out which are named, and what goes along of what was read; the reading is the servers' business.

use super::words::{Word, words};
use super::{FILES_MAX, Mentioned, TEXT_BYTES_MAX};
use aish_core::message::Part;
use aish_core::sanitize;
use aish_mcp::Outcome;
use std::fmt;

/// A resource that a question names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The server's alias.
    pub alias: String,
    /// The resource's address.
    pub uri: String,
}

impl Reference {
    /// What a word names, where it is a resource of one of those servers.
    pub(super) fn of_word(word: &Word<'_>, servers: &[String]) -> Option<Self> {
        let (alias, uri) = word.without_closing().split_once(':')?;
        let is_named = !uri.is_empty() && servers.iter().any(|server| server == alias);
        is_named.then(|| Self {
            alias: alias.to_owned(),
            uri: uri.to_owned(),
        })
    }
}

/// As it was written, escaped.
impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}:{}", self.alias, sanitize::single_line(&self.uri))
    }
}

/// The resources of those servers that a text names, each once, in order.
pub fn references(text: &str, servers: &[String]) -> Vec<Reference> {
    let mut found: Vec<Reference> = Vec::new();
    for word in words(text).filter(Word::is_whole) {
        if let Some(reference) = Reference::of_word(&word, servers)
            && !found.contains(&reference)
        {
            found.push(reference);
        }
    }
    // One more than may be named is enough to refuse the question.
    found.truncate(FILES_MAX + 1);
    found
}

impl Mentioned {
    /// Puts what was read of a resource beside the files.
    ///
    /// # Errors
    /// It cannot go along: one line.
    pub fn add_resource(&mut self, reference: &Reference, outcome: Outcome) -> Result<(), String> {
        let Outcome {
            text, images, remarks, ..
        } = outcome;
        if text.is_empty() && images.is_empty() {
            return Err(match remarks.is_empty() {
                true => format!("{reference} is empty"),
                false => format!("{reference} is nothing that can go along: {}", remarks.join(", ")),
            });
        }
        // A remark on each image is only of interest where one is not shown to the model.
        if remarks.len() > images.len() {
            self.remarks.push(format!("{reference}: {}", remarks.join(", ")));
        }
        if !text.is_empty() {
            let mut label = format!("{}:{}", reference.alias, reference.uri);
            // Where it is cut, a line that says so stands behind what was kept.
            if text.len() > TEXT_BYTES_MAX {
                label.push_str(&format!(" (the first {TEXT_BYTES_MAX} bytes)"));
                let remark = format!("{reference} is cut: its first {TEXT_BYTES_MAX} bytes go along");
                self.remarks.push(remark);
            }
            self.parts.push(Part::Context { label, text });
        }
        for image in images {
            self.push_image(&reference.to_string(), image)?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn servers() -> Vec<String> {
        vec!["desk".to_owned(), "git".to_owned()]
    }

    /// SPEC 6.9: a word that names a server is a resource of it; what names none is text.
    #[test]
    fn what_is_a_reference() {
        let check = |text: &str, expect: &[&str]| {
            let found: Vec<String> = references(text, &servers()).iter().map(ToString::to_string).collect();
            assert_eq!(found, expect, "{text:?}");
        };
        check("see @desk:memo://a.", &["@desk:memo://a"]);
        check("(@git:x), @desk:y? @git:x", &["@git:x", "@desk:y"]);
        check(r#"@"desk:memo://a b" @"desk:c.""#, &["@desk:memo://a b", "@desk:c."]);
        check(r#"@desk:"memo://a b", @desk:"c""#, &["@desk:memo://a b", "@desk:c"]);
        check(r#"@desk:say\"a\"; @desk:a\)."#, &[r#"@desk:say"a""#, "@desk:a)"]);
        check("@nobody:memo://a me@desk:x @desk: @desk @desk:.", &[]);
        check("@desk:\u{1b}[2J", &["@desk:\\x1b[2J"]);
        let many: String = (0..100).map(|number| format!("@desk:{number} ")).collect();
        assert_eq!(references(&many, &servers()).len(), FILES_MAX + 1);
    }

    fn reference() -> Reference {
        Reference {
            alias: "desk".to_owned(),
            uri: "memo://a".to_owned(),
        }
    }

    /// SPEC 6.9: text and images go along; what is neither is an error.
    #[test]
    fn what_goes_along() {
        let mut mentioned = Mentioned::default();
        let image = Part::Image {
            media_type: "image/png".into(),
            data: "AAAA".into(),
        };
        let outcome = Outcome {
            text: "hello".to_owned(),
            images: vec![image.clone()],
            remarks: vec!["an image (image/png, 1 KB)".to_owned()],
            is_error: false,
        };
        mentioned.add_resource(&reference(), outcome).unwrap();
        let label = "desk:memo://a".to_owned();
        let text = "hello".to_owned();
        assert_eq!(mentioned.parts, [Part::Context { label, text }, image]);
        assert_eq!(mentioned.remarks, [""; 0]);
        let blob = Outcome {
            remarks: vec!["a resource (application/gzip, 3 KB)".to_owned()],
            ..Outcome::default()
        };
        assert_eq!(
            mentioned.add_resource(&reference(), blob).unwrap_err(),
            "@desk:memo://a is nothing that can go along: a resource (application/gzip, 3 KB)"
        );
        let nothing = mentioned.add_resource(&reference(), Outcome::default());
        assert_eq!(nothing.unwrap_err(), "@desk:memo://a is empty");
    }

    /// SPEC 4.3: what is cut is said.
    #[test]
    fn long_ones_are_cut() {
        let mut mentioned = Mentioned::default();
        let outcome = Outcome {
            text: "x".repeat(TEXT_BYTES_MAX + 1),
            ..Outcome::default()
        };
        mentioned.add_resource(&reference(), outcome).unwrap();
        assert_eq!(
            mentioned.remarks,
            ["@desk:memo://a is cut: its first 262144 bytes go along"]
        );
    }
}
