//! Who asks for tokens: the id, and perhaps the secret, that an authorization server knows this program by.

use super::fetch::{Fetch, failure};
use super::metadata::Authority;
use super::{CLIENT_NAME, Identity};
use crate::http::excerpt;
use crate::{ErrorKind, McpError};
use aish_core::secret::Secret;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

/// Bytes of an id or a secret.
const ID_BYTES_MAX: usize = 4 << 10;

/// A client as its authorization server knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Client {
    pub(super) id: String,
    pub(super) secret: Option<Secret>,
    pub(super) method: Method,
}

/// How a client shows who it is at the token endpoint (RFC 6749 section 2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    /// Only its id: a public client.
    None,
    /// A header.
    Basic,
    /// In the form.
    Post,
}

impl Method {
    /// Its name in documents and in the file of tokens.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
        }
    }

    /// The one of that name.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        [Self::None, Self::Basic, Self::Post]
            .into_iter()
            .find(|method| method.name() == name)
    }

    /// The first of these that the server takes; a server that does not say takes all.
    fn first_of(order: [Self; 3], authority: &Authority) -> Option<Self> {
        let taken = &authority.auth_methods;
        let is_taken = |method: &Self| taken.is_empty() || taken.iter().any(|name| name == method.name());
        order.into_iter().find(is_taken)
    }
}

impl Client {
    /// The client of that identity, registered where it has to be (RFC 7591).
    ///
    /// # Errors
    /// The server registers nobody, or not this program.
    pub(super) async fn of(
        identity: &Identity,
        fetch: &Fetch,
        authority: &Authority,
        redirect: &str,
    ) -> Result<Self, McpError> {
        match identity {
            Identity::Registered { id, secret } => Ok(Self {
                id: id.clone(),
                method: method_of(secret.as_ref(), authority),
                secret: secret.clone(),
            }),
            Identity::Document(address) if authority.takes_documents => Ok(Self {
                id: address.clone(),
                secret: None,
                method: Method::None,
            }),
            Identity::Document(_) | Identity::Unknown => Self::registered(fetch, authority, redirect).await,
        }
    }

    async fn registered(fetch: &Fetch, authority: &Authority, redirect: &str) -> Result<Self, McpError> {
        let Some(endpoint) = &authority.registration_endpoint else {
            let message = "its authorization server registers nobody by itself: register aish there, and give \
                `aish mcp login` the id (--client-id)";
            return Err(McpError::new(ErrorKind::Protocol, message));
        };
        let wanted = Method::first_of([Method::None, Method::Basic, Method::Post], authority);
        let request = json!({
            "client_name": CLIENT_NAME,
            "redirect_uris": [redirect],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": wanted.unwrap_or(Method::None).name(),
            "application_type": "native",
        });
        let answer = fetch.post_json(endpoint, &request).await?;
        let text = |name: &str| {
            let text = answer.body.get(name).and_then(serde_json::Value::as_str);
            text.filter(|text| !text.is_empty() && text.len() <= ID_BYTES_MAX)
        };
        if authority.issuer.is_none() && answer.status.is_client_error() {
            // The place was only a guess.
            let message = "it says nowhere how to log in: a token that you have goes into the configuration (auth_env)";
            return Err(McpError::new(ErrorKind::Protocol, message));
        }
        let id = text("client_id")
            .filter(|_| answer.status.is_success())
            .ok_or_else(|| {
                let said = text("error_description")
                    .or(text("error"))
                    .map(excerpt)
                    .unwrap_or_default();
                let why = format!("it does not register aish: {} {said}", answer.status.as_str());
                failure(endpoint, ErrorKind::Protocol, why.trim_end())
            })?;
        let secret = text("client_secret").map(Secret::new);
        let told = text("token_endpoint_auth_method").and_then(Method::of_name);
        Ok(Self {
            id: id.to_owned(),
            method: told.unwrap_or_else(|| method_of(secret.as_ref(), authority)),
            secret,
        })
    }

    /// What goes along with a request for a token: further fields of the form, and a header.
    pub(super) fn proof(&self) -> (Vec<(&'static str, &str)>, Option<Secret>) {
        match (self.method, &self.secret) {
            (Method::Basic, Some(secret)) => (Vec::new(), Some(basic(&self.id, secret))),
            (Method::Post, Some(secret)) => (vec![("client_id", &self.id), ("client_secret", secret.expose())], None),
            (Method::None, _) | (Method::Basic | Method::Post, None) => (vec![("client_id", &self.id)], None),
        }
    }
}

fn method_of(secret: Option<&Secret>, authority: &Authority) -> Method {
    match secret {
        // What RFC 8414 says of servers that do not say.
        Some(_) => Method::first_of([Method::Basic, Method::Post, Method::None], authority).unwrap_or(Method::Basic),
        None => Method::None,
    }
}

/// The header, whose two halves are encoded as a form's values first (RFC 6749 section 2.3.1).
fn basic(id: &str, secret: &Secret) -> Secret {
    let encoded = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", encoded(id), encoded(secret.expose()));
    Secret::new(format!("Basic {}", STANDARD.encode(pair)))
}
