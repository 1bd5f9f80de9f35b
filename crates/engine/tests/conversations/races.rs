//! Answers that race, and anything at any moment: on one process and on several over one ledger (SPEC 9.4, 9.5, 12).
//!
//! A failure names its seed.

use crate::house::{
    House, Ledger, Steady, asks, assert_replied, dead_owner, ended, for_tool, goes_on, key, result_of, settings,
    steady, until, weather_call,
};
use crate::rng::{Rng, SeedOnPanic};
use crate::support::watched::{Fate, Watched};
use crate::support::{World, another_owner, results, told as told_in, within};
use aish_core::event::{Body, Draft, ResultEnd, Resumed, ToolResult};
use aish_core::id::SessionId;
use aish_core::session::Session;
use aish_core::turn::StopReason;
use aish_engine::{ChatRequest, ConversationsSettings, ServeError, Waiting};
use aish_provider::scripted::Act;
use aish_store::{Durability, Hold, Owner, SessionFilter, Store};
use futures_util::future::{BoxFuture, FutureExt as _, join_all};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Answers that race for one suspension.
const RACERS: usize = 12;
/// Stories of the random test; another number by [`STORIES_VARIABLE`].
const STORIES: u64 = 120;
const STORIES_VARIABLE: &str = "AISH_STORIES";
/// Clients of one story.
const CLIENTS: usize = 4;
/// Calls of the client in one turn.
const CALLS: usize = 3;
/// What one client does in a story.
const DEEDS: usize = 12;

/// SPEC 9.4, 9.5: of racing answers, on one server or several, exactly one wins; all the others are told that it was another, and the
/// model is told the one that won alone, once.
#[tokio::test]
async fn exactly_one_answer_wins() {
    for ledger in Ledger::all() {
        let here = ledger.house(
            (0..20)
                .map(|n| weather_call(&format!("{n}")))
                .chain([Act::text("done")]),
        );
        let there = ledger.another_house(
            (1..20)
                .map(|n| weather_call(&format!("{n}")))
                .chain([Act::text("done")]),
        );
        let mut envelope = here.chat(asks("?")).await.unwrap();
        let mut won: Vec<(String, String)> = Vec::new();
        // What the models of both were told until now.
        let mut before = [&here, &there].map(|house| house.world.model.asked().len());
        for round in 0..10 {
            let waited = for_tool(&envelope);
            let racing = (0..RACERS).map(|n| {
                let house = if n % 2 == 0 { &here } else { &there };
                let id = if n % 3 == 0 {
                    envelope.session.as_str()
                } else {
                    waited.answer_to.as_str()
                };
                let claim = result_of(Some(waited.call_id.as_str()), &format!("{round} by {n}"));
                async move { (n, house.answer(id, claim).await) }
            });
            let told = join_all(racing.collect::<Vec<_>>()).await;
            let mut winners = Vec::new();
            for (n, told) in told {
                match told {
                    Ok(next) => winners.push((n, next)),
                    // By the session's id it may come when the next call is waited for.
                    Err(
                        ServeError::AnsweredOtherwise(_) | ServeError::OtherCall { .. } | ServeError::NotWaiting(_),
                    ) => {}
                    Err(other) => panic!("{other}"),
                }
            }
            let [(winner, next)] = &winners[..] else {
                panic!("{} won", winners.len())
            };
            won.push((waited.call_id.to_string(), format!("{round} by {winner}")));
            let session = here.session(&envelope.session).await;
            let written = results(&session).into_iter().map(|result| {
                let output = result.output.clone();
                (result.tool_call_id.to_string(), output)
            });
            assert_eq!(written.collect::<Vec<_>>(), won);
            // Whichever process took the answer has asked its model, and told it of no other.
            let mut asked = Vec::new();
            for (house, before) in [&here, &there].into_iter().zip(&mut before) {
                let all = house.world.model.asked();
                asked.extend(all[*before..].iter().map(|asked| told_in(&asked.messages)));
                *before = all.len();
            }
            assert_eq!(asked, [won.clone()]);
            envelope = next.clone();
        }
        let cancelled = here.conversations.cancel(envelope.session.as_str()).await.unwrap();
        assert_eq!(ended(&cancelled).reason, StopReason::Cancelled);
    }
}

/// SPEC 9.4: the same answer from many at once is one answer, and all are told the same.
#[tokio::test]
async fn the_same_answer_from_many() {
    for ledger in Ledger::all() {
        let here = ledger.house([weather_call("Jena"), Act::text("done")]);
        let there = ledger.another_house([Act::text("done")]);
        let waited = for_tool(&here.chat(asks("?")).await.unwrap());
        let racing = (0..RACERS).map(|n| if n % 2 == 0 { &here } else { &there }.result(&waited, "rain"));
        for told in join_all(racing.collect::<Vec<_>>()).await {
            assert_replied(&told.unwrap(), "done");
        }
    }
}

/// What was acknowledged in a story.
#[derive(Default)]
struct Acknowledged {
    /// The results that a process said it took, by the suspension.
    answers: BTreeMap<String, String>,
}

/// SPEC 9.4: an answer that was accepted in the moment before its turn was to expire counts: the turn is not ended, and goes on.
#[tokio::test]
async fn an_answer_before_its_turn_expires() {
    for ledger in Ledger::all() {
        let answering = Arc::new(AtomicUsize::new(0));
        let (beside, counted) = (ledger.connect(), Arc::clone(&answering));
        // Whoever is about to write that nobody answered in time finds that somebody has.
        let store = Watched::new(
            ledger.connect(),
            Box::new(move |_, drafts| {
                let (beside, counted) = (Arc::clone(&beside), Arc::clone(&counted));
                async move {
                    let expires = drafts.iter().find(|draft| matches!(draft.body, Body::Cancelled(_)));
                    if expires.is_some() && counted.fetch_add(1, Ordering::SeqCst) == 0 {
                        answer_beside(beside.as_ref()).await;
                    }
                    Fate::Write
                }
                .boxed()
            }),
        );
        let brief = ConversationsSettings {
            pending_ttl_ms: Some(0),
            ..settings()
        };
        let house = House::of(World::over(store, [weather_call("Jena")], Vec::new()), brief);
        let start = house.chat(asks("?")).await.unwrap();
        for_tool(&start);
        let refused = house.chat(goes_on(&start.session, "never mind")).await;
        assert!(matches!(refused, Err(ServeError::Running(_))), "{refused:?}");
        assert_eq!(answering.load(Ordering::SeqCst), 1);

        // Whoever comes up next goes on with it.
        let next = ledger.another_house([Act::text("ok")]);
        let keeping = tokio::spawn(next.conversations.clone().keep());
        until(async || next.count(&start.session, "turn_ended").await == 1).await;
        let session = next.session(&start.session).await;
        assert_eq!(session.turn().unwrap().ended(), Some(StopReason::End));
        assert_eq!(results(&session)[0].output, "rain");
        assert_eq!(next.count(&start.session, "cancelled").await, 0);
        next.conversations.drain().await;
        within(keeping).await.unwrap();
    }
}

/// Answers what the only session of a ledger waits for, as a process does that was asked in time.
async fn answer_beside(store: &dyn Store) {
    let id = store.list(SessionFilter::default()).await.unwrap().remove(0).id;
    let pending = store.waiting_under(&id).await.unwrap().unwrap();
    let resumed = Resumed {
        continuation: pending.continuation,
        answer: None,
        request: None,
    };
    let result = ToolResult {
        tool_call_id: pending.call.unwrap(),
        name: "get_weather".to_owned(),
        output: "rain".to_owned(),
        success: true,
        parts: Vec::new(),
        end: ResultEnd::Completed,
    };
    let drafts = vec![
        Draft::new(1, "answered", Body::Resumed(resumed)),
        Draft::tool_result(1, "4 characters", result),
    ];
    let time = aish_engine::now_ms();
    let appended = store.append(&id, pending.seq, drafts, time, Durability::Synced, Hold::Nothing);
    appended.await.unwrap();
}

/// Several processes over one ledger, one of which may be dead.
struct Story {
    houses: Vec<(House, Arc<Watched>)>,
    rng: Mutex<Rng>,
    session: SessionId,
    acknowledged: Mutex<Acknowledged>,
    said: AtomicUsize,
}

impl Story {
    fn below(&self, end: usize) -> usize {
        self.rng.lock().unwrap().below(end)
    }

    /// Asks a process that may die meanwhile.
    async fn alive<T>(&self, house: usize, asking: BoxFuture<'_, T>) -> Option<T> {
        let (_, store) = &self.houses[house];
        tokio::select! {
            biased;
            () = store.died() => {
                // Whoever asks it next is not answered either.
                store.stay_dead();
                None
            }
            told = asking => Some(told),
        }
    }

    /// One client: looks where the session stands, and answers, repeats, differs, cancels, says something new, or goes away.
    async fn client(&self, name: usize) {
        let mut sent: Option<(String, String)> = None;
        for _ in 0..DEEDS {
            let n = self.below(self.houses.len());
            let house = &self.houses[n].0;
            let standing = house.conversations.last_told(&self.session).boxed();
            let Some(Ok(standing)) = self.alive(n, standing).await else {
                continue;
            };
            let waited = standing.and_then(|(_, envelope)| match envelope.reply {
                Waiting::ForTool(waited) => Some(waited),
                Waiting::ForApproval(_) | Waiting::ForNothing(_) => None,
            });
            if self.rng.lock().unwrap().percent(5) {
                let cancelling = house.conversations.cancel(self.session.as_str()).boxed();
                self.alive(n, cancelling).await;
                continue;
            }
            match (self.below(20), waited) {
                (0..=3, _) => {
                    let said = self.said.fetch_add(1, Ordering::SeqCst);
                    let request = ChatRequest {
                        conversation: Some(self.session.clone()),
                        request: key(&format!("{} {said}", self.session), "?"),
                        ..asks("more")
                    };
                    self.alive(n, house.chat(request).boxed()).await;
                }
                (4..=7, _) if sent.is_some() => {
                    let (id, content) = sent.clone().unwrap();
                    self.answer(n, &id, &content).await;
                }
                (_, Some(waited)) => {
                    let content = format!("{name}: {}", self.below(2));
                    let id = waited.answer_to.to_string();
                    self.answer(n, &id, &content).await;
                    sent = Some((id, content));
                }
                (_, None) => tokio::task::yield_now().await,
            }
        }
    }

    async fn answer(&self, n: usize, id: &str, content: &str) {
        let house = &self.houses[n].0;
        let taken = house.conversations.answer(id, result_of(None, content)).boxed();
        match self.alive(n, taken).await {
            Some(Ok(_)) => {
                let mut acknowledged = self.acknowledged.lock().unwrap();
                let before = acknowledged.answers.insert(id.to_owned(), content.to_owned());
                assert!(before.is_none_or(|before| before == content), "two answers to {id}");
            }
            Some(Err(
                ServeError::AnsweredOtherwise(_)
                | ServeError::Ended(_)
                | ServeError::Draining
                | ServeError::NotWaiting(_),
            ))
            | None => {}
            Some(Err(other)) => panic!("{other:?}"),
        }
    }
}

/// Each suspension was answered at most once, and each result of a client came with the end of a suspension.
fn assert_once(session: &Session, acknowledged: &BTreeMap<String, String>) {
    let mut answered = BTreeMap::new();
    let mut calls = BTreeSet::new();
    for pair in session.events().windows(2) {
        let Body::Resumed(data) = &pair[0].body else { continue };
        let result = pair[1].tool_result().unwrap();
        assert!(
            calls.insert(result.tool_call_id.clone()),
            "{} has two results",
            result.tool_call_id
        );
        let before = answered.insert(data.continuation.to_string(), result.output.clone());
        assert!(before.is_none(), "{} was answered twice", data.continuation);
    }
    for (id, content) in acknowledged {
        assert_eq!(answered.get(id), Some(content), "{id} was acknowledged");
    }
    assert_eq!(session.passed_over(), 0);
}

/// How many answers were acknowledged, and whether a process died.
async fn story(seed: u64, ledger: &Ledger) -> (usize, bool) {
    let _told = SeedOnPanic(seed);
    let mut rng = Rng::new(seed);
    let model = || {
        Steady(Box::new(|given| {
            if given % (CALLS + 1) < CALLS {
                weather_call("Jena")
            } else {
                Act::text("done")
            }
        }))
    };
    let (dies_at, fate) = (rng.below(30) + 2, rng.pick(&[Fate::DieBefore, Fate::DieAfter]));
    let owners = [dead_owner(), another_owner()];
    let houses: Vec<(House, Arc<Watched>)> = owners
        .into_iter()
        .zip([Some(dies_at), None])
        .map(|(owner, dies)| {
            let store = Watched::deciding(
                ledger.connect(),
                move |n, _| if Some(n) == dies { fate } else { Fate::Write },
            );
            (steady(store.clone(), owner, model(), Vec::new()), store)
        })
        .collect();
    // It begins where nobody dies.
    let first = houses[1].0.chat(asks("?")).await.unwrap();
    let story = Story {
        houses,
        rng: Mutex::new(rng),
        session: first.session.clone(),
        acknowledged: Mutex::default(),
        said: AtomicUsize::new(0),
    };
    // The first one's leases are a dead process's from the start: what is taken from it while it still runs is taken up again.
    let sweeping = tokio::spawn(story.houses[1].0.conversations.clone().keep());
    within(join_all((0..CLIENTS).map(|name| story.client(name)))).await;

    // Another process comes up, and everything comes to an end.
    let last = steady(ledger.connect(), Owner::this_process(), model(), Vec::new());
    within(story.houses[1].0.conversations.drain()).await;
    within(sweeping).await.unwrap();
    let keeping = tokio::spawn(last.conversations.clone().keep());
    within(async {
        loop {
            match last.conversations.last_told(&story.session).await.unwrap() {
                Some((_, envelope)) => match &envelope.reply {
                    Waiting::ForTool(waited) => match last.result(waited, "in the end").await {
                        // What a client that is gone had sent may still arrive before.
                        Ok(_) | Err(ServeError::AnsweredOtherwise(_) | ServeError::Ended(_)) => {}
                        Err(other) => panic!("{other:?}"),
                    },
                    Waiting::ForApproval(_) | Waiting::ForNothing(_) => break,
                },
                None => tokio::time::sleep(std::time::Duration::from_millis(5)).await,
            }
        }
    })
    .await;
    let session = last.session(&story.session).await;
    assert!(session.open_turn().is_none());
    assert_once(&session, &story.acknowledged.lock().unwrap().answers);
    last.conversations.drain().await;
    within(keeping).await.unwrap();
    let acknowledged = story.acknowledged.lock().unwrap().answers.len();
    (acknowledged, story.houses[0].1.appends() >= dies_at)
}

/// SPEC 9.4, 9.5, 12: whatever clients do at whichever process, and wherever one dies: each suspension is answered at most once,
/// every acknowledged answer is in the ledger, and every turn ends.
#[tokio::test]
async fn anything_at_any_moment() {
    let (mut acknowledged, mut deaths) = (0_u64, 0);
    let stories = std::env::var(STORIES_VARIABLE).map_or(STORIES, |count| count.parse().unwrap());
    for seed in 0..stories {
        let ledger = if seed % 2 == 0 {
            Ledger::Memory(Arc::default())
        } else {
            Ledger::file()
        };
        let (answers, died) = story(seed, &ledger).await;
        acknowledged += answers as u64;
        deaths += u64::from(died);
    }
    // Else the test has lost its bite.
    assert!(
        acknowledged > stories && deaths > stories / 10,
        "{acknowledged} answers, {deaths} deaths"
    );
}
