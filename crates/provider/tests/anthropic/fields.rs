//! Requests: what stands beside the messages.

use super::*;
use aish_provider::profile::{CallsPerReply, ProviderTool, Support, SystemRole};

/// SPEC 7.1, 7.2: a bare request: where it goes, its headers, and no field that nobody asked for.
#[test]
fn a_plain_question() {
    let messages = [user("hi")];
    let encoded = encoded(request(&messages, &[]), &profile());
    assert_eq!(encoded.path, "/v1/messages");
    let headers: Vec<(&str, &str)> = encoded.headers.iter().map(|(name, value)| (*name, &**value)).collect();
    assert_eq!(
        headers,
        [
            ("content-type", "application/json"),
            ("accept", "text/event-stream, application/json"),
            ("anthropic-version", "2023-06-01"),
        ]
    );
    assert_eq!(Anthropic.key_header().name, "x-api-key");
    let body: Value = serde_json::from_slice(&encoded.body).unwrap();
    let expect = json!({
        "model": "m",
        "max_tokens": 8192,
        "messages": [{"role": "user", "content": [wire_text("hi")]}],
        "stream": true,
    });
    assert_eq!(body, expect);
}

/// SPEC 7.2: the system text and the tools.
#[test]
fn what_stands_beside_the_messages() {
    let messages = [user("hi")];
    let tools = [tool()];
    let asked = Request {
        system: "Be brief.",
        max_output_tokens: Some(99),
        ..request(&messages, &tools)
    };
    let full = body(
        asked,
        &ModelProfile {
            temperature: Some(0.5),
            ..profile()
        },
    );
    assert_eq!(full["system"], json!([wire_text("Be brief.")]));
    assert_eq!(full["max_tokens"], 99);
    assert_eq!(full["temperature"], 0.5);
    assert_eq!(full.get("tool_choice"), None);
    let wire_tool = json!({"name": "weather__get", "description": "Get weather", "input_schema": tool().input_schema});
    assert_eq!(full["tools"], json!([wire_tool]));

    let none = body(
        Request {
            tool_choice: ToolChoice::None,
            ..asked
        },
        &profile(),
    );
    assert_eq!(none["tool_choice"], json!({"type": "none"}));
    assert_eq!(none["tools"], json!([wire_tool]), "the tools stay, for the cache");

    let one = body(
        asked,
        &ModelProfile {
            calls: CallsPerReply::One,
            ..profile()
        },
    );
    assert_eq!(
        one["tool_choice"],
        json!({"type": "auto", "disable_parallel_tool_use": true})
    );
    let unasked = ModelProfile {
        calls: CallsPerReply::One,
        parallel_field: Support::No,
        ..profile()
    };
    assert_eq!(body(asked, &unasked).get("tool_choice"), None);
}

/// SPEC 7.5: an endpoint that does not stream, a template without a system role.
#[test]
fn what_may_be_switched_off() {
    let messages = [user("hi")];
    let asked = Request {
        system: "Be brief.",
        ..request(&messages, &[])
    };
    let whole = body(
        asked,
        &ModelProfile {
            streaming: Support::No,
            ..profile()
        },
    );
    assert_eq!(whole["stream"], false);

    let first = body(
        asked,
        &ModelProfile {
            system_role: SystemRole::User,
            ..profile()
        },
    );
    assert_eq!(first.get("system"), None);
    assert_eq!(
        first["messages"],
        json!([{"role": "user", "content": [wire_text("Be brief."), wire_text("hi")]}])
    );
}

/// A reply never gets more tokens than the model's context holds.
#[test]
fn max_tokens_fit_the_context() {
    let messages = [user("hi")];
    let max_tokens = |window, asked| {
        let profile = ModelProfile {
            context_window: Some(window),
            ..profile()
        };
        let asked = Request {
            max_output_tokens: asked,
            ..request(&messages, &[])
        };
        body(asked, &profile)["max_tokens"].as_u64().unwrap()
    };
    assert_eq!(max_tokens(200_000, None), 8_192);
    assert_eq!(max_tokens(4_096, None), 2_048);
    assert_eq!(max_tokens(4_096, Some(10_000)), 4_096);
    assert_eq!(max_tokens(0, None), 1);
}

/// SPEC 7.2 and the issue's 4.4: what the next request begins with again is marked, in at most four places.
#[test]
fn cache_marks() {
    let cloud = ModelProfile::new(Format::Anthropic, "https://api.anthropic.com", "claude-sonnet-4-5");
    let conversation = [
        user("a"),
        assistant(vec![], vec![call(1, "t1", "{}")]),
        result(1, "r"),
        assistant(vec![], vec![call(2, "t2", "{}")]),
        result(2, "s"),
    ];
    let tools = [
        tool(),
        ToolSpec {
            name: "other".to_owned(),
            ..tool()
        },
    ];
    let asked = Request {
        system: "Be brief.",
        ..request(&conversation, &tools)
    };
    let mark = json!({"type": "ephemeral"});
    let marked = body(asked, &cloud);
    assert_eq!(marked["system"][0]["cache_control"], mark);
    assert_eq!(marked["tools"][0].get("cache_control"), None);
    assert_eq!(marked["tools"][1]["cache_control"], mark);
    assert_eq!(marked["messages"][0]["content"][0].get("cache_control"), None);
    assert_eq!(marked["messages"][2]["content"][0]["cache_control"], mark);
    assert_eq!(marked["messages"][4]["content"][0]["cache_control"], mark);
    assert_eq!(marked.to_string().matches("cache_control").count(), 4);
    assert!(!body(asked, &profile()).to_string().contains("cache_control"));
}

/// SPEC 9.7 and the issue's 4.1: a provider's tool stands before ours; one of ours of the same name gives way.
#[test]
fn provider_tools() {
    let searching = ModelProfile {
        provider_tools: vec![ProviderTool::WebSearch],
        ..profile()
    };
    let conversation = [user("a")];
    let tools = [
        ToolSpec {
            name: "web_search".to_owned(),
            ..tool()
        },
        tool(),
    ];
    let wire = body(request(&conversation, &tools), &searching);
    assert_eq!(
        wire["tools"][0],
        json!({"type": "web_search_20250305", "name": "web_search"})
    );
    assert_eq!(wire["tools"].as_array().unwrap().len(), 2);
    assert_eq!(wire["tools"][1]["name"], "weather__get");
}

/// A tool without a proper schema is offered all the same.
#[test]
fn schemas_are_objects() {
    for schema in [json!({}), json!(true), json!({"properties": {}})] {
        let tools = [ToolSpec {
            input_schema: schema,
            ..tool()
        }];
        let wire = body(request(&[user("a")], &tools), &profile());
        assert_eq!(wire["tools"][0]["input_schema"]["type"], "object");
    }
}

/// An endpoint that is not of this network.
fn cloud() -> ModelProfile {
    ModelProfile::new(Format::Anthropic, "https://models.example.com", "m")
}

/// The issue's 4.5: a schema for the reply goes into its field, or into words.
#[test]
fn structured_output() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
    let conversation = [user("a")];
    let asked = Request {
        system: "Be brief.",
        schema: Some(&schema),
        ..request(&conversation, &[])
    };
    let wire = body(asked, &cloud());
    let closed = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": false});
    assert_eq!(
        wire["output_config"],
        json!({"format": {"type": "json_schema", "schema": closed}})
    );
    assert_eq!(wire["system"][0]["text"], "Be brief.");
    let told = ModelProfile {
        structured_output: Support::No,
        ..cloud()
    };
    let wire = body(asked, &told);
    assert_eq!(wire.get("output_config"), None);
    let system = wire["system"][0]["text"].as_str().unwrap();
    assert!(
        system.starts_with("Be brief.\n\n") && system.contains(&schema.to_string()),
        "{system}"
    );
}

/// SPEC 7.2: what the API's structured output cannot hold is told in words; so is everything where the API is only imitated,
/// because llama.cpp does not read the field.
#[test]
fn structured_output_in_words() {
    let conversation = [user("a")];
    let tools = [tool()];
    let sent = |schema: &Value, profile: &ModelProfile| {
        let asked = Request {
            schema: Some(schema),
            ..request(&conversation, &tools)
        };
        let wire = body(asked, profile);
        let is_told = wire["system"][0]["text"]
            .as_str()
            .is_some_and(|text| text.contains(&schema.to_string()));
        (wire.get("output_config").is_some(), is_told)
    };
    for schema in [
        json!({"type": "array", "items": {"type": "string"}}),
        json!({"type": "object", "properties": {}, "additionalProperties": {"type": "string"}}),
        json!({"type": "object", "properties": {"n": {"$ref": "#"}}}),
    ] {
        assert_eq!(sent(&schema, &cloud()), (false, true), "{schema}");
    }
    let plain = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    assert_eq!(sent(&plain, &cloud()), (true, false));
    assert_eq!(sent(&plain, &profile()), (true, true));
}
