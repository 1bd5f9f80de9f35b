//! The loop waits for its client, and goes on with what the client gives (SPEC 9.2, 9.3).

use crate::house::{House, Ledger, asks, assert_replied, ended, for_tool, goes_on, suspensions, weather, weather_call};
use crate::support::assert_settled;
use aish_core::event::{Body, ResultEnd};
use aish_core::message::ToolChoice;
use aish_core::turn::StopReason;
use aish_engine::{ChatRequest, Standing};
use aish_provider::scripted::Act;
use std::collections::BTreeSet;

/// SPEC 9.2, 9.3: the call of a tool that the client executes is handed to it, its result goes to the model, and the reply of the
/// model to the client.
#[tokio::test]
async fn a_call_and_its_result() {
    for ledger in Ledger::all() {
        let house = ledger.house([weather_call("Jena"), Act::text("Rain in Jena.")]);
        let first = house.chat(asks("How is it in Jena?")).await.unwrap();
        let waited = for_tool(&first);
        assert_eq!(waited.tool, "get_weather");
        assert_eq!(waited.input, r#"{"city":"Jena"}"#);
        assert_eq!(
            (first.model.as_str(), &first.tools_used[..]),
            ("scripted", &["get_weather".to_owned()][..])
        );
        assert!(waited.expires.is_some());
        // What it waits for stands in the ledger, and nowhere else.
        assert_eq!(house.conversations.running_count(), 0);
        let (id, standing) = house.conversations.standing(first.session.as_str()).await.unwrap();
        assert_eq!(
            (id, standing),
            (first.session.clone(), Standing::Told(Box::new(first.clone())))
        );

        let last = house.result(&waited, "8 °C, rain").await.unwrap();
        assert_replied(&last, "Rain in Jena.");
        assert_eq!((&last.session, last.turn), (&first.session, first.turn));
        assert_eq!(last.tools_used, ["get_weather"]);
        assert_eq!(house.given(), ["8 °C, rain"]);
        assert!(house.world.model.asked()[0].tools.contains(&weather()));
        let session = house.session(&first.session).await;
        assert_settled(&session);
        let kinds = crate::support::kinds(&session);
        assert_eq!(kinds.iter().filter(|kind| **kind == "resumed").count(), 1, "{kinds:?}");
        let (_, standing) = house.conversations.standing(waited.answer_to.as_str()).await.unwrap();
        assert_eq!(standing, Standing::Idle);
    }
}

/// SPEC 9.2: the id of a suspension tells when it was made and after which event, and cannot be guessed.
#[tokio::test]
async fn ids_of_suspensions() {
    let house = House::with([weather_call("Jena")], Vec::new());
    let envelope = house.chat(asks("?")).await.unwrap();
    let waited = for_tool(&envelope);
    let id = waited.answer_to.as_str();
    let rest = id.strip_prefix("br-").unwrap();
    let (time, seq) = rest.split_once('-').unwrap();
    assert!(time.parse::<u64>().unwrap() > 1_700_000_000_000, "{id}");
    assert!(
        seq.len() >= 6 + 16 && seq.chars().all(|char| char.is_ascii_hexdigit()),
        "{id}"
    );
    assert!(
        envelope.session.as_str().chars().nth(14) == Some('7'),
        "a UUIDv7: {}",
        envelope.session
    );
}

/// SPEC 9.3: a chain of calls goes on for as long as the limits let it, each time under a new id.
#[tokio::test]
async fn a_chain_of_twenty() {
    for ledger in Ledger::all() {
        let calls = (1..=20).map(|n| weather_call(&format!("city {n}")));
        let house = ledger.house(calls.chain([Act::text("all twenty")]));
        let mut envelope = house.chat(asks("go round")).await.unwrap();
        let mut ids = BTreeSet::new();
        for n in 1..=20 {
            let waited = for_tool(&envelope);
            assert_eq!(waited.input, format!(r#"{{"city":"city {n}"}}"#));
            assert!(ids.insert(waited.answer_to.to_string()), "an id twice: {ids:?}");
            assert_eq!(envelope.tools_used.len(), n);
            envelope = house.result(&waited, &format!("result {n}")).await.unwrap();
        }
        assert_replied(&envelope, "all twenty");
        let expect: Vec<String> = (1..=20).map(|n| format!("result {n}")).collect();
        assert_eq!(house.given(), expect);
        assert_settled(&house.session(&envelope.session).await);
    }
}

/// SPEC 9.3, 3.6: the limits count over all suspensions; the last result of a client says that it was the last one.
#[tokio::test]
async fn limits_count_across_resumes() {
    for ledger in Ledger::all() {
        let calls = (1..=3).map(|n| weather_call(&format!("city {n}")));
        let house = ledger.house(calls.chain([Act::text("that is all I could do")]));
        house.world.engine.update(|settings| settings.limits.max_tool_turns = 3);
        let mut envelope = house.chat(asks("go")).await.unwrap();
        for n in 1..=3 {
            // Another process, with another limit, goes on under the one that the turn began with.
            let waited = for_tool(&envelope);
            house
                .world
                .engine
                .update(|settings| settings.limits.max_tool_turns = 50);
            envelope = house.result(&waited, &format!("result {n}")).await.unwrap();
        }
        let last = ended(&envelope);
        assert_eq!(
            (last.reply.as_str(), last.reason),
            ("that is all I could do", StopReason::Limit)
        );
        let noted = r#"{"limit_message":"Tool call limit reached (3). Stopping tool loop.","limit_reached":true,"output":"result 3"}"#;
        assert_eq!(house.given(), ["result 1", "result 2", noted]);
        assert_eq!(house.world.model.asked()[3].tool_choice, ToolChoice::None);
    }
}

/// SPEC 9.2: a tool that nobody declared and this process does not know is the client's: the model never hears of an unknown tool.
#[tokio::test]
async fn undeclared_tools_suspend() {
    let house = House::with(
        [Act::calls(&[("teleport", r#"{"to":["x",1]}"#)]), Act::text("there")],
        Vec::new(),
    );
    let envelope = house
        .chat(ChatRequest {
            message: "go".to_owned(),
            ..ChatRequest::default()
        })
        .await
        .unwrap();
    let waited = for_tool(&envelope);
    assert_eq!(
        (waited.tool.as_str(), waited.input.as_str()),
        ("teleport", r#"{"to":["x",1]}"#)
    );
    let last = house.result(&waited, "arrived").await.unwrap();
    assert_replied(&last, "there");
    assert_eq!(house.given(), ["arrived"]);
}

/// SPEC 9.2: what a client declared is held against its schema: arguments that do not fit are the model's to mend.
#[tokio::test]
async fn arguments_that_do_not_fit() {
    let house = House::with(
        [
            Act::calls(&[("get_weather", r#"{"town":7}"#)]),
            weather_call("Jena"),
            Act::text("ok"),
        ],
        Vec::new(),
    );
    let envelope = house.chat(asks("?")).await.unwrap();
    assert_eq!(for_tool(&envelope).input, r#"{"city":"Jena"}"#);
    let [told] = &house.given()[..] else {
        panic!("one result")
    };
    assert!(told.contains("city"), "{told}");
    // Only what was handed to the client counts as used.
    assert_eq!(envelope.tools_used, ["get_weather"]);
    let events = house.events(&envelope.session).await;
    assert_eq!(suspensions(&events).len(), 1);
}

/// SPEC 9.3, 4.3: what a client gives is cut for the model at 6000 characters, and is whole in the ledger.
#[tokio::test]
async fn long_results_are_cut_for_the_model() {
    let long: String = (0..20_000).map(|n| char::from(b'a' + (n % 26) as u8)).collect();
    for ledger in Ledger::all() {
        let house = ledger.house([weather_call("Jena"), Act::text("ok")]);
        // What the process shows at its terminal has another bound.
        house
            .world
            .engine
            .update(|settings| settings.limits.max_result_chars = 50_000);
        let waited = for_tool(&house.chat(asks("?")).await.unwrap());
        let last = house.result(&waited, &long).await.unwrap();
        let [given] = &house.given()[..] else {
            panic!("one result")
        };
        let chars = given.chars().count();
        assert!((5_000..=6_000).contains(&chars), "{chars}");
        assert!(
            given.starts_with("abcdef") && given.contains("of 20000 characters left out"),
            "{given}"
        );
        let events = house.events(&last.session).await;
        let kept = events.iter().find_map(|event| event.tool_result()).unwrap();
        assert_eq!(
            (kept.output.as_str(), kept.success, kept.end),
            (long.as_str(), true, ResultEnd::Completed)
        );
    }
}

/// SPEC 9.1: a conversation goes on: the next message sees what came before, with the tools that were declared before.
#[tokio::test]
async fn a_conversation_goes_on() {
    for ledger in Ledger::all() {
        let house = ledger.house([Act::text("Hello."), weather_call("Ulm"), Act::text("Sun.")]);
        let first = house.chat(asks("Hi")).await.unwrap();
        assert_replied(&first, "Hello.");
        let second = house.chat(goes_on(&first.session, "And in Ulm?")).await.unwrap();
        assert_eq!((&second.session, second.turn), (&first.session, 2));
        let last = house.result(&for_tool(&second), "sun").await.unwrap();
        assert_replied(&last, "Sun.");
        let asked = house.world.model.asked();
        assert_eq!(asked[1].messages.len(), 3);
        assert_eq!(asked[1].tools, asked[0].tools);
        // Tools that are used belong to a turn.
        assert_eq!((first.tools_used.len(), last.tools_used.len()), (0, 1));
        let started = house.events(&last.session).await;
        let served = started
            .iter()
            .filter(|event| matches!(&event.body, Body::TurnStarted(data) if data.served.is_some()));
        assert_eq!(served.count(), 2);
    }
}
