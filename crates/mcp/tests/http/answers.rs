//! What successes mean: to what has no answer, and to requests.

use super::server::{Answer, Server, ask, client, endpoint, events, failure, json_body, post, response};
use aish_core::secret::Secret;
use aish_mcp::ErrorKind;
use rmcp::transport::streamable_http_client::StreamableHttpPostResponse;
use serde_json::json;

const RESULT: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"odd":1}}"#;

/// SPEC 6.2: a server such as lmcp accepts notifications in several ways, some of them without a content type or a length.
#[tokio::test]
async fn notifications() {
    let ways = [
        response("202 Accepted", "", ""),
        response(
            "202 Accepted",
            "content-type: application/json\r\ncontent-length: 0\r\n",
            "",
        ),
        response("200 OK", "", ""),
        response("200 OK", "content-length: 0\r\n", ""),
        response("204 No Content", "", ""),
        json_body("{}"),
        json_body(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"?"}}"#),
        response("200 OK", "content-type: text/plain\r\n", "OK"),
        events(": nothing\n\n"),
    ];
    for answer in ways {
        let server = Server::start(vec![answer]).await;
        let message = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let posted = post(&server.client(), message, None).await.unwrap();
        assert!(matches!(posted, StreamableHttpPostResponse::Accepted), "{posted:?}");
    }
}

/// SPEC 6.3: what goes along with a request, and only where it belongs.
#[tokio::test]
async fn headers() {
    let server = Server::start(vec![json_body(RESULT)]).await;
    ask(&server.client(), Some("s-1")).await;
    let request = server.requests().remove(0).to_ascii_lowercase();
    for line in [
        "post /mcp http/1.1",
        "accept: application/json, text/event-stream",
        "content-type: application/json",
        "authorization: bearer token-that-nobody-may-see",
        "x-key: key-that-nobody-may-see",
        "mcp-session-id: s-1",
    ] {
        assert!(request.lines().any(|seen| seen == line), "{line} in {request}");
    }
}

/// SPEC 6.2: answers as JSON and as event streams, whatever their content type says.
#[tokio::test]
async fn answers() {
    let data = format!("data: {RESULT}\n\n");
    let plain = "content-type: text/plain; charset=utf-8\r\n";
    for answer in [
        json_body(RESULT),
        json_body(&format!("[{RESULT}]")),
        json_body(r#"{"id":"7","result":{"odd":1},"error":null}"#),
        response("200 OK", "", RESULT),
        response("200 OK", plain, RESULT),
        events(&data),
        events(&format!("id: 1\ndata:\n\nevent: message\n{data}")),
        events(&format!("event: endpoint\ndata: /messages\n\ndata: {RESULT}")),
        response("200 OK", "", &data),
        response("200 OK", "content-type: application/json\r\n", &format!("\r\n{data}")),
    ] {
        let server = Server::start(vec![answer]).await;
        let (messages, error) = ask(&server.client(), None).await;
        assert_eq!(error, None);
        let [message] = messages.as_slice() else {
            panic!("{messages:?}")
        };
        assert_eq!(message["id"], 7);
        assert_eq!(message["jsonrpc"], "2.0");
        assert!(message["result"].to_string().contains("\"odd\":1"), "{message}");
    }
}

/// SPEC 6.9: what a server says before it answers comes through; broken bytes and batches do not harm the rest.
#[tokio::test]
async fn asides() {
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":0.5}}"#;
    let server = Server::start(vec![
        Answer::Bytes(
            [
                b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n: \xff\xfe\n"
                    .as_slice(),
                format!("data: {progress}\n\ndata: {RESULT}\n\ndata: {progress}\n\n").as_bytes(),
            ]
            .concat(),
        ),
        json_body(&format!("[{progress},{RESULT}]")),
    ])
    .await;
    for _ in 0..2 {
        let (messages, error) = ask(&server.client(), None).await;
        assert_eq!(error, None);
        let methods: Vec<_> = messages.iter().map(|message| message["method"].as_str()).collect();
        assert_eq!(methods, [Some("notifications/progress"), None]);
    }
}

/// SPEC 6.6: what is no answer fails the request at once, saying what came.
#[tokio::test]
async fn no_answers() {
    let wrong = r#"{"jsonrpc":"2.0","id":8,"result":{}}"#;
    for (answer, kind, message) in [
        (
            response("200 OK", "content-type: text/html\r\n", "<html>\nHello"),
            ErrorKind::Protocol,
            "URL: 200 with text/html: it is no JSON: <html> Hello",
        ),
        (
            json_body(wrong),
            ErrorKind::Protocol,
            "URL: 200 with application/json: it answers another request (8)",
        ),
        (json_body(""), ErrorKind::Protocol, "URL: 200 with no answer in it"),
        (
            response("202 Accepted", "", ""),
            ErrorKind::Protocol,
            "URL: 202 with no answer in it",
        ),
        (
            json_body("[]"),
            ErrorKind::Protocol,
            "URL: 200 with application/json: no answer in it",
        ),
        (
            events(": hello\n\n"),
            ErrorKind::Closed,
            "URL: it ended without an answer",
        ),
        (
            events(&format!("data: {wrong}\n\n")),
            ErrorKind::Protocol,
            "URL: no answer came: it answers another request (8)",
        ),
        (
            events("data: hello\n\n"),
            ErrorKind::Protocol,
            "URL: no answer came: it is no JSON: hello",
        ),
    ] {
        assert_eq!(failure(answer, None).await, (kind, message.to_owned()));
    }
    for answer in [
        Answer::Bytes(Vec::new()),
        response(
            "200 OK",
            "content-type: application/json\r\ncontent-length: 99\r\n",
            "{\"id\":",
        ),
        response(
            "200 OK",
            "content-type: text/event-stream\r\ncontent-length: 99\r\n",
            "data: {",
        ),
    ] {
        let (kind, message) = failure(answer, None).await;
        assert_eq!(kind, ErrorKind::Closed, "{message}");
    }
}

/// SPEC 6.6: where nobody listens, nothing was sent.
#[tokio::test]
async fn unreachable() {
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", free.local_addr().unwrap());
    drop(free);
    let (_, error) = ask(&super::server::client(&super::server::endpoint(&url)), None).await;
    assert_eq!(error.unwrap().kind, ErrorKind::Unreachable);
}

/// SPEC 6.3, 10.5: a server that repeats what it was sent repeats no credential: not a header, not a short token, and not the
/// password of its address in any of its forms.
#[tokio::test]
async fn repeated_credentials() {
    let said = "Basic dTpwQDU1d29yZA== | p@55word | p%4055word | key-that-nobody-may-see | Bearer seven77 | engineering 2022-06-28";
    let answer = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"said":"{said}"}}}}"#);
    let server = Server::start(vec![json_body(&answer)]).await;
    let mut endpoint = endpoint(&server.url().replace("//", "//u:p%4055word@"));
    endpoint.token = Some(Secret::new("seven77"));
    let everyday = [("X-Team", "engineering"), ("X-Version", "2022-06-28")];
    let everyday = everyday.map(|(name, value)| (name.to_owned(), Secret::new(value)));
    endpoint.headers.extend(everyday);
    let (messages, error) = ask(&client(&endpoint), None).await;
    assert_eq!(error, None);
    let expect = "Basic [redacted:password] | [redacted:password] | [redacted:password] | [redacted:X-Key] | \
                  [redacted:token] | engineering 2022-06-28";
    assert!(messages[0].to_string().contains(expect), "{messages:?}");
}
