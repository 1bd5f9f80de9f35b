//! The terminal is given back as it was found (SPEC 8.7), however aish ends and whatever it was doing: two hundred ends, drawn from
//! a seeded generator. What a failing one was is printed; `AISH_SEED` has it again.

use crate::person::is_at_prompt;
use crate::states::{Bench, STATES, State, bring_to, is_outer_prompt, play};
use crate::support::default_wait;
use crate::support::pty::{Signal, Terminal, key};
use std::os::unix::process::ExitStatusExt as _;
use std::time::{Duration, Instant};

/// How many ends are tried.
const RUNS: u64 = 200;
/// One run in so many is started from a shell with jobs, and stopped and continued before it ends.
const RUNS_A_STOP: u64 = 5;
/// Where the random draws begin, unless `AISH_SEED` says otherwise.
const SEED: u64 = 0x5eed_0005;

/// What a shell adds to the number of the signal that a program died of.
const DIED_OF: i32 = 128;

/// The time between two attempts to leave.
const LEAVE_PAUSE: Duration = Duration::from_millis(100);

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Signal(Signal, i32),
    /// A signal it dies of where it stands.
    Struck(Signal),
    /// Ctrl-C until there is a prompt, then Ctrl-D.
    Keys,
    /// The same, but with `exit` typed.
    Exit,
    /// The interrupt signal from outside, then Ctrl-C and Ctrl-D.
    Interrupt,
}

const ENDS: [End; 9] = [
    End::Signal(Signal::TERM, 143),
    End::Signal(Signal::HUP, 129),
    End::Signal(Signal::QUIT, 131),
    End::Struck(Signal::SEGV),
    End::Struck(Signal::ABORT),
    End::Struck(Signal::USR1),
    End::Keys,
    End::Exit,
    End::Interrupt,
];

/// Back to an empty prompt, from wherever it is. What is pressed may come too early to be heeded.
fn back_to_prompt(terminal: &Terminal, state: State) {
    let keys = match state {
        State::Editor => "\x1b\x1b:q!\r",
        // It minds no Ctrl-C.
        State::Stubborn => key::CTRL_BACKSLASH,
        State::Idle
        | State::Typing
        | State::Command
        | State::Background
        | State::Stopped
        | State::Turn
        | State::Question
        | State::Tool => key::CTRL_C,
    };
    terminal.send(keys);
    let until = Instant::now() + default_wait();
    while !terminal.look(is_at_prompt) {
        let screen = terminal.screen_text();
        assert!(Instant::now() < until, "{state:?}: no prompt:\n{screen}");
        std::thread::sleep(LEAVE_PAUSE);
        let is_editor = terminal.look(vt100::Screen::alternate_screen);
        terminal.send(if is_editor == (state == State::Editor) {
            keys
        } else {
            key::CTRL_C
        });
    }
}

/// Ends aish; gives the status that it should have, as a shell tells it.
fn end(terminal: &Terminal, state: State, how: End) -> Option<i32> {
    match how {
        End::Signal(signal, status) => {
            terminal.signal(signal);
            return Some(status);
        }
        End::Struck(signal) => {
            terminal.signal(signal);
            return Some(DIED_OF + signal.as_raw());
        }
        End::Keys => {
            back_to_prompt(terminal, state);
            leave_by(terminal, key::CTRL_D);
        }
        End::Exit => {
            back_to_prompt(terminal, state);
            leave_by(terminal, "!exit\r");
        }
        End::Interrupt => {
            terminal.signal(Signal::INT);
            back_to_prompt(terminal, state);
            leave_by(terminal, key::CTRL_D);
        }
    }
    None
}

/// Presses keys at the prompt until it is left: a shell may speak of its jobs first.
fn leave_by(terminal: &Terminal, keys: &str) {
    let until = Instant::now() + default_wait();
    while !terminal.is_closed() {
        let screen = terminal.screen_text();
        assert!(Instant::now() < until, "it has not been left by {keys:?}:\n{screen}");
        if terminal.look(is_at_prompt) {
            terminal.send(keys);
        }
        std::thread::sleep(LEAVE_PAUSE);
    }
}

/// aish as the terminal's own program.
fn one_end(bench: &Bench, state: State, how: End) {
    let mut terminal = bench.reach(state);
    let wanted = end(&terminal, state, how);
    let status = terminal.wait_exit();
    if let Some(wanted) = wanted {
        let died_of = status.signal().map(|signal| DIED_OF + signal);
        assert_eq!(status.code().or(died_of), Some(wanted), "the status");
    }
    assert_eq!(terminal.settings(), *terminal.settings_at_start(), "the settings");
    terminal.look(|screen| {
        assert!(!screen.alternate_screen(), "left in the alternate screen");
        assert!(!screen.bracketed_paste(), "left with bracketed paste on");
        assert!(!screen.hide_cursor(), "left without a cursor");
    });
}

/// What the outer shell's terminal is set to, as a program that is started from it finds it.
fn found(bench: &Bench, terminal: &Terminal, name: &str) -> String {
    terminal.send_line(&format!("stty -g > {name}; echo asked-$?"));
    terminal.wait_for_text("asked-0");
    terminal.send_line("clear");
    terminal.wait_for("a clear screen", |screen| screen.contents().trim() == "outer>");
    std::fs::read_to_string(bench.sandbox.path(name)).unwrap()
}

/// aish in a shell with jobs: stopped, continued, ended.
fn stopped_and_ended(bench: &Bench, state: State) {
    let terminal = bench.outer_shell();
    let before = found(bench, &terminal, "before");
    terminal.send_line(env!("CARGO_BIN_EXE_aish"));
    bring_to(&terminal, state);
    let aish = crate::person::children_of(terminal.pid());
    assert_eq!(aish.len(), 1, "children of the outer shell: {aish:?}");
    let aish = rustix::process::Pid::from_raw(i32::try_from(aish[0]).unwrap()).unwrap();
    rustix::process::kill_process(aish, Signal::TSTP).unwrap();
    terminal.wait_for("the outer shell", is_outer_prompt);
    let stopped = found(bench, &terminal, "stopped");
    assert_eq!(stopped, before, "while it is stopped");
    terminal.send_line("fg");
    terminal.wait_for("aish again", |screen| !is_outer_prompt(screen));
    rustix::process::kill_process(aish, Signal::TERM).unwrap();
    terminal.wait_for("the outer shell", is_outer_prompt);
    terminal.send_line("clear");
    terminal.wait_for("a clear screen", |screen| screen.contents().trim() == "outer>");
    assert_eq!(found(bench, &terminal, "after"), before, "after its end");
}

/// SPEC 8.7, 12: the settings are the same before and after, in two hundred runs over all states and ends.
#[test]
fn given_back_as_found() {
    play(RUNS, SEED, |bench, n, mut rng| {
        let (state, how) = (rng.one_of(&STATES), rng.one_of(&ENDS));
        // An editor that has the screen is not asked to give it back by whoever stops aish from outside.
        let stops = n.is_multiple_of(RUNS_A_STOP) && state != State::Editor;
        eprintln!("run {n}: {state:?} {how:?} stops: {stops}");
        if stops {
            stopped_and_ended(bench, state);
        } else {
            one_end(bench, state, how);
        }
    });
}
