//! Where the schema of a reply goes (structured output): to the endpoint's field, into the standing instructions in words, or
//! both. Whatever comes back is held against the schema by whoever asked, so that words are the weaker way and never a wrong
//! one.
//!
//! | endpoint | the field | words |
//! |---|---|---|
//! | takes no schema, or not this one ([`schema::project_reply`]) | no | yes |
//! | nearby ([`host::is_nearby`]) in an OpenAI format, tools offered | no | yes: a grammar forbids every call, or is refused |
//! | nearby in `openai-chat`, no tools | yes | no |
//! | nearby in another format | yes | yes: llama.cpp reads the field in `openai-chat` only |
//! | all others | yes | no |

use super::schema::{self, ReplyDialect, SchemaDialect};
use super::{host, words};
use crate::Request;
use crate::profile::{Format, ModelProfile};
use serde_json::Value;
use std::borrow::Cow;

/// What a schema is called where the endpoint wants a name; nobody reads it.
pub(super) const NAME: &str = "reply";

/// The schema of a reply, as it is sent; nothing where none is asked for.
#[derive(Debug, Default)]
pub(super) struct ReplySchema<'s> {
    /// For the endpoint's field.
    pub(super) field: Option<Cow<'s, Value>>,
    /// For the standing instructions; empty where nothing is to be told.
    pub(super) words: String,
}

impl<'s> ReplySchema<'s> {
    /// Where the schema of this request goes, by the table above.
    pub(super) fn of(request: Request<'s>, profile: &ModelProfile) -> Self {
        let Some(schema) = request.schema else {
            return Self::default();
        };
        let has_tools = profile.tools.is_yes() && !request.tools.is_empty();
        let is_nearby = host::is_nearby(&profile.base_url);
        // Nobody nearby makes a grammar of Anthropic's field.
        let is_grammar = is_nearby && profile.format != Format::Anthropic;
        let takes_field = profile.structured_output.is_yes() && !(is_grammar && has_tools);
        let field = if takes_field {
            schema::project_reply(schema, dialect(profile))
        } else {
            None
        };
        let is_told = field.is_none() || (is_nearby && profile.format != Format::OpenaiChat);
        Self {
            field,
            words: if is_told { words::schema(schema) } else { String::new() },
        }
    }
}

fn dialect(profile: &ModelProfile) -> ReplyDialect {
    match (profile.format, profile.schemas) {
        (Format::Anthropic, _) => ReplyDialect::Closed,
        (_, SchemaDialect::Grammar) if host::is_nearby(&profile.base_url) => ReplyDialect::Grammar,
        (_, SchemaDialect::Grammar) => ReplyDialect::GrammarObject,
        (_, SchemaDialect::Full | SchemaDialect::Gemini) => ReplyDialect::Object,
    }
}
