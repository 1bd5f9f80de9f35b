//! What a server said, in whatever shape it said it.
//!
//! | shape | whose |
//! |---|---|
//! | `{"error":{"message","type","code","param"}}` | OpenAI, llama.cpp, vLLM, Groq |
//! | `{"error":{"message","code","metadata":{"raw","provider_name"}}}` | OpenRouter: `raw` is the answer of the provider behind it |
//! | `{"error":{"code","message","status","details"}}`, also in a list | Gemini |
//! | `{"type":"error","error":{"type","message"}}` | Anthropic |
//! | `{"error":"text"}`, `{"error":"text","code":"words"}` | Ollama, LM Studio; xAI |
//! | `{"object":"error","message","type","code"}` | vLLM, Mistral |
//! | `{"message":{"detail":[{"loc","msg"}]}}`, `{"detail":…}` | Mistral, whatever is made with FastAPI |
//! | `{"message"}`, `{"Message"}`, `{"errors":[{"message"}]}` | proxies before Bedrock, Cloudflare |

use serde_json::Value;
use std::time::Duration;

/// Errors in errors that are followed: a proxy of a proxy of a provider.
const DEPTH_MAX: usize = 10;

/// Mistakes of one request that are listed.
const MISTAKES_MAX: usize = 4;

/// What the server said.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// Its words.
    pub(super) message: String,
    /// `type`, `code`, `param` and their like, lower case, of every level.
    pub(super) tags: String,
    /// A numeric `code`.
    pub(super) status: Option<u16>,
    /// How long to wait, where the body says so (Gemini's `RetryInfo`).
    pub(super) wait: Option<Duration>,
    /// The context window in tokens, where a field says it (llama.cpp's `n_ctx`).
    pub(super) window: Option<u64>,
}

impl Said {
    pub(super) fn read(body: &str) -> Self {
        match serde_json::from_str::<Value>(body) {
            Ok(value) => Self::of_value(&value),
            // A proxy's page: its words without the tags would be no clearer.
            Err(_) if body.trim_start().starts_with('<') => Self::text("the server answered with a web page"),
            Err(_) => Self::text(body),
        }
    }

    pub(super) fn of_value(value: &Value) -> Self {
        let mut said = Self::default();
        said.take(value, DEPTH_MAX);
        if said.message.is_empty() {
            said.message = match value {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
            };
        }
        said
    }

    fn text(text: &str) -> Self {
        Self {
            message: text.to_owned(),
            ..Self::default()
        }
    }

    /// Goes into an error and takes the words of the innermost one: what stands around it was said by who passed it on.
    fn take(&mut self, value: &Value, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else {
            return;
        };
        match value {
            Value::String(text) => self.take_text(text, depth),
            // One error in a list, or the mistakes of one request.
            Value::Array(list) if list.iter().any(|item| item.get("msg").is_some()) => self.message = mistakes(list),
            Value::Array(list) => {
                if let Some(first) = list.first() {
                    self.take(first, depth);
                }
            }
            Value::Object(_) => self.take_object(value, depth),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Words, which may be an error themselves: proxies quote what they were answered.
    fn take_text(&mut self, text: &str, depth: usize) {
        let quoted = text.trim_start().starts_with(['{', '[']);
        match serde_json::from_str::<Value>(text).ok().filter(|_| quoted) {
            Some(inner) => {
                let before = std::mem::take(&mut self.message);
                self.take(&inner, depth);
                if self.message.is_empty() {
                    self.message = before;
                }
            }
            None if !text.trim().is_empty() => text.clone_into(&mut self.message),
            None => {}
        }
    }

    fn take_object(&mut self, object: &Value, depth: usize) {
        for key in ["type", "code", "status", "error_type", "param"] {
            let word = scalar(object.get(key));
            if !word.is_empty() {
                self.tags.push_str(&word.to_ascii_lowercase());
                self.tags.push(' ');
            }
        }
        let number = |key: &str| scalar(object.get(key)).parse().ok();
        let status = ["code", "status_code", "status"].iter().copied().find_map(number);
        self.status = status.or(self.status);
        self.window = object.get("n_ctx").and_then(Value::as_u64).or(self.window);
        self.wait = object.get("details").and_then(retry_delay).or(self.wait);
        // A plain word under `error` is often only the status again; an object there is the error itself.
        let is_inner = |value: &&Value| value.is_object() || value.is_array();
        let error = object.get("error").or_else(|| object.get("errors"));
        let words = ["detail", "Message", "message"].map(|key| object.get(key));
        let in_turn = [error.filter(|value| !is_inner(value))].into_iter().chain(words);
        for inner in in_turn.chain([error.filter(is_inner)]).flatten() {
            self.take(inner, depth);
        }
        if let Some(raw) = object.pointer("/metadata/raw") {
            let outer = self.message.clone();
            self.take(raw, depth);
            let provider = scalar(object.pointer("/metadata/provider_name"));
            if self.message != outer && !provider.is_empty() {
                self.message = format!("{provider}: {}", self.message);
            }
        }
    }
}

fn scalar(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => String::new(),
    }
}

/// The mistakes of a request, each with the place it is at.
fn mistakes(list: &[Value]) -> String {
    let each = list.iter().take(MISTAKES_MAX).map(|mistake| {
        let place = mistake.get("loc").and_then(Value::as_array).into_iter().flatten();
        let place: Vec<String> = place
            .map(|step| scalar(Some(step)))
            .filter(|step| step != "body")
            .collect();
        let words = scalar(mistake.get("msg"));
        if place.is_empty() {
            words
        } else {
            format!("{}: {words}", place.join("."))
        }
    });
    each.collect::<Vec<_>>().join("; ")
}

/// `{"@type":"…RetryInfo","retryDelay":"34.07s"}` among Google's details.
fn retry_delay(details: &Value) -> Option<Duration> {
    let mut delays = details.as_array()?.iter().filter_map(|detail| detail.get("retryDelay"));
    let seconds: f64 = delays.next()?.as_str()?.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}
