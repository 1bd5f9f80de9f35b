//! Who is let in, what is refused and how, and what the server says of itself (SPEC 9.8).

use super::app::{Served, TOKEN, TOKEN_VARIABLE, accepted, place, refused, replied, results, route};
use crate::support::door::Door;
use crate::support::fake_server::FakeServer;
use crate::support::http::{self, Response};
use crate::support::ledger::text;
use crate::support::reply::Reply;
use crate::support::sandbox::Sandbox;
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;

/// More than the largest body that is taken, in bytes.
const BODY_BYTES_TOO_MANY: usize = 11 << 20;

/// Asks with exactly these headers.
fn bare(served: &Served, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Response {
    http::ask(served.port, method, path, headers, body).unwrap()
}

/// SPEC 9.8: no token, a wrong one, another host or origin, or a head without end: refused.
#[test]
fn who_is_let_in() {
    let model = FakeServer::builder().otherwise(|_| Reply::text("hello")).start();
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let door = Door {
        port: served.port,
        path: "/api/chat",
        token: TOKEN,
        headers: &[("Content-Type", "application/json")],
        body: "{\"message\":\"hi\"}",
    };
    door.assert_lets_in_its_own(|response| {
        let is_in = response.status == 200;
        assert_eq!(response.json()["error"]["kind"].is_string(), !is_in, "{response:?}");
    });
    door.assert_bounds_heads();
}

/// SPEC 9.8: a token is made at the first start, in a file for the user alone whose path is said; it holds from then on.
#[test]
fn the_token_file() {
    let model = FakeServer::script([Reply::text("hello")]);
    let sandbox = Sandbox::with_model(&model);
    let token_path = |served: &Served| {
        let said = served.said();
        let home = sandbox.home().to_string_lossy().into_owned();
        let from = said.find(&home).unwrap_or_else(|| panic!("no path of a token: {said}"));
        said[from..]
            .lines()
            .next()
            .unwrap()
            .trim_end_matches(['.', ')', ','])
            .to_owned()
    };
    let served = Served::start_with(&sandbox, &[]);
    served.running().wait_for_stderr(&sandbox.home().to_string_lossy());
    let path = token_path(&served);
    let token = fs::read_to_string(&path).unwrap().trim().to_owned();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(token.len() >= 32, "{} characters", token.len());
    assert!(!served.said().contains(&token), "the token itself was printed");
    let host = format!("127.0.0.1:{}", served.port);
    let chat = |served: &Served, token: &str| {
        let (host, token) = (format!("127.0.0.1:{}", served.port), format!("Bearer {token}"));
        let headers = [
            ("Host", host.as_str()),
            ("Authorization", token.as_str()),
            ("Content-Type", "application/json"),
        ];
        bare(served, "POST", "/api/chat", &headers, "{\"message\":\"hi\"}")
    };
    replied(&accepted(&chat(&served, &token)), "hello");
    assert_eq!(chat(&served, "another-token-entirely").status, 401);
    served.terminate().success();
    let served = Served::start_with(&sandbox, &[]);
    served.running().wait_for_stderr(&sandbox.home().to_string_lossy());
    assert_eq!(fs::read_to_string(token_path(&served)).unwrap().trim(), token);
    let token = format!("Bearer {token}");
    let host_now = format!("127.0.0.1:{}", served.port);
    assert_ne!((&host, served.port), (&host_now, 0));
    let headers = [("Host", host_now.as_str()), ("Authorization", token.as_str())];
    assert_eq!(bare(&served, "GET", "/api/sessions", &headers, "").status, 200);
}

/// SPEC 9.8: without a token only on this machine itself, and loud; a variable that is not set is an error.
#[test]
fn without_a_token() {
    let model = FakeServer::script([]);
    let sandbox = Sandbox::with_model(&model);
    let served = Served::start_with(&sandbox, &["--no-token"]);
    let host = format!("127.0.0.1:{}", served.port);
    assert_eq!(
        bare(&served, "GET", "/api/sessions", &[("Host", &host)], "").status,
        200
    );
    assert_eq!(
        bare(&served, "GET", "/api/sessions", &[("Host", "evil.example")], "").status,
        403
    );
    assert!(served.said().contains("NO TOKEN"), "{}", served.said());
    let refused = |arguments: &[&str], expect: &str| {
        let output = sandbox.run(&[&["serve"], arguments].concat()).exits(2);
        assert!(output.stderr.contains(expect), "{}", output.stderr);
    };
    refused(&["--listen", "0.0.0.0:0", "--no-token"], "--no-token");
    refused(&["--listen", "127.0.0.1:0", "--token-env", "NOT_SET"], "NOT_SET");
    refused(&["--listen", "nonsense"], "nonsense");
    refused(
        &["--listen", "127.0.0.1:0", "--store", "mysql://example"],
        "postgres://",
    );
}

/// SPEC 9.8, 12: whatever is sent, the answer is a refusal in the one shape of errors, and the next request is served.
#[test]
fn refusals_have_one_shape() {
    let model = FakeServer::script([Reply::text("still here")]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let ask = |method: &str, path: &str, further: &[(&str, &str)], body: &str| {
        served.ask(method, path, further, body).unwrap()
    };
    refused(&ask("GET", "/api/nothing", &[], ""), 404, "not_found");
    refused(&ask("POST", "/api/chat", &[], "{\"message\": "), 400, "malformed_json");
    refused(&ask("POST", "/api/chat", &[], "[]"), 422, "invalid_request");
    let wrong_method = ask("DELETE", "/api/chat", &[], "");
    refused(&wrong_method, 405, "method_not_allowed");
    assert_eq!(wrong_method.header("allow"), Some("post"), "{wrong_method:?}");
    let (host, token) = (format!("127.0.0.1:{}", served.port), format!("Bearer {TOKEN}"));
    let untyped = [("Host", host.as_str()), ("Authorization", token.as_str())];
    refused(
        &bare(&served, "POST", "/api/chat", &untyped, "{}"),
        415,
        "unsupported_media_type",
    );
    let form = [
        untyped.as_slice(),
        &[("Content-Type", "application/x-www-form-urlencoded")],
    ]
    .concat();
    refused(
        &bare(&served, "POST", "/api/chat", &form, "message=hi"),
        415,
        "unsupported_media_type",
    );
    let mut large = http::connect(served.port).unwrap();
    let head = format!(
        "POST /api/chat HTTP/1.1\r\nHost: {host}\r\nAuthorization: {token}\r\nContent-Type: application/json\r\n"
    );
    large
        .write_all(format!("{head}Content-Length: {BODY_BYTES_TOO_MANY}\r\n\r\n").as_bytes())
        .unwrap();
    refused(&http::read_response(&mut large).unwrap(), 413, "too_large");
    replied(
        &accepted(&served.post("/api/chat", &json!({"message": "hi"}))),
        "still here",
    );
    model.assert_done();
}

/// SPEC 9.8: a probe needs no token and says nothing of anybody; what says more needs one.
#[test]
fn probes() {
    let model = FakeServer::script([]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let host = format!("127.0.0.1:{}", served.port);
    for path in ["/healthz", "/readyz"] {
        assert_eq!(bare(&served, "GET", path, &[("Host", &host)], "").status, 200, "{path}");
    }
    for path in ["/openapi.json", "/api/sessions"] {
        assert_eq!(bare(&served, "GET", path, &[("Host", &host)], "").status, 401, "{path}");
        assert_eq!(served.get(path).status, 200, "{path}");
    }
    let document = served.get("/openapi.json").json();
    assert!(text(&document["openapi"]).starts_with("3."), "{document}");
    for path in [
        "/api/chat",
        "/api/sessions",
        "/api/sessions/{id}",
        "/api/sessions/{id}/tool_result",
    ] {
        assert!(document["paths"][path].is_object(), "{path}: {}", document["paths"]);
    }
}

/// SPEC 9.8: an answer names its request: with the caller's id, or one of its own.
#[test]
fn request_ids() {
    let model = FakeServer::script([]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let given = served
        .ask("GET", "/api/sessions", &[("X-Request-Id", "request-17")], "")
        .unwrap();
    assert_eq!(given.header("x-request-id"), Some("request-17"));
    let (one, two) = (served.get("/api/sessions"), served.get("/api/nothing"));
    assert!(one.header("x-request-id").is_some_and(|id| !id.is_empty()), "{one:?}");
    assert_ne!(one.header("x-request-id"), two.header("x-request-id"));
}

/// SPEC 9.8: sessions are listed the latest first, found by what was said, and shown with their events.
#[test]
fn sessions() {
    let model = FakeServer::script([Reply::text("a heron"), Reply::text("an oak")]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let bird = served.chat("name a bird", &[]);
    let tree = served.chat("name a tree", &[]);
    let ids = |path: &str| -> Vec<Value> {
        let listed = accepted(&served.get(path));
        listed["sessions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|session| session["id"].clone())
            .collect()
    };
    assert_eq!(
        ids("/api/sessions"),
        [tree["conversation_id"].clone(), bird["conversation_id"].clone()]
    );
    assert_eq!(ids("/api/sessions?limit=1"), [tree["conversation_id"].clone()]);
    assert_eq!(ids("/api/sessions?query=heron"), [bird["conversation_id"].clone()]);
    assert_eq!(ids("/api/sessions?query=%22%20OR%20*"), Vec::<Value>::new());
    let shown = accepted(&served.get(&format!("/api/sessions/{}", text(&bird["conversation_id"]))));
    let events = shown["events"].as_array().unwrap();
    let of = |kind: &str| events.iter().find(|event| event["kind"] == kind).unwrap();
    assert_eq!(of("user")["content"], "name a bird");
    assert_eq!(of("assistant")["content"], "a heron");
    assert_eq!(served.get("/api/sessions?limit=many").status, 422);
}

/// SPEC 3.7, 9.8: a cancelled turn is closed, whether it waits or runs, and the conversation goes on.
#[test]
fn cancelled() {
    let model = FakeServer::builder()
        .reply(Reply::call("c1", "pick", json!({})))
        .reply(Reply::hangs())
        .otherwise(|_| Reply::text("here again"))
        .start();
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let pending = served.chat("go", &["pick"]);
    accepted(&served.post(&route(&pending, "cancel"), &json!({})));
    let say = || {
        let body = json!({"message": "go on", "conversation_id": pending["conversation_id"]});
        served.post("/api/chat", &body)
    };
    let running = std::thread::scope(|scope| {
        let running = scope.spawn(say);
        model.wait_for_requests(2);
        let id = text(&pending["conversation_id"]);
        accepted(&served.post(&format!("/api/sessions/{id}/cancel"), &json!({})));
        running.join().unwrap()
    });
    assert!(
        text(&accepted(&running)["reply"]).starts_with("[stopped:"),
        "{running:?}"
    );
    replied(&accepted(&say()), "here again");
}

/// SPEC 10.5, 9.8: the token is in no log, no answer, and no variable of a command that a model runs; one that finds it all the same
/// tells nobody.
#[test]
fn the_token_stays() {
    let model = FakeServer::builder()
        .reply(Reply::call("c1", "bash", json!({"command": "env"})))
        .otherwise(|request| match results(request).len() {
            1 => Reply::call(
                "c2",
                "bash",
                json!({"command": "tr '\\0' '\\n' </proc/$(cat server)/environ"}),
            ),
            _ => Reply::text("done"),
        })
        .start();
    let sandbox = place(&model)
        .config("[approval]\nmode = \"full\"\n")
        .env("PGPASSWORD", "of-another-database");
    let served = Served::start(&sandbox);
    fs::write(sandbox.path("server"), served.running().pid().to_string()).unwrap();
    replied(&served.chat("go", &[]), "done");
    let told = results(model.requests().last().unwrap());
    assert!(
        told[0].contains("PATH=") && !told[0].contains(TOKEN_VARIABLE),
        "{told:?}"
    );
    // Nobody but a command has a use for it here.
    assert!(told[0].contains("PGPASSWORD=of-another-database"), "{told:?}");
    assert!(told[1].contains(&format!("{TOKEN_VARIABLE}=[redacted:")), "{told:?}");
    assert!(!told[1].contains(TOKEN), "{told:?}");
    assert!(!served.terminate().stderr.contains(TOKEN));
}
