//! Several calls in one reply, and what a person has to say yes to (SPEC 9.6).

use super::app::{Served, accepted, keys, place, refused, replied, results, route, waits_for};
use crate::support::fake_server::FakeServer;
use crate::support::ledger::{export, kinds, text};
use crate::support::reply::Reply;
use serde_json::{Value, json};

fn write(command: &str) -> Value {
    json!({ "command": command })
}

/// SPEC 9.6: calls run in the order of the reply, here and in the app; all results go back together, in that order.
#[test]
fn client_and_builtin_calls_mixed() {
    let model = FakeServer::script([
        Reply::calls(&[
            ("c1", "file_read", json!({"path": "a.txt"})),
            ("c2", "pick", json!({"n": 1})),
            ("c3", "glob", json!({"pattern": "*.made"})),
            ("c4", "pick", json!({"n": 2})),
            ("c5", "file_read", json!({"path": "a.txt", "limit": 1})),
        ]),
        Reply::text("done"),
    ]);
    let sandbox = place(&model).file("a.txt", "alpha\n");
    let served = Served::start(&sandbox);
    let first = served.chat("go", &["pick"]);
    assert_eq!(first["tool_input"], json!({"n": 1}));
    assert_eq!(first["tools_used"], json!(["file_read", "pick"]));
    assert_eq!(
        model.requests().len(),
        1,
        "the model was asked before all calls were answered"
    );
    // What runs after the app's call sees what the app did.
    std::fs::write(sandbox.path("now.made"), "").unwrap();
    let second = accepted(&served.answer(&first, "one"));
    assert_eq!(second["tool_input"], json!({"n": 2}));
    assert_eq!(second["tools_used"], json!(["file_read", "pick", "glob", "pick"]));
    let last = accepted(&served.answer(&second, "two"));
    replied(&last, "done");
    assert_eq!(
        last["tools_used"],
        json!(["file_read", "pick", "glob", "pick", "file_read"])
    );
    let seen = results(&model.requests()[1]);
    let expected = ["alpha", "one", "now.made", "two", "alpha"];
    assert_eq!(seen.len(), expected.len(), "{seen:?}");
    assert!(
        seen.iter()
            .zip(expected)
            .all(|(seen, expected)| seen.contains(expected)),
        "{seen:?}"
    );
    model.assert_done();
}

/// SPEC 9.6: what the policy asks about waits for an approval, shown with exactly these fields; the yes to it runs it.
#[test]
fn an_approval() {
    let model = FakeServer::script([Reply::call("c1", "bash", write("touch made")), Reply::text("done")]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let pending = served.chat("go", &[]);
    assert_eq!(
        keys(&pending),
        "agentic approval_pending call_id conversation_id digest model reason session_id tool_input tool_name tools_used"
    );
    assert_eq!(pending["approval_pending"], true);
    assert_eq!(pending["tool_name"], "bash");
    assert_eq!(pending["tool_input"], write("touch made"));
    assert_eq!(pending["tools_used"], json!([]));
    assert!(!text(&pending["reason"]).is_empty() && !text(&pending["digest"]).is_empty());
    assert!(!sandbox.path("made").exists(), "it ran before anybody said yes");
    let last = accepted(&served.approval(&pending, "approve"));
    replied(&last, "done");
    assert_eq!(last["tools_used"], json!(["bash"]));
    assert!(sandbox.path("made").exists());
    model.assert_done();
}

/// SPEC 3.3, 9.6: a yes to something else than what was shown is refused, runs nothing, and leaves the question open.
#[test]
fn a_wrong_digest() {
    let model = FakeServer::script([Reply::call("c1", "bash", write("touch made")), Reply::text("done")]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let pending = served.chat("go", &[]);
    let send = |digest: Value, answer: &str| {
        let body = json!({"call_id": pending["call_id"], "digest": digest, "answer": answer});
        served.post(&route(&pending, "approval"), &body)
    };
    let other = text(&pending["digest"]).replace(|c: char| c.is_ascii_digit(), "f");
    refused(&send(json!(other), "approve"), 409, "wrong_digest");
    refused(&send(json!(""), "approve"), 409, "wrong_digest");
    assert_eq!(send(Value::Null, "approve").status, 422);
    assert_eq!(send(pending["digest"].clone(), "yes").status, 422);
    assert_eq!(send(pending["digest"].clone(), "").status, 422);
    assert!(!sandbox.path("made").exists());
    replied(&accepted(&served.approval(&pending, "approve")), "done");
    assert!(sandbox.path("made").exists());
}

/// SPEC 5.5, 9.6: a no with its reason reaches the model; nothing ran, and the turn goes on.
#[test]
fn a_denial() {
    let model = FakeServer::script([Reply::call("c1", "bash", write("touch made")), Reply::text("all right")]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let pending = served.chat("go", &[]);
    let body = json!({"call_id": pending["call_id"], "digest": pending["digest"], "answer": "deny", "reason": "not on Sundays"});
    replied(
        &accepted(&served.post(&route(&pending, "approval"), &body)),
        "all right",
    );
    let told = results(&model.requests()[1]).remove(0);
    assert!(
        told.contains("declined by the user") && told.contains("not on Sundays"),
        "{told}"
    );
    assert!(!sandbox.path("made").exists());
}

/// SPEC 9.4, 9.6: an approval counts once: the same again gets the same reply, the opposite is refused.
#[test]
fn an_approval_twice() {
    let model = FakeServer::script([Reply::call("c1", "bash", write("echo ran >> ran")), Reply::text("done")]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let pending = served.chat("go", &[]);
    let last = accepted(&served.approval(&pending, "approve"));
    assert_eq!(accepted(&served.approval(&pending, "approve")), last);
    refused(&served.approval(&pending, "deny"), 409, "already_answered");
    assert_eq!(std::fs::read_to_string(sandbox.path("ran")).unwrap(), "ran\n");
}

/// SPEC 9.6: everything that needs a yes is asked first, call by call; until all is answered nothing runs, nor is the app asked.
#[test]
fn approvals_come_first() {
    let model = FakeServer::script([
        Reply::calls(&[
            ("c1", "pick", json!({})),
            ("c2", "bash", write("echo two >> ran")),
            ("c3", "bash", write("echo three >> ran")),
        ]),
        Reply::text("done"),
    ]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let ran = || std::fs::read_to_string(sandbox.path("ran")).unwrap_or_default();
    let two = served.chat("go", &["pick"]);
    assert_eq!(two["tool_input"], write("echo two >> ran"), "{two}");
    let three = accepted(&served.approval(&two, "approve"));
    assert_eq!(three["approval_pending"], true);
    assert_eq!(three["tool_input"], write("echo three >> ran"));
    assert_ne!(three["session_id"], two["session_id"]);
    assert_eq!((ran(), &three["tools_used"]), (String::new(), &json!([])));
    let pick = accepted(&served.approval(&three, "deny"));
    waits_for(&pick, "pick");
    assert_eq!(ran(), "", "it ran before the call that comes first was answered");
    replied(&accepted(&served.answer(&pick, "picked")), "done");
    assert_eq!(ran(), "two\n");
    let seen = results(&model.requests()[1]);
    assert_eq!(seen[0], "picked");
    assert!(
        seen[1].contains("exit_code") && seen[2].contains("declined"),
        "{seen:?}"
    );
}

/// SPEC 9.6: a result does not answer an approval, nor an approval a result: no client's word stands in for a tool of the server.
#[test]
fn answers_of_the_wrong_sort() {
    let model = FakeServer::script([
        Reply::call("c1", "bash", write("echo ran >> ran")),
        Reply::call("c2", "pick", json!({})),
        Reply::text("done"),
    ]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let approval = served.chat("go", &["pick"]);
    refused(
        &served.answer(&approval, "{\"output\":\"it went well\"}"),
        409,
        "wrong_sort",
    );
    assert!(!sandbox.path("ran").exists());
    let pick = accepted(&served.approval(&approval, "approve"));
    let body = json!({"call_id": pick["call_id"], "digest": approval["digest"], "answer": "approve"});
    refused(&served.post(&route(&pick, "approval"), &body), 409, "wrong_sort");
    replied(&accepted(&served.answer(&pick, "picked")), "done");
    assert!(!results(&model.requests()[1])[0].contains("it went well"));
}

/// SPEC 5.1, 9.6: what a rule denies is neither run nor asked about, here or in the app; the model reads that it was refused.
#[test]
fn denied_by_a_rule() {
    let model = FakeServer::script([
        Reply::calls(&[("c1", "bash", write("touch made")), ("c2", "pick", json!({}))]),
        Reply::text("done"),
    ]);
    let sandbox = place(&model).config("[approval]\ndeny = [\"bash\", \"pick\"]\n");
    let served = Served::start(&sandbox);
    let last = served.chat("go", &["pick"]);
    replied(&last, "done");
    assert!(!sandbox.path("made").exists());
    let seen = results(&model.requests()[1]);
    assert!(seen.iter().all(|result| result.contains("error")), "{seen:?}");
}

/// SPEC 5.2, 9.6: in mode `full` nothing asks, deny rules hold.
#[test]
fn nothing_asks_in_full_mode() {
    let model = FakeServer::script([Reply::call("c1", "bash", write("touch made")), Reply::text("done")]);
    let sandbox = place(&model).config("[approval]\nmode = \"full\"\n");
    let served = Served::start(&sandbox);
    replied(&served.chat("go", &[]), "done");
    assert!(sandbox.path("made").exists());
}

/// SPEC 9.6: `CMD:` is plain text here: nothing is proposed, asked or run.
#[test]
fn proposed_commands_are_text() {
    let says = "Do this:\nCMD: touch made\n";
    let model = FakeServer::script([Reply::text(says)]);
    let sandbox = place(&model).config("[approval]\nmode = \"full\"\n");
    let served = Served::start(&sandbox);
    let envelope = served.chat("go", &[]);
    assert_eq!(text(&envelope["reply"]).trim_end(), says.trim_end());
    assert!(!sandbox.path("made").exists());
    assert!(
        !model.only_request().messages()[0].to_string().contains("CMD:"),
        "it was offered"
    );
}

/// SPEC 2.4, 9.6: the ledger says who answered what, in the order it happened.
#[test]
fn the_ledger_tells() {
    let model = FakeServer::script([
        Reply::calls(&[("c1", "pick", json!({})), ("c2", "bash", write("touch made"))]),
        Reply::text("done"),
    ]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let approval = served.chat("go", &["pick"]);
    let pick = accepted(&served.approval(&approval, "approve"));
    let last = accepted(&served.answer(&pick, "picked"));
    let events = export(&sandbox, text(&last["conversation_id"]));
    let told = kinds(&events);
    for order in [
        "suspended resumed call_answered",
        "suspended resumed tool_result call_started tool_result assistant turn_ended",
    ] {
        let without_usage = told.replace(" usage", "");
        assert!(without_usage.contains(order), "{without_usage}");
    }
    let answered = events.iter().find(|event| event["kind"] == "call_answered").unwrap();
    assert_eq!(answered["data"]["by"], "client", "{answered}");
    let suspended: Vec<&Value> = events.iter().filter(|event| event["kind"] == "suspended").collect();
    assert_eq!(suspended[0]["data"]["continuation"], approval["session_id"]);
    assert_eq!(suspended[1]["data"]["continuation"], pick["session_id"]);
}
