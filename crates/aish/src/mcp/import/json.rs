//! Files with `mcpServers` (`.mcp.json` and `claude_desktop_config.json`, Cursor, Windsurf, Cline, Gemini CLI) and with `servers`
//! (VS Code's `mcp.json`, or below `mcp` in its settings): JSON, in which editors allow comments.

use super::fields::{Fields, quoted};
use super::variables::{Dialect, Variables};
use super::{Foreign, ImportError};
use crate::config::edit::NewServer;
use serde_json::{Map, Value};

/// Where servers are, one key below the other.
const PLACES: [&[&str]; 4] = [
    &["mcpServers"],
    &["servers"],
    &["mcp", "servers"],
    &["mcp", "mcpServers"],
];
/// The fields an address may be in.
const URLS: [&str; 3] = ["url", "serverUrl", "httpUrl"];
/// The fields the transport may be in.
const TYPES: [&str; 3] = ["type", "transport", "transportType"];

/// The servers of a file, by their names.
///
/// # Errors
/// It is not JSON, or not such a file.
pub(super) fn servers(text: &str) -> Result<Vec<Foreign>, ImportError> {
    let document: Value = serde_json::from_str(&without_comments(text)).map_err(|error| ImportError::Syntax {
        language: "JSON",
        message: error.to_string(),
    })?;
    let at = |keys: &&[&str]| {
        keys.iter()
            .try_fold(&document, |value, key| value.get(key))?
            .as_object()
    };
    let found = PLACES.iter().find_map(at).ok_or(ImportError::OtherShape)?;
    let each = found.iter().map(|(name, server)| Foreign {
        name: name.clone(),
        fields: Fields::new(object(server), Variables::new(Dialect::Editors)),
    });
    Ok(each.collect())
}

/// The fields of a server; one that is no object has none, and is left out for that.
fn object(server: &Value) -> Map<String, Value> {
    server.as_object().cloned().unwrap_or_default()
}

/// What a server of the file is here.
pub(super) fn server(fields: &mut Fields) -> Result<NewServer, String> {
    let is_disabled = fields.flag("disabled") == Some(true);
    let is_enabled = fields.flag("enabled") != Some(false) && !is_disabled;
    for name in TYPES {
        match fields.word(name).map(|kind| kind.to_ascii_lowercase()).as_deref() {
            None | Some("stdio" | "local" | "http" | "streamable-http" | "streamablehttp" | "streamable_http") => {}
            Some("sse") => return Err("its transport is the old one with an event stream (sse)".to_owned()),
            Some(other) => return Err(format!("aish has no transport {}", quoted(other))),
        }
    }
    let mut server = NewServer::at("", fields.place(&URLS)?);
    let (headers, env) = (fields.pairs("headers")?, fields.pairs("env")?);
    fields.give(&mut server, headers, env);
    let only = fields
        .words("includeTools")
        .or_else(|| fields.words("tools"))
        .unwrap_or_default();
    if !only.iter().any(|tool| tool == "*") {
        server.enabled_tools = only;
    }
    for name in ["excludeTools", "disabledTools"] {
        server.disabled_tools.extend(fields.words(name).unwrap_or_default());
    }
    fields.starts_in(&mut server)?;
    server.enabled = is_enabled;
    fields.refuse("envFile", "write its variables into env, or export them");
    for name in ["alwaysAllow", "autoApprove", "trust"] {
        fields.refuse(name, "aish asks itself; [mcp.auto_approve] allows");
    }
    fields.refuse("timeout", "clients differ in its unit; timeout_s counts seconds");
    fields.refuse("oauth", "aish mcp login finds it out");
    fields.forget(&["description", "gallery"]);
    Ok(server)
}

/// Where in such a text one is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Code,
    Text,
    /// After a backslash in a text.
    Escape,
    LineComment,
    BlockComment,
}

/// The text without comments and without commas before a closing bracket, which editors allow. Line numbers stay.
fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    // How much of `plain` there was when the last comma came, with nothing but space since.
    let mut comma: Option<usize> = None;
    let mut at = At::Code;
    let mut letters = text.trim_start_matches('\u{feff}').chars().peekable();
    while let Some(letter) = letters.next() {
        let next = letters.peek().copied();
        at = match (at, letter, next) {
            (At::Code, '/', Some('/')) => At::LineComment,
            (At::Code, '/', Some('*')) => {
                letters.next();
                At::BlockComment
            }
            (At::Code, '"', _) | (At::Escape, _, _) => At::Text,
            (At::Text, '\\', _) => At::Escape,
            (At::Text, '"', _) | (At::LineComment, '\n', _) => At::Code,
            (At::BlockComment, '*', Some('/')) => {
                letters.next();
                // A comment parts what stands beside it.
                plain.push(' ');
                at = At::Code;
                continue;
            }
            (At::Code | At::Text | At::LineComment | At::BlockComment, _, _) => at,
        };
        let is_comment = at == At::LineComment || at == At::BlockComment;
        if is_comment {
            if letter == '\n' {
                plain.push('\n');
            }
            continue;
        }
        if at == At::Code && matches!(letter, ']' | '}') {
            if let Some(comma) = comma.take() {
                plain.replace_range(comma..=comma, " ");
            }
        } else if at == At::Code && letter == ',' {
            comma = Some(plain.len());
        } else if !letter.is_whitespace() {
            comma = None;
        }
        plain.push(letter);
    }
    plain
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Comments and commas too many go; texts stay as they are; no input makes a panic.
    #[test]
    fn comments() {
        for (text, plain) in [
            (r#"{"a": "//x /* y */ \" , ]"}"#, r#"{"a": "//x /* y */ \" , ]"}"#),
            ("{\"a\": 1, // one\n}", "{\"a\": 1  \n}"),
            ("[1, /* a\nb */ ]", "[1  \n  ]"),
            ("{\"a\": [1,2,],}", "{\"a\": [1,2 ] }"),
            ("/* never ends", ""),
            ("\"never ends \\", "\"never ends \\"),
            ("[\"é,\", 1 , ]", "[\"é,\", 1   ]"),
            ("/", "/"),
        ] {
            assert_eq!(without_comments(text), plain, "{text}");
        }
    }

    proptest::proptest! {
        /// JSON is itself without comments.
        #[test]
        fn json_stays(text in ".*") {
            let json = serde_json::json!({"a": [text, {"b,]": text}], text.clone(): 1}).to_string();
            proptest::prop_assert_eq!(without_comments(&json), json);
            without_comments(&text);
        }
    }
}
