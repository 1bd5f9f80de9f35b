//! What the rules say of a command line, part by part (SPEC 5.7).
//!
//! | rules | hold for |
//! |---|---|
//! | deny, ask | the line as it is written, and every simple command in it, quotes taken off, by its path and by its bare name, with and without the program's own options before a subcommand, with what braces make of its words; from the start of any word. Rules on files, for what it writes to and reads from |
//! | allow | the whole line, where it is exactly the rule's; else every simple command in it, each as a whole |
//!
//! What cannot be told is never allowed part by part: a line that is not understood, a name that only running would tell, a command
//! that runs what nobody sees, a variable that is set for what follows, a file that is written to or read from.

use super::braces::expanded;
use super::options::before_subcommand;
use super::pattern::Text;
use super::rule::READ_TOOL;
use super::{Policy, Rule};
use crate::action::Action;
use crate::parts::{Inner, Parts, Redirect, SimpleCommand, Word};
use std::borrow::Cow;
use std::path::PathBuf;

/// Files that are nowhere, or the process's own.
const FILES_OF_NOBODY: [&str; 4] = ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin"];
/// The tool by whose rules a redirection is judged, where it does not only read.
const WRITE_TOOL: &str = "file_write";

/// A call as deny and ask rules look at it; made once for all of them.
pub(super) struct Looked<'a> {
    pub(super) action: &'a Action,
    /// The command line and its simple commands, as text.
    pub(super) lines: Vec<Cow<'a, str>>,
    /// Files it writes to or reads from, and the tool that does so: absolute, links unresolved.
    pub(super) files: Vec<(&'static str, PathBuf)>,
}

/// What is said of a command line part by part.
pub(super) enum ByParts {
    /// Rules allow each of its parts.
    Allowed {
        /// Which.
        rules: Vec<String>,
    },
    /// A deny or ask rule may fit, depending on what only running it would tell.
    MayBe {
        /// Which.
        rule: String,
    },
    /// Rules allow some of it, but not this.
    Lacks {
        /// What, in words.
        what: String,
    },
    /// No rule speaks of it.
    Nothing,
}

impl Policy {
    pub(super) fn looked<'a>(&self, action: &'a Action) -> Looked<'a> {
        let mut lines: Vec<Cow<'a, str>> = action.command().map(Cow::Borrowed).into_iter().collect();
        let mut files = Vec::new();
        if let Some(parts) = action.parts() {
            for command in &parts.commands {
                spellings(command, &mut lines);
            }
            if parts.doubt.is_some() {
                // Something may have been missed: at least by its letters it is found.
                let line = action.command().unwrap_or_default().replace(['\'', '"', '\\'], "");
                let words: Vec<&str> = line.split_whitespace().collect();
                add_spellings(&words, &mut lines);
                let made: Vec<String> = words.iter().flat_map(|word| expanded(word)).collect();
                add_spellings(&borrowed(&made), &mut lines);
            }
            let places = self.places();
            let named = parts.redirects.iter().filter_map(file_of);
            files.extend(named.map(|(tool, name)| (tool, places.absolute(name))));
        }
        Looked { action, lines, files }
    }

    /// What the rules say of the parts of a command line; `None` for a call that runs none.
    pub(super) fn by_parts(&self, action: &Action) -> Option<ByParts> {
        let parts = action.parts()?;
        let speaks = |rule: &&Rule| rule.command_pattern(&action.tool).is_some();
        let strict = || self.deny.iter().chain(&self.ask).filter(speaks);
        Some(match all_is_told(parts) {
            Err(what) => match strict().next() {
                Some(_) => ByParts::MayBe {
                    rule: format!("what it runs cannot be told: {what}"),
                },
                None => self.lacks(action, what.to_owned()),
            },
            Ok(()) => {
                let may_fit = strict().find(|rule| {
                    parts
                        .commands
                        .iter()
                        .any(|command| may_fit(rule, &action.tool, command))
                });
                match may_fit {
                    Some(rule) => ByParts::MayBe {
                        rule: format!("it may be what rule {rule} speaks of"),
                    },
                    None => self.allowed_by_parts(action, parts),
                }
            }
        })
    }

    fn allowed_by_parts(&self, action: &Action, parts: &Parts) -> ByParts {
        if let Some(assignment) = parts.assignments.first() {
            return self.lacks(action, format!("it sets {}", assignment.name));
        }
        if let Some(redirect) = parts.redirects.iter().find(|redirect| !is_of_nobody(redirect)) {
            return self.lacks(action, format!("`{} {}`", redirect.operator, redirect.target.text));
        }
        let mut rules: Vec<String> = Vec::new();
        for command in parts.commands.iter().filter(|command| command.inner != Inner::Alone) {
            match self.rule_allowing(&action.tool, command) {
                Some(rule) => rules.push(rule.to_string()),
                None => return self.lacks(action, format!("no rule allows `{}`", command.written())),
            }
        }
        rules.sort_unstable();
        rules.dedup();
        if rules.is_empty() {
            ByParts::Nothing
        } else {
            ByParts::Allowed { rules }
        }
    }

    /// Why a line is not allowed is worth saying where a rule allows a part of it.
    fn lacks(&self, action: &Action, what: String) -> ByParts {
        let commands = action.parts().map(|parts| parts.commands.as_slice());
        let mut commands = commands.unwrap_or_default().iter();
        if commands.any(|command| self.rule_allowing(&action.tool, command).is_some()) {
            ByParts::Lacks { what }
        } else {
            ByParts::Nothing
        }
    }

    fn rule_allowing(&self, tool: &str, command: &SimpleCommand) -> Option<&Rule> {
        command.name()?;
        let as_passed_on = text(command, |word| quoted(word));
        let as_written = text(command, |word| Cow::Borrowed(word.text.as_str()));
        self.allow.iter().find(|rule| {
            let pattern = rule.command_pattern(tool);
            pattern.is_some_and(|pattern| pattern.fits(&as_passed_on) || pattern.fits(&as_written))
        })
    }
}

/// Whether all that the line does can be told, and why not.
fn all_is_told(parts: &Parts) -> Result<(), &str> {
    if let Some(doubt) = &parts.doubt {
        return Err(doubt);
    }
    if parts.commands.iter().any(|command| command.name().is_none()) {
        return Err("the name of a command is known only when it runs");
    }
    let hides = parts.commands.iter().any(|command| command.inner == Inner::Hidden);
    if hides {
        Err("it runs what stands elsewhere")
    } else {
        Ok(())
    }
}

/// The texts by which deny and ask rules find a command.
fn spellings(command: &SimpleCommand, lines: &mut Vec<Cow<'_, str>>) {
    let words: Vec<&str> = command.words.iter().map(said).collect();
    add_spellings(&words, lines);
    if command.words.iter().any(|word| word.certain().is_none()) {
        let made = |word: &Word| match word.certain() {
            Some(value) => vec![value.to_owned()],
            None => expanded(said(word)),
        };
        let made: Vec<String> = command.words.iter().flat_map(made).collect();
        add_spellings(&borrowed(&made), lines);
    }
}

fn borrowed(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

fn add_spellings(words: &[&str], lines: &mut Vec<Cow<'_, str>>) {
    lines.push(words.join(" ").into());
    let bare: Vec<&str> = words.iter().map(|word| bare_name(word)).collect();
    if bare != words {
        lines.push(bare.join(" ").into());
    }
    let options = before_subcommand(words);
    if let Some((name, arguments)) = words.split_first().filter(|_| options > 0) {
        let subcommand = arguments.get(options..).unwrap_or_default();
        lines.push([&[bare_name(name)], subcommand].concat().join(" ").into());
    }
}

/// What a word says, as far as that is known.
fn said(word: &Word) -> &str {
    word.value.as_deref().unwrap_or(&word.text)
}

pub(super) fn bare_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a command may be what a rule speaks of, by something in it that only running it would tell.
fn may_fit(rule: &Rule, tool: &str, command: &SimpleCommand) -> bool {
    if command.words.iter().all(|word| word.certain().is_some()) {
        return false;
    }
    let Some(pattern) = rule.command_pattern(tool) else {
        return false;
    };
    let Some((name, arguments)) = command.words.split_first() else {
        return false;
    };
    let words: Vec<&str> = command.words.iter().map(said).collect();
    let (options, subcommand) = arguments.split_at(before_subcommand(&words));
    let name = bytes(bare_name(said(name)));
    let all = [name.clone(), unfolded(arguments)].concat();
    // What an option is given may become more words than one.
    let is_open = options.iter().any(|word| word.certain().is_none());
    let hole: &[Option<u8>] = if is_open { &[Some(b' '), None] } else { &[] };
    let without_options = [name, hole.to_vec(), unfolded(subcommand)].concat();
    pattern.may_fit(&all) || (!options.is_empty() && pattern.may_fit(&without_options))
}

/// Arguments, each behind a blank, with holes for what only running them would tell.
fn unfolded(arguments: &[Word]) -> Text {
    let mut line = Text::new();
    for word in arguments {
        line.push(Some(b' '));
        match (&word.value, word.expands) {
            (Some(value), false) => line.extend(bytes(value)),
            // As far as it stays what it is.
            (Some(value), true) => {
                let fixed = value.split(['*', '?', '[', '{', '~']).next().unwrap_or_default();
                line.extend(bytes(fixed));
                line.push(None);
            }
            (None, _) => line.push(None),
        }
    }
    line
}

fn bytes(text: &str) -> Text {
    text.bytes().map(Some).collect()
}

/// A command as allow rules look at it: with what is set for it, each word as `spell` has it, holes where that cannot be told.
fn text<'a>(command: &'a SimpleCommand, spell: impl Fn(&'a Word) -> Cow<'a, str>) -> Text {
    let mut text = Text::new();
    for word in command.all_words() {
        if !text.is_empty() {
            text.push(Some(b' '));
        }
        match word.value {
            Some(_) => text.extend(bytes(&spell(word))),
            None => text.push(None),
        }
    }
    text
}

/// What a word says, in quotes where it would not be one word without.
fn quoted(word: &Word) -> Cow<'_, str> {
    let value = said(word);
    if value.is_empty() || value.contains(char::is_whitespace) {
        format!("'{value}'").into()
    } else {
        value.into()
    }
}

/// Whether a redirection touches no file of anybody's.
fn is_of_nobody(redirect: &Redirect) -> bool {
    let Some(target) = redirect.target.certain() else {
        return false;
    };
    let is_descriptor = target.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    FILES_OF_NOBODY.contains(&target) || (redirect.operator.ends_with('&') && is_descriptor)
}

/// The tool that a redirection stands for, and the file.
fn file_of(redirect: &Redirect) -> Option<(&'static str, &str)> {
    let name = redirect.target.certain().filter(|_| !is_of_nobody(redirect))?;
    let tool = if redirect.operator == "<" {
        READ_TOOL
    } else {
        WRITE_TOOL
    };
    Some((tool, name))
}
