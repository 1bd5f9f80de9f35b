//! The conversation as the Responses API wants it: one list of items, where a reply is as many items as it had.
//!
//! What both OpenAI and the servers that imitate it take, each of these rules learned from a refusal:
//! - An assistant's text is a whole output message (`type`, `id`, `status`, a list of `output_text`): llama.cpp takes no less,
//!   and the official SDK's types ask for it. Its id is made here: OpenAI's own would tie the message to reasoning that may
//!   be missing, and the call items carry none at all for the same reason.
//! - Texts that follow each other are one message: llama.cpp joins neighbours, and not every way of doing so works there.
//! - Reasoning goes back right before what it led to and is left out where nothing follows it ("provided without its required
//!   following item"), and where there is neither its encrypted nor its readable text: nothing is stored at the provider.
//! - Images of a result go into it at OpenAI's own endpoints only. Others take text there (llama.cpp: "Output of tool call
//!   should be 'Input text'", <https://github.com/ggml-org/llama.cpp/issues/23380>): for them the images follow all results of
//!   the round in a message of the user's.
//! - A result whose call is not there, and a provider's item that waits for an answer nobody here gives, are refused.

use crate::codec::names::WireNames;
use crate::codec::result::{self, Following, Shown};
use crate::codec::wire_ids::WireIds;
use crate::codec::{host, words};
use crate::profile::{Alternation, Format, ModelProfile, Support, SystemRole, ToolRole};
use aish_core::id::CallId;
use aish_core::image::Image;
use aish_core::message::{Message, MessageCall, Part};
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::borrow::Cow;

/// Items that another item must answer; we would have none.
const WAITING_ITEMS: &[&str] = &[
    "apply_patch_call",
    "computer_call",
    "custom_tool_call",
    "local_shell_call",
    "mcp_approval_request",
    "shell_call",
];

/// An item of the input.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Item<'a> {
    Message {
        role: Role,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<&'static str>,
        content: Vec<Content<'a>>,
    },
    FunctionCall {
        call_id: String,
        name: String,
        arguments: &'a str,
    },
    FunctionCallOutput {
        call_id: String,
        output: Output<'a>,
    },
    /// Readable reasoning of an open model.
    Reasoning {
        id: &'a str,
        summary: [(); 0],
        content: [ReasoningText<'a>; 1],
    },
    /// An item of the provider's as it was received, which says its type itself.
    #[serde(untagged)]
    Own(Value),
}

/// What a call gave: text, or a list where there are images.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Output<'a> {
    Text(Cow<'a, str>),
    Contents(Vec<Content<'a>>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Role {
    User,
    Developer,
    Assistant,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Content<'a> {
    InputText {
        text: String,
    },
    InputImage {
        image_url: DataUrl<'a>,
        detail: &'static str,
    },
    OutputText {
        text: String,
        annotations: [(); 0],
    },
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "reasoning_text")]
pub(super) struct ReasoningText<'a> {
    text: &'a str,
}

#[derive(Debug)]
pub(super) struct DataUrl<'a> {
    media_type: &'a str,
    data: &'a str,
}

impl Serialize for DataUrl<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Straight into the output: an image is megabytes.
        serializer.collect_str(&format_args!("data:{};base64,{}", self.media_type, self.data))
    }
}

/// The items of a conversation.
pub(super) fn items<'a>(
    system: &str,
    messages: &'a [Message],
    profile: &ModelProfile,
    names: &WireNames,
) -> Vec<Item<'a>> {
    let mut writer = Writer {
        profile,
        names,
        tool_role: tool_role(profile),
        ids: WireIds::new(profile.wire_call_ids),
        out: Vec::new(),
        following: Vec::new(),
    };
    match profile.system_role {
        _ if system.is_empty() => {}
        // It has a field of its own.
        SystemRole::System => {}
        SystemRole::Developer => writer.out.push(Item::Message {
            role: Role::Developer,
            id: None,
            status: None,
            content: vec![Content::InputText {
                text: system.to_owned(),
            }],
        }),
        SystemRole::User => writer.user(system.to_owned(), Vec::new()),
    }
    for message in messages {
        writer.message(message);
    }
    writer.follow();
    writer.out
}

/// An endpoint that takes no tools takes no calls and results either.
fn tool_role(profile: &ModelProfile) -> ToolRole {
    match profile.tools {
        Support::Yes => profile.tool_role,
        Support::No => ToolRole::Text,
    }
}

struct Writer<'a, 'n> {
    profile: &'n ModelProfile,
    names: &'n WireNames,
    tool_role: ToolRole,
    ids: WireIds<'a>,
    out: Vec<Item<'a>>,
    /// Images of the results under way that could not go into these.
    following: Vec<Following<'a>>,
}

impl<'a> Writer<'a, '_> {
    fn message(&mut self, message: &'a Message) {
        match message {
            Message::User { parts } => {
                self.follow();
                self.question(parts);
            }
            Message::Assistant { parts, calls, .. } => {
                self.follow();
                self.reply(parts, calls);
            }
            Message::Tool {
                call_id,
                name,
                output,
                parts,
                ..
            } => {
                let shown = result::shown(output, parts, self.profile, words::IMAGE_TYPES);
                self.result(call_id, name, shown);
            }
        }
    }

    fn result(&mut self, call_id: &CallId, name: &str, mut shown: Shown<'a>) {
        let call_id = match self.tool_role {
            ToolRole::Native => self.ids.result(call_id),
            ToolRole::Text => None,
        };
        if call_id.is_none() || !host::is_openai(&self.profile.base_url) {
            self.following.extend(shown.take_images(name));
        }
        let Some(call_id) = call_id else {
            return self.user(words::result(name, &shown.output), Vec::new());
        };
        let output = if shown.images.is_empty() {
            Output::Text(shown.output)
        } else {
            let mut contents = Vec::with_capacity(1 + shown.images.len());
            add_text(&mut contents, shown.output.into_owned());
            contents.extend(shown.images.into_iter().map(input_image));
            Output::Contents(contents)
        };
        self.out.push(Item::FunctionCallOutput { call_id, output });
    }

    /// Puts the images of the results under way behind them.
    fn follow(&mut self) {
        for Following { label, images } in std::mem::take(&mut self.following) {
            self.user(label, images.into_iter().map(input_image).collect());
        }
    }

    /// What came along first, then what was asked, then the images.
    fn question(&mut self, parts: &'a [Part]) {
        let mut text = String::new();
        let mut images = Vec::new();
        for part in parts {
            match part {
                Part::Context { label, text: context } => words::join(&mut text, &words::context(label, context)),
                Part::Image { media_type, data } if self.takes(media_type) => {
                    images.push(input_image(Image { media_type, data }));
                }
                Part::Image { .. }
                | Part::Text { .. }
                | Part::Thinking { .. }
                | Part::Provider { .. }
                | Part::Call { .. }
                | Part::PartialCall { .. } => {}
            }
        }
        words::join(&mut text, &aish_core::message::text_of(parts));
        for part in parts {
            if let Part::Image { media_type, .. } = part
                && !self.takes(media_type)
            {
                words::join(&mut text, &words::image_left_out(media_type));
            }
        }
        self.user(text, images);
    }

    fn takes(&self, media_type: &str) -> bool {
        self.profile.images.is_yes() && words::IMAGE_TYPES.contains(&media_type)
    }

    /// Something of the user's. Neighbours are one message.
    fn user(&mut self, text: String, images: Vec<Content<'a>>) {
        if text.is_empty() && images.is_empty() {
            return;
        }
        if matches!(self.out.last(), Some(Item::FunctionCallOutput { .. }))
            && self.profile.alternation == Alternation::Strict
        {
            self.say(words::SEEN);
        }
        if let Some(Item::Message {
            role: Role::User,
            content,
            ..
        }) = self.out.last_mut()
        {
            add_text(content, text);
            content.extend(images);
            return;
        }
        let mut content = Vec::with_capacity(1 + images.len());
        add_text(&mut content, text);
        content.extend(images);
        self.out.push(Item::Message {
            role: Role::User,
            id: None,
            status: None,
            content,
        });
    }

    /// A reply: its blocks in order, each call where it stood, the others after all.
    fn reply(&mut self, parts: &'a [Part], calls: &'a [MessageCall]) {
        let begin = self.out.len();
        let mut is_written = vec![false; calls.len()];
        for part in parts {
            match part {
                Part::Text { text } => self.say(text),
                Part::Thinking {
                    text,
                    signature: Some(id),
                    format: Some(format),
                } if format == Format::OpenaiResponses.name() && !text.is_empty() && !has_item(parts, id) => {
                    self.out.push(Item::Reasoning {
                        id,
                        summary: [],
                        content: [ReasoningText { text }],
                    });
                }
                Part::Provider { format, block } if format == Format::OpenaiResponses.name() => self.own(block),
                Part::Call { index, .. } => {
                    if let (Some(call), Some(written @ false)) = (calls.get(*index), is_written.get_mut(*index)) {
                        *written = true;
                        self.call(call);
                    }
                }
                // What is left of thinking is a summary: what it sums up goes back encrypted, or not at all.
                Part::Thinking { .. }
                | Part::Provider { .. }
                | Part::Context { .. }
                | Part::Image { .. }
                | Part::PartialCall { .. } => {}
            }
        }
        for (call, is_written) in calls.iter().zip(is_written) {
            if !is_written {
                self.call(call);
            }
        }
        while self.out.len() > begin && self.out.last().is_some_and(is_reasoning) {
            self.out.pop();
        }
    }

    fn say(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let said = Content::OutputText {
            text: text.to_owned(),
            annotations: [],
        };
        if let Some(Item::Message {
            role: Role::Assistant,
            content,
            ..
        }) = self.out.last_mut()
        {
            content.push(said);
            return;
        }
        self.out.push(Item::Message {
            role: Role::Assistant,
            id: Some(format!("msg_{}", self.out.len())),
            status: Some("completed"),
            content: vec![said],
        });
    }

    fn call(&mut self, call: &'a MessageCall) {
        match self.tool_role {
            ToolRole::Native => {
                let call_id = self.ids.call(call);
                self.out.push(Item::FunctionCall {
                    call_id,
                    name: self.names.wire(&call.name).into_owned(),
                    arguments: words::arguments(call),
                });
            }
            ToolRole::Text => self.say(&words::call(call)),
        }
    }

    fn own(&mut self, block: &Value) {
        let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
        let is_empty = kind == "reasoning" && !is_readable(block) && !is_encrypted(block);
        if kind.is_empty() || is_empty || WAITING_ITEMS.contains(&kind) {
            return;
        }
        let mut block = block.clone();
        // An answer's field; the reference's own examples leave it out when they send reasoning back.
        if let (true, Some(fields)) = (kind == "reasoning", block.as_object_mut()) {
            fields.remove("status");
        }
        self.out.push(Item::Own(block));
    }
}

fn input_image(image: Image<'_>) -> Content<'_> {
    let Image { media_type, data } = image;
    Content::InputImage {
        image_url: DataUrl { media_type, data },
        detail: "auto",
    }
}

/// Adds text to a user's message, to the text that is its last content if it is.
fn add_text(content: &mut Vec<Content<'_>>, text: String) {
    match content.last_mut() {
        _ if text.is_empty() => {}
        Some(Content::InputText { text: last }) => words::join(last, &text),
        Some(Content::InputImage { .. } | Content::OutputText { .. }) | None => {
            content.push(Content::InputText { text })
        }
    }
}

/// Whether the item of this id is among the blocks: then it says what the thinking says.
fn has_item(parts: &[Part], id: &str) -> bool {
    let is_it = |block: &Value| block.get("id").and_then(Value::as_str) == Some(id);
    parts
        .iter()
        .any(|part| matches!(part, Part::Provider { block, .. } if is_it(block)))
}

fn is_reasoning(item: &Item<'_>) -> bool {
    match item {
        Item::Reasoning { .. } => true,
        Item::Own(block) => block.get("type").and_then(Value::as_str) == Some("reasoning"),
        Item::Message { .. } | Item::FunctionCall { .. } | Item::FunctionCallOutput { .. } => false,
    }
}

fn is_encrypted(block: &Value) -> bool {
    let text = block.get("encrypted_content").and_then(Value::as_str);
    text.is_some_and(|text| !text.is_empty())
}

fn is_readable(block: &Value) -> bool {
    let content = block.get("content").and_then(Value::as_array);
    content.is_some_and(|content| !content.is_empty())
}
