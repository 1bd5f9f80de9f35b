//! A person at a terminal in a conversation of a client's, and a client in a session of a terminal's (SPEC 2.12, 9.1).

use crate::house::{House, Ledger, asks, assert_replied, for_approval, goes_on, key, settings, verdict_on};
use crate::support::probe::{Doing, Probe};
use crate::support::watched::{Fate, Watched};
use crate::support::{World, ask, asking, assert_settled, done, drive, finish, within};
use aish_core::event::{Answer, AnsweredBy, Body};
use aish_core::id::SessionId;
use aish_engine::{AnswerTo, ChatRequest, Claim, Driver, EngineError, Reply, ServeError, Settled, Standing, Waited};
use aish_provider::scripted::Act;
use futures_util::FutureExt as _;
use std::sync::{Arc, OnceLock};

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

/// A person at a terminal, whose model calls a tool of theirs that often in one reply, and then says `done`.
fn terminal(ledger: &Ledger, calls: usize) -> (World, Arc<Probe>) {
    let probe = Probe::writer("probe", Doing::Answer("ran".to_owned()));
    let arguments: Vec<String> = (1..=calls).map(|n| format!(r#"{{"n":{n}}}"#)).collect();
    let calls: Vec<(&str, &str)> = arguments.iter().map(|text| ("probe", text.as_str())).collect();
    let acts = [Act::calls(&calls), Act::text("done")];
    (World::over(ledger.connect(), acts, vec![probe.clone()]), probe)
}

/// What a session is said to wait for.
async fn waits_for(house: &House, session: &SessionId) -> Waited {
    match house.conversations.standing(session.as_str()).await.unwrap() {
        (_, Standing::Told(envelope)) => for_approval(&envelope),
        (_, other @ (Standing::Idle | Standing::Running)) => panic!("{other:?}"),
    }
}

/// SPEC 9.9, 3.3: a call that a terminal asks about waits for everybody: it is shown with its digest, a yes that quotes it settles the
/// question there, and the turn goes on at the terminal, once; the same yes again is told the same.
#[tokio::test]
async fn a_terminals_question_is_settled_from_elsewhere() {
    for ledger in Ledger::all() {
        let (world, probe) = terminal(&ledger, 1);
        let house = ledger.another_house([]);
        let mut driver = world.driver();
        let pending = asking(ask(&mut driver, "go").await).remove(0);
        let session = driver.session().id().clone();

        let waited = waits_for(&house, &session).await;
        assert_eq!(waited.answer_to, AnswerTo::Session(session.clone()));
        assert_eq!(
            (&waited.call_id, waited.digest.as_ref()),
            (&pending.call_id, Some(&pending.digest))
        );
        let refused = house.chat(goes_on(&session, "hurry")).await;
        assert!(matches!(refused, Err(ServeError::Waiting(_))), "{refused:?}");
        let mut wrong = verdict_on(&waited, Answer::Approve, None);
        if let Reply::Verdict { digest, .. } = &mut wrong.reply {
            "0123456789ab0123456789ab".clone_into(digest);
        }
        let wrong = house.answer(session.as_str(), wrong).await;
        assert!(
            matches!(&wrong, Err(ServeError::Engine(EngineError::Digest(_)))),
            "{wrong:?}"
        );

        let settled = driver.settled_elsewhere(&pending.call_id);
        let at_terminal = async {
            assert_eq!(settled.await, Settled::Approved);
            done(drive(&mut driver).await.unwrap())
        };
        let (finished, told) =
            within(async { tokio::join!(at_terminal, house.verdict(&waited, Answer::Approve)) }).await;
        let told = told.unwrap();
        assert_replied(&told, "done");
        assert_eq!((finished.reply.as_str(), probe.runs()), ("done", 1));
        assert_eq!(house.verdict(&waited, Answer::Approve).await.unwrap(), told);
        let otherwise = house.verdict(&waited, Answer::Deny).await;
        assert!(
            matches!(&otherwise, Err(ServeError::Engine(EngineError::AnsweredOtherwise(_)))),
            "{otherwise:?}"
        );
        let folded = house.session(&session).await;
        assert_settled(&folded);
        let by = folded.events().iter().find_map(|event| {
            let Body::CallAnswered(data) = &event.body else {
                return None;
            };
            Some(data.by)
        });
        assert_eq!(by, Some(AnsweredBy::Client));
    }
}

/// SPEC 3.4, 9.4: of several calls each is told in its turn, and nothing runs until all are answered; a no counts like a yes.
#[tokio::test]
async fn a_terminals_calls_one_after_the_other() {
    for ledger in Ledger::all() {
        let (world, probe) = terminal(&ledger, 2);
        let house = ledger.another_house([]);
        let mut driver = world.driver();
        assert_eq!(asking(ask(&mut driver, "go").await).len(), 2);
        let session = driver.session().id().clone();
        let first = waits_for(&house, &session).await;
        let told = house.verdict(&first, Answer::Deny).await.unwrap();
        let second = for_approval(&told);
        assert_eq!((second.input.as_str(), probe.runs()), (r#"{"n":2}"#, 0));
        assert_eq!(waits_for(&house, &session).await, second);
        assert_eq!(house.verdict(&first, Answer::Deny).await.unwrap(), told);
        let at_terminal = async {
            driver.settled_elsewhere(&second.call_id).await;
            done(drive(&mut driver).await.unwrap())
        };
        let (_, last) = within(async { tokio::join!(at_terminal, house.verdict(&second, Answer::Approve)) }).await;
        assert_replied(&last.unwrap(), "done");
        assert_eq!(probe.runs(), 1);
        assert_eq!(house.verdict(&first, Answer::Deny).await.unwrap(), told);
    }
}

/// SPEC 9.9: where nobody is at the terminal the answer is taken all the same, the request does not wait for ever, and nothing is run
/// here: the turn goes on when somebody comes back to it, and the same answer is then told what it came to.
#[tokio::test(start_paused = true)]
async fn nobody_at_the_terminal() {
    let ledger = Ledger::Memory(Arc::default());
    let (world, probe) = terminal(&ledger, 1);
    let house = ledger.another_house([]);
    let mut driver = world.driver();
    asking(ask(&mut driver, "go").await);
    let session = driver.session().id().clone();
    let waited = waits_for(&house, &session).await;
    let keeping = tokio::spawn(house.conversations.clone().keep());
    for _ in 0..2 {
        let left = house.verdict(&waited, Answer::Approve).await;
        assert!(
            matches!(&left, Err(ServeError::AtTerminal(of)) if *of == session),
            "{left:?}"
        );
    }
    assert_eq!((house.count(&session, "call_answered").await, probe.runs()), (1, 0));
    done(drive(&mut driver).await.unwrap());
    assert_replied(&house.verdict(&waited, Answer::Approve).await.unwrap(), "done");
    assert_eq!(probe.runs(), 1);
    house.conversations.drain().await;
    within(keeping).await.unwrap();
}

/// SPEC 9.4: an answer that names no call, or a result, is for no call of a terminal's.
#[tokio::test]
async fn what_is_no_answer_to_a_terminal() {
    let ledger = Ledger::file();
    let (world, _) = terminal(&ledger, 1);
    let house = ledger.another_house([]);
    let mut driver = world.driver();
    asking(ask(&mut driver, "go").await);
    let session = driver.session().id().clone();
    let waited = waits_for(&house, &session).await;
    let unnamed = Claim {
        call_id: None,
        ..verdict_on(&waited, Answer::Approve, None)
    };
    let result = crate::house::result_of(Some(waited.call_id.as_str()), "I did it myself");
    for claim in [unnamed, result] {
        let refused = house.answer(session.as_str(), claim).await;
        assert!(matches!(refused, Err(ServeError::NotWaiting(_))), "{refused:?}");
    }
}

/// SPEC 9.4: an answer to a terminal's call is the same one with the same words only, a no with another reason is another; under its key
/// it is told the same, by any server, and another request under that key is refused.
#[tokio::test]
async fn a_terminals_answer_again() {
    for ledger in Ledger::all() {
        let (world, _) = terminal(&ledger, 2);
        let house = ledger.another_house([]);
        let other = ledger.another_house([]);
        let mut driver = world.driver();
        asking(ask(&mut driver, "go").await);
        let session = driver.session().id().clone();
        let first = waits_for(&house, &session).await;
        let under_key = |reason: &str| Claim {
            request: key("k", reason),
            ..verdict_on(&first, Answer::Deny, Some(reason))
        };
        let told = house.answer(session.as_str(), under_key("not now")).await.unwrap();
        for house in [&house, &other] {
            let again = house.answer(session.as_str(), under_key("not now")).await.unwrap();
            assert_eq!(again, told);
            let reused = house.answer(session.as_str(), under_key("never")).await;
            assert!(matches!(reused, Err(ServeError::KeyReused)), "{reused:?}");
            let unkeyed = verdict_on(&first, Answer::Deny, Some("not now"));
            assert_eq!(house.answer(session.as_str(), unkeyed).await.unwrap(), told);
            let otherwise = verdict_on(&first, Answer::Deny, Some("never"));
            let otherwise = house.answer(session.as_str(), otherwise).await;
            assert!(
                matches!(&otherwise, Err(ServeError::Engine(EngineError::AnsweredOtherwise(_)))),
                "{otherwise:?}"
            );
        }
        assert_eq!(house.count(&session, "call_answered").await, 1);
    }
}

/// SPEC 9.4: an answer to a terminal's call is told what its turn came to also when later turns have begun; another answer is refused.
#[tokio::test]
async fn a_terminals_answer_after_its_turn() {
    for ledger in Ledger::all() {
        let probe = Probe::writer("probe", Doing::Answer("ran".to_owned()));
        let acts = [
            Act::calls(&[("probe", r#"{"n":1}"#)]),
            Act::text("done"),
            Act::text("later"),
        ];
        let world = World::over(ledger.connect(), acts, vec![probe]);
        let house = ledger.another_house([]);
        let mut driver = world.driver();
        asking(ask(&mut driver, "go").await);
        let waited = waits_for(&house, driver.session().id()).await;
        let at_terminal = async {
            driver.settled_elsewhere(&waited.call_id).await;
            done(drive(&mut driver).await.unwrap());
            finish(&mut driver, "and now?").await;
        };
        let ((), told) = within(async { tokio::join!(at_terminal, house.verdict(&waited, Answer::Approve)) }).await;
        let told = told.unwrap();
        assert_replied(&told, "done");
        assert_eq!(house.verdict(&waited, Answer::Approve).await.unwrap(), told);
        let otherwise = house.verdict(&waited, Answer::Deny).await;
        assert!(
            matches!(&otherwise, Err(ServeError::Engine(EngineError::AnsweredOtherwise(_)))),
            "{otherwise:?}"
        );
    }
}

/// SPEC 9.4, 3.3: of the same answer to a terminal's call, sent to two servers at once, one is written.
#[tokio::test]
async fn a_terminals_answer_to_two_servers_at_once() {
    for ledger in Ledger::all() {
        let (world, _) = terminal(&ledger, 2);
        let other = Arc::new(ledger.another_house([]));
        let meanwhile: Arc<OnceLock<(SessionId, Claim)>> = Arc::default();
        let first_to_write = {
            let (other, meanwhile) = (Arc::clone(&other), Arc::clone(&meanwhile));
            Watched::new(
                ledger.connect(),
                Box::new(move |n, _| {
                    let (other, meanwhile) = (Arc::clone(&other), Arc::clone(&meanwhile));
                    async move {
                        let (session, claim) = meanwhile.get().unwrap();
                        if n == 1 {
                            let answered = other.conversations.answer(session.as_str(), claim.clone()).await;
                            answered.unwrap();
                        }
                        Fate::Write
                    }
                    .boxed()
                }),
            )
        };
        let house = House::of(World::over(first_to_write.clone(), [], Vec::new()), settings());
        let mut driver = world.driver();
        asking(ask(&mut driver, "go").await);
        let session = driver.session().id().clone();
        let first = waits_for(&house, &session).await;
        let claim = verdict_on(&first, Answer::Deny, Some("no"));
        meanwhile.set((session.clone(), claim.clone())).unwrap();
        house.answer(session.as_str(), claim).await.unwrap();
        assert_eq!(first_to_write.appends(), 1);
        assert_eq!(house.count(&session, "call_answered").await, 1);
    }
}
