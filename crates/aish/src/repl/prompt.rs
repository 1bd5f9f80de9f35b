//! The prompt: where we are, whom we talk to, what became of the last command, and what is out of the ordinary.
//!
//! A [`PromptText`] says what there is to say; [`PromptText::left`] lays it out for a terminal of some width, leaving out first
//! what can be missed.

use crate::term::command::was_stopped;
use aish_core::policy::ApprovalMode;
use aish_core::sanitize;
use anstyle::{AnsiColor, Style};
use std::path::Path;
use std::time::Duration;
use unicode_width::UnicodeWidthStr as _;

/// The end of the prompt's first line.
pub const INDICATOR: &str = "❯ ";
/// Before each further line of a message.
pub const INDICATOR_MORE: &str = "· ";

/// A command that took at least this long has its time in the prompt.
const DURATION_MIN: Duration = Duration::from_secs(2);
/// What `$?` is after Ctrl-C and Ctrl-\: 128 and the number of the signal.
const BY_KEYS: [i32; 2] = [130, 131];
/// What stands for the directories above those that are named.
const ABOVE: &str = "…/";
/// The prompt may take one part in so many of the width, where there is something to leave out.
const SHARE: usize = 2;
/// Terminals of this width and less show no model.
const NARROW_COLUMNS: usize = 40;
const SECONDS_OF_MINUTE: u64 = 60;
const SECONDS_OF_HOUR: u64 = 3600;

/// Whether everything said so far is in the ledger (SPEC 2.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Saved {
    /// It is.
    #[default]
    Yes,
    /// The disk refuses; it is in memory only.
    No,
}

/// How the last command ended, while nothing else was said since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Last {
    /// Its status; `None` where a signal ended it.
    pub status: Option<i32>,
    /// How long it took.
    pub duration: Duration,
}

impl Last {
    /// True if it did not do what it was run for; one that was stopped still may.
    pub fn has_failed(self) -> bool {
        self.status != Some(0) && !was_stopped(self.status)
    }

    /// True if the person may wonder why: what their own keys ended is no riddle.
    pub fn is_puzzling(self) -> bool {
        self.has_failed() && !self.status.is_some_and(|status| BY_KEYS.contains(&status))
    }
}

/// What the prompt says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PromptText {
    /// The directory, `~` for the home.
    pub directory: String,
    /// The model asked.
    pub model: String,
    /// When calls are asked about; the usual mode is not mentioned.
    pub mode: ApprovalMode,
    /// Whether the ledger has everything.
    pub saved: Saved,
    /// What became of the last command.
    pub last: Option<Last>,
}

/// A piece of the prompt and whether it is a warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Safe text, a space at its end.
    pub text: String,
    /// How it is meant.
    pub tone: Tone,
}

/// How a piece is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// As what the prompt always says.
    Usual,
    /// Something failed.
    Failed,
}

impl Tone {
    /// How it is painted.
    pub fn style(self) -> Style {
        match self {
            Self::Usual => AnsiColor::Cyan.on_default(),
            Self::Failed => AnsiColor::Red.on_default(),
        }
    }
}

impl PromptText {
    /// What stands before the indicator, e.g. `~/src desk `, on a terminal of that many columns.
    pub fn left(&self, columns: usize) -> String {
        self.pieces(columns).into_iter().map(|piece| piece.text).collect()
    }

    /// The same in pieces.
    pub fn pieces(&self, columns: usize) -> Vec<Piece> {
        let usual = |text: String| Piece {
            text,
            tone: Tone::Usual,
        };
        let mut after = Vec::new();
        match self.saved {
            Saved::Yes => {}
            Saved::No => after.push(usual("[unsaved] ".to_owned())),
        }
        match self.mode {
            ApprovalMode::Ask => {}
            ApprovalMode::Auto | ApprovalMode::Full => after.push(usual(format!("[{}] ", self.mode.word()))),
        }
        if !self.model.is_empty() && columns > NARROW_COLUMNS {
            after.push(usual(format!("{} ", sanitize::single_line(&self.model))));
        }
        after.extend(self.last.and_then(ended));
        let taken: usize = after.iter().map(|piece| piece.text.width()).sum();
        let room = (columns / SHARE).saturating_sub(taken + INDICATOR.width() + 1);
        let directory = fitted(&sanitize::single_line(&self.directory), room);
        std::iter::once(usual(format!("{directory} "))).chain(after).collect()
    }
}

/// What is worth saying of how the last command ended.
fn ended(last: Last) -> Option<Piece> {
    let mut text = String::new();
    if last.has_failed() {
        text.push_str(&match last.status {
            Some(status) => format!("✗ {status} "),
            None => "✗ ".to_owned(),
        });
    }
    if last.duration >= DURATION_MIN {
        text.push_str(&spoken(last.duration));
        text.push(' ');
    }
    let tone = if last.has_failed() { Tone::Failed } else { Tone::Usual };
    (!text.is_empty()).then_some(Piece { text, tone })
}

/// A duration as people say it: `3s`, `2m05s`, `1h02m`.
fn spoken(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let minutes = seconds / SECONDS_OF_MINUTE;
    match seconds {
        0..SECONDS_OF_MINUTE => format!("{seconds}s"),
        SECONDS_OF_MINUTE..SECONDS_OF_HOUR => format!("{minutes}m{:02}s", seconds % SECONDS_OF_MINUTE),
        SECONDS_OF_HOUR.. => format!("{}h{:02}m", seconds / SECONDS_OF_HOUR, minutes % SECONDS_OF_MINUTE),
    }
}

/// A directory in that many columns: its last parts where it is longer, at least the very last, however long.
fn fitted(directory: &str, room: usize) -> String {
    if directory.width() <= room {
        return directory.to_owned();
    }
    let mut kept = "";
    for (at, _) in directory.char_indices().rev().filter(|(_, c)| *c == '/') {
        let parts = directory.get(at + 1..).unwrap_or_default();
        if !kept.is_empty() && ABOVE.width() + parts.width() > room {
            break;
        }
        kept = parts;
    }
    if kept.is_empty() {
        directory.to_owned()
    } else {
        format!("{ABOVE}{kept}")
    }
}

/// A directory as people write it: `~` for the home directory.
pub fn shortened(directory: &Path, home: Option<&Path>) -> String {
    match home.and_then(|home| directory.strip_prefix(home).ok()) {
        Some(below) if below.as_os_str().is_empty() => "~".to_owned(),
        Some(below) => format!("~/{}", below.display()),
        None => directory.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usual() -> PromptText {
        PromptText {
            directory: shortened(Path::new("/home/u/src"), Some(Path::new("/home/u"))),
            model: "desk".into(),
            mode: ApprovalMode::Ask,
            saved: Saved::Yes,
            last: None,
        }
    }

    /// SPEC 2.5: a session that is not saved says so in the prompt. SPEC 5.2: so does an unusual mode.
    #[test]
    fn prompts() {
        assert_eq!(usual().left(80), "~/src desk ");
        let unusual = PromptText {
            mode: ApprovalMode::Full,
            saved: Saved::No,
            directory: shortened(Path::new("/tmp/a\x1b[2J"), Some(Path::new("/home/u"))),
            model: String::new(),
            ..usual()
        };
        assert_eq!(unusual.left(80), "/tmp/a\\x1b[2J [unsaved] [full] ");
        assert_eq!(shortened(Path::new("/home/u"), Some(Path::new("/home/u"))), "~");
    }

    /// SPEC 8.2: the prompt says how the last command ended, if it failed, and how long it took, if that was long.
    #[test]
    fn ends_of_commands() {
        let check = |status: Option<i32>, seconds: u64, expect: &str| {
            let duration = Duration::from_secs(seconds);
            let prompt = PromptText {
                last: Some(Last { status, duration }),
                ..usual()
            };
            assert_eq!(prompt.left(80), expect, "{status:?} {seconds}");
        };
        check(Some(0), 1, "~/src desk ");
        check(Some(0), 2, "~/src desk 2s ");
        check(Some(130), 1, "~/src desk ✗ 130 ");
        // Stopped, by a key or by itself.
        check(Some(148), 1, "~/src desk ");
        check(Some(150), 2, "~/src desk 2s ");
        check(Some(1), 61, "~/src desk ✗ 1 1m01s ");
        check(None, 3723, "~/src desk ✗ 1h02m ");
    }

    /// SPEC 8.3: nobody is invited to ask why what they stopped has stopped.
    #[test]
    fn riddles() {
        let last = |status: Option<i32>| Last {
            status,
            duration: Duration::ZERO,
        };
        for status in [Some(1), Some(127), Some(139), None] {
            assert!(last(status).is_puzzling(), "{status:?}");
        }
        for status in [0, 130, 148] {
            assert!(!last(Some(status)).is_puzzling(), "{status}");
        }
    }

    /// SPEC 8.9: a narrow terminal keeps the end of the directory and every warning; the model goes first.
    #[test]
    fn narrow() {
        let prompt = PromptText {
            directory: "~/projects/aish/crates/aish/src".into(),
            last: Some(Last {
                status: Some(101),
                duration: Duration::ZERO,
            }),
            ..usual()
        };
        let at = |columns: usize| prompt.left(columns);
        insta::assert_snapshot!(at(200), @"~/projects/aish/crates/aish/src desk ✗ 101 ");
        insta::assert_snapshot!(at(80), @"…/aish/crates/aish/src desk ✗ 101 ");
        insta::assert_snapshot!(at(60), @"…/aish/src desk ✗ 101 ");
        insta::assert_snapshot!(at(40), @"…/aish/src ✗ 101 ");
        insta::assert_snapshot!(at(20), @"…/src ✗ 101 ");
        let long = PromptText {
            directory: format!("/{}", "x".repeat(50)),
            ..usual()
        };
        assert_eq!(long.left(40), format!("…/{} ", "x".repeat(50)));
        let root = PromptText {
            directory: "/".into(),
            ..usual()
        };
        assert_eq!(root.left(10), "/ ");
    }
}
