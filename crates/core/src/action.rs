//! What a call would do, in a form that can be judged by policy, shown to a person and compared byte for byte.
//!
//! A tool makes the [`Action`] of a call before it runs ([`Action::digest`] is what an approval quotes); the driver
//! makes it again just before the call starts and refuses if the digest changed: what was shown is what runs
//! (SPEC 3.3).

use crate::parts::Parts;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::path::{Path, PathBuf};

/// Something a call touches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
pub enum Effect {
    /// Reads a file, or everything under a folder. The path is absolute with links resolved.
    Read {
        /// Where.
        #[serde(serialize_with = "lossless")]
        path: PathBuf,
    },
    /// Creates, changes or replaces a file. The path is absolute with links resolved.
    Write {
        /// Where.
        #[serde(serialize_with = "lossless")]
        path: PathBuf,
    },
    /// Runs a command line with `bash -c`.
    Execute {
        /// The whole command line.
        command: String,
        /// The directory it starts in.
        #[serde(serialize_with = "lossless")]
        directory: PathBuf,
        /// What it is made of. No part of the digest: the command line says it all.
        #[serde(skip)]
        parts: Parts,
    },
    /// Fetches a page from the network and changes nothing there (a `GET`, RFC 9110 section 9.2.1).
    Fetch {
        /// From where: whole, in the one form that addresses of the same page have.
        url: String,
        /// What may be at that address.
        reach: Reach,
    },
    /// Leaves this process for a tool somebody else wrote: its effect is unknown.
    Remote,
    /// Has an MCP server do what it says one of its tools does: what that is, only the server knows.
    Delegate {
        /// The digest of the tool's definition, so that a yes to one never runs another of the same name (SPEC 6.8).
        definition: Digest,
        /// What the server says of it, where it is trusted.
        #[serde(skip_serializing_if = "Hint::is_unknown")]
        hint: Hint,
        /// How the definition differs from the one that was approved before, readable and escaped; `None` where it does not. No
        /// part of the digest: the definition itself is, and approving it makes it the one approved.
        #[serde(skip)]
        changed: Option<String>,
    },
    /// Reads what the ledger holds of all sessions: what was said in them, by the person too.
    Recall,
    /// Touches nothing but this session: its own processes (reading or stopping a background job), its list of tools.
    Internal,
}

/// Which part of the network a fetch may come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// What everybody can reach: public addresses only.
    #[default]
    Public,
    /// This machine and its own network, too: a page there may be anything, such as the controls of a device.
    Anywhere,
}

/// What a trusted server says one of its tools does to the world (SPEC 5.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Hint {
    /// Nothing that is believed: it may destroy.
    #[default]
    Unknown,
    /// It changes nothing.
    ReadOnly,
    /// It changes something and destroys nothing.
    Additive,
}

impl Hint {
    // `serde` asks by reference.
    #[allow(clippy::trivially_copy_pass_by_ref)]
    fn is_unknown(&self) -> bool {
        *self == Self::Unknown
    }
}

/// A path as text that no other path has: bytes that are no UTF-8 are escaped, and so is the escape itself. Two calls on two
/// files must never have one digest.
fn lossless<S: serde::Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    let mut text = String::new();
    for chunk in path.as_os_str().as_encoded_bytes().utf8_chunks() {
        text.push_str(&chunk.valid().replace('\\', "\\\\"));
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    serializer.serialize_str(&text)
}

/// What one call would do, canonical and digestible.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Action {
    /// The tool's name as people see it.
    pub tool: String,
    /// The validated arguments.
    pub arguments: Value,
    /// Everything the call would touch, in order.
    pub effects: Vec<Effect>,
}

impl Action {
    /// True when nothing it touches is changed by it.
    pub fn is_read_only(&self) -> bool {
        self.effects.iter().all(|effect| match effect {
            Effect::Read { .. } | Effect::Fetch { .. } | Effect::Recall | Effect::Internal => true,
            Effect::Write { .. } | Effect::Execute { .. } | Effect::Remote | Effect::Delegate { .. } => false,
        })
    }

    /// True when it sends an address of somebody's choosing out into the network.
    pub fn fetches(&self) -> bool {
        let mut effects = self.effects.iter();
        effects.any(|effect| matches!(effect, Effect::Fetch { .. }))
    }

    /// The command line, for a call that runs one.
    pub fn command(&self) -> Option<&str> {
        self.effects.iter().find_map(|effect| match effect {
            Effect::Execute { command, .. } => Some(command.as_str()),
            Effect::Read { .. }
            | Effect::Write { .. }
            | Effect::Fetch { .. }
            | Effect::Remote
            | Effect::Delegate { .. }
            | Effect::Recall
            | Effect::Internal => None,
        })
    }

    /// What the command line is made of, for a call that runs one.
    pub fn parts(&self) -> Option<&Parts> {
        self.effects.iter().find_map(|effect| match effect {
            Effect::Execute { parts, .. } => Some(parts),
            Effect::Read { .. }
            | Effect::Write { .. }
            | Effect::Fetch { .. }
            | Effect::Remote
            | Effect::Delegate { .. }
            | Effect::Recall
            | Effect::Internal => None,
        })
    }

    /// Says that the command line, where it is to run, may not mean what its syntax says.
    pub fn doubt(&mut self, why: &str) {
        for effect in &mut self.effects {
            if let Effect::Execute { parts, .. } = effect {
                parts.doubt = Some(why.to_owned());
            }
        }
    }

    /// How the tool's definition differs from the one that was approved before, readable and escaped; `None` where it does not.
    pub fn changed(&self) -> Option<&str> {
        self.effects.iter().find_map(|effect| match effect {
            Effect::Delegate { changed, .. } => changed.as_deref(),
            Effect::Read { .. }
            | Effect::Write { .. }
            | Effect::Execute { .. }
            | Effect::Fetch { .. }
            | Effect::Remote
            | Effect::Recall
            | Effect::Internal => None,
        })
    }

    /// SHA-256 over the canonical JSON of the action (object keys sorted at every depth), in lower-case hex.
    pub fn digest(&self) -> Digest {
        let mut text = String::new();
        match serde_json::to_value(self) {
            Ok(value) => canonical_json(&value, &mut text),
            // Nothing in an action fails to be written. If it ever did, the digest must still be this action's alone.
            Err(_) => text = format!("{self:?}"),
        }
        Digest::of(&text)
    }
}

/// The digest of an [`Action`], or of another text that a person agreed to: 64 hex digits. A person may quote its first [`Digest::SHORT_LEN`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    /// How many digits a person is shown.
    pub const SHORT_LEN: usize = 12;

    /// SHA-256 of a text.
    pub fn of(text: &str) -> Self {
        let mut hex = String::with_capacity(64);
        for byte in Sha256::digest(text.as_bytes()) {
            use fmt::Write as _;
            let _ = write!(hex, "{byte:02x}");
        }
        Self(hex)
    }

    /// Wraps text that already is a digest.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// All 64 digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The digits shown to a person.
    pub fn short(&self) -> &str {
        self.0.get(..Self::SHORT_LEN).unwrap_or(&self.0)
    }

    /// True for the whole digest, or a prefix of it no shorter than what a person is shown.
    pub fn matches(&self, quoted: &str) -> bool {
        quoted == self.0 || (quoted.len() >= Self::SHORT_LEN && self.0.starts_with(quoted))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Writes JSON with object keys sorted. `serde_json` sorts them too unless any crate of the build asks it to preserve
/// order, which must not change a digest.
pub fn canonical_json(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            out.push('{');
            for (n, key) in keys.into_iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                out.push_str(&Value::String(key.clone()).to_string());
                out.push(':');
                canonical_json(map.get(key).unwrap_or(&Value::Null), out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                canonical_json(item, out);
            }
            out.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => out.push_str(&value.to_string()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    fn action(arguments: Value) -> Action {
        Action {
            tool: "bash".into(),
            arguments,
            effects: vec![Effect::Execute {
                command: "ls".into(),
                directory: "/tmp".into(),
                parts: Parts::default(),
            }],
        }
    }

    /// SPEC 3.3: names that are no UTF-8 are told apart like any others.
    #[cfg(unix)]
    #[test]
    fn digest_of_any_path() {
        use std::os::unix::ffi::OsStrExt as _;
        let write = |name: &[u8]| {
            let path = PathBuf::from(std::ffi::OsStr::from_bytes(name));
            Action {
                effects: vec![Effect::Write { path }],
                ..action(json!({}))
            }
            .digest()
        };
        let digests = [
            write(b"/a\xff"),
            write(b"/a\xfe"),
            write(b"/a\\xff"),
            write(b"/a\xef\xbf\xbd"),
        ];
        for (n, one) in digests.iter().enumerate() {
            assert!(digests.iter().skip(n + 1).all(|other| other != one), "{n}");
        }
    }

    /// SPEC 3.3, 6.8: a yes to a tool as it was is none to the tool as it is; the way it is told is no part of it.
    #[test]
    fn digest_of_a_definition() {
        let call = |definition: &str, hint, changed: Option<&str>| Action {
            effects: vec![Effect::Delegate {
                definition: Digest::of(definition),
                hint,
                changed: changed.map(str::to_owned),
            }],
            ..action(json!({}))
        };
        let before = call("sends", Hint::Unknown, None).digest();
        assert_eq!(before, call("sends", Hint::Unknown, Some("it was another")).digest());
        assert_ne!(before, call("sends all", Hint::Unknown, None).digest());
        assert_ne!(before, call("sends", Hint::ReadOnly, None).digest());
        assert_eq!(call("sends", Hint::Unknown, Some("x")).changed(), Some("x"));
        assert_eq!(action(json!({})).changed(), None);
    }

    /// SPEC 3.3: the digest depends on everything shown and on nothing else.
    #[test]
    fn digest_is_canonical() {
        let a = action(json!({"a": 1, "b": {"c": 2, "d": 3}}));
        let b = action(serde_json::from_str(r#"{"b":{"d":3,"c":2},"a":1}"#).unwrap());
        assert_eq!(a.digest(), b.digest());
        assert_ne!(a.digest(), action(json!({"a": 2})).digest());
        assert_eq!(a.digest().as_str().len(), 64);
        assert!(a.digest().matches(a.digest().short()));
        assert!(!a.digest().matches(&a.digest().as_str()[..8]));
    }
}
