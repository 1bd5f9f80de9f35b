//! Appending and loading.

use super::{append, contents, fixtures, says, session};
use aish_core::event::{Body, EVENT_VERSION};
use aish_core::id::SessionId;
use aish_store::{Durability, Hold, Store, StoreError};
use proptest::test_runner::{Config as ProptestConfig, TestRunner};
use serde_json::json;
use std::cell::Cell;

/// SPEC 2.1: what is loaded is what was appended, in order, in its place.
#[tokio::test]
async fn loads_what_was_appended() {
    for fixture in fixtures() {
        let (store, session) = (fixture.store.as_ref(), session(1));
        assert_eq!(store.load(&session, 0).await.unwrap(), []);
        let mut placed = append(store, &session, 0, vec![says("a"), says("b")]).await.unwrap();
        let second = store
            .append(&session, 2, vec![says("c")], 77, Durability::Synced, Hold::Nothing)
            .await
            .unwrap();
        placed.extend(second.events);
        assert_eq!(store.load(&session, 0).await.unwrap(), placed, "{}", fixture.name);
        assert_eq!(store.load(&session, 2).await.unwrap(), placed[2..]);
        assert_eq!(store.load(&session, 3).await.unwrap(), []);
        assert_eq!(store.load(&session, u64::MAX).await.unwrap(), []);
        let last = &placed[2];
        assert_eq!(
            (last.seq, last.turn, last.time, last.version),
            (3, 1, 77, EVENT_VERSION)
        );
        assert_eq!(last.session, session);
    }
}

/// SPEC 2.11: an append that has not seen the last event is refused, and told where the session is.
#[tokio::test]
async fn a_stale_append_conflicts() {
    for fixture in fixtures() {
        let (store, session) = (fixture.store.as_ref(), session(1));
        append(store, &session, 0, vec![says("a"), says("b")]).await.unwrap();
        for stale in [0, 1, 3, u64::MAX] {
            let error = append(store, &session, stale.min(u64::MAX - 1), vec![says("c")])
                .await
                .unwrap_err();
            assert!(
                matches!(&error, StoreError::Conflict { session: of, expected, actual: 2 }
                    if *of == session && *expected == stale.min(u64::MAX - 1)),
                "{}: {error:?}",
                fixture.name
            );
        }
        // An append of nothing is a check.
        assert!(append(store, &session, 1, vec![]).await.is_err());
        assert_eq!(append(store, &session, 2, vec![]).await.unwrap(), []);
        assert_eq!(contents(store, &session).await, ["a", "b"]);
    }
}

/// SPEC 2.11: an append of nothing makes no session, and one session's events are no other's.
#[tokio::test]
async fn sessions_are_apart() {
    for fixture in fixtures() {
        let store = fixture.store.as_ref();
        append(store, &session(1), 0, vec![]).await.unwrap();
        assert_eq!(store.list(Default::default()).await.unwrap(), []);
        for round in 0..3 {
            for n in 1..=3 {
                append(store, &session(n), round, vec![says(&format!("{n}.{round}"))])
                    .await
                    .unwrap();
            }
        }
        assert_eq!(
            contents(store, &session(2)).await,
            ["2.0", "2.1", "2.2"],
            "{}",
            fixture.name
        );
    }
}

/// SPEC 2.10, 2.4: an export sees each event as it was written, a page at a time.
#[tokio::test]
async fn raw_events_are_as_written() {
    for fixture in fixtures() {
        let (store, session) = (fixture.store.as_ref(), session(1));
        let unknown = Body::Unknown {
            kind: "hologram".into(),
            data: json!({"depth": 3, "of": ["a", null]}),
        };
        let unknown = aish_core::event::Draft::new(4, "a new thing", unknown);
        let placed = append(store, &session, 0, vec![says("a"), unknown, says("c")])
            .await
            .unwrap();
        assert_eq!(store.load(&session, 0).await.unwrap(), placed);
        let raw = store.load_raw(&session, 0, 2).await.unwrap();
        assert_eq!(raw.len(), 2);
        assert_eq!(raw[0].data, "null");
        let written = (
            raw[1].seq,
            raw[1].turn,
            raw[1].kind.as_str(),
            raw[1].content.as_str(),
            raw[1].data.as_str(),
        );
        assert_eq!(
            written,
            (2, 4, "hologram", "a new thing", r#"{"depth":3,"of":["a",null]}"#),
            "{}",
            fixture.name
        );
        let rest = store.load_raw(&session, 2, usize::MAX).await.unwrap();
        assert_eq!(rest.iter().map(|raw| raw.seq).collect::<Vec<_>>(), [3]);
        assert_eq!(store.load_raw(&super::session(9), 0, 10).await.unwrap(), []);
    }
}

/// SPEC 2.5: text is kept to the byte: nothing in it is special to a store.
#[tokio::test]
async fn any_text_is_kept() {
    let texts = [
        "",
        "\0",
        "'; DROP TABLE events; --",
        "\u{1b}[31m\r\n\t",
        "日本語 \u{202e}",
        "null",
    ];
    for fixture in fixtures() {
        let (store, session) = (fixture.store.as_ref(), session(1));
        append(store, &session, 0, texts.map(says).into()).await.unwrap();
        assert_eq!(contents(store, &session).await, texts, "{}", fixture.name);
    }
}

/// SPEC 2.11: however several writers take turns, each append lands whole or not at all, and no seq is missing or
/// taken twice. Each step: which writer acts, how much it appends, and whether it looks first.
#[test]
fn interleaved_writers_leave_no_gap() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let fixtures = fixtures();
    let cases = Cell::new(0);
    let steps = proptest::collection::vec((0usize..4, 1usize..4, proptest::bool::ANY), 1..60);
    let config = ProptestConfig {
        cases: 24,
        ..ProptestConfig::default()
    };
    let every_store = |steps: Vec<Step>| {
        cases.set(cases.get() + 1);
        for fixture in &fixtures {
            runtime.block_on(interleave(fixture.store.as_ref(), &session(cases.get()), &steps));
        }
        Ok(())
    };
    TestRunner::new(config).run(&steps, every_store).unwrap();
    // Its connections belong to the runtime.
    runtime.block_on(async { drop(fixtures) });
}

/// See [`interleaved_writers_leave_no_gap`].
type Step = (usize, usize, bool);

async fn interleave(store: &dyn Store, session: &SessionId, steps: &[Step]) {
    let mut seen = [0u64; 4];
    let mut expect = Vec::new();
    for (n, (writer, count, looks)) in steps.iter().copied().enumerate() {
        if looks {
            seen[writer] = store.load(session, 0).await.unwrap().len() as u64;
        }
        let texts: Vec<String> = (0..count).map(|part| format!("{writer}/{n}/{part}")).collect();
        let drafts = texts.iter().map(|text| says(text)).collect();
        match append(store, session, seen[writer], drafts).await {
            Ok(placed) => {
                assert_eq!(seen[writer], expect.len() as u64, "a stale append was taken");
                seen[writer] = placed.last().unwrap().seq;
                expect.extend(texts);
            }
            Err(StoreError::Conflict { actual, .. }) => {
                assert_eq!(actual, expect.len() as u64);
                assert_ne!(actual, seen[writer]);
            }
            Err(error) => panic!("{error}"),
        }
    }
    let events = store.load(session, 0).await.unwrap();
    assert!(events.iter().map(|event| event.seq).eq(1..=expect.len() as u64));
    assert_eq!(contents(store, session).await, expect);
}
