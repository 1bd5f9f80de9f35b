//! What a shell is doing, as its marks tell, and what that means for the bytes between them. Pure: no clock, no descriptor.

use crate::marks::{Mark, Piece};

/// What leaves the line editor of a shell behind on its terminal when a line was accepted: what follows is the command's.
const EDITED: &[u8] = b"\x1b[?2004l";
/// Bytes kept of what the shell echoes while a command is typed.
const ECHO_BYTES_MAX: usize = 64 * 1024;

/// What a shell is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It reads its start-up files.
    Starting,
    /// Its prompt is there.
    Idle,
    /// A command was typed, and has not begun; with what the shell echoed.
    Typed(Vec<u8>),
    /// A command runs.
    Running,
    /// It is over; the prompt is not there yet.
    Over(i32),
    /// It is over, and the prompt is there; what was typed ahead is being taken out of it.
    Taking(i32),
    /// What was typed is not run, and is being withdrawn.
    Withdrawn(NotRun),
    /// Something runs that we did not type: keys that were pressed before the last command was over.
    Ahead,
    /// A hidden line runs.
    Asked,
}

/// Why what was typed was not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotRun {
    /// It is not whole: a quote is not closed.
    Incomplete,
    /// It is no command of this shell's language.
    Malformed,
    /// The person would not wait for the shell to be ready.
    GivenUp,
    /// The shell does not react.
    NoAnswer,
}

/// What to do because of a piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    None,
    /// Show it: it is the command's.
    Show(Vec<u8>),
    /// It came while no command ran: a job's, or the shell's own.
    Beside(Vec<u8>),
    /// The start-up files are read.
    Started,
    /// Withdraw what was typed: it is not whole.
    Withdraw,
    /// It is withdrawn, and the shell waits.
    NotRun(NotRun),
    /// It works elsewhere now.
    Moved(Vec<u8>),
    /// The command is over; what was typed ahead can be taken ([`Phase::taking`]), or else it is finished.
    Prompted(i32),
    /// A line that was typed ahead.
    Ahead(Vec<u8>),
    /// What else was typed ahead, and the command is finished.
    Taken(i32, Vec<u8>),
    /// The hidden line was run.
    Answered,
}

impl Phase {
    /// Takes the next piece.
    pub fn step(&mut self, piece: Piece) -> Step {
        match piece {
            Piece::Output(bytes) => self.output(bytes),
            Piece::Mark(Mark::Directory(path)) => Step::Moved(path),
            Piece::Mark(Mark::Ready) => self.ready(),
            Piece::Mark(Mark::Begun) => self.begun(),
            Piece::Mark(Mark::More) => self.not_run(NotRun::Incomplete),
            Piece::Mark(Mark::Wrong) => self.not_run(NotRun::Malformed),
            Piece::Mark(Mark::Ended { status }) => self.ended(status),
            Piece::Mark(Mark::Answered) => match self {
                Self::Asked => self.becomes(Self::Idle, Step::Answered),
                Self::Starting
                | Self::Idle
                | Self::Typed(_)
                | Self::Running
                | Self::Over(_)
                | Self::Taking(_)
                | Self::Withdrawn(_)
                | Self::Ahead => Step::None,
            },
            Piece::Mark(Mark::Taken(text)) => match *self {
                Self::Taking(status) => self.becomes(Self::Idle, Step::Taken(status, text)),
                Self::Running => Step::Ahead(text),
                Self::Withdrawn(_) => self.ready(),
                Self::Starting | Self::Idle | Self::Typed(_) | Self::Over(_) | Self::Ahead | Self::Asked => Step::None,
            },
        }
    }

    fn output(&mut self, bytes: Vec<u8>) -> Step {
        match self {
            Self::Typed(echo) => {
                echo.extend(bytes);
                let over = echo.len().saturating_sub(ECHO_BYTES_MAX);
                echo.drain(..over);
                Step::None
            }
            Self::Running => Step::Show(bytes),
            Self::Withdrawn(_) => Step::None,
            Self::Starting | Self::Idle | Self::Over(_) | Self::Ahead | Self::Asked => Step::Beside(bytes),
            // The line editor draws what was typed ahead, and takes it away.
            Self::Taking(_) => Step::None,
        }
    }

    fn ready(&mut self) -> Step {
        match *self {
            Self::Starting => self.becomes(Self::Idle, Step::Started),
            Self::Over(status) => self.becomes(Self::Idle, Step::Prompted(status)),
            Self::Withdrawn(why) => self.becomes(Self::Idle, Step::NotRun(why)),
            // A prompt that is drawn again.
            Self::Idle | Self::Typed(_) | Self::Running | Self::Taking(_) | Self::Ahead | Self::Asked => Step::None,
        }
    }

    fn begun(&mut self) -> Step {
        match self {
            Self::Typed(_) => self.becomes(Self::Running, Step::None),
            Self::Idle => self.becomes(Self::Ahead, Step::None),
            // Each line of several is marked.
            Self::Starting
            | Self::Running
            | Self::Over(_)
            | Self::Taking(_)
            | Self::Withdrawn(_)
            | Self::Ahead
            | Self::Asked => Step::None,
        }
    }

    fn not_run(&mut self, why: NotRun) -> Step {
        match self {
            Self::Typed(_) => self.becomes(Self::Withdrawn(why), Step::Withdraw),
            Self::Starting
            | Self::Idle
            | Self::Running
            | Self::Over(_)
            | Self::Taking(_)
            | Self::Withdrawn(_)
            | Self::Ahead
            | Self::Asked => Step::None,
        }
    }

    fn ended(&mut self, status: i32) -> Step {
        match self {
            // It never began: what the shell says of it comes behind the echo.
            Self::Typed(echo) => {
                let said = said(echo);
                self.becomes(Self::Over(status), Step::Show(said))
            }
            Self::Running => self.becomes(Self::Over(status), Step::None),
            Self::Ahead => self.becomes(Self::Idle, Step::None),
            Self::Starting | Self::Idle | Self::Over(_) | Self::Taking(_) | Self::Withdrawn(_) | Self::Asked => {
                Step::None
            }
        }
    }

    /// What was typed ahead is taken first; to be called at [`Step::Prompted`].
    pub fn taking(&mut self, status: i32) {
        *self = Self::Taking(status);
    }

    fn becomes(&mut self, next: Self, step: Step) -> Step {
        *self = next;
        step
    }
}

/// What a shell said behind the echo of a line.
fn said(echo: &[u8]) -> Vec<u8> {
    let from = echo
        .windows(EDITED.len())
        .rposition(|window| window == EDITED)
        .map(|at| at + EDITED.len());
    let said = from.and_then(|from| echo.get(from..)).unwrap_or_default();
    said.strip_prefix(b"\r").unwrap_or(said).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn out(text: &str) -> Piece {
        Piece::Output(text.as_bytes().to_vec())
    }

    fn steps(phase: &mut Phase, pieces: Vec<Piece>) -> Vec<Step> {
        let steps = pieces.into_iter().map(|piece| phase.step(piece));
        steps.filter(|step| *step != Step::None).collect()
    }

    /// SPEC 8.2: of what the shell writes, what lies between its marks is the command's.
    #[test]
    fn a_command() {
        let mut phase = Phase::Typed(Vec::new());
        let told = steps(
            &mut phase,
            vec![
                out("ls\r\n"),
                Piece::Mark(Mark::Begun),
                out("a b\r\n"),
                Piece::Mark(Mark::Begun),
                out("c\r\n"),
                Piece::Mark(Mark::Ended { status: 3 }),
                Piece::Mark(Mark::Directory(b"/tmp".to_vec())),
                out("\x1b[?2004h"),
                Piece::Mark(Mark::Ready),
                Piece::Mark(Mark::Ready),
            ],
        );
        assert_eq!(
            told,
            [
                Step::Show(b"a b\r\n".to_vec()),
                Step::Show(b"c\r\n".to_vec()),
                Step::Moved(b"/tmp".to_vec()),
                Step::Beside(b"\x1b[?2004h".to_vec()),
                Step::Prompted(3),
            ]
        );
        assert_eq!(phase, Phase::Idle);
    }

    /// A line that the shell does not understand never begins; what it says of it is shown, the echo is not.
    #[test]
    fn a_syntax_error() {
        let mut phase = Phase::Typed(Vec::new());
        let told = steps(
            &mut phase,
            vec![
                out("echo )\r\n\x1b[?2004l\rbash: syntax error\r\n"),
                Piece::Mark(Mark::Ended { status: 2 }),
                Piece::Mark(Mark::Ready),
            ],
        );
        assert_eq!(
            told,
            [Step::Show(b"bash: syntax error\r\n".to_vec()), Step::Prompted(2)]
        );
    }

    /// What is not whole is withdrawn.
    #[test]
    fn an_unfinished_line() {
        let mut phase = Phase::Typed(Vec::new());
        let told = steps(
            &mut phase,
            vec![
                Piece::Mark(Mark::More),
                out("^C"),
                Piece::Mark(Mark::Ended { status: 130 }),
                Piece::Mark(Mark::Ready),
            ],
        );
        assert_eq!(told, [Step::Withdraw, Step::NotRun(NotRun::Incomplete)]);
    }

    /// Keys pressed too early run something; its end is not the next command's.
    #[test]
    fn typed_ahead() {
        let mut phase = Phase::Idle;
        let told = steps(
            &mut phase,
            vec![
                Piece::Mark(Mark::Begun),
                out("early\r\n"),
                Piece::Mark(Mark::Ended { status: 0 }),
                Piece::Mark(Mark::Ready),
            ],
        );
        assert_eq!(told, [Step::Beside(b"early\r\n".to_vec())]);
        assert_eq!(phase, Phase::Idle);
    }
}
