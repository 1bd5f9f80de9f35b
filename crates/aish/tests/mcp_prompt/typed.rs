//! What `:mcp resources` and `:mcp prompts` list can be typed as it is listed, and then names what was listed.

use crate::support::fake_server::FakeServer;
use crate::support::mcp::{McpServer, Say, Script, Transport};
use crate::support::reply::Reply;
use crate::support::sandbox::Sandbox;
use serde_json::{Value, json};

/// Addresses that have to be written in some way, as they are listed.
const ADDRESSES: [(&str, &str); 4] = [
    ("demo://b", "@s:demo://b"),
    ("demo://b c", "@\"s:demo://b c\""),
    ("demo://say\"a b\"", r#"@s:demo://say\"a\ b\""#),
    ("demo://end).", "@\"s:demo://end).\""),
];
/// Names of prompts likewise.
const NAMES: [(&str, &str); 3] = [
    ("plain", ":s.plain"),
    ("my prompt", ":s.\"my prompt\""),
    ("it's", ":s.\"it's\""),
];

fn script() -> Script {
    Script::with_tools(Vec::new())
        .on("initialize", |message| {
            let capabilities = json!({"tools": {}, "prompts": {}, "resources": {}});
            let about = json!({"name": "s", "version": "1"});
            let result = json!({"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": about});
            vec![Say::result(&message["id"], result)]
        })
        .on("prompts/list", |message| {
            let prompts = NAMES.map(|(name, _)| json!({ "name": name }));
            vec![Say::result(&message["id"], json!({ "prompts": prompts }))]
        })
        .on("prompts/get", |message| {
            let text = json!({"role": "user", "content": {"type": "text", "text": "filled in"}});
            vec![Say::result(&message["id"], json!({"messages": [text]}))]
        })
        .on("resources/list", |message| {
            let resources = ADDRESSES.map(|(uri, _)| json!({"uri": uri, "name": "one"}));
            vec![Say::result(&message["id"], json!({ "resources": resources }))]
        })
        .on("resources/templates/list", |message| {
            vec![Say::result(&message["id"], json!({"resourceTemplates": []}))]
        })
        .on("resources/read", |message| {
            let contents = json!([{"uri": message["params"]["uri"], "text": "the text of it"}]);
            vec![Say::result(&message["id"], json!({ "contents": contents }))]
        })
}

/// What the server was asked for with that method.
fn asked(server: &McpServer, method: &str, field: &str) -> Vec<Value> {
    let heard = server.heard();
    let asked = heard.iter().filter(|message| message["method"] == method);
    asked.map(|message| message["params"][field].clone()).collect()
}

/// SPEC 6.9: a resource or a prompt is listed as it has to be typed; an address may also have its quotes behind the alias.
#[test]
fn as_it_is_listed() {
    let server = McpServer::start(Transport::Http, script());
    let typed = ADDRESSES.len() + NAMES.len() + 1;
    let model = FakeServer::script(vec![Reply::text("fine"); typed]);
    let sandbox = Sandbox::with_model(&model).config(&server.config("s"));
    let terminal = sandbox.terminal(&[]).size(60, 120).start();
    terminal.wait_for_prompt();
    terminal.said(":mcp reconnect s");
    let text = terminal.said(":mcp resources s");
    for (_, mention) in ADDRESSES {
        let line = format!("{mention}  one");
        assert!(text.lines().any(|listed| listed.trim_end() == line), "{line}: {text}");
    }
    for (_, mention) in ADDRESSES {
        terminal.said(&format!("? see {mention}, please"));
    }
    terminal.said("? see @s:\"demo://b c\".");
    let mut expect: Vec<Value> = ADDRESSES.iter().map(|(uri, _)| json!(uri)).collect();
    expect.push(json!("demo://b c"));
    assert_eq!(asked(&server, "resources/read", "uri"), expect);

    let text = terminal.said(":mcp prompts s");
    for (_, command) in NAMES {
        assert!(
            text.lines().any(|listed| listed.trim_end() == command),
            "{command}: {text}"
        );
    }
    for (_, command) in NAMES {
        terminal.said(command);
    }
    let expect: Vec<Value> = NAMES.iter().map(|(name, _)| json!(name)).collect();
    assert_eq!(asked(&server, "prompts/get", "name"), expect);
}
