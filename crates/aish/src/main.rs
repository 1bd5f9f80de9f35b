//! placeholder
#![allow(dead_code, unused_imports)]
mod config;
mod paths;
fn main() {}
