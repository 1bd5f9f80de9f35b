//! What it costs to guess where a line goes, as is done at each key: for every labelled line of at most 200 bytes, and for a
//! paste of a megabyte.
//!
//! Each line is guessed several times and its least time counts, since a time of microseconds is also that of whoever else runs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs
)]

#[path = "../tests/route/machine.rs"]
mod machine;

use std::time::{Duration, Instant};

use aish_shell::route::guess;
use divan::{Bencher, black_box};
use machine::Machine;

const LINE_BYTES_MAX: usize = 200;
const ROUNDS: usize = 5;
const PASTE_BYTES: usize = 1 << 20;

fn main() {
    let mut machine = Machine::new();
    machine.with("");
    let mut times: Vec<Duration> = lines().map(|line| time(line, &machine)).collect();
    times.sort_unstable();
    let at = |share: usize| times.get((times.len() - 1) * share / 100).copied().unwrap_or_default();
    println!(
        "guess, {} lines: median {:?}, p99 {:?}, longest {:?}",
        times.len(),
        at(50),
        at(99),
        at(100)
    );
    divan::main();
}

fn lines() -> impl Iterator<Item = &'static str> {
    let files = [
        include_str!("../tests/route/tune.tsv"),
        include_str!("../tests/route/test.tsv"),
    ];
    let rows = files
        .into_iter()
        .flat_map(str::lines)
        .filter(|row| !row.starts_with("## "));
    rows.filter_map(|row| row.split('\t').nth(1))
        .filter(|line| line.len() <= LINE_BYTES_MAX)
}

/// The least time of several.
fn time(line: &str, machine: &Machine) -> Duration {
    let once = || {
        let started = Instant::now();
        black_box(guess(black_box(line), machine));
        started.elapsed()
    };
    (0..ROUNDS).map(|_| once()).min().unwrap_or_default()
}

#[divan::bench(args = [
    "git status",
    "find the biggest file here",
    "pourquoi le serveur de test ne répond pas",
    "dokcer compose up -d",
    "for f in *.jpg; do mv \"$f\" \"${f%.jpg}.png\"; done",
])]
fn line(bencher: Bencher<'_, '_>, line: &str) {
    let machine = Machine::new();
    bencher.bench_local(|| guess(black_box(line), &machine));
}

#[divan::bench(args = ["ls -la | grep foo\n", "why does this fail? ", "(((((\"'`$("])]
fn paste(bencher: Bencher<'_, '_>, piece: &str) {
    let machine = Machine::new();
    let text = piece.repeat(PASTE_BYTES / piece.len());
    bencher.bench_local(|| guess(black_box(&text), &machine));
}
