//! `aish sessions`: the ledger read by a person. Nothing here changes it.

mod keys;

use crate::app::App;
use crate::cli::{ExportFormat, Sessions};
use crate::failure::{DONE, Failure};
use crate::json;
use crate::mcp::serve::CALLER;
use crate::oneshot::eprint_line;
use crate::serve::ledger::{Ledger, Looked};
use aish_core::event::readable_call;
use aish_core::id::CallId;
use aish_core::moment;
use aish_core::redact::Redactor;
use aish_core::turn::Job;
use aish_core::{Digest, Session, SessionId, Step, Turn, sanitize};
use aish_store::export::{jsonl_line, markdown, markdown_head};
use aish_store::{RawEvent, SessionFilter, Store, StoreError};
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::sync::Arc;

/// Events read at once when a session is written out: a long one is never whole in memory.
const EXPORT_EVENTS_AT_ONCE: usize = 1_000;
/// Characters of a title in the list.
const TITLE_CHARS_MAX: usize = 60;

/// Whose sessions are meant, where apps have a store of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Those in the ledger of this machine.
    Persons,
    /// Those in the store of `aish serve`.
    Apps,
}

/// Where what waits in a session is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answers {
    /// At a terminal here as well, by `aish resume`.
    Here,
    /// At the server only: no terminal goes on with what is in a shared database.
    AtServer,
}

/// Runs one of the commands.
///
/// # Errors
/// There is no such session, or it cannot be read or written out.
pub async fn run(app: &App, whose: Whose, what: &Sessions) -> Result<u8, Failure> {
    let store: Arc<dyn Store> = match whose {
        Whose::Persons => app.store(),
        Whose::Apps => match Ledger::look(app).await? {
            Looked::There(ledger) => ledger.store,
            Looked::NotYet { place } => {
                return Err(Failure::failed(format!("there is no ledger in {place} yet"))
                    .hint("`aish serve` makes its tables when it starts; is serve.store the right database?"));
            }
        },
    };
    let redactor = app.redactor();
    match what {
        Sessions::List => {
            let listed = list(store.as_ref(), &redactor).await;
            if whose == Whose::Persons && app.config().serve.store.is_some() {
                eprint_line("apps have a store of their own (serve.store): aish sessions --served list");
            }
            listed
        }
        Sessions::Show { id } => {
            let id = &find(store.as_ref(), app, &redactor, id).await?;
            let shown = export(store.as_ref(), &redactor, id, ExportFormat::Markdown, None).await?;
            let is_shared = whose == Whose::Apps && app.config().serve.store.is_some();
            let answers = if is_shared { Answers::AtServer } else { Answers::Here };
            say_what_waits(store.as_ref(), &redactor, id, answers).await?;
            Ok(shown)
        }
        Sessions::Export { id, format, file } => {
            let id = &find(store.as_ref(), app, &redactor, id).await?;
            export(store.as_ref(), &redactor, id, *format, file.as_deref()).await
        }
    }
}

/// The sessions that a person can mean without naming one, the last used first: not those in which a program calls the tools that
/// are served to it, unless a person went on with them.
pub fn of_persons(limit: usize) -> SessionFilter {
    SessionFilter {
        limit: Some(limit),
        not_by: Some(CALLER.to_owned()),
        ..SessionFilter::default()
    }
}

async fn list(store: &dyn Store, redactor: &Redactor) -> Result<u8, Failure> {
    let sessions = store.list(SessionFilter::default()).await?;
    if sessions.is_empty() {
        eprint_line("no sessions yet");
    }
    let mut out = String::new();
    for session in sessions {
        let mark = if session.waiting { "  [waits]" } else { "" };
        let title: String = sanitize::single_line(&redactor.redact(&session.title))
            .chars()
            .take(TITLE_CHARS_MAX)
            .collect();
        let _ = writeln!(
            out,
            "{}  {}  {:>5} events{mark}  {title}",
            session.id,
            moment::utc(session.updated),
            session.events
        );
    }
    print(&out)
}

/// The session of that id in a ledger of this machine. Where apps have another one, it may be there.
///
/// # Errors
/// There is none such, or more than one.
pub async fn of_id(store: &dyn Store, app: &App, id: &str) -> Result<SessionId, Failure> {
    store.find(id).await.map_err(|error| {
        let is_elsewhere = matches!(error, StoreError::NotFound(_)) && app.config().serve.store.is_some();
        let failure = Failure::from(error);
        match is_elsewhere {
            true => failure.hint(
                "`aish sessions --served list` lists those in the store of `aish serve`; what they wait for is answered over HTTP",
            ),
            false => failure,
        }
    })
}

/// The session of that id. The keys that it says itself are learnt before anything of it is written: what was printed early may be
/// named late.
async fn find(store: &dyn Store, app: &App, redactor: &Redactor, id: &str) -> Result<SessionId, Failure> {
    let session = of_id(store, app, id).await?;
    let withheld = app.withheld();
    let mut batches = Batches::new(store, &session);
    while let Some(events) = batches.next().await? {
        for event in &events {
            keys::learn(&event.content, &withheld, redactor);
            keys::learn(&event.data, &withheld, redactor);
        }
    }
    Ok(session)
}

/// The events of a session, as written, [`EXPORT_EVENTS_AT_ONCE`] at a time.
struct Batches<'a> {
    store: &'a dyn Store,
    session: &'a SessionId,
    seq: u64,
}

impl<'a> Batches<'a> {
    fn new(store: &'a dyn Store, session: &'a SessionId) -> Self {
        Self { store, session, seq: 0 }
    }

    /// The next ones; none behind the last.
    async fn next(&mut self) -> Result<Option<Vec<RawEvent>>, StoreError> {
        let events = self
            .store
            .load_raw(self.session, self.seq, EXPORT_EVENTS_AT_ONCE)
            .await?;
        let Some(last) = events.last() else { return Ok(None) };
        self.seq = last.seq;
        Ok(Some(events))
    }
}

async fn export(
    store: &dyn Store,
    redactor: &Redactor,
    session: &SessionId,
    format: ExportFormat,
    file: Option<&Path>,
) -> Result<u8, Failure> {
    let mut sink: Box<dyn std::io::Write> = match file {
        None => Box::new(std::io::stdout().lock()),
        Some(path) => Box::new(create_private(path)?),
    };
    let mut head = match format {
        ExportFormat::Markdown => markdown_head(session, &title(store, session).await?),
        ExportFormat::Jsonl => String::new(),
    };
    let mut batches = Batches::new(store, session);
    while let Some(events) = batches.next().await? {
        let mut text = std::mem::take(&mut head);
        match format {
            ExportFormat::Jsonl => {
                for event in &events {
                    text.push_str(&jsonl_line(session, event));
                    text.push('\n');
                }
            }
            ExportFormat::Markdown => text.push_str(&markdown(&events)),
        }
        let text = redactor.redact(&text);
        // Markdown is the text itself: only a terminal, or what shows it on one, must be spared what is in it.
        let text = match (format, file) {
            (ExportFormat::Jsonl, _) => json::printable(&text),
            (ExportFormat::Markdown, None) if std::io::stdout().is_terminal() => sanitize::multi_line(&text),
            (ExportFormat::Markdown, None) => sanitize::controls(&text),
            (ExportFormat::Markdown, Some(_)) => text.clone(),
        };
        if let Err(error) = sink.write_all(text.as_bytes()) {
            if error.kind() == std::io::ErrorKind::BrokenPipe {
                return Ok(DONE);
            }
            return Err(Failure::failed(format!("cannot write the export: {error}")));
        }
    }
    sink.flush()
        .map_err(|error| Failure::failed(format!("cannot write the export: {error}")))?;
    Ok(DONE)
}

/// Names the calls that wait for an answer, and how to give one (SPEC 5.6).
async fn say_what_waits(
    store: &dyn Store,
    redactor: &Redactor,
    id: &SessionId,
    answers: Answers,
) -> Result<(), Failure> {
    let session = Session::load(id.clone(), store.load(id, 0).await?);
    let calls = match session.open_turn().map(Turn::next) {
        Some(Step::AskApproval(calls)) => calls,
        Some(Step::AwaitPerson(jobs)) => {
            say_what_asks(&session, &jobs, redactor, answers);
            return Ok(());
        }
        Some(Step::AwaitClient(calls)) => {
            for call in &calls {
                let line = format!("waits for its client: {} ({call})", readable(&session, call));
                eprint_line(&redactor.redact(&line));
            }
            return Ok(());
        }
        Some(Step::CallModel { .. } | Step::Gate(_) | Step::RunTools(_) | Step::Done(_)) | None => return Ok(()),
    };
    for call in &calls {
        let gated = session
            .turn()
            .and_then(|turn| turn.call(call))
            .and_then(|call| call.gated.as_ref());
        let digest = gated
            .and_then(|gated| gated.digest.as_ref())
            .map(Digest::short)
            .unwrap_or_default();
        let line = format!(
            "waits for an answer: {} ({call}, digest {digest})",
            readable(&session, call)
        );
        eprint_line(&redactor.redact(&line));
    }
    eprint_line(&match answers {
        Answers::Here => {
            format!("answer at a terminal: aish resume {id}; from a script: --approve CALL_ID or --deny CALL_ID")
        }
        Answers::AtServer => format!("answer at `aish serve`: GET /api/sessions/{id} says under which session_id"),
    });
    Ok(())
}

/// A call as a person reads it.
fn readable(session: &Session, call: &CallId) -> String {
    let event = session.call_event(call);
    event.map_or_else(String::new, |event| {
        readable_call(&event.function.name, &event.function.arguments)
    })
}

/// Says what calls ask in the middle that wait for an answer to it (SPEC 6.9).
fn say_what_asks(session: &Session, jobs: &[Job], redactor: &Redactor, answers: Answers) {
    for job in jobs {
        let name = session.call_event(&job.call).map(|call| call.function.name.as_str());
        let asks = session.suspension(&job.call).map(|data| data.asks.join("; "));
        let line = format!(
            "waits for an answer: {} asks: {} ({})",
            name.unwrap_or_default(),
            asks.unwrap_or_default(),
            job.call
        );
        eprint_line(&redactor.redact(&line));
    }
    let id = session.id();
    eprint_line(&match answers {
        Answers::Here => format!("answer at a terminal: aish resume {id}; decline from a script: --deny CALL_ID"),
        Answers::AtServer => format!("end the turn at `aish serve`: POST /api/sessions/{id}/cancel"),
    });
}

async fn title(store: &dyn Store, id: &SessionId) -> Result<String, Failure> {
    let sessions = store.list(SessionFilter::default()).await?;
    Ok(sessions
        .into_iter()
        .find(|session| session.id == *id)
        .map(|session| session.title)
        .unwrap_or_default())
}

/// An export holds everything that was said: it is its user's alone.
fn create_private(path: &Path) -> Result<std::fs::File, Failure> {
    use std::os::unix::fs::OpenOptionsExt as _;
    std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| Failure::usage(format!("cannot write to {}: {error}", path.display())))
}

/// Writes to standard output; a reader that has gone away is not an error.
///
/// # Errors
/// Anything else went wrong.
pub fn print(text: &str) -> Result<u8, Failure> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("cannot write to standard output: {error}")))
        }
        Ok(()) | Err(_) => Ok(DONE),
    }
}
