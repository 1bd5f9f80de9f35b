//! Tests of choosing a model, as far as nothing needs a server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::config::{Layer, Overrides, Source, resolve};
use aish_provider::profile::{CallsPerReply, Format};

/// A registry of this configuration and these variables, that looks for nothing.
fn registry(toml: &str, variables: &[(&str, &str)]) -> Registry {
    let source = Source {
        name: "config.toml".into(),
        text: format!("discover = false\n{toml}"),
        layer: Layer::User,
    };
    let environment = Environment::from_pairs(variables.iter().copied());
    let resolved = resolve(Some(source), None, &environment, &Overrides::default()).unwrap();
    Registry::new(&resolved.config, &environment)
}

/// SPEC 10.1, 10.4: an unset key variable is an error at use that names the variable and what to do.
#[test]
fn a_missing_key_names_its_variable() {
    let toml = "[models.cloud]\nmodel = 'm'\nbase_url = 'http://x/v1'\nkey_env = 'CLOUD_KEY'\n[models.desk]\nmodel = 'm'\nbase_url = 'http://y/v1'";
    for unset in [&[][..], &[("CLOUD_KEY", "")], &[("CLOUD_KEY", " \n")]] {
        let registry = registry(toml, unset);
        assert_eq!(
            registry.model("cloud").err().unwrap(),
            "model \"cloud\" needs a key: the environment variable CLOUD_KEY is not set; set it with: export CLOUD_KEY=…"
        );
        assert!(registry.model("desk").is_ok());
    }
    let set = registry(toml, &[("CLOUD_KEY", " sk-1\n")]);
    assert!(set.model("cloud").is_ok());
    assert_eq!(set.key(Some("CLOUD_KEY")), Some("sk-1"));
}

/// SPEC 7.1, 7.7: a provider and its model in one name need no configuration, only the key; the error names its variable.
#[test]
fn a_provider_by_its_name() {
    let missing = registry("", &[]).model("anthropic/claude-x").err().unwrap();
    assert!(missing.contains("ANTHROPIC_API_KEY is not set"), "{missing}");
    let keyed = registry("", &[("OPENROUTER_API_KEY", "k"), ("GOOGLE_API_KEY", "k")]);
    let model = keyed.model("openrouter/anthropic/claude-x").unwrap();
    assert_eq!(model.asked_for.as_deref(), Some("anthropic/claude-x"));
    let choice = keyed.resolve("google/gemini-x").unwrap();
    assert_eq!(
        (choice.profile.format, keyed.key_of(&choice)),
        (Format::Gemini, Key::Set("GOOGLE_API_KEY"))
    );
    assert!(keyed.model("ollama/qwen3:8b").is_ok());
    let unknown = keyed.model("nobody/m").err().unwrap();
    assert!(unknown.starts_with("there is no model \"nobody/m\""), "{unknown}");
}

/// SPEC 7.1: a configured name goes before a provider's; what is configured reaches the model.
#[test]
fn what_is_configured_reaches_the_model() {
    let toml = "[models.'openai/x']\nmodel = 'm'\nbase_url = 'http://x/v1'\nimages = false\nparallel_calls = false\ncontext_window = 9\nfallback = ['ollama/q']";
    let registry = registry(toml, &[]);
    let model = registry.model("openai/x").unwrap();
    assert_eq!(
        (model.asked_for.as_deref(), model.images, model.context_window),
        (Some("m"), false, Some(9))
    );
    assert_eq!(model.fallback, ["ollama/q"]);
    assert_eq!(registry.known("openai/x").unwrap().profile.calls, CallsPerReply::One);
}

/// SPEC 7.7: hundreds of models of one provider do not fill the screen; configured ones and the one in use stay.
#[test]
fn long_lists_are_shortened() {
    let registry = registry("[models.mine]\nmodel = 'm'\nbase_url = 'http://x/v1'", &[]);
    let mut choices = vec![registry.resolve("mine").unwrap()];
    for n in 0..50 {
        choices.push(registry.resolve(&format!("openrouter/m{n}")).unwrap());
    }
    choices.push(registry.resolve("ollama/q").unwrap());
    let (shown, left_out) = list::shortened(choices, Some("openrouter/m49"));
    assert_eq!(shown.len(), list::SHOWN_PER_PROVIDER_MAX + 3);
    assert!(shown.iter().any(|choice| choice.name == "openrouter/m49"));
    assert_eq!(left_out, [("openrouter".to_owned(), 29)]);
}
