//! Tool names on the wire (SPEC 6.1): people see `alias.tool`, most providers accept only `[A-Za-z0-9_-]{1,64}`.
//!
//! A [`WireNames`] is made for each request from all names that occur in it, and reads the reply to that request back
//! exactly. Wire names depend on the set of names, not on their order, so that the same conversation is written the
//! same way again and prefixes stay stable.

use crate::profile::WireNaming;
use aish_core::message::{Message, ToolSpec};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Characters of a name on the wire; the bound that providers share.
pub const WIRE_NAME_CHARS_MAX: usize = 64;

/// Hexadecimal digits of the hash that tells apart what cutting made equal.
const HASH_DIGITS: usize = 8;

/// The names of one request, both ways.
#[derive(Clone, Debug, Default)]
pub struct WireNames {
    naming: WireNaming,
    to_wire: HashMap<String, String>,
    to_people: HashMap<String, String>,
}

impl WireNames {
    /// The table for a request: the tools it offers, and those that its messages called.
    pub fn of(naming: WireNaming, tools: &[ToolSpec], messages: &[Message]) -> Self {
        let offered = tools.iter().map(|tool| tool.name.as_str());
        let called = messages.iter().flat_map(|message| match message {
            Message::Assistant { calls, .. } => calls.as_slice(),
            Message::User { .. } | Message::Tool { .. } => &[],
        });
        Self::new(naming, offered.chain(called.map(|call| call.name.as_str())))
    }

    /// The table for all names of a request; repeats are fine.
    pub fn new<'n>(naming: WireNaming, names: impl IntoIterator<Item = &'n str>) -> Self {
        let names: BTreeSet<&str> = names.into_iter().collect();
        let mut plain: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for name in &names {
            plain.entry(spell(naming, name)).or_default().push(name);
        }
        let mut table = Self {
            naming,
            ..Self::default()
        };
        let mut clashing = Vec::new();
        for (wire, owners) in plain {
            let fits = wire.len() <= WIRE_NAME_CHARS_MAX;
            let owner = match owners.as_slice() {
                [only] if fits => Some(*only),
                // Of several, the one that is written like that anyway keeps it.
                several if fits => several.iter().copied().find(|name| *name == wire),
                _ => None,
            };
            clashing.extend(owners.iter().copied().filter(|name| Some(*name) != owner));
            if let Some(owner) = owner {
                table.insert(owner, wire);
            }
        }
        for name in clashing {
            let wire = (0u64..)
                .map(|salt| cut_and_hash(naming, name, salt))
                .find(|wire| !table.to_people.contains_key(wire))
                .unwrap_or_default();
            table.insert(name, wire);
        }
        table
    }

    fn insert(&mut self, name: &str, wire: String) {
        self.to_people.insert(wire.clone(), name.to_owned());
        self.to_wire.insert(name.to_owned(), wire);
    }

    /// The name for the wire. A name that is not in the table is spelled as if it were alone.
    pub fn wire<'n>(&'n self, name: &str) -> Cow<'n, str> {
        match self.to_wire.get(name) {
            Some(wire) => Cow::Borrowed(wire),
            None => {
                let wire = spell(self.naming, name);
                Cow::Owned(if wire.len() <= WIRE_NAME_CHARS_MAX {
                    wire
                } else {
                    cut_and_hash(self.naming, name, 0)
                })
            }
        }
    }

    /// The name for people. What is not in the table stays as the model wrote it: then it names no tool, or a model
    /// used the people's name that it saw in a text.
    pub fn people<'n>(&'n self, wire: &'n str) -> &'n str {
        self.to_people.get(wire).map_or(wire, String::as_str)
    }

    /// True when a model's word for a tool is in the table, either way.
    pub fn knows(&self, name: &str) -> bool {
        self.to_people.contains_key(name) || self.to_wire.contains_key(name)
    }
}

/// A name in the characters of the wire, of any length.
fn spell(naming: WireNaming, name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 2);
    for c in name.chars() {
        match (c, naming) {
            ('.', WireNaming::Underscore) => out.push_str("__"),
            ('.', WireNaming::Dot) | ('_' | '-', _) => out.push(c),
            (c, _) if c.is_ascii_alphanumeric() => out.push(c),
            _ => out.push('_'),
        }
    }
    // Gemini wants a name that begins with a letter or an underscore.
    if !out.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        out.insert(0, '_');
    }
    out
}

fn cut_and_hash(naming: WireNaming, name: &str, salt: u64) -> String {
    let mut wire = spell(naming, name);
    // All ASCII by now, so that any cut is on a character boundary.
    wire.truncate(WIRE_NAME_CHARS_MAX - HASH_DIGITS - 1);
    let hash = format!("{:016x}", fnv1a(name, salt));
    wire.push('_');
    wire.extend(hash.chars().take(HASH_DIGITS));
    wire
}

/// FNV-1a with 64 bits, finished with a multiplication so that its leading digits are mixed too. It must give the same
/// result for ever, because it is part of every request, and need not resist anybody.
pub(crate) fn fnv1a(text: &str, salt: u64) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325 ^ salt;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn underscore(names: &[&str]) -> WireNames {
        WireNames::new(WireNaming::Underscore, names.iter().copied())
    }

    /// SPEC 6.1: the dot becomes two underscores and comes back.
    #[test]
    fn dots() {
        let names = underscore(&["boltzmann.read_file", "glob"]);
        assert_eq!(names.wire("boltzmann.read_file"), "boltzmann__read_file");
        assert_eq!(names.people("boltzmann__read_file"), "boltzmann.read_file");
        assert_eq!(names.people("boltzmann.read_file"), "boltzmann.read_file");
        assert_eq!(names.wire("glob"), "glob");
        let dots = WireNames::new(WireNaming::Dot, ["a.b"]);
        assert_eq!(dots.wire("a.b"), "a.b");
        assert_eq!(dots.people("a.b"), "a.b");
    }

    /// SPEC 6.1: names that become equal are told apart, whatever their order.
    #[test]
    fn clashes() {
        for order in [["a.b", "a__b"], ["a__b", "a.b"]] {
            let names = underscore(&order);
            assert_eq!(names.wire("a__b"), "a__b");
            assert_eq!(names.people("a__b"), "a__b");
            let other = names.wire("a.b").into_owned();
            assert!(other.starts_with("a__b_"), "{other}");
            assert_eq!(names.people(&other), "a.b");
        }
        let names = underscore(&["a b", "a/b"]);
        assert_ne!(names.wire("a b"), "a_b");
        assert_ne!(names.wire("a b"), names.wire("a/b"));
    }

    /// SPEC 6.1: at most 64 characters.
    #[test]
    fn overflow() {
        let long = format!("server.{}", "x".repeat(80));
        let longer = format!("{long}y");
        let names = underscore(&[&long, &longer]);
        assert_eq!(names.wire(&long).len(), WIRE_NAME_CHARS_MAX);
        assert_ne!(names.wire(&long), names.wire(&longer));
        assert_eq!(names.people(&names.wire(&long)), long);
        let exact = "y".repeat(64);
        assert_eq!(underscore(&[&exact]).wire(&exact), exact.as_str());
    }

    /// SPEC 6.1: a name begins with a letter or an underscore.
    #[test]
    fn beginnings() {
        let names = underscore(&["7zip.list", "-x", "é"]);
        assert_eq!(names.wire("7zip.list"), "_7zip__list");
        assert_eq!(names.people("_7zip__list"), "7zip.list");
        assert_eq!((&*names.wire("-x"), &*names.wire("é")), ("_-x", "_"));
    }

    #[test]
    fn names_outside_the_table() {
        let names = underscore(&["a.b"]);
        assert_eq!(names.wire("c.d"), "c__d");
        assert_eq!(names.people("c__d"), "c__d");
        assert!(names.knows("a__b") && names.knows("a.b") && !names.knows("c__d"));
    }

    proptest! {
        /// SPEC 6.1: any set of names has acceptable wire names and is mapped back exactly.
        #[test]
        fn round_trip(set in proptest::collection::btree_set("[a-c._/é]{0,70}", 0..12)) {
            let names = WireNames::new(WireNaming::Underscore, set.iter().map(String::as_str));
            for name in &set {
                let wire = names.wire(name);
                prop_assert!((1..=WIRE_NAME_CHARS_MAX).contains(&wire.len()));
                prop_assert!(wire.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'));
                prop_assert_eq!(names.people(&wire), name);
            }
        }
    }
}
