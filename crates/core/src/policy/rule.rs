//! One rule, and what its pattern fits.

use super::command::Looked;
use super::pattern::Pattern;
use super::place::Places;
use crate::action::{Action, Effect};
use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

/// One rule: `tool`, `alias.*`, `*`, or any of these with a pattern in parentheses, in which `*` stands for any text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    tool: String,
    pattern: Option<String>,
    /// The same pattern, for command lines.
    on_commands: Option<Pattern>,
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
        Ok(Self::new(tool, pattern))
    }

    fn new(tool: &str, pattern: Option<String>) -> Self {
        Self {
            tool: tool.to_owned(),
            on_commands: pattern.as_deref().map(Pattern::new),
            pattern,
        }
    }

    /// The rule that allows exactly this call's like again: the exact command, all pages of that site, or the tool. None for a
    /// call of the command tool that runs no command: a rule for it would allow every command.
    pub fn allowing(action: &Action) -> Option<Self> {
        if let Some(site) = site(action) {
            return Some(Self::new(&action.tool, Some(format!("{site}/*"))));
        }
        let command = action.command().map(Pattern::exactly);
        (action.tool != COMMAND_TOOL || command.is_some()).then(|| Self::new(&action.tool, command))
    }

    /// What an allow rule on commands does not do, where its author may think it does: one line.
    pub fn allows_less_than_it_says(&self) -> Option<String> {
        (self.pattern.is_none() && self.tool == COMMAND_TOOL).then(|| {
            format!(
                "`{self}` allows no command: name those you mean, e.g. `bash(cargo test*)`, or choose the mode `full`"
            )
        })
    }

    /// Its pattern on the commands of that tool, if it speaks of them.
    pub(super) fn command_pattern(&self, tool: &str) -> Option<&Pattern> {
        self.on_commands.as_ref().filter(|_| self.covers_tool(tool))
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
            // No rule allows every command.
            return action.command().is_none();
        };
        !action.effects.is_empty()
            && action.effects.iter().all(|effect| match effect {
                // With a star it speaks of single commands, not of whole lines (`command.rs`).
                Effect::Execute { command, .. } => self.on_commands.as_ref().and_then(Pattern::exact) == Some(command),
                Effect::Read { path } | Effect::Write { path } => places.fits(pattern, path),
                Effect::Fetch { url, .. } => wildcard(pattern, url),
                Effect::Remote | Effect::Delegate { .. } | Effect::Recall | Effect::Internal => false,
            })
    }

    /// For deny and ask rules: anything the call touches fits, by the name it was called by or by where that leads.
    pub(super) fn touches(&self, looked: &Looked<'_>, places: &Places<'_>) -> bool {
        let action = looked.action;
        let fits_file = |(tool, path): &(&str, PathBuf)| {
            let pattern = self.pattern.as_deref().filter(|_| self.covers_tool(tool));
            pattern.is_some_and(|pattern| places.fits(pattern, path))
        };
        if looked.files.iter().any(fits_file) {
            return true;
        }
        if !self.covers_tool(&action.tool) {
            return false;
        }
        let Some(pattern) = &self.pattern else {
            return true;
        };
        let named = action.arguments.get("path").and_then(serde_json::Value::as_str);
        named.is_some_and(|named| places.fits(pattern, &places.absolute(named)))
            || action.effects.iter().any(|effect| match effect {
                Effect::Execute { .. } => self.fits_a_command(&looked.lines),
                Effect::Read { path } | Effect::Write { path } => places.fits(pattern, path),
                Effect::Fetch { url, .. } => wildcard(pattern, url),
                Effect::Remote | Effect::Delegate { .. } | Effect::Recall | Effect::Internal => false,
            })
    }

    fn fits_a_command(&self, lines: &[Cow<'_, str>]) -> bool {
        let pattern = self.on_commands.as_ref();
        pattern.is_some_and(|pattern| lines.iter().any(|line| pattern.fits_from_a_word(line)))
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

/// Scheme and host of what a call fetches.
fn site(action: &Action) -> Option<&str> {
    action.effects.iter().find_map(|effect| match effect {
        Effect::Fetch { url, .. } => {
            let host = url.find("://")? + "://".len();
            let end = url.get(host..)?.find('/').map_or(url.len(), |length| host + length);
            url.get(..end)
        }
        Effect::Read { .. }
        | Effect::Write { .. }
        | Effect::Execute { .. }
        | Effect::Remote
        | Effect::Delegate { .. }
        | Effect::Recall
        | Effect::Internal => None,
    })
}

/// The tool whose calls are judged by their command.
const COMMAND_TOOL: &str = "bash";
/// The tool that shows what is in files it was not told of by name, and the one whose rules it must obey as well.
const SEARCH_TOOL: &str = "grep";
pub(super) const READ_TOOL: &str = "file_read";

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pattern {
            Some(pattern) => write!(f, "{}({pattern})", self.tool),
            None => f.write_str(&self.tool),
        }
    }
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
