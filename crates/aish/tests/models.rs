//! Models by name: providers that need no configuration, lists, chains, routing, and the battery that finds out what a model
//! can do (SPEC 7.1, 7.2, 7.5, 7.6, 7.7).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use serde_json::{Value, json};
use std::fs;
use support::fake_server::{FakeServer, Received};
use support::reply::Reply;
use support::sandbox::Sandbox;

/// A reply as Anthropic streams it.
fn anthropic_says(text: &str) -> Reply {
    let events = [
        json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant",
            "model": "claude-x", "content": [], "usage": {"input_tokens": 10, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}}),
        json!({"type": "message_stop"}),
    ];
    events.iter().fold(Reply::bare_stream(), |reply, event| {
        let kind = event["type"].as_str().unwrap();
        reply.bytes(format!("event: {kind}\ndata: {event}\n\n"))
    })
}

fn any(text: &'static str) -> FakeServer {
    FakeServer::builder().otherwise(move |_| Reply::text(text)).start()
}

fn origin(server: &FakeServer) -> String {
    format!("http://{}", server.address())
}

/// SPEC 7.1, 7.2, 7.7: a provider and its model in one name, and the key in its variable, are all it takes.
#[test]
fn a_provider_by_name() {
    let server = FakeServer::builder().reply(anthropic_says("hello")).start();
    let sandbox = Sandbox::new()
        .env("ANTHROPIC_BASE_URL", &origin(&server))
        .env("ANTHROPIC_API_KEY", "test-key-of-anthropic");
    let output = sandbox.run(&["--model", "anthropic/claude-x", "-p", "hi"]).success();
    assert_eq!(output.stdout, "hello\n");
    let request = server.only_request();
    assert_eq!(request.path, "/v1/messages");
    assert_eq!(request.header("x-api-key"), Some("test-key-of-anthropic"));
    assert_eq!(request.header("authorization"), None);
    assert_eq!(request.json["model"], "claude-x");
}

/// SPEC 10.4: a missing key is an error that names its variable, before anybody is asked.
#[test]
fn a_missing_key() {
    let server = any("no");
    let sandbox = Sandbox::new().env("ANTHROPIC_BASE_URL", &origin(&server));
    for arguments in [
        &["--model", "anthropic/claude-x", "-p", "hi"][..],
        &["models", "probe", "anthropic/claude-x"],
    ] {
        let output = sandbox.run(arguments).exits(2);
        assert!(
            output
                .stderr
                .contains("the environment variable ANTHROPIC_API_KEY is not set"),
            "{output:?}"
        );
    }
    assert!(server.requests().is_empty() && server.probes().is_empty());
}

/// SPEC 10.5: a provider's key goes to its owner's address; another one gets no key that was not named for it.
#[test]
fn a_key_stays_with_its_owner() {
    let server = FakeServer::builder().otherwise(|_| anthropic_says("ok")).start();
    let model = format!(
        "[models.proxy]\npreset = \"anthropic\"\nmodel = \"m\"\nbase_url = \"{}\"\n",
        origin(&server)
    );
    let sandbox = Sandbox::new()
        .config(&model)
        .env("ANTHROPIC_API_KEY", "test-key-of-anthropic");
    sandbox.run(&["-p", "hi"]).success();
    assert_eq!(server.only_request().header("x-api-key"), None);
    sandbox
        .config("key_env = \"ANTHROPIC_API_KEY\"")
        .run(&["-p", "hi"])
        .success();
    assert_eq!(server.requests()[1].header("x-api-key"), Some("test-key-of-anthropic"));
}

/// SPEC 7.1, 7.7: what is configured and what is found, with what is known of each; keys by their variables only.
#[test]
fn the_list() {
    let server = FakeServer::builder().models(&["one", "two"]).start();
    let toml = format!(
        "[models.desk]\nbase_url = \"{}\"\nmodel = \"m\"\ncontext_window = 4096\nkey_env = \"DESK_KEY\"\n\
         price = {{ input = 1.5, output = 6 }}\n[models.cloud]\npreset = \"mistral\"\nmodel = \"mistral-large-latest\"",
        server.base_url()
    );
    let sandbox = Sandbox::new()
        .config(&toml)
        .env("AISH_BASE_URL", &server.base_url())
        .env("DESK_KEY", "test-key-of-desk");
    let output = sandbox.run(&["models", "list"]).success();
    let line = |name: &str| {
        let named = |line: &&str| line[2..].starts_with(&format!("{name} "));
        output
            .stdout
            .lines()
            .find(named)
            .unwrap_or_else(|| panic!("{name} in {output:?}"))
    };
    assert!(
        line("desk")
            .ends_with("(configured) · openai-chat · 4096 tokens · key in DESK_KEY · $1.5 in, $6 out a million")
    );
    assert!(
        line("cloud").ends_with("openai-chat · key missing: set MISTRAL_API_KEY · $0.5 in, $1.5 out a million"),
        "what is charged, out of the table: {output:?}"
    );
    assert!(
        line("one").starts_with("* one  http") && line("two").starts_with("  two"),
        "{output:?}"
    );
    assert!(!output.stdout.contains("test-key"));

    let all = sandbox.run(&["models", "list", "--output", "json"]).success().json();
    let names: Vec<&str> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|model| model["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["desk", "cloud", "one", "two"]);
    assert_eq!(all[1]["key_set"], false);
    assert_eq!(
        (&all[0]["price"]["input"], &all[0]["context_window"]),
        (&json!(1.5), &json!(4096))
    );
}

/// SPEC 7.6: when a model cannot be reached, the next of its chain answers, and that is said.
#[test]
fn a_chain() {
    let server = any("from the second");
    let toml = format!(
        "retries = 0\n[models.first]\nbase_url = \"http://127.0.0.1:1/v1\"\nmodel = \"m\"\nfallback = [\"second\"]\n\
         [models.second]\nbase_url = \"{}\"\nmodel = \"m2\"",
        server.base_url()
    );
    let output = Sandbox::new().config(&toml).run(&["-p", "hi"]).success();
    assert_eq!(output.stdout, "from the second\n");
    assert!(output.stderr.contains("second"), "{output:?}");
    assert_eq!(server.only_request().json["model"], "m2");
}

/// SPEC 7.6, 10.1: how often a request is made again is a setting.
#[test]
fn retries() {
    let server = FakeServer::builder().otherwise(|_| Reply::error(500, "broken")).start();
    let sandbox = Sandbox::with_model(&server).config_first("retries = 0");
    sandbox.run(&["-p", "hi"]).exits(1);
    assert_eq!(server.requests().len(), 1);
}

/// SPEC 7.6: a short question goes to the quick model, what works with tools to the large one; a model that a person names
/// answers everything.
#[test]
fn routing() {
    let quick = FakeServer::builder()
        .reply(Reply::call("c1", "glob", json!({"pattern": "*"})))
        .otherwise(|_| Reply::text("from quick"))
        .start();
    let (large, usual) = (any("from large"), any("from usual"));
    let model = |name: &str, server: &FakeServer| {
        format!(
            "[models.{name}]\nbase_url = \"{}\"\nmodel = \"{name}\"\n",
            server.base_url()
        )
    };
    let toml = model("usual", &usual)
        + &model("quick", &quick)
        + &model("large", &large)
        + "[routing]\nquick = \"quick\"\nquick_chars_max = 20\nwork = \"large\"\n";
    let sandbox = Sandbox::new().config(&toml);
    assert_eq!(sandbox.run(&["-p", "what is here?"]).success().stdout, "from large\n");
    assert_eq!((quick.requests().len(), large.requests().len()), (1, 1));
    assert_eq!(
        sandbox.run(&["-p", "a question of many more words"]).success().stdout,
        "from usual\n"
    );
    let named = sandbox.run(&["-p", "short", "--model", "usual"]).success();
    assert_eq!(named.stdout, "from usual\n");
}

/// A server whose template minds everything: nine-character ids, no system role, no images, no schemas.
fn strict(request: &Received) -> Reply {
    let body = &request.json;
    let messages = request.messages();
    let ids = messages.iter().filter_map(|message| message["tool_call_id"].as_str());
    let has_image = messages
        .iter()
        .any(|message| message["content"].to_string().contains("image_url"));
    if ids.clone().any(|id| id.len() != 9) {
        return Reply::error(
            400,
            "Tool call id was call_1_1 but must be a-z, A-Z, 0-9, with a length of 9.",
        );
    }
    if messages[0]["role"] == "system" {
        return Reply::error(400, "System role not supported");
    }
    if has_image {
        return Reply::error(500, "image input is not supported");
    }
    if messages
        .windows(2)
        .any(|pair| pair[0]["role"] == "tool" && pair[1]["role"] == "user")
    {
        return Reply::error(400, "Unexpected role 'user' after role 'tool'");
    }
    let asked = request.last_text();
    if body["tools"].is_array() && asked.contains("three times") {
        return (0..20)
            .fold(Reply::stream(), |reply, n| {
                let id = format!("call{n:05}");
                reply
                    .call_begins(n, &id, "lookup")
                    .call_arguments(n, "{\"city\":\"Oslo\"}")
            })
            .finish("length")
            .done();
    }
    if body["tools"].is_array() && asked.contains("Call the tool") {
        return Reply::call("abcdefgh1", "lookup", json!({"city": "Oslo"}));
    }
    Reply::stream()
        .says("one ")
        .says("two ")
        .says("three")
        .finish("stop")
        .done()
}

/// The outcomes of a report in JSON, by step.
fn outcome(report: &Value, step: &str) -> String {
    let findings = report["findings"].as_array().unwrap();
    let found = findings.iter().find(|finding| finding["step"] == step);
    found.unwrap_or_else(|| panic!("{step} in {report}"))["outcome"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// SPEC 7.5, 7.7: the battery finds what an endpoint minds, and writes it into the configuration, whose comments stay; what
/// was written holds from then on, and is not written twice.
#[test]
fn a_probe_of_a_strict_server() {
    let server = FakeServer::builder().otherwise(strict).start();
    let sandbox = Sandbox::with_model(&server).config("# the old one\n");
    let file = sandbox.home().join("config.toml");
    let before = fs::read_to_string(&file).unwrap();

    let report = sandbox
        .run(&["models", "probe", "fake", "--dry-run", "--output", "json"])
        .success()
        .json();
    for (step, expect) in [
        ("answers", "yes"),
        ("system role", "no"),
        ("tools", "yes"),
        ("several calls at once", "no"),
        ("tool results", "yes"),
        ("any call ids", "no"),
        ("free turns", "no"),
        ("context", "yes"),
        ("images", "no"),
        ("structured output", "no"),
    ] {
        assert_eq!(outcome(&report, step), expect, "{step} in {report:#}");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), before);

    let output = sandbox.run(&["models", "probe", "fake", "--save"]).success();
    assert!(output.stdout.contains("any call ids           no"), "{output:?}");
    let after = fs::read_to_string(&file).unwrap();
    assert!(after.contains("# the old one"), "{after}");
    for line in [
        "system_role = \"user\"",
        "call_ids = \"nine\"",
        "strict_alternation = true",
        "images = false",
        "structured_output = false",
        "parallel_calls = false",
        "context_window = 8192",
    ] {
        assert!(after.contains(line), "{line} in {after}");
    }
    let again = sandbox.run(&["models", "probe", "fake", "--save"]).success();
    assert!(again.stderr.contains("says all of this already"), "{again:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), after);
}

/// SPEC 7.7: a model that was found becomes a configured one, under the name it is known by.
#[test]
fn a_probe_of_a_found_model() {
    let server = FakeServer::builder().models(&["qwen"]).otherwise(strict).start();
    let sandbox = Sandbox::new().env("AISH_BASE_URL", &server.base_url());
    let output = sandbox.run(&["models", "probe"]).success();
    assert!(output.stderr.contains("not written; with --save"), "{output:?}");
    assert!(!sandbox.home().join("config.toml").exists());
    sandbox.run(&["models", "probe", "qwen", "--save"]).success();
    let text = fs::read_to_string(sandbox.home().join("config.toml")).unwrap();
    assert!(
        text.contains("[models.qwen]") && text.contains(&server.base_url()),
        "{text}"
    );
    sandbox.run(&["config", "show"]).success();
}

/// SPEC 10.4: a model that does not answer is told with what was tried, and nothing is written.
#[test]
fn a_probe_without_an_answer() {
    let sandbox = Sandbox::with_base_url("http://127.0.0.1:1/v1");
    let output = sandbox.run(&["models", "probe", "--save"]).exits(1);
    assert!(
        output
            .stderr
            .contains("fake did not answer: POST http://127.0.0.1:1/v1"),
        "{output:?}"
    );
    assert!(output.stderr.contains("aish doctor"), "{output:?}");
}
