//! `aish mcp …` on the command line, with real servers: what is configured, what it offers, and changes to the configuration
//! (SPEC 6.4, 6.9, 6.11, 10.4).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

#[path = "mcp_command/import.rs"]
mod import;

use serde_json::json;
use std::fs;
use support::fake_server::FakeServer;
use support::mcp::{McpServer, Script, Transport};
use support::mcp_real::RealServers;
use support::pty::key;
use support::reply::Reply;
use support::sandbox::Sandbox;

/// Columns of a terminal.
const COLUMNS: u16 = 80;

fn config(sandbox: &Sandbox) -> String {
    fs::read_to_string(sandbox.home().join("config.toml")).unwrap()
}

/// SPEC 6.4: a server is added, tried, listed, its tools shown, and taken out again; the user's file keeps what is theirs, no
/// model and no ledger is needed, and nothing is left running.
#[test]
fn from_add_to_remove() {
    let Some(real) = RealServers::installed() else { return };
    let sandbox = Sandbox::new().config("# mine\n[shell] # all of it\nconfirm_cmd = true");
    let before = config(&sandbox);
    let folder = sandbox.project().to_string_lossy().into_owned();
    let command = [real.path("NODE"), real.path("FILESYSTEM"), folder.as_str()];
    let add = ["mcp", "add", "files", "--no-tool", "write_file", "--"];
    let added = sandbox.run(&[&add[..], &command[..]].concat()).success();
    assert!(added.stderr.contains("[mcp.servers.files]"), "{added:?}");
    assert!(added.stderr.contains("files: connected, "), "{added:?}");
    assert!(config(&sandbox).starts_with(before.trim_end()), "{}", config(&sandbox));

    let listed = sandbox.run(&["mcp", "list"]).success().stdout;
    assert!(listed.starts_with("files  node "), "{listed}");
    assert!(listed.contains(" tools  connected 20"), "{listed}");
    let whole = sandbox.run(&["mcp", "list", "--output", "json"]).success().json();
    assert_eq!(
        (&whole[0]["alias"], &whole[0]["state"]),
        (&json!("files"), &json!("connected"))
    );
    assert_eq!(whole[0]["command"], json!(command));
    assert_eq!(whole[0]["configured_by"], "user");

    let tools = sandbox.run(&["mcp", "tools"]).success().stdout;
    assert!(
        tools.lines().any(|line| line.starts_with("files.read_text_file: ")),
        "{tools}"
    );
    assert!(!tools.contains("files.write_file:"), "{tools}");
    let tools = sandbox
        .run(&["mcp", "tools", "--output", "jsonl"])
        .success()
        .json_lines();
    assert_eq!(whole[0]["tools"], json!(tools.len()));
    let tool = sandbox.run(&["mcp", "tool", "files.read_text_file"]).success().stdout;
    assert!(
        tool.starts_with("files.read_text_file\n") && tool.contains("\"path\""),
        "{tool}"
    );
    let tool = sandbox
        .run(&["mcp", "tool", "files.read_text_file", "--output", "json"])
        .success()
        .json();
    assert_eq!(tool["input_schema"]["type"], "object");

    for (name, why) in [
        ("nonsense", "the name of a tool is ALIAS.NAME"),
        ("files.nonsense", "files offers no such tool"),
        ("files.write_file", "files offers no such tool"),
        ("other.read", "no server is named other"),
    ] {
        let output = sandbox.run(&["mcp", "tool", name]).exits(1);
        assert!(output.stdout.is_empty() && output.stderr.contains(why), "{output:?}");
    }

    let again = sandbox.run(&["mcp", "add", "files", "http://127.0.0.1:1/mcp"]).exits(2);
    assert!(
        again.stderr.contains("a server named files is there already, at "),
        "{again:?}"
    );
    sandbox.run(&["mcp", "remove", "files"]).success();
    assert_eq!(config(&sandbox), before);
    let gone = sandbox.run(&["mcp", "remove", "files"]).exits(1);
    assert!(gone.stderr.contains("there is no server named files"), "{gone:?}");
    assert_eq!(
        sandbox.run(&["mcp", "list", "--output", "json"]).success().json(),
        json!([])
    );
    assert!(!sandbox.ledger().exists());
    sandbox.assert_nothing_runs();
}

/// SPEC 6.4, 10.5: a server that is away stays configured, and a line says so; a key in its address, its headers or its
/// variables is in nothing that is printed.
#[test]
fn what_is_secret_is_not_shown() {
    let sandbox = Sandbox::new().env("MY_HEADER", "hunter2-from-the-environment");
    let url = "http://127.0.0.1:1/mcp?api_key=hunter2-in-the-query";
    let headers = [
        "--header",
        "X-Api-Key: hunter2-in-a-header",
        "--header",
        "X-More: ${MY_HEADER}",
    ];
    let outputs = [
        sandbox
            .run(&[&["mcp", "add", "away", url][..], &headers[..]].concat())
            .success(),
        sandbox
            .run(&[
                "mcp",
                "add",
                "child",
                "--env",
                "TOKEN=hunter2-in-a-variable",
                "--",
                "no-such-program",
            ])
            .success(),
        sandbox.run(&["mcp", "list"]).success(),
        sandbox.run(&["mcp", "list", "--output", "json"]).success(),
        sandbox.run(&["mcp", "tools"]).success(),
        sandbox.run(&["mcp", "tool", "away.x"]).exits(1),
    ];
    for output in &outputs {
        assert!(
            !output.stdout.contains("hunter2") && !output.stderr.contains("hunter2"),
            "{output:?}"
        );
    }
    let [added, child, list, ..] = &outputs;
    assert!(
        added
            .stderr
            .contains("it stays configured; `aish mcp list` tries it again"),
        "{added:?}"
    );
    assert!(
        added.stderr.contains("a secret may be in the file: X-Api-Key, url"),
        "{added:?}"
    );
    assert!(child.stderr.contains("a secret may be in the file: TOKEN"), "{child:?}");
    assert!(
        list.stdout
            .contains("away   http://127.0.0.1:1/mcp  0 tools  trying again"),
        "{list:?}"
    );
    assert!(list.stdout.contains("child  no-such-program"), "{list:?}");
    assert!(
        config(&sandbox).contains("X-More = \"${MY_HEADER}\""),
        "{}",
        config(&sandbox)
    );
}

/// SPEC 6.4, 10.4: what cannot be added is told in a line, with exit code 2, and nothing is written.
#[test]
fn what_cannot_be_added() {
    let sandbox = Sandbox::new().config("# mine");
    let before = config(&sandbox);
    for (arguments, why) in [
        (
            &["A", "http://h/mcp"][..],
            "A is no alias: an alias begins with a small letter",
        ),
        (&["a.b", "http://h/mcp"], "a.b is no alias"),
        (&["a", "ftp://h/mcp"], "expected an http or https address"),
        (&["a", "http://bob:hunter2@h/mcp"], "without a user or password"),
        (&["a", "http://h/mcp", "--protocol", "1999-01-01"], "protocol"),
        (&["a", "http://h/mcp", "--timeout", "0"], "timeout_s"),
        (&["a", "http://h/mcp", "--token-env", "not a name"], "auth_env"),
        (&["a", "--", ""], "without a program"),
    ] {
        let output = sandbox.run(&[&["mcp", "add"][..], arguments].concat()).exits(2);
        assert!(
            output.stderr.contains(why) && !output.stderr.contains("hunter2"),
            "{output:?}"
        );
        assert_eq!(config(&sandbox), before);
    }
}

/// SPEC 6.9, 10.4: a server whose variable is not set is in the list with what is wrong; the others still work.
#[test]
fn a_variable_that_is_not_set() {
    let Some(real) = RealServers::installed() else { return };
    let unset = "[mcp.servers.unset]\nurl = \"${NOT_SET_ANYWHERE}/mcp\"\n";
    let sandbox = Sandbox::new().config(&format!("{unset}{}", real.time("time")));
    let list = sandbox.run(&["mcp", "list"]).success().stdout;
    assert!(list.contains("time   mcp-server-time --local-timezone UTC"), "{list}");
    assert!(
        list.contains("not set up\n       ${NOT_SET_ANYWHERE} is not set; export it"),
        "{list}"
    );
}

/// SPEC 6.4, 10.4: what no request can carry is the configuration's mistake: it is told with the way out, and not tried again.
#[test]
fn a_server_that_can_be_sent_nothing() {
    let config = "[mcp.servers.nowhere]\nurl = \"${PLACE}\"\n\
                  [mcp.servers.odd]\nurl = \"http://127.0.0.1:1/mcp\"\nheaders = { X-Key = \"${KEY}\" }";
    let sandbox = Sandbox::new()
        .config(config)
        .env("PLACE", "somewhere")
        .env("KEY", "two\nlines");
    let list = sandbox.run(&["mcp", "list"]).success().stdout;
    assert!(
        list.contains("0 tools  failed\n         its url is no http:// or https:// address"),
        "{list}"
    );
    assert!(
        list.contains("0 tools  failed\n         the value of the header `X-Key` cannot be sent"),
        "{list}"
    );
    let doctor = sandbox.run(&["doctor"]);
    assert!(doctor.stdout.contains("correct [mcp.servers.nowhere]"), "{doctor:?}");
}

/// SPEC 6.4: a server starts in the directory that was asked for; one that is disabled does not start, and says so wherever it is
/// named.
#[test]
fn where_it_starts_and_whether() {
    let sandbox = Sandbox::new().file("sub/notes", "");
    let started = sandbox.project().join("sub/started");
    let command = ["sh", "-c", "pwd >started"];
    let add = ["mcp", "add", "here", "--cwd", "sub", "--"];
    sandbox.run(&[&add[..], &command[..]].concat()).success();
    let place = started.parent().unwrap().to_string_lossy().into_owned();
    assert!(
        config(&sandbox).contains(&format!("cwd = \"{place}\"\n")),
        "{}",
        config(&sandbox)
    );
    assert_eq!(fs::read_to_string(&started).unwrap().trim_end(), place);
    fs::remove_file(&started).unwrap();

    let said = sandbox.run(&["mcp", "disable", "here"]).success().stderr;
    assert!(said.starts_with("[aish] here is disabled: it stays in "), "{said}");
    let list = sandbox.run(&["mcp", "list"]).success().stdout;
    assert!(list.ends_with("0 tools  disabled\n"), "{list}");
    let list = sandbox.run(&["mcp", "list", "--output", "json"]).success().json();
    assert_eq!(
        (&list[0]["state"], &list[0]["problem"]),
        (&json!("disabled"), &json!(null))
    );
    let tool = sandbox.run(&["mcp", "tool", "here.x"]).exits(1);
    assert!(tool.stderr.contains("here is disabled"), "{tool:?}");
    let doctor = sandbox.run(&["doctor"]);
    assert!(doctor.stdout.contains("0 tools, disabled"), "{doctor:?}");

    let mut terminal = sandbox.terminal(&[]).size(40, 120).start();
    terminal.wait_for_prompt();
    terminal.send_line(":mcp list");
    terminal.wait_for_text("0 tools  disabled");
    let asked = [
        ":mcp reconnect here",
        ":mcp disconnect here",
        ":mcp login here",
        ":mcp connect http://127.0.0.1:1/mcp here",
    ];
    for (before, line) in asked.iter().enumerate() {
        terminal.wait_for_prompt();
        terminal.send_line(line);
        let said = "here is switched off in the configuration (enabled = false)";
        terminal.wait_for(line, |screen| screen.contents().matches(said).count() > before);
    }
    terminal.wait_for_prompt();
    terminal.send(key::CTRL_D);
    assert!(terminal.wait_exit().success());
    assert!(!started.exists(), "it was started");

    sandbox.run(&["mcp", "enable", "here"]).success();
    sandbox.run(&["mcp", "list"]).success();
    assert!(started.exists());
    let unknown = sandbox.run(&["mcp", "enable", "there"]).exits(1);
    assert!(unknown.stderr.contains("there is no server named there"), "{unknown:?}");
}

/// SPEC 6.11: what is put into a server's token or header is in the environment of no command; what its program gets, still is.
#[test]
fn commands_do_not_see_what_servers_are_sent() {
    let servers = "[mcp.servers.web]\nurl = \"http://127.0.0.1:1/mcp\"\nauth_token = \"${MY_TOKEN}\"\n\
                   headers = { X-Key = \"${MY_KEY:-none}\", X-Home = \"${HOME}\" }\n\
                   [mcp.servers.child]\ncommand = [\"true\"]\nenv = { OF_CHILD = \"${OF_CHILD}\" }";
    let command = "test -n \"$HOME\" -a -n \"$OF_CHILD\" -a -z \"$MY_TOKEN$MY_KEY\" && touch right";
    let model = FakeServer::script([
        Reply::call("c1", "bash", json!({ "command": command })),
        Reply::text("done"),
    ]);
    let sandbox = Sandbox::with_model(&model)
        .config(servers)
        .env("MY_TOKEN", "token-of-a-server")
        .env("MY_KEY", "key-of-a-server")
        .env("OF_CHILD", "variable-of-a-child");
    sandbox.run(&["-p", "go", "--approval", "full"]).success();
    assert!(sandbox.project().join("right").exists());
}

/// SPEC 6.8, 6.3: a server that is taken out leaves neither its login nor what its tools were, and it is said; what its tools were
/// stays known where something of its name stays allowed.
#[test]
fn what_was_remembered_goes_with_it() {
    let server = McpServer::start(Transport::Http, Script::with_tool("send"));
    let model = FakeServer::builder()
        .otherwise(|request| match request.json["messages"].as_array().unwrap().last() {
            Some(last) if last["role"] == "tool" => Reply::text("done"),
            Some(_) | None => Reply::call("c", "mail__send", json!({})),
        })
        .start();
    let login = |alias: &str| {
        json!({"alias": alias, "url": "https://h.example/mcp", "resource": "https://h.example/mcp",
            "token_endpoint": "https://h.example/token", "client_id": "c", "client_secret": null, "client_auth": "none",
            "access_token": format!("token-of-{alias}"), "refresh_token": null, "expires_at_s": null, "scopes": []})
    };
    for (rules, is_pinned) in [("", false), ("[mcp.auto_approve]\n\"mail.send\" = true\n", true)] {
        let sandbox = Sandbox::with_model(&model).config(&server.config("mail")).config(rules);
        sandbox.run(&["-p", "send it", "--approval", "full"]).success();
        let (pins, tokens) = (
            sandbox.home().join("data/mcp-pins.json"),
            sandbox.home().join("data/mcp-tokens.json"),
        );
        assert!(fs::read_to_string(&pins).unwrap().contains("mail.send"));
        let logins = json!({"form": 1, "servers": [login("mail"), login("other")]});
        fs::write(&tokens, logins.to_string()).unwrap();
        let said = sandbox.run(&["mcp", "remove", "mail"]).success().stderr;
        assert_eq!(
            fs::read_to_string(&pins).unwrap().contains("mail.send"),
            is_pinned,
            "{said}"
        );
        assert_eq!(
            said.contains("when they were approved is forgotten"),
            !is_pinned,
            "{said}"
        );
        assert!(said.contains("the login there is forgotten"), "{said}");
        let tokens = fs::read_to_string(&tokens).unwrap();
        assert!(
            !tokens.contains("token-of-mail") && tokens.contains("token-of-other"),
            "{tokens}"
        );
    }
}

/// SPEC 5.4: what was allowed of a server that is taken out is named, since another one may get its alias.
#[test]
fn what_stays_allowed() {
    let rules = "[approval]\nallow = [\"git.log\", \"gitlab.x\"]\n[mcp.auto_approve]\n\"git.*\" = true\n\
                 [mcp.servers.git]\ncommand = [\"git-server\"]";
    let sandbox = Sandbox::new().config(rules);
    let removed = sandbox.run(&["mcp", "remove", "git"]).success().stderr;
    assert!(
        removed.ends_with("if another server gets that name: git.*, git.log\n"),
        "{removed}"
    );
    assert!(!config(&sandbox).contains("git-server"), "{}", config(&sandbox));
    assert!(config(&sandbox).contains("\"git.*\" = true"), "{}", config(&sandbox));
}

/// SPEC 6.4: a server that never answers keeps no list waiting for longer than a person would: the others are shown, and it.
#[test]
fn a_server_that_never_answers() {
    let Some(real) = RealServers::installed() else { return };
    let mute = "[mcp.servers.mute]\ncommand = [\"sleep\", \"1000\"]\ntimeout_s = 3600\n";
    let sandbox = Sandbox::new().config(&format!("{mute}{}", real.time("time")));
    let list = sandbox.run(&["mcp", "list"]).success().stdout;
    let lines: Vec<&str> = list.lines().collect();
    assert!(
        lines[0].starts_with("mute  sleep 1000") && lines[0].ends_with("still connecting"),
        "{list}"
    );
    assert!(
        lines[1].starts_with("time  ") && lines[1].contains("2 tools  connected 20"),
        "{list}"
    );
    // Only the server of the tool is waited for.
    let tool = sandbox.run(&["mcp", "tool", "time.convert_time"]).success().stdout;
    assert!(tool.starts_with("time.convert_time\n"), "{tool}");
    sandbox.assert_nothing_runs();
}

/// SPEC 6.4, 8.8: on a terminal the list fits its columns.
#[test]
fn a_list_fits_the_terminal() {
    let Some(real) = RealServers::installed() else { return };
    let sandbox = Sandbox::new().config(&format!("{}{}", real.everything("everything"), real.git("git")));
    let mut terminal = sandbox.terminal(&["mcp", "list"]).size(24, COLUMNS).start();
    terminal.wait_for_text("git");
    assert!(terminal.wait_exit().success());
    let screen = terminal.screen_text();
    let lines: Vec<&str> = screen.lines().filter(|line| !line.trim().is_empty()).collect();
    assert_eq!(lines.len(), 2, "{screen}");
    assert!(
        lines[0].starts_with("everything  node ") && lines[0].contains("connected 20"),
        "{screen}"
    );
}
