//! A path that changes between the moment a call is judged and the moment it runs: nothing but what was judged is
//! touched.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod workbench;

use aish_core::action::Action;
use serde_json::{Value, json};
use std::fs::{remove_dir_all, remove_file};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use workbench::Place;

/// A tree with a folder of harmless files, and a secret that must be neither read nor written.
fn tree() -> (Place, tempfile::TempDir) {
    let place = Place::new();
    place.write("tree/in/file", "harmless x\n");
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("file"), "secret x\n").unwrap();
    (place, outside)
}

/// A call of each tool on the file or the folder it is in.
fn calls(place: &Place) -> Vec<Action> {
    let calls: [(&str, Value); 7] = [
        ("file_read", json!({"path": "tree/in/file"})),
        ("file_write", json!({"path": "tree/in/file", "content": "new"})),
        ("file_edit", json!({"path": "tree/in/file", "old": "x", "new": "y"})),
        ("grep", json!({"pattern": "x", "path": "tree/in/file"})),
        ("grep", json!({"pattern": "x", "path": "tree/in"})),
        ("glob", json!({"pattern": "*", "path": "tree/in"})),
        ("glob", json!({"pattern": "in/*", "path": "tree"})),
    ];
    let inspect = |(tool, arguments)| place.inspect(tool, arguments).unwrap();
    calls.into_iter().map(inspect).collect()
}

/// Runs approved calls and expects that each is refused, naming the path as it was written, and that nothing leaked.
async fn expect_refused(place: &Place, actions: &[Action]) {
    for action in actions {
        let output = place.run_approved(action).await;
        let shown = action.arguments["path"].as_str().unwrap();
        assert!(!output.success, "{output:?}");
        let error = serde_json::from_str::<Value>(&output.output).unwrap()["error"].clone();
        let error = error.as_str().unwrap();
        assert!(
            error.starts_with("The path changed while the call was starting: "),
            "{action:?}: {error}"
        );
        assert!(error.contains(shown), "{error} names {shown}");
        assert!(!output.output.contains("secret"), "{output:?}");
    }
}

/// SPEC 3.3: a folder on the approved path is replaced by a link to another place.
#[tokio::test]
async fn a_folder_swapped_for_a_link_is_not_followed() {
    let (place, outside) = tree();
    let actions = calls(&place);
    remove_dir_all(place.path("tree/in")).unwrap();
    symlink(outside.path(), place.path("tree/in")).unwrap();
    expect_refused(&place, &actions).await;
    assert_eq!(
        std::fs::read(outside.path().join("file")).unwrap(),
        b"secret x\n",
        "the file outside is as it was"
    );
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
}

/// SPEC 3.3: a folder higher up is replaced.
#[tokio::test]
async fn a_link_higher_up_is_not_followed() {
    let (place, outside) = tree();
    let actions = calls(&place);
    std::fs::create_dir(outside.path().join("in")).unwrap();
    std::fs::write(outside.path().join("in/file"), "secret x\n").unwrap();
    remove_dir_all(place.path("tree")).unwrap();
    symlink(outside.path(), place.path("tree")).unwrap();
    expect_refused(&place, &actions).await;
    assert_eq!(std::fs::read(outside.path().join("in/file")).unwrap(), b"secret x\n");
}

/// SPEC 3.3: the file itself is replaced by a link; what the link leads to stays as it was.
#[tokio::test]
async fn a_file_swapped_for_a_link_is_not_followed() {
    let (place, outside) = tree();
    let actions: Vec<Action> = calls(&place)
        .into_iter()
        .filter(|action| action.arguments["path"] == "tree/in/file")
        .collect();
    remove_file(place.path("tree/in/file")).unwrap();
    symlink(outside.path().join("file"), place.path("tree/in/file")).unwrap();
    expect_refused(&place, &actions).await;
    assert_eq!(std::fs::read(outside.path().join("file")).unwrap(), b"secret x\n");
}

/// SPEC 3.3: a link that was judged by its target and is then turned elsewhere still means that target.
#[tokio::test]
async fn a_link_turned_elsewhere_means_what_was_approved() {
    let (place, outside) = tree();
    symlink("tree/in", place.path("link")).unwrap();
    let calls = [
        ("file_read", json!({"path": "link/file"})),
        ("grep", json!({"pattern": "x", "path": "link"})),
        ("file_edit", json!({"path": "link/file", "old": "x", "new": "y"})),
        ("file_write", json!({"path": "link/new/file", "content": "made"})),
    ];
    let actions = calls.map(|(tool, arguments)| place.inspect(tool, arguments).unwrap());
    remove_file(place.path("link")).unwrap();
    symlink(outside.path(), place.path("link")).unwrap();
    for action in &actions {
        let output = place.run_approved(action).await;
        assert!(output.success && !output.output.contains("secret"), "{output:?}");
    }
    assert_eq!(place.read("tree/in/file"), b"harmless y\n");
    assert_eq!(place.read("tree/in/new/file"), b"made");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
}

/// SPEC 3.3: a new file is not made where a link has appeared since.
#[tokio::test]
async fn a_link_in_the_place_of_a_missing_file_is_not_followed() {
    let (place, outside) = tree();
    let write = |path: &str| {
        place
            .inspect("file_write", json!({"path": path, "content": "x"}))
            .unwrap()
    };
    let actions = [write("tree/new"), write("tree/made/new")];
    let target: PathBuf = outside.path().join("planted");
    symlink(&target, place.path("tree/new")).unwrap();
    symlink(outside.path(), place.path("tree/made")).unwrap();
    expect_refused(&place, &actions).await;
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
}

/// SPEC 3.7: a FIFO in the place of a file hangs nobody.
#[tokio::test]
async fn a_file_swapped_for_a_fifo_is_refused() {
    let (place, _outside) = tree();
    let actions = calls(&place);
    remove_file(place.path("tree/in/file")).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(place.path("tree/in/file"))
        .status();
    assert!(made.unwrap().success());
    for action in actions
        .iter()
        .filter(|action| action.arguments["path"] == "tree/in/file")
    {
        let output = place.run_approved(action).await;
        assert_eq!(
            output.output, r#"{"error":"Not a regular file: tree/in/file"}"#,
            "{action:?}"
        );
    }
}
