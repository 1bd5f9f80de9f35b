//! A place in a line that may not be whole yet.
//!
//! Every question that depends on what is not there is answered with [`More`]. Columns count as CommonMark has it: a tab goes
//! to the next multiple of four, and a part of one may be used up.

use crate::start::{ListKind, Rest, Task};

/// Columns from one tab stop to the next (CommonMark 2.2).
const TAB_COLUMNS: usize = 4;
/// Indentation is not measured beyond this.
const INDENT_COLUMNS_MAX: usize = 1000;
/// Lines of nothing but marks mean something up to this length. They are looked at again with every piece that comes.
pub(crate) const MARKS_BYTES_MAX: usize = 512;
/// Digits of a list's number (CommonMark 5.2).
const NUMBER_DIGITS_MAX: usize = 9;

/// The answer depends on what follows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct More;

/// White space in front of something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Indent {
    /// How wide it is.
    pub columns: usize,
    /// The byte behind it, `None` at the end of the line.
    pub next: Option<u8>,
}

#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    line: &'a str,
    rest: Rest,
    at: usize,
    column: usize,
    /// Columns that are left of a tab that was used up in part.
    tab_left: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(line: &'a str, rest: Rest) -> Self {
        Self {
            line,
            rest,
            at: 0,
            column: 0,
            tab_left: 0,
        }
    }

    /// Bytes that are used up.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Columns that are.
    pub(crate) fn column(&self) -> usize {
        self.column
    }

    /// The next byte, `None` at the end of the line.
    pub(crate) fn peek(&self) -> Result<Option<u8>, More> {
        match (self.line.as_bytes().get(self.at), self.rest) {
            (Some(byte), _) => Ok(Some(*byte)),
            (None, Rest::Ended) => Ok(None),
            (None, Rest::Unknown) => Err(More),
            (None, Rest::Text) => Ok(Some(b'x')),
        }
    }

    fn there(&self) -> Option<u8> {
        self.line.as_bytes().get(self.at).copied()
    }

    /// Goes over one byte that is no tab.
    pub(crate) fn skip_byte(&mut self) {
        if self.there().is_some() {
            self.at += 1;
            self.column += 1;
        } else if self.rest == Rest::Text {
            // What is not looked at is text: the end is as good as any place of it.
            self.rest = Rest::Ended;
        }
    }

    /// Uses the whole line up.
    pub(crate) fn skip_all(&mut self) {
        self.at = self.line.len();
    }

    /// How far what comes next is indented.
    pub(crate) fn indent(&self) -> Result<Indent, More> {
        self.indent_of_at_most(INDENT_COLUMNS_MAX)
    }

    /// The same, not measured any further; `next` is then a space.
    pub(crate) fn indent_of_at_most(&self, columns_max: usize) -> Result<Indent, More> {
        let mut ahead = self.clone();
        let mut columns = 0;
        loop {
            if columns >= columns_max {
                return Ok(Indent {
                    columns,
                    next: Some(b' '),
                });
            }
            match ahead.peek()? {
                Some(b' ' | b'\t') => {
                    ahead.skip_columns(1);
                    columns += 1;
                }
                next => return Ok(Indent { columns, next }),
            }
        }
    }

    /// Goes over so many columns of white space; the answer is what is left of a tab that was cut.
    pub(crate) fn skip_columns(&mut self, columns: usize) -> usize {
        for _ in 0..columns {
            match self.there() {
                Some(b' ') => self.at += 1,
                Some(b'\t') => {
                    if self.tab_left == 0 {
                        self.tab_left = TAB_COLUMNS - self.column % TAB_COLUMNS;
                    }
                    self.tab_left -= 1;
                    if self.tab_left == 0 {
                        self.at += 1;
                    }
                }
                Some(_) | None => break,
            }
            self.column += 1;
        }
        let pad = self.tab_left;
        if pad > 0 && columns > 0 && self.there() == Some(b'\t') {
            return pad;
        }
        0
    }

    /// Goes over all white space that is there.
    pub(crate) fn skip_white(&mut self) {
        while matches!(self.there(), Some(b' ' | b'\t')) {
            self.skip_columns(1);
        }
    }

    /// Goes over a run of that byte and counts it.
    pub(crate) fn run(&mut self, mark: u8) -> Result<usize, More> {
        self.run_of_at_most(mark, MARKS_BYTES_MAX)
    }

    /// The same, and not further.
    pub(crate) fn run_of_at_most(&mut self, mark: u8, length_max: usize) -> Result<usize, More> {
        let mut length = 0;
        while length < length_max && self.peek()? == Some(mark) {
            self.skip_byte();
            length += 1;
        }
        Ok(length)
    }

    /// Whether nothing but white space is left of the line.
    pub(crate) fn only_white_left(&self) -> Result<bool, More> {
        self.only_of_left(b" \t")
    }

    /// Whether nothing but those bytes is left of the line.
    pub(crate) fn only_of_left(&self, allowed: &[u8]) -> Result<bool, More> {
        let left = self.line.as_bytes().get(self.at..).unwrap_or_default();
        if left.len() > MARKS_BYTES_MAX {
            return Ok(false);
        }
        match (left.iter().all(|byte| allowed.contains(byte)), self.rest) {
            (false, _) | (true, Rest::Text) => Ok(false),
            (true, Rest::Ended) => Ok(true),
            (true, Rest::Unknown) => Err(More),
        }
    }

    /// Whether the line goes on with that text.
    pub(crate) fn begins_with(&mut self, text: &str) -> Result<bool, More> {
        let mut ahead = self.clone();
        for byte in text.bytes() {
            if ahead.peek()? != Some(byte) {
                return Ok(false);
            }
            ahead.skip_byte();
        }
        *self = ahead;
        Ok(true)
    }

    /// The rest of the line; `None` for one that is too long to be looked at.
    pub(crate) fn rest_of_line(&self) -> Result<Option<&'a str>, More> {
        match self.rest {
            Rest::Ended => Ok(self.line.get(self.at..)),
            Rest::Unknown => Err(More),
            Rest::Text => Ok(None),
        }
    }

    /// Goes over the mark of a list's item (CommonMark 5.2), if one is there.
    pub(crate) fn list_mark(&mut self) -> Result<Option<(ListKind, u64)>, More> {
        let mut ahead = self.clone();
        let mut number = 0;
        let mut digits = 0;
        while let Some(digit @ b'0'..=b'9') = ahead.peek()?
            && digits < NUMBER_DIGITS_MAX
        {
            number = number * 10 + u64::from(digit - b'0');
            digits += 1;
            ahead.skip_byte();
        }
        let kind = match ahead.peek()? {
            Some(mark @ (b'-' | b'+' | b'*')) if digits == 0 => ListKind::Bullet(mark),
            Some(mark @ (b'.' | b')')) if digits > 0 => ListKind::Ordered(mark),
            Some(_) | None => return Ok(None),
        };
        ahead.skip_byte();
        if !matches!(ahead.peek()?, None | Some(b' ' | b'\t')) {
            return Ok(None);
        }
        *self = ahead;
        Ok(Some((kind, number)))
    }

    /// Goes over the box of a task, if one is there.
    pub(crate) fn task(&mut self) -> Result<Option<Task>, More> {
        let mut ahead = self.clone();
        if ahead.peek()? != Some(b'[') {
            return Ok(None);
        }
        ahead.skip_byte();
        let task = match ahead.peek()? {
            Some(b' ') => Task::Open,
            Some(b'x' | b'X') => Task::Done,
            Some(_) | None => return Ok(None),
        };
        ahead.skip_byte();
        if ahead.peek()? != Some(b']') {
            return Ok(None);
        }
        ahead.skip_byte();
        if !matches!(ahead.peek()?, None | Some(b' ' | b'\t')) {
            return Ok(None);
        }
        *self = ahead;
        Ok(Some(task))
    }
}
