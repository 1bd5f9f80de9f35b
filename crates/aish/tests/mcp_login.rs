//! Logging in at a server that asks for it: `aish mcp login` and `:mcp login`, with a browser that does as it is told (SPEC 6.3).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use support::fake_server::FakeServer;
use support::ledger;
use support::mcp::{McpServer, Say, Script, Transport, tool};
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
        _ => refusal(&base),
    };
    Some(reply)
}

fn refusal(base: &str) -> Reply {
    let place = format!("{base}/.well-known/oauth-protected-resource/mcp");
    let challenge = format!("Bearer resource_metadata=\"{place}\"");
    Reply::json(401, &json!(null)).header("www-authenticate", &challenge)
}

/// A sandbox that knows the server, with that program as its browser.
fn sandbox(server: &McpServer, browser: &str) -> Sandbox {
    browsing(Sandbox::new(), server, browser)
}

fn browsing(sandbox: Sandbox, server: &McpServer, browser: &str) -> Sandbox {
    let sandbox = sandbox.config(&server.config("tickets")).file("browser", browser);
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

/// A server that lets in whoever has logged in, and says the token of whoever asks wherever it says anything: in what a tool
/// does, in results, in errors and in its log. JSON has more than one way to write a text.
fn parrot() -> McpServer {
    let tools = vec![tool("open", &format!("opens what {TOKEN} may open"))];
    let logged = json!({"level": "error", "logger": "parrot", "data": format!("somebody with {TOKEN}")});
    let script = Script::with_tools(tools)
        .on_http(answer)
        .on("tools/call", move |message| {
            let id = &message["id"];
            let fails = message["params"]["arguments"]["fail"] == true;
            let answer = if fails {
                Say::error(id, -32603, &format!("not with {TOKEN}"))
            } else {
                Say::text(id, &format!("opened with {TOKEN} and {TOKEN}"))
            };
            vec![Say::notification("notifications/message", logged.clone()), answer]
        });
    McpServer::start(Transport::Http, script)
}

/// What is in the ledger's files.
fn ledger_bytes(sandbox: &Sandbox) -> String {
    let files = ["ledger.db", "ledger.db-wal"].map(|name| sandbox.home().join("data").join(name));
    let bytes: Vec<u8> = files
        .iter()
        .flat_map(|file| fs::read(file).unwrap_or_default())
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// SPEC 10.5, 12: a token that came while the program ran is known to it from then on. A server that repeats it gets it neither on
/// the screen nor into the ledger, an export or a request to the model; nor does anybody who finds the file.
#[test]
fn a_server_that_repeats_its_token() {
    let server = parrot();
    let model = FakeServer::script([
        Reply::calls(&[
            ("c1", "tickets__open", json!({})),
            ("c2", "tickets__open", json!({"fail": true})),
        ]),
        Reply::text("twice opened"),
        Reply::text(&format!("the model guessed {TOKEN}")),
    ]);
    let sandbox = Sandbox::with_model(&model).config("[mcp.auto_approve]\n\"tickets.open\" = true\n");
    let sandbox = browsing(sandbox, &server, ALLOWS);
    let mut terminal = sandbox.terminal(&[]).size(60, 160).start();
    terminal.wait_for_prompt();
    terminal.send_line(":mcp login tickets");
    terminal.wait_for_text("mcp: tickets: 1 tool");
    terminal.wait_for_prompt();
    terminal.send_line("open it, twice");
    terminal.wait_for_text("twice opened");
    for line in [
        ":mcp tools",
        ":mcp tool tickets.open",
        ":mcp log tickets",
        ":show",
        ":mcp list",
    ] {
        terminal.wait_for_prompt();
        terminal.send_line(line);
    }
    terminal.wait_for_prompt();
    let kept = ledger_bytes(&sandbox);
    assert!(!kept.contains(TOKEN) && kept.contains("opened with [redacted:token of tickets]"));
    terminal.assert_never_wrote(TOKEN.as_bytes());
    // What the person's own command writes is theirs to see, and the ledger has it as it was. Nobody else gets that.
    terminal.send_line(&format!(
        "!cat {}",
        sandbox.home().join("data/mcp-tokens.json").display()
    ));
    terminal.wait_for_text("token_endpoint");
    terminal.wait_for_prompt();
    terminal.send_line("and now?");
    terminal.wait_for_text("the model guessed [redacted:token of tickets]");
    terminal.wait_for_prompt();
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));

    let history = terminal.history_text();
    assert!(
        history.contains("somebody with [redacted:token of tickets]"),
        "{history}"
    );
    for request in model.requests() {
        assert!(!request.json.to_string().contains(TOKEN), "{}", request.json);
    }
    let asked = model.requests()[1].json.to_string();
    assert!(asked.contains("opened with [redacted:token of tickets]"), "{asked}");
    assert!(asked.contains("not with [redacted:token of tickets]"), "{asked}");
    assert!(asked.contains("what [redacted:token of tickets] may open"), "{asked}");
    let exported = ledger::only_export(&sandbox);
    assert!(!json!(exported).to_string().contains(TOKEN));
}

/// SPEC 6.3: without a browser the address is there all the same, and says where to go.
#[test]
fn no_browser() {
    let server = tickets("opens tickets");
    let sandbox = sandbox(&server, WAITS).env("BROWSER", "/nowhere/browser");
    let terminal = sandbox.terminal(&[]).size(60, 160).start();
    terminal.wait_for_prompt();
    terminal.send_line(":mcp login tickets");
    terminal.wait_for_text("mcp: tickets: log in here, Ctrl-C stops waiting: http://127.0.0.1");
    terminal.wait_for_text("mcp: tickets: no browser was opened");
    terminal.send(key::CTRL_C);
    terminal.wait_for_text("mcp: tickets: stopped");
    terminal.wait_for_prompt();
}

/// SPEC 6.3, 6.4: a token that ends in the middle, with nothing to refresh it by, makes the server one that needs a login, and the
/// call fails; after another login it is there again.
#[test]
fn a_login_that_ends() {
    let is_over = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&is_over);
    let script = Script::with_tools(vec![tool("open", "opens tickets")]).on_http(move |request| {
        let refused = request.path == "/mcp" && ended.load(Ordering::SeqCst);
        if refused {
            return Some(refusal(&format!("http://{}", request.header("host").unwrap())));
        }
        answer(request)
    });
    let server = McpServer::start(Transport::Http, script);
    let model = FakeServer::script([
        Reply::call("c1", "tickets__open", json!({})),
        Reply::text("it stays shut"),
    ]);
    let sandbox = Sandbox::with_model(&model).config("[mcp.auto_approve]\n\"tickets.open\" = true\n");
    let sandbox = browsing(sandbox, &server, ALLOWS);
    let terminal = sandbox.terminal(&[]).size(60, 160).start();
    terminal.wait_for_prompt();
    terminal.send_line(":mcp login tickets");
    terminal.wait_for_text("mcp: tickets: 1 tool");
    terminal.wait_for_prompt();
    is_over.store(true, Ordering::SeqCst);
    terminal.send_line("open it");
    terminal.wait_for_text("it stays shut");
    terminal.wait_for_prompt();
    terminal.send_line(":mcp list");
    terminal.wait_for("the server in the list", |screen| {
        let text = screen.contents();
        let listed = text.rsplit_once(":mcp list").map(|(_, listed)| listed.to_owned());
        listed.is_some_and(|listed| listed.contains("needs login"))
    });
    assert!(model.requests()[1].last_text().contains(NEEDS_LOGIN));
    is_over.store(false, Ordering::SeqCst);
    terminal.wait_for_prompt();
    terminal.send_line(":mcp login tickets");
    terminal.wait_for("the server again", |screen| {
        screen.contents().matches("mcp: tickets: 1 tool").count() == 2
    });
}
