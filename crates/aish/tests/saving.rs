//! What `aish models probe --save` writes: a configuration that aish starts with, that says what was found and nothing against
//! what its owner said, and that holds no secret (SPEC 7.1, 10.1, 10.5, 12).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use serde_json::{Value, json};
use std::fs;
use support::fake_server::{FakeServer, Received};
use support::reply::Reply;
use support::sandbox::Sandbox;

/// A server with these models that takes everything but schemas.
fn server(ids: &[&str]) -> FakeServer {
    let respond = |request: &Received| match request.json.get("response_format") {
        Some(_) => Reply::error(400, "response_format is not supported"),
        None => Reply::text("one two three"),
    };
    FakeServer::builder().models(ids).otherwise(respond).start()
}

/// The address of a server with a user's name and password in it.
fn with_password(server: &FakeServer) -> String {
    server.base_url().replace("http://", "http://bob:hunter2hunter2@")
}

fn config_of(sandbox: &Sandbox) -> String {
    fs::read_to_string(sandbox.home().join("config.toml")).unwrap()
}

/// SPEC 7.7, 8.8, 10.1: whatever a server calls its model, what is saved is a configuration, hides nothing, and asks for the
/// model by the very name it has.
#[test]
fn names_out_of_a_list() {
    for (id, name) in [
        ("/home/me/My Models/qwen 2.5.gguf", "qwen-2.5.gguf"),
        ("C:\\models\\a b\\", "a-b"),
        ("safe\u{202e}efas\u{200b}31m", "safe-efas-31m"),
        ("\u{202e}", "model"),
        // To this proxy it is a name like any other, not another provider's model.
        ("anthropic/claude-x", "claude-x"),
        ("qwen2.5:7b", "qwen2.5:7b"),
    ] {
        let server = server(&[id]);
        let sandbox = Sandbox::new().env("AISH_BASE_URL", &server.base_url());
        let output = sandbox.run(&["models", "probe", "--save"]).success();
        let text = config_of(&sandbox);
        assert!(!text.contains(|c: char| c != '\n' && aish_hides(c)), "{text:?}");
        assert!(!text.contains("preset"), "{text}");
        assert!(output.stderr.contains(name), "{output:?}");
        let before = server.requests().len();
        let sandbox = sandbox.env("AISH_BASE_URL", "");
        sandbox.run(&["-p", "hi", "--model", name]).success();
        let asked = &server.requests()[before];
        assert_eq!(asked.json["model"], id, "{text}");
        // Found again it is the configured one, and not written twice.
        let sandbox = sandbox.env("AISH_BASE_URL", &server.base_url());
        let again = sandbox.run(&["models", "probe", id, "--save"]).success();
        assert!(again.stderr.contains("says all of this already"), "{again:?}");
        assert_eq!(config_of(&sandbox), text);
    }
}

/// Whether a character cannot be seen, or acts on a terminal.
fn aish_hides(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
}

/// SPEC 10.1: two models may come to the same name; neither takes the other's.
#[test]
fn a_name_that_is_taken() {
    let server = server(&["a/m x", "b/m x"]);
    let sandbox = Sandbox::new().env("AISH_BASE_URL", &server.base_url());
    for id in ["a/m x", "b/m x"] {
        sandbox.run(&["models", "probe", id, "--save"]).success();
    }
    let text = config_of(&sandbox);
    assert!(
        text.contains("[models.m-x]\n") && text.contains("[models.m-x-2]\n"),
        "{text}"
    );
    sandbox.run(&["config", "show"]).success();
}

/// SPEC 10.5, 12: an address with a password or a key in it is used, but neither shown nor saved.
#[test]
fn secrets_in_addresses_stay() {
    let server = server(&["m"]);
    let with_key = format!("{}?api_key=hunter2hunter2", server.base_url());
    let (asked_for_list, asked) = (["models", "list"], ["models", "probe", "--dry-run"]);
    let json = ["--output", "json"];
    for address in [with_password(&server), with_key.clone()] {
        let sandbox = Sandbox::new().env("AISH_BASE_URL", &address);
        for arguments in [
            &asked_for_list[..],
            &[&asked_for_list[..], &json].concat(),
            &asked,
            &[&asked[..], &json].concat(),
            &["doctor"],
            &["config", "show"],
        ] {
            let output = sandbox.run(arguments);
            let said = format!("{}{}", output.stdout, output.stderr);
            assert!(!said.contains("hunter2"), "{arguments:?}: {said}");
        }
        let output = sandbox.run(&["models", "probe", "--save"]).exits(2);
        assert!(output.stderr.contains("a password or a key in it"), "{output:?}");
        assert!(!sandbox.home().join("config.toml").exists());
    }
    let sandbox = Sandbox::with_base_url(&with_key);
    for arguments in [&asked_for_list[..], &asked, &["doctor"], &["config", "show"]] {
        let output = sandbox.run(arguments);
        let said = format!("{}{}", output.stdout, output.stderr);
        assert!(
            said.contains("127.0.0.1") && !said.contains("hunter2"),
            "{arguments:?}: {said}"
        );
    }
}

/// SPEC 10.1: what the user insists on stays, and is told apart from what was found.
#[test]
fn what_the_user_insists_on() {
    let server = server(&["m"]);
    let line = "structured_output = true # I insist\n";
    let sandbox = Sandbox::with_model(&server).config(line);
    let output = sandbox.run(&["models", "probe", "fake", "--save"]).success();
    assert!(
        output
            .stderr
            .contains("the configuration says otherwise, and stays: structured_output = true, found false"),
        "{output:?}"
    );
    assert!(config_of(&sandbox).contains(line), "{}", config_of(&sandbox));
    let report = sandbox
        .run(&["models", "probe", "fake", "--dry-run", "--output", "json"])
        .success()
        .json();
    assert_eq!(report["otherwise"], json!(["structured_output"]));
    assert_eq!(report["settings"].get("structured_output"), None::<&Value>);
}

/// SPEC 10.1, 10.4: nothing is saved that aish would not start with, and it says why.
#[test]
fn what_would_be_wrong_is_not_saved() {
    for (id, config, why) in [
        // Without any model the name may be one that is found; beside a configured one it is wrong.
        ("m", "default_model = \"gone\"\n", "default_model: no model \"gone\""),
        ("a\u{9b}31m", "", "model: expected one line of text"),
    ] {
        let server = server(&[id]);
        let sandbox = Sandbox::new().env("AISH_BASE_URL", &server.base_url()).config(config);
        let before = config_of(&sandbox);
        let output = sandbox.run(&["models", "probe", id, "--save"]).exits(1);
        assert!(
            output.stderr.contains("not saved in ") && output.stderr.contains(why),
            "{output:?}"
        );
        assert_eq!(config_of(&sandbox), before);
        sandbox.run(&["config", "show"]).success();
    }
}
