//! A first word that nothing is known of: nearly a command, a command that is not there, or a sentence.

use super::expects::{Expects, expects};
use super::judge::{Verdict, arguments};
use super::lex::{Between, Piece, Word};
use super::line::{OPERATORS, Operators, add_operators, defined, operators};
use super::weigh::{begins_sentence, is_common, weigh};
use super::words::{english, is_foreign};
use super::{Guess, Kind, Known, Sure};

/// The longest option that is taken for one without the space before it, in bytes: `mkdir-p`, but not `git-rebase`.
const OPTION_BYTES_MAX: usize = 4;

/// How much a command a line must be whose first word is a capitalised one of English.
const SHOUTED_POINTS_MIN: u32 = 3;

/// How many plain words, none of them common, may follow a word that is nearly a command.
const TYPED_WORDS_MAX: u32 = 2;

/// A first word that nothing is known of.
pub(super) fn unknown(text: &str, word: &str, at: usize, pieces: &[Piece<'_>], known: &impl Known) -> Guess {
    let Some((first, typed)) = pieces.iter().find_map(|piece| Some((piece, *piece.words.get(at)?))) else {
        return Guess::question(Sure::No, "no command");
    };
    if pieces.iter().any(|piece| piece.between == Between::OpenGlued)
        || text
            .get(word.len()..)
            .is_some_and(|rest| rest.trim_start().starts_with("()"))
    {
        return defined(text);
    }
    let rest = first.words.get(at + 1..).unwrap_or_default();
    let hyphenated = known.near(word).is_some_and(|near| near.contains('-'));
    if let Some(instead) = parted(text, &typed, known).filter(|_| !hyphenated) {
        return Guess::mistyped(instead, "a space is missing");
    }
    if !word.is_ascii() {
        return Guess::question(Sure::Yes, "no command the shell knows");
    }
    let lower = word.to_ascii_lowercase();
    let shouted = lower != word;
    let near = if shouted && known.kind(&lower).is_some() {
        Some(lower)
    } else {
        known.near(word)
    };
    let mut signs = weigh(rest, Expects::Any, word, known);
    add_operators(&mut signs, first, pieces, known);
    if text.starts_with('(') || text.ends_with(':') {
        return Guess::question(Sure::No, "no command the shell knows");
    }
    if begins_sentence(word) && !(signs.command >= OPERATORS && signs.sentence == 0) {
        let sure = if rest.is_empty() { Sure::No } else { Sure::Yes };
        return Guess::question(sure, "begins as a sentence does");
    }
    if let Some(better) = near {
        let meant = expects(&better);
        let follows =
            matches!(meant, Expects::Subcommand(list) if rest.first().is_some_and(|word| list.contains(&word.text)));
        let verb = follows && better.as_bytes().first() == word.as_bytes().first();
        let keyword = known.kind(&better) == Some(Kind::Keyword);
        let in_words = rest.iter().any(|word| is_foreign(word.text) && word.text.len() > 1);
        let believable = (!is_common(word) && (!in_words || signs.command > 0))
            || verb
            || (shouted && !keyword && signs.sentence == 0);
        let sentence = signs.content > 0 || in_words || signs.plain > TYPED_WORDS_MAX;
        let anything = follows || matches!(meant, Expects::Prose | Expects::Names | Expects::Wrapped);
        let talk = rest.len() > 1 && signs.command == 0 && sentence && !anything;
        let english = english(&better).is_some();
        let typed_so = signs.command >= SHOUTED_POINTS_MIN || matches!(better.as_str(), "exit" | "clear" | "ls");
        let shouted_word = shouted && (english || rest.is_empty()) && !typed_so;
        if believable && !talk && !shouted_word && better != "for" && better != "in" {
            let kind = known.kind(&better).unwrap_or(Kind::Program);
            if let Verdict::Command(_) = arguments(kind, &better, rest, first, pieces, known, 0) {
                return mend(text, &typed, &better, pieces, known);
            }
        }
    }
    let written_as_command =
        signs.command >= 3 && signs.strong == 0 && signs.sentence < signs.command && !is_common(word) && !shouted;
    if written_as_command {
        return Guess::command(Sure::No, "written as a command, though nothing of that name is known");
    }
    let sure = if signs.sentence > signs.command {
        Sure::Yes
    } else {
        Sure::No
    };
    Guess::question(sure, "no command the shell knows")
}

/// Replaces the first word and, if the line is still mistyped then, the next that is.
fn mend(text: &str, typed: &Word<'_>, better: &str, pieces: &[Piece<'_>], known: &impl Known) -> Guess {
    // The later one first: the place of the earlier stays what it was.
    let mended = match operators(pieces, known) {
        Operators::Unknown(Some(bad)) => known.near(bad.text).map(|meant| spliced(text, &bad, &meant)),
        Operators::Unknown(None) | Operators::None | Operators::Known => None,
    };
    replaced(mended.as_deref().unwrap_or(text), typed, better)
}

/// The guess that in `text` `better` was meant by `bad`.
pub(super) fn replaced(text: &str, bad: &Word<'_>, better: &str) -> Guess {
    Guess::mistyped(spliced(text, bad, better), "nearly a command the shell knows")
}

/// `text` with `better` in the place of `bad`.
fn spliced(text: &str, bad: &Word<'_>, better: &str) -> String {
    let before = text.get(..bad.start).unwrap_or_default();
    let after = text.get(bad.start + bad.text.len()..).unwrap_or_default();
    format!("{before}{better}{after}")
}

/// `cd..`, `ls-la`: a known command that lacks the space after it.
fn parted(text: &str, word: &Word<'_>, known: &impl Known) -> Option<String> {
    let at = word.text.find(|c: char| !c.is_ascii_alphanumeric())?;
    let (name, rest) = word.text.split_at_checked(at)?;
    let path = rest.starts_with(['.', '/', '~']) && matches!(name, "cd" | "ls");
    let option = rest.starts_with('-') && rest.len() <= OPTION_BYTES_MAX;
    (known.kind(name).is_some() && (path || option)).then(|| spliced(text, word, &format!("{name} {rest}")))
}
