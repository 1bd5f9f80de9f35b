//! Lists against a peer that answers what a script says.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use super::*;
use crate::peer::Watch;
use crate::{About, Alias, Endpoint, Era, ErrorKind, HttpEndpoint};
use aish_core::message::Part;
use futures_util::future::BoxFuture;
use serde_json::json;
use std::collections::VecDeque;
use std::sync::Mutex;

const PATIENCE: Duration = Duration::from_secs(10);
const BYTES_MAX: usize = 1_000;

/// Answers requests in order, and keeps what it was asked.
struct Script {
    about: About,
    answers: Mutex<VecDeque<Result<Value, McpError>>>,
    asked: Mutex<Vec<(String, Value)>>,
}

impl Script {
    fn new(answers: impl IntoIterator<Item = Result<Value, McpError>>) -> Self {
        Self {
            about: About::default(),
            answers: Mutex::new(answers.into_iter().collect()),
            asked: Mutex::default(),
        }
    }

    fn pages(pages: impl IntoIterator<Item = Value>) -> Self {
        Self::new(pages.into_iter().map(Ok))
    }

    fn cursors(&self) -> Vec<Value> {
        let asked = self.asked.lock().unwrap();
        asked.iter().map(|(_, params)| params["cursor"].clone()).collect()
    }
}

impl Peer for Script {
    fn about(&self) -> &About {
        &self.about
    }

    fn request<'a>(
        &'a self,
        method: &'a str,
        params: Map<String, Value>,
        _patience: Duration,
        _watch: Option<Watch>,
    ) -> BoxFuture<'a, Result<Value, McpError>> {
        self.asked
            .lock()
            .unwrap()
            .push((method.to_owned(), Value::Object(params)));
        let answer = self.answers.lock().unwrap().pop_front();
        Box::pin(std::future::ready(answer.unwrap_or_else(|| Err(closed()))))
    }

    fn ended(&self) -> BoxFuture<'_, McpError> {
        Box::pin(std::future::pending())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

fn closed() -> McpError {
    McpError::new(ErrorKind::Closed, "the script is over")
}

fn rpc(code: i64) -> McpError {
    McpError::new(ErrorKind::Rpc { code }, "no \u{1b}[2J")
}

fn tool(name: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object", "properties": {}}})
}

fn names(offer: &Offer) -> Vec<&str> {
    offer.tools.iter().map(|tool| tool.name.as_str()).collect()
}

async fn fetch(script: &Script) -> Offer {
    Offer::fetch(script, PATIENCE).await.unwrap()
}

/// SPEC 6.4: `nextCursor` is followed, and what it was goes back unchanged.
#[tokio::test]
async fn pages_are_followed() {
    let script = Script::pages([
        json!({"tools": [tool("a")], "nextCursor": "p 2"}),
        json!({"tools": [tool("b"), tool("c.d")], "nextCursor": "p3"}),
        json!({"tools": [], "nextCursor": null}),
    ]);
    let offer = fetch(&script).await;
    assert_eq!(names(&offer), ["a", "b", "c.d"]);
    assert_eq!(script.cursors(), [Value::Null, json!("p 2"), json!("p3")]);
    assert!(offer.remarks.is_empty(), "{:?}", offer.remarks);
}

/// SPEC 6.4: an empty cursor is a cursor, unless it leads to the beginning.
#[tokio::test]
async fn empty_cursors() {
    let first = json!({"tools": [tool("a"), tool("b")], "nextCursor": ""});
    let offer = fetch(&Script::pages([first.clone(), first.clone()])).await;
    assert_eq!((names(&offer), offer.remarks.len()), (vec!["a", "b"], 0));
    let offer = fetch(&Script::pages([first, json!({"tools": [tool("c")]})])).await;
    assert_eq!(names(&offer), ["a", "b", "c"]);
}

/// SPEC 6.4, 12: a list without end has one.
#[tokio::test]
async fn lists_end() {
    let check = async |pages: Vec<Value>, tools: usize, remark: &str| {
        let offer = fetch(&Script::pages(pages)).await;
        assert_eq!(offer.tools.len(), tools, "{remark}");
        assert_eq!(offer.remarks, [remark]);
    };
    let page = |n: usize, cursor: Value| json!({"tools": [tool(&n.to_string())], "nextCursor": cursor});
    check(
        vec![page(0, json!("x")), page(1, json!("x")), page(2, json!("x"))],
        2,
        "tools/list repeats a cursor: the rest is left out",
    )
    .await;
    check(
        (0..1_000).map(|n| page(n, json!(n.to_string()))).collect(),
        100,
        "tools/list has more than 100 pages: the rest is left out",
    )
    .await;
    check(
        vec![page(0, json!(7)), page(1, json!(null))],
        1,
        "tools/list has a cursor that is no text: the rest is left out",
    )
    .await;
    check(
        vec![page(0, json!("x".repeat(1 << 20)))],
        1,
        "tools/list has a cursor of 1048576 bytes: the rest is left out",
    )
    .await;
    let many: Vec<Value> = (0..5_000).map(|n| tool(&n.to_string())).collect();
    check(
        vec![json!({"tools": many, "nextCursor": "more"})],
        2_000,
        "more than 2000 tools: the rest is left out",
    )
    .await;
    let heavy = |n: usize| json!({"name": n.to_string(), "inputSchema": {"description": "x".repeat(100_000)}});
    let heavies: Vec<Value> = (0..200).map(heavy).collect();
    check(
        vec![json!({"tools": heavies})],
        83,
        "tools of more than 8388608 bytes: the rest is left out",
    )
    .await;
}

/// SPEC 6.6: what goes wrong after the first page costs the rest only, unless the connection is gone.
#[tokio::test]
async fn failures() {
    let first = || Ok(json!({"tools": [tool("a")], "nextCursor": "x"}));
    let offer = fetch(&Script::new([first(), Err(rpc(-32603))])).await;
    assert_eq!(names(&offer), ["a"]);
    assert_eq!(offer.remarks, [r"tools/list ended early: no \x1b[2J"]);
    let offer = fetch(&Script::new([first(), Ok(json!({"tools": 7}))])).await;
    assert_eq!(offer.remarks, ["tools/list was answered without a list of tools"]);

    let error = Offer::fetch(&Script::new([first(), Err(closed())]), PATIENCE)
        .await
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Closed);
    for broken in [json!({}), json!(null), json!("tools"), json!({"tools": "none"})] {
        let error = Offer::fetch(&Script::pages([broken]), PATIENCE).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Protocol);
    }
}

/// SPEC 6.4: a server that has no tools and never said it had is no failure; one that said so is.
#[tokio::test]
async fn no_such_list() {
    let mut script = Script::new([Err(rpc(-32601)), Err(rpc(-32601))]);
    assert_eq!(fetch(&script).await, Offer::default());
    script.about.capabilities.insert("tools".into(), json!({}));
    assert!(Offer::fetch(&script, PATIENCE).await.is_err());
}

/// SPEC 6.4: what a server writes carelessly is taken as it is meant; what cannot be meant costs one tool.
#[tokio::test]
async fn careless_tools() {
    let mut deep = json!({"type": "object"});
    for _ in 0..70 {
        deep = json!({"properties": {"a": deep}});
    }
    let script = Script::pages([json!([
        {"name": "bare"},
        {"name": "null", "description": 7, "inputSchema": null, "outputSchema": [1], "annotations": "yes"},
        {"name": "typeless", "inputSchema": {"required": ["a"]}},
        {"name": "list of types", "inputSchema": {"type": ["object", "null"], "properties": 1}},
        {"name": "string schema", "inputSchema": {"type": "string"}},
        {"name": "list schema", "inputSchema": []},
        {"name": "deep", "inputSchema": deep},
        {"name": "large", "inputSchema": {"title": "x".repeat(200_000)}},
        {"name": ""},
        {"name": 7},
        "tool",
        {"name": "bare", "description": "again"},
        {"name": "\u{1b}]0;x\u{7}", "annotations": {"readOnlyHint": true, "destructiveHint": "no", "idempotentHint": false}},
    ])]);
    let offer = fetch(&script).await;
    assert_eq!(
        names(&offer),
        ["bare", "null", "typeless", "list of types", "\u{1b}]0;x\u{7}"]
    );
    let anything = json!({"type": "object", "properties": {}});
    let schemas: Vec<&Value> = offer.tools.iter().map(|tool| &tool.input_schema).collect();
    let typeless = json!({"type": "object", "properties": {}, "required": ["a"]});
    assert_eq!(schemas, [&anything, &anything, &typeless, &anything, &anything]);
    assert_eq!(offer.tools[1].description, "");
    assert_eq!(offer.tools[1].output_schema, None);
    assert_eq!(offer.tools[1].hints, Hints::default());
    let hints = Hints {
        read_only: Some(true),
        destructive: None,
        idempotent: Some(false),
    };
    assert_eq!(offer.tools[4].hints, hints);
    assert_eq!(
        offer.remarks,
        [
            "the result of tool null has a schema that is no object",
            "tool string schema is left out: it has a schema of something other than an object",
            "tool list schema is left out: it has a schema that is no object",
            "tool deep is left out: it has a schema of more than 64 levels",
            "tool large is left out: it has a schema of 200012 bytes, more than 131072",
            "a tool without a name is left out",
            "a tool without a name is left out",
            "a tool that is no object is left out",
            "tool bare is there twice: the first is kept",
        ]
    );
}

/// SPEC 6.4, 8.8: names of any length and description of any size are bounded, and safe where they are shown.
#[tokio::test]
async fn long_and_hostile_texts() {
    let long = "é".repeat(300);
    let too_long = format!("\u{1b}[31m{}", "n".repeat(1_024));
    let script = Script::pages([json!({"tools": [
        tool(&long),
        tool(&too_long),
        {"name": "wordy", "description": "é".repeat(100_000)},
    ]})]);
    let offer = fetch(&script).await;
    assert_eq!(names(&offer), [long.as_str(), "wordy"]);
    assert_eq!(offer.tools[1].description.len(), DESCRIPTION_BYTES_MAX);
    let shown = format!("\\x1b[31m{}…", "n".repeat(55));
    assert_eq!(
        offer.remarks,
        [
            format!("tool {shown} is left out: its name has 1029 bytes, more than 1024"),
            "the description of wordy is cut: 200000 bytes, more than 16384".to_owned(),
        ]
    );
}

/// SPEC 6.4: a thousand remarks are few lines.
#[tokio::test]
async fn remarks_are_bounded() {
    let nameless: Vec<Value> = (0..1_000).map(|_| json!({})).collect();
    let offer = fetch(&Script::pages([json!({ "tools": nameless })])).await;
    assert_eq!(offer.remarks.len(), 21);
    assert_eq!(offer.remarks[20], "… and 980 more");
}

/// SPEC 6.4: the configuration says which tools are taken.
#[tokio::test]
async fn enabled_and_disabled() {
    let config = |enabled: &[&str], disabled: &[&str]| {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        ServerConfig {
            alias: Alias::parse("a").unwrap(),
            endpoint: Endpoint::Http(HttpEndpoint {
                url: "http://127.0.0.1/".into(),
                token: None,
                headers: Vec::new(),
            }),
            timeout: PATIENCE,
            era: Era::Unknown,
            enabled_tools: owned(enabled),
            disabled_tools: owned(disabled),
            is_required: false,
            is_trusted: false,
        }
    };
    let check = async |enabled: &[&str], disabled: &[&str], tools: &[&str], remarks: &[&str]| {
        let mut offer = fetch(&Script::pages([json!({"tools": [tool("x"), tool("y"), tool("z.z")]})])).await;
        offer.narrow(&config(enabled, disabled));
        assert_eq!(names(&offer), tools);
        assert_eq!(offer.remarks, remarks);
    };
    check(&[], &[], &["x", "y", "z.z"], &[]).await;
    check(&["z.z", "x"], &["x"], &["z.z"], &[]).await;
    check(&[], &["y"], &["x", "z.z"], &[]).await;
    check(
        &["Y\u{7}"],
        &[],
        &[],
        &[r"enabled_tools names Y\x07, which is not offered"],
    )
    .await;
}

/// SPEC 6.9: prompts, resources and templates are listed as leniently.
#[tokio::test]
async fn beyond_tools() {
    let script = Script::pages([
        json!({"prompts": [{"name": "review", "arguments": [{"name": "code", "required": true}, {"name": "why", "required": "x"}, 7]}], "nextCursor": "2"}),
        json!({"prompts": [{"name": "plain", "arguments": {}}, {"name": "plain"}]}),
    ]);
    let (prompts, remarks) = Offer::prompts(&script, PATIENCE).await.unwrap();
    let found: Vec<(&str, Vec<(&str, bool)>)> = prompts
        .iter()
        .map(|prompt| {
            let arguments = prompt.arguments.iter();
            (
                prompt.name.as_str(),
                arguments.map(|one| (one.name.as_str(), one.is_required)).collect(),
            )
        })
        .collect();
    assert_eq!(
        found,
        [("review", vec![("code", true), ("why", false)]), ("plain", vec![])]
    );
    assert_eq!(
        remarks,
        [
            "a prompt's argument that is no object is left out",
            "prompt plain is there twice: the first is kept"
        ]
    );

    let script = Script::pages([json!({"resources": [
        {"uri": "memo://a", "name": "A", "mimeType": "text/plain", "size": 12},
        {"uri": "memo://b", "size": -1},
        {"name": "nowhere"},
    ]})]);
    let (resources, remarks) = Offer::resources(&script, PATIENCE).await.unwrap();
    assert_eq!(resources.len(), 2);
    assert_eq!((resources[0].name.as_str(), resources[0].size), ("A", Some(12)));
    assert_eq!((resources[1].name.as_str(), resources[1].size), ("memo://b", None));
    assert_eq!(remarks, ["a resource without a uri is left out"]);

    let script = Script::pages([json!({"resourceTemplates": [{"uriTemplate": "memo://{n}", "name": "n"}]})]);
    let (templates, _) = Offer::templates(&script, PATIENCE).await.unwrap();
    assert_eq!(templates[0].uri_template, "memo://{n}");
    assert_eq!(script.asked.lock().unwrap()[0].0, "resources/templates/list");

    let absent = Script::new([Err(rpc(-32601))]);
    assert_eq!(
        Offer::resources(&absent, PATIENCE).await.unwrap(),
        (Vec::new(), Vec::new())
    );
}

/// SPEC 6.9: a prompt's messages are text, whoever says them and however they are written.
#[tokio::test]
async fn filled_prompts() {
    let script = Script::pages([json!({"messages": [
        {"role": "user", "content": {"type": "text", "text": "Look at"}},
        {"role": "user", "content": [{"type": "resource", "resource": {"uri": "a", "text": "this"}}, {"type": "video"}]},
        {"role": "assistant", "content": "Yes"},
        {"content": null},
        7,
    ]})]);
    let arguments = Map::from_iter([("code".to_owned(), json!("x"))]);
    let filled = Prompt::fill(&script, "review", arguments, PATIENCE, BYTES_MAX)
        .await
        .unwrap();
    let said: Vec<(Role, &str)> = filled
        .messages
        .iter()
        .map(|one| (one.role, one.text.as_str()))
        .collect();
    assert_eq!(
        said,
        [
            (Role::User, "Look at"),
            (Role::User, "this"),
            (Role::Assistant, "Yes"),
            (Role::User, ""),
            (Role::User, "")
        ]
    );
    assert_eq!(filled.remarks, ["a block of type video"]);
    let asked = script.asked.lock().unwrap()[0].clone();
    assert_eq!(
        asked,
        (
            "prompts/get".into(),
            json!({"name": "review", "arguments": {"code": "x"}})
        )
    );

    let broken = Script::pages([json!({"messages": "none"})]);
    let error = Prompt::fill(&broken, "x", Map::new(), PATIENCE, BYTES_MAX)
        .await
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Protocol);
}

/// SPEC 6.9: a resource is its text, its images, and remarks on the rest.
#[tokio::test]
async fn read_resources() {
    let script = Script::pages([json!({"contents": [
        {"uri": "a", "text": "one"},
        {"uri": "b", "mimeType": "image/png", "blob": "iVBORw0KGgo="},
        {"uri": "c", "mimeType": "application/zip", "blob": "UEsDBA=="},
        {"uri": "d", "text": "two"},
        {"uri": "e"},
        null,
    ]})]);
    let read = Resource::read(&script, "a", PATIENCE, BYTES_MAX).await.unwrap();
    assert_eq!(read.text, "one\ntwo");
    assert!(matches!(&read.images[..], [Part::Image { media_type, .. }] if media_type == "image/png"));
    assert_eq!(
        read.remarks,
        [
            "a resource (application/zip, 1 KB)",
            "a resource without contents (e)",
            "a resource that is no object",
        ]
    );
    let broken = Script::pages([json!({})]);
    assert!(Resource::read(&broken, "a", PATIENCE, BYTES_MAX).await.is_err());
}
