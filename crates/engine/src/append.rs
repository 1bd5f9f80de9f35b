//! The one way events get into the ledger from a driver.
//!
//! An append that somebody else was faster than loads what they wrote, folds it, and tries again if the events may still
//! follow (SPEC 3.5b). When the disk fails, the session goes on in memory and what was not written is written as soon as the
//! disk is back (SPEC 2.5); until then nothing is called saved.

use crate::driver::{Driver, Unwritten};
use crate::lease::LEASE_TTL_MS;
use crate::{EngineError, now_ms};
use aish_core::event::{Body, Draft, Event};
use aish_core::session::Session;
use aish_core::turn::InvalidEvent;
use aish_store::{Durability, Hold, StoreError};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What an append found that gives way at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unseen {
    /// Nothing: it is written.
    Nothing,
    /// Somebody had written, and that is folded now; of its own nothing is written.
    News,
}

/// What an append is to the drive that it is of: the lease is taken and given back with an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drive {
    /// This process goes on from it, if nobody else drives the session.
    Begins,
    /// It is one of several, or of no drive at all.
    GoesOn,
    /// Nothing is left to do after it.
    Ends,
}

/// How often an append gives way to others before it gives up.
pub(crate) const CONFLICTS_MAX: usize = 1_000;
/// What a person is told when nothing is in memory alone any more.
const SAVED_AGAIN: &str = "the ledger can be written again; everything is saved";

impl Driver {
    /// Appends and folds. On return the events are committed as asked, or kept in memory with [`Driver::is_unsaved`] true.
    pub(crate) async fn append(&mut self, drafts: Vec<Draft>, durability: Durability) -> Result<(), EngineError> {
        self.append_as(Drive::GoesOn, drafts, durability).await
    }

    /// The same, for whichever append of a drive it is.
    pub(crate) async fn append_as(
        &mut self,
        drive: Drive,
        drafts: Vec<Draft>,
        durability: Durability,
    ) -> Result<(), EngineError> {
        if self.session.is_read_only() {
            return Err(EngineError::ReadOnly(self.session.id().clone()));
        }
        self.save_unsaved().await?;
        for _ in 0..CONFLICTS_MAX {
            match self.append_if_nothing_new(drive, &drafts, durability).await? {
                Unseen::Nothing => return Ok(()),
                Unseen::News => {}
            }
        }
        Err(self.gave_way_for_too_long())
    }

    /// The same as long as nobody else has appended since the last look: whether it is still meant is for the caller to see then.
    pub(crate) async fn append_if_nothing_new(
        &mut self,
        drive: Drive,
        drafts: &[Draft],
        durability: Durability,
    ) -> Result<Unseen, EngineError> {
        if self.session.is_read_only() {
            return Err(EngineError::ReadOnly(self.session.id().clone()));
        }
        self.check(drafts)?;
        if self.is_unsaved() {
            self.keep_in_memory(drafts);
            return Ok(Unseen::Nothing);
        }
        let id = self.session.id().clone();
        let seq = self.session.last_seq();
        let store = Arc::clone(&self.engine.store);
        let now = now_ms();
        let hold = self.hold(drive, now);
        let gives_back = matches!(hold, Hold::GivesBack(_));
        self.gives_back.store(gives_back, Ordering::Release);
        let written = store.append(&id, seq, drafts.to_vec(), now, durability, hold).await;
        self.gives_back.store(gives_back && written.is_ok(), Ordering::Release);
        match written {
            Ok(appended) => {
                self.lease = appended.lease;
                self.fold(appended.events);
                Ok(Unseen::Nothing)
            }
            Err(StoreError::Conflict { .. }) => {
                self.fold_news().await?;
                Ok(Unseen::News)
            }
            Err(StoreError::LeaseLost(session)) => Err(EngineError::LeaseLost(session)),
            Err(StoreError::Io { attempt, source }) if self.unwritten == Unwritten::Kept => {
                self.say(format!(
                    "the ledger cannot be written ({attempt}: {source}); going on in memory, saving when it can be again"
                ));
                self.keep_in_memory(drafts);
                Ok(Unseen::Nothing)
            }
            Err(other) => Err(other.into()),
        }
    }

    /// What an append has to do with the lease.
    fn hold(&self, drive: Drive, now: u64) -> Hold {
        match (drive, &self.lease) {
            (Drive::Begins, None) => Hold::Takes {
                owner: self.engine.owner.clone(),
                until: now.saturating_add(LEASE_TTL_MS),
            },
            (Drive::GoesOn | Drive::Ends, None) => Hold::Nothing,
            (Drive::Begins | Drive::GoesOn, Some(lease)) => Hold::Keeps(lease.clone()),
            (Drive::Ends, Some(lease)) => Hold::GivesBack(lease.clone()),
        }
    }

    /// What an append says that was never the next one.
    pub(crate) fn gave_way_for_too_long(&self) -> EngineError {
        EngineError::Store(StoreError::Format(format!(
            "session {}: others kept writing to it; gave up after {CONFLICTS_MAX} attempts",
            self.session.id()
        )))
    }

    /// Folds what others appended since, as far as the disk tells.
    ///
    /// # Errors
    /// The ledger cannot be read, or what is there does not follow.
    pub async fn catch_up(&mut self) -> Result<(), EngineError> {
        if self.is_unsaved() {
            return Ok(());
        }
        match self.fold_news().await {
            // A disk that fails is not the end of the session (SPEC 2.5): the next append finds out and says so, and one
            // that had to see more than this is refused as a conflict.
            Err(EngineError::Store(StoreError::Io { .. })) if self.unwritten == Unwritten::Kept => Ok(()),
            other => other,
        }
    }

    async fn fold_news(&mut self) -> Result<(), EngineError> {
        let id = self.session.id().clone();
        let events = self.engine.store.load(&id, self.session.last_seq()).await?;
        self.fold(events);
        Ok(())
    }

    fn fold(&mut self, events: Vec<Event>) {
        for event in events {
            self.notices.recorded(&event);
            self.session.accept(event);
        }
        self.seen.store(self.session.last_seq(), Ordering::Relaxed);
    }

    fn check(&self, drafts: &[Draft]) -> Result<(), EngineError> {
        self.session.check(drafts).map_err(|reason| EngineError::Invalid {
            session: self.session.id().clone(),
            reason,
        })
    }

    fn keep_in_memory(&mut self, drafts: &[Draft]) {
        let time = now_ms();
        for draft in drafts {
            let event = draft
                .clone()
                .place(self.session.id(), self.session.last_seq() + 1, time);
            self.notices.recorded(&event);
            self.session.accept(event);
            self.unsaved.push((time, draft.clone()));
        }
    }

    /// Tries to write what is only in memory, if anything is. While the disk fails, that is no error.
    pub(crate) async fn save_unsaved(&mut self) -> Result<(), EngineError> {
        let Some((time, _)) = self.unsaved.first() else {
            return Ok(());
        };
        let time = *time;
        let id = self.session.id().clone();
        let drafts: Vec<Draft> = self.unsaved.iter().map(|(_, draft)| draft.clone()).collect();
        let saved = self
            .engine
            .store
            .append(
                &id,
                self.saved_seq(),
                drafts,
                time,
                Durability::Synced,
                self.hold(Drive::GoesOn, time),
            )
            .await;
        match saved {
            Ok(_) => {
                self.unsaved.clear();
                self.seen.store(self.session.last_seq(), Ordering::Relaxed);
                self.say(SAVED_AGAIN.to_owned());
                Ok(())
            }
            Err(StoreError::Conflict { .. }) => self.merge_unsaved().await,
            Err(StoreError::LeaseLost(session)) => Err(EngineError::LeaseLost(session)),
            Err(
                StoreError::Io { .. }
                | StoreError::NotFound(_)
                | StoreError::Ambiguous { .. }
                | StoreError::Claimed(_)
                | StoreError::KeyUsed(_)
                | StoreError::Leased { .. }
                | StoreError::Format(_),
            ) => Ok(()),
        }
    }

    /// The last event of the fold that is in the ledger.
    fn saved_seq(&self) -> u64 {
        let unsaved = u64::try_from(self.unsaved.len()).unwrap_or(u64::MAX);
        self.session.last_seq().saturating_sub(unsaved)
    }

    /// Others wrote to the session while this one could not: theirs stands, and of ours what may still follow.
    async fn merge_unsaved(&mut self) -> Result<(), EngineError> {
        let id = self.session.id().clone();
        let Ok(events) = self.engine.store.load(&id, 0).await else {
            return Ok(());
        };
        let known = self.saved_seq();
        for event in events.iter().filter(|event| event.seq > known) {
            self.notices.recorded(event);
        }
        let mut merged = Session::load(id.clone(), events);
        // Where each of ours stands now.
        let mut places: Vec<u64> = Vec::new();
        let mut dropped = 0;
        let mut lost = None;
        for (time, draft) in std::mem::take(&mut self.unsaved) {
            let draft = moved(draft, known, &places);
            let one = vec![draft.clone()];
            // Without its beginning, nothing of a turn stands: what is left of it would fall into another's turn.
            if lost == Some(draft.turn) || merged.check(&one).is_err() {
                if matches!(draft.body, Body::TurnStarted(_)) {
                    lost = Some(draft.turn);
                }
                dropped += 1;
                places.push(merged.last_seq());
                continue;
            }
            let seq = merged.last_seq();
            let store = &self.engine.store;
            let hold = self.hold(Drive::GoesOn, time);
            // Once the disk has failed again, or others have written again, the rest waits for the next time.
            let written = if self.unsaved.is_empty() {
                store.append(&id, seq, one, time, Durability::Synced, hold).await.ok()
            } else {
                None
            };
            if let Some(appended) = written {
                appended.events.into_iter().for_each(|event| merged.accept(event));
                self.seen.store(merged.last_seq(), Ordering::Relaxed);
            } else {
                merged.accept(draft.clone().place(&id, seq + 1, time));
                self.unsaved.push((time, draft));
            }
            places.push(merged.last_seq());
        }
        self.session = merged;
        self.say_merged(dropped);
        match lost {
            Some(_) => Err(EngineError::Invalid {
                session: id,
                reason: InvalidEvent::AlreadyStarted,
            }),
            None => Ok(()),
        }
    }

    fn say_merged(&self, dropped: usize) {
        if dropped > 0 {
            self.say(format!(
                "{dropped} unsaved events no longer fit what another aish wrote meanwhile and were dropped"
            ));
        } else if !self.is_unsaved() {
            self.say(SAVED_AGAIN.to_owned());
        }
    }
}

/// A draft that quotes the place of an event as it is once that event stands elsewhere: a reply that said which events it has
/// seen would else seem not to have seen its own question. `known` is the last event that did not move.
fn moved(mut draft: Draft, known: u64, places: &[u64]) -> Draft {
    if let Body::Assistant(reply) = &mut draft.body
        && let Some(nth) = reply.context_seq.checked_sub(known + 1)
        && let Some(place) = usize::try_from(nth).ok().and_then(|nth| places.get(nth))
    {
        reply.context_seq = *place;
    }
    draft
}
