//! What `aish models probe` writes: which settings of which `[models.NAME]` make the configuration say what was found.
//!
//! A model that was found gets a name that the configuration takes and that means nothing else, and the settings by which it
//! is found again. What the configuration says already is the user's: it is never written over, only told apart
//! ([`Plan::otherwise`]).

use crate::config::check::is_in_model_name;
use crate::config::layers::Layers;
use crate::config::value::toml_path;
use crate::config::{Config, ModelSetting, text_value};
use crate::models::{Choice, Found, twin};
use aish_provider::ModelProfile;
use aish_provider::codec::schema::SchemaDialect;
use aish_provider::http::secrets_of;
use aish_provider::preset;
use aish_provider::profile::{
    Alternation, CallsPerReply, Support, SystemRole, ThinkingBack, ToolRole, WireCallIds, WireNaming,
};

/// What a model is called whose own name has nothing that a name may have.
const NAME_FALLBACK: &str = "model";

/// What is to be written.
pub(super) struct Plan {
    /// The model's name in the configuration.
    pub(super) name: String,
    /// What is to be added.
    pub(super) settings: Vec<ModelSetting>,
    /// What the configuration says otherwise.
    pub(super) otherwise: Vec<Otherwise>,
    /// Why nothing of it can be written; one line.
    pub(super) obstacle: Option<String>,
}

/// A setting that the user made to be another than what was found.
pub(super) struct Otherwise {
    /// Its key.
    pub(super) key: &'static str,
    /// What the configuration says, as TOML.
    pub(super) said: String,
    /// What was found, as TOML.
    pub(super) found: String,
}

impl Plan {
    /// For a choice and the profile that was found; `found` is how it came to be known where it is not configured.
    pub(super) fn new(
        config: &Config,
        layers: &Layers,
        choice: &Choice,
        found: Option<&Found>,
        profile: &ModelProfile,
    ) -> Self {
        let twin = found.and_then(|_| twin(&config.models, &choice.profile).map(|twin| twin.name.as_str()));
        let name = match (found, twin) {
            (None, _) => choice.name.clone(),
            (Some(_), Some(twin)) => twin.to_owned(),
            (Some(found), None) => legal_name(config, found),
        };
        let introduction = found
            .filter(|_| twin.is_none())
            .map(|found| introduction(found, choice));
        let mut settings = introduction.unwrap_or_default();
        settings.extend(findings(choice, found.is_some(), profile));
        let mut otherwise = Vec::new();
        settings.retain(|(key, value)| {
            let Some(said) = said(layers, &name, key) else {
                return true;
            };
            let found = value.to_string();
            if said != found {
                otherwise.push(Otherwise { key, said, found });
            }
            false
        });
        Self {
            obstacle: obstacle(layers, &name, found.and(Some(&choice.profile))),
            name,
            settings,
            otherwise,
        }
    }

    /// What is added, as the file will have it.
    pub(super) fn block(&self) -> String {
        let lines = self.settings.iter().map(|(key, value)| format!("{key} = {value}\n"));
        format!("[models.{}]\n{}", self.toml_name(), lines.collect::<String>())
    }

    /// The name as TOML writes it.
    pub(super) fn toml_name(&self) -> String {
        toml_path(&[&self.name])
    }
}

/// What somebody set a setting of a model to, as TOML.
fn said(layers: &Layers, name: &str, key: &str) -> Option<String> {
    let path = ["models", name, key].map(str::to_owned);
    let assigned = layers.values.get(path.as_slice())?.last()?;
    Some(assigned.value.to_toml())
}

/// Why nothing can be written of this model; `introduced` is the profile of one that would be new in the file.
fn obstacle(layers: &Layers, name: &str, introduced: Option<&ModelProfile>) -> Option<String> {
    if introduced.is_some_and(|profile| !secrets_of(&profile.base_url).is_empty()) {
        return Some(
            "the address has a password or a key in it, which belongs into no file: give aish an address without, and the \
             key in a variable of its own"
                .to_owned(),
        );
    }
    let project = layers.project_origin(&["models", name])?;
    let table = toml_path(&["models", name]);
    Some(format!(
        "[{table}] stands in the project's file ({project}): write it there"
    ))
}

/// A name for a found model: its own, unless the configuration takes none like it, has it, or would take it for a model of
/// another provider; then what is legible of the last part of it, with a number where there is one already.
fn legal_name(config: &Config, found: &Found) -> String {
    let is_free = |name: &str| !config.models.iter().any(|model| model.name == name);
    let is_own = found.candidate.preset.is_some() || preset::split(&found.name).is_none();
    if is_own && is_free(&found.name) && found.name.chars().all(is_in_model_name) {
        return found.name.clone();
    }
    let last = found.model.id.rsplit(['/', '\\']).find(|part| !part.is_empty());
    let legible: String = last
        .unwrap_or_default()
        .chars()
        .map(|c| if is_in_model_name(c) { c } else { '-' })
        .collect();
    let name = match legible.trim_matches('-') {
        "" => NAME_FALLBACK,
        name => name,
    };
    if is_free(name) {
        return name.to_owned();
    }
    // One of as many numbers as there are names, and one more, is free.
    let mut numbers = 2..config.models.len() + 3;
    let numbered = numbers.find_map(|number| Some(format!("{name}-{number}")).filter(|name| is_free(name)));
    numbered.unwrap_or_else(|| name.to_owned())
}

/// What makes a found model a configured one.
fn introduction(found: &Found, choice: &Choice) -> Vec<ModelSetting> {
    let profile = &choice.profile;
    // The look of a name says nothing: a server may list what it passes on by the names of other providers.
    let owner = found.candidate.preset;
    let is_usual = owner.is_some_and(|preset| preset.base_url == profile.base_url);
    let mut settings: Vec<ModelSetting> = Vec::new();
    if let Some(preset) = owner {
        settings.push(("preset", preset.name.into()));
    }
    if owner.is_none_or(|preset| preset.format != profile.format) {
        settings.push(("provider", profile.format.name().into()));
    }
    if !is_usual {
        settings.push(("base_url", text_value(&profile.base_url)));
    }
    settings.push(("model", text_value(&profile.model)));
    // At the usual address the usual variable is used; elsewhere it must be named.
    if let Some(variable) = choice.key_env.as_deref().filter(|_| !is_usual) {
        settings.push(("key_env", variable.into()));
    }
    settings
}

/// What was found, as far as nothing says it yet.
fn findings(choice: &Choice, is_new: bool, found: &ModelProfile) -> Vec<ModelSetting> {
    let mut settings: Vec<ModelSetting> = Vec::new();
    let known = &choice.profile;
    // A found model is told its context by its server each time; written down it holds without.
    if let Some(tokens) = found.context_window
        && (is_new || known.context_window != found.context_window)
    {
        settings.push(("context_window", i64::try_from(tokens).unwrap_or(i64::MAX).into()));
    }
    if found.calls == CallsPerReply::One && (is_new || known.calls != found.calls) {
        settings.push(("parallel_calls", false.into()));
    }
    settings.extend(changed(known, found));
    settings
}

/// What differs, as settings.
fn changed(known: &ModelProfile, found: &ModelProfile) -> Vec<ModelSetting> {
    let mut settings: Vec<ModelSetting> = Vec::new();
    for (key, known, found) in [
        ("tools", known.tools, found.tools),
        ("images", known.images, found.images),
        ("stream", known.streaming, found.streaming),
        ("structured_output", known.structured_output, found.structured_output),
        ("prompt_cache", known.cache_marks, found.cache_marks),
    ] {
        if known != found {
            settings.push((key, (found == Support::Yes).into()));
        }
    }
    if known.tool_role != found.tool_role {
        settings.push(("use_tool_role", (found.tool_role == ToolRole::Native).into()));
    }
    if known.alternation != found.alternation {
        settings.push(("strict_alternation", (found.alternation == Alternation::Strict).into()));
    }
    if known.thinking_back != found.thinking_back {
        let is_sent = found.thinking_back == ThinkingBack::ReasoningContent;
        settings.push(("thinking_back", is_sent.into()));
    }
    if known.system_role != found.system_role {
        let role = match found.system_role {
            SystemRole::System => "system",
            SystemRole::Developer => "developer",
            SystemRole::User => "user",
        };
        settings.push(("system_role", role.into()));
    }
    if known.wire_call_ids != found.wire_call_ids {
        let ids = match found.wire_call_ids {
            WireCallIds::Own => "own",
            WireCallIds::NineCharacters => "nine",
        };
        settings.push(("call_ids", ids.into()));
    }
    if known.wire_names != found.wire_names {
        let names = match found.wire_names {
            WireNaming::Underscore => "underscore",
            WireNaming::Dot => "dot",
        };
        settings.push(("wire_names", names.into()));
    }
    if known.schemas != found.schemas {
        let dialect = match found.schemas {
            SchemaDialect::Full => "full",
            SchemaDialect::Grammar => "grammar",
            SchemaDialect::Gemini => "gemini",
        };
        settings.push(("schema", dialect.into()));
    }
    settings
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::config::{Layer, Overrides, Source, resolve};
    use crate::paths::Environment;

    /// SPEC 10.1: a model of a trusted project stays the project's: settings of it in the user's file would be refused.
    #[test]
    fn a_model_of_the_project() {
        let source = |layer: Layer, text: &str| Source {
            name: "config.toml".to_owned(),
            text: text.to_owned(),
            layer,
        };
        let model = "preset = 'ollama'\nmodel = 'm'\n";
        let user = source(Layer::User, &format!("[models.own]\n{model}"));
        let project = source(Layer::Project, &format!("[models.theirs]\n{model}"));
        let (environment, overrides) = (Environment::default(), Overrides::default());
        let resolved = resolve(Some(user), Some(project), &environment, &overrides).unwrap();
        for (model, is_obstructed) in resolved.config.models.iter().zip([false, true]) {
            let choice = Choice::configured(model);
            let mut found = choice.profile.clone();
            found.images = Support::No;
            let plan = Plan::new(&resolved.config, &resolved.layers, &choice, None, &found);
            assert_eq!(plan.block(), format!("[models.{}]\nimages = false\n", model.name));
            assert_eq!(plan.obstacle.is_some(), is_obstructed, "{}", model.name);
        }
    }
}
