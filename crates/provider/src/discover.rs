//! Finding a model where none is configured (SPEC 7.7): keys in the environment first, then servers on this machine.
//!
//! [`from_vars`] and [`LOCAL_SERVERS`] are tables and pure; [`probe`] asks one server which models it has, within a
//! short time and a bounded body, and [`local`] asks all usual ones at once. Only providers that speak `openai-chat` are
//! in the tables.

use futures_util::future::join_all;
use serde::Deserialize;
use std::time::Duration;

/// How long a server on this machine may take to name its models.
pub const PROBE_TIMEOUT_MS: u64 = 300;

/// Bytes of a list of models; providers that serve hundreds of them send some hundred kilobytes.
const MODELS_BYTES_MAX: usize = 4 << 20;

/// A provider that may be usable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// A short name, e.g. `openrouter`.
    pub name: &'static str,
    /// What the official SDKs take, with `/v1`.
    pub base_url: String,
    /// The variable that holds the key, if it needs one.
    pub key_env: Option<&'static str>,
    /// A model to begin with; `None` where the server must be asked.
    pub default_model: Option<String>,
}

/// A model as its server lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// What to ask for.
    pub id: String,
    /// Tokens that fit its context, where the server says so.
    pub context_window: Option<u64>,
    /// How many parameters it has, where the server says so.
    pub parameters: Option<u64>,
}

/// A provider that is found by a key in the environment.
struct Keyed {
    name: &'static str,
    key_env: &'static str,
    base_url: &'static str,
    default_model: Option<&'static str>,
}

/// In this order. A model is only named where the provider has a name that stays valid; the others are asked.
const KEYED: &[Keyed] = &[
    Keyed {
        name: "openrouter",
        key_env: "OPENROUTER_API_KEY",
        base_url: "https://openrouter.ai/api/v1",
        default_model: Some("openrouter/auto"),
    },
    Keyed {
        name: "xai",
        key_env: "XAI_API_KEY",
        base_url: "https://api.x.ai/v1",
        default_model: None,
    },
    Keyed {
        name: "deepseek",
        key_env: "DEEPSEEK_API_KEY",
        base_url: "https://api.deepseek.com/v1",
        default_model: Some("deepseek-chat"),
    },
    Keyed {
        name: "mistral",
        key_env: "MISTRAL_API_KEY",
        base_url: "https://api.mistral.ai/v1",
        default_model: Some("mistral-large-latest"),
    },
    Keyed {
        name: "groq",
        key_env: "GROQ_API_KEY",
        base_url: "https://api.groq.com/openai/v1",
        default_model: None,
    },
];

/// Servers on this machine and their usual addresses, in this order: llama.cpp, Ollama, LM Studio, vLLM.
pub const LOCAL_SERVERS: &[(&str, &str)] = &[
    ("llama.cpp", "http://127.0.0.1:8080/v1"),
    ("ollama", "http://127.0.0.1:11434/v1"),
    ("lmstudio", "http://127.0.0.1:1234/v1"),
    ("vllm", "http://127.0.0.1:8000/v1"),
];

/// What the environment names, in order: `AISH_BASE_URL`, OpenAI's variables, then the keys of other providers. `var`
/// gives a variable's value, e.g. `|name| std::env::var(name).ok()`.
pub fn from_vars(var: impl Fn(&str) -> Option<String>) -> Vec<Candidate> {
    let set = |name: &str| var(name).filter(|value| !value.trim().is_empty());
    let has = |name: &'static str| set(name).map(|_| name);
    let mut found = Vec::new();
    if let Some(base_url) = set("AISH_BASE_URL") {
        found.push(Candidate {
            name: "aish",
            base_url,
            key_env: has("AISH_API_KEY"),
            default_model: set("AISH_MODEL"),
        });
    }
    match (set("OPENAI_BASE_URL"), has("OPENAI_API_KEY")) {
        (None, None) => {}
        (base_url, key_env) => found.push(Candidate {
            name: "openai",
            base_url: base_url.unwrap_or_else(|| "https://api.openai.com/v1".to_owned()),
            key_env,
            default_model: None,
        }),
    }
    for keyed in KEYED {
        if let Some(key_env) = has(keyed.key_env) {
            found.push(Candidate {
                name: keyed.name,
                base_url: keyed.base_url.to_owned(),
                key_env: Some(key_env),
                default_model: keyed.default_model.map(str::to_owned),
            });
        }
    }
    found
}

/// The servers of [`LOCAL_SERVERS`] that answer, with the models they name, in that order. They are asked at once, so
/// that all of it takes no longer than the slowest may.
pub async fn local(client: &reqwest::Client) -> Vec<(Candidate, Vec<Listed>)> {
    probe_all(client, LOCAL_SERVERS).await
}

async fn probe_all(client: &reqwest::Client, servers: &[(&'static str, &str)]) -> Vec<(Candidate, Vec<Listed>)> {
    let deadline = Duration::from_millis(PROBE_TIMEOUT_MS);
    let probes = servers.iter().map(|(name, base_url)| async move {
        let models = probe(client, base_url, deadline).await?;
        let candidate = Candidate {
            name,
            base_url: (*base_url).to_owned(),
            key_env: None,
            default_model: models.first().map(|model| model.id.clone()),
        };
        Some((candidate, models))
    });
    join_all(probes).await.into_iter().flatten().collect()
}

/// Asks a server which models it has. `None` when it does not answer with a list of models within the time.
pub async fn probe(client: &reqwest::Client, base_url: &str, deadline: Duration) -> Option<Vec<Listed>> {
    tokio::time::timeout(deadline, models(client, base_url, None))
        .await
        .ok()?
}

/// As [`probe`], with a key: for a provider that was found by one and whose models must be asked for.
pub async fn probe_with_key(
    client: &reqwest::Client,
    base_url: &str,
    key: &str,
    deadline: Duration,
) -> Option<Vec<Listed>> {
    tokio::time::timeout(deadline, models(client, base_url, Some(key)))
        .await
        .ok()?
}

#[derive(Deserialize)]
struct Models {
    data: Vec<Model>,
}

#[derive(Deserialize)]
struct Model {
    id: String,
    /// What llama.cpp's server adds.
    #[serde(default)]
    meta: Option<Meta>,
}

#[derive(Deserialize)]
struct Meta {
    n_ctx: Option<u64>,
    n_params: Option<u64>,
}

async fn models(client: &reqwest::Client, base_url: &str, key: Option<&str>) -> Option<Vec<Listed>> {
    let mut request = client.get(format!("{}/models", base_url.trim_end_matches('/')));
    if let Some(key) = key {
        request = request.bearer_auth(key);
    }
    let mut response = request.send().await.ok()?;
    if !response.status().is_success() {
        return None;
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.ok()? {
        if body.len() + chunk.len() > MODELS_BYTES_MAX {
            return None;
        }
        body.extend_from_slice(&chunk);
    }
    let models: Models = serde_json::from_slice(&body).ok()?;
    let listed = models.data.into_iter().map(|model| Listed {
        id: model.id,
        context_window: model.meta.as_ref().and_then(|meta| meta.n_ctx),
        parameters: model.meta.as_ref().and_then(|meta| meta.n_params),
    });
    Some(listed.collect())
}

#[cfg(test)]
mod tests;
