//! The server at a real socket: who is let in, how every refusal looks, and its end (SPEC 9.8).

use crate::bench::usual;
use crate::support::{World, within};
use aish_core::secret::Secret;
use aish_engine::Conversations;
use aish_provider::scripted::Act;
use aish_server::{Settings, serve};
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

const TOKEN: &str = "a-token-for-the-tests";

/// A server, and what is behind it.
pub struct Served {
    pub address: SocketAddr,
    pub stop: watch::Sender<bool>,
    pub serving: JoinHandle<()>,
    pub world: World,
}

impl Served {
    /// One whose model does these acts.
    pub async fn start(acts: impl IntoIterator<Item = Act>) -> Self {
        Self::with(Settings::default(), acts).await
    }

    /// The same with these settings, but for who is let in.
    pub async fn with(settings: Settings, acts: impl IntoIterator<Item = Act>) -> Self {
        Self::over(World::new(acts), settings).await
    }

    /// The same over what is there.
    pub async fn over(world: World, settings: Settings) -> Self {
        let conversations = Conversations::new(Arc::clone(&world.engine), usual());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let settings = Settings {
            token: Some(Secret::new(TOKEN)),
            hosts: vec!["aish.example".to_owned()],
            ..settings
        };
        let (stop, stopped) = watch::channel(false);
        let serving = tokio::spawn(async move {
            serve(conversations, listener, settings, stopped).await.unwrap();
        });
        Self {
            address,
            stop,
            serving,
            world,
        }
    }

    /// Sends these lines of a head and a body, and hears all that comes: status, head, body.
    pub async fn say(&self, head: &str, body: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = format!(
            "{head}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut heard = Vec::new();
        within(stream.read_to_end(&mut heard)).await.unwrap();
        let heard = String::from_utf8(heard).unwrap();
        let (head, body) = heard.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), head.to_lowercase(), body.to_owned())
    }
}

/// The head of a request that is let in, without its last line.
pub fn head(line: &str) -> String {
    format!("{line} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json")
}

/// SPEC 9.8: whoever has no token, comes to another host or from another origin is refused in the shape of all refusals; probes and
/// the page need none; a proxy's name is one of ours.
#[tokio::test]
async fn who_is_let_in() {
    let served = Served::start([]).await;
    let check = async |path: &str, headers: &str, expect: (u16, &str)| {
        let (status, head, body) = served.say(&format!("GET {path} HTTP/1.1\r\n{headers}"), "").await;
        assert_eq!(status, expect.0, "{headers}: {head} {body}");
        assert!(head.contains("x-request-id: ") && head.contains("x-content-type-options: nosniff"));
        if !expect.1.is_empty() {
            let error: Value = serde_json::from_str(&body).unwrap();
            assert_eq!(error["error"]["kind"], expect.1);
            assert!(head.contains("content-type: application/json"), "{head}");
        }
        assert_eq!(head.contains("www-authenticate: bearer"), status == 401, "{head}");
    };
    let token = format!("Authorization: Bearer {TOKEN}");
    check("/api/sessions", "Host: localhost", (401, "unauthorized")).await;
    check(
        "/api/sessions",
        "Host: localhost\r\nAuthorization: Bearer wrong",
        (401, "unauthorized"),
    )
    .await;
    check(
        "/api/sessions",
        &format!("Host: evil.example\r\n{token}"),
        (403, "forbidden"),
    )
    .await;
    check(
        "/api/sessions",
        &format!("Host: localhost\r\n{token}\r\nOrigin: http://evil.example"),
        (403, "forbidden"),
    )
    .await;
    check("/api/sessions", &format!("Host: localhost\r\n{token}"), (200, "")).await;
    check(
        "/api/sessions",
        &format!("Host: aish.example\r\n{token}\r\nOrigin: https://aish.example"),
        (200, ""),
    )
    .await;
    check("/openapi.json", "Host: localhost", (401, "unauthorized")).await;
    for open in ["/", "/healthz", "/readyz", "/page/app.js"] {
        check(open, "Host: localhost", (200, "")).await;
        check(open, "Host: evil.example", (403, "forbidden")).await;
    }
    check("/page/nothing.js", "Host: localhost", (404, "not_found")).await;
}

/// SPEC 9.8, 12: bodies that are too long are refused before they are there, and the client hears so.
#[tokio::test]
async fn bodies() {
    let served = Served::start([Act::text("still here")]).await;
    let long = "x".repeat(11 << 20);
    let (status, _, body) = served.say(&head("POST /api/chat"), &long).await;
    assert!(status == 413 && body.contains("\"too_large\""), "{status} {body}");
    let strangers = "POST /healthz HTTP/1.1\r\nHost: localhost";
    assert_eq!(served.say(strangers, "x").await.0, 413);
    assert_eq!(served.say(strangers, "").await.0, 405);
    let (status, head, body) = served.say(&head("POST /api/chat"), "{\"message\":\"hi\"}").await;
    assert!(status == 200 && body.contains("still here"), "{body}");
    assert!(head.contains("cache-control: no-store"), "{head}");
}

/// SPEC 9.8: when it is to end, a turn that runs is left for another server to go on with, its client is told, and it is over in
/// time.
#[tokio::test]
async fn its_end() {
    let served = Served::start([Act::Hang(Vec::new())]).await;
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let body = "{\"message\":\"hi\"}";
    let request = format!(
        "{}\r\nContent-Length: {}\r\n\r\n{body}",
        head("POST /api/chat"),
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let asked = async {
        while served.world.model.asked().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    within(asked).await;
    served.stop.send_replace(true);
    let mut heard = Vec::new();
    within(stream.read_to_end(&mut heard)).await.unwrap();
    let heard = String::from_utf8(heard).unwrap();
    assert!(
        heard.starts_with("HTTP/1.1 503") && heard.contains("\"unavailable\""),
        "{heard}"
    );
    within(served.serving).await.unwrap();
    assert!(TcpStream::connect(served.address).await.is_err());
}
