//! What a shell is doing, as its marks tell, and what that means for the bytes between them. Pure: no clock, no descriptor.

use crate::marks::{Mark, Piece};

/// What the line editor of bash and zsh leaves behind on its terminal when a line was accepted: what follows is no echo of it.
const EDITED: &[u8] = b"\x1b[?2004l";
/// What it begins with; that of bash does so ahead of the prompt.
const EDITING: &[u8] = b"\x1b[?2004h";
/// Bytes kept of what the shell says of a line before it runs it.
const SAID_BYTES_MAX: usize = 64 * 1024;

/// What a shell is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It reads its start-up files.
    Starting,
    /// Its prompt is there.
    Idle,
    /// A command was typed, and the line editor has it; with the end of what it echoed.
    Typed(Vec<u8>),
    /// The line editor has accepted it, and it has not begun; with what the shell says of it.
    Accepted(Vec<u8>),
    /// As before, but for long: what the shell says is shown, since it may be a question (`setopt correct` of zsh).
    Questioned,
    /// A command runs.
    Running,
    /// It is over; the prompt is not there yet.
    Over(Outcome),
    /// It is over, and the prompt is there; what stands in the line editor is being taken out of it. With what came meanwhile: of the
    /// line editor, which draws that and takes it away, or of jobs.
    Taking(Outcome, Vec<u8>),
    /// What was typed is not run, and is being withdrawn.
    Withdrawn(NotRun),
    /// Something runs that we did not type: keys that were pressed before the last command was over.
    Ahead,
    /// A hidden line runs.
    Asked,
}

/// What became of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It ran, with this status.
    Ran(i32),
    /// The shell came back to its prompt without running it: it is malformed, or is put back to be looked at (`histverify`). With
    /// what `$?` is now, where the shell told.
    Refused(Option<i32>),
    /// It was withdrawn.
    Withdrawn(NotRun),
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
    /// Nor for its start-up files, which were interrupted.
    Starting,
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
    /// Withdraw what was typed: it is not whole.
    Withdraw,
    /// To be shown; and what was typed is not run: the prompt is there again.
    Refused(Vec<u8>),
    /// The command is over; what stands in the line editor can be taken ([`Phase::Taking`]), or else it is finished.
    Prompted(Outcome),
    /// What stood in the line editor, and the command is finished; with what is not drawn by the line editor.
    Taken {
        outcome: Outcome,
        text: Vec<u8>,
        beside: Vec<u8>,
    },
    /// The hidden line was run.
    Answered,
}

impl Phase {
    /// Takes the next piece.
    pub fn step(&mut self, piece: Piece) -> Step {
        match piece {
            Piece::Output(bytes) => self.output(bytes),
            Piece::Mark(Mark::Ready) => self.ready(),
            Piece::Mark(Mark::Begun) => self.begun(),
            Piece::Mark(Mark::More) => self.not_run(NotRun::Incomplete),
            Piece::Mark(Mark::Wrong) => self.not_run(NotRun::Malformed),
            Piece::Mark(Mark::Ended { status, waits: _ }) => self.ended(status),
            Piece::Mark(Mark::Answered) => self.answered(),
            Piece::Mark(Mark::Taken(text)) => self.taken(text),
        }
    }

    /// The shell says something of a line that it does not run yet; to be called when it has had its time.
    pub fn question(&mut self) -> Step {
        match self {
            Self::Accepted(said) if !shown(said).is_empty() => {
                let said = shown(said).to_vec();
                self.becomes(Self::Questioned, Step::Show(said))
            }
            Self::Starting
            | Self::Idle
            | Self::Typed(_)
            | Self::Accepted(_)
            | Self::Questioned
            | Self::Running
            | Self::Over(_)
            | Self::Taking(..)
            | Self::Withdrawn(_)
            | Self::Ahead
            | Self::Asked => Step::None,
        }
    }

    fn output(&mut self, bytes: Vec<u8>) -> Step {
        match self {
            Self::Typed(echo) => {
                echo.extend(bytes);
                if let Some(at) = echo.windows(EDITED.len()).position(|window| window == EDITED) {
                    let said = echo.split_off(at + EDITED.len());
                    return self.becomes(Self::Accepted(said), Step::None);
                }
                // Of the next it may be the beginning.
                echo.drain(..echo.len().saturating_sub(EDITED.len()));
                Step::None
            }
            Self::Accepted(said) => {
                said.extend(bytes);
                if said.len() > SAID_BYTES_MAX {
                    self.question()
                } else {
                    Step::None
                }
            }
            Self::Questioned | Self::Running => Step::Show(bytes),
            Self::Withdrawn(_) => Step::None,
            Self::Starting | Self::Idle | Self::Over(_) | Self::Ahead | Self::Asked => Step::Beside(bytes),
            Self::Taking(_, meanwhile) if meanwhile.len() < SAID_BYTES_MAX => {
                meanwhile.extend(bytes);
                Step::None
            }
            // No line editor draws so much.
            Self::Taking(..) => Step::Beside(bytes),
        }
    }

    fn ready(&mut self) -> Step {
        match self {
            Self::Starting => self.becomes(Self::Idle, Step::None),
            Self::Over(outcome) => {
                let outcome = *outcome;
                self.becomes(Self::Idle, Step::Prompted(outcome))
            }
            Self::Accepted(said) => {
                let said = shown(said);
                let said = said.strip_suffix(EDITING).unwrap_or(said).to_vec();
                self.becomes(Self::Idle, Step::Refused(said))
            }
            Self::Questioned => self.becomes(Self::Idle, Step::Refused(Vec::new())),
            Self::Withdrawn(why) => {
                let why = *why;
                self.becomes(Self::Idle, Step::Prompted(Outcome::Withdrawn(why)))
            }
            // A prompt that is drawn again.
            Self::Idle | Self::Typed(_) | Self::Running | Self::Taking(..) | Self::Ahead | Self::Asked => Step::None,
        }
    }

    fn begun(&mut self) -> Step {
        match self {
            Self::Typed(_) | Self::Accepted(_) | Self::Questioned => self.becomes(Self::Running, Step::None),
            Self::Idle => self.becomes(Self::Ahead, Step::None),
            // Each line of several is marked.
            Self::Starting
            | Self::Running
            | Self::Over(_)
            | Self::Taking(..)
            | Self::Withdrawn(_)
            | Self::Ahead
            | Self::Asked => Step::None,
        }
    }

    fn not_run(&mut self, why: NotRun) -> Step {
        match self {
            Self::Typed(_) | Self::Accepted(_) | Self::Questioned => self.becomes(Self::Withdrawn(why), Step::Withdraw),
            Self::Starting
            | Self::Idle
            | Self::Running
            | Self::Over(_)
            | Self::Taking(..)
            | Self::Withdrawn(_)
            | Self::Ahead
            | Self::Asked => Step::None,
        }
    }

    fn ended(&mut self, status: i32) -> Step {
        let refused = Self::Over(Outcome::Refused(Some(status)));
        match self {
            // It never began: what the shell says of it comes behind the echo.
            Self::Accepted(said) => {
                let said = shown(said).to_vec();
                self.becomes(refused, Step::Show(said))
            }
            Self::Typed(_) | Self::Questioned => self.becomes(refused, Step::None),
            Self::Running => self.becomes(Self::Over(Outcome::Ran(status)), Step::None),
            Self::Ahead => self.becomes(Self::Idle, Step::None),
            Self::Starting | Self::Idle | Self::Over(_) | Self::Taking(..) | Self::Withdrawn(_) | Self::Asked => {
                Step::None
            }
        }
    }

    fn answered(&mut self) -> Step {
        match self {
            Self::Asked => self.becomes(Self::Idle, Step::Answered),
            Self::Starting
            | Self::Idle
            | Self::Typed(_)
            | Self::Accepted(_)
            | Self::Questioned
            | Self::Running
            | Self::Over(_)
            | Self::Taking(..)
            | Self::Withdrawn(_)
            | Self::Ahead => Step::None,
        }
    }

    fn taken(&mut self, text: Vec<u8>) -> Step {
        match self {
            Self::Taking(outcome, meanwhile) => {
                let (outcome, mut beside) = (*outcome, std::mem::take(meanwhile));
                if !text.is_empty() {
                    beside.clear();
                }
                self.becomes(Self::Idle, Step::Taken { outcome, text, beside })
            }
            Self::Withdrawn(_) => self.ready(),
            Self::Starting
            | Self::Idle
            | Self::Typed(_)
            | Self::Accepted(_)
            | Self::Questioned
            | Self::Running
            | Self::Over(_)
            | Self::Ahead
            | Self::Asked => Step::None,
        }
    }

    fn becomes(&mut self, next: Self, step: Step) -> Step {
        *self = next;
        step
    }
}

/// What a shell says of a line, without the end of the line itself.
fn shown(said: &[u8]) -> &[u8] {
    let returns = said.iter().take_while(|byte| **byte == b'\r').count();
    let rest = said.get(returns..).unwrap_or_default();
    rest.strip_prefix(b"\n").unwrap_or(rest)
}

#[cfg(test)]
mod tests;
