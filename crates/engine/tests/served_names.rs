//! The other names that some built-in tools have in served turns (SPEC 4.5).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use aish_core::event::ResultEnd;
use aish_core::policy::Rule;
use aish_core::session::Session;
use aish_engine::{ChatRequest, Conversations, ConversationsSettings, Supply};
use aish_provider::scripted::Act;
use futures_util::future::BoxFuture;
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
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

/// Counts how often somebody waits for a tool that may yet come.
#[derive(Default)]
struct Waited(AtomicUsize);

impl Supply for Waited {
    fn is_of_server(&self, _tool: &str) -> bool {
        false
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
