//! Which model a session begins with: `--model`, else `AISH_BASE_URL`, else the configuration, else a key in the environment,
//! else a server on this machine (SPEC 7.1, 7.7).
//!
//! Only what cannot be named otherwise is asked for: a provider at its own address has a model that is known without its list.
//! Where somebody must be asked, all are asked at once, and the first of that order that has a model is taken.
//! [`Registry::choose`] does not wait where nobody has to be asked, so that whoever shows a prompt can tell.

use super::absence::{Silence, missing_key};
use super::{Choice, Found, Registry};
use aish_provider::discover::{self, Candidate, Listed};
use aish_provider::preset::{self, Place};
use futures_util::future::{BoxFuture, FutureExt as _, join, join_all};
use futures_util::stream::{FuturesOrdered, StreamExt as _};
use std::sync::PoisonError;

/// How long a provider on the network may take to name its models when a question waits for it.
const CHOICE_TIMEOUT_MS: u64 = 2_000;
/// How long it may take when somebody wants to see the list.
const LIST_TIMEOUT_MS: u64 = 5_000;
/// What is asked for where a server does not name its models; a server with one model takes any name.
pub const ANY_MODEL: &str = "default";

/// The model to begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Its name.
    pub name: String,
    /// Providers that came before it and did not tell their models: their owner wanted them asked first.
    pub passed_over: Vec<Silence>,
}

impl Chosen {
    fn at_once(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            passed_over: Vec::new(),
        }
    }

    /// That other providers were passed over, one line each.
    pub fn remarks(&self) -> Vec<String> {
        let line = |silence: &Silence| format!("asking {}, since {}", self.name, silence.line());
        self.passed_over.iter().map(line).collect()
    }
}

impl Registry {
    /// The model to begin with; `None` when there is none at all, and [`Registry::absence`] says why.
    ///
    /// # Errors
    /// The wanted model is neither configured nor found: one line, with what there is.
    pub async fn choose(&self, wanted: Option<&str>) -> Result<Option<Chosen>, String> {
        let chosen = match wanted {
            Some(name) => self.choose_named(name).await.map(|name| Some(Chosen::at_once(name))),
            None => Ok(self.choose_any().await),
        };
        let why = chosen.as_ref().err().cloned();
        *self.unchosen.lock().unwrap_or_else(PoisonError::into_inner) = why;
        chosen
    }

    async fn choose_any(&self) -> Option<Chosen> {
        if let Some(candidate) = self.named_by_environment() {
            let found = self.begin_at(&candidate).await;
            return Some(Chosen::at_once(self.known_or_any(&candidate, found).name));
        }
        if let Some(name) = &self.start {
            // The rest of the shell works without it; a question to it will say why it cannot be asked.
            let known = self.choose_named(name).await;
            return Some(Chosen::at_once(known.unwrap_or_else(|_| name.clone())));
        }
        let keyed = self.candidates();
        let mut asked: FuturesOrdered<BoxFuture<'_, Result<Found, Option<Silence>>>> = keyed
            .iter()
            .map(|candidate| self.begin_at(candidate).map(|found| found.map_err(Some)).boxed())
            .collect();
        let here = self.look_around();
        asked.push_back(async move { here.await.into_iter().next().ok_or(None) }.boxed());
        let mut passed_over = Vec::new();
        while let Some(answer) = asked.next().await {
            match answer {
                Ok(found) => {
                    return Some(Chosen {
                        name: found.name,
                        passed_over,
                    });
                }
                Err(silence) => passed_over.extend(silence),
            }
        }
        None
    }

    /// A server that was named is asked whether it told its models or not: a question to it will say what is wrong.
    fn known_or_any(&self, candidate: &Candidate, found: Result<Found, Silence>) -> Found {
        found.unwrap_or_else(|_| self.add(candidate, &Listed::unlisted(ANY_MODEL)))
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
                    let listed = self.ask(&candidate, CHOICE_TIMEOUT_MS).await.unwrap_or_default();
                    if let Some(listed) = listed.iter().find(|listed| listed.id == model) {
                        self.add(&candidate, listed);
                    }
                }
                return Ok(name.to_owned());
            }
            if let Some(preset) = preset::find(name) {
                let candidate = discover::at_its_address(preset, |name| self.variable(name));
                let found = self.begin_at(&candidate).await;
                return found.map(|found| found.name).map_err(|silence| silence.line());
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
        Err(self.no_such_model(name, &choices))
    }

    /// Everything that can be chosen: configured first, then found. Looks around, everywhere at once.
    pub async fn choices(&self) -> Vec<Choice> {
        let mut choices: Vec<Choice> = self.configured.iter().map(Choice::configured).collect();
        let named = self.named_by_environment();
        let asked: Vec<Candidate> = named.into_iter().chain(self.candidates()).collect();
        let asked = join_all(asked.iter().map(|candidate| self.look_at(candidate)));
        let (asked, here) = join(asked, self.look_around()).await;
        for found in asked.into_iter().flatten().chain(here) {
            if !choices.iter().any(|choice| choice.name == found.name) {
                choices.push(Choice::found(&found));
            }
        }
        choices
    }

    /// What servers on this machine have.
    pub async fn choices_here(&self) -> Vec<Choice> {
        self.look_around().await.iter().map(Choice::found).collect()
    }

    /// The models of one provider: those it names, and the one to begin with.
    async fn look_at(&self, candidate: &Candidate) -> Vec<Found> {
        let mut models = self.ask(candidate, LIST_TIMEOUT_MS).await.unwrap_or_default();
        if let Some(name) = &candidate.default_model
            && !models.iter().any(|model| model.id == *name)
        {
            models.insert(0, Listed::unlisted(name));
        }
        if models.is_empty() && candidate.name == discover::NAMED {
            models.push(Listed::unlisted(ANY_MODEL));
        }
        models.iter().map(|model| self.add(candidate, model)).collect()
    }

    /// The model of a provider to begin with.
    ///
    /// # Errors
    /// Its key is missing, or it does not say which models it has.
    async fn begin_at(&self, candidate: &Candidate) -> Result<Found, Silence> {
        if let Some(model) = &candidate.default_model {
            return Ok(self.add(candidate, &Listed::unlisted(model)));
        }
        if let Some(variable) = candidate.key_env
            && self.key(Some(variable)).is_none()
        {
            return Err(Silence::because(
                candidate.name,
                missing_key(candidate.name, variable),
                "",
            ));
        }
        let listed = self.ask(candidate, CHOICE_TIMEOUT_MS).await?;
        let ids: Vec<&str> = listed.iter().map(|model| model.id.as_str()).collect();
        let begin = candidate.preset.and_then(|preset| preset.begin_with(&ids));
        let model = listed.iter().find(|model| Some(model.id.as_str()) == begin);
        match model.or(listed.first()) {
            Some(model) => Ok(self.add(candidate, model)),
            None => Err(Silence::because(candidate.name, "it lists no model", "")),
        }
    }

    /// Servers on this machine.
    async fn look_around(&self) -> Vec<Found> {
        if !self.discover {
            return Vec::new();
        }
        let Ok(client) = self.client() else { return Vec::new() };
        let mut all = Vec::new();
        for (candidate, answer) in discover::local(&client).await {
            if let Ok(listed) = self.heard_from(&candidate, answer) {
                all.extend(listed.iter().map(|model| self.add(&candidate, model)));
            }
        }
        all
    }
}
