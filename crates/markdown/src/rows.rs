//! Rows of a terminal, written once: words wrapped at the width behind the prefixes of what they stand in.
//!
//! [`Rows`] takes text word by word and writes a word as soon as it is complete. What was written is never taken back. Every
//! styled piece ends its own style, so that the terminal is in its plain state whenever a caller gets the text. Where a row
//! breaks depends on the characters alone, never on how they were cut into calls.

use crate::link::Address;
use anstyle::Style;
use std::rc::Rc;
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// A word longer than this is written before it is complete.
const WORD_BYTES_MAX: usize = 4096;
/// Tab stops inside code.
const TAB_COLUMNS: usize = 4;

/// How a piece of text looks, and where it leads.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ink {
    /// Its style; plain where no colours are written.
    pub style: Style,
    /// What a click opens.
    pub link: Option<Rc<Address>>,
}

impl Ink {
    /// Text that leads nowhere.
    pub(crate) fn styled(style: Style) -> Self {
        Self { style, link: None }
    }
}

/// What stands before the rows of one container.
#[derive(Debug)]
pub(crate) struct Prefix {
    /// Before the first row, until it is written: the mark of a list item.
    pub mark: Option<String>,
    /// Before every other row.
    pub rest: String,
    /// How both look.
    pub style: Style,
}

/// Where the text stands in its rows.
#[derive(Debug)]
pub(crate) struct Rows {
    columns: usize,
    prefixes: Vec<Prefix>,
    out: String,
    /// Something is written in the current row, if only its prefix.
    open: bool,
    /// Columns taken in the current row.
    column: usize,
    /// Columns its prefix took.
    prefix_columns: usize,
    word: Vec<(Ink, String)>,
    word_bytes: usize,
    /// The word goes on with one that was too long to be held: it breaks anywhere.
    glued: bool,
    /// Spaces before the word.
    gap: usize,
    gap_ink: Ink,
    last: Option<char>,
    /// The width of each row that was ended.
    widths: Widths,
}

/// How wide rows were.
#[derive(Debug)]
enum Widths {
    /// The widest of them.
    Widest(usize),
    /// Each of them.
    All(Vec<usize>),
}

impl Rows {
    /// Rows of at most so many columns.
    pub(crate) fn new(columns: usize) -> Self {
        Self {
            columns: columns.max(1),
            prefixes: Vec::new(),
            out: String::new(),
            open: false,
            column: 0,
            prefix_columns: 0,
            word: Vec::new(),
            word_bytes: 0,
            glued: false,
            gap: 0,
            gap_ink: Ink::default(),
            last: None,
            widths: Widths::Widest(0),
        }
    }

    /// Rows that are asked for one by one, at the end.
    pub(crate) fn counted(columns: usize) -> Self {
        Self {
            widths: Widths::All(Vec::new()),
            ..Self::new(columns)
        }
    }

    /// Rows that begin from now on have this width.
    pub(crate) fn resize(&mut self, columns: usize) {
        self.columns = columns.max(1);
    }

    /// What was written since this was called last.
    pub(crate) fn take(&mut self) -> String {
        std::mem::take(&mut self.out)
    }

    /// Columns that are left for text behind the prefixes of a row.
    pub(crate) fn room(&self) -> usize {
        let taken: usize = self.shown_prefixes().map(|(_, text)| text.width()).sum();
        self.columns.saturating_sub(taken).max(1)
    }

    /// Stands before every row until it is dropped.
    pub(crate) fn push_prefix(&mut self, prefix: Prefix) {
        self.prefixes.push(prefix);
    }

    /// Keeps the outermost `kept` prefixes. A mark that nothing was written behind gets a row of its own.
    pub(crate) fn keep_prefixes(&mut self, kept: usize) {
        if self.prefixes.iter().skip(kept).any(|prefix| prefix.mark.is_some()) {
            self.begin_row();
        }
        self.end_row();
        self.prefixes.truncate(kept);
    }

    /// Text of one line: words and the spaces between them.
    pub(crate) fn words(&mut self, text: &str, ink: &Ink) {
        for c in text.chars() {
            if c == ' ' || c == '\t' {
                self.space(ink);
            } else {
                self.letter(c, ink);
            }
        }
    }

    /// The same with all its spaces.
    pub(crate) fn spaced(&mut self, text: &str, ink: &Ink) {
        for c in text.chars() {
            if c == ' ' || c == '\t' {
                let gap = self.gap + usize::from(self.word.is_empty());
                self.space(ink);
                self.gap = gap.max(1);
            } else {
                self.letter(c, ink);
            }
        }
    }

    /// A space: the word before it is complete.
    pub(crate) fn space(&mut self, ink: &Ink) {
        self.end_word();
        self.glued = false;
        self.gap = 1;
        self.gap_ink = ink.clone();
        self.last = None;
    }

    /// Writes the word that was held.
    pub(crate) fn end_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        let word = std::mem::take(&mut self.word);
        self.word_bytes = 0;
        let columns: usize = word.iter().map(|(_, text)| width(text)).sum();
        if !self.open {
            self.begin_row();
        }
        let at_start = self.column == self.prefix_columns;
        let gap = if at_start { 0 } else { self.gap };
        self.gap = 0;
        if self.column + gap + columns <= self.columns {
            self.write_word(gap, word);
            self.column += gap + columns;
            return;
        }
        if !at_start && !self.glued {
            self.end_row();
            self.begin_row();
        }
        for (ink, text) in &word {
            self.write_broken(text, ink);
        }
    }

    /// Ends the current row, if one was begun.
    pub(crate) fn end_row(&mut self) {
        self.end_word();
        self.glued = false;
        self.gap = 0;
        self.last = None;
        self.break_row();
    }

    /// Ends the current row so that something else can be written; a word that is held goes on in the next one, whole.
    pub(crate) fn break_row(&mut self) {
        if self.open {
            self.out.push('\n');
            self.note_width();
            self.open = false;
            self.column = 0;
        }
    }

    /// Columns that are written in the current row.
    pub(crate) fn column(&self) -> usize {
        self.column
    }

    fn note_width(&mut self) {
        match &mut self.widths {
            Widths::Widest(widest) => *widest = (*widest).max(self.column.saturating_sub(self.prefix_columns)),
            Widths::All(widths) => widths.push(self.column),
        }
    }

    /// An empty row.
    pub(crate) fn blank_row(&mut self) {
        self.end_row();
        let shown: Vec<(Style, String)> = self
            .shown_prefixes()
            .map(|(style, text)| (style, text.to_owned()))
            .collect();
        // What stands at the end of the row is no prefix but an indent: nobody sees it.
        let visible = shown.iter().rposition(|(_, text)| !text.trim().is_empty());
        for (n, (style, text)) in shown.iter().enumerate().take(visible.map_or(0, |at| at + 1)) {
            let text = if Some(n) == visible { text.trim_end() } else { text };
            self.write(text, &Ink::styled(*style));
        }
        self.out.push('\n');
    }

    /// A whole row as it is, however long: terminals break it themselves and copy it as one line.
    pub(crate) fn verbatim(&mut self, pieces: &[(Ink, &str)]) {
        self.end_row();
        if pieces.iter().all(|(_, text)| text.is_empty()) {
            return self.blank_row();
        }
        self.begin_row();
        let mut column = 0;
        for (ink, text) in pieces {
            let expanded = expand_tabs(text, &mut column);
            self.write(&expanded, ink);
        }
        self.end_row();
    }

    /// The rows that were ended and their widths, of [`Self::counted`].
    pub(crate) fn into_rows(mut self) -> Vec<(String, usize)> {
        self.end_row();
        match self.widths {
            Widths::Widest(_) => Vec::new(),
            Widths::All(widths) => self.out.lines().map(str::to_owned).zip(widths).collect(),
        }
    }

    /// The widest text of a row since [`Self::reset_widest`].
    pub(crate) fn widest(&self) -> usize {
        match &self.widths {
            Widths::Widest(widest) => *widest,
            Widths::All(widths) => widths.iter().copied().max().unwrap_or_default(),
        }
    }

    /// A block begins whose width will be asked for.
    pub(crate) fn reset_widest(&mut self) {
        if let Widths::Widest(widest) = &mut self.widths {
            *widest = 0;
        }
    }

    fn letter(&mut self, c: char, ink: &Ink) {
        if self.last.is_some_and(|last| breaks_between(last, c)) {
            self.end_word();
            self.glued = false;
        }
        self.last = Some(c);
        match self.word.last_mut() {
            Some((last, text)) if last == ink => text.push(c),
            Some(_) | None => self.word.push((ink.clone(), c.to_string())),
        }
        self.word_bytes += c.len_utf8();
        if self.word_bytes >= WORD_BYTES_MAX {
            self.end_word();
            self.glued = true;
        }
    }

    fn begin_row(&mut self) {
        let shown: Vec<(Style, String)> = self
            .shown_prefixes()
            .map(|(style, text)| (style, text.to_owned()))
            .collect();
        self.column = 0;
        for (style, text) in &shown {
            self.write(text, &Ink::styled(*style));
            self.column += width(text);
        }
        for prefix in &mut self.prefixes {
            prefix.mark = None;
        }
        self.prefix_columns = self.column;
        self.open = true;
    }

    /// The prefixes of the next row, as many as leave half of it to the text; marks may take some more.
    fn shown_prefixes(&self) -> impl Iterator<Item = (Style, &str)> {
        let (half, most) = (self.columns / 2, self.columns * 3 / 4);
        let mut taken = 0;
        self.prefixes.iter().filter_map(move |prefix| {
            let (text, limit) = match &prefix.mark {
                Some(mark) => (mark.as_str(), most),
                None => (prefix.rest.as_str(), half),
            };
            let fits = taken + width(text) <= limit;
            taken += if fits { width(text) } else { 0 };
            fits.then_some((prefix.style, text))
        })
    }

    fn write_word(&mut self, gap: usize, mut word: Vec<(Ink, String)>) {
        match word.first_mut() {
            Some((ink, text)) if *ink == self.gap_ink => text.insert_str(0, &" ".repeat(gap)),
            Some(_) | None => self.out.push_str(&" ".repeat(gap)),
        }
        for (ink, text) in &word {
            self.write(text, ink);
        }
    }

    /// A word wider than a row, or the rest of one, a cluster at a time.
    fn write_broken(&mut self, text: &str, ink: &Ink) {
        let mut piece = String::new();
        for cluster in text.graphemes(true) {
            let columns = cluster.width();
            if self.column + columns > self.columns && self.column > self.prefix_columns {
                self.write(&std::mem::take(&mut piece), ink);
                let glued = self.glued;
                self.end_row();
                self.glued = glued;
                self.begin_row();
            }
            piece.push_str(cluster);
            self.column += columns;
        }
        self.write(&piece, ink);
    }

    fn write(&mut self, text: &str, ink: &Ink) {
        if text.is_empty() {
            return;
        }
        let plain = ink.style.is_plain();
        if let Some(link) = &ink.link {
            link.open(&mut self.out);
        }
        if !plain {
            self.out.push_str(&ink.style.render().to_string());
        }
        self.out.push_str(text);
        if !plain {
            self.out.push_str(&ink.style.render_reset().to_string());
        }
        if ink.link.is_some() {
            Address::close(&mut self.out);
        }
    }
}

/// Columns of a text of one line.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// True for characters of two columns: text of them is written without spaces.
pub(crate) fn is_wide(c: char) -> bool {
    !c.is_ascii() && c.width() == Some(2)
}

/// Whether a row may break between two letters without a space.
fn breaks_between(last: char, next: char) -> bool {
    if !is_wide(last) && !is_wide(next) {
        return false;
    }
    let joined = last == '\u{200d}' || next.width().unwrap_or(0) == 0 || matches!(next, '\u{1f3fb}'..='\u{1f3ff}');
    !joined && !OPENING.contains(last) && !CLOSING.contains(next)
}

/// What must not stand at the end of a row.
const OPENING: &str = "(（「『【〈《〔［｛“‘[{\u{200d}";
/// What must not stand at the beginning of one.
const CLOSING: &str = ")）」』】〉》〕］｝、。，．：；！？ー々”’]},.:;!?…";

fn expand_tabs<'a>(text: &'a str, column: &mut usize) -> std::borrow::Cow<'a, str> {
    if !text.contains('\t') {
        *column += width(text);
        return text.into();
    }
    let mut expanded = String::with_capacity(text.len() + TAB_COLUMNS);
    for (n, piece) in text.split('\t').enumerate() {
        if n > 0 {
            let stop = TAB_COLUMNS - *column % TAB_COLUMNS;
            expanded.push_str(&" ".repeat(stop));
            *column += stop;
        }
        expanded.push_str(piece);
        *column += width(piece);
    }
    expanded.into()
}
