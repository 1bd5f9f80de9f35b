//! The law of the house as tests: which crate may use which, what a file looks like, which words stand for what, and
//! the table of requirements in `docs/requirements.md`.
//!
//! A rule that fails names every offender and what to do instead. To change a rule, change it here and in the document
//! it comes from, in one commit that says why.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "tidy/crates.rs"]
mod crates;
#[path = "tidy/requirements.rs"]
mod requirements;
#[path = "tidy/words.rs"]
mod words;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// No file is longer; see also [`FILE_LINES_USUAL`].
const FILE_LINES_MAX: usize = 800;
/// Most files are no longer than this.
const FILE_LINES_USUAL: usize = 500;
/// How many of a hundred files are.
const USUAL_PERCENT_MIN: usize = 91;

/// Names that say nothing of what a module owns.
const EMPTY_NAMES: [&str; 6] = ["common", "util", "utils", "helper", "helpers", "misc"];

/// One text file of the repository.
pub struct File {
    /// Relative to the repository's root, with `/`.
    pub path: String,
    /// All of it.
    pub text: String,
}

impl File {
    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// True for the code of a program or library, without the tests that lie beside it.
    fn is_source(&self) -> bool {
        self.is_rust()
            && self.path.contains("/src/")
            && !self.path.contains("/tests")
            && !self.path.ends_with("_tests.rs")
    }

    /// `core` for `crates/core/src/id.rs`.
    fn crate_name(&self) -> &str {
        self.path
            .strip_prefix("crates/")
            .and_then(|rest| rest.split('/').next())
            .unwrap_or_default()
    }

    /// Its code without comments and without its tests, with line numbers.
    fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().take_while(|line| !line.starts_with("#[cfg(test)]"));
        lines.enumerate().filter_map(|(n, line)| {
            let line = line.trim_start();
            (!line.starts_with("//")).then_some((n + 1, line))
        })
    }
}

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// Every text file that is or is about to be committed; from the directory alone where there is no git.
pub fn files() -> Vec<File> {
    let root = root();
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(&root)
        .output();
    let mut paths: Vec<String> = match listed {
        Ok(listed) if listed.status.success() => String::from_utf8(listed.stdout)
            .unwrap()
            .split_terminator('\0')
            .map(str::to_owned)
            .collect(),
        Ok(_) | Err(_) => walk(&root, &root),
    };
    paths.sort();
    paths.dedup();
    let read = |path: String| {
        fs::read_to_string(root.join(&path))
            .ok()
            .map(|text| File { path, text })
    };
    let files: Vec<File> = paths.into_iter().filter_map(read).collect();
    assert!(
        files.iter().any(|file| file.path == "Cargo.toml"),
        "the repository was not found"
    );
    files
}

fn walk(root: &Path, directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name == "target" || name == ".git" {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            found.extend(walk(root, &entry.path()));
        } else {
            found.push(entry.path().strip_prefix(root).unwrap().to_string_lossy().into_owned());
        }
    }
    found
}

/// Fails with one line for each offender.
pub fn expect_none(rule: &str, offenders: Vec<String>) {
    assert!(offenders.is_empty(), "{rule}:\n  {}\n", offenders.join("\n  "));
}

/// A reader finds their way in a file of one concept.
#[test]
fn files_are_short() {
    let files = files();
    let rust: Vec<(&str, usize)> = files
        .iter()
        .filter(|file| file.is_rust())
        .map(|file| (file.path.as_str(), file.text.lines().count()))
        .collect();
    let longer_than = |limit: usize| rust.iter().filter(move |(_, lines)| *lines > limit);
    let describe = |(path, lines): &(&str, usize)| format!("{path}: {lines} lines");
    expect_none(
        "split by concept, 800 lines at most",
        longer_than(FILE_LINES_MAX).map(describe).collect(),
    );
    let long: Vec<String> = longer_than(FILE_LINES_USUAL).map(describe).collect();
    let usual_percent = (rust.len() - long.len()) * 100 / rust.len();
    if usual_percent < USUAL_PERCENT_MIN {
        expect_none("91 of 100 files have 500 lines at most; split some of", long);
    }
}

/// Whoever opens a file knows at once which room they are in.
#[test]
fn files_begin_with_their_doc() {
    let files = files();
    let bare = files
        .iter()
        .filter(|file| file.is_rust() && !file.text.starts_with("//!"));
    expect_none(
        "begin with a `//!` doc: what the file owns",
        bare.map(|file| file.path.clone()).collect(),
    );
    let placeholder = |file: &&File| file.is_rust() && file.text.starts_with("//! placeholder");
    let placeholders = files.iter().filter(placeholder).map(|file| file.path.clone());
    expect_none("write it or remove it", placeholders.collect());
}

/// A module is called after what it owns.
#[test]
fn modules_have_names() {
    let files = files();
    let offends = |file: &&File| {
        file.is_rust()
            && file
                .path
                .split(['/', '.'])
                .any(|segment| EMPTY_NAMES.contains(&segment))
    };
    expect_none(
        "name it after what it owns",
        files.iter().filter(offends).map(|file| file.path.clone()).collect(),
    );
}

/// A file that nothing compiles is a trap: it looks like law and is not.
#[test]
fn files_are_used() {
    let files = files();
    let mut unused = Vec::new();
    for file in files
        .iter()
        .filter(|file| file.is_rust() && file.path.contains("/src/"))
    {
        let stem = Path::new(&file.path)
            .file_stem()
            .unwrap()
            .to_string_lossy()
            .into_owned();
        let name = match stem.as_str() {
            "lib" | "main" => continue,
            _ if file.path.contains("/src/bin/") => continue,
            "mod" => Path::new(&file.path)
                .parent()
                .unwrap()
                .file_name()
                .unwrap()
                .to_string_lossy()
                .into_owned(),
            _ => stem.clone(),
        };
        let declared = |other: &File| {
            other.crate_name() == file.crate_name()
                && other.path != file.path
                && (other
                    .text
                    .lines()
                    .any(|line| line.trim().ends_with(&format!("mod {name};")))
                    || other.text.contains(&format!("{stem}.rs\"]")))
        };
        if !files.iter().any(declared) {
            unused.push(file.path.clone());
        }
    }
    expect_none("no `mod` names it", unused);
}
