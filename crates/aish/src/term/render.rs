//! Notices become lines: pure, append-only, for any width (SPEC 8.5, 8.6, 8.8).
//!
//! A [`Renderer`] remembers in what it last wrote (a reply, thinking, the frame of a call) and on which column, so that
//! whatever comes next begins on a line of its own. It never moves the cursor: what was written stays as it is, and the
//! terminal's scrollback is the record. The one exception is the line that counts down before a request is made again
//! ([`super::countdown`]).
//!
//! Time comes in as data: `now` is any clock that only grows.

use super::clean::Clean;
use super::countdown::{Countdown, StatusLine, retry_text};
pub use super::frame::body_of;
use super::frame::{self, Foot, Owner};
use super::look::{BOLD, DIM, Form, Look};
use super::prose::Prose;
use super::rows::Rows;
use super::thinking::Thinking;
use super::{Output, Stream};
use aish_core::event::{Command, ResultEnd};
use aish_core::id::CallId;
use aish_core::redact::Redactor;
use aish_core::sanitize;
use aish_engine::Notice;
use aish_markdown::Syntaxes;
use std::collections::BTreeMap;
use std::time::Duration;

/// The first words of every status line (SPEC 10.4).
pub const STATUS_START: &str = "[aish] ";

/// Stands before what the person's shell shows in the middle of something else: at the prompt it needs no name.
const SHELL_START: &str = "[shell] ";

/// Turns what happens into text.
pub struct Renderer {
    look: Look,
    redactor: Redactor,
    status_line: StatusLine,
    region: Region,
    clean: Clean,
    /// Read when code is first shown.
    syntaxes: Syntaxes,
    /// Calls that run, and since when.
    running: BTreeMap<CallId, Duration>,
    model: Option<String>,
}

/// What was written last.
enum Region {
    /// Nothing that is still open.
    Between,
    /// A reply.
    Prose(Prose),
    /// Thinking.
    Thinking(Thinking),
    /// The wait before a request is made again.
    Countdown(Countdown),
    /// The frame of a call or of the user's own command.
    Frame(Frame),
}

struct Frame {
    /// `None` for the user's own command.
    call: Option<CallId>,
    rows: Rows,
    printed: bool,
}

impl Renderer {
    /// For that look; `redactor` keeps secrets off the screen (SPEC 10.5).
    pub fn new(look: Look, redactor: Redactor) -> Self {
        Self {
            look,
            clean: Clean::for_terminal(redactor.clone()),
            redactor,
            status_line: StatusLine::Once,
            region: Region::Between,
            syntaxes: Syntaxes::new(),
            running: BTreeMap::new(),
            model: None,
        }
    }

    /// The same with syntaxes that were read already: code has its colours from its first line on, whatever the threads do.
    #[cfg(test)]
    pub fn with_syntaxes(self, syntaxes: Syntaxes) -> Self {
        Self { syntaxes, ..self }
    }

    /// How things look now.
    pub fn look(&self) -> Look {
        self.look
    }

    /// The terminal's size changed: what comes next is laid out for it.
    pub fn set_look(&mut self, look: Look) {
        self.look = look;
        match &mut self.region {
            Region::Prose(prose) => prose.resize(look),
            Region::Thinking(thinking) => thinking.resize(look),
            Region::Frame(frame) => frame.rows.resize(look.width()),
            Region::Between | Region::Countdown(_) => {}
        }
    }

    /// Columns written in the row that is open, 0 where the next text begins one: what is drawn below a stream goes away from there.
    pub fn column(&mut self) -> usize {
        match &mut self.region {
            Region::Between => 0,
            Region::Prose(prose) => prose.column(),
            Region::Thinking(thinking) => thinking.column(),
            Region::Countdown(countdown) => countdown.column(),
            Region::Frame(frame) => frame.rows.column(),
        }
    }

    /// Status lines go to a terminal, or not.
    pub fn set_status_line(&mut self, status_line: StatusLine) {
        self.status_line = status_line;
    }

    /// The model the person believes to be talking to: another one that is asked is named (SPEC 7.6).
    pub fn expect_model(&mut self, name: &str) {
        self.model = Some(name.to_owned());
    }

    /// One notice.
    pub fn notice(&mut self, notice: &Notice, now: Duration, out: &mut Output) {
        match notice {
            Notice::Asking { model } => self.asking(model, out),
            Notice::Text(text) => self.prose(text, out),
            Notice::Thinking(text) => self.thinking(text, out),
            Notice::CallBegun { name } => self.call_begun(name, out),
            Notice::ReplyEnded => self.finish(out),
            Notice::CallStarted { call, readable } => {
                self.running.insert(call.clone(), now);
                self.open_frame(Some(call.clone()), readable, out);
            }
            Notice::ToolOutput { call, text } => self.printed(call, text, out),
            Notice::CallStep { call, line, .. } => self.step(call, line, out),
            Notice::CommandOutput(text) => self.command_printed(text, out),
            Notice::Beside(text) => self.beside(text, out),
            Notice::CallEnded {
                call,
                readable,
                output,
                summary,
                success,
                end,
            } => {
                let took = self.running.remove(call).map(|since| now.saturating_sub(since));
                let foot = Foot {
                    summary,
                    success: *success,
                    end: *end,
                    took,
                };
                self.call_ended(call, readable, output, &foot, out);
            }
            Notice::Retrying {
                attempt,
                wait_ms,
                problem,
            } => self.retrying(problem, *attempt, Duration::from_millis(*wait_ms), now, out),
            // Shown nowhere; the ledger has both.
            Notice::Usage(_) | Notice::Recorded(_) => {}
            Notice::Status(text) => self.status(text, out),
        }
    }

    /// A status line. What was being written goes on after it.
    pub fn status(&mut self, text: &str, out: &mut Output) {
        self.break_line(out);
        let text = self.redactor.redact(text);
        for line in text.lines() {
            let line = format!("{STATUS_START}{}", sanitize::single_line(line));
            out.push(Stream::Status, &self.look.paint(DIM, &line));
            out.push(Stream::Status, "\n");
        }
    }

    /// What the person's shell shows by itself. What was being written goes on after it.
    fn beside(&mut self, text: &str, out: &mut Output) {
        let start = match &self.region {
            Region::Between => "",
            Region::Prose(_) | Region::Thinking(_) | Region::Countdown(_) | Region::Frame(_) => SHELL_START,
        };
        self.break_line(out);
        let mut rows = Rows::new(start, start, self.look.width());
        let mut shown = String::new();
        rows.push(&self.clean.whole(text), &mut shown);
        rows.break_row(&mut shown);
        out.push(Stream::Frame, &shown);
    }

    /// When [`Self::tick`] has something to write; `None` while nothing counts down.
    pub fn tick_due(&self) -> Option<Duration> {
        match &self.region {
            Region::Countdown(countdown) => countdown.due(),
            Region::Between | Region::Prose(_) | Region::Thinking(_) | Region::Frame(_) => None,
        }
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Duration, out: &mut Output) {
        if let Region::Countdown(countdown) = &mut self.region {
            countdown.tick(now, self.look, out);
        }
    }

    /// A line the person typed, as a restored session shows it.
    pub fn said(&mut self, mark: &str, text: &str, out: &mut Output) {
        self.finish(out);
        self.said_line(mark, text, out);
    }

    /// The same in the middle of a turn: what was being written goes on after it.
    pub fn steered(&mut self, mark: &str, text: &str, out: &mut Output) {
        self.break_line(out);
        self.said_line(mark, text, out);
    }

    fn said_line(&self, mark: &str, text: &str, out: &mut Output) {
        let mut rows = Rows::new("  ", "  ", self.look.width());
        let mut shown = String::new();
        rows.push(&self.clean.whole(text), &mut shown);
        let shown = shown.strip_prefix("  ").unwrap_or(&shown);
        out.push(Stream::Frame, &self.look.paint(BOLD, &format!("{mark} {shown}")));
        out.push(Stream::Frame, "\n");
    }

    /// The user's own command begins; all it prints is shown, however long.
    pub fn command_begun(&mut self, line: &str, out: &mut Output) {
        self.open_frame(None, line, out);
    }

    /// The user's own command is over.
    pub fn command_ended(&mut self, command: &Command, out: &mut Output) {
        self.release(out);
        if let Region::Frame(frame) = &self.region
            && !frame.printed
        {
            self.frame_text(&command.output, out);
        }
        let summary = match command.status {
            Some(status) => format!("exit {status}"),
            None => "ended by a signal".to_owned(),
        };
        self.close_frame(
            &Foot {
                summary: &summary,
                success: command.status == Some(0),
                end: ResultEnd::Completed,
                took: Some(Duration::from_millis(command.duration_ms)),
            },
            out,
        );
    }

    /// Ends whatever is being written; the next line is nobody's.
    pub fn finish(&mut self, out: &mut Output) {
        self.release(out);
        match &mut self.region {
            Region::Thinking(thinking) => thinking.end(self.look, out),
            Region::Prose(prose) => {
                let mut shown = String::new();
                prose.finish(&mut shown);
                out.push(Stream::Reply, &shown);
            }
            Region::Between | Region::Countdown(_) | Region::Frame(_) => self.break_line(out),
        }
        self.region = Region::Between;
    }

    /// The turn is over: calls that did not come to their end are left behind.
    pub fn turn_over(&mut self, out: &mut Output) {
        self.finish(out);
        self.running.clear();
    }

    fn asking(&mut self, model: &str, out: &mut Output) {
        if self.model.as_ref().is_some_and(|before| before != model) {
            self.status(&format!("asking {model}"), out);
        }
        self.model = Some(model.to_owned());
    }

    fn call_begun(&mut self, name: &str, out: &mut Output) {
        // A long call takes a slow model a minute to write; without this it looks as if nothing happened.
        if self.look.form == Form::Framed {
            self.finish(out);
            let line = format!("… {}", sanitize::single_line(&self.redactor.redact(name)));
            out.push(Stream::Frame, &self.look.paint(DIM, &line));
            out.push(Stream::Frame, "\n");
        }
    }

    fn retrying(&mut self, problem: &str, attempt: u32, wait: Duration, now: Duration, out: &mut Output) {
        if self.status_line == StatusLine::Once || self.look.form == Form::Plain {
            return self.status(&retry_text(problem, attempt, wait), out);
        }
        self.finish(out);
        let shown = self.redactor.redact(problem);
        let mut countdown = Countdown::new(&sanitize::single_line(&shown), attempt, now, wait);
        if !countdown.fits(self.look) {
            self.status(problem, out);
            countdown = countdown.shortened();
        }
        countdown.begin(self.look, out);
        self.region = Region::Countdown(countdown);
    }

    fn thinking(&mut self, piece: &str, out: &mut Output) {
        if !matches!(self.region, Region::Thinking(_)) {
            self.finish(out);
            self.region = Region::Thinking(Thinking::new(self.look));
        }
        let text = self.clean.push(piece);
        self.thinking_text(&text, out);
    }

    fn thinking_text(&mut self, text: &str, out: &mut Output) {
        if let Region::Thinking(thinking) = &mut self.region {
            thinking.push(text, self.look, out);
        }
    }

    fn prose(&mut self, piece: &str, out: &mut Output) {
        if !matches!(self.region, Region::Prose(_)) {
            let answers = matches!(&self.region, Region::Thinking(thinking) if thinking.has_begun());
            self.finish(out);
            if answers && self.look.form == Form::Framed {
                out.push(Stream::Frame, "\n");
            }
            self.region = Region::Prose(Prose::new(self.look, &self.syntaxes));
        }
        let text = self.clean.push(piece);
        self.prose_text(&text, out);
    }

    fn prose_text(&mut self, text: &str, out: &mut Output) {
        if let Region::Prose(prose) = &mut self.region {
            let mut shown = String::new();
            prose.push(text, &mut shown);
            out.push(Stream::Reply, &shown);
        }
    }

    fn open_frame(&mut self, call: Option<CallId>, readable: &str, out: &mut Output) {
        self.finish(out);
        let rows = Rows::new(frame::INDENT, frame::INDENT, self.look.width());
        let rows = match call {
            Some(_) => rows.at_most(self.look.result_rows_max()),
            // The person asked for this output: cutting it would be cutting their own screen.
            None => rows,
        };
        let owner = match call {
            Some(_) => Owner::Call,
            None => Owner::Command,
        };
        let head = frame::head(self.look, owner, &self.redactor.redact(readable));
        out.push(Stream::Frame, &head);
        self.region = Region::Frame(Frame {
            call,
            rows,
            printed: false,
        });
    }

    fn printed(&mut self, call: &CallId, piece: &str, out: &mut Output) {
        let current = match &self.region {
            Region::Frame(frame) => frame.call.as_ref() == Some(call),
            Region::Between | Region::Prose(_) | Region::Thinking(_) | Region::Countdown(_) => false,
        };
        if !current {
            self.open_frame(Some(call.clone()), call.as_str(), out);
        }
        let text = self.clean.push(piece);
        self.frame_rows(&text, out);
    }

    /// How far a call has come: beside its result, and not counted as a part of it.
    fn step(&mut self, call: &CallId, line: &str, out: &mut Output) {
        let is_open = matches!(&self.region, Region::Frame(frame) if frame.call.as_ref() == Some(call));
        if !is_open {
            self.open_frame(Some(call.clone()), call.as_str(), out);
        }
        self.release(out);
        let line = sanitize::single_line(&self.redactor.redact(line)).into_owned();
        let mut shown = String::new();
        if let Region::Frame(frame) = &mut self.region {
            frame.rows.break_row(&mut shown);
        }
        let mut rows = Rows::new(frame::INDENT, frame::INDENT, self.look.width());
        rows.push(&line, &mut shown);
        rows.break_row(&mut shown);
        out.push(Stream::Frame, &self.look.paint(DIM, &shown));
    }

    fn command_printed(&mut self, piece: &str, out: &mut Output) {
        let text = self.clean.push(piece);
        self.frame_rows(&text, out);
    }

    fn frame_text(&mut self, text: &str, out: &mut Output) {
        self.frame_rows(&self.clean.whole(text), out);
    }

    fn frame_rows(&mut self, text: &str, out: &mut Output) {
        if let Region::Frame(frame) = &mut self.region {
            let mut shown = String::new();
            frame.rows.push(text, &mut shown);
            frame.printed |= !text.is_empty();
            out.push(Stream::Frame, &self.look.paint(DIM, &shown));
        }
    }

    fn call_ended(&mut self, call: &CallId, readable: &str, output: &str, foot: &Foot<'_>, out: &mut Output) {
        // Calls that run side by side end in any order, and some end without having run.
        if !matches!(&self.region, Region::Frame(frame) if frame.call.as_ref() == Some(call)) {
            self.open_frame(Some(call.clone()), readable, out);
        }
        self.release(out);
        if matches!(&self.region, Region::Frame(frame) if !frame.printed) {
            self.frame_text(&frame::body_of(output, foot.summary), out);
        }
        self.close_frame(foot, out);
    }

    fn close_frame(&mut self, foot: &Foot<'_>, out: &mut Output) {
        self.release(out);
        self.break_line(out);
        if let Region::Frame(frame) = &self.region {
            let lines = frame.rows.hidden();
            if let (1.., Some(call)) = (lines, &frame.call) {
                let shown = frame::hidden(self.look, lines, &format!(":show {call}"));
                out.push(Stream::Frame, &shown);
            }
        }
        self.region = Region::Between;
        let summary = self.redactor.redact(foot.summary);
        let foot = Foot {
            summary: &summary,
            ..*foot
        };
        out.push(Stream::Frame, &frame::foot(self.look, &foot));
    }

    /// Writes what was held back: nothing follows that could change it.
    fn release(&mut self, out: &mut Output) {
        let held = self.clean.finish();
        match &self.region {
            Region::Between | Region::Countdown(_) => {}
            Region::Prose(_) => self.prose_text(&held, out),
            Region::Thinking(_) => self.thinking_text(&held, out),
            Region::Frame(_) => self.frame_rows(&held, out),
        }
    }

    /// Whatever comes next is on a line of its own. A word that is held back stays so: a status line between its two halves
    /// must not bring a key to light.
    fn break_line(&mut self, out: &mut Output) {
        match &mut self.region {
            Region::Between => {}
            Region::Prose(prose) => {
                let mut shown = String::new();
                prose.break_row(&mut shown);
                out.push(Stream::Reply, &shown);
            }
            Region::Thinking(thinking) => thinking.break_line(out),
            Region::Countdown(_) => {
                out.push(Stream::Status, "\n");
                self.region = Region::Between;
            }
            Region::Frame(frame) => {
                let mut shown = String::new();
                frame.rows.break_row(&mut shown);
                out.push(Stream::Frame, &shown);
            }
        }
    }
}
