//! Signals that come while the shell starts a program: no key and no hang-up is lost on the program that is not quite there.

use super::bench::{Bench, PATIENCE, SHELLS, Shown, runtime};
use aish_shell::{Ended, Relay};
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often each is tried: the moment is short.
const ROUNDS: usize = 20;
/// How long the programs sleep, at least: so long does no other test's.
const SLEEP_S_MIN: u64 = 80_000_000;
/// Between two looks at what was shown; far shorter than a program takes to start.
const LOOK: Duration = Duration::from_micros(50);

/// Resolves when something of a command was shown.
async fn shows(bench: &Bench, text: &str) {
    let until = Instant::now() + PATIENCE;
    while !String::from_utf8_lossy(&bench.shown.lock().unwrap()).contains(text) {
        assert!(Instant::now() < until, "{}: {text}", bench.name);
        std::thread::sleep(LOOK);
        tokio::task::yield_now().await;
    }
}

/// SPEC 8.7: one Ctrl-C is enough, also right behind the first output of a line that goes on.
#[test]
fn one_ctrl_c_is_enough() {
    for name in SHELLS {
        let bench = Bench::new(name, "");
        runtime().block_on(async {
            bench.text("echo ready").await;
            for round in 0..ROUNDS {
                bench.shown.lock().unwrap().clear();
                let (keys, mut press) = std::io::pipe().unwrap();
                let relay = Relay {
                    keys: Some(keys.into()),
                    screen: Box::new(Shown(Arc::clone(&bench.shown))),
                };
                let running = tokio::time::timeout(PATIENCE, bench.shell.run("echo begun; sleep 1000", relay));
                let pressing = async {
                    shows(&bench, "begun").await;
                    press.write_all(b"\x03").unwrap();
                };
                let (ran, ()) = tokio::join!(running, pressing);
                let ran = ran
                    .unwrap_or_else(|_| panic!("{name}, round {round}: it runs on"))
                    .unwrap();
                assert!(matches!(ran.ended, Ended::Exited(_)), "{name}: {ran:?}");
            }
        });
    }
}

/// SPEC 8.7, 12: a shell that is hung up while it starts programs leaves none of them, in front or behind.
#[test]
fn nothing_is_left_behind() {
    for name in SHELLS {
        for round in 0..ROUNDS / 2 {
            let bench = Bench::new(name, "");
            let seconds = SLEEP_S_MIN + u64::from(std::process::id()) * 10;
            let line = format!("echo begun; sleep {seconds} & sleep {}", seconds + 1);
            runtime().block_on(async {
                let running = bench.shell.run(&line, bench.relay());
                let leaving = async {
                    shows(&bench, "begun").await;
                    bench.shell.hang_up().unwrap();
                };
                let (ran, ()) = tokio::join!(running, leaving);
                assert!(matches!(ran.unwrap().ended, Ended::ShellEnded(_)), "{name}");
            });
            let left = sleepers(seconds);
            assert!(left.is_empty(), "{name}, round {round}: {left:?}");
        }
    }
}

/// The processes that sleep that long, or a second longer.
fn sleepers(seconds: u64) -> Vec<u32> {
    let wanted = [seconds, seconds + 1].map(|seconds| format!("sleep\0{seconds}\0"));
    let entries = std::fs::read_dir("/proc").unwrap();
    let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| {
        let line = std::fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default();
        wanted.contains(&line)
    })
    .collect()
}
