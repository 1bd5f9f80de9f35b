//! Which fields seem to ask for what no form may ask for (2025-11-25: "MUST NOT … request sensitive information").
//!
//! Going by words alone, this takes some fields for secrets that are none: the person is warned once more than needed, and a
//! value is left out of the ledger. The other mistake would be the worse one.

use super::Field;

/// What gives a secret away wherever it stands in a name or a title, be it within a longer word.
const PARTS: [&str; 9] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "credential",
    "privatekey",
    "pincode",
];
/// What does so as a word, or as two that stand side by side; within longer words it means something else (`shopping`).
const WORDS: [&str; 18] = [
    "pwd",
    "passcode",
    "pin",
    "otp",
    "totp",
    "2fa",
    "mfa",
    "cvv",
    "cvc",
    "ssn",
    "mnemonic",
    "seedphrase",
    "securitycode",
    "verificationcode",
    "accesscode",
    "onetime",
    "socialsecurity",
    "cardnumber",
];

/// What does so in a name or a title only: a sentence has other uses for it.
const LABEL_WORDS: [&str; 2] = ["pass", "recovery"];

impl Field {
    /// Whether it seems to ask for what must not be typed into a form: by its name, its title or what it says of itself.
    pub fn asks_for_secret(&self) -> bool {
        let in_label = |text: &str| {
            let letters = letters_of(text);
            PARTS.iter().any(|part| letters.contains(part))
                || names_secret(text)
                || words_of(text).iter().any(|word| LABEL_WORDS.contains(&word.as_str()))
        };
        in_label(&self.name) || in_label(&self.title) || names_secret(&self.description)
    }
}

/// Whether one of its words, or two side by side, is the name of a secret.
fn names_secret(text: &str) -> bool {
    let words = words_of(text);
    let is_secret = |word: &str| {
        let one = word.strip_suffix('s').unwrap_or(word);
        let is_listed = |listed: &&str| *listed == word || *listed == one;
        WORDS.iter().any(&is_listed) || PARTS.iter().any(is_listed)
    };
    let pairs = words.iter().zip(words.iter().skip(1));
    words.iter().any(|word| is_secret(word)) || pairs.into_iter().any(|(a, b)| is_secret(&format!("{a}{b}")))
}

fn letters_of(text: &str) -> String {
    let letters = text.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// The words of a text in small letters: of `cvcCode`, `CVCCode`, `cvc_code` and `CVC code` the same two.
fn words_of(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    let mut words = vec![String::new()];
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| letters.get(at));
        let is_hump = letter.is_uppercase()
            && (before.is_some_and(|it| it.is_lowercase()) || {
                let goes_on_small = letters.get(at + 1).is_some_and(|next| next.is_lowercase());
                goes_on_small && before.is_some_and(|it| it.is_uppercase())
            });
        if is_hump || !letter.is_alphanumeric() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphanumeric()) {
            word.extend(letter.to_lowercase());
        }
    }
    // A number behind a word says which one of several: `pin2`.
    let numbered = words
        .iter()
        .map(|word| word.trim_end_matches(|c: char| c.is_ascii_digit()));
    numbered.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}
