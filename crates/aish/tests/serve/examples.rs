//! The clients that are published in `examples/` do what they are there for, against the real server: they run their own tools, ask at
//! their terminal, survive connections that break, and go on with what an earlier run left (SPEC 9).
//!
//! The one in TypeScript is compiled with packages from npm. Where they cannot be installed its test fails; `AISH_SKIP_NPM=1` says
//! that it is not to run, and it says so.

use super::app::{Served, TOKEN, TOKEN_VARIABLE, place, replied, results};
use crate::support::fake_server::FakeServer;
use crate::support::ledger::{end_of_last_turn, export, kinds, of_kind, text};
use crate::support::real_model;
use crate::support::reply::Reply;
use crate::support::sandbox::{Output, Sandbox, run_bounded};
use serde_json::json;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Set to 1 to leave out what needs packages from npm.
const SKIP_VARIABLE: &str = "AISH_SKIP_NPM";

/// Bytes that a breaking connection passes on at once.
const PIECE_BYTES: usize = 4096;
/// Bytes of an answer that end within its head, and such that end behind it.
const HEAD_BYTES_SOME: usize = 40;
const BODY_BYTES_SOME: usize = 400;

fn examples() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    path.canonicalize().unwrap()
}

/// A published client: a program, and its arguments before those of a test.
struct Client {
    program: &'static str,
    arguments: Vec<PathBuf>,
}

impl Client {
    /// Runs it against that port, with these words as its terminal.
    fn run(&self, sandbox: &Sandbox, port: u16, arguments: &[&str], typed: &str) -> Output {
        let mut command = Command::new(self.program);
        command.args(&self.arguments).args(arguments);
        command
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap_or_default())
            .env("LANG", "C.UTF-8")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("AISH_URL", format!("http://127.0.0.1:{port}"))
            .env("AISH_TOKEN", TOKEN)
            .env("NOTES_FILE", notes(sandbox))
            .current_dir(sandbox.project());
        run_bounded(command, Some(typed.as_bytes().to_vec()))
    }
}

fn notes(sandbox: &Sandbox) -> PathBuf {
    sandbox.user().join("notes.txt")
}

/// The one in Python needs nothing but Python.
fn python() -> Client {
    Client {
        program: "python3",
        arguments: vec![examples().join("python/notes.py")],
    }
}

/// The one in TypeScript, compiled in a folder of its own; none when it is to be left out.
fn typescript(folder: &Path) -> Option<Client> {
    if std::env::var(SKIP_VARIABLE).is_ok_and(|value| value == "1") {
        eprintln!("SKIPPED: the client in TypeScript, because {SKIP_VARIABLE}=1");
        return None;
    }
    for name in [
        "package.json",
        "package-lock.json",
        "tsconfig.json",
        "client.ts",
        "notes.ts",
    ] {
        fs::copy(examples().join("typescript").join(name), folder.join(name)).unwrap();
    }
    for arguments in [
        &["ci", "--ignore-scripts", "--no-audit", "--no-fund"][..],
        &["run", "build"],
    ] {
        let output = Command::new("npm")
            .args(arguments)
            .current_dir(folder)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "npm {arguments:?} ({SKIP_VARIABLE}=1 leaves this out): {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Some(Client {
        program: "node",
        arguments: vec![folder.join("dist/notes.js")],
    })
}

/// SPEC 9.1, 9.2, 9.3: the client in Python.
#[test]
fn in_python() {
    all(&python());
}

/// SPEC 9.1, 9.2, 9.3: the client in TypeScript.
#[test]
fn in_typescript() {
    let folder = tempfile::tempdir().unwrap();
    if let Some(client) = typescript(folder.path()) {
        all(&client);
    }
}

/// SPEC 9.2, 9.3: the client in Python and a real small model. It calls what it likes: whatever that is, each call is answered once, by
/// the app or here, and the turn comes to an end.
#[test]
fn real_model_and_the_client() {
    let Some(url) = real_model::base_url() else { return };
    let config = format!(
        "max_tool_turns = 3\ndefault_model = \"real\"\n[models.real]\nprovider = \"openai-chat\"\nbase_url = \"{url}\"\n\
         model = \"smollm2\"\ntemperature = 0.0\ncontext_window = 8192\nmax_output_tokens = 200\n"
    );
    let sandbox = Sandbox::new().config(&config).env(TOKEN_VARIABLE, TOKEN);
    let served = Served::start(&sandbox);
    let asked = "Use the tool note_list to list my notes.";
    let output = python().run(&sandbox, served.port, &[asked], "").success();
    let id = output
        .stderr
        .split("[conversation ")
        .nth(1)
        .unwrap()
        .trim_end()
        .trim_end_matches(']');
    let events = export(&sandbox, id);
    let told = kinds(&events);
    end_of_last_turn(&events);
    let calls = of_kind(&events, "tool_call");
    assert!(!calls.is_empty(), "the model called no tool: {told}");
    assert_eq!(calls.len(), of_kind(&events, "tool_result").len(), "{told}");
    assert!(
        told.contains("suspended resumed tool_result"),
        "no tool of the app's was called: {told} {calls:?}"
    );
}

fn all(client: &Client) {
    it_runs_its_own_tools(client);
    it_asks_at_its_terminal(client);
    it_survives_broken_connections(client);
    it_goes_on_where_it_was(client);
    it_shows_hostile_text_harmless(client);
    it_says_what_is_wrong(client);
}

fn it_runs_its_own_tools(client: &Client) {
    let model = FakeServer::script([
        Reply::calls(&[
            ("c1", "note_add", json!({"text": "buy milk"})),
            ("c2", "note_list", json!({})),
            ("c3", "note_add", json!({})),
            ("c4", "fly", json!({"to": "the moon"})),
        ]),
        Reply::text("It is noted."),
        Reply::text("You are welcome."),
    ]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let output = client
        .run(&sandbox, served.port, &[], "I am out of milk\nthanks\n")
        .success();
    assert!(
        output.stdout.contains("It is noted.") && output.stdout.contains("You are welcome."),
        "{output:#?}"
    );
    assert_eq!(fs::read_to_string(notes(&sandbox)).unwrap(), "buy milk\n");
    let seen = results(&model.requests()[1]);
    assert_eq!(seen[..2], ["added", "buy milk\n"]);
    assert!(seen[2].contains("error") && seen[3].contains("error"), "{seen:?}");
    model.assert_done();
}

fn it_asks_at_its_terminal(client: &Client) {
    for (typed, runs) in [("y\n", true), ("n\n", false), ("", false)] {
        let model = FakeServer::script([
            Reply::call("c1", "bash", json!({"command": "touch made"})),
            Reply::text("so it is"),
        ]);
        let sandbox = place(&model);
        let served = Served::start(&sandbox);
        let output = client.run(&sandbox, served.port, &["make it"], typed).success();
        assert!(
            output.stdout.contains("touch made") && output.stdout.contains("so it is"),
            "{output:#?}"
        );
        assert_eq!(sandbox.path("made").exists(), runs, "typed {typed:?}");
        model.assert_done();
    }
}

fn it_survives_broken_connections(client: &Client) {
    let model = FakeServer::script([
        Reply::call("c1", "note_add", json!({"text": "once"})),
        Reply::call("c2", "bash", json!({"command": "echo ran >> ran"})),
        Reply::call("c3", "note_add", json!({"text": "twice"})),
        Reply::text("all done"),
    ]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let port = breaking(served.port);
    let output = client.run(&sandbox, port, &["go"], "y\n").success();
    assert!(output.stdout.contains("all done"), "{output:#?}");
    assert_eq!(fs::read_to_string(notes(&sandbox)).unwrap(), "once\ntwice\n");
    assert_eq!(fs::read_to_string(sandbox.path("ran")).unwrap(), "ran\n");
    model.assert_done();
}

/// A port that leads to that one, over connections of which three of four break: before the answer, in its head, in its body.
fn breaking(port: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for (number, client) in listener.incoming().enumerate() {
            let client = client.unwrap();
            let server = TcpStream::connect(("127.0.0.1", port)).unwrap();
            let (asks, answers) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || pass_on(asks, server, usize::MAX));
            let whole = [0, HEAD_BYTES_SOME, BODY_BYTES_SOME, usize::MAX][number % 4];
            std::thread::spawn(move || pass_on(answers, client, whole));
        }
    });
    own
}

/// Passes on so many bytes, and then closes both.
fn pass_on(mut from: TcpStream, mut to: TcpStream, bytes_max: usize) {
    let mut piece = [0; PIECE_BYTES];
    let mut left = bytes_max;
    while let Ok(count @ 1..) = from.read(&mut piece) {
        let passed = count.min(left);
        if to.write_all(&piece[..passed]).is_err() || passed < count {
            break;
        }
        left -= passed;
    }
    // Whichever end was first: the other one has nothing more to say either.
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}

fn it_goes_on_where_it_was(client: &Client) {
    let model = FakeServer::script([
        Reply::call("c1", "note_add", json!({"text": "from before"})),
        Reply::text("there it is"),
    ]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let pending = served.chat("note it", &["note_add"]);
    let id = text(&pending["conversation_id"]);
    let output = client.run(&sandbox, served.port, &["--resume", id], "").success();
    assert!(
        output.stdout.contains("there it is") && output.stderr.contains(id),
        "{output:#?}"
    );
    assert_eq!(fs::read_to_string(notes(&sandbox)).unwrap(), "from before\n");
    let again = client.run(&sandbox, served.port, &["--resume", id], "").success();
    assert!(!again.stdout.contains("there it is"), "{again:#?}");
    model.assert_done();
    replied(&served.answer(&pending, "added").json(), "there it is");
}

fn it_shows_hostile_text_harmless(client: &Client) {
    let hostile = "plain \u{1b}]0;title\u{7}\u{9b}31m \u{202e}back\u{2028} end";
    let model = FakeServer::script([Reply::text(hostile)]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let output = client.run(&sandbox, served.port, &["go"], "").success();
    assert!(
        output.stdout.contains("plain") && output.stdout.contains("end"),
        "{output:#?}"
    );
    for bad in ['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}', '\u{2028}'] {
        assert!(!output.stdout.contains(bad), "{bad:?} in {output:#?}");
    }
}

fn it_says_what_is_wrong(client: &Client) {
    let model = FakeServer::script([]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let output = client.run(&sandbox, served.port, &["--resume", "br-1-1"], "").exits(1);
    assert!(output.stderr.contains("404"), "{output:#?}");
}
