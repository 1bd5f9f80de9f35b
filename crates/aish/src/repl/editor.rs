//! The line editor: editing, several lines, history, completion (SPEC 8.9).

mod bang;
mod chords;
pub mod face;
mod hint;
mod keys;
mod last;
mod offers;
mod paint;
mod rank;
pub mod recall;
mod search;
mod steady;
mod unread;

use super::complete::{Completion, Whole};
use super::prompt::PromptText;
use super::reader::{Input, Source};
use super::router::Router;
use crate::config::resolved::EditMode;
use crate::term::{Background, Colour};
use aish_engine::Notices;
use bang::Bangs;
use chords::Chords;
use face::{Drawn, Face, Stage, Text};
use hint::Hints;
use last::LastWords;
use offers::OfferMenu;
use paint::Painter;
use recall::Recall;
use reedline::{EditCommand, ExternalPrinter, Reedline, ReedlineMenu, Signal};
use search::{SearchMenu, Searching};
use std::io::{self, Write as _};
use std::sync::{Arc, PoisonError};
use steady::Shown;

/// Begins a new line with nothing below.
const BELOW_THE_LINE: &[u8] = b"\x1b[J\r\n";

/// What the editor is made with.
pub struct EditorSetup {
    /// What was typed before.
    pub recall: Recall,
    /// Which keys edit.
    pub edit_mode: EditMode,
    /// Whether what was typed before is hinted at.
    pub hints: Hinting,
    /// What completes.
    pub completion: Completion,
    /// Whether styles are written.
    pub colour: Colour,
    /// Which of them can be read.
    pub background: Background,
    /// Where to say what does not work.
    pub notices: Notices,
    /// Lines that are shown above the one being edited.
    pub above: ExternalPrinter<String>,
    /// Where the line being typed would go; `None` where nothing but the model is to be had.
    pub router: Option<Router>,
    /// Told that the prompt is there.
    pub drawn: Drawn,
}

/// Whether the rest of a line is hinted at as it was typed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hinting {
    /// It is.
    On,
    /// The person wants none.
    Off,
}

/// The line editor.
pub struct Editor {
    editor: Reedline,
    notices: Notices,
    router: Option<Router>,
    /// The mode of vi.
    shown: Shown,
    /// What the prompt says.
    text: Text,
    /// The prompt while a line is typed.
    face: Face,
}

impl Editor {
    /// Makes it.
    pub fn new(setup: EditorSetup) -> Self {
        let text = Text::default();
        let face = |stage: Stage| Face {
            text: Arc::clone(&text),
            router: setup.router.clone(),
            colour: setup.colour,
            stage,
            drawn: Arc::clone(&setup.drawn),
        };
        let (typing, sent) = (face(Stage::Typing), face(Stage::Sent));
        let shown = Shown::default();
        let menu = OfferMenu::new(keys::MENU, setup.router.clone());
        let editor = Reedline::create()
            .with_edit_mode(mode(&setup, shown.clone()))
            .with_completer(Box::new(setup.completion))
            .with_quick_completions(true)
            .with_partial_completions(true)
            .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
            .with_menu(ReedlineMenu::HistoryMenu(Box::new(SearchMenu::new(
                setup.recall.clone(),
            ))))
            .with_history(Box::new(setup.recall.clone()))
            .with_history_exclusion_prefix(Some(recall::NOT_KEPT_PREFIX.to_owned()))
            .with_validator(Box::new(Whole {
                router: setup.router.clone(),
            }))
            .with_highlighter(Box::new(Bangs::new(
                Painter::new(setup.router.clone(), setup.colour, setup.background),
                setup.router.clone(),
                setup.recall.clone(),
            )))
            .with_transient_prompt(Box::new(sent))
            .with_ansi_colors(setup.colour == Colour::On)
            .with_external_printer(setup.above)
            // What is pasted becomes text of the line; only Enter sends it.
            .use_bracketed_paste(true);
        let mut editor = shown.marks().into_iter().fold(editor, Reedline::with_menu);
        let repaint = editor.repaint_signal();
        setup.recall.show_with(move || repaint.request_repaint());
        let editor = match setup.hints {
            Hinting::On => editor.with_hinter(Box::new(Hints::new(setup.recall))),
            Hinting::Off => editor,
        };
        Self {
            editor,
            notices: setup.notices,
            router: setup.router,
            shown,
            text,
            face: typing,
        }
    }
}

impl Source for Editor {
    fn read(&mut self, prompt: &PromptText, prefill: &str) -> io::Result<Input> {
        prompt.clone_into(&mut self.text.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(router) = &self.router {
            router.begin();
        }
        self.shown.begin();
        if !prefill.is_empty() {
            let text = EditCommand::InsertString(prefill.to_owned());
            self.editor.run_edit_commands(&[text]);
        }
        let signal = self.editor.read_line(&self.face).map_err(io::Error::other)?;
        match signal {
            Signal::Success(line) => {
                if let Some(error) = self.editor.take_history_save_error() {
                    self.notices.status(format!("the line is not kept: {error}"));
                }
                Ok(Input::Line(line))
            }
            Signal::CtrlC => Ok(Input::Interrupted),
            Signal::CtrlD => Ok(Input::End),
            Signal::HostCommand(command) if command == keys::WHY => {
                // The editor stays in its line, and goes on with it afterwards.
                let mut out = io::stdout();
                out.write_all(BELOW_THE_LINE)?;
                out.flush()?;
                Ok(Input::Why)
            }
            Signal::HostCommand(command) if command == keys::EDIT => {
                let line = self.editor.current_buffer_contents().to_owned();
                // It comes back as what the next line begins with.
                self.editor.run_edit_commands(&[EditCommand::Clear]);
                Ok(Input::Edit(line))
            }
            // Nothing here asks for these, and the enum is open.
            Signal::HostCommand(_) | Signal::ExternalBreak(_) | _ => Ok(Input::Interrupted),
        }
    }

    fn take_unread(&mut self) -> Vec<u8> {
        unread::take()
    }
}

/// The keys of a mode, with what is ours in every mode around them.
fn mode(setup: &EditorSetup, shown: Shown) -> Box<dyn reedline::EditMode> {
    let router = setup.router.clone();
    match setup.edit_mode {
        EditMode::Emacs => {
            let chords = Chords::new(keys::emacs(router));
            Box::new(Searching::new(LastWords::new(chords, setup.recall.clone())))
        }
        EditMode::Vi => Box::new(Searching::new(Chords::new(keys::vi(router, shown)))),
    }
}
