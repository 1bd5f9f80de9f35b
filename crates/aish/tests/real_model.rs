//! A conversation with a real small model behind llama.cpp's own server: what a mock cannot prove.
//!
//! The model is as small as they come and says what it likes. What is asserted is therefore not what it says but what aish
//! makes of it: a call is shown, asked about, run and answered; a killed turn goes on; every request is accepted.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(dead_code)]

mod support;

use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use support::pty::{Terminal, key};
use support::real_model;
use support::sandbox::Sandbox;

/// A small model on a busy machine reads a prompt for minutes.
const REPLY_S_MAX: u64 = 240;
/// Rounds of questions one turn may come to here.
const QUESTIONS_MAX: usize = 20;

/// A sandbox on the real server that asks about every call, so that each one is seen.
fn sandbox() -> Option<Sandbox> {
    let url = real_model::base_url()?;
    let config = format!(
        "max_tool_turns = 2\n[models.real]\nbase_url = \"{url}\"\nmodel = \"smollm2\"\ntemperature = 0.0\n\
         context_window = 8192\nmax_output_tokens = 200\n[approval]\nread_only_inside_tree = false\n"
    );
    let sandbox = Sandbox::new().config(&config);
    Some(
        sandbox
            .file("file.txt", "the owl is in the oak\n")
            .file("notes.txt", "nothing here\n"),
    )
}

/// The events of the only session, as exported.
fn events(sandbox: &Sandbox) -> Vec<Value> {
    let list = sandbox.run(&["sessions", "list"]).success();
    let id = list.stdout.split_whitespace().next().expect("a session").to_owned();
    sandbox.run(&["sessions", "export", &id]).success().json_lines()
}

fn of_kind<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["kind"] == kind).collect()
}

/// Each call has exactly one result, and each turn has ended.
fn assert_whole(events: &[Value]) {
    let mut results: BTreeMap<&str, usize> = BTreeMap::new();
    for result in of_kind(events, "tool_result") {
        *results
            .entry(result["data"]["tool_call_id"].as_str().unwrap())
            .or_default() += 1;
    }
    for call in of_kind(events, "tool_call") {
        assert_eq!(results.get(call["data"]["id"].as_str().unwrap()), Some(&1), "{call}");
    }
    assert_eq!(
        of_kind(events, "turn_started").len(),
        of_kind(events, "turn_ended").len()
    );
}

/// SPEC 5.6, 10.3: one-shot: a real model's call waits in the ledger, is answered from a script, runs or not, and the
/// conversation goes on.
#[test]
fn real_model_one_shot() {
    let Some(sandbox) = sandbox() else { return };
    let mut output = sandbox.run(&["-p", "Read file.txt. Use the tool."]);
    let mut asked = 0;
    while output.code == Some(3) {
        asked += 1;
        assert!(asked <= QUESTIONS_MAX, "{}", output.stderr);
        assert!(output.stderr.contains("approval needed: "), "{}", output.stderr);
        let session = events(&sandbox);
        let answered: Vec<&Value> = of_kind(&session, "call_answered")
            .iter()
            .map(|event| &event["data"]["call_id"])
            .collect();
        let waiting = of_kind(&session, "call_gated")
            .into_iter()
            .map(|event| &event["data"])
            .find(|gated| gated["verdict"] == "ask" && !answered.contains(&&gated["call_id"]))
            .expect("a call that waits");
        let id = waiting["call_id"].as_str().unwrap();
        let answer = if waiting["read_only"] == true {
            "--approve"
        } else {
            "--deny"
        };
        output = sandbox.run(&["resume", session[0]["session"].as_str().unwrap(), answer, id]);
    }
    assert!(
        matches!(output.code, Some(0 | 1)),
        "{:?}: {}",
        output.code,
        output.stderr
    );
    let session = events(&sandbox);
    assert!(
        !of_kind(&session, "tool_call").is_empty(),
        "the model called no tool: {session:?}"
    );
    assert_whole(&session);
    // Whatever came of it, the server takes the conversation so far.
    let output = sandbox.run(&["--continue", "-p", "Say hello."]);
    assert!(matches!(output.code, Some(0 | 1 | 3)), "{}", output.stderr);
    assert!(!output.stderr.contains("no reply"), "{}", output.stderr);
}

/// SPEC 5.3, 2.8: at a prompt: the call is shown with its arguments and asked about; after `kill -9` the session is
/// restored and the conversation goes on.
#[test]
fn real_model_at_a_prompt() {
    let Some(sandbox) = sandbox() else { return };
    let terminal = sandbox.terminal(&[]).size(50, 100).start();
    terminal.wait_for_text("real ❯");
    terminal.send_line("Read file.txt. Use the tool.");
    converse(&terminal, 2);
    let session = events(&sandbox);
    let call = of_kind(&session, "tool_call").into_iter().next().expect("a call");
    assert!(
        terminal
            .history_text()
            .contains(call["data"]["function"]["name"].as_str().unwrap())
    );
    assert_whole(&session);

    terminal.send_line("Tell me a long story about an owl.");
    terminal.wait_for_within(Duration::from_secs(REPLY_S_MAX), "the story to begin", |screen| {
        let told = screen.contents();
        told.split("about an owl.")
            .nth(1)
            .is_some_and(|rest| rest.trim().len() > 20)
    });
    terminal.signal(support::pty::Signal::KILL);
    drop(terminal);

    let mut terminal = sandbox.terminal(&["--continue"]).size(50, 100).start();
    terminal.wait_for_text("session restored: ");
    terminal.wait_for_text("Read file.txt");
    // The cut turn is offered to be gone on with; Enter does.
    terminal.wait_for("the offer", |screen| screen.contents().trim_end().ends_with("[Y/n]"));
    terminal.send_line("");
    converse(&terminal, 1);
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
    assert_whole(&events(&sandbox));
}

/// Answers what is asked until the prompt stands there for the `times`th time: reads may run, nothing else may.
fn converse(terminal: &Terminal, times: usize) {
    for asked in 1..=QUESTIONS_MAX {
        let within = Duration::from_secs(REPLY_S_MAX);
        terminal.wait_for_within(within, "a question or the prompt", |screen| {
            let text = screen.contents();
            text.trim_end().ends_with("[y/N/a/s/?]") || text.matches("real ❯").count() >= times
        });
        let screen = terminal.screen_text();
        if !screen.trim_end().ends_with("[y/N/a/s/?]") {
            return;
        }
        let question = screen.rsplit("call '").next().unwrap_or_default();
        let reads = ["file_read(", "glob(", "grep("]
            .iter()
            .any(|tool| question.starts_with(tool));
        terminal.send_line(if reads { "y" } else { "n" });
        terminal.wait_for("the answer to be taken", |screen| {
            let text = screen.contents();
            text.matches("[y/N/a/s/?]").count() >= asked && !text.trim_end().ends_with("[y/N/a/s/?]")
        });
    }
    panic!("{QUESTIONS_MAX} questions and no end:\n{}", terminal.screen_text());
}
