//! What the line editor is told of our lines: completions, and whether a line is whole (SPEC 8.9).

use super::meta::{Argument, COMMANDS, MODES};
use super::route::is_unfinished;
use crate::mentions::{self, Places};
use reedline::{Completer, CompletionResult, Span, Suggestion, ValidationResult, Validator};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

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
}

impl Words {
    /// Changes them.
    pub fn update(&self, change: impl FnOnce(&mut WordLists)) {
        change(&mut self.shared.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// What may stand where the line ends: where that word begins, and each candidate with its help.
    pub fn candidates(&self, line: &str) -> (usize, Vec<(String, &'static str)>) {
        let Some(rest) = line.strip_prefix(':') else {
            return self.paths(line);
        };
        let Some((name, argument)) = rest.split_once(' ') else {
            let fits = COMMANDS.iter().filter(|command| command.name.starts_with(rest));
            return (
                0,
                fits.map(|command| (format!(":{}", command.name), command.help))
                    .collect(),
            );
        };
        let start = line.len() - argument.len();
        let lists = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let kind = COMMANDS
            .iter()
            .find(|command| command.name == name)
            .map(|command| command.argument);
        let words: Vec<String> = match kind {
            Some(Argument::Model) => lists.models.clone(),
            Some(Argument::Mode) => MODES.iter().map(|mode| mode.word().to_owned()).collect(),
            Some(Argument::Session) => lists.sessions.clone(),
            Some(Argument::Call) => lists.calls.clone(),
            Some(Argument::None) | None => Vec::new(),
        };
        let fits = words.into_iter().filter(|word| word.starts_with(argument));
        (start, fits.map(|word| (word, "")).collect())
    }

    /// Paths, where the line ends in a mention of one.
    fn paths(&self, line: &str) -> (usize, Vec<(String, &'static str)>) {
        let (directory, home) = {
            let lists = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
            (lists.directory.clone(), lists.home.clone())
        };
        let places = Places {
            directory: &directory,
            home: home.as_deref(),
        };
        let (start, names) = mentions::completions(line, places).unwrap_or((line.len(), Vec::new()));
        (start, names.into_iter().map(|name| (name, "")).collect())
    }
}

impl Completer for Words {
    fn complete(&mut self, line: &str, pos: usize) -> CompletionResult {
        let line = line.get(..pos).unwrap_or(line);
        let (start, candidates) = self.candidates(line);
        let suggestions: Vec<Suggestion> = candidates
            .into_iter()
            .map(|(value, help)| Suggestion {
                // Within a directory there is more to complete.
                append_whitespace: !value.ends_with('/'),
                value,
                description: (!help.is_empty()).then(|| help.to_owned()),
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
