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
use support::sandbox::{Output, Sandbox};

/// A small model on a busy machine reads a prompt for minutes.
const REPLY_S_MAX: u64 = 240;
/// Rounds of questions one turn may come to here.
const QUESTIONS_MAX: usize = 20;

/// A sandbox on the real server that asks about every call, so that each one is seen.
fn sandbox() -> Option<Sandbox> {
    let url = real_model::base_url()?;
    let origin = url.trim_end_matches("/v1");
    let mut config = "max_tool_turns = 2\n[approval]\nread_only_inside_tree = false\n".to_owned();
    for (name, provider, base_url) in [
        ("real", "openai-chat", url.as_str()),
        ("responses", "openai-responses", url.as_str()),
        ("messages", "anthropic", origin),
    ] {
        config.push_str(&format!(
            "[models.{name}]\nprovider = \"{provider}\"\nbase_url = \"{base_url}\"\nmodel = \"smollm2\"\n\
             temperature = 0.0\ncontext_window = 8192\nmax_output_tokens = 200\n"
        ));
    }
    let sandbox = Sandbox::new().config(&config);
    Some(
        sandbox
            .file("file.txt", "the owl is in the oak\n")
            .file("notes.txt", "nothing here\n"),
    )
}

/// The session that was written to last.
fn last_session(sandbox: &Sandbox) -> String {
    let list = sandbox.run(&["sessions", "list"]).success();
    list.stdout.split_whitespace().next().expect("a session").to_owned()
}

/// A session's events, as exported.
fn events_of(sandbox: &Sandbox, session: &str) -> Vec<Value> {
    sandbox.run(&["sessions", "export", session]).success().json_lines()
}

/// The events of the only session.
fn events(sandbox: &Sandbox) -> Vec<Value> {
    events_of(sandbox, &last_session(sandbox))
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

/// Answers whatever a one-shot run asks about, from a script, until nothing is asked: reads may run, nothing else may.
fn answer_all(sandbox: &Sandbox, session: &str, mut output: Output) -> Output {
    let mut asked = 0;
    while output.code == Some(3) {
        asked += 1;
        assert!(asked <= QUESTIONS_MAX, "{}", output.stderr);
        assert!(output.stderr.contains("approval needed: "), "{}", output.stderr);
        let events = events_of(sandbox, session);
        let answered: Vec<&Value> = of_kind(&events, "call_answered")
            .iter()
            .map(|event| &event["data"]["call_id"])
            .collect();
        let waiting = of_kind(&events, "call_gated")
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
        output = sandbox.run(&["resume", session, answer, id]);
    }
    assert!(
        matches!(output.code, Some(0 | 1)),
        "{:?}: {}",
        output.code,
        output.stderr
    );
    output
}

/// SPEC 5.6, 10.3: one-shot: a real model's call waits in the ledger, is answered from a script, runs or not, and the
/// conversation goes on.
#[test]
fn real_model_one_shot() {
    let Some(sandbox) = sandbox() else { return };
    let output = sandbox.run(&["-p", "Read file.txt. Use the tool."]);
    let session = last_session(&sandbox);
    answer_all(&sandbox, &session, output);
    let events = events_of(&sandbox, &session);
    assert!(
        !of_kind(&events, "tool_call").is_empty(),
        "the model called no tool: {events:?}"
    );
    assert_whole(&events);
    // Whatever came of it, the server takes the conversation so far.
    let output = sandbox.run(&["--continue", "-p", "Say hello."]);
    assert!(matches!(output.code, Some(0 | 1 | 3)), "{}", output.stderr);
    assert!(!output.stderr.contains("no reply"), "{}", output.stderr);
}

/// SPEC 7.2: the same conversation with a tool call through each of the server's three APIs, and each conversation handed
/// over to the other two: the server takes every request.
#[test]
fn real_model_through_each_api() {
    let Some(sandbox) = sandbox() else { return };
    const APIS: [&str; 3] = ["real", "responses", "messages"];
    for (n, model) in APIS.iter().enumerate() {
        let output = sandbox.run(&["--model", model, "-p", "Read file.txt. Use the tool."]);
        let session = last_session(&sandbox);
        answer_all(&sandbox, &session, output);
        let said = events_of(&sandbox, &session);
        assert!(
            !of_kind(&said, "tool_call").is_empty(),
            "no tool was called through {model}: {said:?}"
        );
        assert!(of_kind(&said, "model_failed").is_empty(), "{model}: {said:?}");
        assert_whole(&said);
        for other in [APIS[(n + 1) % 3], APIS[(n + 2) % 3]] {
            let output = sandbox.run(&["--resume", &session, "--model", other, "-p", "Say hello."]);
            let output = answer_all(&sandbox, &session, output);
            let said = events_of(&sandbox, &session);
            assert!(
                of_kind(&said, "model_failed").is_empty(),
                "{model} to {other}: {}",
                output.stderr
            );
            let last = of_kind(&said, "assistant").last().copied().cloned().unwrap_or_default();
            assert!(
                of_kind(&said, "assistant")
                    .iter()
                    .any(|said| said["data"]["model"] == other),
                "{other} said nothing: {last}"
            );
            assert_whole(&said);
        }
    }
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
