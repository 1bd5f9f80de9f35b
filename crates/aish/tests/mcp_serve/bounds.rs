//! Clients that take too much, or go without a word: what that costs, and that nobody else pays for it.

use crate::client::Client;
use crate::http::{Served, initialize, session_of};
use crate::support::sandbox::Sandbox;
use crate::support::{default_wait, poll_until, processes};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

/// More than the sessions that are kept.
const SESSIONS_TOO_MANY: usize = 300;
/// What a server may hold of all that clients send, in KiB.
const MEMORY_KIB_MAX: u64 = 120 * 1024;

/// A call that writes a megabyte or two.
fn large(number: usize) -> Value {
    json!({"path": format!("file{number}"), "content": "x".repeat(2_000_000)})
}

/// SPEC 6.10, 12: what was written and what waits to be allowed is not held in memory without end.
#[test]
fn large_calls() {
    let sandbox = Sandbox::new();
    let mut client = Client::start(&sandbox, &[], &json!({}));
    for number in 0..25 {
        let (text, is_error) = client.call(number, "file_write", &large(0));
        assert!(is_error && text.contains("could ask nobody"), "{text}");
    }
    assert!(processes::peak_memory_kib(client.child.id()).unwrap() < MEMORY_KIB_MAX);
    assert!(client.hang_up().success());
    let (served, _sandbox) = Served::start(sandbox, &[]);
    let asked: Vec<Value> = (0..25)
        .map(|number| served.call("file_write", large(number), &json!({})))
        .collect();
    assert_eq!(asked[0]["resultType"], "input_required");
    assert!(asked[24].to_string().contains("too many calls wait"));
    let pid = served.running.pid().as_raw_nonzero().get().unsigned_abs();
    assert!(processes::peak_memory_kib(pid).unwrap() < MEMORY_KIB_MAX);
}

/// SPEC 5.3, 6.10: however many ask, a call that waits for its answer waits on.
#[test]
fn asks_stay() {
    let (served, sandbox) = Served::start(Sandbox::new(), &[]);
    let mine = json!({"command": "touch mine"});
    let asked = served.call("bash", mine.clone(), &json!({}));
    let others: Vec<Value> = (0..40)
        .map(|number| served.call("bash", json!({"command": format!("touch {number}")}), &json!({})))
        .collect();
    assert_eq!(others[0]["resultType"], "input_required");
    let refused = others[39].to_string();
    assert!(refused.contains("too many calls wait"), "{refused}");
    let yes = json!({"approval": {"action": "accept", "content": {"approve": true}}});
    let answer = json!({"requestState": asked["requestState"], "inputResponses": yes});
    assert_eq!(served.call("bash", mine, &answer)["isError"], false);
    assert!(sandbox.path("mine").exists());
}

/// Begins a session; gives its id.
fn begin(served: &Served) -> String {
    let (status, head, body) = served.post(&[], &initialize());
    assert_eq!(status, 200, "{body}");
    session_of(&head)
}

/// SPEC 6.2, 6.10, 12: clients that begin sessions without end are served, and so are those that have one: the session goes that
/// was used longest ago. A request that stands for itself begins none.
#[test]
fn sessions_are_bounded() {
    let (served, _sandbox) = Served::start(Sandbox::new(), &[]);
    let (idle, used, listening) = (begin(&served), begin(&served), begin(&served));
    let mut stream = served.connect();
    let listen = format!("{}Mcp-Session-Id: {listening}\r\n\r\n", served.head("GET"));
    stream.write_all(listen.as_bytes()).unwrap();
    let mut begun = [0; 12];
    stream.read_exact(&mut begun).unwrap();
    assert_eq!(&begun, b"HTTP/1.1 200");
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    let is_there = |session: &str| served.post(&[("Mcp-Session-Id", session)], &ping).0;
    for number in 0..SESSIONS_TOO_MANY {
        begin(&served);
        if number % 50 == 0 {
            assert_eq!(is_there(&used), 200);
        }
    }
    assert_eq!(
        (is_there(&idle), is_there(&used), is_there(&listening)),
        (404, 200, 200)
    );
    let mut long = initialize();
    long["params"]["clientInfo"]["name"] = json!("x".repeat(70_000));
    assert_eq!(served.post(&[], &long).0, 413);
    let mut many = initialize();
    many["params"]["capabilities"] = json!({"experimental": {"x": {"y": vec![0; 2_000]}}});
    assert_eq!(served.post(&[], &many).0, 413);
}

/// SPEC 6.10, 12: connections that show no token make room for those that do.
#[test]
fn newcomers_make_room() {
    let (served, _sandbox) = Served::start(Sandbox::new(), &[]);
    let rude: Vec<TcpStream> = (0..400)
        .map(|_| {
            let mut stream = served.connect();
            stream.write_all(b"POST /mcp HTTP/1.1\r\nHost: ").unwrap();
            stream
        })
        .collect();
    begin(&served);
    // The first of them was closed for it.
    assert_eq!((&rude[0]).read(&mut [0]).unwrap_or(0), 0);
}

/// SPEC 6.10: a client of the older protocols that breaks off and is not heard of again, or ends its session, ends what its call
/// had started.
#[test]
fn who_goes_ends_its_calls() {
    let (served, sandbox) = Served::start(Sandbox::new(), &["--approval", "full"]);
    let runs = |command: &str| {
        let all = processes::belonging_to(&sandbox.project());
        all.into_iter().any(|process| process.command == command)
    };
    let call = |session: &str, command: &str| {
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call",
            "params": {"name": "bash", "arguments": {"command": command}}});
        let message = message.to_string();
        let mut stream = served.connect();
        let head = format!(
            "{}Mcp-Session-Id: {session}\r\nContent-Length: {}\r\n\r\n",
            served.head("POST"),
            message.len()
        );
        stream.write_all(format!("{head}{message}").as_bytes()).unwrap();
        poll_until(command, default_wait(), || runs(command).then_some(()));
        stream
    };
    let (gone, ended) = (begin(&served), begin(&served));
    drop(call(&gone, "sleep 3601"));
    let stream = call(&ended, "sleep 3602");
    let end = format!(
        "{}Mcp-Session-Id: {ended}\r\nConnection: close\r\n\r\n",
        served.head("DELETE")
    );
    // Who does not wait for the answer may not have been heard.
    let mut ending = served.connect();
    ending.write_all(end.as_bytes()).unwrap();
    ending.read_to_end(&mut Vec::new()).unwrap();
    for command in ["sleep 3602", "sleep 3601"] {
        // One that is not heard of again is given some seconds to come back.
        poll_until("the end of the call", 3 * default_wait(), || {
            (!runs(command)).then_some(())
        });
    }
    drop(stream);
}
