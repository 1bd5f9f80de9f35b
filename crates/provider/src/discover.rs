//! Finding a model where none is configured (SPEC 7.7): keys in the environment first, then servers on this machine.
//!
//! [`from_vars`] says what the environment names, out of [`crate::preset`]'s table, and is pure; [`list`] asks one server
//! which models it has, within a time and a bounded body, and [`local`] asks all usual ones of this machine at once. Whoever
//! was asked and did not tell is not forgotten: that nothing was found is only true where nothing failed.

use crate::preset::{self, PRESETS, Place, Preset};
use crate::price::Price;
use crate::profile::{CallsPerReply, Format};
use crate::{ErrorKind, ModelProfile, ProviderError};
use futures_util::future::join_all;
use std::time::Duration;

pub(crate) mod listing;

/// How long a server on this machine may take to name its models.
pub const PROBE_TIMEOUT_MS: u64 = 300;

/// What the server of `AISH_BASE_URL` is called among candidates.
pub const NAMED: &str = "aish";

/// Models with fewer parameters than this are held to one call a reply: they begin another and another until their context
/// is full.
const SMALL_MODEL_PARAMETERS: u64 = 1_000_000_000;

/// A provider that may be usable.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// A short name, e.g. `openrouter`; [`NAMED`] for the server of `AISH_BASE_URL`.
    pub name: &'static str,
    /// Its entry in the table of providers; none for a server that is not in it.
    pub preset: Option<&'static Preset>,
    /// The wire format it is spoken to in.
    pub format: Format,
    /// What the official SDKs take.
    pub base_url: String,
    /// The variable that holds the key, if it needs one.
    pub key_env: Option<&'static str>,
    /// A model to begin with; `None` where the server must be asked.
    pub default_model: Option<String>,
}

/// A model as its server lists it.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// What to ask for.
    pub id: String,
    /// Tokens that fit its context, where the server says so.
    pub context_window: Option<u64>,
    /// How many parameters it has, where the server says so.
    pub parameters: Option<u64>,
    /// What it costs, where the server says so.
    pub price: Option<Price>,
}

impl Listed {
    /// A model of which nothing is known but its name.
    pub fn unlisted(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            context_window: None,
            parameters: None,
            price: None,
        }
    }
}

impl Candidate {
    /// A provider of the table, at its own address; `is_set` tells whether a variable has a value.
    pub fn of_preset(preset: &'static Preset, is_set: impl Fn(&str) -> bool) -> Self {
        Self {
            name: preset.name,
            preset: Some(preset),
            format: preset.format,
            base_url: preset.base_url.to_owned(),
            key_env: preset.key_env(is_set),
            default_model: preset.begin.unasked().map(str::to_owned),
        }
    }

    /// The same provider behind the address that the environment names for it, e.g. a proxy. OpenAI's variable is used for
    /// servers of every kind, which speak its older format.
    fn moved_to(self, base_url: String) -> Self {
        let is_elsewhere = preset::of_address(&base_url).is_none_or(|owner| owner.name != self.name);
        let format = match self.format {
            Format::OpenaiResponses if is_elsewhere => Format::OpenaiChat,
            format @ (Format::OpenaiChat | Format::OpenaiResponses | Format::Anthropic | Format::Gemini) => format,
        };
        Self {
            format,
            base_url,
            // What is elsewhere may have other models.
            default_model: self.default_model.filter(|_| !is_elsewhere),
            ..self
        }
    }

    /// How to talk to one of its models.
    pub fn profile(&self, model: &Listed) -> ModelProfile {
        let mut profile = ModelProfile::new(self.format, &self.base_url, &model.id);
        if let Some(preset) = self.preset.or_else(|| preset::of_address(&self.base_url)) {
            preset.adapt(&mut profile);
        }
        profile.context_window = model.context_window;
        profile.calls = match model.parameters {
            Some(parameters) if parameters < SMALL_MODEL_PARAMETERS => CallsPerReply::One,
            Some(_) | None => CallsPerReply::Any,
        };
        profile
    }
}

/// What the environment names, in order: `AISH_BASE_URL`, then every provider of the table whose key or address is set. `var`
/// gives a variable's value, e.g. `|name| std::env::var(name).ok()`.
pub fn from_vars(var: impl Fn(&str) -> Option<String>) -> Vec<Candidate> {
    let set = |name: &str| var(name).filter(|value| !value.trim().is_empty());
    let mut found = Vec::new();
    if let Some(base_url) = set("AISH_BASE_URL") {
        found.push(Candidate {
            name: NAMED,
            preset: None,
            format: Format::OpenaiChat,
            base_url,
            key_env: set("AISH_API_KEY").map(|_| "AISH_API_KEY"),
            default_model: set("AISH_MODEL"),
        });
    }
    let on_network = |preset: &&Preset| matches!(preset.place, Place::Network(_));
    for preset in PRESETS.iter().filter(on_network) {
        let has_key = preset.key_envs().iter().any(|name| set(name).is_some());
        let has_address = preset.base_url_env.is_some_and(|name| set(name).is_some());
        if has_key || has_address {
            let mut candidate = at_its_address(preset, &var);
            candidate.key_env = candidate.key_env.filter(|_| has_key);
            found.push(candidate);
        }
    }
    found
}

/// A provider of the table, at the address that the environment names for it, else its own.
pub fn at_its_address(preset: &'static Preset, var: impl Fn(&str) -> Option<String>) -> Candidate {
    let set = |name: &str| var(name).filter(|value| !value.trim().is_empty());
    let candidate = Candidate::of_preset(preset, |name| set(name).is_some());
    match preset.base_url_env.and_then(set) {
        Some(base_url) => candidate.moved_to(base_url.trim_end_matches('/').to_owned()),
        None => candidate,
    }
}

/// Whether this can be a base address: `http://` or `https://` and a host.
pub fn is_address(text: &str) -> bool {
    let is_http = |url: reqwest::Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    reqwest::Url::parse(text.trim()).is_ok_and(is_http)
}

/// Where a list of models is asked for.
#[derive(Clone, Copy)]
pub struct Endpoint<'a> {
    /// The wire format, which has a list of its own.
    pub format: Format,
    /// What the official SDKs take.
    pub base_url: &'a str,
    /// The key; it must belong to that address.
    pub key: Option<&'a str>,
}

/// Asks a server which models it has.
///
/// # Errors
/// It does not answer within the time, or not with a list of models: what was tried and why it failed, without the key.
pub async fn list(client: &reqwest::Client, endpoint: Endpoint<'_>, deadline: Duration) -> Answer {
    match tokio::time::timeout(deadline, listing::pages(client, &endpoint)).await {
        Ok(listed) => listed,
        Err(_) => {
            let why = format!("no list of models within {} ms", deadline.as_millis());
            Err(endpoint.error(ErrorKind::Timeout, &why))
        }
    }
}

/// What a server said when it was asked which models it has.
pub type Answer = Result<Vec<Listed>, ProviderError>;

/// Asks the usual servers of this machine, in the order of the table; a server that is not there is left out. They are asked
/// at once, so that all of it takes no longer than the slowest may.
pub async fn local(client: &reqwest::Client) -> Vec<(Candidate, Answer)> {
    let here = PRESETS.iter().filter(|preset| preset.place == Place::ThisMachine);
    probe_all(
        client,
        here.map(|preset| Candidate::of_preset(preset, |_| false)).collect(),
    )
    .await
}

async fn probe_all(client: &reqwest::Client, candidates: Vec<Candidate>) -> Vec<(Candidate, Answer)> {
    let deadline = Duration::from_millis(PROBE_TIMEOUT_MS);
    let probes = candidates.into_iter().map(|candidate| async move {
        let endpoint = Endpoint {
            format: candidate.format,
            base_url: &candidate.base_url,
            key: None,
        };
        let answer = list(client, endpoint, deadline).await;
        is_model_server(&answer).then_some((candidate, answer))
    });
    join_all(probes).await.into_iter().flatten().collect()
}

/// Whether what was found at a usual port may well be a server of models: the ports are popular with others, too. One that
/// wants a key (vLLM and LM Studio can), is still loading or does not answer may be one.
fn is_model_server(answer: &Answer) -> bool {
    const LOADING: u16 = 503;
    match answer {
        Ok(_) => true,
        Err(error) => matches!(
            error.kind,
            ErrorKind::Auth | ErrorKind::Timeout | ErrorKind::Status(LOADING)
        ),
    }
}

#[cfg(test)]
mod tests;
