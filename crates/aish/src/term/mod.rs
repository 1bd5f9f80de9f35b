//! The terminal front's lower half: what is shown, and how the terminal is treated.
//!
//! Two concepts. *Rendering* is pure: a [`render::Renderer`] turns notices into an [`Output`], append-only text on three
//! streams, for a given [`Look`]; whoever is in front decides which file descriptor a stream goes to and writes it
//! ([`screen`]). *Manners* are not: [`guard`] gives the terminal back as it was found, [`tty`] asks the person at the
//! controlling terminal, [`approval`] is the question of SPEC 5.3 on top of it.
//!
//! Nothing untrusted reaches a terminal but through this module, and everything untrusted passes [`clean`] or
//! `aish_core::sanitize` on its way (SPEC 8.8).

mod abilities;
pub mod approval;
pub mod clean;
pub mod columns;
pub mod command;
pub mod copy;
pub mod countdown;
pub mod footer;
mod frame;
pub mod guard;
mod job;
mod look;
mod output;
pub mod proposal;
mod prose;
pub mod questions;
pub mod quote;
pub mod render;
mod rows;
pub mod screen;
mod thinking;
pub mod tty;

pub use look::{Background, Colour, Form, Look, Wishes};
pub use output::{Output, Stream};
pub use prose::Prose;

#[cfg(test)]
mod approval_tests;
#[cfg(test)]
mod frame_tests;
#[cfg(test)]
mod render_tests;
#[cfg(test)]
mod stream_tests;
