//! The line in the person's own editor (Ctrl-X Ctrl-E): `$VISUAL`, else `$EDITOR`, as their shell has it.
//!
//! It runs in that shell, like anything that is typed: with its variables, its directory, its jobs, and the terminal lent to it.
//! What was written becomes the line again; nothing runs before Enter.

use super::reader::Input;
use super::route::{Mark, mark};
use super::{Repl, ReplError};
use crate::shell::Typed;
use aish_core::sanitize;
use aish_shell::route::Route;
use std::io::{self, Read as _, Write as _};
use tempfile::NamedTempFile;

/// What every shell understands, and keeps out of its own history. The file's name has no character that means anything.
const OPEN: &str = " sh -c 'exec ${VISUAL:-${EDITOR:-vi}} \"$1\"' sh";
/// Bytes of a line that are read back.
const LINE_BYTES_MAX: u64 = 1 << 20;

impl Repl {
    /// The next line, in whichever editor it was written. A signal to leave ends the wait.
    pub(super) async fn read(&mut self) -> Result<Input, ReplError> {
        loop {
            match self.read_once().await? {
                Input::Edit(line) => self.edit_line(line).await,
                input @ (Input::Line(_) | Input::Interrupted | Input::Why | Input::End) => return Ok(input),
            }
        }
    }

    /// Lets the person go on with a line in their editor, and then at the prompt.
    async fn edit_line(&mut self, line: String) {
        // Whatever happens, the line is not lost.
        self.prefill.clone_from(&line);
        let file = match self.written(&line) {
            Ok(file) => file,
            Err(error) => return self.not_edited(&format!("no file to edit the line in: {error}")).await,
        };
        let open = format!("{OPEN} '{}'", file.path().display());
        match self.type_line(&open).await {
            // As `:cq` of vi says that the line is to stay as it was; what else went wrong was said on the terminal.
            Ok(typed) if !has_succeeded(typed.as_ref().map(|(typed, _)| typed)) => return,
            Ok(_) => {}
            Err(error) => return self.not_edited(&error.to_string()).await,
        }
        match read_back(&file) {
            Ok(edited) => self.prefill = edited,
            Err(error) => self.not_edited(&format!("the line cannot be read back: {error}")).await,
        }
    }

    async fn not_edited(&mut self, why: &str) {
        self.front.say(&sanitize::single_line(why)).await;
    }

    /// The line in a file that nobody else can read; its name says what it is to an editor that knows languages.
    fn written(&self, line: &str) -> io::Result<NamedTempFile> {
        let is_command = match mark(line) {
            Some((Mark::Shell, _)) => true,
            Some((Mark::Model | Mark::Meta, _)) => false,
            None => {
                let guessed = self.router.as_ref().map(|router| router.guessed(line));
                matches!(guessed, Some(Route::Command | Route::Mistyped { .. }))
            }
        };
        let suffix = if is_command { ".sh" } else { ".md" };
        let mut file = tempfile::Builder::new().prefix("aish-").suffix(suffix).tempfile()?;
        file.write_all(line.as_bytes())?;
        file.write_all(b"\n")?;
        file.flush()?;
        Ok(file)
    }
}

fn has_succeeded(typed: Option<&Typed>) -> bool {
    match typed {
        Some(Typed::Ran(command)) => command.status == Some(0),
        Some(Typed::Died(_) | Typed::Left(_) | Typed::NotRun(_) | Typed::PutBack | Typed::Replaced) | None => false,
    }
}

/// What is in the file now, also if the editor put another in its place; without what acts on a terminal.
fn read_back(file: &NamedTempFile) -> io::Result<String> {
    let mut text = Vec::new();
    std::fs::File::open(file.path())?
        .take(LINE_BYTES_MAX)
        .read_to_end(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    let kept = text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t'));
    Ok(kept.collect::<String>().trim_end().to_owned())
}
