//! Replies over HTTP from a server that does what servers should not: it hangs, cuts, floods, lies and redirects.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use aish_core::event::ReplyStop;
use aish_core::message::{Message, Part, ToolChoice, text_of};
use aish_provider::client::{Network, Timeouts, client};
use aish_provider::{
    Delta, ErrorKind, HttpProvider, ModelProfile, Provider, ProviderError, Reply, ReplyStream, Request,
};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

#[path = "http/contents.rs"]
mod contents;
#[path = "http/refusals.rs"]
mod refusals;
mod server;

use server::{Server, Step, chunked, response};

const KEY: &str = "sk-very-secret-key";

fn timeouts() -> Timeouts {
    Timeouts {
        connect_timeout_s: 5,
        first_byte_timeout_s: 30,
        idle_timeout_s: 30,
        after_finish_timeout_s: 1,
        error_body_timeout_s: 1,
    }
}

fn provider_with(base_url: &str, network: &Network, timeouts: Timeouts) -> HttpProvider {
    let client = client(&timeouts, network).unwrap();
    let profile = ModelProfile::openai_chat(base_url, "m");
    HttpProvider::new(client, profile, Some(KEY.to_owned()), timeouts)
}

fn provider(server: &Server) -> HttpProvider {
    provider_with(&server.base_url(), &Network::default(), timeouts())
}

fn request(messages: &[Message]) -> Request<'_> {
    Request {
        model: "tested",
        system: "",
        messages,
        tools: &[],
        tool_choice: ToolChoice::Auto,
        max_output_tokens: None,
        schema: None,
    }
}

async fn send(provider: &HttpProvider) -> Result<Box<dyn ReplyStream>, ProviderError> {
    let messages = [Message::User {
        parts: vec![Part::text("hi")],
    }];
    provider.send(request(&messages)).await
}

async fn read(mut stream: Box<dyn ReplyStream>) -> (Reply, Vec<Delta>) {
    let mut out = Vec::new();
    while stream.next(&mut out).await {}
    (stream.finish(), out)
}

async fn ask(provider: &HttpProvider) -> (Reply, Vec<Delta>) {
    read(send(provider).await.unwrap()).await
}

/// The error of a request that does not begin.
async fn refused(provider: &HttpProvider) -> ProviderError {
    match send(provider).await {
        Ok(_) => panic!("it began"),
        Err(error) => error,
    }
}

fn text(content: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{content}\"}}}}]}}\n\n")
}

const CALL: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\
    \"function\":{\"name\":\"now\",\"arguments\":\"{}\"}}]}}]}\n\n";
const STOP: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const DONE: &str = "data: [DONE]\n\n";

fn events(body: &str) -> Step {
    Step::Write(response("200 OK", "content-type: text/event-stream\r\n", body))
}

/// SPEC 7.2, 7.3: recorded bytes of a real server, through the whole path.
#[tokio::test]
async fn recorded_bytes() {
    for (name, text, calls) in [
        ("a-chat-stream", "Hello, welcome to my world.", 0),
        ("b-tools-auto-dunder", "I call a function:\n", 1),
        ("a-chat-nonstream", "I'm counting to three.", 0),
        ("c-required-nonstream", "I call a function:\n", 1),
    ] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/llamacpp");
        let bytes = std::fs::read(folder.join(format!("{name}.response.http"))).unwrap();
        let server = Server::start(vec![vec![Step::Write(bytes)]]).await;
        let (reply, shown) = ask(&provider(&server)).await;
        assert_eq!(
            (text_of(&reply.parts).as_str(), reply.calls.len()),
            (text, calls),
            "{name}"
        );
        let said: String = shown
            .iter()
            .filter_map(|delta| match delta {
                Delta::Text(text) => Some(text.as_str()),
                Delta::Thinking(_) | Delta::CallBegun { .. } => None,
            })
            .collect();
        assert_eq!(said, text, "{name}");
        let asked = server.requests().remove(0);
        assert!(asked.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{asked}");
        assert!(asked.contains(&format!("authorization: Bearer {KEY}\r\n")), "{asked}");
    }
}

/// SPEC 11: one connection serves the rounds of a turn.
#[tokio::test]
async fn the_connection_is_kept() {
    let body = text("a") + STOP + DONE;
    let both = Step::Write(chunked("200 OK", &body));
    let server = Server::start(vec![vec![both.clone(), Step::Read, both]]).await;
    let provider = provider(&server);
    for _ in 0..2 {
        assert_eq!(ask(&provider).await.0.stop, ReplyStop::End);
    }
    assert_eq!((server.connections(), server.requests().len()), (1, 2));
}

/// SPEC 7.3, 12: text is shown before the reply is over, and a wait that is given up loses nothing.
#[tokio::test]
async fn deltas_come_at_once_and_waiting_can_be_given_up() {
    let (go, gate) = Step::gate();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let (first, second) = (text("first"), text("second"));
    let (half, rest) = second.split_at(30);
    let write = |parts: &[&str]| Step::Write(parts.concat().into_bytes());
    let script = vec![write(&[head, &first, half]), gate, write(&[rest, STOP, DONE])];
    let server = Server::start(vec![script]).await;
    let mut stream = send(&provider(&server)).await.unwrap();
    let mut out = Vec::new();
    assert!(stream.next(&mut out).await);
    assert_eq!(out, [Delta::Text("first".to_owned())]);
    for _ in 0..3 {
        tokio::select! {
            biased;
            more = stream.next(&mut out) => panic!("{more}"),
            () = tokio::task::yield_now() => {}
        }
    }
    go.send(()).unwrap();
    while stream.next(&mut out).await {}
    assert_eq!(out, ["first", "second"].map(|text| Delta::Text(text.to_owned())));
    let reply = stream.finish();
    assert_eq!(
        (reply.stop, text_of(&reply.parts).as_str()),
        (ReplyStop::End, "firstsecond")
    );
}

/// SPEC 7.3, 12: a reply that is given up has no calls, whatever it has said by then.
#[tokio::test]
async fn a_reply_given_up_is_truncated() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    let script = vec![Step::Write([head, CALL, STOP].concat().into_bytes()), Step::Hang];
    let server = Server::start(vec![script]).await;
    let mut stream = send(&provider(&server)).await.unwrap();
    let mut out = Vec::new();
    assert!(stream.next(&mut out).await);
    let reply = stream.finish();
    assert_eq!((reply.stop, reply.calls.len()), (ReplyStop::Truncated, 0));
    assert!(matches!(reply.parts.as_slice(), [Part::PartialCall { .. }]));
}

/// SPEC 7.3, 7.4, 12: a connection that breaks leaves what came, truncated, and says so.
#[tokio::test]
async fn cut_in_the_middle() {
    let body = [text("so far"), CALL.to_owned()].concat();
    let mut bytes = chunked("200 OK", &body);
    bytes.truncate(bytes.len() - "0\r\n\r\n".len());
    let server = Server::start(vec![vec![Step::Write(bytes)]]).await;
    let (reply, _) = ask(&provider(&server)).await;
    assert_eq!((reply.stop, reply.calls.len()), (ReplyStop::Truncated, 0));
    assert_eq!(text_of(&reply.parts), "so far");
    let error = reply.error.unwrap();
    assert_eq!(error.kind, ErrorKind::Broken);
    assert!(error.message.contains("the connection broke"), "{}", error.message);
    // The same cut where the server says that closing is the end: nothing to see but the missing reason.
    let server = Server::start(vec![vec![events(&body)]]).await;
    assert_eq!(ask(&provider(&server)).await.0.stop, ReplyStop::Truncated);
}

/// SPEC 7.4: a server that says why it ends and then keeps the connection open.
#[tokio::test]
async fn silence_after_the_end() {
    for tail in [STOP.to_owned(), format!("{STOP}{DONE}")] {
        let body = CALL.to_owned() + &tail;
        let bytes = format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n{body}").into_bytes();
        let server = Server::start(vec![vec![Step::Write(bytes), Step::Hang]]).await;
        let (reply, _) = ask(&provider(&server)).await;
        assert_eq!(
            (reply.stop, reply.calls.len(), reply.error),
            (ReplyStop::ToolCalls, 1, None)
        );
    }
}

/// SPEC 12: every wait has a limit: for the head, for the first event (comments do not count), and between chunks.
#[tokio::test]
async fn hanging_servers() {
    let short = Timeouts {
        first_byte_timeout_s: 1,
        idle_timeout_s: 1,
        ..timeouts()
    };
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    let server = Server::start(vec![vec![Step::Hang]]).await;
    let error = refused(&provider_with(&server.base_url(), &Network::default(), short)).await;
    assert_eq!(error.kind, ErrorKind::Timeout);
    assert!(
        error.message.ends_with("/v1/chat/completions: nothing came for 1 s"),
        "{}",
        error.message
    );
    for (body, shown) in [("".to_owned(), ""), (": working\n\n".to_owned(), ""), (text("a"), "a")] {
        let script = vec![Step::Write(format!("{head}{body}").into_bytes()), Step::Hang];
        let server = Server::start(vec![script]).await;
        let (reply, _) = ask(&provider_with(&server.base_url(), &Network::default(), short)).await;
        assert_eq!(
            (reply.stop, text_of(&reply.parts).as_str()),
            (ReplyStop::Truncated, shown)
        );
        assert_eq!(reply.error.unwrap().kind, ErrorKind::Timeout);
    }
}

/// SPEC 7.6: what a server asks us to wait is kept.
#[tokio::test]
async fn retry_after() {
    for (header, wait_ms) in [
        ("Retry-After: 7", Some(7_000)),
        ("retry-after-ms: 1500", Some(1_500)),
        ("x: y", None),
    ] {
        let body = r#"{"error":{"message":"slow down"}}"#;
        let bytes = response("429 Too Many Requests", &format!("{header}\r\n"), body);
        let server = Server::start(vec![vec![Step::Write(bytes)]]).await;
        let error = refused(&provider(&server)).await;
        assert_eq!(error.kind, ErrorKind::Status(429));
        assert!(error.kind.is_retryable());
        assert_eq!(error.retry_after, wait_ms.map(Duration::from_millis), "{header}");
        let expect = format!(
            "POST {}/chat/completions: 429 Too Many Requests: slow down",
            server.base_url()
        );
        assert_eq!(error.message, expect);
    }
}

/// SPEC 10.5, 12: a key does not come back in an error, even where the server repeats it, nor a password in the address.
#[tokio::test]
async fn the_key_does_not_leak() {
    let echo = format!(r#"{{"error":{{"message":"bad key Bearer {KEY} for hunter22"}}}}"#);
    let refusal = Step::Write(response("401 Unauthorized", "", &echo));
    let inside = events(&format!("data: {echo}\n\n"));
    let server = Server::start(vec![vec![refusal], vec![inside]]).await;
    let base_url = server.base_url().replace("http://", "http://me:hunter22@");
    let provider = provider_with(&base_url, &Network::default(), timeouts());
    let error = refused(&provider).await;
    assert_eq!(error.kind, ErrorKind::Auth);
    let later = ask(&provider).await.0.error.unwrap();
    for text in [error.message, later.message, format!("{provider:?}")] {
        assert!(!text.contains(KEY) && !text.contains("hunter22"), "{text}");
    }
}

/// SPEC 7.4: an error body with status 200, as an event and as plain JSON.
#[tokio::test]
async fn errors_with_status_200() {
    let error = r#"{"error":{"code":400,"message":"no room","type":"exceed_context_size_error"}}"#;
    for body in [
        error.to_owned(),
        format!("data: {error}\n\n"),
        format!("event: error\ndata: {error}\n\n"),
    ] {
        let server = Server::start(vec![vec![events(&body)]]).await;
        let (reply, shown) = ask(&provider(&server)).await;
        let error = reply.error.unwrap();
        assert_eq!(
            (reply.stop, error.kind, shown.len()),
            (ReplyStop::Truncated, ErrorKind::ContextOverflow, 0)
        );
        assert!(error.message.starts_with("POST http://127.0.0.1:"), "{}", error.message);
        assert!(error.message.ends_with(": no room"), "{}", error.message);
    }
}

/// SPEC 7.4: the content type is not believed; invalid UTF-8 does not end a reply; a web page is named as one.
#[tokio::test]
async fn wrong_bodies() {
    let stream = [
        b"\xEF\xBB\xBF\n".to_vec(),
        text("a\u{1}").replace('\u{1}', "#").into_bytes(),
        STOP.into(),
    ]
    .concat();
    let stream: Vec<u8> = stream
        .into_iter()
        .map(|byte| if byte == b'#' { 0xFF } else { byte })
        .collect();
    let mut bytes = response("200 OK", "content-type: application/json\r\n", "");
    bytes.extend_from_slice(&stream);
    let server = Server::start(vec![vec![Step::Write(bytes)]]).await;
    let (reply, _) = ask(&provider(&server)).await;
    assert_eq!(
        (reply.stop, text_of(&reply.parts).as_str()),
        (ReplyStop::End, "a\u{FFFD}")
    );

    let whole = "\u{FEFF} {\"choices\":[{\"message\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n";
    let server = Server::start(vec![vec![events(whole)]]).await;
    assert_eq!(ask(&provider(&server)).await.0.stop, ReplyStop::End);

    let page = response("200 OK", "content-type: text/html\r\n", "<!doctype html><p>Log in");
    let server = Server::start(vec![vec![Step::Write(page)]]).await;
    let error = ask(&provider(&server)).await.0.error.unwrap();
    assert_eq!(error.kind, ErrorKind::Protocol);
    assert!(error.message.contains("web page"), "{}", error.message);

    for body in ["", "[1]", "{\"choices\":", "nothing of the kind\n\n"] {
        let server = Server::start(vec![vec![events(body)]]).await;
        assert_eq!(ask(&provider(&server)).await.0.stop, ReplyStop::Truncated, "{body}");
    }
}

/// SPEC 12: a line without end, a document without end and a compressed flood stop at our bounds.
#[tokio::test]
async fn floods() {
    let head = |more: &str| format!("HTTP/1.1 200 OK\r\n{more}\r\n").into_bytes();
    let flood = |first: &str| vec![Step::Write(head("")), Step::Write(first.into()), Step::Flood(100 << 20)];
    for first in ["data: ", "{\"choices\":[{\"message\":{\"content\":\"", "data: a\n"] {
        let server = Server::start(vec![flood(first)]).await;
        let (reply, _) = ask(&provider(&server)).await;
        assert_eq!(reply.error.unwrap().kind, ErrorKind::TooLarge, "{first}");
        assert!(server.flooded() < 64 << 20, "{first}");
    }
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    bomb.write_all(b"data: ").unwrap();
    (0..100).for_each(|_| bomb.write_all(&vec![b'x'; 1 << 20]).unwrap());
    let bytes = [head("content-encoding: gzip\r\n"), bomb.finish().unwrap()].concat();
    let server = Server::start(vec![vec![Step::Write(bytes)]]).await;
    assert_eq!(ask(&provider(&server)).await.0.error.unwrap().kind, ErrorKind::TooLarge);

    // A refusal is read as far as it is quoted.
    let script = vec![
        Step::Write(b"HTTP/1.1 500 Oops\r\n\r\n".to_vec()),
        Step::Flood(100 << 20),
    ];
    let server = Server::start(vec![script]).await;
    let error = refused(&provider(&server)).await;
    assert_eq!(error.kind, ErrorKind::Status(500));
    assert!(error.message.len() < 1_000, "{}", error.message.len());
    assert!(server.flooded() < 64 << 20);
}

/// SPEC 6.11, 12: a redirect elsewhere gets neither key nor conversation; within the origin it is followed.
#[tokio::test]
async fn redirects() {
    let elsewhere = Server::start(vec![vec![events(&(text("stolen") + STOP))]]).await;
    let location = format!("location: {}/chat/completions?token=abc\r\n", elsewhere.base_url());
    let away = Step::Write(response("307 Temporary Redirect", &location, ""));
    let server = Server::start(vec![vec![away]]).await;
    let error = refused(&provider(&server)).await;
    assert_eq!(error.kind, ErrorKind::Status(307));
    assert!(
        error
            .message
            .contains(&format!("it redirects to {}", elsewhere.base_url())),
        "{}",
        error.message
    );
    assert!(!error.message.contains("abc"), "{}", error.message);
    assert_eq!(elsewhere.connections(), 0);

    let within = Step::Write(response("307 Temporary Redirect", "location: /v2/chat\r\n", ""));
    let server = Server::start(vec![vec![within], vec![events(&(text("here") + STOP))]]).await;
    assert_eq!(text_of(&ask(&provider(&server)).await.0.parts), "here");
    assert!(server.requests()[1].starts_with("POST /v2/chat HTTP/1.1"));
}

/// SPEC 10.4: a server that is not there is named, with the reason.
#[tokio::test]
async fn no_server() {
    let base_url = "http://127.0.0.1:1/v1";
    let error = refused(&provider_with(base_url, &Network::default(), timeouts())).await;
    assert_eq!(error.kind, ErrorKind::Connect);
    let begin = "POST http://127.0.0.1:1/v1/chat/completions: Connection refused";
    assert!(error.message.starts_with(begin), "{}", error.message);
    let error = refused(&provider_with("no address", &Network::default(), timeouts())).await;
    assert_eq!((error.kind, error.kind.is_retryable()), (ErrorKind::Protocol, false));
}

/// SPEC 6.11: this machine is never asked through a proxy.
#[tokio::test]
async fn loopback_needs_no_proxy() {
    let proxy = Server::start(vec![
        vec![events(&(text("proxy") + STOP))],
        vec![events(&(text("proxy") + STOP))],
    ])
    .await;
    let address = proxy.base_url().replace("/v1", "");
    let network = Network {
        http_proxy: Some(address.clone()),
        all_proxy: Some(address),
        ..Network::default()
    };
    let server = Server::start(vec![vec![events(&(text("direct") + STOP))]]).await;
    let direct = provider_with(&server.base_url(), &network, timeouts());
    assert_eq!(text_of(&ask(&direct).await.0.parts), "direct");
    // The proxy works, for everybody else.
    let far = provider_with("http://model.invalid/v1", &network, timeouts());
    assert_eq!(text_of(&ask(&far).await.0.parts), "proxy");
    assert_eq!(proxy.connections(), 1);
}
