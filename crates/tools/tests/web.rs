//! `web_get` against servers on this machine: what is read, what is refused, and what a hostile server gains.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "web/redirects.rs"]
mod redirects;
#[path = "web/site.rs"]
mod site;
mod workbench;

use aish_core::action::{Effect, Reach};
use aish_tools::web::{Lookup, Proxies, WebGetTool, WebLimits};
use aish_tools::{NoProgress, WebAccess};
use serde_json::{Value, json};
use site::{Answer, Site, head, packed, page, response};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::watch;
use workbench::Place;

/// A client as the program begins it.
fn client() -> reqwest::ClientBuilder {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    reqwest::Client::builder()
        .user_agent("aish/test")
        .no_proxy()
        .tls_backend_preconfigured(tls)
}

/// The tool, where a connection to this machine is allowed.
fn place() -> Place {
    let mut place = place_for(WebGetTool::new(|| Ok(client()), Proxies::default()));
    place.context.web.reach = Reach::Anywhere;
    place
}

/// Any tool, with public addresses only.
fn place_for(tool: WebGetTool) -> Place {
    let mut place = Place::new();
    place.tools.append(Arc::new(tool)).unwrap();
    place.context.web = WebAccess::default();
    place
}

/// Names that lead where the test says, and how often they were looked up.
fn names(table: &[(&'static str, &str)]) -> (Lookup, Arc<AtomicUsize>) {
    let table: Vec<(&str, IpAddr)> = table.iter().map(|(name, ip)| (*name, ip.parse().unwrap())).collect();
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    let lookup: Lookup = Arc::new(move |name| {
        counter.fetch_add(1, Ordering::SeqCst);
        let found: Vec<SocketAddr> = table
            .iter()
            .filter(|(known, _)| *known == name)
            .map(|(_, ip)| SocketAddr::new(*ip, 0))
            .collect();
        let found = if found.is_empty() {
            Err(io::Error::other("no such name"))
        } else {
            Ok(found)
        };
        Box::pin(std::future::ready(found))
    });
    (lookup, count)
}

async fn get(place: &Place, url: &str) -> Value {
    let result = place.call("web_get", json!({ "url": url })).await;
    serde_json::from_str(&result.output).unwrap()
}

async fn error(place: &Place, url: &str) -> String {
    let result = get(place, url).await;
    result["error"]
        .as_str()
        .unwrap_or_else(|| panic!("no error: {result}"))
        .to_owned()
}

/// SPEC 4, 4.1: a page is text with its status and type; any status is a success.
#[tokio::test]
async fn pages_are_read() {
    let site = Site::serving([
        ("/page", page("<title>T</title><p>Hello <a href='/x'>there</a>")),
        ("/data", response("200 OK", "application/json", "{\"a\":  1}")),
        ("/gone", response("410 Gone", "text/html", "<h1>Gone</h1>")),
        ("/nothing", Answer::Bytes(head("204 No Content", ""))),
        (
            "/latin",
            response("200 OK", "text/html; charset=iso-8859-1", b"<p>caf\xE9"),
        ),
    ])
    .await;
    let place = place();
    let link = site.url("/x");
    for (path, output, status, content_type) in [
        (
            "/page",
            format!("T\n\nHello there ({link})"),
            200,
            "text/html; charset=utf-8",
        ),
        ("/data", "{\"a\":  1}".to_owned(), 200, "application/json"),
        ("/gone", "# Gone".to_owned(), 410, "text/html"),
        ("/missing", "nothing here".to_owned(), 404, "text/plain"),
        ("/nothing", String::new(), 204, ""),
        ("/latin", "café".to_owned(), 200, "text/html; charset=iso-8859-1"),
    ] {
        let expect = json!({"output": output, "status": status, "content_type": content_type});
        assert_eq!(get(&place, &site.url(path)).await, expect, "{path}");
    }
    let result = place.call("web_get", json!({"url": site.url("/data#part")})).await;
    assert_eq!(result.summary, format!("200 {} (9 characters)", site.url("/data")));
}

/// SPEC 4: nothing goes along but the question.
#[tokio::test]
async fn nothing_goes_along() {
    let site = Site::serving([("/a", site::redirect("/b")), ("/b", page("x"))]).await;
    get(&place(), &site.url("/a")).await;
    let requests = site.requests();
    assert_eq!(requests.len(), 2);
    for request in requests {
        let request = request.to_ascii_lowercase();
        assert!(request.starts_with("get /"), "{request}");
        assert!(request.contains("user-agent: aish/test"), "{request}");
        for absent in ["cookie:", "authorization:", "referer:"] {
            assert!(!request.contains(absent), "{request}");
        }
    }
}

/// SPEC 4.2: what is no text is named with its size and type; so is what cannot be reached.
#[tokio::test]
async fn failures_name_the_page() {
    let site = Site::serving([
        ("/pdf", response("200 OK", "application/pdf", "%PDF-1.7")),
        ("/zip", response("200 OK", "text/plain", b"PK\x03\x04\0\0\0\0")),
    ])
    .await;
    let place = place();
    let url = site.url("/pdf");
    assert_eq!(
        error(&place, &url).await,
        format!("Not a text page: {url} (8 bytes, application/pdf)")
    );
    let url = site.url("/zip");
    assert_eq!(
        error(&place, &url).await,
        format!("Not a text page: {url} (8 bytes, application/zip)")
    );
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", closed.local_addr().unwrap());
    drop(closed);
    let message = error(&place, &url).await;
    assert!(
        message.starts_with(&format!("Cannot fetch: {url} (")) && message.contains("refused"),
        "{message}"
    );
}

/// SPEC 12: a body that unpacks to a hundred times its size, and a line without an end, are read up to the limit and no further.
#[tokio::test]
async fn floods_are_cut() {
    let bomb = packed(64 << 20);
    let mut packed_page = head(
        "200 OK",
        &format!(
            "content-type: text/plain\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n",
            bomb.len()
        ),
    );
    packed_page.extend_from_slice(&bomb);
    let line = Answer::Endless(head("200 OK", "content-type: text/html\r\n"), vec![b'a'; 1 << 16]);
    let site = Site::serving([("/bomb", Answer::Bytes(packed_page)), ("/line", line)]).await;
    let mut place = place();
    place.context.output_bytes_max = 100 << 20;
    for path in ["/bomb", "/line"] {
        let result = get(&place, &site.url(path)).await;
        let output = result["output"].as_str().unwrap();
        let (page, note) = output.rsplit_once('\n').unwrap();
        assert_eq!(page.len(), 10 << 20, "{path}");
        assert_eq!(note, "[Only the first 10485760 bytes of the page were read]", "{path}");
    }
}

/// SPEC 4.3: the text is captured up to the limit of every tool.
#[tokio::test]
async fn output_is_bounded() {
    let site = Site::serving([("/", response("200 OK", "text/plain", "a".repeat(5000)))]).await;
    let mut place = place();
    place.context.output_bytes_max = 1024;
    let output = get(&place, &site.url("/")).await["output"].as_str().unwrap().to_owned();
    assert!(
        output.ends_with("a\n[Output truncated: showing first 1024 of 5000 bytes]"),
        "{output}"
    );
}

/// SPEC 12: a server that is silent, or stops in the middle, holds a call up for as long as the limit says; one that breaks off
/// is told.
#[tokio::test]
async fn slow_and_broken_servers() {
    let begun = [
        head("200 OK", "content-type: text/plain\r\ncontent-length: 100\r\n"),
        b"1234567".to_vec(),
    ]
    .concat();
    let site = Site::serving([
        ("/silent", Answer::Stall(Vec::new())),
        ("/stuck", Answer::Stall(begun.clone())),
        ("/broken", Answer::Bytes(begun)),
        ("/nonsense", Answer::Bytes(b"SSH-2.0-OpenSSH\r\n".to_vec())),
    ])
    .await;
    let limits = WebLimits {
        total_timeout_ms: 500,
        ..WebLimits::default()
    };
    let mut hasty = place_for(WebGetTool::new(|| Ok(client()), Proxies::default()).within(limits));
    hasty.context.web.reach = Reach::Anywhere;
    let url = site.url("/silent");
    assert_eq!(error(&hasty, &url).await, format!("No answer within 0.5 s: {url}"));
    let url = site.url("/stuck");
    assert_eq!(
        error(&hasty, &url).await,
        format!("Not whole within 0.5 s: {url} (7 bytes had come)")
    );
    let patient = place();
    let url = site.url("/broken");
    let message = error(&patient, &url).await;
    assert!(
        message.starts_with(&format!("{url} broke off after 7 bytes: ")),
        "{message}"
    );
    let url = site.url("/nonsense");
    let message = error(&patient, &url).await;
    assert!(message.starts_with(&format!("Cannot fetch: {url} (")), "{message}");
    assert_eq!(
        WebLimits::default(),
        WebLimits {
            connect_timeout_ms: 10_000,
            total_timeout_ms: 30_000,
            body_bytes_max: 10_485_760,
            redirects_max: 10
        }
    );
}

/// SPEC 3.5a: a call that is cancelled ends at once.
#[tokio::test]
async fn cancelled() {
    let site = Site::serving([("/", Answer::Stall(Vec::new()))]).await;
    let place = place();
    let (stop, cancel) = watch::channel(false);
    let arguments = json!({ "url": site.url("/") });
    let call = place.call_with("web_get", arguments, &NoProgress, cancel);
    let stopped = async {
        while site.requests().is_empty() {
            tokio::task::yield_now().await;
        }
        stop.send(true).unwrap();
    };
    let (result, ()) = tokio::join!(call, stopped);
    assert_eq!(result.output, r#"{"error":"Cancelled"}"#);
}

/// SPEC 3.3, 5.3: what is asked about is the whole address in its one form; a secret that was taken out of it is not made up.
#[tokio::test]
async fn what_is_asked_about() {
    let place = place_for(WebGetTool::new(|| Ok(client()), Proxies::default()));
    let action = place
        .inspect("web_get", json!({"url": "HTTPS://Docs.example.:443/%7Ea?q=1#part"}))
        .unwrap();
    let effect = Effect::Fetch {
        url: "https://docs.example/~a?q=1".to_owned(),
        reach: Reach::Public,
    };
    assert_eq!(action.effects, [effect]);
    assert!(action.is_read_only());
    let inspect = |url: &str| place.inspect("web_get", json!({ "url": url })).unwrap_err();
    assert!(inspect("https://a.example/?key=[redacted:API_KEY]").contains("placeholder"));
    assert!(inspect("https://me:secret@a.example/").contains("password"));
    assert!(inspect("gopher://a.example/").starts_with("Not an http or https address"));
}

/// SPEC 12, issue 6: nothing of this machine or its network is fetched before the user says so: by number nobody is even asked,
/// by name nobody is connected to.
#[tokio::test]
async fn private_addresses() {
    let site = Site::serving([("/", page("secret"))]).await;
    let (lookup, count) = names(&[("inside.example", "127.0.0.1")]);
    let mut place = place_for(WebGetTool::new(|| Ok(client()), Proxies::default()).looking_up(lookup));
    for url in [site.url("/"), format!("http://2130706433:{}/", site.port)] {
        let refused = place.inspect("web_get", json!({ "url": url })).unwrap_err();
        assert!(refused.contains("tools.web_private = true"), "{refused}");
    }
    assert_eq!(count.load(Ordering::SeqCst), 0);
    let url = format!("http://inside.example:{}/", site.port);
    let refused = error(&place, &url).await;
    assert!(
        refused.starts_with("Not a public address: inside.example (127.0.0.1)"),
        "{refused}"
    );
    assert!(refused.contains("tools.web_private = true"), "{refused}");
    assert_eq!(site.requests().len(), 0);
    place.context.web.reach = Reach::Anywhere;
    count.store(0, Ordering::SeqCst);
    assert_eq!(get(&place, &url).await["output"], "secret");
    // What was looked up is what was connected to: there is no second lookup that could say something else.
    assert_eq!(count.load(Ordering::SeqCst), 1);
}
