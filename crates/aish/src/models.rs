//! The models of this process: those of the configuration and those that were found (SPEC 7.1, 7.7), made ready to be asked
//! when they first are.
//!
//! Which one a session starts with: `--model`, else `AISH_BASE_URL`, else the configuration, else a key in the environment,
//! else a server on this machine. Only the last two look around, and only when nothing was said.

use crate::config::{Config, ModelConfig, ProviderKind, ResultRole, WireNames};
use crate::paths::Environment;
use aish_engine::{Model, Models};
use aish_provider::client::{Network, Timeouts, client};
use aish_provider::discover::{self, Candidate, Listed};
use aish_provider::profile::{CallsPerReply, ToolRole, WireNaming};
use aish_provider::{HttpProvider, ModelProfile};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// How long a provider on the network may take to name its models.
const REMOTE_PROBE_TIMEOUT_MS: u64 = 5_000;
/// How long the server of `AISH_BASE_URL` may take to: it was named, so it is worth more waiting than one that was guessed.
const NAMED_PROBE_TIMEOUT_MS: u64 = 2_000;
/// What is asked for where a server does not name its models; a server with one model takes any name.
const ANY_MODEL: &str = "default";

/// What to do without a model (SPEC 7.7): three lines.
pub const NO_MODEL: [&str; 3] = [
    "start one on this machine (llama.cpp, Ollama, LM Studio or vLLM on its usual port is found by itself)",
    "or set a key, e.g. export OPENAI_API_KEY=… (also OPENROUTER_API_KEY, MISTRAL_API_KEY, …), or AISH_BASE_URL=http://host:port/v1",
    "or write [models.NAME] into the configuration: `aish config path` says where, `aish config reference` what",
];

/// A model somebody may choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The name to choose it by.
    pub name: String,
    /// Where it is and where that is known from.
    pub origin: String,
}

/// A model that was found, not configured.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Found {
    name: String,
    base_url: String,
    model: Listed,
    key_env: Option<&'static str>,
}

/// The models of this process.
pub struct Registry {
    configured: Vec<ModelConfig>,
    start: Option<String>,
    discover: bool,
    environment: Environment,
    client: OnceLock<Result<reqwest::Client, String>>,
    found: Mutex<Vec<Found>>,
    ready: Mutex<BTreeMap<String, Model>>,
}

impl Registry {
    /// What the configuration says. Nothing is looked for yet.
    pub fn new(config: &Config, environment: &Environment) -> Self {
        Self {
            configured: config.models.clone(),
            start: config.start_model().map(|model| model.name.clone()),
            discover: config.discover,
            environment: environment.clone(),
            client: OnceLock::new(),
            found: Mutex::new(Vec::new()),
            ready: Mutex::new(BTreeMap::new()),
        }
    }

    /// The name of the model to start with; `None` when there is none at all.
    ///
    /// # Errors
    /// The wanted model is neither configured nor found: one line, with what there is.
    pub async fn choose(&self, wanted: Option<&str>) -> Result<Option<String>, String> {
        if let Some(name) = wanted {
            return self.choose_named(name).await.map(Some);
        }
        if let Some(candidate) = self.named_by_environment() {
            return Ok(self
                .look_at(&candidate, NAMED_PROBE_TIMEOUT_MS)
                .await
                .first()
                .map(|found| found.name.clone()));
        }
        if let Some(name) = &self.start {
            return Ok(Some(name.clone()));
        }
        for candidate in self.candidates() {
            if let Some(found) = self.look_at(&candidate, REMOTE_PROBE_TIMEOUT_MS).await.first() {
                return Ok(Some(found.name.clone()));
            }
        }
        Ok(self.look_around().await.first().map(|found| found.name.clone()))
    }

    async fn choose_named(&self, name: &str) -> Result<String, String> {
        if self.configured.iter().any(|model| model.name == name) {
            return Ok(name.to_owned());
        }
        let choices = self.choices().await;
        let fits =
            |choice: &&Choice| choice.name == name || choice.name.rsplit_once('/').is_some_and(|(_, m)| m == name);
        if let Some(choice) = choices.iter().find(fits) {
            return Ok(choice.name.clone());
        }
        // A server that was named takes the name of any model it has, listed or not.
        if let Some(candidate) = self.named_by_environment() {
            let found = self.add(&candidate, &unlisted(name));
            return Ok(found.name);
        }
        let names: Vec<&str> = choices.iter().map(|choice| choice.name.as_str()).collect();
        Err(if names.is_empty() {
            format!("there is no model {name:?}: none is configured and none was found")
        } else {
            format!("there is no model {name:?}; there are: {}", names.join(", "))
        })
    }

    /// Everything that can be chosen: configured first, then found. Looks around.
    pub async fn choices(&self) -> Vec<Choice> {
        let mut choices: Vec<Choice> = self
            .configured
            .iter()
            .map(|model| Choice {
                name: model.name.clone(),
                origin: format!("{} at {} (configured)", model.model, model.base_url),
            })
            .collect();
        let mut found = Vec::new();
        if let Some(candidate) = self.named_by_environment() {
            found.extend(self.look_at(&candidate, NAMED_PROBE_TIMEOUT_MS).await);
        }
        for candidate in self.candidates() {
            found.extend(self.look_at(&candidate, REMOTE_PROBE_TIMEOUT_MS).await);
        }
        found.extend(self.look_around().await);
        for found in found {
            if !choices.iter().any(|choice| choice.name == found.name) {
                choices.push(Choice {
                    name: found.name,
                    origin: format!("{} (found)", found.base_url),
                });
            }
        }
        choices
    }

    /// `AISH_BASE_URL`.
    fn named_by_environment(&self) -> Option<Candidate> {
        self.environment.text("AISH_BASE_URL")?;
        self.named_and_keyed().into_iter().next()
    }

    /// Providers whose keys are in the environment.
    fn candidates(&self) -> Vec<Candidate> {
        if !self.discover {
            return Vec::new();
        }
        let skip = usize::from(self.environment.text("AISH_BASE_URL").is_some());
        self.named_and_keyed().into_iter().skip(skip).collect()
    }

    fn named_and_keyed(&self) -> Vec<Candidate> {
        discover::from_vars(|name| self.environment.text(name).map(str::to_owned))
    }

    /// The models of one provider: its default one, or those it names.
    async fn look_at(&self, candidate: &Candidate, timeout_ms: u64) -> Vec<Found> {
        if let Some(model) = &candidate.default_model {
            return vec![self.add(candidate, &unlisted(model))];
        }
        let Ok(client) = self.client() else { return Vec::new() };
        let deadline = Duration::from_millis(timeout_ms);
        let key = candidate.key_env.and_then(|name| self.environment.text(name));
        let names = match key {
            Some(key) => discover::probe_with_key(&client, &candidate.base_url, key, deadline).await,
            None => discover::probe(&client, &candidate.base_url, deadline).await,
        };
        match names {
            Some(names) if !names.is_empty() => names.iter().map(|name| self.add(candidate, name)).collect(),
            // It was named, and may answer later: a question to it will say why it cannot.
            Some(_) | None if candidate.name == NAMED_CANDIDATE => vec![self.add(candidate, &unlisted(ANY_MODEL))],
            Some(_) | None => Vec::new(),
        }
    }

    /// Servers on this machine.
    async fn look_around(&self) -> Vec<Found> {
        if !self.discover {
            return Vec::new();
        }
        let Ok(client) = self.client() else { return Vec::new() };
        let servers = discover::local(&client).await;
        servers
            .iter()
            .flat_map(|(candidate, models)| models.iter().map(move |model| self.add(candidate, model)))
            .collect()
    }

    fn add(&self, candidate: &Candidate, model: &Listed) -> Found {
        // A server that was named needs no name in front: there is only one.
        let named = candidate.name == NAMED_CANDIDATE;
        let found = Found {
            name: if named {
                model.id.clone()
            } else {
                format!("{}/{}", candidate.name, model.id)
            },
            base_url: candidate.base_url.clone(),
            model: model.clone(),
            key_env: candidate.key_env,
        };
        let mut all = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if !all.contains(&found) {
            all.push(found.clone());
        }
        found
    }

    fn client(&self) -> Result<reqwest::Client, String> {
        self.client
            .get_or_init(|| {
                let network = Network::from_vars(|name| self.environment.text(name).map(str::to_owned));
                client(&Timeouts::default(), &network).map_err(|error| error.to_string())
            })
            .clone()
    }

    fn make(&self, name: &str) -> Result<Model, String> {
        let (profile, key) = match self.configured.iter().find(|model| model.name == name) {
            Some(model) => (profile_of(model)?, self.configured_key(model)?),
            None => self.found_profile(name)?,
        };
        let (context_window, max_output_tokens) = (profile.context_window, profile.max_output_tokens);
        let asked_for = Some(profile.model.clone()).filter(|model| model != ANY_MODEL);
        let provider = HttpProvider::new(self.client()?, profile, key, Timeouts::default());
        Ok(Model {
            name: name.to_owned(),
            asked_for,
            provider: Arc::new(provider),
            context_window,
            max_output_tokens,
            images: true,
            fallback: Vec::new(),
        })
    }

    fn configured_key(&self, model: &ModelConfig) -> Result<Option<String>, String> {
        let key = model.key(&self.environment).map_err(|error| error.to_string())?;
        Ok(key.map(|key| key.expose().to_owned()))
    }

    fn found_profile(&self, name: &str) -> Result<(ModelProfile, Option<String>), String> {
        let all = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(found) = all.iter().find(|found| found.name == name) else {
            return Err(if name.is_empty() {
                format!(
                    "there is no model to ask; {}; {}; {}",
                    NO_MODEL[0], NO_MODEL[1], NO_MODEL[2]
                )
            } else {
                format!("there is no model {name:?}; `aish models list` lists what there is")
            });
        };
        let key = found
            .key_env
            .and_then(|key| self.environment.text(key))
            .map(|key| key.trim().to_owned());
        let profile = ModelProfile {
            context_window: found.model.context_window,
            calls: calls_per_reply(found.model.parameters),
            ..ModelProfile::openai_chat(&found.base_url, &found.model.id)
        };
        Ok((profile, key))
    }
}

/// What [`discover::from_vars`] calls the server of `AISH_BASE_URL`.
const NAMED_CANDIDATE: &str = "aish";

impl Models for Registry {
    fn model(&self, name: &str) -> Result<Model, String> {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = ready.get(name) {
            return Ok(model.clone());
        }
        let model = self.make(name)?;
        ready.insert(name.to_owned(), model.clone());
        Ok(model)
    }
}

/// A model of which nothing is known but its name.
fn unlisted(id: &str) -> Listed {
    Listed {
        id: id.to_owned(),
        context_window: None,
        parameters: None,
    }
}

/// Models with fewer parameters than this are held to one call a reply: they begin another and another until their context
/// is full.
const SMALL_MODEL_PARAMETERS: u64 = 1_000_000_000;

fn calls_per_reply(parameters: Option<u64>) -> CallsPerReply {
    match parameters {
        Some(parameters) if parameters < SMALL_MODEL_PARAMETERS => CallsPerReply::One,
        Some(_) | None => CallsPerReply::Any,
    }
}

fn profile_of(model: &ModelConfig) -> Result<ModelProfile, String> {
    match model.provider {
        ProviderKind::OpenAiChat => {}
        other @ (ProviderKind::OpenAiResponses | ProviderKind::Anthropic | ProviderKind::Gemini) => {
            return Err(format!(
                "model {:?}: the format {} is not supported yet; most providers also speak openai-chat",
                model.name,
                other.word()
            ));
        }
    }
    let mut profile = ModelProfile::openai_chat(&model.base_url, &model.model);
    profile.temperature = model.temperature;
    profile.context_window = model.context_window;
    profile.max_output_tokens = model.max_output_tokens;
    profile.tool_role = match model.result_role {
        ResultRole::Tool => ToolRole::Native,
        ResultRole::User => ToolRole::Text,
    };
    profile.wire_names = match model.wire_names {
        WireNames::Underscore => WireNaming::Underscore,
        WireNames::Dot => WireNaming::Dot,
    };
    Ok(profile)
}
