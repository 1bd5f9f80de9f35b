//! What clients may ask: the bodies of SPEC 9.1, 9.3 and 9.8, field by field, and the key under which one may be sent again.
//!
//! An unknown field is refused: it was meant to do something. What a field says is checked here as far as it can be without the
//! conversation; the engine does the rest.

use crate::error::{ApiError, ErrorKind};
use crate::json::Object;
use aish_core::Digest;
use aish_core::event::RequestKey;
use aish_core::message::ToolSpec;
use http::HeaderMap;
use http::header::HeaderName;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The header under which a request may be sent again (SPEC 9.4).
pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Characters of such a key.
pub(crate) const KEY_CHARS_MAX: usize = 255;
/// Bytes of a message, or of instructions: no model reads more, and each turn that runs holds several copies.
const TEXT_BYTES_MAX: usize = 1024 * 1024;
/// Characters of a model's name: it is kept with each turn, counted and logged.
const MODEL_CHARS_MAX: usize = 200;
/// Characters of the reason for a no: it is a sentence to the model.
const REASON_CHARS_MAX: usize = 2_000;
/// Bytes of the schemas of one request: they are built in memory before anybody looks at them closely.
const SCHEMAS_BYTES_MAX: usize = 512 * 1024;

/// `POST /api/chat`: a message that begins or goes on with a conversation.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "ChatRequest"))]
#[serde(deny_unknown_fields)]
pub(crate) struct ChatBody {
    /// What the user says.
    #[cfg_attr(test, schemars(regex(pattern = r"\S")))]
    pub(crate) message: String,
    /// The conversation to go on with; a new one where it is missing.
    #[serde(default)]
    pub(crate) conversation_id: Option<String>,
    /// The model to ask, by its name in the configuration.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(max = MODEL_CHARS_MAX)))]
    pub(crate) model: Option<String>,
    /// The client's own instructions for the model. They hold until others are given.
    #[serde(default)]
    pub(crate) system: Option<String>,
    /// The tools that the client executes. They hold until others are declared.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<Vec<ToolBody>>"))]
    pub(crate) tools: Option<Vec<Object<ToolBody>>>,
    /// Whether to answer with an event stream; so does `Accept: text/event-stream`.
    #[serde(default)]
    pub(crate) stream: Option<bool>,
}

/// A tool that the client executes.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "ToolDeclaration"))]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolBody {
    /// Its name: letters, digits, `_` and `-`. Not that of a built-in tool.
    #[cfg_attr(test, schemars(regex(pattern = "^[A-Za-z0-9_-]{1,64}$")))]
    pub(crate) name: String,
    /// What it does, for the model.
    #[serde(default)]
    pub(crate) description: String,
    /// A JSON Schema of its arguments, which are an object.
    #[cfg_attr(test, schemars(with = "serde_json::Map<String, serde_json::Value>"))]
    pub(crate) input_schema: Box<RawValue>,
}

/// `POST /api/sessions/{id}/tool_result`: what came of a call that the client executed.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "ToolResultRequest"))]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolResultBody {
    /// The call; where it is missing or unknown, the one that waits is meant, unless the path has a `conversation_id` or the server
    /// wants it named.
    #[serde(default)]
    pub(crate) call_id: Option<String>,
    /// The result, as text for the model.
    pub(crate) content: String,
    /// Whether to answer with an event stream; so does `Accept: text/event-stream`.
    #[serde(default)]
    pub(crate) stream: Option<bool>,
}

/// `POST /api/sessions/{id}/approval`: whether a call may run.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "ApprovalRequest"))]
#[serde(deny_unknown_fields)]
pub(crate) struct ApprovalBody {
    /// The call.
    pub(crate) call_id: String,
    /// Of what was shown, so that it is what runs.
    pub(crate) digest: String,
    /// Yes or no.
    pub(crate) answer: Decision,
    /// Why not, for the model.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(max = REASON_CHARS_MAX)))]
    pub(crate) reason: Option<String>,
    /// Whether to answer with an event stream; so does `Accept: text/event-stream`.
    #[serde(default)]
    pub(crate) stream: Option<bool>,
}

/// A person's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum Decision {
    /// It may run, this once.
    Approve,
    /// It may not; the model is told so.
    Deny,
}

impl ChatBody {
    /// What the body declares. Whether it can be offered, the engine says.
    pub(crate) fn check(&self) -> Result<Option<Vec<ToolSpec>>, ApiError> {
        if self.message.trim().is_empty() {
            return Err(invalid("`message` is empty"));
        }
        let system = self.system.as_deref().unwrap_or_default();
        if self.message.len() > TEXT_BYTES_MAX || system.len() > TEXT_BYTES_MAX {
            return Err(invalid(format!(
                "`message` and `system` have at most {TEXT_BYTES_MAX} bytes each"
            )));
        }
        within("model", self.model.as_deref(), MODEL_CHARS_MAX)?;
        self.tools.as_deref().map(declared).transpose()
    }
}

impl ApprovalBody {
    /// Whether what it says is within its bounds.
    pub(crate) fn check(&self) -> Result<(), ApiError> {
        within("reason", self.reason.as_deref(), REASON_CHARS_MAX)
    }
}

/// Refuses a field that is too long.
fn within(field: &str, text: Option<&str>, chars_max: usize) -> Result<(), ApiError> {
    if text.is_some_and(|text| text.chars().nth(chars_max).is_some()) {
        return Err(invalid(format!("`{field}` is longer than {chars_max} characters")));
    }
    Ok(())
}

fn invalid(message: impl AsRef<str>) -> ApiError {
    ApiError::new(ErrorKind::InvalidRequest, message)
}

fn declared(tools: &[Object<ToolBody>]) -> Result<Vec<ToolSpec>, ApiError> {
    let schemas_bytes: usize = tools.iter().map(|Object(tool)| tool.input_schema.get().len()).sum();
    if schemas_bytes > SCHEMAS_BYTES_MAX {
        return Err(invalid(format!(
            "the schemas of `tools` are longer than {SCHEMAS_BYTES_MAX} bytes together"
        )));
    }
    let spec = |Object(tool): &Object<ToolBody>| {
        let input_schema = serde_json::from_str(tool.input_schema.get());
        input_schema.map(|input_schema| ToolSpec {
            name: tool.name.clone(),
            description: tool.description.clone(),
            input_schema,
        })
    };
    let specs: Result<Vec<ToolSpec>, _> = tools.iter().map(spec).collect();
    specs.map_err(|_| invalid("the `input_schema` of a tool cannot be read"))
}

/// The key of a request, if it has one: of the route and of what it says, so that nothing else is taken for it.
pub(crate) fn key_of(headers: &HeaderMap, route: &str, body: &[u8]) -> Result<Option<RequestKey>, ApiError> {
    let mut given = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(first) = given.next() else {
        return Ok(None);
    };
    let text = first.to_str().ok().filter(|_| given.next().is_none());
    let is_key =
        |text: &&str| (1..=KEY_CHARS_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    let Some(key) = text.filter(is_key) else {
        return Err(invalid(format!(
            "`Idempotency-Key` must be there once, with 1 to {KEY_CHARS_MAX} visible characters and no spaces"
        )));
    };
    Ok(Some(RequestKey {
        key: key.to_owned(),
        digest: Digest::of(&format!("{route}\n{}", String::from_utf8_lossy(body))),
    }))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::json::parse;
    use serde_json::{Value, json};

    /// SPEC 9.1: what a declaration must be, and what is said of one that is not.
    #[test]
    fn declarations() {
        let check = |tools: Value, expect: Result<usize, &str>| {
            let body = json!({"message": "hi", "tools": tools}).to_string();
            let checked = parse::<ChatBody>(body.as_bytes()).and_then(|body| body.check());
            match (checked, expect) {
                (Ok(declared), Ok(count)) => assert_eq!(declared.unwrap().len(), count, "{tools}"),
                (Err(error), Err(says)) => {
                    assert!(format!("{error:?}").contains(says), "{error:?}");
                    assert_eq!(error.kind().status(), 422);
                }
                (checked, _) => unreachable!("{tools}: {checked:?}"),
            }
        };
        let tool = |name: &str| json!({"name": name, "description": "", "input_schema": {"type": "object"}});
        check(json!([]), Ok(0));
        check(json!([tool("a"), {"name": "b-2_C", "input_schema": {}}]), Ok(2));
        check(json!([{"name": "a"}]), Err("missing field `input_schema`"));
        check(json!([["a", "", {}]]), Err("expected an object"));
        check(
            json!([{"name": "a", "input_schema": {}, "parameters": {}}]),
            Err("unknown field `parameters`"),
        );
        check(
            json!([{"name": "a", "input_schema": {"x": "y".repeat(600_000)}}]),
            Err("longer than"),
        );
        let blank = parse::<ChatBody>(b"{\"message\":\" \\n\"}").unwrap();
        assert!(blank.check().is_err());
    }

    /// SPEC 9.8: a message and instructions have a mebibyte each, in bytes, and no more.
    #[test]
    fn long_texts() {
        let check = |field: &str, bytes: usize| {
            let mut body = json!({"message": "?"});
            // Two bytes a character.
            let text = "é".repeat(bytes / 2) + &"x".repeat(bytes % 2);
            body[field] = json!(text);
            parse::<ChatBody>(body.to_string().as_bytes()).and_then(|body| body.check())
        };
        for field in ["message", "system"] {
            assert!(check(field, TEXT_BYTES_MAX).is_ok(), "{field}");
            let refused = check(field, TEXT_BYTES_MAX + 1).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::InvalidRequest);
            assert!(refused.message().contains("at most"), "{refused:?}");
        }
    }

    /// SPEC 9.1, 12: a model's name is a name: what is kept and counted of it stays small.
    #[test]
    fn names_of_models() {
        let check = |model: &str| {
            let body = json!({"message": "hi", "model": model}).to_string();
            parse::<ChatBody>(body.as_bytes()).and_then(|body| body.check())
        };
        assert!(check(&"m".repeat(MODEL_CHARS_MAX)).is_ok());
        let refused = check(&"m".repeat(MODEL_CHARS_MAX + 1)).unwrap_err();
        assert_eq!(refused.kind().status(), 422);
        assert_eq!(refused.message(), "`model` is longer than 200 characters");
    }

    /// SPEC 9.8: the reason for a no is a sentence, in characters of any length.
    #[test]
    fn reasons() {
        let check = |reason: &str| {
            let body = json!({"call_id": "a", "digest": "b", "answer": "deny", "reason": reason}).to_string();
            parse::<ApprovalBody>(body.as_bytes()).and_then(|body| body.check())
        };
        assert!(check(&"é".repeat(REASON_CHARS_MAX)).is_ok());
        let refused = check(&"é".repeat(REASON_CHARS_MAX + 1)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidRequest);
        assert!(refused.message().contains("`reason`"), "{refused:?}");
    }

    /// SPEC 9.4: a key names a route and what it was told; what is no key is refused.
    #[test]
    fn keys() {
        let headers = |values: &[&str]| -> HeaderMap {
            values
                .iter()
                .map(|value| (IDEMPOTENCY_KEY, value.parse().unwrap()))
                .collect()
        };
        let of = |route: &str, body: &str| key_of(&headers(&["k-1"]), route, body.as_bytes()).unwrap().unwrap();
        assert_eq!(of("a", "b"), of("a", "b"));
        assert_eq!(of("a", "b").key, "k-1");
        assert_ne!(of("a", "b").digest, of("a", "c").digest);
        assert_ne!(of("a", "b").digest, of("b", "b").digest);
        assert_eq!(key_of(&HeaderMap::new(), "a", b"").unwrap(), None);
        for bad in [&[""] as &[&str], &["a b"], &["a\tb"], &["a", "b"], &[&"x".repeat(256)]] {
            assert!(key_of(&headers(bad), "a", b"").is_err(), "{bad:?}");
        }
    }
}
