//! The one way events get into the ledger from a driver.
//!
//! An append that somebody else was faster than loads what they wrote, folds it, and tries again if the events may still
//! follow (SPEC 3.5b). When the disk fails, the session goes on in memory and what was not written is written as soon as the
//! disk is back (SPEC 2.5); until then nothing is called saved.

use crate::driver::Driver;
use crate::{EngineError, now_ms};
use aish_core::event::{Draft, Event};
use aish_core::session::Session;
use aish_store::{Durability, StoreError};
use std::sync::atomic::Ordering;

/// How often an append gives way to others before it gives up.
const CONFLICTS_MAX: usize = 1_000;

impl Driver {
    /// Appends and folds. On return the events are committed as asked, or kept in memory with [`Driver::is_unsaved`] true.
    pub(crate) async fn append(&mut self, drafts: Vec<Draft>, durability: Durability) -> Result<(), EngineError> {
        if self.session.is_read_only() {
            return Err(EngineError::ReadOnly(self.session.id().clone()));
        }
        if self.is_unsaved() {
            self.save_unsaved().await;
        }
        for _ in 0..CONFLICTS_MAX {
            self.check(&drafts)?;
            if self.is_unsaved() {
                self.keep_in_memory(drafts);
                return Ok(());
            }
            let id = self.session.id().clone();
            let seq = self.session.last_seq();
            let appended = self
                .engine
                .store
                .append(&id, seq, drafts.clone(), now_ms(), durability, self.lease.as_ref())
                .await;
            match appended {
                Ok(events) => {
                    self.fold(events);
                    return Ok(());
                }
                Err(StoreError::Conflict { .. }) => self.catch_up().await?,
                Err(StoreError::LeaseLost(session)) => return Err(EngineError::LeaseLost(session)),
                Err(StoreError::Io { attempt, source }) => {
                    self.say(format!(
                        "the ledger cannot be written ({attempt}: {source}); going on in memory, saving when it can be again"
                    ));
                    self.keep_in_memory(drafts);
                    return Ok(());
                }
                Err(other) => return Err(other.into()),
            }
        }
        Err(EngineError::Store(StoreError::Format(format!(
            "session {}: others kept writing to it; gave up after {CONFLICTS_MAX} attempts",
            self.session.id()
        ))))
    }

    /// Folds what others appended since.
    pub(crate) async fn catch_up(&mut self) -> Result<(), EngineError> {
        if self.is_unsaved() {
            return Ok(());
        }
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

    fn keep_in_memory(&mut self, drafts: Vec<Draft>) {
        let time = now_ms();
        for draft in drafts {
            let event = draft
                .clone()
                .place(self.session.id(), self.session.last_seq() + 1, time);
            self.notices.recorded(&event);
            self.session.accept(event);
            self.unsaved.push((time, draft));
        }
    }

    /// Tries to write what is only in memory.
    async fn save_unsaved(&mut self) {
        let id = self.session.id().clone();
        let saved = self.session.last_seq() - u64::try_from(self.unsaved.len()).unwrap_or(u64::MAX);
        let time = self.unsaved.first().map_or_else(now_ms, |(time, _)| *time);
        let drafts: Vec<Draft> = self.unsaved.iter().map(|(_, draft)| draft.clone()).collect();
        match self
            .engine
            .store
            .append(&id, saved, drafts, time, Durability::Synced, self.lease.as_ref())
            .await
        {
            Ok(_) => {
                self.unsaved.clear();
                self.say("the ledger can be written again; everything is saved".to_owned());
            }
            Err(StoreError::Conflict { .. }) => self.merge_unsaved().await,
            Err(_) => {}
        }
    }

    /// Others wrote to the session while this one could not: theirs stands, and of ours what may still follow.
    async fn merge_unsaved(&mut self) {
        let id = self.session.id().clone();
        let Ok(events) = self.engine.store.load(&id, 0).await else {
            return;
        };
        let mut merged = Session::load(id.clone(), events);
        let ours = std::mem::take(&mut self.unsaved);
        let mut dropped = 0;
        for (time, draft) in ours {
            let one = vec![draft];
            let seq = merged.last_seq();
            let written = match merged.check(&one) {
                Ok(()) => {
                    self.engine
                        .store
                        .append(&id, seq, one, time, Durability::Synced, self.lease.as_ref())
                        .await
                }
                Err(_) => Ok(Vec::new()),
            };
            match written {
                Ok(events) if !events.is_empty() => events.into_iter().for_each(|event| merged.accept(event)),
                Ok(_) | Err(_) => dropped += 1,
            }
        }
        self.session = merged;
        if dropped > 0 {
            self.say(format!(
                "{dropped} unsaved events no longer fit what another aish wrote meanwhile and were dropped"
            ));
        }
    }
}
