//! Tokens: fetched with a code, or with an earlier one.

use super::challenge::scopes_in;
use super::client::Client;
use super::fetch::{Answer, Fetch, failure};
use crate::http::excerpt;
use crate::{ErrorKind, McpError};
use aish_core::redact::Redactor;
use aish_core::secret::Secret;
use reqwest::StatusCode;
use serde_json::Value;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use url::Url;

/// Bytes of a token: it travels in a header.
const TOKEN_BYTES_MAX: usize = 16 << 10;
/// The longest that a token is believed to last: more could not be added to a time.
const LIFETIME_S_MAX: f64 = 1e10;

/// What a person allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    /// Goes along with requests.
    pub(super) access: Secret,
    /// Brings the next one.
    pub(super) refresh: Option<Secret>,
    /// When `access` ends, in seconds since 1970; none when that was not said.
    pub(super) expires_at_s: Option<u64>,
    /// What it allows.
    pub(super) scopes: Vec<String>,
}

/// Where and as whom tokens are asked for.
pub(super) struct Counter<'a> {
    pub(super) fetch: &'a Fetch,
    pub(super) endpoint: &'a Url,
    pub(super) client: &'a Client,
    /// For which server.
    pub(super) resource: &'a str,
}

impl Counter<'_> {
    /// Changes a code into tokens (RFC 6749 section 4.1.3, RFC 7636 section 4.5).
    pub(super) async fn exchange(
        &self,
        code: &Secret,
        verifier: &Secret,
        redirect: &str,
        scopes: &[String],
    ) -> Result<Grant, McpError> {
        let form = [
            ("grant_type", "authorization_code"),
            ("code", code.expose()),
            ("redirect_uri", redirect),
            ("code_verifier", verifier.expose()),
        ];
        self.ask(&form, scopes).await
    }

    /// Fetches the next token (RFC 6749 section 6). What the answer leaves out stays as it was.
    pub(super) async fn refresh(&self, old: &Grant, refresh: &Secret) -> Result<Grant, McpError> {
        let form = [("grant_type", "refresh_token"), ("refresh_token", refresh.expose())];
        let mut new = self.ask(&form, &old.scopes).await?;
        new.refresh = new.refresh.or_else(|| Some(refresh.clone()));
        Ok(new)
    }

    async fn ask(&self, form: &[(&str, &str)], scopes: &[String]) -> Result<Grant, McpError> {
        let (proof, header) = self.client.proof();
        let mut whole = form.to_vec();
        whole.extend(proof);
        whole.push(("resource", self.resource));
        let answer = self.fetch.post_form(self.endpoint, &whole, header.as_ref()).await?;
        read(&answer, scopes).map_err(|why| {
            // Some repeat what they were sent. It is taken out before anything is cut: no half of a secret is one.
            let sent = whole
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            let is_public = |name: &str| matches!(name, "grant_type" | "redirect_uri" | "client_id" | "resource");
            let redactor = Redactor::new(sent.filter(|(name, _)| !is_public(name)));
            if let Some(secret) = &self.client.secret {
                redactor.learn("client_secret", secret.expose());
            }
            let kind = if is_refused(&answer) {
                ErrorKind::Unauthorized { challenge: None }
            } else {
                ErrorKind::Status(answer.status.as_u16())
            };
            failure(self.endpoint, kind, &excerpt(&redactor.redact(&why)))
        })
    }
}

/// Whether asking the same again is in vain: a refusal in the protocol's own words (RFC 6749 section 5.2), and not a page of
/// somebody between, or a server that is busy.
fn is_refused(answer: &Answer) -> bool {
    let passes = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS].contains(&answer.status);
    answer.status.is_client_error() && !passes && answer.body.get("error").is_some_and(Value::is_string)
}

/// Reads an answer (RFC 6749 section 5); `scopes` is what it allows when it does not say.
fn read(answer: &Answer, scopes: &[String]) -> Result<Grant, String> {
    let body = &answer.body;
    let text = |name: &str| body.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let token = |name: &str| {
        let is_token =
            |token: &&str| token.len() <= TOKEN_BYTES_MAX && token.bytes().all(|byte| byte.is_ascii_graphic());
        text(name).filter(is_token).map(Secret::new)
    };
    let access = token("access_token")
        .filter(|_| answer.status.is_success())
        .ok_or_else(|| {
            let said = text("error_description").or(text("error"));
            format!(
                "{} without a token: {}",
                answer.status.as_str(),
                said.unwrap_or("no reason given")
            )
        })?;
    if text("token_type").is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
        return Err("its token is none that a header can simply carry (token_type)".to_owned());
    }
    Ok(Grant {
        access,
        refresh: token("refresh_token"),
        expires_at_s: body
            .get("expires_in")
            .and_then(lifetime)
            .map(|lifetime| (now() + lifetime).as_secs()),
        scopes: text("scope").map_or_else(|| scopes.to_vec(), scopes_in),
    })
}

/// Seconds, as a number or, as some write it, a text. What ends at once, has ended or never ends is said by mistake: such a token
/// is used until it is refused.
fn lifetime(value: &Value) -> Option<Duration> {
    let seconds = value.as_f64().or_else(|| value.as_str()?.parse().ok())?;
    (seconds > 0.0 && seconds < LIFETIME_S_MAX).then(|| Duration::from_secs_f64(seconds))
}

/// The time since 1970.
pub(super) fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// SPEC 12: whatever is said of how long a token lasts, there is a time or none, and no panic.
    #[test]
    fn lifetimes() {
        for (said, expect) in [
            (json!(3_600), Some(3_600)),
            (json!("60"), Some(60)),
            (json!(0), None),
            (json!(-1), None),
            (json!(1_000_000_000_000_000_000_u64), None),
            (json!(1e300), None),
            (json!("NaN"), None),
            (json!("inf"), None),
            (json!("soon"), None),
            (json!({}), None),
        ] {
            assert_eq!(lifetime(&said).map(|lifetime| lifetime.as_secs()), expect, "{said}");
        }
    }
}
