//! `aish models list` and `:models`: what can be chosen, a line each, or all that is known as JSON.

use super::{Choice, Key, Known, Registry};
use crate::app::App;
use crate::cli::Output;
use crate::failure::Failure;
use crate::json;
use crate::oneshot::eprint_line;
use crate::sessions::print;
use aish_core::sanitize;
use aish_provider::price::Price;
use serde_json::{Value, json};

/// Models of one provider that are listed for people; some have hundreds. `--output json` has all.
pub const SHOWN_PER_PROVIDER_MAX: usize = 20;

/// Lists the models there are.
///
/// # Errors
/// There is none, or standard output is gone.
pub async fn run(app: &App, output: Output) -> Result<u8, Failure> {
    let registry = Registry::new(app.config(), &app.environment);
    let choices = registry.choices().await;
    let start = registry.choose(app.wanted_model()).await.ok().flatten();
    let start = start.map(|chosen| chosen.name);
    let redactor = app.redactor();
    if !choices.is_empty() || output != Output::Text {
        for silence in registry.silences() {
            eprint_line(&redactor.redact(&silence.line()));
        }
    }
    let is_start = |choice: &Choice| start.as_ref() == Some(&choice.name);
    match output {
        Output::Json => {
            let all: Vec<Value> = choices
                .iter()
                .map(|choice| as_json(&registry, choice, is_start(choice)))
                .collect();
            print(&format!("{}\n", json::printable(&Value::from(all).to_string())))
        }
        Output::Jsonl => {
            let lines = choices
                .iter()
                .map(|choice| as_json(&registry, choice, is_start(choice)).to_string());
            print(
                &lines
                    .map(|line| format!("{}\n", json::printable(&line)))
                    .collect::<String>(),
            )
        }
        Output::Text if choices.is_empty() => Err(registry.absence().failure(&redactor)),
        Output::Text => {
            let (shown, left_out) = shortened(choices, start.as_deref());
            let lines = shown.iter().map(|choice| {
                let mark = if is_start(choice) { '*' } else { ' ' };
                let line = format!("{}  {}", choice.name, origin(&registry, choice));
                format!("{mark} {}\n", sanitize::single_line(&line))
            });
            let more = left_out
                .iter()
                .map(|(provider, count)| format!("  {}\n", more(provider, *count)));
            print(&lines.chain(more).collect::<String>())
        }
    }
}

/// The choices that are shown to people, and of which providers how many are not.
pub fn shortened(choices: Vec<Choice>, keep: Option<&str>) -> (Vec<Choice>, Vec<(String, usize)>) {
    let (mut shown, mut left_out): (Vec<Choice>, Vec<(String, usize)>) = (Vec::new(), Vec::new());
    for choice in choices {
        let provider = provider(&choice);
        let beside = shown
            .iter()
            .filter(|other| other.known == Known::Found && self::provider(other) == provider);
        if choice.known == Known::Configured
            || keep == Some(choice.name.as_str())
            || beside.count() < SHOWN_PER_PROVIDER_MAX
        {
            shown.push(choice);
            continue;
        }
        match left_out.iter_mut().find(|(name, _)| *name == provider) {
            Some((_, count)) => *count += 1,
            None => left_out.push((provider, 1)),
        }
    }
    (shown, left_out)
}

/// The line about models of a provider that are not shown.
pub fn more(provider: &str, count: usize) -> String {
    format!("… {count} more of {provider}: aish models list --output json")
}

/// The provider of a model: that of the table whose address it has, else its host.
fn provider(choice: &Choice) -> String {
    let base_url = &choice.profile.base_url;
    match aish_provider::preset::of_address(base_url) {
        Some(preset) => preset.name.to_owned(),
        None => reqwest::Url::parse(base_url)
            .ok()
            .and_then(|url| url.host_str().map(str::to_owned))
            .unwrap_or_default(),
    }
}

/// Where a model is and what is known of it, one line.
pub fn origin(registry: &Registry, choice: &Choice) -> String {
    let known = match choice.known {
        Known::Configured => "configured",
        Known::Found => "found",
    };
    let profile = &choice.profile;
    let mut facts = Vec::new();
    // A name that was made from the model's own need not say it again.
    if choice.known == Known::Configured {
        facts.push(format!("{} at {} ({known})", profile.model, profile.shown_address()));
    } else {
        facts.push(format!("{} ({known})", profile.shown_address()));
    }
    facts.push(profile.format.name().to_owned());
    facts.extend(profile.context_window.map(|tokens| format!("{tokens} tokens")));
    match registry.key_of(choice) {
        Key::NotNeeded => {}
        Key::Set(variable) => facts.push(format!("key in {variable}")),
        Key::Missing(variable) => facts.push(format!("key missing: set {variable}")),
    }
    facts.extend(
        registry
            .price_of(choice)
            .map(|price| format!("${} in, ${} out a million", price.input, price.output)),
    );
    facts.join(" · ")
}

fn as_json(registry: &Registry, choice: &Choice, is_start: bool) -> Value {
    let (key_env, is_key_set) = match registry.key_of(choice) {
        Key::NotNeeded => (None, None),
        Key::Set(variable) => (Some(variable), Some(true)),
        Key::Missing(variable) => (Some(variable), Some(false)),
    };
    let price = |price: Price| json!({"input": price.input, "output": price.output, "cached": price.cached, "cache_write": price.cache_write});
    json!({
        "name": choice.name,
        "configured": choice.known == Known::Configured,
        "start": is_start,
        "provider": provider(choice),
        "format": choice.profile.format.name(),
        "base_url": choice.profile.shown_address(),
        "model": choice.profile.model,
        "context_window": choice.profile.context_window,
        "key_env": key_env,
        "key_set": is_key_set,
        "price": registry.price_of(choice).map(price),
    })
}
