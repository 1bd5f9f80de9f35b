//! What was typed before: Up, hints, and what is not kept.

use super::*;

/// SPEC 8.9: Up gives what was typed in other sessions too, commands and questions and `:` lines, the newest first.
#[test]
fn up_goes_through_all_sessions() {
    let server = server();
    let sandbox = Sandbox::with_model(&server);
    sandbox.run(&["-p", "what is a monad?"]).success();
    let first = at_the_prompt(&sandbox);
    run(&first, "echo from the first", "from the first");
    first.send_line(":usage");
    first.wait_for("the prompt", |screen| {
        screen.contents().contains(": :usage") && row(screen).ends_with('❯')
    });
    drop(first);
    let second = at_the_prompt(&sandbox);
    wait_for_history(&second, ":usage");
    second.send(key::UP);
    wait_for_line(&second, ": :usage");
    second.send(key::UP);
    wait_for_line(&second, "$ echo from the first");
    second.send(key::UP);
    wait_for_row(&second, "❯ what is a monad?");
    second.send(key::DOWN);
    wait_for_line(&second, "$ echo from the first");
}

/// SPEC 8.9: with something typed, Up gives only what begins so.
#[test]
fn up_with_a_beginning() {
    let server = server();
    let sandbox = Sandbox::with_model(&server);
    let terminal = at_the_prompt(&sandbox);
    for word in ["one", "two"] {
        run(&terminal, &format!("echo {word}"), word);
    }
    run(&terminal, "printf '%s\\n' three", "three");
    terminal.send("ec");
    wait_for_row(&terminal, "❯ ec");
    terminal.send(key::UP);
    wait_for_line(&terminal, "$ echo two");
    terminal.send(key::UP);
    wait_for_line(&terminal, "$ echo one");
}

/// SPEC 8.9: the rest of the line is hinted at, dimmed, and taken by Ctrl-E whole or by Alt-F word by word.
#[test]
fn hints() {
    let server = server();
    let sandbox = Sandbox::with_model(&server);
    let terminal = at_the_prompt(&sandbox);
    run(&terminal, "echo one two three", "one two three");
    terminal.send("echo o");
    let text = "echo one two three";
    terminal.wait_for("a hint", |screen| row(screen).contains(text));
    let is_dim = terminal.look(|screen| {
        let (row, column) = screen.cursor_position();
        screen.cell(row, column).is_some_and(vt100::Cell::dim)
    });
    assert!(is_dim, "what was not typed looks as if it was");
    terminal.send(ALT_F);
    let at = |columns: usize| move |screen: &vt100::Screen| usize::from(screen.cursor_position().1) == columns;
    let begun = terminal
        .look(|screen| row(screen).find(text).map(|at| row(screen)[..at].chars().count()))
        .unwrap();
    terminal.wait_for("one more word", at(begun + "echo one".len()));
    terminal.send(CTRL_E);
    terminal.wait_for("the whole line", at(begun + text.len()));
    assert_eq!(count(&terminal.history_text(), "one two three"), 1, "it ran");
}

/// SPEC 8.9: no hint where it could not be told from what was typed, and none for those who want none.
#[test]
fn no_hints() {
    for (name, value) in [("NO_COLOR", "1"), ("AISH_UI_HINTS", "false")] {
        let server = server();
        let sandbox = Sandbox::with_model(&server).env(name, value);
        let terminal = at_the_prompt(&sandbox);
        run(&terminal, "echo one two", "one two");
        terminal.send("echo o");
        // Up shows that the line is known.
        wait_for_line(&terminal, "$ echo o");
        terminal.send(key::UP);
        wait_for_line(&terminal, "$ echo one two");
    }
}

/// SPEC 8.9: a line that begins with a space is not offered again, neither now nor in the next session.
#[test]
fn what_is_not_kept() {
    let server = server();
    let sandbox = Sandbox::with_model(&server);
    let first = at_the_prompt(&sandbox);
    run(&first, "echo kept", "kept");
    run(&first, " echo hidden", "hidden");
    first.send(CTRL_R);
    let screen = first.wait_for_text("1/1 ");
    assert!(screen.contains("› $ echo kept"), "{screen}");
    drop(first);
    let second = at_the_prompt(&sandbox);
    wait_for_history(&second, "echo kept");
    second.send(CTRL_R);
    let screen = second.wait_for_text("1/1 ");
    assert!(screen.contains("echo kept") && !screen.contains("hidden"), "{screen}");
}

/// SPEC 8.1, 8.9: `!!` and `!$` put in the last command or its last word, also after a question about it, and wait for another
/// Enter; any other `!` sends the line to the shell as it is.
#[test]
fn bangs() {
    let server = server();
    let sandbox = Sandbox::with_model(&server);
    let terminal = at_the_prompt(&sandbox);
    run(&terminal, "echo alpha beta", "alpha beta");
    terminal.send_line("what was that?");
    terminal.wait_for("the answer", |screen| {
        screen.contents().contains("an answer") && row(screen).ends_with('❯')
    });
    terminal.send_line("echo !$");
    wait_for_row(&terminal, "$ echo beta");
    terminal.send(key::ENTER);
    terminal.wait_for("its output", |screen| {
        count(&screen.contents(), "beta") == 1 && row(screen).ends_with('❯')
    });
    terminal.send_line("echo again: !!");
    wait_for_row(&terminal, "$ echo again: echo beta");
    terminal.send(key::CTRL_U);
    run(&terminal, "!echo alph", "alph");
}

/// SPEC 8.9: Alt-. puts the last word of the last command in, pressed again that of the one before; quotes are part of it.
#[test]
fn last_words() {
    let server = server();
    let sandbox = Sandbox::with_model(&server);
    let terminal = at_the_prompt(&sandbox);
    run(&terminal, "echo one 'two three'", "one two three");
    run(&terminal, "echo four", "four");
    terminal.send("ls ");
    wait_for_row(&terminal, "$ ls");
    terminal.send("\x1b.");
    wait_for_row(&terminal, "$ ls four");
    terminal.send("\x1b.");
    wait_for_line(&terminal, "$ ls 'two three'");
    // There is no older one.
    terminal.send("\x1b.x\x1b.");
    wait_for_line(&terminal, "$ ls 'two three'xfour");
}
