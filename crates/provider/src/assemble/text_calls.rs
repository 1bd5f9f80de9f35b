//! Calls that a model wrote as text (SPEC 7.4): `<tool_call>{"name":…,"arguments":…}</tool_call>`.
//!
//! Small local models do this when their server does not understand their format. It is a guess about what was meant,
//! so it is a narrow one: the blocks are the last thing in the text, each begins its own line, they stand outside code
//! fences, and each one names a declared tool and has an object as arguments. If any of that fails, all of it is text.
//! The gate judges what comes out like every other call.

use crate::ReplyCall;
use serde::Deserialize;
use serde_json::value::RawValue;

const OPEN: &str = "<tool_call>";
const CLOSE: &str = "</tool_call>";

/// Calls found in a text.
#[derive(Debug, PartialEq, Eq)]
pub struct Found {
    /// How much of the text stays text.
    pub text_bytes: usize,
    /// The calls, in order.
    pub calls: Vec<ReplyCall>,
}

#[derive(Deserialize)]
struct Written<'a> {
    name: String,
    #[serde(borrow, alias = "parameters")]
    arguments: Option<&'a RawValue>,
}

/// The calls at the end of a text. `declared` gives the people's name of a declared tool.
pub fn find(text: &str, declared: impl Fn(&str) -> Option<String>) -> Option<Found> {
    let mut rest = text.trim_end();
    let mut calls = Vec::new();
    while let Some(body) = rest.strip_suffix(CLOSE) {
        // The last opening tag before the last closing one: a tag inside an argument makes the JSON fail to parse, and
        // then the text stays text.
        let at = body.rfind(OPEN)?;
        calls.push(parse(body.get(at + OPEN.len()..)?, &declared)?);
        let before = body.get(..at)?;
        let line = before.rsplit('\n').next().unwrap_or_default();
        let is_after_block = line.trim_end().ends_with(CLOSE);
        if !line.trim().is_empty() && !is_after_block {
            return None;
        }
        rest = before.trim_end();
    }
    if calls.is_empty() || is_in_fence(rest) {
        return None;
    }
    calls.reverse();
    Some(Found {
        text_bytes: rest.len(),
        calls,
    })
}

fn parse(body: &str, declared: impl Fn(&str) -> Option<String>) -> Option<ReplyCall> {
    let written: Written<'_> = serde_json::from_str(body.trim()).ok()?;
    let arguments = match written.arguments.map(RawValue::get) {
        None => "{}".to_owned(),
        Some(raw) if raw.starts_with('{') => raw.to_owned(),
        // Some models write the arguments as a string, as they are on the wire.
        Some(raw) => {
            let inner: String = serde_json::from_str(raw).ok()?;
            let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&inner).ok()?;
            drop(object);
            inner
        }
    };
    Some(ReplyCall {
        provider_id: None,
        name: declared(&written.name)?,
        arguments,
    })
}

/// Whether what follows this text stands inside a code fence.
fn is_in_fence(text: &str) -> bool {
    let fences = text.lines().filter(|line| {
        let line = line.trim_start_matches([' ', '>', '\t']);
        line.starts_with("```") || line.starts_with("~~~")
    });
    fences.count() % 2 == 1
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn calls(text: &str) -> Vec<(String, String)> {
        let declared = |name: &str| ["glob", "bash"].contains(&name).then(|| name.to_owned());
        let found = find(text, declared);
        let calls = found.into_iter().flat_map(|found| found.calls);
        calls.map(|call| (call.name, call.arguments)).collect()
    }

    fn call(name: &str, arguments: &str) -> (String, String) {
        (name.to_owned(), arguments.to_owned())
    }

    /// SPEC 7.4: calls written as text are calls, their arguments exactly as written.
    #[test]
    fn written_calls() {
        let one = "<tool_call>\n{\"name\": \"glob\", \"arguments\": {\"pattern\":  \"*\"}}\n</tool_call>\n";
        assert_eq!(calls(one), [call("glob", "{\"pattern\":  \"*\"}")]);
        let two = format!("I look.\n{one}<tool_call>{{\"name\":\"bash\",\"parameters\":{{}}}}</tool_call>");
        assert_eq!(calls(&two), [call("glob", "{\"pattern\":  \"*\"}"), call("bash", "{}")]);
        let string = r#"<tool_call>{"name":"glob","arguments":"{\"pattern\":\"a\"}"}</tool_call>"#;
        assert_eq!(calls(string), [call("glob", r#"{"pattern":"a"}"#)]);
        let bare = r#"<tool_call>{"name":"bash"}</tool_call>"#;
        assert_eq!(
            calls(&format!("{bare} {bare}")),
            [call("bash", "{}"), call("bash", "{}")]
        );
        let found = find(&two, |name| Some(name.to_owned())).unwrap();
        assert_eq!(&two[..found.text_bytes], "I look.");
    }

    /// SPEC 7.4: examples, quotations, unknown names and broken ones stay text.
    #[test]
    fn text_stays_text() {
        let block = "<tool_call>{\"name\":\"bash\",\"arguments\":{}}</tool_call>";
        for text in [
            format!("```\n{block}\n```"),
            format!("```\n{block}"),
            format!("> ~~~\n{block}"),
            format!("> {block}"),
            format!("Write `{block}`"),
            format!("Write {block}"),
            format!("{block}\nThat is how it is done."),
            block.replace("bash", "rm"),
            block.replace("{}", "[]"),
            block.replace("{}", "\"no\""),
            block.replace("}}", "}"),
            block.replace("</tool_call>", ""),
            format!("<tool_call>{{\"name\":\"rm\",\"arguments\":{{}}}}</tool_call>\n{block}"),
            String::new(),
        ] {
            assert_eq!(calls(&text), [], "{text}");
        }
    }
}
