//! Calls of clients are judged like any other: allowed, refused, or asked about through the client.

use crate::client::{Client, outcome};
use crate::support::ledger::{of_kind, only_export};
use crate::support::sandbox::Sandbox;
use serde_json::{Value, json};

/// A client that can put forms before a person.
fn with_forms() -> Value {
    json!({"elicitation": {"form": {}}})
}

fn yes() -> Value {
    json!({"action": "accept", "content": {"approve": true}})
}

/// SPEC 5.1, 6.10: a deny rule refuses, in every mode; an allow rule runs; what would be asked about is refused where nobody can
/// be asked, and the refusal says how to allow it.
#[test]
fn rules_hold() {
    let sandbox = Sandbox::new()
        .config("[approval]\ndeny = [\"bash(rm *)\"]\nallow = [\"bash(touch allowed)\"]")
        .file("keep.txt", "");
    for approval in ["ask", "auto", "full"] {
        let mut client = Client::start(&sandbox, &["--approval", approval], &json!({}));
        let (text, is_error) = client.call(1, "bash", &json!({"command": "rm keep.txt"}));
        assert!(is_error && text.contains("bash(rm *)"), "{approval}: {text}");
        assert!(sandbox.path("keep.txt").exists());
        let (text, is_error) = client.call(2, "bash", &json!({"command": "touch allowed"}));
        assert!(!is_error, "{approval}: {text}");
        assert!(client.hang_up().success());
    }
    assert!(sandbox.path("allowed").exists());
    let mut client = Client::start(&sandbox, &[], &json!({}));
    let (text, is_error) = client.call(1, "bash", &json!({"command": "touch other"}));
    assert!(
        is_error && text.contains(r#"allow = [\"bash(touch other)\"]"#),
        "{text}"
    );
    assert!(!sandbox.path("other").exists());
    assert!(client.hang_up().success());
}

/// SPEC 5.3, 6.10: a client that can ask is asked, with every argument; yes runs it, once.
#[test]
fn asked_and_allowed() {
    let sandbox = Sandbox::new();
    let mut client = Client::start(&sandbox, &[], &with_forms());
    let arguments = json!({"path": "a.txt", "content": "one\u{1b}[2J\ntwo\u{202e}"});
    client.begin(1, "file_write", &arguments);
    let question = client.answer_question(&yes());
    assert!(question.contains(r#"path="a.txt""#), "{question}");
    assert!(
        question.contains(r#"content="one\u001b[2J\ntwo\u{202e}""#),
        "{question}"
    );
    assert!(question.contains("asked because"), "{question}");
    assert!(!outcome(&client.reply_to(&json!(1))).1);
    assert_eq!(
        std::fs::read_to_string(sandbox.path("a.txt")).unwrap(),
        "one\u{1b}[2J\ntwo\u{202e}"
    );
    // Yes was for that one call.
    client.begin(2, "file_write", &arguments);
    client.answer_question(&json!({"action": "decline"}));
    let (text, is_error) = outcome(&client.reply_to(&json!(2)));
    assert!(is_error && text.contains("declined by the user"), "{text}");
    assert!(client.hang_up().success());
    let events = only_export(&sandbox);
    let answers = of_kind(&events, "call_answered");
    let said: Vec<(&Value, &Value)> = answers
        .iter()
        .map(|answer| (&answer["data"]["answer"], &answer["data"]["by"]))
        .collect();
    let expect = [("approve", "client"), ("deny", "client")].map(|(answer, by)| (json!(answer), json!(by)));
    assert!(
        said.iter()
            .zip(&expect)
            .all(|(said, expect)| (said.0, said.1) == (&expect.0, &expect.1)),
        "{said:?}"
    );
}

/// SPEC 5.3, 6.10: nothing but a whole yes runs anything.
#[test]
fn no_is_no() {
    let sandbox = Sandbox::new();
    let mut client = Client::start(&sandbox, &[], &with_forms());
    let answers = [
        json!({"action": "accept", "content": {"approve": false}}),
        json!({"action": "accept", "content": {}}),
        json!({"action": "accept"}),
        json!({"action": "decline", "content": {"approve": true}}),
        json!({"action": "cancel"}),
    ];
    for (id, answer) in (1..).zip(&answers) {
        client.begin(id, "bash", &json!({"command": "touch made"}));
        client.answer_question(answer);
        let (text, is_error) = outcome(&client.reply_to(&json!(id)));
        assert!(is_error, "{answer}: {text}");
        assert!(!sandbox.path("made").exists(), "{answer}");
    }
    assert!(client.hang_up().success());
}

/// SPEC 6.2, 6.9, 6.10: in 2026-07-28 the result asks and a second call answers; what was shown is what runs, once.
#[test]
fn asked_in_rounds() {
    let sandbox = Sandbox::new();
    let mut client = Client::silent(&sandbox, &[]);
    let made = json!({"command": "echo x >> made"});
    let asked = client.call_stateless(1, &made, &json!({}));
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let question = &asked["inputRequests"]["approval"]["params"]["message"];
    assert!(question.as_str().unwrap().contains("echo x >> made"), "{question}");
    let answer = |state: &Value, response: Value| json!({"requestState": state, "inputResponses": response});
    // No answer that can be read: the question stands.
    let asked = client.call_stateless(2, &made, &answer(&asked["requestState"], json!({"other": yes()})));
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let approved = answer(&asked["requestState"], json!({"approval": yes()}));
    let done = client.call_stateless(3, &made, &approved);
    assert_eq!(
        (&done["resultType"], &done["isError"]),
        (&json!("complete"), &json!(false)),
        "{done}"
    );
    // The same answer again is for nothing that waits.
    assert_eq!(client.call_stateless(4, &made, &approved)["isError"], true);
    // An answer to one call does not allow another.
    let asked = client.call_stateless(5, &made, &json!({}));
    let approved = answer(&asked["requestState"], json!({"approval": yes()}));
    let other = json!({"command": "echo y >> made"});
    assert_eq!(client.call_stateless(6, &other, &approved)["isError"], true);
    assert_eq!(client.call_stateless(7, &made, &approved)["isError"], true);
    assert_eq!(std::fs::read_to_string(sandbox.path("made")).unwrap(), "x\n");
    assert!(client.hang_up().success());
}

/// SPEC 3.7, 6.10: a question that is never answered leaves no turn open.
#[test]
fn unanswered() {
    let sandbox = Sandbox::new();
    let mut client = Client::start(&sandbox, &[], &with_forms());
    client.begin(1, "bash", &json!({"command": "touch made"}));
    client.next(|message| message["method"] == "elicitation/create");
    assert!(client.hang_up().success());
    assert_eq!(only_export(&sandbox).last().unwrap()["kind"], "turn_ended");
    assert!(!sandbox.path("made").exists());
}
