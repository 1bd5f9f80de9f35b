//! Thinking: how it is asked for, and when it must not be.

use super::*;
use aish_provider::profile::Reasoning;

fn thinker(model: &str, reasoning: Option<Reasoning>) -> ModelProfile {
    ModelProfile {
        reasoning,
        temperature: Some(0.5),
        ..ModelProfile::new(Format::Anthropic, "http://127.0.0.1:8080", model)
    }
}

/// What a request says of thinking: `thinking`, `output_config`, `max_tokens`.
fn asked(profile: &ModelProfile, conversation: &[Message], max_output_tokens: Option<u64>) -> Value {
    let tools = [tool()];
    let body = body(
        Request {
            max_output_tokens,
            ..request(conversation, &tools)
        },
        profile,
    );
    json!([body["thinking"], body["output_config"], body["max_tokens"]])
}

/// SPEC 7.4: models that think by budget.
#[test]
fn by_budget() {
    let conversation = [user("a")];
    let ask = |reasoning, max| asked(&thinker("claude-sonnet-4-5", reasoning), &conversation, max);
    let enabled = |budget: u64| json!({"type": "enabled", "budget_tokens": budget});
    assert_eq!(ask(None, None), json!([null, null, 8192]));
    assert_eq!(
        ask(Some(Reasoning::Off), None),
        json!([{"type": "disabled"}, null, 8192])
    );
    assert_eq!(ask(Some(Reasoning::Low), None), json!([enabled(2048), null, 10240]));
    assert_eq!(ask(Some(Reasoning::Medium), None), json!([enabled(8192), null, 16384]));
    assert_eq!(ask(Some(Reasoning::High), None), json!([enabled(16384), null, 32768]));
    // Room for the answer is left, and too little room is none.
    assert_eq!(
        ask(Some(Reasoning::High), Some(4000)),
        json!([enabled(2000), null, 4000])
    );
    assert_eq!(ask(Some(Reasoning::High), Some(2000)), json!([null, null, 2000]));
}

/// SPEC 7.4: models that think as they see fit.
#[test]
fn by_effort() {
    let conversation = [user("a")];
    let ask = |model, reasoning| asked(&thinker(model, reasoning), &conversation, None);
    let adaptive = json!({"type": "adaptive", "display": "summarized"});
    let opus = "claude-opus-5-5";
    assert_eq!(ask(opus, None), json!([null, null, 32768]));
    assert_eq!(
        ask(opus, Some(Reasoning::Off)),
        json!([{"type": "disabled"}, null, 8192])
    );
    assert_eq!(
        ask(opus, Some(Reasoning::Low)),
        json!([adaptive, {"effort": "low"}, 10240])
    );
    assert_eq!(
        ask(opus, Some(Reasoning::High)),
        json!([adaptive, {"effort": "high"}, 32768])
    );
    // One that cannot leave it is asked for as little as it can.
    let always = "claude-fable-5-1";
    assert_eq!(
        ask(always, Some(Reasoning::Off)),
        json!([null, {"effort": "low"}, 32768])
    );
    assert_eq!(
        ask(always, Some(Reasoning::Medium)),
        json!([adaptive, {"effort": "medium"}, 16384])
    );
}

/// The API refuses a temperature together with thinking.
#[test]
fn no_temperature_with_thinking() {
    let conversation = [user("a")];
    for (reasoning, temperature) in [
        (None, Some(0.5)),
        (Some(Reasoning::Off), Some(0.5)),
        (Some(Reasoning::Low), None),
    ] {
        for model in ["claude-sonnet-4-5", "claude-opus-4-6"] {
            let body = body(request(&conversation, &[]), &thinker(model, reasoning));
            assert_eq!(
                body.get("temperature").and_then(Value::as_f64),
                temperature,
                "{model} {reasoning:?}"
            );
        }
    }
}

/// The beta header goes along where something needs it and nowhere else.
#[test]
fn beta_header() {
    let conversation = [user("a")];
    let tools = [tool()];
    let beta = |model, reasoning, tools: &[ToolSpec]| {
        let headers = encoded(request(&conversation, tools), &thinker(model, reasoning)).headers;
        headers
            .into_iter()
            .find(|(name, _)| *name == "anthropic-beta")
            .map(|(_, value)| value.into_owned())
    };
    let interleaved = Some("interleaved-thinking-2025-05-14".to_owned());
    assert_eq!(beta("claude-sonnet-4-5", Some(Reasoning::Low), &tools), interleaved);
    assert_eq!(beta("claude-sonnet-4-5", Some(Reasoning::Low), &[]), None);
    assert_eq!(beta("claude-sonnet-4-5", None, &tools), None);
    assert_eq!(beta("claude-opus-5", Some(Reasoning::Low), &tools), None);
    assert_eq!(beta("qwen3-8b", Some(Reasoning::Low), &tools), None);
}

/// What `thinking` says in the middle of a turn whose first reply was this.
#[track_caller]
fn check_turn(model: &str, parts: Vec<Part>, said_by: &str, expect: &str) {
    let mut conversation = vec![
        user("earlier"),
        // What an earlier turn lacked is of no interest.
        assistant(vec![Part::text("b")], vec![call(9, "t9", "{}")]),
        result(9, "r"),
        assistant(vec![Part::text("done")], vec![]),
        user("a"),
        Message::Assistant {
            parts,
            calls: vec![call(1, "t1", "{}")],
            model: Some(said_by.to_owned()),
        },
        result(1, "r"),
        // Typed meanwhile: the turn goes on.
        user("faster"),
    ];
    let profile = thinker(model, Some(Reasoning::Low));
    assert_eq!(
        asked(&profile, &conversation, None)[0]["type"],
        expect,
        "{model} {said_by}"
    );
    // Until the turn ends.
    conversation.push(assistant(vec![Part::text("done")], vec![]));
    conversation.push(user("next"));
    let next = asked(&profile, &conversation, None);
    assert_ne!(next[0]["type"], "disabled", "{model} {said_by}");
}

/// SPEC 7.6: after a hand-over to a model that needs signed thinking for earlier calls, thinking stays off until the turn ends.
#[test]
fn off_after_a_hand_over() {
    let redacted = || own_block(json!({"type": "redacted_thinking", "data": "xyz"}));
    let budget = "claude-sonnet-4-5";
    check_turn(budget, vec![signed("hm", "sig")], MODEL, "enabled");
    check_turn(budget, vec![redacted()], MODEL, "enabled");
    check_turn(budget, vec![], MODEL, "disabled");
    check_turn(budget, vec![Part::thinking("hm")], MODEL, "disabled");
    check_turn(budget, vec![Part::text("x"), signed("hm", "sig")], MODEL, "disabled");
    check_turn(budget, vec![signed("hm", "sig")], "another", "disabled");
    // By effort, a reply of its own without thinking is one that needed none.
    let effort = "claude-opus-5";
    check_turn(effort, vec![], MODEL, "adaptive");
    check_turn(effort, vec![], "another", "disabled");
}

/// SPEC 7.6: what nobody signed is not sent; what was signed by this model goes back byte for byte, also without any text.
#[test]
fn signatures() {
    let of = |format: &str| Part::Thinking {
        text: "hm".to_owned(),
        signature: Some("sig".to_owned()),
        format: Some(format.to_owned()),
    };
    let conversation = [
        user("a"),
        assistant(
            vec![
                signed("", "s1"),
                Part::thinking("unsigned"),
                signed("two ", "s=2+/\\"),
                Part::text("b"),
            ],
            vec![],
        ),
        user("c"),
        assistant(
            vec![of("openai-responses"), Part::text("d"), signed("left over", "s3")],
            vec![],
        ),
        user("e"),
    ];
    let wire = messages(&conversation);
    let expect = json!([
        {"type": "thinking", "thinking": "", "signature": "s1"},
        {"type": "thinking", "thinking": "two ", "signature": "s=2+/\\"},
        wire_text("b"),
    ]);
    assert_eq!(wire[1]["content"], expect);
    // Another format's is told as text, and nothing ends with thinking.
    let last = wire[3]["content"].as_array().unwrap();
    assert!(last.iter().all(|block| block["type"] == "text"), "{last:?}");
}
