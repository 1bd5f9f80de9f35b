//! The model a session begins with when none is configured, and what is said when that goes wrong: never that there is none
//! where one was found and failed (SPEC 7.7, 10.4, 11).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use serde_json::json;
use support::fake_server::FakeServer;
use support::pty::key;
use support::reply::Reply;
use support::sandbox::{Output, Sandbox};

/// A provider that refuses the key.
fn refusing() -> FakeServer {
    let error = json!({"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}});
    FakeServer::builder()
        .listing(Reply::json(401, &error))
        .otherwise(move |_| Reply::json(401, &error))
        .start()
}

/// A provider that takes every request and never answers one for its models.
fn silent() -> FakeServer {
    FakeServer::builder()
        .listing(Reply::hangs())
        .otherwise(|_| Reply::text("hello"))
        .start()
}

fn origin(server: &FakeServer) -> String {
    format!("http://{}", server.address())
}

/// A newcomer: no configuration, a key of Anthropic's and its address.
fn newcomer(server: &FakeServer) -> Sandbox {
    Sandbox::new()
        .env("AISH_DISCOVER", "true")
        .env("ANTHROPIC_API_KEY", "test-key-of-anthropic")
        .env("ANTHROPIC_BASE_URL", &origin(server))
}

/// Says what came of a key that was refused, and not that there is none.
#[track_caller]
fn assert_refused(said: &str) {
    assert!(said.contains("anthropic: GET http://127.0.0.1"), "{said}");
    assert!(said.contains("401 Unauthorized: invalid x-api-key"), "{said}");
    assert!(said.contains("check ANTHROPIC_API_KEY"), "{said}");
    for lie in ["none was found", "set a key"] {
        assert!(!said.contains(lie), "{lie}: {said}");
    }
}

/// SPEC 7.7, 10.4: a refused key is no missing key, whoever asks: the reason and the key's variable are told.
#[test]
fn a_refused_key() {
    let server = refusing();
    let sandbox = newcomer(&server);
    for arguments in [&["-p", "hi"][..], &["models", "list"], &["models", "probe"]] {
        assert_refused(&sandbox.run(arguments).exits(2).stderr);
    }
    let doctor = sandbox.run(&["doctor"]).exits(1);
    let line = |output: &Output| {
        output
            .stdout
            .lines()
            .find(|line| line.contains("401"))
            .unwrap()
            .to_owned()
    };
    assert!(line(&doctor).starts_with("FAIL  model"), "{doctor:?}");
    assert_refused(&line(&doctor));
    let object = sandbox.run(&["-p", "hi", "--output", "json"]).exits(2).json();
    assert_refused(object["error"].as_str().unwrap());
}

/// SPEC 7.7, 10.4: when a provider is passed over for another, its owner is told, and why.
#[test]
fn a_provider_that_is_passed_over() {
    let (first, second) = (
        refusing(),
        FakeServer::builder()
            .listing(Reply::json(200, &json!({"data": [{"id": "claude-x"}]})))
            .otherwise(|_| Reply::error(400, "enough"))
            .start(),
    );
    let sandbox = newcomer(&second)
        .env("OPENAI_API_KEY", "test-key-of-openai")
        .env("OPENAI_BASE_URL", &format!("{}/v1", origin(&first)));
    let output = sandbox.run(&["-p", "hi"]);
    assert_eq!(second.requests().len(), 1, "{output:?}");
    assert!(
        output.stderr.contains("asking anthropic/claude-x, since openai: GET"),
        "{output:?}"
    );
    assert!(output.stderr.contains("check OPENAI_API_KEY"), "{output:?}");
}

/// SPEC 7.7, 10.4: a model that was wanted and is not there is told together with who could not say.
#[test]
fn a_wanted_model_of_a_refused_provider() {
    let server = refusing();
    let sandbox = newcomer(&server);
    for name in ["claude-x", "anthropic"] {
        assert_refused(&sandbox.run(&["-p", "hi", "--model", name]).exits(2).stderr);
    }
}

/// SPEC 7.7: that it may not look for a model is another thing than that there is none.
#[test]
fn nothing_may_be_looked_for() {
    let output = Sandbox::new().env("ANTHROPIC_API_KEY", "k").run(&["-p", "hi"]).exits(2);
    assert!(output.stderr.contains("discover = false"), "{output:?}");
    assert!(!output.stderr.contains("none was found"), "{output:?}");
}

/// SPEC 11: the prompt does not wait for a provider that does not answer; commands work meanwhile, the first question waits,
/// and Ctrl-C ends that.
#[test]
fn the_prompt_waits_for_nobody() {
    let server = silent();
    let sandbox = Sandbox::new().env("AISH_BASE_URL", &server.base_url());
    let mut terminal = sandbox.terminal(&[]).start();
    terminal.wait_for_text("Looking for a model");
    terminal.wait_for_text("❯");
    terminal.send_line("!echo works-$((40 + 2))");
    terminal.wait_for_text("works-42");
    terminal.wait_for_prompt();
    terminal.send_line("is anybody there?");
    // The server is given up on, and asked all the same: it was named.
    terminal.wait_for_text("hello");
    terminal.wait_for_prompt();
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
    assert_eq!(server.only_request().json["model"], "default");
}

/// SPEC 7.7, 10.4: at the prompt, too, a question that nobody can be asked says what failed.
#[test]
fn a_question_without_a_model() {
    let server = refusing();
    let sandbox = newcomer(&server);
    let output = sandbox.run_with_input(&[], "is anybody there?\n").exits(1);
    assert_refused(&output.stderr);
}

/// SPEC 8.7, 10.4: Ctrl-C while the list is awaited says that it was stopped, not that there is nothing.
#[test]
fn a_list_that_is_given_up() {
    let server = silent();
    let sandbox = newcomer(&server);
    let mut terminal = sandbox.terminal(&["--model", "anthropic/claude-x"]).start();
    terminal.wait_for_text("❯");
    terminal.send_line(":models");
    server.wait_for_probes(1);
    terminal.send(key::CTRL_C);
    terminal.wait_for_text("[aish] stopped");
    let screen = terminal.wait_for_prompt();
    assert!(screen.contains("[aish] stopped"), "{screen}");
    assert!(!screen.contains("there is no model"), "{screen}");
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
}

/// SPEC 10.4: an address without a scheme is told at the start, with the variable it stands in and nothing of its value.
#[test]
fn an_address_that_is_none() {
    let sandbox = Sandbox::new().env("AISH_BASE_URL", "bob:hunter2@127.0.0.1:18801");
    for arguments in [&["-p", "hi"][..], &["models", "list"]] {
        let output = sandbox.run(arguments).exits(2);
        assert!(output.stderr.contains("AISH_BASE_URL is no address"), "{output:?}");
        assert!(!output.stderr.contains("hunter2"), "{output:?}");
    }
    let doctor = sandbox.run(&["doctor"]).exits(1);
    assert!(
        doctor
            .stdout
            .contains("FAIL  config         AISH_BASE_URL is no address"),
        "{doctor:?}"
    );
    let output = Sandbox::new()
        .env("AISH_DISCOVER", "true")
        .env("OPENAI_BASE_URL", "localhost:8080")
        .run(&["models", "list", "--output", "json"])
        .success();
    assert!(
        output.stderr.contains("openai: OPENAI_BASE_URL is no address"),
        "{output:?}"
    );
}

/// SPEC 10.4: advice names the variable that somebody set, not a setting they have never seen.
#[test]
fn advice_for_newcomers() {
    let away = Sandbox::new()
        .env("AISH_BASE_URL", "http://127.0.0.1:1/v1")
        .config("retries = 0");
    let output = away.run(&["-p", "hi"]).exits(1);
    assert!(
        output.stderr.contains("; start the server, or correct AISH_BASE_URL"),
        "{output:?}"
    );
    assert!(!output.stderr.contains("base_url ("), "{output:?}");
    let server = refusing();
    let sandbox = newcomer(&server);
    let piped = sandbox
        .run_with_input(&["--model", "anthropic/claude-x"], "hi\n")
        .exits(1);
    assert!(
        piped.stderr.contains("no reply: ") && piped.stderr.contains("; check ANTHROPIC_API_KEY"),
        "{piped:?}"
    );
    for arguments in [
        &["-p", "hi", "--model", "anthropic/claude-x"][..],
        &["doctor", "--model", "anthropic/claude-x"],
    ] {
        let output = sandbox.run(arguments).exits(1);
        let said = format!("{}{}", output.stdout, output.stderr);
        assert!(said.contains("check ANTHROPIC_API_KEY"), "{output:?}");
        assert!(!said.contains("key_env"), "{output:?}");
    }
}

/// SPEC 7.7, 12: the server that was named is asked, whatever the configuration calls a model elsewhere; what the
/// configuration says of the same model there holds.
#[test]
fn the_server_that_was_named_is_asked() {
    let named = FakeServer::builder()
        .models(&["m"])
        .otherwise(|_| Reply::text("here"))
        .start();
    let elsewhere = FakeServer::builder()
        .models(&["m"])
        .otherwise(|_| Reply::text("there"))
        .start();
    let config = |url: &str| format!("[models.m]\nbase_url = \"{url}\"\nmodel = \"m\"\nmax_output_tokens = 77\n");
    let sandbox = Sandbox::new()
        .config(&config(&elsewhere.base_url()))
        .env("AISH_BASE_URL", &named.base_url());
    let output = sandbox.run(&["-p", "private"]).success();
    assert_eq!((output.stdout.as_str(), elsewhere.requests().len()), ("here\n", 0));
    assert!(named.only_request().json.get("max_tokens").is_none());
    let same = Sandbox::new()
        .config(&config(&named.base_url()))
        .env("AISH_BASE_URL", &named.base_url());
    same.run(&["-p", "again"]).success();
    assert_eq!(named.requests()[1].json["max_tokens"], 77);
}
