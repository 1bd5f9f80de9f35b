//! The terminal's keys, while nobody else reads them.

use crate::term::tty::is_foreground;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::io;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Bytes read at once.
const READ_BYTES_MAX: usize = 4096;
/// How often a program in the background looks whether it is in front again.
const FOREGROUND_EVERY_MS: u64 = 100;

/// Standard input, read only while somebody waits in [`Tap::bytes`]: everything else stays in the terminal, for whoever reads next.
pub struct Tap {
    fd: AsyncFd<OwnedFd>,
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
        Ok(Self { fd })
    }

    /// Bytes that were typed, at least one. Never completes on a terminal that hung up. Nothing is lost when it is dropped.
    pub async fn bytes(&self) -> Vec<u8> {
        loop {
            let Ok(mut ready) = self.fd.readable().await else {
                return std::future::pending().await;
            };
            // The terminal is not non-blocking: others have it too. So it is asked again right before it is read.
            if !self.has_bytes() {
                ready.clear_ready();
                continue;
            }
            if !is_foreground(self.fd.get_ref()) {
                // Reading would stop the program.
                tokio::time::sleep(Duration::from_millis(FOREGROUND_EVERY_MS)).await;
                continue;
            }
            let mut buffer = [0; READ_BYTES_MAX];
            match rustix::io::read(self.fd.get_ref(), &mut buffer) {
                Ok(0) => return std::future::pending().await,
                Ok(count) => return buffer.get(..count).unwrap_or_default().to_vec(),
                Err(Errno::INTR | Errno::AGAIN) => {}
                // It hung up: a signal tells of that, and of the end of the program.
                Err(_) => return std::future::pending().await,
            }
        }
    }

    fn has_bytes(&self) -> bool {
        let mut fds = [PollFd::new(self.fd.get_ref(), PollFlags::IN)];
        matches!(poll(&mut fds, Some(&Timespec::default())), Ok(1..))
    }
}
