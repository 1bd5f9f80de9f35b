//! Images of results, as each wire format takes them (SPEC 6.5). What the real API would refuse is a failure.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use aish_core::id::CallId;
use aish_core::message::{Message, MessageCall, Part};
use aish_provider::profile::{Alternation, Format, ModelProfile, Support, ToolRole};
use serde_json::{Value, json};

#[path = "hazards/wire.rs"]
#[allow(dead_code)]
mod wire;

const PNG: &str = "iVBORw0KGgoAAAAA";
const GIF: &str = "R0lGODlhAAAA";

fn image(media_type: &str, data: &str) -> Part {
    Part::Image {
        media_type: media_type.into(),
        data: data.into(),
    }
}

fn result(n: usize, success: bool, parts: Vec<Part>) -> Message {
    Message::Tool {
        call_id: CallId::nth(1, n),
        provider_id: None,
        name: "srv.read".into(),
        output: format!("result {n}"),
        success,
        parts,
    }
}

/// A question, a reply with two calls, the results.
fn round(first: Message, second: Message) -> Vec<Message> {
    let call = |n| MessageCall {
        id: CallId::nth(1, n),
        provider_id: None,
        name: "srv.read".into(),
        arguments: "{}".into(),
    };
    vec![
        Message::User {
            parts: vec![Part::text("look")],
        },
        Message::Assistant {
            parts: Vec::new(),
            calls: vec![call(1), call(2)],
            model: None,
        },
        first,
        second,
    ]
}

/// Two results, of which the first has a picture.
fn pictured(success: bool) -> Vec<Message> {
    round(
        result(1, success, vec![image("image/png", PNG)]),
        result(2, true, Vec::new()),
    )
}

#[track_caller]
fn sent(profile: &ModelProfile, messages: &[Message]) -> Value {
    wire::send("other", profile, messages).body
}

/// The last messages of a list.
fn tail<'b>(body: &'b Value, list: &str, count: usize) -> &'b [Value] {
    let all = body[list].as_array().unwrap();
    &all[all.len() - count..]
}

const LABEL: &str = "[images of the result of srv.read]";
const BELOW: &str = "result 1\n[image image/png, 1 KB, shown below]";

fn data_url() -> String {
    format!("data:image/png;base64,{PNG}")
}

/// SPEC 6.5: chat completions take text for results; the images follow all of the round's, and say whose they are.
#[test]
fn chat() {
    let profile = wire::profile(Format::OpenaiChat);
    let following = json!([
        {"type": "text", "text": LABEL}, {"type": "image_url", "image_url": {"url": data_url()}},
    ]);
    for success in [true, false] {
        let body = sent(&profile, &pictured(success));
        let [first, second, user] = tail(&body, "messages", 3) else {
            panic!("{body}");
        };
        assert_eq!((&first["role"], &first["content"]), (&json!("tool"), &json!(BELOW)));
        assert_eq!(second["content"], "result 2");
        assert_eq!(user, &json!({"role": "user", "content": following}));
    }

    // What the person says next is the same message.
    let mut steered = pictured(true);
    steered.push(Message::User {
        parts: vec![Part::text("and?")],
    });
    let body = sent(&profile, &steered);
    let content = &tail(&body, "messages", 1)[0]["content"];
    assert_eq!(content[2], json!({"type": "text", "text": "and?"}));

    // Where a result must be followed by the assistant, it is.
    let mut strict = profile.clone();
    strict.alternation = Alternation::Strict;
    let body = sent(&strict, &pictured(true));
    let roles: Vec<&Value> = tail(&body, "messages", 4)
        .iter()
        .map(|message| &message["role"])
        .collect();
    assert_eq!(roles, ["tool", "tool", "assistant", "user"]);

    let mut text = profile;
    text.tool_role = ToolRole::Text;
    let body = sent(&text, &pictured(true));
    let content = &tail(&body, "messages", 1)[0]["content"];
    assert_eq!(content[1], json!({"type": "text", "text": LABEL}));
    assert_eq!(content[2]["image_url"]["url"], json!(data_url()));
}

/// SPEC 6.5: OpenAI's own Responses take images in the result; servers that imitate it take them from the user only.
#[test]
fn responses() {
    let profile = wire::profile(Format::OpenaiResponses);
    let picture = json!({"type": "input_image", "image_url": data_url(), "detail": "auto"});
    let body = sent(&profile, &pictured(false));
    let [first, second] = tail(&body, "input", 2) else {
        panic!("{body}");
    };
    assert_eq!(
        first["output"],
        json!([{"type": "input_text", "text": "result 1"}, picture])
    );
    assert_eq!(second["output"], "result 2");

    let other = ModelProfile::new(Format::OpenaiResponses, "http://127.0.0.1:8080/v1", "m");
    let body = sent(&other, &pictured(true));
    let [first, second, user] = tail(&body, "input", 3) else {
        panic!("{body}");
    };
    assert_eq!(
        (&first["output"], &second["output"]),
        (&json!(BELOW), &json!("result 2"))
    );
    assert_eq!(user["content"], json!([{"type": "input_text", "text": LABEL}, picture]));
}

/// SPEC 6.5: Anthropic takes images in a result, but for one that failed.
#[test]
fn anthropic() {
    let profile = wire::profile(Format::Anthropic);
    let picture = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}});
    let body = sent(&profile, &pictured(true));
    let content = tail(&body, "messages", 1)[0]["content"].as_array().unwrap().clone();
    assert_eq!(content.len(), 2, "{content:?}");
    assert_eq!(
        content[0]["content"],
        json!([{"type": "text", "text": "result 1"}, picture])
    );
    assert_eq!(content[1]["content"], "result 2");

    let body = sent(&profile, &pictured(false));
    let content = tail(&body, "messages", 1)[0]["content"].as_array().unwrap().clone();
    assert_eq!(content[0]["content"], BELOW);
    assert_eq!(content[2]["text"], LABEL);
    assert_eq!(content[3]["source"], picture["source"]);
}

/// SPEC 6.5: Gemini takes images in a response from its third generation on, and no GIF at all.
#[test]
fn gemini() {
    let inline = json!({"inlineData": {"mimeType": "image/png", "data": PNG}});
    let messages = round(
        result(1, true, vec![image("image/gif", GIF), image("image/png", PNG)]),
        result(2, true, Vec::new()),
    );
    let no_gif = "result 1\n[image image/gif, 1 KB, not shown: the model does not take this kind]";
    let body = sent(&wire::profile(Format::Gemini), &messages);
    let parts = &tail(&body, "contents", 1)[0]["parts"];
    assert_eq!(parts[0]["functionResponse"]["response"], json!({"output": no_gif}));
    assert_eq!(parts[0]["functionResponse"]["parts"], json!([inline]));
    assert!(parts[1]["functionResponse"].get("parts").is_none());

    let older = ModelProfile::new(
        Format::Gemini,
        "https://generativelanguage.googleapis.com",
        "gemini-2.5-flash",
    );
    let body = sent(&older, &messages);
    let parts = tail(&body, "contents", 1)[0]["parts"].as_array().unwrap().clone();
    let [first, second, label, picture] = parts.as_slice() else {
        panic!("{parts:?}");
    };
    let below = format!("{no_gif}\n[image image/png, 1 KB, shown below]");
    assert_eq!(first["functionResponse"]["response"], json!({"output": below}));
    assert_eq!(second["functionResponse"]["response"], json!({"output": "result 2"}));
    assert_eq!((label, picture), (&json!({"text": LABEL}), &inline));
}

/// SPEC 6.5: for a model that takes no images they are named in the result, in every format.
#[test]
fn models_without_images() {
    for format in Format::ALL {
        let mut profile = wire::profile(format);
        profile.images = Support::No;
        let sent = wire::send("other", &profile, &pictured(true));
        let named = "result 1\n[image image/png, 1 KB, not shown: the model takes no images]";
        assert!(
            sent.results.iter().any(|said| said.contains(named)),
            "{format:?}: {:?}",
            sent.results
        );
        assert!(!sent.body.to_string().contains(PNG), "{format:?}");
    }
}
