//! Hidden lines: they answer, and nothing a person could see of the shell is otherwise afterwards.

use super::bench::{Bench, PATIENCE, each};
use aish_shell::Ended;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

impl Bench {
    /// Asks, and must be answered.
    async fn answer(&self, line: &str) -> String {
        let answer = self.shell.ask(line, PATIENCE).await;
        let answer = answer.unwrap_or_else(|| panic!("{}: {line}", self.name));
        String::from_utf8(answer).unwrap()
    }

    fn in_dialect<'a>(&self, fish: &'a str, others: &'a str) -> &'a str {
        if self.name == "fish" { fish } else { others }
    }
}

/// SPEC 8.2: a hidden line sees the shell's state, and leaves it as it was: status, last argument, jobs, history, output.
#[test]
fn a_hidden_line_leaves_no_trace() {
    each("", async |bench| {
        let status = bench.in_dialect("echo s=$status", "echo s=$?");
        assert_eq!(bench.answer("echo early").await, "early\n", "{}", bench.name);
        bench.run("sleep 1000 &").await;
        let job = bench.text(bench.in_dialect("echo $last_pid", "echo $!")).await;
        bench.run("sh -c 'exit 7' one-word").await;
        bench.shown.lock().unwrap().clear();
        assert_eq!(bench.answer("echo hidden-1; false; echo two").await, "hidden-1\ntwo\n");
        let ran = bench.run(status).await;
        assert_eq!(ran.output.text(None), "s=7", "{}", bench.name);
        if bench.name != "fish" {
            bench.run("echo first last-word").await;
            bench.answer("echo hidden-2").await;
            assert_eq!(bench.text("echo $_").await, "last-word", "{}", bench.name);
        }
        bench.answer("/bin/sh -c 'echo hidden-3'").await;
        assert_eq!(
            bench.text(bench.in_dialect("echo $last_pid", "echo $!")).await,
            job,
            "{}",
            bench.name
        );
        assert!(bench.text("jobs").await.contains("sleep 1000"), "{}", bench.name);
        let history = bench.text(bench.in_dialect("history", "fc -l -100")).await;
        assert!(history.contains("one-word"), "{}: {history}", bench.name);
        assert!(!history.contains("hidden"), "{}: {history}", bench.name);
        assert!(!history.contains("__aish"), "{}: {history}", bench.name);
        let shown = String::from_utf8_lossy(&bench.shown.lock().unwrap()).into_owned();
        assert!(!shown.contains("hidden-3"), "{}: {shown}", bench.name);
        assert_eq!(*bench.beside.lock().unwrap(), "", "{}", bench.name);
    });
}

/// SPEC 8.2: what a hidden line does to the shell lasts; its options do not get in the way, and are not shown at work.
#[test]
fn a_hidden_line_is_run_by_the_shell_itself() {
    each("", async |bench| {
        let export = bench.in_dialect("set -gx MOOD good", "export MOOD=good");
        assert_eq!(bench.answer(&format!("cd /usr/bin; {export}")).await, "");
        assert_eq!(bench.shell.directory(), Path::new("/usr/bin"), "{}", bench.name);
        assert_eq!(bench.text("pwd").await, "/usr/bin");
        assert!(bench.answer("/usr/bin/env").await.contains("MOOD=good\n"));
        bench.run("sleep 1000 &").await;
        assert!(bench.answer("jobs").await.contains("sleep 1000"), "{}", bench.name);
        if bench.name == "fish" {
            return;
        }
        for options in ["set -x", "set -C", "set -e"] {
            bench.run(options).await;
            assert_eq!(
                bench.answer("echo a; false; echo b").await,
                "a\nb\n",
                "{} {options}",
                bench.name
            );
        }
        assert_eq!(bench.run("true").await.ended, Ended::Exited(0), "{}", bench.name);
        assert_eq!(*bench.beside.lock().unwrap(), "", "{}", bench.name);
    });
}

/// SPEC 12: whoever asks while a command runs, or a shell that does not come to an end, is not kept waiting.
#[test]
fn no_answer() {
    each("", async |bench| {
        bench.shown.lock().unwrap().clear();
        let (relay, mut press) = bench.relay_with_keys();
        let running = bench.shell.run("sh -c 'echo runs; exec sleep 1000'", relay);
        // The key comes after the answer: it is the command that the question meets, not its end.
        let asking = async {
            bench.shows("runs").await;
            let answer = bench.shell.ask("echo no", PATIENCE).await;
            press.write_all(b"\x03").unwrap();
            answer
        };
        let (ran, answer) = tokio::join!(running, asking);
        assert_eq!(ran.unwrap().ended, Ended::Exited(130), "{}", bench.name);
        assert_eq!(answer, None, "{}", bench.name);
        let late = bench.shell.ask("/bin/sleep 1000", Duration::from_millis(200)).await;
        assert_eq!(late, None, "{}", bench.name);
        assert_eq!(bench.text("echo back").await, "back", "{}", bench.name);
        assert_eq!(bench.answer("echo again").await, "again\n", "{}", bench.name);
    });
}
