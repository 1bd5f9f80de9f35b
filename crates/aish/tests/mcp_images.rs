//! Results with images and resources of a real server: what reaches a model of each wire format, what the ledger keeps, what a
//! person sees (SPEC 6.5).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "mcp_images/formats.rs"]
mod formats;
mod support;

use aish_provider::profile::Format;
use formats::{LAST_WORDS, answer};
use serde_json::{Value, json};
use support::fake_server::{FakeServer, Received};
use support::ledger::{of_kind, only_export, only_session};
use support::mcp_real::RealServers;
use support::reply::Reply;
use support::sandbox::Sandbox;

/// How the picture of server-everything begins, in base64.
const PNG_BEGINS: &str = "iVBORw0KGgo";
/// What it says before the picture.
const TEXT: &str = "Here's the image you requested:";
/// The tool that gives it, on the wire.
const TOOL: &str = "every__get-tiny-image";

/// A sandbox with server-everything, all of whose tools may run, and the model at that server.
fn sandbox(real: &RealServers, format: Format, model: &FakeServer, quirks: &str) -> Sandbox {
    let origin = format!("http://{}", model.address());
    let (base_url, name) = match format {
        Format::OpenaiChat | Format::OpenaiResponses => (format!("{origin}/v1"), "fake"),
        Format::Anthropic => (origin, "claude-fake"),
        Format::Gemini => (origin, "gemini-3-fake"),
    };
    let format = format.name();
    Sandbox::new().config(&format!(
        "default_model = \"fake\"\n\n[models.fake]\nprovider = \"{format}\"\nbase_url = \"{base_url}\"\nmodel = \"{name}\"\n\
         {quirks}\n\n{}required = true\n\n[mcp.auto_approve]\n\"every.*\" = true\n",
        real.everything("every")
    ))
}

fn model_of(format: Format) -> FakeServer {
    FakeServer::builder()
        .everything(move |request| answer(format, TOOL, request))
        .start()
}

/// The last request that was answered.
fn last_request(model: &FakeServer) -> Value {
    let requests: Vec<Received> = model.requests().into_iter().filter(|r| r.method == "POST").collect();
    requests.last().expect("the model was asked").json.clone()
}

/// The picture as it stands in a request of that format.
fn picture_in(format: Format, body: &Value) -> String {
    let of = |list: &str| body[list].as_array().unwrap().clone();
    let found = match format {
        Format::OpenaiChat => {
            let messages = of("messages");
            let at = messages.iter().position(|message| message["role"] == "tool").unwrap();
            assert!(messages[at]["content"].as_str().unwrap().contains(TEXT), "{messages:?}");
            let label = &messages[at + 1]["content"][0]["text"];
            assert_eq!(label, "[images of the result of every.get-tiny-image]");
            messages[at + 1]["content"][1]["image_url"]["url"].clone()
        }
        Format::OpenaiResponses => {
            let input = of("input");
            let at = input
                .iter()
                .position(|item| item["type"] == "function_call_output")
                .unwrap();
            assert!(input[at]["output"].as_str().unwrap().contains(TEXT), "{input:?}");
            input[at + 1]["content"][1]["image_url"].clone()
        }
        Format::Anthropic => {
            let messages = of("messages");
            let content = &messages[2]["content"][0]["content"];
            assert!(content[0]["text"].as_str().unwrap().contains(TEXT), "{content}");
            content[1]["source"]["data"].clone()
        }
        Format::Gemini => {
            let contents = of("contents");
            let response = &contents[2]["parts"][0]["functionResponse"];
            assert!(
                response["response"]["output"].as_str().unwrap().contains(TEXT),
                "{response}"
            );
            response["parts"][0]["inlineData"]["data"].clone()
        }
    };
    let found = found.as_str().unwrap_or_else(|| panic!("no picture in {body:#}"));
    found.rsplit(',').next().unwrap().to_owned()
}

/// SPEC 6.5, 7.2: the picture of a result reaches a model of each format, in the turn and in the next one.
fn reaches(format: Format) {
    let Some(real) = RealServers::installed() else { return };
    let model = model_of(format);
    let sandbox = sandbox(&real, format, &model, "");
    let output = sandbox.run(&["-p", "show me"]).success();
    assert_eq!(output.stdout, format!("{LAST_WORDS}\n"), "{output:?}");
    let picture = picture_in(format, &last_request(&model));
    assert!(picture.starts_with(PNG_BEGINS), "{picture}");
    // From the ledger, by another process.
    sandbox.run(&["--continue", "-p", "again"]).success();
    assert_eq!(picture_in(format, &last_request(&model)), picture);
    let kept = only_export(&sandbox);
    let result = &of_kind(&kept, "tool_result")[0]["data"];
    assert_eq!(
        result["parts"][0],
        json!({"type": "image", "media_type": "image/png", "data": picture})
    );
    assert!(!result["output"].as_str().unwrap().contains(PNG_BEGINS));
    sandbox.assert_nothing_runs();
}

#[test]
fn openai_chat() {
    reaches(Format::OpenaiChat);
}

#[test]
fn openai_responses() {
    reaches(Format::OpenaiResponses);
}

#[test]
fn anthropic() {
    reaches(Format::Anthropic);
}

#[test]
fn gemini() {
    reaches(Format::Gemini);
}

/// SPEC 6.5: a model that takes no images reads what was there, and a status line names it.
#[test]
fn a_model_without_eyes() {
    let Some(real) = RealServers::installed() else { return };
    let model = model_of(Format::OpenaiChat);
    let sandbox = sandbox(&real, Format::OpenaiChat, &model, "images = false");
    let output = sandbox.run(&["-p", "show me"]).success();
    let body = last_request(&model).to_string();
    assert!(!body.contains(PNG_BEGINS), "{body}");
    let results = model.requests().last().unwrap().messages().to_vec();
    let told = results.iter().find(|message| message["role"] == "tool").unwrap();
    let told = told["content"].as_str().unwrap();
    assert!(
        told.contains(TEXT) && told.contains("KB, not shown: the model takes no images]"),
        "{told}"
    );
    let named = "[aish] not shown to fake: image image/png, ";
    assert!(output.stderr.contains(named), "{}", output.stderr);
    assert!(output.stderr.contains("of every.get-tiny-image"), "{}", output.stderr);
}

/// SPEC 2.10, 6.5: an export that is read by people names the picture, one that is read by programs keeps it.
#[test]
fn exports() {
    let Some(real) = RealServers::installed() else { return };
    let model = model_of(Format::OpenaiChat);
    let sandbox = sandbox(&real, Format::OpenaiChat, &model, "");
    let output = sandbox.run(&["-p", "show me", "--output", "json"]).success();
    assert!(!output.stdout.contains(PNG_BEGINS), "{}", output.stdout);
    assert!(!output.stderr.contains(PNG_BEGINS), "{}", output.stderr);
    let id = only_session(&sandbox);
    let markdown = sandbox
        .run(&["sessions", "export", &id, "--format", "markdown"])
        .success();
    let markdown = markdown.stdout;
    assert!(
        markdown.contains("(an image, `image/png`)") && !markdown.contains(PNG_BEGINS),
        "{markdown}"
    );

    let kept = only_export(&sandbox);
    let part = &of_kind(&kept, "tool_result")[0]["data"]["parts"][0];
    assert!(part["data"].as_str().unwrap().starts_with(PNG_BEGINS), "{part}");
}

/// SPEC 6.5, 6.9: text that a tool took from a resource stands under the name by which it can be mentioned, and so do links.
#[test]
fn resources_in_results() {
    let Some(real) = RealServers::installed() else { return };
    let calls = [
        (
            "c1",
            "every__get-resource-reference",
            json!({"resourceType": "Text", "resourceId": 1}),
        ),
        ("c2", "every__get-resource-links", json!({"count": 2})),
    ];
    let model = FakeServer::script([Reply::calls(&calls), Reply::text(LAST_WORDS)]);
    let sandbox = sandbox(&real, Format::OpenaiChat, &model, "");
    sandbox.run(&["-p", "which ones?"]).success();
    let requests = model.requests();
    let told: Vec<&str> = requests[1]
        .messages()
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    let heading = "\n[resource every:demo://resource/dynamic/text/1]\nResource 1:";
    assert!(told[0].contains(heading), "{told:?}");
    let links = told[1]
        .lines()
        .filter(|line| line.starts_with("[resource every:demo://"));
    assert_eq!(links.count(), 2, "{told:?}");
    model.assert_done();
}
