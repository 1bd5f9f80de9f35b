//! The line editor: editing, several lines, history, completion (SPEC 8.9).

mod keys;

use super::complete::{Whole, Words};
use super::prompt::{INDICATOR, INDICATOR_MORE, PromptText};
use super::reader::{Input, Source};
use super::router::Router;
use crate::term::Colour;
use aish_engine::Notices;
use reedline::{
    ColumnarMenu, EditCommand, ExternalPrinter, FileBackedHistory, MenuBuilder, Prompt, PromptEditMode, PromptHistorySearch,
    PromptHistorySearchStatus, Reedline, ReedlineMenu, Signal, SimpleMatchHighlighter,
};
use std::borrow::Cow;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

/// Lines of history that are kept.
const HISTORY_LINES_MAX: usize = 10_000;
/// The name of the history in the data directory.
const HISTORY_NAME: &str = "history";
/// Only its user may read it (SPEC 10.5: it may hold anything).
const HISTORY_MODE: u32 = 0o600;
/// Lines that begin with this are not kept.
const NOT_KEPT_PREFIX: &str = " ";
/// Columns of the completion menu.
const MENU_COLUMNS: u16 = 2;

/// What the editor is made with.
pub struct EditorSetup {
    /// Where the history is kept.
    pub data_dir: PathBuf,
    /// What completes.
    pub words: Words,
    /// Whether styles are written.
    pub colour: Colour,
    /// Where to say what does not work.
    pub notices: Notices,
    /// Lines that are shown above the one being edited.
    pub above: ExternalPrinter<String>,
    /// Where the line being typed would go; `None` where nothing but the model is to be had.
    pub router: Option<Router>,
}

/// The line editor.
pub struct Editor {
    editor: Reedline,
}

impl Editor {
    /// Makes it. A history that cannot be kept is said and lived without.
    pub fn new(setup: EditorSetup) -> Self {
        let menu = ColumnarMenu::default().with_name(keys::MENU).with_columns(MENU_COLUMNS);
        let editor = Reedline::create()
            .with_edit_mode(Box::new(keys::emacs()))
            .with_completer(Box::new(setup.words))
            .with_quick_completions(true)
            .with_partial_completions(true)
            .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
            .with_validator(Box::new(Whole))
            // The default one colours words of a list we do not have.
            .with_highlighter(Box::new(SimpleMatchHighlighter::default()))
            .with_ansi_colors(setup.colour == Colour::On)
            .with_external_printer(setup.above)
            // What is pasted becomes text of the line; only Enter sends it.
            .use_bracketed_paste(true);
        let editor = match history(&setup.data_dir.join(HISTORY_NAME)) {
            Ok(history) => editor
                .with_history(Box::new(history))
                .with_history_exclusion_prefix(Some(NOT_KEPT_PREFIX.to_owned())),
            Err(error) => {
                setup.notices.status(format!("the history is not kept: {error}"));
                editor
            }
        };
        Self { editor }
    }
}

impl Source for Editor {
    fn read(&mut self, prompt: &PromptText, prefill: &str) -> io::Result<Input> {
        if !prefill.is_empty() {
            let text = EditCommand::InsertString(prefill.to_owned());
            self.editor.run_edit_commands(&[text]);
        }
        let signal = self.editor.read_line(prompt).map_err(io::Error::other)?;
        match signal {
            Signal::Success(line) => {
                // Written line by line: a history written at the end is lost with the process.
                let _ = self.editor.sync_history();
                Ok(Input::Line(line))
            }
            Signal::CtrlC => Ok(Input::Interrupted),
            Signal::CtrlD => Ok(Input::End),
            // Nothing here asks for these, and the enum is open.
            Signal::HostCommand(_) | Signal::ExternalBreak(_) | _ => Ok(Input::Interrupted),
        }
    }
}

/// Opens the history. The editor would create it readable by everybody, so it is created here.
fn history(path: &std::path::Path) -> Result<FileBackedHistory, Box<dyn std::error::Error>> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(HISTORY_MODE)
        .open(path)?;
    Ok(FileBackedHistory::with_file(HISTORY_LINES_MAX, path.to_owned())?)
}

impl Prompt for PromptText {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Owned(self.left())
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _mode: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed(INDICATOR)
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed(INDICATOR_MORE)
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        let found = match search.status {
            PromptHistorySearchStatus::Passing => "",
            PromptHistorySearchStatus::Failing => "not found ",
        };
        Cow::Owned(format!(
            "({found}search: {}) ",
            aish_core::sanitize::single_line(&search.term)
        ))
    }

    fn get_prompt_color(&self) -> reedline::Color {
        reedline::Color::Cyan
    }

    fn get_indicator_color(&self) -> reedline::Color {
        reedline::Color::Cyan
    }

    fn get_prompt_multiline_color(&self) -> reedline::Color {
        reedline::Color::Cyan
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use reedline::{History as _, HistoryItem};
    use std::os::unix::fs::PermissionsExt as _;

    /// SPEC 8.9, 10.5: the history is kept, and readable by its user only.
    #[test]
    fn the_history_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data").join("history");
        let mut first = history(&path).unwrap();
        first.save(HistoryItem::from_command_line("one\ntwo")).unwrap();
        first.sync().unwrap();
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            HISTORY_MODE
        );
        let again = history(&path).unwrap();
        assert_eq!(again.count_all().unwrap(), 1);
    }
}
