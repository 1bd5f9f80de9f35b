//! The terminal's keys, while nobody else reads them.

use crate::term::tty::is_foreground;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Bytes read at once.
const READ_BYTES_MAX: usize = 4096;
/// How often a program in the background looks whether it is in front again.
const FOREGROUND_EVERY_MS: u64 = 100;

/// Bytes that are kept for whoever reads next; more are dropped, and that is said.
const RETURNED_BYTES_MAX: usize = 1 << 20;
/// How long the rest of what came at once is waited for: a terminal hands on a long text in pieces.
const REST_MS: i64 = 2;

/// Standard input, read only while somebody waits in [`Tap::bytes`]: everything else stays in the terminal, for whoever reads next.
/// What somebody read and had no use for comes first.
pub struct Tap {
    fd: AsyncFd<OwnedFd>,
    returned: VecDeque<u8>,
    dropped_bytes: usize,
}

impl Tap {
    /// To be called within the runtime.
    ///
    /// # Errors
    /// It is nothing that can be waited for.
    #[expect(
        deprecated,
        reason = "what replaces it is unsafe, for descriptors that are closed early: this one is owned, and closed after"
    )]
    pub fn open() -> io::Result<Self> {
        let fd = rustix::stdio::stdin().try_clone_to_owned()?;
        let fd = AsyncFd::with_interest(fd, Interest::READABLE)?;
        Ok(Self {
            fd,
            returned: VecDeque::new(),
            dropped_bytes: 0,
        })
    }

    /// Bytes come back that were read too early. What the terminal still has of them comes along: whoever reads next may not be
    /// told of bytes that were there before.
    pub fn give_back(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.keep(bytes);
        let rest = Timespec {
            tv_sec: 0,
            tv_nsec: REST_MS * 1_000_000,
        };
        while self.returned.len() < RETURNED_BYTES_MAX
            && has_bytes(self.fd.get_ref(), &rest)
            && is_foreground(self.fd.get_ref())
        {
            match read(self.fd.get_ref()) {
                Ok(bytes) if !bytes.is_empty() => self.keep(&bytes),
                Ok(_) | Err(_) => return,
            }
        }
    }

    /// Whether bytes came back that nobody has taken yet.
    pub fn has_returned(&self) -> bool {
        !self.returned.is_empty()
    }

    /// Whether the terminal has bytes that nobody has read yet.
    pub fn has_bytes(&self) -> bool {
        has_bytes(self.fd.get_ref(), &Timespec::default())
    }

    /// Takes the first byte that came back.
    pub fn take_returned(&mut self) -> Option<u8> {
        self.returned.pop_front()
    }

    /// Takes all that came back.
    pub fn take_all_returned(&mut self) -> Vec<u8> {
        self.returned.drain(..).collect()
    }

    /// Takes the number of bytes there was no room for.
    pub fn take_dropped(&mut self) -> usize {
        std::mem::take(&mut self.dropped_bytes)
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = RETURNED_BYTES_MAX.saturating_sub(self.returned.len());
        self.returned.extend(bytes.iter().take(room));
        self.dropped_bytes += bytes.len().saturating_sub(room);
    }

    /// Bytes that were typed, at least one. Never completes on a terminal that hung up. Nothing is lost when it is dropped.
    pub async fn bytes(&mut self) -> Vec<u8> {
        if !self.returned.is_empty() {
            return self.take_all_returned();
        }
        loop {
            let Ok(mut ready) = self.fd.readable().await else {
                return std::future::pending().await;
            };
            // The terminal is not non-blocking: others have it too. So it is asked again right before it is read.
            let has_bytes = has_bytes(ready.get_inner(), &Timespec::default());
            if !has_bytes {
                ready.clear_ready();
                continue;
            }
            if !is_foreground(self.fd.get_ref()) {
                // Reading would stop the program.
                tokio::time::sleep(Duration::from_millis(FOREGROUND_EVERY_MS)).await;
                continue;
            }
            match read(self.fd.get_ref()) {
                Ok(bytes) if bytes.is_empty() => return std::future::pending().await,
                Ok(bytes) => return bytes,
                Err(Errno::INTR | Errno::AGAIN) => {}
                // It hung up: a signal tells of that, and of the end of the program.
                Err(_) => return std::future::pending().await,
            }
        }
    }
}

fn read(fd: &OwnedFd) -> rustix::io::Result<Vec<u8>> {
    let mut buffer = [0; READ_BYTES_MAX];
    let count = rustix::io::read(fd, &mut buffer)?;
    Ok(buffer.get(..count).unwrap_or_default().to_vec())
}

fn has_bytes(fd: &OwnedFd, wait: &Timespec) -> bool {
    let mut fds = [PollFd::new(fd, PollFlags::IN)];
    matches!(poll(&mut fds, Some(wait)), Ok(1..))
}
