//! Lines that a shell does not run as they are: put back to be looked at, without an event in the history, asked about.

use super::bench::{Bench, runtime};
use aish_shell::{Ended, NotRun, Stops};
use std::time::Duration;

/// SPEC 8.2: `histverify`: what the history stands for comes back instead of being glued to the next line.
#[test]
fn history_is_looked_at_first() {
    for (name, start_up) in [("bash", "shopt -s histverify\n"), ("zsh", "setopt hist_verify\n")] {
        let bench = Bench::new(name, start_up);
        runtime().block_on(async {
            assert_eq!(bench.text("echo once").await, "once");
            let ran = bench.run("echo and !!").await;
            assert_eq!(ran.ended, Ended::PutBack, "{name}: {ran:?}");
            assert_eq!(ran.draft, "echo and echo once", "{name}");
            assert_eq!(ran.output.text(None), "", "{name}");
            assert_eq!(bench.text(&ran.draft).await, "and echo once", "{name}");
            assert_eq!(bench.text("echo next").await, "next", "{name}");
        });
    }
}

/// SPEC 8.2: a line that is put back is not lost where the prompt takes its time.
#[test]
fn put_back_late() {
    for (name, start_up) in [
        ("bash", "shopt -s histverify\nPROMPT_COMMAND='sleep 0.3'\n"),
        (
            "zsh",
            "setopt hist_verify\nslow() { sleep 0.3 }; precmd_functions=(slow)\n",
        ),
    ] {
        let bench = Bench::new(name, start_up);
        runtime().block_on(async {
            assert_eq!(bench.text("echo once").await, "once");
            let ran = bench.run("echo and !!").await;
            assert_eq!(
                (ran.ended, ran.draft.as_str()),
                (Ended::PutBack, "echo and echo once"),
                "{name}: {ran:?}"
            );
        });
    }
}

/// SPEC 8.2: an event that the history does not have is said, and nothing waits for its end.
#[test]
fn no_such_event() {
    for name in ["bash", "zsh"] {
        let bench = Bench::new(name, "");
        runtime().block_on(async {
            let ran = bench.run("echo !nosuchevent").await;
            let is_told = matches!(ran.ended, Ended::NotRun(NotRun::Malformed) | Ended::Exited(_));
            assert!(is_told, "{name}: {ran:?}");
            assert!(ran.output.text(None).contains("event not found"), "{name}: {ran:?}");
            assert_eq!(bench.text("echo next").await, "next", "{name}");
        });
    }
    // Put back to be mended.
    let bench = Bench::new("bash", "shopt -s histreedit\n");
    runtime().block_on(async {
        let ran = bench.run("echo !nosuchevent").await;
        assert_eq!((ran.ended, ran.draft.as_str()), (Ended::PutBack, "echo !nosuchevent"));
        assert_eq!(bench.text("echo next").await, "next");
    });
}

/// SPEC 8.2: zsh asks whether a line is meant so; the person sees it and answers.
#[test]
fn corrections_are_asked_about() {
    let bench = Bench::new("zsh", "setopt correct\n");
    runtime().block_on(async {
        let ran = bench.with_keys("ehco mended", "[nyae]", b"y").await;
        assert_eq!(ran.ended, Ended::Exited(0), "{ran:?}");
        assert!(ran.output.text(None).ends_with("mended"), "{ran:?}");
        let ran = bench.with_keys("ehco mended", "[nyae]", b"n").await;
        assert_eq!(ran.ended, Ended::Exited(127), "{ran:?}");
        let ran = bench.with_keys("ehco mended", "[nyae]", b"e").await;
        assert_eq!((ran.ended, ran.draft.as_str()), (Ended::PutBack, "ehco mended"));
        let ran = bench.with_keys("ehco mended", "[nyae]", b"\x03").await;
        assert_eq!(ran.ended, Ended::NotRun(NotRun::GivenUp), "{ran:?}");
        assert_eq!(bench.text("echo next").await, "next");
    });
}

/// SPEC 8.2: what a command puts into the line editor is not run, and not glued to the next line.
#[test]
fn commands_that_fill_the_line() {
    for (name, line) in [("zsh", "print -z echo filled"), ("fish", "commandline 'echo filled'")] {
        let bench = Bench::new(name, "");
        runtime().block_on(async {
            let ran = bench.run(line).await;
            assert_eq!(
                (ran.ended, ran.draft.as_str()),
                (Ended::Exited(0), "echo filled"),
                "{name}"
            );
            assert_eq!(bench.text("echo next").await, "next", "{name}");
        });
    }
}

/// SPEC 8.2: a shell that has lost our keys loses no line for it.
#[test]
fn lost_keys() {
    for (name, line) in [("bash", "bind -r '\\e[9992~'"), ("zsh", "bindkey -d")] {
        let bench = Bench::new(name, "");
        runtime().block_on(async {
            bench.run(line).await;
            let ran = bench
                .with_keys("sh -c 'echo now; read line; echo got $line'", "now", b"one\rpart")
                .await;
            assert!(ran.output.text(None).ends_with("got one"), "{name}: {ran:?}");
            assert_eq!(bench.text("echo next").await, "next", "{name}");
        });
    }
}

/// SPEC 8.2, 12: a shell that is stopped goes on, since nobody above it could have it do so, and whoever waits is told.
#[test]
fn stopped() {
    for (name, line) in [
        ("bash", "suspend"),
        ("zsh", "kill -STOP $$"),
        ("fish", "kill -STOP $fish_pid"),
    ] {
        let bench = Bench::new(name, "");
        runtime().block_on(async {
            let ran = bench.run(line).await;
            assert_eq!(ran.stops, Stops::Some, "{name}: {ran:?}");
            let ran = bench.run("echo next").await;
            assert_eq!(
                (ran.output.text(None).as_str(), ran.stops),
                ("next", Stops::None),
                "{name}"
            );
        });
    }
}

/// SPEC 8.2, 8.8: a program that marks as the shell does, even with the shell's own secret, hands no line back and has no prompt
/// believed: the next command waits for the real one.
#[test]
fn forged_marks() {
    let bench = Bench::new("bash", "");
    runtime().block_on(async {
        let key = bench.text("cat \"$__aish_folder/key\"").await;
        let mark = |letter: &str, value: &str| format!("\\033]133;{letter};k={key};{value}\\007");
        let line = format!("sh -c 'printf \"{}\"'", mark("L", "touch forged\\n"));
        let ran = bench.run(&line).await;
        assert_eq!((ran.typed_ahead.as_str(), ran.draft.as_str()), ("", ""), "{ran:?}");
        let forged = [mark("L", "touch forged\\n"), mark("D", "0"), mark("B", "")].concat();
        // As long as it could be typed to.
        let line = format!("sh -c 'printf \"{forged}\"; timeout --foreground 1 cat > read; true'");
        bench.run(&line).await;
        assert_eq!(bench.text("echo next").await, "next");
        let read = std::fs::read_to_string(bench.home().join("read")).unwrap();
        assert_eq!(read, "");
        assert!(!bench.home().join("forged").exists());
    });
}

/// SPEC 8.2, 8.8: a shell that has its terminal back is not at its prompt yet: what is typed then, because somebody marked one,
/// would be taken for keys that were typed ahead.
#[test]
fn marked_before_the_prompt() {
    let bench = Bench::new("bash", "mkfifo ~/gate\n");
    runtime().block_on(async {
        let key = bench.text("cat \"$__aish_folder/key\"").await;
        let mark = |letter: &str| format!("\\033]133;{letter};k={key};0\\007");
        // By another program, and by the shell itself.
        for print in ["sh -c 'printf \"$1\"' -", "printf"] {
            let forged = format!("{print} \"{}{}\"; read line <~/gate", mark("D"), mark("B"));
            bench.run(&forged).await;
            let next = bench.text("echo next");
            tokio::pin!(next);
            tokio::select! {
                _ = &mut next => panic!("it ran behind a gate that is closed"),
                () = tokio::time::sleep(Duration::from_millis(50)) => {}
            }
            std::fs::write(bench.home().join("gate"), "open\n").unwrap();
            assert_eq!(next.await, "next", "{print}");
        }
    });
}
