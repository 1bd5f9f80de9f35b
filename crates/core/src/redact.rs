//! Secrets do not leave (SPEC 10.5): wherever text goes anywhere but to the provider it belongs to, keys and tokens
//! become `[redacted:NAME]`.
//!
//! Two kinds are known: values the program was given (a key from the environment) or came by while it ran (the token of a
//! login), replaced wherever they appear, and words that have the shape of well-known tokens.

use std::borrow::Cow;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

/// The beginning of every placeholder; a write that carries one is refused.
pub const PLACEHOLDER_START: &str = "[redacted:";

/// Values shorter than this are not taken for secrets: replacing them would ruin ordinary text.
pub const SECRET_CHARS_MIN: usize = 8;

/// Values of one name that are learnt; the oldest make room. Tokens are replaced every few minutes, and every text is
/// searched for each that is known.
const LEARNT_PER_NAME_MAX: usize = 32;

/// Beginnings of well-known tokens, what they are called, and how many characters follow at least.
const TOKEN_SHAPES: &[(&str, &str, usize)] = &[
    ("sk-", "api-key", 20),
    ("ghp_", "github-token", 30),
    ("gho_", "github-token", 30),
    ("ghs_", "github-token", 30),
    ("github_pat_", "github-token", 30),
    ("glpat-", "gitlab-token", 18),
    ("xoxb-", "slack-token", 20),
    ("xoxp-", "slack-token", 20),
    ("AKIA", "aws-key", 16),
    ("AIza", "google-key", 30),
    ("hf_", "hf-token", 30),
];

/// Replaces secrets in text. Clones share what they know: what one learns, all replace from then on.
#[derive(Clone, Default)]
pub struct Redactor {
    known: Arc<RwLock<Known>>,
}

/// The values that are replaced.
#[derive(Default)]
struct Known {
    /// The longest first: one secret may hold another.
    secrets: Vec<KnownSecret>,
    /// How many were learnt so far.
    learnt: u64,
}

/// One value.
struct KnownSecret {
    name: String,
    value: String,
    /// The how manieth it was to be learnt; `None` for one that was known from the beginning, which stays known.
    learnt: Option<u64>,
}

impl Redactor {
    /// Knows token shapes and these values, each with the name it is shown by.
    pub fn new(secrets: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut known = Known::default();
        for (name, value) in secrets {
            known.add(name, value, None);
        }
        Self {
            known: Arc::new(RwLock::new(known)),
        }
    }

    /// Knows one more value from now on, as do all clones: a token that came while the program runs. Of one name the last few
    /// dozen values stay known.
    pub fn learn(&self, name: &str, value: &str) {
        if value.len() < SECRET_CHARS_MIN || self.known().has(value) {
            return;
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.learnt += 1;
        let learnt = Some(known.learnt);
        known.make_room(name);
        known.add(name.to_owned(), value.to_owned(), learnt);
    }

    /// The text without its secrets.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let text = self.redact_values(text);
        if TOKEN_SHAPES.iter().any(|(start, _, _)| text.contains(start)) {
            return Cow::Owned(redact_shapes(&text));
        }
        text
    }

    /// The text without the values that are known; words that only look like tokens stay.
    pub fn redact_values<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for KnownSecret { name, value, .. } in &self.known().secrets {
            if text.contains(value.as_str()) {
                text = Cow::Owned(text.replace(value.as_str(), &format!("{PLACEHOLDER_START}{name}]")));
            }
        }
        text
    }

    /// Bytes of the longest value that is known, 0 for none.
    pub fn longest_len(&self) -> usize {
        self.known().secrets.first().map_or(0, |longest| longest.value.len())
    }

    /// Secrets are exchanged whole: a poisoned lock guards a whole list.
    fn known(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Redactor {
    /// Bytes at the beginning of a text that streams in which nothing that follows can change: the rest may yet become a
    /// secret and is not to be shown before more of it is there.
    pub fn settled_len(&self, text: &str) -> usize {
        let mut settled = text.len();
        let known = self.known();
        for KnownSecret { value, .. } in &known.secrets {
            settled = settled.min(text.len() - begun_len(text, value));
        }
        let (before, word) = text.split_at(text.rfind(|c| !in_word(c)).map_or(0, |at| at + last_len(text, at)));
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
        if before.ends_with(['\\', '[', ';']) && is_number {
            // The beginning of an escape, whose last letter is not the next word's first.
            settled = settled.min(before.len() - 1);
        }
        let escape = usize::from(before.ends_with('\\'));
        let colour = word
            .find('m')
            .filter(|at| word.bytes().take(*at).all(|byte| byte.is_ascii_digit()));
        for offset in [0, escape, colour.map_or(0, |at| at + 1)] {
            let Some(tail) = word.get(offset..).filter(|tail| !tail.is_empty()) else {
                continue;
            };
            if TOKEN_SHAPES
                .iter()
                .any(|(start, _, _)| start.starts_with(tail) || tail.starts_with(start))
            {
                settled = settled.min(before.len() + offset);
            }
        }
        // A secret that is all there must not be parted by what may be the beginning of another.
        while let Some(start) = known.secret_around(text, settled) {
            settled = start;
        }
        settled
    }
}

impl Known {
    fn has(&self, value: &str) -> bool {
        self.secrets.iter().any(|known| known.value == value)
    }

    fn add(&mut self, name: String, value: String, learnt: Option<u64>) {
        if value.len() < SECRET_CHARS_MIN || self.has(&value) {
            return;
        }
        let place = self.secrets.partition_point(|known| known.value.len() >= value.len());
        self.secrets.insert(place, KnownSecret { name, value, learnt });
    }

    /// Forgets the oldest of that name that was learnt, where there are too many.
    fn make_room(&mut self, name: &str) {
        let learnt = self.secrets.iter().filter(|known| known.name == name);
        let learnt: Vec<u64> = learnt.filter_map(|known| known.learnt).collect();
        if learnt.len() >= LEARNT_PER_NAME_MAX {
            let oldest = learnt.into_iter().min();
            self.secrets
                .retain(|known| known.learnt.is_none() || known.learnt != oldest);
        }
    }

    /// Where a secret begins that stands before and behind this place.
    fn secret_around(&self, text: &str, place: usize) -> Option<usize> {
        // To prepare a search takes longer than to search a short piece of a stream.
        let mut fitting = self.secrets.iter().filter(|known| known.value.len() <= text.len());
        fitting.find_map(|KnownSecret { value, .. }| {
            let mut around = text.match_indices(value.as_str()).map(|(at, _)| at);
            around.find(|at| *at < place && place < at + value.len())
        })
    }
}

/// Bytes at the end of a text with which a value begins that is longer than that.
fn begun_len(text: &str, value: &str) -> usize {
    let (text, value) = (text.as_bytes(), value.as_bytes());
    let longest = value.len().saturating_sub(1).min(text.len());
    let mut tail = text.get(text.len() - longest..).unwrap_or_default();
    while let Some((first, rest)) = tail.split_first() {
        // Most places are passed over at the first letter: this runs for every piece of every stream.
        if value.first() == Some(first) && value.starts_with(tail) {
            return tail.len();
        }
        tail = rest;
    }
    0
}

/// Bytes of the character at that place.
fn last_len(text: &str, at: usize) -> usize {
    text.get(at..)
        .and_then(|rest| rest.chars().next())
        .map_or(0, char::len_utf8)
}

fn in_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} secrets)", self.known().secrets.len())
    }
}

fn redact_shapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c| !in_word(c)).unwrap_or(rest.len());
        let (mut word, after) = rest.split_at(end);
        // In JSON text a line break is `\n`: its letter is not the word's first.
        if out.ends_with('\\')
            && let Some(at) = word.find(|c: char| !matches!(c, 'b' | 'f' | 'n' | 'r' | 't'))
            && at <= 1
        {
            let (escape, tail) = word.split_at(at);
            out.push_str(escape);
            word = tail;
        }
        // Coloured output: `\x1b[1;32m` ends in a letter that is not the word's first either.
        if out.ends_with(['[', ';'])
            && let Some((_, tail)) = word
                .split_once('m')
                .filter(|(digits, _)| digits.bytes().all(|byte| byte.is_ascii_digit()))
        {
            out.push_str(word.strip_suffix(tail).unwrap_or_default());
            word = tail;
        }
        let shape = TOKEN_SHAPES
            .iter()
            .find(|(start, _, least)| word.strip_prefix(start).is_some_and(|tail| tail.len() >= *least));
        match shape {
            Some((_, name, _)) => {
                out.push_str(PLACEHOLDER_START);
                out.push_str(name);
                out.push(']');
            }
            None => out.push_str(word),
        }
        let next = after.find(in_word).unwrap_or(after.len());
        let (between, tail) = after.split_at(next);
        out.push_str(between);
        rest = tail;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 10.5: of a text that streams only what may become a secret is held back.
    #[test]
    fn settles() {
        let redactor = Redactor::new([("DESK_KEY".to_owned(), "hunter2hunter2".to_owned())]);
        for (text, settled) in [
            ("an ordinary word", "an ordinary word"),
            ("a word and hunter2", "a word and "),
            ("a word and hunter2hunter2", "a word and "),
            ("a word and hunter3", "a word and hunter3"),
            ("token ghp_abc", "token "),
            ("token ghp_abc ", "token ghp_abc "),
            ("a task-", "a task-"),
            ("é g", "é "),
            ("x\\", "x"),
            ("x\\nghp_a", "x\\n"),
            ("\x1b[3", "\x1b"),
            ("\x1b[32mgh", "\x1b[32m"),
            ("", ""),
        ] {
            assert_eq!(text.get(..redactor.settled_len(text)), Some(settled), "{text:?}");
        }
    }

    /// SPEC 10.5: known values and token shapes are replaced, ordinary words are not.
    #[test]
    fn redacts() {
        let redactor = Redactor::new([
            ("DESK_KEY".to_owned(), "hunter2hunter2".to_owned()),
            ("X".into(), "ab".into()),
        ]);
        let token = format!("ghp_{}", "a1".repeat(18));
        assert_eq!(redactor.redact("k=hunter2hunter2, ab"), "k=[redacted:DESK_KEY], ab");
        assert_eq!(redactor.redact(&format!("({token})")), "([redacted:github-token])");
        assert_eq!(
            redactor.redact("sk-learn is a package; task-force"),
            "sk-learn is a package; task-force"
        );
        let escaped = format!(r#"{{"a":"b\n{token}","c":"\\n{token}"}}"#);
        let expect = r#"{"a":"b\n[redacted:github-token]","c":"\\n[redacted:github-token]"}"#;
        assert_eq!(redactor.redact(&escaped), expect);
        let coloured = format!("\x1b[1;32m{token}\x1b[0m");
        assert_eq!(redactor.redact(&coloured), "\x1b[1;32m[redacted:github-token]\x1b[0m");
        assert!(!format!("{redactor:?}").contains("hunter2"));
    }

    /// SPEC 10.5: what is learnt while the program runs is replaced by every clone, longer ones first; a flood of them pushes
    /// out its own only.
    #[test]
    fn learns() {
        let redactor = Redactor::new([("DESK_KEY".to_owned(), "hunter2hunter2".to_owned())]);
        let clone = redactor.clone();
        redactor.learn("token of a", "hunter2hunter2-and-more");
        assert_eq!(
            clone.redact("hunter2hunter2-and-more hunter2hunter2"),
            "[redacted:token of a] [redacted:DESK_KEY]"
        );
        assert_eq!(clone.longest_len(), "hunter2hunter2-and-more".len());
        assert_eq!(clone.settled_len("it is hunter2hunter2-and-m"), "it is ".len());
        redactor.learn("short", "seven77");
        for number in 0..=LEARNT_PER_NAME_MAX {
            clone.learn("token of b", &format!("flood-{number:05}"));
        }
        let text = "flood-00000 flood-00001 hunter2hunter2-and-more seven77";
        assert_eq!(
            redactor.redact(text),
            "flood-00000 [redacted:token of b] [redacted:token of a] seven77"
        );
    }
}
