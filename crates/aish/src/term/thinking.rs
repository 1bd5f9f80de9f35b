//! Thinking on the screen: dim and folded. Its beginning is shown as it comes, of the rest how much there is; whoever wants
//! to read it asks for it (`:thinking`).
//!
//! Append-only like everything else: where the fold begins a line is opened that stays open while the model thinks on, and
//! gets its number when it is done.

use super::look::{Colour, DIM, Look};
use super::rows::{Rows, width_of};
use super::{Output, Stream};

/// Rows of thinking that are shown.
const ROWS_MAX: usize = 6;
/// Before each row, where dim sets them off from the answer.
const PREFIX_DIM: &str = "┊ ";
/// Before each line, where nothing else does.
const PREFIX_PLAIN: &str = "thinking: ";
/// Before the rows that go on with such a line.
const PREFIX_PLAIN_WRAP: &str = "          ";
/// What is written where the fold begins.
const FOLD: &str = "… thinking";

/// One stretch of thinking.
pub(super) struct Thinking {
    rows: Rows,
    has_begun: bool,
    /// Line breaks that are held back: at the end of thinking they say nothing.
    breaks: usize,
    fold: Fold,
}

/// How much of it is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fold {
    /// All so far.
    None,
    /// Its beginning; the line that says so is open.
    Open,
    /// Its beginning; something else was written since that line.
    Broken,
}

impl Thinking {
    pub(super) fn new(look: Look) -> Self {
        let rows = match look.colour {
            Colour::On => Rows::new(PREFIX_DIM, PREFIX_DIM, look.width()),
            Colour::Off => Rows::new(PREFIX_PLAIN, PREFIX_PLAIN_WRAP, look.width()),
        };
        Self {
            rows: rows.at_most(ROWS_MAX),
            has_begun: false,
            breaks: 0,
            fold: Fold::None,
        }
    }

    /// Whether anything of it was worth showing.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// The next piece; safe already.
    pub(super) fn push(&mut self, text: &str, look: Look, out: &mut Output) {
        // Models begin with empty lines.
        let text = if self.has_begun {
            text
        } else {
            text.trim_start_matches('\n')
        };
        let body = text.trim_end_matches('\n');
        let mut shown = String::new();
        if !body.is_empty() {
            self.has_begun = true;
            for _ in 0..std::mem::take(&mut self.breaks) {
                self.rows.push("\n", &mut shown);
            }
            self.rows.push(body, &mut shown);
        }
        self.breaks += text.len() - body.len();
        out.push(Stream::Frame, &look.paint(DIM, &shown));
        if self.rows.hidden() > 0 && self.fold == Fold::None {
            out.push(Stream::Frame, &look.paint(DIM, FOLD));
            self.fold = Fold::Open;
        }
    }

    /// Whatever comes next is on a line of its own.
    pub(super) fn break_line(&mut self, out: &mut Output) {
        let mut shown = String::new();
        match self.fold {
            Fold::None => self.rows.break_row(&mut shown),
            Fold::Open => {
                shown.push('\n');
                self.fold = Fold::Broken;
            }
            Fold::Broken => {}
        }
        out.push(Stream::Frame, &shown);
    }

    /// The terminal has another size now.
    pub(super) fn resize(&mut self, look: Look) {
        self.rows.resize(look.width());
    }

    /// Columns written in the current row.
    pub(super) fn column(&self) -> usize {
        match self.fold {
            Fold::None => self.rows.column(),
            Fold::Open => width_of(FOLD),
            Fold::Broken => 0,
        }
    }

    /// It is over: says what was not shown.
    pub(super) fn end(&mut self, look: Look, out: &mut Output) {
        if self.fold == Fold::None {
            return self.break_line(out);
        }
        let lines = match self.rows.hidden() {
            1 => "1 more line".to_owned(),
            n => format!("{n} more lines"),
        };
        let remark = format!(" ({lines}; :thinking shows it)");
        let begun = if self.fold == Fold::Broken { FOLD } else { "" };
        out.push(Stream::Frame, &look.paint(DIM, &format!("{begun}{remark}")));
        out.push(Stream::Frame, "\n");
    }
}

#[cfg(test)]
mod tests {
    use super::super::look::Form;
    use super::super::render::Renderer;
    use super::*;
    use aish_core::redact::Redactor;
    use aish_engine::Notice;
    use std::time::Duration;

    fn look(colour: Colour) -> Look {
        Look {
            columns: 40,
            rows: 24,
            colour,
            form: Form::Framed,
            ..Look::PLAIN
        }
    }

    fn shown(look: Look, notices: &[Notice]) -> String {
        let mut renderer = Renderer::new(look, Redactor::default());
        let mut out = Output::new();
        for notice in notices {
            renderer.notice(notice, Duration::ZERO, &mut out);
        }
        renderer.turn_over(&mut out);
        out.text()
    }

    fn thought(text: &str) -> Notice {
        Notice::Thinking(text.to_owned())
    }

    fn lines(count: usize) -> String {
        (1..=count).map(|n| format!("line {n}\n")).collect()
    }

    /// A screenful of thinking is folded: its beginning, and how much more there is. What only ends it is no line.
    #[test]
    fn long_thinking_is_folded() {
        let notices = [
            thought(&lines(7)),
            thought("line 8, which is longer than the terminal is wide\n\n"),
            Notice::Text("Hello\n".into()),
        ];
        insta::assert_snapshot!(shown(look(Colour::Off), &notices), @"
        thinking: line 1
        thinking: line 2
        thinking: line 3
        thinking: line 4
        thinking: line 5
        thinking: line 6
        … thinking (2 more lines; :thinking shows it)

        Hello
        ");
        insta::assert_snapshot!(shown(Look::PLAIN, &notices), @"
        thinking: line 1
        thinking: line 2
        thinking: line 3
        thinking: line 4
        thinking: line 5
        thinking: line 6
        … thinking (2 more lines; :thinking shows it)
        Hello
        ");
        let just_fits = shown(look(Colour::Off), &[thought(&lines(6))]);
        assert!(just_fits.ends_with("thinking: line 6\n"), "{just_fits}");
    }

    /// While a model thinks on, the fold says that it does; a status line in between stands alone.
    #[test]
    fn the_fold_is_open_until_the_end() {
        let so_far = |notices: &[Notice]| {
            let mut renderer = Renderer::new(look(Colour::Off), Redactor::default());
            let mut out = Output::new();
            for notice in notices {
                renderer.notice(notice, Duration::ZERO, &mut out);
            }
            out.text()
        };
        assert!(so_far(&[thought(&lines(9)), thought("more ")]).ends_with("\n… thinking"));
        let status = Notice::Status("odd".into());
        let broken = shown(look(Colour::Off), &[thought(&lines(7)), status, thought("line 8")]);
        let tail = "… thinking\n[aish] odd\n… thinking (2 more lines; :thinking shows it)\n";
        assert!(broken.ends_with(tail), "{broken}");
    }

    /// Narrow terminals and styles: each row has its mark.
    #[test]
    fn rows_are_marked() {
        let text = shown(
            look(Colour::On),
            &[thought("a line that goes on over the edge of the terminal")],
        );
        insta::assert_snapshot!(text.replace('\x1b', "␛"), @"
        ␛[2m┊ a line that goes on over the edge of 
        ┊ the terminal␛[0m
        ");
    }
}
