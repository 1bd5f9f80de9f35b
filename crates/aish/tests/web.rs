//! `web_get` and `search_memory` in the whole program: the rules, the setting and the ledger behind them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use serde_json::{Value, json};
use support::fake_server::FakeServer;
use support::ledger::{export, of_kind, only_export, session_ids, text};
use support::reply::{Framing, Reply};
use support::sandbox::Sandbox;

/// A site of pages with these texts, and an address on it.
fn site(page: impl Fn(&str) -> Reply + Send + 'static) -> (FakeServer, String) {
    let server = FakeServer::builder().everything(move |asked| page(&asked.path)).start();
    let url = format!("http://{}", server.address());
    (server, url)
}

fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> Reply {
    let headers = headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let head = Reply {
        status,
        headers: headers.collect(),
        framing: Framing::Length,
        ..Reply::bare_stream()
    };
    head.bytes(body)
}

fn page(html: &str) -> Reply {
    answer(200, &[("content-type", "text/html")], html)
}

/// A model that fetches this, then says something.
fn fetching(url: &str) -> FakeServer {
    FakeServer::script([Reply::call("c1", "web_get", json!({ "url": url })), Reply::text("read")])
}

/// What the last call of a session came to.
fn last_result(events: &[Value]) -> Value {
    let results = of_kind(events, "tool_result");
    serde_json::from_str(text(&results.last().unwrap()["data"]["output"])).unwrap()
}

/// SPEC 12, issue 6: what is on this machine is not fetched, whatever the mode, until the user says so.
#[test]
fn this_machine_is_not_fetched() {
    let (site, url) = site(|_| page("<p>secret</p>"));
    let server = fetching(&url);
    let sandbox = Sandbox::with_model(&server);
    sandbox.run(&["-p", "go", "--approval", "full"]).success();
    let result = last_result(&only_export(&sandbox));
    assert!(text(&result["error"]).contains("tools.web_private = true"), "{result}");
    assert_eq!(site.connections(), 0);
}

/// SPEC 5.2, 5.6: a page is asked about in mode `ask`, and one of this network in mode `auto` too; a rule answers for its site.
#[test]
fn pages_are_judged() {
    let (site, url) = site(|_| page("<h1>Hello</h1>"));
    for (mode, rule, code) in [
        ("ask", "", 3),
        ("auto", "", 3),
        ("ask", &*format!("web_get({url}/*)"), 0),
        ("auto", "web_get(http://docs.example/*)", 3),
    ] {
        let server = fetching(&url);
        let sandbox = Sandbox::with_model(&server).config(
            &format!("\n[tools]\nweb_private = true\n[approval]\nallow = [{}]\n", json!(rule)).replace("[\"\"]", "[]"),
        );
        let asked_before = site.requests().len();
        sandbox.run(&["-p", "go", "--approval", mode]).exits(code);
        assert_eq!(
            site.requests().len() - asked_before,
            usize::from(code == 0),
            "{mode} {rule}"
        );
        if code == 0 {
            assert_eq!(last_result(&only_export(&sandbox))["output"], "# Hello");
        }
    }
}

/// SPEC 3.3, 5.1: a redirect leads nowhere that a call of its own would not have been let.
#[test]
fn redirects_are_judged() {
    let (other, elsewhere) = site(|_| page("<p>elsewhere</p>"));
    let target = elsewhere.clone();
    let (_site, url) = site(move |_| answer(302, &[("location", &format!("{target}/next"))], ""));
    let run = |rules: &str| {
        let server = fetching(&url);
        let sandbox =
            Sandbox::with_model(&server).config(&format!("\n[tools]\nweb_private = true\n[approval]\n{rules}\n"));
        sandbox.run(&["-p", "go"]).success();
        last_result(&only_export(&sandbox))["output"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let told = run(&format!("allow = [\"web_get({url}/*)\"]"));
    assert!(told.contains(&format!("redirects to {elsewhere}/next")), "{told}");
    assert_eq!(other.requests().len(), 0);
    let told = run(&format!("allow = [\"web_get({url}/*)\", \"web_get({elsewhere}/*)\"]"));
    assert_eq!(told, format!("[redirected to {elsewhere}/next]\n\nelsewhere"));
    let told = run(&format!("allow = [\"web_get\"]\ndeny = [\"web_get({elsewhere}/*)\"]"));
    assert!(told.contains("which nobody was asked about"), "{told}");
    assert_eq!(other.requests().len(), 1);
}

/// SPEC 4: what was said in an earlier session is found in the ledger, unasked.
#[test]
fn earlier_sessions_are_found() {
    let server = FakeServer::script([
        Reply::text("It is 4711."),
        Reply::call("c1", "search_memory", json!({"query": "wombat"})),
        Reply::text("found"),
    ]);
    let sandbox = Sandbox::with_model(&server);
    sandbox.run(&["-p", "the code of the wombat is 4711"]).success();
    sandbox.run(&["-p", "what was the code?"]).success();
    let last = session_ids(&sandbox).into_iter().max().unwrap();
    let result = last_result(&export(&sandbox, &last));
    assert_eq!(result["count"], 1);
    assert!(
        text(&result["output"]).ends_with("the user said:\n  the code of the wombat is 4711"),
        "{result}"
    );
    server.assert_done();
}
