//! Logging in at MCP servers that ask for it (OAuth 2.1 as the protocol's chapter on authorization has it; SPEC 6.3).
//!
//! Connecting never asks a person: a server that wants a login fails with a line that says so. [`login`] finds out who gives tokens
//! for it, has the person allow it in a browser, and puts what came of it on a [`Keyring`]; from then on the connection sends it
//! along and refreshes it by itself. A token goes to the server that it was made for, over https or within this machine, and its
//! refresh token to the server that gave it; both are shown to nobody else.
//!
//! It is our own code and not the SDK's: that one forgets a client's secret, keeps tokens as plain text and takes addresses
//! without https.

mod bearer;
mod challenge;
mod client;
mod fetch;
mod grant;
mod keyring;
mod listener;
mod metadata;

pub(crate) use bearer::Bearer;
pub(crate) use challenge::Challenge;
pub use keyring::{Keyring, Shelf};

use crate::{Alias, ErrorKind, HttpEndpoint, McpError};
use aish_core::secret::Secret;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use challenge::scopes_of;
use client::Client;
use fetch::Fetch;
use grant::Counter;
use keyring::{Entry, Place};
use listener::{Expected, Listener};
use metadata::Found;
use sha2::{Digest as _, Sha256};
use std::time::Duration;
use url::Url;

/// What authorization servers show a person of this program.
const CLIENT_NAME: &str = "aish";
/// How long a person may take in the browser.
const PERSON_TIMEOUT_S: u64 = 300;
/// Random bytes of a state and of a verifier: 43 letters, the least that RFC 7636 allows.
const RANDOM_BYTES: usize = 32;

/// As whom this program asks for tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// As a client that was registered by hand.
    Registered {
        /// Its id.
        id: String,
        /// Its secret, if it has one.
        secret: Option<Secret>,
    },
    /// By the address of a document that describes it, where the authorization server takes that; else it registers itself.
    Document(String),
    /// It registers itself.
    Unknown,
}

/// One login.
pub struct Login<'a> {
    /// Which server, as the person calls it.
    pub alias: &'a Alias,
    /// Where it is.
    pub endpoint: &'a HttpEndpoint,
    /// Carries the requests. It must follow no redirect to another origin.
    pub client: &'a reqwest::Client,
    /// Where the token goes.
    pub keyring: &'a Keyring,
    /// As whom.
    pub identity: &'a Identity,
    /// What the server answered with (`WWW-Authenticate`), if it has.
    pub challenge: Option<&'a str>,
}

/// Logs in. `show` gets the address that the person has to open, https or of this machine; it must not block. Dropping the future
/// ends it.
///
/// # Errors
/// Why there is no token.
pub async fn login(login: &Login<'_>, show: impl FnOnce(&Url)) -> Result<(), McpError> {
    let server = Url::parse(&login.endpoint.url)
        .map_err(|_| McpError::new(ErrorKind::Unusable, "its url is no http:// or https:// address"))?;
    let fetch = Fetch::new(login.client, &server)?;
    let place = Place::new(login.alias.as_str(), &server);
    let refused = login.keyring.challenge(&place);
    let challenge = login.challenge.or(refused.as_deref());
    let challenge = challenge.map(Challenge::read).unwrap_or_default();
    let found = metadata::find(&fetch, &server, &challenge).await?;
    let (state, verifier) = (random()?, random()?);
    let expected = Expected {
        state: state.clone(),
        issuer: found.authority.issuer.clone(),
        sends_issuer: found.authority.sends_issuer,
    };
    let mut listener = Listener::start(expected).await?;
    let client = Client::of(login.identity, &fetch, &found.authority, listener.redirect()).await?;
    // What was allowed stays allowed: a login that asks for more asks for all (SEP-2350).
    let before = login.keyring.get(&place);
    let kept = before
        .iter()
        .flat_map(|entry| entry.grant.scopes.iter().chain(&entry.wanted));
    let scopes = scopes_of(kept.chain(&found.scopes).map(String::as_str));
    if let Some(secret) = &client.secret {
        // Nobody may see it even if nothing comes of this login.
        let name = keyring::client_name(login.alias.as_str());
        login.keyring.redactor().learn(&name, secret.expose());
    }
    let question = Question {
        client: &client.id,
        redirect: listener.redirect(),
        state: &state,
        verifier: &verifier,
        scopes: &scopes,
    };
    let address = question.address(&found);
    show(&address);
    let limit = Duration::from_secs(PERSON_TIMEOUT_S);
    let late = || McpError::new(ErrorKind::Timeout, "nobody logged in in time");
    let code = tokio::time::timeout(limit, listener.code()).await;
    let code = code.unwrap_or_else(|_| Err(late()))?;
    let counter = Counter {
        fetch: &fetch,
        endpoint: &found.authority.token_endpoint,
        client: &client,
        resource: &found.resource,
    };
    let grant = counter.exchange(&code, &verifier, listener.redirect(), &scopes).await?;
    let entry = Entry {
        place,
        resource: found.resource,
        token_endpoint: found.authority.token_endpoint,
        client,
        grant,
        wanted: Vec::new(),
    };
    keep(login.keyring, entry).await.map_err(|error| {
        let message = format!("logged in, but the token cannot be kept: {error}");
        McpError::new(ErrorKind::Closed, message)
    })
}

/// What the person is asked by the authorization server.
struct Question<'a> {
    client: &'a str,
    redirect: &'a str,
    state: &'a Secret,
    verifier: &'a Secret,
    scopes: &'a [String],
}

impl Question<'_> {
    /// The address to open (RFC 6749 section 4.1.1, RFC 7636 section 4.3, RFC 8707 section 2).
    fn address(&self, found: &Found) -> Url {
        let mut address = found.authority.authorization_endpoint.clone();
        let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(self.verifier.expose()));
        let mut query = address.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", self.client)
            .append_pair("redirect_uri", self.redirect)
            .append_pair("state", self.state.expose())
            .append_pair("code_challenge", &hash)
            .append_pair("code_challenge_method", metadata::PKCE_METHOD)
            .append_pair("resource", &found.resource);
        if !self.scopes.is_empty() {
            query.append_pair("scope", &self.scopes.join(" "));
        }
        drop(query);
        address
    }
}

async fn keep(keyring: &Keyring, entry: Entry) -> std::io::Result<()> {
    let changing = keyring.change().await?;
    keyring.put(entry, &changing)
}

/// Letters that nobody can guess.
fn random() -> Result<Secret, McpError> {
    let mut bytes = [0; RANDOM_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| {
        let message = format!("no random numbers: {error}");
        McpError::new(ErrorKind::Closed, message)
    })?;
    Ok(Secret::new(URL_SAFE_NO_PAD.encode(bytes)))
}
