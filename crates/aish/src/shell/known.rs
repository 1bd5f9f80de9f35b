//! What the user's shell can run: its builtins, functions and aliases, and the programs in `PATH`.
//!
//! [`Knowledge`] answers from memory while a line is typed. It begins with the commands every shell of that language has and reads
//! `PATH` on a thread ([`programs`]); once the shell has read its start-up files it is asked for the rest ([`told`], [`answer`]),
//! and again after each command, which may have changed it.

mod answer;
mod programs;

use super::UserShell;
use aish_command::Grammar;
use aish_shell::Dialect;
use aish_shell::route::{Kind, Known, Names};
use programs::{Programs, Search, Wanted};
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;
use tokio::sync::watch;

/// How many names are kept: more are not searched in the time of a key press.
const NAMES_MAX: usize = 10_000;
/// The longest word that is looked for among the files, in bytes: a path's limit.
const PATH_BYTES_MAX: usize = 4_096;
/// The pause after which a shell that did not answer is asked again; doubled each time, up to the longest.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// How often it is asked before the next command: for half a minute.
const TIMES_ASKED_MAX: u32 = 20;

/// What is known, shared by the prompt's threads: the editor asks while a line is typed, the loop brings it up to date.
#[derive(Clone)]
pub struct Knowledge {
    shared: Arc<Shared>,
}

struct Shared {
    facts: RwLock<Facts>,
    reading: watch::Sender<Reading>,
}

/// How far the programs are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// Not once.
    First,
    /// They were, and are being read again.
    Again,
    /// As they are now.
    Done,
}

#[derive(Default)]
struct Facts {
    dialect: Option<Dialect>,
    directory: PathBuf,
    home: Option<PathBuf>,
    /// Commands of the shell itself and of the user.
    own: HashMap<Box<str>, Kind>,
    /// The `PATH` the programs are from.
    path: OsString,
    programs: Programs,
    nearest: Names,
    search: Search,
    /// The shell may know something else by now.
    outdated: bool,
    /// It was waited for in vain.
    silent: bool,
}

/// What a shell is begun with, as far as it says what can be run.
pub struct Beginning<'a> {
    /// Its program.
    pub program: &'a Path,
    /// Its `PATH`.
    pub path: Option<&'a Path>,
    /// What `~` stands for.
    pub home: Option<&'a Path>,
}

impl Default for Knowledge {
    fn default() -> Self {
        Self {
            shared: Arc::new(Shared {
                facts: RwLock::default(),
                reading: watch::Sender::new(Reading::First),
            }),
        }
    }
}

impl Known for Knowledge {
    fn kind(&self, word: &str) -> Option<Kind> {
        let facts = self.read();
        let own = facts.own.get(word).copied();
        own.or_else(|| facts.programs.has(word).then_some(Kind::Program))
    }

    fn is_path(&self, word: &str) -> bool {
        if word.is_empty() || word.len() > PATH_BYTES_MAX || word.contains('\0') {
            return false;
        }
        // Not while the facts are held: a slow disk would hold up who brings them up to date.
        let path = {
            let facts = self.read();
            match (word.strip_prefix('~'), &facts.home) {
                (Some(""), Some(_)) => return true,
                (Some(below), Some(home)) if below.starts_with('/') => home.join(below.trim_start_matches('/')),
                (Some(_) | None, _) => facts.directory.join(word),
            }
        };
        // Nobody knows yet where a relative one begins.
        path.is_absolute() && path.symlink_metadata().is_ok()
    }

    fn dialect(&self) -> Option<Dialect> {
        self.read().dialect
    }

    fn near(&self, word: &str) -> Option<String> {
        let facts = self.read();
        // Where not all programs are known, it may be one of the others.
        let is_none = facts.programs.are_all();
        let near = is_none.then(|| facts.nearest.nearest(word)).flatten();
        near.map(str::to_owned)
    }
}

impl Knowledge {
    /// What there is before the shell has answered: the commands of its language, and, as soon as they are read, the programs.
    pub fn begin(&self, beginning: &Beginning<'_>) {
        {
            let mut facts = self.write();
            facts.dialect = Dialect::of(beginning.program);
            facts.home = beginning.home.map(Path::to_owned);
            facts.own = facts.dialect.map(answer::usual).unwrap_or_default();
            facts.outdated = true;
            facts.find_nearest();
        }
        let path = beginning.path.map(|path| path.as_os_str().to_owned());
        self.search(path.unwrap_or_default());
    }

    /// Which grammar its lines are read by.
    pub fn grammar(&self) -> Grammar {
        match self.read().dialect {
            Some(Dialect::Bash) | None => Grammar::Bash,
            Some(Dialect::Zsh) => Grammar::Zsh,
            Some(Dialect::Fish) => Grammar::Fish,
        }
    }

    /// The names that begin so, in order, each with what it is.
    pub fn names_with(&self, prefix: &str) -> Vec<(String, Kind)> {
        let facts = self.read();
        let programs = facts.programs.names().map(|name| (name, Kind::Program));
        let own = facts.own.iter().map(|(name, kind)| (&**name, *kind));
        let fitting = programs.chain(own).filter(|(name, _)| name.starts_with(prefix));
        // What the shell has itself hides the program of that name.
        let names: BTreeMap<&str, Kind> = fitting.collect();
        names.into_iter().map(|(name, kind)| (name.to_owned(), kind)).collect()
    }

    /// Whether it is a command that only this user has: no other name for a program of that name.
    pub fn is_own(&self, word: &str) -> bool {
        let facts = self.read();
        let is_users = match facts.own.get(word) {
            Some(Kind::Alias | Kind::Function) => true,
            Some(Kind::Builtin | Kind::Keyword | Kind::Program) | None => false,
        };
        is_users && !facts.programs.has(word)
    }

    /// Relative paths begin there.
    pub fn enter(&self, directory: &Path) {
        if self.read().directory != directory {
            self.write().directory = directory.to_owned();
        }
    }

    /// A command ran: the shell may know something else now.
    pub fn outdate(&self) {
        self.write().outdated = true;
    }

    /// Whether what the shell says of itself is worth waiting for: there may be something new, and it answers.
    pub fn is_awaited(&self) -> bool {
        let facts = self.read();
        facts.outdated && !facts.silent
    }

    /// Whether the shell may have other aliases and functions than it said.
    pub fn is_outdated(&self) -> bool {
        self.read().outdated
    }

    /// It was waited for in vain: nobody waits again until it has answered.
    pub fn gave_up(&self) {
        self.write().silent = true;
    }

    /// Whether the programs were read: a word that is nothing before may still be one.
    pub fn is_complete(&self) -> bool {
        *self.shared.reading.borrow() != Reading::First
    }

    /// What the shell is to be asked, if there is anything new to be expected.
    fn question(&self) -> Option<&'static str> {
        let facts = self.read();
        facts.dialect.filter(|_| facts.outdated).map(answer::question)
    }

    /// Takes what it answered; false for what is no answer.
    fn learn(&self, output: &[u8]) -> bool {
        let Some(dialect) = self.read().dialect else {
            return false;
        };
        let Some(answer) = answer::read(dialect, output) else {
            return false;
        };
        {
            let mut facts = self.write();
            facts.outdated = false;
            facts.silent = false;
            if facts.own != answer.own {
                facts.own = answer.own;
                facts.find_nearest();
            }
        }
        self.search(answer.path);
        true
    }

    /// Reads the programs of a `PATH` on a thread, if they are other ones now.
    fn search(&self, path: OsString) {
        self.write().path = path;
        self.look_again();
    }

    /// The same for the `PATH` that is known: a program may have come from elsewhere.
    pub fn look_again(&self) {
        {
            let mut facts = self.write();
            let wanted = Wanted {
                path: facts.path.clone(),
                from: facts.directory.clone(),
            };
            if !facts.search.begin(wanted) {
                return;
            }
            self.shared.reading.send_modify(|reading| {
                if *reading == Reading::Done {
                    *reading = Reading::Again;
                }
            });
        }
        let known = self.clone();
        let spawned = std::thread::Builder::new().name("programs".to_owned()).spawn(move || {
            while let Some(Wanted { path, from }) = known.next_search() {
                let seen = known.read().programs.stamp();
                if let Some(programs) = Programs::read(&path, &from, &seen) {
                    let mut facts = known.write();
                    facts.programs = programs;
                    facts.find_nearest();
                }
            }
        });
        if spawned.is_err() {
            // What was known before still holds, and another try comes with the next command.
            self.write().search = Search::default();
            self.shared.reading.send_replace(Reading::Done);
        }
    }

    /// A call of its own: a lock that is taken in the condition of a loop is held through its body.
    fn next_search(&self) -> Option<Wanted> {
        let mut facts = self.write();
        let next = facts.search.take();
        if next.is_none() {
            // Said while the facts are held: whoever begins another search says so after this.
            self.shared.reading.send_replace(Reading::Done);
        }
        next
    }

    /// Waits until the programs are read as they are now.
    pub async fn searched(&self) {
        let mut reading = self.shared.reading.subscribe();
        // The sender lives as long as this does.
        let _ = reading.wait_for(|reading| *reading == Reading::Done).await;
    }

    fn read(&self) -> RwLockReadGuard<'_, Facts> {
        self.shared.facts.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Facts> {
        self.shared.facts.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// A shell without a language that has these programs.
    #[cfg(test)]
    pub fn of_programs<const N: usize>(names: [&str; N]) -> Self {
        let known = Self::default();
        {
            let mut facts = known.write();
            facts.programs = Programs::of(names);
            facts.find_nearest();
        }
        known.shared.reading.send_replace(Reading::Done);
        known
    }
}

#[cfg(test)]
impl Knowledge {
    /// A bash that has these programs.
    pub fn of_bash<const N: usize>(names: [&str; N]) -> Self {
        let known = Self::of_programs(names);
        {
            let mut facts = known.write();
            facts.dialect = Some(Dialect::Bash);
            facts.own = answer::usual(Dialect::Bash);
            facts.find_nearest();
        }
        known
    }
}

impl Facts {
    fn find_nearest(&mut self) {
        let own = self.own.keys().map(|name| &**name);
        let names = own.chain(self.programs.names()).take(NAMES_MAX);
        self.nearest = names.collect();
    }
}

/// Asks the shell what it can run, where that may have changed, and waits for the programs. A shell that does not answer is asked
/// again, for some time.
pub async fn told(shell: &mut UserShell) {
    let known = shell.known();
    let mut pause = PAUSE_MIN;
    for _ in 0..TIMES_ASKED_MAX {
        let Some(question) = known.question() else {
            break;
        };
        let answer = shell.ask(question).await;
        if !answer.is_some_and(|answer| known.learn(&answer)) {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
    known.searched().await;
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    fn program(folder: &Path, name: &str) {
        let path = folder.join(name);
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    async fn begun(path: &Path) -> Knowledge {
        let known = Knowledge::default();
        known.begin(&Beginning {
            program: Path::new("/bin/bash"),
            path: Some(path),
            home: Some(Path::new("/")),
        });
        known.searched().await;
        known
    }

    /// SPEC 8.1: before the shell has answered its language's commands and the programs are known, afterwards what it said.
    #[tokio::test]
    async fn before_and_after_the_answer() {
        let folder = tempfile::tempdir().unwrap();
        program(folder.path(), "frobnicate");
        let known = begun(folder.path()).await;
        assert_eq!(known.kind("cd"), Some(Kind::Builtin));
        assert_eq!(known.kind("for"), Some(Kind::Keyword));
        assert_eq!(known.kind("frobnicate"), Some(Kind::Program));
        assert_eq!(known.near("frobnicat").as_deref(), Some("frobnicate"));
        assert_eq!(known.kind("ll"), None);

        let other = tempfile::tempdir().unwrap();
        program(other.path(), "quux");
        let path = other.path().display();
        assert!(known.learn(format!("#b\r\ncd\r\n#k\r\nfor\r\n#f\r\nmkcd\r\n#a\r\nll\r\n#p\r\n{path}\r\n").as_bytes()));
        assert_eq!(known.question(), None);
        assert_eq!(known.kind("ll"), Some(Kind::Alias));
        assert_eq!(known.kind("mkcd"), Some(Kind::Function));
        until(|| known.kind("quux") == Some(Kind::Program)).await;
        assert_eq!(known.kind("frobnicate"), None);
        known.outdate();
        assert!(known.question().is_some());
        assert!(!known.learn(b"bash: compgen: command not found\r\n"));
        assert!(known.question().is_some());
    }

    /// SPEC 8.1: a program that was installed meanwhile is known after the next command.
    #[tokio::test]
    async fn a_new_program() {
        let folder = tempfile::tempdir().unwrap();
        let known = begun(folder.path()).await;
        assert_eq!(known.kind("frobnicate"), None);
        program(folder.path(), "frobnicate");
        known.search(folder.path().as_os_str().to_owned());
        until(|| known.kind("frobnicate") == Some(Kind::Program)).await;
    }

    /// SPEC 8.1: a program that came without any command of this shell is known once it was looked for again.
    #[tokio::test]
    async fn a_program_from_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let known = begun(folder.path()).await;
        program(folder.path(), "frobnicate");
        known.look_again();
        known.searched().await;
        assert_eq!(known.kind("frobnicate"), Some(Kind::Program));
    }

    /// SPEC 8.1: paths are those of the shell's directory and of the home, of any length, with any characters.
    #[tokio::test]
    async fn paths() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("src")).unwrap();
        let known = begun(folder.path()).await;
        assert!(!known.is_path("src"));
        known.enter(folder.path());
        for path in ["src", "src/", "./src", ".", "/", "~", "~/"] {
            assert!(known.is_path(path), "{path}");
        }
        for path in ["", "src/x", "nothing", "a\0b", &"x/".repeat(10_000), "~nobody"] {
            assert!(!known.is_path(path), "{path:?}");
        }
    }

    async fn until(condition: impl Fn() -> bool) {
        let waited = async {
            while !condition() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), waited).await.unwrap();
    }
}
