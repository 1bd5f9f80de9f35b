//! Killed anywhere, a conversation continues from the last event (SPEC 0, 2.6, 3.2): for every append of several scripts, the
//! process dies just before or just after it, another driver goes on from the same ledger, and it comes to the same end.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use aish_core::event::{Answer, Body, Event, ReplyStop, ResultEnd};
use aish_core::message::Message;
use aish_core::session::Session;
use aish_core::turn::{StopReason, Turn};
use aish_engine::{AnswerRequest, Driver, Engine, EngineError, Notices, Outcome};
use aish_provider::scripted::{Act, Scripted};
use aish_provider::{ErrorKind, Provider, ProviderError, ReplyStream, Request};
use aish_store::memory::MemoryStore;
use aish_store::sqlite::SqliteStore;
use aish_store::{Owner, Store};
use aish_tools::Tool;
use futures_util::future::BoxFuture;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use support::probe::{Doing, Probe};
use support::watched::{Fate, Watched};
use support::{another_owner, assert_saved, assert_settled, brief_failure, never, no, results, within, yes};

/// A model that says the same to the same conversation: what it says depends on how many replies it has given, so that it
/// can be asked again after a crash. One request in it may fail first.
struct Steady {
    replies: Vec<Act>,
    fails_before: Option<usize>,
    failures: AtomicUsize,
}

impl Provider for Steady {
    fn send<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Box<dyn ReplyStream>, ProviderError>> {
        let is_reply = |message: &&Message| matches!(message, Message::Assistant { .. });
        let given = request.messages.iter().filter(is_reply).count();
        let act = if self.fails_before == Some(given) && self.failures.fetch_add(1, Ordering::SeqCst) == 0 {
            brief_failure(ErrorKind::Connect)
        } else {
            self.replies[given].clone()
        };
        Box::pin(async move { Scripted::new([act]).send(request).await })
    }
}

/// A conversation: what is asked, what the model says, and what the person answers to every call asked about.
struct Script {
    name: &'static str,
    questions: &'static [&'static str],
    replies: Vec<Act>,
    fails_before: Option<usize>,
    answer: Answer,
}

fn scripts() -> Vec<Script> {
    let call = |tool, n: u32| (tool, format!(r#"{{"n":{n}}}"#));
    let calls = |calls: &[(&str, String)]| {
        let calls: Vec<(&str, &str)> = calls.iter().map(|(tool, text)| (*tool, text.as_str())).collect();
        Act::calls(&calls)
    };
    let script = |name, questions, replies| Script {
        name,
        questions,
        replies,
        fails_before: None,
        answer: Answer::Approve,
    };
    vec![
        script("talk", &["one", "two"], vec![Act::text("first"), Act::text("second")]),
        script(
            "rounds",
            &["go"],
            vec![
                calls(&[call("reader", 1), call("reader", 2)]),
                calls(&[call("writer", 3), call("reader", 4), call("no_such_tool", 5)]),
                Act::text("done"),
            ],
        ),
        script(
            "asking in the middle",
            &["go"],
            vec![
                calls(&[call("reader", 1), call("asker", 2), call("writer", 3)]),
                calls(&[call("asker", 4), call("asker", 4)]),
                Act::text("answered"),
            ],
        ),
        script(
            "twice",
            &["go", "again"],
            vec![
                calls(&[call("writer", 1), call("writer", 1)]),
                Act::text("once"),
                calls(&[call("writer", 2)]),
                Act::text("twice"),
            ],
        ),
        Script {
            answer: Answer::Deny,
            ..script(
                "declined",
                &["go"],
                vec![calls(&[call("writer", 1), call("reader", 2)]), Act::text("as you wish")],
            )
        },
        script(
            "breaking off",
            &["go", "again"],
            vec![broken_off(), Act::text("second")],
        ),
        script(
            "nothing but calls that cannot be",
            &["go"],
            vec![
                calls(&[call("no_such_tool", 1)]),
                calls(&[("reader", "{".to_owned())]),
                Act::text("sorry"),
            ],
        ),
        Script {
            fails_before: Some(1),
            ..script(
                "failing",
                &["go"],
                vec![calls(&[call("reader", 1)]), Act::text("after all")],
            )
        },
    ]
}

/// Text, and then an error of the stream.
fn broken_off() -> Act {
    let Act::Reply { deltas, mut reply } = Act::text("The answer is") else {
        panic!("a reply");
    };
    reply.stop = ReplyStop::Truncated;
    reply.error = Some(ProviderError {
        kind: ErrorKind::Stream,
        message: "the stream says it failed".to_owned(),
        retry_after: None,
    });
    Act::Reply { deltas, reply }
}

/// What a run of a script came to.
#[derive(Debug, PartialEq)]
struct End {
    reasons: Vec<StopReason>,
    reply: String,
    messages: Vec<Message>,
}

/// One run of a script: its tools and its model live on, like the world outside a process that dies.
struct Run {
    script: Script,
    model: Arc<Steady>,
    reader: Arc<Probe>,
    writer: Arc<Probe>,
    asker: Arc<Probe>,
    ledger: Arc<dyn Store>,
    folder: tempfile::TempDir,
    /// The session, once there is one.
    session: Mutex<Option<aish_core::SessionId>>,
}

impl Run {
    fn new(script: Script, ledger: Arc<dyn Store>) -> Self {
        let model = Arc::new(Steady {
            replies: script.replies.clone(),
            fails_before: script.fails_before,
            failures: AtomicUsize::new(0),
        });
        Self {
            script,
            model,
            reader: Probe::reader("reader", Doing::Answer("read".to_owned())),
            writer: Probe::writer("writer", Doing::Answer("wrote".to_owned())),
            asker: Probe::mcp("asker", Doing::Ask(None)),
            ledger,
            folder: tempfile::tempdir().unwrap(),
            session: Mutex::default(),
        }
    }

    fn process(&self, store: Arc<dyn Store>, owner: Owner) -> Arc<Engine> {
        let tools: Vec<Arc<dyn Tool>> = vec![self.reader.clone(), self.writer.clone(), self.asker.clone()];
        let folder = self.folder.path().canonicalize().unwrap();
        support::engine(store, owner, self.model.clone(), tools, &folder)
    }

    /// Does what is left of the script, as a front end does: goes on with an open turn, answers, asks the next question.
    async fn converse(&self, engine: Arc<Engine>, notices: &Notices) -> Result<Driver, EngineError> {
        let known = self.session.lock().unwrap().clone();
        let mut driver = match known {
            Some(id) => Driver::open(engine, id).await?,
            None => Driver::create(engine),
        };
        *self.session.lock().unwrap() = Some(driver.session().id().clone());
        for (n, question) in self.script.questions.iter().enumerate() {
            let number = u64::try_from(n + 1).unwrap();
            let turn = driver.session().turn();
            if turn.is_some_and(|turn| turn.number() > number || (turn.number() == number && turn.ended().is_some())) {
                continue;
            }
            if driver.session().open_turn().is_none() {
                driver.start(question, Vec::new()).await?;
            }
            loop {
                match driver.drive(notices, never()).await? {
                    Outcome::Asking(pending) => {
                        for call in &pending {
                            driver.answer(self.answer(call)).await?;
                        }
                    }
                    // Somebody is here by now.
                    Outcome::Questions(_) => driver.attend(),
                    Outcome::AwaitingClient(pending) => panic!("nothing is the client's: {pending:?}"),
                    Outcome::Done(_) => break,
                }
            }
        }
        Ok(driver)
    }

    fn answer(&self, call: &aish_engine::Pending) -> AnswerRequest {
        match self.script.answer {
            Answer::Approve => yes(call),
            Answer::Deny => no(call, Some("no")),
        }
    }

    fn end(&self, driver: &Driver) -> End {
        let session = driver.session();
        assert_settled(session);
        let reason = |event: &Event| {
            if let Body::TurnEnded(ended) = &event.body {
                Some(ended.reason)
            } else {
                None
            }
        };
        let said = |event: &&Event| matches!(event.body, Body::Assistant(_));
        End {
            reasons: session.events().iter().filter_map(reason).collect(),
            reply: session.events().iter().rfind(said).unwrap().content.clone(),
            messages: session.projection().messages,
        }
    }
}

/// Runs a script whose process dies at an append, and goes on with it in another process.
async fn die_at(script: Script, ledger: Arc<dyn Store>, append: usize, fate: Fate, whole: &End) {
    let what = format!("{}: {fate:?} append {append}", script.name);
    let run = Run::new(script, ledger);
    let dying = Watched::deciding(
        Arc::clone(&run.ledger),
        move |n, _| {
            if n == append { fate } else { Fate::Write }
        },
    );
    let engine = run.process(dying.clone(), Owner::this_process());
    let unheard = Notices::new();
    within(async {
        tokio::select! {
            biased;
            () = dying.died() => {}
            survived = run.converse(engine, &unheard) => panic!("{what}: {:?}", survived.map(|_| ())),
        }
    })
    .await;
    let ran = (run.reader.runs(), run.writer.runs());
    let cut = cut_calls(&run).await;

    // The same owner takes its own lease again; SPEC 2.12 of dead owners is the store's to prove.
    let notices = Notices::new();
    let engine = run.process(Arc::clone(&run.ledger), Owner::this_process());
    let driver = within(run.converse(engine, &notices)).await.unwrap();
    let end = run.end(&driver);
    assert_saved(&driver).await;
    assert_eq!((&end.reasons, &end.reply), (&whole.reasons, &whole.reply), "{what}");

    let doubts = support::statuses(&notices)
        .iter()
        .filter(|line| line.starts_with("in doubt: "))
        .count();
    let interrupted = results(driver.session())
        .iter()
        .filter(|result| result.end == ResultEnd::Interrupted)
        .count();
    assert_eq!((doubts, interrupted), (cut, cut), "{what}");
    if cut == 0 {
        assert_eq!(end.messages, whole.messages, "{what}");
    }
    // Each call that was started ran once at most: those cut off ran before the crash or never.
    let started = driver
        .session()
        .events()
        .iter()
        .filter(|event| event.body.kind() == "call_started")
        .count();
    let runs = run.reader.runs() + run.writer.runs() + run.asker.runs();
    assert!(runs <= started && started - runs <= cut, "{what}: {runs} of {started}");
    // SPEC 6.9: each answer is told once at most.
    let mut told = run.asker.went_on();
    told.dedup();
    assert_eq!(told.len(), run.asker.went_on().len(), "{what}");
    assert!(ran.0 <= run.reader.runs() && ran.1 <= run.writer.runs());
}

/// How many calls the ledger has as cut off: started, and neither ended nor waiting.
async fn cut_calls(run: &Run) -> usize {
    let id = run.session.lock().unwrap().clone().unwrap();
    let session = Session::load(id.clone(), run.ledger.load(&id, 0).await.unwrap());
    let calls = session.turn().map(Turn::calls).unwrap_or_default();
    calls.iter().filter(|call| call.is_in_doubt()).count()
}

/// Every crash point of every script, over ledgers that `ledger` makes.
async fn at_every_append(ledger: impl Fn() -> Arc<dyn Store>) {
    for n in 0..scripts().len() {
        let script = || scripts().remove(n);
        let run = Run::new(script(), ledger());
        let counting = Watched::deciding(Arc::clone(&run.ledger), |_, _| Fate::Write);
        let engine = run.process(counting.clone(), Owner::this_process());
        let driver = within(run.converse(engine, &Notices::new())).await.unwrap();
        let whole = run.end(&driver);
        assert!(counting.appends() > 3, "{}", run.script.name);
        for append in 1..=counting.appends() {
            for fate in [Fate::DieBefore, Fate::DieAfter] {
                die_at(script(), ledger(), append, fate, &whole).await;
            }
        }
    }
}

/// SPEC 2.6, 3.2: killed before or after any append, the session comes to the same end, and no call runs twice.
#[tokio::test]
async fn in_memory() {
    at_every_append(|| Arc::new(MemoryStore::new())).await;
}

/// SPEC 2.6, 3.2: the same over the real ledger.
#[tokio::test]
async fn in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let made = AtomicUsize::new(0);
    at_every_append(|| {
        let n = made.fetch_add(1, Ordering::SeqCst);
        Arc::new(SqliteStore::new(folder.path().join(format!("{n}.db"))))
    })
    .await;
}

/// SPEC 2.12: a driver that may live elsewhere keeps its session until its lease has run out.
#[tokio::test]
async fn a_driver_of_unknown_fate_keeps_its_lease() {
    let run = Run::new(scripts().remove(1), Arc::new(MemoryStore::new()));
    let dying = Watched::deciding(Arc::clone(&run.ledger), |n, _| {
        if n == 3 { Fate::DieAfter } else { Fate::Write }
    });
    let engine = run.process(dying.clone(), another_owner());
    let unheard = Notices::new();
    within(async {
        tokio::select! {
            biased;
            () = dying.died() => {}
            _ = run.converse(engine, &unheard) => panic!("it survived"),
        }
    })
    .await;
    let engine = run.process(Arc::clone(&run.ledger), Owner::this_process());
    let refused = within(run.converse(engine, &Notices::new())).await.map(|_| ());
    assert!(
        matches!(refused, Err(EngineError::Store(aish_store::StoreError::Leased { .. }))),
        "{refused:?}"
    );
}
