//! Several calls in one reply, of the client and of this process (SPEC 9.6), and names that mean a tool of this process (SPEC 4.5).

use crate::house::{House, asks, assert_replied, for_approval, for_tool};
use crate::support::probe::{Doing, Probe};
use crate::support::{assert_settled, told};
use aish_core::event::{Answer, Body, Event};
use aish_core::id::CallId;
use aish_core::session::Session;
use aish_provider::scripted::Act;

/// What happened to which call, in the order of the ledger.
fn happened(session: &Session) -> Vec<String> {
    let nth = |id: &CallId| id.as_str().rsplit('_').next().unwrap().to_owned();
    let line = |event: &Event| {
        let (word, id) = if let Body::CallAnswered(data) = &event.body {
            ("answered", &data.call_id)
        } else if let Body::CallStarted(data) = &event.body {
            ("started", &data.call_id)
        } else if let Body::ToolResult(data) = &event.body {
            ("result", &data.tool_call_id)
        } else if let Body::Suspended(data) = &event.body {
            ("waits", data.call_id.as_ref()?)
        } else {
            return None;
        };
        Some(format!("{word} {}", nth(id)))
    };
    session.events().iter().filter_map(line).collect()
}

/// SPEC 9.6: all that need a yes are asked about first; then strict call order, stopping at each call of the client; all results
/// go back together.
#[tokio::test]
async fn approvals_first_then_strict_order() {
    let reader = Probe::reader("reader", Doing::Answer("read".to_owned()));
    let writer = Probe::writer("writer", Doing::Answer("wrote".to_owned()));
    let calls = [
        ("get_weather", r#"{"city":"Jena"}"#),
        ("reader", r#"{"n":2}"#),
        ("writer", r#"{"n":3}"#),
        ("get_weather", r#"{"city":"Ulm"}"#),
        ("writer", r#"{"n":5}"#),
        ("reader", r#"{"n":6}"#),
    ];
    let house = House::with(
        [Act::calls(&calls), Act::text("all")],
        vec![reader.clone(), writer.clone()],
    );
    let envelope = house.chat(asks("go")).await.unwrap();
    let first = for_approval(&envelope);
    assert_eq!(first.input, r#"{"n":3}"#);
    let envelope = house.verdict(&first, Answer::Approve).await.unwrap();
    let second = for_approval(&envelope);
    assert_eq!(second.input, r#"{"n":5}"#);
    assert_eq!((reader.runs(), writer.runs(), envelope.tools_used.len()), (0, 0, 0));

    let envelope = house.verdict(&second, Answer::Deny).await.unwrap();
    let jena = for_tool(&envelope);
    assert_eq!(
        (jena.input.as_str(), reader.runs(), writer.runs()),
        (r#"{"city":"Jena"}"#, 0, 0)
    );
    let envelope = house.result(&jena, "rain").await.unwrap();
    let ulm = for_tool(&envelope);
    assert_eq!(
        (ulm.input.as_str(), reader.runs(), writer.runs()),
        (r#"{"city":"Ulm"}"#, 1, 1)
    );
    assert_eq!(envelope.tools_used, ["get_weather", "reader", "writer", "get_weather"]);
    assert_eq!(house.world.model.asked().len(), 1);

    let last = house.result(&ulm, "sun").await.unwrap();
    assert_replied(&last, "all");
    assert_eq!((reader.runs(), writer.runs()), (2, 1));
    assert_eq!(
        last.tools_used,
        ["get_weather", "reader", "writer", "get_weather", "reader"]
    );
    let session = house.session(&last.session).await;
    assert_settled(&session);
    assert_eq!(
        happened(&session),
        [
            "waits 3",
            "answered 3",
            "waits 5",
            "answered 5",
            "waits 1",
            "result 1",
            "started 2",
            "result 2",
            "started 3",
            "result 3",
            "waits 4",
            "result 4",
            "result 5",
            "started 6",
            "result 6"
        ]
    );
    let given: Vec<String> = told(&house.world.model.asked()[1].messages)
        .into_iter()
        .map(|(_, output)| output)
        .collect();
    assert_eq!(given.len(), 6);
    assert_eq!((given[0].as_str(), given[3].as_str()), ("rain", "sun"));
}

/// SPEC 4.5, 9.2: what models of other servers call `read_file` is read here, and not handed to the client.
#[tokio::test]
async fn aliases_run_here() {
    let house = House::with(
        [
            Act::calls(&[("read_file", r#"{"path":"notes.txt"}"#)]),
            Act::text("read"),
        ],
        Vec::new(),
    );
    house.world.write("notes.txt", "water the plants");
    let last = house.chat(asks("what do I have to do?")).await.unwrap();
    assert_replied(&last, "read");
    assert_eq!(last.tools_used, ["read_file"]);
    let [given] = &house.given()[..] else {
        panic!("one result")
    };
    assert!(given.contains("water the plants"), "{given}");
    let names: Vec<String> = house.world.model.asked()[0]
        .tools
        .iter()
        .map(|tool| tool.name.clone())
        .collect();
    assert!(
        names.contains(&"file_read".to_owned()) && !names.contains(&"read_file".to_owned()),
        "{names:?}"
    );
}

/// SPEC 8.4, 9.6: a proposed command is plain text there.
#[tokio::test]
async fn nothing_is_proposed() {
    let house = House::with([Act::text("CMD: ls")], Vec::new());
    let last = house.chat(asks("?")).await.unwrap();
    assert_replied(&last, "CMD: ls");
    assert!(!house.world.model.asked()[0].system.contains("CMD:"));
}
