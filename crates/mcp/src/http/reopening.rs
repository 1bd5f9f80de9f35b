//! How often streams of one server are opened again.
//!
//! The SDK opens a stream again whenever it ends, for ever and as fast as the server likes. That is right for a stream that a
//! proxy cut after a minute, and wrong for a server whose stream announces an address and ends at once (SPEC 6.2).

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Streams in a row that end at once and bring nothing; then no more are opened.
const FRUITLESS_MAX: usize = 8;
/// A stream that was open for so long was worth opening.
const LIVED_MS_MIN: u64 = 1000;

/// What became of the streams so far.
#[derive(Debug, Default)]
pub(super) struct Reopening {
    /// Streams in a row that were not worth opening.
    fruitless: AtomicUsize,
    /// True once the stream for news was not: it is not opened again.
    is_silent: AtomicBool,
}

/// Which stream it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    /// For whatever the server says without being asked.
    News,
    /// The rest of one that broke off.
    Rest,
}

/// What a stream has brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Brought {
    /// Not one message.
    Nothing,
    /// Messages.
    Messages,
}

impl Reopening {
    /// Whether such a stream may be opened.
    pub(super) fn allows(&self, stream: Stream) -> bool {
        let is_silent = stream == Stream::News && self.is_silent.load(Ordering::Relaxed);
        !is_silent && self.fruitless.load(Ordering::Relaxed) < FRUITLESS_MAX
    }

    /// Learns from a stream that has ended.
    pub(super) fn ended(&self, stream: Stream, brought: Brought, lived: Duration) {
        if brought == Brought::Messages || lived >= Duration::from_millis(LIVED_MS_MIN) {
            self.fruitless.store(0, Ordering::Relaxed);
            return;
        }
        self.fruitless.fetch_add(1, Ordering::Relaxed);
        if stream == Stream::News {
            self.is_silent.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT_ONCE: Duration = Duration::ZERO;

    /// SPEC 6.2: a stream for news that ends at once is not opened again; one that was of use is.
    #[test]
    fn news() {
        let reopening = Reopening::default();
        reopening.ended(Stream::News, Brought::Messages, AT_ONCE);
        reopening.ended(Stream::News, Brought::Nothing, Duration::from_millis(LIVED_MS_MIN));
        assert!(reopening.allows(Stream::News));
        reopening.ended(Stream::News, Brought::Nothing, AT_ONCE);
        assert!(!reopening.allows(Stream::News));
        assert!(reopening.allows(Stream::Rest));
    }

    /// SPEC 12: no server makes us open streams for ever.
    #[test]
    fn bounded() {
        let reopening = Reopening::default();
        for _ in 0..FRUITLESS_MAX {
            assert!(reopening.allows(Stream::Rest));
            reopening.ended(Stream::Rest, Brought::Nothing, AT_ONCE);
        }
        assert!(!reopening.allows(Stream::Rest));
    }
}
