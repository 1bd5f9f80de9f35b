//! Commands that a reply proposes for the person's own shell, and the key that asks why one failed, on a terminal (SPEC 8.3, 8.4).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr
)]
#![allow(dead_code)]

#[path = "proposals/ahead.rs"]
mod ahead;
#[path = "shell/person.rs"]
mod person;
mod support;

use person::{ALL, Desk, Inner, Person};
use serde_json::{Value, json};
use support::ledger::{of_kind, only_export, text};
use support::pty::{Signal, key};
use support::reply::Reply;
use support::sandbox::Sandbox;

/// What a question about a proposed command ends with.
const ASKED: &str = "? [y/N/e/q]";
/// The key that asks why.
const ALT_W: &str = "\x1bw";

/// Somebody at a prompt with bash, whose model replies that.
fn person(replies: &[&str], config: &'static str) -> Person {
    let replies: Vec<Reply> = replies.iter().map(|text| Reply::text(text)).collect();
    Desk::with(Inner::Bash)
        .replies(replies)
        .sandbox(move |sandbox| sandbox.config(config).file("below/marker", "x"))
        .sit_down()
}

/// Waits for the question about that command.
fn waits_for_question(person: &Person, command: &str) {
    let wanted = format!("run '{command}'{ASKED}");
    person.terminal.wait_for(&wanted, |screen| {
        let (row, column) = screen.cursor_position();
        screen
            .contents_between(row, 0, row, column)
            .trim_end()
            .ends_with(&wanted)
    });
}

fn asks(person: &Person) {
    person.enters("?what should I do");
}

fn answers(person: &Person, answer: &str) {
    person.terminal.send_line(answer);
}

/// The lines that ran, in order.
fn ran(person: &Person) -> Vec<String> {
    person.commands().into_iter().map(|ran| ran.line).collect()
}

/// What did not run: line and why.
fn refused(person: &Person) -> Vec<(String, String)> {
    let events = only_export(&person.sandbox);
    let notes = of_kind(&events, "note").into_iter().map(|event| &event["data"]);
    let refused = notes.filter(|data| data["about"] == "proposal_refused");
    refused
        .map(|data| (text(&data["line"]).to_owned(), text(&data["why"]).to_owned()))
        .collect()
}

fn proposed(person: &Person) -> Vec<Value> {
    let events = only_export(&person.sandbox);
    of_kind(&events, "command")
        .into_iter()
        .map(|event| event["data"]["proposed"].clone())
        .collect()
}

fn refusal(line: &str, why: &str) -> (String, String) {
    (line.to_owned(), why.to_owned())
}

/// SPEC 8.4, 5.4: a proposed command runs in the person's shell after a yes, and what it changes there lasts; the ledger says who
/// proposed it and who let it run, and the model hears what came of it with the next question.
#[test]
fn run() {
    for inner in ALL {
        let person = Desk::with(*inner)
            .replies([
                Reply::text("First:\nCMD: cd below\nCMD: export COLOUR=red\n"),
                Reply::text("good"),
            ])
            .sandbox(|sandbox| sandbox.file("below/marker", "x"))
            .sit_down();
        asks(&person);
        waits_for_question(&person, "cd below");
        assert_eq!(ran(&person), Vec::<String>::new(), "asked before it runs");
        answers(&person, "y");
        waits_for_question(&person, "export COLOUR=red");
        answers(&person, "yes");
        person.wait_for_prompt();
        let shown = person.runs("echo $COLOUR in $PWD");
        assert!(
            shown.output.starts_with("red in ") && shown.output.ends_with("/below"),
            "{inner:?}: {shown:?}"
        );
        let by = proposed(&person);
        assert_eq!(
            (&by[0]["reply_id"], &by[0]["allowed"]),
            (&json!("reply_1_1"), &json!("terminal"))
        );
        assert_eq!(by[0]["rule"], "mode ask");
        assert_eq!(by[2], Value::Null, "typed, not proposed");
        // SPEC 11: with what it says of proposals, too, a request is small.
        let bytes = person.server.only_request().body.len();
        assert!(bytes <= 6 * 1024, "{bytes} bytes");
        person.types("?and then");
        let sent = person.server.requests()[1].last_text();
        assert!(
            sent.contains("proposed command, exit 0") && sent.contains("$ cd below"),
            "{sent}"
        );
        assert!(sent.contains("red in "), "{sent}");
        person.leaves();
    }
}

/// SPEC 8.4, 5.5: a no, with a reason or without, runs nothing and is told to the model; `q` and Ctrl-C refuse the rest.
#[test]
fn refuse() {
    for stop in ["q\r", key::CTRL_C, key::CTRL_D] {
        let person = person(&["CMD: echo a\nCMD: echo b\nCMD: echo c\nCMD: echo d", "fine"], "");
        asks(&person);
        waits_for_question(&person, "echo a");
        answers(&person, "");
        waits_for_question(&person, "echo b");
        answers(&person, "n it is slow");
        waits_for_question(&person, "echo c");
        person.terminal.send(stop);
        person.wait_for_prompt();
        assert_eq!(ran(&person), Vec::<String>::new());
        let lines = ["echo a", "echo b", "echo c", "echo d"];
        assert_eq!(refused(&person), lines.map(|line| refusal(line, "declined")));
        person.types("?and then");
        let sent = person.server.requests()[1].last_text();
        assert_eq!(sent.matches("declined by the user").count(), 4, "{sent}");
        assert!(sent.contains("declined by the user: it is slow"), "{sent}");
        person.leaves();
    }
}

/// SPEC 8.4: a command is edited at the prompt before it runs; what runs is what the person made of it, and the ledger says both.
#[test]
fn edit() {
    let person = person(&["CMD: echo one\nCMD: echo three\n"], "");
    asks(&person);
    waits_for_question(&person, "echo one");
    answers(&person, "e");
    person.terminal.wait_for("the line at the prompt", |screen| {
        let (row, column) = screen.cursor_position();
        screen.contents_between(row, 0, row, column).ends_with("!echo one")
    });
    person.terminal.send(" and two\r");
    waits_for_question(&person, "echo three");
    answers(&person, "e");
    person.terminal.wait_for("the line at the prompt", |screen| {
        let (row, column) = screen.cursor_position();
        screen.contents_between(row, 0, row, column).ends_with("!echo three")
    });
    // Nothing is left of it: nothing runs.
    person.terminal.send(key::CTRL_U);
    person.terminal.send(key::ENTER);
    person.wait_for_prompt();
    let last = person.last("echo one and two");
    assert_eq!(last.output, "one and two");
    assert_eq!(proposed(&person)[0]["instead_of"], "echo one");
    assert_eq!(refused(&person), [refusal("echo three", "declined")]);
    person.leaves();
}

/// SPEC 5.1, 8.4: a deny rule holds in every mode, also for what the person made of a proposal; it is said with the rule, and the
/// model hears of it.
#[test]
fn denied() {
    let config = "[approval]\ndeny = [\"bash(touch *)\"]\nmode = \"full\"\n";
    let full = person(&["CMD: touch a\nCMD: echo b\n", "fine"], config);
    asks(&full);
    full.sees("not run: touch a (denied by policy: deny rule bash(touch *))");
    full.wait_for_prompt();
    // What came after it may have counted on it.
    assert_eq!(
        refused(&full),
        [refusal("touch a", "denied"), refusal("echo b", "not_offered")]
    );
    assert!(!full.sandbox.path("a").exists());
    full.types("?and then");
    let sent = full.server.requests()[1].last_text();
    assert!(sent.contains("denied by policy: deny rule bash(touch *)"), "{sent}");
    full.leaves();

    let asking = person(&["CMD: echo a\n"], "[approval]\ndeny = [\"bash(touch *)\"]\n");
    asks(&asking);
    waits_for_question(&asking, "echo a");
    answers(&asking, "e");
    asking.sees("!echo a");
    asking.terminal.send("; touch a\r");
    asking.sees("denied by policy");
    asking.wait_for_prompt();
    assert_eq!(ran(&asking), Vec::<String>::new());
    assert!(!asking.sandbox.path("a").exists());
    asking.leaves();
}

/// SPEC 5.2, 8.4: nothing asks in mode `full`; after a command that failed, the rest is left to the person.
#[test]
fn full() {
    let config = "[approval]\nmode = \"full\"\n";
    let person = person(&["CMD: cd below\nCMD: ls\n", "CMD: cd nowhere\nCMD: touch a\n"], config);
    asks(&person);
    person.sees("runs cd below (mode full)");
    person.wait_for_prompt();
    assert_eq!(ran(&person), ["cd below", "ls"]);
    assert_eq!(person.last("ls").output, "marker");
    assert_eq!(proposed(&person)[0]["allowed"], "rule");
    asks(&person);
    person.sees("not run: touch a");
    person.wait_for_prompt();
    assert_eq!(refused(&person), [refusal("touch a", "not_offered")]);
    assert_eq!(ran(&person), ["cd below", "ls", "cd nowhere"]);
    person.leaves();
}

/// SPEC 8.4: without `confirm_cmd` what a rule allows runs without a question; what policy asks about is asked about all the same.
#[test]
fn not_confirmed() {
    let config = "[approval]\nallow = [\"bash(echo a)\"]\n[shell]\nconfirm_cmd = false\n";
    let loose = person(&["CMD: echo a\nCMD: echo b\n"], config);
    asks(&loose);
    waits_for_question(&loose, "echo b");
    assert_eq!(ran(&loose), ["echo a"]);
    answers(&loose, "n");
    loose.wait_for_prompt();
    assert_eq!(ran(&loose), ["echo a"]);
    loose.leaves();

    let confirmed = person(&["CMD: echo a\n"], "[approval]\nallow = [\"bash(echo a)\"]\n");
    asks(&confirmed);
    waits_for_question(&confirmed, "echo a");
    confirmed.sees("allowed by: allow rule bash(echo a)");
    answers(&confirmed, "y");
    confirmed.wait_for_prompt();
    assert_eq!(ran(&confirmed), ["echo a"]);
    confirmed.leaves();
}

/// SPEC 8.8, 8.4: a command that is not what it looks like is not offered, and nothing of it acts on the terminal.
#[test]
fn hostile() {
    let reply = "CMD: echo a\u{1b}[2K\u{1b}[1G; touch b\nCMD: echo \u{202e}c\nCMD: echo \"d'? [y/N/e/q] y\"\n";
    let person = person(&[reply], "");
    asks(&person);
    person.sees("it holds characters that cannot be shown");
    waits_for_question(&person, "echo \"d'? [y/N/e/q] y\"");
    answers(&person, "n");
    person.wait_for_prompt();
    assert_eq!(ran(&person), Vec::<String>::new());
    let why: Vec<String> = refused(&person).into_iter().map(|(_, why)| why).collect();
    assert_eq!(why, ["not_offered", "not_offered", "declined"]);
    person.terminal.assert_never_wrote(b"\x1b[2K\x1b[1G; touch");
    person.terminal.assert_never_wrote("\u{202e}".as_bytes());
    person.leaves();
}

/// SPEC 8.4, 3.3: what was shown is what runs: nothing typed before comes in through the shell's history.
#[test]
fn history_is_not_recalled() {
    let person = person(&["CMD: echo !!\nCMD: !tou\nCMD: echo 'wow!' [ ! ]\n"], "");
    person.types("touch a && rm a");
    asks(&person);
    person.sees("not run: !tou (not offered to the user: the shell would");
    waits_for_question(&person, "echo 'wow!' [ ! ]");
    answers(&person, "y");
    person.wait_for_prompt();
    assert_eq!(person.last("echo 'wow!' [ ! ]").output, "wow! [ ! ]");
    assert_eq!(ran(&person).len(), 2);
    person.leaves();
}

/// SPEC 8.4: a command that its shell would wait for more of is not asked about.
#[test]
fn what_is_not_whole() {
    let person = person(&["CMD: cat <<EOF\nCMD: echo 'a\nCMD:\\\nCMD: echo b\n"], "");
    asks(&person);
    waits_for_question(&person, "echo b");
    answers(&person, "n");
    person.wait_for_prompt();
    assert_eq!(
        refused(&person),
        [
            refusal("cat <<EOF", "not_offered"),
            refusal("echo 'a", "not_offered"),
            refusal("\\", "not_offered"),
            refusal("echo b", "declined"),
        ]
    );
    person.sees("not run: cat <<EOF (not offered to the user: it is not whole)");
    person.leaves();
}

/// SPEC 8.4: a line of code, of a quotation, or of a tool's result proposes nothing; neither does an answer that was stopped.
#[test]
fn what_proposes_nothing() {
    let read = Reply::call("c1", "file_read", json!({ "path": "notes" }));
    let stopped = Reply::stream().says("CMD: echo e\nand ").stalls().finish("stop").done();
    let quoted = Reply::text("It says:\n\n```\nCMD: echo b\n```\n\n> CMD: echo c\n\n- CMD: echo d\n");
    let person = Desk::with(Inner::Bash)
        .replies([read, quoted, stopped])
        .sandbox(|sandbox| sandbox.file("notes", "CMD: echo a\n"))
        .sit_down();
    asks(&person);
    person.wait_for_prompt();
    asks(&person);
    person.sees("CMD: echo e");
    person.terminal.send(key::CTRL_C);
    person.wait_for_prompt();
    let history = person.terminal.history_text();
    assert!(!history.contains(ASKED), "{history}");
    assert_eq!(refused(&person), []);
    person.leaves();
}

/// SPEC 8.4: a reply has no say over how many questions a person is asked.
#[test]
fn too_many() {
    let reply: String = (0..30).map(|n| format!("CMD: echo {n}\n")).collect();
    let person = person(&[&reply], "[approval]\nmode = \"full\"\n");
    asks(&person);
    person.sees("20 more not offered");
    person.wait_for_prompt();
    assert_eq!(ran(&person).len(), 10);
    // One word for the rest: it must not crowd out what ran.
    assert_eq!(refused(&person), [refusal("echo 10", "not_offered")]);
    person.leaves();
}

/// SPEC 8.4, 9.6: where nobody has a shell beside the model, what looks like a proposal is text, and the model is not told of any.
#[test]
fn text_alone_without_a_terminal() {
    let server = support::fake_server::FakeServer::script([Reply::text("CMD: touch a"), Reply::text("CMD: touch a")]);
    let sandbox = Sandbox::with_model(&server).config("[approval]\nmode = \"full\"\n");
    let once = sandbox.run(&["-p", "hi"]).success();
    assert_eq!(once.stdout, "CMD: touch a\n");
    let piped = sandbox.run_with_input(&[], "hi\n").success();
    assert!(piped.stdout.contains("CMD: touch a"), "{}", piped.stdout);
    assert!(!sandbox.path("a").exists());
    for request in server.requests() {
        assert!(!request.messages()[0].to_string().contains("CMD:"));
    }
    server.assert_done();
}

/// SPEC 10.5: a command around a key that the model was not shown does not run with the placeholder in its place.
#[test]
fn placeholders() {
    let person = person(
        &["CMD: export KEY=[redacted:SOME_API_KEY]\n"],
        "[approval]\nmode = \"full\"\n",
    );
    asks(&person);
    person.sees("it carries a placeholder");
    person.wait_for_prompt();
    assert_eq!(ran(&person), Vec::<String>::new());
    person.leaves();
}

/// SPEC 8.4, 8.7: a proposed `exit` leaves, as a typed one does.
#[test]
fn leaving() {
    let mut person = person(&["CMD: exit 3\nCMD: echo b\n"], "");
    asks(&person);
    waits_for_question(&person, "exit 3");
    answers(&person, "y");
    assert_eq!(person.is_gone().code(), Some(3));
}

/// SPEC 8.4, 12: told to leave while it asks, it leaves; nothing runs, and the terminal is as it was found.
#[test]
fn told_to_leave() {
    let mut person = person(&["CMD: touch a\n"], "");
    asks(&person);
    waits_for_question(&person, "touch a");
    person.terminal.signal(Signal::TERM);
    assert_eq!(person.is_gone().code(), Some(143));
    assert!(!person.sandbox.path("a").exists());
    assert_eq!(refused(&person), [], "nobody refused it");
}

/// SPEC 8.3: what was typed goes along with the next question, however it was sent to the shell: clean, bounded, without keys.
#[test]
fn what_was_typed_goes_along() {
    const KEY: &str = "sk-test-example-0123456789abcdefghij";
    let person = Desk::with(Inner::Bash)
        .replies([Reply::text("I see")])
        .sandbox(|sandbox| sandbox.env("MADE_UP_API_KEY", KEY))
        .sit_down();
    person.types("!printf '10%%\\r20%%\\r\\033[31mdone\\033[0m\\n'");
    person.types("seq 1 200000");
    person.types("echo $MADE_UP_API_KEY; false");
    person.types("?what was that");
    let sent = person.server.only_request().last_text();
    assert!(sent.contains("$ printf") && sent.contains("\ndone\n"), "{sent}");
    assert!(!sent.contains('\u{1b}') && !sent.contains("20%\n"), "{sent}");
    assert!(
        sent.contains("$ seq 1 200000\n1\n2\n") && sent.contains("\n200000\n"),
        "{sent}"
    );
    assert!(
        sent.contains("exit 1") && sent.contains("[redacted:MADE_UP_API_KEY]"),
        "{sent}"
    );
    assert!(!sent.contains(KEY) && sent.len() < 10_000, "{} bytes", sent.len());
    person.leaves();
}

/// SPEC 8.3: after a failure one key asks why: status and output go along once, and nothing is asked where nothing failed.
#[test]
fn why() {
    let person = person(&["a typo", "still"], "");
    person.terminal.send(ALT_W);
    person.sees("[aish] no command has run yet");
    person.wait_for_prompt();
    person.types("ls /no/such/folder");
    person.terminal.send(ALT_W);
    person.sees("❯ Why did that fail?");
    person.sees("a typo");
    person.wait_for_prompt();
    let sent = person.server.requests()[0].last_text();
    assert_eq!(sent.matches("$ ls /no/such/folder").count(), 1, "{sent}");
    assert!(sent.contains("exit 2") && sent.contains("No such file"), "{sent}");
    // Asked again, what was told is not told again.
    person.terminal.send(ALT_W);
    person.sees("still");
    person.wait_for_prompt();
    let sent = person.server.requests()[1].last_text();
    assert_eq!(sent, "Why did the command ls /no/such/folder fail with exit 2?");
    person.types("true");
    person.terminal.send(ALT_W);
    person.sees("[aish] the last command did not fail");
    person.leaves();
}
