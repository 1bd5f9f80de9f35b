//! A line that begins with a word of the grammar: a command if the grammar is there as far as the line goes.
//!
//! Such a line often is the first of several: `if [ -f x ]` lacks its `then`, which comes after Enter. Sentences begin with the
//! same words, so what stands behind must be what the grammar wants there: behind `if` and `while` a command and surely one,
//! behind `for` a name and its list.

use super::expects::{Expects, expects};
use super::judge::{Verdict, arguments};
use super::lex::{Between, Piece, Quotes, Word};
use super::line::{self, Operators, add_operators, command, defined, operators};
use super::start::{Start, is_assignment, is_path, start};
use super::weigh::{Signs, is_common, weigh};
use super::words::{english, is_foreign};
use super::{Guess, Kind, Known, Route, Sure};
use crate::Dialect;

/// How many plain words may follow the command of a condition that has no sign of one.
const PLAIN_WORDS_MAX: u32 = 3;

/// How many names `read` may be given there.
const NAMES_READ_MAX: u32 = 3;

/// From how many plain words on what follows `in` is a list and no place.
const LISTED_MIN: usize = 2;

/// Behind a keyword so many words are looked at for another: each is a step deeper.
const WORDS_WITHIN_MAX: usize = 64;

/// What stands before the command of a condition and changes nothing of what it is.
const BEFORE_CONDITIONS: &[&str] = &["!", "and", "not", "or", "time"];

/// Words behind `function` that are no name: what people ask about functions.
#[rustfmt::skip]
const ABOUT_FUNCTIONS: &[&str] = &[
    "app", "body", "call", "calls", "closure", "closures", "component", "components", "decorator", "decorators",
    "default", "expression", "expressions", "generator", "generators", "handler", "handlers", "hook", "hooks", "inline",
    "key", "keys", "keyword", "lambda", "lambdas", "library", "literal", "literals", "name", "names", "object", "objects",
    "overload", "parameter", "parameters", "pointer", "pointers", "prototype", "prototypes", "purity", "return",
    "returns", "scope", "scopes", "signature", "signatures", "syntax", "template", "templates", "theory", "type",
    "types", "variable", "variables", "wrapper", "wrappers",
];

/// Up to this length a word is rather a name than one of another language, in bytes: `en`, `de`.
const NAME_BYTES_MAX: usize = 3;

/// The line behind its keyword.
struct Line<'l, 'a, K> {
    text: &'a str,
    /// The words behind the keyword, up to the first operator.
    rest: &'l [Word<'a>],
    /// The piece they are in.
    first: &'l Piece<'a>,
    /// What follows that piece.
    after: &'l [Piece<'a>],
    known: &'l K,
}

/// The route of a line whose word at the place `at` is `word`, one of the grammar.
pub(super) fn guess(text: &str, word: &str, at: usize, pieces: &[Piece<'_>], known: &impl Known) -> Guess {
    let is_first = |piece: &Piece<'_>| piece.words.get(at).is_some_and(|found| found.text == word);
    let Some((place, first)) = pieces.iter().enumerate().find(|(_, piece)| is_first(piece)) else {
        return Guess::question(Sure::No, "no command");
    };
    let line = Line {
        text,
        rest: first.words.get(at + 1..).unwrap_or_default(),
        first,
        after: pieces.get(place + 1..).unwrap_or_default(),
        known,
    };
    // As far as the line goes.
    let holds = match word {
        "if" | "while" | "until" => line.condition(word),
        "for" | "select" | "foreach" => line.list(),
        "case" => line.subject(),
        "switch" => line.switch(),
        "function" if pieces.iter().any(|piece| piece.between == Between::OpenGlued) => return defined(text),
        "function" => line.definition(),
        "{" => line.group(),
        "[[" => line.test(),
        "repeat" => line.repeated(),
        "!" | "and" | "or" | "not" | "coproc" | "nocorrect" if line.rest.is_empty() => false,
        "!" | "and" | "or" | "not" | "coproc" | "nocorrect" | "time" | "begin" => {
            let inner = line.rest.first().filter(|_| line.rest.len() <= WORDS_WITHIN_MAX);
            return match inner.map(|word| word.text) {
                Some(inner) if known.kind(inner) == Some(Kind::Keyword) => guess(text, inner, at + 1, pieces, known),
                Some(_) | None => command(text, Kind::Builtin, "time", at, pieces, known),
            };
        }
        _ => false,
    };
    if holds {
        Guess::command(Sure::Yes, "shell syntax")
    } else {
        Guess::question(Sure::No, "a keyword without its syntax")
    }
}

/// Whether `piece`, which stands in parentheses, is a substitution of fish.
pub(super) fn substitutes(piece: &Piece<'_>, known: &impl Known) -> bool {
    if known.dialect() != Some(Dialect::Fish) {
        return false;
    }
    match start(piece, known) {
        Start::Known(Kind::Keyword, ..) | Start::Sentence | Start::Unknown(..) | Start::Empty => false,
        Start::Syntax => true,
        Start::Known(kind, at, head) => {
            let words = piece.words.get(at + 1..).unwrap_or_default();
            let verdict = arguments(kind, head, words, piece, std::slice::from_ref(piece), known, 0);
            matches!(verdict, Verdict::Command(Sure::Yes))
        }
    }
}

impl<'a, K: Known> Line<'_, 'a, K> {
    /// Whether a later piece begins with one of these.
    fn begins(&self, words: &[&str]) -> bool {
        let mut firsts = self.after.iter().filter_map(|piece| piece.words.first());
        firsts.any(|first| words.contains(&first.text))
    }

    fn has(&self, wanted: &str) -> bool {
        self.rest.iter().any(|found| found.text == wanted) || self.begins(&[wanted])
    }

    /// The pieces from the first on.
    fn pieces(&self) -> Vec<Piece<'a>> {
        std::iter::once(self.first).chain(self.after).cloned().collect()
    }

    /// What the words behind the first `skipped` would be as a line.
    fn without(&self, skipped: usize) -> Option<(Route, Sure)> {
        let words = self
            .rest
            .get(skipped..)
            .filter(|words| words.len() <= WORDS_WITHIN_MAX)?;
        let text = self.text.get(words.first()?.start..)?;
        let first = Piece {
            between: Between::Start,
            words: words.to_vec(),
            ..self.first.clone()
        };
        let mut pieces = vec![first];
        pieces.extend(self.after.iter().cloned());
        let Guess { route, sure, .. } = line::guess(text, &pieces, self.known);
        Some((route, sure))
    }

    /// In parentheses, and nothing behind them: a subshell, a list of zsh, a substitution of fish.
    fn in_parentheses(&self) -> Option<&Piece<'a>> {
        let (inner, behind) = self.after.split_first()?;
        let mut outside = behind.iter().skip_while(|piece| piece.between != Between::Close);
        (inner.between == Between::Open && outside.all(|piece| piece.words.is_empty())).then_some(inner)
    }

    /// `if`, `while`, `until`.
    fn condition(&self, keyword: &str) -> bool {
        let bodies: &[&str] = if keyword == "if" {
            &["then", "end"]
        } else {
            &["do", "end"]
        };
        let is_before = |word: &Word<'_>| is_assignment(word.text) || BEFORE_CONDITIONS.contains(&word.text);
        let Some(head) = self.rest.iter().position(|word| !is_before(word)) else {
            let tested = self.in_parentheses();
            return tested.is_some_and(|piece| self.runs(&piece.words));
        };
        let name = self.rest.get(head).map_or("", |word| word.text);
        if self.begins(bodies) {
            // A function of the script may be tested, but hardly one that is called like a word of a sentence.
            return self.known.kind(name).is_some() || !is_common(name);
        }
        let arguments = self.rest.get(head + 1..).unwrap_or_default();
        let is_told = matches!((expects(name), arguments.first()), (Expects::Subcommand(list), Some(first)) if list.contains(&first.text));
        let arguments = arguments.get(usize::from(is_told)..).unwrap_or_default();
        let mut signs = self.weigh(arguments);
        add_operators(&mut signs, self.first, &self.pieces(), self.known);
        if name == "read" {
            let names = signs.plain <= NAMES_READ_MAX && signs.sentence <= signs.content;
            return names && !arguments.is_empty();
        }
        let Some((Route::Command, sure)) = self.without(0) else {
            return false;
        };
        let is_one = match name {
            "true" | "false" | ":" => signs.plain == 0,
            _ if signs.command > 0 || is_told && arguments.is_empty() => true,
            _ => match arguments {
                [] => !is_common(name),
                // One common word is what a tool is told; a verb would say what the tool does.
                [word] if signs.content == 1 => !is_common(name) && !word.text.ends_with('s'),
                _ => signs.content == 0 && signs.plain <= PLAIN_WORDS_MAX,
            },
        };
        is_one && (sure == Sure::Yes || signs.sentence < signs.command)
    }

    /// `for`, `select`: a name and what it stands for.
    fn list(&self) -> bool {
        let Some((name, rest)) = self.rest.split_first() else {
            return false;
        };
        let has_body = self.begins(&["do", "{", "end"]);
        if name.text.starts_with("((") || (rest.is_empty() && has_body) {
            return true;
        }
        let Some((_, items)) = rest.split_first().filter(|(word, _)| word.text == "in") else {
            let is_zsh = self.known.dialect() == Some(Dialect::Zsh) && rest.is_empty();
            let list = self
                .after
                .first()
                .filter(|piece| is_zsh && piece.between == Between::Open);
            return list.is_some_and(|list| self.weigh(&list.words).strong == 0);
        };
        if has_body {
            return true;
        }
        if items.is_empty() {
            let list = self.in_parentheses();
            return list.is_some_and(|list| substitutes(list, self.known));
        }
        let signs = self.weigh(items);
        // What ends in a colon or has parentheses is another language's loop.
        let is_other = items.iter().any(|item| item.text.ends_with(':'))
            || self
                .after
                .iter()
                .any(|piece| piece.between == Between::OpenGlued && !substitutes(piece, self.known));
        if signs.strong > 0 || is_other || self.text.ends_with('?') {
            return false;
        }
        let is_short = name.text.len() == 1;
        let is_listed = items.len() >= LISTED_MIN || is_short;
        let is_number = |word: &Word<'_>| word.text.bytes().all(|byte| byte.is_ascii_digit());
        let is_output = |word: &Word<'_>| {
            let inner = word.text.trim_matches('`');
            let head = inner.split(' ').next().unwrap_or_default();
            inner.len() + 1 < word.text.len() && self.known.kind(head).is_some()
        };
        let is_name = |word: &Word<'_>| word.text.len() <= NAME_BYTES_MAX && english(word.text).is_none();
        let is_plain_list = match (items.len() >= LISTED_MIN, is_short) {
            (true, true) => signs.sentence <= signs.content,
            (true, false) => signs.sentence == 0 || items.iter().all(is_name),
            (false, _) => signs.sentence == 0,
        };
        signs.command > 0
            || items.iter().any(is_output)
            || (is_listed && (items.iter().all(is_number) || is_plain_list))
    }

    /// `case`: something to look at, and `in`.
    fn subject(&self) -> bool {
        let is_in = self.rest.get(1).is_some_and(|found| found.text == "in");
        let subject = self.rest.first();
        let is_expanded = subject.is_some_and(|word| word.quotes == Quotes::Some || word.text.contains('$'));
        let is_followed = self.rest.len() == 2 || self.after.iter().any(|piece| piece.between == Between::Close);
        is_in && ((is_expanded && is_followed) || self.text.contains("esac"))
    }

    /// `switch` of fish.
    fn switch(&self) -> bool {
        let subject = self.rest.first();
        let is_expanded = |word: &Word<'_>| word.quotes == Quotes::Some || word.text.contains('$');
        self.begins(&["case"])
            || (self.rest.len() == 1 && subject.is_some_and(is_expanded))
            || (subject.is_none()
                && self
                    .in_parentheses()
                    .is_some_and(|piece| substitutes(piece, self.known)))
    }

    /// `function` and a name.
    fn definition(&self) -> bool {
        let Some((name, rest)) = self.rest.split_first() else {
            return false;
        };
        if rest.first().is_some_and(|body| body.text == "{") || self.begins(&["end"]) {
            return true;
        }
        let lower = name.text.to_ascii_lowercase();
        let is_name = name.quotes == Quotes::Bare
            && !name.text.ends_with(['?', '!', '.', ',', ':'])
            && english(&lower).is_none()
            && !ABOUT_FUNCTIONS.contains(&lower.as_str())
            && !is_foreign(&lower)
            && lower.is_ascii();
        let is_fish = self.known.dialect() == Some(Dialect::Fish);
        let with_options = is_fish && rest.first().is_some_and(|option| option.text.starts_with('-'));
        let begun = match operators(&self.pieces(), self.known) {
            Operators::None => true,
            Operators::Known => is_fish,
            Operators::Unknown(_) => false,
        };
        is_name && begun && (rest.is_empty() || with_options)
    }

    /// `{` and commands; alone, they are on the next line.
    fn group(&self) -> bool {
        if self.rest.is_empty() {
            return self.text.trim() == "{";
        }
        if self.has("}") {
            return self.runs(self.rest);
        }
        matches!(self.without(0), Some((Route::Command, Sure::Yes)))
    }

    /// `[[`, and what it tests.
    fn test(&self) -> bool {
        let tests = |word: &Word<'_>| word.quotes == Quotes::Some || word.text.starts_with(['-', '$', '!']);
        self.has("]]") || (self.rest.first().is_some_and(tests) && self.weigh(self.rest).strong == 0)
    }

    /// `repeat` of zsh, how often, and what.
    fn repeated(&self) -> bool {
        let often = |word: &Word<'_>| word.text.starts_with('$') || word.text.bytes().all(|byte| byte.is_ascii_digit());
        let is_spoken = self.rest.get(1).is_some_and(|word| word.text == "times");
        self.rest.first().is_some_and(often)
            && !is_spoken
            && (self.rest.len() == 1 || matches!(self.without(1), Some((Route::Command, _))))
    }

    fn runs(&self, words: &[Word<'_>]) -> bool {
        words.first().is_some_and(|word| {
            self.known.kind(word.text).is_some() || is_path(word.text, self.known) || is_assignment(word.text)
        })
    }

    fn weigh(&self, words: &[Word<'_>]) -> Signs {
        weigh(words, Expects::Any, "", self.known)
    }
}
