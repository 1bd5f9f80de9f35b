//! Text set in lines: runs of white space are one space, blocks stand on lines of their own, what is quoted or listed is
//! indented. Knows nothing of HTML.
//!
//! A gap between blocks is remembered and written before the text that follows it, so that there is never one too many. So is
//! the marker of an item: a list item without text leaves nothing behind.

use std::ops::Range;

/// Levels of indentation that are shown; deeper ones stand at the deepest.
const DEPTH_MAX: usize = 12;
/// Bytes of a marker: an item's and a heading's together, and a long number.
const MARKER_BYTES_MAX: usize = 32;

/// What stands between two blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    /// Nothing: they are one.
    None,
    /// The end of the line.
    Line,
    /// An empty line.
    Blank,
}

/// Where in a table the next text stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cell {
    /// In no cell.
    Outside,
    /// In one without text so far: its blocks begin where it does.
    Empty,
    /// In one with text.
    Filled,
}

/// Text as it is being set.
pub(super) struct Layout {
    out: String,
    bytes_max: usize,
    gap: Gap,
    /// White space came since the last text.
    has_space: bool,
    /// What the next text begins with, after the gap.
    marker: String,
    cell: Cell,
    quotes: usize,
    indent: usize,
}

impl Layout {
    /// Keeps so many bytes; what comes after them is lost.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            out: String::new(),
            bytes_max,
            gap: Gap::None,
            has_space: false,
            marker: String::new(),
            cell: Cell::Outside,
            quotes: 0,
            indent: 0,
        }
    }

    /// True when nothing more is kept.
    pub(super) fn is_full(&self) -> bool {
        self.out.len() >= self.bytes_max
    }

    /// How much text there is.
    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    /// A part of the text.
    pub(super) fn part(&self, part: Range<usize>) -> &str {
        self.out.get(part).unwrap_or_default()
    }

    /// A block ends, or begins.
    pub(super) fn gap(&mut self, gap: Gap) {
        if gap == Gap::None {
            return;
        }
        let begins = self.out.is_empty() || self.cell == Cell::Empty || !self.marker.is_empty();
        if !begins {
            self.gap = self.gap.max(gap);
        }
        self.has_space = false;
    }

    /// The next text begins with this, in the same line as what other marker stands before it.
    pub(super) fn mark(&mut self, marker: &str) {
        if self.marker.len() + marker.len() <= MARKER_BYTES_MAX {
            self.marker.push_str(marker);
        }
    }

    /// Whatever marker is there marks nothing.
    pub(super) fn unmark(&mut self) {
        self.marker.clear();
    }

    /// What is quoted from here on is indented by as much.
    pub(super) fn quote(&mut self, depth: usize) {
        self.quotes = depth.min(DEPTH_MAX);
    }

    /// What is listed from here on is indented by as much.
    pub(super) fn indent(&mut self, depth: usize) {
        self.indent = depth.min(DEPTH_MAX);
    }

    /// Running text: white space is where lines may break, and means nothing else.
    pub(super) fn text(&mut self, text: &str) {
        let is_invisible = |c: char| matches!(c, '\u{AD}' | '\u{200B}' | '\u{FEFF}');
        let ends_in_space = text.ends_with(char::is_whitespace);
        self.has_space |= text.starts_with(char::is_whitespace);
        for word in text.split_whitespace() {
            if self.is_full() {
                return;
            }
            if word.chars().all(is_invisible) {
                continue;
            }
            self.begin();
            if word.contains(is_invisible) {
                self.out.extend(word.chars().filter(|c| !is_invisible(*c)));
            } else {
                self.out.push_str(word);
            }
            self.has_space = true;
        }
        if !ends_in_space && !text.is_empty() {
            self.has_space = false;
        }
    }

    /// A sign that stands right before what follows it.
    pub(super) fn open(&mut self, sign: &str) {
        self.begin();
        self.out.push_str(sign);
    }

    /// A sign that stands right after what came before it.
    pub(super) fn close(&mut self, sign: &str) {
        if !self.is_full() {
            self.out.push_str(sign);
        }
    }

    /// Lines that stay as they are.
    pub(super) fn lines(&mut self, lines: &str) {
        for line in lines.lines() {
            if self.is_full() {
                return;
            }
            self.begin();
            self.out.push_str(line);
            self.gap = Gap::Line;
        }
    }

    /// The cell of a table begins.
    pub(super) fn begin_cell(&mut self) {
        self.cell = Cell::Empty;
        self.has_space = false;
    }

    /// The cell of a table ends: what stands after its last block is nothing.
    pub(super) fn end_cell(&mut self) {
        if self.cell == Cell::Filled {
            self.gap = Gap::None;
        }
        self.cell = Cell::Outside;
        self.unmark();
        self.has_space = false;
    }

    /// Writes what stands before the next text.
    fn begin(&mut self) {
        if self.cell == Cell::Empty {
            self.cell = Cell::Filled;
        }
        let gap = std::mem::replace(&mut self.gap, Gap::None);
        self.out.push_str(match gap {
            Gap::None => "",
            Gap::Line => "\n",
            Gap::Blank => "\n\n",
        });
        let starts_line = gap != Gap::None || self.out.is_empty();
        if starts_line {
            self.out.extend(std::iter::repeat_n("> ", self.quotes));
            // The marker of an item hangs into its indentation.
            let hanging = usize::from(!self.marker.is_empty() && self.indent > 0);
            self.out.extend(std::iter::repeat_n("  ", self.indent - hanging));
        } else if self.has_space && !self.out.ends_with(' ') {
            self.out.push(' ');
        }
        self.has_space = false;
        self.out.push_str(&std::mem::take(&mut self.marker));
    }

    /// The text of these bytes, or all of it; and whether some was lost.
    pub(super) fn finish(self, part: Option<Range<usize>>) -> (String, bool) {
        let is_cut = self.out.len() >= self.bytes_max;
        let text = match part.and_then(|part| self.out.get(part)) {
            Some(part) => part.trim_matches('\n').to_owned(),
            None => self.out,
        };
        (text, is_cut)
    }
}
