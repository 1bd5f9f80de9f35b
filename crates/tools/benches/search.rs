//! What `glob` and `grep` cost on a large tree, beside `fd` and `rg` on the same one (SPEC 4.6, 11).
//!
//! The tools run in this process, with everything a call does: checking the root, walking, matching, sorting, the JSON
//! result. The programs run as processes of their own, their output read to its end; `start` is what starting and ending
//! such a process costs alone, to be taken off theirs. They sort nothing unless told to. Where a program is not installed,
//! its rows are missing.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use aish_tools::search::{GlobTool, GrepTool};
use aish_tools::{NoProgress, Tool, ToolContext};
use divan::Bencher;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};
use tempfile::TempDir;

const FOLDERS: usize = 300;
const FILES_PER_FOLDER: usize = 100;
const LINES_PER_FILE: usize = 40;
/// One file in so many has the word that is looked for.
const FILES_PER_MATCH: usize = 50;
const OUTPUT_BYTES_MAX: usize = 1 << 20;
/// How Debian calls `fd`, and how everybody else does.
const FD_NAMES: [&str; 2] = ["fdfind", "fd"];

fn main() {
    divan::main();
}

/// The tree, made once.
fn tree() -> &'static Path {
    static TREE: OnceLock<TempDir> = OnceLock::new();
    let made = TREE.get_or_init(|| {
        let root = tempfile::tempdir().unwrap();
        for folder in 0..FOLDERS {
            let path = root.path().join(format!("part{}/folder{folder}", folder % 10));
            std::fs::create_dir_all(&path).unwrap();
            for file in 0..FILES_PER_FOLDER {
                let ending = if file % 4 == 0 { "c" } else { "txt" };
                std::fs::write(
                    path.join(format!("file{file}.{ending}")),
                    text(folder * FILES_PER_FOLDER + file),
                )
                .unwrap();
            }
        }
        root
    });
    made.path()
}

fn text(number: usize) -> String {
    let mut text = String::new();
    for line in 0..LINES_PER_FILE {
        writeln!(
            text,
            "line {line} of file {number} says nothing that anybody would look for"
        )
        .unwrap();
    }
    if number.is_multiple_of(FILES_PER_MATCH) {
        text.push_str("here is the needle_of_1_word\n");
    }
    text
}

/// A call, as the engine makes one.
fn call(bencher: Bencher<'_, '_>, tool: &dyn Tool, arguments: &Value, count: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let context = ToolContext {
        directory: tree().canonicalize().unwrap(),
        environment: Arc::new(Vec::new()),
        output_bytes_max: OUTPUT_BYTES_MAX,
        hidden: aish_tools::Hidden::default(),
        web: aish_tools::WebAccess::default(),
        place: None,
    };
    let action = tool.inspect(arguments, &context).unwrap();
    bencher.bench_local(|| {
        let (_keep, cancel) = tokio::sync::watch::channel(false);
        let output = runtime.block_on(tool.run(&action, &context, &NoProgress, cancel));
        let result: Value = serde_json::from_str(&output.output).unwrap();
        assert_eq!(result["count"], count);
    });
}

/// A program on the tree, if it is installed. `lines` is what it must print.
fn program(bencher: Bencher<'_, '_>, names: &[&str], arguments: &[&str], lines: Option<usize>) {
    let run = |name: &str| {
        Command::new(name)
            .args(arguments)
            .current_dir(tree())
            .stdin(Stdio::null())
            .output()
    };
    let Some(name) = names.iter().find(|name| run(name).is_ok()) else {
        return;
    };
    bencher.bench_local(|| {
        let output = run(name).unwrap();
        if let Some(lines) = lines {
            assert_eq!(output.stdout.iter().filter(|byte| **byte == b'\n').count(), lines);
        }
    });
}

const C_FILES: usize = FOLDERS * FILES_PER_FOLDER / 4;
const MATCHES: usize = FOLDERS * FILES_PER_FOLDER / FILES_PER_MATCH;

mod glob {
    use super::*;

    #[divan::bench(sample_count = 30, sample_size = 1)]
    fn aish(bencher: Bencher<'_, '_>) {
        call(bencher, &GlobTool::new(), &json!({"pattern": "**/*.c"}), C_FILES as u64);
    }

    #[divan::bench(sample_count = 30, sample_size = 1)]
    fn fd(bencher: Bencher<'_, '_>) {
        program(bencher, &FD_NAMES, &["--type", "f", "--glob", "*.c"], Some(C_FILES));
    }

    #[divan::bench(sample_count = 30, sample_size = 1)]
    fn fd_start(bencher: Bencher<'_, '_>) {
        program(bencher, &FD_NAMES, &["--version"], None);
    }
}

mod grep {
    use super::*;

    #[divan::bench(sample_count = 30, sample_size = 1)]
    fn aish(bencher: Bencher<'_, '_>) {
        call(
            bencher,
            &GrepTool::new(),
            &json!({"pattern": r"needle_of_\d+_word"}),
            MATCHES as u64,
        );
    }

    #[divan::bench(sample_count = 30, sample_size = 1)]
    fn rg(bencher: Bencher<'_, '_>) {
        program(
            bencher,
            &["rg"],
            &["--line-number", r"needle_of_\d+_word", "."],
            Some(MATCHES),
        );
    }

    #[divan::bench(sample_count = 30, sample_size = 1)]
    fn rg_start(bencher: Bencher<'_, '_>) {
        program(bencher, &["rg"], &["--version"], None);
    }
}
