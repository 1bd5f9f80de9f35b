//! The messages of a conversation as chat completions want them, and as the templates behind them do.
//!
//! What the profile says an endpoint refuses is put in another way here, never left out: results as text (SPEC 7.5), images
//! in words, standing instructions in the first question. Results are text here: their images follow all results of the round
//! in a message of the user's (<https://github.com/openai/openai-node/issues/1030>). Neighbours of one role are joined. Where
//! roles must alternate strictly, a line is put between two messages that may not follow each other:
//!
//! | after | comes | between them |
//! |---|---|---|
//! | nothing | the assistant | a line of the user's |
//! | a result | the user | a line of the assistant's |

use super::wire::{Block, Content, ImageUrl, Said, Wire, WireCall, WireFunction};
use crate::codec::names::WireNames;
use crate::codec::result::{self, Following, Shown};
use crate::codec::wire_ids::WireIds;
use crate::codec::words;
use crate::profile::{Alternation, Format, ModelProfile, Support, SystemRole, ThinkingBack, ToolRole};
use aish_core::id::CallId;
use aish_core::image::Image;
use aish_core::message::{Message, MessageCall, Part};
use serde_json::value::RawValue;

/// What the user says before a conversation that begins with the assistant.
const BEGIN: &str = "(the conversation so far)";

/// What stands for the thinking of a reply that has none, where the field may not be missing. Not empty: Kimi counts an
/// empty one as missing.
const NO_THINKING: &str = " ";

/// Writes the messages of one request.
pub(super) struct Writer<'a, 'n> {
    profile: &'n ModelProfile,
    names: &'n WireNames,
    tool_role: ToolRole,
    out: Vec<Wire<'a>>,
    ids: WireIds<'a>,
    /// Images of the results under way: they must not come between these.
    following: Vec<Following<'a>>,
}

impl<'a, 'n> Writer<'a, 'n> {
    pub(super) fn new(profile: &'n ModelProfile, names: &'n WireNames) -> Self {
        Self {
            profile,
            names,
            // An endpoint that takes no tools takes no calls and results either.
            tool_role: match profile.tools {
                Support::Yes => profile.tool_role,
                Support::No => ToolRole::Text,
            },
            out: Vec::new(),
            ids: WireIds::new(profile.wire_call_ids),
            following: Vec::new(),
        }
    }

    pub(super) fn write(mut self, system: String, messages: &'a [Message]) -> Vec<Wire<'a>> {
        if !system.is_empty() {
            match self.profile.system_role {
                SystemRole::System => self.out.push(Wire::System { content: system }),
                SystemRole::Developer => self.out.push(Wire::Developer { content: system }),
                SystemRole::User => self.user(Content::Text(system)),
            }
        }
        for message in messages {
            match message {
                Message::User { parts } => {
                    self.follow();
                    self.user(self.user_content(parts));
                }
                Message::Assistant { parts, calls, .. } => {
                    self.follow();
                    self.assistant(parts, calls);
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
        self.follow();
        self.out
    }

    fn result(&mut self, call_id: &CallId, name: &str, mut shown: Shown<'a>) {
        self.following.extend(shown.take_images(name));
        match (self.tool_role, self.ids.result(call_id)) {
            (ToolRole::Native, Some(tool_call_id)) => self.out.push(Wire::Tool {
                tool_call_id,
                content: shown.output,
            }),
            (ToolRole::Native | ToolRole::Text, _) => {
                self.user(Content::Text(words::result(name, &shown.output)));
            }
        }
    }

    /// Puts the images of the results under way behind them.
    fn follow(&mut self) {
        for Following { label, images } in std::mem::take(&mut self.following) {
            let mut content = Content::Text(label);
            content.join(Content::Blocks(images.into_iter().map(block).collect()));
            self.user(content);
        }
    }

    fn user(&mut self, content: Content<'a>) {
        match (self.out.last_mut(), content) {
            (Some(Wire::User { content: last }), content) => last.join(content),
            (last, content) => {
                if matches!(last, Some(Wire::Tool { .. })) && self.profile.alternation == Alternation::Strict {
                    self.out.push(Wire::Assistant(Said {
                        content: words::SEEN.to_owned(),
                        ..Said::default()
                    }));
                }
                self.out.push(Wire::User { content });
            }
        }
    }

    /// A reply. One that said and called nothing that can be sent (thinking, a cut call, blanks) is left out.
    fn assistant(&mut self, parts: &'a [Part], calls: &'a [MessageCall]) {
        let mut said = Said {
            content: aish_core::message::text_of(parts),
            ..Said::default()
        };
        match self.tool_role {
            ToolRole::Native => {
                let written = calls.iter().enumerate();
                said.tool_calls = written
                    .map(|(index, call)| self.call(call, signature_of(parts, index)))
                    .collect();
            }
            ToolRole::Text => calls
                .iter()
                .for_each(|call| words::join(&mut said.content, &words::call(call))),
        }
        // Some templates refuse blanks too: https://github.com/OpenHands/OpenHands/issues/8685
        if said.content.trim().is_empty() && said.tool_calls.is_empty() {
            return;
        }
        match self.profile.thinking_back {
            ThinkingBack::Dropped => {}
            ThinkingBack::ReasoningContent => said.reasoning_content = Some(thinking_of(parts)),
        }
        said.own = own_fields(parts);
        self.say(said);
    }

    fn say(&mut self, said: Said<'a>) {
        match self.out.last_mut() {
            // The fields of its provider belong to one reply: two that have some cannot be one.
            Some(Wire::Assistant(last)) if last.tool_calls.is_empty() && (last.own.is_none() || said.own.is_none()) => {
                words::join(&mut last.content, &said.content);
                last.tool_calls = said.tool_calls;
                last.own = last.own.or(said.own);
                if let (Some(last), Some(next)) = (&mut last.reasoning_content, &said.reasoning_content) {
                    *last = format!("{}{}", last.trim(), next);
                }
            }
            None | Some(Wire::System { .. } | Wire::Developer { .. })
                if self.profile.alternation == Alternation::Strict =>
            {
                self.user(Content::Text(BEGIN.to_owned()));
                self.out.push(Wire::Assistant(said));
            }
            Some(
                Wire::System { .. }
                | Wire::Developer { .. }
                | Wire::User { .. }
                | Wire::Assistant(_)
                | Wire::Tool { .. },
            )
            | None => self.out.push(Wire::Assistant(said)),
        }
    }

    fn call(&mut self, call: &'a MessageCall, signature: Option<&'a str>) -> WireCall<'a> {
        WireCall {
            id: self.ids.call(call),
            r#type: "function",
            function: WireFunction {
                name: self.names.wire(&call.name).into_owned(),
                arguments: words::arguments(call),
            },
            extra_content: signature.and_then(|signature| serde_json::from_str(signature).ok()),
        }
    }

    /// What came along first, each piece under its label, then what was asked.
    fn user_content(&self, parts: &'a [Part]) -> Content<'a> {
        let mut text = String::new();
        for part in parts {
            if let Part::Context { label, text: context } = part {
                words::join(&mut text, &words::context(label, context));
            }
        }
        words::join(&mut text, &aish_core::message::text_of(parts));
        let mut images = Vec::new();
        for image in Image::all(parts) {
            if self.profile.images.is_yes() && words::IMAGE_TYPES.contains(&image.media_type) {
                images.push(block(image));
            } else {
                words::join(&mut text, &words::image_left_out(image.media_type));
            }
        }
        if images.is_empty() {
            return Content::Text(text);
        }
        let mut content = Content::Text(text);
        content.join(Content::Blocks(images));
        content
    }
}

fn block(image: Image<'_>) -> Block<'_> {
    let Image { media_type, data } = image;
    Block::ImageUrl {
        image_url: ImageUrl { media_type, data },
    }
}

/// The signature of the reply's nth call, if it is one of this format: an object, as the decoder keeps it.
fn signature_of(parts: &[Part], nth: usize) -> Option<&str> {
    parts.iter().find_map(|part| match part {
        Part::Call { index, signature } if *index == nth => signature.as_deref().filter(|text| is_object(text)),
        Part::Call { .. }
        | Part::Text { .. }
        | Part::Thinking { .. }
        | Part::Context { .. }
        | Part::Image { .. }
        | Part::Provider { .. }
        | Part::PartialCall { .. } => None,
    })
}

fn is_object(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok_and(|raw| raw.get().starts_with('{'))
}

/// What the model thought, for a field that may not be missing.
fn thinking_of(parts: &[Part]) -> String {
    let thoughts = parts.iter().filter_map(|part| match part {
        Part::Thinking { text, .. } => Some(text.as_str()),
        Part::Text { .. }
        | Part::Context { .. }
        | Part::Image { .. }
        | Part::Provider { .. }
        | Part::Call { .. }
        | Part::PartialCall { .. } => None,
    });
    let text: String = thoughts.collect();
    if text.is_empty() { NO_THINKING.to_owned() } else { text }
}

/// The fields beside the text that the provider wants back, see [`super::own`].
fn own_fields(parts: &[Part]) -> Option<&serde_json::Map<String, serde_json::Value>> {
    parts.iter().find_map(|part| match part {
        Part::Provider { format, block } if format == Format::OpenaiChat.name() => {
            block.as_object().filter(|fields| super::own::are_known(fields))
        }
        Part::Provider { .. }
        | Part::Text { .. }
        | Part::Thinking { .. }
        | Part::Context { .. }
        | Part::Image { .. }
        | Part::Call { .. }
        | Part::PartialCall { .. } => None,
    })
}
