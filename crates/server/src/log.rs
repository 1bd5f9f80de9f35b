//! The log: one line a request and one a run of a turn, as JSON or as text (SPEC 9.8).
//!
//! A line says what was done to what, never what was said: no token, no query, no text of a message, no argument of a tool. Lines go
//! through a bounded queue to a thread that writes them; whoever reads the log slowly loses lines, which are counted, and slows
//! nothing.

use aish_core::moment;
use aish_core::sanitize::single_line;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// Lines that wait to be written.
const LINES_MAX: usize = 4_096;

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogForm {
    /// An object of JSON.
    Json,
    /// Words, for people.
    Text,
}

/// Where lines go. Clones share it.
#[derive(Clone, Debug)]
pub struct Log {
    form: LogForm,
    lines: SyncSender<Entry>,
    dropped: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Entry {
    Line(String),
    /// Answered once everything before it is written.
    Flush(SyncSender<()>),
}

/// A line.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Line<'a> {
    Request(RequestLine<'a>),
    Turn(TurnLine<'a>),
}

/// A request that was answered, to the last byte or until its client hung up.
#[derive(Serialize)]
pub(crate) struct RequestLine<'a> {
    pub(crate) request_id: &'a str,
    pub(crate) method: &'a str,
    pub(crate) route: &'a str,
    pub(crate) status: u16,
    pub(crate) duration_ms: u64,
    /// Of the body that was sent.
    pub(crate) bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<&'a str>,
    /// Why it could not be answered, where that is the server's fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<&'a str>,
}

/// A run of a turn.
#[derive(Serialize)]
pub(crate) struct TurnLine<'a> {
    pub(crate) session: &'a str,
    pub(crate) turn: u64,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) model: &'a str,
    /// Why it ended, or `waiting`, `left`, `failed`.
    pub(crate) reason: &'a str,
    pub(crate) duration_ms: u64,
    pub(crate) usage: Tokens,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<&'a str>,
}

/// What a run used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Tokens {
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
}

#[derive(Serialize)]
struct Stamped<'a> {
    time: String,
    level: &'static str,
    #[serde(flatten)]
    line: &'a Line<'a>,
}

impl Log {
    /// A log that is written to `out`, on a thread of its own that ends with the last clone.
    ///
    /// # Errors
    /// There can be no further thread.
    pub fn new(form: LogForm, out: impl Write + Send + 'static) -> std::io::Result<Self> {
        let (lines, queue) = sync_channel(LINES_MAX);
        let thread = std::thread::Builder::new().name("log".to_owned());
        thread.spawn(move || write_all(&queue, out))?;
        Ok(Self {
            form,
            lines,
            dropped: Arc::default(),
        })
    }

    /// Adds a line; `unix_ms` is now.
    pub(crate) fn write(&self, unix_ms: u64, line: &Line<'_>) {
        let entry = Entry::Line(match self.form {
            LogForm::Json => as_json(unix_ms, line),
            LogForm::Text => as_text(unix_ms, line),
        });
        if self.lines.try_send(entry).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Lines that could not be written in time.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Waits until everything so far is written, but no longer than that. It blocks the thread.
    pub fn flush(&self, timeout: Duration) {
        let (done, is_done) = sync_channel(1);
        if self.lines.try_send(Entry::Flush(done)).is_ok() {
            // What is not written by then is lost.
            let _ = is_done.recv_timeout(timeout);
        }
    }
}

fn write_all(queue: &Receiver<Entry>, mut out: impl Write) {
    while let Ok(entry) = queue.recv() {
        // Nobody can be told that the log cannot be written.
        match entry {
            Entry::Line(line) => drop(out.write_all(line.as_bytes())),
            Entry::Flush(done) => drop((out.flush(), done.send(()))),
        }
    }
}

impl Line<'_> {
    fn level(&self) -> &'static str {
        let is_bad = match self {
            Self::Request(line) => line.status >= 500,
            Self::Turn(line) => line.problem.is_some(),
        };
        if is_bad { "error" } else { "info" }
    }
}

fn as_json(unix_ms: u64, line: &Line<'_>) -> String {
    let stamped = Stamped {
        time: rfc3339(unix_ms),
        level: line.level(),
        line,
    };
    // Texts and numbers are always JSON.
    let mut text = serde_json::to_string(&stamped).unwrap_or_default();
    text.push('\n');
    text
}

fn as_text(unix_ms: u64, line: &Line<'_>) -> String {
    let mut text = format!("{} {:5} ", rfc3339(unix_ms), line.level());
    // Writing to a string cannot fail.
    let _ = match line {
        Line::Request(line) => write!(
            text,
            "{} {} {} {} ms, {} bytes, request {}{}{}",
            line.method,
            line.route,
            line.status,
            line.duration_ms,
            line.bytes,
            line.request_id,
            line.session
                .map_or_else(String::new, |session| format!(", session {session}")),
            line.problem.map_or_else(String::new, |problem| format!(": {problem}")),
        ),
        Line::Turn(line) => write!(
            text,
            "turn {} of session {}: {}, model {}, {} ms, {} tokens in, {} out{}",
            line.turn,
            line.session,
            line.reason,
            line.model,
            line.duration_ms,
            line.usage.input_tokens,
            line.usage.output_tokens,
            line.problem.map_or_else(String::new, |problem| format!(": {problem}")),
        ),
    };
    format!("{}\n", single_line(&text))
}

/// A moment as RFC 3339 has it, to the millisecond.
fn rfc3339(unix_ms: u64) -> String {
    let minute = moment::utc(unix_ms).replace(' ', "T");
    format!("{minute}:{:02}.{:03}Z", unix_ms / 1_000 % 60, unix_ms % 1_000)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::sync::Mutex;
    use std::sync::mpsc::channel;

    const NOW: u64 = 1_795_305_599_042;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn request(status: u16, id: &str) -> Line<'_> {
        Line::Request(RequestLine {
            request_id: id,
            method: "POST",
            route: "/api/chat",
            status,
            duration_ms: 12,
            bytes: 345,
            session: Some("s-1"),
            problem: (status >= 500).then_some("no\nspace"),
        })
    }

    fn turn<'a>(problem: Option<&'a str>) -> Line<'a> {
        Line::Turn(TurnLine {
            session: "s-1",
            turn: 3,
            model: "desk",
            reason: "end",
            duration_ms: 9,
            usage: Tokens {
                input_tokens: 10,
                output_tokens: 2,
            },
            problem,
        })
    }

    fn written(form: LogForm, lines: &[Line<'_>]) -> String {
        let out = Written::default();
        let log = Log::new(form, out.clone()).unwrap();
        lines.iter().for_each(|line| log.write(NOW, line));
        log.flush(Duration::from_secs(60));
        let bytes = out.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    /// SPEC 9.8: one object a line, its fields fixed.
    #[test]
    fn as_objects() {
        let text = written(LogForm::Json, &[request(200, "r-1"), turn(Some("a \"b\"\nc"))]);
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let time = "2026-11-21T23:59:59.042Z";
        assert_eq!(
            lines,
            [
                json!({"time": time, "level": "info", "event": "request", "request_id": "r-1", "method": "POST",
                       "route": "/api/chat", "status": 200, "duration_ms": 12, "bytes": 345, "session": "s-1"}),
                json!({"time": time, "level": "error", "event": "turn", "session": "s-1", "turn": 3, "model": "desk",
                       "reason": "end", "duration_ms": 9, "usage": {"input_tokens": 10, "output_tokens": 2},
                       "problem": "a \"b\"\nc"}),
            ]
        );
    }

    /// SPEC 9.8: nothing makes two lines of one, or an escape of a terminal.
    #[test]
    fn as_words() {
        let text = written(LogForm::Text, &[request(503, "r-1"), turn(Some("a\nb\u{1b}[2J"))]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert_eq!(
            lines[0],
            "2026-11-21T23:59:59.042Z error POST /api/chat 503 12 ms, 345 bytes, request r-1, session s-1: no\\nspace"
        );
        assert!(
            lines[1].contains("turn 3 of session s-1: end, model desk") && !text.contains('\u{1b}'),
            "{text}"
        );
    }

    /// SPEC 9.8: whoever does not read the log loses lines and holds up nobody.
    #[test]
    fn a_reader_that_is_stuck() {
        struct Stuck(std::sync::mpsc::Receiver<()>);
        impl Write for Stuck {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                let _ = self.0.recv();
                Ok(bytes.len())
            }

            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let (go, stuck) = channel();
        let log = Log::new(LogForm::Json, Stuck(stuck)).unwrap();
        for _ in 0..LINES_MAX + 10 {
            log.write(NOW, &turn(None));
        }
        assert!(log.dropped() >= 9, "{}", log.dropped());
        drop(go);
    }
}
