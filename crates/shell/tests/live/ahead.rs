//! Keys that are pressed before anybody wants them, and a person who would not wait.

use super::bench::{Bench, PATIENCE, SHELLS, Shown, each, runtime};
use aish_shell::{Ended, NotRun, Relay, Screen};
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// SPEC 8.2, 8.9: what was typed ahead while a command ran, and that it did not take, is handed back instead of run unseen.
#[test]
fn keys_nobody_took_come_back() {
    each("", async |bench| {
        let ran = bench
            .with_keys(
                "sh -c 'echo now; read line; echo got $line; sleep 0.3'",
                "now",
                b"for it\recho ahead\rpart",
            )
            .await;
        assert!(ran.output.text(None).contains("got for it"), "{}: {ran:?}", bench.name);
        let came_back = (ran.typed_ahead.as_str(), ran.draft.as_str());
        assert_eq!(came_back, ("echo ahead\n", "part"), "{}", bench.name);
        assert_eq!(bench.text("echo next").await, "next", "{}", bench.name);
    });
}

/// SPEC 8.2, 8.9: nor does a shell take one of them when it is faster than whoever looks after it: it waits, so that nothing runs
/// unseen and each key stands where it was typed.
#[test]
fn keys_wait_for_their_keeper() {
    each("", async |bench| {
        let (relay, mut press) = bench.relay_with_keys();
        let relay = Relay {
            screen: Box::new(Slow {
                shell: bench.shell.process(),
                shown: Shown(Arc::clone(&bench.shown)),
            }),
            ..relay
        };
        let running = bench
            .shell
            .run("sh -c 'echo now; read line; read line; echo last'", relay);
        tokio::pin!(running);
        tokio::select! {
            ran = &mut running => panic!("{}: {ran:?}", bench.name),
            () = bench.shows("now") => press.write_all(b"for\rit\recho ahead >ran\rpart").unwrap(),
        }
        let ran = running.await.unwrap();
        let came_back = (ran.typed_ahead.as_str(), ran.draft.as_str());
        assert_eq!(came_back, ("echo ahead >ran\n", "part"), "{}", bench.name);
        assert_eq!(bench.text("echo next").await, "next", "{}", bench.name);
        assert!(!bench.home().join("ran").exists(), "{}", bench.name);
    });
}

/// A terminal that takes the last output only when the shell has done behind its command what it does by itself.
struct Slow {
    shell: u32,
    shown: Shown,
}

impl Screen for Slow {
    fn show(&mut self, bytes: &[u8]) {
        self.shown.show(bytes);
        if !String::from_utf8_lossy(bytes).contains("last") {
            return;
        }
        let until = Instant::now() + PATIENCE;
        let mut looks = 0;
        // A shell that is asleep in front may have gone to sleep for a moment only.
        while looks < LOOKS {
            assert!(Instant::now() < until, "it does not go to sleep");
            looks = if sleeps_in_front(self.shell) { looks + 1 } else { 0 };
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// So often a shell is to be seen asleep.
const LOOKS: u32 = 30;

/// Whether the shell has the terminal and waits for something.
fn sleeps_in_front(shell: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{shell}/stat")).unwrap();
    // Behind the name: the state, its parent, its group, its session, its terminal, the group that has that.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[0] == "S" && fields[5] == shell.to_string()
}

/// SPEC 8.2, 8.9: keys come back at the end of the command, however long the prompt takes.
#[test]
fn keys_come_back_before_the_prompt() {
    for (name, start_up) in [
        ("bash", "PROMPT_COMMAND='while [ -e ~/slow ]; do sleep 0.02; done'\n"),
        (
            "zsh",
            "slow() { while [ -e ~/slow ]; do sleep 0.02; done }; precmd_functions=(slow)\n",
        ),
        (
            "fish",
            "function slow --on-event fish_prompt; while test -e ~/slow; sleep 0.02; end; end\n",
        ),
    ] {
        let bench = Bench::new(name, start_up);
        runtime().block_on(async {
            // The hook ends when the file is gone, which nobody takes away yet.
            let ran = bench
                .with_keys(
                    "sh -c 'touch ~/slow; echo now; read line'",
                    "now",
                    b"for it\recho ahead\rpart",
                )
                .await;
            let came_back = (ran.typed_ahead.as_str(), ran.draft.as_str());
            assert_eq!(came_back, ("echo ahead\n", "part"), "{name}");
            std::fs::remove_file(bench.home().join("slow")).unwrap();
            assert_eq!(bench.text("echo next").await, "next", "{name}");
        });
    }
}

/// SPEC 12: Ctrl-C gives the prompt back while start-up files are still read, and the shell is a whole one all the same.
#[test]
fn start_up_files_that_take_long() {
    for name in SHELLS {
        let file = if name == "fish" {
            "/bin/sleep 1000\nset -g late yes\n"
        } else {
            "/bin/sleep 1000\nlate=yes\n"
        };
        let bench = Bench::new(name, file);
        runtime().block_on(async {
            let (relay, mut write) = bench.relay_with_keys();
            let running = bench.shell.run("echo too early", relay);
            tokio::pin!(running);
            let began = Instant::now();
            let ran = loop {
                assert!(began.elapsed() < PATIENCE, "{name}");
                tokio::select! {
                    ran = &mut running => break ran.unwrap(),
                    () = tokio::time::sleep(Duration::from_millis(300)) => write.write_all(b"\x03").unwrap(),
                }
            };
            assert_eq!(ran.ended, Ended::NotRun(NotRun::Starting), "{name}");
            // Of a fish that is interrupted the rest of the file is not read, as ever.
            let expect = if name == "fish" { "" } else { "yes" };
            assert_eq!(bench.text("echo $late").await, expect, "{name}");
        });
    }
}

/// SPEC 12: the end of a command is told though a hook of the user's takes its time, and the next one waits for it.
#[test]
fn slow_prompts() {
    let bench = Bench::new("bash", "PROMPT_COMMAND='while [ -e ~/slow ]; do sleep 0.02; done'\n");
    runtime().block_on(async {
        // The hook ends when the file is gone, which nobody takes away yet.
        bench.text("touch ~/slow").await;
        let second = bench.text("echo second");
        tokio::pin!(second);
        tokio::select! {
            _ = &mut second => panic!("it ran within the hook"),
            () = tokio::time::sleep(Duration::from_millis(50)) => {}
        }
        std::fs::remove_file(bench.shell.directory().join("slow")).unwrap();
        assert_eq!(second.await, "second");
    });
}

/// SPEC 8.2: start-up files that are read again, and output that leads elsewhere, do not lose the shell.
#[test]
fn hooks_last() {
    let bench = Bench::new("bash", "PROMPT_COMMAND='true'\nPS1='> '\n");
    runtime().block_on(async {
        assert_eq!(bench.run("false").await.ended, Ended::Exited(1));
        bench.text(". ~/.bashrc").await;
        assert_eq!(bench.run("false").await.ended, Ended::Exited(1));
        assert_eq!(bench.run("sh -c 'exit 3'").await.ended, Ended::Exited(3));
    });
    each("", async |bench| {
        if bench.name != "fish" {
            bench.text("exec 5>&1 >/dev/null").await;
            assert_eq!(bench.text("echo lost").await, "", "{}", bench.name);
            bench.text("exec >&5 5>&-").await;
        }
        assert_eq!(bench.text("echo seen").await, "seen", "{}", bench.name);
    });
}
