//! What a newcomer reads is true: the documents against the program and the tree.
//!
//! - tests that `ARCHITECTURE.md` names as proofs exist,
//! - `docs/guide.md` and the program agree on options, commands and meta commands, both ways,
//! - links between documents lead somewhere,
//! - `docs/dependencies.md` has a line for each direct dependency and for nothing else.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "docs/markdown.rs"]
mod markdown;

use markdown::{Document, words_in};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Lines between a test's attribute and its name: further attributes.
const ATTRIBUTE_LINES_MAX: usize = 4;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

fn read(path: &str) -> Document {
    Document::new(&fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}")))
}

/// Fails with one line for each offender.
fn expect_none(rule: &str, offenders: &[String]) {
    assert!(offenders.is_empty(), "{rule}:\n  {}\n", offenders.join("\n  "));
}

fn differences(documented: &BTreeSet<String>, real: &BTreeSet<String>, document: &str) -> Vec<String> {
    let invented = documented
        .difference(real)
        .map(|name| format!("{document} names {name}, which there is not"));
    let missing = real
        .difference(documented)
        .map(|name| format!("{document} does not name {name}"));
    invented.chain(missing).collect()
}

/// The program in a home of its own, with nothing to be found and no network to be asked.
fn aish(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aish"));
    command
        .env_clear()
        .env("HOME", home)
        .env("AISH_HOME", home)
        .env("AISH_DISCOVER", "false")
        .current_dir(home);
    command
}

/// The help of a command, and of every command below it: its words after `aish`, and the text.
fn helps(home: &Path, words: &[String]) -> Vec<(String, String)> {
    let output = aish(home).args(words).arg("--help").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let listed = text
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| line.starts_with("  "));
    let below: Vec<String> = listed
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect();
    let mut all = vec![(words.join(" "), text)];
    for name in below {
        all.extend(helps(home, &[words, &[name]].concat()));
    }
    all
}

/// `--name` wherever it stands in a text.
fn options_in(text: &str) -> impl Iterator<Item = String> + '_ {
    words_in(text)
        .filter_map(|word| word.strip_prefix("--"))
        .map(|name| {
            name.chars()
                .take_while(|c| c.is_ascii_lowercase() || *c == '-')
                .collect::<String>()
        })
        .filter(|name| !name.is_empty())
        .map(|name| format!("--{name}"))
}

/// What a block of commands says to aish: other programs have options too, and comments are prose.
fn own_commands(block: &str) -> impl Iterator<Item = &str> {
    block.lines().filter_map(|line| {
        let line = line.split(" #").next()?;
        let start = if line.starts_with("aish") {
            Some(0)
        } else {
            line.find("| aish")
        };
        line.get(start?..)
    })
}

/// The proofs of the invariants are there: a file, and a test of that name in it.
#[test]
fn proofs_exist() {
    let mut offenders = Vec::new();
    let mut seen = 0;
    for span in read("ARCHITECTURE.md").spans() {
        let Some((path, name)) = span.split_once(".rs::") else {
            continue;
        };
        seen += 1;
        let path = format!("{path}.rs");
        let text = fs::read_to_string(root().join(&path)).unwrap_or_default();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let is_test = |at: usize| {
            let above = &lines[at.saturating_sub(ATTRIBUTE_LINES_MAX)..at];
            above
                .iter()
                .any(|line| line.starts_with("#[test") || line.starts_with("#[tokio::test"))
        };
        let defines = |line: &str| line.contains(&format!("fn {name}("));
        if !(0..lines.len()).any(|at| defines(lines[at]) && is_test(at)) {
            offenders.push(format!("{path} has no test {name}"));
        }
    }
    assert!(seen > 0, "ARCHITECTURE.md names no test at all");
    expect_none("name a test that exists", &offenders);
}

/// Every option and every command of the guide is one of the program's, and the other way round.
#[test]
fn options_and_commands_agree() {
    let home = tempfile::tempdir().unwrap();
    let guide = read("docs/guide.md");
    let helps = helps(home.path(), &[]);

    let real: BTreeSet<String> = helps.iter().flat_map(|(_, text)| options_in(text)).collect();
    assert!(real.contains("--prompt"), "{real:?}");
    let code: Vec<&str> = guide.spans().chain(guide.fences().flat_map(own_commands)).collect();
    let documented: BTreeSet<String> = code.iter().flat_map(|text| options_in(text)).collect();
    let mut offenders = differences(&documented, &real, "docs/guide.md");

    // A command that only groups others is documented by them.
    let names: Vec<&str> = helps.iter().map(|(name, _)| name.as_str()).collect();
    for name in names.iter().filter(|name| !name.is_empty()) {
        let is_group = names.iter().any(|other| other.starts_with(&format!("{name} ")));
        if !is_group && !code.iter().any(|text| text.contains(&format!("aish {name}"))) {
            offenders.push(format!("docs/guide.md does not name `aish {name}`"));
        }
    }
    for line in &code {
        let said = line.trim_start_matches("| ").strip_prefix("aish ");
        let first = said.and_then(|rest| rest.split_whitespace().next()).unwrap_or_default();
        let is_command = !first.is_empty() && first.chars().all(|c| c.is_ascii_lowercase());
        if is_command && !names.iter().any(|name| name.split(' ').next() == Some(first)) {
            offenders.push(format!("docs/guide.md: there is no `aish {first}`: {line}"));
        }
    }
    expect_none("the guide and `aish --help` say the same", &offenders);
}

/// Every `:` command of the guide is one of the prompt's, and the other way round.
#[test]
fn meta_commands_agree() {
    let home = tempfile::tempdir().unwrap();
    let mut child = aish(home.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b":help\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    let name = |text: &str| {
        let name = text
            .strip_prefix(':')?
            .split(|c: char| !c.is_ascii_lowercase())
            .next()?;
        (!name.is_empty()).then(|| format!(":{name}"))
    };
    let real: BTreeSet<String> = text.lines().filter_map(|line| name(line.trim_start())).collect();
    assert!(real.contains(":help"), "{text}");
    let documented: BTreeSet<String> = read("docs/guide.md").spans().filter_map(name).collect();
    expect_none(
        "the guide and `:help` say the same",
        &differences(&documented, &real, "docs/guide.md"),
    );
}

/// A link to a file or a heading leads to it.
#[test]
fn links_lead_somewhere() {
    let root = root();
    let mut offenders = Vec::new();
    for path in documents(&root) {
        let document = read(&path);
        let folder = root.join(&path).parent().unwrap().to_owned();
        for link in document.links() {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() {
                root.join(&path)
            } else {
                folder.join(file)
            };
            let leads = match fs::read_to_string(&target) {
                Ok(text) => heading.is_empty() || Document::new(&text).headings().any(|slug| slug == heading),
                // A folder and a picture are places to go as well.
                Err(_) => heading.is_empty() && target.exists(),
            };
            if !leads {
                offenders.push(format!("{path}: {link}"));
            }
        }
    }
    expect_none("there is nothing there", &offenders);
}

/// The documents a newcomer may open first, and those they lead to.
fn documents(root: &Path) -> Vec<String> {
    let of = |folder: &str| {
        let names = fs::read_dir(root.join(folder))
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        let names = names.filter_map(|name| name.into_string().ok());
        let markdown = names.filter(|name| name.to_ascii_lowercase().ends_with(".md"));
        markdown.map(|name| format!("{folder}{name}")).collect::<Vec<_>>()
    };
    let mut all = of("");
    all.extend(of("docs/"));
    assert!(all.iter().any(|path| path == "README.md"), "{all:?}");
    all
}

/// Each crate a manifest asks for has a line that says what for, and no line speaks of one nobody asks for.
#[test]
fn dependencies_have_a_line() {
    let mut real = BTreeSet::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let Ok(text) = fs::read_to_string(entry.unwrap().path().join("Cargo.toml")) else {
            continue;
        };
        let manifest: toml::Table = text.parse().unwrap();
        let of_targets = manifest.get("target").and_then(toml::Value::as_table);
        let tables = std::iter::once(&manifest).chain(
            of_targets
                .into_iter()
                .flat_map(toml::Table::values)
                .filter_map(toml::Value::as_table),
        );
        for table in tables {
            for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
                let named = table.get(section).and_then(toml::Value::as_table);
                real.extend(named.into_iter().flat_map(toml::Table::keys).cloned());
            }
        }
    }
    real.retain(|name| !name.starts_with("aish-"));
    let documented: BTreeSet<String> = read("docs/dependencies.md").first_cells().collect();
    expect_none(
        "one line for each direct dependency",
        &differences(&documented, &real, "docs/dependencies.md"),
    );
}

/// SPEC 7.1: the providers that have a name are those of the list that people read.
#[test]
fn providers_are_documented() {
    let reference = fs::read_to_string(root().join("docs/configuration.md")).unwrap();
    let section = reference.split("### `models.<name>.preset`").nth(1).unwrap();
    let values = section.lines().find(|line| line.starts_with("- value: ")).unwrap();
    let real: BTreeSet<String> = values.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    let documented: BTreeSet<String> = read("docs/models.md").first_cells().collect();
    expect_none(
        "the providers of docs/models.md",
        &differences(&documented, &real, "docs/models.md"),
    );
}

/// SPEC 9.8: the errors that the developer of an app reads about are those there are, with their statuses.
#[test]
fn error_kinds_are_documented() {
    let row = |kind: &aish_server::ErrorKind| {
        let status = kind.status().as_u16();
        format!("| `{}` | {status} | {} |", kind.word(), kind.meaning())
    };
    let real: BTreeSet<String> = aish_server::ErrorKind::ALL.iter().map(row).collect();
    let text = fs::read_to_string(root().join("docs/serve.md")).unwrap();
    let section = text
        .split("\n## Errors\n")
        .nth(1)
        .unwrap()
        .split("\n## ")
        .next()
        .unwrap();
    let documented: BTreeSet<String> = section
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(str::to_owned)
        .collect();
    expect_none(
        "the errors of docs/serve.md",
        &differences(&documented, &real, "docs/serve.md"),
    );
}
