//! What of an address may be seen (SPEC 10.5). People write passwords and keys into addresses: such an address is asked, and
//! never shown ([`without_credentials`]); what is secret in it is known ([`secrets_of`]), to be taken out of what others say.

use crate::ModelProfile;
use reqwest::Url;

/// What is in the name of a parameter whose value is a secret.
const SECRET_WORDS: [&str; 8] = ["key", "token", "secret", "pass", "pwd", "auth", "sig", "cred"];

impl ModelProfile {
    /// Its address as people may see it: without user, password and query.
    pub fn shown_address(&self) -> String {
        without_credentials(&self.base_url)
    }
}

/// What is shown of an address: all but user, password, query and fragment, any of which may be a secret.
pub fn without_credentials(url: &str) -> String {
    let is_web = |url: &Url| matches!(url.scheme(), "http" | "https");
    // Without `http://` in front a user is read as the scheme, and the password as a part of the path.
    let Some(mut parsed) = Url::parse(url.trim()).ok().filter(is_web) else {
        return "an invalid address".to_owned();
    };
    // Both fail only for addresses that cannot have a user.
    let _ = parsed.set_username("");
    let _ = parsed.set_password(None);
    parsed.set_query(None);
    parsed.set_fragment(None);
    parsed.as_str().trim_end_matches('/').to_owned()
}

/// The secrets that stand in an address, as they are written there and as they are meant: a password, a user without one
/// (some services take a token for it), and the values of parameters such as `api_key`.
pub fn secrets_of(url: &str) -> Vec<String> {
    let (_, query) = url.split_once('?').unwrap_or((url, ""));
    let query = query.split('#').next().unwrap_or_default();
    let parameters = query.split('&').filter_map(|pair| pair.split_once('='));
    let in_query = parameters
        .filter(|(name, _)| is_secret_name(name))
        .map(|(_, value)| value);
    let written = user_or_password(url).into_iter().chain(in_query);
    let mut secrets: Vec<String> = Vec::new();
    for written in written.filter(|secret| !secret.is_empty()) {
        for secret in [written.to_owned(), decoded(written)] {
            if !secrets.contains(&secret) {
                secrets.push(secret);
            }
        }
    }
    secrets
}

/// Whether what has this name (a parameter, a header, a variable) is a secret, going by the name alone.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_lowercase();
    SECRET_WORDS.iter().any(|word| name.contains(word))
}

/// What is secret of what stands before the `@`, in an address with a scheme or without.
fn user_or_password(url: &str) -> Option<&str> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let (user, _) = authority.rsplit_once('@')?;
    Some(user.split_once(':').map_or(user, |(_, password)| password))
}

/// A percent-encoded text as it is meant.
fn decoded(written: &str) -> String {
    let query = format!("v={}", written.replace('+', "%2B"));
    Url::parse("http://localhost").map_or_else(
        |_| String::new(),
        |mut url| {
            url.set_query(Some(&query));
            url.query_pairs().map(|(_, value)| value.into_owned()).collect()
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 10.5, 12: what may be secret in an address is not shown, whatever else is wrong with it.
    #[test]
    fn what_is_shown() {
        for (url, expect) in [
            ("http://desk:8080/v1", "http://desk:8080/v1"),
            ("https://desk", "https://desk"),
            (" http://bob:hunter2@desk/v1/?api_key=hunter2#hunter2", "http://desk/v1"),
            ("https://hunter2@desk", "https://desk"),
            ("bob:hunter2@desk/v1", "an invalid address"),
            ("desk:8080", "an invalid address"),
            ("", "an invalid address"),
        ] {
            assert_eq!(without_credentials(url), expect, "{url}");
        }
    }

    /// SPEC 10.5: the secrets of an address are known, so that they can be taken out of what others say.
    #[test]
    fn what_is_secret() {
        for (url, expect) in [
            ("http://desk:8080/v1?api-version=2024-10-21", &[][..]),
            ("http://bob:pw%2F1@desk/v1", &["pw%2F1", "pw/1"]),
            ("http://token@desk", &["token"]),
            ("bob:hunter2@desk", &["hunter2"]),
            ("http://desk/v1?x=1&API_Key=a%20b+c#f", &["a%20b+c", "a b+c"]),
            ("http://desk/v1?sig=&key", &[]),
            ("", &[]),
        ] {
            assert_eq!(secrets_of(url), expect, "{url}");
        }
    }
}
