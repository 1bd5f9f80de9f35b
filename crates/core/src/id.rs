//! Identifiers: one newtype each, so that a raw string never stands for one of them. Every event carries some: copying one
//! copies a reference.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Wraps text that already is such an id (from the ledger, a command line or a request).
            pub fn new(text: impl Into<String>) -> Self {
                Self(Arc::from(text.into()))
            }

            /// The id as it is written.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id! {
    /// A session: a UUIDv7, so that ids sort by the time they were made and cannot be guessed (SPEC 2.8).
    SessionId
}
id! {
    /// A tool call, unique within its session whatever the provider called it (SPEC 2.4): `call_<turn>_<n>`.
    CallId
}
id! {
    /// One reply of a model: what groups the calls it made (SPEC 2.4): `reply_<turn>_<n>`.
    ReplyId
}
id! {
    /// One suspension of a turn, one-shot (SPEC 9.4).
    ContinuationId
}

impl SessionId {
    /// The UUIDv7 of a moment (milliseconds since the Unix epoch) and 74 or more random bits.
    pub fn from_parts(unix_ms: u64, random: u128) -> Self {
        let random = random.to_be_bytes();
        let mut bytes = [0u8; 10];
        bytes.copy_from_slice(&random[6..]);
        Self(
            uuid::Builder::from_unix_timestamp_millis(unix_ms, &bytes)
                .into_uuid()
                .to_string()
                .into(),
        )
    }
}

impl CallId {
    /// The id of the `n`th call of a turn, counted from 1.
    pub fn nth(turn: u64, n: usize) -> Self {
        Self(format!("call_{turn}_{n}").into())
    }
}

impl ReplyId {
    /// The id of the `n`th reply of a turn, counted from 1.
    pub fn nth(turn: u64, n: usize) -> Self {
        Self(format!("reply_{turn}_{n}").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 2.8: session ids sort by time.
    #[test]
    fn session_ids_sort_by_time() {
        let early = SessionId::from_parts(1_000, u128::MAX);
        let late = SessionId::from_parts(2_000, 0);
        assert!(early < late);
        assert_eq!(early.as_str().len(), 36);
        assert_eq!(&early.as_str()[14..15], "7");
    }
}
