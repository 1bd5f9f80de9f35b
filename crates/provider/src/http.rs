//! Requests to models over HTTP: one codec, one client, one request at a time.
//!
//! This file owns [`HttpProvider`]: it sends what a codec wrote, tells refusals apart and hands an answer that has
//! begun to `stream`. It never tries again by itself, with one exception that is no second try of the same request:
//! when the server says which part of it it does not take, the request is written in another way, now and from then on, and
//! the reply remarks on it; see `adapt`.
//!
//! Errors say what was tried and what went wrong on one line; neither the key nor credentials in the address get into
//! them, even where the server repeats them.

use crate::assemble::{Assembler, Callable};
use crate::client::Timeouts;
use crate::codec::{Codec, Encoded, codec_of, failure};
use crate::profile::{CallsPerReply, ModelProfile};
use crate::{ErrorKind, Provider, ProviderError, ReplyStream, Request, retry_after};
use aish_core::message::ToolChoice;
use aish_core::redact::SECRET_CHARS_MIN;
use futures_util::future::BoxFuture;
use reqwest::header::{HeaderMap, HeaderValue};
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

mod adapt;
pub(crate) mod address;
mod body;
mod shown;
mod stream;
mod way;

pub use shown::{is_secret_name, secrets_of, without_credentials};

use adapt::{ADAPTATIONS_MAX, Asked, adapt};
use stream::{HttpStream, Lesson};
use way::{Learned, Way};

/// Bytes of a refusal that are read.
const ERROR_BYTES_MAX: usize = 64 << 10;

/// What stands for a secret in an error.
const REDACTED: &str = "[redacted]";

/// A model behind HTTP.
pub struct HttpProvider {
    client: reqwest::Client,
    profile: ModelProfile,
    key: Option<String>,
    timeouts: Timeouts,
    codec: &'static dyn Codec,
    /// How requests are written: what the server refused is changed in it.
    learned: Arc<Learned>,
}

impl fmt::Debug for HttpProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Neither the key nor a password in the address.
        f.debug_struct("HttpProvider")
            .field("model", &self.profile.model)
            .field("base_url", &without_credentials(&self.profile.base_url))
            .finish_non_exhaustive()
    }
}

impl HttpProvider {
    /// A model, reached through a ready client (see [`crate::client::client`]; its connect timeout is that of the
    /// client). `key` is sent to the profile's address and nowhere else.
    pub fn new(client: reqwest::Client, profile: ModelProfile, key: Option<String>, timeouts: Timeouts) -> Self {
        Self {
            client,
            codec: codec_of(profile.format),
            learned: Arc::new(Learned::new(profile.clone())),
            profile,
            key: key.map(|key| key.trim().to_owned()).filter(|key| !key.is_empty()),
            timeouts,
        }
    }

    /// The profile it was made with.
    pub fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    /// The profile that requests are written with now: the one it was made with, and what the server has refused since.
    pub fn learned(&self) -> Arc<ModelProfile> {
        Arc::clone(&self.learned.way().profile)
    }

    /// Sends a request, written in another way as often as the server says what it does not take. When it is refused in the
    /// end, the changes count that the server has gone on from to something else: only of the last one nothing is known.
    async fn begin(&self, request: Request<'_>) -> Result<HttpStream, ProviderError> {
        let asked = Asked::of(request, &self.profile, &self.learned);
        let mut way = self.learned.way();
        let mut tried = Vec::new();
        let mut changes = Changes::default();
        let mut accepted = None;
        let mut said_before = String::new();
        loop {
            let refusal = match self.begin_as(request, &way).await {
                Ok(stream) => {
                    if !changes.remarks.is_empty() {
                        self.learned.learn(Arc::clone(&way));
                    }
                    if way.profile.images.is_yes() {
                        self.learned.took_images(asked.images());
                    }
                    let lesson = Lesson::new(Arc::clone(&self.learned), way, asked, changes.remarks);
                    return Ok(stream.with_lesson(lesson));
                }
                Err(refusal) => refusal,
            };
            let adapted = adapt(refusal.error.kind, &refusal.said, &way, &asked)
                .filter(|adapted| tried.len() < ADAPTATIONS_MAX && !tried.contains(&adapted.way));
            let Some(adapted) = adapted else {
                if let Some(way) = accepted {
                    self.learned.learn(way);
                }
                return Err(changes.explain(refusal.error));
            };
            if !tried.is_empty() && refusal.said != said_before {
                accepted = Some(Arc::clone(&way));
            }
            said_before = refusal.said;
            tried.push(std::mem::replace(&mut way, adapted.way));
            changes.remarks.push(adapted.remark);
            changes.refused.push(adapted.refused);
        }
    }

    async fn begin_as(&self, request: Request<'_>, way: &Way) -> Result<HttpStream, Refusal> {
        let profile = way.profile.as_ref();
        let messages = way.messages(request.messages);
        let request = Request {
            messages: &messages,
            ..request
        };
        let mut encoded = self.codec.encode(request, profile)?;
        let names = std::mem::take(&mut encoded.names);
        let url = address::endpoint(&profile.base_url, &encoded.path);
        let target = Target::new(&url, self.key.clone());
        let response = self.post(&url, encoded, &target).await?;
        let callable = match request.tool_choice {
            ToolChoice::Auto if profile.tools.is_yes() => request.tools.iter().map(Callable::of).collect(),
            ToolChoice::Auto | ToolChoice::None => Vec::new(),
        };
        let assembler = Assembler::with_callable(names, callable);
        let assembler = match profile.calls {
            CallsPerReply::Any => assembler,
            CallsPerReply::One => assembler.with_calls_max(1),
        };
        Ok(HttpStream::new(response, self.codec, assembler, target, self.timeouts))
    }

    /// Posts a request and waits for an answer that is no refusal.
    async fn post(&self, url: &str, encoded: Encoded, target: &Target) -> Result<reqwest::Response, Refusal> {
        let mut headers = HeaderMap::new();
        for (name, value) in encoded.headers {
            let value = HeaderValue::from_str(&value)
                .map_err(|_| target.error(ErrorKind::Protocol, "a header cannot be written"))?;
            headers.insert(name, value);
        }
        if let Some(key) = &self.key {
            let header = self.codec.key_header();
            let mut value = HeaderValue::from_str(&format!("{}{key}", header.prefix))
                .map_err(|_| target.error(ErrorKind::Auth, "the key has characters that no header can carry"))?;
            value.set_sensitive(true);
            headers.insert(header.name, value);
        }
        let sent = self.client.post(url).headers(headers).body(encoded.body).send();
        let wait = Duration::from_secs(self.timeouts.first_byte_timeout_s);
        let response = match tokio::time::timeout(wait, sent).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(target.not_sent(&error).into()),
            Err(_) => return Err(target.timeout(self.timeouts.first_byte_timeout_s).into()),
        };
        if response.status().is_success() {
            Ok(response)
        } else {
            Err(self.refusal(response, target).await)
        }
    }

    /// What an answer with another status than success means.
    async fn refusal(&self, mut response: reqwest::Response, target: &Target) -> Refusal {
        let status = response.status();
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        let wait = match header("retry-after-ms").and_then(|value| value.parse().ok()) {
            Some(ms) => Some(Duration::from_millis(ms)),
            None => header("retry-after").and_then(|value| retry_after::parse(value, SystemTime::now())),
        };
        let from = response.url().clone();
        let location = header("location").and_then(|location| from.join(location).ok());
        let limit = Duration::from_secs(self.timeouts.error_body_timeout_s);
        let mut body = Vec::new();
        let read = async {
            while let Ok(Some(chunk)) = response.chunk().await {
                let room = ERROR_BYTES_MAX - body.len();
                body.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
                if body.len() == ERROR_BYTES_MAX {
                    break;
                }
            }
        };
        // What came within the time is enough.
        let _in_time = tokio::time::timeout(limit, read).await;
        let body = String::from_utf8_lossy(&body);
        let mut error = self.codec.decode_error(status.as_u16(), &body);
        if let Some(location) = location.filter(|_| status.is_redirection()) {
            let place = without_credentials(location.as_str());
            error.message = if location.origin() == from.origin() {
                format!(
                    "it redirects to {place}, too often or in a way that drops the question: set base_url to where it leads"
                )
            } else {
                format!("it redirects to {place}, another origin: set base_url to it")
            };
        }
        let colon = if error.message.is_empty() { "" } else { ": " };
        // A number without a name, as 529, is said without one.
        let name = status
            .canonical_reason()
            .map(|name| format!(" {name}"))
            .unwrap_or_default();
        let status = format!("{}{name}", status.as_str());
        let mut explained = target.error(error.kind, &format!("{status}{colon}{}", error.message));
        explained.retry_after = wait.or(error.retry_after);
        Refusal {
            error: explained,
            said: format!("{} {}", error.message, failure::tags(&body)),
        }
    }
}

/// Why a request was not answered.
struct Refusal {
    /// For the person: what was asked, the status and the server's words.
    error: ProviderError,
    /// The server's words alone, and its tags.
    said: String,
}

/// What went wrong before the server said anything.
impl From<ProviderError> for Refusal {
    fn from(error: ProviderError) -> Self {
        Self {
            said: error.message.clone(),
            error,
        }
    }
}

/// What the person is told of how a request was written anew.
#[derive(Default)]
struct Changes {
    /// For a reply that came: one line each.
    remarks: Vec<String>,
    /// For an error: what had been refused before.
    refused: Vec<&'static str>,
}

impl Changes {
    /// The error of the last try, saying what else was tried.
    fn explain(&self, mut error: ProviderError) -> ProviderError {
        if !self.refused.is_empty() {
            let refused = self.refused.join(", ");
            error
                .message
                .push_str(&format!(" (refused before and changed: {refused})"));
        }
        error
    }
}

impl Provider for HttpProvider {
    fn send<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Box<dyn ReplyStream>, ProviderError>> {
        Box::pin(async move {
            let stream = self.begin(request).await?;
            Ok(Box::new(stream) as Box<dyn ReplyStream>)
        })
    }
}

/// What is asked, for errors: the method and the address, and the secrets that must not get into them.
struct Target {
    what: String,
    secrets: Vec<String>,
}

impl Target {
    fn new(url: &str, key: Option<String>) -> Self {
        Self {
            what: format!("POST {}", without_credentials(url)),
            // A key of a few letters, as people make up for local servers, is no secret, and half of every text.
            secrets: key
                .into_iter()
                .chain(secrets_of(url))
                .filter(|secret| secret.len() >= SECRET_CHARS_MIN)
                .collect(),
        }
    }

    fn error(&self, kind: ErrorKind, why: &str) -> ProviderError {
        ProviderError {
            kind,
            message: self.redact(&format!("{}: {why}", self.what)),
            retry_after: None,
        }
    }

    /// The same failure, saying what was asked.
    fn explain(&self, error: &ProviderError) -> ProviderError {
        ProviderError {
            retry_after: error.retry_after,
            ..self.error(error.kind, &error.message)
        }
    }

    fn timeout(&self, seconds: u64) -> ProviderError {
        self.error(ErrorKind::Timeout, &format!("nothing came for {seconds} s"))
    }

    /// Why a request could not be sent.
    fn not_sent(&self, error: &reqwest::Error) -> ProviderError {
        if error.is_builder() {
            return self.error(ErrorKind::Protocol, "base_url is no address");
        }
        if error.is_timeout() {
            return self.error(ErrorKind::Connect, "no connection in time");
        }
        self.error(ErrorKind::Connect, &innermost(error))
    }

    fn redact(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.secrets {
            text = text.replace(secret.as_str(), REDACTED);
        }
        text
    }
}

/// The cause behind an error, which is what a person can do something about.
pub(crate) fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    crate::codec::quote(&cause.to_string())
}
