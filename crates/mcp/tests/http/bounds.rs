//! Floods, and streams that are opened again and again.

use super::server::{Answer, ID, Server, ask, events, json_body, response};
use aish_mcp::ErrorKind;
use aish_mcp::http::{HttpClient, transport};
use futures_util::StreamExt;
use rmcp::transport::streamable_http_client::{StreamableHttpClient, StreamableHttpError};
use std::collections::HashMap;

/// Bytes of a flood.
const FLOOD: usize = 100 << 20;
/// Bytes of it that may be taken: what one answer may have, and what is on its way in the buffers of sockets.
const TAKEN_MAX: usize = 24 << 20;

async fn flood(head: &str, piece: Vec<u8>) -> (ErrorKind, usize) {
    let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\n{head}").into_bytes();
    let server = Server::start(vec![Answer::Flood(head, piece, FLOOD)]).await;
    let (messages, error) = ask(&server.client(), None).await;
    // A stream ends with an error as its answer, so that the SDK does not open it again.
    assert!(
        messages
            .iter()
            .all(|message| message["error"].is_object() && message["id"] == 7),
        "{messages:?}"
    );
    (error.unwrap().kind, server.flooded())
}

/// SPEC 12: 100 MB, as one text or as a line without an end, are not kept; the request fails when the bound is reached.
#[tokio::test]
async fn floods() {
    let json = "content-type: application/json\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":\"";
    let stream = "content-type: text/event-stream\r\n\r\n";
    for (head, piece) in [
        (json, vec![b'x'; 1 << 16]),
        (stream, vec![b'x'; 1 << 16]),
        (stream, b"data: more\n".repeat(1 << 12)),
        ("\r\ndata: ", vec![b'x'; 1 << 16]),
    ] {
        let (kind, taken) = flood(head, piece).await;
        assert_eq!(kind, ErrorKind::TooLarge, "{head}");
        assert!(taken < TAKEN_MAX, "{head}: {taken}");
    }
    let announced = format!("content-type: application/json\r\ncontent-length: {FLOOD}\r\n\r\n");
    let (kind, taken) = flood(&announced, vec![b'x'; 1 << 16]).await;
    assert_eq!(kind, ErrorKind::TooLarge);
    assert!(taken < TAKEN_MAX / 2, "{taken}");
}

/// SPEC 12: an event stream that never answers ends as well.
#[tokio::test]
async fn endless_events() {
    let head = "content-type: text/event-stream\r\n\r\n";
    let (kind, taken) = flood(head, b": still here\n\n".repeat(1 << 12)).await;
    assert_eq!(kind, ErrorKind::TooLarge);
    assert!(taken < FLOOD, "{taken}");
}

/// SPEC 12: a refusal of any length costs no more than its beginning.
#[tokio::test]
async fn long_refusals() {
    let head = b"HTTP/1.1 500 Oops\r\nconnection: close\r\n\r\n".to_vec();
    let server = Server::start(vec![Answer::Flood(head, vec![b'x'; 1 << 16], FLOOD)]).await;
    let (_, error) = ask(&server.client(), None).await;
    let error = error.unwrap();
    assert_eq!(error.kind, ErrorKind::Status(500));
    assert!(error.message.len() < 500, "{error}");
    assert!(server.flooded() < TAKEN_MAX, "{}", server.flooded());
}

async fn listen(client: &HttpClient, last: Option<&str>) -> Option<usize> {
    let session = Some("s-1".into());
    let last = last.map(str::to_owned);
    match client.get_stream("".into(), session, last, None, HashMap::new()).await {
        Ok(stream) => Some(stream.count().await),
        Err(StreamableHttpError::ServerDoesNotSupportSse) => None,
        Err(other) => panic!("{other:?}"),
    }
}

/// SPEC 6.2: a stream for news that announces an address and closes is not opened again, nor is one that is none.
#[tokio::test]
async fn streams_for_news() {
    let endpoint = || events("event: endpoint\ndata: /mcp\n\n");
    let server = Server::start(vec![endpoint(), endpoint()]).await;
    let client = server.client();
    assert_eq!(listen(&client, None).await, Some(0));
    assert_eq!(listen(&client, None).await, None);
    assert_eq!(server.requests().len(), 1);
    let news = r#"data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let server = Server::start(vec![events(&format!("{news}\n\n")), events(&format!("{news}\n\n"))]).await;
    let client = server.client();
    assert_eq!(listen(&client, None).await, Some(1));
    assert_eq!(listen(&client, Some("e-1")).await, Some(1));
    let request = server.requests().remove(1).to_ascii_lowercase();
    assert!(
        request.contains("accept: text/event-stream\r\n") && request.contains("last-event-id: e-1\r\n"),
        "{request}"
    );
    for other in [
        response("405 Method Not Allowed", "", ""),
        response("404 Not Found", "", ""),
        response("401 Unauthorized", "", ""),
        json_body("{}"),
        response("200 OK", "", "data: x\n\n"),
    ] {
        let server = Server::start(vec![other]).await;
        assert_eq!(listen(&server.client(), None).await, None);
    }
}

/// SPEC 6.2: an answer that broke off is asked for once more where the server gave it an id, and the failure is forgotten when
/// the rest brings it.
#[tokio::test]
async fn resumption() {
    let server = Server::start(vec![
        events("id: e-1\ndata:\n\n"),
        events("data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n\n"),
    ])
    .await;
    let client = server.client();
    let request = serde_json::json!({"jsonrpc": "2.0", "id": 7, "method": "ping"});
    let stream = match super::server::post(&client, request, None).await.unwrap() {
        rmcp::transport::streamable_http_client::StreamableHttpPostResponse::Sse(stream, _) => stream,
        other => panic!("{other:?}"),
    };
    let ids: Vec<_> = stream.map(|sse| sse.unwrap().id).collect().await;
    assert_eq!(ids, [Some("e-1".to_owned())]);
    assert_eq!(listen(&client, Some("e-1")).await, Some(1));
    assert_eq!(client.failures().take(&ID), None);
}

/// SPEC 12: a server that ends every stream at once does not keep us opening them.
#[tokio::test]
async fn fruitless_streams() {
    let server = Server::start((0..100).map(|_| events("retry: 0\nid: 1\n\n")).collect()).await;
    let client = server.client();
    let mut opened = 0;
    while listen(&client, Some("1")).await.is_some() {
        opened += 1;
    }
    assert!((1..20).contains(&opened), "{opened}");
}

/// SPEC 6.2: the SDK's transport, whole: a server that closes its connections, has no session and accepts notifications with an
/// empty 200 is connected to.
#[tokio::test]
async fn the_transport() {
    let info = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-03-26","capabilities":{},
        "serverInfo":{"name":"lmcp","version":"1"}}}"#;
    let server = Server::start(vec![json_body(info), response("200 OK", "", "")]).await;
    let endpoint = super::server::endpoint(&server.url());
    let (transport, failures) = transport(&endpoint, &super::server::reqwest_client()).unwrap();
    let service = rmcp::serve_client((), transport).await;
    assert!(service.is_ok(), "{:?}", service.err());
    assert_eq!(failures.take_latest(), None);
    assert!(
        server
            .requests()
            .iter()
            .all(|request| request.contains("token-that-nobody-may-see"))
    );
}
