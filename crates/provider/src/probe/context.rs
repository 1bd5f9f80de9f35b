//! How much fits a model's context, where its list of models does not say: what servers of this machine tell beside the API.

use crate::discover::{Endpoint, list, listing};
use serde_json::Value;
use std::time::Duration;

/// How long a server may take to say so.
const CONTEXT_TIMEOUT_S: u64 = 5;

/// Reads one server's document.
type Reader = fn(&Value, &str) -> Option<u64>;

/// Documents beside the API, from the origin's root, and how each is read. Ollama and LM Studio tell what the model was loaded
/// with, which is less than what it could have and is all that counts.
const DOCUMENTS: [(&str, Reader); 3] = [
    ("/props", llama_cpp),
    ("/api/ps", ollama),
    ("/api/v0/models", lm_studio),
];

/// Tokens of a model's context, from its list entry, else from the documents.
pub(super) async fn window(client: &reqwest::Client, endpoint: Endpoint<'_>, model: &str) -> Option<u64> {
    let limit = Duration::from_secs(CONTEXT_TIMEOUT_S);
    let listed = list(client, endpoint, limit).await.unwrap_or_default();
    let told = listed
        .iter()
        .find(|listed| listed.id == model)
        .and_then(|listed| listed.context_window);
    if told.is_some() {
        return told;
    }
    let base = reqwest::Url::parse(endpoint.base_url).ok()?;
    // Such documents are a matter of servers people run themselves.
    let is_own = base.scheme() == "http";
    for (path, read) in DOCUMENTS.iter().filter(|_| is_own) {
        let url = base.join(path).ok()?;
        let asked = tokio::time::timeout(limit, listing::get(client, &endpoint, url.as_str())).await;
        let document: Option<Value> = asked
            .ok()
            .and_then(Result::ok)
            .and_then(|body| serde_json::from_slice(&body).ok());
        if let Some(tokens) = document.and_then(|document| read(&document, model)) {
            return Some(tokens);
        }
    }
    None
}

fn llama_cpp(document: &Value, _: &str) -> Option<u64> {
    let settings = document.get("default_generation_settings")?;
    settings.get("n_ctx")?.as_u64().filter(|tokens| *tokens > 0)
}

fn ollama(document: &Value, model: &str) -> Option<u64> {
    let is_it = |entry: &&Value| {
        let name = entry.get("name").and_then(Value::as_str).unwrap_or_default();
        name == model || name.strip_suffix(":latest") == Some(model)
    };
    let entry = document.get("models")?.as_array()?.iter().find(is_it)?;
    entry.get("context_length")?.as_u64().filter(|tokens| *tokens > 0)
}

fn lm_studio(document: &Value, model: &str) -> Option<u64> {
    let is_it = |entry: &&Value| entry.get("id").and_then(Value::as_str) == Some(model);
    let entry = document.get("data")?.as_array()?.iter().find(is_it)?;
    entry
        .get("loaded_context_length")?
        .as_u64()
        .filter(|tokens| *tokens > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// What each server tells, and that another's document says nothing.
    #[test]
    fn documents() {
        let props = json!({"default_generation_settings": {"n_ctx": 8192}});
        let ps = json!({"models": [{"name": "other"}, {"name": "qwen3:latest", "context_length": 4096}]});
        let studio = json!({"data": [{"id": "m", "max_context_length": 131_072, "loaded_context_length": 4096}]});
        assert_eq!(llama_cpp(&props, "any"), Some(8192));
        assert_eq!((ollama(&ps, "qwen3"), ollama(&ps, "other")), (Some(4096), None));
        assert_eq!((lm_studio(&studio, "m"), lm_studio(&studio, "x")), (Some(4096), None));
        for (_, read) in DOCUMENTS {
            assert_eq!(
                read(
                    &json!({"data": 7, "models": {}, "default_generation_settings": []}),
                    "m"
                ),
                None
            );
        }
    }
}
