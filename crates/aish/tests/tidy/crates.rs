//! Which crate may use which, and what only one of them may do (DESIGN, "The rooms").

use super::{File, expect_none, files, root};
use std::fs;

/// Crate and the crates of ours it may use, none by default.
const EDGES: [(&str, &[&str]); 12] = [
    ("core", &[]),
    ("command", &["core"]),
    ("provider", &["core"]),
    ("tools", &["core", "command"]),
    ("listen", &["core"]),
    ("mcp", &["core", "tools", "listen"]),
    ("store", &["core"]),
    ("markdown", &["core"]),
    ("shell", &["core", "command"]),
    ("engine", &["core", "provider", "tools", "store"]),
    ("server", &["core", "engine", "listen"]),
    (
        "aish",
        &[
            "core", "command", "provider", "tools", "listen", "mcp", "store", "markdown", "shell", "engine", "server",
        ],
    ),
];

/// The core stays small: it is what everything waits for to be compiled.
const CORE_DEPENDENCIES_MAX: usize = 6;

/// What would let the core do IO or await.
const CORE_BANNED_DEPENDENCIES: [&str; 10] = [
    "tokio",
    "futures-util",
    "reqwest",
    "hyper",
    "axum",
    "rusqlite",
    "rustix",
    "crossterm",
    "tempfile",
    "getrandom",
];

/// The core is a function of its input (SPEC 3.1).
const CORE_BANNED_CODE: [&str; 12] = [
    "async fn",
    ".await",
    "std::fs",
    "std::env",
    "std::net",
    "std::process",
    "std::io",
    "std::thread",
    "SystemTime",
    "Instant",
    "println!",
    "rand::",
];

/// Statics that hold state, each with its reason: file, name, why.
const STATICS_ALLOWED: [(&str, &str, &str); 1] = [(
    "crates/aish/src/term/guard/struck.rs",
    "FOUND",
    "the handler of a signal is given nothing but the signal's number",
)];

/// Where unsafe code may be: a handler for faults cannot be set without.
const UNSAFE_ALLOWED: &str = "crates/aish/src/term/guard/struck.rs";

/// Types that make a static hold state.
const STATE_TYPES: [&str; 9] = [
    "OnceLock", "LazyLock", "OnceCell", "LazyCell", "Mutex", "RwLock", "Atomic", "RefCell", "Lazy<",
];

fn manifest(krate: &str) -> Option<toml::Table> {
    let text = fs::read_to_string(root().join("crates").join(krate).join("Cargo.toml")).ok()?;
    Some(text.parse().unwrap())
}

/// What a crate's code uses, without what only its tests do.
fn dependencies(manifest: &toml::Table) -> Vec<String> {
    let table = |value: &toml::Value| -> Vec<String> {
        value
            .as_table()
            .map(|table| table.keys().cloned().collect())
            .unwrap_or_default()
    };
    let mut names: Vec<String> = ["dependencies", "build-dependencies"]
        .iter()
        .filter_map(|section| manifest.get(*section))
        .flat_map(table)
        .collect();
    if let Some(targets) = manifest.get("target").and_then(toml::Value::as_table) {
        names.extend(
            targets
                .values()
                .filter_map(|target| target.get("dependencies"))
                .flat_map(table),
        );
    }
    names
}

fn members() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| manifest(name).is_some())
        .collect();
    names.sort();
    names
}

/// SPEC 11: a packager's program has no symbols, an eighth of its size. Cargo forgets the profile's `strip` for a package
/// that the profile has an entry of, so the entry says it again.
#[test]
fn the_packaged_program_is_stripped() {
    let manifest: toml::Table = fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
    let dist = &manifest["profile"]["dist"];
    let stripped = Some(&toml::Value::Boolean(true));
    assert_eq!(dist.get("strip"), stripped);
    if let Some(program) = dist["package"].get("aish") {
        assert_eq!(program.get("strip"), stripped);
    }
}

/// The arrows between the crates are those of DESIGN.
#[test]
fn crates_use_what_they_may() {
    let mut offenders = Vec::new();
    for krate in members() {
        let Some((_, allowed)) = EDGES.iter().find(|(name, _)| *name == krate) else {
            offenders.push(format!("{krate} is not in DESIGN's table"));
            continue;
        };
        for dependency in dependencies(&manifest(&krate).unwrap()) {
            if let Some(used) = dependency.strip_prefix("aish-")
                && !allowed.contains(&used)
            {
                offenders.push(format!("{krate} uses {used}"));
            }
        }
    }
    expect_none(
        "change DESIGN's table and this one together, or find another way",
        offenders,
    );
}

/// Every crate is held to the same lints.
#[test]
fn crates_share_the_lints() {
    let shares = |krate: &String| {
        manifest(krate)
            .unwrap()
            .get("lints")
            .and_then(|lints| lints.get("workspace"))
            == Some(&toml::Value::Boolean(true))
    };
    expect_none(
        "add `[lints] workspace = true`",
        members().into_iter().filter(|krate| !shares(krate)).collect(),
    );
}

/// Whether a line has the word, and not as the beginning of a longer one.
fn says(line: &str, word: &str) -> bool {
    let ends = |after: &str| !after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    line.match_indices(word)
        .any(|(at, _)| !word.ends_with(char::is_alphanumeric) || ends(&line[at + word.len()..]))
}

/// SPEC 3.1: the core has no clock, no environment, no IO and no async in it, nor a dependency that would bring them.
#[test]
fn the_core_is_pure() {
    let used = dependencies(&manifest("core").unwrap());
    assert!(
        used.len() <= CORE_DEPENDENCIES_MAX,
        "the core has at most {CORE_DEPENDENCIES_MAX} dependencies: {used:?}"
    );
    let banned = used
        .into_iter()
        .filter(|name| CORE_BANNED_DEPENDENCIES.contains(&name.as_str()));
    expect_none("the core may not use", banned.collect());

    let mut offenders = Vec::new();
    for file in files()
        .iter()
        .filter(|file| file.is_source() && file.crate_name() == "core")
    {
        for (number, line) in file.code_lines() {
            for banned in CORE_BANNED_CODE.iter().filter(|banned| says(line, banned)) {
                offenders.push(format!("{}:{number}: {banned}", file.path));
            }
        }
    }
    expect_none("time, ids, randomness and limits come into the core as data", offenders);
}

/// SPEC 2.10, 12: one crate knows SQL, and one SQLite library is linked.
#[test]
fn only_the_store_knows_sql() {
    let mut offenders = Vec::new();
    for krate in members().iter().filter(|krate| *krate != "store") {
        let used = dependencies(&manifest(krate).unwrap());
        offenders.extend(
            used.iter()
                .filter(|name| name.contains("sql"))
                .map(|name| format!("{krate} uses {name}")),
        );
    }
    let speaks_sql = |file: &&File| file.is_source() && file.crate_name() != "store";
    for file in files().iter().filter(speaks_sql) {
        for (number, line) in file.code_lines() {
            let sql = [
                "rusqlite",
                "\"SELECT ",
                "\"INSERT INTO",
                "\"UPDATE ",
                "\"DELETE FROM",
                "\"PRAGMA ",
            ];
            for found in sql.iter().filter(|sql| line.contains(**sql)) {
                offenders.push(format!("{}:{number}: {found}", file.path));
            }
        }
    }
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let linked = lock.matches("name = \"libsqlite3-sys\"").count();
    assert!(linked <= 1, "{linked} versions of SQLite in Cargo.lock");
    assert!(
        !lock.contains("name = \"sqlx-sqlite\""),
        "a second SQLite in Cargo.lock"
    );
    expect_none("ask the store", offenders);
}

/// What the compiler cannot prove is in one small file, with its reason.
#[test]
fn unsafe_code_is_in_one_place() {
    let mut offenders = Vec::new();
    for file in files()
        .iter()
        .filter(|file| file.is_source() && file.path != UNSAFE_ALLOWED)
    {
        for (number, line) in file.code_lines() {
            if line.contains("unsafe_code") || line.contains("unsafe {") || line.contains("unsafe fn") {
                offenders.push(format!("{}:{number}: {line}", file.path));
            }
        }
    }
    expect_none("find a library that does it", offenders);
}

/// A program's state has an owner that is passed along.
#[test]
fn statics_hold_no_state() {
    let mut offenders = Vec::new();
    for file in files().iter().filter(|file| file.is_source()) {
        for (number, line) in file.code_lines() {
            let bare = line
                .trim_start_matches("pub ")
                .trim_start_matches("pub(crate) ")
                .trim_start_matches("pub(super) ");
            let Some(declared) = bare.strip_prefix("static ") else {
                if bare.starts_with("thread_local!") {
                    offenders.push(format!("{}:{number}: {line}", file.path));
                }
                continue;
            };
            let name = declared.split(':').next().unwrap_or_default().trim();
            let allowed = STATICS_ALLOWED
                .iter()
                .any(|(path, known, _)| *path == file.path && *known == name);
            let has_state = declared.starts_with("mut ") || STATE_TYPES.iter().any(|state| declared.contains(state));
            if has_state && !allowed {
                offenders.push(format!("{}:{number}: {line}", file.path));
            }
        }
    }
    expect_none(
        "give the state an owner, or the static a reason in STATICS_ALLOWED",
        offenders,
    );
}
