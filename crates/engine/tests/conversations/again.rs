//! The same answer again is told the same, whenever it comes (SPEC 9.4).

use crate::house::{
    House, Ledger, asks, assert_replied, for_approval, for_tool, result_of, settings, verdict_on, weather_call,
};
use crate::support::within;
use aish_core::event::{Answer, Body};
use aish_core::policy::Rule;
use aish_engine::{Claim, ConversationsSettings, Reply, ServeError};
use aish_provider::scripted::Act;

/// SPEC 9.4: by the suspension's id and by the session's, at once, after the turn has gone on, and after it is over; from this
/// process and from another; it is applied once.
#[tokio::test]
async fn the_same_answer_again() {
    for ledger in Ledger::all() {
        let house = ledger.house([weather_call("Jena"), weather_call("Ulm"), Act::text("ok")]);
        let other = ledger.another_house([]);
        let start = house.chat(asks("?")).await.unwrap();
        let (session, first) = (start.session.to_string(), for_tool(&start));
        let answer = result_of(Some(first.call_id.as_str()), "rain");
        let second = house.answer(first.answer_to.as_str(), answer.clone()).await.unwrap();
        let ids = [first.answer_to.to_string(), session.clone()];
        for id in &ids {
            assert_eq!(house.answer(id, answer.clone()).await.unwrap(), second, "{id}");
            assert_eq!(other.answer(id, answer.clone()).await.unwrap(), second, "{id}");
        }
        let last = house.result(&for_tool(&second), "sun").await.unwrap();
        assert_replied(&last, "ok");
        for id in &ids {
            assert_eq!(house.answer(id, answer.clone()).await.unwrap(), second, "{id}");
            assert_eq!(other.answer(id, answer.clone()).await.unwrap(), second, "{id}");
        }
        // Without a call's id, the last one that was so answered is meant.
        let again = house.answer(&session, result_of(None, "sun")).await.unwrap();
        assert_eq!(again, last);
        let other_words = house.answer(&session, result_of(None, "hail")).await;
        assert!(matches!(other_words, Err(ServeError::NotWaiting(_))), "{other_words:?}");
        assert_eq!(house.count(&start.session, "tool_result").await, 2);
    }
}

/// SPEC 9.4: two calls that got the same words are told apart by the calls they name.
#[tokio::test]
async fn the_same_words_for_two_calls() {
    for ledger in Ledger::all() {
        let house = ledger.house([weather_call("Jena"), weather_call("Ulm"), Act::text("done")]);
        let start = house.chat(asks("?")).await.unwrap();
        let first = for_tool(&start);
        let second = house.result(&first, "ok").await.unwrap();
        let last = house.result(&for_tool(&second), "ok").await.unwrap();
        for (call, expect) in [(&first.call_id, &second), (&for_tool(&second).call_id, &last)] {
            let again = result_of(Some(call.as_str()), "ok");
            let told = house.answer(start.session.as_str(), again).await.unwrap();
            assert_eq!(told, *expect, "{call}");
        }
    }
}

/// SPEC 9.4, 3.3: the same words for another call, or quoting another digest, are not the same answer: they are refused as the first
/// one would have been, and what counted stands.
#[tokio::test]
async fn the_same_words_are_not_enough() {
    for ledger in Ledger::all() {
        let house = ledger.house([weather_call("Jena"), weather_call("Ulm"), Act::text("ok")]);
        house.world.engine.update(|settings| {
            settings.policy.ask.push(Rule::parse("get_weather").unwrap());
        });
        let first = house.chat(asks("?")).await.unwrap();
        let asked = for_approval(&first);
        let second = house.verdict(&asked, Answer::Approve).await.unwrap();
        let waited = for_tool(&second);
        let third = house.result(&waited, "rain").await.unwrap();
        let other = for_approval(&third).call_id;

        let quoting = |digest: &str| {
            let mut claim = verdict_on(&asked, Answer::Approve, None);
            if let Reply::Verdict { digest: quoted, .. } = &mut claim.reply {
                digest.clone_into(quoted);
            }
            claim
        };
        let naming = |call: &str| Claim {
            call_id: Some(call.to_owned()),
            ..verdict_on(&asked, Answer::Approve, None)
        };
        let approval = asked.answer_to.as_str();
        let wrong = house.answer(approval, quoting("0123456789ab0123456789ab")).await;
        assert!(
            matches!(&wrong, Err(ServeError::Digest(call)) if *call == asked.call_id),
            "{wrong:?}"
        );
        for call in [other.as_str(), "of_nobody"] {
            let wrong = house.answer(approval, naming(call)).await;
            assert!(
                matches!(&wrong, Err(ServeError::OtherCall { given, .. }) if given == call),
                "{wrong:?}"
            );
        }
        let result = waited.answer_to.as_str();
        let wrong = house.answer(result, result_of(Some(other.as_str()), "rain")).await;
        assert!(matches!(&wrong, Err(ServeError::OtherCall { .. })), "{wrong:?}");
        // What the first answer might have said of its call, the same one may say again.
        for given in [None, Some(waited.call_id.as_str()), Some("of_their_own")] {
            assert_eq!(house.answer(result, result_of(given, "rain")).await.unwrap(), third);
        }
        let short = asked.digest.as_ref().unwrap().short().to_owned();
        assert_eq!(house.answer(approval, quoting(&short)).await.unwrap(), second);
        let strict = ConversationsSettings {
            strict_call_id: true,
            ..settings()
        };
        let strict = House::set(&ledger, strict, []);
        for given in [None, Some("of_their_own")] {
            let wrong = strict.answer(result, result_of(given, "rain")).await;
            assert!(
                matches!(&wrong, Err(ServeError::CallUnnamed(_) | ServeError::OtherCall { .. })),
                "{wrong:?}"
            );
        }
    }
}

/// SPEC 9.4: again while the turn still runs: both wait for the same, and neither starts anything.
#[tokio::test]
async fn again_while_the_turn_runs() {
    for ledger in Ledger::all() {
        let house = ledger.house([weather_call("Jena"), Act::Hang(Vec::new())]);
        let start = house.chat(asks("?")).await.unwrap();
        let waited = for_tool(&start);
        let id = waited.answer_to.as_str();
        let first = house.conversations.answer(id, result_of(None, "rain")).await.unwrap();
        let again = house.conversations.answer(id, result_of(None, "rain")).await.unwrap();
        let by_session = result_of(None, "rain");
        let by_session = house
            .conversations
            .answer(start.session.as_str(), by_session)
            .await
            .unwrap();
        assert_eq!((again.seq, by_session.seq), (first.seq, first.seq));
        let differs = house.conversations.answer(id, result_of(None, "snow")).await;
        assert!(matches!(differs, Err(ServeError::AnsweredOtherwise(_))), "{differs:?}");
        let all = async {
            let told = |ticket| house.conversations.told(ticket);
            tokio::join!(
                told(first),
                told(again),
                told(by_session),
                house.conversations.cancel(id)
            )
        };
        let (first, again, by_session, cancelled) = within(all).await;
        let first = first.unwrap();
        assert_eq!(first, again.unwrap());
        assert_eq!(first, by_session.unwrap());
        assert_eq!(first, cancelled.unwrap());
    }
}

/// SPEC 9.4: a repeated answer is told what stands in the ledger, also while a later part of the turn runs.
#[tokio::test]
async fn again_while_a_later_part_runs() {
    for ledger in Ledger::all() {
        let house = ledger.house([weather_call("Jena"), weather_call("Ulm"), Act::Hang(Vec::new())]);
        let start = house.chat(asks("?")).await.unwrap();
        let first = for_tool(&start);
        let second = house.result(&first, "rain").await.unwrap();
        let later = for_tool(&second);
        let running = house
            .conversations
            .answer(later.answer_to.as_str(), result_of(None, "sun"))
            .await
            .unwrap();
        assert_eq!(house.result(&first, "rain").await.unwrap(), second);
        within(house.conversations.cancel(start.session.as_str()))
            .await
            .unwrap();
        within(house.conversations.told(running)).await.unwrap();
        // Cancelled or not: what was told then is told again.
        assert_eq!(house.result(&first, "rain").await.unwrap(), second);
    }
}

/// SPEC 9.4: what was answered is in the ledger once, with the digest of the answer that counted.
#[tokio::test]
async fn what_counted_is_in_the_ledger() {
    for ledger in Ledger::all() {
        let house = ledger.house([weather_call("Jena"), Act::text("ok")]);
        let start = house.chat(asks("?")).await.unwrap();
        let waited = for_tool(&start);
        for _ in 0..3 {
            assert_replied(&house.result(&waited, "rain").await.unwrap(), "ok");
        }
        let events = house.events(&start.session).await;
        let resumed: Vec<_> = events
            .windows(2)
            .filter(|pair| matches!(&pair[0].body, Body::Resumed(data) if data.continuation.as_str() == waited.answer_to.as_str()))
            .collect();
        assert_eq!(resumed.len(), 1);
        assert_eq!(resumed[0][1].tool_result().unwrap().output, "rain");
    }
}
