//! Which test stands for which requirement: `docs/requirements.md` is generated here and compared.
//!
//! A test says which requirements it stands for in the comment right above it (`SPEC 2.4`, `SPEC 2.10, 2.11`) or in its
//! name (`spec_2_4_…`). Run the tests with `UPDATE_DOCS=1` to write the table again.

use super::{File, expect_none, files, root};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

const TABLE: &str = "docs/requirements.md";
const UPDATE_VARIABLE: &str = "UPDATE_DOCS";

/// Every requirement, with a few words of what it is about.
#[rustfmt::skip]
const REQUIREMENTS: [(&str, &str); 82] = [
    ("2.1", "provider-neutral canonical events"), ("2.2", "tool calls kept as received"),
    ("2.3", "tool results kept whole"), ("2.4", "event kinds; old ledgers fold"),
    ("2.5", "memory leads; acknowledged means committed"), ("2.6", "orphans repaired, in doubt shown"),
    ("2.7", "one result per call, in order"), ("2.8", "new, continued and resumed sessions"),
    ("2.9", "clear, mark, rewind, fork"), ("2.10", "one private file; sessions commands"),
    ("2.11", "append is compare and set"), ("2.12", "one driver, by lease"),
    ("3.1", "a turn is a pure fold"), ("3.2", "started before run, never rerun"),
    ("3.3", "an approval quotes the digest"), ("3.4", "the whole batch gated first"),
    ("3.5", "rounds, and retries of replies"), ("3.5a", "steering, queueing and cancelling turns"),
    ("3.5b", "others' events land in between"), ("3.6", "limits per turn, then summing up"),
    ("3.7", "every way out closes all"), ("3.8", "malformed and mismatched arguments answered"),
    ("3.9", "unknown tools at a terminal"),
    ("4", "names and shapes of tools"), ("4.1", "no match is still success"), ("4.2", "tool errors name the thing"),
    ("4.3", "captured and shown output bounded"), ("4.4", "bash: groups, timeouts, background jobs"),
    ("4.5", "other tool names when served"), ("4.6", "real files; speed of search"),
    ("5.1", "allow, ask or deny, why"), ("5.2", "modes ask, auto and full"),
    ("5.3", "the prompt and its answers"), ("5.4", "auto-approved MCP tools by name"),
    ("5.5", "a refusal tells the model"), ("5.6", "unanswerable: neither hang nor allow"),
    ("5.7", "commands judged by syntax tree"), ("5.8", "MCP annotations are only hints"),
    ("6.1", "many servers, names both ways"), ("6.2", "both protocol eras, all transports"),
    ("6.3", "headers and tokens per server"), ("6.4", "connecting in the background; commands"),
    ("6.5", "result text, images and resources"), ("6.6", "protocol errors answer the call"),
    ("6.7", "no tools, no tools field"), ("6.8", "definitions pinned, changes ask again"),
    ("6.9", "prompts, resources, elicitation and sampling"), ("6.10", "aish itself as MCP server"),
    ("6.11", "no shells, credentials stay home"),
    ("7.1", "a registry of named models"), ("7.2", "four wire formats as codecs"),
    ("7.3", "streaming; truncated is never executed"), ("7.4", "quirks of servers absorbed"),
    ("7.5", "templates without a tool role"), ("7.6", "retries, fallbacks and hand-overs"),
    ("7.7", "finding a model unconfigured"), ("7.8", "the static system prompt"),
    ("8.1", "one prompt with three routes"), ("8.2", "commands in real shell state"),
    ("8.3", "command output for the model"), ("8.4", "proposed commands behind a question"),
    ("8.5", "frames around output and calls"), ("8.6", "Markdown rendered as it streams"),
    ("8.7", "Ctrl-C and a sane terminal"), ("8.8", "foreign text cannot control terminals"),
    ("8.9", "history, editing, completion, plain mode"),
    ("9.1", "chat over HTTP runs loops"), ("9.2", "suspending for the client's tools"),
    ("9.3", "results resume; chains of calls"), ("9.4", "one-shot continuations, idempotent answers"),
    ("9.5", "suspended turns live in stores"), ("9.6", "approval and batches when served"),
    ("9.7", "provider-side tools never suspend"), ("9.8", "serve: token, limits, routes, drain"),
    ("9.9", "the page at the root"),
    ("10.1", "one file, settings declared once"), ("10.2", "exit codes say what happened"),
    ("10.3", "one-shot prompts and their output"), ("10.4", "errors: tried, wrong, to do"),
    ("10.5", "secrets redacted on leaving"),
    ("11", "the figures to reach"), ("12", "what must never happen"),
];

/// A test and where it is.
struct Test {
    place: String,
    requirements: Vec<String>,
}

/// The tests of a file that stand for a requirement.
fn tests(file: &File) -> Vec<Test> {
    let mut found = Vec::new();
    let mut comment = String::new();
    let mut is_test = false;
    for line in file.text.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("//") {
            comment.push_str(text.trim_start_matches(['/', '!']));
            comment.push(' ');
        } else if line.starts_with("#[") {
            is_test |= line.starts_with("#[test") || line.contains("::test") || line.starts_with("#[rstest");
        } else {
            if let Some(name) = is_test.then(|| function_name(line)).flatten() {
                let mut requirements = quoted(&comment);
                requirements.extend(named(name));
                found.push(Test {
                    place: format!("{}::{name}", file.path),
                    requirements,
                });
            }
            comment.clear();
            is_test = false;
        }
    }
    found
}

fn function_name(line: &str) -> Option<&str> {
    let after = line
        .trim_start_matches("pub ")
        .trim_start_matches("async ")
        .strip_prefix("fn ")?;
    after.split(['(', '<']).next()
}

/// The numbers after each `SPEC` of a comment: `SPEC 2.4`, `SPEC 2.10, 2.11 and 12`.
fn quoted(comment: &str) -> Vec<String> {
    let mut numbers = Vec::new();
    for after in comment.split("SPEC ").skip(1) {
        for word in after.split_whitespace() {
            let bare = word.trim_end_matches([',', ':', ';', '.', ')']);
            if bare.starts_with(|c: char| c.is_ascii_digit()) {
                numbers.push(bare.to_owned());
                if word.ends_with(',') || word == bare {
                    continue;
                }
                break;
            }
            if !matches!(word, "and" | "or") {
                break;
            }
        }
    }
    numbers
}

/// `spec_2_4_old_ledgers` stands for 2.4.
fn named(name: &str) -> Option<String> {
    let mut parts = name.split_once("spec_")?.1.split('_');
    let (major, minor) = (parts.next()?, parts.next()?);
    let is_number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    (is_number(major) && is_number(minor)).then(|| format!("{major}.{minor}"))
}

fn render(by_requirement: &BTreeMap<String, Vec<String>>) -> String {
    let untested = REQUIREMENTS
        .iter()
        .filter(|(number, _)| !by_requirement.contains_key(*number))
        .count();
    let mut out = String::from(
        "# Requirements and their tests\n\nGenerated by `crates/aish/tests/tidy/requirements.rs`; `UPDATE_DOCS=1` writes it \
         again. A dash: no test stands for it yet.\n\n",
    );
    let _ = writeln!(
        out,
        "{} of {} have a test.\n",
        REQUIREMENTS.len() - untested,
        REQUIREMENTS.len()
    );
    out.push_str("| requirement | about | tests |\n|---|---|---|\n");
    for (number, about) in REQUIREMENTS {
        let tests = by_requirement
            .get(number)
            .map_or_else(|| "—".to_owned(), |tests| tests.join("<br>"));
        let _ = writeln!(out, "| {number} | {about} | {tests} |");
    }
    out
}

/// The table of requirements is what the tests say.
#[test]
fn the_table_is_current() {
    let mut by_requirement: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut unknown = Vec::new();
    for test in files().iter().filter(|file| file.is_rust()).flat_map(tests) {
        for requirement in test.requirements {
            if !REQUIREMENTS.iter().any(|(number, _)| *number == requirement) {
                unknown.push(format!("{}: SPEC {requirement}", test.place));
            }
            let places = by_requirement.entry(requirement).or_default();
            if places.last() != Some(&format!("`{}`", test.place)) {
                places.push(format!("`{}`", test.place));
            }
        }
    }
    expect_none("there is no such requirement", unknown);
    let table = render(&by_requirement);
    let path = root().join(TABLE);
    if std::env::var_os(UPDATE_VARIABLE).is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &table).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == table,
        "{TABLE} is out of date: run this test with {UPDATE_VARIABLE}=1 and commit it"
    );
}

/// What a comment or a name quotes is read as it is written.
#[test]
fn quotes_are_read() {
    let check = |comment: &str, expect: &[&str]| assert_eq!(quoted(comment), expect, "{comment}");
    check("SPEC 2.4: old ledgers", &["2.4"]);
    check(
        "see SPEC 2.10, 2.11 and 12: many writers, 4 of them",
        &["2.10", "2.11", "12"],
    );
    check("SPEC 3.5a; SPEC 9.5 (rule 10).", &["3.5a", "9.5"]);
    check("(SPEC 2.8). Then 7.1", &["2.8"]);
    check("the SPEC says so", &[]);
    assert_eq!(named("spec_2_4_old_ledgers").as_deref(), Some("2.4"));
    assert_eq!(named("spec_of_nothing"), None);
}
