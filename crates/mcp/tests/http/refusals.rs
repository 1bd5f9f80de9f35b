//! What a status that is no success means, what is told of it, and that credentials stay where they belong.

use super::server::{Server, TOKEN, ask, client, endpoint, failure, post, reqwest_client, response};
use aish_core::secret::Secret;
use aish_mcp::http::{HttpClient, transport};
use aish_mcp::{ErrorKind, HttpEndpoint};
use serde_json::json;

const RPC_ERROR: &str = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Not initialized"}}"#;

/// SPEC 6.6: each status has its kind, which is what is done about it depends on.
#[tokio::test]
async fn statuses() {
    let unknown = r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session not found"}}"#;
    let none = None;
    let named = Some("s-1");
    for (session, status, headers, body, kind, message) in [
        (
            none,
            "401 Unauthorized",
            "www-authenticate: Bearer realm=\"x\"\r\n",
            r#"{"error":"invalid_token"}"#,
            ErrorKind::Unauthorized {
                challenge: Some("Bearer realm=\"x\"".to_owned()),
            },
            "URL: 401 Unauthorized: invalid_token",
        ),
        (
            none,
            "401 Unauthorized",
            "",
            RPC_ERROR,
            ErrorKind::Unauthorized { challenge: None },
            "URL: 401 Unauthorized: Not initialized",
        ),
        (
            none,
            "403 Forbidden",
            "",
            "",
            ErrorKind::Forbidden,
            "URL: 403 Forbidden",
        ),
        (
            named,
            "404 Not Found",
            "",
            unknown,
            ErrorKind::SessionLost,
            "URL: 404 Not Found: Session not found",
        ),
        (
            named,
            "400 Bad Request",
            "",
            "No valid session ID",
            ErrorKind::SessionLost,
            "URL: 400 Bad Request: No valid session ID",
        ),
        (
            none,
            "404 Not Found",
            "",
            "nope",
            ErrorKind::Status(404),
            "URL: 404 Not Found: nope",
        ),
        (
            named,
            "400 Bad Request",
            "",
            "bad",
            ErrorKind::Status(400),
            "URL: 400 Bad Request: bad",
        ),
        (
            none,
            "503 Service Unavailable",
            "retry-after: 7\r\n",
            RPC_ERROR,
            ErrorKind::Status(503),
            "URL: 503 Service Unavailable: Not initialized: try again in 7 s",
        ),
        (
            none,
            "429 Too Many Requests",
            "retry-after: Sun, 22 Nov 2026 07:00:00 GMT\r\n",
            "",
            ErrorKind::Status(429),
            "URL: 429 Too Many Requests: try again after Sun, 22 Nov 2026 07:00:00 GMT",
        ),
        (
            none,
            "502 Bad Gateway",
            "content-type: text/html\r\n",
            "<html>",
            ErrorKind::Status(502),
            "URL: 502 Bad Gateway",
        ),
    ] {
        let seen = failure(response(status, headers, body), session).await;
        assert_eq!(seen, (kind, message.to_owned()));
    }
}

/// SPEC 6.6: an error of JSON-RPC is the server's answer whatever the status, and belongs to the request that was sent.
#[tokio::test]
async fn errors_in_refusals() {
    let unknown_method = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"Method not found"}}"#;
    for (session, status, body, code) in [
        (None, "400 Bad Request", RPC_ERROR, -32000),
        (Some("s-1"), "400 Bad Request", RPC_ERROR, -32000),
        (Some("s-1"), "404 Not Found", unknown_method, -32601),
        (None, "500 Internal Server Error", RPC_ERROR, -32000),
    ] {
        let server = Server::start(vec![response(status, "content-type: application/json\r\n", body)]).await;
        let (messages, error) = ask(&server.client(), session).await;
        assert_eq!(error, None, "{status}");
        assert_eq!(messages[0]["error"]["code"], code);
        assert_eq!(messages[0]["id"], 7);
    }
}

/// A refused notification is a failure of no request.
#[tokio::test]
async fn refused_notifications() {
    let server = Server::start(vec![response("404 Not Found", "", "")]).await;
    let client = server.client();
    let message = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let error = post(&client, message, Some("s-1")).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::SessionLost);
    assert_eq!(client.failures().take_latest(), Some(error));
}

/// SPEC 6.11: nothing of ours goes to another origin; the error says where it would have gone, without what is secret there.
#[tokio::test]
async fn redirects() {
    let elsewhere = Server::start(vec![response("200 OK", "", "")]).await;
    for status in [
        "301 Moved Permanently",
        "307 Temporary Redirect",
        "308 Permanent Redirect",
    ] {
        let to = format!("location: {}?key=v\r\n", elsewhere.url());
        let (kind, message) = failure(response(status, &to, ""), None).await;
        assert!(matches!(kind, ErrorKind::Status(301 | 307 | 308)), "{kind:?}");
        let wanted = format!("it redirects to {}, another origin", elsewhere.url());
        assert!(message.contains(&wanted) && !message.contains("key=v"), "{message}");
    }
    assert_eq!(elsewhere.requests(), Vec::<String>::new());
    let (_, message) = failure(response("301 Moved Permanently", "location: /other\r\n", ""), None).await;
    assert!(message.ends_with("/other: set url to it"), "{message}");
}

/// SPEC 6.3: credentials are in no error, even where the server repeats them, and in nothing that is written for debugging.
#[tokio::test]
async fn credentials_do_not_show() {
    let body = format!("you sent Bearer {TOKEN} and key-that-nobody-may-see, hunter2hunter2 q-secret-q");
    let challenge = format!("www-authenticate: Bearer {TOKEN}\r\n");
    let server = Server::start(vec![
        response("401 Unauthorized", &challenge, &body),
        response("200 OK", "", &body),
    ])
    .await;
    let url = server.url().replace("http://", "http://user:hunter2hunter2@") + "?q-secret-q";
    let client = client(&endpoint(&url));
    let mut shown = format!("{client:?}");
    for _ in 0..2 {
        let (_, error) = ask(&client, None).await;
        shown.push_str(&format!("{error:?} {}", error.as_ref().unwrap()));
    }
    for secret in ["nobody-may-see", "hunter2", "q-secret-q"] {
        assert!(!shown.contains(secret), "{shown}");
    }
    assert!(shown.contains("[redacted:token]"), "{shown}");
}

/// SPEC 6.1: what cannot be sent is said when the server is configured, not when it is asked, and no waiting mends it.
#[tokio::test]
async fn unusable_endpoints() {
    let refused = |endpoint: HttpEndpoint| {
        let error = HttpClient::new(&endpoint, &reqwest_client()).unwrap_err();
        assert!(!format!("{error:?}").contains("nobody-may-see"), "{error:?}");
        assert_eq!(error.kind, ErrorKind::Unusable);
        error.message
    };
    for url in ["", "mcp", "ftp://host/", "file:///etc/passwd", "http://"] {
        assert_eq!(refused(endpoint(url)), "its url is no http:// or https:// address");
    }
    for (name, why) in [
        (
            "Mcp-Session-Id",
            "the header `Mcp-Session-Id` is the protocol's own: remove it from `headers`",
        ),
        (
            "HOST",
            "the header `HOST` is the protocol's own: remove it from `headers`",
        ),
        (
            "mcp-param-x",
            "the header `mcp-param-x` is the protocol's own: remove it from `headers`",
        ),
        ("a b", "`a b` is no name of a header"),
        (
            "Authorization",
            "it has both a token and a header `Authorization`: remove one",
        ),
    ] {
        let mut endpoint = endpoint("http://localhost/");
        endpoint.headers = vec![(name.to_owned(), Secret::new("x"))];
        assert_eq!(refused(endpoint), why);
    }
    let mut split = endpoint("http://localhost/");
    split.token = Some(Secret::new("nobody-may-see\r\nx: y"));
    assert_eq!(refused(split), "its token has characters that no header can carry");
    assert!(transport(&endpoint("http://localhost:1/"), &reqwest_client()).is_ok());
}
