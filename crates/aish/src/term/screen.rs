//! Writing to the terminal without ever blocking a turn.
//!
//! A terminal may stand still (flow control, a stalled connection). The writing is done by a thread; whoever renders
//! waits for one batch to be out before it makes the next, and goes on driving meanwhile (DESIGN, cost rules: a front end
//! that is slow never slows a turn).

use super::{Output, Stream};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::io;
use std::sync::mpsc;
use tokio::sync::oneshot;

/// Where output goes: the reply and its frames to one descriptor, status lines to another (SPEC 10.4).
pub struct Screen {
    batches: mpsc::Sender<(Output, oneshot::Sender<()>)>,
}

/// Resolves when a batch is written, or cannot be.
pub type Written = oneshot::Receiver<()>;

impl Screen {
    /// Standard output and standard error.
    ///
    /// # Errors
    /// No thread or descriptor is to be had.
    pub fn start() -> io::Result<Self> {
        let out = rustix::stdio::stdout().try_clone_to_owned()?;
        let err = rustix::stdio::stderr().try_clone_to_owned()?;
        Self::to(out, err)
    }

    /// These descriptors.
    ///
    /// # Errors
    /// No thread is to be had.
    pub fn to(out: OwnedFd, err: OwnedFd) -> io::Result<Self> {
        let (batches, queue) = mpsc::channel::<(Output, oneshot::Sender<()>)>();
        std::thread::Builder::new().name("screen".to_owned()).spawn(move || {
            for (output, written) in queue {
                for (to, text) in writes(&output) {
                    let fd = match to {
                        To::Output => out.as_fd(),
                        To::Errors => err.as_fd(),
                    };
                    // A reader that is gone changes nothing for the turn: all of it is in the ledger.
                    let _ = write_all(fd, text.as_bytes());
                }
                let _ = written.send(());
            }
        })?;
        Ok(Self { batches })
    }

    /// Begins to write a batch. The next one is best made when this is written: then it holds all that came meanwhile.
    pub fn begin(&self, output: Output) -> Written {
        let (written, done) = oneshot::channel();
        // Without its thread nothing is shown; the receiver then resolves at once.
        let _ = self.batches.send((output, written));
        done
    }

    /// Writes a batch.
    pub async fn write(&self, output: Output) {
        if !output.is_empty() {
            let _ = self.begin(output).await;
        }
    }
}

/// Which descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum To {
    Output,
    Errors,
}

/// What is to be written at once: a terminal that gets a change in two pieces may show the half of it.
fn writes(output: &Output) -> Vec<(To, String)> {
    let mut all: Vec<(To, String)> = Vec::new();
    for (stream, text) in output.pieces() {
        let to = match stream {
            Stream::Reply | Stream::Frame => To::Output,
            Stream::Status => To::Errors,
        };
        match all.last_mut() {
            Some((last, before)) if *last == to => before.push_str(text),
            Some(_) | None => all.push((to, text.to_owned())),
        }
    }
    all
}

/// Writes all of it, waiting where nobody takes it.
///
/// # Errors
/// The descriptor takes nothing any more.
pub fn write_all(fd: BorrowedFd<'_>, mut bytes: &[u8]) -> rustix::io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(fd, bytes) {
            Ok(n) => bytes = bytes.get(n..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            // Some programs leave a terminal non-blocking behind.
            Err(Errno::AGAIN) => {
                poll(&mut [PollFd::new(&fd, PollFlags::OUT)], None)?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::io::{Read as _, Seek as _};

    /// SPEC 8.6: what is shown together is written at once.
    #[test]
    fn one_write() {
        let mut output = Output::new();
        output.push(Stream::Frame, "a");
        output.push(Stream::Reply, "b");
        output.push(Stream::Status, "c");
        output.push(Stream::Frame, "d");
        let expect = [(To::Output, "ab"), (To::Errors, "c"), (To::Output, "d")];
        assert_eq!(writes(&output), expect.map(|(to, text)| (to, text.to_owned())));
    }

    /// SPEC 10.4: status lines go to standard error, everything else to standard output.
    #[test]
    fn streams_go_where_they_belong() {
        let (mut out, mut err) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        let screen = Screen::to(out.try_clone().unwrap().into(), err.try_clone().unwrap().into()).unwrap();
        let mut output = Output::new();
        output.push(Stream::Reply, "hello\n");
        output.push(Stream::Status, "[aish] x\n");
        output.push(Stream::Frame, "--- y\n");
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(screen.write(output));
        let read = |file: &mut std::fs::File| {
            let mut text = String::new();
            file.rewind().unwrap();
            file.read_to_string(&mut text).unwrap();
            text
        };
        assert_eq!(
            (read(&mut out), read(&mut err)),
            ("hello\n--- y\n".into(), "[aish] x\n".into())
        );
    }
}
