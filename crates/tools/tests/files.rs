//! `file_read`, `file_write` and `file_edit` on real files, links and devices.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod workbench;

use aish_core::action::Effect;
use serde_json::json;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use workbench::Place;

/// SPEC 4: `file_read` gives the contents, or the lines asked for.
#[tokio::test]
async fn reads_a_file_or_some_lines() {
    let place = Place::new();
    place.write("f", "one\ntwo\r\nthree\nfour");
    let read = async |arguments| place.text("file_read", arguments).await;
    assert_eq!(read(json!({"path": "f"})).await, "one\ntwo\r\nthree\nfour");
    assert_eq!(
        read(json!({"path": "f", "offset": 2, "limit": 2})).await,
        "two\r\nthree\n"
    );
    assert_eq!(read(json!({"path": "f", "offset": 4})).await, "four");
    assert_eq!(read(json!({"path": "f", "offset": 9})).await, "");
    assert_eq!(read(json!({"path": "f", "offset": 0, "limit": 1})).await, "one\n");
    assert_eq!(
        place.call("file_read", json!({"path": "f"})).await.output,
        r#"{"output":"one\ntwo\r\nthree\nfour"}"#
    );
    assert_eq!(
        place.call("file_read", json!({"path": "f"})).await.summary,
        "read 4 lines of f"
    );
    place.write("empty", "");
    assert_eq!(read(json!({"path": "empty"})).await, "");
}

/// SPEC 4.2: text in other encodings is read, what is no text is named.
#[tokio::test]
async fn reads_other_encodings() {
    let place = Place::new();
    place.write("utf16", b"\xFF\xFEh\0\xE4\0\n\0");
    place.write("latin", b"h\xE4\n");
    place.write("bom", b"\xEF\xBB\xBFh\xC3\xA4\n");
    place.write("image.txt", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0");
    for name in ["utf16", "latin", "bom"] {
        assert_eq!(place.text("file_read", json!({"path": name})).await, "hä\n", "{name}");
    }
    let error = place.error("file_read", json!({"path": "image.txt"})).await;
    assert_eq!(error, "Not a text file: image.txt (18 bytes, image/png)");
}

/// SPEC 4.2: errors name the thing, and come before anybody is asked.
#[tokio::test]
async fn read_errors_name_the_thing() {
    let place = Place::new();
    std::fs::create_dir(place.path("folder")).unwrap();
    place.write("file", "x");
    let inspect = |path: &str| place.inspect("file_read", json!({"path": path})).unwrap_err();
    assert_eq!(inspect("nope"), "File not found: nope");
    assert_eq!(inspect("folder"), "Is a directory: folder");
    assert_eq!(inspect("file/x"), "Not a directory: file/x");
    assert_eq!(inspect("/dev/null"), "Not a regular file: /dev/null");
}

/// SPEC 4.2: a FIFO nobody writes to does not hang a read.
#[tokio::test]
async fn a_fifo_is_refused() {
    let place = Place::new();
    let made = std::process::Command::new("mkfifo")
        .arg(place.path("fifo"))
        .status()
        .unwrap();
    assert!(made.success());
    for (tool, arguments) in [
        ("file_read", json!({"path": "fifo"})),
        ("grep", json!({"pattern": "x", "path": "fifo"})),
        ("file_write", json!({"path": "fifo", "content": "x"})),
        ("file_edit", json!({"path": "fifo", "old": "x", "new": "y"})),
    ] {
        assert_eq!(place.error(tool, arguments).await, "Not a regular file: fifo", "{tool}");
    }
}

/// SPEC 4.3: exactly at the limit is unchanged; one byte more is cut and says so, in one piece or in many.
#[tokio::test]
async fn long_files_are_cut() {
    let mut place = Place::new();
    for bytes_max in [1024, 65_536, 200_000] {
        place.context.output_bytes_max = bytes_max;
        let exact = "x".repeat(bytes_max);
        place.write("exact", &exact);
        place.write("over", format!("{exact}y"));
        assert_eq!(place.text("file_read", json!({"path": "exact"})).await, exact);
        let expect = format!(
            "{exact}\n[Output truncated: showing first {bytes_max} of {} bytes]",
            bytes_max + 1
        );
        assert_eq!(place.text("file_read", json!({"path": "over"})).await, expect);
    }
    // A file with a hole is a terabyte long and read in no time; nothing but its start is looked at.
    let file = std::fs::File::create(place.path("huge")).unwrap();
    std::io::Write::write_all(&mut &file, "ä".repeat(200_000).as_bytes()).unwrap();
    file.set_len(1 << 40).unwrap();
    place.context.output_bytes_max = 1025;
    let text = place.text("file_read", json!({"path": "huge"})).await;
    let tail = format!("\n[Output truncated: showing first 1024 of {} bytes]", 1u64 << 40);
    assert_eq!(text, format!("{}{tail}", "ä".repeat(512)));
}

/// SPEC 4.2: files of the kernel, which have no size, are read all the same.
#[tokio::test]
async fn files_without_a_size_are_read() {
    let place = Place::new();
    let text = place.text("file_read", json!({"path": "/proc/self/status"})).await;
    assert!(text.starts_with("Name:"), "{text}");
}

/// SPEC 4: `file_write` makes a file and the folders above it.
#[tokio::test]
async fn writes_a_new_file() {
    let place = Place::new();
    let output = place
        .call("file_write", json!({"path": "a/b/c.txt", "content": "grün"}))
        .await;
    assert_eq!(output.output, r#"{"output":"Wrote 5 bytes to a/b/c.txt","bytes":5}"#);
    assert_eq!(output.summary, "wrote 5 bytes to a/b/c.txt");
    assert_eq!(place.read("a/b/c.txt"), "grün".as_bytes());
    assert_eq!(place.names("a/b"), ["c.txt"]);
    let action = place
        .inspect("file_write", json!({"path": "new", "content": ""}))
        .unwrap();
    assert_eq!(
        action.effects,
        [Effect::Write {
            path: place.path("new")
        }]
    );
}

/// SPEC 4: a write replaces the file in one step, keeps its mode, and a reader keeps the old contents.
#[tokio::test]
async fn a_write_is_atomic_and_keeps_the_mode() {
    const AGAIN: &str = "AISH_TEST_UNPRIVILEGED";
    if rustix::process::getuid().is_root() && std::env::var_os(AGAIN).is_none() {
        // Writing takes the set-user-id bit from a file of anybody's but root.
        assert_passes_as_nobody("a_write_is_atomic_and_keeps_the_mode", AGAIN);
    }
    let place = Place::new();
    let path = place.write("script", "old");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o4751)).unwrap();
    let before = std::fs::metadata(&path).unwrap();
    let reader = std::fs::File::open(&path).unwrap();
    place
        .ok("file_write", json!({"path": "script", "content": "new"}))
        .await;
    let after = std::fs::metadata(&path).unwrap();
    assert_eq!(std::io::read_to_string(reader).unwrap(), "old");
    assert_eq!(after.permissions().mode() & 0o7777, 0o4751);
    assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
    assert_ne!(after.ino(), before.ino());
    assert_eq!(place.names("."), ["script"]);
}

/// SPEC 4: nobody can read what replaces a private file, at no moment.
#[tokio::test]
async fn what_replaces_a_private_file_is_private_from_the_start() {
    const WRITES_MAX: usize = 200;
    let place = Place::new();
    let path = place.write("key", "old");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let is_done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let modes = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let watch = {
        let (folder, is_done, modes) = (place.context.directory.clone(), is_done.clone(), modes.clone());
        move || {
            while !is_done.load(std::sync::atomic::Ordering::Relaxed) {
                for entry in std::fs::read_dir(&folder).unwrap().flatten() {
                    let is_temporary = entry.file_name().to_string_lossy().starts_with(".aish-");
                    if let Some(metadata) = entry.metadata().ok().filter(|_| is_temporary) {
                        modes.lock().unwrap().push(metadata.mode() & 0o777);
                    }
                }
            }
        }
    };
    let watcher = std::thread::spawn(watch);
    let content = "secret\n".repeat(1 << 19);
    for _ in 0..WRITES_MAX {
        place.ok("file_write", json!({"path": "key", "content": content})).await;
        if !modes.lock().unwrap().is_empty() {
            break;
        }
    }
    is_done.store(true, std::sync::atomic::Ordering::Relaxed);
    watcher.join().unwrap();
    let modes: Vec<String> = modes.lock().unwrap().iter().map(|mode| format!("{mode:o}")).collect();
    assert!(!modes.is_empty(), "the temporary file was seen");
    assert!(modes.iter().all(|mode| mode == "600"), "{modes:?}");
}

/// SPEC 4.6: a link stays a link; what it leads to changes, even if it was not there.
#[tokio::test]
async fn writes_go_through_links() {
    let place = Place::new();
    place.write("tree/real", "old");
    symlink("tree/real", place.path("link")).unwrap();
    symlink("tree/later", place.path("dangling")).unwrap();
    for (link, target) in [("link", "tree/real"), ("dangling", "tree/later")] {
        let action = place
            .inspect("file_write", json!({"path": link, "content": "new"}))
            .unwrap();
        assert_eq!(
            action.effects,
            [Effect::Write {
                path: place.path(target)
            }]
        );
        place.ok("file_write", json!({"path": link, "content": "new"})).await;
        assert!(place.path(link).is_symlink());
        assert_eq!(place.read(target), b"new");
    }
}

/// SPEC 4.2: a full device, a folder and a file in the way are named.
#[tokio::test]
async fn write_errors_name_the_thing() {
    let place = Place::new();
    std::fs::create_dir(place.path("folder")).unwrap();
    place.write("file", "kept");
    let write = async |path: &str| place.error("file_write", json!({"path": path, "content": "x"})).await;
    assert_eq!(write("folder").await, "Is a directory: folder");
    assert_eq!(write("new/").await, "Is a directory: new/");
    assert_eq!(write("file/x").await, "Not a directory: file/x");
    assert_eq!(write("/dev/full").await, "No space left on device: /dev/full");
    assert_eq!(write("/proc/nope").await, "File not found: /proc/nope");
    assert_eq!(
        write(&"n".repeat(300)).await,
        format!("File name too long: {}", "n".repeat(300))
    );
    assert!(
        std::fs::metadata("/dev/full").unwrap().file_type().is_symlink() || std::path::Path::new("/dev/full").exists()
    );
    let full = std::fs::metadata("/dev/full").unwrap();
    assert!(
        std::os::unix::fs::FileTypeExt::is_char_device(&full.file_type()),
        "the device is still one"
    );
    assert_eq!(place.read("file"), b"kept");
}

/// SPEC 4.2: what we may not touch is named and left alone. Root may touch everything, so there the program runs again
/// as nobody.
#[tokio::test]
async fn permission_errors_name_the_thing() {
    const AGAIN: &str = "AISH_TEST_UNPRIVILEGED";
    if rustix::process::getuid().is_root() && std::env::var_os(AGAIN).is_none() {
        assert_passes_as_nobody("permission_errors_name_the_thing", AGAIN);
        return;
    }
    let place = Place::new();
    let set_mode = |name: &str, mode| {
        std::fs::set_permissions(place.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    place.write("unreadable", "x");
    place.write("readonly", "x");
    place.write("closed/file", "x");
    place.write("sealed/file", "x");
    set_mode("unreadable", 0);
    set_mode("readonly", 0o444);
    set_mode("closed", 0);
    set_mode("sealed", 0o555);
    for (tool, arguments, expect) in [
        (
            "file_read",
            json!({"path": "unreadable"}),
            "Permission denied: unreadable",
        ),
        (
            "grep",
            json!({"path": "unreadable", "pattern": "x"}),
            "Permission denied: unreadable",
        ),
        (
            "file_read",
            json!({"path": "closed/file"}),
            "Permission denied: closed/file",
        ),
        (
            "grep",
            json!({"path": "closed", "pattern": "x"}),
            "Permission denied: closed",
        ),
        (
            "file_write",
            json!({"path": "readonly", "content": "y"}),
            "Permission denied: readonly",
        ),
        (
            "file_edit",
            json!({"path": "readonly", "old": "x", "new": "y"}),
            "Permission denied: readonly",
        ),
        (
            "file_write",
            json!({"path": "sealed/file", "content": "y"}),
            "Permission denied: sealed/file",
        ),
        (
            "file_write",
            json!({"path": "sealed/new/file", "content": "y"}),
            "Permission denied: sealed/new/file",
        ),
    ] {
        assert_eq!(place.error(tool, arguments).await, expect, "{tool}");
    }
    set_mode("closed", 0o755);
    set_mode("sealed", 0o755);
    assert_eq!(place.read("readonly"), b"x");
    assert_eq!(place.read("sealed/file"), b"x");
}

/// Runs one test of this program again without privileges, from a copy that everybody may execute.
fn assert_passes_as_nobody(test: &str, mark: &str) {
    const NOBODY: &str = "65534";
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let copy = folder.path().join("test");
    std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o755)).unwrap();
    let output = std::process::Command::new("setpriv")
        .args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"])
        .arg(&copy)
        .args([test, "--exact"])
        .env(mark, "1")
        .env("TMPDIR", folder.path())
        .current_dir(folder.path())
        .output()
        .expect("setpriv (util-linux) runs the test without privileges");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// SPEC 10.5: a write that carries a redaction placeholder is refused before anybody is asked.
#[tokio::test]
async fn placeholders_are_not_written() {
    let place = Place::new();
    place.write("f", "key = abc\n");
    for (tool, arguments) in [
        (
            "file_write",
            json!({"path": "f", "content": "key = [redacted:api-key]\n"}),
        ),
        (
            "file_edit",
            json!({"path": "f", "old": "abc", "new": "[redacted:api-key]"}),
        ),
    ] {
        let error = place.inspect(tool, arguments).unwrap_err();
        assert!(error.contains("redaction placeholder"), "{error}");
    }
    assert_eq!(place.read("f"), b"key = abc\n");
}

/// SPEC 4: `file_edit` replaces once, and shows the difference.
#[tokio::test]
async fn edits_once_and_shows_the_difference() {
    let place = Place::new();
    place.write("f.rs", "a\nb\nc\nd\ne\nf\n");
    let output = place
        .call("file_edit", json!({"path": "f.rs", "old": "e\n", "new": "E\nEE\n"}))
        .await;
    let value: serde_json::Value = serde_json::from_str(&output.output).unwrap();
    assert_eq!(value["replacements"], 1);
    assert_eq!(
        value["output"],
        "--- f.rs\n+++ f.rs\n@@ -2,5 +2,6 @@\n b\n c\n d\n-e\n+E\n+EE\n f\n"
    );
    assert_eq!(output.summary, "1 replacement in f.rs");
    assert_eq!(place.read("f.rs"), b"a\nb\nc\nd\nE\nEE\nf\n");
}

/// SPEC 4: several places are an error unless all are meant; none is always one.
#[tokio::test]
async fn edits_must_be_unique_or_all() {
    let place = Place::new();
    place.write("f", "x = 1\n  y = 1\n");
    let error = place
        .error("file_edit", json!({"path": "f", "old": "1", "new": "2"}))
        .await;
    assert!(error.starts_with("Text occurs 2 times in f:"), "{error}");
    let error = place
        .error("file_edit", json!({"path": "f", "old": "z", "new": "2"}))
        .await;
    assert!(error.starts_with("Text not found in f:"), "{error}");
    let error = place
        .error("file_edit", json!({"path": "f", "old": "y = 1\nz", "new": "2"}))
        .await;
    assert!(error.starts_with("Text not found in f. Line 2 is like"), "{error}");
    assert_eq!(place.read("f"), b"x = 1\n  y = 1\n");
    let value = place
        .ok("file_edit", json!({"path": "f", "old": "1", "new": "2", "all": true}))
        .await;
    assert_eq!(value["replacements"], 2);
    assert_eq!(place.read("f"), b"x = 2\n  y = 2\n");
}

/// SPEC 4: line ends, encoding and mark of the file stay as they were.
#[tokio::test]
async fn edits_keep_line_ends_and_encoding() {
    let place = Place::new();
    let check = async |before: &[u8], old: &str, new: &str, after: &[u8]| {
        place.write("f", before);
        place
            .ok("file_edit", json!({"path": "f", "old": old, "new": new}))
            .await;
        assert_eq!(place.read("f"), after, "{}", before.escape_ascii());
    };
    check(b"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", b"x\r\ny\r\nz\r\nc\r\n").await;
    check(b"a\r\nb\r\n", "b", "b\nc", b"a\r\nb\r\nc\r\n").await;
    check(b"a\r\nb\r\nc\n", "a\nb", "x\ny", b"x\r\ny\r\nc\n").await;
    check(b"a\r\nb\r\nc\n", "c\n", "d\n", b"a\r\nb\r\nd\n").await;
    check(b"\xEF\xBB\xBFa\n", "a", "\u{e4}", b"\xEF\xBB\xBF\xC3\xA4\n").await;
    check(b"\xFF\xFEa\0\n\0", "a", "\u{e4}", b"\xFF\xFE\xE4\0\n\0").await;
    check(b"\xE4 a\n", "a", "\u{fc}", b"\xE4 \xFC\n").await;
    let error = place
        .error("file_edit", json!({"path": "f", "old": "\u{fc}", "new": "\u{65e5}"}))
        .await;
    assert!(error.starts_with("Parameter new has characters"), "{error}");
    place.write("f", b"ok \xC3\xA4\xC3\xA4 broken \xFF\n");
    let error = place
        .error("file_edit", json!({"path": "f", "old": "ok", "new": "no"}))
        .await;
    assert_eq!(error, "Not a text file: f (17 bytes, mixed encodings)");
}

/// SPEC 3.7: a call that was cancelled before it did anything changes nothing.
#[tokio::test]
async fn a_cancelled_write_does_nothing() {
    let place = Place::new();
    let (_cancel, receiver) = tokio::sync::watch::channel(true);
    for (tool, arguments) in [
        ("file_write", json!({"path": "f", "content": "x"})),
        ("bash", json!({"command": "echo > f"})),
    ] {
        let output = place
            .call_with(tool, arguments, &aish_tools::NoProgress, receiver.clone())
            .await;
        assert_eq!(output.output, r#"{"error":"Cancelled"}"#);
        assert!(!place.path("f").exists());
    }
}
