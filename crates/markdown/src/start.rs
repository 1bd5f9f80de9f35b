//! What a line is, decided from as little of its beginning as will do.
//!
//! [`decide`] is a function of the line and of what is open before it. On the beginning of a line it answers only what every
//! way to go on would answer too, so that a stream may be cut anywhere. The rules are CommonMark 0.31's (sections 4 and 5)
//! with the tables and task lists of GitHub; a line of the form `CMD: …` is ours (SPEC 8.4).

use crate::cursor::{Cursor, MARKS_BYTES_MAX, More};
use crate::html::{self, HtmlEnd};
use crate::table::{self, Alignment};

/// As much of a line is looked at to see what it is; a table's row or a fence that is longer is text.
pub(crate) const START_BYTES_MAX: usize = 8 * 1024;
/// Containers inside each other; what would open more is text.
pub(crate) const CONTAINERS_MAX: usize = 24;
/// Columns of indentation that make code.
const CODE_COLUMNS: usize = 4;
/// The mark of a proposed command.
const COMMAND_MARK: &str = "CMD:";

/// What may hold blocks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Container {
    /// Lines that begin with `>`.
    Quote,
    /// An item of a list.
    Item {
        /// Columns its lines are indented by, counted from what holds the list.
        indent: usize,
        /// Items of one list have the same.
        kind: ListKind,
        /// Where a list begins to count.
        number: u64,
        /// A task, done or not.
        task: Option<Task>,
        /// Nothing stands behind the mark.
        empty: bool,
    },
}

/// What tells lists apart that follow each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ListKind {
    /// `-`, `+` or `*`.
    Bullet(u8),
    /// `.` or `)` behind the number.
    Ordered(u8),
}

/// The box of a task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Task {
    /// `[ ]`
    Open,
    /// `[x]`
    Done,
}

/// The block that takes lines now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Tip {
    /// None: the next line begins one.
    None,
    /// A paragraph.
    Paragraph,
    /// A paragraph of one line that is the head of a table if the next line says so.
    TableHead {
        /// Its cells.
        cells: usize,
    },
    /// Rows of a table.
    Table,
    /// Fenced code.
    Fence(Fence),
    /// Indented code.
    Indented,
    /// HTML.
    Html(HtmlEnd),
}

/// What ends fenced code.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Fence {
    /// A backtick or a tilde.
    pub mark: u8,
    /// As many end it, or more.
    pub length: usize,
    /// Columns that are taken off its lines.
    pub indent: usize,
}

/// What a line is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Line {
    /// Nothing but white space.
    Blank,
    /// Text: goes on with the paragraph, or begins one.
    Text,
    /// Goes on with the paragraph from outside of what holds it.
    Lazy,
    /// The rest goes on with the open code or HTML, behind so many spaces of a tab that was cut.
    Verbatim {
        /// Spaces.
        pad: usize,
    },
    /// Begins indented code with the rest.
    Indented {
        /// Spaces of a tab that was cut.
        pad: usize,
    },
    /// Begins HTML with the rest.
    Html(HtmlEnd),
    /// Begins fenced code.
    FenceOpen(Fence, String),
    /// Ends it.
    FenceClose,
    /// The rest is a heading.
    Heading(u8),
    /// Makes the paragraph before it a heading.
    Underline(u8),
    /// A thematic break.
    Rule,
    /// May be the head of a table.
    TableHead(String, usize),
    /// Makes it one.
    TableRule(Vec<Alignment>),
    /// A row of it.
    TableRow(String),
    /// The rest is a proposed command.
    Command,
}

/// A line's beginning, understood.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Start {
    /// How many of the open containers go on.
    pub matched: usize,
    /// Those that begin.
    pub opened: Vec<Container>,
    /// What the line is inside them.
    pub line: Line,
    /// How much of it is used up.
    pub bytes: usize,
}

/// What is open before a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    /// From the outermost.
    pub containers: &'a [Container],
    /// The block inside them.
    pub tip: Tip,
}

/// What follows the part of a line that is there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Rest {
    /// Nothing: it is whole.
    Ended,
    /// Nobody knows yet.
    Unknown,
    /// More than is looked at: taken for text.
    Text,
}

/// What the line is; `None` while that depends on what follows. With [`Rest::Ended`] and [`Rest::Text`] there is an answer.
pub(crate) fn decide(line: &str, rest: Rest, context: Context<'_>) -> Option<Start> {
    let mut decision = Decision {
        cursor: Cursor::new(line, rest),
        context,
        matched: 0,
        opened: Vec::new(),
    };
    match decision.line() {
        Ok(line) => Some(Start {
            matched: decision.matched,
            opened: decision.opened,
            line,
            bytes: decision.cursor.at(),
        }),
        Err(More) => None,
    }
}

struct Decision<'a> {
    cursor: Cursor<'a>,
    context: Context<'a>,
    matched: usize,
    opened: Vec<Container>,
}

impl Decision<'_> {
    fn line(&mut self) -> Result<Line, More> {
        self.match_containers()?;
        if self.all_matched()
            && let Some(line) = self.verbatim()?
        {
            return Ok(line);
        }
        loop {
            let indent = self.cursor.indent()?;
            let Some(next) = indent.next else {
                self.cursor.skip_all();
                return Ok(Line::Blank);
            };
            if indent.columns >= CODE_COLUMNS {
                return Ok(self.deep());
            }
            if self.matched + self.opened.len() >= CONTAINERS_MAX || !self.container(next)? {
                return self.leaf(next, indent.columns);
            }
            if self.opened.last().is_some_and(is_task) {
                return self.task_text();
            }
        }
    }

    fn match_containers(&mut self) -> Result<(), More> {
        for container in self.context.containers {
            let indent = self.cursor.indent()?;
            match container {
                Container::Quote if indent.columns < CODE_COLUMNS && indent.next == Some(b'>') => {
                    self.cursor.skip_columns(indent.columns);
                    self.quote_mark()?;
                }
                Container::Item { empty: true, .. } if indent.next.is_none() => return Ok(()),
                Container::Item { .. } if indent.next.is_none() => {}
                Container::Item { indent: wanted, .. } if indent.columns >= *wanted => {
                    self.cursor.skip_columns(*wanted);
                }
                Container::Quote | Container::Item { .. } => return Ok(()),
            }
            self.matched += 1;
        }
        Ok(())
    }

    fn all_matched(&self) -> bool {
        self.matched == self.context.containers.len() && self.opened.is_empty()
    }

    fn in_paragraph(&self) -> bool {
        matches!(self.context.tip, Tip::Paragraph | Tip::TableHead { .. })
    }

    /// The line as one more of the open code or HTML.
    fn verbatim(&mut self) -> Result<Option<Line>, More> {
        match self.context.tip {
            Tip::None | Tip::Paragraph | Tip::TableHead { .. } | Tip::Table => Ok(None),
            Tip::Html(HtmlEnd::Blank) if self.cursor.indent()?.next.is_none() => Ok(None),
            Tip::Html(_) => Ok(Some(Line::Verbatim { pad: 0 })),
            Tip::Indented => {
                let indent = self.cursor.indent()?;
                if indent.columns < CODE_COLUMNS {
                    return Ok(None);
                }
                let pad = self.cursor.skip_columns(CODE_COLUMNS);
                Ok(Some(Line::Verbatim { pad }))
            }
            Tip::Fence(fence) => {
                let indent = self.cursor.indent_of_at_most(CODE_COLUMNS.max(fence.indent))?;
                if indent.columns < CODE_COLUMNS && indent.next == Some(fence.mark) && self.closes(fence)? {
                    self.cursor.skip_all();
                    return Ok(Some(Line::FenceClose));
                }
                let pad = self.cursor.skip_columns(indent.columns.min(fence.indent));
                Ok(Some(Line::Verbatim { pad }))
            }
        }
    }

    fn closes(&self, fence: Fence) -> Result<bool, More> {
        let mut ahead = self.cursor.clone();
        ahead.indent()?;
        ahead.skip_white();
        let length = ahead.run(fence.mark)?;
        Ok(length >= fence.length && ahead.only_white_left()?)
    }

    /// A line that is indented by four columns or more.
    fn deep(&mut self) -> Line {
        if self.in_paragraph() && self.opened.is_empty() {
            self.cursor.skip_white();
            return self.text();
        }
        let pad = self.cursor.skip_columns(CODE_COLUMNS);
        Line::Indented { pad }
    }

    /// Text, once nothing else is possible.
    fn text(&mut self) -> Line {
        if self.in_paragraph() && self.opened.is_empty() && !self.all_matched() {
            self.matched = self.context.containers.len();
            return Line::Lazy;
        }
        Line::Text
    }

    /// Opens the container that begins here, if one does.
    fn container(&mut self, next: u8) -> Result<bool, More> {
        if next == b'>' {
            self.cursor.skip_white();
            self.quote_mark()?;
            self.opened.push(Container::Quote);
            return Ok(true);
        }
        if matches!(next, b'-' | b'*') && self.is_rule(next)? {
            return Ok(false);
        }
        let underlines = next == b'-' && self.all_matched() && self.in_paragraph();
        if underlines && self.is_underline(next)? {
            return Ok(false);
        }
        self.item()
    }

    fn quote_mark(&mut self) -> Result<(), More> {
        self.cursor.skip_byte();
        if matches!(self.cursor.peek()?, Some(b' ' | b'\t')) {
            self.cursor.skip_columns(1);
        }
        Ok(())
    }

    fn item(&mut self) -> Result<bool, More> {
        let mut ahead = self.cursor.clone();
        let before = ahead.column();
        ahead.skip_white();
        let Some((kind, number)) = ahead.list_mark()? else {
            return Ok(false);
        };
        let marked = ahead.column() - before;
        let indent = ahead.indent()?;
        let empty = indent.next.is_none();
        if self.all_matched() && self.in_paragraph() {
            let counts_on = matches!(kind, ListKind::Ordered(_)) && number != 1;
            if empty || counts_on {
                return Ok(false);
            }
        }
        let behind = if empty || indent.columns > CODE_COLUMNS {
            1
        } else {
            indent.columns
        };
        if !empty {
            ahead.skip_columns(behind);
        }
        let task = if empty { None } else { ahead.task()? };
        self.cursor = ahead;
        self.opened.push(Container::Item {
            indent: marked + behind,
            kind,
            number,
            task,
            empty,
        });
        Ok(true)
    }

    fn task_text(&mut self) -> Result<Line, More> {
        let indent = self.cursor.indent()?;
        self.cursor.skip_white();
        Ok(if indent.next.is_none() { Line::Blank } else { Line::Text })
    }

    fn leaf(&mut self, next: u8, columns: usize) -> Result<Line, More> {
        let is_first = self.context.containers.is_empty() || self.matched == 0;
        // What follows a row of a table without an empty line is one more of its rows.
        let is_row = self.context.tip == Tip::Table && self.all_matched();
        let is_command = is_first && !is_row && self.opened.is_empty() && columns == 0 && next == b'C';
        if is_command && self.cursor.begins_with(COMMAND_MARK)? {
            return Ok(Line::Command);
        }
        let goes_on = self.all_matched();
        if let (Tip::TableHead { cells }, true, b'|' | b'-' | b':') = (self.context.tip, goes_on, next)
            && let Some(alignments) = self.table_rule(cells)?
        {
            return Ok(Line::TableRule(alignments));
        }
        let found = match next {
            b'#' => self.heading()?,
            b'`' | b'~' => self.fence(next, columns)?,
            b'<' => self.html()?,
            b'=' | b'-' if goes_on && self.in_paragraph() && self.is_underline(next)? => {
                Some(Line::Underline(if next == b'=' { 1 } else { 2 }))
            }
            b'-' | b'*' | b'_' if self.is_rule(next)? => Some(Line::Rule),
            b'|' if self.context.tip != Tip::Table || !goes_on => self.table_head()?,
            _ => None,
        };
        if let Some(line) = found {
            if !matches!(line, Line::Heading(_) | Line::Html(_)) {
                self.cursor.skip_all();
            }
            return Ok(line);
        }
        if self.context.tip == Tip::Table && goes_on {
            let row = self.cursor.rest_of_line()?.map(str::to_owned);
            if let Some(row) = row {
                self.cursor.skip_all();
                return Ok(Line::TableRow(row));
            }
        }
        self.cursor.skip_white();
        Ok(self.text())
    }

    fn heading(&mut self) -> Result<Option<Line>, More> {
        let mut ahead = self.cursor.clone();
        ahead.skip_white();
        let level = ahead.run_of_at_most(b'#', 7)?;
        let spaced = matches!(ahead.peek()?, None | Some(b' ' | b'\t'));
        let Some(level) = u8::try_from(level).ok().filter(|level| *level <= 6 && spaced) else {
            return Ok(None);
        };
        self.cursor = ahead;
        Ok(Some(Line::Heading(level)))
    }

    fn fence(&self, mark: u8, indent: usize) -> Result<Option<Line>, More> {
        let mut ahead = self.cursor.clone();
        ahead.skip_white();
        let length = ahead.run(mark)?;
        if length < 3 {
            return Ok(None);
        }
        let info = match ahead.rest_of_line()? {
            Some(info) if mark == b'~' || !info.contains('`') => info.trim().to_owned(),
            Some(_) | None => return Ok(None),
        };
        let fence = Fence { mark, length, indent };
        Ok(Some(Line::FenceOpen(fence, info)))
    }

    fn html(&self) -> Result<Option<Line>, More> {
        let end = html::start(self.cursor.clone(), self.in_paragraph() && self.opened.is_empty())?;
        Ok(end.map(Line::Html))
    }

    fn is_rule(&self, mark: u8) -> Result<bool, More> {
        let mut ahead = self.cursor.clone();
        let mut marks = 0;
        while let Some(byte) = ahead.peek()? {
            if ahead.at() - self.cursor.at() > MARKS_BYTES_MAX {
                return Ok(false);
            }
            if byte == mark {
                marks += 1;
            } else if !matches!(byte, b' ' | b'\t') {
                return Ok(false);
            }
            ahead.skip_byte();
        }
        Ok(marks >= 3)
    }

    fn is_underline(&self, mark: u8) -> Result<bool, More> {
        let mut ahead = self.cursor.clone();
        ahead.skip_white();
        ahead.run(mark)?;
        ahead.only_white_left()
    }

    fn table_head(&self) -> Result<Option<Line>, More> {
        let Some(row) = self.cursor.rest_of_line()? else {
            return Ok(None);
        };
        let cells = table::cells(row).count();
        let fits = (1..=table::TABLE_COLUMNS_MAX).contains(&cells);
        Ok(fits.then(|| Line::TableHead(row.to_owned(), cells)))
    }

    fn table_rule(&mut self, cells: usize) -> Result<Option<Vec<Alignment>>, More> {
        if !self.cursor.only_of_left(b" \t|-:")? {
            return Ok(None);
        }
        let Some(row) = self.cursor.rest_of_line()? else {
            return Ok(None);
        };
        let alignments = table::alignments(row).filter(|alignments| alignments.len() == cells);
        if alignments.is_some() {
            self.cursor.skip_all();
        }
        Ok(alignments)
    }
}

fn is_task(container: &Container) -> bool {
    matches!(container, Container::Item { task: Some(_), .. })
}
