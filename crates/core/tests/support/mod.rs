//! What the tests of the fold share: a seeded source of choices, and what a well-formed request is.

pub mod request;
pub mod rng;
