//! What a server offers beyond tools (SPEC 6.9): prompts, resources and templates of resources, listed and fetched.

use super::pages::{Listed, list};
use super::remarks::Remarks;
use super::{NAME_BYTES_MAX, description_of, name_of, object_of};
use crate::outcome::Gathered;
use crate::{ErrorKind, McpError, Offer, Outcome, Peer};
use aish_core::message::Part;
use serde_json::{Map, Value};
use std::time::Duration;

/// Arguments of one prompt.
const ARGUMENTS_MAX: usize = 100;
/// Messages of one prompt.
const MESSAGES_MAX: usize = 1_000;

/// A prompt that a person can call by name. All text is the server's: hostile until escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// Its bare name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What it wants to know, in its order.
    pub arguments: Vec<Argument>,
}

/// Something a prompt wants to know; a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// What it means.
    pub description: String,
    /// Whether the prompt is nothing without it.
    pub is_required: bool,
}

/// A resource that can be read. All text is the server's: hostile until escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Its address.
    pub uri: String,
    /// What it is called.
    pub name: String,
    /// What it is.
    pub description: String,
    /// Its media type, as the server says.
    pub mime: Option<String>,
    /// Its size in bytes, as the server says.
    pub size: Option<u64>,
}

/// The addresses of many resources, with holes to fill (RFC 6570). All text is the server's: hostile until escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// The address with its holes, e.g. `memo://double/{number}`.
    pub uri_template: String,
    /// What it is called.
    pub name: String,
    /// What it is.
    pub description: String,
    /// The media type of all of them, as the server says.
    pub mime: Option<String>,
}

/// Whose words a message of a prompt is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The person's; also where the server does not say.
    User,
    /// A model's.
    Assistant,
}

/// A message of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptMessage {
    /// Whose words it is.
    pub role: Role,
    /// Its text blocks, joined.
    pub text: String,
    /// Its images.
    pub images: Vec<Part>,
    /// The address of the resource that it consists of, where it does.
    pub resource: Option<String>,
}

/// A prompt with its arguments filled in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filled {
    /// Its messages, in order.
    pub messages: Vec<PromptMessage>,
    /// What was left out and why, one line each.
    pub remarks: Vec<String>,
}

impl Offer {
    /// Fetches the prompts, and what was left out of them; none where the server has none.
    ///
    /// # Errors
    /// The list cannot be had.
    pub async fn prompts(peer: &dyn Peer, patience: Duration) -> Result<(Vec<Prompt>, Vec<String>), McpError> {
        listed(peer, patience).await
    }

    /// Fetches the resources, and what was left out of them; none where the server has none.
    ///
    /// # Errors
    /// The list cannot be had.
    pub async fn resources(peer: &dyn Peer, patience: Duration) -> Result<(Vec<Resource>, Vec<String>), McpError> {
        listed(peer, patience).await
    }

    /// Fetches the templates of resources, and what was left out of them; none where the server has none.
    ///
    /// # Errors
    /// The list cannot be had.
    pub async fn templates(peer: &dyn Peer, patience: Duration) -> Result<(Vec<Template>, Vec<String>), McpError> {
        listed(peer, patience).await
    }
}

async fn listed<T: Listed>(peer: &dyn Peer, patience: Duration) -> Result<(Vec<T>, Vec<String>), McpError> {
    let mut remarks = Remarks::default();
    let items = list(peer, patience, &mut remarks).await?;
    Ok((items, remarks.finish()))
}

impl Prompt {
    /// Fills a prompt, keeping at most `bytes_max` of the text of all its messages together.
    ///
    /// # Errors
    /// Every way in which there is no result; [`ErrorKind::Protocol`] where it has no messages.
    pub async fn fill(
        peer: &dyn Peer,
        name: &str,
        arguments: Map<String, Value>,
        patience: Duration,
        bytes_max: usize,
    ) -> Result<Filled, McpError> {
        let mut params = Map::new();
        params.insert("name".to_owned(), Value::String(name.to_owned()));
        if !arguments.is_empty() {
            params.insert("arguments".to_owned(), Value::Object(arguments));
        }
        let result = peer.request("prompts/get", params, patience, None).await?;
        let Some(messages) = result.get("messages").and_then(Value::as_array) else {
            return Err(McpError::new(
                ErrorKind::Protocol,
                "prompts/get was answered without messages",
            ));
        };
        let mut filled = Filled::default();
        let mut remarks = Remarks::default();
        let mut bytes_left = bytes_max;
        if messages.len() > MESSAGES_MAX {
            remarks.push(format!("more than {MESSAGES_MAX} messages: the rest is left out"));
        }
        for message in messages.iter().take(MESSAGES_MAX) {
            let outcome = Gathered::of_content(message.get("content"), bytes_left).finish();
            bytes_left = bytes_left.saturating_sub(outcome.text.len());
            outcome.remarks.into_iter().for_each(|remark| remarks.push(remark));
            filled.messages.push(PromptMessage {
                role: match message.get("role").and_then(Value::as_str) {
                    Some("assistant") => Role::Assistant,
                    Some(_) | None => Role::User,
                },
                text: outcome.text,
                images: outcome.images,
                resource: embedded(message.get("content")),
            });
        }
        filled.remarks = remarks.finish();
        Ok(filled)
    }
}

/// The address of a resource that stands in the place of a text.
fn embedded(content: Option<&Value>) -> Option<String> {
    let block = content?.as_object()?;
    let is_resource = block.get("type").and_then(Value::as_str) == Some("resource");
    let uri = block.get("resource")?.get("uri")?.as_str()?;
    (is_resource && uri.len() <= NAME_BYTES_MAX).then(|| uri.to_owned())
}

impl Resource {
    /// Reads a resource, keeping at most `bytes_max` of its text: what is text of it, images, and remarks on the rest.
    ///
    /// # Errors
    /// Every way in which there is no result; [`ErrorKind::Protocol`] where it has no contents.
    pub async fn read(peer: &dyn Peer, uri: &str, patience: Duration, bytes_max: usize) -> Result<Outcome, McpError> {
        let mut params = Map::new();
        params.insert("uri".to_owned(), Value::String(uri.to_owned()));
        let result = peer.request("resources/read", params, patience, None).await?;
        match result.get("contents").and_then(Value::as_array) {
            Some(contents) => Ok(Gathered::of_resources(contents, bytes_max).finish()),
            None => Err(McpError::new(
                ErrorKind::Protocol,
                "resources/read was answered without contents",
            )),
        }
    }
}

impl Listed for Prompt {
    const METHOD: &'static str = "prompts/list";
    const FIELD: &'static str = "prompts";
    const CAPABILITY: &'static str = "prompts";
    const NOUN: &'static str = "prompt";

    fn read(item: &Value, remarks: &mut Remarks) -> Result<Self, String> {
        let item = object_of(item, Self::NOUN)?;
        let name = name_of(item, "name", Self::NOUN)?;
        let said = item.get("arguments").and_then(Value::as_array);
        let mut arguments: Vec<Argument> = Vec::new();
        for argument in said.into_iter().flatten().take(ARGUMENTS_MAX) {
            match Argument::read(argument, remarks) {
                Ok(argument) => arguments.push(argument),
                Err(reason) => remarks.push(reason),
            }
        }
        Ok(Self {
            description: description_of(item, &name, remarks),
            name,
            arguments,
        })
    }

    fn key(&self) -> &str {
        &self.name
    }

    fn bytes(&self) -> usize {
        let arguments = self.arguments.iter();
        let bytes: usize = arguments.map(|one| one.name.len() + one.description.len()).sum();
        self.name.len() + self.description.len() + bytes
    }
}

impl Argument {
    fn read(item: &Value, remarks: &mut Remarks) -> Result<Self, String> {
        let item = object_of(item, "prompt's argument")?;
        let name = name_of(item, "name", "prompt's argument")?;
        Ok(Self {
            description: description_of(item, &name, remarks),
            name,
            is_required: item.get("required").and_then(Value::as_bool).unwrap_or_default(),
        })
    }
}

impl Listed for Resource {
    const METHOD: &'static str = "resources/list";
    const FIELD: &'static str = "resources";
    const CAPABILITY: &'static str = "resources";
    const NOUN: &'static str = "resource";

    fn read(item: &Value, remarks: &mut Remarks) -> Result<Self, String> {
        let item = object_of(item, Self::NOUN)?;
        let uri = name_of(item, "uri", Self::NOUN)?;
        Ok(Self {
            name: short_text(item, "name").unwrap_or_else(|| uri.clone()),
            description: description_of(item, &uri, remarks),
            mime: short_text(item, "mimeType"),
            size: item.get("size").and_then(Value::as_u64),
            uri,
        })
    }

    fn key(&self) -> &str {
        &self.uri
    }

    fn bytes(&self) -> usize {
        self.uri.len() + self.name.len() + self.description.len() + self.mime.as_ref().map_or(0, String::len)
    }
}

impl Listed for Template {
    const METHOD: &'static str = "resources/templates/list";
    const FIELD: &'static str = "resourceTemplates";
    const CAPABILITY: &'static str = "resources";
    const NOUN: &'static str = "template";

    fn read(item: &Value, remarks: &mut Remarks) -> Result<Self, String> {
        let item = object_of(item, Self::NOUN)?;
        let uri_template = name_of(item, "uriTemplate", Self::NOUN)?;
        Ok(Self {
            name: short_text(item, "name").unwrap_or_else(|| uri_template.clone()),
            description: description_of(item, &uri_template, remarks),
            mime: short_text(item, "mimeType"),
            uri_template,
        })
    }

    fn key(&self) -> &str {
        &self.uri_template
    }

    fn bytes(&self) -> usize {
        self.uri_template.len() + self.name.len() + self.description.len() + self.mime.as_ref().map_or(0, String::len)
    }
}

/// A text that may be missing; one that is too long counts as missing.
fn short_text(item: &Map<String, Value>, key: &str) -> Option<String> {
    let text = item.get(key).and_then(Value::as_str)?;
    (!text.is_empty() && text.len() <= NAME_BYTES_MAX).then(|| text.to_owned())
}
