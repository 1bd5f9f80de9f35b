//! Word of what others append: `LISTEN` and `NOTIFY` on one channel for the whole ledger.
//!
//! A notification only says "look again", and may be lost: nothing depends on it but how soon somebody looks. It is therefore
//! sent after the append, in a transaction of its own that waits for no disk, and one is enough for all that was appended while
//! the one before was on its way: within the append, PostgreSQL would let all of the database's commits wait for each other.
//!
//! One connection listens for the whole process while somebody asks. Without it (the database restarts, a pool between us and
//! it takes no `LISTEN`) those who ask look every [`NEWS_EVERY_MS`].

use super::address::PostgresUrl;
use super::fail::Failure;
use super::pool::Pool;
use crate::{NEWS_EVERY_MS, StoreError};
use futures_util::future::FutureExt as _;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_postgres::AsyncMessage;

/// Says that something was appended, to whoever listens. Nobody listens to it longer than a moment: it need not survive anything.
const ANNOUNCE: &str = "BEGIN; SET LOCAL synchronous_commit = off; NOTIFY aish_news; COMMIT";
const LISTEN: &str = "LISTEN aish_news";

/// Those who ask look at least this often, whatever is or is not heard.
const LOOK_EVERY_MS: u64 = 5_000;
/// The pause between two notifications: under load one tells of all that was appended meanwhile.
const ANNOUNCE_EVERY_MS: u64 = 10;
/// The connection is given up when nobody asked for this long.
const UNASKED_MS_MAX: u64 = 60_000;

/// What the process knows of news.
#[derive(Debug)]
pub(super) struct News {
    /// Grows with each notification; begins at 1.
    heard: watch::Sender<u64>,
    /// Milliseconds after `began` when somebody last asked.
    asked: AtomicU64,
    began: Instant,
    listener: Mutex<Option<JoinHandle<()>>>,
    announcing: Mutex<Announcing>,
}

/// Whether a notification is on its way, and whether another one has to follow.
#[derive(Debug, Default)]
struct Announcing {
    is_under_way: bool,
    is_wanted: bool,
}

impl News {
    pub(super) fn new() -> Self {
        Self {
            heard: watch::Sender::new(1),
            asked: AtomicU64::new(0),
            began: Instant::now(),
            listener: Mutex::new(None),
            announcing: Mutex::default(),
        }
    }

    /// See [`crate::Store::news`].
    pub(super) async fn since(self: &Arc<Self>, since: u64, url: &PostgresUrl) -> Result<u64, StoreError> {
        let mut heard = self.heard.subscribe();
        self.note_asked();
        self.listen(url);
        let newest = heard.wait_for(|newest| *newest != since).await;
        // The sender is this very struct.
        Ok(newest.map_or(since.saturating_add(1), |newest| *newest))
    }

    /// Tells the other processes, some time soon, and those who ask in this one.
    pub(super) fn announce(self: &Arc<Self>, pool: &Pool) {
        self.count();
        {
            let mut announcing = self.announcing.lock().unwrap_or_else(PoisonError::into_inner);
            announcing.is_wanted = true;
            if announcing.is_under_way {
                return;
            }
            announcing.is_under_way = true;
        }
        let (news, pool) = (Arc::clone(self), pool.clone());
        tokio::spawn(async move {
            while news.has_to_announce() {
                // Those who do not hear of it look by themselves before long.
                let _ = pool
                    .run("telling others of", |client| {
                        async move { client.batch_execute(ANNOUNCE).await.map_err(Failure::Sql) }.boxed()
                    })
                    .await;
                sleep(Duration::from_millis(ANNOUNCE_EVERY_MS)).await;
            }
        });
    }

    fn has_to_announce(&self) -> bool {
        let mut announcing = self.announcing.lock().unwrap_or_else(PoisonError::into_inner);
        announcing.is_under_way = std::mem::take(&mut announcing.is_wanted);
        announcing.is_under_way
    }

    fn count(&self) {
        self.heard.send_modify(|heard| *heard = heard.saturating_add(1));
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn note_asked(&self) {
        self.asked.store(self.elapsed_ms(), Ordering::Relaxed);
    }

    fn is_asked_for(&self) -> bool {
        let unasked_ms = self.elapsed_ms().saturating_sub(self.asked.load(Ordering::Relaxed));
        self.heard.receiver_count() > 0 || unasked_ms < UNASKED_MS_MAX
    }

    /// Has somebody listen, if nobody does.
    fn listen(self: &Arc<Self>, url: &PostgresUrl) {
        let mut listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        if listener.as_ref().is_some_and(|task| !task.is_finished()) {
            return;
        }
        let (news, url) = (Arc::downgrade(self), url.clone());
        *listener = Some(tokio::spawn(async move {
            loop {
                let Some(news) = news.upgrade().filter(|news| !news.is_over()) else {
                    return;
                };
                // Whatever the reason that nothing can be heard: it is tried again, and looked meanwhile.
                let _ = news.hear(&url).await;
                news.count();
                sleep(Duration::from_millis(NEWS_EVERY_MS)).await;
            }
        }));
    }

    /// Whether the listener may end. Whoever asks from that moment on finds none, and starts one.
    fn is_over(&self) -> bool {
        let mut listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_asked_for() {
            return false;
        }
        *listener = None;
        true
    }

    /// Nobody is going to ask any more.
    pub(super) fn stop(&self) {
        let mut listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = listener.take() {
            task.abort();
        }
    }

    /// Counts what is heard, until the connection breaks or nobody asks any more.
    async fn hear(&self, url: &PostgresUrl) -> Result<(), Failure> {
        let (client, mut connection) = url.config.connect(url.tls.clone()).await?;
        let mut listening = pin!(client.batch_execute(LISTEN).fuse());
        let mut is_listening = false;
        while self.is_asked_for() {
            // What was appended before it listened is news as well.
            let look_every_ms = if is_listening { LOOK_EVERY_MS } else { NEWS_EVERY_MS };
            tokio::select! {
                begun = &mut listening, if !is_listening => {
                    begun?;
                    is_listening = true;
                    self.count();
                }
                message = poll_fn(|context| connection.poll_message(context)) => match message {
                    Some(Ok(AsyncMessage::Notification(_))) => self.count(),
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Err(error.into()),
                    None => return Ok(()),
                },
                () = sleep(Duration::from_millis(look_every_ms)) => self.count(),
            }
        }
        Ok(())
    }
}
