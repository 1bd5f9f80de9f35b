//! Complete text of a paragraph, a heading or a cell, read by `pulldown-cmark` and written as words.
//!
//! Each piece is read alone, shielded so that it is read as it would be where it stands. Text without any marks is not parsed
//! at all.

use crate::link::{self, Address};
use crate::look::{Colour, Links, Look, Palette};
use crate::rows::{Ink, Rows};
use aish_core::sanitize;
use anstyle::Style;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::ops::{Range, RangeInclusive};
use std::rc::Rc;

/// A line that is shorter or longer was not broken to fit a page: its end is kept. CommonMark leaves it to the renderer (6.8).
const WRAPPED_LINE_CHARACTERS: RangeInclusive<usize> = 60..=100;
/// Stands before text that is read alone, so that it is read as what follows a space.
const SHIELD_SPACE: &str = "x ";
/// The same behind punctuation.
const SHIELD_PUNCTUATION: &str = "x.";

/// The end of a line within a paragraph.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Break {
    /// A space would do.
    Soft,
    /// The next text begins a row.
    Row,
}

/// Where a piece of text stands in its paragraph.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The character before it.
    pub previous: char,
    /// Characters before it on its line of the source.
    pub line_characters: usize,
}

impl Place {
    /// Before everything else.
    pub(crate) const START: Self = Self {
        previous: ' ',
        line_characters: 0,
    };
}

/// Writes a piece of text.
pub(crate) fn write(text: &str, place: Place, look: Look, base: Style, rows: &mut Rows) {
    Writer::new(look, base).write(text, place, rows);
}

/// What the end of a line of so many characters is, unless it says itself.
pub(crate) fn soft_break(line_characters: usize) -> Break {
    if WRAPPED_LINE_CHARACTERS.contains(&line_characters) {
        Break::Soft
    } else {
        Break::Row
    }
}

/// Characters of the last line of a text that begins behind so many of its line.
pub(crate) fn line_characters(text: &str, before: usize) -> usize {
    match text.rsplit_once('\n') {
        Some((_, last)) => last.chars().count(),
        None => before + text.chars().count(),
    }
}

struct Writer {
    look: Look,
    palette: Palette,
    base: Style,
    bold: usize,
    italic: usize,
    strike: usize,
    links: Vec<OpenLink>,
}

struct OpenLink {
    address: String,
    text: String,
    target: Option<Rc<Address>>,
    is_image: bool,
}

impl Writer {
    fn new(look: Look, base: Style) -> Self {
        Self {
            look,
            palette: look.palette(),
            base,
            bold: 0,
            italic: 0,
            strike: 0,
            links: Vec::new(),
        }
    }

    fn write(mut self, text: &str, place: Place, rows: &mut Rows) {
        if !text.contains(is_mark) {
            return self.plain(text, place.line_characters, rows);
        }
        let mut shielded = shield(place.previous);
        let shield = shielded.len();
        push_as_paragraph(&mut shielded, text);
        let options = Options::ENABLE_STRIKETHROUGH;
        for (event, range) in Parser::new_ext(&shielded, options).into_offset_iter() {
            match event {
                Event::Text(text) => {
                    let skipped = shield.saturating_sub(range.start);
                    self.words(text.get(skipped..).unwrap_or_default(), rows);
                }
                Event::Code(code) => self.code(&code, rows),
                Event::InlineHtml(html) | Event::Html(html) => self.html(&html, rows),
                Event::SoftBreak => {
                    let before = shielded.get(shield..range.start).unwrap_or_default();
                    self.line_end(soft_break(line_characters(before, place.line_characters)), rows);
                }
                Event::HardBreak => self.line_end(Break::Row, rows),
                Event::Start(tag) => self.start(tag, source(&shielded, &range), rows),
                Event::End(tag) => self.end(tag, source(&shielded, &range), rows),
                // None of these is asked for.
                Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                    self.words(&text, rows)
                }
                Event::Rule | Event::TaskListMarker(_) => {}
            }
        }
    }

    /// Text without any marks.
    fn plain(&mut self, text: &str, line_characters: usize, rows: &mut Rows) {
        let mut before = line_characters;
        for (n, line) in text.split('\n').enumerate() {
            if n > 0 {
                self.line_end(soft_break(before), rows);
                before = 0;
            }
            self.words(line, rows);
            before += line.chars().count();
        }
    }

    fn line_end(&mut self, kind: Break, rows: &mut Rows) {
        match kind {
            Break::Soft => rows.space(&self.ink()),
            Break::Row => rows.end_row(),
        }
        self.said(" ");
    }

    fn words(&mut self, text: &str, rows: &mut Rows) {
        // An entity may be any character.
        let text = sanitize::single_line(text);
        self.said(&text);
        rows.words(&text, &self.ink());
    }

    fn code(&mut self, code: &str, rows: &mut Rows) {
        let code = sanitize::single_line(code);
        self.said(&code);
        let mut ink = self.ink();
        if self.look.colour == Colour::None {
            let fence = code_fence(&code);
            rows.spaced(&format!("{fence}{code}{fence}"), &ink);
        } else {
            ink.style |= self.palette.code.get_effects();
            ink.style = ink.style.fg_color(self.palette.code.get_fg_color());
            rows.spaced(&code, &ink);
        }
    }

    /// Tags are text.
    fn html(&mut self, html: &str, rows: &mut Rows) {
        for (n, line) in html.split('\n').enumerate() {
            if n > 0 {
                rows.space(&self.ink());
            }
            self.words(line, rows);
        }
    }

    fn start(&mut self, tag: Tag<'_>, source: &str, rows: &mut Rows) {
        match tag {
            Tag::Strong => {
                self.mark("**", rows);
                self.bold += 1;
            }
            Tag::Emphasis => {
                self.mark("*", rows);
                self.italic += 1;
            }
            Tag::Strikethrough if source.starts_with("~~") => {
                self.mark("~~", rows);
                self.strike += 1;
            }
            Tag::Strikethrough => self.words("~", rows),
            Tag::Link { dest_url, .. } => self.open_link(&dest_url, false),
            Tag::Image { dest_url, .. } => {
                self.words("[image: ", rows);
                self.open_link(&dest_url, true);
            }
            Tag::Paragraph
            | Tag::Heading { .. }
            | Tag::BlockQuote(_)
            | Tag::CodeBlock(_)
            | Tag::HtmlBlock
            | Tag::List(_)
            | Tag::Item
            | Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Table(_)
            | Tag::TableHead
            | Tag::TableRow
            | Tag::TableCell
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => {}
        }
    }

    fn end(&mut self, tag: TagEnd, source: &str, rows: &mut Rows) {
        match tag {
            TagEnd::Strong => {
                self.bold -= 1;
                self.mark("**", rows);
            }
            TagEnd::Emphasis => {
                self.italic -= 1;
                self.mark("*", rows);
            }
            TagEnd::Strikethrough if source.starts_with("~~") => {
                self.strike -= 1;
                self.mark("~~", rows);
            }
            TagEnd::Strikethrough => self.words("~", rows),
            TagEnd::Link | TagEnd::Image => self.close_link(rows),
            TagEnd::Paragraph
            | TagEnd::Heading(_)
            | TagEnd::BlockQuote(_)
            | TagEnd::CodeBlock
            | TagEnd::HtmlBlock
            | TagEnd::List(_)
            | TagEnd::Item
            | TagEnd::FootnoteDefinition
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Table
            | TagEnd::TableHead
            | TagEnd::TableRow
            | TagEnd::TableCell
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::MetadataBlock(_) => {}
        }
    }

    /// Without colours the marks stay, so that nothing is lost.
    fn mark(&self, mark: &str, rows: &mut Rows) {
        if self.look.colour == Colour::None {
            rows.words(mark, &self.ink());
        }
    }

    fn open_link(&mut self, address: &str, is_image: bool) {
        let inside = self.links.last().and_then(|link| link.target.clone());
        let target = match self.look.links {
            Links::Osc8 => inside.or_else(|| Address::new(address).map(Rc::new)),
            Links::Plain => None,
        };
        self.links.push(OpenLink {
            address: address.to_owned(),
            text: String::new(),
            target,
            is_image,
        });
    }

    fn close_link(&mut self, rows: &mut Rows) {
        let Some(link) = self.links.pop() else {
            return;
        };
        if link.is_image {
            rows.words("]", &self.ink());
        }
        let hides = link.target.is_none() || link.is_image || link::misleads(&link.text, &link.address);
        if hides && !link.address.is_empty() && !link::says_address(&link.text, &link.address) {
            let plain = self.ink();
            rows.space(&plain);
            rows.words(&format!("({})", link::encoded(&link.address)), &plain);
        }
        self.said(&link.text);
    }

    fn said(&mut self, text: &str) {
        if let Some(link) = self.links.last_mut() {
            link.text.push_str(text);
        }
    }

    fn ink(&self) -> Ink {
        let mut style = self.base;
        let marks = [
            (self.bold, self.palette.strong),
            (self.italic, self.palette.emphasis),
            (self.strike, self.palette.strike),
            (self.links.len(), self.palette.link),
        ];
        for (_, mark) in marks.iter().filter(|(depth, _)| *depth > 0) {
            style |= mark.get_effects();
            style = style.fg_color(mark.get_fg_color().or(style.get_fg_color()));
        }
        Ink {
            style,
            link: self.links.last().and_then(|link| link.target.clone()),
        }
    }
}

/// True for characters that may mean something in a paragraph.
fn is_mark(c: char) -> bool {
    matches!(c, '*' | '_' | '~' | '`' | '[' | ']' | '<' | '&' | '\\' | '!')
}

/// What stands before text that is read alone, so that it is read as it would be behind that character.
fn shield(previous: char) -> String {
    if previous.is_whitespace() {
        SHIELD_SPACE.to_owned()
    } else if previous.is_alphanumeric() {
        previous.to_string()
    } else {
        SHIELD_PUNCTUATION.to_owned()
    }
}

/// Text that goes on in a paragraph, though it might begin a block where it stands alone.
fn push_as_paragraph(shielded: &mut String, text: &str) {
    for (n, line) in text.split('\n').enumerate() {
        let bare = line.trim();
        let underlines = !bare.is_empty() && (bare.bytes().all(|b| b == b'=') || bare.bytes().all(|b| b == b'-'));
        if n > 0 {
            shielded.push(if underlines { ' ' } else { '\n' });
        }
        shielded.push_str(line);
    }
}

fn source<'a>(text: &'a str, range: &Range<usize>) -> &'a str {
    text.get(range.clone()).unwrap_or_default()
}

/// As many backticks as the code does not have in a row.
fn code_fence(code: &str) -> String {
    let longest = code.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    "`".repeat(longest + 1)
}
