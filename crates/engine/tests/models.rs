//! Which model is asked: chains of those that stand in, routing, and conversations that do not fit.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use aish_core::message::{Message, Part};
use aish_core::turn::StopReason;
use aish_engine::{Driver, Engine, Model, Models, Notice, Notices, Routing};
use aish_provider::scripted::{Act, Scripted};
use aish_provider::{ErrorKind, ProviderError};
use aish_store::Owner;
use aish_store::memory::MemoryStore;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use support::{assert_settled, brief_failure, done, finish, never, statuses, within};
use tempfile::TempDir;

/// An engine of several scripted models.
struct Desk {
    engine: Arc<Engine>,
    models: BTreeMap<String, (Arc<Scripted>, Model)>,
    folder: TempDir,
}

struct Named(BTreeMap<String, Model>);

impl Models for Named {
    fn model(&self, name: &str) -> Result<Model, String> {
        self.0
            .get(name)
            .cloned()
            .ok_or_else(|| format!("there is no model {name:?}"))
    }
}

/// A model: its name, the models that stand in for it, the tokens that fit it, and what it does.
type Line<'l> = (&'l str, &'l [&'l str], Option<u64>, Vec<Act>);

impl Desk {
    /// The first model is the one to start with.
    fn new(lines: Vec<Line<'_>>) -> Self {
        let first = lines[0].0.to_owned();
        let models: BTreeMap<String, (Arc<Scripted>, Model)> = lines
            .into_iter()
            .map(|(name, fallback, context_window, acts)| {
                let scripted = Arc::new(Scripted::new(acts));
                let model = Model {
                    name: name.to_owned(),
                    asked_for: None,
                    provider: scripted.clone(),
                    context_window,
                    max_output_tokens: None,
                    images: true,
                    fallback: fallback.iter().map(|name| (*name).to_owned()).collect(),
                };
                (name.to_owned(), (scripted, model))
            })
            .collect();
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(MemoryStore::new());
        let owner = Owner::this_process();
        let unused = Arc::new(Scripted::new([]));
        let engine = support::engine(store, owner, unused, Vec::new(), folder.path());
        let mut engine = Arc::into_inner(engine).unwrap();
        let named = models.iter().map(|(name, (_, model))| (name.clone(), model.clone()));
        engine.models = Arc::new(Named(named.collect()));
        let engine = Arc::new(engine);
        engine.update(|settings| settings.model = first);
        Self { engine, models, folder }
    }

    fn driver(&self) -> Driver {
        Driver::create(Arc::clone(&self.engine))
    }

    /// How often each model was asked, by name.
    fn asked(&self) -> Vec<(&str, usize)> {
        let asked = |(scripted, _): &(Arc<Scripted>, Model)| scripted.asked().len();
        self.models
            .iter()
            .map(|(name, model)| (name.as_str(), asked(model)))
            .collect()
    }
}

fn refused() -> Act {
    brief_failure(ErrorKind::Auth)
}

fn overflow() -> Act {
    Act::Fail(ProviderError {
        kind: ErrorKind::ContextOverflow,
        message: "too long".to_owned(),
        retry_after: None,
    })
}

/// SPEC 7.6: a chain is followed to its end, each link after its own attempts; the turn stays with the one that answers, and
/// the next turn begins with the first again.
#[tokio::test]
async fn a_chain_is_followed() {
    let desk = Desk::new(vec![
        ("desk", &["cloud"], None, vec![refused(), Act::text("again")]),
        ("cloud", &["spare"], None, vec![refused()]),
        (
            "spare",
            &["desk"],
            None,
            vec![Act::calls(&[("glob", r#"{"pattern":"*"}"#)]), Act::text("there")],
        ),
    ]);
    let mut driver = desk.driver();
    let notices = Notices::new();
    driver.start("hm?", Vec::new()).await.unwrap();
    let finished = done(within(driver.drive(&notices, never())).await.unwrap());
    assert_eq!((finished.reason, finished.reply.as_str()), (StopReason::End, "there"));
    assert_eq!(finished.model.as_deref(), Some("spare"));
    assert_eq!(desk.asked(), [("cloud", 1), ("desk", 1), ("spare", 2)]);
    let told: Vec<String> = statuses(&notices);
    assert_eq!(
        told,
        [
            "scripted failure; asking cloud instead",
            "scripted failure; asking spare instead"
        ]
    );
    assert_settled(driver.session());
    assert_eq!(finish(&mut driver, "and?").await.reply, "again");
}

/// SPEC 7.6: what can be asked for again is, before another model is; a model that is not there is asked twice only.
#[tokio::test]
async fn attempts_come_before_the_chain() {
    let busy = || brief_failure(ErrorKind::Status(429));
    let desk = Desk::new(vec![
        ("desk", &["gone", "cloud"], None, vec![busy(), busy(), busy(), busy()]),
        ("cloud", &[], None, vec![Act::text("yes")]),
    ]);
    assert_eq!(finish(&mut desk.driver(), "hm?").await.reply, "yes");
    assert_eq!(desk.asked(), [("cloud", 1), ("desk", 4)]);
    let away = || brief_failure(ErrorKind::Connect);
    let desk = Desk::new(vec![
        ("desk", &["cloud"], None, vec![away(), away(), away()]),
        ("cloud", &[], None, vec![refused()]),
    ]);
    let finished = finish(&mut desk.driver(), "hm?").await;
    assert_eq!(finished.reason, StopReason::ModelFailed);
    assert_eq!(desk.asked(), [("cloud", 1), ("desk", 2)]);
}

/// Settings of `[routing]`.
fn route(desk: &Desk, quick: Option<&str>, work: Option<&str>, summary: Option<&str>) {
    let routing = Routing {
        quick: quick.map(str::to_owned),
        quick_chars_max: 10,
        work: work.map(str::to_owned),
        summary: summary.map(str::to_owned),
    };
    desk.engine.update(|settings| settings.routing = routing);
}

/// SPEC 7.1: short questions go to the quick model, the rest of a turn with tools to the one for work, and summing up at a
/// limit to its own.
#[tokio::test]
async fn routing() {
    let glob = || Act::calls(&[("glob", r#"{"pattern":"*"}"#)]);
    let desk = Desk::new(vec![
        ("desk", &[], None, vec![Act::text("long")]),
        ("small", &[], None, vec![Act::text("short"), glob(), glob()]),
        ("large", &[], None, vec![Act::text("worked")]),
        ("sum", &[], None, vec![Act::text("in short")]),
    ]);
    route(&desk, Some("small"), Some("large"), Some("sum"));
    let mut driver = desk.driver();
    assert_eq!(finish(&mut driver, "0123456789").await.reply, "short");
    assert_eq!(finish(&mut driver, "0123456789a").await.reply, "long");
    assert_eq!(finish(&mut driver, "list?").await.reply, "worked");
    desk.engine.update(|settings| settings.limits.max_tool_turns = 1);
    assert_eq!(finish(&mut driver, "list?").await.reply, "in short");
    assert_eq!(desk.asked(), [("desk", 1), ("large", 1), ("small", 3), ("sum", 1)]);
}

/// SPEC 7.1: a route to a model that cannot be asked is left out, and said once.
#[tokio::test]
async fn routing_to_nobody() {
    let desk = Desk::new(vec![("desk", &[], None, vec![Act::text("a"), Act::text("b")])]);
    route(&desk, Some("gone"), None, None);
    let mut driver = desk.driver();
    let notices = Notices::new();
    driver.watch(&notices);
    for _ in 0..2 {
        driver.start("hm?", Vec::new()).await.unwrap();
        done(within(driver.drive(&notices, never())).await.unwrap());
    }
    assert_eq!(statuses(&notices), [r#"routing is left out: there is no model "gone""#]);
}

/// SPEC 7.6: a conversation that does not fit even without what is older goes to a model it fits, if there is one.
#[tokio::test]
async fn a_conversation_too_long_is_handed_over() {
    let long = "word ".repeat(2_000);
    let lines = |fallback| -> Vec<Line<'_>> {
        vec![
            ("desk", fallback, Some(2_048), vec![Act::text("small")]),
            ("cloud", &[], Some(100_000), vec![Act::text("large")]),
        ]
    };
    let desk = Desk::new(lines(&["cloud"]));
    assert_eq!(finish(&mut desk.driver(), &long).await.reply, "large");
    // Without one it is asked all the same: the estimate errs towards too many.
    let desk = Desk::new(lines(&[]));
    assert_eq!(finish(&mut desk.driver(), &long).await.reply, "small");
}

/// SPEC 4.3, 7.6: what a server refuses as too long is sent again with less of what is older, and then no more; the last
/// question always stays.
#[tokio::test]
async fn a_refusal_as_too_long_is_learnt_from() {
    let acts = vec![
        Act::text(&"answer ".repeat(3_000)),
        Act::text("second"),
        overflow(),
        overflow(),
        Act::text("third"),
        Act::text("fourth"),
        overflow(),
    ];
    let desk = Desk::new(vec![("desk", &[], None, acts)]);
    let mut driver = desk.driver();
    finish(&mut driver, &"first ".repeat(3_000)).await;
    finish(&mut driver, "second?").await;
    assert_eq!(finish(&mut driver, "third?").await.reply, "third");
    let asked = desk.models["desk"].0.asked();
    let sizes: Vec<usize> = asked.iter().map(|asked| asked.messages.len()).collect();
    assert!(sizes[2] > sizes[3] || sizes[3] > sizes[4], "{sizes:?}");
    assert!(sizes[2] > sizes[4], "{sizes:?}");
    let question = Message::User {
        parts: vec![Part::text("third?")],
    };
    assert_eq!(asked[4].messages.last(), Some(&question));
    assert_eq!(finish(&mut driver, "fourth?").await.reply, "fourth");
    assert!(desk.models["desk"].0.asked()[5].messages.len() <= sizes[2]);
    driver.clear().await.unwrap();
    // Nothing is left to leave out.
    let finished = finish(&mut driver, "fifth?").await;
    assert_eq!(finished.reason, StopReason::ModelFailed);
    assert_settled(driver.session());
}

/// SPEC 7.6: the pause a server asks for is kept also where another model stands in.
#[tokio::test]
async fn a_pause_is_announced() {
    let later = Act::Fail(ProviderError {
        kind: ErrorKind::Status(429),
        message: "later".to_owned(),
        retry_after: Some(Duration::from_millis(7)),
    });
    let desk = Desk::new(vec![("desk", &[], None, vec![later, Act::text("now")])]);
    let mut driver = desk.driver();
    let notices = Notices::new();
    driver.start("hm?", Vec::new()).await.unwrap();
    done(within(driver.drive(&notices, never())).await.unwrap());
    let retrying = Notice::Retrying {
        attempt: 2,
        wait_ms: 7,
        problem: "later".to_owned(),
    };
    assert!(notices.drain().contains(&retrying));
}

/// SPEC 7.6: a model that was only routed to is not all there is: the one the session is with stands in for it, and answers
/// what the other would have to leave something out for.
#[tokio::test]
async fn a_routed_model_is_not_all_there_is() {
    let desk = Desk::new(vec![
        ("desk", &[], None, vec![Act::text("here")]),
        ("small", &["desk"], None, vec![refused()]),
    ]);
    route(&desk, Some("small"), None, None);
    assert_eq!(finish(&mut desk.driver(), "hm?").await.reply, "here");
    assert_eq!(desk.asked(), [("desk", 1), ("small", 1)]);

    let long = Act::text(&"answer ".repeat(1_000));
    let desk = Desk::new(vec![
        ("desk", &[], None, vec![long, Act::text("large")]),
        ("small", &[], Some(2_048), vec![Act::text("small")]),
    ]);
    route(&desk, Some("small"), None, None);
    let mut driver = desk.driver();
    finish(&mut driver, "a question that is not a short one").await;
    assert_eq!(finish(&mut driver, "and?").await.reply, "large");
}

/// SPEC 4.3, 7.6: a result too long for the model is cut to what its server says it takes, the last round's as well, and the
/// turn goes on.
#[tokio::test]
async fn a_result_too_long_is_cut() {
    let refusal = Act::Fail(ProviderError {
        kind: ErrorKind::ContextOverflow,
        message: "request (14004 tokens) exceeds the available context size (8192 tokens), try increasing it"
            .to_owned(),
        retry_after: None,
    });
    let read = Act::calls(&[("file_read", r#"{"path":"long.txt"}"#)]);
    let desk = Desk::new(vec![("desk", &[], None, vec![read, refusal, Act::text("read")])]);
    desk.engine
        .update(|settings| settings.limits.max_result_chars = 100_000);
    std::fs::write(desk.folder.path().join("long.txt"), "a line of it\n".repeat(5_000)).unwrap();
    let mut driver = desk.driver();
    assert_eq!(finish(&mut driver, "what is in it?").await.reply, "read");
    let asked = desk.models["desk"].0.asked();
    let given = |n: usize| match asked[n].messages.last() {
        Some(Message::Tool { output, .. }) => output.chars().count(),
        other => panic!("no result: {other:?}"),
    };
    assert!(
        given(1) > 60_000 && given(2) < 8_192 * 3,
        "{} then {}",
        given(1),
        given(2)
    );
    assert!(given(2) > 8_192, "{}", given(2));
    assert_settled(driver.session());
    // What was learnt holds for the next question too.
    desk.models["desk"].0.push(Act::text("still"));
    assert_eq!(finish(&mut driver, "sure?").await.reply, "still");
}

/// SPEC 10.4: what a server said of a conversation that does not fit is not lost where nothing more can be left out.
#[tokio::test]
async fn the_servers_words_stay() {
    let desk = Desk::new(vec![
        ("desk", &["cloud"], None, vec![overflow()]),
        ("cloud", &[], None, vec![Act::text("yes")]),
    ]);
    let mut driver = desk.driver();
    let notices = Notices::new();
    driver.start("hm?", Vec::new()).await.unwrap();
    done(within(driver.drive(&notices, never())).await.unwrap());
    assert_eq!(statuses(&notices), ["too long; asking cloud instead"]);
}

/// SPEC 7.6: a routed model that refuses the conversation as too long, and one that takes no images where there is one, gives
/// way to the session's own; nothing is left out for its sake.
#[tokio::test]
async fn a_routed_model_gives_way() {
    let desk = Desk::new(vec![
        (
            "desk",
            &[],
            None,
            vec![Act::text(&"answer ".repeat(500)), Act::text("all of it")],
        ),
        ("small", &[], None, vec![overflow()]),
    ]);
    route(&desk, Some("small"), None, None);
    let mut driver = desk.driver();
    finish(&mut driver, "a question that is not a short one").await;
    assert_eq!(finish(&mut driver, "and?").await.reply, "all of it");
    let asked = desk.models["desk"].0.asked();
    assert_eq!(asked[1].messages.len(), 3);
}
