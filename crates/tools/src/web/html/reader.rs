//! What the elements of a page become: one pass over its tokens into a [`Layout`].
//!
//! There is no tree. What is open is counted by kind, and an element that HTML lets end without a tag (`p`, `li`, `td`) ends
//! where the next of its kind begins.

use super::code::Code;
use super::layout::{Gap, Layout};
use super::references::decoded;
use super::silence::{Asides, Silence, is_silent};
use super::tokens::{Tag, Token, Tokens};
use crate::work::Stop;
use reqwest::Url;
use std::collections::HashSet;
use std::ops::Range;

/// Lists and tables within each other that are told apart.
const NESTED_MAX: usize = 64;
/// Bytes of a link's address that are shown; one that is longer is left out.
const LINK_BYTES_MAX: usize = 1000;
/// What links to a heading itself look like.
const ANCHORS: [&str; 4] = ["§", "¶", "#", "🔗"];
/// Characters of the part that a page calls its main one, above which the rest of the page is left out.
const MAIN_CHARS_MIN: usize = 200;
/// Tokens between two looks at whether anybody waits.
const TOKENS_PER_LOOK: usize = 1024;

/// What reading came to.
pub(super) struct Reading {
    /// The title, one line.
    pub(super) title: String,
    /// The text.
    pub(super) text: String,
    /// Whether there was more than was kept.
    pub(super) is_cut: bool,
    /// Something that was passed over never ended: what was read may be less than there is.
    pub(super) is_doubtful: bool,
}

/// Reads a page that is at this address.
pub(super) fn read(page: &str, base: &Url, asides: Asides, bytes_max: usize, stop: &Stop) -> Reading {
    let mut reader = Reader::new(base.clone(), asides, bytes_max);
    for (n, token) in Tokens::of(page).enumerate() {
        if reader.layout.is_full() || (n % TOKENS_PER_LOOK == 0 && stop.is_set()) {
            break;
        }
        reader.token(token);
    }
    reader.finish()
}

/// A link that is open.
struct Link {
    url: String,
    /// Where its text begins.
    start: usize,
}

/// A list that is open; the number of the next item where it has numbers.
struct List(Option<u64>);

/// A table that is open.
#[derive(Default)]
struct Table {
    /// Cells of the row so far, and how many of them head a column.
    cells: usize,
    heads: usize,
    has_rows: bool,
}

struct Reader {
    layout: Layout,
    base: Url,
    has_own_base: bool,
    asides: Asides,
    silence: Option<Silence>,
    title: Option<String>,
    is_in_title: bool,
    link: Option<Link>,
    /// Whether a link within the page is open.
    is_in_anchor: bool,
    /// The addresses that were told: each is told once.
    told: HashSet<String>,
    lists: Vec<List>,
    tables: Vec<Table>,
    quotes: usize,
    code: Option<Code>,
    /// Where the main part begins, while it is open, and all of it once it is over.
    main_start: Option<usize>,
    main: Option<Range<usize>>,
}

impl Reader {
    fn new(base: Url, asides: Asides, bytes_max: usize) -> Self {
        Self {
            layout: Layout::new(bytes_max),
            base,
            has_own_base: false,
            asides,
            silence: None,
            title: None,
            is_in_title: false,
            link: None,
            is_in_anchor: false,
            told: HashSet::new(),
            lists: Vec::new(),
            tables: Vec::new(),
            quotes: 0,
            code: None,
            main_start: None,
            main: None,
        }
    }

    fn token(&mut self, token: Token<'_>) {
        match token {
            Token::Text(text) => self.text(text),
            Token::Start(tag) => self.start(&tag),
            Token::End(name) => self.end(&name),
        }
    }

    fn text(&mut self, text: &str) {
        if self.is_in_title {
            let title = decoded(text);
            self.title
                .get_or_insert_with(|| title.split_whitespace().collect::<Vec<_>>().join(" "));
            return;
        }
        if self.silence.is_some() || (self.is_in_anchor && ANCHORS.contains(&text.trim())) {
            return;
        }
        match &mut self.code {
            Some(code) => code.push(text),
            None => self.layout.text(&decoded(text)),
        }
    }

    fn start(&mut self, tag: &Tag<'_>) {
        let name = tag.name.as_ref();
        if let Some(silence) = &mut self.silence {
            if silence.name == name && !tag.is_self_closing() {
                silence.depth = silence.depth.saturating_add(1);
            }
            return;
        }
        if is_silent(tag, self.asides) {
            // In `svg` alone an element can end in its own start tag.
            if !(name == "svg" && tag.is_self_closing()) {
                self.silence = Some(Silence {
                    name: name.to_owned(),
                    depth: 1,
                });
            }
            return;
        }
        if let Some(code) = &mut self.code
            && name != "a"
        {
            code.start(tag);
            return;
        }
        match name {
            "title" => self.is_in_title = true,
            "base" => self.rebase(tag),
            "main" if self.main.is_none() && self.main_start.is_none() => self.start_main(),
            "a" => self.start_link(tag),
            "pre" | "xmp" | "listing" | "plaintext" => self.start_code(tag),
            "code" | "kbd" | "samp" | "tt" => self.layout.open("`"),
            "sup" => self.layout.open("^"),
            "br" => self.layout.gap(Gap::Line),
            "hr" => self.rule(),
            "img" => self.image(tag),
            _ => self.start_block(tag),
        }
    }

    fn start_block(&mut self, tag: &Tag<'_>) {
        match tag.name.as_ref() {
            "h1" => self.heading("# "),
            "h2" => self.heading("## "),
            "h3" => self.heading("### "),
            "h4" => self.heading("#### "),
            "h5" => self.heading("##### "),
            "h6" => self.heading("###### "),
            "ul" | "menu" => self.start_list(List(None)),
            "ol" => {
                let first = tag.attribute("start").and_then(|start| start.trim().parse().ok());
                self.start_list(List(Some(first.unwrap_or(1))));
            }
            "li" => self.item(),
            "dt" | "summary" => {
                self.layout.unmark();
                self.layout.gap(Gap::Line);
            }
            "dd" => {
                self.layout.unmark();
                self.layout.gap(Gap::Line);
                self.layout.mark("  ");
            }
            "blockquote" => self.quote(self.quotes.saturating_add(1)),
            "table" => self.start_table(),
            "tr" => self.start_row(),
            "td" => self.start_cell(Cell::Data),
            "th" => self.start_cell(Cell::Head),
            name => self.layout.gap(gap_around(name)),
        }
    }

    fn end(&mut self, name: &str) {
        if name == "title" {
            self.is_in_title = false;
        }
        if let Some(silence) = &mut self.silence {
            if silence.name == name {
                silence.depth -= 1;
                if silence.depth == 0 {
                    self.silence = None;
                }
            }
            return;
        }
        match name {
            "main" => self.end_main(),
            "a" => self.end_link(),
            "pre" | "xmp" | "listing" => self.end_code(),
            _ if self.code.is_some() => {}
            "code" | "kbd" | "samp" | "tt" => self.layout.close("`"),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.layout.unmark();
                self.layout.gap(Gap::Blank);
            }
            "ul" | "ol" | "menu" => self.end_list(),
            "li" => {
                self.layout.unmark();
                self.layout.gap(Gap::Line);
            }
            "blockquote" => self.quote(self.quotes.saturating_sub(1)),
            "td" | "th" => self.layout.end_cell(),
            "tr" => self.end_row(),
            "table" => {
                self.end_row();
                self.tables.pop();
                self.layout.gap(Gap::Blank);
            }
            "p" | "br" => self.layout.gap(gap_around("p")),
            other => self.layout.gap(gap_around(other)),
        }
    }

    /// Addresses of links are relative to what the page says first.
    fn rebase(&mut self, tag: &Tag<'_>) {
        if self.has_own_base {
            return;
        }
        let href = tag.attribute("href").filter(|href| href.len() <= LINK_BYTES_MAX);
        if let Some(base) = href.and_then(|href| self.base.join(href.trim()).ok()) {
            self.base = base;
            self.has_own_base = true;
        }
    }

    fn start_main(&mut self) {
        self.layout.unmark();
        self.layout.gap(Gap::Blank);
        self.main_start = Some(self.layout.len());
    }

    fn end_main(&mut self) {
        self.end_link();
        if let Some(start) = self.main_start.take() {
            self.main = Some(start..self.layout.len());
        }
        self.layout.gap(Gap::Blank);
    }

    fn start_link(&mut self, tag: &Tag<'_>) {
        self.end_link();
        if self.code.is_some() {
            return;
        }
        let href = tag.attribute("href");
        self.is_in_anchor = href.as_ref().is_some_and(|href| href.trim().starts_with('#'));
        let url = href.and_then(|href| self.shown_url(href.trim()));
        self.link = url.map(|url| Link {
            url,
            start: self.layout.len(),
        });
    }

    /// Where a link leads, if to another page.
    fn shown_url(&self, href: &str) -> Option<String> {
        if href.is_empty() || href.starts_with('#') || href.len() > LINK_BYTES_MAX {
            return None;
        }
        let url = self.base.join(href).ok()?;
        let (page, _) = url.as_str().split_once('#').unwrap_or((url.as_str(), ""));
        if page == self.base.as_str() {
            return None;
        }
        let is_shown = matches!(url.scheme(), "http" | "https" | "mailto") && url.as_str().len() <= LINK_BYTES_MAX;
        is_shown.then(|| url.into())
    }

    fn end_link(&mut self) {
        self.is_in_anchor = false;
        let Some(link) = self.link.take() else {
            return;
        };
        let text = self.layout.part(link.start..self.layout.len()).trim();
        let says_it = link.url.strip_prefix("mailto:").unwrap_or(&link.url) == text;
        if !text.is_empty() && !says_it && self.told.insert(link.url.clone()) {
            self.layout.close(&format!(" ({})", link.url));
        }
    }

    fn start_code(&mut self, tag: &Tag<'_>) {
        if self.code.is_none() {
            self.end_link();
            self.layout.gap(Gap::Blank);
            self.code = Some(Code::begun_by(tag));
        }
    }

    fn end_code(&mut self) {
        if let Some(block) = self.code.take().and_then(|code| code.fenced()) {
            self.layout.lines(&block);
        }
        self.layout.gap(Gap::Blank);
    }

    fn rule(&mut self) {
        self.layout.unmark();
        self.layout.gap(Gap::Blank);
        self.layout.lines("---");
        self.layout.gap(Gap::Blank);
    }

    fn image(&mut self, tag: &Tag<'_>) {
        let alt = tag.attribute("alt").unwrap_or_default();
        if !alt.trim().is_empty() {
            self.layout.text(&format!("[image: {}]", alt.trim()));
        }
    }

    fn heading(&mut self, marker: &str) {
        self.layout.gap(Gap::Blank);
        self.layout.mark(marker);
    }

    fn start_list(&mut self, list: List) {
        let gap = if self.lists.is_empty() { Gap::Blank } else { Gap::Line };
        self.layout.gap(gap);
        if self.lists.len() < NESTED_MAX {
            self.lists.push(list);
        }
        self.layout.indent(self.lists.len());
    }

    fn end_list(&mut self) {
        self.lists.pop();
        self.layout.unmark();
        self.layout.indent(self.lists.len());
        let gap = if self.lists.is_empty() { Gap::Blank } else { Gap::Line };
        self.layout.gap(gap);
    }

    fn item(&mut self) {
        self.layout.unmark();
        self.layout.gap(Gap::Line);
        match self.lists.last_mut() {
            Some(List(Some(number))) => {
                self.layout.mark(&format!("{number}. "));
                *number = number.saturating_add(1);
            }
            Some(List(None)) | None => self.layout.mark("- "),
        }
    }

    fn quote(&mut self, depth: usize) {
        self.layout.unmark();
        self.layout.gap(Gap::Blank);
        self.quotes = depth;
        self.layout.quote(depth);
    }

    fn start_table(&mut self) {
        self.layout.gap(Gap::Blank);
        if self.tables.len() < NESTED_MAX {
            self.tables.push(Table::default());
        }
    }

    fn start_row(&mut self) {
        self.end_row();
        self.layout.gap(Gap::Line);
    }

    /// Ends a row; the one that heads the columns is underlined.
    fn end_row(&mut self) {
        let Some(table) = self.tables.last_mut() else {
            return;
        };
        let (cells, heads) = (table.cells, table.heads);
        (table.cells, table.heads) = (0, 0);
        if cells == 0 {
            return;
        }
        let is_first = !std::mem::replace(&mut table.has_rows, true);
        self.layout.end_cell();
        self.layout.gap(Gap::Line);
        if is_first && cells > 1 && heads == cells {
            let columns = vec!["---"; cells.min(NESTED_MAX)];
            self.layout.lines(&columns.join(" | "));
            self.layout.gap(Gap::Line);
        }
    }

    fn start_cell(&mut self, cell: Cell) {
        let Some(table) = self.tables.last_mut() else {
            self.layout.gap(Gap::Line);
            return;
        };
        let is_first = table.cells == 0;
        table.cells += 1;
        table.heads += usize::from(cell == Cell::Head);
        if !is_first {
            self.layout.end_cell();
            self.layout.open(" | ");
        }
        self.layout.begin_cell();
    }

    fn finish(mut self) -> Reading {
        self.end_link();
        self.end_code();
        self.end_main();
        let is_doubtful = self.silence.is_some();
        let is_enough = |part: &Range<usize>| self.layout.part(part.clone()).chars().nth(MAIN_CHARS_MIN).is_some();
        let main = self
            .main
            .take()
            .filter(|part| self.asides == Asides::Left && is_enough(part));
        let (text, is_cut) = self.layout.finish(main);
        Reading {
            title: self.title.unwrap_or_default(),
            text,
            is_cut,
            is_doubtful,
        }
    }
}

/// What a cell of a table is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cell {
    Data,
    Head,
}

/// What stands before and after an element.
fn gap_around(name: &str) -> Gap {
    match name {
        "p" | "section" | "article" | "main" | "header" | "footer" | "aside" | "figure" | "details" | "fieldset"
        | "dl" | "table" | "hgroup" => Gap::Blank,
        "div" | "dt" | "dd" | "address" | "center" | "body" | "html" | "form" | "figcaption" | "summary"
        | "caption" | "legend" | "thead" | "tbody" | "tfoot" | "noscript" | "dialog" | "optgroup" => Gap::Line,
        _ => Gap::None,
    }
}
