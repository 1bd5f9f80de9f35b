//! One rule, and what its pattern fits.

use super::place::Places;
use crate::action::{Action, Effect};
use std::fmt;

/// One rule: `tool`, `alias.*`, `*`, or any of these with a pattern in parentheses, in which `*` stands for any text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    tool: String,
    pattern: Option<String>,
}

impl Rule {
    /// Reads a rule such as `file_write`, `git.*` or `bash(git push*)`.
    ///
    /// # Errors
    /// One line that says what is wrong and what a rule looks like.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (tool, pattern) = match text.split_once('(') {
            None => (text, None),
            Some((tool, rest)) => match rest.strip_suffix(')') {
                Some(pattern) => (tool, Some(pattern.to_owned())),
                None => {
                    return Err(format!(
                        "rule `{text}` has no closing parenthesis; write e.g. `bash(git push*)`"
                    ));
                }
            },
        };
        let named = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '*');
        if tool.is_empty() || !tool.chars().all(named) {
            return Err(format!(
                "rule `{text}` does not begin with a tool's name; write e.g. `file_write`, `git.*` or `bash(git push*)`"
            ));
        }
        Ok(Self {
            tool: tool.to_owned(),
            pattern,
        })
    }

    /// The rule that allows exactly this call's like again: the exact command, or the tool. None for a call of the command
    /// tool that runs no command: a rule for it would allow every command.
    pub fn allowing(action: &Action) -> Option<Self> {
        let command = action.command().map(str::to_owned);
        (action.tool != COMMAND_TOOL || command.is_some()).then(|| Self {
            tool: action.tool.clone(),
            pattern: command,
        })
    }

    /// What an allow rule on commands does not do, where its author may think it does: one line.
    pub fn allows_less_than_it_says(&self) -> Option<String> {
        match (&self.pattern, self.tool == COMMAND_TOOL) {
            (Some(pattern), true) if pattern.contains('*') => Some(format!(
                "`{self}` allows only the command written exactly so: a `*` in an allowed command stands for itself"
            )),
            (None, true) => Some(format!(
                "`{self}` allows no command: name each one, e.g. `bash(cargo test)`, or choose the mode `full`"
            )),
            (Some(_) | None, _) => None,
        }
    }

    fn covers_tool(&self, tool: &str) -> bool {
        wildcard(&self.tool, tool)
    }

    /// For allow rules: everything the call touches fits.
    pub(super) fn covers(&self, action: &Action, places: &Places<'_>) -> bool {
        if !self.covers_tool(&action.tool) {
            return false;
        }
        let Some(pattern) = &self.pattern else {
            // A command is allowed by its exact text only.
            return action.command().is_none();
        };
        !action.effects.is_empty()
            && action.effects.iter().all(|effect| match effect {
                Effect::Execute { command, .. } => command == pattern,
                Effect::Read { path } | Effect::Write { path } => places.fits(pattern, path),
                Effect::Fetch { url } => wildcard(pattern, url),
                Effect::Remote | Effect::Delegate { .. } | Effect::Internal => false,
            })
    }

    /// For deny and ask rules: anything the call touches fits, by the name it was called by or by where that leads.
    pub(super) fn touches(&self, action: &Action, places: &Places<'_>) -> bool {
        if !self.covers_tool(&action.tool) {
            return false;
        }
        let Some(pattern) = &self.pattern else {
            return true;
        };
        let named = action.arguments.get("path").and_then(serde_json::Value::as_str);
        named.is_some_and(|named| places.fits(pattern, &places.absolute(named)))
            || action.effects.iter().any(|effect| match effect {
                Effect::Execute { command, .. } => fits_from_a_word(pattern, command),
                Effect::Read { path } | Effect::Write { path } => places.fits(pattern, path),
                Effect::Fetch { url } => wildcard(pattern, url),
                Effect::Remote | Effect::Delegate { .. } | Effect::Internal => false,
            })
    }

    /// For deny and ask rules: whether a tool that walks a folder must pass this file over. Naming it is another matter.
    pub(super) fn hides(&self, tool: &str, path: &std::path::Path, places: &Places<'_>) -> bool {
        let covers = self.covers_tool(tool) || (tool == SEARCH_TOOL && self.covers_tool(READ_TOOL));
        covers
            && self
                .pattern
                .as_deref()
                .is_some_and(|pattern| places.fits(pattern, path))
    }
}

/// The tool whose calls are judged by their command.
const COMMAND_TOOL: &str = "bash";
/// The tool that shows what is in files it was not told of by name, and the one whose rules it must obey as well.
const SEARCH_TOOL: &str = "grep";
const READ_TOOL: &str = "file_read";

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pattern {
            Some(pattern) => write!(f, "{}({pattern})", self.tool),
            None => f.write_str(&self.tool),
        }
    }
}

/// What may follow a command in a line without belonging to it.
const COMMAND_ENDS: &str = ";&|)}`'\"<>#\n";

/// Whether a command fits a pattern from the start of any word in it, up to the end of the line or of that command. Linear:
/// where the leftmost start does not lead to a fit, no later one does.
fn fits_from_a_word(pattern: &str, command: &str) -> bool {
    let (first, rest) = match pattern.split_once('*') {
        None => return word_starts(command).any(|text| text.strip_prefix(pattern).is_some_and(is_command_end)),
        Some(("", rest)) => return fits_on(rest, command),
        Some(parts) => parts,
    };
    let start = word_starts(command).find_map(|text| text.strip_prefix(first));
    start.is_some_and(|text| fits_on(rest, text))
}

/// Whether what is left of a pattern behind a `*` fits somewhere in the text.
fn fits_on(pattern: &str, text: &str) -> bool {
    let mut text = text;
    let mut parts = pattern.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return part.is_empty()
                || text
                    .match_indices(part)
                    .any(|(at, _)| text.get(at + part.len()..).is_some_and(is_command_end));
        }
        match text.find(part).and_then(|at| text.get(at + part.len()..)) {
            Some(after) => text = after,
            None => return false,
        }
    }
    true
}

fn is_command_end(after: &str) -> bool {
    after
        .trim_start_matches([' ', '\t'])
        .chars()
        .next()
        .is_none_or(|next| COMMAND_ENDS.contains(next))
}

/// The text from the start of each word on: where a command could begin.
fn word_starts(command: &str) -> impl Iterator<Item = &str> {
    let mut between = true;
    command.char_indices().filter_map(move |(at, c)| {
        let separator = c.is_whitespace() || "\"'`;&|(){}$<>=\\".contains(c);
        let starts = between && !separator;
        between = separator;
        if starts { command.get(at..) } else { None }
    })
}

/// Whether text fits a pattern in which `*` stands for any text, possibly none. Linear in time but for its stars.
pub fn wildcard(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    loop {
        match (pattern.get(p), text.get(t)) {
            (Some(b'*'), _) => {
                retry = Some((p + 1, t));
                p += 1;
            }
            (Some(want), Some(got)) if want == got => {
                p += 1;
                t += 1;
            }
            (None, None) => return true,
            (Some(_) | None, _) => match retry {
                Some((after_star, from)) if from < text.len() => {
                    retry = Some((after_star, from + 1));
                    p = after_star;
                    t = from + 1;
                }
                Some(_) | None => return false,
            },
        }
    }
}
