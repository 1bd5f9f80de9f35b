//! One block of a reply while it comes.
//!
//! What a text or thinking block says goes on at once. A call's fragments do too, but an `input` that stood whole in its start
//! waits: deltas replace it. A block of the provider's own is kept as received, completed by its deltas, and goes on when it
//! stops.

use crate::codec::lenient::Str;
use crate::codec::{CallFragment, Piece, Sink};
use crate::profile::Format;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// How much more a byte of a block of the provider's own counts than one of text: as a tree of values it takes many more.
const OWN_BLOCK_WEIGHT: usize = 4;

/// A block.
#[derive(Debug)]
pub(super) enum Block {
    /// Text or thinking.
    Prose {
        /// Whether there was any thinking.
        has_thought: bool,
    },
    /// A call of one of our tools.
    Call {
        /// Its arguments as they stood in the start, until a delta comes.
        input: Option<String>,
    },
    /// Anything else: thinking that is encrypted, a provider's tool and its results, kinds we do not know.
    Own {
        /// As it started.
        start: Value,
        /// What its deltas add, by field.
        grown: BTreeMap<String, String>,
        /// The argument text of a provider's tool.
        input: String,
    },
}

/// What a start or a delta says of its block.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Said<'a> {
    #[serde(borrow)]
    r#type: Str<'a>,
    #[serde(borrow)]
    text: Str<'a>,
    #[serde(borrow)]
    thinking: Str<'a>,
    #[serde(borrow)]
    signature: Str<'a>,
    /// A delta's only.
    #[serde(borrow)]
    partial_json: Str<'a>,
    /// A start's only, as are those that follow.
    #[serde(borrow)]
    id: Str<'a>,
    #[serde(borrow)]
    name: Str<'a>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

impl Said<'_> {
    /// Whether it is of a call's arguments, or of a provider's tool's.
    pub(super) fn is_input(&self) -> bool {
        self.partial_json.0.is_some()
    }

    /// Whether it is of text or thinking.
    pub(super) fn is_prose(&self) -> bool {
        self.text.0.is_some() || self.thinking.0.is_some() || self.signature.0.is_some()
    }
}

impl Block {
    /// A block of text or thinking that was never started.
    pub(super) fn prose() -> Self {
        Self::Prose { has_thought: false }
    }

    /// The block that starts so, and the bytes it holds back.
    pub(super) fn start(raw: &RawValue, voice: &mut Voice<'_, '_>) -> (Self, usize) {
        let start: Said<'_> = object(Some(raw));
        match start.r#type.0.as_deref() {
            Some("text" | "thinking") => {
                let mut block = Self::prose();
                block.say(start, voice);
                (block, 0)
            }
            Some("tool_use") => {
                voice.say(Piece::Call(CallFragment {
                    index: Some(voice.number),
                    id: start.id.non_empty(),
                    name: start.name.non_empty(),
                    ..CallFragment::default()
                }));
                let input = start.input.and_then(whole_input);
                let bytes = input.as_ref().map_or(0, String::len);
                (Self::Call { input }, bytes)
            }
            Some(_) | None => {
                let block = Self::Own {
                    start: serde_json::from_str(raw.get()).unwrap_or_default(),
                    grown: BTreeMap::new(),
                    input: String::new(),
                };
                (block, raw.get().len() * OWN_BLOCK_WEIGHT)
            }
        }
    }

    /// Takes a delta; gives the bytes it holds back of it.
    pub(super) fn grow(&mut self, raw: &RawValue, delta: Said<'_>, voice: &mut Voice<'_, '_>) -> usize {
        match self {
            Self::Prose { .. } => {
                self.say(delta, voice);
                0
            }
            Self::Call { input } => {
                if let Some(arguments) = delta.partial_json.non_empty() {
                    *input = None;
                    voice.say(Piece::Call(CallFragment {
                        index: Some(voice.number),
                        arguments: Some(arguments),
                        ..CallFragment::default()
                    }));
                }
                0
            }
            Self::Own { grown, input, .. } => match delta.partial_json.0 {
                Some(piece) => {
                    input.push_str(&piece);
                    piece.len() * OWN_BLOCK_WEIGHT
                }
                // They are told from others by their type alone, and the text they are of is no block of this kind.
                None if delta.r#type.0.as_deref() == Some("citations_delta") => 0,
                None => {
                    add_fields(grown, raw);
                    raw.get().len() * OWN_BLOCK_WEIGHT
                }
            },
        }
    }

    /// The block is whole.
    pub(super) fn stop(self, voice: &mut Voice<'_, '_>) {
        match self {
            Self::Prose { .. } | Self::Call { input: None } => {}
            Self::Call { input: Some(input) } => voice.say(Piece::Call(CallFragment {
                index: Some(voice.number),
                arguments: Some(Cow::Owned(input)),
                ..CallFragment::default()
            })),
            Self::Own { start, grown, input } => {
                if let Some(block) = completed(start, grown, &input) {
                    voice.say(Piece::Block {
                        format: Format::Anthropic,
                        block,
                    });
                }
            }
        }
    }

    /// Says the text, thinking and signature of a start or a delta.
    fn say(&mut self, said: Said<'_>, voice: &mut Voice<'_, '_>) {
        let Self::Prose { has_thought } = self else {
            return;
        };
        if let Some(thinking) = said.thinking.non_empty() {
            *has_thought = true;
            voice.say(Piece::Thinking(thinking));
        }
        if let Some(text) = said.text.non_empty() {
            voice.say(Piece::Text(text));
        }
        // A signature that comes after another block spoke would be taken for that one's.
        if let Some(text) = said.signature.non_empty().filter(|_| !*has_thought || voice.is_last()) {
            *has_thought = true;
            voice.say(Piece::Signature {
                format: Format::Anthropic,
                text,
            });
        }
    }
}

/// Where the pieces of one block go.
pub(super) struct Voice<'v, 's> {
    /// The number of the block, unlike any other's of the reply.
    pub(super) number: u64,
    /// The number of the block that spoke last, if it was text or thinking.
    pub(super) last: &'v mut Option<u64>,
    /// What is behind.
    pub(super) sink: &'v mut Sink<'s>,
}

impl Voice<'_, '_> {
    fn is_last(&self) -> bool {
        *self.last == Some(self.number)
    }

    /// Says a piece; text and thinking of another block than the last are told from that one's.
    fn say(&mut self, piece: Piece<'_>) {
        let is_prose = matches!(piece, Piece::Text(_) | Piece::Thinking(_) | Piece::Signature { .. });
        if is_prose && !self.is_last() {
            (self.sink)(Piece::Boundary);
        }
        *self.last = is_prose.then_some(self.number);
        (self.sink)(piece);
    }
}

/// An object, or nothing of one: a field of another type than promised is a missing field.
pub(super) fn object<'a, T: Deserialize<'a> + Default>(raw: Option<&'a RawValue>) -> T {
    let text = raw.map_or("", RawValue::get);
    // A derived structure would also take a list for an object, its fields by position.
    if text.starts_with('{') {
        serde_json::from_str(text).unwrap_or_default()
    } else {
        T::default()
    }
}

/// The argument text that stands in a start; the empty object that announces deltas is none.
fn whole_input(raw: &RawValue) -> Option<String> {
    let text = raw.get();
    match text.as_bytes().first() {
        // Some gateways write the text instead of the object.
        Some(b'"') => serde_json::from_str(text).ok(),
        Some(b'{') if text.bytes().any(|byte| byte == b'"') => Some(text.to_owned()),
        Some(_) | None => None,
    }
    .filter(|text| !text.trim().is_empty())
}

/// Adds what a delta we do not know says to the fields of the same names.
fn add_fields(grown: &mut BTreeMap<String, String>, raw: &RawValue) {
    let fields: BTreeMap<String, Value> = object(Some(raw));
    for (name, value) in fields {
        if let (false, Value::String(text)) = (name == "type", value) {
            grown.entry(name).or_default().push_str(&text);
        }
    }
}

/// The block with what its deltas said; none where its input was cut.
fn completed(mut start: Value, grown: BTreeMap<String, String>, input: &str) -> Option<Value> {
    let fields = start.as_object_mut()?;
    if !input.trim().is_empty() {
        let input: serde_json::Map<String, Value> = serde_json::from_str(input).ok()?;
        fields.insert("input".to_owned(), Value::Object(input));
    }
    for (name, text) in grown {
        match fields.get_mut(&name) {
            Some(Value::String(start)) => start.push_str(&text),
            Some(_) | None => {
                fields.insert(name, Value::String(text));
            }
        }
    }
    Some(start)
}
