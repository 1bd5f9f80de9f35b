//! How requests to one endpoint are written: with which profile, and what of a conversation is told in another way.
//!
//! A profile says what an endpoint takes. An image that cannot be read, or a signature that is not accepted any more, says
//! nothing of the endpoint and yet would have every later request of its session refused (SPEC 3.7). Such a thing is
//! remembered by a [`Mark`] as long as this process runs: the image is told in words, the reply as if another model had given
//! it. What comes after it is sent as ever.

use crate::Request;
use crate::codec::names::fnv1a;
use crate::profile::ModelProfile;
use aish_core::image::Image;
use aish_core::message::{Message, Part};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Images or replies that are remembered. A session with more of them is asked with what is left.
const MARKS_MAX: usize = 4096;

/// Bytes at either end of an image by which it is known, besides its length: a whole one may have megabytes.
const IMAGE_END_BYTES: usize = 4096;

/// What stands for an image that was refused.
const IMAGE_REFUSED: &str = "[image left out: the server refused it]";

/// By what an image or a reply is known again, in whatever place of a conversation.
pub(super) type Mark = u64;

/// How requests are written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Way {
    pub(super) profile: Arc<ModelProfile>,
    /// Images that are told in words.
    pub(super) refused_images: BTreeSet<Mark>,
    pub(super) own_replies: OwnReplies,
}

/// What is done with the model's own replies where they have thinking or blocks that only it can read.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum OwnReplies {
    /// They go back as they were.
    AsTheyWere,
    /// These are told as if another model had given them.
    Refused(BTreeSet<Mark>),
    /// All are: newer ones were refused too.
    AllRefused,
}

impl Way {
    /// Everything is sent that the profile allows.
    pub(super) fn of(profile: ModelProfile) -> Self {
        Self {
            profile: Arc::new(profile),
            refused_images: BTreeSet::new(),
            own_replies: OwnReplies::AsTheyWere,
        }
    }

    /// The conversation as it is told; borrowed where nothing is told in another way.
    pub(super) fn messages<'m>(&self, messages: &'m [Message]) -> Cow<'m, [Message]> {
        if self.refused_images.is_empty() && self.own_replies == OwnReplies::AsTheyWere {
            return Cow::Borrowed(messages);
        }
        Cow::Owned(messages.iter().map(|message| self.message(message)).collect())
    }

    fn message(&self, message: &Message) -> Message {
        match message {
            Message::User { parts } => Message::User {
                parts: parts.iter().map(|part| self.part(part)).collect(),
            },
            Message::Assistant { parts, calls, model } => Message::Assistant {
                parts: parts.clone(),
                calls: calls.clone(),
                model: model.clone().filter(|_| !self.is_refused(parts)),
            },
            Message::Tool { .. } => self.result(message.clone()),
        }
    }

    /// A result has images beside its text only: one that was refused is told in that.
    fn result(&self, mut message: Message) -> Message {
        if let Message::Tool { output, parts, .. } = &mut message {
            let before = parts.len();
            parts.retain(|part| !self.is_refused_image(part));
            for _ in parts.len()..before {
                if !output.is_empty() {
                    output.push('\n');
                }
                output.push_str(IMAGE_REFUSED);
            }
        }
        message
    }

    fn is_refused_image(&self, part: &Part) -> bool {
        Image::of(part).is_some_and(|image| self.refused_images.contains(&mark_of_image(image.data)))
    }

    fn part(&self, part: &Part) -> Part {
        if self.is_refused_image(part) {
            Part::text(IMAGE_REFUSED)
        } else {
            part.clone()
        }
    }

    /// True for a reply whose own blocks were refused.
    fn is_refused(&self, parts: &[Part]) -> bool {
        let mark = mark_of_reply(parts);
        match &self.own_replies {
            OwnReplies::AsTheyWere => false,
            OwnReplies::Refused(marks) => mark.is_some_and(|mark| marks.contains(&mark)),
            OwnReplies::AllRefused => mark.is_some(),
        }
    }

    /// Tells these images in words.
    pub(super) fn refuse_images(&mut self, images: impl IntoIterator<Item = Mark>) {
        let room = MARKS_MAX.saturating_sub(self.refused_images.len());
        self.refused_images.extend(images.into_iter().take(room));
    }

    /// Tells these replies, which a request has, as another model's; and all of them once it was done in vain.
    pub(super) fn refuse_replies(&mut self, replies: &[Mark]) {
        let is_told = |marks: &BTreeSet<Mark>| replies.iter().all(|mark| marks.contains(mark));
        match &self.own_replies {
            OwnReplies::AsTheyWere if replies.is_empty() || replies.len() > MARKS_MAX => {}
            OwnReplies::AsTheyWere => self.own_replies = OwnReplies::Refused(replies.iter().copied().collect()),
            OwnReplies::Refused(marks) if is_told(marks) => {}
            OwnReplies::Refused(_) => self.own_replies = OwnReplies::AllRefused,
            OwnReplies::AllRefused => {}
        }
    }
}

/// An image of a request.
#[derive(Clone, Debug)]
pub(super) struct SentImage {
    pub(super) mark: Mark,
    /// Its length in base64.
    pub(super) data_bytes: usize,
    /// It was in a request that the server took.
    pub(super) was_taken: bool,
}

impl SentImage {
    /// The lengths it may have as a file: base64 says it to three bytes.
    pub(super) fn file_bytes(&self) -> [usize; 3] {
        let longest = self.data_bytes / 4 * 3;
        [longest, longest.saturating_sub(1), longest.saturating_sub(2)]
    }
}

fn mark_of_image(data: &str) -> Mark {
    let mut ends = format!("{} ", data.len());
    ends.extend(data.chars().take(IMAGE_END_BYTES));
    ends.extend(data.chars().rev().take(IMAGE_END_BYTES));
    fnv1a(&ends, 0)
}

/// The mark of a reply with something that only its own model can read; without, it has none.
fn mark_of_reply(parts: &[Part]) -> Option<Mark> {
    let mut mark = None;
    for part in parts {
        let sealed = match part {
            Part::Thinking { signature, .. } | Part::Call { signature, .. } => signature.as_deref().map(Cow::Borrowed),
            Part::Provider { block, .. } => Some(Cow::Owned(block.to_string())),
            Part::Text { .. } | Part::Context { .. } | Part::Image { .. } | Part::PartialCall { .. } => None,
        };
        if let Some(sealed) = sealed {
            mark = Some(fnv1a(&sealed, mark.unwrap_or_default()));
        }
    }
    mark
}

/// What an endpoint has taught this process.
#[derive(Debug)]
pub(super) struct Learned(Mutex<Lessons>);

#[derive(Debug)]
struct Lessons {
    way: Arc<Way>,
    taken_images: BTreeSet<Mark>,
}

impl Learned {
    pub(super) fn new(profile: ModelProfile) -> Self {
        Self(Mutex::new(Lessons {
            way: Arc::new(Way::of(profile)),
            taken_images: BTreeSet::new(),
        }))
    }

    /// The way to ask.
    pub(super) fn way(&self) -> Arc<Way> {
        Arc::clone(&self.lock().way)
    }

    /// Remembers that requests are taken when they are written like this.
    pub(super) fn learn(&self, way: Arc<Way>) {
        self.lock().way = way;
    }

    /// Remembers that the server can read these.
    pub(super) fn took_images(&self, images: &[SentImage]) {
        let mut lessons = self.lock();
        let refused = &Arc::clone(&lessons.way).refused_images;
        let room = MARKS_MAX.saturating_sub(lessons.taken_images.len());
        let taken = images.iter().map(|image| image.mark).take(room);
        lessons
            .taken_images
            .extend(taken.filter(|mark| !refused.contains(mark)));
    }

    /// The images of a request.
    pub(super) fn images_of(&self, request: Request<'_>) -> Vec<SentImage> {
        let lessons = self.lock();
        let mut images = Vec::new();
        for message in request.messages {
            let (Message::User { parts } | Message::Tool { parts, .. }) = message else {
                continue;
            };
            for image in Image::all(parts) {
                let mark = mark_of_image(image.data);
                images.push(SentImage {
                    mark,
                    data_bytes: image.data.len(),
                    was_taken: lessons.taken_images.contains(&mark),
                });
            }
        }
        images
    }

    fn lock(&self) -> MutexGuard<'_, Lessons> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The replies of a request that the model asked has given and that only it can read.
pub(super) fn own_replies_of(request: Request<'_>) -> Vec<Mark> {
    let own = |message: &Message| match message {
        Message::Assistant { parts, model, .. } if model.as_deref() == Some(request.model) => mark_of_reply(parts),
        Message::Assistant { .. } | Message::User { .. } | Message::Tool { .. } => None,
    };
    request.messages.iter().filter_map(own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use aish_core::message::MessageCall;

    fn image(data: &str) -> Part {
        Part::Image {
            media_type: "image/png".to_owned(),
            data: data.to_owned(),
        }
    }

    fn reply(parts: Vec<Part>) -> Message {
        Message::Assistant {
            parts,
            calls: Vec::<MessageCall>::new(),
            model: Some("m".to_owned()),
        }
    }

    /// SPEC 3.7: only what was refused is told in another way.
    #[test]
    fn what_is_told() {
        let signed = |signature: &str| Part::Call {
            index: 0,
            signature: Some(signature.to_owned()),
        };
        let plain = reply(vec![Part::text("hm")]);
        let messages = [
            Message::User {
                parts: vec![image("A"), image("B")],
            },
            reply(vec![signed("1")]),
            reply(vec![signed("2")]),
            plain.clone(),
        ];
        let request = |messages| Request {
            model: "m",
            system: "",
            messages,
            tools: &[],
            tool_choice: aish_core::message::ToolChoice::Auto,
            max_output_tokens: None,
            schema: None,
        };
        let profile = ModelProfile::openai_chat("http://127.0.0.1:8080/v1", "m");
        let mut way = Way::of(profile.clone());
        assert!(matches!(way.messages(&messages), Cow::Borrowed(_)));
        let learned = Learned::new(profile);
        let images: Vec<Mark> = learned
            .images_of(request(&messages))
            .iter()
            .map(|image| image.mark)
            .collect();
        assert_eq!(images, [mark_of_image("A"), mark_of_image("B")]);
        way.refuse_images(images.last().copied());
        let first = messages.get(..2).unwrap_or_default();
        way.refuse_replies(&own_replies_of(request(first)));
        let unknown = |parts| Message::Assistant {
            parts,
            calls: Vec::new(),
            model: None,
        };
        let expect = [
            Message::User {
                parts: vec![image("A"), Part::text(IMAGE_REFUSED)],
            },
            unknown(vec![signed("1")]),
            reply(vec![signed("2")]),
            plain.clone(),
        ];
        assert_eq!(*way.messages(&messages), expect);
        way.refuse_replies(&own_replies_of(request(&messages)));
        let told = way.messages(&messages).into_owned();
        assert_eq!(told.last_chunk(), Some(&[unknown(vec![signed("2")]), plain]));
    }

    /// SPEC 3.7, 6.5: an image of a result that was refused is told in its text; the result's other images still go along.
    #[test]
    fn images_of_results() {
        let result = |output: &str, parts| Message::Tool {
            call_id: aish_core::CallId::nth(1, 1),
            provider_id: None,
            name: "pics.draw".to_owned(),
            output: output.to_owned(),
            success: true,
            parts,
        };
        let messages = [result("drawn", vec![image("A"), image("B")])];
        let mut way = Way::of(ModelProfile::openai_chat("http://127.0.0.1:8080/v1", "m"));
        way.refuse_images([mark_of_image("A")]);
        let told = format!("drawn\n{IMAGE_REFUSED}");
        assert_eq!(*way.messages(&messages), [result(&told, vec![image("B")])]);
    }

    /// SPEC 3.7, 12: images are told apart, and what is remembered of them is bounded.
    #[test]
    fn marks() {
        let long = "x".repeat(3 * IMAGE_END_BYTES);
        let mut marks = BTreeSet::new();
        for data in [
            "",
            "A",
            "B",
            "AA",
            &long,
            &format!("{long}x"),
            &format!("y{long}"),
            &format!("{long}y"),
        ] {
            assert!(marks.insert(mark_of_image(data)), "{} bytes", data.len());
        }
        let mut way = Way::of(ModelProfile::openai_chat("http://127.0.0.1:8080/v1", "m"));
        way.refuse_images(0..2 * Mark::try_from(MARKS_MAX).unwrap_or_default());
        assert_eq!(way.refused_images.len(), MARKS_MAX);
    }
}
