//! Texts rendered, and what is left of them without styles.
#![allow(dead_code, clippy::wildcard_enum_match_arm)]

use aish_markdown::{Background, Colour, Links, Look, Markdown, Syntaxes};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::sync::LazyLock;
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr;

/// Nothing but text.
pub const PLAIN: Look = Look {
    columns: 80,
    colour: Colour::None,
    links: Links::Plain,
    background: Background::Dark,
};

/// What marks and frames are made of; nothing of it is text.
const DECORATION: &str = "│┌└├┼─═•◦▪";

/// Read once for all tests of a binary: which lines are coloured must not depend on a thread.
static SYNTAXES: LazyLock<Syntaxes> = LazyLock::new(Syntaxes::loaded);

/// The text in one piece.
pub fn at_once(text: &str, look: Look) -> String {
    in_pieces(text, look, &[text.len().max(1)])
}

/// The text in pieces of those sizes, over and over.
pub fn in_pieces(text: &str, look: Look, sizes: &[usize]) -> String {
    let mut markdown = Markdown::with_syntaxes(look, &SYNTAXES);
    let mut out = String::new();
    let mut rest = text;
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, after) = rest.split_at(rest.ceil_char_boundary((*size).min(rest.len())));
        markdown.push(piece, &mut out);
        rest = after;
    }
    markdown.finish(&mut out);
    out
}

/// Without the sequences this crate writes: styles (SGR) and hyperlinks (OSC 8).
pub fn shown(out: &str) -> String {
    let mut bare = String::new();
    let mut rest = out;
    while let Some(at) = rest.find('\u{1b}') {
        bare.push_str(&rest[..at]);
        let sequence = &rest[at + 1..];
        let end = if let Some(style) = sequence.strip_prefix('[') {
            style
                .find('m')
                .filter(|end| style[..*end].chars().all(|c| c.is_ascii_digit() || c == ';'))
                .map(|end| end + 2)
        } else if let Some(link) = sequence.strip_prefix("]8;") {
            let end = link.find("\u{1b}\\");
            end.filter(|end| link[..*end].chars().all(|c| c.is_ascii_graphic()))
                .map(|end| end + 5)
        } else {
            None
        };
        let Some(end) = end else {
            // Not ours: it stays, to be found.
            bare.push_str(&rest[at..]);
            return bare;
        };
        rest = &sequence[end..];
    }
    bare + rest
}

/// Columns of a row.
pub fn columns(row: &str) -> usize {
    row.graphemes(true).map(UnicodeWidthStr::width).sum()
}

/// The letters of a text as it is shown in a terminal that is wide enough.
pub fn text_of(text: &str) -> String {
    let wide = Look {
        columns: 100_000,
        colour: Colour::Basic,
        links: Links::Osc8,
        ..PLAIN
    };
    let shown = shown(&at_once(text, wide));
    let mut letters = String::new();
    for row in shown.lines() {
        // The name of a language is no text.
        let row = row.split('┌').next().unwrap_or_default();
        letters.extend(row.chars().filter(|c| !c.is_whitespace() && !DECORATION.contains(*c)));
    }
    letters
}

/// The letters `pulldown-cmark` finds in the whole text, with the marks of lists as they are shown.
pub fn whole_text(text: &str) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS | Options::ENABLE_STRIKETHROUGH;
    let mut letters = String::new();
    let mut lists: Vec<Option<u64>> = Vec::new();
    let mut mark_at = 0;
    for event in Parser::new_ext(text, options) {
        match event {
            Event::Text(text) | Event::Code(text) | Event::Html(text) | Event::InlineHtml(text) => {
                letters.extend(text.chars().filter(|c| !c.is_whitespace() && !DECORATION.contains(*c)));
            }
            Event::Start(Tag::List(number)) => lists.push(number),
            Event::End(TagEnd::List(_)) => drop(lists.pop()),
            Event::Start(Tag::Item) => {
                mark_at = letters.len();
                if let Some(Some(number)) = lists.last_mut() {
                    letters.push_str(&format!("{number}."));
                    *number += 1;
                }
            }
            Event::TaskListMarker(done) => {
                letters.truncate(mark_at);
                letters.push_str(if done { "[x]" } else { "[]" });
            }
            _ => {}
        }
    }
    letters
}
