//! Why there is no model: who was asked for its models and did not tell, and what to do about it (SPEC 7.7, 10.4).
//!
//! A [`Silence`] is one provider or server that was asked and did not tell; an [`Absence`] is what is said when nothing can
//! be asked. "None was found" is only said where nothing was found *and* nothing failed: a refused key is no missing key.

use super::setup::Setup;
use super::{Choice, Registry};
use crate::failure::Failure;
use aish_core::redact::Redactor;
use aish_provider::ProviderError;
use std::sync::PoisonError;

/// What to do without a model (SPEC 7.7): three lines.
const NO_MODEL: [&str; 3] = [
    "start one on this machine (llama.cpp, Ollama, LM Studio or vLLM on its usual port is found by itself)",
    "or set a key, e.g. export ANTHROPIC_API_KEY=… (also OPENAI_API_KEY, GEMINI_API_KEY, …), or AISH_BASE_URL=http://host:port/v1",
    "or write [models.NAME] into the configuration: `aish config path` says where, `aish config reference` what",
];
/// What to do where it may not look for one: a server and a key that it must not look at are no help.
const NO_MODEL_AND_NO_SEARCH: [&str; 3] = [
    "let it look for one, `discover = true`: a server on this machine (llama.cpp, Ollama, …) or a key (OPENAI_API_KEY, …) is then found",
    "or set AISH_BASE_URL=http://host:port/v1, or name a provider's model: --model PROVIDER/MODEL",
    NO_MODEL[2],
];
/// What to do where one was found and does not tell its models.
const NAME_ONE: &str = "or name a model: --model PROVIDER/MODEL";
/// Names that are listed in an error.
const NAMES_SHOWN_MAX: usize = 20;

/// A provider or server that was asked for its models and did not tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silence {
    /// Who.
    pub provider: String,
    /// What was asked and what came of it.
    why: String,
    /// What to do; empty where nobody knows.
    advice: String,
}

impl Silence {
    /// It failed.
    pub fn failed(setup: &Setup, error: &ProviderError) -> Self {
        Self {
            provider: setup.name.clone(),
            why: error.message.clone(),
            advice: setup.advice(&error.kind.word()).unwrap_or_default(),
        }
    }

    /// For this reason, with this to do about it.
    pub fn because(provider: &str, why: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            provider: provider.to_owned(),
            why: why.into(),
            advice: advice.into(),
        }
    }

    /// As one line: who, why, and what to do.
    pub fn line(&self) -> String {
        let sign = if self.advice.is_empty() { "" } else { "; " };
        format!("{}: {}{sign}{}", self.provider, self.why, self.advice)
    }
}

/// Why no model can be asked, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absence {
    /// What was tried and what came of it.
    pub message: String,
    /// What to do, a line each.
    pub advice: Vec<String>,
}

impl Absence {
    /// As the end of a command.
    pub fn failure(&self, redactor: &Redactor) -> Failure {
        let failure = Failure::usage(redactor.redact(&self.message));
        let advice = self.advice.iter();
        advice.fold(failure, |failure, line| failure.hint(redactor.redact(line)))
    }

    /// As one line.
    pub fn line(&self) -> String {
        format!("{}; {}", self.message, self.advice.join("; "))
    }
}

impl Registry {
    /// Who was asked for its models and did not tell, when it was asked last.
    pub fn silences(&self) -> Vec<Silence> {
        self.silences.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Remembers what came of asking a provider.
    pub(super) fn heard(&self, provider: &str, silence: Option<Silence>) {
        let mut silences = self.silences.lock().unwrap_or_else(PoisonError::into_inner);
        silences.retain(|known| known.provider != provider);
        silences.extend(silence);
    }

    /// Why no model can be asked, after one was looked for.
    pub fn absence(&self) -> Absence {
        let owned = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
        if let Some(why) = &*self.unchosen.lock().unwrap_or_else(PoisonError::into_inner) {
            return Absence {
                message: why.clone(),
                advice: owned(&["`aish models list` lists what there is"]),
            };
        }
        let silences = self.silences();
        match silences.split_first() {
            Some((first, others)) => {
                let mut advice: Vec<String> = others.iter().map(Silence::line).collect();
                advice.push(NAME_ONE.to_owned());
                Absence {
                    message: format!("there is no model to ask: {}", first.line()),
                    advice,
                }
            }
            None if !self.discover => Absence {
                message: "there is no model to ask: none is configured, and `discover = false` forbids to look for one"
                    .to_owned(),
                advice: owned(&NO_MODEL_AND_NO_SEARCH),
            },
            None => Absence {
                message: "there is no model to ask: none is configured and none was found".to_owned(),
                advice: owned(&NO_MODEL),
            },
        }
    }

    /// That there is no model of that name, with what there is and who did not tell.
    pub(super) fn no_such_model(&self, name: &str, choices: &[Choice]) -> String {
        let names: Vec<&str> = choices
            .iter()
            .take(NAMES_SHOWN_MAX)
            .map(|choice| choice.name.as_str())
            .collect();
        let more = match choices.len().saturating_sub(NAMES_SHOWN_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let silences: String = self
            .silences()
            .iter()
            .map(|silence| format!("; {}", silence.line()))
            .collect();
        let there_are = match (names.as_slice(), silences.as_str()) {
            ([], "") => ": none is configured and none was found".to_owned(),
            ([], _) => String::new(),
            (names, _) => format!("; there are: {}{more}", names.join(", ")),
        };
        format!("there is no model {name:?}{there_are}{silences}")
    }
}

/// What is said where the variable that should hold a model's key does not (SPEC 10.4).
pub fn missing_key(model: &str, variable: &str) -> String {
    format!(
        "model \"{model}\" needs a key: the environment variable {variable} is not set; set it with: export {variable}=…"
    )
}
