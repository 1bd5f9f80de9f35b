//! What a turn begins with: its model, its instructions, its tools; and that all of it holds until the turn is over, whichever
//! process goes on with it (SPEC 9.1, 9.2, DESIGN rule 8).

use crate::house::{House, Ledger, asks, assert_replied, for_tool, goes_on, weather, weather_call};
use aish_core::message::ToolSpec;
use aish_core::policy::ApprovalMode;
use aish_engine::{ChatRequest, ServeError};
use aish_provider::scripted::Act;
use serde_json::json;

/// SPEC 9.1, 9.5: the model that was asked for answers after each suspension, in a process with other settings too, and in the
/// turns after it until another is asked for.
#[tokio::test]
async fn the_model_of_a_request_is_kept() {
    for ledger in Ledger::all() {
        let house = ledger.house([weather_call("Jena")]);
        let other = ledger.another_house([
            weather_call("Ulm"),
            Act::text("ok"),
            Act::text("next"),
            Act::text("last"),
        ]);
        other.world.engine.update(|settings| {
            settings.model = "another default".to_owned();
            settings.mode = ApprovalMode::Full;
            settings.limits.max_tool_turns = 1;
        });
        let request = ChatRequest {
            model: Some("large".to_owned()),
            ..asks("?")
        };
        let first = house.chat(request).await.unwrap();
        assert_eq!(first.model, "large");
        let second = other.result(&for_tool(&first), "rain").await.unwrap();
        let last = other.result(&for_tool(&second), "sun").await.unwrap();
        assert_replied(&last, "ok");
        assert_eq!(last.model, "large");
        other.chat(goes_on(&last.session, "and now?")).await.unwrap();
        let changed = ChatRequest {
            model: Some("small".to_owned()),
            ..goes_on(&last.session, "and now?")
        };
        other.chat(changed).await.unwrap();
        let models: Vec<String> = other.world.model.asked().into_iter().map(|asked| asked.model).collect();
        assert_eq!(models, ["large", "large", "large", "small"]);
        // What one client asks for is no setting of the process.
        assert_eq!(house.world.engine.settings().model, "scripted");
    }
}

/// SPEC 9.1: instructions of a client take the place of those that it gave before; given again they are not repeated.
#[tokio::test]
async fn instructions_are_replaced() {
    for ledger in Ledger::all() {
        let house = ledger.house((0..5).map(|_| Act::text("ok")));
        let say = |system: Option<&str>| system.map(str::to_owned);
        let first = ChatRequest {
            system: say(Some("Speak like a pirate.")),
            ..asks("1")
        };
        let session = house.chat(first).await.unwrap().session;
        for system in [None, Some("Speak like a pirate."), Some("Speak like a judge."), None] {
            let request = ChatRequest {
                system: say(system),
                ..goes_on(&session, "more")
            };
            house.chat(request).await.unwrap();
        }
        let counts: Vec<(usize, usize)> = house
            .world
            .model
            .asked()
            .iter()
            .map(|asked| {
                (
                    asked.system.matches("pirate").count(),
                    asked.system.matches("judge").count(),
                )
            })
            .collect();
        assert_eq!(counts, [(1, 0), (1, 0), (1, 0), (0, 1), (0, 1)]);
        assert_eq!(house.count(&session, "system").await, 2);
    }
}

/// SPEC 2.9, 9.1: once the context was emptied at a terminal, instructions that come again are told again.
#[tokio::test]
async fn instructions_after_a_clearing() {
    for ledger in Ledger::all() {
        let house = ledger.house((0..2).map(|_| Act::text("ok")));
        let judge = |request: ChatRequest| ChatRequest {
            system: Some("Speak like a judge.".to_owned()),
            ..request
        };
        let session = house.chat(judge(asks("1"))).await.unwrap().session;
        let engine = std::sync::Arc::clone(&house.world.engine);
        let mut terminal = aish_engine::Driver::open(engine, session.clone()).await.unwrap();
        terminal.clear().await.unwrap();
        house.chat(judge(goes_on(&session, "2"))).await.unwrap();
        let asked = house.world.model.asked();
        assert!(asked.iter().all(|asked| asked.system.contains("judge")), "{asked:?}");
    }
}

fn tool(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        ..weather()
    }
}

/// SPEC 9.2: a client cannot stand in for a tool of this process, under any of its names; what is declared must be usable. Nothing
/// is written for such a request.
#[tokio::test]
async fn declarations_that_are_refused() {
    let house = House::with([], Vec::new());
    let bad_schema = ToolSpec {
        input_schema: json!({"type": "object", "properties": {"a": {"type": "colour"}}}),
        ..weather()
    };
    let huge = ToolSpec {
        description: "x".repeat(300_000),
        ..weather()
    };
    for (tools, names) in [
        (vec![tool("bash")], "bash"),
        (vec![weather(), tool("file_read")], "file_read"),
        (vec![tool("read_file")], "read_file"),
        (vec![tool("write_file")], "write_file"),
        (vec![tool("run_command")], "run_command"),
        (vec![weather(), weather()], "get_weather"),
        (vec![tool("")], ""),
        (vec![tool("with space")], "with space"),
        (vec![tool("quote\"")], "quote\""),
        (vec![tool(&"x".repeat(65))], &"x".repeat(65)[..]),
        (vec![bad_schema], "get_weather"),
        (vec![huge], "get_weather"),
        ((0..=128).map(|n| tool(&format!("t{n}"))).collect(), "t128"),
    ] {
        let request = ChatRequest {
            tools: Some(tools),
            ..asks("?")
        };
        let refused = house.chat(request).await;
        assert!(
            matches!(&refused, Err(ServeError::Tool { name, .. } | ServeError::ToolTaken { name, .. }) if name == names),
            "{names}: {refused:?}"
        );
    }
    assert_eq!(house.conversations.sessions(Default::default()).await.unwrap(), []);
}

/// SPEC 9.2: a later turn may declare other tools, or none; those of the turn before are then not the client's any more.
#[tokio::test]
async fn later_turns_declare_anew() {
    let house = House::with([Act::text("1"), Act::text("2"), Act::text("3")], Vec::new());
    let session = house.chat(asks("1")).await.unwrap().session;
    let offered = |tools: Option<Vec<ToolSpec>>| ChatRequest {
        tools,
        ..goes_on(&session, "?")
    };
    house.chat(offered(Some(vec![tool("get_tide")]))).await.unwrap();
    house.chat(offered(Some(Vec::new()))).await.unwrap();
    let of_client: Vec<Vec<String>> = house
        .world
        .model
        .asked()
        .iter()
        .map(|asked| {
            let names = asked.tools.iter().map(|tool| tool.name.clone());
            names.filter(|name| name.starts_with("get_")).collect()
        })
        .collect();
    assert_eq!(
        of_client,
        [vec!["get_weather".to_owned()], vec!["get_tide".to_owned()], vec![]]
    );
}

/// SPEC 9.1: a conversation that is not there is not begun.
#[tokio::test]
async fn an_unknown_conversation() {
    let house = House::with([Act::text("ok")], Vec::new());
    let nowhere = aish_core::id::SessionId::new("0190a6b2-7c00-7a11-9e57-3f0d5f2a6c1d");
    let refused = house.chat(goes_on(&nowhere, "?")).await;
    assert!(matches!(refused, Err(ServeError::Unknown(_))), "{refused:?}");
    assert_eq!(house.world.model.remaining(), 1);
}
