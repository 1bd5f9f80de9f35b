//! `--schema FILE`: replies that are JSON and fit a JSON Schema (structured output, for scripts).
//!
//! Endpoints promise more than they keep, and local models promise nothing: whatever the wire says, the reply is held against
//! the schema as the user wrote it. Small models put fences or a sentence around their JSON; that is taken off.

use crate::failure::Failure;
use aish_core::sanitize;
use jsonschema::Validator;
use serde_json::Value;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

/// Bytes of a schema; more is none that an endpoint takes.
const SCHEMA_BYTES_MAX: u64 = 1 << 20;
/// Things wrong with a reply that are told.
const PROBLEMS_MAX: usize = 5;
/// Characters of each: the validator quotes the value, however long.
const PROBLEM_CHARS_MAX: usize = 300;
/// What begins and ends a block of code in Markdown.
const FENCE: &str = "```";

/// A JSON Schema, ready to hold replies against.
pub struct Schema {
    value: Arc<Value>,
    validator: Validator,
}

/// A reply that fits.
#[derive(Debug, PartialEq)]
pub struct Fitting<'a> {
    /// The JSON as the model wrote it, with nothing around it.
    pub text: &'a str,
    /// The same, read.
    pub value: Value,
}

impl Schema {
    /// Reads a schema from a file.
    ///
    /// # Errors
    /// It cannot be read, is no JSON or no JSON Schema: a usage error that names the file.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let mut text = String::new();
        let read = File::open(path).and_then(|file| file.take(SCHEMA_BYTES_MAX + 1).read_to_string(&mut text));
        read.map_err(|error| Failure::usage(format!("--schema: cannot read {shown}: {error}")))?;
        if u64::try_from(text.len()).unwrap_or(u64::MAX) > SCHEMA_BYTES_MAX {
            let problem = format!("--schema: {shown} has more than {SCHEMA_BYTES_MAX} bytes");
            return Err(Failure::usage(problem));
        }
        Self::parse(&text).map_err(|problem| Failure::usage(format!("--schema: {shown} {problem}")))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| format!("is not JSON: {error}"))?;
        if !value.is_object() {
            return Err("is no JSON Schema: it must be an object".to_owned());
        }
        let validator = jsonschema::validator_for(&value)
            .map_err(|error| format!("is no JSON Schema that can be used: {}", told(&error.to_string())))?;
        Ok(Self {
            value: Arc::new(value),
            validator,
        })
    }

    /// The schema as the user wrote it.
    pub fn value(&self) -> Arc<Value> {
        Arc::clone(&self.value)
    }

    /// Holds a reply against it.
    ///
    /// # Errors
    /// What is wrong, in words for the model as well as for a person; one line.
    pub fn check<'a>(&self, reply: &'a str) -> Result<Fitting<'a>, String> {
        let text = bare(reply);
        let value: Value = serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
        let problems: Vec<String> = self
            .validator
            .iter_errors(&value)
            .take(PROBLEMS_MAX)
            .map(|error| {
                let place = error.instance_path().to_string();
                let place = if place.is_empty() { "the whole" } else { &place };
                format!("{}: {}", told(place), told(&error.to_string()))
            })
            .collect();
        if problems.is_empty() {
            Ok(Fitting { text, value })
        } else {
            Err(problems.join("; "))
        }
    }
}

/// What a model is told of a reply that does not fit.
pub fn ask_again(problem: &str) -> String {
    format!(
        "Your reply does not fit the JSON Schema it must fit: {problem}. Answer again with the JSON alone: no other text, no \
         code fence."
    )
}

fn told(text: &str) -> String {
    let text: String = text.chars().take(PROBLEM_CHARS_MAX).collect();
    sanitize::single_line(&text).into_owned()
}

/// A reply without what stands around its JSON: the one block of code in it, if it has one and begins like no JSON itself.
fn bare(reply: &str) -> &str {
    let reply = reply.trim();
    if reply.starts_with(['{', '[', '"']) {
        return reply;
    }
    let mut pieces = reply.split(FENCE);
    match (pieces.next(), pieces.next(), pieces.next(), pieces.next()) {
        // The rest of the fence's own line names the language.
        (Some(_), Some(block), Some(_), None) => block.split_once('\n').map_or(reply, |(_, body)| body.trim()),
        _ => reply,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn schema() -> Schema {
        let text = r#"{"type":"object","properties":{"name":{"type":"string"},"count":{"type":"integer","minimum":1}},
            "required":["name"],"additionalProperties":false}"#;
        Schema::parse(text).unwrap()
    }

    /// SPEC 10.3: what models put around JSON is taken off; the JSON itself stays as it was written.
    #[test]
    fn what_fits() {
        let check = |reply: &str, expect: &str| {
            let schema = schema();
            let fitting = schema.check(reply).unwrap();
            assert_eq!(fitting.text, expect);
            assert_eq!(fitting.value, serde_json::from_str::<Value>(expect).unwrap());
        };
        check(r#"{"name":"a"}"#, r#"{"name":"a"}"#);
        check("\n {\"name\": \"``` a\"}\n", "{\"name\": \"``` a\"}");
        check("```json\n{\"name\":\"a\"}\n```", r#"{"name":"a"}"#);
        check("```\n{\"name\":\"a\"}\n```\n", r#"{"name":"a"}"#);
        check(
            "Here it is:\n```json\n{\"count\":2,\"name\":\"a\"}\n```\nDone.",
            r#"{"count":2,"name":"a"}"#,
        );
    }

    /// SPEC 10.4: what does not fit is told by place, bounded and in one line, whatever the model wrote.
    #[test]
    fn what_does_not() {
        let problem = |reply: &str| schema().check(reply).unwrap_err();
        assert!(problem("I would rather not.").starts_with("it is not JSON: "));
        assert!(problem("").starts_with("it is not JSON: "));
        assert!(problem("```json\n{\"name\":\"a\"}\n```\n```\n{}\n```").starts_with("it is not JSON: "));
        assert!(problem("{}").starts_with("the whole: ") && problem("{}").contains("name"));
        assert!(problem(r#"{"name":"a","count":0}"#).starts_with("/count: "));
        let long = format!(r#"{{"name":{:?}}}"#, vec![1; 10_000]);
        let both = problem(&long);
        assert!(
            both.len() < 2 * PROBLEM_CHARS_MAX * PROBLEMS_MAX && !both.contains('\n'),
            "{both}"
        );
    }

    /// SPEC 10.4: a schema that is none says why.
    #[test]
    fn what_is_no_schema() {
        let problem = |text: &str| Schema::parse(text).err().unwrap();
        assert!(problem("{").starts_with("is not JSON: "));
        assert_eq!(problem("[]"), "is no JSON Schema: it must be an object");
        assert!(problem(r#"{"type":"strnig"}"#).starts_with("is no JSON Schema that can be used: "));
        assert!(problem(r#"{"$ref":"https://example.test/schema.json"}"#).starts_with("is no JSON Schema"));
        assert!(problem(r#"{"$ref":"file:///etc/hostname"}"#).starts_with("is no JSON Schema"));
    }
}
