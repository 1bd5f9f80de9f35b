//! Signals that come while the shell starts a program: no key and no hang-up is lost on the program that is not quite there.

use super::bench::{Bench, SHELLS, runtime};
use aish_shell::Ended;

/// How often each is tried: the moment is short.
const ROUNDS: usize = 20;
/// How long the programs sleep, at least: so long does no other test's.
const SLEEP_S_MIN: u64 = 80_000_000;

/// SPEC 8.7: one Ctrl-C is enough, also right behind the first output of a line that goes on.
#[test]
fn one_ctrl_c_is_enough() {
    for name in SHELLS {
        let bench = Bench::new(name, "");
        runtime().block_on(async {
            bench.text("echo ready").await;
            for _ in 0..ROUNDS {
                let ran = bench.with_keys("echo begun; sleep 1000", "begun", b"\x03").await;
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
                    bench.shows("begun").await;
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
