//! Logging in at a server that asks for it: `aish mcp login` and `:mcp login`, with a browser that does as it is told (SPEC 6.3).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use support::mcp::{McpServer, Script, Transport, tool};
use support::pty::key;
use support::reply::Reply;
use support::sandbox::Sandbox;
use support::wire::Received;

/// The token that the server gives: nobody may see it.
const TOKEN: &str = "token-that-nobody-may-see";
/// What is said of a server that wants a login.
const NEEDS_LOGIN: &str = "needs login; `:mcp login tickets` (or `aish mcp login tickets`)";

/// A server with one tool that lets in who has [`TOKEN`], and gives it to who logs in: it is its own authorization server.
fn tickets(description: &str) -> McpServer {
    let tools = vec![tool("open", description)];
    McpServer::start(Transport::Http, Script::with_tools(tools).on_http(answer))
}

fn answer(request: &Received) -> Option<Reply> {
    let base = format!("http://{}", request.header("host").unwrap());
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let reply = match path {
        "/.well-known/oauth-protected-resource/mcp" => {
            let about = json!({"resource": format!("{base}/mcp"), "authorization_servers": [base]});
            Reply::json(200, &about)
        }
        "/.well-known/oauth-authorization-server" => {
            let about = json!({
                "issuer": base,
                "authorization_endpoint": format!("{base}/authorize"),
                "token_endpoint": format!("{base}/token"),
                "registration_endpoint": format!("{base}/register"),
                "code_challenge_methods_supported": ["S256"],
            });
            Reply::json(200, &about)
        }
        "/register" => Reply::json(201, &json!({"client_id": "aish-here"})),
        "/authorize" => {
            let mut address = reqwest::Url::parse(&base).unwrap();
            address.set_query(Some(query));
            let asked = |name: &str| {
                let mut values = address.query_pairs();
                values.find(|(key, _)| key == name).unwrap().1.into_owned()
            };
            let to = format!("{}?code=once&state={}", asked("redirect_uri"), asked("state"));
            Reply::json(302, &json!(null)).header("location", &to)
        }
        "/token" => Reply::json(
            200,
            &json!({"access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600}),
        ),
        _ if request.header("authorization") == Some(&format!("Bearer {TOKEN}")) => return None,
        _ => {
            let place = format!("{base}/.well-known/oauth-protected-resource/mcp");
            let challenge = format!("Bearer resource_metadata=\"{place}\"");
            Reply::json(401, &json!(null)).header("www-authenticate", &challenge)
        }
    };
    Some(reply)
}

/// A sandbox that knows the server, with that program as its browser.
fn sandbox(server: &McpServer, browser: &str) -> Sandbox {
    let sandbox = Sandbox::new()
        .config(&server.config("tickets"))
        .file("browser", browser);
    let program = sandbox.path("browser");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    sandbox.env("BROWSER", &program.to_string_lossy())
}

/// A browser in which the person allows everything at once.
const ALLOWS: &str = "#!/bin/sh\nexec curl -sL \"$1\" -o allowed\n";
/// A browser in which the person does nothing.
const WAITS: &str = "#!/bin/sh\nexit 0\n";

/// SPEC 6.3: a server that wants a login says so, the login makes it usable from then on, its token is the user's alone and shows
/// nowhere, and it can be forgotten.
#[test]
fn on_the_command_line() {
    let server = tickets(&format!("opens what {TOKEN} may open"));
    let sandbox = sandbox(&server, ALLOWS);
    let listed = sandbox.run(&["mcp", "list"]).success();
    assert!(listed.stdout.contains(NEEDS_LOGIN), "{listed:?}");
    let done = sandbox.run(&["mcp", "login", "tickets"]).success();
    assert!(done.stderr.contains("mcp: tickets: log in here"), "{done:?}");
    assert!(done.stderr.ends_with("mcp: tickets: logged in, 1 tool\n"), "{done:?}");
    let file = sandbox.home().join("data/mcp-tokens.json");
    assert!(fs::read_to_string(&file).unwrap().contains(TOKEN));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);

    let tools = sandbox.run(&["mcp", "tools"]).success();
    assert!(tools.stdout.contains("tickets.open"), "{tools:?}");
    for said in [&done.stdout, &done.stderr, &tools.stdout, &tools.stderr] {
        assert!(!said.contains(TOKEN), "{said}");
    }
    let page = fs::read_to_string(sandbox.project().join("allowed")).unwrap();
    assert_eq!(page, "aish has the answer. This page can be closed.\n");

    sandbox.run(&["mcp", "login", "tickets", "--forget"]).success();
    let listed = sandbox.run(&["mcp", "list"]).success();
    assert!(listed.stdout.contains(NEEDS_LOGIN), "{listed:?}");
    let unknown = sandbox.run(&["mcp", "login", "nobody"]).exits(1);
    assert!(
        unknown.stderr.contains("mcp: nobody: there is no such server"),
        "{unknown:?}"
    );
}

/// SPEC 6.3, 6.4: at the prompt the same; the server is there afterwards, without another word.
#[test]
fn at_the_prompt() {
    let server = tickets("opens tickets");
    let sandbox = sandbox(&server, ALLOWS);
    let terminal = sandbox.terminal(&[]).size(60, 160).start();
    terminal.wait_for_prompt();
    terminal.send_line(":mcp login tickets");
    terminal.wait_for_text("mcp: tickets: 1 tool");
    terminal.wait_for_prompt();
    terminal.send_line(":mcp tools");
    terminal.wait_for_text("tickets.open");
    terminal.assert_never_wrote(TOKEN.as_bytes());
}

/// SPEC 6.3: whoever does not log in is not waited for once Ctrl-C is pressed.
#[test]
fn nobody_logs_in() {
    let server = tickets("opens tickets");
    let sandbox = sandbox(&server, WAITS);
    let terminal = sandbox.terminal(&[]).size(60, 160).start();
    terminal.wait_for_prompt();
    terminal.send_line(":mcp login tickets");
    terminal.wait_for_text("mcp: tickets: log in here");
    terminal.send(key::CTRL_C);
    terminal.wait_for_text("mcp: tickets: stopped");
    terminal.wait_for_prompt();
}
