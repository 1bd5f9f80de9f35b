//! The question of a one-shot run: the prompt, and what standard input adds to it (SPEC 10.3).

use super::eprint_line;
use crate::failure::Failure;
use crate::signals::unless_ended;
use aish_core::message::Part;
use aish_tools::Cancel;
use std::io::{self, IsTerminal as _, Read as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;

/// Bytes of standard input that go along as context; more would fit no model.
const STDIN_BYTES_MAX: u64 = 4 << 20;
/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;
/// How long standard input may be silent before the person is told what is waited for.
const SILENCE_S: u64 = 2;

/// The prompt and what standard input adds to it. A prompt of `-` is standard input.
///
/// # Errors
/// Standard input cannot be read, or a signal asked to end while it was waited for.
pub(super) async fn question(text: &str, cancel: &Cancel) -> Result<(String, Vec<Part>), Failure> {
    if io::stdin().is_terminal() {
        return if text == "-" {
            Err(Failure::usage(
                "-p - reads the prompt from standard input, which is a terminal",
            ))
        } else {
            Ok((text.to_owned(), Vec::new()))
        };
    }
    let mut bytes = unless_ended(cancel, read())
        .await?
        .map_err(|error| Failure::usage(format!("cannot read standard input: {error}")))?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > STDIN_BYTES_MAX {
        eprint_line(&format!("standard input is cut after {STDIN_BYTES_MAX} bytes"));
        bytes.truncate(usize::try_from(STDIN_BYTES_MAX).unwrap_or(usize::MAX));
    }
    let input = String::from_utf8_lossy(&bytes).into_owned();
    if text == "-" {
        return Ok((input, Vec::new()));
    }
    let parts = if input.trim().is_empty() {
        Vec::new()
    } else {
        vec![Part::Context {
            label: "standard input".to_owned(),
            text: input,
        }]
    };
    Ok((text.to_owned(), parts))
}

/// All of standard input, and one byte more than is kept. A pipe that nobody writes to is waited for, and said to be.
async fn read() -> io::Result<Vec<u8>> {
    let begun = Arc::new(AtomicBool::new(false));
    let (done, mut whole) = oneshot::channel();
    let first = Arc::clone(&begun);
    // A thread of its own: a read that never ends must not keep the program from ending.
    std::thread::Builder::new().name("stdin".to_owned()).spawn(move || {
        let _ = done.send(read_all(&first));
    })?;
    let gone = |_| Err(io::Error::other("the reader stopped"));
    tokio::select! {
        biased;
        whole = &mut whole => return whole.unwrap_or_else(gone),
        () = tokio::time::sleep(Duration::from_secs(SILENCE_S)) => {}
    }
    if !begun.load(Ordering::Relaxed) {
        eprint_line("waiting for standard input; </dev/null skips it");
    }
    whole.await.unwrap_or_else(gone)
}

fn read_all(begun: &AtomicBool) -> io::Result<Vec<u8>> {
    let mut input = io::stdin().lock().take(STDIN_BYTES_MAX + 1);
    let mut bytes = Vec::new();
    let mut buffer = vec![0; READ_BYTES];
    loop {
        match input.read(&mut buffer) {
            Ok(0) => return Ok(bytes),
            Ok(count) => {
                begun.store(true, Ordering::Relaxed);
                bytes.extend_from_slice(buffer.get(..count).unwrap_or_default());
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
