//! `:copy`: code of the last reply, or all of it, onto the clipboard of the terminal.

use super::meta::Copied;
use super::{Kind, Repl};
use crate::term::clean::Clean;
use crate::term::{Stream, copy};
use aish_core::event::Body;
use aish_core::redact::Redactor;
use aish_core::sanitize;
use aish_core::session::Session;

impl Repl {
    /// Copies it, and says how much that was: whether the terminal allows it nobody is told.
    pub(super) async fn copy(&mut self, part: Copied) {
        match self.kind {
            Kind::Edited => {}
            Kind::Dumb | Kind::Piped => return self.front.say("there is no terminal with a clipboard here").await,
        }
        let text = part_of_reply(self.driver.session(), part, &self.engine.redactor);
        let sequence = text.and_then(|text| {
            let sequence = copy::sequence(&text, &self.options.environment);
            sequence
                .map(|sequence| (said(&text), sequence))
                .map_err(|error| error.to_string())
        });
        match sequence {
            Ok((said, sequence)) => {
                self.front.draw(|_, out| out.push(Stream::Frame, &sequence)).await;
                self.front.say(&said).await;
            }
            Err(problem) => self.front.say(&problem).await,
        }
    }
}

/// That part of what the model said in the last turn in which it said something. Without secrets and control characters, since what
/// is pasted into a terminal acts there.
fn part_of_reply(session: &Session, part: Copied, redactor: &Redactor) -> Result<String, String> {
    let texts = session.events().iter().rev().filter_map(|event| {
        let is_reply = matches!(event.body, Body::Assistant(_)) && !event.content.trim().is_empty();
        is_reply.then_some((event.turn, event.content.as_str()))
    });
    let mut texts = texts.peekable();
    let last_turn = texts.peek().map(|(turn, _)| *turn).ok_or("no reply yet")?;
    let mut texts: Vec<&str> = texts
        .take_while(|(turn, _)| *turn == last_turn)
        .map(|(_, text)| text.trim())
        .collect();
    texts.reverse();
    let reply = Clean::for_pipe(redactor.clone()).whole(&texts.join("\n\n"));
    let mut blocks = aish_markdown::code_blocks(&reply);
    let count = blocks.len();
    let index = match part {
        Copied::All => return Ok(reply + "\n"),
        Copied::LastBlock => count.checked_sub(1),
        Copied::Block(number) => Some(number.get() - 1),
    };
    match (index.filter(|index| *index < count), count) {
        (Some(index), _) => Ok(blocks.swap_remove(index)),
        (None, 0) => Err("there is no code in the last reply; `:copy all` copies the whole of it".to_owned()),
        (None, 1) => Err("there is one block of code in the last reply".to_owned()),
        (None, count) => Err(format!("there are {count} blocks of code in the last reply")),
    }
}

fn said(text: &str) -> String {
    let lines = match text.lines().count() {
        1 => "1 line".to_owned(),
        count => format!("{count} lines"),
    };
    // They are shown escaped, and copied as they are: an emoji needs them, and so do some scripts.
    let unseen = match text
        .chars()
        .any(|c| c != '\n' && c != '\t' && c != '\r' && sanitize::is_hostile(c))
    {
        true => "; characters that cannot be seen are among them",
        false => "",
    };
    format!("copied {lines} (if the terminal allows it){unseen}")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::repl::replies::reply;
    use aish_core::id::SessionId;
    use std::num::NonZeroUsize;

    /// A session whose replies are these, each with its turn.
    fn session(replies: &[(u64, &str)]) -> Session {
        let id = SessionId::from_parts(0, 7);
        let place =
            |(seq, (turn, text)): (usize, &(u64, &str))| reply(*turn, seq, text, Vec::new()).place(&id, seq as u64, 0);
        let events = (1..).zip(replies).map(place).collect();
        Session::load(id, events)
    }

    fn check(replies: &[(u64, &str)], part: Copied, expect: Result<&str, &str>) {
        let redactor = Redactor::new([("DESK_KEY".to_owned(), "hunter2hunter2".to_owned())]);
        let part = part_of_reply(&session(replies), part, &redactor);
        assert_eq!(part, expect.map(str::to_owned).map_err(str::to_owned));
    }

    const TWO: &str = "First\n```sh\nls\n```\nthen\n```sh\nmake\nmake install\n```\ndone";

    /// The last block of what was said last, whatever was called in between; or the one named, or all.
    #[test]
    fn parts() {
        let nth = |number| Copied::Block(NonZeroUsize::new(number).unwrap());
        check(
            &[(1, "```\nold\n```"), (2, TWO)],
            Copied::LastBlock,
            Ok("make\nmake install\n"),
        );
        check(
            &[(2, TWO), (2, "It works.")],
            Copied::LastBlock,
            Ok("make\nmake install\n"),
        );
        check(&[(2, TWO)], nth(1), Ok("ls\n"));
        check(&[(2, TWO)], nth(3), Err("there are 2 blocks of code in the last reply"));
        check(&[(2, "one"), (2, " "), (2, "two\n")], Copied::All, Ok("one\n\ntwo\n"));
        check(&[(1, TWO), (2, "no code")], Copied::LastBlock, {
            Err("there is no code in the last reply; `:copy all` copies the whole of it")
        });
        check(&[], Copied::All, Err("no reply yet"));
    }

    /// SPEC 8.8, 10.5: what is copied neither acts where it is pasted nor holds a secret; what cannot be seen is said.
    #[test]
    fn safe_to_paste() {
        check(&[(1, "```\necho \x1b[201~hunter2hunter2\n```")], Copied::LastBlock, {
            Ok("echo \\x1b[201~[redacted:DESK_KEY]\n")
        });
        assert_eq!(said("a\nb\n"), "copied 2 lines (if the terminal allows it)");
        assert!(
            said("a\u{202e}\n")
                .ends_with("1 line (if the terminal allows it); characters that cannot be seen are among them")
        );
    }
}
