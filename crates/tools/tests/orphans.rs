//! What a process that runs commands leaves behind, whether it ends or is killed.
//!
//! Each test runs this program again as the process in question, so that killing it kills no test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod workbench;

use serde_json::json;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use workbench::Place;

/// Where the other process writes what it started; its presence tells that this is the other process.
const FOLDER: &str = "AISH_TEST_ORPHANS";
/// Only bounds a hang.
const WAIT: Duration = Duration::from_secs(30);

/// Starts one test of this program as a process of its own.
fn again(test: &str, folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(FOLDER, folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + WAIT;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn ids(folder: &Path) -> Vec<i32> {
    let text = std::fs::read_to_string(folder.join("ids")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// The state of a process and its parent; none for one that is gone.
fn stat(id: i32) -> Option<(char, i32)> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

fn is_alive(id: i32) -> bool {
    stat(id).is_some_and(|(state, _)| state != 'Z')
}

fn children_of(parent: u32) -> Vec<i32> {
    let all = std::fs::read_dir("/proc").unwrap();
    let ids = all.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse::<i32>().ok());
    ids.filter(|id| stat(*id).is_some_and(|(_, of)| u32::try_from(of) == Ok(parent)))
        .collect()
}

/// SPEC 12: no orphan after `kill -9`: not the shell, not its children in the background, not those that ignore signals
/// or have left the group, and not the process that ended them.
#[tokio::test]
async fn a_killed_process_leaves_no_command() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let command = "echo $$ >> ids; sleep 300 & echo $! >> ids; (trap '' TERM; echo $BASHPID >> ids; sleep 300; sleep 300) & \
                       setsid bash -c 'echo $$ >> ids; exec sleep 300' & (setsid sleep 300 & echo $! >> ids) & \
                       wait; sleep 300";
        let mut place = Place::new();
        place.context.directory = folder.into();
        place.ok("bash", json!({"command": "true"})).await;
        let started = place.call("bash", json!({"command": command, "timeout_s": 600})).await;
        panic!("it was to be killed: {started:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut other = again("a_killed_process_leaves_no_command", folder.path());
    eventually("the command starts", || ids(folder.path()).len() == 5);
    let watchers = children_of(other.id());
    assert_eq!(watchers.len(), 2, "the command and the watcher");
    other.kill().unwrap();
    other.wait().unwrap();
    let ids = ids(folder.path());
    eventually("every process of the command ends", || {
        !ids.iter().any(|id| is_alive(*id))
    });
    eventually("the watcher ends", || !watchers.iter().any(|id| is_alive(*id)));
}

/// SPEC 12: a process that ends leaves nothing, and nothing is ended that was not its own to end.
#[tokio::test]
async fn a_process_that_ends_leaves_nothing() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let mut place = Place::new();
        place.context.directory = folder.clone().into();
        place.ok("bash", json!({"command": "true"})).await;
        let watcher = children_of(std::process::id())[0];
        let pipe = std::fs::read_link(format!("/proc/{watcher}/fd/0")).unwrap();
        // Whoever held it too would keep the watcher from seeing the end.
        let files = place
            .text("bash", json!({"command": "readlink /proc/$$/fd/*; :"}))
            .await;
        assert!(files.starts_with("/dev/null\n"), "{files}");
        assert!(!files.contains(pipe.to_str().unwrap()), "{files} has {pipe:?}");
        place
            .ok("bash", json!({"command": "sleep 300", "background": true}))
            .await;
        assert_eq!(children_of(std::process::id()).len(), 2, "the job and the watcher");
        drop(place);
        eventually("nothing is left", || children_of(std::process::id()).is_empty());
        std::fs::write(Path::new(&folder).join("done"), "").unwrap();
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut other = again("a_process_that_ends_leaves_nothing", folder.path());
    assert!(other.wait().unwrap().success());
    assert!(folder.path().join("done").exists());
}

/// SPEC 12: a watcher that somebody ended or stopped holds nothing up, and the next command has a new one.
#[tokio::test]
async fn a_watcher_that_is_gone_is_replaced() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let mut place = Place::new();
        place.context.directory = folder.into();
        for signal in ["KILL", "STOP"] {
            place.ok("bash", json!({"command": "true"})).await;
            let watchers = children_of(std::process::id());
            assert_eq!(watchers.len(), 1);
            let killed = Command::new("kill")
                .args(["-s", signal, &watchers[0].to_string()])
                .status();
            assert!(killed.unwrap().success());
            for _ in 0..3 {
                assert_eq!(place.text("bash", json!({"command": "echo x"})).await, "x\n");
            }
            if signal == "KILL" {
                let now = children_of(std::process::id());
                assert!(now.len() == 1 && now != watchers, "{now:?} after {watchers:?}");
            }
        }
        std::fs::write(place.path("done"), "").unwrap();
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut other = again("a_watcher_that_is_gone_is_replaced", folder.path());
    assert!(other.wait().unwrap().success());
    assert!(folder.path().join("done").exists());
}
