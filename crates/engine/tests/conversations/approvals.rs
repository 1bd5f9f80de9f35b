//! Calls that somebody has to say yes or no to (SPEC 9.6).

use crate::house::{
    House, Ledger, asks, assert_replied, ended, for_approval, for_tool, until, verdict_on, weather_call,
};
use crate::support::probe::{Doing, Probe};
use crate::support::{assert_settled, no};
use aish_core::event::Answer;
use aish_core::policy::Rule;
use aish_core::turn::StopReason;
use aish_engine::{AnswerRequest, Driver, Pending, ServeError, Standing};
use aish_provider::scripted::Act;
use std::sync::Arc;

fn probe_call(n: usize) -> Act {
    Act::calls(&[("probe", &format!(r#"{{"n":{n}}}"#))])
}

fn probe() -> Arc<Probe> {
    Probe::writer("probe", Doing::Answer("ran".to_owned()))
}

/// SPEC 9.6: a call that policy asks about is returned with what it would do, its digest and why; after a yes it runs here, once.
#[tokio::test]
async fn approved() {
    let probe = probe();
    let house = House::with([probe_call(1), Act::text("done")], vec![probe.clone()]);
    let envelope = house.chat(asks("?")).await.unwrap();
    let waited = for_approval(&envelope);
    assert_eq!((waited.tool.as_str(), waited.input.as_str()), ("probe", r#"{"n":1}"#));
    assert!(
        waited.digest.as_ref().unwrap().as_str().len() >= 12 && !waited.reason.is_empty(),
        "{waited:?}"
    );
    assert_eq!((probe.runs(), envelope.tools_used.len()), (0, 0));
    let last = house.verdict(&waited, Answer::Approve).await.unwrap();
    assert_replied(&last, "done");
    assert_eq!((probe.runs(), &last.tools_used[..]), (1, &["probe".to_owned()][..]));
    // The same yes again changes nothing; a no is another answer.
    assert_eq!(house.verdict(&waited, Answer::Approve).await.unwrap(), last);
    let otherwise = house.verdict(&waited, Answer::Deny).await;
    assert!(
        matches!(otherwise, Err(ServeError::AnsweredOtherwise(_))),
        "{otherwise:?}"
    );
    assert_eq!(probe.runs(), 1);
    assert_settled(&house.session(&last.session).await);
}

/// SPEC 3.3, 9.6: what is quoted has to be what was shown.
#[tokio::test]
async fn a_wrong_digest() {
    let probe = probe();
    let house = House::with([probe_call(1), Act::text("done")], vec![probe.clone()]);
    let waited = for_approval(&house.chat(asks("?")).await.unwrap());
    let digest = waited.digest.as_ref().unwrap().as_str().to_owned();
    let wrong = [
        "",
        "0",
        &digest[..11],
        "0123456789ab0123456789ab",
        &format!("{digest}0"),
    ];
    for quoted in wrong {
        let mut claim = verdict_on(&waited, Answer::Approve, None);
        if let aish_engine::Reply::Verdict { digest, .. } = &mut claim.reply {
            quoted.clone_into(digest);
        }
        let refused = house.answer(waited.answer_to.as_str(), claim).await;
        assert!(
            matches!(&refused, Err(ServeError::Digest(call)) if *call == waited.call_id),
            "{quoted}: {refused:?}"
        );
    }
    assert_eq!(probe.runs(), 0);
    let mut short = verdict_on(&waited, Answer::Approve, None);
    if let aish_engine::Reply::Verdict { digest: quoted, .. } = &mut short.reply {
        digest[..12].clone_into(quoted);
    }
    assert_replied(&house.answer(waited.answer_to.as_str(), short).await.unwrap(), "done");
}

/// SPEC 9.6, 3.4: a no with a reason reaches the model, and the call never runs.
#[tokio::test]
async fn declined() {
    let probe = probe();
    let house = House::with([probe_call(1), Act::text("then not")], vec![probe.clone()]);
    let waited = for_approval(&house.chat(asks("?")).await.unwrap());
    let claim = verdict_on(&waited, Answer::Deny, Some("not on a Friday"));
    let last = house.answer(waited.answer_to.as_str(), claim).await.unwrap();
    let over = ended(&last);
    assert_eq!((over.reply.as_str(), over.reason), ("then not", StopReason::Declined));
    let [given] = &house.given()[..] else {
        panic!("one result")
    };
    assert!(given.contains("not on a Friday"), "{given}");
    assert_eq!((probe.runs(), last.tools_used.len()), (0, 0));
}

/// SPEC 9.6: a call of the client's that policy asks about is asked about first, and then handed over, each under an id of its own.
#[tokio::test]
async fn a_clients_call_that_is_asked_about() {
    for ledger in Ledger::all() {
        let house = ledger.house([weather_call("Jena"), Act::text("ok")]);
        house.world.engine.update(|settings| {
            settings.policy.ask.push(Rule::parse("get_weather").unwrap());
        });
        let first = for_approval(&house.chat(asks("?")).await.unwrap());
        let envelope = house.verdict(&first, Answer::Approve).await.unwrap();
        let second = for_tool(&envelope);
        assert_eq!(second.call_id, first.call_id);
        assert_ne!(second.answer_to, first.answer_to);
        assert_eq!(envelope.tools_used, ["get_weather"]);
        // The first is told again what it came to.
        assert_eq!(house.verdict(&first, Answer::Approve).await.unwrap(), envelope);
        assert_replied(&house.result(&second, "rain").await.unwrap(), "ok");
    }
}

/// SPEC 9.6: what policy denies is not handed to a client either.
#[tokio::test]
async fn a_clients_call_that_is_denied() {
    let house = House::with([weather_call("Jena"), Act::text("pity")], Vec::new());
    house.world.engine.update(|settings| {
        settings.policy.deny.push(Rule::parse("get_weather").unwrap());
    });
    let last = house.chat(asks("?")).await.unwrap();
    assert_eq!(ended(&last).reply, "pity");
    assert_eq!(
        (last.tools_used.len(), house.count(&last.session, "suspended").await),
        (0, 0)
    );
}

/// SPEC 9.4, 9.6: an answer by another way (a terminal) ends the suspension: whoever answers it then is told so, the keeper drives
/// the turn on, and the same answer by the suspension is told what it came to.
#[tokio::test]
async fn answered_by_another_way() {
    for ledger in Ledger::all() {
        for answer in [Answer::Approve, Answer::Deny] {
            let house = ledger.house([probe_call(1), Act::text("done")]);
            house.world.engine.update(|settings| {
                settings.policy.ask.push(Rule::parse("probe").unwrap());
            });
            // A tool of the client's, asked about: so that another process without it can be asked as well.
            let waited = for_approval(&house.chat(asks("?")).await.unwrap());
            let session = house.conversations.session_of(waited.answer_to.as_str()).await.unwrap();
            let mut terminal = Driver::open(Arc::clone(&house.world.engine), session.clone())
                .await
                .unwrap();
            let pending = Pending {
                call_id: waited.call_id.clone(),
                tool: waited.tool.clone(),
                arguments: waited.input.clone(),
                readable: String::new(),
                digest: waited.digest.clone().unwrap(),
                rule: String::new(),
            };
            let request = AnswerRequest {
                answer,
                ..no(&pending, None)
            };
            terminal.answer(request).await.unwrap();
            let opposite = match answer {
                Answer::Approve => Answer::Deny,
                Answer::Deny => Answer::Approve,
            };
            let late = house.verdict(&waited, opposite).await;
            assert!(matches!(late, Err(ServeError::AnsweredOtherwise(_))), "{late:?}");
            let (_, standing) = house.conversations.standing(session.as_str()).await.unwrap();
            assert_eq!(standing, Standing::Running);
            // Nobody drives it: a process that comes up takes it over.
            let keeping = tokio::spawn(house.conversations.clone().keep());
            until(async || {
                !matches!(
                    house.conversations.standing(session.as_str()).await,
                    Ok((_, Standing::Running))
                )
            })
            .await;
            let told = house.verdict(&waited, answer).await.unwrap();
            match answer {
                Answer::Approve => assert_replied(&house.result(&for_tool(&told), "x").await.unwrap(), "done"),
                Answer::Deny => assert_eq!(ended(&told).reply, "done"),
            }
            house.conversations.drain().await;
            keeping.await.unwrap();
        }
    }
}
