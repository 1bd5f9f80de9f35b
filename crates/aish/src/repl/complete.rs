//! What the line editor is told of our lines: completions, and whether a line is whole (SPEC 8.9).

use super::mcp::{Candidates, Reach};
use super::meta::{Argument, COMMANDS, MODES};
use super::route::is_unfinished;
use crate::mentions::{self, Places};
use reedline::{Completer, CompletionResult, Span, Suggestion, ValidationResult, Validator};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Words that come and go: shared with the loop, which keeps them up to date.
#[derive(Clone, Default)]
pub struct Words {
    shared: Arc<Mutex<WordLists>>,
}

/// The words.
#[derive(Default)]
pub struct WordLists {
    /// Names of models.
    pub models: Vec<String>,
    /// Ids of sessions.
    pub sessions: Vec<String>,
    /// Ids of calls with a result.
    pub calls: Vec<String>,
    /// Where relative paths begin.
    pub directory: PathBuf,
    /// What `~/` stands for.
    pub home: Option<PathBuf>,
    /// MCP servers, to be asked what they offer.
    pub servers: Option<Reach>,
}

impl Words {
    /// Changes them.
    pub fn update(&self, change: impl FnOnce(&mut WordLists)) {
        change(&mut self.lock());
    }

    /// What may stand where the line ends: where that word begins, and each candidate with its help.
    pub fn candidates(&self, line: &str) -> (usize, Candidates) {
        let Some(rest) = line.strip_prefix(':') else {
            return self.mentions(line);
        };
        if rest.split(' ').next().is_some_and(|name| name.contains('.')) {
            return self.prompts(rest);
        }
        let Some((name, argument)) = rest.split_once(' ') else {
            let fits = COMMANDS.iter().filter(|command| command.name.starts_with(rest));
            let commands = fits.map(|command| (format!(":{}", command.name), command.help.to_owned()));
            let (start, prompts) = self.prompts(rest);
            return (start, commands.chain(prompts).collect());
        };
        let start = line.len() - argument.len();
        let kind = COMMANDS
            .iter()
            .find(|command| command.name == name)
            .map(|command| command.argument);
        let lists = self.lock();
        let words: Vec<String> = match kind {
            Some(Argument::Model) => lists.models.clone(),
            Some(Argument::Mode) => MODES.iter().map(|mode| mode.word().to_owned()).collect(),
            Some(Argument::Session) => lists.sessions.clone(),
            Some(Argument::Call) => lists.calls.clone(),
            Some(Argument::Mcp) => {
                let servers = lists.servers.clone();
                drop(lists);
                let (at, words) = servers.map(|servers| servers.commands(argument)).unwrap_or_default();
                return (start + at, words);
            }
            Some(Argument::None) | None => Vec::new(),
        };
        let fits = words.into_iter().filter(|word| word.starts_with(argument));
        (start, fits.map(|word| (word, String::new())).collect())
    }

    /// Prompts of servers, and their arguments.
    fn prompts(&self, typed: &str) -> (usize, Candidates) {
        // Not while the words are locked: a server may take its time.
        let servers = self.lock().servers.clone();
        let (at, words) = servers.map(|servers| servers.prompts(typed)).unwrap_or_default();
        if at > 0 {
            return (at + 1, words);
        }
        (
            0,
            words
                .into_iter()
                .map(|(word, help)| (format!(":{word}"), help))
                .collect(),
        )
    }

    /// Resources and paths, where the line ends in a mention of one.
    fn mentions(&self, line: &str) -> (usize, Candidates) {
        let (directory, home, servers) = {
            let lists = self.lock();
            (lists.directory.clone(), lists.home.clone(), lists.servers.clone())
        };
        let places = Places {
            directory: &directory,
            home: home.as_deref(),
            servers: &[],
        };
        let resources = servers.and_then(|servers| servers.resources(line));
        let paths = mentions::completions(line, places);
        let (start, mut words) = resources.unwrap_or((line.len(), Vec::new()));
        let (start, names) = paths.unwrap_or((start, Vec::new()));
        words.extend(names.into_iter().map(|name| (name, String::new())));
        (start, words)
    }

    fn lock(&self) -> MutexGuard<'_, WordLists> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Completer for Words {
    fn complete(&mut self, line: &str, pos: usize) -> CompletionResult {
        let line = line.get(..pos).unwrap_or(line);
        let (start, candidates) = self.candidates(line);
        let suggestions: Vec<Suggestion> = candidates
            .into_iter()
            .map(|(value, help)| Suggestion {
                // There is more to complete: within a directory, of a server, of an argument.
                append_whitespace: !value.ends_with(['/', '.', ':', '=']),
                value,
                description: (!help.is_empty()).then_some(help),
                span: Span { start, end: line.len() },
                ..Suggestion::default()
            })
            .collect();
        CompletionResult::fresh(suggestions)
    }
}

/// Whether Enter sends a line or goes on with it.
pub struct Whole;

impl Validator for Whole {
    fn validate(&self, line: &str) -> ValidationResult {
        if is_unfinished(line) {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Complete
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 8.9: meta commands, modes, and model names complete.
    #[test]
    fn completions() {
        let words = Words::default();
        words.update(|lists| lists.models = vec!["desk".into(), "cloud".into()]);
        let check = |line: &str, start: usize, expect: &[&str]| {
            let (at, candidates) = words.candidates(line);
            let candidates: Vec<String> = candidates.into_iter().map(|(word, _)| word).collect();
            assert_eq!(
                (at, candidates),
                (start, expect.iter().map(|word| (*word).to_owned()).collect()),
                "{line:?}"
            );
        };
        check(":mo", 0, &[":model", ":models"]);
        check(":q", 0, &[":quit"]);
        check(":model ", 7, &["desk", "cloud"]);
        check(":model c", 7, &["cloud"]);
        check(":policy au", 8, &["auto"]);
        check(":help x", 6, &[]);
        check("model", 5, &[]);
    }
}
