//! Google's `generateContent`.

use super::*;

fn user(text: &str) -> Value {
    json!({"role": "user", "parts": [{"text": text}]})
}

fn call(name: &str) -> Value {
    json!({"functionCall": {"name": name, "args": {}}})
}

fn response(name: &str) -> Value {
    json!({"functionResponse": {"name": name, "response": {"output": "x"}}})
}

/// A turn under way in its second round, after one that is over.
fn good() -> Value {
    let signed = |name| {
        let mut call = call(name);
        call["thoughtSignature"] = json!("xyz");
        call
    };
    let parameters = json!({
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "enum": ["a", "b"]},
            "many": {"type": "array", "items": {"type": "integer", "format": "int32"}},
        },
        "required": ["pattern"],
    });
    json!({
        "systemInstruction": {"parts": [{"text": "be brief"}]},
        "generationConfig": {"maxOutputTokens": 9, "responseMimeType": "application/json", "responseSchema": {"type": "string"}},
        "tools": [{"functionDeclarations": [
            {"name": "glob", "description": "d", "parameters": parameters}, {"name": "grep", "description": "d"},
        ]}],
        "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
        "contents": [
            user("a"),
            {"role": "model", "parts": [call("glob")]},
            {"role": "user", "parts": [response("glob")]},
            {"role": "model", "parts": [{"text": "hm", "thought": true}, {"text": "b"}]},
            {"role": "user", "parts": [{"text": "see"}, {"inlineData": {"mimeType": "image/png", "data": "AA"}}]},
            {"role": "model", "parts": [signed("glob"), call("grep")]},
            {"role": "user", "parts": [response("glob"), response("grep")]},
            {"role": "model", "parts": [signed("grep")]},
            {"role": "user", "parts": [response("grep")]},
        ],
    })
}

/// SPEC 7.2: what Gemini refuses of the fields of a request.
#[test]
fn fields_of_a_request() {
    takes(Api::Gemini, &json!({"contents": [user("hello")]}));
    refuses(
        Api::Gemini,
        &good(),
        &[
            (|b| b["model"] = json!("m"), "Unknown name \"model\""),
            (
                |b| b["generationConfig"]["maxTokens"] = json!(9),
                "Unknown name \"maxTokens\"",
            ),
            (|b| b["generationConfig"]["maxOutputTokens"] = json!(0), "below minimum"),
            (|b| remove(b, "/generationConfig", "responseMimeType"), "mime type"),
            (
                |b| b["generationConfig"]["responseSchema"] = json!({"type": "object"}),
                "non-empty for OBJECT type",
            ),
            (
                |b| set(b, "/systemInstruction/parts/0/text", json!("")),
                "must not be empty",
            ),
            (|b| b["tools"] = json!([]), "empty array"),
            (|b| set(b, "/tools/0/functionDeclarations", json!([])), "empty array"),
            (
                |b| set(b, "/tools/0/functions", json!([])),
                "Unknown name \"functions\"",
            ),
            (
                |b| set(b, "/tools/0/functionDeclarations/1/name", json!("glob")),
                "Duplicate",
            ),
            (
                |b| set(b, "/tools/0/functionDeclarations/1/name", json!("1st")),
                "Must start with a letter",
            ),
            (
                |b| set(b, "/tools/0/functionDeclarations/1/strict", json!(true)),
                "Unknown name \"strict\"",
            ),
            (|b| remove(b, "", "tools"), "without function_declarations"),
            (
                |b| remove(b, "/tools/0/functionDeclarations/0/parameters", "type"),
                "must be a JSON Schema of",
            ),
        ],
    );
    let refused = |path: &str, body: &Value| check(Api::Gemini, path, [], body).unwrap_err().message;
    assert!(refused("/v1beta/models/:generateContent", &good()).contains("Not found"));
    assert!(refused("/v1beta/models/m:countTokens", &good()).contains("Not found"));
    let mut own_tools_too = good();
    push(&mut own_tools_too, "/tools", json!({"googleSearch": {}}));
    takes(Api::Gemini, &own_tools_too);
    let older = "/v1beta/models/gemini-2.5-flash:generateContent";
    assert!(refused(older, &own_tools_too).contains("Tool use with function calling is unsupported"));
}

const SCHEMAS: &[(Break, &str)] = &[
    (
        |b| {
            set(
                b,
                "/tools/0/functionDeclarations/0/parameters/additionalProperties",
                json!(false),
            )
        },
        "Unknown name \"additionalProperties\"",
    ),
    (
        |b| {
            set(
                b,
                "/tools/0/functionDeclarations/0/parameters/properties/pattern/const",
                json!("a"),
            )
        },
        "Unknown name \"const\"",
    ),
    (
        |b| {
            set(
                b,
                "/tools/0/functionDeclarations/0/parameters/properties/pattern/type",
                json!(["string", "null"]),
            )
        },
        ".type'",
    ),
    (
        |b| {
            set(
                b,
                "/tools/0/functionDeclarations/0/parameters/properties/pattern/type",
                json!("text"),
            )
        },
        ".type'",
    ),
    (
        |b| {
            set(
                b,
                "/tools/0/functionDeclarations/0/parameters/properties/pattern/type",
                json!("integer"),
            )
        },
        "only allowed for STRING type",
    ),
    (
        |b| {
            set(
                b,
                "/tools/0/functionDeclarations/0/parameters/properties/pattern/enum",
                json!([""]),
            )
        },
        "cannot be empty",
    ),
    (
        |b| {
            set(
                b,
                "/tools/0/functionDeclarations/0/parameters/properties/pattern/format",
                json!("uri"),
            )
        },
        "only [\"enum\", \"date-time\"]",
    ),
    (
        |b| remove(b, "/tools/0/functionDeclarations/0/parameters/properties/many", "items"),
        "missing field",
    ),
    (
        |b| {
            set(
                b,
                "/tools/0/functionDeclarations/0/parameters/required",
                json!(["name"]),
            )
        },
        "property is not defined",
    ),
    (
        |b| set(b, "/tools/0/functionDeclarations/0/parameters/properties", json!({})),
        "non-empty for OBJECT type",
    ),
    (
        |b| {
            set(
                b,
                "/tools/0/functionDeclarations/0/parameters/properties/many/items/anyOf",
                json!([{}]),
            )
        },
        "must have a type",
    ),
];

/// SPEC 3.8: what Gemini takes of a schema.
#[test]
fn schemas() {
    refuses(Api::Gemini, &good(), SCHEMAS);
}

/// SPEC 2.7, 3.7: who speaks when, and which responses answer which calls, in order.
#[test]
fn turns() {
    refuses(
        Api::Gemini,
        &good(),
        &[
            (|b| b["contents"] = json!([]), "contents is not specified"),
            (|b| remove(b, "/contents", "0"), "alternate"),
            (|b| set(b, "/contents/0/role", json!("function")), "alternate"),
            (|b| remove(b, "/contents", "8"), "end with a user role"),
            (|b| set(b, "/contents/0/parts", json!([])), "must not be empty"),
            (
                |b| set(b, "/contents/0/parts/0/text", json!("")),
                "required oneof field",
            ),
            (|b| set(b, "/contents/0/parts/0", json!({})), "required oneof field"),
            (
                |b| set(b, "/contents/0/parts/0/functionCall", json!({})),
                "required oneof field",
            ),
            (|b| push(b, "/contents/0/parts", call("glob")), "required oneof field"),
            (
                |b| push(b, "/contents/3/parts", response("glob")),
                "required oneof field",
            ),
            (
                |b| set(b, "/contents/4/parts/1/inlineData/data", json!("")),
                "inline_data",
            ),
            (
                |b| remove(b, "/contents/6/parts", "1"),
                "number of function response parts",
            ),
            (
                |b| b["contents"][6]["parts"].as_array_mut().unwrap().swap(0, 1),
                "number of function response parts",
            ),
            (
                |b| push(b, "/contents/4/parts", response("glob")),
                "comes immediately after a function call turn",
            ),
            (
                |b| set(b, "/contents/6/parts/0", json!({"text": "x"})),
                "number of function response parts",
            ),
            (
                |b| set(b, "/contents/5/parts/1/functionCall/args", json!("{}")),
                "Struct",
            ),
            (
                |b| set(b, "/contents/6/parts/1/functionResponse/response", json!("x")),
                "Struct",
            ),
            (
                |b| remove(b, "/contents/6/parts/1/functionResponse", "response"),
                "missing field",
            ),
            (
                |b| set(b, "/contents/5/parts/1/functionCall/name", json!("a b")),
                "Must start with",
            ),
        ],
    );
}

/// SPEC 7.4: the third generation wants the first call of each reply of the turn under way signed; earlier turns, further
/// calls and older models need none.
#[test]
fn signatures() {
    refuses(
        Api::Gemini,
        &good(),
        &[
            (
                |b| remove(b, "/contents/5/parts/0", "thoughtSignature"),
                "missing a thought_signature",
            ),
            (
                |b| remove(b, "/contents/7/parts/0", "thoughtSignature"),
                "missing a thought_signature",
            ),
            (
                |b| set(b, "/contents/7/parts/0/thoughtSignature", json!("")),
                "missing a thought_signature",
            ),
        ],
    );
    let mut unsigned = good();
    remove(&mut unsigned, "/contents/5/parts/0", "thoughtSignature");
    let older = "/v1beta/models/gemini-2.5-flash:generateContent";
    assert!(check(Api::Gemini, older, [], &unsigned).is_ok());
}
