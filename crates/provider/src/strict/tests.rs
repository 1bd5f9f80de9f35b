//! Tests of the strict servers, by mutation: a good request is taken, and with one thing broken it is refused for that thing.

use super::{Api, check};
use serde_json::{Value, json};

mod anthropic;
mod chat;
mod gemini;
mod images;
mod responses;

/// A change to a request.
type Break = fn(&mut Value);

fn path_of(api: Api) -> &'static str {
    match api {
        Api::OpenaiChat | Api::Template | Api::MistralTemplate | Api::GemmaTemplate | Api::LlamaCpp => {
            "/chat/completions"
        }
        Api::OpenaiResponses => "/responses",
        Api::Anthropic => "/v1/messages",
        Api::Gemini => "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse",
    }
}

/// Why a request is refused; `None` when it is taken.
fn complaint(api: Api, body: &Value) -> Option<String> {
    let refusal = check(api, path_of(api), [("anthropic-version", "2023-06-01")], body).err()?;
    let text = refusal.body.to_string();
    assert!(refusal.status >= 400 && text.contains("message"), "{text}");
    Some(refusal.message)
}

#[track_caller]
fn takes(api: Api, body: &Value) {
    assert_eq!(complaint(api, body), None, "{api:?}: {body:#}");
}

/// Each change alone makes the good request a bad one, and the complaint says why.
#[track_caller]
fn refuses(api: Api, good: &Value, breaks: &[(Break, &str)]) {
    takes(api, good);
    for (number, (change, words)) in breaks.iter().enumerate() {
        let mut body = good.clone();
        change(&mut body);
        assert_ne!(&body, good, "{api:?}, break {number} changes nothing");
        let said = complaint(api, &body);
        assert!(
            said.as_deref().is_some_and(|said| said.contains(words)),
            "{api:?}, break {number}: expected {words:?}, found {said:?} for {body:#}"
        );
    }
}

/// Adds to the list at that place.
fn push(body: &mut Value, place: &str, value: Value) {
    body.pointer_mut(place).unwrap().as_array_mut().unwrap().push(value);
}

/// Puts into the list at that place.
fn insert(body: &mut Value, place: &str, at: usize, value: Value) {
    body.pointer_mut(place)
        .unwrap()
        .as_array_mut()
        .unwrap()
        .insert(at, value);
}

/// Takes out of the list or object at that place.
fn remove(body: &mut Value, place: &str, key: &str) {
    let place = body.pointer_mut(place).unwrap();
    if let Some(list) = place.as_array_mut() {
        list.remove(key.parse().unwrap());
    } else {
        place.as_object_mut().unwrap().remove(key).unwrap();
    }
}

/// Sets what is at that place.
fn set(body: &mut Value, place: &str, value: Value) {
    let (parent, key) = place.rsplit_once('/').unwrap();
    let parent = body.pointer_mut(parent).unwrap();
    if let Some(list) = parent.as_array_mut() {
        list[key.parse::<usize>().unwrap()] = value;
    } else {
        parent.as_object_mut().unwrap().insert(key.to_owned(), value);
    }
}

/// SPEC 7.4: each server's refusal has the shape that its clients read.
#[test]
fn errors_are_shaped_as_the_server_s() {
    let refusal = |api| check(api, path_of(api), [], &json!({})).unwrap_err();
    for api in Api::ALL {
        assert_eq!(refusal(api).status, 400, "{api:?}");
    }
    assert_eq!(refusal(Api::OpenaiChat).body["error"]["type"], "invalid_request_error");
    assert_eq!(refusal(Api::Template).body["object"], "error");
    assert_eq!(refusal(Api::LlamaCpp).body["error"]["code"], 400);
    assert_eq!(refusal(Api::Anthropic).body["type"], "error");
    assert_eq!(refusal(Api::Gemini).body["error"]["status"], "INVALID_ARGUMENT");
    for api in Api::ALL {
        let Some(message) = refusal(api).body.pointer("/error/message").cloned() else {
            assert_eq!(refusal(api).body["message"], refusal(api).message, "{api:?}");
            continue;
        };
        assert_eq!(message, refusal(api).message, "{api:?}");
    }
}
