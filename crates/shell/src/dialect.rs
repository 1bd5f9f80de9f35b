//! The shells we can drive, and what each is told at its start so that it marks its prompt and its commands.
//!
//! The user's own start-up files run first, as they do in a terminal; then ours adds hooks: one before a command runs, one
//! before each prompt. The prompt itself is empty, since ours is shown. Tried with bash 5.2, zsh 5.9 and fish 3.6.

use crate::marks::{self, Keys};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

/// A shell's language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// GNU bash, 5.1 or later.
    Bash,
    /// zsh.
    Zsh,
    /// fish.
    Fish,
}

/// How a shell is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Variables it is given beside the others.
    pub environment: Vec<(OsString, OsString)>,
}

impl Dialect {
    /// The dialect of a program, by its name; `None` for a shell that we cannot drive.
    pub fn of(program: &Path) -> Option<Self> {
        match program.file_name().and_then(OsStr::to_str)? {
            "bash" => Some(Self::Bash),
            "zsh" => Some(Self::Zsh),
            "fish" => Some(Self::Fish),
            _ => None,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Zsh => "zsh",
            Self::Fish => "fish",
        }
    }

    /// The keys that accept a line that was pasted.
    pub(crate) fn accept(self) -> &'static [u8] {
        match self {
            Self::Bash | Self::Zsh => b"\r",
            Self::Fish => FISH_ACCEPT,
        }
    }

    /// The keys that have it mark its prompt, if that came without marks: something of the user's has put our hooks away.
    pub(crate) fn mend(self) -> &'static [u8] {
        b"\x1b[9993~"
    }

    /// The keys that have it run the file [`ASK`] of its folder, unseen: its output is in [`ANSWER`] when that is marked.
    pub(crate) fn ask(self) -> &'static [u8] {
        b"\x1b[9991~"
    }

    /// The keys that take what stands in its line editor out of it, marked.
    pub(crate) fn take(self) -> &'static [u8] {
        b"\x1b[9992~"
    }

    /// Writes what it reads at its start into the folder, and says how it is started.
    ///
    /// # Errors
    /// The files cannot be written.
    pub(crate) fn launch(self, start: &Start<'_>) -> io::Result<Launch> {
        let word = |text: &str| OsString::from(text);
        let folder = start.folder;
        write(folder, KEY, &format!("{}\n", start.keys.closed))?;
        match self {
            Self::Bash => {
                let file = write(folder, "bashrc", &start.fill(BASH))?;
                Ok(Launch {
                    arguments: vec![word("--rcfile"), file.into_os_string(), word("-i")],
                    environment: Vec::new(),
                })
            }
            Self::Zsh => {
                for name in [".zshenv", ".zprofile", ".zlogin"] {
                    write(folder, name, &start.fill(&ZSH_PASSED_ON.replace("NAME", name)))?;
                }
                write(folder, ".zshrc", &start.fill(ZSH))?;
                let mut environment = vec![(word("ZDOTDIR"), folder.as_os_str().to_owned())];
                environment.extend(start.zdotdir.map(|own| (word("AISH_ZDOTDIR"), own.to_owned())));
                Ok(Launch {
                    arguments: vec![word("-i")],
                    environment,
                })
            }
            Self::Fish => {
                let file = write(folder, "aish.fish", &start.fill(FISH))?;
                let source = format!("source {}", quoted(&file));
                let mut arguments = match start.files {
                    StartUp::Own => Vec::new(),
                    StartUp::None => vec![word("--no-config")],
                };
                arguments.extend([word("-i"), word("-C"), word(&source)]);
                Ok(Launch {
                    arguments,
                    environment: Vec::new(),
                })
            }
        }
    }
}

/// What a start depends on.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// Where our files for it are; private.
    pub folder: &'a Path,
    /// What proves its marks.
    pub keys: &'a Keys,
    /// The user's own `ZDOTDIR`.
    pub zdotdir: Option<&'a OsStr>,
    /// Whether it reads the user's files.
    pub files: StartUp,
}

/// Whether a shell reads the user's own start-up files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartUp {
    /// As it does in a terminal.
    Own,
    /// Not at all: one that did was ended by them.
    None,
}

/// The file of a shell's folder with the line that it is to run unseen.
pub const ASK: &str = "ask";
/// And the one with what it printed.
pub const ANSWER: &str = "answer";
/// The file with what proves its marks.
const KEY: &str = "key";

impl Start<'_> {
    fn fill(&self, script: &str) -> String {
        let own = match self.files {
            StartUp::Own => "",
            StartUp::None => NOT_OWN,
        };
        let folder = quoted(self.folder);
        script
            .replace("\nOWN", &format!("\n{own}"))
            .replace("OPEN", &self.keys.open)
            .replace("HOOK", marks::HOOK)
            .replace("FOLDER", &folder)
    }
}

/// Accepts a line in fish, which says by itself neither that a line is not whole nor that it is wrong.
const FISH_ACCEPT: &[u8] = b"\x1b[9990~";

const BASH: &str = include_str!("dialect/start.bash");
const ZSH: &str = include_str!("dialect/start.zsh");
const FISH: &str = include_str!("dialect/start.fish");
/// Before the line that reads the user's own files, where they are not to be read.
const NOT_OWN: &str = "false && ";

/// The user's file of that name, from where zsh would have read it.
const ZSH_PASSED_ON: &str = r#"__aish_own=$ZDOTDIR
if [ -n "${AISH_ZDOTDIR-}" ]; then ZDOTDIR=$AISH_ZDOTDIR; else unset ZDOTDIR; fi
OWN[ -f "${ZDOTDIR:-$HOME}/NAME" ] && . "${ZDOTDIR:-$HOME}/NAME"
[ -n "${ZDOTDIR-}" ] && AISH_ZDOTDIR=$ZDOTDIR
ZDOTDIR=$__aish_own
"#;

fn write(folder: &Path, name: &str, text: &str) -> io::Result<PathBuf> {
    let path = folder.join(name);
    std::fs::write(&path, text)?;
    Ok(path)
}

/// In single quotes, as all of them read it.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}
