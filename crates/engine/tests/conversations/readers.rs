//! Those who follow a session while it goes on (SPEC 9.8): in order, nothing twice, nothing left out.

use crate::house::{
    House, Ledger, asks, ended, for_approval, for_tool, goes_on, result_of, settings, until, weather_call,
};
use crate::support::probe::{Doing, Latch, Probe};
use crate::support::{World, ask, asking, done, drive, finish, within, yes};
use aish_core::id::SessionId;
use aish_engine::{Envelope, Live, Notice, Reader, Telling};
use aish_provider::Delta;
use aish_provider::scripted::Act;

/// Deltas that are more than a reader may fall behind.
const MANY: usize = 2_000;

/// A reader that goes by the rules: what it has is skipped, and where something is left out it looks into the ledger.
struct Follows<'a> {
    house: &'a House,
    session: SessionId,
    reader: Reader,
    /// The events that it has, in order.
    seqs: Vec<u64>,
    /// Text that was shown bit by bit.
    text: String,
    telling: Telling,
    /// What the client was told, event by event.
    told: Vec<Envelope>,
}

impl<'a> Follows<'a> {
    async fn begin(house: &'a House, session: &SessionId) -> Self {
        let mut follows = Self {
            house,
            session: session.clone(),
            reader: house.conversations.follow(session, 0),
            seqs: Vec::new(),
            text: String::new(),
            telling: Telling::default(),
            told: Vec::new(),
        };
        while {
            follows.catch_up().await;
            follows.reader.has_seen(follows.last()) > follows.last()
        } {}
        follows
    }

    fn last(&self) -> u64 {
        self.seqs.last().copied().unwrap_or_default()
    }

    async fn catch_up(&mut self) {
        let rest = self
            .house
            .conversations
            .events(&self.session, self.last(), usize::MAX)
            .await
            .unwrap();
        for event in &rest {
            self.seqs.push(event.seq);
            self.told.extend(self.telling.take_raw(&self.session, event));
        }
    }

    /// Takes the next item; false once it was cut.
    async fn step(&mut self) -> bool {
        let Some(item) = within(self.reader.next()).await else {
            return false;
        };
        match &item.live {
            Live::Event(event) if event.seq <= self.last() => {}
            Live::Event(event) if event.seq == self.last() + 1 => {
                self.seqs.push(event.seq);
                self.telling.take(event);
                self.told.extend(self.telling.at(event));
            }
            Live::Long(seq) if *seq <= self.last() => {}
            Live::Event(_) | Live::Long(_) => self.catch_up().await,
            Live::Notice(Notice::Text(text)) => self.text.push_str(text),
            Live::Notice(_) | Live::Failed(_) => {}
        }
        true
    }

    /// Follows until it was told what the turn came to, so often.
    async fn until_told(&mut self, times: usize) {
        while self.told.len() < times {
            assert!(self.step().await, "cut after {:?}", self.seqs);
        }
    }

    async fn assert_whole(&self) {
        let events = self.house.events(&self.session).await;
        let expect: Vec<u64> = (1..=events.len() as u64).collect();
        assert_eq!(self.seqs, expect);
    }
}

/// SPEC 9.8: a reader that was there from the first is told every event once, in order, what a reply says as it says it, and what
/// each part of the turn came to.
#[tokio::test]
async fn there_from_the_first() {
    for ledger in Ledger::all() {
        let house = ledger.house([Act::text("hi"), weather_call("Jena"), Act::text("It rains.")]);
        let first = house.chat(asks("hello")).await.unwrap();
        let mut follows = Follows::begin(&house, &first.session).await;
        let waits = house.chat(goes_on(&first.session, "?")).await.unwrap();
        follows.until_told(2).await;
        follows.assert_whole().await;
        let last = house.result(&for_tool(&waits), "rain").await.unwrap();
        follows.until_told(3).await;
        assert_eq!(follows.told, [first, waits, last]);
        assert_eq!(follows.text, "It rains.");
        follows.assert_whole().await;
    }
}

/// SPEC 9.8, 9.5: what another process does is told as well, and what it came to.
#[tokio::test]
async fn of_another_process() {
    for ledger in Ledger::all() {
        let here = ledger.house([weather_call("Jena")]);
        let there = ledger.another_house([weather_call("Ulm"), Act::text("done")]);
        let first = here.chat(asks("?")).await.unwrap();
        let keeping = tokio::spawn(here.conversations.clone().keep());
        let mut follows = Follows::begin(&here, &first.session).await;
        let second = there.result(&for_tool(&first), "rain").await.unwrap();
        follows.until_told(2).await;
        let last = there.result(&for_tool(&second), "sun").await.unwrap();
        follows.until_told(3).await;
        assert_eq!(follows.told, [first, second, last]);
        follows.assert_whole().await;
        here.conversations.drain().await;
        within(keeping).await.unwrap();
    }
}

/// SPEC 9.8, 9.9: of a turn at a terminal it is told what waits there, call by call and once each, and how it ended; a reader that comes
/// later is told the same.
#[tokio::test]
async fn of_a_terminal() {
    for ledger in Ledger::all() {
        let probe = Probe::writer("probe", Doing::Answer("ran".to_owned()));
        let calls = [("probe", r#"{"n":1}"#), ("probe", r#"{"n":2}"#)];
        let acts = [Act::text("hi"), Act::calls(&calls), Act::text("done")];
        let terminal = World::over(ledger.connect(), acts, vec![probe]);
        let house = ledger.another_house([]);
        let mut driver = terminal.driver();
        finish(&mut driver, "hello").await;
        let session = driver.session().id().clone();
        let keeping = tokio::spawn(house.conversations.clone().keep());
        let mut follows = Follows::begin(&house, &session).await;
        let pending = asking(ask(&mut driver, "go").await);
        follows.until_told(2).await;
        for call in &pending {
            driver.answer(yes(call)).await.unwrap();
        }
        done(drive(&mut driver).await.unwrap());
        follows.until_told(4).await;
        follows.assert_whole().await;
        let [first, one, two, last] = &follows.told[..] else {
            panic!("{:?}", follows.told)
        };
        assert_eq!(
            (ended(first).reply.as_str(), ended(last).reply.as_str()),
            ("hi", "done")
        );
        let waited = [one, two].map(|envelope| for_approval(envelope).call_id);
        assert_eq!(waited, [pending[0].call_id.clone(), pending[1].call_id.clone()]);
        assert_eq!(Follows::begin(&house, &session).await.told, follows.told);
        house.conversations.drain().await;
        within(keeping).await.unwrap();
    }
}

/// SPEC 7.3, 9.8: what is remarked upon a reply is told before the turn says that it waits, as whoever waits for that listens no longer.
#[tokio::test]
async fn remarks_come_before_the_wait() {
    for ledger in Ledger::all() {
        let calls = [("get_weather", r#"{"city":"Jena"}"#), ("get_weather", "[1]")];
        let house = ledger.house([Act::text("hi"), Act::calls(&calls)]);
        let session = house.chat(asks("hi")).await.unwrap().session;
        let mut reader = house.conversations.follow(&session, 0);
        for_tool(&house.chat(goes_on(&session, "?")).await.unwrap());
        let mut told = Vec::new();
        while told.last() != Some(&"waits") {
            match &within(reader.next()).await.unwrap().live {
                Live::Notice(Notice::Status(text)) if text.contains("Invalid JSON arguments") => told.push("remark"),
                Live::Event(event) if event.body.kind() == "suspended" => told.push("waits"),
                Live::Event(_) | Live::Notice(_) | Live::Long(_) | Live::Failed(_) => {}
            }
        }
        assert_eq!(told, ["remark", "waits"]);
    }
}

/// SPEC 9.8: a reader that does not read is cut, slows nobody, and finds the rest in the ledger.
#[tokio::test]
async fn a_reader_that_lags() {
    for ledger in Ledger::all() {
        let latch = Latch::new();
        let probe = Probe::reader("probe", Doing::Wait(latch.clone()));
        let calls: Vec<(&str, String)> = (0..MANY / 5)
            .map(|n| ("get_wether", format!(r#"{{"n":{n}}}"#)))
            .collect();
        let calls: Vec<(&str, &str)> = calls.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let mut many = Act::calls(&calls);
        if let Act::Reply { deltas, .. } = &mut many {
            deltas.extend((0..MANY).map(|n| {
                if n % 2 == 0 {
                    Delta::Text("x".to_owned())
                } else {
                    Delta::Thinking("y".to_owned())
                }
            }));
        }
        let acts = [Act::calls(&[("probe", r#"{"n":1}"#)]), many];
        let house = House::of(World::over(ledger.connect(), acts, vec![probe]), settings());
        let ticket = house.conversations.chat(asks("?")).await.unwrap();
        within(latch.began()).await;
        let mut follows = Follows::begin(&house, &ticket.session).await;
        latch.open();
        let told = within(house.conversations.told(ticket)).await.unwrap();
        for_tool(&told);
        while follows.step().await {}
        follows.catch_up().await;
        follows.assert_whole().await;
    }
}

/// SPEC 9.8: one that comes and goes at any moment, with what it had last, has everything in the end.
#[tokio::test]
async fn one_that_comes_and_goes() {
    for ledger in Ledger::all() {
        let house = ledger.house(
            (0..6)
                .map(|n| weather_call(&format!("city {n}")))
                .chain([Act::text("done")]),
        );
        let mut envelope = house.chat(asks("?")).await.unwrap();
        let session = envelope.session.clone();
        let mut seqs: Vec<u64> = Vec::new();
        for n in 0..6 {
            let mut follows = Follows {
                seqs: std::mem::take(&mut seqs),
                ..Follows::begin(&house, &session).await
            };
            follows.catch_up().await;
            let waited = for_tool(&envelope);
            let ticket = house
                .conversations
                .answer(waited.answer_to.as_str(), result_of(None, "x"))
                .await
                .unwrap();
            for _ in 0..n {
                assert!(follows.step().await);
            }
            envelope = within(house.conversations.told(ticket)).await.unwrap();
            seqs = follows.seqs;
        }
        until(async || house.conversations.running_count() == 0).await;
        let mut follows = Follows {
            seqs,
            ..Follows::begin(&house, &session).await
        };
        follows.catch_up().await;
        follows.assert_whole().await;
    }
}
