//! What HTTP servers refuse, and where they send their clients.

use crate::check::{Expect, in_a_pipe, model, sandbox, told};
use crate::support::fake_server::FakeServer;
use crate::support::mcp::{McpServer, PROTOCOL, Script, Transport, tool};
use crate::support::reply::{Framing, Reply};
use crate::support::wire::Received;
use serde_json::json;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A made-up token.
const TOKEN: &str = "token-of-the-first-origin-0123456789";

/// Keys of a server that is sent [`TOKEN`].
fn with_token() -> String {
    format!("auth_token = \"{TOKEN}\"\nheaders = {{ \"X-Key\" = \"{TOKEN}\" }}\n")
}

fn is_call(request: &Received) -> bool {
    request.json["method"] == "tools/call"
}

fn refusing(reply: impl Fn() -> Reply + Send + Sync + 'static) -> Script {
    Script::with_tool("t").on_http(move |request| is_call(request).then(&reply))
}

/// SPEC 6.6, 6.3: a refusal is an error with its status, and the token is in none of what is written.
#[test]
fn refusals() {
    for (status, words) in [
        (400, "400 Bad Request"),
        (401, "401 Unauthorized"),
        (403, "403 Forbidden"),
        (404, "404 Not Found"),
        (429, "429 Too Many Requests"),
        (500, "500 Internal Server Error"),
        (502, "502 Bad Gateway"),
        (503, "503 Service Unavailable"),
    ] {
        let script = refusing(move || Reply::json(status, &json!({"error": format!("no, {TOKEN}")})));
        let output = in_a_pipe(Transport::Http, script, &with_token(), &Expect::error(words));
        assert!(!output.stderr.contains(TOKEN), "{output:?}");
    }
}

/// SPEC 6.11: nothing follows a redirect to another origin, the token least of all; the person is told where it led.
#[test]
fn redirects() {
    let other = FakeServer::builder()
        .everything(|_| Reply::json(200, &json!({})))
        .start();
    let target = format!("http://{}/elsewhere", other.address());
    for status in [301, 302, 303, 307, 308] {
        let location = target.clone();
        let script = refusing(move || Reply::json(status, &json!({})).header("location", &location));
        let output = in_a_pipe(
            Transport::Http,
            script,
            &with_token(),
            &Expect::error(&status.to_string()),
        );
        assert!(output.stderr.contains("another origin"), "{output:?}");
    }
    // And where it is the first thing that the server says.
    let script =
        Script::with_tool("t").on_http(move |_| Some(Reply::json(307, &json!({})).header("location", &target)));
    let server = McpServer::start(Transport::Http, script);
    let config = format!("{}{}", server.config("bad"), with_token());
    let output = crate::support::sandbox::Sandbox::new()
        .config(&config)
        .run(&["mcp", "list"]);
    assert!(output.stdout.contains("another origin"), "{output:?}");
    let there: Vec<_> = other.requests().iter().map(|request| request.headers.clone()).collect();
    assert!(there.is_empty(), "{there:?}");
}

/// A server whose sessions are forgotten after the first call of each; calls that were made go into `calls`.
fn forgetful(hints: serde_json::Value, calls: std::sync::Arc<AtomicUsize>) -> Script {
    let mut definition = tool("t", "forgets");
    definition["annotations"] = hints;
    Script::with_tools(vec![definition]).on_http(move |request| {
        let id = &request.json["id"];
        if request.json["method"] == "initialize" {
            let result = json!({"protocolVersion": PROTOCOL, "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}});
            let reply = Reply::json(200, &json!({"jsonrpc": "2.0", "id": id, "result": result}));
            return Some(reply.header("mcp-session-id", "a session"));
        }
        let is_first = is_call(request) && calls.fetch_add(1, Ordering::SeqCst) == 0;
        is_first.then(|| Reply::json(404, &json!({"error": "session not found"})))
    })
}

/// SPEC 6.2, 6.6: a session that the server forgot is made anew. A call is made again only where the tool may be repeated and the
/// server is trusted.
#[test]
fn a_forgotten_session() {
    let repeatable = json!({"readOnlyHint": true});
    for (hints, keys, is_repeated) in [
        (repeatable.clone(), "trusted = true\n", true),
        (json!({"idempotentHint": true}), "trusted = true\n", true),
        (repeatable, "", false),
        (json!({}), "trusted = true\n", false),
    ] {
        let calls = std::sync::Arc::new(AtomicUsize::new(0));
        let server = McpServer::start(Transport::Http, forgetful(hints.clone(), std::sync::Arc::clone(&calls)));
        let model = model();
        let sandbox = sandbox(&server, &model, keys);
        sandbox.run(&["-p", "call it"]).success();
        let told_first = told(&model);
        assert_eq!(told_first == "fine", is_repeated, "{hints} {keys}: {told_first}");
        assert_eq!(calls.load(Ordering::SeqCst), 1 + usize::from(is_repeated));
        sandbox.run(&["-p", "call it once more", "--continue"]).success();
        assert_eq!(told(&model), "fine", "a new session was made");
        assert_eq!(model.problems(), Vec::<String>::new());
    }
}

/// SPEC 12: a gigabyte that was packed into a megabyte is not unpacked into memory.
#[test]
fn a_gzip_bomb() {
    // Packed data may be a series of packed pieces.
    let packed = Command::new("sh")
        .args(["-c", "head -c 10000000 /dev/zero | gzip -9"])
        .output();
    let packed = packed.unwrap().stdout;
    assert!(packed.len() < 20_000, "{} bytes", packed.len());
    let script = refusing(move || {
        let reply = Reply::bare_stream().typed("application/json").framed(Framing::Chunked);
        reply.header("content-encoding", "gzip").repeats(packed.clone(), 100)
    });
    crate::check::at_a_prompt(Transport::Http, script, "", &Expect::error(""));
}
