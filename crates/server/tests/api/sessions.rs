//! What there is, page by page (SPEC 9.8).

use crate::bench::{Bench, text};
use aish_provider::scripted::Act;
use serde_json::{Value, json};

fn ids(list: &Value) -> Vec<&str> {
    let sessions = list["sessions"].as_array().unwrap();
    sessions.iter().map(|session| text(&session["id"])).collect()
}

/// SPEC 9.8: sessions are listed the latest first, page by page, and found by what was said in them.
#[tokio::test]
async fn the_list() {
    let bench = Bench::new([Act::text("a heron"), Act::text("an oak"), Act::calls(&[("pick", "{}")])]);
    let mut all = Vec::new();
    for question in ["name a bird", "name a tree", "pick one"] {
        let told = bench.chat(question, &[]).await;
        all.insert(0, text(&told["conversation_id"]).to_owned());
        // Those of one moment are in no order.
        let now = aish_engine::now_ms();
        while aish_engine::now_ms() == now {
            tokio::task::yield_now().await;
        }
    }
    let list = bench.get("/api/sessions").await.accepted();
    assert_eq!(ids(&list), all);
    let summary = &list["sessions"][0];
    assert_eq!(
        crate::bench::keys(summary),
        "created directory events id title updated waiting"
    );
    assert_eq!(
        (&summary["title"], &summary["waiting"]),
        (&json!("pick one"), &json!(true))
    );
    let check = async |query: &str, expect: &[String]| {
        let list = bench.get(&format!("/api/sessions?{query}")).await.accepted();
        assert_eq!(ids(&list), expect, "{query}");
    };
    check("limit=2", &all[..2]).await;
    check(&format!("limit=2&before={}", all[1]), &all[2..]).await;
    check("before=nobody", &[]).await;
    check("query=heron", &all[2..]).await;
    check("query=name&limit=1", &all[1..2]).await;
    check(&format!("query=name&before={}", all[1]), &all[2..]).await;
    check("query=%22a+heron%22", &all[2..]).await;
    check("query=%22%20OR%20*", &[]).await;
    check("query=", &all).await;
}

/// SPEC 9.8: a session is shown with its events as an export has them, page by page; one that is not there is not.
#[tokio::test]
async fn one_session() {
    let bench = Bench::new([Act::text("a heron")]);
    let told = bench.chat("name a bird", &[]).await;
    let path = format!("/api/sessions/{}", text(&told["conversation_id"]));
    let whole = bench.get(&path).await.accepted();
    assert_eq!(crate::bench::keys(&whole), "events more pending session state");
    assert_eq!(
        (&whole["state"], &whole["pending"], &whole["more"]),
        (&json!("idle"), &json!(null), &json!(false))
    );
    let events = whole["events"].as_array().unwrap();
    assert_eq!(whole["session"]["events"], events.len());
    assert_eq!(
        crate::bench::keys(&events[0]),
        "content data kind seq session time turn version"
    );
    let said: Vec<&Value> = events.iter().filter(|event| event["kind"] == "assistant").collect();
    assert_eq!((said.len(), &said[0]["content"]), (1, &json!("a heron")));
    let mut paged = Vec::new();
    loop {
        let after = paged.len();
        let page = bench.get(&format!("{path}?after={after}&limit=2")).await.accepted();
        let more = page["more"] == true;
        assert_eq!(
            page["events"].as_array().unwrap().len(),
            if more { 2 } else { events.len() - after }
        );
        paged.extend(page["events"].as_array().unwrap().clone());
        if !more {
            break;
        }
    }
    assert_eq!(&paged, events);
    let beyond = bench.get(&format!("{path}?after=9999")).await.accepted();
    assert_eq!((&beyond["events"], &beyond["more"]), (&json!([]), &json!(false)));
    for id in ["nobody", "br-1-1", "%2e%2e", "0190a6c0-0000-7000-8000-000000000000"] {
        bench
            .get(&format!("/api/sessions/{id}"))
            .await
            .refused(404, "not_found", "");
    }
}

/// SPEC 12: a page of events is bounded in bytes, too, and none is lost at its end.
#[tokio::test]
async fn long_events() {
    let long = "x".repeat(3_000_000);
    let bench = Bench::new([Act::text(&long), Act::text(&long)]);
    let told = bench.chat("go", &[]).await;
    let body = json!({"message": "on", "conversation_id": told["conversation_id"]});
    bench.post("/api/chat", &body).await.accepted();
    let path = format!("/api/sessions/{}", text(&told["conversation_id"]));
    let (mut seen, mut pages) = (0, 0);
    loop {
        let page = bench.get(&format!("{path}?after={seen}")).await;
        assert!(page.body.len() < 12_000_000, "{} bytes", page.body.len());
        let page = page.accepted();
        seen += page["events"].as_array().unwrap().len();
        pages += 1;
        if page["more"] == false {
            assert_eq!(page["session"]["events"], seen);
            break;
        }
    }
    assert!(pages > 1);
}
