//! Served mode (SPEC 9): conversations over HTTP that wait for their client.

pub mod page;
