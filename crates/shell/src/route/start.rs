//! How a simple command begins: with a word the shell knows, a path, syntax, or something that no shell begins with.

use super::lex::{Piece, Quotes};
use super::{Kind, Known};

/// How the piece of a line begins.
pub(super) enum Start<'a> {
    /// With nothing, or assignments and redirections only.
    Empty,
    /// With a word that is known, at this place.
    Known(Kind, usize, &'a str),
    /// With syntax or a path that only a shell has.
    Syntax,
    /// With a word nothing is known of, at this place.
    Unknown(usize, &'a str),
    /// With what no shell begins with.
    Sentence,
}

/// How `piece` begins.
pub(super) fn start<'a>(piece: &Piece<'a>, known: &impl Known) -> Start<'a> {
    let assigned = piece.words.iter().take_while(|word| is_assignment(word.text)).count();
    let Some(word) = piece.words.get(assigned) else {
        return Start::Empty;
    };
    let text = word.text;
    if text == "." {
        return Start::Known(Kind::Builtin, assigned, text);
    }
    if word.quotes == Quotes::Some && text.starts_with(['"', '\'', '`', '$', '(', '<']) {
        return quoted_start(text, piece.words.len(), known);
    }
    if let Some(kind) = known.kind(text) {
        return Start::Known(kind, assigned, text);
    }
    if let Some(bare) = text.strip_prefix('\\').filter(|bare| known.kind(bare).is_some()) {
        return Start::Known(Kind::Program, assigned, bare);
    }
    if is_path(text, known) {
        return Start::Syntax;
    }
    let first = text.as_bytes().first().copied().unwrap_or_default();
    let second = text.as_bytes().get(1).copied().unwrap_or_default();
    match first {
        b'$' if second.is_ascii_alphabetic() || matches!(second, b'_' | b'{' | b'(') => Start::Syntax,
        b'(' if text.starts_with("((") && text.ends_with("))") => Start::Syntax,
        b'^' if text.matches('^').count() >= 2 && text.len() > 3 => Start::Syntax,
        b'%' if second.is_ascii_alphanumeric() || matches!(second, b'?' | b'-' | b'+' | b'%') => Start::Syntax,
        b'}' if text.len() == 1 => Start::Empty,
        _ if text.contains('@') || text.ends_with(['$', '#']) => Start::Sentence,
        _ if first.is_ascii_alphabetic() && !text.ends_with([':', ',', '!', '?']) => Start::Unknown(assigned, text),
        _ if first == b'_' => Start::Unknown(assigned, text),
        _ => Start::Sentence,
    }
}

/// A first word with quotes: a command if what is in them is one.
fn quoted_start<'a>(text: &'a str, words: usize, known: &impl Known) -> Start<'a> {
    if text.starts_with("$(") || text.starts_with("${") || (text.starts_with("((") && text.ends_with("))")) {
        return Start::Syntax;
    }
    let bare = text.trim_matches(['"', '\'', '`']);
    let path = known.is_path(bare) || (bare.contains('/') && !bare.contains("://")) || bare.starts_with('$');
    let exists = path && !text.starts_with('`');
    let runs = known.kind(bare).is_some() && !text.starts_with('`');
    let substituted = text.starts_with('`')
        && text.ends_with('`')
        && words > 1
        && bare.split(' ').next().is_some_and(|word| known.kind(word).is_some());
    if exists || runs || substituted {
        Start::Syntax
    } else {
        Start::Sentence
    }
}

/// Whether `text` is a path as only a shell has it first in a line.
pub(super) fn is_path(text: &str, known: &impl Known) -> bool {
    if text.ends_with([':', ',', '?']) || text.contains("://") {
        return false;
    }
    let (rooted, parts) = (
        text.starts_with('/'),
        text.split('/').filter(|part| !part.is_empty()).count(),
    );
    text.starts_with("./")
        || text.starts_with("../")
        || text.starts_with("~/")
        || (rooted && (parts > 1 || known.is_path(text)))
        || ((text.contains('/') || matches!(text, "~" | "..")) && (known.is_path(text) || !text.contains('/')))
}

/// Whether `text` gives a variable a value, as `A=1`, `a+=1` or `a[0]=1`.
pub(super) fn is_assignment(text: &str) -> bool {
    let Some((name, _)) = text.split_once('=') else {
        return false;
    };
    let name = name.strip_suffix('+').unwrap_or(name);
    let name = name.split_once('[').map_or(name, |(name, _)| name);
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
