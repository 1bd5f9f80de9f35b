//! Pins: what a tool was when it was approved, so that one that changed since asks again and shows the difference (SPEC 6.8).
//!
//! A [`Pinned`] is kept beside an approval, under `alias.tool`. Two are the same tool when their digests are; where they are not,
//! [`difference`] says what changed. A command's arguments often hold tokens, so a pin has their digests only; of an address
//! it has the origin, since the rest may hold one too.

use crate::offer::remarks::shortened;
use crate::{Definition, Endpoint, StdioEndpoint};
use aish_core::action::{Digest, canonical_json};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Lines of a difference.
const LINES_MAX: usize = 40;
/// Characters of each side of a change.
const CHANGE_CHARS_MAX: usize = 400;
/// Characters around a change that are shown with it.
const AROUND_CHARS: usize = 24;

/// A tool as it was when it was approved. All text is the server's: hostile until escaped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pinned {
    /// Its bare name.
    pub name: String,
    /// What it said it does.
    pub description: String,
    /// The schema of its arguments.
    pub input_schema: Value,
    /// The program of its server, where that is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<PinnedProgram>,
    /// Where its server is, where that is no program: `https://host:port`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

/// Whoever remembers what tools were when they were approved.
pub trait Pins: Send + Sync {
    /// How a tool, by its `alias.tool`, differs from what it was: readable lines, escaped. `None` where it does not, and where
    /// it was never approved: the first sight is trusted, once a person or a rule has let it through.
    fn changed(&self, tool: &str, now: &Pinned) -> Option<String>;

    /// Remembers the tool as it is now, because a call of it was let through.
    fn pin(&self, tool: &str, now: &Pinned);
}

/// Nothing is remembered, so nothing ever changed.
pub struct NoPins;

impl Pins for NoPins {
    fn changed(&self, _tool: &str, _now: &Pinned) -> Option<String> {
        None
    }

    fn pin(&self, _tool: &str, _now: &Pinned) {}
}

/// A server's program as it was when one of its tools was approved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedProgram {
    /// The program.
    pub command: String,
    /// The digest of each of its arguments.
    pub arguments: Vec<Digest>,
    /// The names of its environment, sorted.
    pub environment: Vec<String>,
}

impl Pinned {
    /// Pins a tool, with where its server is: the program, or the address's origin.
    pub fn of(definition: &Definition, endpoint: &Endpoint) -> Self {
        let (program, origin) = match endpoint {
            Endpoint::Stdio(program) => (Some(PinnedProgram::of(program)), None),
            Endpoint::Http(http) => (None, Some(origin_of(&http.url))),
        };
        Self {
            name: definition.name.clone(),
            description: definition.description.clone(),
            input_schema: definition.input_schema.clone(),
            program,
            origin,
        }
    }

    /// Whether a definition is still what was pinned, wherever its server is.
    pub fn is_of(&self, definition: &Definition) -> bool {
        self.name == definition.name
            && self.description == definition.description
            && self.input_schema == definition.input_schema
    }

    /// SHA-256 over the canonical JSON of all of it: the same for the same tool, whatever the order of its schema's keys.
    pub fn digest(&self) -> Digest {
        match serde_json::to_value(self) {
            Ok(value) => Digest::of(&canonical(&value)),
            // Nothing in a pin fails to be written. If it ever did, the digest must still be this pin's alone.
            Err(_) => Digest::of(&format!("{self:?}")),
        }
    }
}

impl PinnedProgram {
    fn of(endpoint: &StdioEndpoint) -> Self {
        let mut words = endpoint.command.iter();
        let command = words.next().cloned().unwrap_or_default();
        let mut environment: Vec<String> = endpoint.environment.iter().map(|(name, _)| name.clone()).collect();
        environment.sort();
        Self {
            command,
            arguments: words.map(|word| Digest::of(word)).collect(),
            environment,
        }
    }
}

/// Scheme, host and port of an address; nothing of one that cannot be read, which nothing is fetched from either.
fn origin_of(url: &str) -> String {
    url::Url::parse(url).map_or_else(|_| String::new(), |url| url.origin().ascii_serialization())
}

/// What changed, one readable line each, escaped; none where the digests are the same.
pub fn difference(old: &Pinned, new: &Pinned) -> Vec<String> {
    let mut lines = Vec::new();
    program_difference(old.program.as_ref(), new.program.as_ref(), &mut lines);
    if let (Some(old), Some(new)) = (&old.origin, &new.origin) {
        push_change("server", old, new, &mut lines);
    }
    push_change("name", &old.name, &new.name, &mut lines);
    push_change("description", &old.description, &new.description, &mut lines);
    schema_difference(&old.input_schema, &new.input_schema, &mut lines);
    if lines.len() > LINES_MAX {
        let more = lines.len() - LINES_MAX;
        lines.truncate(LINES_MAX);
        lines.push(format!("… and {more} more changes"));
    }
    lines
}

fn program_difference(old: Option<&PinnedProgram>, new: Option<&PinnedProgram>, lines: &mut Vec<String>) {
    let (old, new) = match (old, new) {
        (None, None) => return,
        (Some(old), None) => {
            return lines.push(format!(
                "the server was a program: {}",
                shortened(&old.command, CHANGE_CHARS_MAX)
            ));
        }
        (None, Some(new)) => {
            return lines.push(format!(
                "the server is a program now: {}",
                shortened(&new.command, CHANGE_CHARS_MAX)
            ));
        }
        (Some(old), Some(new)) => (old, new),
    };
    push_change("program", &old.command, &new.command, lines);
    if old.arguments.len() != new.arguments.len() {
        lines.push(format!(
            "program: {} arguments → {}",
            old.arguments.len(),
            new.arguments.len()
        ));
    }
    let both = old.arguments.iter().zip(&new.arguments).enumerate();
    for (n, _) in both.filter(|(_, (old, new))| old != new) {
        lines.push(format!("program: argument {} is another", n + 1));
    }
    for name in new.environment.iter().filter(|name| !old.environment.contains(name)) {
        lines.push(format!("environment: {} added", shortened(name, CHANGE_CHARS_MAX)));
    }
    for name in old.environment.iter().filter(|name| !new.environment.contains(name)) {
        lines.push(format!("environment: {} removed", shortened(name, CHANGE_CHARS_MAX)));
    }
}

fn schema_difference(old: &Value, new: &Value, lines: &mut Vec<String>) {
    let nothing = Map::new();
    let properties = |schema: &Value| schema.get("properties").and_then(Value::as_object).cloned();
    let (olds, news) = (properties(old).unwrap_or_default(), properties(new).unwrap_or_default());
    for (name, schema) in &news {
        let named = format!("parameter {}", shortened(name, CHANGE_CHARS_MAX));
        match olds.get(name) {
            Some(before) => push_change(&named, &canonical(before), &canonical(schema), lines),
            None => lines.push(format!(
                "{named} added: {}",
                shortened(&canonical(schema), CHANGE_CHARS_MAX)
            )),
        }
    }
    for name in olds.keys().filter(|name| !news.contains_key(*name)) {
        lines.push(format!("parameter {} removed", shortened(name, CHANGE_CHARS_MAX)));
    }
    let rest = |schema: &Value| {
        let mut map = schema.as_object().unwrap_or(&nothing).clone();
        map.remove("properties");
        canonical(&Value::Object(map))
    };
    push_change("schema", &rest(old), &rest(new), lines);
}

fn canonical(value: &Value) -> String {
    let mut text = String::new();
    canonical_json(value, &mut text);
    text
}

/// Says how a text changed: what is the same at both its ends is left out, so that a change is seen wherever it is.
fn push_change(what: &str, old: &str, new: &str, lines: &mut Vec<String>) {
    if old == new {
        return;
    }
    let (old, new): (Vec<char>, Vec<char>) = (old.chars().collect(), new.chars().collect());
    let same_at_begin = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - same_at_begin;
    let backwards = old.iter().rev().zip(new.iter().rev()).take(rest);
    let same_at_end = backwards.take_while(|(a, b)| a == b).count();
    let side = |text: &[char]| changed_part(text, same_at_begin, same_at_end);
    lines.push(format!("{what}: {} → {}", side(&old), side(&new)));
}

/// The part of a text between two numbers of characters at its ends, with a little around it, in quotation marks.
fn changed_part(text: &[char], same_at_begin: usize, same_at_end: usize) -> String {
    let from = same_at_begin.saturating_sub(AROUND_CHARS);
    let to = (text.len() - same_at_end + AROUND_CHARS).min(text.len());
    let part: String = text.get(from..to).unwrap_or_default().iter().collect();
    let before = if from > 0 { "…" } else { "" };
    let after = if to < text.len() { "…" } else { "" };
    let more = (to - from).saturating_sub(CHANGE_CHARS_MAX);
    let left_out = if more > 0 {
        format!(" ({more} more characters)")
    } else {
        String::new()
    };
    format!("\"{before}{}{after}\"{left_out}", shortened(&part, CHANGE_CHARS_MAX))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::Hints;
    use aish_core::secret::Secret;
    use serde_json::json;

    fn tool(description: &str, input_schema: Value) -> Definition {
        Definition {
            name: "send".into(),
            description: description.into(),
            input_schema,
            output_schema: None,
            hints: Hints::default(),
        }
    }

    fn program(command: &[&str], environment: &[&str]) -> StdioEndpoint {
        StdioEndpoint {
            command: command.iter().map(|&word| word.to_owned()).collect(),
            environment: environment
                .iter()
                .map(|&name| (name.to_owned(), Secret::new("s3cret")))
                .collect(),
            directory: "/".into(),
        }
    }

    fn pinned(description: &str, schema: Value) -> Pinned {
        at("https://a.example/mcp", description, schema)
    }

    fn at(url: &str, description: &str, schema: Value) -> Pinned {
        let endpoint = Endpoint::Http(crate::HttpEndpoint {
            url: url.into(),
            token: None,
            headers: Vec::new(),
        });
        Pinned::of(&tool(description, schema), &endpoint)
    }

    fn check(old: &Pinned, new: &Pinned, expect: &[&str]) {
        assert_eq!(difference(old, new), expect);
        assert_eq!(old.digest() == new.digest(), expect.is_empty());
    }

    /// SPEC 6.8: a pin is the same for the same tool, and survives being stored.
    #[test]
    fn the_same_tool() {
        let old = pinned("Sends", json!({"type": "object", "properties": {"a": {}, "b": {}}}));
        let new: Value = serde_json::from_str(r#"{"properties":{"b":{},"a":{}},"type":"object"}"#).unwrap();
        check(&old, &pinned("Sends", new), &[]);
        let stored: Pinned = serde_json::from_str(&serde_json::to_string(&old).unwrap()).unwrap();
        check(&old, &stored, &[]);
    }

    /// SPEC 6.8: a changed description or schema shows the difference.
    #[test]
    fn changes_of_a_tool() {
        let schema = |properties: Value| json!({"type": "object", "properties": properties});
        let old = pinned("Sends a mail", schema(json!({"to": {"type": "string"}, "cc": {}})));
        check(
            &old,
            &pinned(
                "Sends a mail",
                schema(json!({"to": {"type": "string", "minLength": 1}, "bcc": {}})),
            ),
            &[
                "parameter bcc added: {}",
                r#"parameter to: "{"type":"string"}" → "{"minLength":1,"type":"string"}""#,
                "parameter cc removed",
            ],
        );
        check(
            &old,
            &pinned("Sends all mail", old.input_schema.clone()),
            &[r#"description: "Sends a mail" → "Sends all mail""#],
        );
        let mut required = old.input_schema.clone();
        required["required"] = json!(["to"]);
        check(
            &old,
            &pinned("Sends a mail", required),
            &[r#"schema: "{"type":"object"}" → "{"required":["to"],"type":"object"}""#],
        );
    }

    /// SPEC 6.8: a change at the end of a long description is seen, and nothing in it acts on a terminal.
    #[test]
    fn a_change_far_behind() {
        let long = "x".repeat(5_000);
        let lines = difference(
            &pinned(&long, json!({})),
            &pinned(&format!("{long} \u{1b}[2Jand the keys"), json!({})),
        );
        let around = "x".repeat(AROUND_CHARS);
        assert_eq!(
            lines,
            [format!(r#"description: "…{around}" → "…{around} \x1b[2Jand the keys""#)]
        );
        let flood = format!("{long}{}", "y".repeat(9_000));
        let lines = difference(&pinned(&long, json!({})), &pinned(&flood, json!({})));
        assert!(lines[0].chars().count() < 2 * CHANGE_CHARS_MAX, "{lines:?}");
        assert!(lines[0].ends_with("(8624 more characters)"), "{lines:?}");
    }

    /// SPEC 6.8: a difference has an end.
    #[test]
    fn many_changes() {
        let properties: Map<String, Value> = (0..500).map(|n| (format!("p{n}"), json!({}))).collect();
        let lines = difference(
            &pinned("", json!({"type": "object", "properties": {}})),
            &pinned("", json!({"type": "object", "properties": properties})),
        );
        assert_eq!(lines.len(), LINES_MAX + 1);
        assert_eq!(lines.last().unwrap(), "… and 460 more changes");
    }

    /// SPEC 6.8: for a child process the command, its arguments and the names of its environment count; no value is kept.
    #[test]
    fn changes_of_a_program() {
        let with = |endpoint: StdioEndpoint| Pinned::of(&tool("", json!({})), &Endpoint::Stdio(endpoint));
        let old = with(program(&["npx", "--token", "hunter2"], &["HOME", "B"]));
        check(
            &old,
            &with(program(&["npx", "--token", "hunter2"], &["B", "HOME"])),
            &[],
        );
        check(
            &old,
            &with(program(&["node", "--token", "hunter3", "x"], &["HOME", "C"])),
            &[
                r#"program: "npx" → "node""#,
                "program: 2 arguments → 3",
                "program: argument 2 is another",
                "environment: C added",
                "environment: B removed",
            ],
        );
        check(&pinned("", json!({})), &old, &["the server is a program now: npx"]);
        let stored = serde_json::to_string(&old).unwrap();
        assert!(!stored.contains("hunter2") && !stored.contains("s3cret"), "{stored}");
    }

    /// SPEC 6.8: another server under the same alias is another tool; another path of the same one is not, and no part of an
    /// address that may hold a secret is kept.
    #[test]
    fn changes_of_an_address() {
        let old = at("https://a.example/mcp?key=hunter2", "", json!({}));
        check(&old, &at("https://a.example:443/v2", "", json!({})), &[]);
        check(
            &old,
            &at("http://a.example/mcp", "", json!({})),
            &[r#"server: "https://a.example" → "http://a.example""#],
        );
        assert!(!serde_json::to_string(&old).unwrap().contains("hunter2"));
    }
}
