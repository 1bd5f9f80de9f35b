//! What aish may be doing when something strikes it: a bench on which each of these states is reached, over and over.

use crate::person::{ALL, Inner, is_at_prompt, presses_until};
use crate::support::fake_server::{FakeServer, Received};
use crate::support::pty::{Terminal, TerminalCommand, key};
use crate::support::random::{Rng, number};
use crate::support::reply::Reply;
use crate::support::sandbox::Sandbox;
use serde_json::json;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many benches are in use at the same time: they wait more than they work.
const SIDE_BY_SIDE: usize = 4;

/// What aish is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It waits for a line.
    Idle,
    /// A line is half typed.
    Typing,
    /// A command runs in the shell.
    Command,
    /// One runs in the background.
    Background,
    /// A command runs that does not mind Ctrl-C.
    Stubborn,
    /// An editor has the screen.
    Editor,
    /// A command was stopped and is a job.
    Stopped,
    /// A reply streams.
    Turn,
    /// It asks whether a tool may run.
    Question,
    /// A tool runs.
    Tool,
}

/// Those of which nothing is left whichever way the shell is left: bash lets its background run on after `exit`.
pub const STATES: [State; 9] = [
    State::Idle,
    State::Typing,
    State::Command,
    State::Stubborn,
    State::Editor,
    State::Stopped,
    State::Turn,
    State::Question,
    State::Tool,
];

/// A place where aish is started many times, with one shell beneath it.
pub struct Bench {
    pub sandbox: Sandbox,
    _server: FakeServer,
}

/// What is typed there, by what it makes the model do.
fn respond(request: &Received) -> Reply {
    match request.last_text() {
        text if text.contains("stream for ever") => Reply::stream().says("begun-to-stream ").stalls().done(),
        text if text.contains("call something") => {
            Reply::call("c1", "bash", json!({ "command": "echo tool-there; sleep 1000" }))
        }
        _ => Reply::text("done"),
    }
}

impl Bench {
    pub fn with(inner: Inner) -> Self {
        let server = FakeServer::builder().otherwise(respond).start();
        let sandbox = Sandbox::with_model(&server)
            .env("SHELL", &inner.program().to_string_lossy())
            .file("wait-here", "echo there-it-is; exec sleep 1000\n")
            .file(
                "stubborn",
                "trap '' INT; echo there-it-is; while :; do sleep 0.2; done\n",
            );
        Self {
            sandbox,
            _server: server,
        }
    }

    /// Starts aish as the terminal's own program and brings it there.
    pub fn reach(&self, state: State) -> Terminal {
        let terminal = self.sandbox.terminal(&[]).start();
        bring_to(&terminal, state);
        terminal
    }

    /// Starts an interactive shell, as the one from which aish is started; its prompt is `outer> `.
    pub fn outer_shell(&self) -> Terminal {
        let shell = TerminalCommand::new("bash").args(&["--norc", "--noprofile", "-i"]);
        let terminal = self.sandbox.in_terminal(shell).env("PS1", "outer> ").start();
        terminal.wait_for("the outer shell", is_outer_prompt);
        terminal
    }
}

/// Plays so many runs on benches with every shell, each with its number and a generator of its own. They are the same each time,
/// unless `AISH_SEED` says where the random draws begin; in the end nothing of them is left.
pub fn play(runs: u64, seed: u64, run: impl Fn(&Bench, u64, Rng) + Sync) {
    let seed = number("AISH_SEED").unwrap_or(seed);
    let (next, run) = (&AtomicU64::new(0), &run);
    std::thread::scope(|scope| {
        for inner in ALL.iter().cycle().take(SIDE_BY_SIDE) {
            scope.spawn(move || {
                let bench = Bench::with(*inner);
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= runs {
                        break;
                    }
                    eprintln!("run {n} of seed {seed}: {inner:?}");
                    run(&bench, n, Rng(seed.wrapping_add(n)));
                    eprintln!("run {n} is over");
                }
                bench.sandbox.assert_nothing_runs();
            });
        }
    });
}

/// Whether the outer shell waits for a line.
pub fn is_outer_prompt(screen: &vt100::Screen) -> bool {
    screen.contents().trim_end().ends_with("outer>")
}

/// Brings aish, which has just been started there, to a state.
pub fn bring_to(terminal: &Terminal, state: State) {
    terminal.wait_for("the prompt", is_at_prompt);
    let enter = |line: &str| {
        terminal.send(line);
        terminal.wait_for("the line at the prompt", |screen| !is_at_prompt(screen));
        terminal.send(key::ENTER);
    };
    let said = |word: &str| {
        terminal.wait_for(word, |screen| screen.contents().lines().any(|line| line.trim() == word));
    };
    match state {
        State::Idle => {}
        State::Typing => {
            terminal.send("echo half a li");
            terminal.wait_for_text("echo half a li");
        }
        State::Command => {
            enter("!sh wait-here");
            said("there-it-is");
        }
        State::Background => {
            enter("!sh wait-here &");
            terminal.wait_for("the job, and the prompt", |screen| {
                let text = screen.contents();
                is_at_prompt(screen) && text.lines().any(|line| line.contains("there-it-is"))
            });
        }
        State::Stubborn => {
            enter("!sh stubborn");
            said("there-it-is");
        }
        State::Editor => {
            enter("!vim -u NONE -i NONE note.txt");
            // What it draws when it has been struck down comes too late to be undone.
            terminal.wait_for("the editor, drawn", |screen| {
                screen.alternate_screen() && !screen.hide_cursor() && screen.contents().contains("note.txt")
            });
        }
        State::Stopped => {
            enter("!sh wait-here");
            said("there-it-is");
            presses_until(terminal, key::CTRL_Z, "the job to stop", is_at_prompt);
        }
        State::Turn => {
            enter("?stream for ever");
            terminal.wait_for_text("begun-to-stream");
        }
        State::Question => {
            enter("?call something");
            terminal.wait_for_text("[y/N/a/s/?]");
        }
        State::Tool => {
            enter("?call something");
            terminal.wait_for_text("[y/N/a/s/?]");
            terminal.send("y\r");
            said("tool-there");
        }
    }
}
