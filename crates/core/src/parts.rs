//! What a command line is made of, as data: who reads one fills it in, policy judges it (SPEC 5.7).
//!
//! [`Parts`] are flat: every simple command, however deep it stands, with what is written to or read from ([`Redirect`]) and what is
//! set ([`Assignment`]). Whatever would run is in them, or they say that something is hidden ([`Inner::Hidden`]), or that they are
//! not all ([`Parts::doubt`]).

/// What a command line is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// What runs.
    pub commands: Vec<SimpleCommand>,
    /// Where things go to and come from.
    pub redirects: Vec<Redirect>,
    /// What is set for all commands that follow. What is set for one alone is among its own ([`SimpleCommand::sets`]).
    pub assignments: Vec<Assignment>,
    /// Functions that are defined: from there on, such a name means them. Their bodies are among the commands.
    pub functions: Vec<String>,
    /// Why there may be more, or something else, one line; `None` where the line is understood.
    pub doubt: Option<String>,
}

/// A program, builtin or function, and what it is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimpleCommand {
    /// What is set for it alone: `NAME=value`, each a word.
    pub sets: Vec<Word>,
    /// Its words, the name first.
    pub words: Vec<Word>,
    /// By which commands it is run, the outermost first: `sudo`, `xargs`.
    pub by: Vec<String>,
    /// Whether it runs another.
    pub inner: Inner,
}

impl SimpleCommand {
    /// What is run; `None` if only running it would tell.
    pub fn name(&self) -> Option<&str> {
        self.words.first().and_then(Word::certain)
    }

    /// It as it is written, with what is set for it.
    pub fn written(&self) -> String {
        let words: Vec<&str> = self.all_words().map(|word| word.text.as_str()).collect();
        words.join(" ")
    }

    /// What is set for it, then its words.
    pub fn all_words(&self) -> impl Iterator<Item = &Word> {
        self.sets.iter().chain(&self.words)
    }
}

/// Whether a command runs another that it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inner {
    /// It is not known to.
    None,
    /// It does, and that one is among the parts too.
    Seen,
    /// It does nothing else, and that one is among the parts too: `timeout`, `sh -c`.
    Alone,
    /// It may, and nobody can say which.
    Hidden,
}

/// One word, as a shell would pass it on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// As it is written.
    pub text: String,
    /// What it says, its quotes taken off; `None` if only running it would tell.
    pub value: Option<String>,
    /// It has `*`, `?`, `[…]`, `{…}` or `~` outside quotes, and may become other words.
    pub expands: bool,
}

impl Word {
    /// What it says, if that is all it can become.
    pub fn certain(&self) -> Option<&str> {
        self.value.as_deref().filter(|_| !self.expands)
    }
}

/// What is written to or read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// `>`, `>>`, `<`, `&>`, `>|`, `>&`, `<&`, `<>`.
    pub operator: String,
    /// Which file or descriptor.
    pub target: Word,
}

/// A variable that is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Which.
    pub name: String,
    /// To what; an array is as it is written.
    pub value: Word,
}
