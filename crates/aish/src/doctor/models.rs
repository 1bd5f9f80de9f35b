//! What `aish doctor` finds of models: keys, servers that answer, whether they have the model, and what answers here.

use super::{Finding, Question};
use crate::app::App;
use crate::models::choose::Chosen;
use crate::models::{Choice, Key, Known, Registry};
use aish_core::message::{Message, Part, ToolChoice};
use aish_engine::Models as _;
use aish_provider::discover::{Listed, is_address};
use aish_provider::preset::{PRESETS, Place, of_address};
use aish_provider::{ErrorKind, ProviderError, Request};
use futures_util::future::{join, join_all};
use std::time::{Duration, Instant};

/// How long it may take to find out which model is in use: a provider may have to be asked.
const CHOICE_TIMEOUT_MS: u64 = 3_000;
/// How long a server may take to name its models.
const LIST_TIMEOUT_MS: u64 = 4_000;
/// How long the model may take to answer.
const ANSWER_TIMEOUT_S: u64 = 5;
/// Tokens it may answer with: some providers refuse fewer.
const ANSWER_TOKENS_MAX: u64 = 16;
/// Models of this machine that are named.
const NAMES_SHOWN_MAX: usize = 5;

/// Everything about models. Servers are asked at once.
pub(super) async fn all(app: &App, question: Question) -> Vec<Finding> {
    let registry = Registry::new(app.config(), &app.environment);
    let limit = Duration::from_millis(CHOICE_TIMEOUT_MS);
    let start = match tokio::time::timeout(limit, registry.choose(app.wanted_model())).await {
        Ok(start) => start,
        Err(_) => Err(format!(
            "the provider did not name its models within {CHOICE_TIMEOUT_MS} ms"
        )),
    };
    let mut findings = keys(app, &registry);
    let names: Vec<String> = app.config().models.iter().map(|model| model.name.clone()).collect();
    let mut choices: Vec<Choice> = names.iter().filter_map(|name| registry.known(name)).collect();
    let start_name = match &start {
        Ok(Some(Chosen { name, .. })) => {
            let is_listed = choices.iter().any(|choice| choice.name == *name);
            choices.extend(registry.resolve(name).ok().filter(|_| !is_listed));
            findings.push(Finding::ok("model", format!("{name} is the one in use")));
            name.as_str()
        }
        Ok(None) => {
            let absence = registry.absence();
            findings.push(Finding::fail("model", absence.message, absence.advice.join("; ")));
            ""
        }
        Err(why) => {
            findings.push(Finding::fail(
                "model",
                why.clone(),
                "`aish models list` lists what there is",
            ));
            ""
        }
    };
    if let Ok(Some(chosen)) = &start {
        let remarks = chosen.remarks().into_iter();
        findings.extend(remarks.map(|remark| Finding::warn("model", remark, "")));
    }
    let servers = join_all(
        choices
            .iter()
            .map(|choice| server(&registry, choice, choice.name == start_name)),
    );
    let answer = async {
        match question {
            Question::Asked if !start_name.is_empty() => Some(answer(&registry, start_name).await),
            Question::Asked | Question::Skipped => None,
        }
    };
    let ((servers, answer), here) = join(join(servers, answer), here(&registry)).await;
    findings.extend(servers);
    findings.extend(answer);
    findings.push(here);
    findings
}

/// Which keys are set; never what they are.
fn keys(app: &App, registry: &Registry) -> Vec<Finding> {
    let mut findings = Vec::new();
    for model in &app.config().models {
        let Some(choice) = registry.known(&model.name) else {
            continue;
        };
        if let Key::Missing(variable) = registry.key_of(&choice) {
            let message = format!("{variable} is not set, which models.{} needs", model.name);
            findings.push(Finding::warn("keys", message, format!("export {variable}=…")));
        }
    }
    let usual = PRESETS.iter().flat_map(|preset| preset.key_envs());
    let configured = app.config().models.iter().filter_map(|model| model.key_env.as_deref());
    let mut set: Vec<&str> = usual
        .copied()
        .chain(configured)
        .filter(|name| app.environment.text(name).is_some_and(|key| !key.trim().is_empty()))
        .collect();
    set.sort_unstable();
    set.dedup();
    findings.push(match set.as_slice() {
        [] => Finding::ok("keys", "none is set"),
        set => Finding::ok("keys", format!("set: {}", set.join(", "))),
    });
    findings
}

/// Whether the server of a model answers and has it. One that is not in use may be off.
async fn server(registry: &Registry, choice: &Choice, is_in_use: bool) -> Finding {
    let (name, address) = (&choice.name, choice.profile.shown_address());
    let area = "server";
    if let Key::Missing(variable) = registry.key_of(choice) {
        let message = format!("{name}: {address} was not asked: {variable} is not set");
        let advice = format!("export {variable}=…");
        return match is_in_use {
            true => Finding::fail(area, message, advice),
            false => Finding::warn(area, message, advice),
        };
    }
    if let Some(wrong) = choice
        .setup
        .address_name()
        .filter(|_| !is_address(&choice.profile.base_url))
    {
        let message = format!("{name}: {wrong} is no address that begins with http:// or https://");
        return Finding::fail(area, message, "correct it");
    }
    let begun = Instant::now();
    let listed = registry
        .listed_beside(choice, Duration::from_millis(LIST_TIMEOUT_MS))
        .await;
    let took = begun.elapsed().as_millis();
    match listed {
        Ok(listed) if has(&listed, &choice.profile.model) => Finding::ok(
            area,
            format!(
                "{name}: {address} answers in {took} ms and has {}",
                choice.profile.model
            ),
        ),
        Ok(listed) => {
            let message = format!(
                "{name}: {address} answers in {took} ms, but lists no {} (it has {})",
                choice.profile.model,
                some_of(&listed)
            );
            Finding::warn(area, message, "correct `model`, unless the server takes any name")
        }
        // Not every server has a list; that it answered as such a server does is what counts.
        Err(error) if matches!(error.kind, ErrorKind::Status(404 | 405 | 501)) => Finding::ok(
            area,
            format!("{name}: {address} answers in {took} ms, and lists no models"),
        ),
        Err(error) if error.kind == ErrorKind::Protocol => {
            let message = format!(
                "{name}: something answers, but not as a server of models: {}",
                error.message
            );
            let correct = choice.setup.address_name().map(|what| format!("correct {what}, or "));
            let advice = format!(
                "{}see whether it answers a question: aish doctor --probe",
                correct.unwrap_or_default()
            );
            Finding::warn(area, message, advice)
        }
        Err(error) => {
            let message = format!("{name}: {}", error.message);
            match is_in_use {
                true => Finding::fail(area, message, advice(choice, &error)),
                false => Finding::warn(area, message, advice(choice, &error)),
            }
        }
    }
}

/// Whether a list has a model. Ollama lists `qwen3:latest` for what is asked for as `qwen3`.
fn has(listed: &[Listed], model: &str) -> bool {
    let is_it = |id: &str| id == model || id.strip_suffix(":latest") == Some(model);
    listed.iter().any(|listed| is_it(&listed.id))
}

fn some_of(listed: &[Listed]) -> String {
    let names: Vec<&str> = listed
        .iter()
        .take(NAMES_SHOWN_MAX)
        .map(|model| model.id.as_str())
        .collect();
    match listed.len().saturating_sub(NAMES_SHOWN_MAX) {
        0 if names.is_empty() => "none".to_owned(),
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

fn advice(choice: &Choice, error: &ProviderError) -> String {
    choice.setup.advice(&error.kind.word()).unwrap_or_default()
}

/// Whether the model in use answers.
async fn answer(registry: &Registry, name: &str) -> Finding {
    let model = match registry.model(name) {
        Ok(model) => model,
        Err(why) => return Finding::fail("answer", why, ""),
    };
    let messages = [Message::User {
        parts: vec![Part::text("Say ok.")],
    }];
    let request = Request {
        model: name,
        system: "",
        messages: &messages,
        tools: &[],
        tool_choice: ToolChoice::Auto,
        max_output_tokens: Some(ANSWER_TOKENS_MAX),
        schema: None,
    };
    let begun = Instant::now();
    let asked = async {
        let mut stream = model.provider.send(request).await?;
        let mut deltas = Vec::new();
        while stream.next(&mut deltas).await {}
        match stream.finish().error {
            Some(error) => Err(error),
            None => Ok(()),
        }
    };
    match tokio::time::timeout(Duration::from_secs(ANSWER_TIMEOUT_S), asked).await {
        Ok(Ok(())) => Finding::ok(
            "answer",
            format!("{name} answers in {} ms", begun.elapsed().as_millis()),
        ),
        Ok(Err(error)) => {
            let asked = registry.known(name);
            let advice = asked.map(|choice| advice(&choice, &error)).unwrap_or_default();
            Finding::fail("answer", format!("{name}: {}", error.message), advice)
        }
        Err(_) => Finding::warn(
            "answer",
            format!("{name} did not answer within {ANSWER_TIMEOUT_S} s"),
            "it may be loading; try again",
        ),
    }
}

/// Servers on this machine that answer at their usual ports.
async fn here(registry: &Registry) -> Finding {
    let is_here = |choice: &&Choice| {
        choice.known == Known::Found
            && of_address(&choice.profile.base_url).is_some_and(|preset| preset.place == Place::ThisMachine)
    };
    let choices = registry.choices_here().await;
    let names: Vec<&str> = choices
        .iter()
        .filter(is_here)
        .map(|choice| choice.name.as_str())
        .collect();
    let shown: Vec<&str> = names.iter().copied().take(NAMES_SHOWN_MAX).collect();
    match names.len().saturating_sub(NAMES_SHOWN_MAX) {
        0 if shown.is_empty() => Finding::ok("here", "no model server at the usual ports of this machine"),
        0 => Finding::ok("here", shown.join(", ")),
        more => Finding::ok("here", format!("{} and {more} more", shown.join(", "))),
    }
}
