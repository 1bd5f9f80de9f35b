//! `search_memory`: what a model finds of what was said before.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use aish_core::event::{Body, Command, Draft, Served, TurnStarted};
use aish_core::id::SessionId;
use aish_core::policy::{ApprovalMode, Rule};
use aish_core::session::Session;
use aish_engine::{ChatRequest, Conversations, ConversationsSettings, SearchMemory};
use aish_provider::scripted::Act;
use aish_store::memory::MemoryStore;
use aish_store::{Durability, Hold, Store};
use aish_tools::Tool;
use aish_tools::web::{Proxies, WebGetTool};
use serde_json::{Value, json};
use std::sync::Arc;
use support::{World, ask, asking, done, drive, finish, no, results, within};

/// 2026-11-21 23:59 UTC.
const THEN_MS: u64 = 1_795_305_599_999;

async fn said(store: &dyn Store, session: &SessionId, drafts: Vec<Draft>) {
    let placed = store
        .append(session, 0, drafts, THEN_MS, Durability::Committed, Hold::Nothing)
        .await;
    placed.unwrap();
}

/// A world over this ledger whose model searches it, once for each query.
fn searching(store: &Arc<MemoryStore>, queries: &[&str]) -> World {
    let mut acts = Vec::new();
    for query in queries {
        let arguments = json!({ "query": query }).to_string();
        acts.extend([Act::calls(&[(SearchMemory::NAME, &arguments)]), Act::text("found")]);
    }
    let ledger = Arc::clone(store) as Arc<dyn Store>;
    let tool = Arc::new(SearchMemory::over(Arc::clone(&ledger)));
    World::over(ledger, acts, vec![tool])
}

/// SPEC 4, 5.2: the places are told by time, session, speaker and a piece of what was said; nobody is asked.
#[tokio::test]
async fn what_was_said_is_found() {
    let store = Arc::new(MemoryStore::new());
    let session = SessionId::from_parts(7, 7);
    let ran = Command {
        line: "nixos-rebuild switch --flake".to_owned(),
        ..Command::default()
    };
    let drafts = vec![
        Draft::user(0, "How do I pin the flake?\nIt moved \u{1b}[31magain."),
        Draft::new(0, "nixos-rebuild switch --flake", Body::Command(ran)),
    ];
    said(store.as_ref(), &session, drafts).await;
    let world = searching(&store, &["flake"]);
    let mut driver = world.driver();
    finish(&mut driver, "what of the flake?").await;
    let result = results(driver.session())[0];
    assert!(result.success, "{result:?}");
    let found: Value = serde_json::from_str(&result.output).unwrap();
    assert_eq!(found["count"], 2);
    let output = found["output"].as_str().unwrap();
    let title = "How do I pin the flake? It moved";
    for line in [
        format!("2026-11-21 23:59 UTC, session {session} ({title}"),
        "the user said:\n  How do I pin the flake? It moved".to_owned(),
        "the user ran:\n  nixos-rebuild switch --flake".to_owned(),
    ] {
        assert!(output.contains(&line), "{line}: {output}");
    }
    assert!(
        !output.contains('\u{1b}') && !output.contains("what of the flake"),
        "{output}"
    );
}

/// SPEC 4: the turn that asks does not find itself; an earlier one of its session is found.
#[tokio::test]
async fn the_own_question_is_left_out() {
    let store = Arc::new(MemoryStore::new());
    let world = searching(&store, &["zebra", "zebra"]);
    let mut driver = world.driver();
    finish(&mut driver, "a zebra, first").await;
    finish(&mut driver, "a zebra, second").await;
    let outputs: Vec<Value> = results(driver.session())
        .iter()
        .map(|result| serde_json::from_str(&result.output).unwrap())
        .collect();
    assert_eq!(outputs[0], json!({"output": "", "count": 0}));
    assert_eq!(outputs[1]["count"], 1);
    let output = outputs[1]["output"].as_str().unwrap();
    assert!(
        output.ends_with("this session, the user said:\n  a zebra, first"),
        "{output}"
    );
}

/// SPEC 4, 4.3: whatever is asked for is no error, and what is found is bounded.
#[tokio::test]
async fn any_query_and_bounded_answers() {
    let store = Arc::new(MemoryStore::new());
    let text = format!("needle {}", "hay ".repeat(500));
    for n in 0..100 {
        said(
            store.as_ref(),
            &SessionId::from_parts(n, 1),
            vec![Draft::user(0, &text)],
        )
        .await;
    }
    let queries = ["needle", "\"", "NEAR(a, ^ *", "", "needle AND nothing*"];
    let world = searching(&store, &queries);
    let mut driver = world.driver();
    for _ in queries {
        finish(&mut driver, "go").await;
    }
    let results = results(driver.session());
    let counts: Vec<u64> = results
        .iter()
        .map(|result| {
            serde_json::from_str::<Value>(&result.output).unwrap()["count"]
                .as_u64()
                .unwrap()
        })
        .collect();
    assert_eq!(counts, [12, 0, 0, 0, 0]);
    assert!(results[0].output.len() < 6_000, "{}", results[0].output.len());
}

/// SPEC 5.1, 5.2: a rule about it holds, and so does taking away the rule that reading is not asked about.
#[tokio::test]
async fn it_is_judged() {
    let store = Arc::new(MemoryStore::new());
    let world = searching(&store, &["x"]);
    world
        .engine
        .update(|settings| settings.policy.read_only_inside_tree = false);
    let mut driver = world.driver();
    assert_eq!(asking(ask(&mut driver, "go").await).len(), 1);
    let world = searching(&store, &["x"]);
    world
        .engine
        .update(|settings| settings.policy.deny = vec![Rule::parse(SearchMemory::NAME).unwrap()]);
    let mut driver = world.driver();
    finish(&mut driver, "go").await;
    assert!(!results(driver.session())[0].success);
}

/// A session that begins with a turn, of a person's at a terminal or of a client's.
async fn began(store: &dyn Store, n: u64, served: Option<Served>, text: &str) -> SessionId {
    let session = SessionId::from_parts(n, 1);
    let data = TurnStarted {
        served,
        ..TurnStarted::default()
    };
    let drafts = vec![Draft::turn_started(1, data), Draft::user(1, text)];
    said(store, &session, drafts).await;
    session
}

/// What a client is told of the search for `zebra` that its message leads to.
async fn found_by_client(world: &World, conversation: Option<SessionId>) -> String {
    let settings = ConversationsSettings {
        pending_ttl_ms: None,
        strict_call_id: false,
        turns_max: 1,
    };
    let conversations = Conversations::new(Arc::clone(&world.engine), settings);
    let request = ChatRequest {
        message: "go".to_owned(),
        conversation,
        ..ChatRequest::default()
    };
    let told = within(async {
        let ticket = conversations.chat(request).await.unwrap();
        conversations.told(ticket).await.unwrap()
    });
    let events = world.engine.store.load(&told.await.session, 0).await.unwrap();
    let output = events.iter().rev().find_map(|event| event.tool_result());
    output.unwrap().output.clone()
}

/// SPEC 4, 9.2: a client's model finds what was said in sessions that clients began and in its own, and nothing of what a person said
/// at a terminal, however much of it there is; a person's finds all of it.
#[tokio::test]
async fn a_client_finds_what_clients_said() {
    let store = Arc::new(MemoryStore::new());
    for n in 0..50 {
        began(store.as_ref(), n, None, "zebra zebra of the terminal").await;
    }
    let piped = SessionId::from_parts(50, 1);
    said(store.as_ref(), &piped, vec![Draft::user(0, "zebra of a log")]).await;
    began(store.as_ref(), 51, Some(Served::default()), "a zebra of a client").await;
    let world = searching(&store, &["zebra", "zebra", "zebra"]);
    let found = found_by_client(&world, None).await;
    assert!(
        found.contains("a zebra of a client") && found.contains(r#""count":1"#),
        "{found}"
    );

    // What a model of this conversation is sent anyway.
    let own = began(store.as_ref(), 52, None, "zebra said before").await;
    let session = Session::load(own.clone(), store.load(&own, 0).await.unwrap());
    let closing = session.turn().unwrap().cancelling("stopped");
    let closed = store.append(
        &own,
        session.last_seq(),
        closing,
        THEN_MS,
        Durability::Committed,
        Hold::Nothing,
    );
    closed.await.unwrap();
    let found = found_by_client(&world, Some(own)).await;
    assert!(
        found.contains("zebra said before") && found.contains(r#""count":2"#),
        "{found}"
    );

    let mut driver = world.driver();
    finish(&mut driver, "go").await;
    assert!(results(driver.session())[0].output.contains(r#""count":12"#));
}

/// SPEC 4, 9.2: what a person said and ran at a terminal in a conversation that a client began is not for other clients; what a client
/// said there before and after is, however much happened in its turn.
#[tokio::test]
async fn a_client_finds_no_turns_of_a_terminal() {
    let store = Arc::new(MemoryStore::new());
    let session = SessionId::from_parts(60, 1);
    let started = |turn, served| {
        let data = TurnStarted {
            served,
            ..TurnStarted::default()
        };
        Draft::turn_started(turn, data)
    };
    let ran = Command {
        line: "zebra at the prompt".to_owned(),
        ..Command::default()
    };
    let mut drafts = vec![
        started(1, Some(Served::default())),
        Draft::user(1, "a zebra of a client"),
        Draft::new(0, "zebra at the prompt", Body::Command(ran)),
        started(2, None),
        Draft::user(2, "a zebra of a person"),
        started(3, Some(Served::default())),
    ];
    drafts.extend((0..100).map(|_| Draft::user(3, "go on")));
    drafts.push(Draft::user(3, "a zebra at last"));
    said(store.as_ref(), &session, drafts).await;
    let world = searching(&store, &["zebra"]);
    let found = found_by_client(&world, None).await;
    for (text, is_there) in [
        ("a zebra of a client", true),
        ("a zebra at last", true),
        ("a zebra of a person", false),
        ("zebra at the prompt", false),
    ] {
        assert_eq!(
            found.matches(&format!(":\\n  {text}")).count(),
            usize::from(is_there),
            "{text}: {found}"
        );
    }
}

/// SPEC 5.2: in `auto` a page is fetched unasked until the model has searched other conversations, and again once the context with
/// what it found was emptied.
#[tokio::test]
async fn what_was_found_is_not_carried_away() {
    let store = Arc::new(MemoryStore::new());
    let ledger = Arc::clone(&store) as Arc<dyn Store>;
    let page = |n: usize| {
        Act::calls(&[(
            "web_get",
            &json!({ "url": format!("https://docs.example/{n}") }).to_string(),
        )])
    };
    let search = Act::calls(&[(SearchMemory::NAME, r#"{"query":"zebra"}"#)]);
    let acts = [
        page(1),
        Act::text("read"),
        search,
        Act::text("found"),
        page(2),
        Act::text("not read"),
        page(3),
        Act::text("read"),
    ];
    let web = WebGetTool::new(|| Err("no network in a test".to_owned()), Proxies::default());
    let tools: Vec<Arc<dyn Tool>> = vec![Arc::new(SearchMemory::over(Arc::clone(&ledger))), Arc::new(web)];
    let world = World::over(ledger, acts, tools);
    world.engine.update(|settings| settings.mode = ApprovalMode::Auto);
    let mut driver = world.driver();
    finish(&mut driver, "read it").await;
    finish(&mut driver, "what did we say?").await;
    let [asked] = &asking(ask(&mut driver, "read more").await)[..] else {
        panic!("one call")
    };
    assert!(asked.rule.contains("other conversations"), "{}", asked.rule);
    driver.answer(no(asked, None)).await.unwrap();
    done(drive(&mut driver).await.unwrap());
    driver.clear().await.unwrap();
    finish(&mut driver, "read on").await;
}
