//! Calls through a caller that answers what the test says.
#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;
use crate::pin::NoPins;
use crate::{Endpoint, Era, HttpEndpoint};
use aish_tools::set::ToolSet;
use aish_tools::{Hidden, NoProgress};
use serde_json::json;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const BYTES_MAX: usize = 40;

/// What a call does at the scripted server.
enum Behaviour {
    Answers(Result<Outcome, McpError>),
    Reports(Vec<Progressed>),
    NeverAnswers,
}

struct Scripted {
    behaviour: Behaviour,
    called: Mutex<Vec<(String, String, Value)>>,
    lines: Mutex<Vec<String>>,
    was_dropped: Arc<AtomicBool>,
}

struct SetOnDrop(Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Caller for Scripted {
    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Outcome, McpError>> {
        let called = (
            call.alias.to_string(),
            call.tool.to_owned(),
            Value::Object(call.arguments.clone()),
        );
        self.called.lock().unwrap().push(called);
        let guard = SetOnDrop(Arc::clone(&self.was_dropped));
        Box::pin(async move {
            let _guard = guard;
            match &self.behaviour {
                Behaviour::Answers(Ok(outcome)) => {
                    let result = json!({"content": [{"type": "text", "text": outcome.text}]});
                    Ok(Outcome {
                        text: Outcome::read(call.alias, &result, call.bytes_max).text,
                        ..outcome.clone()
                    })
                }
                Behaviour::Answers(Err(error)) => Err(error.clone()),
                Behaviour::Reports(steps) => {
                    for step in steps {
                        (call.watch)(step.clone());
                        tokio::time::sleep(Duration::from_secs(1)).await;
                    }
                    Ok(Outcome::default())
                }
                Behaviour::NeverAnswers => std::future::pending().await,
            }
        })
    }

    fn status(&self, line: &str) {
        self.lines.lock().unwrap().push(line.to_owned());
    }
}

#[derive(Default)]
struct Shown(Mutex<String>);

impl Progress for Shown {
    fn output(&self, text: &str) {
        self.0.lock().unwrap().push_str(text);
    }
}

fn scripted(behaviour: Behaviour) -> (Arc<Scripted>, McpTool) {
    with_schema(
        behaviour,
        json!({"type": "object", "properties": {"to": {"$ref": "#"}}}),
    )
}

fn server(is_trusted: bool) -> ServerConfig {
    ServerConfig {
        alias: Alias::parse("mail").unwrap(),
        endpoint: Endpoint::Http(HttpEndpoint {
            url: "https://mail.example/mcp".into(),
            token: None,
            headers: Vec::new(),
        }),
        timeout: Duration::from_secs(1),
        era: Era::Unknown,
        enabled_tools: Vec::new(),
        disabled_tools: Vec::new(),
        is_required: false,
        is_trusted,
    }
}

fn with_schema(behaviour: Behaviour, input_schema: Value) -> (Arc<Scripted>, McpTool) {
    let caller = Arc::new(Scripted {
        behaviour,
        called: Mutex::default(),
        lines: Mutex::default(),
        was_dropped: Arc::default(),
    });
    let definition = Definition {
        name: "send.all".into(),
        description: "Sends".into(),
        input_schema,
        output_schema: None,
        hints: Hints {
            read_only: Some(true),
            ..Hints::default()
        },
    };
    let tool = McpTool::new(
        &server(false),
        &definition,
        Arc::clone(&caller) as Arc<dyn Caller>,
        Arc::new(NoPins),
    );
    (caller, tool)
}

fn context() -> ToolContext {
    ToolContext {
        directory: "/".into(),
        environment: Arc::default(),
        output_bytes_max: BYTES_MAX,
        hidden: Hidden::default(),
        web: aish_tools::WebAccess::default(),
        place: None,
    }
}

async fn run(behaviour: Behaviour) -> (ToolOutput, Vec<String>) {
    let (caller, tool) = scripted(behaviour);
    let action = tool.inspect(&json!({"to": "x"}), &context()).unwrap();
    let (_cancel, cancelled) = tokio::sync::watch::channel(false);
    let output = tool.run(&action, &context(), &NoProgress, cancelled).await;
    let lines = caller.lines.lock().unwrap().clone();
    (output, lines)
}

fn text(text: &str) -> Outcome {
    Outcome {
        text: text.into(),
        ..Outcome::default()
    }
}

/// SPEC 5.8, 6.1: a tool is `alias.tool`, and its effect unknown, whatever its server says of it.
#[tokio::test]
async fn what_it_is() {
    let (caller, tool) = scripted(Behaviour::Answers(Ok(text("done"))));
    assert_eq!(tool.spec().name, "mail.send.all");
    assert_eq!(tool.source(), CallSource::Mcp);
    assert_eq!(
        tool.validation_schema(),
        &json!({"type": "object", "properties": {"to": true}})
    );
    let action = tool.inspect(&json!({"to": "x"}), &context()).unwrap();
    let [Effect::Delegate { hint, changed, .. }] = action.effects.as_slice() else {
        panic!("{action:?}");
    };
    assert_eq!((*hint, changed.as_deref()), (Hint::Unknown, None));
    assert!(!action.is_read_only());
    let (_cancel, cancelled) = tokio::sync::watch::channel(false);
    let output = tool.run(&action, &context(), &NoProgress, cancelled).await;
    assert_eq!((output.output.as_str(), output.success), ("done", true));
    let called = caller.called.lock().unwrap().clone();
    assert_eq!(called, [("mail".to_owned(), "send.all".to_owned(), json!({"to": "x"}))]);
}

/// SPEC 6.5: the result is plain text, whether or not the tool says it failed.
#[tokio::test]
async fn results() {
    let (output, lines) = run(Behaviour::Answers(Ok(Outcome {
        is_error: true,
        ..text("no such\nuser")
    })))
    .await;
    assert_eq!(output.output, "no such\nuser");
    assert_eq!((output.summary.as_str(), output.success), ("2 lines", false));
    assert!(lines.is_empty());
    let (output, _) = run(Behaviour::Answers(Ok(text("")))).await;
    assert_eq!((output.output.as_str(), output.summary.as_str()), ("", "no output"));
}

/// SPEC 6.5: what is no text is named in a status line, and to the model where there is nothing else.
#[tokio::test]
async fn more_than_text() {
    let with_image = |text: &str| {
        Behaviour::Answers(Ok(Outcome {
            text: text.into(),
            remarks: vec!["an image (image/png, 1 KB)".into()],
            ..Outcome::default()
        }))
    };
    let status = "mcp: mail.send.all: an image (image/png, 1 KB)";
    let (output, lines) = run(with_image("seen")).await;
    assert_eq!((output.output.as_str(), &lines[..]), ("seen", &[status.to_owned()][..]));
    let (output, lines) = run(with_image("")).await;
    assert_eq!(output.output, "[an image (image/png, 1 KB)]");
    assert_eq!(lines, [status]);
}

/// SPEC 4.3: a result is bounded as any other.
#[tokio::test]
async fn long_results() {
    let (output, _) = run(Behaviour::Answers(Ok(text(&"x".repeat(50))))).await;
    let expect = format!("{}\n[Output truncated: showing first 40 of 50 bytes]", "x".repeat(40));
    assert_eq!(output.output, expect);
}

/// SPEC 6.6: an error answers the call and is one status line, harmless and bounded.
#[tokio::test]
async fn errors() {
    let error = McpError::new(ErrorKind::Rpc { code: -32601 }, "Unknown\n\u{1b}[2Jtool");
    let (output, lines) = run(Behaviour::Answers(Err(error))).await;
    assert_eq!(output.output, r#"{"error":"Unknown\\n\\x1b[2Jtool"}"#);
    assert!(!output.success);
    assert_eq!(lines, [r"mcp: mail.send.all: Unknown\n\x1b[2Jtool"]);
    let flood = McpError::new(ErrorKind::Protocol, "x".repeat(1 << 20));
    let (output, lines) = run(Behaviour::Answers(Err(flood))).await;
    assert!(output.output.len() < 2 * MESSAGE_CHARS_MAX);
    assert!(lines.iter().all(|line| line.len() < 2 * MESSAGE_CHARS_MAX));
}

/// SPEC 6.9: progress shows as lines.
#[tokio::test(start_paused = true)]
async fn progress_shows() {
    let step = |progress: f64, total: Option<f64>, message: Option<&str>| Progressed {
        progress,
        total,
        message: message.map(str::to_owned),
    };
    let (_caller, tool) = scripted(Behaviour::Reports(vec![
        step(1.0, Some(3.0), Some("one\n\u{7}")),
        step(0.123_456, None, None),
        step(1e300, Some(f64::NAN), Some(" ")),
    ]));
    let action = tool.inspect(&json!({}), &context()).unwrap();
    let (_cancel, cancelled) = tokio::sync::watch::channel(false);
    let shown = Shown::default();
    tool.run(&action, &context(), &shown, cancelled).await;
    assert_eq!(*shown.0.lock().unwrap(), "one\\n\\x07 (1/3)\n0.12\n1e300/NaN\n");
}

/// SPEC 6.9, 12: of a flood of progress a few lines a second are shown, and always the last.
#[tokio::test(start_paused = true)]
async fn progress_that_floods() {
    let steps = steps::Steps::new();
    let watch = steps.watch();
    let flood = async move {
        for n in 1..=100_000_u32 {
            watch(Progressed {
                progress: f64::from(n),
                total: None,
                message: None,
            });
            if n % 1_000 == 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    };
    let shown = Shown::default();
    steps.shown_while(flood, &shown).await;
    let shown = shown.0.lock().unwrap();
    let lines: Vec<&str> = shown.lines().collect();
    assert!((5..=12).contains(&lines.len()), "{lines:?}");
    assert_eq!(lines.last(), Some(&"100000"));
}

/// SPEC 3.5a, 6.9: a call that is cancelled answers, and the request to the server is dropped.
#[tokio::test]
async fn cancelling() {
    let (caller, tool) = scripted(Behaviour::NeverAnswers);
    let action = tool.inspect(&json!({}), &context()).unwrap();
    let (cancel, cancelled) = tokio::sync::watch::channel(false);
    let context = context();
    let running = tool.run(&action, &context, &NoProgress, cancelled);
    let cancelling = async {
        while caller.called.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        cancel.send(true).unwrap();
    };
    let (output, ()) = futures_util::future::join(running, cancelling).await;
    assert_eq!(output, ToolOutput::error(CANCELLED));
    assert!(caller.was_dropped.load(Ordering::SeqCst));
    assert!(caller.lines.lock().unwrap().is_empty());
}

/// SPEC 12: a schema made to keep whoever checks against it busy for ever does not: circles, doublings, patterns.
#[test]
fn schemas_that_would_hang() {
    let mut doubling = json!({"d0": {"type": "object"}});
    for n in 1..60 {
        let reference = json!({"$ref": format!("#/$defs/d{}", n - 1)});
        doubling[format!("d{n}")] = json!({"allOf": [reference, reference]});
    }
    let schemas = [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"$defs": doubling, "allOf": [{"$ref": "#/$defs/d59"}]}),
        json!({"properties": {"a": {"type": "string", "pattern": "^(([a-z])+.)+[A-Z]([a-z])+$"}}}),
    ];
    let arguments = json!({"a": "a".repeat(100)}).to_string();
    for schema in schemas {
        let (_caller, tool) = with_schema(Behaviour::NeverAnswers, schema.clone());
        let mut set = ToolSet::new();
        set.append(Arc::new(tool)).unwrap();
        assert!(set.validate("mail.send.all", &arguments).is_ok(), "{schema}");
    }
}

/// SPEC 3.8: what the plain part of a server's schema asks for is asked of a call.
#[test]
fn arguments_are_checked() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}, "m": {"$ref": "#/$defs/m"}}, "required": ["n"]});
    let (_caller, tool) = with_schema(Behaviour::NeverAnswers, schema);
    let mut set = ToolSet::new();
    set.append(Arc::new(tool)).unwrap();
    let check = |arguments: &str| set.validate("mail.send.all", arguments);
    assert_eq!(check(r#"{"n": "7", "m": []}"#), Ok(json!({"n": 7, "m": []})));
    assert_eq!(check("{}").unwrap_err(), "Missing required parameter: n");
}

/// Pins of one test.
#[derive(Default)]
struct Remembering(Mutex<HashMap<String, Pinned>>);

impl Pins for Remembering {
    fn changed(&self, tool: &str, now: &Pinned) -> Option<String> {
        let pins = self.0.lock().unwrap();
        let lines = crate::pin::difference(pins.get(tool)?, now);
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    fn pin(&self, tool: &str, now: &Pinned) {
        self.0.lock().unwrap().insert(tool.to_owned(), now.clone());
    }
}

/// SPEC 6.8: a tool says how it differs from what was let through, until it is let through as it is now; a call that was let
/// through as another definition pins nothing.
#[tokio::test]
async fn changed_since_it_was_approved() {
    let pins = Arc::new(Remembering::default());
    let made = |description: &str| {
        let (caller, _) = scripted(Behaviour::NeverAnswers);
        let definition = Definition {
            name: "send".into(),
            description: description.into(),
            input_schema: json!({"type": "object"}),
            output_schema: None,
            hints: Hints::default(),
        };
        McpTool::new(&server(false), &definition, caller, Arc::clone(&pins) as Arc<dyn Pins>)
    };
    let inspect = |tool: &McpTool| tool.inspect(&json!({}), &context()).unwrap();
    let (old, new) = (made("Sends"), made("Sends all"));
    assert_eq!(inspect(&new).changed(), None, "the first sight is trusted");
    old.approved(&inspect(&old));
    assert_eq!(inspect(&old).changed(), None);
    assert_eq!(inspect(&new).changed(), Some(r#"description: "Sends" → "Sends all""#));
    assert_ne!(inspect(&old).digest(), inspect(&new).digest());
    new.approved(&inspect(&old));
    assert!(inspect(&new).changed().is_some());
    new.approved(&inspect(&new));
    assert_eq!(inspect(&new).changed(), None);
}

/// SPEC 5.8: hints count where the server is trusted, and only where they say one thing.
#[test]
fn hints() {
    let hint = |is_trusted, read_only, destructive| {
        let (caller, _) = scripted(Behaviour::NeverAnswers);
        let definition = Definition {
            name: "send".into(),
            description: String::new(),
            input_schema: json!({"type": "object"}),
            output_schema: None,
            hints: Hints {
                read_only,
                destructive,
                idempotent: None,
            },
        };
        McpTool::new(&server(is_trusted), &definition, caller, Arc::new(NoPins)).hint
    };
    assert_eq!(hint(true, Some(true), None), Hint::ReadOnly);
    assert_eq!(hint(true, Some(true), Some(false)), Hint::ReadOnly);
    assert_eq!(hint(true, Some(false), Some(false)), Hint::Additive);
    assert_eq!(hint(true, None, Some(false)), Hint::Additive);
    for (read_only, destructive) in [
        (None, None),
        (Some(false), None),
        (Some(true), Some(true)),
        (None, Some(true)),
    ] {
        assert_eq!(hint(true, read_only, destructive), Hint::Unknown);
    }
    for read_only in [None, Some(true), Some(false)] {
        assert_eq!(hint(false, read_only, Some(false)), Hint::Unknown);
    }
}
