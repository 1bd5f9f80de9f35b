//! The conversation in a request to Gemini: who speaks when, and which responses go with which calls.

use super::function_name;
use crate::strict::shape::{items, text};
use crate::strict::{Passed, refuse};
use serde_json::Value;

/// What a part may hold besides marks such as `thought` and `thoughtSignature`.
const PART_FIELDS: [&str; 7] = [
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
];

/// `is_third`: the third generation of models takes images in responses, and refuses a call of the turn under way without its signature.
pub(super) fn check(body: &Value, is_third: bool) -> Passed {
    let contents = items(&body["contents"]);
    if contents.is_empty() {
        return refuse("* GenerateContentRequest.contents: contents is not specified");
    }
    for (at, content) in contents.iter().enumerate() {
        let role = if at.is_multiple_of(2) { "user" } else { "model" };
        if content["role"] != role {
            return refuse(format!(
                "Please ensure that multiturn requests alternate between user and model. (contents[{at}])"
            ));
        }
        let parts = items(&content["parts"]);
        if parts.is_empty() {
            return refuse(format!(
                "* GenerateContentRequest.contents[{at}].parts: contents.parts must not be empty."
            ));
        }
        parts.iter().try_for_each(|part| self::part(part, role, at))?;
        let before = at.checked_sub(1).and_then(|before| contents.get(before));
        responses(before, content)?;
    }
    if contents.len().is_multiple_of(2) {
        return refuse("Please ensure that multiturn requests end with a user role or a function response.");
    }
    response_images(contents, is_third)?;
    if is_third { signatures(contents) } else { Ok(()) }
}

/// The kinds of images in a response: <https://ai.google.dev/gemini-api/docs/function-calling#multimodal>.
const RESPONSE_IMAGE_TYPES: [&str; 3] = ["image/png", "image/jpeg", "image/webp"];

/// Responses with images are for the third generation of models.
fn response_images(contents: &[Value], is_third: bool) -> Passed {
    let parts = contents.iter().flat_map(|content| items(&content["parts"]));
    let responses = parts.filter_map(|part| part.get("functionResponse"));
    for images in responses.filter_map(|response| response.get("parts")) {
        if !is_third {
            return refuse("Multimodal function responses are not supported for this model.");
        }
        let is_image = |image: &Value| {
            let data = &image["inlineData"];
            RESPONSE_IMAGE_TYPES.contains(&text(&data["mimeType"])) && !text(&data["data"]).is_empty()
        };
        if items(images).is_empty() || !items(images).iter().all(is_image) {
            return refuse("function_response.parts.inline_data: Unsupported MIME type");
        }
    }
    Ok(())
}

fn part(part: &Value, role: &str, at: usize) -> Passed {
    let place = format!("contents[{at}].parts");
    let held: Vec<&str> = PART_FIELDS
        .into_iter()
        .filter(|field| part.get(*field).is_some())
        .collect();
    let is_model = role == "model";
    match held.as_slice() {
        ["text"] if !text(&part["text"]).is_empty() => Ok(()),
        // A signature may come with a text of nothing: https://ai.google.dev/gemini-api/docs/thought-signatures
        ["text"] if is_model && part.get("thoughtSignature").is_some() && part["text"].is_string() => Ok(()),
        ["functionCall"] if is_model => {
            let call = &part["functionCall"];
            function_name(&call["name"], &format!("{place}.function_call"))?;
            object(call, "args", &place)
        }
        ["functionResponse"] if !is_model => {
            let response = &part["functionResponse"];
            function_name(&response["name"], &format!("{place}.function_response"))?;
            if response.get("response").is_none() {
                return refuse(format!(
                    "* GenerateContentRequest.{place}.function_response.response: missing field."
                ));
            }
            object(response, "response", &place)
        }
        ["inlineData"] => {
            let data = &part["inlineData"];
            if text(&data["mimeType"]).contains('/') && !text(&data["data"]).is_empty() {
                Ok(())
            } else {
                refuse(format!(
                    "* GenerateContentRequest.{place}.inline_data: Unsupported MIME type"
                ))
            }
        }
        ["executableCode" | "codeExecutionResult"] if is_model => Ok(()),
        // https://ai.google.dev/api/caching#Part
        _ => refuse(format!(
            "* GenerateContentRequest.{place}.data: required oneof field 'data' must have one initialized field ({held:?} of \
             {role})"
        )),
    }
}

/// Arguments and responses are structures.
fn object(value: &Value, field: &str, place: &str) -> Passed {
    match value.get(field) {
        None | Some(Value::Object(_)) => Ok(()),
        Some(other) => refuse(format!(
            "Invalid value at '{place}.{field}' (type.googleapis.com/google.protobuf.Struct), {other}"
        )),
    }
}

fn names<'v>(content: &'v Value, kind: &str) -> Vec<&'v str> {
    let held = items(&content["parts"]).iter().filter_map(|part| part.get(kind));
    held.map(|held| text(&held["name"])).collect()
}

/// As many responses as calls, in the same order, directly after them: <https://github.com/google-gemini/gemini-cli/issues/17208>,
/// <https://github.com/GoogleCloudPlatform/generative-ai/pull/368>.
fn responses(before: Option<&Value>, content: &Value) -> Passed {
    let called = before.map(|before| names(before, "functionCall")).unwrap_or_default();
    let answered = names(content, "functionResponse");
    if called.is_empty() && !answered.is_empty() {
        return refuse("Please ensure that function response turn comes immediately after a function call turn.");
    }
    if called != answered {
        return refuse(
            "Please ensure that the number of function response parts is equal to the number of function call parts of the \
             function call turn.",
        );
    }
    Ok(())
}

/// The first call of each reply since the last question carries its signature: <https://ai.google.dev/gemini-api/docs/thought-signatures>,
/// <https://github.com/nanbingxyz/5ire/issues/405>.
fn signatures(contents: &[Value]) -> Passed {
    let is_question = |content: &Value| content["role"] == "user" && names(content, "functionResponse").is_empty();
    let began = contents.iter().rposition(is_question).unwrap_or(0);
    for (at, content) in contents.iter().enumerate().skip(began) {
        let first = items(&content["parts"])
            .iter()
            .find(|part| part.get("functionCall").is_some());
        let Some(call) = first else { continue };
        if text(&call["thoughtSignature"]).is_empty() {
            return refuse(format!(
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to work \
                 correctly, and missing thought_signature may lead to degraded model performance. Additional data, function \
                 call `{}`, position {at}.",
                text(&call["functionCall"]["name"])
            ));
        }
    }
    Ok(())
}
