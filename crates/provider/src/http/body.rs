//! The body of a reply, read by a task of its own, a bounded number of bytes ahead of whoever takes them.
//!
//! A server that writes fast sends thousands of small chunks at once. Taken one by one, each would wake everything above
//! this file, down to the terminal; read ahead, they are joined and taken together. A slow server's chunks are taken as
//! they come.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// Bytes that are read ahead. The chunk that reaches them may go beyond: it is as large as the connection's buffer at most.
const AHEAD_BYTES_MAX: usize = 64 << 10;

/// Room for what usually comes together.
const AHEAD_BYTES_USUAL: usize = 8 << 10;

/// What came of waiting for more: bytes, the end (none), or why there is no more.
pub(super) type Came = Result<Option<Vec<u8>>, reqwest::Error>;

/// The rest of a body. Dropping it closes the connection, unless the body is at its end.
pub(super) struct Body {
    shared: Arc<Shared>,
    reader: JoinHandle<()>,
}

impl Body {
    /// The body of that answer. Must be called within a runtime.
    pub(super) fn of(response: reqwest::Response) -> Self {
        let shared = Arc::<Shared>::default();
        let reading = Reading(Arc::clone(&shared));
        Self {
            shared,
            reader: tokio::spawn(read(response, reading)),
        }
    }

    /// Waits until there is something and takes all of it. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Came {
        loop {
            if let Some(came) = self.shared.take() {
                return came;
            }
            self.shared.came.notified().await;
        }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// What the task and the taker have in common.
#[derive(Default)]
struct Shared {
    ahead: Mutex<Ahead>,
    /// There is something to take, where there was nothing.
    came: Notify,
    /// All was taken, where there was no more room.
    taken: Notify,
}

#[derive(Default)]
struct Ahead {
    /// Chunks that were read and not taken.
    bytes: Vec<u8>,
    /// What comes behind them: the end, or why there is none; nothing while there may be more.
    end: Option<Result<(), reqwest::Error>>,
}

impl Ahead {
    fn is_full(&self) -> bool {
        self.bytes.len() >= AHEAD_BYTES_MAX
    }
}

impl Shared {
    fn ahead(&self) -> MutexGuard<'_, Ahead> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<Came> {
        let mut ahead = self.ahead();
        if ahead.bytes.is_empty() {
            // An error is told once; what was broken stays at its end.
            let end = ahead.end.as_mut()?;
            return Some(std::mem::replace(end, Ok(())).map(|()| None));
        }
        if ahead.is_full() {
            self.taken.notify_one();
        }
        Some(Ok(Some(std::mem::take(&mut ahead.bytes))))
    }
}

/// The task's side. Dropping it ends the body, whatever became of the task.
struct Reading(Arc<Shared>);

impl Reading {
    /// Adds a chunk, and waits until all was taken where there is no more room.
    async fn add(&self, chunk: &[u8]) {
        let is_full = {
            let mut ahead = self.0.ahead();
            if ahead.bytes.is_empty() {
                ahead.bytes.reserve(AHEAD_BYTES_USUAL.max(chunk.len()));
                self.0.came.notify_one();
            }
            ahead.bytes.extend_from_slice(chunk);
            ahead.is_full()
        };
        if is_full {
            self.0.taken.notified().await;
        }
    }

    fn end(&self, end: Result<(), reqwest::Error>) {
        self.0.ahead().end.get_or_insert(end);
        self.0.came.notify_one();
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.end(Ok(()));
    }
}

async fn read(mut response: reqwest::Response, reading: Reading) {
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) => reading.add(&chunk).await,
            Ok(None) => return,
            Err(error) => return reading.end(Err(error)),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    fn error() -> reqwest::Error {
        reqwest::Proxy::all("http:// no").unwrap_err()
    }

    /// What there is to take, as text; an error as `!`.
    fn taken(shared: &Shared) -> Option<String> {
        Some(match shared.take()? {
            Ok(Some(bytes)) => String::from_utf8(bytes).unwrap(),
            Ok(None) => String::new(),
            Err(_) => "!".to_owned(),
        })
    }

    /// SPEC 7.3: chunks are taken together, in order, before the end; an error is told once.
    #[test]
    fn in_order() {
        let shared = Arc::<Shared>::default();
        let reading = Reading(Arc::clone(&shared));
        assert_eq!(taken(&shared), None);
        for chunk in ["a", "b", "", "c"] {
            reading.add(chunk.as_bytes()).now_or_never().unwrap();
        }
        assert_eq!(taken(&shared).as_deref(), Some("abc"));
        assert_eq!(taken(&shared), None);
        reading.add(b"d").now_or_never().unwrap();
        reading.end(Err(error()));
        drop(reading);
        let rest: Vec<_> = std::iter::from_fn(|| taken(&shared)).take(3).collect();
        assert_eq!(rest, ["d", "!", ""]);
    }

    /// SPEC 12: no more is read ahead than there is room for, and all of it once there is.
    #[tokio::test]
    async fn bounded() {
        let shared = Arc::<Shared>::default();
        let reading = Reading(Arc::clone(&shared));
        let chunk = vec![b'x'; AHEAD_BYTES_MAX / 4];
        for _ in 0..3 {
            for _ in 0..3 {
                reading.add(&chunk).now_or_never().unwrap();
            }
            let mut full = Box::pin(reading.add(&chunk));
            assert_eq!(full.as_mut().now_or_never(), None);
            assert_eq!(taken(&shared).map(|bytes| bytes.len()), Some(AHEAD_BYTES_MAX));
            full.await;
        }
        drop(reading);
        assert_eq!(taken(&shared).as_deref(), Some(""));
    }
}
