//! Names in served turns: the other names that some built-in tools have there (SPEC 4.5), and those that only an MCP server's tool
//! can have, which no client stands in for (SPEC 6.1, 9.2).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use aish_core::event::ResultEnd;
use aish_core::id::SessionId;
use aish_core::message::ToolSpec;
use aish_core::policy::Rule;
use aish_core::session::Session;
use aish_engine::{ChatRequest, Conversations, ConversationsSettings, ServeError, Supply};
use aish_provider::scripted::Act;
use futures_util::future::BoxFuture;
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use support::probe::{Doing, Probe};
use support::{World, finish, results, within};

const SETTINGS: ConversationsSettings = ConversationsSettings {
    pending_ttl_ms: None,
    strict_call_id: false,
    turns_max: 1,
};

/// A reply that calls it, and one that ends the turn.
fn calling(name: &str, arguments: &serde_json::Value) -> [Act; 2] {
    [Act::calls(&[(name, &arguments.to_string())]), Act::text("done")]
}

/// The session of a served turn, once it is over.
async fn served(world: &World) -> Session {
    let conversations = Conversations::new(Arc::clone(&world.engine), SETTINGS);
    let request = ChatRequest {
        message: "go".to_owned(),
        ..ChatRequest::default()
    };
    let envelope = within(async {
        let ticket = conversations.chat(request).await.unwrap();
        conversations.told(ticket).await.unwrap()
    });
    let id = envelope.await.session;
    let events = world.engine.store.load(&id, 0).await.unwrap();
    Session::load(id, events)
}

/// Counts how often somebody waits for a tool that may yet come. Of servers that are configured, `away` is not connected.
#[derive(Default)]
struct Waited(AtomicUsize);

impl Supply for Waited {
    fn is_of_server(&self, tool: &str) -> bool {
        tool.starts_with("away__") || tool.starts_with("away.")
    }

    fn arrive<'a>(&'a self, _tool: &'a str) -> BoxFuture<'a, ()> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(std::future::ready(()))
    }
}

/// SPEC 4.5: a call by the other name runs the built-in tool, which the model is offered under its own name alone. Nobody waits for
/// a tool of that name to come.
#[tokio::test]
async fn other_names_run_the_builtin_tools() {
    let write = calling("write_file", &json!({"path": "made", "content": "by hand"}));
    for (acts, output) in [
        (write, "Wrote 7 bytes to made"),
        (calling("read_file", &json!({"path": "there"})), "as it was"),
        (calling("run_command", &json!({"command": "printf ran"})), "ran"),
    ] {
        let world = World::new(acts).full();
        world.write("there", "as it was");
        let waited = Arc::new(Waited::default());
        let supply: Arc<dyn Supply> = Arc::clone(&waited) as Arc<dyn Supply>;
        world
            .engine
            .tools
            .supplied_by(Arc::downgrade(&supply) as Weak<dyn Supply>);
        let session = served(&world).await;
        let result = results(&session)[0];
        assert!(result.success && result.output.contains(output), "{}", result.output);
        assert_eq!(waited.0.load(Ordering::SeqCst), 0);
        let offered: Vec<String> = world.model.asked()[0]
            .tools
            .iter()
            .map(|tool| tool.name.clone())
            .collect();
        assert_eq!(
            offered,
            ["glob", "file_read", "grep", "file_write", "file_edit", "bash"]
        );
    }
}

/// SPEC 4.5, 5.1: rules speak of a tool by its own name, whatever a model calls it.
#[tokio::test]
async fn rules_hold_for_other_names() {
    let world = World::new(calling("run_command", &json!({"command": "rm -rf there"}))).full();
    world.write("there", "as it was");
    world
        .engine
        .update(|settings| settings.policy.deny = vec![Rule::parse("bash(rm*)").unwrap()]);
    let session = served(&world).await;
    assert_eq!(results(&session)[0].end, ResultEnd::Denied);
    assert!(world.folder.join("there").exists());
    let call = session
        .turn()
        .unwrap()
        .call(&results(&session)[0].tool_call_id)
        .unwrap();
    assert_eq!(call.gated.as_ref().unwrap().rule, "deny rule bash(rm*)");
}

/// SPEC 3.9, 4.5: at a terminal nobody knows them.
#[tokio::test]
async fn at_a_terminal_they_are_unknown() {
    let world = World::new(calling("read_file", &json!({"path": "there"})));
    world.write("there", "as it was");
    let mut driver = world.driver();
    finish(&mut driver, "go").await;
    let result = results(driver.session())[0];
    assert_eq!(result.output, r#"{"error":"Unknown tool: read_file"}"#);
}

/// SPEC 6.1, 9.2: the name that a tool of an MCP server has on the wire is no client's: it cannot be declared, whether the server is
/// connected or not, and neither can the name people know it by.
#[tokio::test]
async fn names_of_servers_cannot_be_declared() {
    let world = World::with([], vec![Probe::mcp("git.push", Doing::Panic)]);
    let supply: Arc<dyn Supply> = Arc::new(Waited::default());
    world.engine.tools.supplied_by(Arc::downgrade(&supply));
    let conversations = Conversations::new(Arc::clone(&world.engine), SETTINGS);
    for (name, expect_taken) in [
        ("git__push", true),
        ("git.push", true),
        ("away__push", true),
        ("away.push", true),
        ("git__pull", false),
        ("get_weather", false),
    ] {
        let tool = ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            input_schema: json!({ "type": "object" }),
        };
        let request = ChatRequest {
            message: "go".to_owned(),
            // Refused after its tools were looked at: nothing is begun.
            conversation: Some(SessionId::new("nowhere")),
            tools: Some(vec![tool]),
            ..ChatRequest::default()
        };
        let refused = conversations.chat(request).await.map(|ticket| ticket.turn);
        let is_as_expected = if expect_taken {
            matches!(&refused, Err(ServeError::ToolTaken { name: taken, .. }) if taken == name)
        } else {
            matches!(&refused, Err(ServeError::Unknown(_)))
        };
        assert!(is_as_expected, "{name}: {refused:?}");
    }
}

/// SPEC 9.2, 6.4: a call of a server's tool by its wire name runs here; where the server is not connected the model is told so, and the
/// client is not asked to run it.
#[tokio::test]
async fn calls_of_servers_are_not_the_clients() {
    let push = Probe::mcp("git.push", Doing::Answer("pushed".to_owned()));
    let world = World::with(calling("git__push", &json!({"n": 1})), vec![push.clone()]).full();
    let session = served(&world).await;
    assert!(
        results(&session)[0].output.contains("pushed"),
        "{:?}",
        results(&session)
    );
    assert_eq!(push.runs(), 1);

    let world = World::new(calling("away__push", &json!({"n": 1}))).full();
    let supply: Arc<dyn Supply> = Arc::new(Waited::default());
    world.engine.tools.supplied_by(Arc::downgrade(&supply));
    let session = served(&world).await;
    let result = results(&session)[0];
    assert_eq!(result.end, ResultEnd::Invalid);
    assert!(result.output.contains("not connected"), "{}", result.output);
    let waits = session.events().iter().any(|event| event.body.kind() == "suspended");
    assert!(!waits, "{:?}", session.events());
}
