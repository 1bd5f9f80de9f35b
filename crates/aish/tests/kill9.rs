//! `kill -9` at any moment (SPEC 2.5, 2.6, 3.2, 12): what was acknowledged is kept, no call runs twice, and the session goes
//! on from where it was.
//!
//! A conversation with several commands is started over and over and killed at moments drawn from a seeded generator over
//! the length of an undisturbed run; then it is resumed until its turn is closed. `AISH_KILLS` says how many times.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod support;

use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use support::fake_server::{FakeServer, Received};
use support::ledger::{end_of_last_turn, export, kinds, of_kind, session_ids, text};
use support::random::{Rng, number};
use support::reply::Reply;
use support::sandbox::{Output, Sandbox};
use support::strict::{Strictness, violation};

/// How many runs are killed, unless `AISH_KILLS` says otherwise.
const KILLS: usize = 100;

/// How many are under way at the same time: they wait more than they work.
const SIDE_BY_SIDE: usize = 4;

/// Where the random moments begin.
const SEED: u64 = 0x5eed_0001;

/// Replies with calls in one conversation.
const ROUNDS: usize = 3;

/// Calls in each of them.
const CALLS_A_ROUND: usize = 2;

/// Of so many killed runs, one is killed again while it is resumed.
const KILLS_A_SECOND_KILL: u64 = 3;

/// How often a session may have to be resumed before its turn is closed; one is the rule.
const RESUMES_MAX: usize = 3;

/// The calls of a round; each appends its own line to the file `ran`.
fn round(number: usize) -> Reply {
    let ids: Vec<String> = (1..=CALLS_A_ROUND).map(|n| format!("r{number}c{n}")).collect();
    let command = |id: &str| json!({ "command": format!("echo {id} >> ran") });
    let calls: Vec<_> = ids.iter().map(|id| (id.as_str(), "bash", command(id))).collect();
    Reply::calls(&calls)
}

/// Answers by what has been said so far, so that it fits a conversation that was cut off anywhere.
fn server() -> FakeServer {
    let respond = |request: &Received| {
        let messages = request.messages();
        let asked = messages
            .iter()
            .rposition(|message| message["role"] == "user")
            .unwrap_or(0);
        if request.last_text().contains("second question") {
            return Reply::text("second answer");
        }
        let rounds = messages[asked..]
            .iter()
            .filter(|message| message["tool_calls"].is_array())
            .count();
        if rounds < ROUNDS {
            round(rounds + 1)
        } else {
            Reply::text("first answer")
        }
    };
    FakeServer::builder()
        .strict(Strictness::Template)
        .otherwise(respond)
        .start()
}

/// What a killed run and its resumption left, for the totals that show that the kills hit something.
#[derive(Default)]
struct Totals {
    before_any_event: AtomicUsize,
    in_doubt: AtomicUsize,
    resumed: AtomicUsize,
    finished_before: AtomicUsize,
}

const QUESTION: [&str; 6] = ["-p", "first question", "--approval", "full", "--output", "jsonl"];

/// Every whole line a run had written: what it acknowledged.
fn acknowledged(output: &Output) -> Vec<Value> {
    let whole = output.stdout.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Starts a run and kills it after that long.
fn killed(sandbox: &Sandbox, arguments: &[&str], after: Duration) -> Output {
    let run = sandbox.start(arguments);
    // The one sleep that is meant: the moment of the kill is what is random here.
    std::thread::sleep(after);
    run.signal(Signal::KILL);
    let output = run.finish();
    // A command that outlived its shell writes its line before anything is looked at.
    sandbox.assert_nothing_runs();
    output
}

/// Kills one run at a moment within that time, and sometimes the one that resumes it; then resumes it to its end and looks at
/// everything.
fn kill_once(rng: &mut Rng, within: Duration, totals: &Totals) {
    let server = server();
    let sandbox = Sandbox::with_model(&server);
    let killed_run = killed(&sandbox, &QUESTION, rng.moment(within));
    let seen = acknowledged(&killed_run);
    let Some(id) = session_ids(&sandbox).pop() else {
        assert!(seen.is_empty(), "acknowledged and lost: {killed_run:#?}");
        totals.before_any_event.fetch_add(1, Ordering::Relaxed);
        return;
    };
    let mut before = export(&sandbox, &id);
    assert!(
        before.starts_with(&seen),
        "acknowledged and lost: {seen:#?} in {before:#?}"
    );
    if rng.next().is_multiple_of(KILLS_A_SECOND_KILL) {
        killed(&sandbox, &["resume", &id], rng.moment(within));
        let again = export(&sandbox, &id);
        assert!(again.starts_with(&before), "{} → {}", kinds(&before), kinds(&again));
        before = again;
    }
    let resumed = resume(&sandbox, &id, &before, totals);
    let after = export(&sandbox, &id);
    assert!(
        after.starts_with(&before),
        "what was there changed: {} → {}",
        kinds(&before),
        kinds(&after)
    );
    check_calls(&sandbox, &after);
    check_doubt(&before, &resumed, totals);
    end_of_last_turn(&after);
    let output = sandbox.run(&["-p", "second question", "--resume", &id]).success();
    assert_eq!(output.stdout, "second answer\n");
    let refused = |request: &Received| violation(&request.json, Strictness::Template);
    assert_eq!(server.requests().iter().find_map(refused), None);
    assert_eq!(server.problems(), Vec::<String>::new());
    sandbox.assert_nothing_runs();
}

/// Resumes until the turn is closed; what was said on the way.
fn resume(sandbox: &Sandbox, id: &str, before: &[Value], totals: &Totals) -> String {
    let is_closed = |events: &[Value]| events.last().is_some_and(|event| event["kind"] == "turn_ended");
    if is_closed(before) {
        totals.finished_before.fetch_add(1, Ordering::Relaxed);
        return String::new();
    }
    totals.resumed.fetch_add(1, Ordering::Relaxed);
    let mut said = String::new();
    for _ in 0..RESUMES_MAX {
        let output = sandbox.run(&["resume", id]);
        said.push_str(&output.stderr);
        if is_closed(&export(sandbox, id)) {
            assert_eq!(output.code, Some(0), "{output:#?}");
            return said;
        }
    }
    panic!("still open after {RESUMES_MAX} resumes: {said}");
}

/// No call ran twice: neither by its trace nor by the ledger; and each has exactly one result.
fn check_calls(sandbox: &Sandbox, events: &[Value]) {
    let ran = std::fs::read_to_string(sandbox.path("ran")).unwrap_or_default();
    let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
    for line in ran.lines() {
        *lines.entry(line).or_default() += 1;
    }
    assert!(lines.values().all(|count| *count == 1), "ran twice: {ran}");
    let count = |kind: &str, call: &str| {
        let of_call = |event: &&&Value| event["data"]["call_id"] == call || event["data"]["tool_call_id"] == call;
        of_kind(events, kind).iter().filter(of_call).count()
    };
    for call in of_kind(events, "tool_call") {
        let id = text(&call["data"]["id"]);
        assert_eq!(count("tool_result", id), 1, "{id}: {}", kinds(events));
        assert!(count("call_started", id) <= 1, "{id} was started twice");
    }
    // Every line was written by a call that the ledger says was started.
    assert!(lines.len() <= of_kind(events, "call_started").len(), "{ran}");
}

/// A call that was started and not finished is told to the person as in doubt, and to the model as interrupted.
fn check_doubt(before: &[Value], said: &str, totals: &Totals) {
    let ended = |call: &Value| {
        of_kind(before, "tool_result")
            .iter()
            .any(|result| result["data"]["tool_call_id"] == *call)
    };
    let started = of_kind(before, "call_started");
    let in_doubt = started.iter().filter(|event| !ended(&event["data"]["call_id"])).count();
    assert_eq!(said.matches("in doubt: ").count(), in_doubt, "{said}");
    totals.in_doubt.fetch_add(in_doubt, Ordering::Relaxed);
}

/// SPEC 2.5, 2.6, 3.2, 3.7, 12: nothing acknowledged is lost and nothing runs twice, wherever the kill falls.
#[test]
fn kill_9_at_random_moments() {
    let kills = number("AISH_KILLS").map_or(KILLS, |kills| usize::try_from(kills).unwrap());
    let begun = Instant::now();
    let whole = {
        let server = server();
        Sandbox::with_model(&server).run(&QUESTION).success();
        begun.elapsed()
    };
    let (next, totals) = (AtomicUsize::new(0), Totals::default());
    std::thread::scope(|scope| {
        for _ in 0..SIDE_BY_SIDE {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= kills {
                        return;
                    }
                    let mut rng = Rng(SEED.wrapping_add(u64::try_from(n).unwrap_or(0)));
                    // Several at once take longer than one alone: beyond its length too.
                    kill_once(&mut rng, whole * 2, &totals);
                }
            });
        }
    });
    let total = |count: &AtomicUsize| count.load(Ordering::Relaxed);
    eprintln!(
        "{kills} kills over {whole:?}: {} before any event, {} resumed with {} calls in doubt, {} were done",
        total(&totals.before_any_event),
        total(&totals.resumed),
        total(&totals.in_doubt),
        total(&totals.finished_before)
    );
    // Else nothing was tested.
    assert!(total(&totals.resumed) * 20 > kills, "too few kills fell into a turn");
}
