//! The models of this process: those of the configuration and those that were found (SPEC 7.1, 7.7), made ready to be asked
//! when they first are. [`choose`] says which one to begin with, [`absence`] why there is none, [`setup`] where one is set up;
//! [`list`] shows them, [`probe`] finds out what one can do.
//!
//! A name is one of the configuration, one that was found, or `PRESET/MODEL` for a provider of [`aish_provider::preset`]'s
//! table.

use crate::config::{Config, ModelConfig};
use crate::paths::Environment;
use aish_core::event::ModelFailed;
use aish_engine::{Model, Models};
use aish_provider::client::{Network, Timeouts, client};
use aish_provider::discover::{self, Candidate, Endpoint, Listed};
use aish_provider::preset::{self, Place};
use aish_provider::price::Price;
use aish_provider::{HttpProvider, ModelProfile, ProviderError};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

pub mod absence;
mod charged;
pub mod choose;
pub mod list;
pub mod probe;
pub mod setup;

use absence::{Silence, missing_key};
use choose::ANY_MODEL;
use setup::Setup;

/// How long the server of `AISH_BASE_URL` may take to name its models: it was named, so it is worth more waiting than one that
/// was guessed.
const NAMED_PROBE_TIMEOUT_MS: u64 = 2_000;

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
    /// Where it is set up.
    pub setup: Setup,
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
    /// Who was asked for its models and did not tell.
    silences: Mutex<Vec<Silence>>,
    /// Why the model that was wanted last is not to be had.
    unchosen: Mutex<Option<String>>,
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
            silences: Mutex::new(Vec::new()),
            unchosen: Mutex::new(None),
        }
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

    /// What to do about a failure of one of these models, where its setup is to blame.
    pub fn advice(&self, failed: &ModelFailed) -> Option<String> {
        let choice = self.known(failed.model.as_deref()?)?;
        choice.setup.advice(&failed.error)
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
            .get_or_init(|| client(&Timeouts::default(), &self.network()).map_err(|error| error.to_string()))
            .clone()
    }

    /// What the environment says about the network.
    pub fn network(&self) -> Network {
        Network::from_vars(|name| self.variable(name))
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
        let is_named = |candidate: &Candidate| candidate.name == discover::NAMED;
        self.named_and_keyed().into_iter().find(is_named)
    }

    /// Providers whose keys are in the environment.
    fn candidates(&self) -> Vec<Candidate> {
        if !self.discover {
            return Vec::new();
        }
        let is_keyed = |candidate: &Candidate| candidate.name != discover::NAMED;
        self.named_and_keyed().into_iter().filter(is_keyed).collect()
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

    /// Asks a provider which models it has; one on the network has that long.
    ///
    /// # Errors
    /// It does not tell, which is remembered.
    async fn ask(&self, candidate: &Candidate, remote_timeout_ms: u64) -> Result<Vec<Listed>, Silence> {
        let is_here = candidate
            .preset
            .is_some_and(|preset| preset.place == Place::ThisMachine);
        let timeout_ms = match candidate.name {
            discover::NAMED => NAMED_PROBE_TIMEOUT_MS,
            _ if is_here => discover::PROBE_TIMEOUT_MS,
            _ => remote_timeout_ms,
        };
        let endpoint = Endpoint {
            format: candidate.format,
            base_url: &candidate.base_url,
            key: self.key(candidate.key_env),
        };
        let answer = self.list(endpoint, Duration::from_millis(timeout_ms)).await;
        self.heard_from(candidate, answer)
    }

    /// Remembers whether a provider told its models, and if not, why.
    fn heard_from(&self, candidate: &Candidate, answer: discover::Answer) -> Result<Vec<Listed>, Silence> {
        let setup = Setup::found(candidate);
        let bad_address = setup
            .address_name()
            .filter(|_| !discover::is_address(&candidate.base_url));
        let heard = match (bad_address, answer) {
            (Some(address), _) => {
                let why = format!("{address} is no address that begins with http:// or https://");
                Err(Silence::because(&setup.name, why, "correct it"))
            }
            (None, Err(error)) => Err(Silence::failed(&setup, &error)),
            (None, Ok(listed)) if listed.is_empty() => {
                let advice = format!("name one: --model {}/MODEL", candidate.name);
                Err(Silence::because(&setup.name, "it answers, and lists no model", advice))
            }
            (None, Ok(listed)) => Ok(listed),
        };
        self.heard(&setup.name, heard.as_ref().err().cloned());
        heard
    }

    fn add(&self, candidate: &Candidate, model: &Listed) -> Found {
        let mut found = Found {
            name: match candidate.name {
                // A server that was named needs no name in front: there is only one.
                discover::NAMED => model.id.clone(),
                provider => format!("{provider}/{}", model.id),
            },
            candidate: candidate.clone(),
            model: model.clone(),
        };
        let is_named = candidate.name == discover::NAMED;
        if is_named {
            found.name = self.name_at_named_server(&found);
        }
        let mut all = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same_place = |known: &Found| {
            (known.candidate.name, &known.candidate.base_url) == (found.candidate.name, &found.candidate.base_url)
        };
        match all.iter_mut().find(|known| known.name == found.name) {
            // What is told last is known best, but a mere name tells nothing.
            Some(known) if is_same_place(known) && *model != Listed::unlisted(&model.id) => known.clone_from(&found),
            // The names of a server's models may look like those of a provider: the server that was named has them.
            Some(known) if is_named && !is_same_place(known) => known.clone_from(&found),
            Some(_) => {}
            None => all.push(found.clone()),
        }
        found
    }

    /// What a model of the server of `AISH_BASE_URL` is called: as the configuration calls it where it is the same model there,
    /// and never as one that is somewhere else, to which its questions would then go.
    fn name_at_named_server(&self, found: &Found) -> String {
        if let Some(twin) = twin(&self.configured, &Choice::found(found).profile) {
            return twin.name.clone();
        }
        let is_taken = self.configured.iter().any(|model| model.name == found.name);
        if is_taken {
            format!("AISH_BASE_URL/{}", found.name)
        } else {
            found.name.clone()
        }
    }

    fn found(&self, name: &str) -> Option<Found> {
        let all = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().find(|found| found.name == name).cloned()
    }

    /// A model by its name, however it is known: configured, found, or `PRESET/MODEL`.
    ///
    /// # Errors
    /// There is none of that name: one line.
    pub fn resolve(&self, name: &str) -> Result<Choice, String> {
        if let Some(choice) = self.known(name) {
            return Ok(choice);
        }
        match preset::split(name) {
            Some((preset, model)) => {
                let candidate = discover::at_its_address(preset, |name| self.variable(name));
                Ok(Choice::found(&self.add(&candidate, &Listed::unlisted(model))))
            }
            None if name.is_empty() => Err(self.absence().line()),
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

impl Choice {
    fn configured(model: &ModelConfig) -> Self {
        Self {
            name: model.name.clone(),
            known: Known::Configured,
            profile: model.profile.clone(),
            key_env: model.key_env.clone(),
            price: model.price,
            setup: Setup::configured(model),
        }
    }

    fn found(found: &Found) -> Self {
        Self {
            name: found.name.clone(),
            known: Known::Found,
            profile: found.candidate.profile(&found.model),
            key_env: found.candidate.key_env.map(str::to_owned),
            price: found.model.price,
            setup: Setup::found(&found.candidate),
        }
    }
}

/// The configured model that is the same one: of that name, at that address, in that format.
fn twin<'c>(configured: &'c [ModelConfig], profile: &ModelProfile) -> Option<&'c ModelConfig> {
    let place = |profile: &ModelProfile| profile.base_url.trim_end_matches('/').to_owned();
    configured.iter().find(|model| {
        (model.profile.format, &model.profile.model) == (profile.format, &profile.model)
            && place(&model.profile) == place(profile)
    })
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
