//! `glob` and `grep` on real trees.
#![allow(clippy::unwrap_used)]

mod workbench;

use aish_core::action::Effect;
use serde_json::json;
use std::os::unix::fs::symlink;
use workbench::Place;

fn tree() -> Place {
    let place = Place::new();
    std::fs::create_dir(place.path(".git")).unwrap();
    place.write(".gitignore", "*.log\n/target\n");
    place.write("a.rs", "fn main() {}\n");
    place.write("b.log", "fn ignored() {}\n");
    place.write("src/lib.rs", "one\nfn lib() {}\nthree\nfour\nfive\nFN six\n");
    place.write("src/deep/x.rs", "fn x() {}\n");
    place.write("target/out.rs", "fn out() {}\n");
    place.write(".hidden/h.rs", "fn h() {}\n");
    place.write(".env", "fn secret() {}\n");
    place.write("keys/server.pem", "fn pem() {}\n");
    place.write("image.bin", b"fn \0 binary\n");
    place
}

/// SPEC 4: glob is recursive with `**`, sorted, and aware of ignore files.
#[tokio::test]
async fn glob_lists_sorted_and_ignores() {
    let place = tree();
    let glob = async |pattern: &str| place.text("glob", json!({"pattern": pattern})).await;
    assert_eq!(glob("**/*.rs").await, "a.rs\nsrc/deep/x.rs\nsrc/lib.rs");
    assert_eq!(glob("*.rs").await, "a.rs");
    assert_eq!(glob("src/*.rs").await, "src/lib.rs");
    assert_eq!(glob("./src/**").await, "src/deep/x.rs\nsrc/lib.rs");
    assert_eq!(glob("s*/*/*.rs").await, "src/deep/x.rs");
    assert_eq!(glob("{a,src/lib}.rs").await, "a.rs\nsrc/lib.rs");
    assert_eq!(glob("src/lib.rs").await, "src/lib.rs");
    assert_eq!(glob("*/").await, "keys\nsrc");
    assert_eq!(glob("**/*.log").await, "");
    // The ignore files above the folder that is searched count too.
    place.write("src/deep/y.log", "fn ignored() {}\n");
    assert_eq!(glob("src/deep/*").await, "src/deep/x.rs");
    assert_eq!(glob(".env*").await, ".env");
    assert_eq!(glob("**/.e*").await, ".env");
    assert_eq!(glob(".hidden/*").await, ".hidden/h.rs");
    // A folder that is ignored is listed when it is named.
    assert_eq!(glob("target/*.rs").await, "target/out.rs");
    let absolute = place.path("src").display().to_string();
    assert_eq!(glob(&format!("{absolute}/*.rs")).await, format!("{absolute}/lib.rs"));
    assert_eq!(glob("~/src/*.rs").await, "~/src/lib.rs");
}

/// SPEC 4.1: the result has a count; no match is success.
#[tokio::test]
async fn glob_counts() {
    let place = tree();
    let output = place.call("glob", json!({"pattern": "**/*.rs", "path": "src/"})).await;
    // As written in front, so that the next call can use the results.
    assert_eq!(output.output, r#"{"output":"src/deep/x.rs\nsrc/lib.rs","count":2}"#);
    assert_eq!(output.summary, "2 files found");
    let output = place.call("glob", json!({"pattern": "*.zig"})).await;
    assert_eq!(
        (output.output.as_str(), output.success),
        (r#"{"output":"","count":0}"#, true)
    );
    let output = place.call("glob", json!({"pattern": "nope/*.zig"})).await;
    assert_eq!((output.summary.as_str(), output.success), ("0 files found", true));
}

/// SPEC 4.2: errors name the thing.
#[tokio::test]
async fn search_errors_name_the_thing() {
    let place = tree();
    let glob = async |arguments| place.error("glob", arguments).await;
    assert_eq!(
        glob(json!({"pattern": "*", "path": "nope"})).await,
        "File not found: nope"
    );
    assert_eq!(
        glob(json!({"pattern": "*", "path": "a.rs"})).await,
        "Not a directory: a.rs"
    );
    assert_eq!(
        glob(json!({"pattern": "[a"})).await.split(':').next(),
        Some("Invalid pattern")
    );
    let grep = async |arguments| place.error("grep", arguments).await;
    assert_eq!(
        grep(json!({"pattern": "x", "path": "nope"})).await,
        "File not found: nope"
    );
    assert_eq!(
        grep(json!({"pattern": "main("})).await,
        "Invalid pattern: unclosed group; to find a parenthesis write \\( or \\)"
    );
    assert_eq!(
        grep(json!({"pattern": "a\\nb"})).await,
        "Invalid pattern: lines are searched one by one, so \\n cannot match"
    );
    assert_eq!(
        grep(json!({"pattern": "(?=x)"})).await.split(':').next(),
        Some("Invalid pattern")
    );
    assert_eq!(
        grep(json!({"pattern": "x", "path": "image.bin"})).await,
        "Not a text file: image.bin (12 bytes, binary data)"
    );
}

/// SPEC 5.2: a search that leaves the tree says so, by `..`, a link, or the pattern itself.
#[test]
fn search_effects_are_resolved() {
    let place = tree();
    let outside = tempfile::tempdir().unwrap();
    let outside = outside.path().canonicalize().unwrap();
    symlink(&outside, place.path("link")).unwrap();
    let read = |tool, arguments| place.inspect(tool, arguments).unwrap().effects;
    let expect = |path: &std::path::Path| vec![Effect::Read { path: path.to_owned() }];
    assert_eq!(read("glob", json!({"pattern": "*"})), expect(&place.context.directory));
    assert_eq!(read("glob", json!({"pattern": "*", "path": "link"})), expect(&outside));
    assert_eq!(read("glob", json!({"pattern": "link/*"})), expect(&outside));
    assert_eq!(
        read("glob", json!({"pattern": "src/../../*"})),
        expect(place.context.directory.parent().unwrap())
    );
    assert_eq!(read("grep", json!({"pattern": "x", "path": "link"})), expect(&outside));
    assert_eq!(
        read("glob", json!({"pattern": "/etc/*"})),
        expect(std::path::Path::new("/etc"))
    );
}

/// SPEC 4: grep gives `file:line: match`, sorted by path; ignored, hidden, binary and secret files are passed over.
#[tokio::test]
async fn grep_finds_lines() {
    let place = tree();
    let output = place.call("grep", json!({"pattern": r"fn \w+\("})).await;
    assert_eq!(
        output.output,
        r#"{"output":"a.rs:1: fn main() {}\nsrc/deep/x.rs:1: fn x() {}\nsrc/lib.rs:2: fn lib() {}\n[1 secret-looking file passed over; to search one, name it in path]","count":3}"#
    );
    assert_eq!(
        output.summary,
        "3 matches in 3 files, 1 secret-looking file passed over"
    );
    let grep = async |arguments| place.text("grep", arguments).await;
    assert_eq!(
        grep(json!({"pattern": "fn", "path": "src/", "glob": "x.*"})).await,
        "src/deep/x.rs:1: fn x() {}"
    );
    assert_eq!(
        grep(json!({"pattern": "fn", "path": "src", "glob": "!x.*"})).await,
        "src/lib.rs:2: fn lib() {}"
    );
    assert_eq!(
        grep(json!({"pattern": "fn", "glob": "src/deep/**"})).await,
        "src/deep/x.rs:1: fn x() {}"
    );
    assert_eq!(
        grep(json!({"pattern": "FN", "path": "src/lib.rs", "ignore_case": true})).await,
        "src/lib.rs:2: fn lib() {}\nsrc/lib.rs:6: FN six"
    );
    assert_eq!(
        grep(json!({"pattern": "^(fn lib|FN)", "path": "src", "context": 1})).await,
        "src/lib.rs-1- one\nsrc/lib.rs:2: fn lib() {}\nsrc/lib.rs-3- three\n--\nsrc/lib.rs-5- five\nsrc/lib.rs:6: FN six"
    );
    // Named files are searched whatever they are called; policy asks about them.
    assert_eq!(
        grep(json!({"pattern": "fn", "path": ".env"})).await,
        ".env:1: fn secret() {}"
    );
    let output = place.call("grep", json!({"pattern": "zig", "path": "src"})).await;
    assert_eq!(
        (output.output.as_str(), output.success),
        (r#"{"output":"","count":0}"#, true)
    );
}

/// SPEC 5.2: what looks secret is told by its name below the folder that is searched, and counted; a project that lies
/// in a folder with such a name is searched like any other.
#[tokio::test]
async fn grep_says_what_it_passes_over() {
    let mut place = Place::new();
    for name in [
        "main.rs",
        "deep/lib.rs",
        "deep/server.pem",
        "credentials.json",
        "gcloud/x.rs",
    ] {
        place.write(&format!(".docker/gcloud/project/{name}"), "fn x\n");
    }
    let note = "[3 secret-looking files passed over; to search one, name it in path]";
    let grep = async |place: &Place, path: &str, glob: &str| {
        place
            .ok("grep", json!({"pattern": "fn", "path": path, "glob": glob}))
            .await["output"]
            .clone()
    };
    let folder = ".docker/gcloud/project";
    assert_eq!(
        grep(&place, folder, "").await,
        format!("{folder}/deep/lib.rs:1: fn x\n{folder}/main.rs:1: fn x\n{note}")
    );
    // Only what would have been searched counts.
    assert_eq!(
        grep(&place, folder, "main.*").await,
        format!("{folder}/main.rs:1: fn x")
    );
    place.context.directory = place.path(folder);
    assert_eq!(
        grep(&place, "", "").await,
        format!("deep/lib.rs:1: fn x\nmain.rs:1: fn x\n{note}")
    );
    assert_eq!(
        grep(&place, "", "*.pem").await,
        "[1 secret-looking file passed over; to search one, name it in path]"
    );
    assert_eq!(grep(&place, "deep/server.pem", "").await, "deep/server.pem:1: fn x");
}

/// SPEC 4.3: long results are cut at the bound, the same every time, and count everything.
#[tokio::test]
async fn results_are_bounded() {
    let mut place = Place::new();
    for n in 0..300 {
        place.write(&format!("d{}/f{n:03}.txt", n % 7), format!("match {n}\nmatch again\n"));
    }
    let whole_glob = place.text("glob", json!({"pattern": "**/*.txt"})).await;
    let whole_grep = place.text("grep", json!({"pattern": "match"})).await;
    assert_eq!((whole_glob.lines().count(), whole_grep.lines().count()), (300, 600));
    assert!(whole_glob.lines().is_sorted());
    for (tool, arguments, whole, count) in [
        ("glob", json!({"pattern": "**/*.txt"}), whole_glob, 300),
        ("grep", json!({"pattern": "match"}), whole_grep, 600),
    ] {
        place.context.output_bytes_max = whole.len();
        assert_eq!(place.text(tool, arguments.clone()).await, whole);
        place.context.output_bytes_max = 1024;
        let value = place.ok(tool, arguments).await;
        let head = &whole[..1024];
        let newline = if head.ends_with('\n') { "" } else { "\n" };
        let expect = format!(
            "{head}{newline}[Output truncated: showing first 1024 of {} bytes]",
            whole.len()
        );
        assert_eq!(value["output"], expect);
        assert_eq!(value["count"], count);
    }
}

/// SPEC 3.7: a search stops walking when it is cancelled in its midst.
#[tokio::test]
async fn a_search_can_be_cancelled() {
    let place = Place::new();
    let (cancel, receiver) = tokio::sync::watch::channel(false);
    let arguments = json!({"pattern": "nothing has this in it, not even this: [q]{40}", "path": "/"});
    let call = place.call_with("grep", arguments, &aish_tools::NoProgress, receiver);
    let (output, _) = tokio::join!(call, async { cancel.send_replace(true) });
    assert_eq!(output.output, r#"{"error":"Cancelled"}"#);
}
