//! Time and randomness enter here and nowhere else.

use aish_core::id::SessionId;
use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since the Unix epoch.
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// 128 random bits of the operating system.
pub(crate) fn random() -> u128 {
    let mut bytes = [0u8; 16];
    match getrandom::fill(&mut bytes) {
        Ok(()) => u128::from_ne_bytes(bytes),
        // No Linux that aish runs on lacks it; the hasher's own keys are random as well.
        Err(_) => {
            use std::hash::{BuildHasher, RandomState};
            let half = || u128::from(RandomState::new().hash_one(now_ms()));
            half() << 64 | half()
        }
    }
}

/// The id of a session that begins now.
pub fn new_session_id() -> SessionId {
    SessionId::from_parts(now_ms(), random())
}
