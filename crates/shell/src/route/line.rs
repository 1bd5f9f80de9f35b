//! One line: what its first word makes of it, and what stands after `|`, `&&` and the like.

use super::expects::{Expects, expects};
use super::judge::{Verdict, arguments};
use super::keyword::{self, substitutes};
use super::lex::{Between, Piece, Word};
use super::mistyped::{replaced, unknown};
use super::start::{Start, is_assignment, start};
use super::weigh::{Signs, is_common, weigh};
use super::{Guess, Kind, Known, Sure};
use crate::Dialect;

/// Points for operators between commands that exist.
pub(super) const OPERATORS: u32 = 6;

/// Points for a redirection.
const REDIRECTION: u32 = 4;

/// Points for a substitution of fish.
const SUBSTITUTION: u32 = 2;

/// Points for a parenthesis after words.
const ASIDE: u32 = 5;

/// Points for an operator at the end.
const NOTHING_AFTER: u32 = 2;

/// The route of one line, `text`, cut into `pieces`.
pub(super) fn guess(text: &str, pieces: &[Piece<'_>], known: &impl Known) -> Guess {
    let Some(first) = pieces
        .iter()
        .find(|piece| !piece.words.is_empty() || piece.redirections > 0)
    else {
        return Guess::question(Sure::No, "only signs");
    };
    if text.starts_with("<?") || (text.starts_with('<') && !matches!(start(first, known), Start::Known(..))) {
        return Guess::question(Sure::No, "no command");
    }
    match start(first, known) {
        Start::Empty => alone(first, pieces, known),
        Start::Syntax => syntax(text, first, pieces, known),
        Start::Sentence => Guess::question(Sure::Yes, "no command begins like this"),
        Start::Known(Kind::Keyword, at, word) => keyword::guess(text, word, at, pieces, known),
        Start::Known(kind, at, word) => command(text, kind, word, at, pieces, known),
        Start::Unknown(at, word) => unknown(text, word, at, pieces, known),
    }
}

/// Assignments or redirections and nothing to run.
fn alone(first: &Piece<'_>, pieces: &[Piece<'_>], known: &impl Known) -> Guess {
    if first.words.is_empty() && first.redirected_first {
        let others = pieces.iter().filter(|piece| !piece.words.is_empty()).count();
        return if others == 0 {
            Guess::command(Sure::No, "a redirection")
        } else {
            Guess::question(Sure::No, "quoted text")
        };
    }
    match operators(pieces, known) {
        Operators::Unknown(_) => Guess::question(Sure::No, "what follows is no command"),
        Operators::None | Operators::Known => Guess::command(Sure::Yes, "an assignment"),
    }
}

/// A path, a variable or the like first.
fn syntax(text: &str, first: &Piece<'_>, pieces: &[Piece<'_>], known: &impl Known) -> Guess {
    let assigned = first.words.iter().take_while(|word| is_assignment(word.text)).count();
    let arguments = first.words.get(assigned + 1..).unwrap_or_default();
    let head = first.words.get(assigned).map_or("", |word| word.text);
    let expected = if head.starts_with('/') {
        expects(head)
    } else {
        Expects::Any
    };
    let mut signs = weigh(arguments, expected, head, known);
    add_operators(&mut signs, first, pieces, known);
    if expected == Expects::Prose {
        return Guess::command(Sure::Yes, "begins with a path or shell syntax");
    }
    let code = head.starts_with('`') && (text.ends_with('?') || signs.strong > 0);
    let asked = code || (text.ends_with('?') && arguments.is_empty() && !head.starts_with("./"));
    if asked || signs.sentence > signs.command + 2 {
        return Guess::question(Sure::No, "a sentence about a path or variable");
    }
    let is_file = known.is_path(head) && !head.contains('/');
    if is_file && !arguments.is_empty() && signs.command == 0 {
        return Guess::question(Sure::No, "a sentence about a file");
    }
    Guess::command(Sure::Yes, "begins with a path or shell syntax")
}

/// What the pieces after the first begin with.
pub(super) enum Operators<'a> {
    /// There are none.
    None,
    /// All begin as commands do.
    Known,
    /// This one does not.
    Unknown(Option<Word<'a>>),
}

/// What the pieces after the first that has words begin with.
pub(super) fn operators<'a>(pieces: &[Piece<'a>], known: &impl Known) -> Operators<'a> {
    let mut found = Operators::None;
    let mut first = true;
    for piece in pieces {
        if piece.words.is_empty() {
            continue;
        }
        if std::mem::take(&mut first) {
            continue;
        }
        match (piece.between, start(piece, known)) {
            (Between::Open | Between::OpenGlued, _) if substitutes(piece, known) => {}
            // More of a word of fish, or its next arguments.
            (Between::Close, _) if known.dialect() == Some(Dialect::Fish) => {}
            (Between::OpenGlued, _) => return Operators::Unknown(None),
            (_, Start::Unknown(at, _)) => return Operators::Unknown(piece.words.get(at).copied()),
            (_, Start::Sentence) => return Operators::Unknown(None),
            (Between::Operator | Between::Newline, Start::Empty | Start::Syntax | Start::Known(..)) => {
                found = Operators::Known
            }
            (Between::Start | Between::Open | Between::Close, Start::Empty | Start::Syntax | Start::Known(..)) => {}
        }
    }
    found
}

/// Adds to `signs` what stands around the words of `first`: redirections, operators, parentheses.
pub(super) fn add_operators(signs: &mut Signs, first: &Piece<'_>, pieces: &[Piece<'_>], known: &impl Known) {
    signs.command += REDIRECTION * u32::try_from(first.redirections.min(2)).unwrap_or_default();
    // Neither bash nor zsh has a parenthesis after words; sentences do. In fish it may be a substitution.
    for two in pieces.windows(2) {
        match two {
            [before, after] if after.between == Between::Open && !before.words.is_empty() => {
                if substitutes(after, known) {
                    signs.command += SUBSTITUTION;
                } else {
                    signs.sentence += ASIDE;
                    break;
                }
            }
            _ => {}
        }
    }
    match operators(pieces, known) {
        Operators::Known => signs.command += OPERATORS,
        // A backgrounded command or one that ends with `;` has nothing after it.
        Operators::None
            if pieces.len() > 1 && pieces.iter().skip(1).all(|piece| piece.between == Between::Operator) =>
        {
            signs.command += NOTHING_AFTER;
        }
        Operators::None | Operators::Unknown(_) => {}
    }
}

/// A known command first.
pub(super) fn command(
    text: &str,
    kind: Kind,
    word: &str,
    at: usize,
    pieces: &[Piece<'_>],
    known: &impl Known,
) -> Guess {
    let Some(first) = pieces.iter().find(|piece| piece.words.len() > at) else {
        return Guess::question(Sure::No, "no command");
    };
    // `print(…)`, `git(1)`; but `greet() { …`.
    let glued = |piece: &Piece<'_>| piece.between == Between::OpenGlued && !substitutes(piece, known);
    if pieces.iter().any(glued) {
        return defined(text);
    }
    let mut verdict = arguments(
        kind,
        word,
        first.words.get(at + 1..).unwrap_or_default(),
        first,
        pieces,
        known,
        0,
    );
    if let Verdict::Mistyped(bad, better) = verdict {
        return replaced(text, &bad, &better);
    }
    if let (Verdict::Command(_), Operators::Unknown(Some(bad))) = (&verdict, operators(pieces, known)) {
        if let Some(better) = known.near(bad.text).filter(|_| !is_common(bad.text)) {
            return replaced(text, &bad, &better);
        }
        if is_common(bad.text) {
            verdict = Verdict::Question(Sure::No);
        }
    }
    match verdict {
        Verdict::Command(sure) => Guess::command(sure, "a command the shell knows"),
        Verdict::Question(sure) => Guess::question(sure, "a sentence that begins with the name of a command"),
        Verdict::Mistyped(..) => Guess::question(Sure::No, "no command"),
    }
}

/// `name()` before a body defines a function; other text that touches a parenthesis is code or a manual page.
pub(super) fn defined(text: &str) -> Guess {
    let empty = text.split_once('(').is_some_and(|(name, rest)| {
        let rest = rest.trim_start();
        let words = name.trim_start_matches("function ").split_whitespace().count();
        words == 1
            && !name.contains(['"', '\'', '.'])
            && rest
                .strip_prefix(')')
                .is_some_and(|body| body.trim_start().starts_with(['{', '(']))
    });
    let javascript = text.starts_with("function") && text.contains(';') && text.contains("return ");
    if empty && !javascript {
        Guess::command(Sure::Yes, "defines a function")
    } else {
        Guess::question(Sure::No, "code of another language")
    }
}
