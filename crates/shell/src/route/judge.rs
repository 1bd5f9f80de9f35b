//! The words after a known command: its arguments, or the rest of a sentence that begins with its name.

use super::expects::{Expects, expects};
use super::lex::{Piece, Quotes, Word};
use super::line::add_operators;
use super::start::{Start, is_assignment, start};
use super::weigh::{Signs, is_common, weigh};
use super::words::{english, is_foreign};
use super::{Kind, Known, Sure};

/// How many points apart a sentence and a command must be for a guess that is sure.
const MARGIN_SURE: u32 = 3;

/// How many commands may be nested in one another, as in `sudo nice time make`.
const WRAPPED_MAX: usize = 6;

/// What a command with its arguments is.
pub(super) enum Verdict<'a> {
    Command(Sure),
    Question(Sure),
    /// This word was meant to be that one.
    Mistyped(Word<'a>, String),
}

/// Judges the words after a known command.
pub(super) fn arguments<'a>(
    kind: Kind,
    head: &str,
    words: &[Word<'a>],
    first: &Piece<'a>,
    pieces: &[Piece<'a>],
    known: &impl Known,
    depth: usize,
) -> Verdict<'a> {
    let expected = match kind {
        Kind::Function | Kind::Alias => Expects::Any,
        Kind::Builtin | Kind::Keyword | Kind::Program => expects(head),
    };
    if words.is_empty()
        && depth == 0
        && pieces.iter().all(|piece| piece.words.len() <= 1)
        && matches!(head, "yes" | "continue")
    {
        return if pieces.len() == 1 {
            Verdict::Question(Sure::No)
        } else {
            Verdict::Command(Sure::Yes)
        };
    }
    if matches!(words, [am, i] if head == "who" && matches!(am.text, "am" | "mom") && matches!(i.text, "i" | "I" | "likes"))
    {
        return Verdict::Command(Sure::Yes);
    }
    let own_wrapper = kind == Kind::Alias && words.first().is_some_and(|word| known.kind(word.text).is_some());
    if (expected == Expects::Wrapped || own_wrapper) && depth < WRAPPED_MAX {
        return wrapped(head, words, first, pieces, known, depth);
    }
    if head == "[" && words.iter().all(|word| word.text != "]") || waits_for_quote(words) {
        return Verdict::Question(Sure::No);
    }
    let mut signs = weigh(words, expected, head, known);
    add_operators(&mut signs, first, pieces, known);
    // `go` has no aliases, and is a word that many sentences begin with.
    if let Expects::Subcommand(list) = expected
        && head == "go"
        && words
            .first()
            .is_some_and(|word| !list.contains(&word.text) && !word.text.starts_with('-'))
    {
        signs.sentence += MARGIN_SURE;
    }
    let allowed = allowance(expected, kind, head, words, &signs);
    if signs.sentence > signs.command + allowed {
        let sure = if signs.sentence > signs.command + allowed + MARGIN_SURE {
            Sure::Yes
        } else {
            Sure::No
        };
        return Verdict::Question(sure);
    }
    Verdict::Command(
        if signs.sentence + MARGIN_SURE > signs.command + allowed && signs.sentence > 0 {
            Sure::No
        } else {
            Sure::Yes
        },
    )
}

/// Whether an apostrophe is left that a shell would take for a quote and wait for the other.
fn waits_for_quote(words: &[Word<'_>]) -> bool {
    let open = words
        .iter()
        .filter(|word| word.quotes == Quotes::Bare && !word.text.contains('\\'));
    open.map(|word| word.text.matches('\'').count()).sum::<usize>() % 2 == 1
}

/// How many points of a sentence the arguments of such a command may have.
fn allowance(expected: Expects, kind: Kind, head: &str, words: &[Word<'_>], signs: &Signs) -> u32 {
    let english = english(head).is_some();
    match expected {
        Expects::Prose => u32::MAX / 2,
        Expects::Words | Expects::Names => 1,
        Expects::Files | Expects::Hosts => u32::from(!english),
        Expects::Pattern => u32::from(signs.command > 0),
        Expects::FilesOnly
        | Expects::Script
        | Expects::Wrapped
        | Expects::Commands
        | Expects::Numbers
        | Expects::Nothing => 0,
        Expects::Targets => u32::from(words.len() == 1),
        Expects::Subcommand(list) => {
            let known = words.first().is_some_and(|word| list.contains(&word.text));
            let may_be_alias = words.len() == 1 && signs.content == 0 && matches!(head, "cargo" | "gh" | "git" | "hg");
            u32::from(known || may_be_alias || (words.len() > 1 && head != "git"))
        }
        Expects::Any if matches!(kind, Kind::Function | Kind::Alias) => 4,
        Expects::Any if is_foreign(head) => u32::from(signs.plain == 0),
        Expects::Any => 2,
        Expects::AnyEnglish => 0,
    }
}

/// Judges what `sudo`, `time` and the like are given.
fn wrapped<'a>(
    head: &str,
    words: &[Word<'a>],
    first: &Piece<'a>,
    pieces: &[Piece<'a>],
    known: &impl Known,
    depth: usize,
) -> Verdict<'a> {
    let mut at = 0;
    let mut after_option = false;
    while let Some(word) = words.get(at) {
        let number = word.text.starts_with(|c: char| c.is_ascii_digit());
        let value = after_option && known.kind(word.text).is_none() && !is_common(word.text);
        after_option = word.text.starts_with('-') && word.text != "--";
        if !(after_option || number || value || is_assignment(word.text) || word.text == "--") {
            break;
        }
        at += 1;
    }
    let Some(word) = words.get(at) else {
        return Verdict::Command(Sure::Yes);
    };
    let rest = words.get(at + 1..).unwrap_or_default();
    let options = at > 0;
    if word.text.starts_with("!!") || word.text.starts_with("!$") {
        return Verdict::Command(Sure::Yes);
    }
    let inner = Piece {
        between: first.between,
        words: words.get(at..).unwrap_or_default().to_vec(),
        ..first.clone()
    };
    match start(&inner, known) {
        Start::Syntax | Start::Empty => Verdict::Command(Sure::Yes),
        Start::Known(Kind::Keyword, _, text) if !matches!(text, "!" | "time" | "[[" | "{") => {
            Verdict::Question(Sure::No)
        }
        Start::Known(kind, _, text) => arguments(kind, text, rest, first, pieces, known, depth + 1),
        Start::Sentence if word.quotes == Quotes::Some => Verdict::Command(Sure::Yes),
        Start::Sentence => Verdict::Question(Sure::Yes),
        Start::Unknown(_, text) => {
            let sentence = weigh(rest, Expects::Any, "", known);
            let near = known.near(text).filter(|_| !is_common(text));
            if let Some(better) = near {
                let kind = known.kind(&better).unwrap_or(Kind::Program);
                let plain = sentence.sentence == 0 || matches!(head, "sudo" | "doas");
                if plain
                    && matches!(
                        arguments(kind, &better, rest, first, pieces, known, depth + 1),
                        Verdict::Command(_)
                    )
                {
                    return Verdict::Mistyped(*word, better);
                }
            }
            if is_common(text) || sentence.sentence > sentence.command {
                return Verdict::Question(if sentence.strong > 0 { Sure::Yes } else { Sure::No });
            }
            match head {
                "time" | "watch" | "nice" | "command" | "exec" | "env" if !options && sentence.command == 0 => {
                    Verdict::Question(Sure::No)
                }
                _ if options || head == "sudo" || sentence.command > 0 || rest.is_empty() => Verdict::Command(Sure::No),
                _ => Verdict::Question(Sure::No),
            }
        }
    }
}
