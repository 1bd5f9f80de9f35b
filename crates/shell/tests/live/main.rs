//! Real shells: what is typed runs there, with their state, and nothing of the shell's own writing is taken for output.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod ahead;
mod ask;
mod bench;
mod hooks;
mod lost;
mod put_back;

use aish_shell::{End, Ended, NotRun, Setup, Shell, ShellError, Size, StartUp};
use bench::{Bench, PATIENCE, SHELLS, each, runtime};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// SPEC 8.2: directory, variables, functions and aliases last from one command to the next.
#[test]
fn state_lasts() {
    each("alias greet='echo hello'\n", async |bench| {
        assert_eq!(bench.text("echo hi").await, "hi");
        assert_eq!(bench.text("cd /usr/bin").await, "");
        assert_eq!(bench.text("pwd").await, "/usr/bin");
        assert_eq!(bench.shell.directory(), Path::new("/usr/bin"));
        let export = if bench.name == "fish" {
            "set -x COLOUR blue"
        } else {
            "export COLOUR=blue"
        };
        bench.run(export).await;
        assert_eq!(bench.text("sh -c 'echo $COLOUR'").await, "blue");
        assert_eq!(bench.text("greet").await, "hello");
        assert_eq!(bench.run("false").await.ended, Ended::Exited(1));
        assert_eq!(bench.run("sh -c 'exit 42'").await.ended, Ended::Exited(42));
    });
}

/// SPEC 8.2: pipelines, several lines, quotes, wide characters.
#[test]
fn lines_of_all_kinds() {
    each("", async |bench| {
        assert_eq!(bench.text("echo one\necho two").await, "one\ntwo");
        assert_eq!(bench.text("printf 'b\\na\\n' | sort | tr a-z A-Z").await, "A\nB");
        assert_eq!(bench.text("echo '日本 é' \"two  spaces\"").await, "日本 é two  spaces");
        let long = "x".repeat(5_000);
        assert_eq!(bench.text(&format!("echo {long}")).await, long);
        // Typed comments are zsh's option, off unless somebody turns it on.
        if bench.name != "zsh" {
            assert_eq!(bench.text("echo '*' # a comment with \"a quote").await, "*");
        }
    });
}

/// SPEC 8.2: a command that is not whole is handed back; one that is wrong says so.
#[test]
fn unfinished_and_wrong() {
    each("", async |bench| {
        assert_eq!(
            bench.run("echo 'not closed").await.ended,
            Ended::NotRun(NotRun::Incomplete),
            "{}",
            bench.name
        );
        assert_eq!(
            bench.run("begin-of |").await.ended,
            Ended::NotRun(NotRun::Incomplete),
            "{}",
            bench.name
        );
        let wrong = bench.run("echo )(").await;
        assert!(
            !matches!(wrong.ended, Ended::Exited(0) | Ended::ShellEnded(_)),
            "{}: {wrong:?}",
            bench.name
        );
        assert_eq!(bench.text("echo back").await, "back", "{}", bench.name);
        let refused = bench.shell.run("echo \x1b[201~", bench.relay()).await;
        assert!(matches!(refused, Err(ShellError::ControlCharacter)));
    });
}

/// SPEC 8.2: Ctrl-C ends a command, Ctrl-Z makes it a job, `fg` brings it back.
#[test]
fn jobs() {
    each("", async |bench| {
        let ended = bench
            .with_keys("sh -c 'echo started-1; exec sleep 60'", "started-1", b"\x03")
            .await;
        assert_eq!(ended.ended, Ended::Exited(130), "{}", bench.name);
        bench
            .with_keys("sh -c 'echo started-2; exec sleep 60'", "started-2", b"\x1a")
            .await;
        assert!(bench.text("jobs").await.contains("started-2"), "{}", bench.name);
        bench.run("bg").await;
        let ended = bench.with_keys("fg", "started-2", b"\x03").await;
        assert!(matches!(ended.ended, Ended::Exited(_)), "{}: {ended:?}", bench.name);
        assert_eq!(bench.text("echo back").await, "back");
    });
}

/// SPEC 8.2: a program that reads keys gets them, without echo where it asks for none.
#[test]
fn keys_reach_the_program() {
    each("", async |bench| {
        let ran = bench
            .with_keys("sh -c 'printf name:; read name; echo got $name'", "name:", b"Ada\r")
            .await;
        assert!(ran.output.text(None).ends_with("got Ada"), "{}", bench.name);
        let ran = bench
            .with_keys(
                "sh -c 'stty -echo; printf pass:; read p; stty echo; echo; echo ${#p}'",
                "pass:",
                b"secret\r",
            )
            .await;
        assert_eq!(ran.output.text(None), "pass:\n6", "{}", bench.name);
    });
}

/// SPEC 8.2: what prints while nothing runs is told beside.
#[test]
fn jobs_that_print() {
    each("", async |bench| {
        bench.run("sh -c 'sleep 0.3; echo from-a-job' &").await;
        let until = std::time::Instant::now() + PATIENCE;
        while !bench.beside.lock().unwrap().contains("from-a-job") {
            assert!(
                std::time::Instant::now() < until,
                "{}: {:?}",
                bench.name,
                bench.beside.lock().unwrap()
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
}

/// SPEC 8.2, 12: `exit` ends it; a shell that is dropped leaves nothing.
#[test]
fn the_end() {
    each("", async |bench| {
        assert_eq!(
            bench.run("exit 7").await.ended,
            Ended::ShellEnded(End::Exited(7)),
            "{}",
            bench.name
        );
        assert!(matches!(
            bench.shell.run("echo x", bench.relay()).await,
            Err(ShellError::Ended)
        ));
    });
    for name in SHELLS {
        let bench = Bench::new(name, "");
        let process = runtime().block_on(async {
            bench.run("sleep 1000 &").await;
            bench.shell.process()
        });
        drop(bench);
        let gone = || !Path::new(&format!("/proc/{process}")).exists();
        let until = std::time::Instant::now() + PATIENCE;
        while !gone() {
            assert!(std::time::Instant::now() < until, "{name}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// SPEC 8.2: start-up files with prompts and hooks of their own.
#[test]
fn start_up_files_with_their_own_prompt() {
    let bash = "PROMPT_COMMAND='PS1=\"\\u@\\h> \"; echo -n'\nexport PS1='x> '\nPS0='before '\n";
    let bench = Bench::new("bash", bash);
    runtime().block_on(async {
        assert_eq!(bench.text("echo a").await, "a");
        assert_eq!(bench.run("false").await.ended, Ended::Exited(1));
        assert_eq!(bench.text("echo \"$PS1\" | grep -c 133").await.trim(), "1");
        // What proves a mark is in no other program's environment.
        assert_eq!(bench.text("env | grep -c 133 || :").await.trim(), "0");
    });
    let zsh = "PROMPT='%n> '\nRPROMPT=right\nprecmd() { PROMPT='again> ' }\nsetopt prompt_cr prompt_sp\n";
    let bench = Bench::new("zsh", zsh);
    runtime().block_on(async {
        assert_eq!(bench.text("printf a").await, "a");
        assert_eq!(bench.run("false").await.ended, Ended::Exited(1));
        assert_eq!(bench.text("echo x$ZDOTDIR").await, "x");
    });
}

/// SPEC 8.2: much output, and binary output.
#[test]
fn much_output() {
    each("", async |bench| {
        let ran = bench.run("seq 1 200000").await;
        let text = ran.output.text(None);
        assert!(text.starts_with("1\n2\n"), "{}", bench.name);
        assert!(text.ends_with("199999\n200000"), "{}", bench.name);
        assert_eq!(bench.run("head -c 300000 /dev/urandom").await.ended, Ended::Exited(0));
        assert_eq!(bench.text("echo fine").await, "fine", "{}", bench.name);
    });
}

/// No shell we can drive is no shell.
#[test]
fn other_shells() {
    let setup = Setup {
        program: PathBuf::from("/bin/dash"),
        directory: PathBuf::from("/"),
        environment: Vec::new(),
        size: Size { rows: 0, columns: 0 },
        settings: None,
        files: StartUp::Own,
    };
    let refused = Shell::start(&setup, |_| {}).map(|_| ()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "/bin/dash is no shell that can be kept running; bash, zsh and fish are"
    );
}
