//! A person at a terminal in a conversation of a client's, and a client in a session of a terminal's (SPEC 2.12, 9.1).

use crate::house::{House, Ledger, asks, assert_replied, goes_on};
use crate::support::finish;
use aish_core::id::SessionId;
use aish_engine::{ChatRequest, Driver};
use aish_provider::scripted::Act;
use std::sync::Arc;

/// The session as a person at a terminal has it.
async fn at_terminal(house: &House, session: &SessionId) -> Driver {
    let engine = Arc::clone(&house.world.engine);
    Driver::open(engine, session.clone()).await.unwrap()
}

/// SPEC 9.1: what a client said of its model, its tools and its instructions holds after a person said something at a terminal, and
/// after they emptied the context; said again it is not told twice.
#[tokio::test]
async fn what_a_client_said_before_holds() {
    for ledger in Ledger::all() {
        let house = ledger.house((0..5).map(|_| Act::text("ok")));
        let judge = || Some("Speak like a judge.".to_owned());
        let first = ChatRequest {
            model: Some("large".to_owned()),
            system: judge(),
            ..asks("1")
        };
        let session = house.chat(first).await.unwrap().session;
        finish(&mut at_terminal(&house, &session).await, "2, at the terminal").await;
        let third = house.chat(goes_on(&session, "3")).await.unwrap();
        assert_replied(&third, "ok");
        at_terminal(&house, &session).await.clear().await.unwrap();
        house.chat(goes_on(&session, "4")).await.unwrap();
        let again = ChatRequest {
            system: judge(),
            ..goes_on(&session, "5")
        };
        house.chat(again).await.unwrap();
        let asked = house.world.model.asked();
        let told: Vec<(&str, usize, usize)> = asked
            .iter()
            .map(|asked| {
                let own = asked.tools.iter().filter(|tool| tool.name == "get_weather");
                (asked.model.as_str(), own.count(), asked.system.matches("judge").count())
            })
            .collect();
        // The person's turn is their own: with their model, and without what only the client can run.
        let of_client = ("large", 1, 1);
        assert_eq!(told, [of_client, ("scripted", 0, 1), of_client, of_client, of_client]);
        assert_eq!(house.count(&session, "system").await, 2);
    }
}
