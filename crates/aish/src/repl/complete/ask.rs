//! What the user's shell is asked to complete, and how its answer is read.
//!
//! Each shell runs a line that nobody sees and that changes nothing: bash calls the function or list that was registered for the
//! command, in a subshell; zsh edits a line on a terminal of its own; fish has a command for it. What is printed is a line each,
//! `text` or `text<tab>help`, below headings that say how it is to be taken: `#n` names, `#t` text, `#v` variables, a space behind
//! them each, `#n-`, `#t-` and `#v-` without. `#.` ends it.

use super::command::{Asking, End, What};
use aish_command::Grammar;
use aish_shell::ANSWER_BYTES_MAX;

/// The longest line of an answer that is read, in bytes.
const OFFER_BYTES_MAX: usize = 4_096;

/// One thing the shell offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// It.
    pub value: String,
    /// What it is, if the shell says so.
    pub help: String,
    /// How it is to be taken.
    pub spelling: Spelling,
    /// What follows it.
    pub end: End,
}

/// How an offer is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// A name, perhaps with characters that mean something to a shell.
    Name,
    /// As it stands on a command line.
    Text,
    /// The name of a variable, without `$`.
    Variable,
}

/// The line that asks.
pub fn question(asking: &Asking, grammar: Grammar) -> String {
    let last = asking.words.last().map_or("", String::as_str);
    match (asking.what, grammar) {
        (What::Variables, Grammar::Bash) => {
            format!("\\builtin printf '#v-\\n'; \\builtin compgen -v -- {}", quoted(last))
        }
        (What::Variables, Grammar::Zsh) => {
            format!("\\builtin print -rl -- '#v-' ${{(kM)parameters:#{}*}}", quoted(last))
        }
        (What::Variables, Grammar::Fish) => {
            let pattern = fish_quoted(&format!("^{last}"));
            format!("builtin echo '#v-'; builtin set --names | builtin string match --regex --entire -- {pattern}")
        }
        (What::Arguments, Grammar::Bash) => bash(asking),
        (What::Arguments, Grammar::Zsh) => zsh(asking),
        (What::Arguments, Grammar::Fish) => format!(
            "builtin echo '#t'; builtin complete --escape --do-complete={}",
            fish_quoted(&asking.line)
        ),
    }
}

/// What bash runs, behind what it is given.
const BASH: &str = include_str!("ask/bash.sh");
/// What zsh runs, behind what it is given.
const ZSH: &str = include_str!("ask/zsh.zsh");

fn bash(asking: &Asking) -> String {
    // As bash cuts words at Tab: `--color=au` is three.
    let mut words: Vec<&str> = Vec::new();
    for word in &asking.words {
        match word.split_once('=') {
            Some((name, value)) if name.starts_with('-') => words.extend([name, "=", value]),
            Some(_) | None => words.push(word),
        }
    }
    if words.last() == Some(&"") && asking.words.last().is_some_and(|word| word.ends_with('=')) {
        words.pop();
    }
    let name = words.first().copied().unwrap_or_default();
    let current = match words.last() {
        Some(&"=") | None => "",
        Some(last) => last,
    };
    let previous = words.len().checked_sub(2).and_then(|at| words.get(at)).copied();
    let list: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    let begin = format!(
        "COMP_LINE={}; COMP_POINT=${{#COMP_LINE}}; COMP_WORDS=({}); COMP_CWORD={}; COMP_TYPE=9; COMP_KEY=9; COMPREPLY=(); \
         COMP_WORDBREAKS=$' \\t\\n\"\\'><=;|&('; export COMP_LINE COMP_POINT COMP_TYPE COMP_KEY; __aish_n={}; __aish_c={}; __aish_p={}",
        quoted(&asking.line),
        list.join(" "),
        words.len().saturating_sub(1),
        quoted(name),
        quoted(current),
        quoted(previous.unwrap_or_default()),
    );
    one_line(&begin, BASH)
}

fn zsh(asking: &Asking) -> String {
    one_line(&format!("__aish_line={}", quoted(&asking.line)), ZSH)
}

/// A script as one line that changes nothing: the shell reads it as it reads what a person types, which is no place for comments.
fn one_line(begin: &str, script: &str) -> String {
    let mut text = begin.to_owned();
    for line in script.lines().filter(|line| !line.trim_start().starts_with('#')) {
        text.push('\n');
        text.push_str(line);
    }
    format!("( \\builtin eval {} ) 2>/dev/null </dev/null", ansi_quoted(&text))
}

/// A word in single quotes, as bash and zsh read it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Several lines as one word of bash.
fn ansi_quoted(text: &str) -> String {
    let text = text
        .replace('\\', r"\\")
        .replace('\'', r"\'")
        .replace('\n', r"\n")
        .replace('\t', r"\t");
    format!("$'{text}'")
}

/// A word in single quotes, as fish reads it.
fn fish_quoted(word: &str) -> String {
    format!("'{}'", word.replace('\\', r"\\").replace('\'', r"\'"))
}

/// Reads what was printed. What is before the first heading is no answer, and neither is one that was cut: what all have in common
/// is not known then.
pub fn offers(output: &[u8]) -> Vec<Offer> {
    if u64::try_from(output.len()).is_ok_and(|bytes| bytes >= ANSWER_BYTES_MAX) {
        return Vec::new();
    }
    let mut heading = None;
    let mut offers: Vec<Offer> = Vec::new();
    for line in output.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let Some(line) = std::str::from_utf8(line)
            .ok()
            .filter(|line| line.len() <= OFFER_BYTES_MAX)
        else {
            continue;
        };
        if line == "#." {
            break;
        }
        if let Some(known) = heading_of(line) {
            heading = Some(known);
            continue;
        }
        let Some((spelling, end)) = heading else {
            continue;
        };
        let (value, help) = line.split_once('\t').unwrap_or((line, ""));
        // Some say with a space that nothing more belongs to it.
        let text = value.trim_end_matches(' ');
        let end = match (text.len() < value.len(), text.ends_with(['/', '='])) {
            (true, _) => End::Space,
            (false, true) => End::Open,
            (false, false) => end,
        };
        let is_new = !offers.iter().rev().take(1).any(|offer| offer.value == text);
        if !text.is_empty() && is_new {
            offers.push(Offer {
                value: text.to_owned(),
                help: help.to_owned(),
                spelling,
                end,
            });
        }
    }
    offers
}

fn heading_of(line: &str) -> Option<(Spelling, End)> {
    let (mark, end) = match line.strip_suffix('-') {
        Some(mark) => (mark, End::Open),
        None => (line, End::Space),
    };
    match mark {
        "#n" => Some((Spelling::Name, end)),
        "#t" => Some((Spelling::Text, end)),
        "#v" => Some((Spelling::Variable, end)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
