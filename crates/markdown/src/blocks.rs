//! The blocks that are open, line by line: what [`crate::start`] says of a line is done here.

use crate::body::{Body, Kind};
use crate::code::{BlankLines, Code};
use crate::command::{Command, Extent};
use crate::highlight::Syntaxes;
use crate::inline::Inline;
use crate::look::{Colour, Look};
use crate::rows::{Ink, Prefix, Rows};
use crate::spans::{self, Place};
use crate::start::{self, Container, Context, Line, ListKind, Rest, START_BYTES_MAX, Start, Task};
use crate::table::{Alignment, Table};
use anstyle::Style;

/// A heading is held until its line ends, unless it is longer.
const HEADING_BYTES_MAX: usize = 1024;
/// Of a longer line only the beginning is told.
const COMMAND_BYTES_MAX: usize = 8 * 1024;
/// And so much of it.
const BEGINNING_BYTES_MAX: usize = 100;
/// More commands than these are shown and not proposed.
const COMMANDS_MAX: usize = 100;
/// Before the lines of a quotation.
const QUOTE: &str = "│ ";
/// Before the items of lists inside each other.
const BULLETS: [&str; 3] = ["• ", "◦ ", "▪ "];

/// The state between two pieces of text.
#[derive(Debug)]
pub(crate) struct Blocks {
    look: Look,
    syntaxes: Syntaxes,
    rows: Rows,
    containers: Vec<Container>,
    body: Body,
    /// The beginning of the current line, until it is clear what it is.
    line: String,
    /// It is: what comes goes to the body.
    in_content: bool,
    /// An empty line came since the last block.
    blank: bool,
    /// The block before, if there was one.
    last: Option<Kind>,
    commands: Vec<Command>,
}

impl Blocks {
    pub(crate) fn new(look: Look, syntaxes: Syntaxes) -> Self {
        Self {
            look,
            syntaxes,
            rows: Rows::new(look.columns),
            containers: Vec::new(),
            body: Body::None,
            line: String::new(),
            in_content: false,
            blank: false,
            last: None,
            commands: Vec::new(),
        }
    }

    /// What was written since this was called last.
    pub(crate) fn take(&mut self) -> String {
        self.rows.take()
    }

    pub(crate) fn resize(&mut self, columns: usize) {
        self.look.columns = columns;
        self.rows.resize(columns);
    }

    pub(crate) fn commands(&self) -> &[Command] {
        &self.commands
    }

    pub(crate) fn rows(&mut self) -> &mut Rows {
        &mut self.rows
    }

    /// More text, without anything a terminal acts on but line feeds and tabs.
    pub(crate) fn push(&mut self, text: &str) {
        for (n, piece) in text.split('\n').enumerate() {
            if n > 0 {
                self.end_line();
            }
            self.push_in_line(piece);
        }
    }

    /// The text is over.
    pub(crate) fn finish(&mut self) {
        if self.in_content || !self.line.is_empty() {
            self.end_line();
        }
        self.settle_table_head();
        self.close_body(BlankLines::Dropped);
        self.containers.clear();
        self.rows.keep_prefixes(0);
    }

    fn push_in_line(&mut self, piece: &str) {
        if self.in_content {
            return self.content(piece);
        }
        let room = START_BYTES_MAX - self.line.len();
        let (head, rest) = piece.split_at(piece.floor_char_boundary(room));
        if head.is_empty() && rest.is_empty() {
            return;
        }
        self.line.push_str(head);
        // A character that does not fit any more is as good as a full line.
        let is_full = !rest.is_empty() || self.line.len() >= START_BYTES_MAX;
        self.begin(Rest::Unknown);
        if is_full && !self.in_content {
            self.begin(Rest::Text);
        }
        if self.in_content {
            self.content(rest);
        }
    }

    fn end_line(&mut self) {
        if !self.in_content {
            self.begin(Rest::Ended);
        }
        self.in_content = false;
        self.end_content();
    }

    /// Looks at the line's beginning, and does what it says once that is clear.
    fn begin(&mut self, rest: Rest) {
        let context = Context {
            containers: &self.containers,
            tip: self.body.tip(),
        };
        let Some(mut start) = start::decide(&self.line, rest, context) else {
            return;
        };
        // A comment within text goes on over its lines.
        if start.line == Line::Command && self.containers.is_empty() && self.body.in_comment() {
            start.line = Line::Text;
            start.bytes = 0;
        }
        let line = std::mem::take(&mut self.line);
        let left = line.get(start.bytes..).unwrap_or_default();
        self.in_content = true;
        self.apply(start);
        self.content(left);
    }

    fn apply(&mut self, start: Start) {
        let Start {
            matched, opened, line, ..
        } = start;
        if !matches!(line, Line::TableRule(_)) {
            self.settle_table_head();
        }
        if line != Line::Blank {
            for container in self.containers.iter_mut().take(matched) {
                if let Container::Item { empty, .. } = container {
                    *empty = false;
                }
            }
        }
        let stays = matched == self.containers.len() && opened.is_empty() && self.body.takes(&line);
        if !stays {
            self.close_body(BlankLines::Dropped);
            self.change_containers(matched, opened, &line);
        }
        self.begin_body(line);
    }

    /// Leaves containers and enters others; whatever begins in them is set off from what was before.
    fn change_containers(&mut self, matched: usize, opened: Vec<Container>, line: &Line) {
        let left = self.containers.get(matched).cloned();
        self.containers.truncate(matched);
        self.rows.keep_prefixes(matched);
        if *line == Line::Blank && opened.is_empty() {
            return;
        }
        let kind = if matched == 0 && opened.is_empty() {
            Kind::of(line)
        } else {
            Kind::Plain
        };
        if !matches!(line, Line::TableHead(..)) || !opened.is_empty() {
            self.set_off(kind);
        }
        let mut left = left;
        for mut container in opened {
            if let (Some(before), Container::Item { kind, number, .. }) = (left.take(), &mut container)
                && let Container::Item {
                    kind: same,
                    number: last,
                    ..
                } = before
                && same == *kind
            {
                *number = last.saturating_add(1);
            }
            self.enter(container);
        }
    }

    fn set_off(&mut self, kind: Kind) {
        let wanted = self.blank || kind == Kind::SetOff || self.last == Some(Kind::SetOff);
        if self.last.is_some() && wanted {
            self.rows.blank_row();
        }
        self.blank = false;
        self.last = Some(kind);
    }

    fn enter(&mut self, container: Container) {
        let faint = self.look.palette().faint;
        let prefix = match &container {
            Container::Quote => Prefix {
                mark: None,
                rest: QUOTE.to_owned(),
                style: faint,
            },
            Container::Item { kind, number, task, .. } => {
                let mark = self.mark(*kind, *number, *task);
                Prefix {
                    rest: " ".repeat(mark.chars().count()),
                    mark: Some(mark),
                    style: Style::new(),
                }
            }
        };
        self.rows.push_prefix(prefix);
        self.containers.push(container);
    }

    fn mark(&self, kind: ListKind, number: u64, task: Option<Task>) -> String {
        match (task, kind) {
            (Some(Task::Open), _) => "[ ] ".to_owned(),
            (Some(Task::Done), _) => "[x] ".to_owned(),
            (None, ListKind::Ordered(delimiter)) => format!("{number}{} ", char::from(delimiter)),
            (None, ListKind::Bullet(_)) => {
                let is_bullet = |container: &&Container| {
                    matches!(
                        container,
                        Container::Item {
                            kind: ListKind::Bullet(_),
                            ..
                        }
                    )
                };
                let depth = self.containers.iter().filter(is_bullet).count();
                BULLETS
                    .iter()
                    .cycle()
                    .nth(depth)
                    .copied()
                    .unwrap_or_default()
                    .to_owned()
            }
        }
    }

    fn begin_body(&mut self, line: Line) {
        match line {
            Line::Blank => self.blank_line(),
            Line::Text | Line::Lazy if matches!(self.body, Body::Paragraph(_)) => {}
            Line::Text | Line::Lazy => {
                self.rows.reset_widest();
                self.body = Body::Paragraph(Inline::new(self.look, Style::new()));
            }
            Line::Verbatim { pad } => self.content(&" ".repeat(pad)),
            Line::Indented { pad } => {
                self.body = Body::Indented(Code::indented(self.look, &mut self.rows));
                self.content(&" ".repeat(pad));
            }
            Line::Html(end) => {
                self.body = Body::Html {
                    end,
                    line: String::new(),
                }
            }
            Line::FenceOpen(fence, info) => {
                let code = Code::fenced(&info, self.look, &self.syntaxes, &mut self.rows);
                self.body = Body::Fenced(fence, code);
            }
            Line::FenceClose => self.close_body(BlankLines::Kept),
            Line::Heading(level) => {
                self.body = Body::Heading {
                    level,
                    text: String::new(),
                }
            }
            Line::Underline(level) => self.underline(level),
            Line::Rule => {
                let rule = "─".repeat(self.rows.room());
                self.rows.verbatim(&[(Ink::styled(self.look.palette().faint), &rule)]);
            }
            Line::TableHead(row, cells) => {
                let paragraph = self.take_paragraph();
                self.body = Body::TableHead { paragraph, row, cells };
            }
            Line::TableRule(alignments) => self.begin_table(alignments),
            Line::TableRow(row) => {
                if let Body::Table(table) = &mut self.body {
                    table.push(&row, &mut self.rows);
                }
            }
            Line::Command => self.body = Body::Command(String::new()),
        }
    }

    fn blank_line(&mut self) {
        self.blank = true;
        if let Body::Indented(code) = &mut self.body {
            code.blank_line();
        }
    }

    fn underline(&mut self, level: u8) {
        self.close_body(BlankLines::Dropped);
        let rule = if level == 1 { "═" } else { "─" };
        let rule = rule.repeat(self.rows.widest().clamp(1, self.rows.room()));
        self.rows.verbatim(&[(Ink::styled(self.look.palette().faint), &rule)]);
        self.last = Some(Kind::SetOff);
    }

    fn take_paragraph(&mut self) -> Option<Inline> {
        let is_paragraph = matches!(self.body, Body::Paragraph(_));
        let body = is_paragraph.then(|| std::mem::replace(&mut self.body, Body::None));
        if let Some(Body::Paragraph(inline)) = body {
            Some(inline)
        } else {
            None
        }
    }

    /// The line that might have been the head of a table is none.
    fn settle_table_head(&mut self) {
        if !matches!(self.body, Body::TableHead { .. }) {
            return;
        }
        let Body::TableHead { paragraph, row, .. } = std::mem::replace(&mut self.body, Body::None) else {
            return;
        };
        let mut inline = paragraph.unwrap_or_else(|| {
            self.set_off(Kind::Plain);
            self.rows.reset_widest();
            Inline::new(self.look, Style::new())
        });
        inline.push(&row, &mut self.rows);
        inline.end_line(&mut self.rows);
        self.body = Body::Paragraph(inline);
    }

    fn begin_table(&mut self, alignments: Vec<Alignment>) {
        if let Body::TableHead { paragraph, row, .. } = std::mem::replace(&mut self.body, Body::None) {
            if let Some(mut inline) = paragraph {
                inline.finish(&mut self.rows);
            }
            let kind = if self.containers.is_empty() {
                Kind::SetOff
            } else {
                Kind::Plain
            };
            self.set_off(kind);
            self.body = Body::Table(Table::new(self.look, &row, alignments));
        }
    }

    fn content(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        match &mut self.body {
            // Nothing of such a line is left.
            Body::None | Body::TableHead { .. } | Body::Table(_) => {}
            Body::Paragraph(inline) | Body::LongHeading(inline) => inline.push(text, &mut self.rows),
            Body::Fenced(_, code) | Body::Indented(code) => code.push(text, &mut self.rows),
            Body::Html { line, .. } => {
                self.rows.words(text, &Ink::default());
                let room = START_BYTES_MAX.saturating_sub(line.len());
                line.push_str(text.get(..text.floor_char_boundary(room)).unwrap_or_default());
            }
            Body::Heading { level, text: held } => {
                held.push_str(text);
                if held.len() > HEADING_BYTES_MAX {
                    let (level, held) = (*level, std::mem::take(held));
                    self.begin_long_heading(level, &held);
                }
            }
            Body::Command(line) => {
                line.push_str(text);
                if line.len() > COMMAND_BYTES_MAX {
                    let line = std::mem::take(line);
                    let beginning = line.get(..line.floor_char_boundary(BEGINNING_BYTES_MAX));
                    self.commands
                        .extend(
                            beginning
                                .filter(|_| self.commands.len() < COMMANDS_MAX)
                                .map(|line| Command {
                                    line: line.trim().to_owned(),
                                    extent: Extent::Beginning,
                                }),
                        );
                    let mut inline = Inline::new(self.look, Style::new());
                    inline.push(&format!("CMD:{line}"), &mut self.rows);
                    self.body = Body::LongHeading(inline);
                }
            }
        }
    }

    fn end_content(&mut self) {
        match &mut self.body {
            Body::None | Body::TableHead { .. } | Body::Table(_) => {}
            Body::Paragraph(inline) => inline.end_line(&mut self.rows),
            Body::Fenced(_, code) | Body::Indented(code) => code.end_line(&mut self.rows),
            Body::Html { end, line } => {
                self.rows.end_row();
                let is_over = end.is_in(line);
                line.clear();
                if is_over {
                    self.body = Body::None;
                }
            }
            Body::Heading { .. } | Body::LongHeading(_) | Body::Command(_) => self.close_body(BlankLines::Dropped),
        }
    }

    fn close_body(&mut self, blank_lines: BlankLines) {
        match std::mem::replace(&mut self.body, Body::None) {
            Body::None => {}
            Body::Paragraph(mut inline) | Body::LongHeading(mut inline) => inline.finish(&mut self.rows),
            Body::TableHead { .. } => {}
            Body::Table(mut table) => table.finish(&mut self.rows),
            Body::Fenced(_, mut code) => code.finish(blank_lines, &mut self.rows),
            Body::Indented(mut code) => code.finish(BlankLines::Dropped, &mut self.rows),
            Body::Html { .. } => self.rows.end_row(),
            Body::Heading { level, text } => self.heading(level, &text),
            Body::Command(line) => self.command(&line),
        }
    }

    fn heading(&mut self, level: u8, text: &str) {
        let text = without_closing(text);
        let style = self.begin_heading(level);
        spans::write(text, Place::START, self.look, style, &mut self.rows);
        self.rows.end_row();
    }

    fn begin_long_heading(&mut self, level: u8, held: &str) {
        let style = self.begin_heading(level);
        let mut inline = Inline::new(self.look, style);
        inline.push(held, &mut self.rows);
        self.body = Body::LongHeading(inline);
    }

    /// Without colours a heading keeps its mark.
    fn begin_heading(&mut self, level: u8) -> Style {
        let palette = self.look.palette();
        if self.look.colour == Colour::None {
            self.rows.words(&"#".repeat(usize::from(level)), &Ink::default());
            self.rows.space(&Ink::default());
        }
        if level == 1 { palette.title } else { palette.heading }
    }

    fn command(&mut self, line: &str) {
        let shown = format!("CMD:{line}");
        self.rows
            .verbatim(&[(Ink::styled(self.look.palette().command), &shown)]);
        let line = line.trim();
        if !line.is_empty() && self.commands.len() < COMMANDS_MAX {
            self.commands.push(Command {
                line: line.to_owned(),
                extent: Extent::Whole,
            });
        }
    }
}

/// A heading's text without the marks that may close it (CommonMark 4.2).
fn without_closing(text: &str) -> &str {
    let text = text.trim_matches([' ', '\t']);
    let bare = text.trim_end_matches('#');
    if bare.is_empty() || bare.ends_with([' ', '\t']) {
        bare.trim_end_matches([' ', '\t'])
    } else {
        text
    }
}
