//! Tests that the strict fake server refuses at all; what it refuses is tested where the rules are, in the provider's crate.

use serde_json::{Value, json};

use crate::support::strict::{Strictness, violation};

fn request(messages: &Value) -> Value {
    json!({"model": "m", "messages": messages})
}

/// Each strictness refuses what the one before takes.
#[test]
fn strictness_grows() {
    let user = json!({"role": "user", "content": "a"});
    let unanswered = request(&json!([{"role": "tool", "tool_call_id": "1", "content": "x"}]));
    let twice = request(&json!([user, user]));
    let good = request(&json!([user]));
    let takes = |body: &Value, strictness| violation(body, strictness).is_none();
    for strictness in [Strictness::Lenient, Strictness::Api, Strictness::Template] {
        assert!(takes(&good, strictness), "{strictness:?}");
        assert_eq!(
            takes(&unanswered, strictness),
            strictness == Strictness::Lenient,
            "{strictness:?}"
        );
        assert_eq!(
            takes(&twice, strictness),
            strictness != Strictness::Template,
            "{strictness:?}"
        );
    }
}
