//! What a server says of itself at a real socket: figures, a line for each request and turn, traces (SPEC 9.8).

use crate::exposition;
use crate::listener::{Served, head};
use crate::support::within;
use aish_provider::scripted::Act;
use aish_server::{Log, LogForm, Settings, Traces};
use futures_util::FutureExt as _;
use serde_json::{Value, json};
use std::io::Write;
use std::sync::{Arc, Mutex};
use tokio::net::TcpStream;

/// Bytes that somebody else can look at while they are written.
#[derive(Clone, Default)]
pub struct Kept(Arc<Mutex<Vec<u8>>>);

impl Kept {
    pub fn lines(&self) -> Vec<Value> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Waits until something is so.
pub async fn until(mut is_so: impl FnMut() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    within(waiting).await;
}

async fn metrics(served: &Served) -> exposition::Samples {
    let (status, head, text) = served.say(&head("GET /metrics"), "").await;
    assert_eq!(status, 200);
    assert!(
        head.contains("content-type: text/plain; version=0.0.4; charset=utf-8"),
        "{head}"
    );
    exposition::read(&text)
}

/// SPEC 9.8: what was asked, refused, begun, called and said is counted, and any reader of the format can read it.
#[tokio::test]
async fn figures() {
    let served = Served::start([Act::calls(&[("open_door", "{}")]), Act::text("open")]).await;
    let (_, _, body) = served.say(&head("POST /api/chat"), "{\"message\":\"go\"}").await;
    let waits: Value = serde_json::from_str(&body).unwrap();
    let path = format!("/api/sessions/{}/tool_result", waits["session_id"].as_str().unwrap());
    let answers = ["open", "open", "shut"].map(|content| json!({"content": content}).to_string());
    for answer in answers {
        served.say(&head(&format!("POST {path}")), &answer).await;
    }
    served.say(&head("GET /secret/path?token=hidden"), "").await;
    served.say("GET /api/sessions HTTP/1.1\r\nHost: localhost", "").await;
    let samples = metrics(&served).await;
    let check = |name: &str, expect: f64| {
        let found = samples.get(name);
        assert_eq!(found, Some(&expect), "{name}: {samples:#?}");
    };
    check("aish_http_requests_total{method=POST,route=/api/chat,status=200}", 1.0);
    check(
        "aish_http_requests_total{method=POST,route=/api/sessions/{id}/tool_result,status=200}",
        2.0,
    );
    check(
        "aish_http_requests_total{method=POST,route=/api/sessions/{id}/tool_result,status=409}",
        1.0,
    );
    check("aish_http_requests_total{method=GET,route=none,status=404}", 1.0);
    check("aish_http_requests_total{method=-,route=-,status=401}", 1.0);
    check("aish_http_refusals_total{kind=already_answered}", 1.0);
    check("aish_http_refusals_total{kind=unauthorized}", 1.0);
    check("aish_claims_lost_total", 1.0);
    check("aish_turns_started_total", 1.0);
    check("aish_turns_suspended_total", 1.0);
    check("aish_turns_resumed_total", 1.0);
    check("aish_turns_ended_total{reason=end}", 1.0);
    check("aish_turns_running", 0.0);
    check("aish_turns_waiting{for=client}", 0.0);
    check("aish_model_replies_total{model=scripted}", 2.0);
    check("aish_tool_calls_total{end=ok,tool=client}", 1.0);
    check("aish_event_streams", 0.0);
    check("aish_store_errors_total", 0.0);
    check("aish_http_request_duration_seconds_count{route=/api/chat}", 1.0);
    assert!(samples["process_resident_memory_bytes"] > 1e6);
    assert!(samples["process_open_fds"] >= 3.0);
    assert!(samples["process_start_time_seconds"] > 1.7e9);
    assert!(samples["aish_http_connections"] >= 1.0);
    assert!(!format!("{samples:?}").contains("secret"), "{samples:?}");
}

/// SPEC 9.8: a line for each request and each run of a turn: which, by its pattern, how it went and how long it took; and nothing of
/// what was said, no query and no token.
#[tokio::test]
async fn lines() {
    let kept = Kept::default();
    let log = Log::new(LogForm::Json, kept.clone()).unwrap();
    let settings = Settings {
        log: Some(log),
        ..Settings::default()
    };
    let acts = [
        Act::calls(&[("open_door", "{\"code\":\"hidden\"}")]),
        Act::text("hidden"),
    ];
    let served = Served::with(settings, acts).await;
    let request = format!("{}\r\nX-Request-Id: r-1", head("POST /api/chat?"));
    let (_, _, body) = served.say(&request, "{\"message\":\"hidden\"}").await;
    let waits: Value = serde_json::from_str(&body).unwrap();
    served.say(&head("GET /api/sessions?query=hidden"), "").await;
    served
        .say(
            "GET /hidden HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer hidden",
            "",
        )
        .await;
    until(|| kept.lines().len() == 4).await;
    let mut lines = kept.lines();
    let session = &waits["conversation_id"];
    let line = |lines: &mut Vec<Value>, expect: Value| {
        let mut line = lines.remove(0);
        for varies in ["time", "duration_ms"] {
            assert!(!line[varies].is_null(), "{line}");
            line.as_object_mut().unwrap().remove(varies);
        }
        assert_eq!(line, expect);
    };
    let usage = json!({"input_tokens": 0, "output_tokens": 0});
    line(
        &mut lines,
        json!({"level": "info", "event": "turn", "session": session, "turn": 1, "model": "scripted", "reason": "waiting", "usage": usage}),
    );
    line(
        &mut lines,
        json!({"level": "info", "event": "request", "request_id": "r-1", "method": "POST", "route": "/api/chat", "status": 200,
               "bytes": body.len(), "session": session}),
    );
    assert_eq!(
        (&lines[0]["route"], &lines[0]["status"]),
        (&json!("/api/sessions"), &json!(200))
    );
    assert_eq!((&lines[1]["route"], &lines[1]["status"]), (&json!("-"), &json!(401)));
    let said = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
    assert!(!said.contains("hidden") && !said.contains("a-token-for"), "{said}");
}

/// SPEC 9.8: a client that hangs up before it was answered is in the log as well.
#[tokio::test]
async fn hung_up() {
    let kept = Kept::default();
    let settings = Settings {
        log: Some(Log::new(LogForm::Json, kept.clone()).unwrap()),
        ..Settings::default()
    };
    let served = Served::with(settings, [Act::Hang(Vec::new())]).await;
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let body = "{\"message\":\"hi\"}";
    let request = format!(
        "{}\r\nContent-Length: {}\r\n\r\n{body}",
        head("POST /api/chat"),
        body.len()
    );
    tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes())
        .await
        .unwrap();
    until(|| !served.world.model.asked().is_empty()).await;
    drop(stream);
    until(|| !kept.lines().is_empty()).await;
    assert_eq!(kept.lines()[0]["status"], 499);
}

/// SPEC 9.5, 9.8: a turn is one trace, whatever it waited for in between; a request is a part of its client's trace, and points there.
#[tokio::test]
async fn traces() {
    let bodies: Arc<Mutex<Vec<Value>>> = Arc::default();
    let sent = Arc::clone(&bodies);
    let send = move |body: Vec<u8>| {
        sent.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
        async { Ok(()) }.boxed()
    };
    let settings = Settings {
        traces: Some(Traces::new(send, |_| Some("openai"))),
        ..Settings::default()
    };
    let served = Served::with(settings, [Act::calls(&[("open_door", "{}")]), Act::text("open")]).await;
    let client = "0af7651916cd43dd8448eb211c80319c";
    let parent = format!("traceparent: 00-{client}-b7ad6b7169203331-01");
    let request = format!("{}\r\n{parent}", head("POST /api/chat"));
    let (_, _, body) = served.say(&request, "{\"message\":\"go\"}").await;
    let waits: Value = serde_json::from_str(&body).unwrap();
    let path = format!(
        "POST /api/sessions/{}/tool_result",
        waits["session_id"].as_str().unwrap()
    );
    served.say(&head(&path), "{\"content\":\"yes\"}").await;
    served.stop.send_replace(true);
    within(served.serving).await.unwrap();
    let bodies = bodies.lock().unwrap();
    let spans: Vec<&Value> = bodies
        .iter()
        .flat_map(|body| body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap())
        .collect();
    let mut names: Vec<&str> = spans.iter().map(|span| span["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "POST /api/chat",
            "chat scripted",
            "chat scripted",
            "execute_tool open_door",
            "invoke_agent aish"
        ]
    );
    let find = |name: &str| *spans.iter().find(|span| span["name"] == name).unwrap();
    let (root, request) = (find("invoke_agent aish"), find("POST /api/chat"));
    for span in spans.iter().filter(|span| span["name"] != "POST /api/chat") {
        assert_eq!(span["traceId"], root["traceId"]);
        assert!(
            span["name"] == root["name"] || span["parentSpanId"] == root["spanId"],
            "{span}"
        );
    }
    assert_eq!(
        (&request["traceId"], &request["parentSpanId"]),
        (&json!(client), &json!("b7ad6b7169203331"))
    );
    let link = json!([{"traceId": root["traceId"], "spanId": root["spanId"]}]);
    assert_eq!((&request["kind"], &request["links"]), (&json!(2), &link));
}
