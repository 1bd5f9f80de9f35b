//! What the shell of a developer's Debian machine knows: the programs of `programs.txt`, bash's own commands, a few of the
//! user's, and a small directory.
#![allow(clippy::panic)]

use std::collections::HashSet;

use aish_shell::Dialect;
use aish_shell::route::{Kind, Known, Names};

const BUILTINS: &str = ". : [ alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown \
    echo enable eval exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile popd printf pushd pwd \
    read readarray readonly return set shift shopt source suspend test times trap true type typeset ulimit umask unalias unset wait";

const KEYWORDS: &str = "! [[ case coproc do done elif else esac fi for function if in select then time until while {";

/// What fish has and bash has not; the words of its grammar after it.
const FISH: (&str, &str) = (
    "abbr argparse block count emit functions math path random realpath status string set_color contains",
    "and begin end not or switch",
);

/// What zsh has and bash has not, and the words of its grammar.
const ZSH: (&str, &str) = (
    "autoload bindkey print vared whence setopt",
    "foreach nocorrect repeat end",
);

const ALIASES: &str = "ll la gs gd";

const FUNCTIONS: &str = "mkcd unpack";

const FILES: &str = "README.md LICENSE Makefile Cargo.toml package.json .env .gitignore notes.txt data.csv run.sh app.log main.py src \
    src/main.rs src/lib.rs src/bin docs docs/guide.md docs/README.md tests build scripts .git .. . ~ /tmp /etc/hosts /mnt";

/// The machine, perhaps with more for one line.
pub struct Machine {
    programs: HashSet<&'static str>,
    builtins: HashSet<&'static str>,
    keywords: HashSet<&'static str>,
    names: Names,
    more: Vec<(Kind, String)>,
    files: HashSet<String>,
    more_files: Vec<String>,
    dialect: Dialect,
}

impl Machine {
    /// The machine as it is.
    pub fn new() -> Self {
        let programs: HashSet<_> = include_str!("programs.txt").lines().collect();
        let words = |text: &'static str| text.split_whitespace().collect::<HashSet<_>>();
        let mut names: Vec<&str> = programs
            .iter()
            .copied()
            .chain(words(BUILTINS))
            .chain(words(KEYWORDS))
            .collect();
        names.sort_unstable();
        let own = |kind, text: &str| {
            text.split_whitespace()
                .map(move |word| (kind, word.to_owned()))
                .collect::<Vec<_>>()
        };
        Self {
            programs,
            builtins: words(BUILTINS),
            keywords: words(KEYWORDS),
            names: names.into_iter().collect(),
            more: [own(Kind::Alias, ALIASES), own(Kind::Function, FUNCTIONS)].concat(),
            files: words(FILES).into_iter().map(str::to_owned).collect(),
            more_files: Vec::new(),
            dialect: Dialect::Bash,
        }
    }

    /// Adds `context` (`alias:ll file:x function:f program:p shell:fish`) to what is known, for one line.
    pub fn with(&mut self, context: &str) {
        self.more
            .truncate(ALIASES.split_whitespace().count() + FUNCTIONS.split_whitespace().count());
        self.more_files.clear();
        self.dialect = Dialect::Bash;
        for word in context.split_whitespace() {
            match word.split_once(':') {
                Some(("alias", name)) => self.more.push((Kind::Alias, name.to_owned())),
                Some(("function", name)) => self.more.push((Kind::Function, name.to_owned())),
                Some(("program", name)) => self.more.push((Kind::Program, name.to_owned())),
                Some(("file", name)) => self.more_files.push(name.to_owned()),
                Some(("shell", "fish")) => self.speak(Dialect::Fish, FISH),
                Some(("shell", "zsh")) => self.speak(Dialect::Zsh, ZSH),
                Some(_) | None => panic!("context {context:?}"),
            }
        }
    }

    fn speak(&mut self, dialect: Dialect, (builtins, keywords): (&str, &str)) {
        self.dialect = dialect;
        for (kind, words) in [(Kind::Builtin, builtins), (Kind::Keyword, keywords)] {
            self.more
                .extend(words.split_whitespace().map(|word| (kind, word.to_owned())));
        }
    }
}

impl Known for Machine {
    fn dialect(&self) -> Option<Dialect> {
        Some(self.dialect)
    }

    fn kind(&self, word: &str) -> Option<Kind> {
        if let Some((kind, _)) = self.more.iter().find(|(_, name)| name == word) {
            return Some(*kind);
        }
        if self.keywords.contains(word) {
            Some(Kind::Keyword)
        } else if self.builtins.contains(word) {
            Some(Kind::Builtin)
        } else {
            self.programs.contains(word).then_some(Kind::Program)
        }
    }

    fn is_path(&self, word: &str) -> bool {
        let word = if word.len() > 1 {
            word.strip_suffix('/').unwrap_or(word)
        } else {
            word
        };
        self.files.contains(word) || self.more_files.iter().any(|file| file == word)
    }

    fn near(&self, word: &str) -> Option<String> {
        self.names.nearest(word).map(str::to_owned)
    }
}
