//! What the user's shell is asked to complete, and how its answer is read.
//!
//! Each shell runs a line that nobody sees and that changes nothing: bash calls the function or list that was registered for the
//! command, in a subshell; fish has a command for it. What is printed is a line each, `text` or `text<tab>help`, below headings
//! that say how it is to be taken: `#n` names, `#t` text, `#v` variables, a space behind them each, `#n-`, `#t-` and `#v-` without.

use super::command::{Asking, End, What};
use aish_command::Grammar;

/// Lines of an answer that are read.
const OFFERS_MAX: usize = 2_000;
/// The longest of them, in bytes.
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
        (What::Arguments, Grammar::Zsh) => String::from("\\builtin print -r -- '#t'"),
        (What::Arguments, Grammar::Fish) => format!(
            "builtin echo '#t'; builtin complete --escape --do-complete={}",
            fish_quoted(&asking.line)
        ),
    }
}

/// What bash does at Tab, in a subshell: the specification of the command, of its last part, or the one for all others, which may
/// load the right one and say with 124 that it is there now. `compopt` works nowhere but at Tab, and is watched here instead.
const BASH: &str = r##"__aish_o=; __aish_a=(); __aish_g=(); __aish_f=; __aish_i=0
compopt() { while [[ $# -gt 0 ]]; do case $1 in -o) __aish_o+=" $2"; shift;; +o) __aish_o=${__aish_o// $2};; esac; shift; done; }
__aish_s() { builtin complete -p -- "$__aish_n" || builtin complete -p -- "${__aish_n##*/}" || builtin complete -p -D; }
for __aish_t in 1 2; do
eval "__aish_a=($(__aish_s))"
__aish_f=; __aish_g=()
for ((__aish_i = 1; __aish_i < ${#__aish_a[@]}; __aish_i++)); do case ${__aish_a[__aish_i]} in
-F) __aish_f=${__aish_a[++__aish_i]};;
-o) __aish_o+=" ${__aish_a[++__aish_i]}";;
-[AGWPSXC]) __aish_g+=("${__aish_a[__aish_i]}" "${__aish_a[++__aish_i]}");;
-[DEI]) ;;
-?) __aish_g+=("${__aish_a[__aish_i]}");;
esac; done
[[ -n $__aish_f ]] && "$__aish_f" "$__aish_n" "$__aish_c" "$__aish_p" >/dev/null
[[ $? -eq 124 ]] || break; done
[[ $__aish_o == *filenames* || " ${__aish_g[*]} " == *" -"[fd]" "* ]] && __aish_h='#n' || __aish_h='#t'
[[ $__aish_o == *nospace* ]] && __aish_h+=-
builtin printf '%s\n' "$__aish_h"
[[ ${#__aish_g[@]} -gt 0 ]] && builtin compgen "${__aish_g[@]}" -- "$__aish_c"
[[ ${#COMPREPLY[@]} -gt 0 ]] && builtin printf '%s\n' "${COMPREPLY[@]:0:2000}""##;

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
    let script = format!("{begin}\n{BASH}");
    // One line, whatever is in it: the shell reads it as it reads what a person types.
    format!("( \\builtin eval {} ) 2>/dev/null </dev/null", ansi_quoted(&script))
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

/// Reads what was printed. What is before the first heading is no answer.
pub fn offers(output: &[u8]) -> Vec<Offer> {
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
        if !text.is_empty() && is_new && offers.len() < OFFERS_MAX {
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
