//! Which models a server has, in the words of each wire format: OpenAI's `GET /models` and what servers add to it,
//! Anthropic's `GET /v1/models`, Gemini's `GET /v1beta/models`.
//!
//! Reading a page is pure ([`read_page`]); [`pages`] asks for one after the other. Pages, bytes and models are bounded: a list
//! comes from a peer.

use super::{Endpoint, Listed};
use crate::codec::{codec_of, quote};
use crate::http::address::endpoint as address_of;
use crate::http::{innermost, without_credentials};
use crate::price::{PRICE_USD_MAX, Price};
use crate::profile::Format;
use crate::{ErrorKind, ProviderError};
use reqwest::header::HeaderValue;
use serde::Deserialize;
use serde_json::Value;

/// Bytes of one page; providers that serve hundreds of models send some hundred kilobytes.
const PAGE_BYTES_MAX: usize = 4 << 20;
/// Bytes of a refusal that are read.
const REFUSAL_BYTES_MAX: usize = 16 << 10;
/// Pages that are asked for.
const PAGES_MAX: usize = 8;
/// Models that are kept of a list.
const MODELS_MAX: usize = 4_000;
/// Models on one page, where it can be chosen: the most that Anthropic and Google allow.
const PAGE_MODELS: u32 = 1_000;
/// The version of Anthropic's API, as its documentation demands it with every request.
const ANTHROPIC_VERSION: &str = "2023-06-01";
/// Bytes of a model's id; a path of a file is the longest that is seen.
const ID_BYTES_MAX: usize = 512;
/// A price per token times this is the price that people know.
const TOKENS_OF_A_PRICE: f64 = 1_000_000.0;

/// What is said of an answer that is for a browser.
const WEB_PAGE: &str = "a web page, no list of models";

/// All pages of a list.
pub(super) async fn pages(client: &reqwest::Client, endpoint: &Endpoint<'_>) -> Result<Vec<Listed>, ProviderError> {
    let mut listed = Vec::new();
    let mut next = None;
    for _ in 0..PAGES_MAX {
        let body = get(client, endpoint, &endpoint.url(next.as_deref())).await?;
        let page = read_page(endpoint.format, &body).map_err(|why| endpoint.error(ErrorKind::Protocol, &why))?;
        listed.extend(page.models);
        next = page.next;
        if next.is_none() || listed.len() >= MODELS_MAX {
            break;
        }
    }
    listed.truncate(MODELS_MAX);
    Ok(listed)
}

impl Endpoint<'_> {
    /// What is asked, without what could be secret in it.
    fn what(&self) -> String {
        format!("GET {}", without_credentials(&self.url(None)))
    }

    pub(super) fn url(&self, after: Option<&str>) -> String {
        // Tokens of pages are opaque; whatever is in them must not become another parameter.
        let after = |name: &str| {
            let encoded = after.map(|token| token.bytes().map(percent).collect::<String>());
            encoded.map(|token| format!("&{name}={token}")).unwrap_or_default()
        };
        let path = match self.format {
            Format::OpenaiChat | Format::OpenaiResponses => "/models".to_owned(),
            Format::Anthropic => format!("/v1/models?limit={PAGE_MODELS}{}", after("after_id")),
            Format::Gemini => format!("/v1beta/models?pageSize={PAGE_MODELS}{}", after("pageToken")),
        };
        address_of(&root(self.format, self.base_url), &path)
    }

    pub(super) fn error(&self, kind: ErrorKind, why: &str) -> ProviderError {
        let key = self
            .key
            .map(str::trim)
            .filter(|key| key.len() >= aish_core::redact::SECRET_CHARS_MIN);
        let message = format!("{}: {why}", self.what());
        ProviderError {
            kind,
            message: match key {
                Some(key) => message.replace(key, "[redacted]"),
                None => message,
            },
            retry_after: None,
        }
    }
}

/// Where that format's requests begin: the address that questions go to, without their path. Whatever people write leads the
/// list to the same place as the questions.
fn root(format: Format, base_url: &str) -> String {
    let path = match format {
        Format::OpenaiChat => "/chat/completions",
        Format::OpenaiResponses => "/responses",
        Format::Anthropic => "/v1/messages",
        Format::Gemini => "/v1beta/models/m:generateContent",
    };
    let (base, query) = base_url.trim().split_once('?').unwrap_or((base_url.trim(), ""));
    // The model and what is done with it stand in a path of Gemini's: `/v1beta/models/MODEL:streamGenerateContent`.
    let is_gemini = format == Format::Gemini;
    let of_a_model = base
        .rsplit_once("/models/")
        .filter(|(_, model)| is_gemini && model.contains(':'));
    let requests = address_of(of_a_model.map_or(base, |(before, _)| before), path);
    let root = requests.strip_suffix(path).unwrap_or(base);
    let sign = if query.is_empty() { "" } else { "?" };
    format!("{root}{sign}{query}")
}

fn percent(byte: u8) -> String {
    if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
        char::from(byte).to_string()
    } else {
        format!("%{byte:02X}")
    }
}

/// Gets a document of an endpoint's server, which must be of its origin: the key is sent along.
pub(crate) async fn get(
    client: &reqwest::Client,
    endpoint: &Endpoint<'_>,
    url: &str,
) -> Result<Vec<u8>, ProviderError> {
    let mut request = client.get(url);
    if endpoint.format == Format::Anthropic {
        request = request.header("anthropic-version", ANTHROPIC_VERSION);
    }
    if let Some(key) = endpoint.key.map(str::trim).filter(|key| !key.is_empty()) {
        let header = codec_of(endpoint.format).key_header();
        let mut value = HeaderValue::from_str(&format!("{}{key}", header.prefix))
            .map_err(|_| endpoint.error(ErrorKind::Auth, "the key has characters that no header can carry"))?;
        value.set_sensitive(true);
        request = request.header(header.name, value);
    }
    let mut response = request.send().await.map_err(|error| {
        if error.is_builder() {
            endpoint.error(ErrorKind::Protocol, "base_url is no address")
        } else {
            endpoint.error(ErrorKind::Connect, &innermost(&error))
        }
    })?;
    let status = response.status();
    let bytes_max = if status.is_success() {
        PAGE_BYTES_MAX
    } else {
        REFUSAL_BYTES_MAX
    };
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() <= bytes_max => body.extend_from_slice(&chunk),
            Ok(Some(_)) if status.is_success() => {
                return Err(endpoint.error(ErrorKind::TooLarge, "the list is too long"));
            }
            Ok(Some(_) | None) => break,
            Err(error) => return Err(endpoint.error(ErrorKind::Broken, &innermost(&error))),
        }
    }
    if status.is_success() {
        return Ok(body);
    }
    // A web server that knows nothing of models says so with a page; an endpoint without a list says it otherwise.
    if is_page(&body) && matches!(status.as_u16(), 404 | 405 | 501) {
        return Err(endpoint.error(ErrorKind::Protocol, &format!("{status}: {WEB_PAGE}")));
    }
    let refused = codec_of(endpoint.format).decode_error(status.as_u16(), &String::from_utf8_lossy(&body));
    let said = if refused.message.is_empty() { "" } else { ": " };
    Err(endpoint.error(refused.kind, &format!("{status}{said}{}", refused.message)))
}

/// Whether it is a web page.
fn is_page(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"<")
}

/// A page as it was read.
pub(super) struct Page {
    pub(super) models: Vec<Listed>,
    /// What to ask the next page by.
    pub(super) next: Option<String>,
}

/// Reads a page.
///
/// # Errors
/// It is not a list of models: why, in a few words.
pub(super) fn read_page(format: Format, body: &[u8]) -> Result<Page, String> {
    if is_page(body) {
        return Err(WEB_PAGE.to_owned());
    }
    let value: Value = serde_json::from_slice(body).map_err(|error| quote(&format!("no JSON: {error}")))?;
    let key = match format {
        Format::OpenaiChat | Format::OpenaiResponses | Format::Anthropic => "data",
        Format::Gemini => "models",
    };
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let next = match format {
        Format::OpenaiChat | Format::OpenaiResponses => None,
        Format::Anthropic => text("last_id").filter(|_| value.get("has_more") == Some(&Value::Bool(true))),
        Format::Gemini => text("nextPageToken").filter(|token| !token.is_empty()),
    };
    // Some servers send the list alone.
    let entries = value.get(key).or(Some(&value)).and_then(Value::as_array);
    let entries = entries.ok_or_else(|| "it is no list of models".to_owned())?;
    let models = entries.iter().filter_map(|entry| match format {
        Format::OpenaiChat | Format::OpenaiResponses | Format::Anthropic => openai(entry),
        Format::Gemini => gemini(entry),
    });
    Ok(Page {
        // What is longer is no name, and a name that is cut could not be asked for.
        models: models.filter(|model| model.id.len() <= ID_BYTES_MAX).collect(),
        next,
    })
}

/// An entry of OpenAI's list, with what llama.cpp, vLLM, Mistral, Groq and OpenRouter add to it; Anthropic's has the same id.
fn openai(entry: &Value) -> Option<Listed> {
    #[derive(Deserialize)]
    struct Entry {
        id: String,
    }
    let Entry { id } = Entry::deserialize(entry).ok()?;
    let meta = |key: &str| entry.get("meta").and_then(|meta| meta.get(key)).and_then(Value::as_u64);
    let window = [
        "max_model_len",
        "context_window",
        "context_length",
        "max_context_length",
    ];
    let told = window.iter().find_map(|key| entry.get(key).and_then(Value::as_u64));
    Some(Listed {
        id,
        context_window: meta("n_ctx").or(told).filter(|tokens| *tokens > 0),
        parameters: meta("n_params"),
        price: entry.get("pricing").and_then(openrouter_price),
    })
}

/// OpenRouter's prices: US dollars per token, as text.
fn openrouter_price(pricing: &Value) -> Option<Price> {
    let price = |key: &str| {
        let per_token: f64 = pricing.get(key)?.as_str()?.parse().ok()?;
        let price = per_token * TOKENS_OF_A_PRICE;
        // A negative price stands for "depends on where it goes".
        (0.0..=PRICE_USD_MAX).contains(&price).then_some(price)
    };
    Some(Price {
        input: price("prompt")?,
        output: price("completion")?,
        cached: price("input_cache_read"),
        cache_write: price("input_cache_write"),
    })
}

/// An entry of Gemini's list, if it is a model that answers.
fn gemini(entry: &Value) -> Option<Listed> {
    let name = entry.get("name")?.as_str()?;
    let methods = entry.get("supportedGenerationMethods").and_then(Value::as_array);
    let answers = methods.is_none_or(|methods| methods.iter().any(|method| method == "generateContent"));
    answers.then(|| Listed {
        id: name.strip_prefix("models/").unwrap_or(name).to_owned(),
        context_window: entry.get("inputTokenLimit").and_then(Value::as_u64),
        parameters: None,
        price: None,
    })
}
