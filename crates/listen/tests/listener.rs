//! The listener at a real socket: who is let in, and what becomes of peers that send too much, too slowly or take nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use aish_core::secret::Secret;
use aish_listen::{Bodies, Guard, Limits, Refusal, RequestId, Service, serve};
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

const TOKEN: &str = "a-token-for-the-tests";
/// Bytes of a body that are taken.
const BODY_BYTES_MAX: usize = 1_000;
/// What `/large` answers: more than any socket holds.
const LARGE_BYTES: usize = 32 * 1024 * 1024;
/// How long anything may take before a test fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// Answers with the length of the body and what the request is called.
struct Measure {
    bodies: Bodies,
    /// Told of each request to `/never`.
    asked: Arc<Notify>,
}

impl Service for Measure {
    type Body = Full<Bytes>;

    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let id = request.extensions().get::<RequestId>().unwrap().clone();
        match request.uri().path() {
            "/large" => Response::new(Full::from(vec![b'x'; LARGE_BYTES])),
            "/never" => {
                self.asked.notify_one();
                std::future::pending().await
            }
            _ => match self.bodies.read(request).await {
                Ok(request) => Response::new(Full::from(format!("{} {id}", request.body().len()))),
                Err(refusal) => self.refuse(refusal, &id),
            },
        }
    }

    fn refuse(&self, refusal: Refusal, _: &RequestId) -> Response<Full<Bytes>> {
        refusal.answer(Full::from(refusal.message()))
    }

    fn is_open(&self, path: &str) -> bool {
        path == "/healthz"
    }
}

struct Served {
    address: SocketAddr,
    asked: Arc<Notify>,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl Served {
    async fn start(limits: Limits, bodies: Bodies) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let guard = Guard::new(address, Some(Secret::new(TOKEN)), Vec::new()).unwrap();
        let (stop, stopped) = watch::channel(false);
        let asked = Arc::new(Notify::new());
        let measure = Measure {
            bodies,
            asked: Arc::clone(&asked),
        };
        let serving = tokio::spawn(async move {
            let served = serve(measure, listener, (guard, limits), stopped).await;
            served.unwrap();
        });
        Self {
            address,
            asked,
            stop,
            serving,
        }
    }

    async fn usual() -> Self {
        Self::start(Limits::default(), bodies(PATIENCE)).await
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends these bytes; gives all that comes until the end.
    async fn say(&self, bytes: &str) -> String {
        let mut stream = self.connect().await;
        stream.write_all(bytes.as_bytes()).await.unwrap();
        hear(&mut stream).await
    }
}

fn bodies(timeout: Duration) -> Bodies {
    Bodies::new(BODY_BYTES_MAX, 2 * BODY_BYTES_MAX, timeout)
}

/// Reads to the end, or to where the connection broke.
async fn hear(stream: &mut TcpStream) -> String {
    let mut heard = Vec::new();
    let reading = stream.read_to_end(&mut heard);
    let _ = tokio::time::timeout(PATIENCE, reading).await.expect("an end");
    String::from_utf8_lossy(&heard).into_owned()
}

/// A request that is let in, with these headers and a body.
fn request(path: &str, headers: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\
         {headers}\r\n{body}"
    )
}

/// SPEC 9.8: a request has an id, the client's or ours; its answer says it, a refusal's as well.
#[tokio::test]
async fn request_ids() {
    let served = Served::usual().await;
    let heard = served.say(&request("/", "X-Request-Id: mine-1\r\n", "")).await;
    assert!(
        heard.contains("x-request-id: mine-1\r\n") && heard.ends_with("0 mine-1"),
        "{heard}"
    );
    let refused = served
        .say("GET / HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: no good\r\n\r\n")
        .await;
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    assert!(
        refused.contains("x-request-id: ") && !refused.contains("no good"),
        "{refused}"
    );
}

/// SPEC 9.8: a path that is open needs no token; a foreign `Host` is refused there as well.
#[tokio::test]
async fn open_paths() {
    let served = Served::usual().await;
    let get = async |path: &str, host: &str| {
        let heard = served
            .say(&format!(
                "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
            ))
            .await;
        heard.get(9..12).unwrap_or_default().to_owned()
    };
    assert_eq!(get("/healthz", "localhost").await, "200");
    assert_eq!(get("/healthz", "evil.example").await, "403");
    assert_eq!(get("/other", "localhost").await, "401");
    assert_eq!(get("/healthz/../other", "localhost").await, "401");
}

/// SPEC 9.8, 12: a head is counted to the byte, however it comes: one that is too long is refused, and its client hears so.
#[tokio::test]
async fn heads_within_bounds() {
    const HEAD_BYTES_MAX: usize = 16 * 1024;
    let limits = Limits {
        head_bytes_max: HEAD_BYTES_MAX,
        ..Limits::default()
    };
    let served = Served::start(limits, bodies(PATIENCE)).await;
    let bare = request("/", "X-Long: \r\n", "").len();
    let head = |bytes: usize| request("/", &format!("X-Long: {}\r\n", "x".repeat(bytes - bare)), "");
    assert!(served.say(&head(HEAD_BYTES_MAX)).await.starts_with("HTTP/1.1 200"));
    for bytes in [
        HEAD_BYTES_MAX + 1,
        3 * HEAD_BYTES_MAX / 2,
        2 * HEAD_BYTES_MAX,
        20 * HEAD_BYTES_MAX,
    ] {
        let heard = served.say(&head(bytes)).await;
        assert!(heard.starts_with("HTTP/1.1 431"), "{bytes}: {heard}");
        // In two pieces, the second of which is read into what room there is.
        let (mut stream, head) = (served.connect().await, head(bytes));
        let (first, rest) = head.split_at(HEAD_BYTES_MAX - 100);
        stream.write_all(first.as_bytes()).await.unwrap();
        // The connection may be over before all of it is there.
        let _ = stream.write_all(rest.as_bytes()).await;
        let heard = hear(&mut stream).await;
        assert!(heard.starts_with("HTTP/1.1 431"), "{bytes}: {heard}");
    }
}

/// SPEC 9.8: a body that is too long, says it will be, breaks off or never ends is refused, and the client hears so.
#[tokio::test]
async fn bodies_within_bounds() {
    let served = Served::usual().await;
    let long = "x".repeat(3_000_000);
    let told = format!("Content-Length: {}\r\n", long.len());
    let check = async |headers: &str, body: &str, expect: &str| {
        let heard = served.say(&request("/", headers, body)).await;
        assert!(heard.starts_with(&format!("HTTP/1.1 {expect}")), "{headers}: {heard}");
    };
    check("Content-Length: 1000\r\n", &long[..1_000], "200").await;
    check(&told, &long, "413").await;
    let chunk = format!("{:x}\r\n{long}\r\n0\r\n\r\n", long.len());
    check("Transfer-Encoding: chunked\r\n", &chunk, "413").await;
    check("Transfer-Encoding: chunked\r\n", "zz\r\n", "400").await;
    let hasty = Served::start(Limits::default(), bodies(Duration::from_millis(50))).await;
    let heard = hasty.say(&request("/", "Content-Length: 10\r\n", "x")).await;
    assert!(heard.starts_with("HTTP/1.1 408"), "{heard}");
    // Two that say nothing of their length take all the room there is.
    let open = request("/", "Transfer-Encoding: chunked\r\n", "");
    let (mut one, mut two) = (served.connect().await, served.connect().await);
    one.write_all(open.as_bytes()).await.unwrap();
    two.write_all(open.as_bytes()).await.unwrap();
    drop(two);
    one.write_all(b"1\r\nx\r\n0\r\n\r\n").await.unwrap();
    assert!(hear(&mut one).await.starts_with("HTTP/1.1 200"));
    check("Content-Length: 1000\r\n", &long[..1_000], "200").await;
}

/// SPEC 9.8: whoever takes nothing of its answer is cut, and others are served meanwhile.
#[tokio::test]
async fn who_takes_nothing() {
    let limits = Limits {
        write_timeout: Duration::from_millis(100),
        connections_max: 2,
        ..Limits::default()
    };
    let served = Served::start(limits, bodies(PATIENCE)).await;
    let mut stuck = served.connect().await;
    stuck.write_all(request("/large", "", "").as_bytes()).await.unwrap();
    assert!(served.say(&request("/", "", "")).await.starts_with("HTTP/1.1 200"));
    // Both places are taken until the first is cut.
    let mut second = served.connect().await;
    second.write_all(request("/large", "", "").as_bytes()).await.unwrap();
    assert!(served.say(&request("/", "", "")).await.starts_with("HTTP/1.1 200"));
    assert!(hear(&mut stuck).await.len() < LARGE_BYTES);
}

/// SPEC 9.8, 12: a head that never ends holds no place: its connection is closed, and gives way to others before.
#[tokio::test]
async fn heads_that_never_end() {
    let limits = Limits {
        connections_max: 4,
        newcomers_max: 2,
        ..Limits::default()
    };
    let served = Served::start(limits, bodies(PATIENCE)).await;
    let mut slow = Vec::new();
    for _ in 0..20 {
        let mut stream = served.connect().await;
        stream.write_all(b"GET / HTTP/1.1\r\nHost: ").await.unwrap();
        slow.push(stream);
    }
    assert!(served.say(&request("/", "", "")).await.starts_with("HTTP/1.1 200"));
    for stream in &mut slow {
        assert!(!hear(stream).await.contains(" 200 "));
    }
}

/// SPEC 9.8: at its end it accepts nobody, waits for what is under way, and cuts what does not end.
#[tokio::test]
async fn draining() {
    let limits = Limits {
        drain_timeout: Duration::from_millis(100),
        ..Limits::default()
    };
    let served = Served::start(limits, bodies(PATIENCE)).await;
    let mut idle = served.connect().await;
    let asked = request("/", "Content-Length: 1\r\n", "x").replace("Connection: close\r\n", "");
    idle.write_all(asked.as_bytes()).await.unwrap();
    idle.read_exact(&mut [0; 12]).await.unwrap();
    let mut endless = served.connect().await;
    endless.write_all(request("/never", "", "").as_bytes()).await.unwrap();
    tokio::time::timeout(PATIENCE, served.asked.notified())
        .await
        .expect("a request");
    served.stop.send_replace(true);
    tokio::time::timeout(PATIENCE, served.serving)
        .await
        .expect("an end")
        .unwrap();
    assert_eq!(hear(&mut endless).await, "");
    hear(&mut idle).await;
    assert!(TcpStream::connect(served.address).await.is_err());
}
