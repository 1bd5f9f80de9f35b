//! The body of a reply, read by a task of its own, a bounded number of chunks ahead of whoever takes them.
//!
//! A server that writes fast sends thousands of small chunks at once. Taken one by one, each would wake everything above
//! this file, down to the terminal; read ahead, they are taken in batches. A slow server's chunks are taken as they come.

use bytes::Bytes;
use tokio::sync::mpsc::{Receiver, Sender, channel, error::TryRecvError};
use tokio::task::JoinHandle;

/// Chunks that are read ahead. More would save nothing, and each may be as large as the connection's buffer.
pub(super) const CHUNKS_AHEAD_MAX: usize = 32;

/// What came of waiting for more: a chunk, the end (none), or why there is no more.
pub(super) type Came = Result<Option<Bytes>, reqwest::Error>;

/// The rest of a body. Dropping it closes the connection, unless the body is at its end.
pub(super) struct Body {
    chunks: Receiver<Came>,
    reader: JoinHandle<()>,
}

impl Body {
    /// The body of that answer. Must be called within a runtime.
    pub(super) fn of(response: reqwest::Response) -> Self {
        let (sender, chunks) = channel(CHUNKS_AHEAD_MAX);
        Self {
            chunks,
            reader: tokio::spawn(read(response, sender)),
        }
    }

    /// Waits for more. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Came {
        self.chunks.recv().await.unwrap_or(Ok(None))
    }

    /// What was read ahead, if anything.
    pub(super) fn ready(&mut self) -> Option<Came> {
        match self.chunks.try_recv() {
            Ok(came) => Some(came),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Ok(None)),
        }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

async fn read(mut response: reqwest::Response, chunks: Sender<Came>) {
    loop {
        let came = response.chunk().await;
        let is_last = !matches!(came, Ok(Some(_)));
        if chunks.send(came).await.is_err() || is_last {
            return;
        }
    }
}
