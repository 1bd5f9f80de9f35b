//! Event streams that are cut anywhere: whoever comes back with the id they had last is sent what they have not had, and nothing twice.

use crate::bench::{Bench, message, route, text};
use crate::frames::{Frames, places};
use crate::support::{ask, asking, done, drive, no};
use aish_provider::scripted::Act;
use serde_json::json;
use std::collections::BTreeMap;

/// What a reader has of a stream (WHATWG HTML, "Interpreting an event stream").
#[derive(Debug, Default)]
struct Had {
    /// The blocks that have an id: what is sent again where it was not had.
    kept: Vec<String>,
    /// What it says when it comes back.
    last_event_id: String,
}

impl Had {
    /// Of a stream that was cut after this: what no empty line has closed is no event, and its id is none.
    fn of(text: &str) -> Self {
        let mut had = Self::default();
        let closed = text.rfind("\n\n").map_or("", |end| &text[..end]);
        for block in closed.split("\n\n") {
            let id = block.lines().find_map(|line| line.strip_prefix("id: "));
            if let Some(id) = id {
                had.kept.push(block.to_owned());
                id.clone_into(&mut had.last_event_id);
            }
        }
        had
    }
}

async fn open(bench: &Bench, session: &str, last_event_id: &str) -> Frames {
    let path = format!("/api/sessions/{session}/events");
    // A reader that has no id yet does not say so.
    let headers = [("last-event-id", last_event_id)];
    let headers = &headers[usize::from(last_event_id.is_empty())..];
    Frames::open(bench, &path, headers, None).await
}

/// The stream after an id, as its bytes are, up to what ends with that; all that there is where nothing does.
async fn read(stream: &mut Frames, end: &str) -> String {
    let mut read = String::new();
    while Had::of(&read).last_event_id != end {
        read.push_str(&stream.piece().await);
    }
    read
}

/// Cuts the stream of a session at every byte, and comes back.
async fn cut_everywhere(bench: &Bench, session: &str, whole: &str) {
    let all = Had::of(whole);
    let end = all.last_event_id.as_str();
    assert!(whole.is_ascii() && end.ends_with(".e"), "{whole}");
    let mut rests: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for cut in 0..=whole.len() {
        let mut had = Had::of(&whole[..cut]);
        if !rests.contains_key(&had.last_event_id) {
            let mut stream = open(bench, session, &had.last_event_id).await;
            let mut rest = String::new();
            if had.last_event_id != end {
                rest = read(&mut stream, end).await;
            }
            assert_eq!(stream.at_once(), "", "more after {}", had.last_event_id);
            rests.insert(had.last_event_id.clone(), Had::of(&rest).kept);
        }
        had.kept.extend_from_slice(&rests[&had.last_event_id]);
        assert_eq!(had.kept, all.kept, "cut at byte {cut}, after {}", had.last_event_id);
    }
    // As many as there are places to be cut at that differ: before everything, and after each.
    assert_eq!(rests.len(), all.kept.len() + 1);
}

/// SPEC 9.5, 9.8: a reader of a client's session that is cut at any byte, also between an event and its envelope, and comes back when
/// the session has gone on, has every event and every envelope once.
#[tokio::test]
async fn of_a_clients_session() {
    let calls = [("battery", "{}"), ("bash", "{\"command\":\"rm -r x\"}")];
    let acts = [Act::calls(&calls), Act::text("done"), Act::text("again")];
    let bench = Bench::new(acts);
    let waits = bench.post("/api/chat", &message("go", &["battery"])).await.accepted();
    let session = text(&waits["conversation_id"]).to_owned();
    let mut there = open(&bench, &session, "").await;
    let mut whole = read(&mut there, &last_id(&bench, &session).await).await;
    let denied = json!({"call_id": waits["call_id"], "digest": waits["digest"], "answer": "deny"});
    let waits = bench.post(&route(&waits, "approval"), &denied).await.accepted();
    bench.answer(&waits, "80 %").await.accepted();
    let more = json!({"message": "on", "conversation_id": session});
    bench.post("/api/chat", &more).await.accepted();
    whole.push_str(&read(&mut there, &last_id(&bench, &session).await).await);
    assert_eq!(whole.matches("event: envelope\n").count(), 4, "{whole}");
    cut_everywhere(&bench, &session, &whole).await;
}

/// SPEC 9.8, 9.9: the same of a terminal's, which waits with its questions themselves.
#[tokio::test]
async fn of_a_terminals_session() {
    let calls = [
        ("bash", "{\"command\":\"rm -r x\"}"),
        ("bash", "{\"command\":\"rm -r y\"}"),
    ];
    let bench = Bench::new([Act::calls(&calls), Act::text("done"), Act::text("again")]);
    let mut driver = bench.world.driver();
    let session = driver.session().id().to_string();
    for pending in asking(ask(&mut driver, "go").await) {
        driver.answer(no(&pending, Some("later"))).await.unwrap();
    }
    done(drive(&mut driver).await.unwrap());
    done(ask(&mut driver, "on").await);
    let whole = read(&mut open(&bench, &session, "").await, &last_id(&bench, &session).await).await;
    assert_eq!(whole.matches("event: envelope\n").count(), 4, "{whole}");
    cut_everywhere(&bench, &session, &whole).await;
}

/// SPEC 9.8: whoever says only which event they have may not have its envelope: it comes first, and what came after it, after it.
#[tokio::test]
async fn by_the_place_alone() {
    let bench = Bench::new([Act::text("one"), Act::text("two")]);
    let told = bench.chat("go", &[]).await;
    let session = text(&told["conversation_id"]);
    let ended = bench.event_count(session).await;
    let more = json!({"message": "on", "conversation_id": session});
    bench.post("/api/chat", &more).await.accepted();
    let last = bench.event_count(session).await;
    let path = format!("/api/sessions/{session}/events?after={ended}");
    let by_query = Frames::open(&bench, &path, &[], None).await.until_told(last).await;
    let by_header = Frames::of(&bench, session, ended).await.until_told(last).await;
    assert_eq!(by_query, by_header);
    assert_eq!((by_query[0].id, &by_query[0].data), (Some(ended), &told));
    assert_eq!(places(&by_query), (ended + 1..=last).collect::<Vec<_>>());
}

/// The id of the envelope that a session ends with.
async fn last_id(bench: &Bench, session: &str) -> String {
    format!("{}.e", bench.event_count(session).await)
}
