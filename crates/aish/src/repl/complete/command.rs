//! What completes in a command line: names, variables and paths, and what the user's shell offers for the rest.

use super::ask::{Offer, Spelling};
use super::path::{From, Only, paths};
use super::typed::{Place, Quote, Typed, Word, escaped, typed};
use crate::shell::known::Knowledge;
use aish_core::sanitize::{is_hostile, single_line};
use aish_shell::route::{Kind, Known as _};

/// One completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Where what it replaces begins, in bytes.
    pub start: usize,
    /// What stands there instead.
    pub value: String,
    /// What is shown of it; all of it, where nothing is said.
    pub shown: Option<String>,
    /// What it is.
    pub help: String,
    /// What follows it.
    pub end: End,
}

/// What follows a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The next word.
    Space,
    /// More of the same: within a directory, of an argument.
    Open,
}

impl Candidate {
    /// One of a line of ours.
    pub fn of_ours((value, help): (String, String)) -> Self {
        Self {
            start: 0,
            end: if value.ends_with(['/', '.', ':', '=']) {
                End::Open
            } else {
                End::Space
            },
            value,
            shown: None,
            help,
        }
    }

    fn of_path(word: &Word, value: String) -> Self {
        let shown = value.get(word.directory.typed_bytes..).unwrap_or(&value).to_owned();
        Self {
            start: word.start,
            end: if value.ends_with('/') { End::Open } else { End::Space },
            shown: (word.directory.typed_bytes > 0).then_some(shown),
            value,
            help: String::new(),
        }
    }
}

/// What a shell is asked to complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asking {
    /// The command up to the cursor.
    pub line: String,
    /// Its words without their quotes, the one being typed last.
    pub words: Vec<String>,
    /// Where that one begins in the command.
    pub start: usize,
    /// What is meant.
    pub what: What,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Whatever the command takes there.
    Arguments,
    /// Names of variables; the last word is the beginning of one.
    Variables,
}

impl Asking {
    /// Whether the answer to this one holds the answer to `other`: the same word, with more of it typed.
    pub fn covers(&self, other: &Self) -> bool {
        let (Some(before), Some(typed)) = (self.line.get(..self.start), self.line.get(self.start..)) else {
            return false;
        };
        let more = other
            .line
            .strip_prefix(before)
            .and_then(|rest| rest.strip_prefix(typed));
        self.what == other.what
            && self.start == other.start
            && more.is_some_and(|more| !more.contains(['/', '=', ':', ',', '\'', '"', '\\', '$']))
    }
}

/// Whether a line that is a question by now may yet become a command: its first word does not end, or is one.
pub fn may_be_command(line: &str, known: &Knowledge) -> bool {
    let line = line.trim_start();
    match line.split_once(char::is_whitespace) {
        None => !line.starts_with('@'),
        Some((first, rest)) => {
            // What is no command yet may be one that is not known yet.
            let may_run = known.kind(first).is_some() || !known.is_complete();
            may_run && !rest.rsplit(' ').next().unwrap_or(rest).starts_with('@')
        }
    }
}

/// What is known without the shell, and what it is to be asked: what it says comes before what is known.
pub fn local(text: &str, from: From<'_>, known: &Knowledge) -> (Vec<Candidate>, Option<Asking>) {
    let typed = typed(text);
    let Some(word) = typed.words.last() else {
        return (Vec::new(), None);
    };
    let raw = text.get(word.start..).unwrap_or_default();
    let paths_of = |only: Only| -> Vec<Candidate> {
        let paths = paths(word, raw, from, only).into_iter();
        paths.map(|path| Candidate::of_path(word, path)).collect()
    };
    if let Some(name) = open_variable(raw, word) {
        return (Vec::new(), Some(asking(text, &typed, What::Variables, name)));
    }
    match typed.place {
        Place::File => (paths_of(Only::Anything), None),
        Place::Command if word.value.contains('/') => (paths_of(Only::Programs), None),
        Place::Command => (names(word, known), None),
        Place::Argument => {
            let command = typed.words.first().map_or("", |word| word.value.as_str());
            let only = match command {
                "cd" | "pushd" | "rmdir" => Only::Directories,
                _ => Only::Anything,
            };
            (paths_of(only), Some(asking(text, &typed, What::Arguments, &word.value)))
        }
    }
}

fn asking(text: &str, typed: &Typed, what: What, last: &str) -> Asking {
    let before = typed.words.iter().take(typed.words.len().saturating_sub(1));
    let mut words: Vec<String> = before.map(|word| word.value.clone()).collect();
    words.push(last.to_owned());
    let start = typed.words.last().map_or(0, |word| word.start);
    Asking {
        line: text.get(typed.start..).unwrap_or_default().to_owned(),
        words,
        start: start.saturating_sub(typed.start),
        what,
    }
}

/// The name of the variable a word ends in.
fn open_variable<'a>(raw: &'a str, word: &Word) -> Option<&'a str> {
    if word.quote == Quote::Single {
        return None;
    }
    let (before, name) = raw.rsplit_once('$')?;
    let name = name.strip_prefix('{').unwrap_or(name);
    let is_name = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    (is_name && !before.ends_with('\\')).then_some(name)
}

fn names(word: &Word, known: &Knowledge) -> Vec<Candidate> {
    // Of nothing typed there would be everything.
    if word.value.is_empty() {
        return Vec::new();
    }
    let names = known.names_with(&word.value).into_iter();
    let names = names.filter(|(name, _)| !name.chars().any(is_hostile));
    let candidates = names.map(|(name, kind)| Candidate {
        start: word.start,
        value: name,
        shown: None,
        help: match kind {
            Kind::Builtin => "builtin",
            Kind::Keyword => "keyword",
            Kind::Function => "function",
            Kind::Alias => "alias",
            Kind::Program => "",
        }
        .to_owned(),
        end: End::Space,
    });
    candidates.collect()
}

/// What the shell offered for the end of `text`, as far as it goes on with what was typed. A name that is a directory ends in `/`.
pub fn of_shell(text: &str, from: From<'_>, offers: &[Offer]) -> Vec<Candidate> {
    let typed = typed(text);
    let Some(word) = typed.words.last() else {
        return Vec::new();
    };
    let raw = text.get(word.start..).unwrap_or_default();
    let candidates = offers.iter().filter_map(|offer| {
        if offer.value.is_empty() || offer.value.chars().any(is_hostile) {
            return None;
        }
        let is_directory =
            offer.spelling == Spelling::Name && !offer.value.ends_with('/') && from.has_directory(&offer.value);
        let (start, value, shown) = match offer.spelling {
            Spelling::Name if is_directory => name_offered(word, raw, &format!("{}/", offer.value))?,
            Spelling::Name => name_offered(word, raw, &offer.value)?,
            Spelling::Text => text_offered(word, raw, &offer.value)?,
            Spelling::Variable => variable_offered(word, raw, &offer.value)?,
        };
        Some(Candidate {
            start,
            end: if is_directory { End::Open } else { offer.end },
            value,
            shown,
            help: single_line(&offer.help).into_owned(),
        })
    });
    let mut candidates: Vec<Candidate> = candidates.collect();
    if offers.iter().all(|offer| offer.spelling == Spelling::Name) {
        candidates.sort_unstable_by(|a, b| a.value.cmp(&b.value));
    }
    candidates
}

/// A name without quotes: it is written as the word was begun.
fn name_offered(word: &Word, raw: &str, name: &str) -> Option<(usize, String, Option<String>)> {
    if !name.starts_with(&word.value) {
        return None;
    }
    let (folder, last) = name.split_at_checked(word.directory.value_bytes)?;
    // What is hidden is offered to who typed a dot.
    if last.starts_with('.') && word.value.len() == word.directory.value_bytes {
        return None;
    }
    let before = raw.get(..word.directory.typed_bytes)?;
    let (opening, quote) = match word.directory.quote {
        Quote::None => (word.quote.mark(), word.quote),
        quote @ (Quote::Single | Quote::Double) => ("", quote),
    };
    let closing = if last.ends_with('/') { "" } else { quote.mark() };
    let value = format!("{before}{opening}{}{closing}", escaped(last, quote));
    Some((word.start, value, (!folder.is_empty()).then(|| last.to_owned())))
}

/// Text that stands as it is: for the whole word, or for what follows its `=` or `:`.
fn text_offered(word: &Word, raw: &str, text: &str) -> Option<(usize, String, Option<String>)> {
    if text.starts_with(raw) {
        return Some((word.start, text.to_owned(), None));
    }
    let at = raw.rfind(['=', ':', ',', '/']).map(|at| at + 1).unwrap_or_default();
    let rest = raw.get(at..)?;
    // An open quote is no part of what is completed.
    let rest_at = rest.trim_start_matches(['"', '\'']);
    let at = raw.len() - rest_at.len();
    text.starts_with(rest_at).then(|| {
        let closing = if word.quote == Quote::None {
            ""
        } else {
            word.quote.mark()
        };
        (word.start + at, format!("{text}{closing}"), None)
    })
}

/// The name of a variable.
fn variable_offered(word: &Word, raw: &str, name: &str) -> Option<(usize, String, Option<String>)> {
    let typed = open_variable(raw, word)?;
    let at = raw.len() - typed.len();
    let closing = if raw.get(..at).is_some_and(|before| before.ends_with('{')) {
        "}"
    } else {
        ""
    };
    name.starts_with(typed)
        .then(|| (word.start + at, format!("{name}{closing}"), None))
}
