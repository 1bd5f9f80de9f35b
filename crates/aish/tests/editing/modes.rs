//! vi.

use super::*;

/// SPEC 8.9: vi mode, with an indicator for the mode in which keys are commands; our own keys work in both.
#[test]
fn vi() {
    let server = server();
    let sandbox = Sandbox::with_model(&server).config("[shell]\nedit_mode = \"vi\"");
    let terminal = at_the_prompt(&sandbox);
    run(&terminal, "echo one", "one");
    terminal.send("echo two three");
    wait_for_line(&terminal, "$ echo two three");
    terminal.send(key::ESCAPE);
    wait_for_line(&terminal, "❮ echo two three");
    terminal.send("db");
    wait_for_row(&terminal, "❮ echo two e");
    terminal.send("0wcw");
    wait_for_row(&terminal, "$ echo ");
    terminal.send("four");
    wait_for_row(&terminal, "$ echo four");
    terminal.send(key::ESCAPE);
    wait_for_row(&terminal, "❮ echo four");
    terminal.send("D");
    terminal.send(CTRL_R);
    terminal.wait_for_text("search ❯");
    terminal.send(key::CTRL_U);
    terminal.send("one");
    terminal.wait_for_text("› $ echo one");
    terminal.send(key::ENTER);
    wait_for_line(&terminal, "$ echo one");
    terminal.send(key::ENTER);
    terminal.wait_for("its output", |screen| count(&screen.contents(), "one") == 2);
}

/// SPEC 8.9: keys that come in one piece do in vi's modes what they do one by one; a line begins in insert mode.
#[test]
fn vi_in_one_piece() {
    let server = server();
    let sandbox = Sandbox::with_model(&server).config("[shell]\nedit_mode = \"vi\"");
    let terminal = at_the_prompt(&sandbox);
    for (keys, line) in [
        ("echo abc\x1bhx", "❮ echo ac"),
        ("echo abc\x1b0wiz", "$ echo zabc"),
        ("echo a b\x1bbDAc d\x1bbix", "$ echo xc d"),
        ("echo abc\x1bvhd", "❮ echo a"),
    ] {
        terminal.send(keys);
        wait_for_row(&terminal, line);
        terminal.send(key::CTRL_C);
        terminal.wait_for("the next prompt", |screen| row(screen).ends_with('❯'));
    }
}

/// SPEC 10.1: a mode that is none is told.
#[test]
fn no_such_mode() {
    let sandbox = Sandbox::new().env("AISH_SHELL_EDIT_MODE", "vim");
    let output = sandbox.run(&["-p", "hi"]).exits(2);
    assert!(
        output.stderr.contains("AISH_SHELL_EDIT_MODE") && output.stderr.contains("emacs"),
        "{output:?}"
    );
}
