//! Tables: held until they end, then laid out to the width there is.
//!
//! Columns shrink and their cells wrap; where too little is left for that, each row becomes a record of `key: value` lines. A
//! table that is too big to be held is laid out from its first rows, and the others follow in the same columns.

use crate::look::Look;
use crate::rows::{Ink, Rows, width};
use crate::spans::{self, Place};
use anstyle::Style;

/// More columns are no table.
pub(crate) const TABLE_COLUMNS_MAX: usize = 64;
/// So much of a table is held.
const HELD_BYTES_MAX: usize = 64 * 1024;
/// A column is not made narrower than this for the sake of others.
const CELL_COLUMNS_MIN: usize = 8;
/// Between two cells.
const GAP: &str = " │ ";
/// The same in a rule.
const GAP_RULE: &str = "─┼─";
/// What a rule is made of.
const RULE: &str = "─";
/// Where a cell is measured, no row ends.
const ENDLESS_COLUMNS: usize = usize::MAX / 4;

/// Where the text of a column stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Alignment {
    Left,
    Middle,
    Right,
}

/// The cells of a row, without the white space around them.
pub(crate) fn cells(row: &str) -> impl Iterator<Item = &str> {
    let row = row.trim();
    let row = row.strip_prefix('|').unwrap_or(row);
    let mut rest = Some(row);
    std::iter::from_fn(move || {
        let row = rest?;
        let end = unescaped_bar(row);
        rest = end
            .and_then(|end| row.get(end + 1..))
            .filter(|after| !after.trim().is_empty());
        row.get(..end.unwrap_or(row.len())).map(str::trim)
    })
}

fn unescaped_bar(row: &str) -> Option<usize> {
    let mut escaped = false;
    row.bytes().position(|byte| {
        let is_bar = byte == b'|' && !escaped;
        escaped = byte == b'\\' && !escaped;
        is_bar
    })
}

/// The columns of a delimiter row (`|---|:-:|`), `None` for any other.
pub(crate) fn alignments(row: &str) -> Option<Vec<Alignment>> {
    if !row.contains('|') {
        return None;
    }
    cells(row)
        .map(|cell| {
            let dashes = cell.trim_matches(':');
            let is_rule = !dashes.is_empty() && dashes.bytes().all(|byte| byte == b'-');
            let colons = (cell.starts_with(':'), cell.ends_with(':'));
            let fits = cell.len() <= dashes.len() + usize::from(colons.0) + usize::from(colons.1);
            (is_rule && fits).then_some(match colons {
                (true, true) => Alignment::Middle,
                (false, true) => Alignment::Right,
                (true | false, false) => Alignment::Left,
            })
        })
        .collect()
}

/// A table that is being read.
#[derive(Debug)]
pub(crate) struct Table {
    look: Look,
    alignments: Vec<Alignment>,
    head: Vec<String>,
    held: Vec<Vec<String>>,
    held_bytes: usize,
    layout: Option<Layout>,
    rows_written: usize,
}

#[derive(Clone, Debug)]
enum Layout {
    Columns {
        widths: Vec<usize>,
        /// Some cell takes more than a row: rules between the rows keep them apart.
        wraps: bool,
    },
    Records,
}

impl Table {
    /// A table with that first row.
    pub(crate) fn new(look: Look, head: &str, alignments: Vec<Alignment>) -> Self {
        let head = cells_of(head, alignments.len());
        Self {
            look,
            alignments,
            head,
            held: Vec::new(),
            held_bytes: 0,
            layout: None,
            rows_written: 0,
        }
    }

    /// One row more.
    pub(crate) fn push(&mut self, row: &str, rows: &mut Rows) {
        self.held.push(cells_of(row, self.alignments.len()));
        // A short row has all the cells of a long one.
        self.held_bytes += row.len() + self.alignments.len();
        if self.layout.is_some() || self.held_bytes >= HELD_BYTES_MAX {
            self.write_held(rows);
        }
    }

    /// The table is over.
    pub(crate) fn finish(&mut self, rows: &mut Rows) {
        self.write_held(rows);
    }

    fn write_held(&mut self, rows: &mut Rows) {
        let held = std::mem::take(&mut self.held);
        let layout = match self.layout.take() {
            Some(layout) => layout,
            None => {
                let layout = self.lay_out(&held, rows.room());
                self.write_head(&layout, rows);
                layout
            }
        };
        for row in &held {
            match &layout {
                Layout::Columns { widths, wraps } => {
                    if *wraps && self.rows_written > 0 {
                        self.write_rule(widths, rows);
                    }
                    self.write_row(row, widths, Style::new(), rows);
                }
                Layout::Records => self.write_record(row, rows),
            }
            self.rows_written += 1;
        }
        self.layout = Some(layout);
    }

    fn lay_out(&self, held: &[Vec<String>], room: usize) -> Layout {
        let mut natural = vec![1; self.alignments.len()];
        for row in std::iter::once(&self.head).chain(held) {
            for (width, cell) in natural.iter_mut().zip(row) {
                let cell_width = self
                    .cell(cell, ENDLESS_COLUMNS, Style::new())
                    .first()
                    .map_or(0, |(_, width)| *width);
                *width = cell_width.max(*width);
            }
        }
        let gaps = width(GAP) * natural.len().saturating_sub(1);
        match shrunk(&natural, room.saturating_sub(gaps)) {
            Some(widths) => Layout::Columns {
                wraps: widths != natural,
                widths,
            },
            None => Layout::Records,
        }
    }

    fn write_head(&self, layout: &Layout, rows: &mut Rows) {
        match layout {
            Layout::Columns { widths, .. } => {
                if self.head.iter().any(|cell| !cell.is_empty()) {
                    self.write_row(&self.head, widths, self.look.palette().strong, rows);
                }
                self.write_rule(widths, rows);
            }
            Layout::Records => {}
        }
    }

    fn write_rule(&self, widths: &[usize], rows: &mut Rows) {
        let parts: Vec<String> = widths.iter().map(|width| RULE.repeat(*width)).collect();
        let ink = Ink::styled(self.look.palette().faint);
        rows.verbatim(&[(ink, &parts.join(GAP_RULE))]);
    }

    fn write_row(&self, row: &[String], widths: &[usize], base: Style, rows: &mut Rows) {
        let faint = Ink::styled(self.look.palette().faint);
        let cells: Vec<Vec<(String, usize)>> = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| self.cell(cell, *width, base))
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or_default().max(1);
        let empty = (String::new(), 0);
        for line in 0..height {
            let mut pieces: Vec<(Ink, String)> = Vec::new();
            for (n, ((cell, width), alignment)) in cells.iter().zip(widths).zip(&self.alignments).enumerate() {
                if n > 0 {
                    pieces.push((faint.clone(), GAP.to_owned()));
                }
                let (text, taken) = cell.get(line).unwrap_or(&empty);
                let free = width.saturating_sub(*taken);
                let before = match alignment {
                    Alignment::Left => 0,
                    Alignment::Middle => free / 2,
                    Alignment::Right => free,
                };
                let is_last = n + 1 == widths.len();
                let after = if is_last { 0 } else { free - before };
                pieces.push((
                    Ink::default(),
                    format!("{}{text}{}", " ".repeat(before), " ".repeat(after)),
                ));
            }
            let pieces: Vec<(Ink, &str)> = pieces.iter().map(|(ink, text)| (ink.clone(), text.as_str())).collect();
            rows.verbatim(&pieces);
        }
    }

    fn write_record(&self, row: &[String], rows: &mut Rows) {
        if self.rows_written > 0 {
            rows.blank_row();
        }
        let palette = self.look.palette();
        for (key, value) in self.head.iter().zip(row).filter(|(_, value)| !value.is_empty()) {
            if !key.is_empty() {
                spans::write(key, Place::START, self.look, palette.strong, rows);
                rows.words(":", &Ink::styled(palette.strong));
                rows.space(&Ink::default());
            }
            spans::write(value, Place::START, self.look, Style::new(), rows);
            rows.end_row();
        }
    }

    /// The rows of one cell and their widths.
    fn cell(&self, text: &str, columns: usize, base: Style) -> Vec<(String, usize)> {
        let mut rows = Rows::counted(columns);
        spans::write(text, Place::START, self.look, base, &mut rows);
        rows.into_rows()
    }
}

/// As many cells as there are columns. A bar that was escaped to stand in a cell is a bar there, even in code.
fn cells_of(row: &str, columns: usize) -> Vec<String> {
    let mut found: Vec<String> = cells(row).take(columns).map(|cell| cell.replace("\\|", "|")).collect();
    found.resize(columns, String::new());
    found
}

/// The widths that fit: what is narrow stays, the others share what is left. `None` where that is too little.
fn shrunk(natural: &[usize], room: usize) -> Option<Vec<usize>> {
    let mut order: Vec<usize> = natural.to_vec();
    order.sort_unstable();
    let (mut left, mut columns) = (room, natural.len());
    for width in order {
        if width > left / columns {
            break;
        }
        left -= width;
        columns -= 1;
    }
    if columns == 0 {
        return Some(natural.to_vec());
    }
    let share = left / columns;
    // Those that do not get all they want share the rest of the division too, from the left.
    let mut spare = left % columns;
    if share < CELL_COLUMNS_MIN {
        return None;
    }
    let widths = natural.iter().map(|width| {
        if *width <= share {
            return *width;
        }
        let one = usize::from(spare > 0);
        spare -= one;
        share + one
    });
    Some(widths.collect())
}
