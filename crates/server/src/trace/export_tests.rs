//! Batches on their way to a collector, in this process.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use futures_util::FutureExt as _;
use std::sync::Mutex as Held;

const PATIENCE: Duration = Duration::from_secs(60);

fn work(n: usize) -> Span {
    Span {
        place: Place {
            trace: format!("{n:032x}"),
            span: format!("{n:016x}"),
        },
        parent: (n > 0).then(|| "f".repeat(16)),
        name: format!("chat {n}"),
        kind: Kind::Client,
        start_ms: 1_795_305_599_042,
        end_ms: 1_795_305_600_000,
        attributes: vec![
            ("gen_ai.request.model", Attribute::Text("desk".to_owned())),
            ("gen_ai.usage.input_tokens", Attribute::Number(u64::MAX)),
            (
                "gen_ai.response.finish_reasons",
                Attribute::Texts(vec!["stop".to_owned()]),
            ),
        ],
        error: (n == 1).then(|| "http_503".to_owned()),
        link: (n == 2).then(|| Place {
            trace: "a".repeat(32),
            span: "b".repeat(16),
        }),
    }
}

fn nobody(_: &str) -> Option<&'static str> {
    None
}

/// A collector that keeps what it is sent.
fn collector() -> (Exporter, Arc<Held<Vec<Value>>>) {
    let kept: Arc<Held<Vec<Value>>> = Arc::default();
    let keeping = Arc::clone(&kept);
    let traces = Traces::new(
        move |body| {
            let keeping = Arc::clone(&keeping);
            async move {
                keeping.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
                Ok(())
            }
            .boxed()
        },
        nobody,
    );
    (Exporter::new(traces), kept)
}

fn spans_in(body: &Value) -> &Vec<Value> {
    body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap()
}

/// SPEC 9.8: a body is what the protocol says: ids in hexadecimal, times and numbers as texts.
#[tokio::test]
async fn bodies() {
    let (exporter, kept) = collector();
    (0..3).for_each(|n| exporter.take(work(n)));
    exporter.flush(PATIENCE).await;
    let kept = kept.lock().unwrap();
    assert_eq!(kept.len(), 1);
    let name = &kept[0]["resourceSpans"][0]["resource"]["attributes"][0];
    assert_eq!(*name, json!({"key": "service.name", "value": {"stringValue": "aish"}}));
    let spans = spans_in(&kept[0]);
    assert_eq!(
        spans[0],
        json!({
            "traceId": "0".repeat(32), "spanId": "0".repeat(16), "name": "chat 0", "kind": 3,
            "startTimeUnixNano": "1795305599042000000", "endTimeUnixNano": "1795305600000000000",
            "attributes": [
                {"key": "gen_ai.request.model", "value": {"stringValue": "desk"}},
                {"key": "gen_ai.usage.input_tokens", "value": {"intValue": u64::MAX.to_string()}},
                {"key": "gen_ai.response.finish_reasons", "value": {"arrayValue": {"values": [{"stringValue": "stop"}]}}},
            ],
        })
    );
    assert_eq!(spans[1]["status"], json!({"code": 2, "message": "http_503"}));
    assert_eq!(spans[1]["parentSpanId"], "f".repeat(16));
    assert_eq!(
        spans[2]["links"],
        json!([{"traceId": "a".repeat(32), "spanId": "b".repeat(16)}])
    );
}

/// SPEC 9.8: spans are sent together, soon, and no more at once than a collector likes.
#[tokio::test(start_paused = true)]
async fn batches() {
    let (exporter, kept) = collector();
    let exporter = Arc::new(exporter);
    (0..BATCH_SPANS_MAX + 5).for_each(|n| exporter.take(work(n)));
    let running = Arc::clone(&exporter);
    let running = tokio::spawn(async move { running.run().await });
    tokio::time::sleep(Duration::from_millis(2 * BATCH_TIMEOUT_MS)).await;
    let counts: Vec<usize> = kept.lock().unwrap().iter().map(|body| spans_in(body).len()).collect();
    assert_eq!(counts, [BATCH_SPANS_MAX, 5]);
    exporter.take(work(1));
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    exporter.flush(PATIENCE).await;
    assert_eq!(kept.lock().unwrap().len(), 3);
    assert_eq!(exporter.dropped(), 0);
}

/// SPEC 9.8: a collector that is slow, gone or says no costs spans, which are counted, and nothing else.
#[tokio::test(start_paused = true)]
async fn a_collector_that_fails() {
    let stuck = Exporter::new(Traces::new(|_| std::future::pending().boxed(), nobody));
    (0..QUEUE_SPANS_MAX + 7).for_each(|n| stuck.take(work(n)));
    assert_eq!(stuck.dropped(), 7);
    stuck.flush(Duration::from_secs(SEND_TIMEOUT_S + 1)).await;
    assert_eq!(stuck.dropped(), 7 + BATCH_SPANS_MAX as u64);
    let refusing = Exporter::new(Traces::new(|_| async { Err("503".to_owned()) }.boxed(), nobody));
    refusing.take(work(1));
    refusing.flush(PATIENCE).await;
    assert_eq!(refusing.dropped(), 1);
}
