//! The route of labelled lines: `route/tune.tsv`, by which it was made; `route/test.tsv`, which was written before it and only
//! measured with; and `route/mean.tsv`, written to fool it: what it found at first was mended.
//!
//! A line of these files is a label, a line as typed (`⏎` for a new line, `⇥` for a tab), and perhaps what else is known on the
//! machine (`alias:ll file:x`) or, for a mistyped one, what was meant (`=git status`).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

#[path = "route/any.rs"]
mod any;
#[path = "route/machine.rs"]
mod machine;

use std::fmt::Write as _;

use aish_shell::route::{Corrections, Guess, Route, Sent, Sure, guess};
use machine::Machine;

/// Of 1,000 questions, how many may be run as commands.
const QUESTIONS_RUN_PER_1000_MAX: f64 = 1.0;

/// Of 100 commands, how many may go to the model.
const COMMANDS_ASKED_PER_100_MAX: f64 = 1.0;

/// Of 100 mistyped commands, how many may be taken for something else.
const MISTYPED_MISSED_PER_100_MAX: f64 = 10.0;

const LABELS: [&str; 3] = ["command", "question", "mistyped"];

struct Line {
    label: usize,
    line: String,
    context: String,
    instead: Option<String>,
}

fn lines(file: &str) -> Vec<Line> {
    let rows = file.lines().filter(|row| !row.starts_with("## "));
    rows.map(|row| {
        let mut cells = row.split('\t');
        let label = cells
            .next()
            .and_then(|label| LABELS.iter().position(|known| *known == label));
        let line = cells.next().expect("a line").replace('⏎', "\n").replace('⇥', "\t");
        let context = cells.next().unwrap_or_default();
        let instead = context.strip_prefix('=').map(str::to_owned);
        let context = if instead.is_some() {
            String::new()
        } else {
            context.to_owned()
        };
        Line {
            label: label.unwrap_or_else(|| panic!("{row:?}")),
            line,
            context,
            instead,
        }
    })
    .collect()
}

fn index(route: &Route) -> usize {
    match route {
        Route::Command => 0,
        Route::Question => 1,
        Route::Mistyped { .. } => 2,
        Route::Nothing => panic!("an empty line"),
    }
}

/// Measures `file`, prints the matrix and each line that went wrong, and holds the bounds.
fn measure(name: &str, file: &str) {
    let mut machine = Machine::new();
    let mut matrix = [[0_usize; 3]; 3];
    let mut unsure = 0;
    let mut wrong = String::new();
    let mut other = 0;
    let lines = lines(file);
    for line in &lines {
        machine.with(&line.context);
        let Guess { route, sure, why } = guess(&line.line, &machine);
        unsure += usize::from(sure == Sure::No);
        let found = index(&route);
        if let Some(count) = matrix.get_mut(line.label).and_then(|row| row.get_mut(found)) {
            *count += 1;
        }
        let meant = match &route {
            Route::Mistyped { instead } => line.instead.as_ref().is_none_or(|meant| meant == instead),
            Route::Command | Route::Question | Route::Nothing => true,
        };
        if found != line.label {
            writeln!(
                wrong,
                "  {} → {}: {:?} ({why})",
                LABELS[line.label], LABELS[found], line.line
            )
            .unwrap();
        } else if !meant {
            other += 1;
            writeln!(wrong, "  another was meant: {:?}: {route:?}", line.line).unwrap();
        }
    }
    println!(
        "{name}: {} lines, {unsure} unsure, {other} mended otherwise\n{:>10} {:>10} {:>10} {:>10}",
        lines.len(),
        "",
        LABELS[0],
        LABELS[1],
        LABELS[2]
    );
    for (label, row) in LABELS.iter().zip(matrix) {
        println!("{label:>10} {:>10} {:>10} {:>10}", row[0], row[1], row[2]);
    }
    println!("{wrong}");
    let share = |label: usize, found: usize| {
        let of = matrix[label].iter().sum::<usize>();
        matrix[label][found] as f64 / of as f64
    };
    assert!(
        share(1, 0) * 1000.0 <= QUESTIONS_RUN_PER_1000_MAX,
        "{name}: questions run as commands"
    );
    assert!(
        share(0, 1) * 100.0 <= COMMANDS_ASKED_PER_100_MAX,
        "{name}: commands sent to the model"
    );
    assert!(
        (1.0 - share(2, 2)) * 100.0 <= MISTYPED_MISSED_PER_100_MAX,
        "{name}: mistyped commands not seen"
    );
}

/// SPEC 8.1: the lines it was made by.
#[test]
fn tune() {
    measure("tune", include_str!("route/tune.tsv"));
}

/// SPEC 8.1: the lines it was not made by.
#[test]
fn test() {
    measure("test", include_str!("route/test.tsv"));
}

/// SPEC 8.1: lines that look like what they are not, and commands that go on in a next line.
#[test]
fn mean() {
    measure("mean", include_str!("route/mean.tsv"));
}

/// SPEC 8.1: no line stands in the files with two labels.
#[test]
fn labels_agree() {
    let (tune, test) = (
        lines(include_str!("route/tune.tsv")),
        lines(include_str!("route/test.tsv")),
    );
    let mean = lines(include_str!("route/mean.tsv"));
    let mut labels = std::collections::HashMap::new();
    let mut differ = Vec::new();
    for line in tune.iter().chain(&test).chain(&mean) {
        let before = labels.insert((&line.line, &line.context), line.label);
        if before.is_some_and(|label| label != line.label) {
            differ.push(&line.line);
        }
    }
    assert!(differ.is_empty(), "{differ:?}");
    assert!(test.len() >= 1_000 && tune.len() + test.len() >= 2_400);
}

fn route(line: &str) -> Route {
    guess(line, &Machine::new()).route
}

/// SPEC 8.1: nothing typed goes nowhere.
#[test]
fn nothing() {
    for line in ["", " ", "\t", "\n\n"] {
        assert_eq!(route(line), Route::Nothing, "{line:?}");
    }
}

/// SPEC 8.1: what the user corrected holds for that line, and for unsure ones that begin alike.
#[test]
fn corrections() {
    let machine = Machine::new();
    let mut corrections = Corrections::default();
    let check = |corrections: &Corrections, line: &str, expected: Route| {
        assert_eq!(corrections.guess(line, &machine).route, expected, "{line}");
    };
    check(&corrections, "kill chrome", Route::Question);
    corrections.learn("kill   chrome ", Sent::Shell);
    check(&corrections, "kill chrome", Route::Command);
    check(&corrections, "kill slack", Route::Question);
    corrections.learn("kill spotify", Sent::Shell);
    check(&corrections, "kill slack", Route::Command);
    check(&corrections, "kill the server on port 80, please", Route::Question);
    corrections.learn("kill chrome", Sent::Model);
    check(&corrections, "kill chrome", Route::Question);
    check(&corrections, "kill slack", Route::Question);
    let stored: Vec<_> = corrections.iter().map(|(line, sent)| (line.to_owned(), sent)).collect();
    assert_eq!(
        stored,
        [
            ("kill spotify".to_owned(), Sent::Shell),
            ("kill chrome".to_owned(), Sent::Model)
        ]
    );
    for number in 0..2_000 {
        corrections.learn(&format!("line {number}"), Sent::Model);
    }
    assert_eq!(corrections.iter().count(), aish_shell::route::CORRECTIONS_MAX);
    corrections.learn(&"x".repeat(1_000_000), Sent::Shell);
    assert!(corrections.iter().all(|(line, _)| line.len() < 1_000));
}
