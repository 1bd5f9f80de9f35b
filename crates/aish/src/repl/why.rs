//! Asking why a command failed (SPEC 8.3): one key, one question. Line, status and output of the command go along with any
//! question; they are not said twice.

use super::turns::TurnEnd;
use super::{Repl, ReplError};
use crate::term::command::was_stopped;
use aish_core::event::{Body, Command, Event};
use aish_core::projection;
use aish_core::sanitize;

/// The question where the command goes along with it, as the last one.
const WHY: &str = "Why did that fail?";
/// Before what the person said, as it is typed at the prompt.
const SAID_MARK: &str = "❯";
/// Characters of a command's line that name it.
const NAMED_CHARS_MAX: usize = 80;

impl Repl {
    /// Asks the model why the last command failed; `None` where none did, which is said.
    pub(super) async fn ask_why(&mut self) -> Result<Option<TurnEnd>, ReplError> {
        match question(self.driver.session().events()) {
            Ok(question) => {
                self.front
                    .draw(|renderer, out| renderer.said(SAID_MARK, &question, out))
                    .await;
                // Nothing in it is a mention: a command's line is no message of the person's.
                self.say_to_model(&question, Vec::new()).await.map(Some)
            }
            Err(remark) => {
                self.front.say(remark).await;
                Ok(None)
            }
        }
    }
}

/// What to ask of the last command; the error says why there is nothing to ask.
fn question(events: &[Event]) -> Result<String, &'static str> {
    let context = projection::context(events);
    let last = context.iter().enumerate().rev().find_map(|(at, event)| {
        if let Body::Command(command) = &event.body {
            Some((at, command))
        } else {
            None
        }
    });
    let Some((at, command)) = last else {
        return Err("no command has run yet whose failure could be explained");
    };
    if command.status == Some(0) || was_stopped(command.status) {
        return Err("the last command did not fail");
    }
    let after = context.get(at..).unwrap_or_default();
    let was_told = after.iter().any(|event| matches!(event.body, Body::User(_)));
    Ok(if was_told { why_named(command) } else { WHY.to_owned() })
}

/// The question about a command that an earlier message told of.
fn why_named(command: &Command) -> String {
    let line = command.line.lines().next().unwrap_or_default();
    let mut named: String = line.chars().take(NAMED_CHARS_MAX).collect();
    if named.len() < command.line.len() {
        named.push('…');
    }
    let how = match command.status {
        Some(status) => format!(" with exit {status}"),
        None => String::new(),
    };
    format!("Why did the command {} fail{how}?", sanitize::single_line(&named))
}

#[cfg(test)]
mod tests {
    use super::*;
    use aish_core::event::Draft;
    use aish_core::id::SessionId;
    use aish_core::session::Session;

    fn command(line: &str, status: Option<i32>) -> Draft {
        let command = Command {
            line: line.to_owned(),
            status,
            ..Command::default()
        };
        Draft::new(0, line, Body::Command(command))
    }

    fn asked(drafts: Vec<Draft>) -> Result<String, &'static str> {
        let id = SessionId::new("s");
        let events = (1..).zip(drafts).map(|(seq, draft)| draft.place(&id, seq, 0));
        question(Session::load(id.clone(), events.collect()).events())
    }

    /// SPEC 8.3: a command that failed is asked about; it is named only where the model was told of it before.
    #[test]
    fn what_is_asked() {
        assert_eq!(asked(vec![command("make", Some(2))]).as_deref(), Ok(WHY));
        assert_eq!(asked(vec![command("make", None)]).as_deref(), Ok(WHY));
        assert_eq!(
            asked(vec![command("make \u{1b}", Some(2)), Draft::user(0, "hm?")]).as_deref(),
            Ok("Why did the command make \\x1b fail with exit 2?")
        );
        assert_eq!(
            asked(vec![command("make", Some(2)), command("ls", Some(0))]),
            Err("the last command did not fail")
        );
        let stopped = asked(vec![command("vim", Some(148))]);
        assert_eq!(stopped, Err("the last command did not fail"));
        let none = Err("no command has run yet whose failure could be explained");
        assert_eq!(asked(Vec::new()), none);
        let clear = Draft::new(0, "context cleared", Body::Clear);
        assert_eq!(asked(vec![command("make", Some(2)), clear]), none);
    }
}
