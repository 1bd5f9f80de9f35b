//! Conversations with clients somewhere else, rule by rule (SPEC 9.2–9.6): over a ledger in memory and one in a file, with a model
//! that is scripted. Two processes are two engines that share nothing but the ledger.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

#[path = "conversations/again.rs"]
mod again;
#[path = "conversations/answers.rs"]
mod answers;
#[path = "conversations/approvals.rs"]
mod approvals;
#[path = "conversations/begins.rs"]
mod begins;
#[path = "conversations/elsewhere.rs"]
mod elsewhere;
#[path = "conversations/ends.rs"]
mod ends;
#[path = "conversations/house.rs"]
mod house;
#[path = "conversations/keys.rs"]
mod keys;
#[path = "conversations/leases.rs"]
mod leases;
#[path = "conversations/mixed.rs"]
mod mixed;
#[path = "conversations/races.rs"]
mod races;
#[path = "conversations/readers.rs"]
mod readers;
#[path = "../../core/tests/support/rng.rs"]
mod rng;
mod support;
#[path = "conversations/terminals.rs"]
mod terminals;
#[path = "conversations/waits.rs"]
mod waits;
