//! What servers do wrong, and what a person at the other end of the program sees of it (SPEC 7.3, 7.4, 7.5, 7.6, 12).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use rustix::process::Signal;
use serde_json::{Value, json};
use support::fake_server::FakeServer;
use support::ledger::{end_of_last_turn, kinds, of_kind, only_export, text};
use support::processes::peak_memory_kib;
use support::reply::{Cut, Framing, Reply};
use support::sandbox::{Output, Running, Sandbox};
use support::strict::Strictness;

/// The most memory that a run may take whatever a peer sends, in KiB (SPEC 12: 100 MB over idle).
const MEMORY_KIB_MAX: u64 = 100 << 10;

/// A made-up key.
const KEY: &str = "sk-test-example-0123456789abcdefghij";

/// A server with the rules of the strictest template that gives these replies in order.
fn strict(replies: impl IntoIterator<Item = Reply>) -> FakeServer {
    let builder = FakeServer::builder().strict(Strictness::Template);
    replies
        .into_iter()
        .fold(builder, |builder, reply| builder.reply(reply))
        .start()
}

/// An error that may be tried again at once.
fn passing(status: u16) -> Reply {
    Reply::error(status, "not now").header("retry-after", "0")
}

/// SPEC 3.7: after whatever went wrong, the same session takes another question, even on the strictest server.
fn assert_goes_on(sandbox: &Sandbox, server: &FakeServer) {
    server.push(Reply::text("going on"));
    let output = sandbox.run(&["-p", "and now?", "--continue"]).success();
    assert_eq!(output.stdout, "going on\n");
    server.assert_done();
}

/// One status line that says what failed; the session goes on.
fn assert_fails(output: &Output, says: &str) {
    assert_eq!(output.code, Some(1), "{output:?}");
    let line = output.stderr.lines().find(|line| line.starts_with("[aish] no reply: "));
    assert!(line.is_some_and(|line| line.contains(says)), "{says:?} in {output:?}");
}

/// SPEC 7.6: refusals that pass are waited for as the server asks, and the wait is shown.
#[test]
fn retries_what_passes() {
    let server = strict([
        passing(429),
        Reply::error(429, "slow down").header("retry-after", "1"),
        passing(500),
        Reply::text("at last"),
    ]);
    let sandbox = Sandbox::with_model(&server);
    let output = sandbox.run(&["-p", "hi"]).success();
    assert_eq!(output.stdout, "at last\n");
    let waits: Vec<&str> = output
        .stderr
        .lines()
        .filter(|line| line.contains("trying again in"))
        .collect();
    assert!(
        waits
            .iter()
            .any(|line| line.contains("slow down") && line.contains("in 1 s")),
        "{output:?}"
    );
    let events = only_export(&sandbox);
    assert_eq!(of_kind(&events, "model_failed").len(), 3);
    assert_eq!(of_kind(&events, "assistant").len(), 1);
    server.assert_done();
}

/// SPEC 7.6: a pause of our own where the server names none, and a connection that broke before anything came.
#[test]
fn retries_with_backoff() {
    let server = strict([
        Reply::error(503, "loading the model"),
        Reply::bare_stream().cuts(Cut::Reset),
        Reply::text("ready"),
    ]);
    let output = Sandbox::with_model(&server).run(&["-p", "hi"]).success();
    assert_eq!(output.stdout, "ready\n");
    server.assert_done();
}

/// SPEC 3.5, 7.6: retries end; the turn fails, says why, and is closed.
#[test]
fn gives_up() {
    let server = strict([passing(500), passing(502), passing(503), passing(429)]);
    let sandbox = Sandbox::with_model(&server);
    let output = sandbox.run(&["-p", "hi"]);
    assert_fails(&output, "429");
    assert_eq!(output.stdout, "");
    assert_eq!(end_of_last_turn(&only_export(&sandbox)), "model_failed");
    assert_goes_on(&sandbox, &server);
}

/// SPEC 7.6: what will not pass is not tried again.
#[test]
fn does_not_retry_what_does_not_pass() {
    for status in [400, 403, 404, 422] {
        let server = strict([Reply::error(status, "no such thing")]);
        let sandbox = Sandbox::with_model(&server);
        assert_fails(&sandbox.run(&["-p", "hi"]), "no such thing");
        assert_eq!(server.requests().len(), 1, "{status}");
        assert_goes_on(&sandbox, &server);
    }
}

/// SPEC 10.4, 10.5, 12: a refused key is told once, in one line, without the key; not even when the server quotes it.
#[test]
fn key_refused() {
    let server = strict([Reply::error(401, &format!("Incorrect API key provided: {KEY}"))]);
    let sandbox = Sandbox::with_model(&server)
        .config("key_env = \"FAKE_KEY\"")
        .env("FAKE_KEY", KEY);
    let output = sandbox.run(&["-p", "hi"]);
    assert_fails(&output, "401");
    assert_eq!(output.stderr.lines().count(), 1, "{output:?}");
    let export = only_export(&sandbox);
    assert!(!output.stderr.contains(KEY) && !Value::from(export).to_string().contains(KEY));
    assert_eq!(server.requests().len(), 1);
}

/// SPEC 10.2, 10.4: nobody listens there: said with the address, and that is 1, not a hang.
#[test]
fn nobody_listens() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let sandbox = Sandbox::with_base_url(&format!("http://{address}/v1"));
    let output = sandbox.run(&["-p", "hi"]);
    assert_fails(&output, &address.to_string());
    assert!(output.stderr.contains("start the server"), "what to do: {output:?}");
    assert_eq!(end_of_last_turn(&only_export(&sandbox)), "model_failed");
}

/// SPEC 12, 10.2: a server that never answers is given up at Ctrl-C, the request with it.
#[test]
fn hangs_before_the_head() {
    let server = strict([Reply::hangs()]);
    let sandbox = Sandbox::with_model(&server);
    let run = sandbox.start(&["-p", "hi"]);
    server.wait_for_requests(1);
    run.signal(Signal::INT);
    let output = run.finish().exits(130);
    assert_eq!(output.stdout, "");
    server.wait_for_clients_gone(1);
    assert_eq!(end_of_last_turn(&only_export(&sandbox)), "cancelled");
    assert_goes_on(&sandbox, &server);
}

/// SPEC 12: Ctrl-C ends the wait before another attempt too.
#[test]
fn interrupted_while_it_waits_to_ask_again() {
    let server = strict([Reply::error(429, "slow down").header("retry-after", "100")]);
    let sandbox = Sandbox::with_model(&server);
    let run = sandbox.start(&["-p", "hi"]);
    run.wait_for_stderr("trying again in 100 s");
    run.signal(Signal::INT);
    run.finish().exits(130);
    assert_goes_on(&sandbox, &server);
}

/// SPEC 3.5, 7.3: a reply cut in the middle of its text is shown, kept and not asked for again, however the
/// connection ended.
#[test]
fn cut_in_the_text() {
    for (framing, cut) in [
        (Framing::Close, Cut::Fin),
        (Framing::Chunked, Cut::Fin),
        (Framing::Chunked, Cut::Reset),
    ] {
        let half = Reply::stream()
            .says("half a sentence, ")
            .stalls()
            .cuts(cut)
            .framed(framing);
        let server = strict([half]);
        let sandbox = Sandbox::with_model(&server);
        let run = sandbox.start(&["-p", "hi"]);
        // What has not been read when a reset comes is lost to any client: first it is seen.
        run.wait_for_stdout("half a sentence,");
        server.release();
        let output = run.finish().exits(1);
        assert_eq!(output.stdout, "half a sentence, \n");
        let events = only_export(&sandbox);
        assert_eq!(end_of_last_turn(&events), "truncated", "{framing:?} {cut:?}");
        let reply = of_kind(&events, "assistant")[0];
        assert_eq!(
            (text(&reply["content"]), &reply["data"]["stop"]),
            ("half a sentence, ", &json!("truncated"))
        );
        assert_eq!(server.requests().len(), 1);
        assert_goes_on(&sandbox, &server);
    }
}

/// A command that leaves a trace, as a call that is cut at the end of its arguments.
fn call_cut_by(end: impl FnOnce(Reply) -> Reply) -> Reply {
    let reply = Reply::stream()
        .call_begins(0, "c1", "bash")
        .call_arguments(0, r#"{"command": "touch ran"}"#);
    end(reply)
}

/// SPEC 7.3, 7.4, 12: a call of a reply that was cut is never run; nothing was shown, so it is asked for again.
#[test]
fn cut_in_a_call() {
    let cuts: [fn(Reply) -> Reply; 3] = [
        |reply| reply.cuts(Cut::Fin),
        |reply| reply.cuts(Cut::Reset),
        |reply| reply.done(),
    ];
    for (n, cut) in cuts.into_iter().enumerate() {
        let server = strict([call_cut_by(cut), Reply::text("in words then")]);
        let sandbox = Sandbox::with_model(&server);
        let output = sandbox.run(&["-p", "hi", "--approval", "full"]).success();
        assert_eq!(output.stdout, "in words then\n", "cut {n}");
        assert!(!sandbox.path("ran").exists(), "cut {n}");
        assert!(of_kind(&only_export(&sandbox), "call_started").is_empty());
        assert_goes_on(&sandbox, &server);
    }
}

/// SPEC 7.3, 10.4: a call that the length limit cut is not run, and not asked for again only to be cut again; what was cut is
/// said, to the person and to the model.
#[test]
fn a_call_reaches_its_length() {
    let server = strict([call_cut_by(|reply| reply.finish("length").done())]);
    let sandbox = Sandbox::with_model(&server);
    let output = sandbox.run(&["-p", "hi", "--approval", "full"]).exits(1);
    let how = "the reply reached its length limit in the middle of a call of bash, which was not run";
    assert!(output.stderr.contains(how), "{output:?}");
    assert!(!sandbox.path("ran").exists());
    assert_eq!(server.requests().len(), 1);
    assert_goes_on(&sandbox, &server);
    let told = format!("{:?}", server.requests()[1].messages());
    assert!(told.contains(how), "{told}");
}

/// SPEC 7.3, 10.2: a reply that reached its length is shown and kept, and the exit code says that it is not whole.
#[test]
fn reaches_its_length() {
    let server = strict([Reply::stream()
        .says("and so on and")
        .finish("length")
        .usage(1, 1)
        .done()]);
    let sandbox = Sandbox::with_model(&server);
    let output = sandbox.run(&["-p", "hi", "--output", "json"]).exits(1);
    let object = output.json();
    assert_eq!(object["stop_reason"], "truncated");
    assert!(
        text(&object["reply"]).starts_with("and so on and\n[stopped:"),
        "{object}"
    );
    assert!(output.stderr.contains("reached its length limit"), "{output:?}");
    assert_goes_on(&sandbox, &server);
}

/// SPEC 7.4: an error with status 200, alone or inside the stream, is an error: before any text it is tried again.
#[test]
fn errors_with_status_200() {
    let inside = Reply::bare_stream().event(&json!({"error": {"code": 500, "message": "slot unavailable"}}));
    let server = strict([Reply::error(200, "overloaded"), inside, Reply::text("now")]);
    let sandbox = Sandbox::with_model(&server);
    let output = sandbox.run(&["-p", "hi"]).success();
    assert_eq!(output.stdout, "now\n");
    assert!(output.stderr.contains("slot unavailable"), "{output:?}");
    assert_goes_on(&sandbox, &server);
}

/// SPEC 3.5: after text was shown, an error in the stream ends the turn and is told.
#[test]
fn error_after_text() {
    let error = json!({"error": {"code": 500, "message": "out of memory"}});
    let server = strict([Reply::stream().says("so far ").event(&error)]);
    let sandbox = Sandbox::with_model(&server);
    let output = sandbox.run(&["-p", "hi"]).exits(1);
    assert_eq!(output.stdout, "so far \n");
    assert!(output.stderr.contains("out of memory"), "{output:?}");
    assert_goes_on(&sandbox, &server);
}

/// SPEC 3.5: an empty reply is asked for again, and when it stays empty the turn fails and says so.
#[test]
fn empty_replies() {
    let empty = || Reply::stream().finish("stop").done();
    let server = strict([empty(), Reply::text("here")]);
    let output = Sandbox::with_model(&server).run(&["-p", "hi"]).success();
    assert_eq!(output.stdout, "here\n");
    server.assert_done();
    let server = strict([empty(), empty(), empty(), empty()]);
    let sandbox = Sandbox::with_model(&server);
    let output = sandbox.run(&["-p", "hi"]).exits(1);
    assert!(!output.stderr.is_empty());
    assert_goes_on(&sandbox, &server);
}

/// SPEC 7.4: text cut anywhere, in the middle of events and characters, arrives whole; bytes that are no text are marked.
#[test]
fn broken_bytes() {
    let server = strict([Reply::text("naïve 東京 😀").in_pieces(1)]);
    let output = Sandbox::with_model(&server).run(&["-p", "hi"]).success();
    assert_eq!(output.stdout, "naïve 東京 😀\n");
    let broken = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\xff\xfeb\"}}]}\n\n";
    let server = strict([Reply::stream().bytes(broken.as_slice()).finish("stop").done()]);
    let output = Sandbox::with_model(&server).run(&["-p", "hi"]).success();
    assert_eq!(output.stdout.replace('\u{fffd}', ""), "ab\n", "{output:?}");
}

/// Watches a run to its end; its peak memory.
fn peak_kib(run: Running) -> (Output, u64) {
    let pid = run.pid().as_raw_nonzero().get().unsigned_abs();
    let mut peak = 0;
    // A zombie has no memory to tell of.
    support::poll_until(
        "the end of the run",
        support::default_wait() * 3,
        || match peak_memory_kib(pid) {
            Some(kib) => {
                peak = peak.max(kib);
                None
            }
            None => Some(()),
        },
    );
    (run.finish(), peak)
}

/// SPEC 12: a line of a gigabyte is refused early, in little memory, and the session goes on.
#[test]
fn a_line_without_end() {
    let flood = Reply::stream()
        .bytes("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"")
        .repeats(vec![b'x'; 1 << 20], 1 << 10);
    let server = strict([flood]);
    let sandbox = Sandbox::with_model(&server);
    let (output, peak) = peak_kib(sandbox.start(&["-p", "hi"]));
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    assert!(peak < MEMORY_KIB_MAX, "{peak} KiB");
    assert_goes_on(&sandbox, &server);
}

/// SPEC 12: an error body of a gigabyte is quoted, not kept.
#[test]
fn an_error_without_end() {
    let mut flood = Reply::error(400, "").repeats(vec![b'x'; 1 << 20], 1 << 10);
    flood.actions.remove(0);
    let server = strict([flood]);
    let sandbox = Sandbox::with_model(&server);
    let (output, peak) = peak_kib(sandbox.start(&["-p", "hi"]));
    assert_eq!(output.code, Some(1));
    assert!(peak < MEMORY_KIB_MAX, "{peak} KiB");
    assert!(output.stderr.len() < 10_000, "{} bytes of status", output.stderr.len());
}

/// SPEC 4.3, 12: a command that writes without end takes no memory and becomes a bounded result.
#[test]
fn a_result_without_end() {
    let command = json!({"command": "head -c 200000000 /dev/zero | tr '\\0' x"});
    let server = strict([Reply::call("c1", "bash", command), Reply::text("that was long")]);
    let sandbox = Sandbox::with_model(&server);
    let (output, peak) = peak_kib(sandbox.start(&["-p", "hi", "--approval", "full"]));
    assert_eq!(output.clone().success().stdout, "that was long\n");
    assert!(peak < MEMORY_KIB_MAX, "{peak} KiB");
    let events = only_export(&sandbox);
    let result = text(&of_kind(&events, "tool_result")[0]["data"]["output"]).to_owned();
    assert!(result.contains("[Output truncated: showing first 1048576 of 200000000 bytes]"));
    assert!(server.requests()[1].last_text().len() < 50_000);
}

/// SPEC 7.5: a template that does not know the tool role gets calls and results as text, by itself and once.
#[test]
fn a_template_without_tools() {
    let server = FakeServer::script([
        Reply::call("c1", "glob", json!({"pattern": "*.txt"})),
        Reply::template_error(),
        Reply::text("one file"),
    ]);
    let sandbox = Sandbox::with_model(&server).file("a.txt", "");
    let output = sandbox.run(&["-p", "hi"]).success();
    assert_eq!(output.stdout, "one file\n");
    let requests = server.requests();
    assert_eq!(requests[1].roles(), "system user assistant tool");
    assert_eq!(requests[2].roles(), "system user assistant user");
    let told = requests[2].last_text();
    assert!(told.starts_with("[tool: glob]\n") && told.contains("a.txt"), "{told:?}");
    assert!(
        requests[2]
            .messages()
            .iter()
            .all(|message| message.get("tool_calls").is_none())
    );
    assert_eq!(kinds(&only_export(&sandbox)).matches("tool_result").count(), 1);
    server.assert_done();
}

/// SPEC 7.4: a reply that stops with calls, without a finish mark or with the wrong one, is acted on all the same when whole.
#[test]
fn finish_marks() {
    let call = || {
        Reply::stream()
            .call_begins(0, "", "glob")
            .call_arguments(0, r#"{"pattern": "*.txt"}"#)
    };
    for reply in [
        call().finish("stop").done(),
        call().finish("tool_calls"),
        call().finish("stop"),
    ] {
        let server = strict([reply, Reply::text("ok")]);
        let sandbox = Sandbox::with_model(&server).file("a.txt", "");
        let output = sandbox.run(&["-p", "hi"]).success();
        assert_eq!(output.stdout, "ok\n");
        assert!(server.requests()[1].last_text().contains("a.txt"));
        server.assert_done();
    }
}

/// SPEC 7.4: the same call twice in one reply is run once and answered twice.
#[test]
fn the_same_call_twice() {
    let command = json!({"command": "echo ran >> ran"});
    let server = strict([
        Reply::calls(&[("c1", "bash", command.clone()), ("c1", "bash", command)]),
        Reply::text("ok"),
    ]);
    let sandbox = Sandbox::with_model(&server);
    sandbox.run(&["-p", "hi", "--approval", "full"]).success();
    assert_eq!(std::fs::read_to_string(sandbox.path("ran")).unwrap(), "ran\n");
    assert_eq!(server.requests()[1].roles(), "system user assistant tool tool");
    server.assert_done();
}
