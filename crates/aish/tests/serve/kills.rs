//! `kill -9` of the server at any moment, while apps talk to it (SPEC 9.4, 9.5, 12): nothing that was answered is lost, and nothing
//! is done twice.
//!
//! Apps have conversations of several calls, of their own and built-in ones, and send what was not answered again, as
//! `docs/serve.md` tells them to. Meanwhile the server is killed at moments drawn from a seeded generator, and started again.
//! `AISH_KILLS` says how often.

use super::app::{Served, message, place, results, route};
use crate::support::fake_server::{FakeServer, Received};
use crate::support::ledger::{export, kinds, of_kind, text};
use crate::support::random::{Rng, number};
use crate::support::reply::Reply;
use crate::support::sandbox::Sandbox;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How often the server is killed, unless `AISH_KILLS` says otherwise.
const KILLS: u64 = 25;

/// Where the random moments begin.
const SEED: u64 = 0x5eed_0009;

/// The longest that a server lives.
const LIFE: Duration = Duration::from_millis(400);

/// Apps that talk at the same time.
const APPS: usize = 4;

/// Calls of one conversation: every other one is the app's.
const CALLS: usize = 6;

/// How long one request may take to be answered, over however many servers.
const ANSWER_S_MAX: u64 = 60;

/// Calls in turn the app and a command, and then says what it has seen.
fn model() -> FakeServer {
    let respond = |request: &Received| {
        let seen = results(request).len();
        let asked = text(&request.messages()[1]["content"]).trim().to_owned();
        match seen {
            CALLS => Reply::text(&format!("{asked} is done")),
            n if n % 2 == 0 => Reply::call(&format!("c{n}"), "pick", json!({"of": asked, "n": n})),
            n => Reply::call(
                &format!("c{n}"),
                "bash",
                json!({"command": format!("echo '{asked} {n}' >> ran")}),
            ),
        }
    };
    FakeServer::builder().otherwise(respond).start()
}

/// The server of the moment; none while another one is started, for which apps wait.
struct Place<'a> {
    sandbox: &'a Sandbox,
    served: RwLock<Option<Served>>,
    over: AtomicBool,
    asked: AtomicUsize,
    repeated: AtomicUsize,
}

impl Place<'_> {
    /// Sends a request until it is answered, with the same key every time.
    fn post(&self, path: &str, body: &Value) -> Value {
        let key = format!("key-{}", self.asked.fetch_add(1, Ordering::Relaxed));
        let deadline = Instant::now() + Duration::from_secs(ANSWER_S_MAX);
        loop {
            let begun = {
                let served = self.served.read().unwrap();
                served.as_ref().unwrap().begin(path, &[("Idempotency-Key", &key)], body)
            };
            // Without the lock: the server may die meanwhile.
            let answer = begun.and_then(|mut stream| crate::support::http::read_response(&mut stream));
            match answer {
                Ok(answer) if answer.status == 200 => return answer.json(),
                Ok(answer) => assert_eq!(answer.status, 503, "{path} {body}: {answer:?}"),
                Err(_) => {}
            }
            self.repeated.fetch_add(1, Ordering::Relaxed);
            assert!(Instant::now() < deadline, "not answered: {path} {body}");
        }
    }

    /// One conversation after the other until the killing is over; gives their ids with what was picked in each.
    fn talk(&self, app: usize) -> Vec<(String, Vec<String>)> {
        let mut all = Vec::new();
        while !self.over.load(Ordering::Relaxed) {
            let name = format!("app {app} talk {}", all.len());
            let mut picked = Vec::new();
            let mut envelope = self.post("/api/chat", &message(&name, &["pick"]));
            while envelope["tool_pending"] == true {
                let content = format!("{name} pick {}", envelope["tool_input"]["n"]);
                let answer = json!({"call_id": envelope["call_id"], "content": content});
                picked.push(content);
                envelope = self.post(&route(&envelope, "tool_result"), &answer);
            }
            assert_eq!(envelope["reply"], format!("{name} is done"), "{envelope}");
            all.push((text(&envelope["conversation_id"]).to_owned(), picked));
        }
        all
    }

    /// Kills the server at random moments.
    fn kill(&self, kills: u64) {
        let mut rng = Rng(number("AISH_SEED").unwrap_or(SEED));
        for _ in 0..kills {
            // The one sleep that is meant: the moment of the kill is what is random here.
            std::thread::sleep(rng.moment(LIFE));
            let mut served = self.served.write().unwrap();
            served.take().unwrap().kill_9();
            *served = Some(Served::start(self.sandbox));
        }
        self.over.store(true, Ordering::Relaxed);
    }
}

/// SPEC 9.4, 9.5, 12: over any number of kills each result is applied once and each envelope holds; a command runs once at most.
#[test]
fn kill_9_at_random_moments() {
    let kills = number("AISH_KILLS").unwrap_or(KILLS);
    let model = model();
    let sandbox = place(&model).config("[approval]\nmode = \"full\"\n");
    let place = Place {
        served: RwLock::new(Some(Served::start(&sandbox))),
        sandbox: &sandbox,
        over: AtomicBool::new(false),
        asked: AtomicUsize::new(0),
        repeated: AtomicUsize::new(0),
    };
    let talks: Vec<(String, Vec<String>)> = std::thread::scope(|scope| {
        let apps: Vec<_> = (0..APPS)
            .map(|app| {
                scope.spawn({
                    let place = &place;
                    move || place.talk(app)
                })
            })
            .collect();
        place.kill(kills);
        apps.into_iter().flat_map(|app| app.join().unwrap()).collect()
    });
    for (id, picked) in &talks {
        assert_whole(&export(&sandbox, id), picked);
    }
    let ran = fs::read_to_string(sandbox.path("ran")).unwrap();
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for line in ran.lines() {
        *times.entry(line).or_default() += 1;
    }
    let twice: Vec<_> = times.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "ran twice: {twice:?}");
    let repeated = place.repeated.load(Ordering::Relaxed);
    eprintln!(
        "{kills} kills, {} conversations, {repeated} requests sent again",
        talks.len()
    );
    assert!(repeated > 0, "no kill hit a request");
    drop(place);
    sandbox.assert_nothing_runs();
}

/// One result for each call; those of the app as it gave them; the turn is over.
fn assert_whole(events: &[Value], picked: &[String]) {
    let told = kinds(events);
    assert_eq!(of_kind(events, "turn_started").len(), 1, "{told}");
    assert_eq!(of_kind(events, "user").len(), 1, "{told}");
    assert_eq!(of_kind(events, "turn_ended").len(), 1, "{told}");
    assert_eq!(of_kind(events, "tool_call").len(), CALLS, "{told}");
    assert_eq!(of_kind(events, "resumed").len(), picked.len(), "{told}");
    let given = of_kind(events, "tool_result");
    assert_eq!(given.len(), CALLS, "{told}");
    let of_app = given.iter().filter(|result| result["data"]["name"] == "pick");
    let of_app: Vec<&str> = of_app.map(|result| text(&result["data"]["output"])).collect();
    assert_eq!(of_app, *picked, "{told}");
    for result in given.iter().filter(|result| result["data"]["name"] == "bash") {
        let output = text(&result["data"]["output"]);
        assert!(
            output.contains("\"exit_code\":0") || output.contains("interrupted"),
            "{output}"
        );
    }
}
