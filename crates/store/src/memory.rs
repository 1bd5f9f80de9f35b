//! A ledger in memory: for tests, and for a session whose disk failed (SPEC 2.5). It dies with the process, whatever
//! durability is asked for; in all else it keeps the contract of [`Store`].

use crate::index::{SessionIndex, resolve};
use crate::lease::{LeaseRecord, check_current};
use crate::query::Query;
use crate::typed::Gathered;
use crate::waiting::{request_of, searchable};
use crate::{
    Appended, Durability, Hit, Hold, KnownRequest, Lease, NEWS_EVERY_MS, Owner, Pending, PendingState, RawEvent,
    SessionFilter, SessionSummary, Store, StoreError, TypedKind, TypedLine, WaitingCount,
};
use aish_core::event::{Body, Draft, Event};
use aish_core::id::{ContinuationId, SessionId};
use futures_util::future::{BoxFuture, FutureExt as _};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The ledger.
#[derive(Debug, Default)]
pub struct MemoryStore {
    ledger: Mutex<Ledger>,
}

#[derive(Debug, Default)]
struct Ledger {
    sessions: BTreeMap<SessionId, Session>,
    leases: BTreeMap<SessionId, LeaseRecord>,
}

#[derive(Debug, Default)]
struct Session {
    events: Vec<Event>,
    index: SessionIndex,
}

impl Session {
    /// The model that its last turn was begun for.
    fn last_model(&self) -> Option<&str> {
        self.events.iter().rev().find_map(|event| {
            let Body::TurnStarted(data) = &event.body else {
                return None;
            };
            Some(data.model.as_str())
        })
    }
}

impl MemoryStore {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// No step under this lock leaves the ledger half-changed, so that one poisoned by a panic is still whole.
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ledger {
    fn append(
        &mut self,
        session: &SessionId,
        expected_seq: u64,
        drafts: Vec<Draft>,
        time: u64,
        hold: Hold,
    ) -> Result<Appended, StoreError> {
        if let Some(lease) = hold.lease() {
            check_current(self.leases.get(&lease.session), lease)?;
        }
        let actual = self.sessions.get(session).map_or(0, |session| session.index.events);
        if actual != expected_seq {
            return Err(StoreError::Conflict {
                session: session.clone(),
                expected: expected_seq,
                actual,
            });
        }
        if drafts.is_empty() {
            return Ok(Appended {
                events: Vec::new(),
                lease: hold.left(0),
            });
        }
        let seqs = expected_seq.saturating_add(1)..;
        let placed: Vec<Event> = seqs
            .zip(drafts)
            .map(|(seq, draft)| draft.place(session, seq, time))
            .collect();
        let mut keys = BTreeSet::new();
        let mut index = self
            .sessions
            .get(session)
            .map(|kept| kept.index.clone())
            .unwrap_or_default();
        for event in &placed {
            index.check_claim(event)?;
            index.apply(event);
            if let Some(asked) = request_of(event)
                && (self.request(&asked.key).is_some() || !keys.insert(&asked.key))
            {
                return Err(StoreError::KeyUsed(asked.key.clone()));
            }
        }
        let kept = self.sessions.entry(session.clone()).or_default();
        kept.index = index;
        kept.events.extend_from_slice(&placed);
        let mut lease = hold.left(placed.len());
        match hold {
            Hold::Nothing | Hold::Keeps(_) => {}
            Hold::GivesBack(lease) => self.release(&lease),
            Hold::Takes { owner, until } => {
                if let Some(record) = LeaseRecord::take(self.leases.get(session), &owner, time, until) {
                    lease = Some(record.lease(session, &owner));
                    self.leases.insert(session.clone(), record);
                }
            }
        }
        Ok(Appended { events: placed, lease })
    }

    fn release(&mut self, lease: &Lease) {
        if let Some(record) = self.leases.get_mut(&lease.session)
            && record.is_held_by(lease)
        {
            record.owner = None;
        }
    }

    fn events_after(&self, session: &SessionId, after_seq: u64) -> &[Event] {
        let events = self.sessions.get(session).map_or(&[][..], |session| &session.events);
        let seen = usize::try_from(after_seq).unwrap_or(usize::MAX);
        events.get(seen..).unwrap_or_default()
    }

    fn list(&self, filter: &SessionFilter) -> Vec<SessionSummary> {
        let is_wanted = |session: &Session| {
            let by = filter.not_by.as_deref();
            by.is_none() || by != session.last_model()
        };
        let wanted = self.sessions.iter().filter(|(_, session)| is_wanted(session));
        let all = wanted.map(|(id, session)| session.index.summary(id));
        let mut summaries: Vec<SessionSummary> = all
            .filter(|summary| {
                filter
                    .directory
                    .as_ref()
                    .is_none_or(|directory| *directory == summary.directory)
            })
            .collect();
        summaries.sort_by_key(|summary| Reverse((summary.updated, summary.id.clone())));
        if let Some(before) = &filter.before {
            let after = summaries.iter().skip_while(|summary| summary.id != *before).skip(1);
            summaries = after.cloned().collect();
        }
        if let Some(only) = &filter.only {
            summaries.retain(|summary| only.contains(&summary.id));
        }
        summaries.truncate(filter.limit.unwrap_or(usize::MAX));
        summaries
    }

    fn typed(&self, lines_max: usize, not_by: &str) -> Vec<TypedLine> {
        let mut typed = Vec::new();
        for session in self.sessions.values() {
            let before = std::iter::once(None).chain(session.events.iter().map(Some));
            let told = before.zip(&session.events).filter_map(|(before, event)| {
                let (kind, text, directory) = typed_in(before, event, not_by)?;
                Some((event, kind, text, directory))
            });
            typed.extend(told);
        }
        typed.sort_by_key(|(event, ..)| Reverse(event.time));
        let mut gathered = Gathered::new(lines_max);
        for (event, kind, text, directory) in typed {
            gathered.look_at(text, |text| TypedLine {
                text,
                kind,
                time: event.time,
                directory: directory.unwrap_or_default(),
            });
        }
        gathered.into_lines()
    }

    fn find(&self, prefix: &str) -> Result<SessionId, StoreError> {
        let fits = |id: &&SessionId| id.as_str().starts_with(prefix) || id.as_str().ends_with(prefix);
        resolve(prefix, self.sessions.keys().filter(fits).cloned().collect())
    }

    fn all_pending(&self) -> impl Iterator<Item = &Pending> {
        self.sessions.values().flat_map(|session| &session.index.pending)
    }

    fn abandoned(&self, quiet_since: u64, now: u64) -> impl Iterator<Item = &SessionId> {
        let is_quiet = move |index: &SessionIndex| index.is_to_be_driven() && index.updated < quiet_since;
        let quiet = self
            .sessions
            .iter()
            .filter(move |(_, session)| is_quiet(&session.index));
        quiet
            .map(|(id, _)| id)
            .filter(move |id| self.leases.get(*id).is_none_or(|lease| lease.is_free(now)))
    }

    fn request(&self, key: &str) -> Option<KnownRequest> {
        let mut events = self.sessions.values().flat_map(|session| &session.events);
        events.find_map(|event| {
            let asked = request_of(event).filter(|asked| asked.key == key)?;
            Some(KnownRequest {
                session: event.session.clone(),
                seq: event.seq,
                digest: asked.digest.clone(),
            })
        })
    }

    fn search(&self, query: &Query, limit: usize) -> Vec<Hit> {
        let events = self.sessions.values().flat_map(|session| &session.events);
        let mut hits: Vec<Hit> = events
            .filter_map(|event| query.hit(event, searchable(event)?))
            .collect();
        hits.sort_by_key(|hit| Reverse(hit.time));
        hits.truncate(limit);
        hits
    }

    fn renew(&mut self, lease: &Lease, until: u64) -> Result<(), StoreError> {
        check_current(self.leases.get(&lease.session), lease)?;
        if let Some(record) = self.leases.get_mut(&lease.session) {
            record.until = until;
        }
        Ok(())
    }
}

/// What was typed in an event, and where; `before` is the event before it.
fn typed_in<'a>(
    before: Option<&'a Event>,
    event: &'a Event,
    not_by: &str,
) -> Option<(TypedKind, &'a str, Option<String>)> {
    if let Body::Command(data) = &event.body {
        return Some((TypedKind::Command, &data.line, Some(data.directory.clone())));
    }
    let Body::User(_) = &event.body else {
        return None;
    };
    let begun = before.and_then(|before| {
        let Body::TurnStarted(data) = &before.body else {
            return None;
        };
        Some(data)
    });
    let is_wanted = begun.is_none_or(|begun| begun.model != not_by);
    let directory = begun.and_then(|begun| begun.directory.clone());
    is_wanted.then_some((TypedKind::Message, &event.content, directory))
}

impl Store for MemoryStore {
    fn append<'a>(
        &'a self,
        session: &'a SessionId,
        expected_seq: u64,
        drafts: Vec<Draft>,
        time: u64,
        _durability: Durability,
        hold: Hold,
    ) -> BoxFuture<'a, Result<Appended, StoreError>> {
        async move { self.ledger().append(session, expected_seq, drafts, time, hold) }.boxed()
    }

    fn load<'a>(&'a self, session: &'a SessionId, after_seq: u64) -> BoxFuture<'a, Result<Vec<Event>, StoreError>> {
        async move { Ok(self.ledger().events_after(session, after_seq).to_vec()) }.boxed()
    }

    fn load_raw<'a>(
        &'a self,
        session: &'a SessionId,
        after_seq: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<RawEvent>, StoreError>> {
        async move {
            let ledger = self.ledger();
            let events = ledger.events_after(session, after_seq).iter().take(limit);
            Ok(events.map(RawEvent::from).collect())
        }
        .boxed()
    }

    fn list<'a>(&'a self, filter: SessionFilter) -> BoxFuture<'a, Result<Vec<SessionSummary>, StoreError>> {
        async move { Ok(self.ledger().list(&filter)) }.boxed()
    }

    fn find<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<SessionId, StoreError>> {
        async move { self.ledger().find(prefix) }.boxed()
    }

    fn typed<'a>(&'a self, lines_max: usize, not_by: &'a str) -> BoxFuture<'a, Result<Vec<TypedLine>, StoreError>> {
        async move { Ok(self.ledger().typed(lines_max, not_by)) }.boxed()
    }

    fn continuation<'a>(&'a self, id: &'a ContinuationId) -> BoxFuture<'a, Result<Option<Pending>, StoreError>> {
        async move {
            Ok(self
                .ledger()
                .all_pending()
                .find(|pending| pending.continuation == *id)
                .cloned())
        }
        .boxed()
    }

    fn waiting_under<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Option<Pending>, StoreError>> {
        async move {
            let ledger = self.ledger();
            let known = ledger.sessions.get(session).map(|session| session.index.pending.iter());
            let open = known.and_then(|mut pending| pending.rfind(|pending| pending.state == PendingState::Open));
            Ok(open.cloned())
        }
        .boxed()
    }

    fn waiting_count(&self) -> BoxFuture<'_, Result<WaitingCount, StoreError>> {
        async move {
            let ledger = self.ledger();
            let waiting = ledger.sessions.values().map(|session| &session.index);
            let mut count = WaitingCount::default();
            for index in waiting.filter(|index| index.is_waiting()) {
                let is_asking = index.waiting_calls.iter().any(|waiting| waiting.needs_answer);
                *(if is_asking {
                    &mut count.approval
                } else {
                    &mut count.client
                }) += 1;
            }
            Ok(count)
        }
        .boxed()
    }

    fn expired<'a>(&'a self, now: u64, limit: usize) -> BoxFuture<'a, Result<Vec<Pending>, StoreError>> {
        async move {
            let is_over = |pending: &&Pending| {
                pending.state == PendingState::Open && pending.expires.is_some_and(|expires| expires <= now)
            };
            Ok(self
                .ledger()
                .all_pending()
                .filter(is_over)
                .take(limit)
                .cloned()
                .collect())
        }
        .boxed()
    }

    fn abandoned<'a>(
        &'a self,
        quiet_since: u64,
        now: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<SessionId>, StoreError>> {
        async move { Ok(self.ledger().abandoned(quiet_since, now).take(limit).cloned().collect()) }.boxed()
    }

    fn request<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<KnownRequest>, StoreError>> {
        async move { Ok(self.ledger().request(key)) }.boxed()
    }

    fn search<'a>(&'a self, query: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<Hit>, StoreError>> {
        async move { Ok(self.ledger().search(&Query::parse(query), limit)) }.boxed()
    }

    /// Nobody else writes into this memory.
    fn news(&self, since: u64) -> BoxFuture<'_, Result<u64, StoreError>> {
        async move {
            if since > 0 {
                tokio::time::sleep(Duration::from_millis(NEWS_EVERY_MS)).await;
            }
            Ok(since.saturating_add(1))
        }
        .boxed()
    }

    fn acquire<'a>(
        &'a self,
        session: &'a SessionId,
        owner: &'a Owner,
        now: u64,
        until: u64,
    ) -> BoxFuture<'a, Result<Lease, StoreError>> {
        async move {
            let mut ledger = self.ledger();
            let record = LeaseRecord::acquire(ledger.leases.get(session), session, owner, now, until)?;
            let lease = record.lease(session, owner);
            ledger.leases.insert(session.clone(), record);
            Ok(lease)
        }
        .boxed()
    }

    fn renew<'a>(&'a self, lease: &'a Lease, until: u64) -> BoxFuture<'a, Result<(), StoreError>> {
        async move { self.ledger().renew(lease, until) }.boxed()
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, Result<(), StoreError>> {
        async move {
            self.ledger().release(lease);
            Ok(())
        }
        .boxed()
    }
}
