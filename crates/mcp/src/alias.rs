//! Aliases: what a server is called here, and what the names of its tools begin with (SPEC 6.4).

use std::fmt;

/// Characters of an alias.
const ALIAS_CHARS_MAX: usize = 40;
/// The alias of a server whose address has no name in it.
const ALIAS_OF_ADDRESS: &str = "mcp";

/// A name that matches `[a-z][a-z0-9_-]*`, at most 40 characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Alias(String);

/// Why a text is no alias.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an alias begins with a small letter; then small letters, digits, _ and - follow, {ALIAS_CHARS_MAX} at most")]
pub struct InvalidAlias;

impl Alias {
    /// Reads an alias.
    ///
    /// # Errors
    /// The text has another form.
    pub fn parse(text: &str) -> Result<Self, InvalidAlias> {
        let mut letters = text.chars();
        let begins = letters.next().is_some_and(|letter| letter.is_ascii_lowercase());
        if begins && text.len() <= ALIAS_CHARS_MAX && letters.all(is_alias_letter) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidAlias)
        }
    }

    /// The alias of an address that nobody named: the first label of its host, `mcp` for a numeric one; with `-2`, `-3`, … where
    /// `is_taken`.
    pub fn of_url(url: &url::Url, is_taken: impl Fn(&str) -> bool) -> Self {
        let label = match url.host() {
            Some(url::Host::Domain(name)) => name.split('.').next().unwrap_or_default().to_ascii_lowercase(),
            Some(url::Host::Ipv4(_) | url::Host::Ipv6(_)) | None => String::new(),
        };
        let kept: String = label
            .chars()
            .filter(|letter| is_alias_letter(*letter))
            .take(ALIAS_CHARS_MAX - 4)
            .collect();
        let base = Self::parse(&kept).map_or_else(|_| ALIAS_OF_ADDRESS.to_owned(), |alias| alias.0);
        let mut name = base.clone();
        let mut number = 2;
        while is_taken(&name) {
            name = format!("{base}-{number}");
            number += 1;
        }
        Self(name)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_alias_letter(letter: char) -> bool {
    letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_' || letter == '-'
}

impl fmt::Display for Alias {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// SPEC 6.4: what an alias looks like.
    #[test]
    fn forms() {
        for good in ["a", "git", "server-2", "a_b9"] {
            assert_eq!(Alias::parse(good).unwrap().as_str(), good);
        }
        let long = "a".repeat(ALIAS_CHARS_MAX + 1);
        for bad in ["", "9a", "-a", "A", "a.b", "a b", "ä", "a\u{1b}", long.as_str()] {
            assert_eq!(Alias::parse(bad), Err(InvalidAlias), "{bad:?}");
        }
    }

    /// SPEC 6.4: the alias of a server that nobody named.
    #[test]
    fn of_addresses() {
        let named = |url: &str, taken: &[&str]| {
            let url = url::Url::parse(url).unwrap();
            Alias::of_url(&url, |name| taken.contains(&name)).0
        };
        assert_eq!(named("http://boltzmann.example:8080/mcp", &[]), "boltzmann");
        assert_eq!(named("http://127.0.0.1:8080/mcp", &[]), "mcp");
        assert_eq!(named("http://[::1]/mcp", &["mcp", "mcp-2"]), "mcp-3");
        assert_eq!(named("http://9lives.example/", &[]), "mcp");
        assert_eq!(named("http://Git.example/", &["git"]), "git-2");
    }
}
