//! Several servers on one database (SPEC 9.5), each with a home of its own as on another machine: any of them answers for any other,
//! one that dies is taken over, one that was thought dead changes nothing when it wakes, and the database may crash meanwhile.
//!
//! `AISH_CRASHES` says how often the database crashes, `AISH_WAKES` how often a server is stopped and wakes.

use super::app::{Served, TOKEN_VARIABLE, accepted, message, place, refused, replied, results, route};
use super::postgres::{PASSWORD, PASSWORD_ENCODED, PostgresServer};
use crate::support::fake_server::{FakeServer, Received};
use crate::support::http::read_response;
use crate::support::ledger::{kinds, of_kind, text};
use crate::support::random::number;
use crate::support::reply::Reply;
use crate::support::sandbox::{Output, Sandbox};
use crate::support::{default_wait, poll_until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Calls of one conversation.
pub const CALLS: usize = 10;

/// How often the database crashes, unless `AISH_CRASHES` says otherwise, and after how many answers.
const CRASHES: u64 = 4;
const ANSWERS_BETWEEN: u64 = 5;

/// Apps that talk at the same time.
const APPS: usize = 4;

/// How often a server is stopped and wakes, unless `AISH_WAKES` says otherwise.
const WAKES: u64 = 1;

/// How often a request is sent that cannot be answered before a lease has ended.
const TRIES_MAX: usize = 30;

/// Calls the app so many times, and then says that it is done.
pub fn model() -> FakeServer {
    let respond = |request: &Received| match results(request).len() {
        CALLS => Reply::text("done"),
        n => Reply::call(&format!("c{n}"), "pick", json!({ "n": n })),
    };
    FakeServer::builder().otherwise(respond).start()
}

/// Servers on that database, each with a home of its own.
pub fn replicas(model: &FakeServer, url: &str, count: usize) -> Vec<(Served, Sandbox)> {
    let start_one = |_| {
        let sandbox = place(model);
        (start(&sandbox, url), sandbox)
    };
    (0..count).map(start_one).collect()
}

/// A server on that database.
fn start(sandbox: &Sandbox, url: &str) -> Served {
    Served::start_with(sandbox, &["--token-env", TOKEN_VARIABLE, "--store", url])
}

/// The events of a session as a server shows them.
pub fn events(served: &Served, id: &Value) -> Vec<Value> {
    let page = accepted(&served.get(&format!("/api/sessions/{}?limit=1000", text(id))));
    assert_eq!(page["more"], false);
    page["events"].as_array().unwrap().clone()
}

/// SPEC 9.4, 9.5: what one replica began any other goes on with; repeats are known everywhere.
#[test]
fn any_replica() {
    let mut database = PostgresServer::start();
    let model = model();
    let servers = replicas(&model, &database.database_by_port(), 3);
    let of = |n: usize| &servers[n % servers.len()].0;
    let key = [("Idempotency-Key", "one-key")];
    let body = message("go", &["pick"]);
    let first = accepted(&of(0).post_with("/api/chat", &key, &body));
    assert_eq!(accepted(&of(1).post_with("/api/chat", &key, &body)), first);
    refused(
        &of(2).post_with("/api/chat", &key, &message("else", &[])),
        422,
        "idempotency_key_reused",
    );
    let mut pending = first.clone();
    for n in 0..CALLS {
        let next = accepted(&of(n).answer(&pending, &n.to_string()));
        assert_eq!(accepted(&of(n + 1).answer(&pending, &n.to_string())), next);
        pending = next;
    }
    replied(&pending, "done");
    for (served, _) in &servers {
        let listed = accepted(&served.get("/api/sessions"));
        assert_eq!(listed["sessions"][0]["id"], first["conversation_id"], "{listed}");
        assert!(!served.said().contains("pass"), "{}", served.said());
    }
}

/// SPEC 9.5: what a replica had begun goes on when it is killed, and it knows of it when it is started again.
#[test]
fn a_replica_that_starts_again() {
    let mut database = PostgresServer::start();
    let (model, url) = (model(), database.database_by_port());
    let homes = [place(&model), place(&model)];
    let (dies, lives) = (start(&homes[0], &url), start(&homes[1], &url));
    let first = dies.chat("go", &["pick"]);
    dies.kill_9();
    let second = accepted(&lives.answer(&first, "1"));
    let again = start(&homes[0], &url);
    assert_eq!(accepted(&again.answer(&first, "1")), second);
    let third = accepted(&again.answer(&second, "2"));
    assert_eq!(accepted(&lives.answer(&second, "2")), third);
}

/// A model that never answers the first request, and says that it is done to all others.
fn model_that_hangs_once() -> FakeServer {
    FakeServer::builder()
        .reply(Reply::halting("what nobody", " waits for"))
        .otherwise(|_| Reply::text("done"))
        .start()
}

/// Waits until the only session is over, as that server sees it, and gives its events.
fn over(served: &Served) -> Vec<Value> {
    let id = accepted(&served.get("/api/sessions"))["sessions"][0]["id"].clone();
    poll_until("the turn is over", default_wait(), || {
        let happened = events(served, &id);
        (happened.last()?["kind"] == "turn_ended").then_some(happened)
    })
}

/// SPEC 2.12, 9.5: a replica that dies in the middle of a turn is taken over by another, whose client gets the reply.
#[test]
fn a_dead_replica() {
    let mut database = PostgresServer::start();
    let model = model_that_hangs_once();
    let mut servers = replicas(&model, &database.database(), 2);
    let (lives, dies) = (servers.remove(1), servers.remove(0));
    let key = [("Idempotency-Key", "k")];
    let body = message("go", &[]);
    dies.0
        .kill_9_meanwhile("/api/chat", &key, &body, || drop(model.wait_for_requests(1)));
    replied(&accepted(&lives.0.post_with("/api/chat", &key, &body)), "done");
    assert_eq!(of_kind(&over(&lives.0), "assistant").len(), 1);
}

/// SPEC 2.12, 9.5: it is taken over also when nobody asks for it.
#[test]
fn a_dead_replica_that_nobody_asks_for() {
    let mut database = PostgresServer::start();
    let model = model_that_hangs_once();
    let mut servers = replicas(&model, &database.database(), 2);
    let (lives, dies) = (servers.remove(1), servers.remove(0));
    dies.0.kill_9_meanwhile("/api/chat", &[], &message("go", &[]), || {
        drop(model.wait_for_requests(1))
    });
    model.wait_for_requests(2);
    assert_eq!(of_kind(&over(&lives.0), "assistant").len(), 1);
}

/// SPEC 2.12, 9.5: a replica that stands still for longer than its lease is taken over; when it wakes it writes nothing more.
#[test]
fn a_replica_that_wakes() {
    let mut database = PostgresServer::start();
    for _ in 0..number("AISH_WAKES").unwrap_or(WAKES) {
        stop_and_wake(&database.database());
    }
}

fn stop_and_wake(url: &str) {
    let model = model_that_hangs_once();
    let mut servers = replicas(&model, url, 2);
    let (lives, sleeps) = (servers.remove(1), servers.remove(0));
    let key = [("Idempotency-Key", "k")];
    let body = message("go", &["pick"]);
    let mut asked = sleeps.0.begin("/api/chat", &key, &body).unwrap();
    model.wait_for_requests(1);
    sleeps.0.running().signal(Signal::STOP);
    // The lease is longer than a test waits for one answer: the request is sent again, as a client would.
    let sent = (0..TRIES_MAX).find_map(|_| lives.0.ask("POST", "/api/chat", &key, &body.to_string()).ok());
    replied(&accepted(&sent.expect("an answer")), "done");
    let before = over(&lives.0);
    sleeps.0.running().signal(Signal::CONT);
    model.release();
    // Whoever asked it is told what the other one came to.
    replied(&accepted(&read_response(&mut asked).unwrap()), "done");
    let after = over(&sleeps.0);
    assert_eq!(kinds(&after), kinds(&before));
    assert!(!after.iter().any(|event| event.to_string().contains("what nobody")));
}

/// Posts until the server could say what came of it, as an app does, and counts the tries.
fn until_said(served: &Served, (path, key): (&str, &str), body: &Value, tries: &AtomicU64) -> Value {
    poll_until("an answer", default_wait(), || {
        tries.fetch_add(1, Ordering::Relaxed);
        let response = served.post_with(path, &[("Idempotency-Key", key)], body);
        (response.status != 503).then(|| accepted(&response))
    })
}

/// SPEC 9.4, 9.5, 12: the database crashes while answers go on: each is applied once, and none that was acknowledged is lost.
#[test]
fn the_database_crashes() {
    let crashes = number("AISH_CRASHES").unwrap_or(CRASHES);
    let mut database = PostgresServer::start();
    let (model, url) = (model(), database.database_by_port());
    let servers = replicas(&model, &url, 2);
    let (over, tries, said) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let talk = |app: usize| {
        let mut conversations = Vec::new();
        while !over.load(Ordering::Relaxed) {
            let mut to = (0..).map(|n| {
                (
                    format!("app-{app}-talk-{}-request-{n}", conversations.len()),
                    &servers[n % 2].0,
                )
            });
            let mut post = |path: &str, body: &Value| {
                let (key, served) = to.next().unwrap();
                let envelope = until_said(served, (path, &key), body, &tries);
                said.fetch_add(1, Ordering::Relaxed);
                envelope
            };
            let mut pending = post("/api/chat", &message("go", &["pick"]));
            for n in 1..=CALLS {
                let answer = json!({"call_id": pending["call_id"], "content": n.to_string()});
                pending = post(&route(&pending, "tool_result"), &answer);
            }
            replied(&pending, "done");
            conversations.push(pending["conversation_id"].clone());
        }
        conversations
    };
    let conversations: Vec<Value> = std::thread::scope(|scope| {
        let talk = &talk;
        let apps: Vec<_> = (0..APPS).map(|app| scope.spawn(move || talk(app))).collect();
        for _ in 0..crashes {
            let before = said.load(Ordering::Relaxed);
            poll_until("answers", default_wait(), || {
                (said.load(Ordering::Relaxed) >= before + ANSWERS_BETWEEN).then_some(())
            });
            database.restart_immediately();
        }
        over.store(true, Ordering::Relaxed);
        apps.into_iter().flat_map(|app| app.join().unwrap()).collect()
    });
    let expect: Vec<String> = (1..=CALLS).map(|n| n.to_string()).collect();
    for id in &conversations {
        let happened = events(&servers[0].0, id);
        let given = of_kind(&happened, "tool_result");
        let given: Vec<&str> = given.iter().map(|result| text(&result["data"]["output"])).collect();
        assert_eq!(given, expect);
        assert_eq!(of_kind(&happened, "resumed").len(), CALLS, "{}", kinds(&happened));
    }
    let answers = conversations.len() * CALLS;
    let again = tries.load(Ordering::Relaxed) - said.load(Ordering::Relaxed);
    eprintln!("{crashes} crashes, {answers} answers applied once, {again} requests sent again");
}

/// SPEC 9.8, 10.5: the password of the database is no variable of a command, and one that finds it all the same tells nobody, however
/// it is written.
#[test]
fn the_password_stays() {
    let mut database = PostgresServer::start();
    let written = database.database_by_port();
    let bare = written.replace(&format!(":{PASSWORD_ENCODED}@"), "@");
    for url in [&written, &bare] {
        let looks = "env; tr '\\0' '\\n' </proc/$(cat server)/environ; tr '\\0' '\\n' </proc/$(cat server)/cmdline";
        let model = FakeServer::script([
            Reply::call("c1", "bash", json!({"command": looks})),
            Reply::text("done"),
        ]);
        let mut home = place(&model).config("[approval]\nmode = \"full\"\n");
        if *url == bare {
            home = home.env("PGPASSWORD", PASSWORD);
        }
        let served = start(&home, url);
        std::fs::write(home.path("server"), served.running().pid().to_string()).unwrap();
        replied(&served.chat("go", &[]), "done");
        let told = &results(&model.requests()[1])[0];
        assert!(told.contains("PATH=") && told.contains("--store"), "{told}");
        assert_eq!(told.matches("[redacted:serve.store]").count(), 1, "{told}");
        assert!(!told.contains(PASSWORD) && !told.contains(PASSWORD_ENCODED), "{told}");
    }
}

/// SPEC 2.10, 9.5: whoever runs the servers lists, reads and writes out the conversations of the database, and is told whether it
/// answers, by its name and never its password.
#[test]
fn looked_at_by_a_person() {
    let mut database = PostgresServer::start();
    let (model, url) = (model(), database.database_by_port());
    let home = place(&model).env("AISH_SERVE_STORE", &url);
    let served = start(&home, &url);
    let pending = served.chat("a photo, please", &["pick"]);
    let id = text(&pending["conversation_id"]);
    let own = home.run(&["sessions", "list"]).success();
    assert!(
        !own.stdout.contains(id) && own.stderr.contains("sessions --served list"),
        "{own:?}"
    );
    for missed in [
        &["sessions", "show", id][..],
        &["resume", id],
        &["--resume", id, "-p", "?"],
    ] {
        let missed = home.run(missed).exits(2);
        assert!(missed.stderr.contains("sessions --served list"), "{missed:?}");
    }
    let listed = home.run(&["sessions", "list", "--served"]).success();
    assert!(
        listed.stdout.contains(id) && listed.stdout.contains("[waits]"),
        "{listed:?}"
    );
    let shown = home.run(&["sessions", "show", id, "--served"]).success();
    assert!(shown.stdout.contains("a photo, please"), "{shown:?}");
    assert!(shown.stderr.contains("waits for its client: pick"), "{shown:?}");
    let exported = home.run(&["sessions", "export", id, "--served"]).success();
    assert_eq!(
        exported.json_lines().len(),
        events(&served, &pending["conversation_id"]).len()
    );
    let there = home.run(&["doctor"]);
    let shown = format!("127.0.0.1:{}", database.port());
    assert!(
        there.stdout.contains(&shown) && there.stdout.contains("answers"),
        "{there:?}"
    );
    database.stop();
    let gone = home.run(&["doctor"]).exits(1);
    assert!(gone.stdout.contains("FAIL  serve.store"), "{gone:?}");
    for output in [there, gone, listed] {
        let said = format!("{output:?}");
        assert!(!said.contains(PASSWORD) && !said.contains(PASSWORD_ENCODED), "{said}");
    }
}

/// SPEC 9.5, 10.4: a person who looks at a database makes no tables in it and changes none, whatever it is like: that is a server's.
#[test]
fn looked_at_and_no_more() {
    let mut database = PostgresServer::start();
    let (model, url) = (model(), database.database_by_port());
    let home = place(&model).env("AISH_SERVE_STORE", &url);
    let of_store = |output: &Output| {
        let line = output.stdout.lines().find(|line| line.contains("serve.store"));
        line.map(str::to_owned).unwrap_or_else(|| panic!("{output:?}"))
    };
    let doctor = home.run(&["doctor"]).success();
    let line = of_store(&doctor);
    assert!(
        line.starts_with("ok") && line.contains("answers, and has no tables yet; `aish serve` makes them"),
        "{line}"
    );
    let listed = home.run(&["sessions", "--served", "list"]).exits(1);
    assert!(
        listed
            .stderr
            .contains("there is no ledger in postgres://aish@127.0.0.1")
            && listed.stderr.contains("`aish serve`"),
        "{listed:?}"
    );
    assert_eq!(
        database.psql("test_1", "SELECT count(*) FROM pg_namespace WHERE nspname = 'aish'"),
        "0"
    );

    let served = start(&home, &url);
    let pending = served.chat("go", &["pick"]);
    assert!(of_store(&home.run(&["doctor"]).success()).ends_with("answers"));
    served.terminate();
    // As an aish would have left it that came before the first.
    database.psql("test_1", "UPDATE aish.format SET version = 0");
    let line = of_store(&home.run(&["doctor"]).exits(1));
    assert!(
        line.starts_with("FAIL") && line.contains("of an earlier aish") && line.contains("looking changes nothing"),
        "{line}"
    );
    assert!(!line.contains("psql"), "{line}");
    let shown = home.run(&["sessions", "--served", "show", text(&pending["conversation_id"])]);
    assert!(shown.exits(1).stderr.contains("of an earlier aish"));
    assert_eq!(database.psql("test_1", "SELECT version FROM aish.format"), "0");
}

/// SPEC 5.6, 9.5: what waits for a yes in a shared database is not said to be answered by a command that knows nothing of it.
#[test]
fn a_yes_that_is_given_at_the_server() {
    let mut database = PostgresServer::start();
    let url = database.database();
    let model = FakeServer::script([Reply::call("c1", "bash", json!({"command": "true"}))]);
    let home = place(&model).env("AISH_SERVE_STORE", &url);
    let served = start(&home, &url);
    let pending = served.chat("go", &[]);
    let id = text(&pending["conversation_id"]);
    let shown = home.run(&["sessions", "--served", "show", id]).success();
    assert!(
        shown.stderr.contains("waits for an answer: bash(") && !shown.stderr.contains("aish resume"),
        "{shown:?}"
    );
    let route = format!("/api/sessions/{id}");
    assert!(shown.stderr.contains(&format!("GET {route}")), "{shown:?}");
    assert_eq!(
        accepted(&served.get(&route))["pending"]["session_id"],
        pending["session_id"]
    );
}
