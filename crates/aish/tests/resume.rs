//! Turns that wait for an approval, answered by a script (SPEC 3.3, 3.4, 5.6).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use serde_json::{Value, json};
use support::fake_server::FakeServer;
use support::ledger::{end_of_last_turn, export, of_kind, only_export, only_session, text};
use support::reply::Reply;
use support::sandbox::{Output, Running, Sandbox};
use support::strict::Strictness;

/// How many processes answer the same question at once.
const RACERS: usize = 4;

/// A session that waits for answers.
struct Waiting {
    server: FakeServer,
    sandbox: Sandbox,
    id: String,
    /// `call_id`, `tool`, `arguments`, `digest` of each call.
    pending: Vec<Value>,
}

impl Waiting {
    /// For these calls of one reply, in a project with these files.
    fn for_calls(calls: &[(&str, &str, Value)], prepare: impl FnOnce(Sandbox) -> Sandbox) -> Self {
        let server = FakeServer::builder()
            .strict(Strictness::Template)
            .reply(Reply::calls(calls))
            .start();
        let sandbox = prepare(Sandbox::with_model(&server));
        let object = sandbox.run(&["-p", "do it", "--output", "json"]).exits(3).json();
        assert_eq!(
            (&object["stop_reason"], &object["reply"]),
            (&json!("pending"), &json!(""))
        );
        let id = text(&object["session_id"]).to_owned();
        let pending = object["pending"].as_array().unwrap().clone();
        Self {
            server,
            sandbox,
            id,
            pending,
        }
    }

    /// For commands that each append their number to the file `ran`.
    fn for_commands(count: usize) -> Self {
        let command = |n: usize| json!({ "command": format!("echo {n} >> ran") });
        let ids: Vec<String> = (1..=count).map(|n| format!("c{n}")).collect();
        let calls: Vec<_> = ids
            .iter()
            .zip(1..)
            .map(|(id, n)| (id.as_str(), "bash", command(n)))
            .collect();
        Self::for_calls(&calls, |sandbox| sandbox)
    }

    fn call(&self, n: usize) -> &str {
        text(&self.pending[n]["call_id"])
    }

    fn digest(&self, n: usize) -> &str {
        text(&self.pending[n]["digest"])
    }

    /// `aish resume ID` with these options.
    fn resume(&self, options: &[&str]) -> Output {
        self.sandbox.run(&[&["resume", &self.id], options].concat())
    }

    fn start_resume(&self, options: &[&str]) -> Running {
        self.sandbox.start(&[&["resume", &self.id], options].concat())
    }

    /// What the commands wrote.
    fn ran(&self) -> String {
        std::fs::read_to_string(self.sandbox.path("ran")).unwrap_or_default()
    }

    fn events(&self) -> Vec<Value> {
        export(&self.sandbox, &self.id)
    }

    /// The request that followed the results.
    fn last_request_text(&self) -> String {
        self.server.requests().last().unwrap().last_text()
    }
}

/// SPEC 5.6, 10.2, 10.3: without a terminal nothing runs, the exit code is 3 and both ways to answer are said.
#[test]
fn says_how_to_answer() {
    let server = FakeServer::script([Reply::call("c1", "bash", json!({"command": "touch ran"}))]);
    let sandbox = Sandbox::with_model(&server);
    let output = sandbox.run(&["-p", "do it"]).exits(3);
    let id = only_session(&sandbox);
    assert_eq!(output.stdout, "");
    let says = |what: &str| assert!(output.stderr.contains(what), "{what:?} in {output:?}");
    says("bash(command=\"touch ran\")");
    says(&format!("aish resume {id}\n"));
    says(&format!("aish resume {id} --approve call_1_1:"));
    says("--deny call_1_1");
    assert!(
        output.stderr.lines().all(|line| line.starts_with("[aish] ")),
        "{output:?}"
    );
    assert!(!sandbox.path("ran").exists());
    // The line that is printed is the line that works.
    let line = output.stderr.lines().find(|line| line.contains("--approve")).unwrap();
    let answer = line.split("--approve ").nth(1).unwrap().split(',').next().unwrap();
    server.push(Reply::text("done"));
    let output = sandbox.run(&["resume", &id, "--approve", answer]).success();
    assert_eq!(output.stdout, "done\n");
    assert!(sandbox.path("ran").exists());
}

/// SPEC 10.3: `pending` says what waits: call, tool, arguments, digest.
#[test]
fn pending_in_json() {
    let waiting = Waiting::for_commands(1);
    let expect = json!({"call_id": "call_1_1", "tool": "bash", "arguments": {"command": "echo 1 >> ran"},
        "digest": waiting.digest(0)});
    assert_eq!(waiting.pending, [expect]);
    assert_eq!(waiting.digest(0).len(), 64);
}

/// SPEC 5.6: a resume without answers and without a terminal waits on, and never allows.
#[test]
fn resume_without_answers_waits_on() {
    let waiting = Waiting::for_commands(1);
    for _ in 0..2 {
        let output = waiting.resume(&[]).exits(3);
        assert!(output.stderr.contains("--approve call_1_1"), "{output:?}");
    }
    assert_eq!(waiting.ran(), "");
    assert_eq!(waiting.server.requests().len(), 1);
}

/// SPEC 3.3, 5.6: an approval, with or without a digest or the beginning of one, runs the call and finishes the turn.
#[test]
fn approve() {
    for quoted in [0, 12, 64] {
        let waiting = Waiting::for_commands(1);
        waiting.server.push(Reply::text("done"));
        let answer = match quoted {
            0 => waiting.call(0).to_owned(),
            digits => format!("{}:{}", waiting.call(0), &waiting.digest(0)[..digits]),
        };
        let output = waiting.resume(&["--approve", &answer]).success();
        assert_eq!((output.stdout.as_str(), waiting.ran().as_str()), ("done\n", "1\n"));
        let events = waiting.events();
        assert_eq!(end_of_last_turn(&events), "end");
        let answered = of_kind(&events, "call_answered");
        assert_eq!(answered[0]["data"]["answer"], "approve");
        assert_eq!(answered[0]["data"]["digest"], waiting.digest(0));
        waiting.server.assert_done();
    }
}

/// SPEC 10.3: `resume` writes what was asked for, when it drives and when the same answer was given before.
#[test]
fn answers_in_json() {
    let waiting = Waiting::for_commands(2);
    let yes = |n: usize| {
        [
            "--approve".to_owned(),
            waiting.call(n).to_owned(),
            "--output".to_owned(),
        ]
    };
    let run = |n: usize, output: &str| {
        let yes = yes(n);
        waiting.resume(&[&yes[0], &yes[1], &yes[2], output])
    };
    let object = run(0, "json").exits(3).json();
    assert_eq!(
        (&object["stop_reason"], object["pending"].as_array().unwrap().len()),
        (&json!("pending"), 1)
    );
    waiting.server.push(Reply::text("both ran"));
    let lines = run(1, "jsonl").success().json_lines();
    assert_eq!(lines.last().unwrap()["kind"], "turn_ended");
    let object = run(1, "json").success().json();
    assert_eq!(
        (&object["stop_reason"], &object["reply"]),
        (&json!("end"), &json!("both ran"))
    );
    assert_eq!(waiting.ran(), "1\n2\n");
}

/// SPEC 3.3: a digest that is another, or too short to mean anything, is refused and nothing runs.
#[test]
fn wrong_digest() {
    let waiting = Waiting::for_commands(1);
    let other: String = waiting.digest(0).chars().rev().collect();
    for digest in [&other, &waiting.digest(0)[..4]] {
        let answer = format!("{}:{digest}", waiting.call(0));
        waiting.resume(&["--approve", &answer]).exits(2);
    }
    assert!(of_kind(&waiting.events(), "call_answered").is_empty());
    assert_eq!(waiting.ran(), "");
    // It still waits, and can still be answered.
    waiting.server.push(Reply::text("done"));
    waiting.resume(&["--approve", waiting.call(0)]).success();
    assert_eq!(waiting.ran(), "1\n");
}

/// SPEC 5.5, 5.6: a refusal tells the model, with the reason, and the loop goes on.
#[test]
fn deny() {
    for (answer, expect) in [
        ("call_1_1", "declined by the user"),
        (
            "call_1_1:use: the staging host",
            "declined by the user: use: the staging host",
        ),
    ] {
        let waiting = Waiting::for_commands(1);
        waiting.server.push(Reply::text("then not"));
        let output = waiting.resume(&["--deny", answer]).success();
        assert_eq!((output.stdout.as_str(), waiting.ran().as_str()), ("then not\n", ""));
        let told: Value = serde_json::from_str(&waiting.last_request_text()).unwrap();
        assert_eq!(told, json!({ "error": expect }));
        assert_eq!(end_of_last_turn(&waiting.events()), "declined");
        waiting.server.assert_done();
    }
}

/// SPEC 3.4: of two calls none runs until both are answered; then they run in call order, whatever the order of answers.
#[test]
fn the_whole_batch_is_answered_first() {
    let waiting = Waiting::for_commands(2);
    let output = waiting.resume(&["--approve", waiting.call(1)]).exits(3);
    assert!(
        output.stderr.contains("call_1_1") && !output.stderr.contains("call_1_2"),
        "{output:?}"
    );
    assert_eq!(waiting.ran(), "");
    waiting.server.push(Reply::text("done"));
    waiting.resume(&["--approve", waiting.call(0)]).success();
    assert_eq!(waiting.ran(), "1\n2\n");
    waiting.server.assert_done();
}

/// SPEC 3.4: both answers at once, one yes and one no.
#[test]
fn mixed_answers() {
    let waiting = Waiting::for_commands(2);
    waiting.server.push(Reply::text("half done"));
    waiting
        .resume(&["--approve", "call_1_2", "--deny", "call_1_1:not that"])
        .success();
    assert_eq!(waiting.ran(), "2\n");
    let request = waiting.server.requests().pop().unwrap();
    assert_eq!(request.roles(), "system user assistant tool tool");
    let first = &request.messages()[3];
    assert!(text(&first["content"]).contains("not that"), "{first}");
}

/// SPEC 3.3: the same answer again is accepted and has no effect; a different one is a conflict.
#[test]
fn answering_twice() {
    let waiting = Waiting::for_commands(2);
    waiting.resume(&["--approve", "call_1_1"]).exits(3);
    let output = waiting.resume(&["--approve", "call_1_1"]).exits(3);
    assert!(output.stderr.contains("answered so before"), "{output:?}");
    waiting.resume(&["--deny", "call_1_1"]).exits(2);
    assert_eq!(of_kind(&waiting.events(), "call_answered").len(), 1);
    waiting.server.push(Reply::text("done"));
    waiting.resume(&["--approve", "call_1_2"]).success();
    // And when all is over as well.
    let before = waiting.events();
    waiting.resume(&["--approve", "call_1_2"]).success();
    waiting.resume(&["--deny", "call_1_2"]).exits(2);
    assert_eq!(waiting.events(), before);
    assert_eq!(waiting.ran(), "1\n2\n");
    waiting.server.assert_done();
}

/// SPEC 5.6: what waits for nothing cannot be resumed by a script, and says what can be done; so do unknown calls.
#[test]
fn nothing_waits() {
    let server = FakeServer::script([Reply::text("hello")]);
    let sandbox = Sandbox::with_model(&server);
    sandbox.run(&["-p", "hi"]).success();
    let id = only_session(&sandbox);
    let before = only_export(&sandbox);
    let output = sandbox.run(&["resume", &id]).exits(2);
    assert!(
        output.stderr.contains("waits for nothing") && output.stderr.contains("--resume"),
        "{output:?}"
    );
    sandbox.run(&["resume", &id, "--approve", "call_1_1"]).exits(2);
    sandbox.run(&["resume", "0198ffff", "--approve", "call_1_1"]).exits(2);
    assert_eq!(only_export(&sandbox), before);
    let waiting = Waiting::for_commands(1);
    waiting.resume(&["--approve", "call_7_7"]).exits(2);
    assert_eq!(waiting.ran(), "");
}

/// SPEC 3.5a: a message to a turn that waits for an answer is refused, and says what to do.
#[test]
fn a_message_to_a_waiting_turn() {
    let waiting = Waiting::for_commands(1);
    let before = waiting.events();
    for arguments in [
        &["-p", "and?", "--continue"][..],
        &["-p", "and?", "--resume", &waiting.id],
    ] {
        let output = waiting.sandbox.run(arguments).exits(2);
        assert!(
            output.stderr.contains(&format!("aish resume {}", waiting.id)),
            "{output:?}"
        );
    }
    assert_eq!(waiting.events(), before);
    assert_eq!(waiting.server.requests().len(), 1);
}

/// SPEC 3.3: what was shown is what runs. A link that was turned elsewhere meanwhile makes another action: not run.
#[test]
fn a_link_turned_elsewhere() {
    let write = json!({"path": "link/file.txt", "content": "new"});
    let waiting = Waiting::for_calls(&[("c1", "file_write", write)], |sandbox| {
        let sandbox = sandbox.file("shown/file.txt", "old").file("other/file.txt", "old");
        std::os::unix::fs::symlink("shown", sandbox.path("link")).unwrap();
        sandbox
    });
    std::fs::remove_file(waiting.sandbox.path("link")).unwrap();
    std::os::unix::fs::symlink("other", waiting.sandbox.path("link")).unwrap();
    waiting.server.push(Reply::text("oh"));
    let answer = format!("call_1_1:{}", waiting.digest(0));
    waiting.resume(&["--approve", &answer]).success();
    for file in ["shown/file.txt", "other/file.txt"] {
        assert_eq!(
            std::fs::read_to_string(waiting.sandbox.path(file)).unwrap(),
            "old",
            "{file}"
        );
    }
    assert!(waiting.last_request_text().contains("not run"));
    assert!(of_kind(&waiting.events(), "call_started").is_empty());
}

/// SPEC 3.4: a deny rule that was added between the question and the answer holds.
#[test]
fn a_rule_added_meanwhile() {
    let waiting = Waiting::for_commands(1);
    let config = waiting.sandbox.home().join("config.toml");
    let mut toml = std::fs::read_to_string(&config).unwrap();
    toml.push_str("[approval]\ndeny = [\"bash(echo*)\"]\n");
    std::fs::write(config, toml).unwrap();
    waiting.server.push(Reply::text("oh"));
    waiting.resume(&["--approve", "call_1_1"]).success();
    assert_eq!(waiting.ran(), "");
    assert!(waiting.last_request_text().contains("denied by policy"));
}

/// SPEC 2.12, 3.3, 12: many answer the same question at once; the command runs exactly once and one turn is finished once.
#[test]
fn answered_by_several_at_once() {
    for _ in 0..3 {
        let waiting = Waiting::for_commands(1);
        waiting.server.push(Reply::text("done"));
        let runs: Vec<Running> = (0..RACERS)
            .map(|_| waiting.start_resume(&["--approve", "call_1_1"]))
            .collect();
        let outputs: Vec<Output> = runs.into_iter().map(Running::finish).collect();
        assert_eq!(waiting.ran(), "1\n", "{outputs:#?}");
        let done = outputs.iter().filter(|output| output.stdout == "done\n").count();
        assert_eq!(done, 1, "{outputs:#?}");
        // Those who came second found it driven (1) or already over (0): never a refusal of a yes that counts.
        assert!(
            outputs.iter().all(|output| matches!(output.code, Some(0 | 1))),
            "{outputs:#?}"
        );
        let events = waiting.events();
        // The same answer may stand in the ledger more than once; what it led to may not.
        for kind in ["call_started", "tool_result", "turn_ended"] {
            assert_eq!(of_kind(&events, kind).len(), 1, "{kind}");
        }
        waiting.server.assert_done();
    }
}

/// SPEC 3.3: a yes and a no at once: one of them counts, the other is told.
#[test]
fn yes_and_no_at_once() {
    for _ in 0..3 {
        let waiting = Waiting::for_commands(1);
        waiting.server.push(Reply::text("done"));
        let yes = waiting.start_resume(&["--approve", "call_1_1"]);
        let no = waiting.start_resume(&["--deny", "call_1_1"]);
        let (yes, no) = (yes.finish(), no.finish());
        let events = waiting.events();
        let answers = of_kind(&events, "call_answered");
        assert_eq!(answers.len(), 1);
        let (winner, loser, ran) = if answers[0]["data"]["answer"] == "approve" {
            (yes, no, "1\n")
        } else {
            (no, yes, "")
        };
        winner.success();
        loser.exits(2);
        assert_eq!(waiting.ran(), ran);
    }
}
