//! A line that was sent goes where it belongs (SPEC 8.1), and what the prompt says of how things stand.
//!
//! A line with a mark goes where the mark says. Of any other the router decides; a command that is mistyped runs nowhere and is
//! offered as it was meant. What the person flipped is kept for the next time.

use super::editor::recall::NOT_KEPT_PREFIX;
use super::prompt::{self, Last, PromptText, Saved};
use super::route::{self, Route};
use super::router::{Decision, Router, kept};
use super::turns::TurnEnd;
use super::{Kind, Next, Repl, ReplError};
use crate::shell::{UserShell, known};
use aish_core::event::Body;
use aish_core::sanitize;
use aish_core::turn::StopReason;
use aish_shell::route::{Route as Guessed, Sent};
use std::borrow::Cow;
use std::time::Duration;

/// How long a line that is no command waits to hear whether the shell knows better: its start-up files may take some time.
const TOLD_MAX: Duration = Duration::from_millis(1_500);

/// Why a question is not sent: what was typed may be the answer to that.
const ASKED_UNSEEN: &str = "not sent: your shell's start-up files wait for something that is not to be seen, a password perhaps; any command \
                            (`!:`) gives them the terminal, and `?` before a question sends it all the same";

/// What a shell is left by.
const LEAVING: [&str; 3] = ["exit", "logout", "bye"];

impl Repl {
    /// Sends a line where it belongs.
    pub(super) async fn dispatch(&mut self, line: &str) -> Result<Next, ReplError> {
        self.front.forget_interrupts();
        match route::route(line) {
            Route::Nothing => Ok(Next::Prompt),
            Route::Meta(Ok(command)) => self.meta(command).await,
            Route::Meta(Err(mistake)) => {
                self.front.say(&mistake.to_string()).await;
                Ok(Next::Prompt)
            }
            Route::Shell(command) => self.send_to_shell(&in_no_history(line, &command)).await,
            Route::Model(text) => self.send_to_model(&in_no_history(line, &text)).await,
            Route::Why => self.dispatch_why().await,
            Route::Open(text) => self.dispatch_open(line, &text).await,
        }
    }

    /// Asks the model why the last command failed.
    pub(super) async fn dispatch_why(&mut self) -> Result<Next, ReplError> {
        self.front.forget_interrupts();
        let end = self.ask_why().await?;
        Ok(end.map_or(Next::Prompt, |end| self.turn_ended(end)))
    }

    /// A line without a mark, as it was sent and without the space around it.
    async fn dispatch_open(&mut self, line: &str, text: &str) -> Result<Next, ReplError> {
        let Some(decision) = self.decide(text).await else {
            return self.send_to_model(text).await;
        };
        if let Some(sent) = decision.learnt {
            self.keep_route(line, sent).await;
        }
        match decision.route {
            Guessed::Nothing => Ok(Next::Prompt),
            Guessed::Command => self.send_to_shell(&in_no_history(line, text)).await,
            Guessed::Question if self.shell.as_ref().is_some_and(UserShell::asks_unseen) => {
                self.front.say(ASKED_UNSEEN).await;
                Ok(Next::Prompt)
            }
            Guessed::Question => self.send_to_model(&in_no_history(line, text)).await,
            Guessed::Mistyped { instead } => {
                let typed = sanitize::single_line(first_difference(text, &instead));
                let meant = sanitize::single_line(&instead);
                self.front
                    .say(&format!(
                        "{typed}: not a command; did you mean \"{meant}\"? (Enter runs it)"
                    ))
                    .await;
                self.prefill = instead;
                Ok(Next::Prompt)
            }
        }
    }

    /// Where the line goes; `None` where there is nothing but the model.
    async fn decide(&mut self, text: &str) -> Option<Decision> {
        let router = self.router.clone()?;
        self.be_told(text).await;
        Some(router.decide(text))
    }

    /// Hears what there is to know before a line without a mark can be said to be no command.
    pub(super) async fn be_told(&mut self, text: &str) {
        let is_command = |router: &Router| router.guessed(text) == Guessed::Command;
        if self.router.as_ref().is_some_and(|router| !is_command(router)) {
            self.hear_shell().await;
        }
    }

    /// Hears what the shell knows, where it has not said yet, and which programs there are now. It answers at once, but while it
    /// reads its start-up files.
    pub(super) async fn hear_shell(&mut self) {
        let Some(shell) = &mut self.shell else { return };
        let known = shell.known();
        if !known.is_awaited() {
            known.look_again();
            // What a slow disk does not say by then is not known.
            let _ = tokio::time::timeout(TOLD_MAX, known.searched()).await;
        } else if tokio::time::timeout(TOLD_MAX, known::told(shell)).await.is_err() {
            known.gave_up();
        }
    }

    /// Keeps where the person sent a line. One that has a secret in it, or begins with a space so that nobody keeps it, is not.
    async fn keep_route(&mut self, line: &str, sent: Sent) {
        if line.starts_with(' ') || *self.engine.redactor.redact(line) != *line {
            return;
        }
        let path = kept::path(&self.options.data_dir);
        let owned = line.to_owned();
        let written = tokio::task::spawn_blocking(move || kept::add(&path, &owned, sent)).await;
        if let Ok(Err(error)) = written {
            self.front
                .say(&format!(
                    "where that line goes is remembered for this session only: {error}"
                ))
                .await;
        }
    }

    async fn send_to_shell(&mut self, command: &str) -> Result<Next, ReplError> {
        self.run_shell(command).await?;
        // A shell with jobs leaves when it is told so twice running: nothing of ours may come in between.
        let word = command.split_whitespace().next().unwrap_or_default();
        if let Some(shell) = &self.shell
            && !LEAVING.contains(&word)
        {
            shell.known().outdate();
        }
        Ok(Next::Prompt)
    }

    async fn send_to_model(&mut self, text: &str) -> Result<Next, ReplError> {
        let end = self.ask_model(text).await?;
        Ok(self.turn_ended(end))
    }

    /// What is to be kept of a turn's end, and what comes next.
    pub(super) fn turn_ended(&mut self, end: TurnEnd) -> Next {
        self.last = Some(end);
        self.note_calls();
        self.next_after(end)
    }

    /// A person sees how a turn ended and says something else; piped lines were written for turns that end well.
    fn next_after(&self, end: TurnEnd) -> Next {
        match (self.kind, end) {
            // What comes next in the file could only be refused, or was not meant to run any more.
            (Kind::Piped, TurnEnd::Over(StopReason::Cancelled) | TurnEnd::Waiting) => Next::Quit,
            (Kind::Piped, TurnEnd::Over(_) | TurnEnd::Failed) | (Kind::Edited | Kind::Dumb, _) => Next::Prompt,
        }
    }

    /// How things stand, for the prompt.
    pub(super) fn prompt(&self) -> PromptText {
        let settings = self.engine.settings();
        PromptText {
            directory: prompt::shortened(&settings.context.directory, self.options.environment.path("HOME")),
            model: settings.model,
            mode: settings.mode,
            saved: if self.driver.is_unsaved() {
                Saved::No
            } else {
                Saved::Yes
            },
            last: self.last_command(),
        }
    }

    /// The command that ran last here, if nothing happened since.
    fn last_command(&self) -> Option<Last> {
        let last = self.driver.session().events().last()?;
        let Body::Command(command) = &last.body else {
            return None;
        };
        (last.seq > self.began_after).then(|| Last {
            status: command.status,
            duration: Duration::from_millis(command.duration_ms),
        })
    }
}

/// What is sent of a line. One that begins with a space is in nobody's history: it keeps its space, by which the shell's own
/// knows it, and ours.
fn in_no_history<'a>(line: &str, sent: &'a str) -> Cow<'a, str> {
    if line.starts_with(NOT_KEPT_PREFIX) {
        Cow::Owned(format!("{NOT_KEPT_PREFIX}{sent}"))
    } else {
        Cow::Borrowed(sent)
    }
}

/// The first word of `typed` that is another one in `meant`; what was typed before is right.
fn first_difference<'a>(typed: &'a str, meant: &str) -> &'a str {
    let mut right = meant.split_whitespace();
    typed
        .split_whitespace()
        .find(|word| right.next() != Some(word))
        .unwrap_or(typed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 8.1: a mistyped command is said by the word that is wrong.
    #[test]
    fn wrong_words() {
        assert_eq!(first_difference("gti status", "git status"), "gti");
        assert_eq!(first_difference("git stauts", "git status"), "stauts");
        assert_eq!(first_difference("cd..", "cd .."), "cd..");
        assert_eq!(first_difference("ls | gerp x", "ls | grep x"), "gerp");
        assert_eq!(first_difference("same", "same"), "same");
    }
}
