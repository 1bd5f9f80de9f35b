//! Killed at any moment, aish leaves nothing behind: no shell, no command, no job, no zombie (SPEC 12).
//!
//! Each run is brought to a state drawn from a seeded generator, or is killed somewhere on the way to it. `AISH_KILLS` says how many
//! runs there are: by default some hundreds, so that the suite stays short; the figure to reach is a thousand.

use crate::person::children_of;
use crate::states::{Bench, STATES, State, play};
use crate::support::processes::zombies_of;
use crate::support::pty::{Signal, key};
use crate::support::random::number;
use crate::support::{default_wait, poll_until};
use std::time::Duration;

/// How many runs are killed, unless `AISH_KILLS` says otherwise.
const KILLS: u64 = 300;
/// Of so many runs one is killed on its way.
const RUNS_A_SURPRISE: u64 = 3;
/// Of so many others one is killed above a job.
const RUNS_A_JOB: u64 = 5;
/// The time in which those are killed.
const SURPRISE: Duration = Duration::from_millis(150);
/// Where the random draws begin, unless `AISH_SEED` says otherwise.
const SEED: u64 = 0x5eed_0006;

/// Brings a run to a state, and kills it there.
fn killed_at(bench: &Bench, state: State, signal: Signal) {
    let mut terminal = bench.reach(state);
    assert_eq!(zombies_of(terminal.pid()), Vec::<u32>::new(), "zombies while it runs");
    poll_until("the shell to be started", default_wait(), || {
        (!children_of(terminal.pid()).is_empty()).then_some(())
    });
    terminal.signal(signal);
    terminal.wait_exit();
}

/// Kills a run at any moment of its beginning.
fn killed_on_its_way(bench: &Bench, after: Duration, signal: Signal) {
    let mut terminal = bench.sandbox.terminal(&[]).start();
    // No job: a bash that is hung up in the moment in which it starts one forgets it, now and then.
    terminal.send("!sh wait-here");
    terminal.send(key::ENTER);
    // The one sleep that is meant: the moment is what is random here.
    std::thread::sleep(after);
    terminal.signal(signal);
    terminal.wait_exit();
}

/// SPEC 12: no orphan process, no zombie.
#[test]
fn nothing_is_left() {
    let kills = number("AISH_KILLS").unwrap_or(KILLS);
    play(kills, SEED, |bench, n, mut rng| {
        let signal = rng.one_of(&[Signal::KILL, Signal::KILL, Signal::TERM, Signal::HUP]);
        let state = if rng.next().is_multiple_of(RUNS_A_JOB) {
            State::Background
        } else {
            rng.one_of(&STATES)
        };
        let after = rng.moment(SURPRISE);
        if n.is_multiple_of(RUNS_A_SURPRISE) {
            // Killed outright in the moment in which the shell forks, on any terminal, it may leave what it forks: the shell's own
            // handler takes the hang-up, and nobody is there any more to repeat it.
            let signal = if signal == Signal::KILL { Signal::HUP } else { signal };
            eprintln!("run {n}: {signal:?} after {after:?}");
            killed_on_its_way(bench, after, signal);
        } else {
            eprintln!("run {n}: {signal:?} at {state:?}");
            killed_at(bench, state, signal);
        }
        bench.sandbox.assert_nothing_runs();
    });
}
