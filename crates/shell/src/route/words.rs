//! What a single word tells: of which language's sentences it is part, if any.

mod english;
mod foreign;

/// What an English word tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum English {
    /// It is part of a sentence: `the`, `why`, `doesn't`.
    Strong,
    /// It is probably: `in`, `today`.
    Weak,
    /// Something is said to fail or asked to be explained: `hangs`, `vs`.
    Trouble,
    /// A common noun, verb or adjective.
    Content,
}

/// How many other languages with Latin letters there are words of.
pub(super) const LANGUAGES: usize = foreign::LANGUAGES.len();

/// The longest ending that makes an unlisted word a common one is much shorter than this; in bytes.
const DERIVED_WORD_BYTES_MIN: usize = 7;

/// The shortest word whose plural is known by its ending, in bytes.
const PLURAL_OF_BYTES_MIN: usize = 4;

/// Endings of English words, which names seldom have.
const ENDINGS: &[&str] = &[
    "ing", "tion", "tions", "ness", "ment", "ments", "able", "ible", "ally", "edly", "ously", "ize", "ized", "ise",
    "ised", "ify",
];

/// Beginnings that turn a common verb into its contrary or its repetition.
const BEGINNINGS: &[&str] = &["un", "de", "re"];

/// What `word`, in lower case and without punctuation, is in English.
pub(super) fn english(word: &str) -> Option<English> {
    let is_in = |list: &[&str]| list.binary_search(&word).is_ok();
    let derived =
        || word.len() >= DERIVED_WORD_BYTES_MIN && is_letters(word) && ENDINGS.iter().any(|end| word.ends_with(end));
    if is_in(english::STRONG) {
        Some(English::Strong)
    } else if is_in(english::WEAK) {
        Some(English::Weak)
    } else if is_in(english::TROUBLE) {
        Some(English::Trouble)
    } else if is_in(english::CONTENT) || plural(word).is_some_and(is_in_content) || is_contrary(word) || derived() {
        Some(English::Content)
    } else {
        None
    }
}

fn is_in_content(word: &str) -> bool {
    english::CONTENT.binary_search(&word).is_ok()
}

/// Whether `word` is a common one turned: `unmount`, `decompress`, `rebuild`.
fn is_contrary(word: &str) -> bool {
    let verb = |beginning: &str| {
        word.strip_prefix(beginning)
            .is_some_and(|verb| verb.len() >= PLURAL_OF_BYTES_MIN && is_in_content(verb))
    };
    BEGINNINGS.iter().any(|beginning| verb(beginning))
}

/// What `word` is the plural of, if it is one.
fn plural(word: &str) -> Option<&str> {
    word.strip_suffix('s')
        .filter(|one| one.len() >= PLURAL_OF_BYTES_MIN && !one.ends_with('s'))
}

/// Counts `word`, in lower case, for each language that has it as a word of sentences.
pub(super) fn count_foreign(word: &str, counts: &mut [u8; LANGUAGES]) {
    // One letter is a file more often than a word.
    if word.len() < 2 {
        return;
    }
    for (count, list) in counts.iter_mut().zip(foreign::LANGUAGES) {
        if list.binary_search(&word).is_ok() {
            *count = count.saturating_add(1);
        }
    }
}

/// Whether `word` joins nouns: what a command that takes files or nothing never has between its arguments.
pub(super) fn is_preposition(word: &str) -> bool {
    matches!(
        word,
        "to" | "in" | "on" | "for" | "from" | "with" | "by" | "at" | "as" | "over"
    )
}

/// Whether `word` makes a line a sentence whatever else is in it.
pub(super) fn is_decisive(word: &str) -> bool {
    matches!(word, "vs" | "versus" | "please" | "pls" | "plz" | "explained")
}

/// Whether `word`, in lower case, is a word of sentences in another language.
pub(super) fn is_foreign(word: &str) -> bool {
    foreign::LANGUAGES.iter().any(|list| list.binary_search(&word).is_ok())
}

fn is_letters(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// Whether `word` has letters of a script other than Latin.
pub(super) fn is_other_script(word: &str) -> bool {
    word.chars().any(|character| {
        character >= '\u{370}' && character.is_alphabetic() && !('\u{1e00}'..='\u{1eff}').contains(&character)
    })
}

#[cfg(test)]
mod tests {
    use super::{english, foreign, is_other_script};

    /// SPEC 8.1: words are looked up by halving, which needs order.
    #[test]
    fn lists_are_sorted() {
        let english = [english::STRONG, english::WEAK, english::TROUBLE, english::CONTENT];
        for list in english.iter().chain(foreign::LANGUAGES) {
            assert!(list.is_sorted_by(|one, next| one < next), "{:?}", list.first());
            assert!(list.iter().all(|word| word.to_lowercase() == **word));
        }
    }

    /// SPEC 8.1: scripts are told apart.
    #[test]
    fn scripts() {
        for word in ["файл", "文档", "ファイル", "파일", "ملف", "फ़ाइल", "אין", "αρχείο"]
        {
            assert!(is_other_script(word), "{word}");
        }
        for word in ["größe", "señal", "không", "naïve", "ls", "👍", "…"] {
            assert!(!is_other_script(word), "{word}");
        }
    }
}
