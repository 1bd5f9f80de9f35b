//! Finding what was said.

use super::{Fixture, append, fixtures, says, session};
use aish_core::event::{Body, Command, Draft};
use aish_store::{Hit, Store};
use serde_json::json;

async fn places(store: &dyn Store, query: &str) -> Vec<(u64, String)> {
    let mut hits = store.search(query, 10).await.unwrap();
    hits.sort_by_key(|hit| hit.seq);
    hits.into_iter().map(|hit| (hit.seq, hit.kind)).collect()
}

fn replied(text: &str) -> Draft {
    let data = json!({"reply_id": "reply_1_1", "parts": [{"type": "text", "text": text}], "model": "m", "attempt": 1, "stop": "end"});
    Draft::new(1, text, Body::decode("assistant", &data.to_string()).unwrap())
}

/// SPEC 2.10, 4: messages, replies and commands are found by all the words that are asked for, phrases as they stand.
#[tokio::test]
async fn words_and_phrases() {
    for Fixture { name, store, .. } in &fixtures() {
        let store = store.as_ref();
        let ran = Command {
            line: "cargo build --release".to_owned(),
            output: "Compiling everything".to_owned(),
            ..Command::default()
        };
        let drafts = vec![
            says("Why does the borrow checker refuse THIS?"),
            replied("It cannot borrow twice: see example.com/borrow-checker."),
            Draft::new(0, "cargo build --release (exit 0)", Body::Command(ran)),
            says("Größe ändern, bitte"),
            Draft::new(1, "note on borrow", Body::Clear),
        ];
        append(store, &session(1), 0, drafts).await.unwrap();
        let (user, assistant, command) = ("user".to_owned(), "assistant".to_owned(), "command".to_owned());
        for (query, expect) in [
            ("borrow", vec![(1, user.clone()), (2, assistant.clone())]),
            ("BORROW this", vec![(1, user.clone())]),
            ("\"borrow checker\"", vec![(1, user.clone()), (2, assistant.clone())]),
            ("\"checker borrow\"", vec![]),
            ("example com", vec![(2, assistant.clone())]),
            ("release cargo", vec![(3, command.clone())]),
            ("compiling", vec![]),
            ("größe", vec![(4, user.clone())]),
            ("bor", vec![]),
            ("", vec![]),
            ("\" ' \\ : & | ! <-> *", vec![]),
            ("borrow \0 & ! (", vec![(1, user.clone()), (2, assistant.clone())]),
        ] {
            assert_eq!(places(store, query).await, expect, "{name}: {query}");
        }
        assert_eq!(store.search("borrow", 1).await.unwrap().len(), 1);
    }
}

/// SPEC 2.10: a hit shows a piece of the text around the words, however long it is and whatever else is in it.
#[tokio::test]
async fn long_texts_are_found() {
    for Fixture { name, store, .. } in &fixtures() {
        let store = store.as_ref();
        let long = format!("{}\n a needle\0 {}", "hay ä' ".repeat(1_000), "stack ".repeat(300_000));
        let endless = "x".repeat(1 << 20);
        append(store, &session(1), 0, vec![says(&long), says(&endless)])
            .await
            .unwrap();
        let hits: Vec<Hit> = store.search("needle", 10).await.unwrap();
        let [hit] = &hits[..] else {
            panic!("{name}: {} hits", hits.len());
        };
        assert!(hit.snippet.contains("needle"), "{name}: {}", hit.snippet);
        assert!(hit.snippet.chars().count() <= Hit::SNIPPET_CHARS_MAX, "{name}");
        assert_eq!((&hit.session, hit.seq, hit.time), (&session(1), 1, 1));
    }
}
