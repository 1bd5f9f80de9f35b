//! The bytes of a connection, with an eye on peers that take nothing and on answers that would be lost.
//!
//! A write that waits is a peer that does not read; after [`Limits::write_timeout`](crate::Limits) it is an error and the
//! connection is over. And a socket that is closed while something unread lies in it is *reset*: the peer may never see what was
//! sent last. So when it was said ([`Linger`]) that more is on its way, or some of it is there, closing says "no more from here" and
//! then takes and throws away what comes, within bounds.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// How long what still comes is taken and thrown away.
const LINGER_S: u64 = 2;
/// How much of it.
const LINGER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bytes thrown away at a time.
const PIECE_BYTES: usize = 8 * 1024;

/// Said once: an answer was given before its request had been read to the end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Linger(Arc<AtomicBool>);

impl Linger {
    pub(crate) fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A connection's two directions.
pub(crate) struct Wire<S> {
    stream: S,
    write_timeout: Duration,
    linger: Linger,
    /// Made at the first write that waits; runs while `is_waiting`.
    patience: Option<Pin<Box<Sleep>>>,
    is_waiting: bool,
    /// How far closing is.
    closing: Closing,
}

enum Closing {
    No,
    /// The peer was told that nothing follows.
    Told {
        until: Pin<Box<Sleep>>,
        bytes: usize,
    },
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    pub(crate) fn new(stream: S, write_timeout: Duration, linger: Linger) -> Self {
        Self {
            stream,
            write_timeout,
            linger,
            patience: None,
            is_waiting: false,
            closing: Closing::No,
        }
    }

    /// What a write came to; an error once it has waited for too long.
    fn patient<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.is_waiting = false;
            return written;
        }
        let timeout = self.write_timeout;
        let patience = self.patience.get_or_insert_with(|| Box::pin(sleep(timeout)));
        if !self.is_waiting {
            self.is_waiting = true;
            patience.as_mut().reset(Instant::now() + timeout);
        }
        ready!(patience.as_mut().poll(cx));
        let problem = "the peer does not read what it is sent";
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, problem)))
    }

    /// Whether something lies there that nobody has read: the rest of a head that was too long, say. Its first byte says so, and is
    /// thrown away with the rest.
    fn is_more_there(&mut self, cx: &mut Context<'_>) -> bool {
        let mut piece = [0; 1];
        let mut buffer = ReadBuf::new(&mut piece);
        let read = Pin::new(&mut self.stream).poll_read(cx, &mut buffer);
        matches!(read, Poll::Ready(Ok(()))) && !buffer.filled().is_empty()
    }

    /// Throws away what still comes, until the peer has closed, too, or it is enough.
    fn throw_away(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Closing::Told { until, bytes } = &mut self.closing else {
            return Poll::Ready(Ok(()));
        };
        let mut piece = [0; PIECE_BYTES];
        while *bytes < LINGER_BYTES_MAX && until.as_mut().poll(cx).is_pending() {
            let mut buffer = ReadBuf::new(&mut piece);
            let read = ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer));
            let count = buffer.filled().len();
            if read.is_err() || count == 0 {
                break;
            }
            *bytes += count;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Wire<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Wire<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.patient(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.patient(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if matches!(self.closing, Closing::No) {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            if !self.linger.is_asked() && !self.is_more_there(cx) {
                return Poll::Ready(Ok(()));
            }
            self.closing = Closing::Told {
                until: Box::pin(sleep(Duration::from_secs(LINGER_S))),
                bytes: 0,
            };
        }
        self.throw_away(cx)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    const TIMEOUT: Duration = Duration::from_secs(30);

    /// SPEC 9.8: who takes nothing is cut; who takes a little now and then is waited for.
    #[tokio::test(start_paused = true)]
    async fn a_peer_that_does_not_read() {
        let (ours, mut theirs) = duplex(10);
        let mut wire = Wire::new(ours, TIMEOUT, Linger::default());
        let slow = async {
            for _ in 0..9 {
                tokio::time::sleep(TIMEOUT - Duration::from_secs(1)).await;
                theirs.read_exact(&mut [0; 10]).await.unwrap();
            }
        };
        let (written, ()) = tokio::join!(wire.write_all(&[b'x'; 100]), slow);
        written.unwrap();
        let stuck = wire.write_all(&[b'x'; 100]).await.unwrap_err();
        assert_eq!(stuck.kind(), io::ErrorKind::TimedOut);
    }

    /// SPEC 9.8: after an early answer what still comes is taken, for a while and to a bound.
    #[tokio::test(start_paused = true)]
    async fn lingering() {
        let (ours, mut theirs) = duplex(10);
        let linger = Linger::default();
        let mut wire = Wire::new(ours, TIMEOUT, linger.clone());
        linger.ask();
        let sending = async {
            let sent = theirs.write_all(&[b'x'; 1_000]).await;
            drop(theirs);
            sent
        };
        let (closed, sent) = tokio::join!(wire.shutdown(), sending);
        assert!(closed.is_ok() && sent.is_ok());

        // Nobody said so, and yet there is more.
        let (ours, mut theirs) = duplex(1_000);
        let mut wire = Wire::new(ours, TIMEOUT, Linger::default());
        theirs.write_all(&[b'x'; 100]).await.unwrap();
        let began = Instant::now();
        wire.shutdown().await.unwrap();
        assert_eq!(began.elapsed().as_secs(), LINGER_S);

        let (ours, _silent) = duplex(10);
        let mut wire = Wire::new(ours, TIMEOUT, linger);
        let began = Instant::now();
        wire.shutdown().await.unwrap();
        assert_eq!(began.elapsed().as_secs(), LINGER_S);

        let (ours, _silent) = duplex(10);
        let mut wire = Wire::new(ours, TIMEOUT, Linger::default());
        let began = Instant::now();
        wire.shutdown().await.unwrap();
        assert_eq!(began.elapsed().as_secs(), 0);
    }
}
