//! Reading lines on a thread of its own: line editors block, and nothing that blocks may stand in the loop's way.
//!
//! A [`Source`] is made on that thread when the first line is wanted (start-up pays only for what is used), and asked for
//! one line at a time: what is typed or piped ahead stays where it is until then.

use super::prompt::PromptText;
use std::io::{self, BufRead, Read as _};
use std::sync::mpsc;
use tokio::sync::oneshot;

/// Bytes one line may have; more is no line a person typed.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A message, possibly of several lines.
    Line(String),
    /// Ctrl-C: the line was given up.
    Interrupted,
    /// The key that asks why the last command failed.
    Why,
    /// The key that opens the line in another editor.
    Edit(String),
    /// The end of input, or Ctrl-D on an empty line.
    End,
}

/// Something lines come from.
pub trait Source {
    /// The next line. `prefill` is text the line begins with, for the person to go on with; whoever cannot be edited with
    /// leaves it out.
    ///
    /// # Errors
    /// It cannot be read.
    fn read(&mut self, prompt: &PromptText, prefill: &str) -> io::Result<Input>;

    /// Takes the keys that came behind that line and were read with it, as bytes of a terminal: they are for whoever reads next.
    fn take_unread(&mut self) -> Vec<u8> {
        Vec::new()
    }
}

/// What was read, and the bytes that came with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// What was read.
    pub input: Input,
    /// What was read too early, of a terminal.
    pub unread: Vec<u8>,
}

/// A line that is wanted.
struct Request {
    prompt: PromptText,
    prefill: String,
    answer: oneshot::Sender<io::Result<Taken>>,
}

/// The thread that reads.
pub struct Reader {
    requests: mpsc::Sender<Request>,
}

impl Reader {
    /// Starts the thread; `make` runs on it, once the first line is wanted.
    ///
    /// # Errors
    /// No thread is to be had.
    pub fn start<S: Source>(make: impl FnOnce() -> S + Send + 'static) -> io::Result<Self> {
        let (requests, queue) = mpsc::channel::<Request>();
        std::thread::Builder::new().name("input".to_owned()).spawn(move || {
            let mut make = Some(make);
            let mut source = None;
            for request in queue {
                if let Some(make) = make.take() {
                    source = Some(make());
                }
                let taken = match &mut source {
                    Some(source) => source.read(&request.prompt, &request.prefill).map(|input| Taken {
                        input,
                        unread: source.take_unread(),
                    }),
                    None => Ok(Taken {
                        input: Input::End,
                        unread: Vec::new(),
                    }),
                };
                // Nobody waiting any more means the program is leaving.
                let _ = request.answer.send(taken);
            }
        })?;
        Ok(Self { requests })
    }

    /// Asks for a line that begins with `prefill`. The request stands until it is answered, also when the result is dropped.
    pub fn begin(&self, prompt: PromptText, prefill: String) -> oneshot::Receiver<io::Result<Taken>> {
        let (answer, line) = oneshot::channel();
        // A thread that is gone drops its end, which the receiver sees.
        let _ = self.requests.send(Request {
            prompt,
            prefill,
            answer,
        });
        line
    }
}

/// Lines of a file, a pipe, or a terminal that cannot be edited on. A backslash at the end of a line goes on with it.
pub struct Lines<R> {
    input: R,
}

impl<R: BufRead> Lines<R> {
    /// From there.
    pub fn new(input: R) -> Self {
        Self { input }
    }
}

impl<R: BufRead> Source for Lines<R> {
    fn read(&mut self, _prompt: &PromptText, _prefill: &str) -> io::Result<Input> {
        let mut message = String::new();
        loop {
            let mut line = Vec::new();
            let bytes = (&mut self.input).take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
            if bytes == 0 {
                return Ok(if message.is_empty() {
                    Input::End
                } else {
                    Input::Line(message)
                });
            }
            if line.last() != Some(&b'\n') && bytes as u64 == LINE_BYTES_MAX {
                let text = format!("a line of more than {LINE_BYTES_MAX} bytes; put it into a file and name that");
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
            message.push_str(&String::from_utf8_lossy(&line));
            let whole = message.trim_end_matches(['\n', '\r']);
            if !super::route::is_unfinished(whole) {
                return Ok(Input::Line(whole.to_owned()));
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::repl::prompt::Saved;
    use aish_core::policy::ApprovalMode;
    use std::io::Cursor;

    fn prompt() -> PromptText {
        PromptText {
            directory: "/".into(),
            model: "desk".into(),
            mode: ApprovalMode::Ask,
            saved: Saved::Yes,
            last: None,
        }
    }

    /// SPEC 8.9: a plain mode without a terminal: a line is a message, a backslash goes on with it.
    #[test]
    fn piped_lines() {
        let reader = Reader::start(|| Lines::new(Cursor::new("one\ntwo \\\nthree\r\n\nlast"))).unwrap();
        let mut read = Vec::new();
        loop {
            let taken = reader.begin(prompt(), String::new()).blocking_recv().unwrap().unwrap();
            match taken.input {
                Input::End => break,
                input @ (Input::Line(_) | Input::Interrupted | Input::Why | Input::Edit(_)) => read.push(input),
            }
        }
        let line = |text: &str| Input::Line(text.to_owned());
        assert_eq!(read, [line("one"), line("two \\\nthree"), line(""), line("last")]);
    }

    /// SPEC 12: a line without end does not fill the memory.
    #[test]
    fn endless_lines_are_refused() {
        let mut lines = Lines::new(io::BufReader::new(io::repeat(b'x')));
        assert_eq!(
            lines.read(&prompt(), "").unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );
    }

    /// Nothing is made before a line is wanted.
    #[test]
    fn sources_are_made_when_wanted() {
        let (made, was_made) = mpsc::channel();
        let reader = Reader::start(move || {
            made.send(()).unwrap();
            Lines::new(Cursor::new("x\n"))
        })
        .unwrap();
        assert!(was_made.try_recv().is_err());
        assert_eq!(
            reader
                .begin(prompt(), String::new())
                .blocking_recv()
                .unwrap()
                .unwrap()
                .input,
            Input::Line("x".into())
        );
        assert!(was_made.try_recv().is_ok());
    }
}
