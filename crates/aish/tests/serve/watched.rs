//! What whoever runs a server sees of it: the log on stderr, and traces at a collector (SPEC 9.8).

use super::app::{Served, TOKEN, TOKEN_VARIABLE, place, replied};
use crate::support::fake_server::FakeServer;
use crate::support::reply::Reply;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// A collector of traces: where it listens, and what it is sent, as its path, its type and its body.
fn collector() -> (String, Receiver<(String, String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (got, gets) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let lines: Vec<String> = stream
                .by_ref()
                .lines()
                .map(Result::unwrap)
                .take_while(|line| !line.is_empty())
                .collect();
            let header = |name: &str| {
                let mut fields = lines.iter().filter_map(|line| line.split_once(": "));
                fields
                    .find(|(key, _)| key.eq_ignore_ascii_case(name))
                    .map(|(_, value)| value.to_owned())
                    .unwrap()
            };
            let mut body = vec![0; header("content-length").parse().unwrap()];
            stream.read_exact(&mut body).unwrap();
            let path = lines[0].split(' ').nth(1).unwrap().to_owned();
            // The test may have seen enough.
            let _ = got.send((path, header("content-type"), serde_json::from_slice(&body).unwrap()));
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
            stream.get_mut().write_all(answer).unwrap();
        }
    });
    (address, gets)
}

/// SPEC 9.8, 10.5: with `--log` every request and every run of a turn is a line; with a collector a turn is a trace that is there in
/// full once the server has ended. Neither says what was said.
#[test]
fn the_log_and_traces() {
    let (address, gets) = collector();
    let model = FakeServer::script([
        Reply::call("call_0", "open_door", json!({"code": "hidden"})),
        Reply::text("hidden as well"),
    ]);
    let sandbox = place(&model).env("AISH_SERVE_OTLP_ENDPOINT", &address);
    let served = Served::start_with(&sandbox, &["--token-env", TOKEN_VARIABLE, "--log", "json"]);
    let waits = served.chat("hidden words", &["open_door"]);
    let told = served.drive(waits, |_| "hidden, too".to_owned());
    replied(&told, "hidden as well");
    served.get("/api/sessions?query=hidden");
    let said = served.terminate().success().stderr;
    let lines: Vec<Value> = said
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let of = |event: &str, field: &str| -> Vec<Value> {
        let lines = lines.iter().filter(|line| line["event"] == event);
        lines.map(|line| line[field].clone()).collect()
    };
    assert_eq!(
        of("request", "route"),
        ["/api/chat", "/api/sessions/{id}/tool_result", "/api/sessions"],
        "{said}"
    );
    assert_eq!(of("turn", "reason"), ["waiting", "end"], "{said}");
    assert!(!said.contains("hidden") && !said.contains(TOKEN), "{said}");

    let mut names = Vec::new();
    let mut traces = Vec::new();
    for (path, kind, body) in gets.try_iter() {
        assert_eq!((path.as_str(), kind.as_str()), ("/v1/traces", "application/json"));
        assert!(!body.to_string().contains("hidden"), "{body}");
        for span in body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap() {
            names.push(span["name"].as_str().unwrap().split(' ').next().unwrap().to_owned());
            traces.push(span["traceId"].clone());
        }
    }
    assert_eq!(names, ["chat", "execute_tool", "chat", "invoke_agent"]);
    traces.dedup();
    assert_eq!(traces.len(), 1);
}
