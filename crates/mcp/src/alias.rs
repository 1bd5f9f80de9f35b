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
        let begins_as_one = label.starts_with(|letter: char| letter.is_ascii_lowercase());
        Self::of_name(if begins_as_one { &label } else { "" }, is_taken)
    }

    /// The alias that is nearest to a name somebody else gave: what cannot be in one becomes a `-`; with `-2`, `-3`, … where
    /// `is_taken`.
    pub fn of_name(name: &str, is_taken: impl Fn(&str) -> bool) -> Self {
        if let Ok(alias) = Self::parse(name)
            && !is_taken(name)
        {
            return alias;
        }
        let mut kept = String::new();
        for letter in name.trim().to_ascii_lowercase().chars() {
            if is_alias_letter(letter) && letter != '-' {
                kept.push(letter);
            } else if !kept.ends_with('-') {
                kept.push('-');
            }
        }
        let mut base = kept.trim_start_matches(['-', '_']).to_owned();
        if !base.starts_with(|letter: char| letter.is_ascii_lowercase()) {
            base = format!("{ALIAS_OF_ADDRESS}-{base}");
        }
        // Room for a number is left. All of it is ASCII by now.
        base.truncate(ALIAS_CHARS_MAX - 4);
        let base = base.trim_end_matches(['-', '_']);
        let mut name = base.to_owned();
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

    /// SPEC 6.9: names that other clients gave their servers.
    #[test]
    fn of_names() {
        let named = |name: &str, taken: &[&str]| Alias::of_name(name, |name| taken.contains(&name)).0;
        for (name, alias) in [
            ("git", "git"),
            ("My Server", "my-server"),
            ("io.github.user/weather", "io-github-user-weather"),
            ("2nd server!", "mcp-2nd-server"),
            ("a_b - c", "a_b-c"),
            ("a--b", "a--b"),
            ("日本", "mcp"),
            ("", "mcp"),
            ("\u{1b}[31mred", "mcp-31mred"),
        ] {
            let made = named(name, &[]);
            assert!(Alias::parse(&made).is_ok());
            assert_eq!(made, alias, "{name:?}");
        }
        assert_eq!(named("git", &["git", "git-2"]), "git-3");
        let long = named(&"x".repeat(100), &[]);
        assert_eq!(long.len(), ALIAS_CHARS_MAX - 4);
        assert!(Alias::parse(&named(&"x".repeat(100), &[long.as_str()])).is_ok());
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
