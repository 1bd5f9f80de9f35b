//! The models of this process: those of the configuration and those that were found (SPEC 7.1, 7.7), made ready to be asked
//! when they first are. [`list`] shows them, [`probe`] finds out what one can do.
//!
//! Which one a session starts with: `--model`, else `AISH_BASE_URL`, else the configuration, else a key in the environment,
//! else a server on this machine. Only the last two look around, and only when nothing was said. A name is one of the
//! configuration, one that was found, or `PRESET/MODEL` for a provider of [`aish_provider::preset`]'s table.

use crate::config::{Config, ModelConfig};
use crate::paths::Environment;
use aish_engine::{Model, Models};
use aish_provider::client::{Network, Timeouts, client};
use aish_provider::discover::{self, Candidate, Endpoint, Listed};
use aish_provider::preset::{self, Place};
use aish_provider::price::Price;
use aish_provider::{HttpProvider, ModelProfile, ProviderError};
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

pub mod list;
pub mod probe;

/// How long a provider on the network may take to name its models.
const REMOTE_PROBE_TIMEOUT_MS: u64 = 5_000;
/// How long the server of `AISH_BASE_URL` may take to: it was named, so it is worth more waiting than one that was guessed.
const NAMED_PROBE_TIMEOUT_MS: u64 = 2_000;
/// What is asked for where a server does not name its models; a server with one model takes any name.
const ANY_MODEL: &str = "default";

/// What to do without a model (SPEC 7.7): three lines.
pub const NO_MODEL: [&str; 3] = [
    "start one on this machine (llama.cpp, Ollama, LM Studio or vLLM on its usual port is found by itself)",
    "or set a key, e.g. export ANTHROPIC_API_KEY=… (also OPENAI_API_KEY, GEMINI_API_KEY, …), or AISH_BASE_URL=http://host:port/v1",
    "or write [models.NAME] into the configuration: `aish config path` says where, `aish config reference` what",
];

/// Whether a model's key is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key<'a> {
    /// None is sent.
    NotNeeded,
    /// This variable holds it.
    Set(&'a str),
    /// This variable should hold it.
    Missing(&'a str),
}

/// How a model is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// It stands in the configuration.
    Configured,
    /// Its server or its provider's key was found.
    Found,
}

/// A model somebody may choose.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The name to choose it by.
    pub name: String,
    /// How it is known.
    pub known: Known,
    /// How it is talked to.
    pub profile: ModelProfile,
    /// The variable that holds its key, if it needs one.
    pub key_env: Option<String>,
    /// What it costs, where somebody told.
    pub price: Option<Price>,
}

/// A model that was found, not configured.
#[derive(Clone, Debug)]
struct Found {
    name: String,
    candidate: Candidate,
    model: Listed,
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
    /// Providers that were asked for their models and did not tell, one line each.
    silent: Mutex<Vec<String>>,
}

impl Registry {
    /// What the configuration says. Nothing is looked for yet.
    pub fn new(config: &Config, environment: &Environment) -> Self {
        Self {
            configured: config.models.clone(),
            start: config.start_model().map(str::to_owned),
            discover: config.discover,
            environment: environment.clone(),
            client: OnceLock::new(),
            found: Mutex::new(Vec::new()),
            ready: Mutex::new(BTreeMap::new()),
            silent: Mutex::new(Vec::new()),
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
            return Ok(self.begin_at(&candidate).await.ok().map(|found| found.name));
        }
        if let Some(name) = &self.start {
            // The rest of the shell works without it; a question to it will say why it cannot be asked.
            return Ok(Some(self.choose_named(name).await.unwrap_or_else(|_| name.clone())));
        }
        for candidate in self.candidates() {
            if let Ok(found) = self.begin_at(&candidate).await {
                return Ok(Some(found.name));
            }
        }
        Ok(self.look_around().await.first().map(|found| found.name.clone()))
    }

    async fn choose_named(&self, name: &str) -> Result<String, String> {
        if self.configured.iter().any(|model| model.name == name) {
            return Ok(name.to_owned());
        }
        let named = self.named_by_environment();
        // The names of a server's models may look like those of providers: where a server was named, it is asked first.
        if named.is_none() {
            if let Some((preset, model)) = preset::split(name) {
                if preset.place == Place::ThisMachine {
                    // What its server tells of the model is worth a look; without a word from it, the name is enough.
                    let candidate = Candidate::of_preset(preset, |_| false);
                    let listed = self.ask(&candidate).await.unwrap_or_default();
                    if let Some(listed) = listed.iter().find(|listed| listed.id == model) {
                        self.add(&candidate, listed);
                    }
                }
                return Ok(name.to_owned());
            }
            if let Some(preset) = preset::find(name) {
                let candidate = discover::at_its_address(preset, |name| self.variable(name));
                return self.begin_at(&candidate).await.map(|found| found.name);
            }
        }
        let choices = self.choices().await;
        let fits =
            |choice: &&Choice| choice.name == name || choice.name.split_once('/').is_some_and(|(_, m)| m == name);
        if let Some(choice) = choices.iter().find(fits) {
            return Ok(choice.name.clone());
        }
        // A server that was named takes the name of any model it has, listed or not.
        if let Some(candidate) = named {
            return Ok(self.add(&candidate, &Listed::unlisted(name)).name);
        }
        Err(no_such_model(name, &choices))
    }

    /// Everything that can be chosen: configured first, then found. Looks around, everywhere at once.
    pub async fn choices(&self) -> Vec<Choice> {
        let mut choices: Vec<Choice> = self.configured.iter().map(Choice::configured).collect();
        let named = self.named_by_environment();
        let asked: Vec<Candidate> = named.into_iter().chain(self.candidates()).collect();
        let asked = join_all(asked.iter().map(|candidate| self.look_at(candidate)));
        let (asked, here) = futures_util::future::join(asked, self.look_around()).await;
        for found in asked.into_iter().flatten().chain(here) {
            if !choices.iter().any(|choice| choice.name == found.name) {
                choices.push(Choice::found(&found));
            }
        }
        choices
    }

    /// Which providers did not tell their models when they were looked at, and why, one line each.
    pub fn silent(&self) -> Vec<String> {
        self.silent.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What servers on this machine have.
    pub async fn choices_here(&self) -> Vec<Choice> {
        self.look_around().await.iter().map(Choice::found).collect()
    }

    /// The choice of that name among those known so far, without looking around.
    pub fn known(&self, name: &str) -> Option<Choice> {
        let configured = self.configured.iter().find(|model| model.name == name);
        configured
            .map(Choice::configured)
            .or_else(|| self.found(name).as_ref().map(Choice::found))
    }

    /// Whether the key of a model is there.
    pub fn key_of<'a>(&self, choice: &'a Choice) -> Key<'a> {
        match choice.key_env.as_deref() {
            None => Key::NotNeeded,
            Some(variable) if self.key(Some(variable)).is_some() => Key::Set(variable),
            Some(variable) => Key::Missing(variable),
        }
    }

    /// Asks the server of a model which models it has.
    ///
    /// # Errors
    /// What was tried and why it failed.
    pub async fn listed_beside(&self, choice: &Choice, deadline: Duration) -> Result<Vec<Listed>, ProviderError> {
        let endpoint = Endpoint {
            format: choice.profile.format,
            base_url: &choice.profile.base_url,
            key: self.key(choice.key_env.as_deref()),
        };
        self.list(endpoint, deadline).await
    }

    /// The client that carries requests to models.
    ///
    /// # Errors
    /// It cannot be made: one line.
    pub fn client(&self) -> Result<reqwest::Client, String> {
        self.client
            .get_or_init(|| {
                let network = Network::from_vars(|name| self.variable(name));
                client(&Timeouts::default(), &network).map_err(|error| error.to_string())
            })
            .clone()
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.environment.text(name).map(str::to_owned)
    }

    /// The key in that variable.
    fn key(&self, variable: Option<&str>) -> Option<&str> {
        let key = self.environment.text(variable?)?.trim();
        (!key.is_empty()).then_some(key)
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
        discover::from_vars(|name| self.variable(name))
    }

    async fn list(&self, endpoint: Endpoint<'_>, deadline: Duration) -> Result<Vec<Listed>, ProviderError> {
        let client = self.client().map_err(|message| ProviderError {
            kind: aish_provider::ErrorKind::Connect,
            message,
            retry_after: None,
        })?;
        discover::list(&client, endpoint, deadline).await
    }

    /// Which models a provider has.
    async fn ask(&self, candidate: &Candidate) -> Result<Vec<Listed>, String> {
        let is_here = candidate
            .preset
            .is_some_and(|preset| preset.place == Place::ThisMachine);
        let timeout_ms = match candidate.name {
            discover::NAMED => NAMED_PROBE_TIMEOUT_MS,
            _ if is_here => discover::PROBE_TIMEOUT_MS,
            _ => REMOTE_PROBE_TIMEOUT_MS,
        };
        let endpoint = Endpoint {
            format: candidate.format,
            base_url: &candidate.base_url,
            key: self.key(candidate.key_env),
        };
        let listed = self.list(endpoint, Duration::from_millis(timeout_ms)).await;
        listed.map_err(|error| error.message)
    }

    /// The models of one provider: those it names, and the one to begin with.
    async fn look_at(&self, candidate: &Candidate) -> Vec<Found> {
        let mut models = self.ask(candidate).await.unwrap_or_else(|why| {
            let mut silent = self.silent.lock().unwrap_or_else(PoisonError::into_inner);
            silent.push(format!("{} does not tell its models: {why}", candidate.name));
            Vec::new()
        });
        if let Some(name) = &candidate.default_model
            && !models.iter().any(|model| model.id == *name)
        {
            models.insert(0, Listed::unlisted(name));
        }
        // It was named, and may answer later: a question to it will say why it cannot.
        if models.is_empty() && candidate.name == discover::NAMED {
            models.push(Listed::unlisted(ANY_MODEL));
        }
        models.iter().map(|model| self.add(candidate, model)).collect()
    }

    /// The model of a provider to begin with.
    ///
    /// # Errors
    /// Its key is missing, or it does not say which models it has.
    async fn begin_at(&self, candidate: &Candidate) -> Result<Found, String> {
        if let Some(model) = &candidate.default_model {
            return Ok(self.add(candidate, &Listed::unlisted(model)));
        }
        if let Some(variable) = candidate.key_env
            && self.key(Some(variable)).is_none()
        {
            return Err(missing_key(candidate.name, variable));
        }
        let listed = match self.ask(candidate).await {
            Ok(listed) if !listed.is_empty() => listed,
            Ok(_) | Err(_) if candidate.name == discover::NAMED => vec![Listed::unlisted(ANY_MODEL)],
            Ok(_) => return Err(format!("{} lists no model; name one: {0}/MODEL", candidate.name)),
            Err(why) => return Err(why),
        };
        let ids: Vec<&str> = listed.iter().map(|model| model.id.as_str()).collect();
        let begin = candidate.preset.and_then(|preset| preset.begin_with(&ids));
        let model = listed.iter().find(|model| Some(model.id.as_str()) == begin);
        match model.or(listed.first()) {
            Some(model) => Ok(self.add(candidate, model)),
            None => Err(format!("{} lists no model", candidate.name)),
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
            .flat_map(|(candidate, models)| models.iter().flatten().map(move |model| self.add(candidate, model)))
            .collect()
    }

    fn add(&self, candidate: &Candidate, model: &Listed) -> Found {
        // A server that was named needs no name in front: there is only one.
        let found = Found {
            name: match candidate.name {
                discover::NAMED => model.id.clone(),
                provider => format!("{provider}/{}", model.id),
            },
            candidate: candidate.clone(),
            model: model.clone(),
        };
        let mut all = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        match all.iter_mut().find(|known| known.name == found.name) {
            // What is told last is known best, but a mere name tells nothing.
            Some(known) if *model != Listed::unlisted(&model.id) => known.clone_from(&found),
            Some(_) => {}
            None => all.push(found.clone()),
        }
        found
    }

    fn found(&self, name: &str) -> Option<Found> {
        let all = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().find(|found| found.name == name).cloned()
    }

    /// A model by its name, however it is known: configured, found, or `PRESET/MODEL`.
    fn resolve(&self, name: &str) -> Result<Choice, String> {
        if let Some(choice) = self.known(name) {
            return Ok(choice);
        }
        match preset::split(name) {
            Some((preset, model)) => {
                let candidate = discover::at_its_address(preset, |name| self.variable(name));
                Ok(Choice::found(&self.add(&candidate, &Listed::unlisted(model))))
            }
            None if name.is_empty() => Err(format!(
                "there is no model to ask; {}; {}; {}",
                NO_MODEL[0], NO_MODEL[1], NO_MODEL[2]
            )),
            None => Err(format!(
                "there is no model {name:?}; `aish models list` lists what there is"
            )),
        }
    }

    fn make(&self, name: &str) -> Result<Model, String> {
        let choice = self.resolve(name)?;
        let key = match self.key_of(&choice) {
            Key::NotNeeded => None,
            Key::Set(variable) => self.key(Some(variable)).map(str::to_owned),
            Key::Missing(variable) => return Err(missing_key(name, variable)),
        };
        let profile = choice.profile;
        let configured = self.configured.iter().find(|model| model.name == name);
        Ok(Model {
            name: name.to_owned(),
            asked_for: Some(profile.model.clone()).filter(|model| model != ANY_MODEL),
            context_window: profile.context_window,
            max_output_tokens: profile.max_output_tokens,
            images: profile.images.is_yes(),
            fallback: configured.map(|model| model.fallback.clone()).unwrap_or_default(),
            provider: Arc::new(HttpProvider::new(self.client()?, profile, key, Timeouts::default())),
        })
    }
}

/// What is said where the variable that should hold a model's key does not (SPEC 10.4).
fn missing_key(model: &str, variable: &str) -> String {
    format!(
        "model \"{model}\" needs a key: the environment variable {variable} is not set; set it with: export {variable}=…"
    )
}

/// Names that are listed in an error.
const NAMES_SHOWN_MAX: usize = 20;

fn no_such_model(name: &str, choices: &[Choice]) -> String {
    if choices.is_empty() {
        return format!("there is no model {name:?}: none is configured and none was found");
    }
    let names: Vec<&str> = choices
        .iter()
        .take(NAMES_SHOWN_MAX)
        .map(|choice| choice.name.as_str())
        .collect();
    let more = match choices.len().saturating_sub(NAMES_SHOWN_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("there is no model {name:?}; there are: {}{more}", names.join(", "))
}

impl Choice {
    fn configured(model: &ModelConfig) -> Self {
        Self {
            name: model.name.clone(),
            known: Known::Configured,
            profile: model.profile.clone(),
            key_env: model.key_env.clone(),
            price: model.price,
        }
    }

    fn found(found: &Found) -> Self {
        Self {
            name: found.name.clone(),
            known: Known::Found,
            profile: found.candidate.profile(&found.model),
            key_env: found.candidate.key_env.map(str::to_owned),
            price: found.model.price,
        }
    }
}

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

#[cfg(test)]
mod tests;
