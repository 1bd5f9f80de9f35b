//! Files and images a question names with `@` (SPEC 2.8, 8.9, 10.3, 12).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use serde_json::Value;
use support::fake_server::{FakeServer, Received};
use support::ledger::{of_kind, only_export};
use support::pty::key;
use support::reply::Reply;
use support::sandbox::Sandbox;

/// The smallest PNG that is one: a pixel.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89";
/// The same in base64.
const PNG_BASE64: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ";

/// The addresses of the images in a request's last message.
fn images(request: &Received) -> Vec<String> {
    let content = &request.messages().last().unwrap()["content"];
    let parts = content.as_array().map_or(&[][..], Vec::as_slice);
    let urls = parts.iter().filter_map(|part| part["image_url"]["url"].as_str());
    urls.map(str::to_owned).collect()
}

/// SPEC 10.3: with `-p`, an image goes along as an image and a text as context; both are in the ledger, so that the session
/// goes on with them.
#[test]
fn images_and_texts_go_along() {
    let server = FakeServer::script([Reply::text("a pixel"), Reply::text("still a pixel")]);
    let sandbox = Sandbox::with_model(&server)
        .file("a b.png", PNG)
        .file("notes.md", "remember the milk");
    sandbox
        .run(&["-p", "what is in @\"a b.png\", and in @notes.md?"])
        .success();
    sandbox.run(&["-p", "sure?", "--continue"]).success();
    let requests = server.requests();
    assert_eq!(images(&requests[0]), [format!("data:image/png;base64,{PNG_BASE64}")]);
    let text = requests[0].last_text();
    assert!(
        text.contains("remember the milk") && text.contains("notes.md") && text.contains("what is in @\"a b.png\""),
        "{text}"
    );
    assert_eq!(requests[0].messages()[1], requests[1].messages()[1]);
    let events = only_export(&sandbox);
    let parts = &of_kind(&events, "user")[0]["data"]["parts"];
    assert_eq!(
        (&parts[0]["type"], &parts[1]["label"]),
        (&Value::from("image"), &Value::from("notes.md"))
    );
}

/// At the prompt: the same, a hint where a path names nothing, and no question without what it is about.
#[test]
fn at_the_prompt() {
    let server = FakeServer::script([Reply::text("seen"), Reply::text("heard")]);
    let sandbox = Sandbox::with_model(&server)
        .file("a.png", PNG)
        .file("below/notes.md", "remember the milk")
        .file("data.bin", b"\0\x01\x02");
    let mut terminal = sandbox.terminal(&[]).start();
    terminal.wait_for_prompt();
    terminal.send_line("read @data.bin");
    terminal.wait_for_text("[aish] not asked: @data.bin is neither text nor an image that models take");
    terminal.wait_for_prompt();
    terminal.send_line("!cd below");
    terminal.wait_for_text("below fake ❯");
    terminal.send_line("compare @../a.png and @notes.md with @gone.md, me@notes.md");
    let screen = terminal.wait_for_text("seen");
    assert!(
        screen.contains("[aish] @gone.md names no file here; it is sent as text"),
        "{screen}"
    );
    assert_eq!(images(&server.only_request()).len(), 1);
    assert_eq!(
        server.only_request().last_text().matches("remember the milk").count(),
        1
    );
    terminal.wait_for_prompt();
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
}

/// SPEC 8.9: Tab completes the path of a mention, level by level, quotes included.
#[test]
fn paths_complete() {
    let server = FakeServer::script([Reply::text("seen")]);
    let sandbox = Sandbox::with_model(&server).file("below/shopping list.md", "remember the milk");
    let mut terminal = sandbox.terminal(&[]).start();
    terminal.wait_for_prompt();
    terminal.send("read @be");
    terminal.send(key::TAB);
    terminal.wait_for_text("read @below/");
    terminal.send(key::TAB);
    terminal.wait_for_text("read @\"below/shopping list.md\"");
    terminal.send(key::ENTER);
    terminal.wait_for_text("seen");
    assert!(server.only_request().last_text().contains("remember the milk"));
    terminal.wait_for_prompt();
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
}

/// SPEC 2.8: a restored session names the images that went along.
#[test]
fn restored() {
    let server = FakeServer::script([Reply::text("a pixel")]);
    let sandbox = Sandbox::with_model(&server).file("a.png", PNG);
    sandbox.run(&["-p", "what is in @a.png?"]).success();
    let mut terminal = sandbox.terminal(&["--continue"]).start();
    let screen = terminal.wait_for_prompt();
    assert!(
        screen.contains("❯ what is in @a.png?\n  [image a.png, 1 KB]\na pixel"),
        "{screen}"
    );
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
}

/// SPEC 12: what came down a pipe was perhaps written by somebody else: it names no files of the user's.
#[test]
fn a_pipe_names_no_files() {
    let server = FakeServer::script([Reply::text("fine"), Reply::text("fine")]);
    let sandbox = Sandbox::with_model(&server).file("secret.md", "remember the milk");
    sandbox.run_with_input(&["-p", "-"], "look at @secret.md").success();
    sandbox
        .run_with_input(&["-p", "sum up"], "look at @secret.md")
        .success();
    for request in server.requests() {
        assert!(!request.last_text().contains("milk"), "{}", request.last_text());
    }
}

/// SPEC 10.2, 10.4: what cannot go along is a usage error that says why, and nothing is asked.
#[test]
fn what_cannot_go_along() {
    let mut large = PNG.to_vec();
    large.resize(3_932_161, 0);
    let server = FakeServer::script([]);
    let sandbox = Sandbox::with_model(&server).file("large.png", &large);
    let output = sandbox.run(&["-p", "what is in @large.png?"]).exits(2);
    assert!(output.stderr.contains("@large.png is too large: models take images of up to 3932160 bytes, this one has 3932161; send a smaller picture"), "{output:?}");
    assert!(server.requests().is_empty());
}

/// SPEC 12: a link in a project that leads out of it is told, not followed; what it leads to goes along when it is named.
#[test]
fn links_are_not_followed() {
    let server = FakeServer::script([Reply::text("fine")]);
    let sandbox = Sandbox::with_model(&server).file("repo/a.md", "one");
    let outside = sandbox.home().canonicalize().unwrap().join("shadow");
    std::fs::write(&outside, "root:x:0").unwrap();
    std::os::unix::fs::symlink(&outside, sandbox.path("repo/NOTES.md")).unwrap();
    let output = sandbox.run(&["--cd", "repo", "-p", "sum up @NOTES.md"]).exits(2);
    let outside = outside.display();
    let expect = format!("@NOTES.md is a link to {outside}: write @{outside} to send it");
    assert!(output.stderr.contains(&expect), "{output:?}");
    assert!(server.requests().is_empty());
    let output = sandbox
        .run(&["--cd", "repo", "-p", &format!("sum up @{outside}")])
        .success();
    assert!(
        output.stderr.contains("[aish] @") && output.stderr.contains("looks like a secret file"),
        "{output:?}"
    );
    assert!(server.only_request().last_text().contains("root:x:0"));
}

/// SPEC 8.9: a path is understood as a shell writes it, with a backslash before a space.
#[test]
fn paths_with_backslashes() {
    let server = FakeServer::script([Reply::text("fine")]);
    let sandbox = Sandbox::with_model(&server).file("a b.txt", "remember the milk");
    sandbox.run(&["-p", r"sum up @a\ b.txt, please"]).success();
    assert!(server.only_request().last_text().contains("remember the milk"));
}

/// SPEC 10.5: a secret in a file that went along does not reach the model.
#[test]
fn secrets_in_files_stay() {
    let key = "sk-test-example-0123456789abcdefghij";
    let server = FakeServer::script([Reply::text("fine")]);
    let sandbox = Sandbox::with_model(&server)
        .env("DESK_API_KEY", key)
        .file("env.txt", format!("KEY={key}\n"));
    sandbox.run(&["-p", "what is wrong with @env.txt?"]).success();
    let text = server.only_request().last_text();
    assert!(
        text.contains("KEY=[redacted:DESK_API_KEY]") && !text.contains(key),
        "{text}"
    );
}
