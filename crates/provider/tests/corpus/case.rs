//! One case of the corpus: a file with a header, a line of dashes, and the bytes a server sent.
//!
//! ```text
//! source: https://…            the report that taught us
//! quirk: what is odd about it  in one line
//! tools: glob, srv.read        the tools the request declared, as people name them
//! whole: "finish_reason"       optional: where the stream first says that the reply is whole; else by format
//! expect: {"text": "…"}        the canonical reply, to the line of dashes
//! ----
//! data: …
//! ```

use super::arrivals::is_document;
use super::reading::Heard;
use aish_core::event::{ReplyStop, Usage};
use aish_core::message::{Part, text_of};
use aish_provider::Reply;
use aish_provider::profile::Format;
use serde::Deserialize;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// What stands between the header and the stream.
const SEPARATOR: &str = "\n----\n";

/// A case.
#[derive(Debug)]
pub struct Case {
    /// Folder and file, for messages.
    pub name: String,
    /// The format.
    pub format: Format,
    /// Where it was reported.
    pub source: String,
    /// What is odd about it.
    pub quirk: String,
    /// The tools declared.
    pub tools: Vec<String>,
    /// What the server sent.
    pub body: Vec<u8>,
    /// What must come out.
    pub expect: Expect,
    whole: Option<String>,
}

/// A reply as a case tells it. What is left out must be empty, but for the last five, which are then not looked at.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Expect {
    /// All text blocks, joined.
    pub text: String,
    /// All thinking, joined.
    pub thinking: String,
    /// The calls that may run.
    pub calls: Vec<ExpectCall>,
    /// The calls that were cut and may not.
    pub partial: Vec<ExpectCall>,
    /// How it ended.
    pub stop: Option<ReplyStop>,
    /// The kind of failure the stream reported, as the ledger writes it.
    pub error: Option<String>,
    /// Words that the failure quotes.
    pub says: Option<String>,
    /// Why it was withheld or broke off.
    pub reason: Option<String>,
    /// Tokens.
    pub usage: Option<Usage>,
    /// Who answered.
    pub model: Option<String>,
    /// The blocks, one by one.
    pub parts: Option<Vec<Part>>,
}

/// A call as a case tells it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExpectCall {
    /// As people name it.
    pub name: String,
    /// As a string: exactly this text. As anything else: JSON of this meaning.
    pub arguments: Value,
    /// The provider's id; not looked at when left out.
    pub id: Option<String>,
}

impl Case {
    /// Every case, in a fixed order.
    pub fn all() -> Vec<Self> {
        Format::ALL.into_iter().flat_map(Self::of).collect()
    }

    /// The cases of a format, in a fixed order.
    pub fn of(format: Format) -> Vec<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/corpus")
            .join(format.name());
        let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let mut paths: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
        paths.sort();
        paths.iter().map(|path| Self::read(format, path)).collect()
    }

    fn read(format: Format, path: &Path) -> Self {
        let name = format!("{}/{}", format.name(), path.file_name().unwrap().display());
        let text = String::from_utf8(fs::read(path).unwrap()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let (header, body) = text.split_once(SEPARATOR).unwrap_or_else(|| panic!("{name}: no ----"));
        let (header, expect) = header
            .split_once("\nexpect:")
            .unwrap_or_else(|| panic!("{name}: no expect"));
        let field = |key: &str| {
            let lines = header.lines();
            let mut values = lines.filter_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
            values.next().map(|value| value.trim().to_owned())
        };
        let needed = |key: &str| field(key).unwrap_or_else(|| panic!("{name}: no {key}"));
        let tools = field("tools").unwrap_or_default();
        Self {
            format,
            source: needed("source"),
            quirk: needed("quirk"),
            tools: tools
                .split(',')
                .map(str::trim)
                .filter(|tool| !tool.is_empty())
                .map(str::to_owned)
                .collect(),
            whole: field("whole"),
            body: body.as_bytes().to_vec(),
            expect: serde_json::from_str(expect).unwrap_or_else(|error| panic!("{name}: {error}")),
            name,
        }
    }

    /// Where the stream first says that the reply is whole: before this byte no call may count.
    pub fn whole_at(&self) -> usize {
        let body = String::from_utf8_lossy(&self.body);
        if is_document(&self.body) {
            return body.trim_end().len() - 1;
        }
        let said = match (&self.whole, self.format) {
            (Some(whole), _) => body.find(whole.as_str()),
            (None, Format::OpenaiChat) => earliest(&body, &["\"finish_reason\":\"", "[DONE]"]),
            (None, Format::OpenaiResponses) => body.find("\"response.completed\""),
            (None, Format::Anthropic) => earliest(&body, &["\"stop_reason\":\"", "message_stop"]),
            (None, Format::Gemini) => body.find("\"finishReason\""),
        };
        said.unwrap_or(body.len())
    }

    /// Asserts that a reply is the one expected.
    #[track_caller]
    pub fn check(&self, heard: &Heard, how: &str) {
        let reply = &heard.reply;
        let what = format!("{}, {how}\n{}\n{reply:#?}", self.name, self.quirk);
        let expect = &self.expect;
        assert_eq!(text_of(&reply.parts), expect.text, "text of {what}");
        assert_eq!(thinking_of(reply), expect.thinking, "thinking of {what}");
        let calls: Vec<_> = reply.calls.iter().map(|call| (&*call.name, &*call.arguments)).collect();
        check_calls(&calls, &expect.calls, &format!("calls of {what}"));
        for (call, expect) in reply.calls.iter().zip(&expect.calls) {
            assert!(expect.id.is_none() || call.provider_id == expect.id, "id in {what}");
        }
        check_calls(&partial_of(reply), &expect.partial, &format!("cut calls of {what}"));
        assert_eq!(Some(reply.stop), expect.stop, "stop of {what}");
        let error = reply.error.as_ref().map(|error| error.kind.word());
        assert_eq!(error, expect.error, "error of {what}");
        if let (Some(error), Some(says)) = (&reply.error, &expect.says) {
            assert!(error.message.contains(says.as_str()), "words of {what}");
        }
        if expect.reason.is_some() {
            assert_eq!(reply.reason, expect.reason, "reason of {what}");
        }
        if let Some(usage) = &expect.usage {
            let got = reply.usage.clone().map(|usage| Usage { model: None, ..usage });
            assert_eq!(got.as_ref(), Some(usage), "usage of {what}");
        }
        if expect.model.is_some() {
            assert_eq!(reply.model, expect.model, "model of {what}");
        }
        if let Some(parts) = &expect.parts {
            assert_eq!(&reply.parts, parts, "blocks of {what}");
        }
        heard.has_calls();
        // Text that was shown cannot be taken back: it begins with the text of the reply, or with what a closing tag made
        // thinking of afterwards.
        let shown = heard.shown_text();
        let is_kept =
            shown.starts_with(&expect.text) || shown.starts_with(&format!("{}{}", expect.thinking, expect.text));
        assert!(is_kept, "shown of {what}: {:?}", heard.shown);
    }
}

fn earliest(text: &str, needles: &[&str]) -> Option<usize> {
    needles.iter().filter_map(|needle| text.find(needle)).min()
}

/// All thinking, joined.
pub fn thinking_of(reply: &Reply) -> String {
    let blocks = reply.parts.iter().map(|part| match part {
        Part::Thinking { text, .. } => text.as_str(),
        Part::Text { .. }
        | Part::Context { .. }
        | Part::Image { .. }
        | Part::Provider { .. }
        | Part::Call { .. }
        | Part::PartialCall { .. } => "",
    });
    blocks.collect()
}

/// Names and arguments of the calls that were cut.
pub fn partial_of(reply: &Reply) -> Vec<(&str, &str)> {
    let cut = reply.parts.iter().filter_map(|part| match part {
        Part::PartialCall { name, arguments } => Some((name.as_str(), arguments.as_str())),
        Part::Text { .. }
        | Part::Thinking { .. }
        | Part::Context { .. }
        | Part::Image { .. }
        | Part::Provider { .. }
        | Part::Call { .. } => None,
    });
    cut.collect()
}

#[track_caller]
fn check_calls(calls: &[(&str, &str)], expect: &[ExpectCall], what: &str) {
    let names: Vec<&str> = calls.iter().map(|call| call.0).collect();
    let expected: Vec<&str> = expect.iter().map(|call| call.name.as_str()).collect();
    assert_eq!(names, expected, "{what}");
    for ((_, arguments), expect) in calls.iter().zip(expect) {
        match &expect.arguments {
            Value::String(exact) => assert_eq!(arguments, exact, "{what}"),
            meaning @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                let read: Value = serde_json::from_str(arguments).unwrap_or_else(|error| panic!("{error}: {what}"));
                assert_eq!(&read, meaning, "{what}");
            }
        }
    }
}
