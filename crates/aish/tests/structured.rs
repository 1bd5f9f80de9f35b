//! `--schema`: a script gets JSON that fits, or an exit code (SPEC 10.2, 10.3).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use serde_json::{Value, json};
use support::fake_server::FakeServer;
use support::reply::Reply;
use support::sandbox::Sandbox;

const SCHEMA: &str = r#"{"type":"object","properties":{"name":{"type":"string"},"count":{"type":"integer"}},
    "required":["name"],"additionalProperties":false}"#;
const PROMPT: [&str; 4] = ["-p", "name it", "--schema", "schema.json"];

fn sandbox(server: &FakeServer) -> Sandbox {
    Sandbox::with_model(server).file("schema.json", SCHEMA)
}

/// SPEC 10.3: standard output is the JSON alone. Beside tools a local server's grammar would forbid every call: the schema is
/// told in words.
#[test]
fn json_and_nothing_else() {
    let server = FakeServer::script([
        Reply::call("c1", "glob", json!({"pattern": "*.json"})),
        Reply::text("Here it is:\n```json\n{\"name\": \"one\",\n \"count\": 1}\n```\n"),
    ]);
    let output = sandbox(&server).run(&PROMPT).success();
    assert_eq!(output.stdout, "{\"name\": \"one\",\n \"count\": 1}\n");
    let asked = &server.requests()[0].json;
    assert_eq!(asked.get("response_format"), None);
    let system = asked["messages"][0]["content"].as_str().unwrap();
    assert!(system.contains(r#""required":["name"]"#), "{system}");
    server.assert_done();
}

/// SPEC 10.3: without tools the model is held to the schema in the way of its format.
#[test]
fn the_server_holds_it_to_the_schema() {
    let server = FakeServer::script([Reply::text(r#"{"name":"one"}"#)]);
    let without_tools = [&PROMPT[..], &["--no-tools"]].concat();
    sandbox(&server).run(&without_tools).success();
    let format = &server.requests()[0].json["response_format"];
    let asked = format["json_schema"]["schema"]["properties"]["name"]["type"].as_str();
    assert_eq!(
        (format["type"].as_str(), asked),
        (Some("json_schema"), Some("string")),
        "{format}"
    );
    server.assert_done();
}

/// A reply that does not fit is asked for once more, with what was wrong; both count in what the run used.
#[test]
fn once_more() {
    let server = FakeServer::script([Reply::text(r#"{"count": 1}"#), Reply::text(r#"{"name":"one"}"#)]);
    let sandbox = sandbox(&server);
    let output = sandbox.run(&[&PROMPT[..], &["--output", "json"]].concat()).success();
    let object = output.json();
    assert_eq!(object["structured"], json!({"name": "one"}));
    assert_eq!(object["reply"], json!(r#"{"name":"one"}"#));
    assert_eq!(object["usage"]["input_tokens"], json!(20));
    assert!(
        output.stderr.contains("does not fit the schema: the whole: ") && output.stderr.contains("asking once more"),
        "{output:?}"
    );
    let requests = server.requests();
    let second = requests[1].last_text();
    assert!(second.contains("name") && second.contains("JSON Schema"), "{second}");
    // Without tools a local server can hold the reply to the schema itself.
    assert!(!requests[0].tool_names().is_empty() && requests[1].tool_names().is_empty());
    assert_eq!(requests[1].json["response_format"]["type"], "json_schema");
    server.assert_done();
}

/// SPEC 10.2: the second time it is a failure, and what came is written all the same.
#[test]
fn not_twice() {
    let server = FakeServer::builder()
        .otherwise(|_| Reply::text("I would rather not."))
        .start();
    let sandbox = sandbox(&server);
    let text = sandbox.run(&PROMPT).exits(1);
    assert_eq!(text.stdout, "I would rather not.\n");
    assert!(
        text.stderr
            .ends_with("the reply does not fit the schema: it is not JSON: expected value at line 1 column 1\n"),
        "{text:?}"
    );
    assert_eq!(server.requests().len(), 2);
    let object = sandbox
        .run(&[&PROMPT[..], &["--output", "json"]].concat())
        .exits(1)
        .json();
    assert_eq!(
        (&object["structured"], &object["reply"]),
        (&Value::Null, &json!("I would rather not."))
    );
    let lines = sandbox.run(&[&PROMPT[..], &["--output", "jsonl"]].concat()).exits(1);
    assert!(lines.json_lines().iter().any(|event| event["kind"] == "turn_ended"));
}

/// SPEC 10.2: a turn that fails is a failure as ever, and is not asked for again.
#[test]
fn a_failed_turn() {
    let server = FakeServer::script([Reply::error(400, "no such thing")]);
    let output = sandbox(&server).run(&PROMPT).exits(1);
    assert!(output.stderr.contains("no such thing"), "{output:?}");
    server.assert_done();
}

/// SPEC 10.4: a schema that is none is a usage error that names the file; nothing is asked.
#[test]
fn schemas_that_are_none() {
    let server = FakeServer::script([]);
    let sandbox = sandbox(&server)
        .file("broken.json", "{")
        .file("odd.json", r#"{"type":"strnig"}"#);
    for (file, expect) in [
        ("gone.json", "cannot read gone.json"),
        ("broken.json", "broken.json is not JSON"),
        ("odd.json", "odd.json is no JSON Schema that can be used"),
    ] {
        let output = sandbox.run(&["-p", "name it", "--schema", file]).exits(2);
        assert!(output.stderr.contains(expect), "{output:?}");
    }
    sandbox.run(&["--schema", "schema.json"]).exits(2);
    assert!(server.requests().is_empty());
}
