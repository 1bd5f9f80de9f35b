//! How the prompt looks in the line editor: before the line, at its right end, and once it was sent.
//!
//! The editor draws the prompt anew at each key, after it has shown the line to the highlighter, which tells the [`Router`]: so what
//! the prompt says of the route is true of the line beside it. A line that was sent keeps its indicator and loses its hint.

use crate::repl::prompt::{INDICATOR, INDICATOR_MORE, PromptText};
use crate::repl::router::{Because, Router, Seen, Way};
use crate::term::{Colour, Look};
use aish_core::sanitize;
use anstyle::Style;
use reedline::{Color, Prompt, PromptEditMode, PromptHistorySearch, PromptHistorySearchStatus, PromptViMode};
use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use unicode_width::UnicodeWidthStr as _;

/// The ends of the prompt by what becomes of the line; all as wide as the usual one.
pub const SHELL_INDICATOR: &str = "$ ";
const META_INDICATOR: &str = ": ";
const MISTYPED_INDICATOR: &str = "✗ ";
/// While keys are commands of vi.
const COMMAND_MODE_INDICATOR: &str = "❮ ";
/// Hints are short in terminals of this width and less.
const NARROW_COLUMNS: usize = 60;
/// Columns between a line and its hint.
const GAP_COLUMNS: usize = 2;

/// What the prompt says now, shared by the face while a line is typed and the one it leaves behind.
pub type Text = Arc<Mutex<PromptText>>;

/// Told each time the prompt is drawn, by the editor's thread: to be quick.
pub type Drawn = Arc<dyn Fn() + Send + Sync>;

/// When the prompt is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// While the line is typed.
    Typing,
    /// For the last time, since it was sent.
    Sent,
}

/// The prompt as the editor draws it.
pub struct Face {
    /// What it says.
    pub text: Text,
    /// Where the line goes.
    pub router: Option<Router>,
    /// Whether styles are written.
    pub colour: Colour,
    /// When it is drawn.
    pub stage: Stage,
    /// Told of it.
    pub drawn: Drawn,
}

impl Face {
    fn text(&self) -> MutexGuard<'_, PromptText> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn seen(&self) -> Seen {
        self.router.as_ref().map(Router::seen).unwrap_or_default()
    }

    fn painted(&self, text: &str, style: Style) -> String {
        match self.colour {
            // The editor resets after the prompt; pieces follow one another without.
            Colour::On => format!("{}{text}", style.render()),
            Colour::Off => text.to_owned(),
        }
    }
}

/// Columns of the person's terminal, as it is now.
fn columns() -> usize {
    Look::PLAIN.resized(rustix::stdio::stdout()).columns
}

/// What stands before the line.
pub fn indicator(seen: &Seen) -> &'static str {
    match &seen.way {
        Way::Nothing | Way::Model => INDICATOR,
        Way::Meta => META_INDICATOR,
        Way::Shell => SHELL_INDICATOR,
        // One word may be the beginning of something.
        Way::Mistyped(_) if !is_past_first_word(&seen.line) => INDICATOR,
        Way::Mistyped(_) => MISTYPED_INDICATOR,
    }
}

/// What stands before that line, which is typed elsewhere than in the editor.
pub fn indicator_of(router: &Router, line: &str) -> &'static str {
    router.shown(line);
    indicator(&router.seen())
}

/// The prompt and a line that was sent from elsewhere, as if the editor had left them behind.
pub fn left_behind(prompt: &PromptText, router: Option<&Router>, look: Look, line: &str) -> String {
    let pieces = prompt.pieces(look.columns);
    let left: String = pieces
        .iter()
        .map(|piece| look.paint(piece.tone.style(), &piece.text))
        .collect();
    let indicator = router.map_or(INDICATOR, |router| indicator_of(router, line));
    let line = sanitize::multi_line(line).replace('\n', &format!("\n{INDICATOR_MORE}"));
    format!("{left}{indicator}{line}\n")
}

fn is_past_first_word(line: &str) -> bool {
    line.trim_start().contains(char::is_whitespace)
}

fn colour_of(way: &Way) -> Color {
    match way {
        Way::Nothing | Way::Model => Color::Cyan,
        Way::Meta => Color::Magenta,
        Way::Shell => Color::Green,
        Way::Mistyped(_) => Color::Yellow,
    }
}

/// What is said of the line at the right, on a terminal of that many columns; empty where nothing is.
fn hint(seen: &Seen, text: &PromptText, columns: usize) -> String {
    let is_narrow = columns <= NARROW_COLUMNS;
    let wide_or = |wide: &str, narrow: &str| if is_narrow { narrow } else { wide }.to_owned();
    match (&seen.way, seen.because) {
        (Way::Nothing, _) => match text.last.filter(|last| last.is_puzzling()) {
            Some(_) => wide_or("Alt-W: why did that fail?", "Alt-W: why?"),
            None => String::new(),
        },
        (Way::Mistyped(instead), _) => format!("{}?", sanitize::single_line(instead)),
        (Way::Shell, Because::Flipped) => "shell (flipped)".to_owned(),
        (Way::Model, Because::Flipped) => "model (flipped)".to_owned(),
        (Way::Shell, Because::Guessed) => wide_or("shell? Ctrl-T asks the model", "shell? ^T"),
        (Way::Model, Because::Guessed) if is_past_first_word(&seen.line) => {
            wide_or("model? Ctrl-T runs it", "model? ^T")
        }
        (Way::Shell | Way::Model | Way::Meta, Because::Plain | Because::Guessed) | (Way::Meta, Because::Flipped) => {
            String::new()
        }
    }
}

/// The hint, if line and hint have room in one row. The editor would leave it out as well, but reckons with it all the same where
/// it makes room for lines above.
fn fitting(seen: &Seen, text: &PromptText, columns: usize) -> String {
    let hint = hint(seen, text, columns);
    let taken = text.left(columns).width() + INDICATOR.width() + seen.line.width() + GAP_COLUMNS;
    // In bytes, as the editor counts there.
    if seen.line.contains('\n') || taken + hint.len() >= columns {
        return String::new();
    }
    hint
}

impl Prompt for Face {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        let pieces = self.text().pieces(columns());
        let painted = pieces.iter().map(|piece| self.painted(&piece.text, piece.tone.style()));
        Cow::Owned(painted.collect())
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        match self.stage {
            Stage::Typing => Cow::Owned(fitting(&self.seen(), &self.text(), columns())),
            Stage::Sent => Cow::Borrowed(""),
        }
    }

    fn render_prompt_indicator(&self, mode: PromptEditMode) -> Cow<'_, str> {
        // What comes with it is on its way to the terminal by the time another thread is awake.
        (self.drawn)();
        let is_command = matches!(mode, PromptEditMode::Vi(PromptViMode::Normal | PromptViMode::Visual));
        Cow::Borrowed(match self.stage {
            // The colour still says where the line goes.
            Stage::Typing if is_command => COMMAND_MODE_INDICATOR,
            Stage::Typing | Stage::Sent => indicator(&self.seen()),
        })
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed(INDICATOR_MORE)
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        let found = match search.status {
            PromptHistorySearchStatus::Passing => "",
            PromptHistorySearchStatus::Failing => "not found ",
        };
        Cow::Owned(format!("({found}search: {}) ", sanitize::single_line(&search.term)))
    }

    fn get_prompt_color(&self) -> Color {
        Color::Cyan
    }

    fn get_indicator_color(&self) -> Color {
        colour_of(&self.seen().way)
    }

    fn get_prompt_multiline_color(&self) -> Color {
        Color::Cyan
    }

    fn get_prompt_right_color(&self) -> Color {
        Color::DarkGray
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::repl::prompt::Last;
    use crate::shell::known::Knowledge;
    use aish_shell::route::Corrections;
    use std::sync::mpsc;
    use std::time::Duration;

    fn text() -> PromptText {
        PromptText {
            directory: "~/src".into(),
            model: "desk".into(),
            ..PromptText::default()
        }
    }

    /// The row as it is while `line` is typed, and as it is left behind.
    fn rows(router: &Router, text: &PromptText, line: &str, columns: usize) -> String {
        router.shown(line);
        let seen = router.seen();
        let left = format!("{}{}{line}", text.left(columns), indicator(&seen));
        let hint = fitting(&seen, text, columns);
        let gap = columns - left.width() - hint.width();
        format!("|{left}{}{hint}|", " ".repeat(gap))
    }

    fn router() -> Router {
        let known = Knowledge::of_programs(["git", "kill", "make", "find", "test"]);
        Router::new(known, Corrections::default())
    }

    /// SPEC 8.1: the route is shown before Enter, in any width, and without colours.
    #[test]
    fn routes_are_shown() {
        let router = router();
        let row = |line: &str, columns: usize| rows(&router, &text(), line, columns);
        insta::assert_snapshot!(row("", 60), @"|~/src desk ❯                                                |");
        insta::assert_snapshot!(row("git status", 60), @"|~/src desk $ git status                                     |");
        insta::assert_snapshot!(row("why did that fail?", 60), @"|~/src desk ❯ why did that fail?                             |");
        insta::assert_snapshot!(row(":models", 60), @"|~/src desk : :models                                        |");
        insta::assert_snapshot!(row("gti", 60), @"|~/src desk ❯ gti                                        git?|");
        insta::assert_snapshot!(row("gti status", 60), @"|~/src desk ✗ gti status                          git status?|");
        insta::assert_snapshot!(row("kill chrome", 80), @"|~/src desk ❯ kill chrome                                   model? Ctrl-T runs it|");
        insta::assert_snapshot!(row("kill chrome", 40), @"|~/src ❯ kill chrome            model? ^T|");
        router.flip();
        insta::assert_snapshot!(row("kill chrome", 80), @"|~/src desk $ kill chrome                                         shell (flipped)|");
        insta::assert_snapshot!(row("kill chrome, the browser, and all it began", 60), @"|~/src desk $ kill chrome, the browser, and all it began     |");
    }

    /// SPEC 8.3: after a failure the empty line says which key asks why.
    #[test]
    fn failures_are_shown() {
        let router = router();
        let failed = PromptText {
            last: Some(Last {
                status: Some(2),
                duration: Duration::ZERO,
            }),
            ..text()
        };
        insta::assert_snapshot!(rows(&router, &failed, "", 80), @"|~/src desk ✗ 2 ❯                                       Alt-W: why did that fail?|");
        insta::assert_snapshot!(rows(&router, &failed, "", 40), @"|~/src ✗ 2 ❯                  Alt-W: why?|");
        insta::assert_snapshot!(rows(&router, &failed, "make", 80), @"|~/src desk ✗ 2 $ make                                                           |");
    }

    /// SPEC 8.8: what was meant by a mistyped line is shown escaped.
    #[test]
    fn hints_are_clean() {
        let seen = Seen {
            line: "gti \u{202e}x".into(),
            way: Way::Mistyped("git \u{202e}\u{1b}[2J".into()),
            because: Because::Guessed,
        };
        let hint = hint(&seen, &text(), 80);
        assert!(
            hint.starts_with("git ") && !hint.contains(['\u{202e}', '\u{1b}']),
            "{hint:?}"
        );
    }

    /// SPEC 11: whoever waits for the prompt is told when it is drawn, not when it is made.
    #[test]
    fn told_when_it_is_drawn() {
        let (told, is_told) = mpsc::channel();
        let face = Face {
            text: Arc::new(Mutex::new(text())),
            router: None,
            colour: Colour::Off,
            stage: Stage::Typing,
            drawn: Arc::new(move || told.send(()).unwrap()),
        };
        assert!(is_told.try_recv().is_err());
        assert_eq!(face.render_prompt_indicator(PromptEditMode::Default), INDICATOR);
        assert!(is_told.try_recv().is_ok());
    }

    /// SPEC 8.9: `NO_COLOR` leaves the words.
    #[test]
    fn without_colours() {
        let face = |colour: Colour| Face {
            text: Arc::new(Mutex::new(text())),
            router: None,
            colour,
            stage: Stage::Typing,
            drawn: Arc::new(|| {}),
        };
        assert_eq!(face(Colour::Off).render_prompt_left(), "~/src desk ");
        assert!(face(Colour::On).render_prompt_left().contains("\u{1b}["));
    }
}
