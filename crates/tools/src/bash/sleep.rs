//! The sleep of whoever looks after one process: until it exits, it writes, somebody rings, or it is time to look.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use std::time::Instant;

/// Whether the process has exited, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exited {
    /// It has.
    Yes,
    /// Not when it was last looked at.
    No,
}

/// What is watched of one process.
pub struct Watched<'a, F> {
    /// Rung by whoever wants something of the one who sleeps; emptied on waking.
    pub wake: &'a OwnedFd,
    /// The process's descriptor (`pidfd`), while it has not exited.
    pub exit: Option<&'a OwnedFd>,
    /// What it writes to, while that is open.
    pub output: Option<&'a F>,
}

impl<F: AsFd> Watched<'_, F> {
    /// Sleeps until something happens, or that moment. Interrupted or not, the caller looks at every source.
    pub fn sleep(&self, until: Option<Instant>) -> Exited {
        let now = Instant::now();
        let timeout = until.and_then(|until| Timespec::try_from(until.saturating_duration_since(now)).ok());
        let mut sources = vec![PollFd::new(self.wake, PollFlags::IN)];
        if let Some(exit) = self.exit {
            sources.push(PollFd::new(exit, PollFlags::IN));
        }
        if let Some(output) = self.output {
            sources.push(PollFd::new(output, PollFlags::IN));
        }
        let _ = poll(&mut sources, timeout.as_ref());
        let exited = self.exit.is_some() && sources.get(1).is_some_and(|exit| !exit.revents().is_empty());
        let mut count = [0; 8];
        let _ = rustix::io::read(self.wake, &mut count);
        if exited { Exited::Yes } else { Exited::No }
    }
}
