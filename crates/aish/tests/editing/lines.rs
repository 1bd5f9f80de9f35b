//! Several rows, pastes, and the line in another editor.

use super::support::{default_wait, poll_until};
use super::*;
use std::os::unix::fs::PermissionsExt as _;

const PASTE_BEGIN: &str = "\x1b[200~";
const PASTE_END: &str = "\x1b[201~";

/// SPEC 8.9: Alt-Enter begins another row; Up goes to the row above before it goes to the history.
#[test]
fn several_rows() {
    let server = server();
    let sandbox = Sandbox::with_model(&server);
    let terminal = at_the_prompt(&sandbox);
    run(&terminal, "echo before", "before");
    terminal.send("echo one");
    wait_for_line(&terminal, "$ echo one");
    terminal.send(ALT_ENTER);
    terminal.send("echo two");
    terminal.wait_for("the second row", |screen| row(screen) == "· echo two");
    terminal.send(key::UP);
    wait_for_row(&terminal, "$ echo one");
    terminal.send("!");
    wait_for_row(&terminal, "$ echo one!");
    terminal.send(key::DOWN);
    terminal.wait_for("the second row", |screen| row(screen) == "· echo two");
    terminal.send(key::ENTER);
    terminal.wait_for("both outputs", |screen| {
        let text = screen.contents();
        count(&text, "one!") == 1 && count(&text, "two") == 1 && row(screen).ends_with('❯')
    });
    terminal.send(key::UP);
    terminal.wait_for("the whole of it", |screen| screen.contents().contains("· echo two"));
}

/// SPEC 8.9: a script that is pasted becomes text of the line; only Enter runs it, and then as one input.
#[test]
fn pasting_runs_nothing() {
    let server = server();
    let sandbox = Sandbox::with_model(&server);
    let terminal = at_the_prompt(&sandbox);
    run(&terminal, "echo ready", "ready");
    terminal.send(&format!(
        "{PASTE_BEGIN}touch one\rfor n in 1 2; do\n  echo row $n\x03\x1b\ndone\r\n{PASTE_END}"
    ));
    terminal.wait_for("the paste", |screen| screen.contents().contains("· done"));
    assert!(!sandbox.project().join("one").exists(), "a paste ran");
    terminal.send(key::ENTER);
    terminal.wait_for("what it does", |screen| {
        count(&screen.contents(), "row 2") == 1 && row(screen).ends_with('❯')
    });
    assert!(sandbox.project().join("one").exists());
}

/// SPEC 8.9: Ctrl-X Ctrl-E opens the line in the person's editor, in a file of their own; what was written is the line then, and
/// does not run.
#[test]
fn another_editor() {
    let server = server();
    let sandbox = Sandbox::with_model(&server).file(
        "editor",
        "#!/bin/sh\nstat -c %a \"$1\" >mode\ncat \"$1\" >was\nprintf 'echo edited\\necho twice\\n' >\"$1\"\n",
    );
    let script = sandbox.project().join("editor");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let sandbox = sandbox.env("EDITOR", script.to_str().unwrap());
    let terminal = at_the_prompt(&sandbox);
    run(&terminal, "echo ready", "ready");
    terminal.send("echo 'as it was'");
    wait_for_line(&terminal, "$ echo 'as it was'");
    terminal.send(&format!("{CTRL_X}{CTRL_E}"));
    terminal.wait_for("what was written", |screen| {
        let text = screen.contents();
        text.contains("$ echo edited") && text.contains("· echo twice")
    });
    let read = |name: &str| std::fs::read_to_string(sandbox.project().join(name)).unwrap();
    assert_eq!(
        (read("mode").as_str(), read("was").as_str()),
        ("600\n", "echo 'as it was'\n")
    );
    assert_eq!(count(&terminal.history_text(), "edited"), 0, "it ran");
    std::fs::write(&script, "#!/bin/sh\nprintf gone >\"$1\"\nprintf failed >mode\nexit 1\n").unwrap();
    terminal.send(&format!("{CTRL_X}{CTRL_E}"));
    poll_until("the end of an editor that fails", default_wait(), || {
        (read("mode") == "failed").then_some(())
    });
    // Pastes come in brackets at the prompt only: before, Enter would be a key of the editor's.
    terminal.wait_for("the line as it was", |screen| {
        screen.bracketed_paste() && screen.contents().contains("· echo twice")
    });
    poll_until("keys to be read again", default_wait(), || {
        terminal.reads_keys().then_some(())
    });
    terminal.send(key::ENTER);
    terminal.wait_for("both outputs", |screen| {
        count(&screen.contents(), "edited") == 1 && count(&screen.contents(), "twice") == 1
    });
}

/// SPEC 8.9: Ctrl-W takes a word as a shell does, to the last space; Ctrl-_ brings it back.
#[test]
fn words_of_a_shell() {
    let server = server();
    let sandbox = Sandbox::with_model(&server);
    let terminal = at_the_prompt(&sandbox);
    terminal.send("cat a.txt /tmp/x-y.txt");
    wait_for_line(&terminal, "$ cat a.txt /tmp/x-y.txt");
    terminal.send("\x17");
    wait_for_line(&terminal, "$ cat a.txt");
    terminal.send("\x1f");
    wait_for_line(&terminal, "$ cat a.txt /tmp/x-y.txt");
}
