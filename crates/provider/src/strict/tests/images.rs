//! Images of results.

use super::*;

/// What a call's id is named where it is answered.
const ANSWERED_ID: &str = concat!("tool_", "use_id");
const PNG: &str = "iVBORw0K";

/// SPEC 6.5, 7.2: what Anthropic refuses of a result with images.
#[test]
fn anthropic() {
    let good = json!({
        "model": "m", "max_tokens": 9, "tools": [{"name": "see", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": "look"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "see", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", ANSWERED_ID: "a", "content": [
                {"type": "text", "text": "x"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
            ]}]},
        ],
    });
    const RESULT: &str = "/messages/2/content/0";
    refuses(
        Api::Anthropic,
        &good,
        &[
            (
                |b| set(b, "/messages/2/content/0/is_error", json!(true)),
                "all content must be type `text`",
            ),
            (
                |b| {
                    set(
                        b,
                        "/messages/2/content/0/content/1/source/media_type",
                        json!("image/tiff"),
                    )
                },
                "media_type",
            ),
            (
                |b| set(b, "/messages/2/content/0/content/0/text", json!("")),
                "non-empty",
            ),
        ],
    );
    let mut failed = good;
    set(&mut failed, &format!("{RESULT}/content"), json!("x"));
    set(&mut failed, &format!("{RESULT}/is_error"), json!(true));
    takes(Api::Anthropic, &failed);
}

/// SPEC 6.5, 7.2: what Responses refuse of a result with images.
#[test]
fn responses() {
    let good = json!({"model": "m", "input": [
        {"role": "user", "content": "look"},
        {"type": "function_call", "call_id": "a", "name": "see", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": [
            {"type": "input_text", "text": "x"},
            {"type": "input_image", "image_url": format!("data:image/png;base64,{PNG}")},
        ]},
    ]});
    refuses(
        Api::OpenaiResponses,
        &good,
        &[
            (|b| set(b, "/input/2/output", json!([])), "input[2].output"),
            (
                |b| set(b, "/input/2/output/0/type", json!("output_text")),
                "Supported values are",
            ),
            (|b| set(b, "/input/2/output/0/text", json!("")), "content[0].text"),
            (|b| set(b, "/input/2/output/1/image_url", json!(PNG)), "image_url"),
        ],
    );
}

/// SPEC 6.5, 7.2: what Gemini refuses of a response with images, and which models refuse them all.
#[test]
fn gemini() {
    let call = json!({"functionCall": {"name": "see", "args": {}}, "thoughtSignature": "x"});
    let response = json!({
        "name": "see", "response": {"output": "x"}, "parts": [{"inlineData": {"mimeType": "image/png", "data": PNG}}],
    });
    let good = json!({
        "tools": [{"functionDeclarations": [{"name": "see", "description": "d"}]}],
        "contents": [
            {"role": "user", "parts": [{"text": "look"}]},
            {"role": "model", "parts": [call]},
            {"role": "user", "parts": [{"functionResponse": response}]},
        ],
    });
    refuses(
        Api::Gemini,
        &good,
        &[
            (
                |b| {
                    let place = "/contents/2/parts/0/functionResponse/parts/0/inlineData/mimeType";
                    set(b, place, json!("image/gif"));
                },
                "Unsupported MIME type",
            ),
            (
                |b| set(b, "/contents/2/parts/0/functionResponse/parts", json!([])),
                "Unsupported MIME type",
            ),
        ],
    );
    let older = "/v1beta/models/gemini-2.5-flash:generateContent";
    let refusal = check(Api::Gemini, older, [], &good).unwrap_err().message;
    assert!(refusal.contains("not supported for this model"), "{refusal}");
}
