//! One fetch: the requests, redirects and bytes of a page, within limits.

use super::WebLimits;
use super::address;
use super::content::{Kind, kind};
use super::reach::{Clients, NotPublic};
use aish_core::action::Reach;
use aish_core::policy::Onward;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, LOCATION};
use reqwest::{Client, StatusCode, Url};
use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use url::Host;

/// What is asked for: what is text already, before what has to be made into text.
const ACCEPTED: &str = "text/markdown, text/html;q=0.9, text/plain;q=0.8, application/json;q=0.8, */*;q=0.1";
/// Bytes by which a body's room grows.
const BODY_STEP_BYTES: usize = 1 << 20;
/// Characters of a header's value that are told.
const HEADER_CHARS_MAX: usize = 200;

/// A fetch to be made.
pub(super) struct Fetch<'a> {
    pub(super) client: &'a Client,
    pub(super) clients: &'a Clients,
    pub(super) reach: Reach,
    pub(super) limits: &'a WebLimits,
    /// What the rules say of an address that is led to.
    pub(super) judge: &'a (dyn Fn(&Url) -> Onward + Send + Sync),
}

/// What a fetch came to.
pub(super) enum Fetched {
    /// A page.
    Response(Response),
    /// A redirect that is not followed.
    Elsewhere {
        /// Its status.
        status: u16,
        /// Who redirects.
        from: Url,
        /// Where to.
        to: Url,
    },
}

/// An answer, whatever its status.
pub(super) struct Response {
    /// Where it came from in the end.
    pub(super) url: Url,
    /// Whether it was redirected there.
    pub(super) is_redirected: bool,
    pub(super) status: u16,
    /// As the server wrote it; empty where it did not.
    pub(super) content_type: String,
    /// As many bytes as are read.
    pub(super) body: Vec<u8>,
    /// Whether there were more.
    pub(super) is_cut: bool,
}

impl Fetch<'_> {
    /// Fetches a page.
    ///
    /// # Errors
    /// What was tried and why it failed, for the model.
    pub(super) async fn run(&self, start: Url) -> Result<Fetched, String> {
        let came = AtomicU64::new(0);
        let limit = Duration::from_millis(self.limits.total_timeout_ms);
        let done = tokio::time::timeout(limit, self.follow(&start, &came)).await;
        done.unwrap_or_else(|_| {
            let seconds = limit.as_secs_f32();
            Err(match came.load(Ordering::Relaxed) {
                0 => format!("No answer within {seconds} s: {start}"),
                bytes => format!("Not whole within {seconds} s: {start} ({bytes} bytes had come)"),
            })
        })
    }

    async fn follow(&self, start: &Url, came: &AtomicU64) -> Result<Fetched, String> {
        let mut url = start.clone();
        for _ in 0..=self.limits.redirects_max {
            let response = self.request(&url).await?;
            let Some(to) = redirect(&url, response.status(), response.headers())? else {
                return self
                    .page(response, url != *start, url, came)
                    .await
                    .map(Fetched::Response);
            };
            address::check(&to, self.reach).map_err(|why| format!("{url} redirects. {why}"))?;
            let is_followed = match (self.judge)(&to) {
                Onward::Allowed => true,
                Onward::Unspoken => address::is_same_site(start, &to),
                Onward::Against => false,
            };
            if !is_followed {
                return Ok(Fetched::Elsewhere {
                    status: response.status().as_u16(),
                    from: url,
                    to,
                });
            }
            url = to;
        }
        Err(format!(
            "More than {} redirects: {start} (the last one to {url})",
            self.limits.redirects_max
        ))
    }

    async fn request(&self, url: &Url) -> Result<reqwest::Response, String> {
        if let (Reach::Public, Some(Host::Domain(name))) = (self.reach, url.host()) {
            self.clients.check_for_proxy(name).await?;
        }
        let request = self.client.get(url.clone()).header(ACCEPT, ACCEPTED);
        request.send().await.map_err(|error| not_fetched(url, &error))
    }

    /// Reads an answer, unless its type says that it is no text.
    async fn page(
        &self,
        mut response: reqwest::Response,
        is_redirected: bool,
        url: Url,
        came: &AtomicU64,
    ) -> Result<Response, String> {
        let content_type = header(response.headers(), CONTENT_TYPE.as_str());
        if kind(&content_type) == Kind::Other {
            let bytes = response
                .content_length()
                .map_or_else(|| "of unknown size".to_owned(), |bytes| format!("{bytes} bytes"));
            return Err(format!("Not a text page: {url} ({bytes}, {content_type})"));
        }
        let mut body = Vec::new();
        let mut is_cut = false;
        while !is_cut {
            let chunk = response
                .chunk()
                .await
                .map_err(|error| format!("{url} broke off after {} bytes: {}", body.len(), innermost(&error)))?;
            let Some(chunk) = chunk else {
                break;
            };
            let left = self.limits.body_bytes_max - body.len();
            is_cut = chunk.len() > left;
            let kept = chunk.get(..left).unwrap_or(&chunk);
            if body.capacity() - body.len() < kept.len() {
                // By steps, not by doubling: several bodies are in memory at once.
                body.reserve_exact(kept.len().max(BODY_STEP_BYTES));
            }
            body.extend_from_slice(kept);
            came.store(body.len() as u64, Ordering::Relaxed);
        }
        Ok(Response {
            url,
            is_redirected,
            status: response.status().as_u16(),
            content_type,
            body,
            is_cut,
        })
    }
}

/// Where an answer leads, if it is a redirect.
fn redirect(from: &Url, status: StatusCode, headers: &HeaderMap) -> Result<Option<Url>, String> {
    let location = header(headers, LOCATION.as_str());
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) || location.is_empty() {
        return Ok(None);
    }
    let to = from.join(&location).map(String::from).unwrap_or(location);
    let to = address::read(&to).map_err(|why| format!("{from} redirects. {why}"))?;
    Ok(Some(to))
}

/// A header's value as text.
fn header(headers: &HeaderMap, name: &str) -> String {
    let value = headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
    let value = value.unwrap_or_default();
    let is_address = name == LOCATION.as_str();
    let chars_max = if is_address { usize::MAX } else { HEADER_CHARS_MAX };
    value.chars().filter(|c| !c.is_control()).take(chars_max).collect()
}

fn not_fetched(url: &Url, error: &reqwest::Error) -> String {
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(refused) = cause.downcast_ref::<NotPublic>() {
            return refused.to_string();
        }
        source = cause.source();
    }
    let what = if error.is_timeout() {
        "Cannot connect in time"
    } else {
        "Cannot fetch"
    };
    format!("{what}: {url} ({})", innermost(error))
}

/// The cause at the bottom: what happened, without who passed it on.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
