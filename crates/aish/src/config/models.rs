//! From the settings of `[models.<name>]` to models that can be asked: what a preset gives, what the address tells, and what
//! the user says over both; then the names that models speak of each other by (SPEC 7.1).
//!
//! A key goes to its owner only: a variable that nobody named is used with its owner's address alone.

use super::layers::{Layers, Section};
use super::resolved::ModelConfig;
use super::value::{nearest, toml_text};
use crate::paths::Environment;
use aish_provider::ModelProfile;
use aish_provider::codec::schema::SchemaDialect;
use aish_provider::preset::{self, Preset};
use aish_provider::price::Price;
use aish_provider::profile::{
    Alternation, CallsPerReply, Format, ProviderTool, Reasoning, Support, SystemRole, ThinkingBack, ToolRole,
    WireCallIds, WireNaming,
};

/// The model of that name.
///
/// # Errors
/// What is missing or does not go together, to follow `[models.NAME]`.
pub fn model(layers: &Layers, name: &str, environment: &Environment) -> Result<ModelConfig, String> {
    let section = layers.section(&["models", name]);
    let named = section.text("preset").and_then(|preset| preset::find(&preset));
    let format = section.text("provider").and_then(|word| word.parse().ok());
    let format: Format = format
        .or(named.map(|preset| preset.format))
        .unwrap_or(Format::OpenaiChat);
    let model = section
        .text("model")
        .ok_or("has no `model`: the provider's name for it; e.g. model = \"qwen2.5-coder-7b\"")?;
    let given_url = section.text("base_url");
    let owner = match (named, &given_url) {
        (Some(preset), None) if !is_akin(preset.format, format) => {
            return Err(format!(
                "has preset {} and provider {}, which is not spoken at its usual address; set base_url too",
                preset.name,
                format.name()
            ));
        }
        (Some(preset), _) => Some(preset),
        (None, _) => official(format),
    };
    let usual_url = owner.map(|preset| preset.base_url).unwrap_or_default();
    let is_usual = given_url.as_ref().is_none_or(|url| url == usual_url);
    let usual_key = owner.filter(|_| is_usual).and_then(|preset| {
        preset.key_env(|variable| environment.text(variable).is_some_and(|value| !value.trim().is_empty()))
    });
    let base_url = given_url.unwrap_or_else(|| usual_url.to_owned());
    let mut profile = ModelProfile::new(format, base_url, model);
    if let Some(preset) = named.or_else(|| preset::of_address(&profile.base_url)) {
        preset.adapt(&mut profile);
    }
    override_quirks(&mut profile, &section);
    override_wire(&mut profile, &section);
    Ok(ModelConfig {
        name: name.to_owned(),
        profile,
        key_env: section.text("key_env").or(usual_key.map(str::to_owned)),
        price: price(&layers.section(&["models", name, "price"]))?,
        fallback: section.texts("fallback"),
    })
}

/// Whether an address where the one format is spoken is where the other is too.
fn is_akin(one: Format, other: Format) -> bool {
    let is_openai = |format| matches!(format, Format::OpenaiChat | Format::OpenaiResponses);
    one == other || is_openai(one) && is_openai(other)
}

/// The provider whose own format it is.
fn official(format: Format) -> Option<&'static Preset> {
    preset::find(match format {
        Format::OpenaiChat | Format::OpenaiResponses => "openai",
        Format::Anthropic => "anthropic",
        Format::Gemini => "google",
    })
}

fn price(section: &Section<'_>) -> Result<Option<Price>, String> {
    let (cached, cache_write) = (section.float("cached"), section.float("cache_write"));
    match (section.float("input"), section.float("output")) {
        (Some(input), Some(output)) => Ok(Some(Price {
            input,
            output,
            cached,
            cache_write,
        })),
        (None, None) if cached.is_none() && cache_write.is_none() => Ok(None),
        _ => Err("has a price that lacks `input` or `output`; e.g. price = { input = 3.0, output = 15.0 }".to_owned()),
    }
}

fn support(yes: bool) -> Support {
    if yes { Support::Yes } else { Support::No }
}

/// What the user says of the model itself.
fn override_quirks(profile: &mut ModelProfile, section: &Section<'_>) {
    profile.temperature = section.float("temperature").or(profile.temperature);
    profile.context_window = section.number("context_window").or(profile.context_window);
    profile.max_output_tokens = section.number("max_output_tokens").or(profile.max_output_tokens);
    profile.reasoning = match section.text("reasoning").as_deref() {
        Some("off") => Some(Reasoning::Off),
        Some("low") => Some(Reasoning::Low),
        Some("medium") => Some(Reasoning::Medium),
        Some("high") => Some(Reasoning::High),
        Some(_) | None => profile.reasoning,
    };
    if section.texts("provider_tools").iter().any(|tool| tool == "web_search") {
        profile.provider_tools = vec![ProviderTool::WebSearch];
    }
    match section.flag("parallel_calls") {
        Some(true) => profile.calls = CallsPerReply::Any,
        Some(false) => profile.calls = CallsPerReply::One,
        None => {}
    }
    for (leaf, field) in [
        ("tools", &mut profile.tools),
        ("images", &mut profile.images),
        ("stream", &mut profile.streaming),
        ("structured_output", &mut profile.structured_output),
        ("prompt_cache", &mut profile.cache_marks),
    ] {
        if let Some(yes) = section.flag(leaf) {
            *field = support(yes);
        }
    }
}

/// What the user says of how it is spoken to.
fn override_wire(profile: &mut ModelProfile, section: &Section<'_>) {
    if !section.yes("use_tool_role") {
        profile.tool_role = ToolRole::Text;
    }
    if section.text("wire_names").as_deref() == Some("dot") {
        profile.wire_names = WireNaming::Dot;
    }
    match section.text("system_role").as_deref() {
        Some("system") => profile.system_role = SystemRole::System,
        Some("developer") => profile.system_role = SystemRole::Developer,
        Some("user") => profile.system_role = SystemRole::User,
        Some(_) | None => {}
    }
    match section.text("call_ids").as_deref() {
        Some("own") => profile.wire_call_ids = WireCallIds::Own,
        Some("nine") => profile.wire_call_ids = WireCallIds::NineCharacters,
        Some(_) | None => {}
    }
    match section.text("schema").as_deref() {
        Some("full") => profile.schemas = SchemaDialect::Full,
        Some("grammar") => profile.schemas = SchemaDialect::Grammar,
        Some("gemini") => profile.schemas = SchemaDialect::Gemini,
        Some(_) | None => {}
    }
    match section.flag("strict_alternation") {
        Some(true) => profile.alternation = Alternation::Strict,
        Some(false) => profile.alternation = Alternation::Joined,
        None => {}
    }
    match section.flag("thinking_back") {
        Some(true) => profile.thinking_back = ThinkingBack::ReasoningContent,
        Some(false) => profile.thinking_back = ThinkingBack::Dropped,
        None => {}
    }
}

/// What is wrong with the name of a model that another setting speaks of; `None` when it is configured or of the form
/// `PRESET/MODEL`.
pub fn unknown_name(name: &str, configured: &[String]) -> Option<String> {
    if configured.iter().any(|known| known == name) || preset::split(name).is_some() {
        return None;
    }
    let known = || configured.iter().map(String::as_str);
    let hint = match nearest(name, known()) {
        Some(meant) => format!("did you mean {}?", toml_text(meant)),
        None => format!("there are: {}", known().collect::<Vec<_>>().join(", ")),
    };
    Some(format!("no model {}; {hint}", toml_text(name)))
}

/// The first way round that the fallbacks of models lead from this one back to it, as names with the first at both ends.
pub fn fallback_cycle(models: &[ModelConfig], start: &str) -> Option<Vec<String>> {
    let mut ways = vec![vec![start.to_owned()]];
    let mut seen: Vec<&str> = Vec::new();
    while let Some(way) = ways.pop() {
        let last = way.last()?;
        let Some(model) = models.iter().find(|model| model.name == *last) else {
            continue;
        };
        for next in &model.fallback {
            let mut longer = way.clone();
            longer.push(next.clone());
            if next == start {
                return Some(longer);
            }
            if !seen.contains(&next.as_str()) {
                seen.push(next);
                ways.push(longer);
            }
        }
    }
    None
}
