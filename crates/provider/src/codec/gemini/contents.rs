//! The conversation as Gemini wants it: user and model take turns, a question first, and nothing is empty.
//!
//! | rule of the API | how it is kept |
//! |---|---|
//! | a conversation begins with the user | [`GO_ON`] is put before a reply |
//! | user and model alternate | neighbours of one role are one message |
//! | as many responses as calls, in their order, right behind them | they are kept until all are there; a missing one is told as [`NO_RESULT`] |
//! | a call of the third generation is signed, the first of a message at least | an unsigned one gets [`UNSIGNED`] |
//! | images of a response go into it, from the third generation on; before, behind the responses | see [`Generation`] |
//! | no empty parts | left out, but for one that is nothing but a signature |
//!
//! Signatures go back where they came: on the call, on the thought, or alone in a part without text
//! (<https://ai.google.dev/gemini-api/docs/thought-signatures>). Thinking that nobody signed stays here: the API has no use
//! for it.

use super::generation::Generation;
use super::wire::{Content, FunctionCall, FunctionResponse, InlineData, Part as Wire, Response, ResponsePart, Role};
use crate::codec::handover::GO_ON;
use crate::codec::names::WireNames;
use crate::codec::result::{self, Following, Shown};
use crate::codec::words;
use crate::profile::{Format, ModelProfile, ToolRole};
use aish_core::id::CallId;
use aish_core::image::Image;
use aish_core::message::{Message, MessageCall, Part, text_of};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashSet;

/// What stands for a signature where another model made the call, as the API's documentation says for such a case.
pub(super) const UNSIGNED: &str = "skip_thought_signature_validator";

/// What stands for a result that is not there.
const NO_RESULT: &str = "interrupted: the end of this call is not known";

/// Kinds of images the API takes (<https://ai.google.dev/gemini-api/docs/image-understanding>).
const IMAGE_TYPES: &[&str] = &["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"];

/// A block that we made of what stood beside the parts, see `decode`; it is no part.
pub(super) const GROUNDING: &str = "groundingMetadata";

/// Writes the messages of one request.
pub(super) struct Writer<'a, 'n> {
    asked: &'n str,
    profile: &'n ModelProfile,
    generation: Generation,
    names: &'n WireNames,
    tool_role: ToolRole,
    out: Vec<Content<'a>>,
    /// The calls of the last message of the model, in the order they were written.
    called: Vec<Called<'a>>,
    /// What the user says next, behind the responses.
    said: Vec<Wire<'a>>,
}

/// A call that waits for its response.
struct Called<'a> {
    call: &'a MessageCall,
    id: Option<&'a str>,
    name: String,
    response: Option<Response<'a>>,
    /// Images that go into the response.
    images: Vec<Image<'a>>,
}

impl<'a, 'n> Writer<'a, 'n> {
    /// `asked` is the configured name of the model.
    pub(super) fn new(asked: &'n str, profile: &'n ModelProfile, generation: Generation, names: &'n WireNames) -> Self {
        // A model that takes no functions takes no talk of them either.
        let tool_role = if profile.tools.is_yes() {
            profile.tool_role
        } else {
            ToolRole::Text
        };
        Self {
            asked,
            profile,
            generation,
            names,
            tool_role,
            out: Vec::new(),
            called: Vec::new(),
            said: Vec::new(),
        }
    }

    /// `instructions` come before everything, for models without a place for them; empty for none.
    pub(super) fn write(mut self, instructions: &'a str, messages: &'a [Message]) -> Vec<Content<'a>> {
        self.say(instructions);
        for message in messages {
            match message {
                Message::User { parts } => self.user(parts),
                Message::Assistant { parts, calls, model } => {
                    self.reply(parts, calls, model.as_deref() == Some(self.asked));
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
        self.close_user();
        if self.out.last().is_none_or(|last| last.role == Role::Model) {
            self.out.push(go_on());
        }
        self.out
    }

    fn say(&mut self, text: impl Into<Cow<'a, str>>) {
        let text = text.into();
        if !text.trim().is_empty() {
            self.said.push(Wire::text(text));
        }
    }

    /// Images first, as the API recommends, then what came along and what was asked.
    fn user(&mut self, parts: &'a [Part]) {
        let mut text = String::new();
        for part in parts {
            match part {
                Part::Context { label, text: context } => words::join(&mut text, &words::context(label, context)),
                Part::Image { media_type, data } if self.takes(media_type) => self.said.push(Wire::Image {
                    inline_data: inline_data(Image { media_type, data }),
                }),
                Part::Image { media_type, .. } => words::join(&mut text, &words::image_left_out(media_type)),
                Part::Text { .. }
                | Part::Thinking { .. }
                | Part::Provider { .. }
                | Part::Call { .. }
                | Part::PartialCall { .. } => {}
            }
        }
        words::join(&mut text, &text_of(parts));
        self.say(text);
    }

    fn takes(&self, media_type: &str) -> bool {
        self.profile.images.is_yes() && IMAGE_TYPES.contains(&media_type)
    }

    fn result(&mut self, call_id: &CallId, name: &str, mut shown: Shown<'a>, success: bool) {
        let waiting = self.called.iter_mut();
        let mut waiting = waiting.filter(|called| called.response.is_none());
        let called = waiting.find(|called| called.call.id == *call_id);
        let following = if called.is_none() || self.generation < Generation::Third {
            shown.take_images(name)
        } else {
            None
        };
        match called {
            Some(called) => {
                let response = if success { Response::Output } else { Response::Error };
                called.response = Some(response(shown.output));
                called.images = shown.images;
            }
            None => self.say(words::result(name, &shown.output)),
        }
        if let Some(Following { label, images }) = following {
            self.say(label);
            let images = images.into_iter().map(inline_data);
            self.said.extend(images.map(|inline_data| Wire::Image { inline_data }));
        }
    }

    /// A reply, its calls where they stood.
    fn reply(&mut self, parts: &'a [Part], calls: &'a [MessageCall], is_own: bool) {
        let mut out = Vec::new();
        let mut called = Vec::new();
        let mut written = HashSet::new();
        for part in parts {
            match part {
                Part::Call { index, signature } if written.insert(*index) => {
                    if let Some(call) = calls.get(*index) {
                        self.call(call, signature.as_deref(), is_own, &mut out, &mut called);
                    }
                }
                Part::Text { .. }
                | Part::Thinking { .. }
                | Part::Context { .. }
                | Part::Image { .. }
                | Part::Provider { .. }
                | Part::Call { .. }
                | Part::PartialCall { .. } => out.extend(model_part(part)),
            }
        }
        for (index, call) in calls.iter().enumerate() {
            if written.insert(index) {
                self.call(call, None, is_own, &mut out, &mut called);
            }
        }
        if out.is_empty() {
            return;
        }
        if self.called.is_empty()
            && self.said.is_empty()
            && let Some(last) = self.out.last_mut().filter(|last| last.role == Role::Model)
        {
            last.parts.append(&mut out);
            self.called = called;
            return;
        }
        self.close_user();
        if self.out.is_empty() {
            self.out.push(go_on());
        }
        self.out.push(Content {
            role: Role::Model,
            parts: out,
        });
        self.called = called;
    }

    fn call(
        &self,
        call: &'a MessageCall,
        signature: Option<&'a str>,
        is_own: bool,
        out: &mut Vec<Wire<'a>>,
        called: &mut Vec<Called<'a>>,
    ) {
        if self.tool_role == ToolRole::Text {
            out.push(Wire::text(words::call(call)));
            return;
        }
        let is_unsigned = self.generation >= Generation::Third && called.is_empty();
        let name = self.names.wire(&call.name).into_owned();
        // The API matches by order; an id is its own to give.
        let id = call.provider_id.as_deref().filter(|id| is_own && !id.is_empty());
        out.push(Wire::Call {
            function_call: FunctionCall {
                id,
                name: name.clone(),
                args: arguments(call),
            },
            thought_signature: signature.or(is_unsigned.then_some(UNSIGNED)),
        });
        called.push(Called {
            call,
            id,
            name,
            response: None,
            images: Vec::new(),
        });
    }

    /// Puts the message of the user under way among the messages, the responses first.
    fn close_user(&mut self) {
        let responses = std::mem::take(&mut self.called)
            .into_iter()
            .map(|called| Wire::Response {
                function_response: FunctionResponse {
                    id: called.id,
                    name: called.name,
                    response: called.response.unwrap_or(Response::Error(NO_RESULT.into())),
                    parts: called.images.into_iter().map(response_part).collect(),
                },
            });
        let mut parts: Vec<Wire<'_>> = responses.collect();
        parts.append(&mut self.said);
        if !parts.is_empty() {
            self.out.push(Content {
                role: Role::User,
                parts,
            });
        }
    }
}

fn inline_data(image: Image<'_>) -> InlineData<'_> {
    InlineData {
        mime_type: image.media_type,
        data: image.data,
    }
}

fn response_part(image: Image<'_>) -> ResponsePart<'_> {
    ResponsePart {
        inline_data: inline_data(image),
    }
}

fn go_on() -> Content<'static> {
    Content {
        role: Role::User,
        parts: vec![Wire::text(GO_ON)],
    }
}

/// A block of a reply that is no call, if it goes back.
fn model_part(part: &Part) -> Option<Wire<'_>> {
    let is_ours = |format: &str| format == Format::Gemini.name();
    match part {
        Part::Text { text } if !text.is_empty() => Some(Wire::text(text)),
        Part::Context { label, text } => Some(Wire::text(words::context(label, text))),
        Part::Image { media_type, .. } => Some(Wire::text(words::image_left_out(media_type))),
        Part::Thinking {
            text,
            signature: Some(signature),
            format: Some(format),
        } if is_ours(format) => Some(Wire::Text {
            text: text.into(),
            thought: !text.is_empty(),
            thought_signature: Some(signature),
        }),
        Part::Provider { format, block } if is_ours(format) && is_part(block) => Some(Wire::Verbatim(block)),
        Part::Text { .. }
        | Part::Thinking { .. }
        | Part::Provider { .. }
        | Part::Call { .. }
        | Part::PartialCall { .. } => None,
    }
}

fn is_part(block: &Value) -> bool {
    let fields = block.as_object();
    fields.is_some_and(|fields| !fields.is_empty() && !fields.contains_key(GROUNDING))
}

/// The arguments as an object, untouched; without one there are none.
fn arguments(call: &MessageCall) -> Option<&RawValue> {
    let raw: Option<&RawValue> = serde_json::from_str(&call.arguments).ok();
    raw.filter(|raw| raw.get().starts_with('{'))
}
