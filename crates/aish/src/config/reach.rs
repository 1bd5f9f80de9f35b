//! Where a project's file may send conversations (SPEC 12): to this machine, and to models that the user's own configuration
//! has. Trusting a project lets it choose among these; a provider on the network is the user's to choose, whether by an
//! address, a preset, a wire format with an owner, or a name such as `openrouter/MODEL`.

use super::check::{Assigned, Named};
use super::error::Origin;
use super::layers::Layers;
use super::resolved::ModelConfig;
use super::settings::{Kind, Project, WHY_NOT_ELSEWHERE};
use super::value::{Value, toml_path};
use aish_provider::ModelProfile;
use aish_provider::preset::{self, Place};

/// Everything a project's file says that goes beyond: where it says so, and why it may not.
pub fn beyond(layers: &Layers, models: &[ModelConfig]) -> Vec<(Origin, String)> {
    let reach = Reach::of_user(layers, models);
    let mut found: Vec<(Origin, String)> = Vec::new();
    for named in layers.named.iter().filter(|named| named.origin.is_project()) {
        let model = models.iter().find(|model| is_of(named, model));
        if let Some(model) = model.filter(|model| !reach.has(&model.profile)) {
            // What sent it there is what has to go; a model without either goes to the owner of its format.
            let sent_by = ["preset", "provider"].map(|leaf| ["models", model.name.as_str(), leaf]);
            let sent_by = sent_by
                .iter()
                .find_map(|path| Some((layers.origin(path)?, toml_path(path))));
            let (origin, key) = sent_by.unwrap_or((&named.origin, toml_path(&named.path)));
            found.push((origin.clone(), refusal(&key)));
        }
    }
    let projects = |named: &str| {
        let mut of_project = layers.named.iter().filter(|named| named.origin.is_project());
        of_project.any(|other| other.path == ["models", named])
    };
    for assigned in layers
        .values
        .values()
        .flatten()
        .filter(|assigned| assigned.origin.is_project())
    {
        // Its own models were judged above, wherever they are spoken of.
        let is_beyond = |name: &&str| !projects(name) && !reach.has_name(name);
        if names_in(assigned).iter().any(is_beyond) {
            found.push((assigned.origin.clone(), refusal(&toml_path(&assigned.path))));
        }
    }
    found
}

/// Why a project's file may not set something that decides where conversations go.
fn refusal(key: &str) -> String {
    format!("a project's file may not set {key}: {WHY_NOT_ELSEWHERE}; set it in your own file")
}

/// The names of models that a setting speaks of.
fn names_in(assigned: &Assigned) -> Vec<&str> {
    let setting = assigned.setting;
    let speaks = setting.project == Project::WithinReach && matches!(setting.kind, Kind::Text | Kind::Texts);
    match &assigned.value {
        Value::Text(name) if speaks => vec![name],
        Value::Texts(names) if speaks => names.iter().map(String::as_str).collect(),
        Value::Text(_) | Value::Texts(_) | Value::Bool(_) | Value::Integer(_) | Value::Float(_) => Vec::new(),
    }
}

fn is_of(named: &Named, model: &ModelConfig) -> bool {
    named.path == ["models", model.name.as_str()]
}

/// What the user's own configuration sends conversations to.
struct Reach<'a> {
    models: Vec<&'a ModelConfig>,
    /// Names of models that the user's own settings speak of.
    spoken: Vec<&'a str>,
}

impl<'a> Reach<'a> {
    fn of_user(layers: &'a Layers, models: &'a [ModelConfig]) -> Self {
        let of_project: Vec<&Named> = layers.named.iter().filter(|named| named.origin.is_project()).collect();
        let is_users = |model: &&ModelConfig| !of_project.iter().any(|named| is_of(named, model));
        let said = layers
            .values
            .values()
            .flatten()
            .filter(|assigned| !assigned.origin.is_project());
        Self {
            models: models.iter().filter(is_users).collect(),
            spoken: said.flat_map(names_in).collect(),
        }
    }

    /// Whether a model is on this machine, or the very one that a model of the user's is.
    fn has(&self, profile: &ModelProfile) -> bool {
        let is_here = preset::of_address(&profile.base_url).is_some_and(|preset| preset.place == Place::ThisMachine);
        is_here || self.models.iter().any(|model| is_same(&model.profile, profile)) || {
            let spoken = self.spoken.iter().filter_map(|name| preset::split(name));
            spoken
                .map(|(preset, model)| preset.profile(model))
                .any(|spoken| is_same(&spoken, profile))
        }
    }

    fn has_name(&self, name: &str) -> bool {
        let is_named = || self.models.iter().any(|model| model.name == name) || self.spoken.contains(&name);
        // Any other name may turn out to be a model of whichever provider's key is there.
        is_named() || preset::split(name).is_some_and(|(preset, model)| self.has(&preset.profile(model)))
    }
}

fn is_same(one: &ModelProfile, other: &ModelProfile) -> bool {
    (&one.base_url, &one.model) == (&other.base_url, &other.model)
}
