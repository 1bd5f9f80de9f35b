//! Servers that are child processes, good and bad: what is heard of them, and that nothing of them is left.
//!
//! Each bad server is a few lines of Python or shell, written where it is used.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "stdio/bench.rs"]
mod bench;

use aish_core::secret::Secret;
use aish_mcp::stdio::{Child, LINE_BYTES_MAX, TOO_LARGE_CODE};
use aish_mcp::{Alias, ErrorKind, StdioEndpoint};
use bench::{Bench, children, eventually, is_alive, ping, python, resident_bytes, sh};
use rmcp::model::ServerJsonRpcMessage;
use rmcp::transport::Transport;
use std::sync::Arc;

/// Answers every request at once.
const GOOD: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"said": message["method"]}}), flush=True)
"#;

/// SPEC 6.6: banners, logs and other nonsense on stdout are passed over and noted, escaped; the reply is heard.
#[tokio::test]
async fn garbage_on_stdout() {
    let bench = Bench::new();
    let garbage = r#"
import sys
print("Server ready \x1b[2J on stdio\r")
print('{"level": "info"}')
print(flush=True)
sys.stdout.buffer.write(b"\xff\xfe{\n")
"#;
    let mut child = bench.start(&python(&format!("{garbage}{GOOD}"))).await;
    child.send(ping(1)).await.unwrap();
    assert_eq!(bench::response_id(child.receive().await), Some(1));
    let notes = bench.notes();
    assert_eq!(notes.len(), 3, "{notes:?}");
    assert_eq!(
        notes.first().unwrap(),
        r"passed over, not JSON: Server ready \x1b[2J on stdio"
    );
    child.close().await.unwrap();
}

/// SPEC 6.6: however much garbage there is, the notes about it are few.
#[tokio::test]
async fn a_flood_of_garbage() {
    let bench = Bench::new();
    let mut child = bench.start(&python(&format!("print('x\\n' * 100_000)\n{GOOD}"))).await;
    child.send(ping(1)).await.unwrap();
    assert_eq!(bench::response_id(child.receive().await), Some(1));
    assert_eq!(bench.notes().len(), 100);
    child.close().await.unwrap();
}

/// SPEC 12: 100 MB without a line end are not kept; the reply they were is answered for, and the next one is heard.
#[tokio::test]
async fn an_endless_line() {
    let flood = r#"
import sys
sys.stdin.readline()
sys.stdout.write('{"jsonrpc": "2.0", "id": 1, "result": {"text": "')
for _ in range(100):
    sys.stdout.write("x" * 1_000_000)
print('"}}', flush=True)
"#;
    let bench = Bench::new();
    let before = resident_bytes();
    let mut child = bench.start(&python(&format!("{flood}{GOOD}"))).await;
    child.send(ping(1)).await.unwrap();
    match child.receive().await {
        Some(ServerJsonRpcMessage::Error(error)) => assert_eq!(error.error.code.0, TOO_LARGE_CODE),
        other => panic!("{other:?}"),
    }
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 4 * LINE_BYTES_MAX, "{grown} bytes");
    child.send(ping(2)).await.unwrap();
    assert_eq!(bench::response_id(child.receive().await), Some(2));
    child.close().await.unwrap();
}

/// SPEC 6.6: several messages in one array, then one in the last line, which has no line end.
#[tokio::test]
async fn a_batch_and_an_unended_line() {
    let bench = Bench::new();
    let mut child = bench
        .start(&python(
            r#"
reply = '{"jsonrpc": "2.0", "id": %d, "result": {}}'
print("[" + reply % 1 + "," + reply % 2 + "]\r\n" + reply % 3, end="")
"#,
        ))
        .await;
    for id in 1..=3 {
        assert_eq!(bench::response_id(child.receive().await), Some(id));
    }
    assert!(child.receive().await.is_none());
    assert!(bench.notes().is_empty());
}

/// SPEC 6.6: a server that dies during a call ends the connection, and says how and why.
#[tokio::test]
async fn dies_during_a_call() {
    let bench = Bench::new();
    let mut child = bench
        .start(&python(
            "import sys\nsys.stdin.readline()\nprint('no\\ndisk \\x1b[2Jfull', file=sys.stderr)\nsys.exit(3)",
        ))
        .await;
    child.send(ping(1)).await.unwrap();
    assert!(child.receive().await.is_none());
    let process = Arc::clone(child.process());
    process.over().await;
    let error = process.why();
    assert_eq!(error.kind, ErrorKind::Closed);
    assert_eq!(
        error.message,
        "its program ended (exit status: 3); it said: no | disk \u{1b}[2Jfull"
    );
    assert_eq!(bench.stderr(), ["no", "disk \u{1b}[2Jfull"]);
    eventually("no zombie", || children().is_empty());
    assert!(child.send(ping(2)).await.is_err(), "nobody reads it");
}

/// SPEC 6.6: a server that ends while others of its processes hold its output ends the connection too.
#[tokio::test]
async fn dies_and_leaves_its_output_open() {
    let bench = Bench::new();
    let mut child = bench.start(&sh("sleep 300 & exit 7")).await;
    assert!(child.receive().await.is_none());
    assert_eq!(child.process().why().message, "its program ended (exit status: 7)");
    eventually("no child", || children().is_empty());
}

/// SPEC 6.6: a server that closes its output and runs on is ended.
#[tokio::test]
async fn closes_its_output() {
    let bench = Bench::new();
    let mut child = bench.start(&sh("exec >&-; sleep 300")).await;
    assert!(child.receive().await.is_none());
    child.process().over().await;
    assert_eq!(child.process().why().message, "it closed its output");
    eventually("no child", || children().is_empty());
}

/// SPEC 12: one that ends with its input is not signalled; one that does not is asked; one that will not is killed.
#[tokio::test]
async fn ends_of_servers() {
    let bench = Bench::new();
    let folder = tempfile::tempdir().unwrap();
    let told = folder.path().join("told");
    let write = |word: &str| format!("echo {word} >> {}", told.display());
    let ready = "echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}'";
    for (script, expect) in [
        (
            format!(
                "trap '{}' TERM; {ready}; read -r x; {}",
                write("signal"),
                write("input")
            ),
            "input\n",
        ),
        (
            format!(
                "trap '{}; exit' TERM; {ready}; while :; do sleep 0.01; done",
                write("signal")
            ),
            "signal\n",
        ),
        (
            format!(
                "trap '{}' TERM; {ready}; while :; do sleep 0.01; done",
                write("ignored")
            ),
            "ignored\n",
        ),
    ] {
        let mut child = bench.start(&sh(&script)).await;
        assert_eq!(bench::response_id(child.receive().await), Some(1));
        child.close().await.unwrap();
        assert_eq!(std::fs::read_to_string(&told).unwrap_or_default(), expect);
        assert!(children().is_empty(), "nothing is left when closing returns");
        assert!(child.process().why().message.starts_with("it was closed"));
        std::fs::remove_file(&told).unwrap();
    }
}

/// SPEC 12: what a server started ends with it, also in a session of its own and when it ignores being asked.
#[tokio::test]
async fn grandchildren_end() {
    let script = "setsid sh -c 'trap \"\" TERM; echo $$ >&2; while :; do sleep 1; done' & \
                  (setsid sh -c 'echo $$ >&2; exec sleep 300' &) ; cat";
    let ids = |bench: &Bench| -> Vec<i32> { bench.stderr().iter().filter_map(|line| line.parse().ok()).collect() };
    let bench = Bench::new();
    let mut child = bench.start(&sh(script)).await;
    eventually("they start", || ids(&bench).len() == 2);
    child.close().await.unwrap();
    assert!(!ids(&bench).into_iter().any(is_alive));

    // And when nobody closes it.
    let bench = Bench::new();
    let child = bench.start(&sh(script)).await;
    eventually("they start", || ids(&bench).len() == 2);
    drop(child);
    eventually("they end", || !ids(&bench).into_iter().any(is_alive));
    eventually("no child", || children().is_empty());
}

/// SPEC 12: a server ends though the runtime that it was spoken to from is gone.
#[test]
fn without_its_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let bench = Bench::new();
    let script = "trap '' TERM; echo $$ >&2; while :; do sleep 1; done";
    let child = runtime.block_on(bench.start(&sh(script)));
    eventually("it starts", || bench.stderr().len() == 1);
    runtime.shutdown_background();
    drop(child);
    eventually("no child", || children().is_empty());
}

/// SPEC 6.11: its environment is what was given, and the tag by which its processes are found; nothing of ours.
#[tokio::test]
async fn its_environment_and_directory() {
    let bench = Bench::new();
    let folder = tempfile::tempdir().unwrap();
    let script = "import os, sys\nprint(os.getcwd(), file=sys.stderr)\n\
                  print(open('/proc/self/environ').read().replace('\\0', '\\n'), file=sys.stderr)";
    let mut endpoint = python(script);
    endpoint.environment.push(("GREETING".to_owned(), Secret::new("a b=c")));
    endpoint.directory = folder.path().canonicalize().unwrap();
    let mut child = bench.start(&endpoint).await;
    assert!(child.receive().await.is_none());
    child.process().over().await;
    let mut lines = bench.stderr();
    assert_eq!(lines.remove(0), endpoint.directory.display().to_string());
    lines.sort();
    let [tag, rest @ ..] = lines.as_slice() else {
        panic!("{lines:?}")
    };
    assert!(tag.starts_with("AISH_CALL="), "{lines:?}");
    assert_eq!(rest, ["GREETING=a b=c", &format!("PATH={}", bench::PATH)]);
}

/// SPEC 10.4: what cannot be started says what to do.
#[tokio::test]
async fn what_cannot_be_started() {
    let bench = Bench::new();
    let alias = Alias::parse("bad").unwrap();
    let failure = async |endpoint: StdioEndpoint| {
        let error = Child::start(&alias, &endpoint, bench.host()).await.err().unwrap();
        assert_eq!(error.kind, ErrorKind::Unreachable);
        error.message
    };
    let command = |command: &[&str]| StdioEndpoint {
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        ..sh("")
    };
    let missing = failure(command(&["no-such-server", "--stdio"])).await;
    assert_eq!(missing, "cannot start no-such-server: not found; is it installed?");
    let refused = failure(command(&["/etc/passwd"])).await;
    assert_eq!(
        refused,
        "cannot start /etc/passwd: permission denied; may it be executed?"
    );
    let mut nowhere = sh("true");
    nowhere.directory = "/no/such/folder".into();
    assert_eq!(
        failure(nowhere).await,
        "cannot start sh: not a directory: /no/such/folder"
    );
    assert_eq!(failure(command(&[])).await, "cannot start it: no command is given");
    eventually("no child", || children().is_empty());
}

/// SPEC 12: a server that does not read holds nobody up, and its memory is bounded.
#[tokio::test]
async fn does_not_read() {
    let bench = Bench::new();
    let mut child = bench.start(&sh("sleep 300")).await;
    let mut refused = None;
    for id in 0..20_000 {
        let mut sent = Box::pin(child.send(ping(id)));
        // Once, to see whether it was refused at once; whether it is ever written does not matter.
        if let std::task::Poll::Ready(Err(error)) = futures_util::poll!(&mut sent) {
            refused = Some(error);
            break;
        }
    }
    assert_eq!(refused.map(|error| error.kind), Some(ErrorKind::Timeout));
    child.close().await.unwrap();
    assert!(children().is_empty());
}

/// SPEC 12: a thousand servers started and ended, closed or dropped, leave no child.
#[tokio::test]
async fn a_thousand_starts_and_ends() {
    const LANES: usize = 8;
    let lane = async |lane: usize| {
        let bench = Bench::new();
        for cycle in 0..1_000 / LANES {
            let mut child = bench.start(&sh("exec cat")).await;
            if (lane + cycle).is_multiple_of(2) {
                child.close().await.unwrap();
            }
        }
    };
    futures_util::future::join_all((0..LANES).map(lane)).await;
    eventually("no child", || children().is_empty());
}

/// Where the other process of the next test writes what it started; its presence tells that this is the other process.
const IDS: &str = "AISH_TEST_SERVER_IDS";

/// SPEC 12: no orphan after `kill -9` of this program, whatever the server does with signals and the end of its input.
#[tokio::test]
async fn a_killed_program_leaves_no_server() {
    if let Some(ids) = std::env::var_os(IDS) {
        let ids = ids.into_string().unwrap();
        let script = format!(
            "trap '' TERM; setsid sh -c 'echo $$ >> {ids}; exec sleep 300' & echo $$ >> {ids}; while :; do sleep 1; done"
        );
        let mut child = Bench::new().start(&sh(&script)).await;
        let heard = child.receive().await;
        panic!("it was to be killed: {heard:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ids");
    let mut other = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["a_killed_program_leaves_no_server", "--exact"])
        .env(IDS, &file)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let ids = || -> Vec<i32> {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    };
    eventually("the server starts", || ids().len() == 2);
    other.kill().unwrap();
    other.wait().unwrap();
    eventually("the server ends", || !ids().into_iter().any(is_alive));
}
