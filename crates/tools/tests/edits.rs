//! `file_edit` on files that are large, that claim to be small, or that an edit would make large.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod workbench;

use serde_json::json;
use workbench::Place;

/// The largest file that is edited.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// What one call may take over what the process holds already.
const MEMORY_BYTES_MAX: u64 = 96 * 1024 * 1024;

/// SPEC 12: an edit that would fill the memory is refused before any of it is made.
#[tokio::test]
async fn an_edit_that_grows_without_bound_is_refused() {
    let place = Place::new();
    let before = "a".repeat(1 << 20);
    place.write("f", &before);
    let new = "b".repeat(1 << 20);
    let error = place
        .error("file_edit", json!({"path": "f", "old": "a", "new": new, "all": true}))
        .await;
    assert_eq!(
        error,
        format!(
            "The edit would make f too large (1048576 replacements make it {} bytes, at most {FILE_BYTES_MAX})",
            1u64 << 40
        )
    );
    assert_eq!(place.read("f"), before.as_bytes());
    // Exactly at the bound is done.
    place.write("f", "x".repeat(1 << 23));
    let value = place
        .ok("file_edit", json!({"path": "f", "old": "x", "new": "yy", "all": true}))
        .await;
    assert_eq!(value["replacements"], 1 << 23);
    assert_eq!(std::fs::metadata(place.path("f")).unwrap().len(), FILE_BYTES_MAX);
}

/// SPEC 12: a file that is too long is named with its length; one of the kernel's that claims none is read to the bound.
#[tokio::test]
async fn files_that_are_too_long_are_refused() {
    let place = Place::new();
    let file = std::fs::File::create(place.path("huge")).unwrap();
    file.set_len(FILE_BYTES_MAX + 1).unwrap();
    let edit = async |path: &str| {
        place
            .error("file_edit", json!({"path": path, "old": "a", "new": "b"}))
            .await
    };
    assert_eq!(
        edit("huge").await,
        format!(
            "File too large to edit: huge ({} bytes, at most {FILE_BYTES_MAX})",
            FILE_BYTES_MAX + 1
        )
    );
    // As long as the address space: hundreds of gigabytes of entries.
    let endless = "/proc/self/pagemap";
    assert_eq!(
        edit(endless).await,
        format!("File too large to edit: {endless} (at most {FILE_BYTES_MAX})")
    );
}

/// SPEC 12: the largest edit stays well within the memory a call may take, in one place or in millions.
#[tokio::test]
async fn large_edits_are_bounded_in_memory() {
    let place = Place::new();
    for (line, all) in [("a line like many others\n", false), ("x\n", true)] {
        let last = "the only one of its kind\n";
        let count = (usize::try_from(FILE_BYTES_MAX).unwrap() - last.len()) / line.len();
        place.write("f", line.repeat(count) + last);
        let arguments = match all {
            true => json!({"path": "f", "old": "x", "new": "y", "all": true}),
            false => json!({"path": "f", "old": "only", "new": "sole"}),
        };
        std::fs::write("/proc/self/clear_refs", "5").expect("the peak can be set back");
        let before = memory_bytes("VmRSS:");
        let value = place.ok("file_edit", arguments).await;
        let peak = memory_bytes("VmHWM:") - before;
        assert!(
            peak < MEMORY_BYTES_MAX,
            "{peak} bytes for {} replacements",
            value["replacements"]
        );
        let text = value["output"].as_str().unwrap();
        match all {
            true => assert!(
                text.contains("[Output truncated: showing first 1048576 of "),
                "{} bytes",
                text.len()
            ),
            false => assert!(
                text.contains(&format!("@@ -{0},4 +{0},4 @@\n", count - 2))
                    && text.ends_with("+the sole one of its kind\n"),
                "{text}"
            ),
        }
    }
}

fn memory_bytes(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}
