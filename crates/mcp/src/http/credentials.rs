//! What of an endpoint no answer is to repeat: each as it is configured, and as it goes over the wire.

use crate::HttpEndpoint;
use aish_core::redact::SECRET_CHARS_MIN;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Url;
use url::form_urlencoded;

/// Values of letters alone that are longer are taken for keys.
const WORD_CHARS_MAX: usize = 15;
/// Versions and dates are no longer, as in `2022-06-28`.
const NUMBER_CHARS_MAX: usize = 10;

/// Name and value of the secrets of an endpoint at this address. The query, which holds other things too, is none of them.
pub(super) fn of_endpoint(endpoint: &HttpEndpoint, url: &Url) -> Vec<(String, String)> {
    let mut secrets = Vec::new();
    if let Some(token) = &endpoint.token {
        secrets.extend(of_token("token", token.expose()));
    }
    for (name, value) in &endpoint.headers {
        let value = value.expose();
        if !is_everyday(value) {
            secrets.push((name.clone(), value.to_owned()));
        }
        if name.eq_ignore_ascii_case("authorization") {
            // Some repeat what follows the scheme alone.
            let credential = value.split_once(' ').map(|(_, credential)| credential.trim());
            secrets.extend(credential.map(|credential| (name.clone(), credential.to_owned())));
        }
    }
    secrets.extend(of_user(url));
    secrets
}

/// A bearer token. One that is too short to be told from ordinary text is known by what it is sent with.
pub(crate) fn of_token(name: &str, token: &str) -> Option<(String, String)> {
    if token.is_empty() {
        return None;
    }
    let value = match token.len() {
        ..SECRET_CHARS_MIN => format!("Bearer {token}"),
        _ => token.to_owned(),
    };
    Some((name.to_owned(), value))
}

/// User and password of an address, which are sent as `Authorization: Basic` (RFC 7617).
fn of_user(url: &Url) -> Vec<(String, String)> {
    let user = decoded(url.username());
    let password = url.password().map(decoded);
    if user.is_empty() && password.is_none() {
        return Vec::new();
    }
    let sent = STANDARD.encode(format!("{user}:{}", password.as_deref().unwrap_or_default()));
    // Some services take a token for the user, and no password.
    let (secret, written) = match (password, url.password()) {
        (Some(password), Some(written)) => (password, written),
        (_, None) | (None, _) => (user, url.username()),
    };
    let all = [sent, secret, written.to_owned()];
    all.map(|value| ("password".to_owned(), value)).into()
}

/// A percent-encoded text as it is meant.
fn decoded(written: &str) -> String {
    let written = written.replace('+', "%2B").replace('&', "%26");
    let query = format!("v={written}");
    form_urlencoded::parse(query.as_bytes())
        .map(|(_, value)| value.into_owned())
        .collect()
}

/// Whether a header's value is a word or a version: to take those out would spoil what the server says.
fn is_everyday(value: &str) -> bool {
    let is_word = value.len() <= WORD_CHARS_MAX && value.bytes().all(|byte| byte.is_ascii_alphabetic());
    let is_number = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    is_word || (value.len() <= NUMBER_CHARS_MAX && value.bytes().all(is_number))
}
