//! The threads that have the file open: SQLite blocks, and nothing that awaits may block.
//!
//! There are two, each with a connection of its own. One changes the file; the other only reads it, and is there once somebody reads
//! while the first has work: with write-ahead logging a reader waits for nobody, also not while the first waits for another process
//! that holds the write lock. Whoever does one thing after the other, as a terminal does, pays for one thread alone. Whoever was told
//! that something is written reads it: a reading transaction begins after that commit.
//!
//! Whether others have written is asked of the first one all the same, and does wait behind its changes. Only that connection can
//! tell others' writing from ours; and while it waits for the lock, whoever holds that has nothing new to show yet.
//!
//! A thread starts, and the file is opened, with its first job. Jobs are done in the order in which they are sent; changes that wait
//! one behind the other are made as one group (see [`super::group`]). So a change waits for the lock for no longer than its own
//! group does, and the one before.

use super::group::Change;
use super::ledger::Ledger;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};

/// Changes of one transaction: those behind them have waited long enough.
const GROUP_MAX: usize = 64;

/// What a thread does next. It brings its own way to reply.
pub(super) enum Job {
    /// A change that may share its transaction with others.
    Change(Box<dyn Change>),
    /// Anything else.
    Alone(Box<dyn FnOnce(&mut Ledger) + Send>),
}

/// A thread and its connection, once there is something to do.
#[derive(Debug)]
pub(super) struct Keeper {
    /// What the thread is called.
    name: &'static str,
    running: Mutex<Option<Running>>,
    unfinished: Arc<AtomicUsize>,
}

/// A job that is not done; it is, by the time that whoever asked is told.
#[derive(Debug)]
pub(super) struct Unfinished(Arc<AtomicUsize>);

impl Drop for Unfinished {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct Running {
    jobs: mpsc::Sender<Job>,
    thread: JoinHandle<()>,
}

impl Keeper {
    pub(super) fn new(name: &'static str) -> Self {
        Self {
            name,
            running: Mutex::new(None),
            unfinished: Arc::default(),
        }
    }

    /// One more job that is to be sent.
    pub(super) fn begin(&self) -> Unfinished {
        self.unfinished.fetch_add(1, Ordering::Relaxed);
        Unfinished(Arc::clone(&self.unfinished))
    }

    /// True while nothing that was begun is unfinished.
    pub(super) fn is_idle(&self) -> bool {
        self.unfinished.load(Ordering::Relaxed) == 0
    }

    /// Has a job done on the file at `path`, sooner or later.
    pub(super) fn send(&self, path: &Path, job: Job) -> io::Result<()> {
        let mut slot = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let running = match slot.take() {
            Some(running) if !running.thread.is_finished() => running,
            Some(_) | None => Running::start(self.name, path)?,
        };
        let sent = running.jobs.send(job);
        *slot = Some(running);
        sent.map_err(|_| io::Error::other("its thread has ended"))
    }

    /// Waits until all that was sent is done, and closes the file.
    pub(super) fn end(&mut self) {
        let slot = self.running.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(Running { jobs, thread }) = slot.take() {
            // The thread ends when the last sender is gone. Each of its jobs waits for a lock for a bounded time.
            drop(jobs);
            let _ = thread.join();
        }
    }
}

impl Running {
    fn start(name: &'static str, path: &Path) -> io::Result<Self> {
        let ledger = Ledger::new(path.to_owned());
        let (jobs, queue) = mpsc::channel::<Job>();
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || keep(ledger, &queue))?;
        Ok(Self { jobs, thread })
    }
}

fn keep(mut ledger: Ledger, queue: &mpsc::Receiver<Job>) {
    let mut next = None;
    while let Some(job) = next.take().or_else(|| queue.recv().ok()) {
        match job {
            Job::Alone(work) => work(&mut ledger),
            Job::Change(change) => {
                let mut group = vec![change];
                while group.len() < GROUP_MAX && next.is_none() {
                    match queue.try_recv() {
                        Ok(Job::Change(change)) => group.push(change),
                        Ok(alone @ Job::Alone(_)) => next = Some(alone),
                        Err(mpsc::TryRecvError::Empty | mpsc::TryRecvError::Disconnected) => break,
                    }
                }
                ledger.change(group);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use crate::sqlite::SqliteStore;
    use crate::{Durability, Hold, Store as _};
    use aish_core::event::Draft;
    use aish_core::id::SessionId;
    use futures_util::FutureExt as _;
    use rusqlite::Connection;
    use std::pin::pin;

    /// SPEC 2.10: whoever reads does not wait for a writer, also not for one that waits for another process.
    #[test]
    fn readers_wait_for_no_writer() {
        let directory = tempfile::tempdir().unwrap();
        let store = SqliteStore::new(directory.path().join("ledger.db"));
        let session = SessionId::new("s");
        let says = |seq| {
            store.append(
                &session,
                seq,
                vec![Draft::user(0, "x")],
                1,
                Durability::Committed,
                Hold::Nothing,
            )
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            says(0).await.unwrap();
            let another_process = Connection::open(store.path()).unwrap();
            another_process.execute_batch("BEGIN IMMEDIATE").unwrap();
            let mut waits = pin!(says(1));
            assert!(waits.as_mut().now_or_never().is_none());
            assert_eq!(store.load(&session, 0).await.unwrap().len(), 1);
            // Had that taken until the writer gave up, there would be nothing left to let through.
            another_process.execute_batch("ROLLBACK").unwrap();
            waits.await.unwrap();
            assert_eq!(store.load(&session, 0).await.unwrap().len(), 2);
        });
    }

    /// SPEC 11: a terminal, which does one thing after the other, pays for one thread and one connection.
    #[test]
    fn one_thread_for_one_thing_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let store = SqliteStore::new(directory.path().join("ledger.db"));
        let session = SessionId::new("s");
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            for seq in 0..100 {
                let drafts = vec![Draft::user(0, "x")];
                let appended = store.append(&session, seq, drafts, 1, Durability::Committed, Hold::Nothing);
                appended.await.unwrap();
                store.load(&session, seq).await.unwrap();
            }
        });
        assert!(store.reader.running.lock().unwrap().is_none());
    }
}
