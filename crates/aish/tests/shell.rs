//! The shell as its users drive it: real bash, zsh and fish beneath the prompt, on a terminal, key by key (SPEC 8).
//!
//! [`person`] is somebody at that prompt; each other module holds scripts of one kind. A script that is the same in several
//! shells is played in each of them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr
)]

#[path = "shell/ahead.rs"]
mod ahead;
#[path = "shell/endings.rs"]
mod endings;
#[path = "shell/far.rs"]
mod far;
#[path = "shell/jobs.rs"]
mod jobs;
#[path = "shell/kills.rs"]
mod kills;
#[path = "shell/leavings.rs"]
mod leavings;
#[path = "shell/lines.rs"]
mod lines;
#[path = "shell/output.rs"]
mod output;
#[path = "shell/person.rs"]
mod person;
#[path = "shell/programs.rs"]
mod programs;
#[path = "shell/routes.rs"]
mod routes;
#[path = "shell/set_ups.rs"]
mod set_ups;
#[path = "shell/settings.rs"]
mod settings;
#[path = "shell/start_up.rs"]
mod start_up;
#[path = "shell/state.rs"]
mod state;
#[path = "shell/states.rs"]
mod states;
mod support;
#[path = "shell/typing.rs"]
mod typing;
