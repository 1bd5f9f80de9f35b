//! Providers by name: where each is, which wire format it speaks, which variable holds its key, and what it gets wrong.
//!
//! This file owns the one table of providers, [`PRESETS`]. The configuration (`preset = "mistral"`), names such as
//! `anthropic/claude-sonnet-4-5` ([`split`]), and the search for a model ([`crate::discover`]) all read it. It is data: adding
//! a provider that speaks a known format is adding an entry. A key belongs to its entry's address and goes nowhere else.

use crate::ModelProfile;
use crate::profile::{Alternation, Format, Support, SystemRole, ThinkingBack, WireCallIds};

/// Where a provider is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the network: it wants a key, out of the first of these variables that is set.
    Network(&'static [&'static str]),
    /// On this machine, at the usual port of such a server; it wants none.
    ThisMachine,
}

/// Which model a provider is begun with when none is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// This one: a name that the provider keeps pointing at its current model.
    With(&'static str),
    /// The first one listed that begins with one of `preferred`, tried in this order; else the first one listed.
    Listed {
        /// The name of a model that it is known to have, for whoever cannot wait for the list: at its own address only, since
        /// a proxy may have others.
        usual: Option<&'static str>,
        /// How names begin, the best first.
        preferred: &'static [&'static str],
    },
}

impl Begin {
    /// The model to begin with where nobody asks for the list.
    pub fn unasked(self) -> Option<&'static str> {
        match self {
            Self::With(model) => Some(model),
            Self::Listed { usual, .. } => usual,
        }
    }
}

/// A provider.
#[derive(Debug)]
pub struct Preset {
    /// What it is called in names and in the configuration.
    pub name: &'static str,
    /// The wire format it speaks best.
    pub format: Format,
    /// What the official SDKs take: with `/v1` or its like for the OpenAI formats, the bare origin for the others.
    pub base_url: &'static str,
    /// The variable by which its SDKs are told another address, if they are.
    pub base_url_env: Option<&'static str>,
    /// Where it is, and what its key is in.
    pub place: Place,
    /// The model to begin with.
    pub begin: Begin,
    /// What it gets wrong, or gets right that others do not.
    quirks: fn(&mut ModelProfile),
}

impl Preset {
    /// The variables its key may be in, the usual one first; none on this machine.
    pub fn key_envs(&self) -> &'static [&'static str] {
        match self.place {
            Place::Network(variables) => variables,
            Place::ThisMachine => &[],
        }
    }

    /// The variable its key is in: the first that is set, else the usual one, to be named in an error. None where no key is
    /// wanted. `is_set` tells whether a variable has a value.
    pub fn key_env(&self, is_set: impl Fn(&str) -> bool) -> Option<&'static str> {
        let variables = self.key_envs();
        let set = variables.iter().find(|variable| is_set(variable));
        set.or(variables.first()).copied()
    }

    /// A model of this provider.
    pub fn profile(&self, model: &str) -> ModelProfile {
        let mut profile = ModelProfile::new(self.format, self.base_url, model);
        self.adapt(&mut profile);
        profile
    }

    /// Sets what is known of this provider in the profile of one of its models.
    pub fn adapt(&self, profile: &mut ModelProfile) {
        (self.quirks)(profile);
    }

    /// The model to begin with, of those it lists (ids in its order).
    pub fn begin_with<'a>(&self, listed: &[&'a str]) -> Option<&'a str> {
        let preferred = match self.begin {
            Begin::With(name) => return listed.iter().copied().find(|id| *id == name),
            Begin::Listed { preferred, .. } => preferred,
        };
        let of = |beginning: &&str| {
            let exact = listed.iter().find(|id| *id == beginning);
            exact.or_else(|| listed.iter().find(|id| id.starts_with(beginning)))
        };
        preferred.iter().find_map(of).or(listed.first()).copied()
    }
}

/// The provider of that name.
pub fn find(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

/// A name such as `openrouter/anthropic/claude-sonnet-4.5`: the provider before the first slash, its model after it.
pub fn split(name: &str) -> Option<(&'static Preset, &str)> {
    let (preset, model) = name.split_once('/')?;
    Some((find(preset)?, model)).filter(|_| !model.is_empty())
}

/// The provider whose address this is, for its quirks: whoever writes the address itself gets them too.
pub fn of_address(base_url: &str) -> Option<&'static Preset> {
    let origin = |url: &str| reqwest::Url::parse(url).ok().map(|url| url.origin());
    let wanted = origin(base_url)?;
    PRESETS
        .iter()
        .find(|preset| origin(preset.base_url).as_ref() == Some(&wanted))
}

/// Every provider, in the order in which one is looked for: those on the network by their keys, then those on this machine.
/// The addresses are those of the providers' own documentation for OpenAI-compatible use, or of their SDKs.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "openai",
        format: Format::OpenaiResponses,
        base_url: "https://api.openai.com/v1",
        base_url_env: Some("OPENAI_BASE_URL"),
        place: Place::Network(&["OPENAI_API_KEY"]),
        begin: Begin::Listed {
            usual: Some("gpt-5.1"),
            preferred: &["gpt-5.1", "gpt-5", "gpt-4.1", "gpt-4o", "gpt-"],
        },
        quirks: openai,
    },
    Preset {
        name: "anthropic",
        format: Format::Anthropic,
        base_url: "https://api.anthropic.com",
        base_url_env: Some("ANTHROPIC_BASE_URL"),
        place: Place::Network(&["ANTHROPIC_API_KEY"]),
        // The list begins with the newest.
        begin: Begin::Listed {
            usual: Some("claude-sonnet-4-5"),
            preferred: &["claude-sonnet", "claude-opus", "claude-"],
        },
        quirks: none,
    },
    Preset {
        name: "google",
        format: Format::Gemini,
        base_url: "https://generativelanguage.googleapis.com",
        base_url_env: None,
        place: Place::Network(&["GEMINI_API_KEY", "GOOGLE_API_KEY"]),
        begin: Begin::With("gemini-flash-latest"),
        quirks: none,
    },
    Preset {
        name: "openrouter",
        format: Format::OpenaiChat,
        base_url: "https://openrouter.ai/api/v1",
        base_url_env: None,
        place: Place::Network(&["OPENROUTER_API_KEY"]),
        begin: Begin::With("openrouter/auto"),
        quirks: none,
    },
    Preset {
        name: "xai",
        format: Format::OpenaiChat,
        base_url: "https://api.x.ai/v1",
        base_url_env: None,
        place: Place::Network(&["XAI_API_KEY"]),
        begin: Begin::Listed {
            usual: Some("grok-4"),
            preferred: &["grok-4", "grok-"],
        },
        quirks: none,
    },
    Preset {
        name: "meta",
        format: Format::OpenaiChat,
        base_url: "https://api.llama.com/compat/v1",
        base_url_env: None,
        place: Place::Network(&["LLAMA_API_KEY"]),
        begin: Begin::Listed {
            usual: Some("Llama-4-Maverick-17B-128E-Instruct-FP8"),
            preferred: &["Llama-4-Maverick", "Llama-"],
        },
        quirks: none,
    },
    Preset {
        name: "mistral",
        format: Format::OpenaiChat,
        base_url: "https://api.mistral.ai/v1",
        base_url_env: None,
        place: Place::Network(&["MISTRAL_API_KEY"]),
        begin: Begin::With("mistral-large-latest"),
        quirks: mistral_api,
    },
    Preset {
        name: "deepseek",
        format: Format::OpenaiChat,
        base_url: "https://api.deepseek.com/v1",
        base_url_env: None,
        place: Place::Network(&["DEEPSEEK_API_KEY"]),
        begin: Begin::With("deepseek-chat"),
        quirks: deepseek,
    },
    Preset {
        name: "groq",
        format: Format::OpenaiChat,
        base_url: "https://api.groq.com/openai/v1",
        base_url_env: None,
        place: Place::Network(&["GROQ_API_KEY"]),
        begin: Begin::Listed {
            usual: Some("openai/gpt-oss-120b"),
            preferred: &["openai/gpt-oss-120b", "llama-"],
        },
        quirks: none,
    },
    Preset {
        name: "llama.cpp",
        format: Format::OpenaiChat,
        base_url: "http://127.0.0.1:8080/v1",
        base_url_env: None,
        place: Place::ThisMachine,
        begin: Begin::Listed {
            usual: None,
            preferred: &[],
        },
        quirks: templates,
    },
    Preset {
        name: "ollama",
        format: Format::OpenaiChat,
        base_url: "http://127.0.0.1:11434/v1",
        base_url_env: None,
        place: Place::ThisMachine,
        begin: Begin::Listed {
            usual: None,
            preferred: &[],
        },
        quirks: ollama,
    },
    Preset {
        name: "lmstudio",
        format: Format::OpenaiChat,
        base_url: "http://127.0.0.1:1234/v1",
        base_url_env: None,
        place: Place::ThisMachine,
        begin: Begin::Listed {
            usual: None,
            preferred: &[],
        },
        quirks: templates,
    },
    Preset {
        name: "vllm",
        format: Format::OpenaiChat,
        base_url: "http://127.0.0.1:8000/v1",
        base_url_env: None,
        place: Place::ThisMachine,
        begin: Begin::Listed {
            usual: None,
            preferred: &[],
        },
        quirks: templates,
    },
];

fn none(_: &mut ModelProfile) {}

/// OpenAI's reasoning models take no temperature, in chat completions want `developer` for standing instructions, and in
/// neither format mind what the others do.
fn openai(profile: &mut ModelProfile) {
    let model = profile.model.as_str();
    let is_o_series = model
        .strip_prefix('o')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let is_reasoning = is_o_series || model.strip_prefix("gpt-").is_some_and(is_five_or_later);
    if is_reasoning {
        profile.temperature = None;
        if profile.format == Format::OpenaiChat {
            profile.system_role = SystemRole::Developer;
        }
    }
}

/// Whether a version such as `5.1-mini` is 5 or later.
fn is_five_or_later(version: &str) -> bool {
    const FIRST_REASONING_VERSION: u32 = 5;
    let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
    digits
        .parse()
        .is_ok_and(|version: u32| version >= FIRST_REASONING_VERSION)
}

/// Mistral refuses fields it does not know, `stream_options` among them (it tells the tokens unasked), ids of other than
/// nine letters and digits, and a user message straight after a result.
fn mistral_api(profile: &mut ModelProfile) {
    mistral_template(profile);
    profile.stream_usage = Support::No;
}

fn mistral_template(profile: &mut ModelProfile) {
    profile.alternation = Alternation::Strict;
    profile.wire_call_ids = WireCallIds::NineCharacters;
}

/// DeepSeek's thinking models refuse a call whose thinking does not come back with it, know `json_object` but no schema, and
/// see nothing.
fn deepseek(profile: &mut ModelProfile) {
    profile.thinking_back = ThinkingBack::ReasoningContent;
    profile.structured_output = Support::No;
    profile.images = Support::No;
}

/// Ollama ignores `parallel_tool_calls` at best.
fn ollama(profile: &mut ModelProfile) {
    templates(profile);
    profile.parallel_field = Support::No;
}

/// Servers of open models render the chat template a model came with, and families of models have templates that refuse
/// what others take. What is set here harms no other template.
fn templates(profile: &mut ModelProfile) {
    const MISTRAL: [&str; 7] = [
        "mistral",
        "mixtral",
        "ministral",
        "magistral",
        "devstral",
        "codestral",
        "pixtral",
    ];
    let model = profile.model.to_ascii_lowercase();
    if MISTRAL.iter().any(|family| model.contains(family)) {
        mistral_template(profile);
    }
    if model.contains("gemma") {
        profile.system_role = SystemRole::User;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// SPEC 7.2: every provider has a name of its own, an address that is one, and on the network a key.
    #[test]
    fn the_table_is_sound() {
        let names: BTreeSet<_> = PRESETS.iter().map(|preset| preset.name).collect();
        assert_eq!(names.len(), PRESETS.len());
        for preset in PRESETS {
            let url = reqwest::Url::parse(preset.base_url).unwrap();
            assert!(
                !preset.base_url.ends_with('/') && !preset.name.contains('/'),
                "{}",
                preset.name
            );
            let has_version = url.path().ends_with("/v1");
            match preset.format {
                Format::OpenaiChat | Format::OpenaiResponses => assert!(has_version, "{}", preset.name),
                Format::Anthropic | Format::Gemini => assert_eq!(url.path(), "/", "{}", preset.name),
            }
            match preset.place {
                // SPEC 10.5: this ending is how keys are told from other variables when they are hidden.
                Place::Network(keys) => {
                    assert_eq!(url.scheme(), "https");
                    assert!(!keys.is_empty() && keys.iter().all(|key| key.ends_with("_API_KEY")));
                }
                Place::ThisMachine => assert_eq!(url.host_str(), Some("127.0.0.1")),
            }
            assert_eq!(of_address(preset.base_url).map(|found| found.name), Some(preset.name));
        }
    }

    /// SPEC 7.1: a provider and its model in one name; the model's own slashes stay.
    #[test]
    fn names() {
        let parts = |name| split(name).map(|(preset, model)| (preset.name, model));
        assert_eq!(parts("anthropic/claude-x"), Some(("anthropic", "claude-x")));
        assert_eq!(
            parts("openrouter/anthropic/claude-x"),
            Some(("openrouter", "anthropic/claude-x"))
        );
        for none in ["anthropic", "anthropic/", "desk/qwen", "/x", ""] {
            assert_eq!(parts(none), None, "{none}");
        }
    }

    /// SPEC 7.5: what providers and templates insist on.
    #[test]
    fn quirks() {
        let profile = |name| {
            let (preset, model) = split(name).unwrap();
            preset.profile(model)
        };
        let strict = |profile: &ModelProfile| {
            (profile.alternation, profile.wire_call_ids) == (Alternation::Strict, WireCallIds::NineCharacters)
        };
        let mistral = profile("mistral/mistral-large-latest");
        assert!(strict(&mistral) && mistral.stream_usage == Support::No);
        let local = profile("ollama/Mistral-Nemo:12b");
        assert!(strict(&local) && local.stream_usage == Support::Yes);
        assert!(!strict(&profile("ollama/qwen3:8b")));
        assert_eq!(profile("llama.cpp/gemma-3-4b").system_role, SystemRole::User);
        assert_eq!(
            profile("deepseek/deepseek-chat").thinking_back,
            ThinkingBack::ReasoningContent
        );
        assert_eq!(profile("anthropic/claude-x").cache_marks, Support::Yes);
    }

    /// SPEC 7.1: no temperature for models that refuse one, in whichever of OpenAI's formats.
    #[test]
    fn openai_s_reasoning_models() {
        for (model, takes_temperature) in [
            ("gpt-4o", true),
            ("gpt-4.1-mini", true),
            ("gpt-5", false),
            ("gpt-5.1-mini", false),
            ("gpt-10", false),
            ("o3-mini", false),
            ("omni-moderation", true),
            ("gpt-", true),
        ] {
            let mut profile = ModelProfile::openai_chat("https://api.openai.com/v1", model);
            of_address(&profile.base_url).unwrap().adapt(&mut profile);
            assert_eq!(profile.temperature.is_some(), takes_temperature, "{model}");
            assert_eq!(profile.system_role == SystemRole::System, takes_temperature, "{model}");
        }
    }

    /// SPEC 7.7: what a provider lists is not all for talking to.
    #[test]
    fn the_model_to_begin_with() {
        let begin = |name: &str, listed: &[&'static str]| find(name).unwrap().begin_with(listed);
        let openai = [
            "text-embedding-3-small",
            "gpt-4o-mini",
            "gpt-5-nano",
            "gpt-5",
            "dall-e-3",
        ];
        assert_eq!(begin("openai", &openai), Some("gpt-5"));
        assert_eq!(
            begin("anthropic", &["claude-opus-5", "claude-sonnet-5", "claude-sonnet-4"]),
            Some("claude-sonnet-5")
        );
        assert_eq!(begin("llama.cpp", &["qwen", "other"]), Some("qwen"));
        assert_eq!(begin("deepseek", &["deepseek-reasoner"]), None);
        assert_eq!(begin("xai", &[]), None);
    }

    /// SPEC 7.7, 11: every provider on the network has a model that can be named without asking for its list.
    #[test]
    fn nobody_needs_to_wait() {
        for preset in PRESETS {
            let is_known = preset.begin.unasked().is_some();
            assert_eq!(is_known, preset.place != Place::ThisMachine, "{}", preset.name);
        }
    }

    /// SPEC 10.5: the variable of a key is the one that is set; where none is, the usual one can be named.
    #[test]
    fn variables_of_keys() {
        let google = find("google").unwrap();
        assert_eq!(google.key_env(|name| name == "GOOGLE_API_KEY"), Some("GOOGLE_API_KEY"));
        assert_eq!(google.key_env(|_| false), Some("GEMINI_API_KEY"));
        assert_eq!(find("ollama").unwrap().key_env(|_| true), None);
    }
}
