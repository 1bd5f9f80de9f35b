//! What a person is told of tokens, money, context, thinking and waiting, on a terminal and in a script (SPEC 7.6, 8.5, 10.3).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use serde_json::json;
use support::fake_server::FakeServer;
use support::pty::{Terminal, key};
use support::reply::Reply;
use support::sandbox::Sandbox;

/// What a person pays for the fake model, in US dollars per million tokens.
const PRICE: &str = "price = { input = 100.0, output = 1000.0 }\n";

fn leave(mut terminal: Terminal) {
    terminal.wait_for_prompt();
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
}

fn says(text: &str, input_tokens: u64, output_tokens: u64) -> Reply {
    Reply::stream()
        .says(text)
        .finish("stop")
        .usage(input_tokens, output_tokens)
        .done()
}

/// A turn is followed by one line on what it used, rounds of tools included; `:usage` tells of the whole session, also after
/// it was resumed.
#[test]
fn tokens_of_a_turn_and_of_a_session() {
    let server = FakeServer::script([
        Reply::call("c1", "glob", json!({"pattern": "*"})),
        says("nothing here", 1_204, 310),
        says("still nothing", 2_000, 10),
        says("and now", 3_000, 20),
    ]);
    let sandbox = Sandbox::with_model(&server).config(&format!("context_window = 8192\n{PRICE}"));
    let terminal = sandbox.terminal(&[]).start();
    terminal.wait_for_prompts(1);
    terminal.send_line("look around");
    let screen = terminal.wait_for_prompts(2);
    assert!(
        screen.contains("[aish] 1,214 in · 315 out · $0.4364 · context 18% of 8,192"),
        "{screen}"
    );
    terminal.send_line("again");
    let screen = terminal.wait_for_prompts(3);
    assert!(
        screen.contains("[aish] 2,000 in · 10 out · $0.2100 · context 24%"),
        "{screen}"
    );
    leave(terminal);

    let terminal = sandbox.terminal(&["--continue"]).start();
    terminal.wait_for_prompt();
    terminal.send_line("go on");
    terminal.wait_for_text("3,000 in");
    terminal.wait_for_prompt();
    terminal.send_line(":usage");
    let screen = terminal.wait_for_text("context: 3,020 tokens, 36% of 8,192");
    let row = |name: &str| {
        let line = screen.lines().rev().find(|line| line.trim_start().starts_with(name));
        let words = line
            .expect("a row")
            .trim_start()
            .strip_prefix(name)
            .unwrap()
            .split_whitespace();
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row("last turn"), ["1", "3,000", "20", "$0.3200"]);
    assert_eq!(row("fake"), ["4", "6,214", "345", "$0.9664"]);
    leave(terminal);
    server.assert_done();
}

/// A model on this machine costs nothing and shows nothing; a script gets its tokens in the object and no line.
#[test]
fn no_cost_where_there_is_none() {
    let server = FakeServer::script([says("one", 10, 5), says("two", 10, 5)]);
    let sandbox = Sandbox::with_model(&server);
    let terminal = sandbox.terminal(&[]).start();
    terminal.wait_for_prompts(1);
    terminal.send_line("hi");
    let screen = terminal.wait_for_prompts(2);
    assert!(
        screen.contains("[aish] 10 in · 5 out") && !screen.contains('$'),
        "{screen}"
    );
    leave(terminal);
    let output = sandbox.run_with_input(&[], "hi\n").success();
    assert_eq!(output.stderr, "");
}

/// SPEC 10.3: `usage` of `--output json` has the cost where the price is known, and no such field where it is not.
#[test]
fn cost_for_scripts() {
    let server = FakeServer::script([says("one", 1_000, 5), says("two", 10, 5)]);
    let sandbox = Sandbox::with_model(&server);
    let free = sandbox.run(&["-p", "hi", "--output", "json"]).success();
    assert_eq!(
        free.json()["usage"],
        json!({"input_tokens": 1_000, "output_tokens": 5, "cached_tokens": 0})
    );
    let sandbox = sandbox.config(PRICE);
    let priced = sandbox.run(&["-p", "hi", "--output", "json"]).success();
    assert_eq!(priced.json()["usage"]["cost_usd"], json!(0.006));
    assert_eq!((free.stderr, priced.stderr), (String::new(), String::new()));
}

/// The person is warned before the context overflows, once while it stays full.
#[test]
fn a_full_context() {
    let server = FakeServer::script([says("one", 700, 50), says("two", 800, 50), says("three", 900, 50)]);
    let sandbox = Sandbox::with_model(&server).config("context_window = 1000\nmax_output_tokens = 10\n");
    let terminal = sandbox.terminal(&["--no-tools"]).start();
    for (n, question) in ["a", "b", "c"].iter().enumerate() {
        terminal.wait_for_prompts(n + 1);
        terminal.send_line(question);
    }
    let screen = terminal.wait_for_prompts(4);
    let at = |text: &str| screen.find(text).unwrap_or_else(|| panic!("no {text:?} in\n{screen}"));
    let warning = "[aish] the context is 85% full;";
    assert!(at("800 in") > at(warning) && at(warning) > at("700 in"), "{screen}");
    assert_eq!(screen.matches("the context is").count(), 1, "{screen}");
    leave(terminal);
}

fn thinks() -> Reply {
    let thoughts: String = (1..=9).map(|n| format!("thought {n}\n")).collect();
    Reply::stream()
        .thinks(&thoughts)
        .thinks("\u{1b}[2Jlast thought")
        .says("the answer")
        .finish("stop")
        .done()
}

/// SPEC 8.5, 8.8: of long thinking the beginning is shown, dim; `:thinking` shows all of it; its escapes do nothing.
#[test]
fn thinking_is_folded() {
    let server = FakeServer::script([thinks()]);
    let sandbox = Sandbox::with_model(&server);
    let terminal = sandbox.terminal(&[]).start();
    terminal.wait_for_prompts(1);
    terminal.send_line("think");
    let screen = terminal.wait_for_prompts(2);
    let fold = "┊ thought 6\n… thinking (4 more lines; :thinking shows it)\n\nthe answer";
    assert!(screen.contains(fold) && !screen.contains("thought 7"), "{screen}");
    let is_dim = terminal.look(|screen| {
        let row = screen
            .contents()
            .lines()
            .position(|line| line.starts_with("┊ thought 1"));
        let cell = screen.cell(u16::try_from(row.unwrap()).unwrap(), 2);
        cell.is_some_and(vt100::Cell::dim)
    });
    assert!(is_dim);
    terminal.send_line(":thinking");
    let screen = terminal.wait_for_prompts(3);
    assert!(
        screen.contains("thought 9\n\\x1b[2Jlast thought\n") && screen.matches("thought 1\n").count() == 2,
        "{screen}"
    );
    terminal.assert_never_wrote(b"\x1b[2Jlast");
    leave(terminal);
}

/// SPEC 8.9: with `NO_COLOR`, thinking is told by words instead.
#[test]
fn thinking_without_styles() {
    let server = FakeServer::script([thinks()]);
    let sandbox = Sandbox::with_model(&server).env("NO_COLOR", "1");
    let terminal = sandbox.terminal(&[]).start();
    terminal.wait_for_prompts(1);
    terminal.send_line("think");
    let screen = terminal.wait_for_prompts(2);
    assert!(
        screen.contains("thinking: thought 1\nthinking: thought 2\n"),
        "{screen}"
    );
    leave(terminal);
}

/// SPEC 10.3: a script gets the answer and no thinking, on neither stream.
#[test]
fn scripts_get_no_thinking() {
    let server = FakeServer::script([thinks()]);
    let output = Sandbox::with_model(&server).run(&["-p", "think"]).success();
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("the answer\n", ""));
}

/// SPEC 7.6: the wait before a request is made again is seen to pass, on one line of the screen.
#[test]
fn a_countdown() {
    let server = FakeServer::script([
        Reply::error(503, "busy").header("retry-after", "2"),
        Reply::text("there you are"),
    ]);
    let sandbox = Sandbox::with_model(&server);
    let terminal = sandbox.terminal(&[]).start();
    terminal.wait_for_prompts(1);
    terminal.send_line("hi");
    terminal.wait_for_bytes("trying again in 2 s (attempt 2)".as_bytes(), 1);
    terminal.wait_for_bytes("trying again in 1 s (attempt 2)".as_bytes(), 1);
    let screen = terminal.wait_for_prompts(2);
    assert!(
        screen.contains("trying again in 1 s (attempt 2)\nthere you are"),
        "{screen}"
    );
    assert_eq!(screen.matches("trying again").count(), 1, "{screen}");
    leave(terminal);
    server.assert_done();
}

/// SPEC 7.6, 8.7: Ctrl-C ends the wait, and the prompt is back.
#[test]
fn ctrl_c_ends_a_countdown() {
    let server = FakeServer::script([Reply::error(429, "slow down").header("retry-after", "100")]);
    let sandbox = Sandbox::with_model(&server);
    let terminal = sandbox.terminal(&[]).start();
    terminal.wait_for_prompts(1);
    terminal.send_line("hi");
    terminal.wait_for_text("trying again in 100 s (attempt 2)");
    terminal.send(key::CTRL_C);
    let screen = terminal.wait_for_prompts(2);
    assert!(screen.contains("[aish] stopped"), "{screen}");
    leave(terminal);
    server.assert_done();
}

/// SPEC 7.6, 10.4: where status lines go to no terminal, the wait is told once.
#[test]
fn a_wait_in_a_script() {
    let server = FakeServer::script([
        Reply::error(503, "busy").header("retry-after", "1"),
        Reply::text("there you are"),
    ]);
    let output = Sandbox::with_model(&server).run(&["-p", "hi"]).success();
    assert!(
        output.stderr.ends_with("trying again in 1 s (attempt 2)\n"),
        "{output:?}"
    );
    assert_eq!(output.stderr.matches("trying").count(), 1, "{output:?}");
    assert_eq!(output.stdout, "there you are\n");
}

/// SPEC 12: a server may count anything; sums stop at the end of what can be counted.
#[test]
fn absurd_counts() {
    let counts = json!({
        "choices": [],
        "usage": {"prompt_tokens": u64::MAX, "completion_tokens": u64::MAX},
    });
    let call = Reply::stream()
        .call_begins(0, "c1", "glob")
        .call_arguments(0, r#"{"pattern":"*"}"#)
        .finish("tool_calls")
        .event(&counts);
    let server = FakeServer::script([
        call.done(),
        Reply::stream().says("one").finish("stop").event(&counts).done(),
    ]);
    let output = Sandbox::with_model(&server).run(&["-p", "hi"]).success();
    assert_eq!(output.stdout, "one\n");
    assert!(!output.stderr.contains("fault"), "{output:?}");
}

/// SPEC 7.1, 10.3: a price that the server itself lists is charged where the user says no other, also by a server on this
/// machine, and the list shows what is charged. A price that nobody asks is none.
#[test]
fn prices_out_of_a_list() {
    let listing = json!({"data": [
        {"id": "m", "pricing": {"prompt": "0.0001", "completion": "0.0002"}},
        {"id": "joke", "pricing": {"prompt": "1e300", "completion": "1e300"}},
        {"id": "x".repeat(100_000)},
    ]});
    let server = FakeServer::builder()
        .listing(Reply::json(200, &listing))
        .otherwise(|_| says("one", 1_000, 500))
        .start();
    let cost = |sandbox: &Sandbox, model: &str| {
        let output = sandbox
            .run(&["-p", "hi", "--output", "json", "--model", model])
            .success();
        output.json()["usage"]["cost_usd"].as_f64()
    };
    let listed = |sandbox: &Sandbox, name: &str| {
        let models = sandbox.run(&["models", "list", "--output", "json"]).success().json();
        let mut models = models.as_array().unwrap().iter();
        models.find(|model| model["name"] == name).unwrap()["price"]["input"].as_f64()
    };
    let found = Sandbox::new().env("AISH_BASE_URL", &server.base_url());
    assert_eq!((cost(&found, "m"), listed(&found, "m")), (Some(0.2), Some(100.0)));
    assert_eq!((cost(&found, "joke"), listed(&found, "joke")), (None, None));
    let list = found.run(&["models", "list"]).success().stdout;
    assert!(list.contains("$100 in, $200 out") && list.len() < 1_000, "{list}");

    let own = format!("{PRICE}[models.cloud]\nprovider = \"anthropic\"\nmodel = \"claude-sonnet-4-5\"\n");
    let sandbox = Sandbox::with_model(&server).config(&own);
    assert_eq!(listed(&sandbox, "fake"), Some(100.0));
    assert_eq!(listed(&sandbox, "cloud"), Some(3.0), "that of the table");
}
