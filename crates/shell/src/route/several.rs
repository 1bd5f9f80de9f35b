//! Several lines: a script if each line of them is a command, a question otherwise: what was pasted with its output, or with a
//! sentence before it, is for the model.

use super::expects::Expects;
use super::lex::{Between, Piece};
use super::line;
use super::start::{self, Start};
use super::weigh::{is_common, weigh};
use super::{Guess, Known, Sure};

/// One unknown word in so many lines may be a function that the script defines.
const LINES_PER_UNKNOWN: usize = 3;

/// How many lines are looked at for the marks of another language.
const LINES_LOOKED_AT_MAX: usize = 40;

/// The route of `text`, which is several lines, cut into `pieces`.
pub(super) fn guess(text: &str, pieces: &[Piece<'_>], known: &impl Known) -> Guess {
    if text.lines().take(LINES_LOOKED_AT_MAX).any(is_python) && !text.contains("<<") {
        return pasted();
    }
    let mut lines = 0_usize;
    let mut unknown = 0_usize;
    let mut in_case = false;
    for (at, piece) in pieces.iter().enumerate() {
        if piece.words.is_empty() {
            continue;
        }
        lines += 1;
        let head = piece.words.first().map_or("", |word| word.text);
        in_case = (in_case || head == "case") && head != "esac";
        let named = piece.words.len() == 1 || head == "function";
        let function = named
            && pieces
                .get(at + 1)
                .is_some_and(|next| next.between == Between::OpenGlued && next.words.is_empty());
        if in_case || function || is_block(head) {
            continue;
        }
        match start::start(piece, known) {
            _ if piece.between == Between::OpenGlued => return pasted(),
            Start::Sentence => return pasted(),
            Start::Unknown(place, word) => {
                let signs = weigh(
                    piece.words.get(place + 1..).unwrap_or_default(),
                    Expects::AnyEnglish,
                    "",
                    known,
                );
                if is_common(word) || signs.sentence > 0 || lines == 1 {
                    return pasted();
                }
                unknown += 1;
            }
            Start::Known(..) if is_sentence(text, piece, known) => return pasted(),
            Start::Known(..) | Start::Syntax | Start::Empty => {}
        }
    }
    if unknown * LINES_PER_UNKNOWN > lines {
        pasted()
    } else {
        Guess::command(Sure::Yes, "several lines of shell")
    }
}

/// Whether `line` opens a block as Python does, where a shell has no colon.
fn is_python(line: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or_default().trim_end_matches(':');
    let opens = [
        "class", "def", "elif", "else", "except", "for", "if", "try", "while", "with",
    ]
    .contains(&first);
    opens && line.trim_end().ends_with(':')
}

fn pasted() -> Guess {
    Guess::question(Sure::Yes, "several lines that are not all commands")
}

/// Words of the grammar that begin lines within a construct.
fn is_block(word: &str) -> bool {
    matches!(
        word,
        "for"
            | "while"
            | "until"
            | "if"
            | "then"
            | "else"
            | "elif"
            | "fi"
            | "do"
            | "done"
            | "case"
            | "esac"
            | "{"
            | "}"
            | "function"
            | "select"
            | "end"
            | "in"
            | "[["
    )
}

/// Whether `piece` alone would be a question.
fn is_sentence(text: &str, piece: &Piece<'_>, known: &impl Known) -> bool {
    let alone = Piece {
        between: Between::Start,
        ..piece.clone()
    };
    let from = piece.words.first().map_or(0, |word| word.start);
    let to = piece.words.last().map_or(from, |word| word.start + word.text.len());
    let typed = text.get(from..to).unwrap_or_default();
    line::guess(typed, &[alone], known).route == super::Route::Question
}
