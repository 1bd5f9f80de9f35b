//! Results as servers send them, and as they should not.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;
use proptest::prelude::*;
use serde_json::json;

const BYTES_MAX: usize = 10_000;
/// The smallest PNG there is, one transparent pixel.
fn alias() -> Alias {
    Alias::parse("srv").unwrap()
}

const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn check(result: Value, text: &str, remarks: &[&str]) {
    let outcome = Outcome::read(&alias(), &result, BYTES_MAX);
    assert_eq!(outcome.text, text, "{result}");
    assert_eq!(outcome.remarks, remarks, "{result}");
}

/// SPEC 6.5: a result is all its text blocks joined, as plain text.
#[test]
fn text_blocks_are_joined() {
    check(json!({"content": [{"type": "text", "text": "one"}]}), "one", &[]);
    check(
        json!({"content": [{"type": "text", "text": "a\n"}, {"type": "text", "text": ""}, {"type": "text", "text": "{\"b\":1}"}]}),
        "a\n\n\n{\"b\":1}",
        &[],
    );
    check(json!({"content": []}), "", &[]);
}

/// SPEC 6.5: resources that are text are text, under the name by which they can be mentioned, and so are links; what is neither
/// is remarked on.
#[test]
fn other_blocks() {
    check(
        json!({"content": [
            {"type": "text", "text": "see"},
            {"type": "resource", "resource": {"uri": "a://b", "text": "inside"}},
            {"type": "resource", "resource": {"uri": "a://c", "mimeType": "application/pdf", "blob": "JVBERi0="}},
            {"type": "resource_link", "uri": "a://d", "name": "D\u{1b}[31m"},
            {"type": "audio", "mimeType": "audio/wav", "data": "A".repeat(4_000)},
            {"type": "hologram", "text": "x"},
        ]}),
        "see\n[resource srv:a://b]\ninside\n[resource srv:a://d]",
        &[
            "a resource (application/pdf, 1 KB)",
            "a sound (audio/wav, 3 KB)",
            "a block of type hologram",
        ],
    );
}

/// SPEC 6.5: structured content speaks where no text does.
#[test]
fn structured_content() {
    let structured = json!({"result": 3});
    check(
        json!({"content": [], "structuredContent": structured}),
        r#"{"result":3}"#,
        &[],
    );
    check(json!({"structuredContent": [1, "é"]}), r#"[1,"é"]"#, &[]);
    check(
        json!({"content": [{"type": "text", "text": "3"}], "structuredContent": structured}),
        "3",
        &[],
    );
    check(json!({"content": [], "structuredContent": null}), "", &[]);
}

/// SPEC 6.5: `isError` changes nothing about the text.
#[test]
fn errors_of_tools() {
    let outcome = Outcome::read(
        &alias(),
        &json!({"content": [{"type": "text", "text": "bad"}], "isError": true}),
        BYTES_MAX,
    );
    assert_eq!((outcome.text.as_str(), outcome.is_error), ("bad", true));
    for other in [json!("true"), json!(1), json!(null)] {
        assert!(!Outcome::read(&alias(), &json!({"content": [], "isError": other}), BYTES_MAX).is_error);
    }
}

/// SPEC 6.5: images go along where models can take them, as what they are and not as what they are called.
#[test]
fn images() {
    let image = |data: &str, mime: Value| {
        Outcome::read(
            &alias(),
            &json!({"content": [{"type": "image", "data": data, "mimeType": mime}]}),
            BYTES_MAX,
        )
    };
    let part = Part::Image {
        media_type: "image/png".into(),
        data: PNG.into(),
    };
    assert_eq!(image(PNG, json!("image/png")).images, std::slice::from_ref(&part));
    assert_eq!(image(PNG, json!("image/jpeg")).images, std::slice::from_ref(&part));
    let broken_up = PNG
        .trim_end_matches('=')
        .as_bytes()
        .chunks(20)
        .map(|piece| std::str::from_utf8(piece).unwrap());
    let broken_up = broken_up.collect::<Vec<_>>().join("\r\n");
    let taken = image(&broken_up, json!(7));
    assert_eq!((taken.images, taken.remarks), (vec![part], Vec::new()));

    let refused = |data: &str, remark: &str| {
        let outcome = image(data, json!("image/png"));
        assert_eq!(
            (outcome.images.len(), &outcome.remarks[..]),
            (0, &[remark.to_owned()][..])
        );
    };
    refused("!!", "an image (image/png, 1 KB), left out: its base64 is broken");
    refused(
        "PHN2Zz4=",
        "an image (image/png, 1 KB), left out: models do not take its kind",
    );
    refused("", "an image (image/png, 0 KB), left out: models do not take its kind");
    let large = format!("iVBORw0K{}", "A".repeat(6 << 20));
    refused(&large, "an image (image/png, 4719 KB), left out: it is too large");
    let many: Vec<Value> = (0..30).map(|_| json!({"type": "image", "data": PNG})).collect();
    let most = Outcome::read(&alias(), &json!({ "content": many }), BYTES_MAX);
    assert_eq!((most.images.len(), most.remarks.len()), (IMAGES_MAX, 10));
    assert!(most.remarks[0].ends_with("left out: there are too many"), "{most:?}");
    let full = format!("iVBORw0K{}", "A".repeat((5 << 20) - 8));
    let heavy =
        json!([{"type": "image", "data": full}, {"type": "image", "data": full}, {"type": "image", "data": PNG}]);
    let kept = Outcome::read(&alias(), &json!({ "content": heavy }), BYTES_MAX);
    assert_eq!(kept.images.len(), 2);
    assert_eq!(
        kept.remarks,
        ["an image (unknown type, 1 KB), left out: together they are too large"]
    );
}

/// SPEC 4.3, 6.5: text is cut on a character boundary, and the cut is said.
#[test]
fn long_text_is_cut() {
    let result = json!({"content": [{"type": "text", "text": "éé"}, {"type": "text", "text": "éé"}]});
    assert_eq!(Outcome::read(&alias(), &result, 9).text, "éé\néé");
    assert_eq!(
        Outcome::read(&alias(), &result, 8).text,
        "éé\né\n[Output truncated: showing first 7 of 9 bytes]"
    );
}

/// SPEC 6.6: what is no result at all is made the best of.
#[test]
fn results_of_wrong_types() {
    check(json!("just text"), "just text", &[]);
    check(
        json!(["a", {"type": "text", "text": "b"}, 7]),
        "a\nb",
        &["a block that is no object"],
    );
    check(json!(42), "42", &[]);
    check(json!(null), "", &[]);
    check(json!({}), "", &[]);
    check(
        json!({"toolResult": {"a": 1}, "_meta": {}}),
        r#"{"toolResult":{"a":1}}"#,
        &[],
    );
    check(json!({"content": "text"}), "text", &[]);
    check(
        json!({"content": {"type": "text", "text": "one block"}}),
        "one block",
        &[],
    );
    check(json!({"content": 5}), "", &["content that is no list of blocks"]);
    check(
        json!({"content": [{"type": "text"}, {"type": "text", "text": 5}, {"text": "typeless"}, {"type": "image"}, {"type": "resource"}]}),
        "typeless",
        &[
            "a text block without text",
            "a text block without text",
            "an image without data",
            "a resource block without a resource",
        ],
    );
}

fn any_json() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        "content|type|text|resource|blob|data|mimeType|isError|structuredContent|uri".prop_map(String::from),
        ".{0,4}"
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "text|image|audio|resource|resource_link|image/png|.{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..6).prop_map(|fields| fields.into_iter().collect()),
        ]
    })
}

proptest! {
    /// SPEC 6.6: nothing a server sends is a panic, too long, or acts on a terminal where it is remarked on.
    #[test]
    fn anything_is_read(result in any_json(), bytes_max in 0usize..40) {
        let outcome = Outcome::read(&alias(), &result, bytes_max);
        prop_assert!(outcome.text.len() <= bytes_max + 80);
        let harmless = |line: &String| !line.chars().any(char::is_control);
        prop_assert!(outcome.remarks.iter().all(harmless));
    }
}
