//! placeholder
#![allow(dead_code, unused_imports)]
mod cli;
mod config;
mod paths;
mod trust;
fn main() {}
