//! The pictures of the README: screens of the real program, drawn anew by `UPDATE_DOCS=1`, else compared with what is kept.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_precision_loss
)]

mod support;
#[path = "pictures/svg.rs"]
mod svg;

use std::fs;
use std::path::Path;

use serde_json::json;
use support::fake_server::FakeServer;
use support::pty::Terminal;
use support::reply::Reply;
use support::sandbox::Sandbox;

const ROWS: u16 = 34;
const COLUMNS: u16 = 88;
/// What a question about a proposed command and one about a call end with.
const PROPOSED: &str = "[y/N/e/q]";
const CALLED: &str = "[y/N/a/s/?]";

/// Somebody in `~/weather`, with that model on the desk.
fn desk(model: &FakeServer) -> (Sandbox, Terminal) {
    let sandbox = Sandbox::new().config(&format!(
        "default_model = \"desk\"\n\n[models.desk]\nprovider = \"openai-chat\"\nbase_url = \"{}\"\nmodel = \"fake\"\n",
        model.base_url()
    ));
    let weather = sandbox.user().join("weather");
    fs::create_dir_all(weather.join("old")).unwrap();
    fs::write(weather.join("old/june.csv"), "21.4\n19.8\n24.0\n").unwrap();
    fs::write(weather.join("warmest.sh"), "sort -n data/june.csv | tail -n 1\n").unwrap();
    fs::write(sandbox.user().join(".bashrc"), "HISTFILE=\n").unwrap();
    let terminal = sandbox.terminal(&[]).directory(weather).size(ROWS, COLUMNS).start();
    terminal.wait_for_text("desk ❯");
    (sandbox, terminal)
}

/// The last row that holds anything.
fn last(screen: &vt100::Screen) -> String {
    let text = screen.contents();
    text.trim_end().lines().last().unwrap_or_default().trim_end().to_owned()
}

/// Types a line and waits until something else comes last that ends so.
fn types(terminal: &Terminal, line: &str, until: &str) {
    terminal.send(line);
    terminal.wait_for(line, |screen| last(screen).ends_with(line));
    terminal.send_line("");
    terminal.wait_for(until, |screen| last(screen).ends_with(until));
}

/// A digest is of absolute paths, which are others in each run: the pictures show one.
fn same_digest(text: &str) -> String {
    const BEFORE: &str = "call_1_2 · ";
    const DIGEST: &str = "306bafb2421b";
    let Some((before, rest)) = text.split_once(BEFORE) else {
        return text.to_owned();
    };
    let after = rest.get(DIGEST.len()..).unwrap_or_default();
    format!("{before}{BEFORE}{DIGEST}{after}")
}

/// Compares the screen with the picture that is kept, or keeps it.
fn kept(terminal: &Terminal, name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/pictures")
        .join(name);
    let drawn = same_digest(&terminal.look(svg::svg));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &drawn).unwrap();
        return;
    }
    let before = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        before == drawn,
        "docs/pictures/{name} shows another screen than this; UPDATE_DOCS=1 draws it anew\n{}",
        terminal.screen_text()
    );
}

/// SPEC 8.4: a command that fails, the question why, and the command that was proposed, in the shell it failed in.
#[test]
fn a_command_that_fails() {
    let model = FakeServer::script([Reply::text(
        "`data/june.csv` is not there, but there is one in `old`:\n\n\
         | file | lines |\n|---|---|\n| old/june.csv | 3 |\n\n\
         With a copy of it `sort` has something to read.\n\n\
         CMD: mkdir -p data && cp old/june.csv data/\n",
    )]);
    let (_sandbox, terminal) = desk(&model);
    types(&terminal, "sort -n data/june.csv", "why did that fail?");
    types(&terminal, "why did that fail?", PROPOSED);
    terminal.send_line("y");
    terminal.wait_for("the prompt", |screen| screen.contents().trim_end().ends_with('❯'));
    types(&terminal, "sort -n data/june.csv", "❯");
    kept(&terminal, "prompt.svg");
    model.assert_done();
}

/// SPEC 5.3: what the model wants to do is shown whole before it is done.
#[test]
fn a_call_at_the_gate() {
    let model = FakeServer::script([
        Reply::call("c1", "grep", json!({"pattern": "june", "path": "."})),
        Reply::call(
            "c2",
            "file_edit",
            json!({"path": "warmest.sh", "old": "data/", "new": "old/"}),
        ),
        Reply::text("`warmest.sh` reads `old/june.csv` now."),
    ]);
    let (_sandbox, terminal) = desk(&model);
    types(&terminal, "let the script read the old numbers instead", CALLED);
    terminal.send_line("y");
    terminal.wait_for("the prompt", |screen| screen.contents().trim_end().ends_with('❯'));
    types(&terminal, "bash warmest.sh", "❯");
    kept(&terminal, "gate.svg");
    model.assert_done();
}
