//! What a `WWW-Authenticate` header asks for (RFC 9110 section 11.6.1, RFC 6750 section 3, RFC 9728 section 5.1).

/// Scopes of one list, and bytes of one scope.
const SCOPES_MAX: usize = 64;
const SCOPE_BYTES_MAX: usize = 200;

/// The challenge for a bearer token. Everything is the server's, bounded and not believed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Challenge {
    /// Where the server describes itself.
    pub(crate) resource_metadata: Option<String>,
    /// What a token must allow.
    pub(crate) scopes: Vec<String>,
    /// Why the token was refused, e.g. `insufficient_scope`.
    pub(crate) error: Option<String>,
}

impl Challenge {
    /// Reads a header; what is no challenge for a bearer token is passed over.
    pub(crate) fn read(header: &str) -> Self {
        let mut challenge = Self::default();
        let mut is_bearer = false;
        let mut rest = header;
        loop {
            rest = rest.trim_start_matches([' ', '\t', ',']);
            let (word, after) = token(rest);
            if word.is_empty() {
                let Some(odd) = rest.chars().next() else {
                    return challenge;
                };
                rest = rest.get(odd.len_utf8()..).unwrap_or_default();
                continue;
            }
            let Some(value) = after.trim_start().strip_prefix('=') else {
                is_bearer = word.eq_ignore_ascii_case("bearer");
                rest = after;
                continue;
            };
            let (value, after) = value_of(value.trim_start());
            if is_bearer {
                challenge.take(word, value);
            }
            rest = after;
        }
    }

    fn take(&mut self, name: &str, value: String) {
        match name.to_ascii_lowercase().as_str() {
            "resource_metadata" => self.resource_metadata = Some(value),
            "scope" => self.scopes = scopes_in(&value),
            "error" => self.error = Some(value),
            _ => {}
        }
    }
}

/// The scopes in a list with blanks between (RFC 6749 section 3.3), without what cannot be one.
pub(super) fn scopes_in(list: &str) -> Vec<String> {
    scopes_of(list.split_ascii_whitespace())
}

/// The same of words, each once.
pub(super) fn scopes_of<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let is_scope = |word: &&str| {
        let is_printable = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
        !word.is_empty() && word.len() <= SCOPE_BYTES_MAX && word.bytes().all(is_printable)
    };
    let mut scopes: Vec<String> = Vec::new();
    for word in words.into_iter().filter(is_scope) {
        if scopes.len() < SCOPES_MAX && !scopes.iter().any(|scope| scope == word) {
            scopes.push(word.to_owned());
        }
    }
    scopes
}

/// The token that a text begins with, and the rest.
fn token(text: &str) -> (&str, &str) {
    let is_end = |letter: char| !letter.is_ascii_alphanumeric() && !"!#$%&'*+-.^_`|~".contains(letter);
    text.split_at(text.find(is_end).unwrap_or(text.len()))
}

/// A parameter's value, quoted or not, and the rest.
fn value_of(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        // Servers leave the quotes of addresses out.
        let (value, rest) = text.split_at(text.find([',', ' ', '\t']).unwrap_or(text.len()));
        return (value.to_owned(), rest);
    };
    let mut value = String::new();
    let mut letters = quoted.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (value, quoted.get(at + 1..).unwrap_or_default()),
            '\\' => value.extend(letters.next().map(|(_, escaped)| escaped)),
            other => value.push(other),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 6.3: what a server asks for is read whatever stands around it.
    #[test]
    fn challenges() {
        let plain = Challenge::read(
            r#"Bearer realm="a, b", error="insufficient_scope", scope="one two", resource_metadata="https://h/x""#,
        );
        assert_eq!(plain.resource_metadata.as_deref(), Some("https://h/x"));
        assert_eq!(plain.scopes, ["one", "two"]);
        assert_eq!(plain.error.as_deref(), Some("insufficient_scope"));
        let among = Challenge::read(
            r#"Basic scope="no", Negotiate abc==, bearer resource_metadata=https://h/y , Digest scope="no""#,
        );
        assert_eq!(among.resource_metadata.as_deref(), Some("https://h/y"));
        assert_eq!(among.scopes, Vec::<String>::new());
        for nothing in [
            "",
            "Bearer",
            ",,,",
            "=",
            "\"",
            "Bearer scope",
            "Bearer scope=",
            "Bearer scope=\"a\\",
            "ä=\u{1b}",
        ] {
            assert_eq!(Challenge::read(nothing).resource_metadata, None, "{nothing}");
        }
    }

    /// SPEC 12: scopes are bounded, and only what the grammar allows.
    #[test]
    fn scopes() {
        assert_eq!(scopes_in("a a  b \u{1b}[1m c\"d é"), ["a", "b"]);
        let many: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
        assert_eq!(scopes_in(&many.join(" ")).len(), SCOPES_MAX);
        assert!(scopes_in(&"x".repeat(10_000)).is_empty());
    }
}
