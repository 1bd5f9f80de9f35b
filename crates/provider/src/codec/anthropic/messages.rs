//! The messages of a request, in the order and form that the API insists on.
//!
//! What it refuses, and what is done here so that it does not have to (its reference, "Messages" and "Tool use"):
//!
//! | refused | done |
//! |---|---|
//! | a conversation that begins with the assistant | [`GO_ON`] is put before it |
//! | one that ends with it, but for a reply that was paused over a provider's tool | [`GO_ON`] is put behind it |
//! | results elsewhere than first in the next message of the user | they are put there, the rest of that message behind them |
//! | a result without its call | it is put as text |
//! | empty text, content or failure | left out; a blank result is [`NO_OUTPUT`] |
//! | thinking that nobody signed | left out |
//! | thinking at the end of a reply | left out: nothing came of it |
//! | a call of a provider's tool without its result, but in the last message | left out, and so is a result without its call |
//! | a last message of the assistant that ends in white space | trimmed |
//! | images of other kinds than [`IMAGE_TYPES`] | named in words |
//! | images in the result of a failed call | put behind the results, see <https://github.com/vellum-ai/vellum-assistant/pull/18387> |
//!
//! Neighbours of one role are joined, which is also what makes a paused reply and its continuation one message again.

use super::wire::{Block, Input, ResultContent, Role, Source, Wire};
use crate::codec::handover::GO_ON;
use crate::codec::names::WireNames;
use crate::codec::result::{self, Following, Shown};
use crate::codec::wire_ids::WireIds;
use crate::codec::words;
use crate::codec::words::IMAGE_TYPES;
use crate::profile::{Format, ModelProfile, Support, ToolRole};
use aish_core::id::CallId;
use aish_core::image::Image;
use aish_core::message::{Message, MessageCall, Part};
use serde_json::Value;
use std::collections::HashSet;

/// The result of a call that said nothing.
pub(super) const NO_OUTPUT: &str = "[no output]";

/// The messages, and what the rest of the request must know of them.
#[derive(Debug)]
pub(super) struct Written<'a> {
    pub(super) messages: Vec<Wire<'a>>,
    /// A reply of the turn under way has calls, or is to be continued, and does not begin with signed thinking.
    pub(super) is_thinking_missing: bool,
    /// The same, and another model said it.
    pub(super) is_handed_over: bool,
}

/// Writes the messages of one request.
pub(super) struct Writer<'a, 'n> {
    asked: &'n str,
    profile: &'n ModelProfile,
    names: &'n WireNames,
    tool_role: ToolRole,
    ids: WireIds<'a>,
    out: Vec<Wire<'a>>,
    /// The message of the user under way: the results it begins with, and the rest.
    results: Vec<Block<'a>>,
    said: Vec<Block<'a>>,
    /// The reply under way, of one message or of several that follow each other; it comes after `results` and `said`.
    reply: Vec<Block<'a>>,
    /// Whether another model said any of it.
    is_reply_foreign: bool,
    is_thinking_missing: bool,
    is_handed_over: bool,
}

impl<'a, 'n> Writer<'a, 'n> {
    /// `asked` is the configured name of the model, `tool_role` how its calls and results are put in this request.
    pub(super) fn new(asked: &'n str, profile: &'n ModelProfile, names: &'n WireNames, tool_role: ToolRole) -> Self {
        Self {
            asked,
            profile,
            names,
            tool_role,
            ids: WireIds::new(profile.wire_call_ids),
            out: Vec::new(),
            results: Vec::new(),
            said: Vec::new(),
            reply: Vec::new(),
            is_reply_foreign: false,
            is_thinking_missing: false,
            is_handed_over: false,
        }
    }

    /// `instructions` come before everything, for templates without a system role; empty for none.
    pub(super) fn write(mut self, instructions: &'a str, messages: &'a [Message]) -> Written<'a> {
        self.user(text_blocks(instructions));
        for message in messages {
            match message {
                Message::User { parts } => {
                    let blocks = self.user_blocks(parts);
                    self.user(blocks);
                }
                Message::Assistant { parts, calls, model } => {
                    self.is_reply_foreign |= model.as_deref() != Some(self.asked);
                    self.assistant(parts, calls);
                }
                Message::Tool {
                    call_id,
                    name,
                    output,
                    success,
                    parts,
                    ..
                } => {
                    let shown = result::shown(output, parts, self.profile, IMAGE_TYPES);
                    self.result(call_id, name, shown, *success);
                }
            }
        }
        if self
            .reply
            .iter()
            .any(|block| matches!(half(block), Some(Half::Call(_))))
        {
            self.close_reply(Place::Last);
        } else if !self.reply.is_empty() {
            self.user(text_blocks(GO_ON));
        }
        self.close_user();
        Written {
            messages: self.out,
            is_thinking_missing: self.is_thinking_missing,
            is_handed_over: self.is_handed_over,
        }
    }

    /// Adds to the message of the user, which ends the reply under way.
    fn user(&mut self, blocks: Vec<Block<'a>>) {
        if !blocks.is_empty() {
            self.close_reply(Place::Before);
            self.said.extend(blocks);
        }
    }

    fn result(&mut self, call_id: &CallId, name: &str, mut shown: Shown<'a>, success: bool) {
        let id = match self.tool_role {
            ToolRole::Native => self.ids.result(call_id),
            ToolRole::Text => None,
        };
        let following = if id.is_none() || !success {
            shown.take_images(name)
        } else {
            None
        };
        match id {
            None => self.user(text_blocks(words::result(name, &shown.output))),
            Some(tool_use_id) => {
                self.close_reply(Place::Before);
                self.results.push(Block::ToolResult {
                    tool_use_id,
                    content: result_content(shown),
                    is_error: !success,
                    cache_control: None,
                });
            }
        }
        if let Some(Following { label, images }) = following {
            self.said.push(Block::text(label));
            self.said.extend(images.into_iter().map(image_block));
        }
    }

    /// Puts the message of the user under way among the messages.
    fn close_user(&mut self) {
        if self.results.is_empty() {
            if self.said.is_empty() && self.out.is_empty() {
                self.said = text_blocks(GO_ON);
            }
            if self.said.is_empty() {
                return;
            }
            // A question begins another turn: what was missing before it is of no more interest.
            self.is_thinking_missing = false;
            self.is_handed_over = false;
        }
        let mut content = std::mem::take(&mut self.results);
        content.append(&mut self.said);
        self.out.push(Wire {
            role: Role::User,
            content,
        });
    }

    /// Adds a reply to the one under way, its calls where they stood.
    fn assistant(&mut self, parts: &'a [Part], calls: &'a [MessageCall]) {
        let mut written = HashSet::new();
        for part in parts {
            match part {
                Part::Text { text } => self.reply.extend(text_blocks(text)),
                Part::Context { label, text } => self.reply.extend(text_blocks(words::context(label, text))),
                Part::Image { media_type, .. } => self.reply.extend(text_blocks(words::image_left_out(media_type))),
                Part::Thinking {
                    text,
                    signature: Some(signature),
                    format: Some(format),
                } if is_ours(format) => self.reply.push(Block::Thinking {
                    thinking: text,
                    signature,
                }),
                Part::Provider { format, block }
                    if is_ours(format) && block.get("type").is_some_and(Value::is_string) =>
                {
                    self.reply.push(Block::Verbatim(block));
                }
                Part::Call { index, .. } if written.insert(*index) => {
                    if let Some(call) = calls.get(*index) {
                        self.call(call);
                    }
                }
                // Thinking that nobody signed is refused; a cut call is only evidence.
                Part::Call { .. } | Part::Thinking { .. } | Part::Provider { .. } | Part::PartialCall { .. } => {}
            }
        }
        for (index, call) in calls.iter().enumerate() {
            if !written.contains(&index) {
                self.call(call);
            }
        }
    }

    fn call(&mut self, call: &'a MessageCall) {
        match self.tool_role {
            ToolRole::Native => {
                let id = self.ids.call(call);
                self.reply.push(Block::ToolUse {
                    id,
                    name: self.names.wire(&call.name).into_owned(),
                    input: Input::of(&call.arguments),
                });
            }
            ToolRole::Text => self.reply.push(Block::text(words::call(call))),
        }
    }

    /// Puts the reply under way among the messages.
    fn close_reply(&mut self, place: Place) {
        let mut content = std::mem::take(&mut self.reply);
        let is_foreign = std::mem::take(&mut self.is_reply_foreign);
        keep_pairs(&mut content, place);
        drop_end(&mut content, place);
        if content.is_empty() {
            return;
        }
        self.close_user();
        let has_calls = content.iter().any(|block| matches!(block, Block::ToolUse { .. }));
        let is_thinking_due = has_calls || place == Place::Last;
        if is_thinking_due && !content.first().is_some_and(Block::is_thinking) {
            self.is_thinking_missing = true;
            self.is_handed_over |= is_foreign;
        }
        self.out.push(Wire {
            role: Role::Assistant,
            content,
        });
    }

    /// Images first, as the API recommends, then what came along and what was asked.
    fn user_blocks(&self, parts: &'a [Part]) -> Vec<Block<'a>> {
        let mut blocks = Vec::new();
        let mut text = String::new();
        for part in parts {
            match part {
                Part::Context { label, text: context } => words::join(&mut text, &words::context(label, context)),
                Part::Image { media_type, data } if self.takes(media_type) => {
                    blocks.push(image_block(Image { media_type, data }));
                }
                Part::Image { media_type, .. } => words::join(&mut text, &words::image_left_out(media_type)),
                Part::Text { .. }
                | Part::Thinking { .. }
                | Part::Provider { .. }
                | Part::Call { .. }
                | Part::PartialCall { .. } => {}
            }
        }
        words::join(&mut text, &aish_core::message::text_of(parts));
        blocks.extend(text_blocks(text));
        blocks
    }

    fn takes(&self, media_type: &str) -> bool {
        self.profile.images == Support::Yes && IMAGE_TYPES.contains(&media_type)
    }
}

/// Where a reply stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// A message of the user follows.
    Before,
    /// Nothing follows: it is to be continued.
    Last,
}

fn is_ours(format: &str) -> bool {
    format == Format::Anthropic.name()
}

/// Text alone stays text: a list says nothing more.
fn result_content(shown: Shown<'_>) -> ResultContent<'_> {
    if shown.images.is_empty() {
        return ResultContent::Text(if shown.output.trim().is_empty() {
            NO_OUTPUT.into()
        } else {
            shown.output
        });
    }
    let mut blocks = text_blocks(shown.output);
    blocks.extend(shown.images.into_iter().map(image_block));
    ResultContent::Blocks(blocks)
}

fn image_block(image: Image<'_>) -> Block<'_> {
    let Image { media_type, data } = image;
    Block::Image {
        source: Source::Base64 { media_type, data },
        cache_control: None,
    }
}

/// A block of that text; none where it is blank.
fn text_blocks<'a>(text: impl Into<std::borrow::Cow<'a, str>>) -> Vec<Block<'a>> {
    let text = text.into();
    if text.trim().is_empty() {
        Vec::new()
    } else {
        vec![Block::text(text)]
    }
}

/// Leaves out half pairs of a provider's tool: a call without result (`server_tool_use`), a result without call
/// (`web_search_tool_result`). The provider itself goes on with a call in the last message.
fn keep_pairs(content: &mut Vec<Block<'_>>, place: Place) {
    let (mut called, mut answered) = (HashSet::new(), HashSet::new());
    for block in content.iter() {
        match half(block) {
            Some(Half::Call(id)) => called.insert(id.to_owned()),
            Some(Half::Result(id)) => called.contains(id) && answered.insert(id.to_owned()),
            None => false,
        };
    }
    content.retain(|block| match half(block) {
        Some(Half::Call(id)) => place == Place::Last || answered.contains(id),
        Some(Half::Result(id)) => answered.contains(id),
        None => true,
    });
}

/// One half of what a provider's tool leaves.
enum Half<'a> {
    Call(&'a str),
    Result(&'a str),
}

fn half<'a>(block: &Block<'a>) -> Option<Half<'a>> {
    let Block::Verbatim(value) = block else {
        return None;
    };
    let kind = block.verbatim_type()?;
    let id = |key: &str| value.get(key).and_then(Value::as_str);
    if kind.ends_with("_tool_use") {
        id("id").map(Half::Call)
    } else if kind.ends_with("_tool_result") {
        id("tool_use_id").map(Half::Result)
    } else {
        None
    }
}

/// Takes away what a reply must not end with.
fn drop_end(content: &mut Vec<Block<'_>>, place: Place) {
    loop {
        match content.last_mut() {
            Some(block) if block.is_thinking() => {}
            Some(Block::Text { text, .. }) if place == Place::Last => {
                let end = text.trim_end().len();
                text.to_mut().truncate(end);
                return;
            }
            Some(_) | None => return,
        }
        content.pop();
    }
}
