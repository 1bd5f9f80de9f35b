//! Which answers are taken, and what the others are told (SPEC 9.3, 9.4).

use crate::house::{
    House, Ledger, asks, assert_replied, for_approval, for_tool, goes_on, result_of, settings, until, verdict_on,
    weather_call,
};
use crate::support::probe::{Doing, Latch, Probe};
use aish_core::event::{Answer, Body, Draft};
use aish_core::id::SessionId;
use aish_core::turn::StopReason;
use aish_engine::{Claim, ConversationsSettings, Live, Notice, Reply, ServeError, Standing, Waiting};
use aish_provider::scripted::Act;
use aish_store::{Durability, Hold};

/// SPEC 9.3: a call id that is missing, or that no call of the session has, means the call that is waited for; whoever follows
/// learns of it. Where it is strict, it is refused.
#[tokio::test]
async fn call_ids_that_name_nothing() {
    for ledger in Ledger::all() {
        for given in [None, Some("toolu_of_their_own"), Some("")] {
            let house = ledger.house([weather_call("Jena"), Act::text("ok")]);
            let first = house.chat(asks("?")).await.unwrap();
            let id = for_tool(&first).answer_to.to_string();
            let mut reader = house.conversations.follow(&first.session, 0);
            let last = house.answer(&id, result_of(given, "rain")).await.unwrap();
            assert_replied(&last, "ok");
            if given.is_some() {
                let told = crate::support::within(async {
                    loop {
                        let item = reader.next().await.unwrap();
                        if let Live::Notice(Notice::Status(line)) = &item.live {
                            break line.clone();
                        }
                    }
                })
                .await;
                assert!(told.contains("unknown call"), "{told}");
            }

            let strict = ConversationsSettings {
                strict_call_id: true,
                ..settings()
            };
            let house = House::set(&ledger, strict, [weather_call("Jena"), Act::text("ok")]);
            let waited = for_tool(&house.chat(asks("?")).await.unwrap());
            let refused = house.answer(waited.answer_to.as_str(), result_of(given, "rain")).await;
            assert!(
                matches!(refused, Err(ServeError::OtherCall { .. } | ServeError::CallUnnamed(_))),
                "{given:?}: {refused:?}"
            );
            assert_replied(&house.result(&waited, "rain").await.unwrap(), "ok");
        }
    }
}

/// SPEC 9.3, 9.4: an answer that names no call of the session, sent to the session, would go to whichever call waits when it comes:
/// sent again, to the next one. It is refused, and so is a yes that names none, wherever it is sent.
#[tokio::test]
async fn nothing_lands_on_the_next_call() {
    for ledger in Ledger::all() {
        let house = ledger.house([weather_call("Jena"), Act::text("ok")]);
        let start = house.chat(asks("?")).await.unwrap();
        for given in [None, Some("of_their_own")] {
            let refused = house.answer(start.session.as_str(), result_of(given, "rain")).await;
            assert!(
                matches!(refused, Err(ServeError::OtherCall { .. } | ServeError::CallUnnamed(_))),
                "{given:?}: {refused:?}"
            );
            let verdict = Claim {
                call_id: given.map(str::to_owned),
                ..verdict_on(&for_tool(&start), Answer::Approve, None)
            };
            let refused = house.answer(for_tool(&start).answer_to.as_str(), verdict).await;
            assert!(
                matches!(refused, Err(ServeError::OtherCall { .. } | ServeError::CallUnnamed(_))),
                "{given:?}: {refused:?}"
            );
        }
        assert_replied(&house.result(&for_tool(&start), "rain").await.unwrap(), "ok");
    }
}

/// SPEC 9.3: the id of another call of the session is refused, strict or not, and nothing is written.
#[tokio::test]
async fn another_calls_id() {
    for ledger in Ledger::all() {
        let house = ledger.house([weather_call("Jena"), weather_call("Ulm"), Act::text("ok")]);
        let first = for_tool(&house.chat(asks("?")).await.unwrap());
        let second = house.result(&first, "rain").await.unwrap();
        let (session, second) = (second.session.clone(), for_tool(&second));
        let before = house.events(&session).await.len();
        let of_first = result_of(Some(first.call_id.as_str()), "other");
        for id in [second.answer_to.as_str(), session.as_str()] {
            let refused = house.answer(id, of_first.clone()).await;
            assert!(
                matches!(&refused, Err(ServeError::OtherCall { given, awaited })
                    if *given == first.call_id.to_string() && *awaited == second.call_id),
                "{refused:?}"
            );
        }
        assert_eq!(house.events(&session).await.len(), before);
        assert_replied(&house.result(&second, "sun").await.unwrap(), "ok");
    }
}

/// SPEC 9.4: unknown ids, answers to a session that waits for nothing, and answers of the wrong sort.
#[tokio::test]
async fn answers_to_nothing() {
    let house = House::with([Act::text("ok"), weather_call("Jena")], Vec::new());
    for id in [
        "br-1-000001abcdef",
        "br-",
        "no such session",
        "",
        "br-'; DROP TABLE events; --",
    ] {
        let refused = house.answer(id, result_of(None, "x")).await;
        assert!(
            matches!(&refused, Err(ServeError::Unknown(of)) if of == id),
            "{refused:?}"
        );
    }
    let over = house.chat(asks("?")).await.unwrap();
    let refused = house.answer(over.session.as_str(), result_of(None, "x")).await;
    assert!(matches!(refused, Err(ServeError::NotWaiting(_))), "{refused:?}");

    let waited = for_tool(&house.chat(goes_on(&over.session, "?")).await.unwrap());
    let verdict = house
        .answer(waited.answer_to.as_str(), verdict_on(&waited, Answer::Approve, None))
        .await;
    assert!(matches!(&verdict, Err(ServeError::OtherAnswer { .. })), "{verdict:?}");
}

/// SPEC 9.6: a result where a yes or no is waited for is refused.
#[tokio::test]
async fn a_result_for_an_approval() {
    let probe = Probe::writer("probe", Doing::Answer("ran".to_owned()));
    let house = House::with([Act::calls(&[("probe", r#"{"n":1}"#)])], vec![probe.clone()]);
    let waited = for_approval(&house.chat(asks("?")).await.unwrap());
    let refused = house.result(&waited, "I did it myself").await;
    assert!(matches!(&refused, Err(ServeError::OtherAnswer { .. })), "{refused:?}");
    assert_eq!(probe.runs(), 0);
}

/// SPEC 9.4: an answer that differs from the one that counted is refused, as long as the ledger is kept.
#[tokio::test]
async fn a_different_answer() {
    for ledger in Ledger::all() {
        let house = ledger.house([weather_call("Jena"), weather_call("Ulm"), Act::text("ok")]);
        let first = for_tool(&house.chat(asks("?")).await.unwrap());
        let second = house.result(&first, "rain").await.unwrap();
        let refused = house.result(&first, "snow").await;
        assert!(
            matches!(&refused, Err(ServeError::AnsweredOtherwise(id)) if id.as_str() == first.answer_to.as_str()),
            "{refused:?}"
        );
        house.result(&for_tool(&second), "sun").await.unwrap();
        let refused = house.result(&first, "snow").await;
        assert!(matches!(&refused, Err(ServeError::AnsweredOtherwise(_))), "{refused:?}");
        // Of another sort is different as well.
        let claim = Claim {
            call_id: None,
            reply: Reply::Verdict {
                digest: String::new(),
                answer: Answer::Approve,
                reason: None,
            },
            request: None,
        };
        let refused = house.answer(first.answer_to.as_str(), claim).await;
        assert!(matches!(&refused, Err(ServeError::AnsweredOtherwise(_))), "{refused:?}");
    }
}

/// SPEC 9.4: nobody answers in time: the answer that comes then is refused, the turn is over, and the conversation goes on.
#[tokio::test]
async fn an_answer_that_comes_too_late() {
    for ledger in Ledger::all() {
        let brief = ConversationsSettings {
            pending_ttl_ms: Some(0),
            ..settings()
        };
        let house = House::set(&ledger, brief, [weather_call("Jena"), Act::text("anew")]);
        let envelope = house.chat(asks("?")).await.unwrap();
        let waited = for_tool(&envelope);
        // Twice: what it was told does not change when the turn has been closed.
        for _ in 0..2 {
            let late = house.result(&waited, "rain").await;
            assert!(
                matches!(&late, Err(ServeError::Expired(id)) if id.as_str() == waited.answer_to.as_str()),
                "{late:?}"
            );
        }
        let session = house.session(&envelope.session).await;
        assert_eq!(session.turn().unwrap().ended(), Some(StopReason::Cancelled));
        assert_eq!(house.count(&envelope.session, "resumed").await, 0);
        let next = house.chat(goes_on(&envelope.session, "again?")).await.unwrap();
        assert_replied(&next, "anew");
    }
}

/// SPEC 9.4: an answer that comes too late is told so under either id, also once somebody has ended the turn; one to a turn that was
/// cancelled in time is told that, however late it comes.
#[tokio::test]
async fn too_late_or_cancelled() {
    for ledger in Ledger::all() {
        let ttl = |pending_ttl_ms| ConversationsSettings {
            pending_ttl_ms: Some(pending_ttl_ms),
            ..settings()
        };
        let brief = House::set(&ledger, ttl(0), [weather_call("Jena")]);
        let start = brief.chat(asks("?")).await.unwrap();
        let waited = for_tool(&start);
        let keeping = tokio::spawn(brief.conversations.clone().keep());
        until(async || brief.count(&start.session, "turn_ended").await == 1).await;
        for id in [start.session.as_str(), waited.answer_to.as_str()] {
            for given in [Some(waited.call_id.as_str()), None] {
                let late = brief.answer(id, result_of(given, "rain")).await;
                assert!(
                    matches!(&late, Err(ServeError::Expired(of)) if of.as_str() == waited.answer_to.as_str()),
                    "{id} {given:?}: {late:?}"
                );
            }
        }
        brief.conversations.drain().await;
        keeping.await.unwrap();

        let house = ledger.house([weather_call("Ulm")]);
        let start = house.chat(asks("?")).await.unwrap();
        let waited = for_tool(&start);
        house.conversations.cancel(start.session.as_str()).await.unwrap();
        let later = a_week_later(&house, &start.session).await;
        let late = later.result(&waited, "rain").await;
        assert!(matches!(&late, Err(ServeError::Ended(_))), "{late:?}");
        let late = later.answer(start.session.as_str(), result_of(None, "rain")).await;
        assert!(matches!(&late, Err(ServeError::NotWaiting(_))), "{late:?}");
    }
}

/// A process on a ledger that holds the same session, with all of its times a week earlier.
async fn a_week_later(house: &House, session: &SessionId) -> House {
    const WEEK_MS: u64 = 7 * 24 * 3_600_000;
    let later = House::with([], Vec::new());
    let store = &later.world.engine.store;
    for mut event in house.events(session).await {
        if let Body::Suspended(data) = &mut event.body {
            data.expires = data.expires.map(|expires| expires - WEEK_MS);
        }
        let (seq, time) = (event.seq, event.time - WEEK_MS);
        let draft = vec![Draft::new(event.turn, event.content, event.body)];
        store
            .append(session, seq - 1, draft, time, Durability::Committed, Hold::Nothing)
            .await
            .unwrap();
    }
    later
}

/// SPEC 9.4: a message to a conversation whose wait has expired ends that turn and begins the next; the keeper ends it as well.
#[tokio::test]
async fn what_has_expired_is_over() {
    for ledger in Ledger::all() {
        let brief = ConversationsSettings {
            pending_ttl_ms: Some(0),
            ..settings()
        };
        let acts = [weather_call("Jena"), Act::text("a new turn"), weather_call("Ulm")];
        let house = House::set(&ledger, brief, acts);
        let first = house.chat(asks("?")).await.unwrap();
        let next = house.chat(goes_on(&first.session, "never mind")).await.unwrap();
        assert_replied(&next, "a new turn");
        assert_eq!(next.turn, 2);

        let waiting = house.chat(goes_on(&first.session, "?")).await.unwrap();
        let keeping = tokio::spawn(house.conversations.clone().keep());
        until(async || {
            matches!(
                house.conversations.standing(waiting.session.as_str()).await,
                Ok((_, Standing::Idle))
            )
        })
        .await;
        let events = house.events(&waiting.session).await;
        let why = events.iter().rev().find_map(|event| {
            let Body::Cancelled(data) = &event.body else {
                return None;
            };
            Some(data.reason.clone())
        });
        assert_eq!(why.as_deref(), Some("nobody answered in time"));
        house.conversations.drain().await;
        keeping.await.unwrap();
    }
}

/// SPEC 9.4: a new message while a turn waits or runs is refused, and changes nothing.
#[tokio::test]
async fn messages_out_of_turn() {
    let latch = Latch::new();
    let probe = Probe::reader("probe", Doing::Wait(latch.clone()));
    let acts = [
        weather_call("Jena"),
        Act::calls(&[("probe", r#"{"n":1}"#)]),
        Act::text("ok"),
    ];
    let house = House::with(acts, vec![probe]);
    let envelope = house.chat(asks("?")).await.unwrap();
    let before = house.events(&envelope.session).await.len();
    let refused = house.chat(goes_on(&envelope.session, "hurry")).await;
    assert!(
        matches!(&refused, Err(ServeError::Waiting(id)) if *id == envelope.session),
        "{refused:?}"
    );
    assert_eq!(house.events(&envelope.session).await.len(), before);

    let waited = for_tool(&envelope);
    let ticket = house
        .conversations
        .answer(waited.answer_to.as_str(), result_of(None, "rain"))
        .await
        .unwrap();
    crate::support::within(latch.began()).await;
    let refused = house.chat(goes_on(&envelope.session, "hurry")).await;
    assert!(
        matches!(&refused, Err(ServeError::Running(id)) if *id == envelope.session),
        "{refused:?}"
    );
    latch.open();
    let last = crate::support::within(house.conversations.told(ticket)).await.unwrap();
    assert!(matches!(last.reply, Waiting::ForNothing(_)), "{last:?}");
}
