//! Text that keeps its lines: what stands in `pre`.

use super::references::decoded;
use super::tokens::Tag;

/// Characters of the name of a language.
const LANGUAGE_CHARS_MAX: usize = 20;

/// Such a text, as far as it has come.
pub(super) struct Code {
    text: String,
    language: String,
}

impl Code {
    /// Nothing yet of what this tag begins.
    pub(super) fn begun_by(tag: &Tag<'_>) -> Self {
        Self {
            text: String::new(),
            language: language(tag),
        }
    }

    /// Text of the page within it.
    pub(super) fn push(&mut self, text: &str) {
        self.text.push_str(&decoded(text));
    }

    /// An element within it: most only colour it.
    pub(super) fn start(&mut self, tag: &Tag<'_>) {
        match tag.name.as_ref() {
            "br" => self.text.push('\n'),
            "code" if self.language.is_empty() => self.language = language(tag),
            _ => {}
        }
    }

    /// The text between two fences, longer than any in it; `None` where there is none.
    pub(super) fn fenced(&self) -> Option<String> {
        let text = self.text.trim_end();
        let text = text.strip_prefix('\n').unwrap_or(text);
        if text.trim().is_empty() {
            return None;
        }
        let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
        let fence = "`".repeat(longest.max(2) + 1);
        Some(format!("{fence}{}\n{text}\n{fence}", self.language))
    }
}

/// The language that the class of a code block names, as pages with highlighted code say it.
fn language(tag: &Tag<'_>) -> String {
    let class = tag.attribute("class").unwrap_or_default();
    let mut named = class.split_whitespace().filter_map(|class| {
        let name = class
            .strip_prefix("language-")
            .or_else(|| class.strip_prefix("lang-"))?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '#' | '-');
        (name.len() <= LANGUAGE_CHARS_MAX && name.chars().all(is_name)).then(|| name.to_owned())
    });
    named.next().unwrap_or_default()
}
