//! What completes in lines of ours: meta commands and their arguments, prompts of servers, mentions in a question (SPEC 8.9).

use super::path::From;
use crate::mentions::{self, Places};
use crate::repl::mcp::{Candidates, Reach};
use crate::repl::meta::{ALL, Argument, COMMANDS, MODES};
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
            Some(Argument::Part) => vec![ALL.to_owned()],
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

    /// Calls with where paths begin.
    pub fn with_places<T>(&self, call: impl FnOnce(From<'_>) -> T) -> T {
        // Not while the words are locked: a disk may take its time.
        let (directory, home) = {
            let lists = self.lock();
            (lists.directory.clone(), lists.home.clone())
        };
        call(From {
            directory: &directory,
            home: home.as_deref(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, WordLists> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
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
