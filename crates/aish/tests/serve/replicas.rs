//! Several servers on one database (SPEC 9.5), each with a home of its own as on another machine: any of them answers for any other,
//! one that dies is taken over, one that was thought dead changes nothing when it wakes, and the database may crash meanwhile.
//!
//! `AISH_CRASHES` says how often the database crashes, `AISH_WAKES` how often a server is stopped and wakes.

use super::app::{Served, TOKEN_VARIABLE, accepted, message, place, refused, replied, results, route};
use super::postgres::{PASSWORD, PASSWORD_ENCODED, PostgresServer};
use crate::support::fake_server::{FakeServer, Received};
use crate::support::http::{Response, read_response};
use crate::support::ledger::{kinds, of_kind, text};
use crate::support::random::number;
use crate::support::reply::Reply;
use crate::support::sandbox::Sandbox;
use crate::support::{default_wait, poll_until};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Calls of one conversation.
pub const CALLS: usize = 10;

/// How often the database crashes, unless `AISH_CRASHES` says otherwise, and after how many answers.
const CRASHES: u64 = 4;
const ANSWERS_BETWEEN: usize = 5;

/// How often a server is stopped and wakes, unless `AISH_WAKES` says otherwise.
const WAKES: u64 = 1;

/// How often a request is sent that cannot be answered yet: a lease has to end, or a database to be there again.
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

/// SPEC 9.4, 9.5, 12: the database crashes while answers go on: each is applied once, and none that was acknowledged is lost.
#[test]
fn the_database_crashes() {
    let crashes = number("AISH_CRASHES").unwrap_or(CRASHES);
    let mut database = PostgresServer::start();
    let (model, url) = (model(), database.database_by_port());
    let home = place(&model);
    let served = start(&home, &url);
    let (mut crashed, mut repeated) = (0, 0);
    while crashed < crashes {
        let mut pending = served.chat("go", &["pick"]);
        for n in 1..=CALLS {
            let (path, answer) = (
                route(&pending, "tool_result"),
                json!({"call_id": pending["call_id"], "content": n.to_string()}),
            );
            let mut answering = served.begin(&path, &[], &answer).unwrap();
            if n % ANSWERS_BETWEEN == 0 {
                database.restart_immediately();
                crashed += 1;
            }
            let first = read_response(&mut answering).unwrap();
            let taken = std::iter::once(first).chain(std::iter::repeat_with(|| {
                repeated += 1;
                served.post(&path, &answer)
            }));
            // An app sends the same again as long as the server could not say.
            let unsure = |response: &Response| matches!(response.status, 500 | 503);
            let taken = taken.take(TRIES_MAX).find(|response| !unsure(response));
            pending = accepted(&taken.expect("an answer"));
        }
        replied(&pending, "done");
        let expect: Vec<String> = (1..=CALLS).map(|n| n.to_string()).collect();
        let happened = events(&served, &pending["conversation_id"]);
        let given = of_kind(&happened, "tool_result");
        let given: Vec<&str> = given.iter().map(|result| text(&result["data"]["output"])).collect();
        assert_eq!(given, expect);
        assert_eq!(of_kind(&happened, "resumed").len(), CALLS, "{}", kinds(&happened));
    }
    eprintln!("{crashed} crashes, {repeated} answers sent again");
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
