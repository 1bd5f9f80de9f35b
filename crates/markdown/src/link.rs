//! Where links lead, and that they do not hide it.
//!
//! Text of a model is not believed: an address becomes a hyperlink of the terminal (OSC 8) only with a harmless scheme, in
//! printable ASCII, and is shown beside the text where the text itself looks like another address.

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Longer addresses are shown and not linked: terminals cut them at about this length.
const ADDRESS_BYTES_MAX: usize = 2048;
/// What a click may open.
const SCHEMES: [&str; 3] = ["https://", "http://", "mailto:"];

/// An address a terminal may open: printable ASCII without spaces.
#[derive(Debug, PartialEq)]
pub(crate) struct Address {
    text: String,
    /// The words of a link are written one by one; terminals know by this that they belong together.
    id: u32,
}

impl Address {
    /// `None` for an address that is shown as text only.
    pub(crate) fn new(address: &str) -> Option<Self> {
        let has_scheme = SCHEMES.iter().any(|scheme| {
            address
                .get(..scheme.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        });
        if !has_scheme {
            return None;
        }
        let text = encoded(address);
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let id = u32::try_from(hasher.finish() & u64::from(u32::MAX)).unwrap_or_default();
        (text.len() <= ADDRESS_BYTES_MAX).then_some(Self { text, id })
    }

    /// Begins the hyperlink.
    pub(crate) fn open(&self, out: &mut String) {
        // Writing to a string cannot fail.
        let _ = write!(out, "\x1b]8;id={:x};{}\x1b\\", self.id, self.text);
    }

    /// Ends the hyperlink.
    pub(crate) fn close(out: &mut String) {
        out.push_str("\x1b]8;;\x1b\\");
    }
}

/// The address with everything but printable ASCII percent-encoded (RFC 3986, 2.1).
pub(crate) fn encoded(address: &str) -> String {
    let mut text = String::with_capacity(address.len());
    for byte in address.bytes() {
        if byte.is_ascii_graphic() {
            text.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

/// Whether the text says the address itself.
pub(crate) fn says_address(text: &str, address: &str) -> bool {
    text == address || Some(text) == address.strip_prefix("mailto:")
}

/// Whether somebody who reads the text may believe that it leads elsewhere: it names a host that is not the address's, or the
/// address is written so that its host is hard to see.
pub(crate) fn misleads(text: &str, address: &str) -> bool {
    let Some(host) = host(address) else {
        return false;
    };
    if authority(address).is_some_and(|authority| authority.contains('@')) || !host.is_ascii() {
        return true;
    }
    let separators = |c: char| c.is_whitespace() || "()[]{}<>\"'“”,;".contains(c);
    text.split(separators)
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()))
        .filter(|word| looks_like_host(bare_host(word)))
        .any(|word| !same_host(bare_host(word), &host))
}

fn authority(address: &str) -> Option<&str> {
    let (_, rest) = address.split_once("://")?;
    rest.split(['/', '?', '#', '\\']).next()
}

/// Without user, port and scheme, in lower case.
fn host(address: &str) -> Option<String> {
    match authority(address) {
        Some(_) => Some(bare_host(address).to_lowercase()),
        None => address
            .get(..7)
            .filter(|scheme| scheme.eq_ignore_ascii_case("mailto:"))
            .and_then(|_| address.rsplit_once('@'))
            .map(|(_, host)| host.split('?').next().unwrap_or_default().to_lowercase()),
    }
}

fn bare_host(text: &str) -> &str {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    host.split(':').next().unwrap_or_default()
}

fn looks_like_host(text: &str) -> bool {
    // Other dots read like the one of a host.
    let labels: Vec<&str> = text.split(['.', '\u{3002}', '\u{ff0e}', '\u{2024}']).collect();
    let last_is_name = labels
        .last()
        .is_some_and(|last| last.chars().count() >= 2 && last.chars().all(char::is_alphabetic));
    let numeric = labels.len() == 4 && labels.iter().all(|label| label.parse::<u8>().is_ok());
    labels.len() >= 2
        && labels
            .iter()
            .all(|label| !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_'))
        && (last_is_name || numeric)
}

fn same_host(one: &str, other: &str) -> bool {
    let bare = |host: &str| {
        let host = host.to_lowercase();
        host.strip_prefix("www.").map(str::to_owned).unwrap_or(host)
    };
    bare(one) == bare(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 8.8: what a click may open.
    #[test]
    fn schemes() {
        for good in ["https://a.example/b", "HTTP://a.example", "mailto:a@b.example"] {
            assert!(Address::new(good).is_some(), "{good}");
        }
        for bad in [
            "javascript:alert(1)",
            "file:///etc/passwd",
            "data:x",
            "/relative",
            "https",
            "",
        ] {
            assert!(Address::new(bad).is_none(), "{bad}");
        }
        assert!(Address::new(&format!("https://{}", "a".repeat(ADDRESS_BYTES_MAX))).is_none());
    }

    /// SPEC 8.8: an address ends no escape sequence and begins none.
    #[test]
    fn addresses_are_encoded() {
        let mut out = String::new();
        if let Some(address) = Address::new("https://a.example/\x1b\\\x07\u{9c}é b") {
            address.open(&mut out);
        }
        let (_, text) = out.split_once("https").unwrap_or_default();
        assert_eq!(text, "://a.example/%1B\\%07%C2%9C%C3%A9%20b\x1b\\");
    }

    /// SPEC 8.8: a text that names another host does not hide where its link leads.
    #[test]
    fn misleading_texts() {
        let leads = |text, address| misleads(text, address);
        assert!(!leads("click here", "https://evil.example/"));
        assert!(!leads("docs.rs", "https://docs.rs/syntect"));
        assert!(!leads("https://docs.rs", "https://docs.rs/x?y#z"));
        assert!(!leads("www.Docs.rs/a", "https://docs.rs:443/b"));
        assert!(leads("https://bank.example", "https://evil.example/"));
        assert!(leads(
            "go to bank.example/login now",
            "https://evil.example/bank.example"
        ));
        assert!(leads("bank.example", "https://bank.example@evil.example/"));
        assert!(leads("here", "https://bank.example@evil.example/"));
        assert!(leads("bаnk.example", "https://bank.example/"), "a Cyrillic letter");
        assert!(
            leads("here", "https://bаnk.example/"),
            "a Cyrillic letter in the address"
        );
        assert!(leads("me@good.example", "mailto:you@evil.example"));
        assert!(leads("192.168.0.1", "http://10.0.0.1/"));
        assert!(!leads("version 1.2", "https://docs.rs/"));
    }
}
