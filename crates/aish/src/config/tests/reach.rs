//! Where a trusted project may send conversations (SPEC 10.1, 12).

use super::*;

/// What the user has: a model on this machine, and one on the network.
const USER: &str = "
default_model = 'desk'
[models.desk]
base_url = 'http://127.0.0.1:8080/v1'
model = 'm'
[models.cloud]
preset = 'openrouter'
model = 'good/x'
fallback = ['mistral/mistral-large-latest']
";

fn check(user: &str, project: &str) -> Result<Resolved, ConfigError> {
    layered(user, project, &[], &Overrides::default())
}

/// SPEC 12: a project that was trusted chooses neither a provider on the network nor a model of one, by whatever way.
#[test]
fn a_project_does_not_choose_the_network() {
    for project in [
        "[models.x]\npreset = 'openrouter'\nmodel = 'evil/x'\n[routing]\nquick = 'x'",
        "[models.x]\nprovider = 'gemini'\nmodel = 'm'",
        "[models.x]\nmodel = 'gpt-5'",
        "[models.x]\npreset = 'ollama'\nmodel = 'm'\nfallback = ['openrouter/evil/x']",
        "default_model = 'openrouter/evil/x'",
        "routing.quick = 'openrouter/evil/x'",
        "routing.work = 'openrouter/evil/x'",
        "routing.summary = 'openrouter/evil/x'",
    ] {
        let errors = check(USER, project)
            .map(|resolved| resolved.config)
            .unwrap_err()
            .to_string();
        let why = "it would let the project choose where your keys and conversations go; set it in your own file";
        assert!(errors.starts_with(".aish/config.toml:"), "{project}: {errors}");
        assert!(
            errors.contains("a project's file may not set ") && errors.contains(why),
            "{project}: {errors}"
        );
    }
    insta::assert_snapshot!(check(USER, "[models.x]\nmodel = 'x'\npreset = 'xai'").unwrap_err(), @r"
    .aish/config.toml:3:10: a project's file may not set models.x.preset: it would let the project choose where your keys and conversations go; set it in your own file
      3 | preset = 'xai'
        |          ^^^^^
    ");
    insta::assert_snapshot!(check(USER, "[models.x]\nmodel = 'x'").unwrap_err(), @r"
    .aish/config.toml:1:9: a project's file may not set models.x: it would let the project choose where your keys and conversations go; set it in your own file
      1 | [models.x]
        |         ^
    ");
}

/// SPEC 7.7, 12: nor does it where nothing is configured and a model is found: any name may be one of a keyed provider.
#[test]
fn nor_where_nothing_is_configured() {
    for name in ["openrouter/evil/x", "openrouter", "evil/x", "gpt-5"] {
        let error = check("", &format!("default_model = '{name}'")).unwrap_err().to_string();
        assert!(error.contains("may not set default_model"), "{error}");
    }
    let found = check("", "default_model = 'ollama/qwen'").unwrap();
    assert_eq!(found.config.start_model(), Some("ollama/qwen"));
}

/// SPEC 10.1: it chooses among what is on this machine and what the user's own configuration has.
#[test]
fn a_project_chooses_within_reach() {
    for project in [
        "default_model = 'cloud'\nrouting.quick = 'desk'",
        "default_model = 'ollama/qwen'",
        "default_model = 'x'\n[models.x]\npreset = 'llama.cpp'\nmodel = 'm'\nfallback = ['cloud', 'desk']",
        // The same model with other settings, and one that the user's own settings name.
        "[models.x]\npreset = 'openrouter'\nmodel = 'good/x'\ntemperature = 0",
        "routing.work = 'openrouter/good/x'",
        "routing.work = 'mistral/mistral-large-latest'",
    ] {
        check(USER, project).unwrap_or_else(|error| panic!("{project}: {error}"));
    }
}

/// A name that is no model at all is told once, as that.
#[test]
fn no_model_at_all() {
    insta::assert_snapshot!(check(USER, "default_model = 'dask'").unwrap_err(), @r#"
    .aish/config.toml:1:17: default_model: no model "dask"; did you mean "desk"?
      1 | default_model = 'dask'
        |                 ^^^^^^
    "#);
}
