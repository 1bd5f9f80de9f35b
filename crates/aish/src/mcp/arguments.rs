//! The arguments of a server's program as they may be shown: people write keys into them (SPEC 6.3, 10.5).

use aish_core::secret::Secret;
use aish_provider::http::is_secret_name;

/// The words, with the values of those that are named like a secret taken out: `--token X`, `--api-key=X`, `API_KEY=X`.
pub fn shown(words: &[String]) -> Vec<String> {
    let mut is_value_of_secret = false;
    words
        .iter()
        .map(|word| {
            let was_named = std::mem::take(&mut is_value_of_secret);
            if was_named && !word.starts_with('-') {
                return Secret::REDACTED.to_owned();
            }
            match word.split_once('=') {
                Some((name, value)) if names_secret(name) && !value.is_empty() => {
                    format!("{name}={}", Secret::REDACTED)
                }
                Some(_) => word.clone(),
                None => {
                    is_value_of_secret = word.starts_with('-') && names_secret(word);
                    word.clone()
                }
            }
        })
        .collect()
}

/// An option or a variable, not a path that happens to have such a word in it.
fn names_secret(name: &str) -> bool {
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    is_name && is_secret_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 6.3, 10.5: values are hidden, names and everything else stay.
    #[test]
    fn values_are_hidden() {
        let check = |words: &str, expect: &str| {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            assert_eq!(
                shown(&words).join(" "),
                expect.replace("***", Secret::REDACTED),
                "{words:?}"
            );
        };
        check("s --token ABC x", "s --token *** x");
        check("s --api-key=ABC", "s --api-key=***");
        check("env API_KEY=ABC s", "env API_KEY=*** s");
        check("s --password --verbose", "s --password --verbose");
        check("s --token-file=", "s --token-file=");
        check("node ./token=x/server.js key", "node ./token=x/server.js key");
        check("s --repository . -v", "s --repository . -v");
    }
}
