//! Finding and listing sessions, and what the list says of them.

use super::{append, fixtures, says, session};
use aish_core::event::{Body, Draft};
use aish_core::id::{CallId, SessionId};
use aish_store::{SessionFilter, Store, StoreError};
use serde_json::{Value, json};

/// An event as the ledger has it: these tests hold whatever fields a later version adds.
fn draft(turn: u64, kind: &str, data: Value) -> Draft {
    Draft::new(turn, kind, Body::decode(kind, &data.to_string()).unwrap())
}

fn started(turn: u64, directory: &str) -> Draft {
    draft(turn, "turn_started", json!({"directory": directory}))
}

fn gated(n: usize, verdict: &str, source: &str) -> Draft {
    let data = json!({"call_id": CallId::nth(1, n), "verdict": verdict, "rule": "default", "source": source});
    draft(1, "call_gated", data)
}

fn answered(n: usize, answer: &str) -> Draft {
    let data = json!({"call_id": CallId::nth(1, n), "answer": answer, "digest": "d", "by": "terminal"});
    draft(1, "call_answered", data)
}

fn result(n: usize) -> Draft {
    draft(
        1,
        "tool_result",
        json!({"tool_call_id": CallId::nth(1, n), "output": "", "success": true}),
    )
}

async fn ids(store: &dyn Store, filter: SessionFilter) -> Vec<SessionId> {
    let list = store.list(filter).await.unwrap();
    list.into_iter().map(|summary| summary.id).collect()
}

/// SPEC 2.8, 2.10: the list has the last used session first, and says what each is about.
#[tokio::test]
async fn lists_the_last_used_first() {
    for fixture in fixtures() {
        let store = fixture.store.as_ref();
        append(store, &session(1), 0, vec![started(1, "/a"), says("first")])
            .await
            .unwrap();
        append(store, &session(2), 0, vec![started(1, "/b"), says("second")])
            .await
            .unwrap();
        let more = vec![says("more"), started(2, "/b")];
        append(store, &session(1), 2, more).await.unwrap();

        let list = store.list(SessionFilter::default()).await.unwrap();
        assert_eq!(list.len(), 2, "{}", fixture.name);
        assert_eq!(list[0].id, session(1));
        assert_eq!((list[0].created, list[0].updated, list[0].events), (1, 3, 4));
        assert_eq!((list[0].title.as_str(), list[0].directory.as_str()), ("first", "/a"));
        assert_eq!((list[1].title.as_str(), list[1].waiting), ("second", false));

        let filter = |directory: Option<&str>, limit: Option<usize>| SessionFilter {
            directory: directory.map(str::to_owned),
            limit,
            ..SessionFilter::default()
        };
        assert_eq!(ids(store, filter(None, Some(1))).await, [session(1)]);
        assert_eq!(ids(store, filter(Some("/b"), None)).await, [session(2)]);
        assert_eq!(ids(store, filter(Some("/c"), None)).await, []);
        assert_eq!(ids(store, filter(None, Some(0))).await, []);
    }
}

/// SPEC 9.8: a long list is read page by page, and a few sessions can be picked from it.
#[tokio::test]
async fn pages_and_picks() {
    for fixture in fixtures() {
        let store = fixture.store.as_ref();
        for n in 1..=5 {
            append(store, &session(n), 0, vec![says("x")]).await.unwrap();
        }
        let page = |before: Option<u64>, only: Option<Vec<u64>>| SessionFilter {
            limit: Some(2),
            before: before.map(session),
            only: only.map(|only| only.into_iter().map(session).collect()),
            ..SessionFilter::default()
        };
        for (before, only, expect) in [
            (None, None, vec![5, 4]),
            (Some(4), None, vec![3, 2]),
            (Some(2), None, vec![1]),
            (Some(1), None, vec![]),
            (Some(9), None, vec![]),
            (None, Some(vec![1, 3, 5, 9]), vec![5, 3]),
            (Some(3), Some(vec![1, 3, 5]), vec![1]),
            (None, Some(vec![]), vec![]),
        ] {
            let expect: Vec<SessionId> = expect.into_iter().map(session).collect();
            assert_eq!(
                ids(store, page(before, only)).await,
                expect,
                "{}: before {before:?}",
                fixture.name
            );
        }
    }
}

/// SPEC 2.8: what programs do by themselves is left out of the list where that is wanted, until somebody else goes on with it.
#[tokio::test]
async fn leaves_out_what_another_began() {
    let begun_for = |turn: u64, model: &str| draft(turn, "turn_started", json!({ "model": model }));
    for fixture in fixtures() {
        let store = fixture.store.as_ref();
        append(store, &session(1), 0, vec![begun_for(1, "desk")]).await.unwrap();
        let command = draft(0, "command", json!({"line": "ls", "directory": "/work"}));
        append(store, &session(2), 0, vec![command]).await.unwrap();
        let calls = vec![begun_for(1, "desk"), begun_for(2, "program"), says("x")];
        append(store, &session(3), 0, calls).await.unwrap();
        let filter = |limit| SessionFilter {
            limit,
            not_by: Some("program".to_owned()),
            ..SessionFilter::default()
        };
        let all = ids(store, SessionFilter::default()).await;
        assert_eq!(all, [3, 2, 1].map(session), "{}", fixture.name);
        assert_eq!(ids(store, filter(None)).await, [2, 1].map(session));
        assert_eq!(ids(store, filter(Some(1))).await, [session(2)]);
        let on = vec![begun_for(3, "desk")];
        append(store, &session(3), 3, on).await.unwrap();
        assert_eq!(ids(store, filter(Some(1))).await, [session(3)]);
    }
}

/// SPEC 2.10: a title is the first thing said, bounded; a directory may come from a command.
#[tokio::test]
async fn titles_and_directories() {
    for fixture in fixtures() {
        let store = fixture.store.as_ref();
        let drafts = vec![
            draft(0, "command", json!({"line": "ls", "directory": "/work"})),
            started(1, "/elsewhere"),
            says(""),
            says(&"ä".repeat(1_000)),
            says("other"),
        ];
        append(store, &session(1), 0, drafts).await.unwrap();
        let list = store.list(SessionFilter::default()).await.unwrap();
        assert_eq!(list[0].directory, "/work", "{}", fixture.name);
        assert_eq!(list[0].title, "ä".repeat(200));
    }
}

/// SPEC 2.8: a session is found by its whole id, a unique beginning or a unique end.
#[tokio::test]
async fn finds_by_either_end() {
    for fixture in fixtures() {
        let store = fixture.store.as_ref();
        for id in ["aaaa-1111", "aaaa-2222", "bbbb-2222", "aaaa"] {
            append(store, &SessionId::new(id), 0, vec![says("x")]).await.unwrap();
        }
        for (prefix, expect) in [
            ("aaaa-1111", "aaaa-1111"),
            ("aaaa-1", "aaaa-1111"),
            ("1111", "aaaa-1111"),
            ("bbbb", "bbbb-2222"),
            // Whole, though others begin with it.
            ("aaaa", "aaaa"),
        ] {
            assert_eq!(
                store.find(prefix).await.unwrap().as_str(),
                expect,
                "{}: {prefix}",
                fixture.name
            );
        }
        for prefix in ["aaaa-", "2222"] {
            let error = store.find(prefix).await.unwrap_err();
            assert!(matches!(&error, StoreError::Ambiguous { count: 2, .. }), "{error:?}");
        }
        for prefix in ["", "bbb", "111", "cccc", "%%%%", "____", "a-1111x"] {
            let error = store.find(prefix).await.unwrap_err();
            assert!(
                matches!(&error, StoreError::NotFound(what) if what == prefix),
                "{}: {error:?}",
                fixture.name
            );
        }
    }
}

/// SPEC 5.6, 9.5: a session waits while a call of its open turn is asked about or the turn is suspended. Each step
/// appends one event; then the session waits or does not.
#[tokio::test]
async fn waiting_follows_the_last_turn() {
    let suspended = |id: &str| draft(1, "suspended", json!({"continuation": id}));
    let resumed = |id: &str| draft(1, "resumed", json!({"continuation": id}));
    let steps = [
        (started(1, "/"), false),
        (gated(1, "allow", "builtin"), false),
        (gated(2, "ask", "builtin"), true),
        (gated(3, "ask", "builtin"), true),
        (answered(2, "approve"), true),
        (answered(3, "deny"), false),
        (result(2), false),
        (gated(4, "ask", "builtin"), true),
        // A result ends a call, whatever was asked.
        (result(4), false),
        (gated(5, "allow", "client"), false),
        (suspended("c1"), true),
        (resumed("c1"), false),
        (suspended("c2"), true),
        (draft(1, "turn_ended", json!({"reason": "end"})), false),
        (started(2, "/"), false),
        (gated(6, "ask", "builtin"), true),
        // The next turn began: a crash had left the last one open.
        (started(3, "/"), false),
        (gated(7, "deny", "client"), false),
    ];
    for fixture in fixtures() {
        let (store, session) = (fixture.store.as_ref(), session(1));
        for (seq, (draft, waits)) in (0..).zip(steps.clone()) {
            append(store, &session, seq, vec![draft]).await.unwrap();
            let list = store.list(SessionFilter::default()).await.unwrap();
            assert_eq!(list[0].waiting, waits, "{}: after event {}", fixture.name, seq + 1);
        }
    }
}
