//! Requests that may be sent again under a key (SPEC 9.4).

use crate::house::{Ledger, asks, assert_replied, for_tool, goes_on, key, result_of, weather_call};
use crate::support::within;
use aish_engine::{ChatRequest, Claim, ServeError};
use aish_provider::scripted::Act;

/// Requests of one kind that are sent at once.
const AT_ONCE: usize = 8;

fn keyed(request: ChatRequest, name: &str, body: &str) -> ChatRequest {
    ChatRequest {
        request: key(name, body),
        ..request
    }
}

fn keyed_result(content: &str, name: &str, body: &str) -> Claim {
    Claim {
        request: key(name, body),
        ..result_of(None, content)
    }
}

/// SPEC 9.4: the same request under the same key is one request, whichever process is asked and however often; another request
/// under it is refused.
#[tokio::test]
async fn a_message_under_a_key() {
    for ledger in Ledger::all() {
        let house = ledger.house([weather_call("Jena"), Act::text("ok")]);
        let other = ledger.another_house([]);
        let first = house.chat(keyed(asks("?"), "k", "body")).await.unwrap();
        for house in [&house, &other] {
            assert_eq!(house.chat(keyed(asks("?"), "k", "body")).await.unwrap(), first);
            let reused = house.chat(keyed(asks("!"), "k", "another body")).await;
            assert!(matches!(reused, Err(ServeError::KeyReused)), "{reused:?}");
        }
        let waited = for_tool(&first);
        let reused = keyed_result("rain", "k", "an answer");
        let reused = house.answer(waited.answer_to.as_str(), reused).await;
        assert!(matches!(reused, Err(ServeError::KeyReused)), "{reused:?}");
        house.result(&waited, "rain").await.unwrap();
        // The turn has gone on, and the request is told what it was told.
        assert_eq!(house.chat(keyed(asks("?"), "k", "body")).await.unwrap(), first);
        assert_eq!(house.world.model.remaining(), 0);
    }
}

/// SPEC 9.4: an answer under a key.
#[tokio::test]
async fn an_answer_under_a_key() {
    for ledger in Ledger::all() {
        let house = ledger.house([weather_call("Jena"), weather_call("Ulm"), Act::text("ok")]);
        let waited = for_tool(&house.chat(asks("?")).await.unwrap());
        let id = waited.answer_to.as_str();
        let second = house.answer(id, keyed_result("rain", "a", "rain")).await.unwrap();
        assert_eq!(
            house.answer(id, keyed_result("rain", "a", "rain")).await.unwrap(),
            second
        );
        // By another key it is the same answer still.
        assert_eq!(
            house.answer(id, keyed_result("rain", "b", "rain")).await.unwrap(),
            second
        );
        let reused = house.answer(id, keyed_result("snow", "a", "snow")).await;
        assert!(matches!(reused, Err(ServeError::KeyReused)), "{reused:?}");
        let next = for_tool(&second);
        let reused = house.answer(next.answer_to.as_str(), keyed_result("x", "a", "x")).await;
        assert!(matches!(reused, Err(ServeError::KeyReused)), "{reused:?}");
        // A key that was refused is not used up: `b` never stood in the ledger.
        let last = house
            .answer(next.answer_to.as_str(), keyed_result("sun", "b", "sun"))
            .await
            .unwrap();
        assert_replied(&last, "ok");
    }
}

/// SPEC 9.4: the same message several times at once, to a new conversation and to one that there is: one turn, and all are told
/// what it came to.
#[tokio::test]
async fn twins() {
    for ledger in Ledger::all() {
        for round in 0..10 {
            let house = ledger.house([Act::text("hello"), Act::text("one")]);
            let there = house.chat(asks("hi")).await.unwrap();
            let name = format!("{}-{round}", there.session);
            let request = keyed(goes_on(&there.session, "?"), &name, "?");
            let requests = (0..AT_ONCE).map(|_| house.chat(request.clone()));
            let told = futures_util::future::join_all(requests).await;
            for envelope in told {
                let envelope = envelope.unwrap();
                assert_replied(&envelope, "one");
                assert_eq!(envelope.turn, 2);
            }
            assert_eq!(house.count(&there.session, "turn_started").await, 2);

            let house = ledger.house([Act::text("new"), Act::text("newer")]);
            let request = keyed(asks("?"), &format!("{name}-new"), "?");
            let requests = (0..AT_ONCE).map(|_| house.chat(request.clone()));
            let told = futures_util::future::join_all(requests).await;
            let first = told[0].as_ref().unwrap();
            assert!(told.iter().all(|other| other.as_ref().unwrap() == first), "{told:?}");
            assert_eq!(house.world.model.remaining(), 1);
        }
    }
}

/// SPEC 9.4: a client that went away before it was told anything finds the turn begun, and driven.
#[tokio::test]
async fn a_client_that_goes_away() {
    for ledger in Ledger::all() {
        let house = ledger.house([weather_call("Jena"), Act::text("ok")]);
        let request = keyed(asks("?"), "k", "?");
        {
            let asking = std::pin::pin!(house.conversations.chat(request.clone()));
            // It is polled once and dropped.
            tokio::select! {
                biased;
                _ = asking => {}
                () = tokio::task::yield_now() => {}
            }
        }
        let envelope = within(house.chat(request)).await.unwrap();
        let waited = for_tool(&envelope);
        {
            let claim = result_of(None, "rain");
            let answering = std::pin::pin!(house.conversations.answer(waited.answer_to.as_str(), claim));
            tokio::select! {
                biased;
                _ = answering => {}
                () = tokio::task::yield_now() => {}
            }
        }
        assert_replied(&house.result(&waited, "rain").await.unwrap(), "ok");
    }
}
