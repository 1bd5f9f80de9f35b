//! `bash` with real processes: what it answers, and that nothing it starts outlives it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod workbench;

use aish_core::action::Effect;
use aish_tools::{NoProgress, Progress};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use workbench::{Heard, Place};

/// Far longer than anything here takes; a wait that reaches it has failed.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// True while a process exists and is no zombie.
fn is_alive(id: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Children of this process that are zombies.
fn zombies() -> Vec<String> {
    let own = std::process::id().to_string();
    let entries = std::fs::read_dir("/proc").unwrap();
    entries
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("stat")).ok())
        .filter(|stat| {
            let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
            fields[0] == "Z" && fields[1] == own
        })
        .collect()
}

/// Waits for a condition that must come true.
async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + WAIT_MAX;
    while !condition() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// The process ids a command wrote, one a line.
fn ids(path: &Path) -> Vec<i32> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

async fn bash(place: &Place, command: &str) -> Value {
    let arguments = json!({"command": command});
    tokio::time::timeout(WAIT_MAX, place.ok("bash", arguments))
        .await
        .expect("the call ends")
}

/// SPEC 4.1: output interleaved, exit code, success whatever the exit code.
#[tokio::test]
async fn answers_output_and_exit_code() {
    let place = Place::new();
    let command = "echo out; echo err >&2; echo out again; exit 3";
    let output = place.call("bash", json!({"command": command})).await;
    assert_eq!(output.output, r#"{"output":"out\nerr\nout again\n","exit_code":3}"#);
    assert_eq!((output.summary.as_str(), output.success), ("exit 3", true));
    assert_eq!(bash(&place, "true").await, json!({"output": "", "exit_code": 0}));
    assert_eq!(bash(&place, "nope-no-such-program 2>/dev/null").await["exit_code"], 127);
}

/// SPEC 4.1: a command killed by a signal reports it.
#[tokio::test]
async fn a_signal_is_reported() {
    let place = Place::new();
    let output = place.call("bash", json!({"command": "echo a; kill -9 $$"})).await;
    assert_eq!(output.output, r#"{"output":"a\n","exit_code":137,"signal":"SIGKILL"}"#);
    assert_eq!(output.summary, "killed by SIGKILL");
    assert_eq!(bash(&place, "kill -TERM $$").await["signal"], "SIGTERM");
}

/// SPEC 4.4: directory and environment are those given, stdin is empty, `cd` does not last, there is no terminal.
#[tokio::test]
async fn runs_in_the_given_surroundings() {
    let mut place = Place::new();
    std::fs::create_dir(place.path("sub")).unwrap();
    let home = place.path("").display().to_string();
    place.context.environment = std::sync::Arc::new(vec![
        ("PATH".into(), std::env::var("PATH").unwrap()),
        ("GIVEN".into(), "a b".into()),
    ]);
    let text = bash(&place, "cd sub; export GIVEN=x; pwd").await["output"].clone();
    assert_eq!(text, format!("{home}sub\n"));
    assert_eq!(
        bash(&place, "pwd; echo $GIVEN").await["output"],
        format!("{}\na b\n", home.trim_end_matches('/'))
    );
    let names = bash(&place, "env | cut -d= -f1 | sort | tr '\\n' ' '").await["output"].clone();
    assert_eq!(names, "AISH_CALL GIVEN PATH PWD SHLVL _ ");
    assert_eq!(
        bash(&place, "cat; readlink /proc/self/fd/0").await["output"],
        "/dev/null\n"
    );
    assert_eq!(
        bash(&place, "(: </dev/tty) 2>/dev/null || echo none").await["output"],
        "none\n"
    );
    assert_eq!(
        bash(&place, "[[ $(ps -o sid= -p $$) -eq $$ ]] && echo leader").await["output"],
        "leader\n"
    );
    let action = place.inspect("bash", json!({"command": "ls"})).unwrap();
    let directory = place.context.directory.clone();
    assert_eq!(
        action.effects,
        [Effect::Execute {
            command: "ls".into(),
            directory,
            parts: aish_command::simple_commands("ls"),
        }]
    );
}

/// SPEC 4.4: binary output is safe; SPEC 4.3: the cut is stated and nothing is lost at the limit.
#[tokio::test]
async fn output_is_safe_and_bounded() {
    let mut place = Place::new();
    assert_eq!(
        bash(&place, r"printf 'a\0b\377c\303\244\303'").await["output"],
        "a\u{FFFD}b\u{FFFD}cä\u{FFFD}"
    );
    place.context.output_bytes_max = 1024;
    assert_eq!(bash(&place, "printf %01024d 0").await["output"], "0".repeat(1024));
    let text = bash(&place, "printf %01025d 0").await["output"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        text.ends_with("0\n[Output truncated: showing first 1024 of 1025 bytes]"),
        "{text}"
    );
    let text = bash(&place, "yes | head -c 50000000").await["output"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        text.ends_with("y\n[Output truncated: showing first 1024 of 50000000 bytes]"),
        "{text}"
    );
}

/// SPEC 4.2: a timeout says so and keeps the output so far; the whole tree is gone.
#[tokio::test]
async fn a_timeout_ends_the_tree() {
    let place = Place::new();
    let command = "trap '' TERM; echo before; echo $$ > ids; (trap '' TERM; echo $BASHPID >> ids; sleep 1000) & \
                   setsid bash -c 'trap \"\" TERM; echo $$ >> ids; sleep 1000' & wait";
    let output = place.call("bash", json!({"command": command, "timeout_s": 1})).await;
    assert_eq!(
        output.output,
        r#"{"error":"Command timed out after 1 s","output":"before\n"}"#
    );
    assert!(!output.success);
    let ids = ids(&place.path("ids"));
    assert_eq!(ids.len(), 3);
    assert!(!ids.iter().any(|id| is_alive(*id)), "{ids:?}");
    eventually("no zombie stays", || zombies().is_empty()).await;
}

/// SPEC 4.4: children in the background do not hang the call, and end with it: in the group, out of it, orphaned,
/// holding the pipe or not.
#[tokio::test]
async fn background_children_end_with_the_command() {
    let place = Place::new();
    for child in [
        "sleep 1000 & echo $! > ids",
        "sleep 1000 >/dev/null 2>&1 & echo $! > ids",
        "setsid sleep 1000 & echo $! > ids; sleep 0.05",
        "setsid bash -c 'echo $$ > ids; exec sleep 1000' >/dev/null 2>&1 & while [ ! -s ids ]; do :; done",
        "(setsid bash -c 'echo $$ > ids; exec sleep 1000' >/dev/null 2>&1 &) ; while [ ! -s ids ]; do :; done",
        "(setsid bash -c 'echo $$ > ids; trap \"\" TERM HUP; while :; do sleep 1; done' &) ; while [ ! -s ids ]; do :; done",
        "yes & echo $! > ids",
        "sleep 1000 & echo $! > ids; kill -STOP $!",
    ] {
        std::fs::write(place.path("ids"), "").unwrap();
        let value = bash(&place, &format!("{child}; echo done > ok")).await;
        assert_eq!(value["exit_code"], 0, "{child}");
        assert!(place.path("ok").exists());
        let ids = ids(&place.path("ids"));
        assert_eq!(ids.len(), 1, "{child}");
        assert!(!is_alive(ids[0]), "{child}");
    }
    eventually("no zombie stays", || zombies().is_empty()).await;
}

/// SPEC 12: children that write faster than anybody can read hold up neither the end of the call nor their own. Their
/// pipe is made so large that no read empties it, and each NUL is three bytes of text, so reading is the slower side.
#[tokio::test]
async fn a_flood_from_the_background_does_not_hang_the_call() {
    const PIPE_BYTES: usize = 1 << 20;
    let mut place = Place::new();
    place.context.output_bytes_max = 1024;
    let command = "echo $$ > leader; while [ ! -e gate ]; do sleep 0.01; done; \
                   for n in {1..16}; do cat /dev/zero & echo $! >> ids; done; exit 3";
    let widen = async {
        eventually("the command starts", || !ids(&place.path("leader")).is_empty()).await;
        let output = format!("/proc/{}/fd/1", ids(&place.path("leader"))[0]);
        let output = std::fs::OpenOptions::new().write(true).open(output).unwrap();
        rustix::pipe::fcntl_setpipe_size(&output, PIPE_BYTES).unwrap();
        drop(output);
        std::fs::write(place.path("gate"), "").unwrap();
    };
    let (value, ()) = tokio::join!(bash(&place, command), widen);
    assert_eq!(value["exit_code"], 3);
    let ids = ids(&place.path("ids"));
    assert_eq!(ids.len(), 16);
    assert!(!ids.iter().any(|id| is_alive(*id)), "{ids:?}");
}

/// SPEC 4.4: what a process substitution writes just after the command has exited is not lost.
#[tokio::test]
async fn late_output_is_kept() {
    let place = Place::new();
    for n in 0..20 {
        let text = bash(&place, &format!("echo {n} > >(cat)")).await["output"].clone();
        assert_eq!(text, format!("{n}\n"));
    }
}

/// SPEC 12: many commands started, cancelled, dropped and killed leave no process and no zombie.
#[tokio::test]
async fn a_hundred_kills_leave_nothing() {
    let place = Place::new();
    for n in 0..120 {
        let (cancel, receiver) = watch::channel(false);
        let command = format!(
            "echo $$ >> ids; setsid bash -c 'echo $$ >> ids; exec sleep 1000' & sleep 1000 & echo $! >> ids; \
             echo {n} > ready; wait"
        );
        let arguments = json!({"command": command});
        let ready = place.path("ready");
        let is_ready = || std::fs::read_to_string(&ready).is_ok_and(|text| text.trim() == n.to_string());
        {
            let call = place.call_with("bash", arguments, &NoProgress, receiver);
            tokio::pin!(call);
            tokio::select! {
                output = &mut call => panic!("ended by itself: {output:?}"),
                () = eventually("the command starts", is_ready) => {}
            }
            if n % 2 == 0 {
                cancel.send_replace(true);
                let output = call.await;
                assert!(output.output.starts_with(r#"{"error":"Cancelled""#), "{output:?}");
            }
        }
    }
    let ids = ids(&place.path("ids"));
    assert!(ids.len() >= 240, "{}", ids.len());
    eventually("every process ends", || !ids.iter().any(|id| is_alive(*id))).await;
    eventually("every process is waited for", || zombies().is_empty()).await;
}

/// SPEC 3.5a: a call answers within 100 ms of being cancelled, even if the command will not hear of it. (The bound here
/// is wide: a machine under load is no failure. What is tested is that nobody waits for the grace of the kill.)
#[tokio::test]
async fn cancelling_answers_before_the_kill() {
    let place = Place::new();
    let (cancel, receiver) = watch::channel(false);
    let command = "trap '' TERM; echo $$ > ids; echo ready > ready; while :; do sleep 0.01; done";
    let call = place.call_with("bash", json!({"command": command}), &NoProgress, receiver);
    tokio::pin!(call);
    let ready = place.path("ready");
    tokio::select! {
        output = &mut call => panic!("{output:?}"),
        () = eventually("the command starts", || ready.exists()) => {}
    }
    cancel.send_replace(true);
    let output = call.await;
    let id = ids(&place.path("ids"))[0];
    assert_eq!(output.output, r#"{"error":"Cancelled","output":""}"#);
    eventually("the command is killed behind the answer", || !is_alive(id)).await;
}

/// SPEC 8.5: output is reported as it comes.
#[tokio::test]
async fn progress_is_reported_as_it_comes() {
    /// Creates a file when it hears a word, for which the command waits.
    struct Release<'a> {
        heard: Heard,
        gate: &'a Path,
    }
    impl Progress for Release<'_> {
        fn output(&self, text: &str) {
            self.heard.output(text);
            if self.heard.0.lock().unwrap().contains("first") {
                std::fs::write(self.gate, "").unwrap();
            }
        }
    }
    let place = Place::new();
    let gate = place.path("gate");
    let progress = Release {
        heard: Heard::default(),
        gate: &gate,
    };
    let (_cancel, receiver) = watch::channel(false);
    let command =
        "echo first; while [ ! -e gate ]; do sleep 0.01; done; printf 'sec\\303'; sleep 0.05; printf '\\244nd'";
    let arguments = json!({"command": command, "timeout_s": 20});
    let output = place.call_with("bash", arguments, &progress, receiver).await;
    assert_eq!(output.output, r#"{"output":"first\nsecänd","exit_code":0}"#);
    assert_eq!(*progress.heard.0.lock().unwrap(), "first\nsecänd");
}

/// SPEC 4.4: a job runs on, is read and stopped.
#[tokio::test]
async fn a_job_is_read_and_stopped() {
    let place = Place::new();
    let command = "echo $$ > ids; echo up; while [ ! -e gate ]; do sleep 0.01; done; echo more; echo > more; \
                   setsid sleep 1000 & wait";
    let value = place.ok("bash", json!({"command": command, "background": true})).await;
    assert_eq!(value, json!({"output": "up\n", "job": "j1"}));
    let job = async |action: &str| place.ok("bash", json!({"job": "j1", "action": action})).await;
    assert_eq!(job("read").await, json!({"output": "", "running": true}));
    std::fs::write(place.path("gate"), "").unwrap();
    eventually("the job goes on", || place.path("more").exists()).await;
    let mut text = String::new();
    while text.is_empty() {
        text = job("read").await["output"].as_str().unwrap().to_owned();
    }
    assert_eq!(text, "more\n");
    let id = ids(&place.path("ids"))[0];
    assert!(is_alive(id));
    let stopped = job("stop").await;
    assert_eq!(
        stopped,
        json!({"output": "", "running": false, "exit_code": 143, "signal": "SIGTERM"})
    );
    assert!(!is_alive(id));
    assert_eq!(job("read").await["running"], false);
    let action = place.inspect("bash", json!({"job": "j1"})).unwrap();
    assert_eq!(action.effects, [Effect::Internal]);
    assert_eq!(
        place.inspect("bash", json!({"job": "j7"})),
        Err("No such job: j7 (there are j1)".into())
    );
}

/// SPEC 4.4: a job that ends at once says how in the first answer.
#[tokio::test]
async fn a_job_that_fails_at_once_says_so() {
    let place = Place::new();
    let value = place
        .ok("bash", json!({"command": "echo no; exit 4", "background": true}))
        .await;
    assert_eq!(value, json!({"output": "no\n", "job": "j1", "exit_code": 4}));
}

/// SPEC 4.4: jobs end with the tool set, those that left the group and ignore signals too.
#[tokio::test]
async fn jobs_end_with_the_tool_set() {
    let place = Place::new();
    let command = "trap '' TERM HUP; echo $$ >> ids; setsid bash -c 'trap \"\" TERM; echo $$ >> ids; while :; do sleep 1; done' & \
                   while :; do sleep 1; done";
    for _ in 0..3 {
        place.ok("bash", json!({"command": command, "background": true})).await;
    }
    eventually("the jobs start", || ids(&place.path("ids")).len() == 6).await;
    let ids = ids(&place.path("ids"));
    assert!(ids.iter().all(|id| is_alive(*id)));
    let Place { tools, .. } = place;
    drop(tools);
    assert!(!ids.iter().any(|id| is_alive(*id)), "dropping waits for them");
    eventually("no zombie stays", || zombies().is_empty()).await;
}

/// SPEC 4.2: what cannot be run says why.
#[tokio::test]
async fn bad_calls_say_why() {
    let mut place = Place::new();
    let error = async |place: &Place, arguments| place.error("bash", arguments).await;
    assert_eq!(error(&place, json!({})).await, "Missing required parameter: command");
    assert_eq!(
        error(&place, json!({"command": " "})).await,
        "Missing required parameter: command"
    );
    assert_eq!(
        error(&place, json!({"command": "ls", "job": "j1"})).await,
        "Give either command or job, not both"
    );
    assert_eq!(
        error(&place, json!({"job": "j1"})).await,
        "No such job: j1 (no job was started)"
    );
    let long = format!(": {}", "x".repeat(3_000_000));
    assert!(
        error(&place, json!({"command": long}))
            .await
            .starts_with("Command too long (3000002 bytes)")
    );
    place.context.directory = place.path("gone");
    assert!(
        error(&place, json!({"command": "ls"}))
            .await
            .starts_with("Not a directory: ")
    );
    place.context.directory = "/".into();
    place.context.environment = std::sync::Arc::new(vec![("PATH".into(), "/nowhere".into())]);
    assert_eq!(
        error(&place, json!({"command": "ls"})).await,
        "bash is not installed, or not in PATH"
    );
}
