//! What stands beside the conversation in a request.

use super::{encode, profile, profile_of, reader, request, tool, user};
use aish_core::message::ToolChoice;
use aish_provider::codec::Codec;
use aish_provider::codec::gemini::Gemini;
use aish_provider::codec::schema::SchemaDialect;
use aish_provider::profile::{ProviderTool, Reasoning, Support, SystemRole};
use aish_provider::{ModelProfile, Request};
use serde_json::json;

/// SPEC 7.2: the path names the model and the method; the key goes into a header, not into the address.
#[test]
fn path_and_headers() {
    let messages = [user("hi")];
    let path = |profile: &ModelProfile| Gemini.encode(request(&messages, &[]), profile).unwrap().path;
    assert_eq!(
        path(&profile()),
        "/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse"
    );
    let whole = ModelProfile {
        streaming: Support::No,
        ..profile_of("models/gemini-2.5-pro")
    };
    assert_eq!(path(&whole), "/v1beta/models/gemini-2.5-pro:generateContent");
    assert_eq!(
        path(&profile_of("a b?key=c#d:e")),
        "/v1beta/models/a%20b%3Fkey%3Dc%23d%3Ae:streamGenerateContent?alt=sse"
    );
    let key = Gemini.key_header();
    assert_eq!((key.name, key.prefix), ("x-goog-api-key", ""));
}

/// SPEC 6.7: what there is nothing to say of is left out.
#[test]
fn fields_that_are_left_out() {
    let messages = [user("hi")];
    let bare = Request {
        system: "",
        ..request(&messages, &[])
    };
    let body = encode(&profile_of("gemini-2.0-flash"), bare);
    assert_eq!(body, json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}));
    let told = ModelProfile {
        temperature: Some(0.5),
        max_output_tokens: Some(9),
        reasoning: Some(Reasoning::Low),
        ..profile()
    };
    let body = encode(&told, request(&messages, &[]));
    assert_eq!(
        body["generationConfig"],
        json!({"temperature": 0.5, "maxOutputTokens": 9,
            "thinkingConfig": {"includeThoughts": true, "thinkingLevel": "low"}})
    );
    assert_eq!(body["systemInstruction"], json!({"parts": [{"text": "Be brief."}]}));
}

/// SPEC 7.5: models without a place for instructions get them from the user.
#[test]
fn instructions_from_the_user() {
    let gemma = ModelProfile {
        system_role: SystemRole::User,
        ..profile_of("gemma-3-27b-it")
    };
    let body = encode(&gemma, request(&[user("hi")], &[]));
    assert_eq!(
        body["contents"],
        json!([{"role": "user", "parts": [{"text": "Be brief."}, {"text": "hi"}]}])
    );
    assert!(body.get("systemInstruction").is_none());
}

/// SPEC 7.4: parameters in the API's subset where that can hold them, else as JSON Schema, and none where there are none.
#[test]
fn parameters() {
    let open = json!({"type": "object", "properties": {"env": {"type": "object", "additionalProperties": {"type": "string"}}}});
    let tools = [
        reader(),
        tool("none", json!({"type": "object", "properties": {}})),
        tool("open", open.clone()),
        tool("any", json!({"type": "object", "additionalProperties": true})),
    ];
    let messages = [user("hi")];
    let body = encode(&profile(), request(&messages, &tools));
    assert_eq!(
        body["tools"],
        json!([{"functionDeclarations": [
            {"name": "srv__read", "description": "d", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}},
            {"name": "none", "description": "d"},
            {"name": "open", "description": "d", "parametersJsonSchema": open},
            {"name": "any", "description": "d", "parametersJsonSchema":
                {"type": "object", "properties": {}, "additionalProperties": true}},
        ]}])
    );
    assert!(body.get("toolConfig").is_none());
    let full = ModelProfile {
        schemas: SchemaDialect::Full,
        ..profile()
    };
    let body = encode(&full, request(&messages, &tools[..1]));
    assert_eq!(
        body["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"],
        tools[0].input_schema
    );
}

/// SPEC 3.6, 9.7: a turn's last word has no calls; a search beside functions goes with the third generation only.
#[test]
fn tools_and_choices() {
    let messages = [user("hi")];
    let tools = [reader()];
    let forbidden = Request {
        tool_choice: ToolChoice::None,
        ..request(&messages, &tools)
    };
    let none = json!({"functionCallingConfig": {"mode": "NONE"}});
    assert_eq!(encode(&profile(), forbidden)["toolConfig"], none);
    let searching = |model: &str| ModelProfile {
        provider_tools: vec![ProviderTool::WebSearch],
        ..profile_of(model)
    };
    let both = encode(&searching("gemini-3.8-flash"), request(&messages, &tools));
    assert_eq!(both["tools"].as_array().unwrap().len(), 2);
    assert_eq!(both["tools"][1], json!({"googleSearch": {}}));
    assert_eq!(
        both["toolConfig"],
        json!({"functionCallingConfig": {"mode": "VALIDATED"}, "includeServerSideToolInvocations": true})
    );
    let older = encode(&searching("gemini-2.5-pro"), request(&messages, &tools));
    assert_eq!(older["tools"].as_array().unwrap().len(), 1);
    assert!(older["tools"][0].get("functionDeclarations").is_some() && older.get("toolConfig").is_none());
    let alone = encode(&searching("gemini-2.5-pro"), request(&messages, &[]));
    assert_eq!(alone["tools"], json!([{"googleSearch": {}}]));
    assert!(alone.get("toolConfig").is_none());
}

/// SPEC 7.2: structured output by the API's field where it goes with the functions offered, else in words.
#[test]
fn structured_output() {
    let messages = [user("hi")];
    let tools = [reader()];
    let schema = json!({"type": "array", "items": {"type": "string"}});
    let asked = |tools| Request {
        schema: Some(&schema),
        ..request(&messages, tools)
    };
    for body in [
        encode(&profile(), asked(&tools)),
        encode(&profile_of("gemini-2.0-flash"), asked(&[])),
    ] {
        assert_eq!(body["generationConfig"]["responseMimeType"], "application/json");
        assert_eq!(body["generationConfig"]["responseJsonSchema"], schema);
    }
    let unable = ModelProfile {
        structured_output: Support::No,
        ..profile()
    };
    for body in [
        encode(&profile_of("gemini-2.5-pro"), asked(&tools)),
        encode(&unable, asked(&[])),
    ] {
        assert!(body["generationConfig"].get("responseJsonSchema").is_none());
        let system = body["systemInstruction"]["parts"][0]["text"].as_str().unwrap();
        assert!(
            system.contains(r#"{"items":{"type":"string"},"type":"array"}"#),
            "{system}"
        );
    }
}
