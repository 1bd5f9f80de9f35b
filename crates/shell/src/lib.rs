//! The user's own shell, kept running on a terminal of its own: what is typed runs there, so that directory, variables,
//! functions, aliases and jobs are those of a shell.
//!
//! [`Shell::start`] returns at once; the shell reads its start-up files meanwhile. [`Shell::run`] types a command and passes
//! keys and output through until it is over, so that an editor or a password prompt works as everywhere; [`Shell::ask`] runs a line
//! that nobody sees. The shell tells by marks what is output and what is over (`marks`); which shells can be told to, and how, is
//! [`Dialect`]. What a command printed is kept as text for whoever is asked about it ([`Capture`]).

mod capture;
mod dialect;
mod folder;
mod history;
mod image;
mod keeper;
mod live;
mod marks;
mod modes;
mod phase;
mod processes;
pub mod route;

pub use capture::Capture;
pub use dialect::{Dialect, StartUp};
pub use history::recalls_history;
pub use image::{Became, Successor};
pub use keeper::Stops;
pub use live::{ANSWER_BYTES_MAX, End, Ended, Ending, Ran, Relay, Screen, Setup, Shell, ShellError, Size, Stage};
pub use modes::Modes;
pub use phase::NotRun;
