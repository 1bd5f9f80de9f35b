//! The tool set: what a model is offered, and what becomes of the arguments it sends.
#![allow(clippy::unwrap_used)]

use aish_core::action::Action;
use aish_core::event::CallSource;
use aish_core::message::ToolSpec;
use aish_tools::set::{DuplicateTool, ToolSet, error_json, served_name};
use aish_tools::{Cancel, Progress, Tool, ToolContext, ToolOutput};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::Arc;

fn check(name: &str, arguments: &str, expect: Value) {
    assert_eq!(
        ToolSet::builtin().validate(name, arguments),
        Ok(expect),
        "{name} {arguments}"
    );
}

fn check_error(name: &str, arguments: &str, expect: &str) {
    assert_eq!(
        ToolSet::builtin().validate(name, arguments),
        Err(expect.to_owned()),
        "{name} {arguments}"
    );
}

/// SPEC 4: names and parameters are fixed, and their order never changes.
#[test]
fn offers_the_builtin_tools_in_order() {
    let specs = ToolSet::builtin().specs();
    let offered: Vec<String> = specs
        .iter()
        .map(|spec| {
            let required: Vec<&str> = spec.input_schema["required"]
                .as_array()
                .unwrap()
                .iter()
                .map(|name| name.as_str().unwrap())
                .collect();
            let mut names: Vec<String> = spec.input_schema["properties"]
                .as_object()
                .unwrap()
                .keys()
                .map(|name| {
                    if required.contains(&name.as_str()) {
                        name.clone()
                    } else {
                        format!("{name}?")
                    }
                })
                .collect();
            names.sort();
            format!("{}({})", spec.name, names.join(" "))
        })
        .collect();
    assert_eq!(
        offered,
        [
            "glob(path? pattern)",
            "file_read(limit? offset? path)",
            "grep(context? glob? ignore_case? path? pattern)",
            "file_write(content path)",
            "file_edit(all? new old path)",
            "bash(action? background? command job? timeout_s?)",
        ]
    );
}

/// SPEC 11: what the built-in tools add to a request is small.
#[test]
fn specs_fit_their_share_of_a_request() {
    const SPECS_BYTES_MAX: usize = 4_500;
    let specs: Vec<Value> = ToolSet::builtin()
        .specs()
        .into_iter()
        .map(|spec| json!({"name": spec.name, "description": spec.description, "input_schema": spec.input_schema}))
        .collect();
    let bytes = Value::from(specs).to_string().len();
    assert!(bytes <= SPECS_BYTES_MAX, "{bytes} bytes");
}

/// SPEC 3.8: malformed JSON says where; empty arguments mean `{}`.
#[test]
fn malformed_json_says_where() {
    check_error(
        "glob",
        "{\n  \"pattern\": }",
        "Invalid JSON arguments: expected value at line 2 column 14",
    );
    check_error(
        "glob",
        "{\"pattern\":\"*\"} x",
        "Invalid JSON arguments: trailing characters at line 1 column 17",
    );
    check_error(
        "glob",
        "[1]",
        "Invalid JSON arguments: expected an object, found an array",
    );
    check_error("glob", "", "Missing required parameter: pattern");
    check_error("glob", " \n", "Missing required parameter: pattern");
    assert_eq!(error_json("a \"b\""), r#"{"error":"a \"b\""}"#);
}

/// SPEC 3.8: a mismatch names the parameter.
#[test]
fn mismatches_name_the_parameter() {
    check_error("file_write", r#"{"path":"x"}"#, "Missing required parameter: content");
    check_error(
        "file_read",
        r#"{"path":5}"#,
        "Parameter path must be a string, not an integer",
    );
    check_error(
        "file_read",
        r#"{"path":null}"#,
        "Parameter path must be a string, not null",
    );
    check_error(
        "file_read",
        r#"{"path":"x","limit":1.5}"#,
        "Parameter limit must be an integer, not a number",
    );
    check_error(
        "file_read",
        r#"{"path":"x","limit":"ten"}"#,
        "Parameter limit must be an integer, not a string",
    );
    check_error(
        "file_read",
        r#"{"path":"x","limit":0}"#,
        "Parameter limit must be at least 1",
    );
    check_error(
        "file_read",
        r#"{"file_path":"x"}"#,
        "Unknown parameter: file_path (did you mean path?)",
    );
    check_error(
        "file_edit",
        r#"{"path":"x","old":"a","new_text":"b"}"#,
        "Unknown parameter: new_text (did you mean new?)",
    );
    check_error(
        "glob",
        r#"{"patern":"x"}"#,
        "Unknown parameter: patern (did you mean pattern?)",
    );
    check_error("glob", r#"{"pattern":"x","zzz":1}"#, "Unknown parameter: zzz");
    check_error("glob", r#"{"zzz":1}"#, "Missing required parameter: pattern");
    check_error(
        "bash",
        r#"{"command":"x","timeout_s":4000}"#,
        "Parameter timeout_s must be at most 3600",
    );
    check_error(
        "bash",
        r#"{"job":"j1","action":"kill"}"#,
        r#"Parameter action must be one of ["read","stop"]"#,
    );
}

/// SPEC 3.9: an unknown tool is named.
#[test]
fn unknown_tools_are_named() {
    check_error("nope", "{}", "Unknown tool: nope");
}

/// SPEC 3.8: what small models get wrong in only one possible way is put right.
#[test]
fn harmless_mistakes_are_put_right() {
    check(
        "file_read",
        r#"{"path":"x","limit":"10","offset":null}"#,
        json!({"path": "x", "limit": 10}),
    );
    check(
        "file_read",
        r#"{"path":"x","limit":10.0,"offset":""}"#,
        json!({"path": "x", "limit": 10}),
    );
    check(
        "file_read",
        r#"{"path":"x","limit":"10.0"}"#,
        json!({"path": "x", "limit": 10}),
    );
    check(
        "grep",
        r#"{"pattern":"5","ignore_case":"True"}"#,
        json!({"pattern": "5", "ignore_case": true}),
    );
    check("grep", r#""{\"pattern\":\"x\"}""#, json!({"pattern": "x"}));
    check(
        "file_write",
        r#"{"path":"10","content":"true"}"#,
        json!({"path": "10", "content": "true"}),
    );
    check(
        "bash",
        r#"{"job":"j1","action":"read"}"#,
        json!({"job": "j1", "action": "read"}),
    );
}

/// SPEC 6.7: tools come after those there are, once each, and can be taken out again.
#[test]
fn tools_are_appended_once() {
    let mut set = ToolSet::new();
    assert!(set.is_empty());
    let builtin = ToolSet::builtin();
    for name in ["grep", "bash", "glob"] {
        set.append(builtin.get(name).unwrap().clone()).unwrap();
    }
    assert_eq!(format!("{set:?}"), r#"["grep", "bash", "glob"]"#);
    assert_eq!(
        set.append(builtin.get("bash").unwrap().clone()),
        Err(DuplicateTool("bash".into()))
    );
    set.retain(|name| name != "bash");
    assert_eq!(format!("{set:?}"), r#"["grep", "glob"]"#);
}

/// SPEC 4.5: the names served mode knows besides.
#[test]
fn served_names_are_known() {
    assert_eq!(
        ["read_file", "write_file", "run_command", "glob"].map(served_name),
        ["file_read", "file_write", "bash", "glob"]
    );
}

proptest::proptest! {
    /// SPEC 3.8: whatever a model sends gives an object or a message, never a panic.
    #[test]
    fn any_arguments_are_answered(text in r#"[{}\[\]":,a-z0-9.\\ \n-]{0,40}"#, value in r#""[^"\\]{0,10}"|-?[0-9.e]{1,20}|null|\{\}|\[1\]"#) {
        let set = ToolSet::builtin();
        for spec in set.specs() {
            for arguments in [text.clone(), format!(r#"{{"path":"x","pattern":{value},"limit":{value},"all":{value}}}"#)] {
                match set.validate(&spec.name, &arguments) {
                    Ok(value) => assert!(value.is_object()),
                    Err(message) => assert!(!message.is_empty() && !message.contains('\n')),
                }
            }
        }
    }
}

/// A tool of a server that is never run.
struct OfAServer(ToolSpec);

impl Tool for OfAServer {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }
    fn source(&self) -> CallSource {
        CallSource::Mcp
    }
    fn inspect(&self, _arguments: &Value, _context: &ToolContext) -> Result<Action, String> {
        Err("never run".to_owned())
    }
    fn run<'a>(
        &'a self,
        _action: &'a Action,
        _context: &'a ToolContext,
        _progress: &'a dyn Progress,
        _cancel: Cancel,
    ) -> BoxFuture<'a, ToolOutput> {
        Box::pin(std::future::ready(ToolOutput::error("never run")))
    }
}

/// SPEC 6.9: the search is there where servers have tools; it can be called, and is not one of the list.
#[test]
fn the_search_among_tools_of_servers() {
    let mut tools = ToolSet::builtin();
    tools.add_search();
    assert!(tools.search().is_none() && tools.get("search_tools").is_none());
    let spec = ToolSpec {
        name: "mail.send".to_owned(),
        description: String::new(),
        input_schema: json!({"type": "object"}),
    };
    tools.append(Arc::new(OfAServer(spec))).unwrap();
    tools.add_search();
    assert_eq!(tools.search().unwrap().name, "search_tools");
    assert!(tools.specs().iter().all(|spec| spec.name != "search_tools"));
    assert_eq!(
        tools.validate("search_tools", "{}"),
        Err("Missing required parameter: query".to_owned())
    );
    assert!(tools.validate("search_tools", r#"{"query":"x","limit":3}"#).is_ok());
    assert!(tools.validate("search_tools", r#"{"query":"x","limit":30}"#).is_err());
    tools.retain(|name| name != "search_tools");
    assert!(tools.search().is_none());
}
