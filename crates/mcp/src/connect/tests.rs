//! Connections to servers that are scripts in this process.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod asking;
mod eras;
mod scripted;
mod talking;
