//! `aish doctor`: what is wrong and what to do, a line each, and the exit code says whether anything will not work
//! (SPEC 10.1, 10.4, 10.5).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use support::fake_server::FakeServer;
use support::mcp_real::RealServers;
use support::reply::Reply;
use support::sandbox::{Output, Sandbox};

/// The lines of an area.
fn lines<'a>(output: &'a Output, area: &str) -> Vec<&'a str> {
    let of_area = |line: &&str| line.get(6..).is_some_and(|rest| rest.starts_with(&format!("{area} ")));
    output.stdout.lines().filter(of_area).collect()
}

/// SPEC 10.4: where all is well it says so in a line each, with exit code 0, asks the model nothing, and changes nothing.
#[test]
fn all_is_well() {
    let server = FakeServer::builder().start();
    let sandbox = Sandbox::with_model(&server);
    let output = sandbox.run(&["doctor"]).success();
    for area in [
        "config", "data", "ledger", "keys", "model", "server", "here", "terminal", "locale", "bash", "sandbox",
    ] {
        let lines = lines(&output, area);
        assert!(
            !lines.is_empty() && lines.iter().all(|line| line.starts_with("ok ")),
            "{area} in {output:?}"
        );
    }
    assert!(lines(&output, "server")[0].contains("and has fake"), "{output:?}");
    assert!(server.requests().is_empty());
    assert!(!sandbox.ledger().exists());
    let report = sandbox.run(&["doctor", "--output", "json"]).success().json();
    assert_eq!(report["ok"], true);
    assert!(
        report["checks"]
            .as_array()
            .unwrap()
            .iter()
            .all(|check| check["verdict"] == "ok"),
        "{report}"
    );
}

/// SPEC 10.1, 10.4: a configuration that is wrong is told with its place, and does not keep it from looking at the rest.
#[test]
fn a_wrong_configuration() {
    let sandbox = Sandbox::new().config("defualt_model = \"x\"\nretries = -1");
    let output = sandbox.run(&["doctor"]).exits(1);
    let config = lines(&output, "config")[0];
    assert!(
        config.starts_with("FAIL") && config.contains("config.toml:1:1: unknown key"),
        "{output:?}"
    );
    assert!(config.contains("(and 1 more)"), "{output:?}");
    assert!(
        lines(&output, "data")[0].starts_with("ok") && lines(&output, "bash")[0].starts_with("ok"),
        "{output:?}"
    );
}

/// SPEC 10.4: a server that is away fails where its model is in use, and is worth a line where it is not.
#[test]
fn a_server_that_is_away() {
    let server = FakeServer::builder().start();
    let away = "[models.away]\nbase_url = \"http://127.0.0.1:1/v1\"\nmodel = \"m\"\n";
    let sandbox = Sandbox::with_model(&server).config(away);
    let output = sandbox.run(&["doctor"]).success();
    let of = |output: &Output, name: &str| {
        let found = lines(output, "server")
            .into_iter()
            .find(|line| line.contains(name))
            .map(str::to_owned);
        found.unwrap_or_else(|| panic!("{name} in {output:?}"))
    };
    assert!(of(&output, "away: ").starts_with("warn"), "{output:?}");
    let output = sandbox.run(&["doctor", "--model", "away"]).exits(1);
    let line = of(&output, "away: ");
    assert!(
        line.starts_with("FAIL") && line.contains("start the server, or correct base_url of [models.away]"),
        "{line}"
    );
    let report = sandbox
        .run(&["doctor", "--model", "away", "--output", "json"])
        .exits(1)
        .json();
    assert_eq!(report["ok"], false);
}

/// A model its server does not list is worth a line: the name may be wrong.
#[test]
fn a_model_that_is_not_listed() {
    let server = FakeServer::builder().models(&["other"]).start();
    let output = Sandbox::with_model(&server).run(&["doctor"]).success();
    let line = lines(&output, "server")[0];
    assert!(
        line.starts_with("warn") && line.contains("lists no fake (it has other)"),
        "{line}"
    );
}

/// SPEC 10.5: keys are told by their variables, never by their values, and a missing one is named.
#[test]
fn keys() {
    let server = FakeServer::builder().start();
    let cloud = "[models.cloud]\npreset = \"mistral\"\nmodel = \"m\"\n";
    let sandbox = Sandbox::with_model(&server)
        .config(cloud)
        .env("XAI_API_KEY", "test-key-of-xai-0001");
    let output = sandbox.run(&["doctor"]).success();
    let keys = lines(&output, "keys").join("\n");
    assert!(
        keys.contains("MISTRAL_API_KEY is not set, which models.cloud needs"),
        "{output:?}"
    );
    assert!(keys.contains("set: XAI_API_KEY"), "{output:?}");
    assert!(!format!("{output:?}").contains("test-key-of-xai"));
    let output = sandbox.run(&["doctor", "--model", "cloud"]).exits(1);
    assert!(output.stdout.contains("export MISTRAL_API_KEY=…"), "{output:?}");
}

/// SPEC 10.4: a damaged ledger and a folder that cannot be written to fail, with what to do.
#[test]
fn the_ledger() {
    let server = FakeServer::builder().otherwise(|_| Reply::text("ok")).start();
    let sandbox = Sandbox::with_model(&server);
    sandbox.run(&["-p", "hi"]).success();
    let output = sandbox.run(&["doctor"]).success();
    assert!(
        lines(&output, "ledger")[0].contains("format 3, 1 sessions"),
        "{output:?}"
    );
    fs::write(
        sandbox.ledger(),
        "this is no database, but it is long enough to look like one",
    )
    .unwrap();
    let output = sandbox.run(&["doctor"]).exits(1);
    assert!(lines(&output, "ledger")[0].starts_with("FAIL"), "{output:?}");
}

/// SPEC 10.5: a configuration with a secret in it that others can read is worth a line.
#[test]
fn an_open_file_with_a_secret() {
    let server = FakeServer::builder().start();
    let mcp = "[mcp.servers.git]\nurl = \"http://127.0.0.1:1/mcp\"\nauth_token = \"0123456789abcdef\"\n\
               [mcp.servers.notes]\ncommand = [\"no-such-program-here\"]\n";
    let sandbox = Sandbox::with_model(&server).config(mcp);
    let file = sandbox.home().join("config.toml");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let output = sandbox.run(&["doctor"]).exits(1);
    let config = lines(&output, "config").join("\n");
    assert!(config.contains("others can read it; chmod 600"), "{output:?}");
    assert!(!output.stdout.contains("0123456789abcdef"));
    let mcp = lines(&output, "mcp").join("\n");
    assert!(
        mcp.contains("FAIL") && mcp.contains("notes: ") && mcp.contains("no-such-program-here"),
        "{output:?}"
    );
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let output = sandbox.run(&["doctor"]).exits(1);
    assert!(
        !lines(&output, "config").join("\n").contains("others can read it"),
        "{output:?}"
    );
}

/// SPEC 6.4, 10.4: MCP servers are connected to, all at once; what is wrong with one is told with what to do, and a hanging
/// one keeps nothing from being told.
#[test]
fn mcp_servers() {
    let Some(real) = RealServers::installed() else { return };
    let model = FakeServer::builder().start();
    let away = "[mcp.servers.away]\nurl = \"http://127.0.0.1:1/mcp\"\n\
                [mcp.servers.mute]\ncommand = [\"sleep\", \"1000\"]\n\
                [mcp.servers.unset]\nurl = \"${NOT_SET_ANYWHERE}/mcp\"\n";
    let sandbox = Sandbox::with_model(&model).config(&format!("{}{away}", real.time("time")));
    let output = sandbox.run(&["doctor"]).exits(1);
    let of = |alias: &str| {
        let found = lines(&output, "mcp")
            .into_iter()
            .find(|line| line.contains(&format!("  {alias}: ")));
        found.unwrap_or_else(|| panic!("{alias} in {output:?}"))
    };
    assert!(
        of("time").starts_with("ok ") && of("time").contains(" 2 tools, connected 20"),
        "{output:?}"
    );
    assert!(
        of("away").starts_with("FAIL") && of("away").contains("correct [mcp.servers.away]"),
        "{output:?}"
    );
    assert!(
        of("mute").starts_with("warn") && of("mute").contains("did not answer"),
        "{output:?}"
    );
    assert!(
        of("unset").starts_with("FAIL") && of("unset").contains("${NOT_SET_ANYWHERE} is not set"),
        "{output:?}"
    );
    sandbox.assert_nothing_runs();
}

/// With `--probe` the model in use is asked one short question.
#[test]
fn a_question() {
    let server = FakeServer::script([Reply::text("ok")]);
    let output = Sandbox::with_model(&server).run(&["doctor", "--probe"]).success();
    assert!(lines(&output, "answer")[0].contains("fake answers in"), "{output:?}");
    let request = server.only_request();
    assert!(
        request.json["max_tokens"].as_u64().is_some_and(|tokens| tokens <= 16),
        "{}",
        request.json
    );
    assert_eq!(request.json.get("tools"), None::<&Value>);
    let server = FakeServer::builder()
        .otherwise(|_| Reply::error(401, "bad key"))
        .start();
    let output = Sandbox::with_model(&server).run(&["doctor", "--probe"]).exits(1);
    assert!(
        lines(&output, "answer")[0].contains("key_env in [models.fake]"),
        "{output:?}"
    );
}

/// SPEC 10.4: a web server that knows nothing of models is not well; an endpoint that merely has no list is.
#[test]
fn something_else_answers() {
    let page = |status| Reply {
        status,
        ..Reply::bare_stream().bytes("<!DOCTYPE html><title>Directory listing</title>")
    };
    for (reply, verdict, says) in [
        (page(200), "warn", "a web page, no list of models"),
        (page(404), "warn", "a web page, no list of models"),
        (Reply::error(404, "no such route"), "ok  ", "and lists no models"),
    ] {
        let server = FakeServer::builder().listing(reply).start();
        let output = Sandbox::with_model(&server).run(&["doctor"]).success();
        let line = lines(&output, "server")[0];
        assert!(line.starts_with(verdict) && line.contains(says), "{line}");
        let advice = "correct base_url of [models.fake], or see whether it answers a question: aish doctor --probe";
        assert_eq!(line.contains(advice), verdict == "warn", "{line}");
    }
}
