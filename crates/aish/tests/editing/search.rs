//! Ctrl-R.

use super::*;

/// SPEC 8.9: Ctrl-R finds lines of both kinds by some of their letters; Enter takes one into the line and does not run it.
#[test]
fn taking_a_line() {
    let server = server();
    let sandbox = Sandbox::with_model(&server);
    let terminal = at_the_prompt(&sandbox);
    run(&terminal, "echo alpha beta", "alpha beta");
    terminal.send_line("what is alpha?");
    terminal.wait_for("the answer", |screen| {
        screen.contents().contains("an answer") && row(screen).ends_with('❯')
    });
    terminal.send(CTRL_R);
    terminal.wait_for_text("1/2 ");
    terminal.send("lpha");
    let screen = terminal.wait_for_text("search ❯ lpha");
    let rows: Vec<&str> = screen.lines().filter(|row| row.contains("just now")).collect();
    assert!(
        rows.len() == 2 && rows[0].starts_with("› ❯ what is alpha?") && rows[1].starts_with("  $ echo alpha beta"),
        "{screen}"
    );
    terminal.send(key::DOWN);
    terminal.wait_for_text("› $ echo alpha beta");
    terminal.send(key::ENTER);
    wait_for_line(&terminal, "$ echo alpha beta");
    assert!(
        !terminal.screen_text().contains("Esc goes back"),
        "the search is still there"
    );
    assert_eq!(count(&terminal.history_text(), "alpha beta"), 1, "it ran");
    terminal.send(key::ENTER);
    terminal.wait_for("its output", |screen| count(&screen.contents(), "alpha beta") == 2);
}

/// SPEC 8.9: Esc and Ctrl-C leave the line as it was before the search, however much was typed and erased in it.
#[test]
fn going_back() {
    let server = server();
    let sandbox = Sandbox::with_model(&server);
    let terminal = at_the_prompt(&sandbox);
    run(&terminal, "echo alpha", "alpha");
    for end in [key::ESCAPE, key::CTRL_C] {
        terminal.send("half a");
        wait_for_row(&terminal, "❯ half a");
        terminal.send(CTRL_R);
        terminal.wait_for_text("nothing like it was typed before");
        terminal.send(key::CTRL_U);
        terminal.wait_for_text("1/1 ");
        terminal.send("zzz");
        terminal.wait_for_text("nothing like it");
        terminal.send(key::CTRL_U);
        terminal.send("al");
        terminal.wait_for_text("› $ echo alpha");
        terminal.send(end);
        wait_for_row(&terminal, "❯ half a");
        terminal.send(key::CTRL_U);
        terminal.wait_for("an empty line", |screen| row(screen).ends_with('❯'));
    }
}

/// SPEC 8.9: keys that come faster than they are drawn mean the same.
#[test]
fn all_at_once() {
    let server = server();
    let sandbox = Sandbox::with_model(&server);
    let terminal = at_the_prompt(&sandbox);
    for word in ["alpha", "beta"] {
        run(&terminal, &format!("echo {word}"), word);
    }
    terminal.send(&format!("gamma{CTRL_R}{}alph\r", key::CTRL_U));
    wait_for_line(&terminal, "$ echo alpha");
    terminal.send(&format!(
        "{}{CTRL_R}x{}x{CTRL_R}\x07{CTRL_R}bet\t",
        key::CTRL_U,
        key::BACKSPACE
    ));
    wait_for_line(&terminal, "$ echo beta");
}

/// SPEC 8.9: it works in a narrow window, and in one that becomes narrow.
#[test]
fn narrow_windows() {
    let server = server();
    let sandbox = Sandbox::with_model(&server);
    let terminal = at_the_prompt_of(&sandbox, 12, 40);
    let long = "echo 0123456789012345678901234567890123456789 tail";
    terminal.send_line(&format!("{long} >/dev/null"));
    terminal.wait_for("the prompt behind it", |screen| {
        screen.contents().contains("tail >/dev/null") && row(screen).ends_with('❯')
    });
    for n in 0..9 {
        run(&terminal, &format!("echo n{n}"), &format!("n{n}"));
    }
    terminal.send(CTRL_R);
    let screen = terminal.wait_for_text("1/10 ");
    assert!(screen.contains("› $ echo n8"), "{screen}");
    terminal.send("tail");
    let screen = terminal.wait_for_text("1/1 ");
    let found = screen.lines().find(|row| row.starts_with("› $")).unwrap();
    assert!(found.contains("tail") && found.chars().count() < 40, "{screen}");
    terminal.resize(12, 30);
    terminal.send(key::BACKSPACE);
    terminal.wait_for("the narrow search", |screen| {
        screen.contents().contains("search ❯ tai") && screen.contents().contains("1/1")
    });
    terminal.send(key::ESCAPE);
    terminal.wait_for("the end of the search", |screen| {
        !screen.contents().contains("search ❯")
    });
}

/// SPEC 8.8: what was once said with control characters in it never reaches the terminal as such.
#[test]
fn hostile_lines() {
    let server = server();
    let sandbox = Sandbox::with_model(&server);
    sandbox.run(&["-p", "clear \x1b[2J\x1b]0;owned\x07 this"]).success();
    sandbox.run(&["-p", "a harmless question"]).success();
    let terminal = at_the_prompt(&sandbox);
    wait_for_history(&terminal, "a harmless question");
    terminal.assert_never_wrote(b"\x1b]0;owned");
}

/// SPEC 8.9: a search that is begun before the history is read finds it as soon as it is there, without another key.
#[test]
fn history_that_comes_late() {
    let server = server();
    let sandbox = Sandbox::with_model(&server);
    let data = sandbox.home().join("data");
    std::fs::create_dir_all(&data).unwrap();
    // Whoever reads it waits until somebody writes.
    let history = data.join("history");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, &history, mode).unwrap();
    let terminal = at_the_prompt(&sandbox);
    terminal.send(CTRL_R);
    terminal.wait_for_text("nothing like it was typed before");
    std::fs::write(&history, "1000\t:models\n").unwrap();
    terminal.wait_for_text("1/1 ");
    terminal.send(key::ENTER);
    wait_for_line(&terminal, ": :models");
}
