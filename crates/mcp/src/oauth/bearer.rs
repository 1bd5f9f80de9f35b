//! The token that goes along with the requests of one connection: the one a person allowed, refreshed when it ends.

use super::challenge::{Challenge, scopes_of};
use super::fetch::Fetch;
use super::grant::{Counter, now};
use super::keyring::{Entry, Keyring, Place};
use crate::http::credentials::of_token;
use crate::{Alias, ErrorKind, McpError};
use aish_core::redact::Redactor;
use aish_core::secret::Secret;
use url::Url;

/// A token that ends within this is refreshed before it is used.
const EXPIRES_SOON_S: u64 = 30;

/// Gives the token of one server to its connection; clones share everything.
#[derive(Clone)]
pub(crate) struct Bearer {
    alias: Alias,
    place: Place,
    keyring: Keyring,
    fetch: Fetch,
    /// Learns what this server was sent, or could have been: nothing it says is to repeat that.
    echoes: Redactor,
}

impl Bearer {
    /// For that server; `None` where no token may be sent to.
    pub(crate) fn new(alias: &Alias, url: &Url, client: &reqwest::Client, keyring: &Keyring) -> Option<Self> {
        Some(Self {
            echoes: Redactor::default(),
            alias: alias.clone(),
            place: Place::new(alias.as_str(), url),
            keyring: keyring.clone(),
            fetch: Fetch::new(client, url).ok()?,
        })
    }

    /// The token for the next request, if a person has allowed one.
    pub(crate) async fn token(&self) -> Option<Secret> {
        let entry = self.keyring.get(&self.place)?;
        self.note(&entry);
        let ends_soon = entry
            .grant
            .expires_at_s
            .is_some_and(|at| at <= now().as_secs() + EXPIRES_SOON_S);
        if ends_soon
            && entry.grant.refresh.is_some()
            // One that cannot be had now may not be needed: this one has not ended yet.
            && let Ok(Some(next)) = self.next(&entry.grant.access).await
        {
            return Some(next);
        }
        Some(entry.grant.access)
    }

    /// Another token in place of one that was refused or ends; `None` when a person has to be asked.
    ///
    /// # Errors
    /// There may be one later.
    pub(crate) async fn next(&self, old: &Secret) -> Result<Option<Secret>, McpError> {
        let (this, old) = (self.clone(), old.clone());
        // To its end, even where nobody waits any more: a refresh token is good for one use, and the next one must not be lost.
        let task = tokio::spawn(async move { this.refresh(&old).await });
        task.await.unwrap_or(Ok(None))
    }

    async fn refresh(&self, old: &Secret) -> Result<Option<Secret>, McpError> {
        let later = |why: &str| {
            let alias = &self.alias;
            let message = format!("its token cannot be refreshed now: {why}; `:mcp login {alias}` gets another");
            Err(McpError::new(ErrorKind::Unreachable, message))
        };
        let changing = match self.keyring.change().await {
            Ok(changing) => changing,
            Err(error) => return later(&error.to_string()),
        };
        // Another request, or another process, may have been faster.
        let Some(mut entry) = self.keyring.get_anew(&self.place) else {
            return Ok(None);
        };
        self.note(&entry);
        if entry.grant.access != *old {
            return Ok(Some(entry.grant.access));
        }
        let Some(refresh) = entry.grant.refresh.clone() else {
            return Ok(None);
        };
        let refreshed = self.refreshed(&entry, &refresh).await;
        match refreshed {
            Ok(grant) => entry.grant = grant,
            // It is not tried again in vain.
            Err(McpError {
                kind: ErrorKind::Unauthorized { .. },
                ..
            }) => entry.grant.refresh = None,
            Err(error) => return later(&error.message),
        }
        self.note(&entry);
        let next = entry.grant.access.clone();
        // What cannot be kept is known to this process all the same.
        let _ = self.keyring.put(entry, &changing);
        Ok((next != *old).then_some(next))
    }

    async fn refreshed(&self, entry: &Entry, refresh: &Secret) -> Result<super::grant::Grant, McpError> {
        let counter = Counter {
            fetch: &self.fetch,
            endpoint: &entry.token_endpoint,
            client: &entry.client,
            resource: &entry.resource,
        };
        counter.refresh(&entry.grant, refresh).await
    }

    /// What a person does about a request that was refused: 401, or 403 with a challenge. `None` where logging in changes nothing.
    pub(crate) async fn advice(&self, challenge: Option<&str>, status: u16) -> Option<String> {
        let alias = &self.alias;
        let login = format!("`:mcp login {alias}` (or `aish mcp login {alias}`)");
        if status == 401 {
            self.remember(challenge).await;
            return Some(format!("needs login; {login}"));
        }
        let challenge = Challenge::read(challenge?);
        if challenge.error.as_deref() != Some("insufficient_scope") || challenge.scopes.is_empty() {
            return None;
        }
        let entry = self.keyring.get(&self.place)?;
        let asked: Vec<&str> = entry
            .wanted
            .iter()
            .chain(&challenge.scopes)
            .map(String::as_str)
            .collect();
        let wanted = scopes_of(asked);
        if challenge.scopes.iter().all(|scope| entry.grant.scopes.contains(scope)) {
            return Some("it refuses what it has allowed: logging in again would change nothing".to_owned());
        }
        self.want(wanted).await;
        let scopes = challenge.scopes.join(" ");
        Some(format!("it must be allowed more ({scopes}); {login}"))
    }

    /// Remembers what a request was refused with: the next login begins with it.
    async fn remember(&self, challenge: Option<&str>) {
        let Some(challenge) = challenge else { return };
        self.keyring.refused(&self.place, challenge);
        let scopes = Challenge::read(challenge).scopes;
        let Some(entry) = self.keyring.get(&self.place) else {
            return;
        };
        let known = |scope: &String| entry.wanted.contains(scope) || entry.grant.scopes.contains(scope);
        if !scopes.iter().all(known) {
            // Whoever logs in may be another process.
            let wanted = entry.wanted.iter().chain(&scopes).map(String::as_str);
            self.want(scopes_of(wanted)).await;
        }
    }

    /// Remembers what the next login has to ask for.
    async fn want(&self, wanted: Vec<String>) {
        let Ok(changing) = self.keyring.change().await else {
            return;
        };
        if let Some(mut entry) = self.keyring.get_anew(&self.place) {
            entry.wanted = wanted;
            // What cannot be kept is known to this process all the same.
            let _ = self.keyring.put(entry, &changing);
        }
    }

    /// The text without the tokens: some servers repeat what they were sent.
    pub(crate) fn redacted(&self, text: &str) -> String {
        self.keyring.redactor().redact(text).into_owned()
    }

    /// Learns what the server was sent so far; see [`Bearer::redacted`].
    pub(crate) fn echoes(&self) -> &Redactor {
        &self.echoes
    }

    fn note(&self, entry: &Entry) {
        for (name, secret) in entry.secrets() {
            if let Some((name, value)) = of_token(&name, secret.expose()) {
                self.echoes.learn(&name, &value);
            }
        }
    }
}
