//! Event streams: of a request up to its envelope, and of a session for ever (SPEC 9.1, 9.8).

use crate::bench::{Bench, message, route, text, usual};
use crate::exposition;
use crate::frames::{Frame, Frames, events, places, said, told};
use crate::support::watched::{Fate, Watched};
use crate::support::{World, within};
use aish_core::event::Draft;
use aish_engine::Conversations;
use aish_provider::scripted::Act;
use aish_provider::{Delta, Reply};
use aish_store::memory::MemoryStore;
use serde_json::{Value, json};
use std::sync::Arc;

/// How many events a turn of one reply has, and the reader's ring holds fewer than the turns of a test bring.
const TURNS: usize = 80;

async fn ledger(bench: &Bench, session: &str) -> Vec<Value> {
    let page = bench
        .get(&format!("/api/sessions/{session}?limit=1000"))
        .await
        .accepted();
    page["events"].as_array().unwrap().clone()
}

/// A reply in pieces.
fn in_pieces(pieces: &[&str]) -> Act {
    let whole = pieces.concat();
    let Act::Reply { reply, .. } = Act::text(&whole) else {
        unreachable!()
    };
    let deltas = pieces.iter().map(|piece| Delta::Text((*piece).to_owned())).collect();
    Act::Reply {
        deltas,
        reply: Reply { ..reply },
    }
}

/// SPEC 9.1, 9.8: what happens in the turn, as the ledger has it and piece by piece, and then what is answered without a stream.
#[tokio::test]
async fn of_a_message() {
    let bench = Bench::new([in_pieces(&["a ", "her", "on"]), Act::text("an oak")]);
    let asked = json!({"message": "name a bird", "stream": true});
    let mut stream = Frames::open(&bench, "/api/chat", &[], Some(&asked)).await;
    let frames = stream.rest().await;
    let last = frames.last().unwrap();
    assert_eq!((last.event.as_str(), last.id), ("envelope", None));
    assert_eq!(last.data["reply"], "a heron");
    assert_eq!(said(&frames), "a heron");
    let session = text(&last.data["conversation_id"]);
    let written = ledger(&bench, session).await;
    assert_eq!(events(&frames), written);
    assert_eq!(places(&frames), (1..=written.len() as u64).collect::<Vec<_>>());
    for frame in frames.iter().filter(|frame| frame.id.is_some()) {
        assert_eq!(frame.data["kind"], frame.event.as_str());
    }
    let asked = json!({"message": "name a tree", "conversation_id": session, "stream": false});
    let plain = bench
        .post_with("/api/chat", &[("accept", "text/event-stream")], &asked)
        .await;
    assert_eq!(plain.accepted()["reply"], "an oak");
}

/// SPEC 9.2, 9.3, 9.6: a stream ends where the turn waits, and the answer's goes on from there: no event is in both, none is missing.
#[tokio::test]
async fn of_answers() {
    let bench = Bench::new([
        Act::calls(&[("battery", "{}"), ("bash", "{\"command\":\"rm -r x\"}")]),
        Act::text("done"),
    ]);
    let mut asked = message("go", &["battery"]);
    asked["stream"] = json!(true);
    let mut all = Vec::new();
    let mut frames = Frames::open(&bench, "/api/chat", &[], Some(&asked)).await.rest().await;
    let waits = frames.last().unwrap().data.clone();
    assert_eq!(waits["approval_pending"], true);
    all.append(&mut frames);
    let body = json!({"call_id": waits["call_id"], "digest": waits["digest"], "answer": "deny", "stream": true});
    let mut frames = Frames::open(&bench, &route(&waits, "approval"), &[], Some(&body))
        .await
        .rest()
        .await;
    let waits = frames.last().unwrap().data.clone();
    assert_eq!(waits["tool_pending"], true, "{frames:?}");
    all.append(&mut frames);
    let body = json!({"call_id": waits["call_id"], "content": "80 %"});
    let mut frames = Frames::open(&bench, &route(&waits, "tool_result"), &[], Some(&body))
        .await
        .rest()
        .await;
    assert_eq!(frames.last().unwrap().data["reply"], "done");
    all.append(&mut frames);
    let session = text(&waits["conversation_id"]);
    assert_eq!(events(&all), ledger(&bench, session).await);
}

/// SPEC 9.4: the same request again, under its key, is streamed the same, whatever has happened since.
#[tokio::test]
async fn of_a_repeat() {
    let bench = Bench::new([Act::text("one"), Act::text("two")]);
    let key = [("idempotency-key", "k-1")];
    let asked = json!({"message": "go", "stream": true});
    let first = Frames::open(&bench, "/api/chat", &key, Some(&asked)).await.rest().await;
    let session = text(&first.last().unwrap().data["conversation_id"]).to_owned();
    let more = json!({"message": "on", "conversation_id": session});
    bench.post("/api/chat", &more).await.accepted();
    let again = Frames::open(&bench, "/api/chat", &key, Some(&asked)).await.rest().await;
    assert_eq!(events(&again), events(&first));
    assert_eq!(again.last(), first.last());
}

/// SPEC 9.8: from the ledger first and then as it happens, from wherever the reader says it was; without gap or duplicate.
#[tokio::test]
async fn of_a_session() {
    let bench = Bench::new([
        Act::text("one"),
        in_pieces(&["t", "wo"]),
        Act::calls(&[("battery", "{}")]),
    ]);
    let told = bench.chat("go", &["battery"]).await;
    let session = text(&told["conversation_id"]);
    let written = ledger(&bench, session).await;
    let mut stream = Frames::of(&bench, session, 0).await;
    let caught_up = stream.until("envelope").await;
    assert_eq!(events(&caught_up), written);
    assert_eq!(caught_up.last().unwrap().data, told);
    let mut late = Frames::of(&bench, session, 2).await;
    let path = format!("/api/sessions/{session}/events?after={}", written.len());
    let mut later = Frames::open(&bench, &path, &[], None).await;
    assert_eq!(
        places(&late.until("envelope").await),
        (3..=written.len() as u64).collect::<Vec<_>>()
    );
    assert_eq!(later.until("envelope").await.len(), 1);
    for stream in [&mut stream, &mut late, &mut later] {
        stream.settle();
    }

    let more = json!({"message": "on", "conversation_id": session});
    let told = bench.post("/api/chat", &more).await.accepted();
    let now = ledger(&bench, session).await;
    for stream in [&mut stream, &mut late, &mut later] {
        let frames = stream.until("envelope").await;
        assert_eq!(events(&frames), now[written.len()..]);
        assert_eq!((said(&frames).as_str(), &frames.last().unwrap().data), ("two", &told));
    }
    let waits = bench.post("/api/chat", &more).await.accepted();
    assert_eq!(stream.until("envelope").await.last().unwrap().data, waits);
    let by_continuation = text(&waits["session_id"]);
    let waits_at = ledger(&bench, session).await.len() as u64;
    let frames = Frames::of(&bench, by_continuation, 1).await.until_told(waits_at).await;
    assert_eq!(frames.last().unwrap().data, waits);
    let cancelled = bench.post(&route(&waits, "cancel"), &json!({})).await.accepted();
    assert_eq!(stream.until("envelope").await.last().unwrap().data, cancelled);
}

/// The places of the events that say where a turn stands.
fn say_where_it_stands(ledger: &[Value]) -> Vec<Option<u64>> {
    let say = |event: &&Value| event["kind"] == "suspended" || event["kind"] == "turn_ended";
    ledger.iter().filter(say).map(|event| event["seq"].as_u64()).collect()
}

/// SPEC 9.4, 9.8: however answers race, a reader that is there and one that comes at any place are told one envelope for each event
/// that says where the turn stands, under its place and right behind it; also for the event that it has, being cut there.
#[tokio::test(flavor = "multi_thread")]
async fn one_envelope_for_each() {
    const CALLS: usize = 20;
    let calls = (0..CALLS).map(|_| Act::calls(&[("pick", "{}")]));
    let bench = Bench::new(calls.chain([Act::text("done")]));
    let mut waits = bench.chat("go", &["pick"]).await;
    let session = text(&waits["conversation_id"]).to_owned();
    let mut there = Frames::of(&bench, &session, 0).await;
    while waits["tool_pending"] == true {
        let answers = ["a", "b", "a", "c"].map(|content| bench.answer(&waits, content));
        let answers = futures_util::future::join_all(answers).await;
        let won = answers.iter().find(|answer| answer.status == 200).unwrap().json();
        waits = won;
    }
    let written = ledger(&bench, &session).await;
    let (last, expect) = (written.len() as u64, say_where_it_stands(&written));
    assert_eq!(expect.len(), CALLS + 1);
    let frames = there.until_told(last).await;
    assert_eq!((events(&frames), told(&frames)), (written.clone(), expect.clone()));
    let envelopes = |frames: &[Frame]| -> Vec<Frame> {
        let is_told = frames.iter().filter(|frame| frame.event == "envelope");
        is_told.cloned().collect()
    };
    let first = envelopes(&frames);
    assert_eq!(first.last().unwrap().data, waits);
    for after in 0..last {
        let frames = Frames::of(&bench, &session, after).await.until_told(last).await;
        let rest = first.iter().filter(|frame| frame.id >= Some(after)).cloned();
        assert_eq!(envelopes(&frames), rest.collect::<Vec<_>>(), "after {after}");
        for pair in frames.windows(2).filter(|pair| pair[1].event == "envelope") {
            assert_eq!(pair[0].id, pair[1].id);
        }
    }
    let at_the_end = Frames::of(&bench, &session, last).await.until_told(last).await;
    assert_eq!(at_the_end, first[CALLS..]);
}

/// SPEC 9.8: long events come to those who are there and to those who come later, without being kept for either.
#[tokio::test]
async fn long_events() {
    const LONG_BYTES: usize = 900_000;
    let calls = (0..6).map(|_| Act::calls(&[("pick", "{}"), ("pick", "{}")]));
    let bench = Bench::new(calls.chain([Act::text("done")]));
    let mut waits = bench.chat("go", &["pick"]).await;
    let session = text(&waits["conversation_id"]).to_owned();
    let mut there = Frames::of(&bench, &session, 0).await;
    while waits["tool_pending"] == true {
        waits = bench.answer(&waits, &"x".repeat(LONG_BYTES)).await.accepted();
    }
    let last = Frames::of(&bench, &session, 1).await.until("turn_ended").await;
    let last = last.last().unwrap().id.unwrap();
    let frames = there.until_told(last).await;
    assert_eq!(places(&frames), (1..=last).collect::<Vec<_>>());
    let results = frames.iter().filter(|frame| frame.event == "tool_result");
    let lengths: Vec<usize> = results.map(|frame| text(&frame.data["data"]["output"]).len()).collect();
    assert_eq!(lengths, [LONG_BYTES; 12]);
}

/// SPEC 9.5, 9.8: what another server does to the session is streamed as well, up to where it stands.
#[tokio::test]
async fn of_another_server() {
    let store = Arc::new(MemoryStore::new());
    let here = Bench::with(World::over(store.clone(), [Act::text("one")], Vec::new()), usual());
    let there = Bench::with(World::over(store, [Act::text("two")], Vec::new()), usual());
    let keeping = tokio::spawn(Arc::clone(&here.conversations).keep());
    let told = here.chat("go", &[]).await;
    let session = text(&told["conversation_id"]);
    let mut stream = Frames::of(&here, session, 0).await;
    let before = stream.until("envelope").await;
    let more = json!({"message": "on", "conversation_id": session});
    let told = there.post("/api/chat", &more).await.accepted();
    let frames = stream.until("envelope").await;
    assert_eq!(events(&frames), ledger(&here, session).await[events(&before).len()..]);
    assert_eq!(frames.last().unwrap().data, told);
    keeping.abort();
}

/// SPEC 9.8: a reader that takes nothing is cut once it is too far behind, slows nobody meanwhile, and finds the rest in the ledger.
#[tokio::test]
async fn a_reader_that_falls_behind() {
    let acts = (0..TURNS).map(|n| Act::text(&format!("reply {n}")));
    let bench = Bench::new(acts.chain([Act::text("first")]));
    let told = bench.chat("go", &[]).await;
    let session = text(&told["conversation_id"]);
    let mut slow = Frames::of(&bench, session, 0).await;
    let begun = slow.until("envelope").await;
    slow.settle();
    let more = json!({"message": "on", "conversation_id": session});
    for _ in 0..TURNS {
        bench.post("/api/chat", &more).await.accepted();
    }
    let mut seen = places(&begun);
    seen.extend(places(&slow.rest().await));
    let all = ledger(&bench, session).await.len() as u64;
    let last = *seen.last().unwrap();
    assert!(last < all, "it was not cut");
    seen.extend(places(&Frames::of(&bench, session, last).await.until_told(all).await));
    assert_eq!(seen, (1..=all).collect::<Vec<_>>());
}

/// SPEC 9.8: a long session comes whole, also to many readers at once.
#[tokio::test]
async fn many_readers() {
    let acts = (0..TURNS).map(|n| Act::text(&format!("reply {n}")));
    let bench = Bench::new(acts);
    let session = text(&bench.chat("go", &[]).await["conversation_id"]).to_owned();
    let more = json!({"message": "on", "conversation_id": session});
    for _ in 2..TURNS {
        bench.post("/api/chat", &more).await.accepted();
    }
    let mut readers = Vec::new();
    for n in 0..50 {
        readers.push((n, Frames::of(&bench, &session, n).await));
    }
    for (n, reader) in &mut readers {
        let all = ledger(&bench, &session).await.len() as u64;
        let frames = reader.until_told(all).await;
        assert_eq!(places(&frames), (*n + 1..=all).collect::<Vec<_>>());
    }
    let told = bench.post("/api/chat", &more).await.accepted();
    for (_, reader) in &mut readers {
        assert_eq!(reader.until("envelope").await.last().unwrap().data, told);
    }
}

/// SPEC 9.8, 10.5: where the ledger fails, every stream says so, without what the disk says, and ends; whoever comes back finds what
/// was written.
#[tokio::test]
async fn a_ledger_that_fails() {
    let is_reply = |drafts: &[Draft]| drafts.iter().any(|draft| draft.content == "never");
    let store = Watched::deciding(Arc::new(MemoryStore::new()), move |_, drafts| {
        if is_reply(drafts) { Fate::Fail } else { Fate::Write }
    });
    let bench = Bench::with(
        World::over(store, [Act::text("one"), Act::text("never")], Vec::new()),
        usual(),
    );
    let told = bench.chat("go", &[]).await;
    let session = text(&told["conversation_id"]);
    let mut watched = Frames::of(&bench, session, 0).await;
    watched.until("envelope").await;
    watched.settle();
    let more = json!({"message": "on", "conversation_id": session, "stream": true});
    let mut asked = Frames::open(&bench, "/api/chat", &[], Some(&more)).await;
    let mut seen = Vec::new();
    for stream in [&mut asked, &mut watched] {
        let frames = stream.rest().await;
        let last = frames.last().unwrap();
        assert_eq!(
            (last.event.as_str(), &last.data["error"]["kind"]),
            ("error", &json!("unavailable"))
        );
        assert!(!format!("{last:?}").contains("scripted disk failure"), "{last:?}");
        seen.push(events(&frames));
    }
    assert!(!seen[0].is_empty() && seen[0] == seen[1], "{seen:?}");
    let all = ledger(&bench, session).await;
    assert!(all.ends_with(&seen[0]), "{all:?}");
}

/// SPEC 9.8: a stream in which nothing happens says now and then that it lives, and who opens it is counted while it is open.
#[tokio::test(start_paused = true)]
async fn nothing_happens() {
    let bench = Bench::new([Act::text("one")]);
    let told = bench.chat("go", &[]).await;
    let mut stream = Frames::of(&bench, text(&told["conversation_id"]), 0).await;
    stream.until("envelope").await;
    for _ in 0..3 {
        assert_eq!(stream.piece().await, ": keep-alive\n\n");
    }
    let open = async || exposition::read(&bench.get("/metrics").await.body)["aish_event_streams"];
    assert_eq!(open().await, 1.0);
    drop(stream);
    assert_eq!(open().await, 0.0);
}

/// SPEC 9.8: where a reader says it was must be an event of the session.
#[tokio::test]
async fn refused() {
    let bench = Bench::new([Act::text("one")]);
    let told = bench.chat("go", &[]).await;
    let path = format!("/api/sessions/{}/events", text(&told["conversation_id"]));
    let check = async |id: &str, says: &str| {
        let answer = bench.ask(("GET", &path), &[("last-event-id", id)], "").await;
        answer.refused(422, "invalid_request", says);
    };
    check("1000000", "has no event 1000000").await;
    check("-1", "Last-Event-ID").await;
    check("first", "Last-Event-ID").await;
    check("e", "Last-Event-ID").await;
    check(".e", "Last-Event-ID").await;
    check("1.e.e", "Last-Event-ID").await;
    check("1000000.e", "has no event 1000000").await;
    check("18446744073709551615", "Last-Event-ID").await;
    let unknown = bench.get("/api/sessions/nobody/events").await;
    unknown.refused(404, "not_found", "nobody");
    let misspelt = bench.get(&format!("{path}?afer=1")).await;
    misspelt.refused(422, "invalid_request", "did you mean `after`?");
    let asked = json!({"message": "go", "stream": true, "conversation_id": "nobody"});
    bench
        .post("/api/chat", &asked)
        .await
        .refused(404, "not_found", "nobody");
}

/// SPEC 9.8: when the server is to end, every stream says so and ends.
#[tokio::test]
async fn at_the_end() {
    let bench = Bench::new([Act::text("one"), Act::Hang(vec![Delta::Text("tw".into())])]);
    let told = bench.chat("go", &[]).await;
    let session = text(&told["conversation_id"]);
    let mut watched = Frames::of(&bench, session, 0).await;
    watched.until("envelope").await;
    watched.settle();
    let more = json!({"message": "on", "conversation_id": session, "stream": true});
    let mut asked = Frames::open(&bench, "/api/chat", &[], Some(&more)).await;
    asked.until("delta").await;
    let conversations: Arc<Conversations> = Arc::clone(&bench.conversations);
    let draining = tokio::spawn(async move { conversations.drain().await });
    for stream in [&mut watched, &mut asked] {
        let last = stream.rest().await.pop().unwrap();
        assert_eq!(
            (last.event.as_str(), &last.data["error"]["kind"]),
            ("error", &json!("unavailable"))
        );
    }
    within(draining).await.unwrap();
}

/// SPEC 10.5: what has the shape of a key leaves neither with an event nor bit by bit.
#[tokio::test]
async fn secrets_stay() {
    let key = format!("sk-{}", "a1B2".repeat(8));
    let bench = Bench::new([Act::text(&format!("the key is {key}"))]);
    let asked = json!({"message": format!("keep {key}"), "stream": true});
    let frames = Frames::open(&bench, "/api/chat", &[], Some(&asked)).await.rest().await;
    let shown = format!("{:?}", &frames[..frames.len() - 1]);
    assert!(shown.contains("[redacted:") && !shown.contains(&key), "{shown}");
}
