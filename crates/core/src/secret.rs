//! Text that must not be shown: keys and tokens on their way to the peer they belong to.

use std::fmt;

/// Text that must not be shown. Its `Debug` and `Display` hide it; [`Secret::expose`] is the one way to it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// What stands in its place wherever it would be shown.
    pub const REDACTED: &'static str = "[redacted]";

    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself: only for the peer it belongs to, and for the redactor.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::REDACTED)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::REDACTED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 10.5: a secret cannot be shown by accident.
    #[test]
    fn a_secret_does_not_show_itself() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret} {secret:?}"), "[redacted] [redacted]");
    }
}
