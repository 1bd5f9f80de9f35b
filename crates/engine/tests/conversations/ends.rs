//! Turns that are cancelled, and what is left of those that wait (SPEC 9.5, 9.8).

use crate::house::{
    House, Ledger, Steady, asks, assert_replied, ended, for_tool, goes_on, result_of, settings, steady, until,
    weather_call,
};
use crate::support::watched::{Fate, Watched};
use crate::support::{World, assert_settled, within};
use aish_core::event::{Body, Draft, TurnStarted};
use aish_core::id::SessionId;
use aish_core::session::Session;
use aish_core::turn::StopReason;
use aish_engine::{ConversationsSettings, Driver, Envelope, Live, Notice, ServeError};
use aish_provider::Delta;
use aish_provider::scripted::Act;
use aish_store::{Durability, Hold, Owner, Store};
use futures_util::FutureExt as _;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Semaphore;

/// How often a cancel is overtaken.
const OVERTAKEN: u64 = 7;
/// Turns that wait at once.
const WAITING: usize = 1_000;

fn assert_cancelled(envelope: &Envelope) {
    assert_eq!(ended(envelope).reason, StopReason::Cancelled, "{envelope:?}");
}

/// SPEC 9.8: a turn that waits is cancelled, by its own id or its session's: what comes later is refused, and the conversation
/// goes on. A second time it is told the same.
#[tokio::test]
async fn cancelled_while_it_waits() {
    for ledger in Ledger::all() {
        let house = ledger.house([weather_call("Jena"), Act::text("next")]);
        let start = house.chat(asks("?")).await.unwrap();
        let waited = for_tool(&start);
        let cancelled = house.conversations.cancel(waited.answer_to.as_str()).await.unwrap();
        assert_cancelled(&cancelled);
        assert_eq!(
            house.conversations.cancel(start.session.as_str()).await.unwrap(),
            cancelled
        );
        let late = house.result(&waited, "rain").await;
        assert!(
            matches!(&late, Err(ServeError::Ended(id)) if id.as_str() == waited.answer_to.as_str()),
            "{late:?}"
        );
        let late = house.answer(start.session.as_str(), result_of(None, "rain")).await;
        assert!(matches!(late, Err(ServeError::NotWaiting(_))), "{late:?}");
        assert_replied(&house.chat(goes_on(&start.session, "?")).await.unwrap(), "next");
    }
}

/// SPEC 9.4, 9.8: the id of a suspension that is over means its own turn: a later one of the same conversation goes on.
#[tokio::test]
async fn an_old_id_cancels_no_later_turn() {
    for ledger in Ledger::all() {
        let acts = [
            weather_call("Jena"),
            Act::text("done"),
            weather_call("Ulm"),
            Act::text("ok"),
        ];
        let house = ledger.house(acts);
        let start = house.chat(asks("?")).await.unwrap();
        let first = for_tool(&start);
        let done = house.result(&first, "rain").await.unwrap();
        let second = house.chat(goes_on(&start.session, "?")).await.unwrap();
        let told = house.conversations.cancel(first.answer_to.as_str()).await.unwrap();
        assert_eq!(told, done);
        let ok = house.result(&for_tool(&second), "sun").await.unwrap();
        assert_replied(&ok, "ok");
    }
}

/// SPEC 9.8, 3.5a: a turn that runs here is cancelled: whoever waits for it is told.
#[tokio::test]
async fn cancelled_while_it_runs() {
    for ledger in Ledger::all() {
        let house = ledger.house([Act::Hang(Vec::new()), Act::text("next")]);
        let ticket = house.conversations.chat(asks("?")).await.unwrap();
        until(async || house.world.model.asked().len() == 1).await;
        let session = ticket.session.clone();
        let cancelled = within(house.conversations.cancel(session.as_str())).await.unwrap();
        assert_cancelled(&cancelled);
        // Nobody sits in front of it who could have interrupted it.
        assert_eq!(ended(&cancelled).reply, "[stopped: cancelled by the client]");
        assert_eq!(within(house.conversations.told(ticket)).await.unwrap(), cancelled);
        assert_eq!(house.count(&session, "cancelled").await, 1);
        assert_replied(&house.chat(goes_on(&session, "?")).await.unwrap(), "next");
    }
}

/// SPEC 3.5a, 9.8: a turn that is cancelled in the middle of a reply says who cancelled it, and keeps what was said.
#[tokio::test]
async fn cancelled_in_the_middle_of_a_reply() {
    for ledger in Ledger::all() {
        let house = ledger.house([Act::text("hi"), Act::Hang(vec![Delta::Text("It will".to_owned())])]);
        let session = house.chat(asks("hi")).await.unwrap().session;
        let mut reader = house.conversations.follow(&session, 0);
        house.conversations.chat(goes_on(&session, "?")).await.unwrap();
        let said = async {
            let is_said = |live: &Live| matches!(live, Live::Notice(Notice::Text(said)) if said == "It will");
            while !is_said(&reader.next().await.unwrap().live) {}
        };
        within(said).await;
        let cancelled = within(house.conversations.cancel(session.as_str())).await.unwrap();
        assert_cancelled(&cancelled);
        assert_eq!(ended(&cancelled).reply, "It will\n[stopped: cancelled by the client]");
        assert_eq!(house.count(&session, "cancelled").await, 1);
        // The greeting, what was said of the reply, and that it was stopped.
        assert_eq!(house.count(&session, "assistant").await, 3);
    }
}

/// SPEC 9.5, 9.8: a client that cancels and goes away in the middle of it has cancelled: the turn is ended, and readers are told.
#[tokio::test]
async fn cancelled_by_a_client_that_goes_away() {
    for ledger in Ledger::all() {
        let (reached, opened) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let (reaching, open) = (Arc::clone(&reached), Arc::clone(&opened));
        let hook = move |_, drafts: Vec<Draft>| {
            let is_cancel = drafts.iter().any(|draft| matches!(draft.body, Body::Cancelled(_)));
            let (reaching, open) = (Arc::clone(&reaching), Arc::clone(&open));
            async move {
                if is_cancel {
                    reaching.add_permits(1);
                    open.acquire().await.unwrap().forget();
                }
                Fate::Write
            }
            .boxed()
        };
        let store = Watched::new(ledger.connect(), Box::new(hook));
        let world = World::over(store, [weather_call("Jena"), Act::text("next")], Vec::new());
        let house = House::of(world, settings());
        let start = house.chat(asks("?")).await.unwrap();
        let mut reader = house.conversations.follow(&start.session, 0);
        let gone = within(async {
            tokio::select! {
                told = house.conversations.cancel(start.session.as_str()) => Some(told),
                _ = reached.acquire() => None,
            }
        });
        assert_eq!(gone.await.map(|told| ended(&told.unwrap())), None);
        opened.add_permits(1);
        until(async || house.count(&start.session, "turn_ended").await == 1).await;
        let told = async {
            loop {
                let item = reader.next().await.unwrap();
                if matches!(&item.live, Live::Event(event) if matches!(event.body, Body::TurnEnded(_))) {
                    break;
                }
            }
        };
        within(told).await;
        assert_replied(&house.chat(goes_on(&start.session, "?")).await.unwrap(), "next");
    }
}

/// SPEC 9.5, 9.8: a turn that runs in another process is cancelled from here.
#[tokio::test]
async fn cancelled_from_elsewhere() {
    for ledger in Ledger::all() {
        let house = ledger.house([Act::Hang(Vec::new())]);
        let other = ledger.another_house([Act::text("next")]);
        let ticket = house.conversations.chat(asks("?")).await.unwrap();
        let session = ticket.session.clone();
        let cancelled = within(other.conversations.cancel(session.as_str())).await.unwrap();
        assert_cancelled(&cancelled);
        assert_eq!(within(house.conversations.told(ticket)).await.unwrap(), cancelled);
        assert_replied(&other.chat(goes_on(&session, "?")).await.unwrap(), "next");
    }
}

/// SPEC 3.5b, 3.7: a cancel gives way to what a driver still writes, however often, and then closes all of it.
#[tokio::test]
async fn a_cancel_that_is_overtaken() {
    for ledger in Ledger::all() {
        let (beside, times) = (ledger.connect(), Arc::new(AtomicU64::new(0)));
        let counted = Arc::clone(&times);
        let store = Watched::new(
            ledger.connect(),
            Box::new(move |_, drafts| {
                let (beside, counted) = (Arc::clone(&beside), Arc::clone(&counted));
                async move {
                    let cancels = drafts.iter().any(|draft| matches!(draft.body, Body::Cancelled(_)));
                    if cancels && counted.load(Ordering::SeqCst) < OVERTAKEN {
                        let nth = counted.fetch_add(1, Ordering::SeqCst);
                        write_beside(beside.as_ref(), nth).await;
                    }
                    Fate::Write
                }
                .boxed()
            }),
        );
        let id = SessionId::from_parts(1, 1);
        let began = Draft::turn_started(1, TurnStarted::default());
        let question = vec![began, Draft::user(1, "?")];
        let placed = ledger.connect();
        placed
            .append(&id, 0, question, 1, Durability::Committed, Hold::Nothing)
            .await
            .unwrap();
        let world = World::over(store, [], Vec::new());
        let mut driver = Driver::open(Arc::clone(&world.engine), id.clone()).await.unwrap();
        let finished = driver.cancel("enough").await.unwrap();
        assert_eq!(finished.reason, StopReason::Cancelled);
        assert_eq!(times.load(Ordering::SeqCst), OVERTAKEN);
        assert_settled(driver.session());
    }
}

/// What a driver writes that has not seen the cancel: a reply with a call, that call's result, and so on.
async fn write_beside(store: &dyn Store, nth: u64) {
    let id = SessionId::from_parts(1, 1);
    let session = Session::load(id.clone(), store.load(&id, 0).await.unwrap());
    let turn = session.turn().unwrap();
    let drafts = if nth.is_multiple_of(2) {
        let (reply, call) = (turn.next_reply_id(), turn.next_call_id(0));
        let reply_data = json!({"reply_id": reply.to_string(), "stop": "tool_calls"});
        let call_data = json!({
            "id": call.to_string(), "type": "function", "reply_id": reply.to_string(),
            "function": {"name": "glob", "arguments": "{}"},
        });
        let draft = |kind: &str, data: Value| Draft::new(1, "", Body::decode(kind, &data.to_string()).unwrap());
        vec![draft("assistant", reply_data), draft("tool_call", call_data)]
    } else {
        let open = turn.calls().iter().find(|call| call.is_open()).unwrap();
        let data = json!({"tool_call_id": open.id.to_string(), "name": "glob", "output": "{}", "end": "not_run"});
        vec![Draft::new(
            1,
            "",
            Body::decode("tool_result", &data.to_string()).unwrap(),
        )]
    };
    session.check(&drafts).unwrap();
    let appended = store.append(&id, session.last_seq(), drafts, 1, Durability::Committed, Hold::Nothing);
    appended.await.unwrap();
}

/// SPEC 9.8: there is nothing to cancel: what the last turn came to is told, and nothing is written.
#[tokio::test]
async fn nothing_to_cancel() {
    let house = House::with([Act::text("ok")], Vec::new());
    let last = house.chat(asks("?")).await.unwrap();
    let before = house.events(&last.session).await.len();
    assert_eq!(house.conversations.cancel(last.session.as_str()).await.unwrap(), last);
    assert_eq!(house.events(&last.session).await.len(), before);
    for id in ["br-1-0", "nowhere"] {
        let unknown = house.conversations.cancel(id).await;
        assert!(matches!(unknown, Err(ServeError::Unknown(_))), "{unknown:?}");
    }
}

/// SPEC 9.5: of a thousand turns that wait none runs, none has a place that another turn needs, and each goes on.
#[tokio::test]
async fn a_thousand_that_wait() {
    let ledger = Ledger::file();
    let house = steady(ledger.connect(), Owner::this_process(), Steady::calling(1), Vec::new());
    let mut waiting = Vec::new();
    while waiting.len() < WAITING {
        let some = (0..settings().turns_max / 2).map(|_| house.chat(asks("?")));
        for envelope in futures_util::future::join_all(some).await {
            waiting.push(for_tool(&envelope.unwrap()));
        }
    }
    assert_eq!(house.conversations.running_count(), 0);
    for waited in waiting.iter().step_by(97) {
        assert_replied(&house.result(waited, "rain").await.unwrap(), "done");
    }
    assert_eq!(house.conversations.running_count(), 0);
}

/// SPEC 9.8: as many turns run as may; one more is refused, and what waits does not count.
#[tokio::test]
async fn as_many_as_may() {
    let ledger = Ledger::file();
    let one = ConversationsSettings {
        turns_max: 1,
        ..settings()
    };
    let house = House::set(
        &ledger,
        one,
        [weather_call("Jena"), Act::Hang(Vec::new()), Act::text("ok")],
    );
    let waits = house.chat(asks("1")).await.unwrap();
    let runs = house.conversations.chat(asks("2")).await.unwrap();
    let busy = house.chat(asks("3")).await;
    assert!(matches!(busy, Err(ServeError::Busy(1))), "{busy:?}");
    let waited = for_tool(&waits);
    let busy = house.result(&waited, "rain").await;
    assert!(matches!(busy, Err(ServeError::Busy(1))), "{busy:?}");
    // What was refused was not taken: it may be given once there is room.
    within(house.conversations.cancel(runs.session.as_str())).await.unwrap();
    within(house.conversations.told(runs)).await.unwrap();
    let last = within(async {
        loop {
            match house.result(&waited, "rain").await {
                Err(ServeError::Busy(_)) => tokio::task::yield_now().await,
                other => break other,
            }
        }
    })
    .await;
    assert_replied(&last.unwrap(), "ok");
    let unknown = house.conversations.session_of(SessionId::new("x").as_str()).await;
    assert!(matches!(unknown, Err(ServeError::Unknown(_))));
}
