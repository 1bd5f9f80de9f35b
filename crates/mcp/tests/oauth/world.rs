//! An MCP server and its authorization server on ports of this machine, which do as they are told, and remember what they heard.

use aish_core::secret::Secret;
use aish_mcp::connect::Network;
use aish_mcp::oauth::{Identity, Keyring, Login, login};
use aish_mcp::{Alias, Endpoint, Era, HttpEndpoint, McpError, ServerConfig};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What goes otherwise than it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trick {
    Nothing,
    /// The browser comes back with another state, again and again.
    WrongState,
    /// The browser comes back with another state, then with the right one.
    StrayFirst,
    /// The browser comes back from another issuer.
    WrongIssuer,
    /// The browser comes back with two codes.
    TwoCodes,
    /// The person says no.
    Denied,
    /// The token endpoint redirects to another origin.
    TokenElsewhere,
    /// The token endpoint never answers.
    TokenHangs,
    /// The token endpoint refuses, and repeats what it was sent.
    TokenEchoes,
    /// The metadata never ends.
    HugeMetadata,
    /// The metadata offers no PKCE.
    NoPkce,
    /// The token endpoint is at an address without https, away from this machine.
    PlainToken,
    /// A call always needs another scope.
    NeverEnough,
    /// A call needs the scope `more`.
    NeedsMore,
    /// There is no description of anything.
    NoDocuments,
    /// The authorization server registers nobody.
    NoRegistration,
    /// Refreshing is refused for good.
    NoRefresh,
    /// Refreshing is answered with a page.
    PageForRefresh,
    /// A call is refused that wants a scope, whoever calls.
    CallsRefused,
}

/// One request, as it came.
#[derive(Clone, Debug)]
pub struct Heard {
    pub path: String,
    pub authorization: Option<String>,
    pub body: String,
}

/// Both servers; they end with the test's runtime.
pub struct World {
    pub url: String,
    pub other: String,
    shared: Arc<Shared>,
}

struct Shared {
    trick: Mutex<Trick>,
    base: Mutex<String>,
    other: Mutex<String>,
    heard: Mutex<Vec<Heard>>,
    /// What the browser showed in the end: status and text.
    pages: Mutex<Vec<(u16, String)>>,
    /// Which access token is good, and what it allows.
    good: Mutex<(usize, String)>,
    expires_in_s: Mutex<u64>,
    count: watch::Sender<usize>,
}

impl World {
    pub async fn start(trick: Trick) -> Self {
        let (listener, other) = (listen().await, listen().await);
        let base = format!("http://{}", listener.local_addr().unwrap());
        let elsewhere = format!("http://{}", other.local_addr().unwrap());
        let shared = Arc::new(Shared {
            trick: Mutex::new(trick),
            base: Mutex::new(base.clone()),
            other: Mutex::new(elsewhere.clone()),
            heard: Mutex::default(),
            pages: Mutex::default(),
            good: Mutex::new((0, String::new())),
            expires_in_s: Mutex::new(3_600),
            count: watch::Sender::new(0),
        });
        for listener in [listener, other] {
            let shared = Arc::clone(&shared);
            tokio::spawn(async move {
                while let Ok((socket, _)) = listener.accept().await {
                    tokio::spawn(serve(socket, Arc::clone(&shared)));
                }
            });
        }
        Self {
            url: format!("{base}/mcp"),
            other: elsewhere,
            shared,
        }
    }

    /// Does otherwise from now on.
    pub fn turn(&self, trick: Trick) {
        *self.shared.trick.lock().unwrap() = trick;
    }

    /// How long tokens last from now on.
    pub fn set_lifetime_s(&self, seconds: u64) {
        *self.shared.expires_in_s.lock().unwrap() = seconds;
    }

    /// The token that was good is none any more.
    pub fn revoke(&self) {
        self.shared.good.lock().unwrap().0 += 100;
    }

    /// The requests so far of that path.
    pub fn heard(&self, path: &str) -> Vec<Heard> {
        let heard = self.shared.heard.lock().unwrap();
        heard
            .iter()
            .filter(|heard| heard.path.split('?').next() == Some(path))
            .cloned()
            .collect()
    }

    /// The pages that the browser has shown at the end of logins, when there are so many.
    pub async fn pages(&self, number: usize) -> Vec<(u16, String)> {
        let mut count = self.shared.count.subscribe();
        loop {
            let pages = self.shared.pages.lock().unwrap().clone();
            if pages.len() >= number {
                return pages;
            }
            count.changed().await.unwrap();
        }
    }

    /// Waits for a request of that path.
    pub async fn reached(&self, path: &str) {
        self.reached_times(path, 1).await;
    }

    /// Lets everything that hangs be answered, and nothing hang from now on.
    pub fn release(&self) {
        self.turn(Trick::Nothing);
        self.shared.count.send_modify(|count| *count += 1);
    }

    /// Waits for so many requests of that path.
    pub async fn reached_times(&self, path: &str, times: usize) {
        let mut count = self.shared.count.subscribe();
        while self.heard(path).len() < times {
            count.changed().await.unwrap();
        }
    }

    pub fn config(&self) -> ServerConfig {
        ServerConfig {
            alias: alias(),
            endpoint: Endpoint::Http(self.endpoint()),
            timeout: Duration::from_secs(20),
            era: Era::Initialize(None),
            enabled_tools: Vec::new(),
            disabled_tools: Vec::new(),
            is_required: false,
            is_trusted: false,
        }
    }

    pub fn endpoint(&self) -> HttpEndpoint {
        HttpEndpoint {
            url: self.url.clone(),
            token: None,
            headers: Vec::new(),
        }
    }

    /// Logs in, with a browser that follows wherever it is sent.
    pub async fn login(&self, network: &Network, challenge: Option<&str>) -> Result<(), McpError> {
        let (alias, endpoint) = (alias(), self.endpoint());
        let told = Login {
            alias: &alias,
            endpoint: &endpoint,
            client: &network.client,
            keyring: &network.keyring,
            identity: &Identity::Unknown,
            challenge,
        };
        login(&told, |address| {
            let browser = browse(network.client.clone(), address.clone(), Arc::clone(&self.shared));
            tokio::spawn(browser);
        })
        .await
    }
}

/// Follows wherever it is sent, and tries again where it is not understood.
async fn browse(client: reqwest::Client, address: url::Url, shared: Arc<Shared>) {
    loop {
        let there = client.get(address.clone()).send().await.unwrap();
        let back = there.headers().get("location").unwrap().to_str().unwrap().to_owned();
        // The login may be over meanwhile.
        let Ok(page) = client.get(back).send().await else {
            return;
        };
        let status = page.status().as_u16();
        let text = page.text().await.unwrap_or_default();
        shared.pages.lock().unwrap().push((status, text));
        shared.count.send_modify(|count| *count += 1);
        let trick = *shared.trick.lock().unwrap();
        match trick {
            Trick::WrongState => {}
            Trick::StrayFirst if status == 400 => *shared.trick.lock().unwrap() = Trick::Nothing,
            _ => return,
        }
    }
}

pub fn alias() -> Alias {
    Alias::parse("srv").unwrap()
}

/// A client that follows no redirect and uses no proxy, and no tokens yet.
pub fn network() -> Network {
    // A second test of the process finds it installed.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy();
    Network {
        client: client.build().unwrap(),
        keyring: Keyring::in_memory(),
    }
}

/// Every secret that is known.
pub fn secrets(network: &Network) -> Vec<Secret> {
    network
        .keyring
        .secrets()
        .into_iter()
        .map(|(_, secret)| secret)
        .collect()
}

async fn listen() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

async fn serve(mut socket: TcpStream, shared: Arc<Shared>) {
    let Some(heard) = read(&mut socket).await else { return };
    shared.heard.lock().unwrap().push(heard.clone());
    shared.count.send_modify(|count| *count += 1);
    let trick = *shared.trick.lock().unwrap();
    let path = heard.path.split('?').next().unwrap_or_default().to_owned();
    let (status, headers, body) = match path.as_str() {
        path if trick == Trick::NoDocuments && path != "/mcp" => (404, String::new(), Value::Null),
        "/mcp" => shared.mcp(trick, &heard),
        "/token" if trick == Trick::TokenHangs => {
            let mut count = shared.count.subscribe();
            while *shared.trick.lock().unwrap() == Trick::TokenHangs {
                count.changed().await.unwrap();
            }
            shared.token(Trick::Nothing, &heard)
        }
        "/token" => shared.token(trick, &heard),
        "/authorize" => shared.authorize(trick, &heard),
        "/register" => (201, String::new(), json!({"client_id": "client-one"})),
        "/.well-known/oauth-protected-resource/mcp" => (200, String::new(), shared.resource()),
        "/.well-known/oauth-authorization-server" if trick == Trick::HugeMetadata => {
            return flood(socket).await;
        }
        "/.well-known/oauth-authorization-server" => (200, String::new(), shared.metadata(trick)),
        _ => (404, String::new(), Value::Null),
    };
    let body = body.to_string();
    let answer = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n{body}",
        body.len()
    );
    // A client that has gone away hears nothing.
    let _ = socket.write_all(answer.as_bytes()).await;
}

/// A document of which more comes than anybody wants.
async fn flood(mut socket: TcpStream) {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{\"issuer\":\"";
    let piece = vec![b'x'; 1 << 16];
    if socket.write_all(head.as_bytes()).await.is_ok() {
        while socket.write_all(&piece).await.is_ok() {}
    }
}

async fn read(socket: &mut TcpStream) -> Option<Heard> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let header = |name: &str| {
                let lines = head.lines().filter_map(|line| line.split_once(": "));
                lines
                    .into_iter()
                    .find(|(key, _)| key.eq_ignore_ascii_case(name))
                    .map(|(_, value)| value.to_owned())
            };
            let length = header("content-length").map_or(0, |length| length.parse().unwrap());
            if body.len() >= length {
                return Some(Heard {
                    path: head.split(' ').nth(1)?.to_owned(),
                    authorization: header("authorization"),
                    body: body.to_owned(),
                });
            }
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

type Answer = (u16, String, Value);

impl Shared {
    fn base(&self) -> String {
        self.base.lock().unwrap().clone()
    }

    fn resource(&self) -> Value {
        let base = self.base();
        json!({"resource": format!("{base}/mcp"), "authorization_servers": [base], "scopes_supported": ["base"]})
    }

    fn metadata(&self, trick: Trick) -> Value {
        let base = self.base();
        let methods = if trick == Trick::NoPkce {
            json!(["plain"])
        } else {
            json!(["S256"])
        };
        let token = if trick == Trick::PlainToken {
            "http://auth.example"
        } else {
            base.as_str()
        };
        json!({
            "issuer": base,
            "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{token}/token"),
            "registration_endpoint": (trick != Trick::NoRegistration).then(|| format!("{base}/register")),
            "code_challenge_methods_supported": methods,
            "authorization_response_iss_parameter_supported": true,
        })
    }

    fn authorize(&self, trick: Trick, heard: &Heard) -> Answer {
        let asked = query(heard.path.split_once('?').unwrap().1);
        let state = if matches!(trick, Trick::WrongState | Trick::StrayFirst) {
            "another"
        } else {
            asked["state"].as_str()
        };
        let issuer = if trick == Trick::WrongIssuer {
            self.other.lock().unwrap().clone()
        } else {
            self.base()
        };
        let outcome = match trick {
            Trick::Denied => "error=access_denied&error_description=%1b[31mno".to_owned(),
            Trick::TwoCodes => "code=code-one&code=code-two".to_owned(),
            _ => "code=code-one-secret".to_owned(),
        };
        self.good.lock().unwrap().1 = asked.get("scope").cloned().unwrap_or_default();
        let to = format!("{}?{outcome}&state={state}&iss={issuer}", asked["redirect_uri"]);
        (302, format!("location: {to}\r\n"), Value::Null)
    }

    fn token(&self, trick: Trick, heard: &Heard) -> Answer {
        let asked = query(&heard.body);
        let is_refresh = asked["grant_type"] == "refresh_token";
        match trick {
            Trick::TokenElsewhere => {
                let other = self.other.lock().unwrap().clone();
                return (307, format!("location: {other}/stolen\r\n"), Value::Null);
            }
            Trick::TokenEchoes => {
                return (
                    400,
                    String::new(),
                    json!({"error": "invalid_request", "error_description": heard.body}),
                );
            }
            Trick::PageForRefresh if is_refresh => return (200, String::new(), json!("<html>Busy</html>")),
            Trick::NoRefresh if is_refresh => return (400, String::new(), json!({"error": "invalid_grant"})),
            _ => {}
        }
        let mut good = self.good.lock().unwrap();
        good.0 += 1;
        let answer = json!({
            "access_token": format!("access-token-{}", good.0),
            "refresh_token": format!("refresh-token-{}", good.0),
            "token_type": "Bearer",
            "expires_in": *self.expires_in_s.lock().unwrap(),
            "scope": good.1,
        });
        (200, String::new(), answer)
    }

    fn mcp(&self, trick: Trick, heard: &Heard) -> Answer {
        let good = self.good.lock().unwrap().clone();
        if good.0 == 0 || heard.authorization != Some(format!("Bearer access-token-{}", good.0)) {
            let place = format!("{}/.well-known/oauth-protected-resource/mcp", self.base());
            let header = format!("www-authenticate: Bearer resource_metadata=\"{place}\"\r\n");
            // Some repeat what they were sent.
            return (401, header, json!({"error": heard.authorization}));
        }
        let asked: Value = serde_json::from_str(&heard.body).unwrap_or_default();
        let result = match asked["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "world", "version": "1"},
            }),
            "tools/list" => json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}),
            "tools/call" => {
                let wanted = match trick {
                    Trick::CallsRefused => {
                        return (
                            401,
                            "www-authenticate: Bearer scope=\"calls\"\r\n".to_owned(),
                            Value::Null,
                        );
                    }
                    Trick::NeverEnough => "base",
                    Trick::NeedsMore if !good.1.contains("more") => "more",
                    _ => {
                        return (
                            200,
                            String::new(),
                            answer(&asked, json!({"content": [{"type": "text", "text": "done"}]})),
                        );
                    }
                };
                let header = format!("www-authenticate: Bearer error=\"insufficient_scope\", scope=\"{wanted}\"\r\n");
                return (403, header, Value::Null);
            }
            _ => return (202, String::new(), Value::Null),
        };
        (200, String::new(), answer(&asked, result))
    }
}

fn answer(asked: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": asked["id"], "result": result})
}

/// The values of a form or of an address.
pub fn query(text: &str) -> HashMap<String, String> {
    url::form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}
