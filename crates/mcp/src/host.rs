//! What a server may ask of us while it is connected (SPEC 6.9), and whom it asks.

use crate::Alias;
use aish_core::sanitize;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

/// A question of a server to the person. All text is the server's: hostile until escaped.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    /// Values for the fields of a flat schema, `{"type":"object","properties":{…}}`.
    Form {
        /// What it says.
        message: String,
        /// Which fields it wants.
        schema: Value,
    },
    /// To open an address in a browser.
    Url {
        /// What it says.
        message: String,
        /// The address; never opened without the person's yes.
        url: String,
        /// How the server names this question.
        id: String,
    },
}

/// Characters of a question in a line.
const LINE_CHARS_MAX: usize = 120;
/// What a request for a model's answer is in a line.
pub const SAMPLING_LINE: &str = "a model to answer";

impl Question {
    /// Reads the parameters of `elicitation/create`.
    ///
    /// # Errors
    /// What is missing, for the server.
    pub fn read(mut params: Value) -> Result<Self, &'static str> {
        let mut text = |name: &str| match params.get_mut(name).map(Value::take) {
            Some(Value::String(text)) => Some(text),
            Some(_) | None => None,
        };
        let message = text("message").unwrap_or_default();
        match text("mode").as_deref() {
            Some("url") => {
                let url = text("url").ok_or("url is missing")?;
                let id = text("elicitationId").unwrap_or_default();
                Ok(Self::Url { message, url, id })
            }
            // Before 2025-11-25 there was no mode.
            Some("form") | None => {
                let schema = params
                    .get_mut("requestedSchema")
                    .map(Value::take)
                    .filter(Value::is_object);
                let schema = schema.ok_or("requestedSchema is missing")?;
                Ok(Self::Form { message, schema })
            }
            Some(_) => Err("mode is neither form nor url"),
        }
    }

    /// One safe line, without who asks.
    pub fn line(&self) -> String {
        let text = match self {
            Self::Form { message, .. } => message.clone(),
            Self::Url { message, url, .. } => format!("{message} ({url})"),
        };
        let cut: String = text.chars().take(LINE_CHARS_MAX).collect();
        let more = if cut.len() < text.len() { "…" } else { "" };
        format!("{}{more}", sanitize::single_line(&cut))
    }
}

/// What a person answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// Yes, with the values of a form; empty for an address.
    Accepted(Map<String, Value>),
    /// No.
    Declined,
    /// The person did not say anything, or was not even asked: why, one safe line. To the server it is a no.
    Unanswered(String),
    /// Nobody was there, or the question was dismissed.
    Dismissed,
}

/// What happened at a server without anybody asking.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// Its tools are others now.
    ToolsChanged,
    /// Its prompts are others now.
    PromptsChanged,
    /// Its resources are others now.
    ResourcesChanged,
    /// A resource's content is another now.
    ResourceUpdated {
        /// Which one.
        uri: String,
    },
    /// A line of its log.
    Log {
        /// `debug` … `emergency`.
        level: String,
        /// One line.
        text: String,
    },
    /// A line of its standard error.
    Stderr {
        /// One line.
        text: String,
    },
}

/// Whoever answers a server and hears of it.
pub trait Host: Send + Sync {
    /// Asks the person. Returns [`Reply::Dismissed`] when nobody is there; has a deadline of its own.
    fn ask<'a>(&'a self, server: &'a Alias, question: Question) -> BoxFuture<'a, Reply>;

    /// Asks the person, then a model, for the server (`sampling/createMessage`): its parameters and its result as raw JSON.
    ///
    /// # Errors
    /// Why there is no answer: the person declined, or there is no model.
    fn sample<'a>(&'a self, server: &'a Alias, params: Value) -> BoxFuture<'a, Result<Value, String>>;

    /// Whether a person is here who can be asked. Where none is, a request that can wait is left waiting (2026-07-28).
    fn is_attended(&self) -> bool {
        true
    }

    /// Hears of news. Never blocks.
    fn news(&self, server: &Alias, news: News);

    /// Shows a person one status line, escaped, without `[aish] ` in front. Never blocks.
    fn say(&self, _line: &str) {}
}

/// Nobody is there: every question is dismissed, every request for a model refused, news go unheard.
pub struct Nobody;

impl Host for Nobody {
    fn ask<'a>(&'a self, _server: &'a Alias, _question: Question) -> BoxFuture<'a, Reply> {
        Box::pin(std::future::ready(Reply::Dismissed))
    }

    fn sample<'a>(&'a self, _server: &'a Alias, _params: Value) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(std::future::ready(Err("nobody is here to allow it".to_owned())))
    }

    fn news(&self, _server: &Alias, _news: News) {}
}
