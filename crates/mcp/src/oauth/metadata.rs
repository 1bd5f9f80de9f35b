//! Finding out who gives tokens for a server: the server's own description (RFC 9728), then that of its authorization server
//! (RFC 8414, OpenID Connect Discovery), in the order that the MCP specification asks for.
//!
//! A document that names somebody else than whom it was asked for is refused: who can serve one at an odd address must not be able
//! to have a person log in elsewhere.

use super::challenge::{Challenge, scopes_of};
use super::fetch::Fetch;
use crate::http::excerpt;
use crate::{ErrorKind, McpError};
use serde_json::Value;
use url::Url;

const RESOURCE_DOCUMENT: &str = "/.well-known/oauth-protected-resource";
const AUTHORITY_DOCUMENT: &str = "/.well-known/oauth-authorization-server";
const OPENID_DOCUMENT: &str = "/.well-known/openid-configuration";
/// The one way of proving that the code is used by whom it was given to (RFC 7636).
pub(super) const PKCE_METHOD: &str = "S256";
/// The scope that brings a refresh token from OpenID Connect providers.
const OFFLINE_SCOPE: &str = "offline_access";

/// What is known before anybody is asked to log in.
pub(super) struct Found {
    /// The server, exactly as it names itself: the `resource` of every request (RFC 8707).
    pub(super) resource: String,
    /// Who gives tokens for it.
    pub(super) authority: Authority,
    /// What a token should allow.
    pub(super) scopes: Vec<String>,
}

/// An authorization server.
#[derive(Debug)]
pub(super) struct Authority {
    /// Its name; none where there is no document at all (2025-03-26).
    pub(super) issuer: Option<String>,
    pub(super) authorization_endpoint: Url,
    pub(super) token_endpoint: Url,
    pub(super) registration_endpoint: Option<Url>,
    /// How clients show who they are at the token endpoint; empty when it does not say.
    pub(super) auth_methods: Vec<String>,
    /// Whether it says who it is when it sends the person back (RFC 9207).
    pub(super) sends_issuer: bool,
    /// Whether the address of a document serves as a client's id.
    pub(super) takes_documents: bool,
    scopes: Vec<String>,
}

/// Finds out.
///
/// # Errors
/// The server names nobody who gives tokens, or what it names does not hold together.
pub(super) async fn find(fetch: &Fetch, server: &Url, challenge: &Challenge) -> Result<Found, McpError> {
    let described = describe(fetch, server, challenge).await?;
    let asked = &challenge.scopes;
    let Some(described) = described else {
        let authority = match authority(fetch, &origin(server)).await? {
            Some(authority) => authority,
            None => Authority::of_2025_03_26(server)?,
        };
        let (resource, scopes) = (canonical(server), asked.clone());
        return Ok(Found::new(resource, authority, scopes));
    };
    let named = list(&described, "authorization_servers");
    let issuer = named
        .first()
        .map_or_else(|| origin(server), |named| (*named).to_owned());
    let authority = authority(fetch, &issuer).await?.ok_or_else(|| {
        let message = format!("its authorization server {} does not describe itself", excerpt(&issuer));
        McpError::new(ErrorKind::Protocol, message)
    })?;
    let resource = text(&described, "resource").map_or_else(|| canonical(server), str::to_owned);
    let scopes = if asked.is_empty() {
        scopes_of(list(&described, "scopes_supported"))
    } else {
        asked.clone()
    };
    Ok(Found::new(resource, authority, scopes))
}

impl Found {
    fn new(resource: String, authority: Authority, mut scopes: Vec<String>) -> Self {
        let offline = OFFLINE_SCOPE.to_owned();
        if authority.scopes.contains(&offline) && !scopes.contains(&offline) {
            scopes.push(offline);
        }
        Self {
            resource,
            authority,
            scopes,
        }
    }
}

/// The server's description of itself: where its challenge says, else for its path, else for its origin. None where it has none,
/// as servers of 2025-03-26.
async fn describe(fetch: &Fetch, server: &Url, challenge: &Challenge) -> Result<Option<Value>, McpError> {
    let mut places = Vec::new();
    if let Some(place) = &challenge.resource_metadata {
        places.push(fetch.address(place, "resource_metadata")?);
    } else {
        let path = server.path().trim_end_matches('/');
        places.push(at(server, &format!("{RESOURCE_DOCUMENT}{path}")));
        places.extend((!path.is_empty()).then(|| at(server, RESOURCE_DOCUMENT)));
    }
    for place in places {
        if let Some(document) = fetch.document(&place).await? {
            if let Some(resource) = text(&document, "resource").filter(|resource| !covers(resource, server)) {
                let message = format!("it describes another server than itself: {}", excerpt(resource));
                return Err(McpError::new(ErrorKind::Protocol, message));
            }
            return Ok(Some(document));
        }
    }
    Ok(None)
}

/// Whether a server's name for itself is that of its address, or of a path above it.
fn covers(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else {
        return false;
    };
    let above = resource.path().trim_end_matches('/');
    let is_below = server
        .path()
        .strip_prefix(above)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    resource.origin() == server.origin() && is_below
}

/// What an authorization server says of itself; none when it has no document.
async fn authority(fetch: &Fetch, issuer: &str) -> Result<Option<Authority>, McpError> {
    let base = fetch.address(issuer, "authorization server")?;
    let path = base.path().trim_end_matches('/').to_owned();
    let mut places = vec![
        format!("{AUTHORITY_DOCUMENT}{path}"),
        format!("{OPENID_DOCUMENT}{path}"),
    ];
    places.extend((!path.is_empty()).then(|| format!("{path}{OPENID_DOCUMENT}")));
    for place in places {
        if let Some(document) = fetch.document(&at(&base, &place)).await? {
            return Authority::read(fetch, issuer, &document).map(Some);
        }
    }
    Ok(None)
}

impl Authority {
    fn read(fetch: &Fetch, asked: &str, document: &Value) -> Result<Self, McpError> {
        let wrong = |why: String| McpError::new(ErrorKind::Protocol, format!("its authorization server {why}"));
        let issuer = text(document, "issuer").unwrap_or_default();
        // RFC 8414 section 3.3 asks for the very same text; a slash at its end is where servers differ from themselves.
        if issuer.trim_end_matches('/') != asked.trim_end_matches('/') {
            return Err(wrong(format!(
                "calls itself {}, not {}",
                excerpt(issuer),
                excerpt(asked)
            )));
        }
        if !list(document, "code_challenge_methods_supported").contains(&PKCE_METHOD) {
            return Err(wrong(format!("does not offer PKCE with {PKCE_METHOD}")));
        }
        let endpoint = |name: &str| match text(document, name) {
            Some(address) => fetch.address(address, name),
            None => Err(wrong(format!("names no {name}"))),
        };
        let has_registration = text(document, "registration_endpoint").is_some();
        let says = |name: &str| document.get(name).and_then(Value::as_bool).unwrap_or_default();
        let methods = list(document, "token_endpoint_auth_methods_supported");
        Ok(Self {
            issuer: Some(issuer.to_owned()),
            authorization_endpoint: endpoint("authorization_endpoint")?,
            token_endpoint: endpoint("token_endpoint")?,
            registration_endpoint: has_registration
                .then(|| endpoint("registration_endpoint"))
                .transpose()?,
            auth_methods: methods.into_iter().map(str::to_owned).collect(),
            sends_issuer: says("authorization_response_iss_parameter_supported"),
            takes_documents: says("client_id_metadata_document_supported"),
            scopes: scopes_of(list(document, "scopes_supported")),
        })
    }

    /// Where servers of 2025-03-26 without any document have their endpoints.
    fn of_2025_03_26(server: &Url) -> Result<Self, McpError> {
        Ok(Self {
            issuer: None,
            authorization_endpoint: at(server, "/authorize"),
            token_endpoint: at(server, "/token"),
            registration_endpoint: Some(at(server, "/register")),
            auth_methods: Vec::new(),
            sends_issuer: false,
            takes_documents: false,
            scopes: Vec::new(),
        })
    }
}

/// The same origin with another path.
fn at(url: &Url, path: &str) -> Url {
    let mut there = url.clone();
    there.set_path(path);
    there.set_query(None);
    there.set_fragment(None);
    there
}

fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// A server's name where it does not say one: its address without what does not belong to it (RFC 8707 section 2).
fn canonical(server: &Url) -> String {
    let mut name = server.clone();
    name.set_fragment(None);
    name.set_query(None);
    if name.path() == "/" {
        origin(server)
    } else {
        name.to_string()
    }
}

fn text<'a>(document: &'a Value, name: &str) -> Option<&'a str> {
    document
        .get(name)
        .and_then(Value::as_str)
        .filter(|text| !text.is_empty())
}

fn list<'a>(document: &'a Value, name: &str) -> Vec<&'a str> {
    let all = document.get(name).and_then(Value::as_array);
    all.into_iter().flatten().filter_map(Value::as_str).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// SPEC 6.11: a server may only speak for itself.
    #[test]
    fn whom_a_name_covers() {
        let server = Url::parse("https://h.example/team/mcp").unwrap();
        for name in [
            "https://h.example/team/mcp",
            "https://h.example",
            "https://h.example/team/",
        ] {
            assert!(covers(name, &server), "{name}");
        }
        for name in [
            "https://evil.example/team/mcp",
            "http://h.example",
            "https://h.example/tea",
            "https://h.example:444",
            "h",
            "",
        ] {
            assert!(!covers(name, &server), "{name}");
        }
    }

    /// RFC 8707: a server that does not name itself is named without a slash that nobody wrote.
    #[test]
    fn names() {
        for (address, name) in [
            ("https://h.example/mcp?x=1#y", "https://h.example/mcp"),
            ("https://h.example", "https://h.example"),
            ("http://localhost:80/mcp/", "http://localhost/mcp/"),
        ] {
            assert_eq!(canonical(&Url::parse(address).unwrap()), name);
        }
    }
}
