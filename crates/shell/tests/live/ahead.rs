//! Keys that are pressed before anybody wants them, and a person who would not wait.

use super::bench::{Bench, PATIENCE, SHELLS, each, runtime};
use aish_shell::{Ended, NotRun};
use std::io::Write as _;
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
        // A fish may read a whole line before it can be taken back; then it has run it.
        let is_fish = bench.name == "fish" && ran.typed_ahead.is_empty();
        assert!(is_fish || ran.typed_ahead == "echo ahead\n", "{}: {ran:?}", bench.name);
        assert_eq!(ran.draft, "part", "{}", bench.name);
        assert_eq!(bench.text("echo next").await, "next", "{}", bench.name);
    });
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
