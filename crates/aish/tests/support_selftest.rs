//! Tests of the test bench itself: a bench that cannot fail would prove nothing about the program.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/strict_selftest.rs"]
mod strict_selftest;
mod support;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use serde_json::{Value, json};
use support::fake_server::FakeServer;
use support::processes;
use support::pty::{Signal, Terminal, TerminalCommand, key};
use support::reply::{Cut, Framing, Reply};
use support::sandbox::{Sandbox, run_bounded};

/// Sends a request that closes its connection and gives all bytes of the answer, or the error with those before it.
fn post(server: &FakeServer, body: &Value) -> (Vec<u8>, Option<std::io::Error>) {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream
        .write_all(request(body, "connection: close\r\n").as_bytes())
        .unwrap();
    let mut answer = Vec::new();
    let error = stream.read_to_end(&mut answer).err();
    (answer, error)
}

fn request(body: &Value, headers: &str) -> String {
    let body = body.to_string();
    let length = body.len();
    format!("POST /v1/chat/completions HTTP/1.1\r\nhost: fake\r\ncontent-length: {length}\r\n{headers}\r\n{body}")
}

fn post_text(server: &FakeServer, body: &Value) -> String {
    String::from_utf8_lossy(&post(server, body).0).into_owned()
}

fn hello() -> Value {
    json!({"model": "fake", "stream": true, "messages": [{"role": "user", "content": "hello"}]})
}

#[test]
fn a_script_is_answered_in_order_and_recorded() {
    let server = FakeServer::script([Reply::text("one"), Reply::call("c1", "glob", json!({"pattern": "*"}))]);
    let first = post_text(&server, &hello());
    assert!(
        first.starts_with("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"),
        "{first}"
    );
    assert!(
        first.contains(r#""content":"one""#) && first.contains("data: [DONE]"),
        "{first}"
    );
    let second = post_text(&server, &hello());
    assert!(
        second.contains(r#""name":"glob""#) && second.contains(r#""finish_reason":"tool_calls""#),
        "{second}"
    );
    assert_eq!(server.requests().len(), 2);
    assert_eq!(server.requests()[0].roles(), "user");
    assert_eq!(server.requests()[0].last_text(), "hello");
    assert_eq!(server.requests()[0].header("host"), Some("fake"));
    server.assert_done();
}

#[test]
fn an_exchange_with_a_condition_waits_for_its_request() {
    let asks_weather = |request: &support::fake_server::Received| request.last_text().contains("weather");
    let server = FakeServer::builder()
        .when(asks_weather, Reply::text("sunny"))
        .reply(Reply::text("hi"))
        .start();
    assert!(post_text(&server, &hello()).contains("hi"));
    let body = json!({"messages": [{"role": "user", "content": "the weather?"}]});
    assert!(post_text(&server, &body).contains("sunny"));
    server.assert_done();
}

#[test]
fn a_request_that_was_not_provided_for_is_a_problem() {
    let server = FakeServer::script([]);
    assert!(post_text(&server, &hello()).starts_with("HTTP/1.1 500"));
    assert!(
        server.problems()[0].contains("not provided for"),
        "{:?}",
        server.problems()
    );
}

#[test]
#[should_panic(expected = "1 exchanges were never asked for")]
fn an_exchange_nobody_asked_for_fails_the_test() {
    FakeServer::script([Reply::text("unheard")]).assert_done();
}

#[test]
fn connections_are_kept_alive_and_counted() {
    let server = FakeServer::builder()
        .otherwise(|request| Reply::blocking_text(&request.last_text()))
        .start();
    let mut stream = TcpStream::connect(server.address()).unwrap();
    for _ in 0..3 {
        stream.write_all(request(&hello(), "").as_bytes()).unwrap();
        let head = read_until(&mut stream, b"\r\n\r\n");
        let length = head
            .split("content-length: ")
            .nth(1)
            .and_then(|rest| rest.lines().next())
            .unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        stream.read_exact(&mut body).unwrap();
    }
    assert_eq!((server.requests().len(), server.connections()), (3, 1));
    post(&server, &hello());
    assert_eq!(server.connections(), 2);
}

fn read_until(stream: &mut TcpStream, end: &[u8]) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(end) {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        bytes.push(byte[0]);
    }
    String::from_utf8(bytes).unwrap()
}

#[test]
fn bodies_are_framed_as_told() {
    let framings = [
        Framing::Chunked,
        Framing::Length,
        Framing::Close,
        Framing::DeclaredLength(3),
    ];
    let replies = framings.map(|framing| Reply::bare_stream().bytes("abcdef").framed(framing));
    let server = FakeServer::script(replies);
    let bodies = framings.map(|_| {
        let answer = post_text(&server, &hello());
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    });
    assert_eq!(bodies, ["6\r\nabcdef\r\n0\r\n\r\n", "abcdef", "abcdef", "abcdef"]);
}

#[test]
fn pieces_split_a_body_anywhere() {
    let server = FakeServer::script([Reply::bare_stream().bytes("é!").in_pieces(1)]);
    let (answer, _) = post(&server, &hello());
    let tail = b"1\r\n\xc3\r\n1\r\n\xa9\r\n1\r\n!\r\n0\r\n\r\n";
    assert!(answer.ends_with(tail), "{}", String::from_utf8_lossy(&answer));
}

#[test]
fn a_cut_ends_the_connection_after_that_many_bytes() {
    let cut = |cut| {
        Reply::bare_stream()
            .bytes("abcdef")
            .framed(Framing::Length)
            .cut_after(4, cut)
    };
    let server = FakeServer::script([cut(Cut::Fin), cut(Cut::Reset)]);
    let (answer, error) = post(&server, &hello());
    assert!(answer.ends_with(b"\r\n\r\nabcd") && error.is_none(), "{error:?}");
    let (_, error) = post(&server, &hello());
    assert_eq!(
        error.map(|error| error.kind()),
        Some(std::io::ErrorKind::ConnectionReset)
    );
}

#[test]
fn a_repeated_body_is_as_long_as_it_says() {
    let server = FakeServer::script([Reply::bare_stream().repeats("abc", 1000).framed(Framing::Length)]);
    let answer = post_text(&server, &hello());
    assert!(answer.contains("content-length: 3000\r\n") && answer.ends_with(&"abc".repeat(1000)));
}

#[test]
fn a_stall_lasts_until_released_or_the_client_leaves() {
    let server = FakeServer::script([Reply::stream().says("a").stalls().says("b"), Reply::hangs()]);
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream
        .write_all(request(&hello(), "connection: close\r\n").as_bytes())
        .unwrap();
    let before = read_until(
        &mut stream,
        b"\"content\":\"a\"},\"finish_reason\":null,\"index\":0}],\"created\":",
    );
    assert!(!before.contains(r#""content":"b""#));
    server.release();
    let mut after = String::new();
    stream.read_to_string(&mut after).unwrap();
    assert!(after.contains(r#""content":"b""#));

    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(request(&hello(), "").as_bytes()).unwrap();
    server.wait_for_requests(2);
    stream.shutdown(Shutdown::Both).unwrap();
    server.wait_for_clients_gone(1);
}

#[test]
fn models_and_health_are_answered_beside_the_script() {
    let server = FakeServer::builder().models(&["small", "large"]).start();
    let output = run_bounded(curl(&format!("{}/models", server.base_url())), None).success();
    assert_eq!(output.json()["data"][1]["id"], "large");
    let health = server.base_url().replace("/v1", "/health");
    assert_eq!(
        run_bounded(curl(&health), None).success().json(),
        json!({"status": "ok"})
    );
    assert_eq!((server.probes().len(), server.requests().len()), (2, 0));
}

fn curl(url: &str) -> Command {
    let mut command = Command::new("curl");
    command.args(["-sS", "--noproxy", "*", url]);
    command
}

#[test]
fn errors_carry_their_status_headers_and_key_check() {
    let server = FakeServer::script([Reply::error(429, "slow down").header("retry-after", "1")]);
    let answer = post_text(&server, &hello());
    assert!(answer.starts_with("HTTP/1.1 429 Too Many Requests\r\n") && answer.contains("retry-after: 1\r\n"));
    assert!(answer.contains(r#""message":"slow down""#), "{answer}");
    let server = FakeServer::builder().key("secret").start();
    assert!(post_text(&server, &hello()).starts_with("HTTP/1.1 401"));
}

#[test]
fn a_refused_request_takes_no_exchange() {
    let server = FakeServer::script([Reply::text("fine")]);
    assert!(post_text(&server, &json!({"messages": [], "tools": []})).starts_with("HTTP/1.1 400"));
    assert!(post_text(&server, &hello()).contains("fine"));
    assert_eq!(server.problems().len(), 1);
}

fn bash() -> Terminal {
    let terminal = TerminalCommand::new("bash")
        .args(&["--norc", "--noprofile"])
        .env("PS1", "ready> ")
        .start();
    terminal.wait_for_text("ready>");
    terminal
}

#[test]
fn a_terminal_shows_screens_and_ends() {
    let mut terminal = bash();
    terminal.send_line("printf 'a\\033[31mred\\033[0m\\n'; tty; stty size");
    let screen = terminal.wait_for("the size", |screen| screen.contents().contains("24 80"));
    assert!(screen.contains("ared") && screen.contains("/dev/pts/"), "{screen}");
    assert!(terminal.transcript().windows(5).any(|bytes| bytes == b"\x1b[31m"));
    terminal.send_line("exit 7");
    assert_eq!(terminal.wait_exit().code(), Some(7));
    assert!(!terminal.is_running());
}

#[test]
fn a_terminal_can_be_resized_and_scrolls() {
    let mut terminal = bash();
    terminal.resize(10, 100);
    terminal.send_line("stty size; seq 1 30; echo end-of-list");
    terminal.wait_for("the end", |screen| screen.contents().contains("\nend-of-list"));
    assert!(!terminal.screen_text().contains("10 100"));
    assert!(
        terminal.history_text().contains("10 100\n1\n2\n"),
        "{}",
        terminal.history_text()
    );
    // Not before the shell reads again: until then the end of input is the terminal's to handle.
    terminal.wait_for("the shell's prompt", |screen| {
        screen.contents().trim_end().ends_with("ready>")
    });
    terminal.send(key::CTRL_D);
    terminal.wait_exit();
}

#[test]
fn keys_and_signals_reach_the_program() {
    let mut terminal = TerminalCommand::new("cat").start();
    terminal.send_line("echoed");
    terminal.wait_for("the echo", |screen| screen.contents().matches("echoed").count() == 2);
    terminal.send(key::CTRL_C);
    assert_eq!(terminal.wait_exit().signal(), Some(2));
    let mut terminal = TerminalCommand::new("cat").start();
    terminal.signal(Signal::TERM);
    assert_eq!(terminal.wait_exit().signal(), Some(15));
}

#[test]
fn settings_tell_a_raw_terminal_from_a_cooked_one() {
    let mut terminal = TerminalCommand::new("bash")
        .args(&["-c", "stty raw -echo; echo is-raw; read -r x"])
        .start();
    assert!(terminal.settings_at_start().is_cooked());
    terminal.wait_for_text("is-raw");
    assert!(!terminal.settings().is_cooked());
    terminal.signal(Signal::KILL);
    terminal.wait_exit();
    assert_ne!(
        &terminal.settings(),
        terminal.settings_at_start(),
        "settings can be read after the end"
    );
    let mut sane = TerminalCommand::new("true").start();
    sane.wait_exit();
    assert_eq!(&sane.settings(), sane.settings_at_start());
}

#[test]
fn the_terminal_answers_where_its_cursor_is() {
    let script = r#"stty raw -echo; printf 'abc\033[6n'; IFS= read -r -d R x; stty sane; printf '\n%q\n' "$x""#;
    let mut terminal = TerminalCommand::new("bash").args(&["-c", script]).start();
    terminal.wait_for("the answer", |screen| screen.contents().contains(r"$'\E[1;4'"));
    terminal.wait_exit();
    terminal.assert_never_wrote(b"\x1b[2J");
}

#[test]
#[should_panic(expected = "the terminal closed; the screen was:")]
fn a_wait_in_vain_shows_the_screen() {
    TerminalCommand::new("true").start().wait_for_text("never");
}

#[test]
fn a_sandbox_is_closed_to_the_outside() {
    let server = FakeServer::script([]);
    let sandbox = Sandbox::with_model(&server)
        .config_first("max_tool_turns = 7")
        .file("src/a.txt", "a");
    let config = std::fs::read_to_string(sandbox.home().join("config.toml")).unwrap();
    assert!(config.starts_with("max_tool_turns = 7\n"), "{config}");
    assert!(
        config.contains(&format!("base_url = \"{}\"", server.base_url())),
        "{config}"
    );
    let terminal = sandbox
        .in_terminal(TerminalCommand::new("bash").args(&["-c", "pwd; env; echo end-of-env"]))
        .size(50, 200);
    let screen = terminal.start().wait_for_text("end-of-env");
    assert!(
        screen.contains("AISH_HOME=") && screen.contains("/project\n") && !screen.contains("CARGO"),
        "{screen}"
    );
}

#[test]
fn a_run_collects_both_outputs_and_its_end() {
    let mut command = Command::new("bash");
    command.args(["-c", "cat; echo oops >&2; exit 3"]);
    let output = run_bounded(command, Some(b"fed".to_vec())).exits(3);
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("fed", "oops\n"));
    let mut command = Command::new("bash");
    command.args(["-c", "kill -9 $$"]);
    assert_eq!(run_bounded(command, None).signal, Some(9));
}

#[test]
fn what_a_run_leaves_behind_is_found() {
    let sandbox = Sandbox::new();
    sandbox.assert_nothing_runs();
    let mut stray = Command::new("setsid")
        .args(["sleep", "60"])
        .current_dir(sandbox.project())
        .spawn()
        .unwrap();
    let found = support::poll_until("the stray process", support::default_wait(), || {
        processes::belonging_to(&sandbox.project())
            .into_iter()
            .find(|process| process.command == "sleep 60")
    });
    assert_eq!(found.pid, stray.id());
    assert!(processes::peak_memory_kib(stray.id()).is_some_and(|kib| kib > 100));
    stray.kill().unwrap();
    let me = std::process::id();
    support::poll_until("a zombie", support::default_wait(), || {
        processes::zombies_of(me).contains(&stray.id()).then_some(())
    });
    stray.wait().unwrap();
    assert!(processes::zombies_of(me).is_empty());
    sandbox.assert_nothing_runs();
}

#[test]
fn real_model_calls_a_tool_when_asked_to() {
    let Some(url) = support::real_model::base_url() else {
        return;
    };
    let parameters = json!({"type": "object", "properties": {"pattern": {"type": "string"}}, "required": ["pattern"]});
    let function = json!({"name": "glob", "description": "find files", "parameters": parameters});
    let question = json!({"role": "user", "content": "List files. Use the tool."});
    let body = json!({"model": "any", "temperature": 0, "max_tokens": 100, "messages": [question],
        "tools": [{"type": "function", "function": function}]});
    let mut command = curl(&format!("{url}/chat/completions"));
    command.args(["-H", "content-type: application/json", "-d", &body.to_string()]);
    let answer = run_bounded(command, None).success().json();
    let call = &answer["choices"][0]["message"]["tool_calls"][0]["function"];
    assert_eq!(call["name"], "glob", "{answer}");
}
