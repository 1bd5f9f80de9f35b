//! Google's `generateContent`: <https://ai.google.dev/api/generate-content>.

use super::shape::{self, Unique, fields, is_word, items, text};
use super::{Passed, refuse};
use serde_json::Value;

mod schema;
mod turns;

/// Fields of a request; others are "Unknown name … Cannot find field".
const FIELDS: &[&str] = &[
    "contents",
    "systemInstruction",
    "tools",
    "toolConfig",
    "generationConfig",
    "safetySettings",
    "cachedContent",
];

/// Fields of `generationConfig`, as far as a shell could have use for them.
const GENERATION_FIELDS: &[&str] = &[
    "temperature",
    "topP",
    "topK",
    "candidateCount",
    "maxOutputTokens",
    "stopSequences",
    "responseMimeType",
    "responseSchema",
    "responseJsonSchema",
    "thinkingConfig",
    "seed",
];

/// Models that take their own tools beside the caller's, and that mind signatures of calls, are called like this.
const THIRD_GENERATION: &str = "gemini-3";

pub(super) fn check(path: &str, body: &Value) -> Passed {
    let Some((model, method)) = path
        .strip_prefix("/v1beta/models/")
        .and_then(|rest| rest.split_once(':'))
    else {
        return refuse(format!("Not found: {path}"));
    };
    let method = method.split('?').next().unwrap_or_default();
    if model.is_empty() || !matches!(method, "generateContent" | "streamGenerateContent") {
        return refuse(format!("Not found: {path}"));
    }
    known(body, FIELDS, "")?;
    generation(&body["generationConfig"])?;
    tools(model, body)?;
    if let Some(system) = body.get("systemInstruction") {
        let parts = items(&system["parts"]);
        if parts.is_empty() || parts.iter().any(|part| text(&part["text"]).is_empty()) {
            return refuse("* GenerateContentRequest.system_instruction.parts: contents.parts must not be empty.");
        }
    }
    turns::check(body, model.contains(THIRD_GENERATION))
}

/// <https://github.com/nanbingxyz/5ire/issues/42> quotes the refusal.
fn known(value: &Value, known: &[&str], place: &str) -> Passed {
    match fields(value).find(|(key, _)| !known.contains(&key.as_str())) {
        Some((key, _)) => refuse(format!(
            "Invalid JSON payload received. Unknown name \"{key}\" at '{place}': Cannot find field."
        )),
        None => Ok(()),
    }
}

fn generation(config: &Value) -> Passed {
    known(config, GENERATION_FIELDS, "generation_config")?;
    shape::tokens_min(config, "maxOutputTokens", 1)?;
    let has_schema = ["responseSchema", "responseJsonSchema"]
        .iter()
        .any(|field| config.get(*field).is_some());
    if has_schema && config["responseMimeType"] != "application/json" {
        return refuse(
            "GenerationConfig.response_schema: only allowed when the response mime type is application/json",
        );
    }
    match config.get("responseSchema") {
        Some(schema) => schema::check(schema, "generation_config.response_schema"),
        None => Ok(()),
    }
}

fn tools(model: &str, body: &Value) -> Passed {
    let tools = shape::list_or_nothing(body, "tools")?.unwrap_or_default();
    let mut names = Unique::default();
    let mut has_own = false;
    let mut has_functions = false;
    for (at, tool) in tools.iter().enumerate() {
        known(
            tool,
            &["functionDeclarations", "googleSearch", "urlContext", "codeExecution"],
            "tools",
        )?;
        let declared = shape::list_or_nothing(tool, "functionDeclarations")?;
        has_own |= declared.is_none();
        has_functions |= declared.is_some();
        for (n, function) in declared.unwrap_or_default().iter().enumerate() {
            let place = format!("tools[{at}].function_declarations[{n}]");
            let name = function_name(&function["name"], &place)?;
            names.add(name, "Duplicate function declaration found: names")?;
            known(
                function,
                &[
                    "name",
                    "description",
                    "parameters",
                    "parametersJsonSchema",
                    "behavior",
                    "response",
                ],
                &place,
            )?;
            if let Some(parameters) = function.get("parameters") {
                shape::object_schema(parameters, name)?;
                schema::check(parameters, &format!("{place}.parameters"))?;
            }
        }
    }
    if has_own && has_functions && !model.contains(THIRD_GENERATION) {
        return refuse("Tool use with function calling is unsupported");
    }
    if !has_functions && body["toolConfig"].get("functionCallingConfig").is_some() {
        return refuse("Function calling config is set without function_declarations.");
    }
    Ok(())
}

/// "Must start with a letter or an underscore": <https://ai.google.dev/gemini-api/docs/function-calling>.
fn function_name<'v>(value: &'v Value, place: &str) -> Passed<&'v str> {
    let name = text(value);
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if begins_well && is_word(name, shape::NAME_CHARS_MAX, &['_', '-', '.', ':']) {
        Ok(name)
    } else {
        refuse(format!(
            "* GenerateContentRequest.{place}.name: [FIELD_INVALID] Invalid function name: {name:?}. Must start with a letter \
             or an underscore."
        ))
    }
}
