//! The shells we can drive, and what each is told at its start so that it marks its prompt and its commands.
//!
//! The user's own start-up files run first, as they do in a terminal; then ours adds hooks: one before a command runs, one
//! before each prompt. The prompt itself is empty, since ours is shown. Tried with bash 5.2, zsh 5.9 and fish 3.6.

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
    pub fn accept(self) -> &'static [u8] {
        match self {
            Self::Bash | Self::Zsh => b"\r",
            Self::Fish => FISH_ACCEPT,
        }
    }

    /// Writes what it reads at its start into `folder`, which must be private, and says how it is started. `key` is the secret
    /// of its marks: letters and digits; `zdotdir` is the user's own `ZDOTDIR`.
    ///
    /// # Errors
    /// The files cannot be written.
    pub fn launch(self, folder: &Path, key: &str, zdotdir: Option<&OsStr>) -> io::Result<Launch> {
        let word = |text: &str| OsString::from(text);
        match self {
            Self::Bash => {
                let file = write(folder, "bashrc", &BASH.replace("KEY", key))?;
                Ok(Launch {
                    arguments: vec![word("--rcfile"), file.into_os_string(), word("-i")],
                    environment: Vec::new(),
                })
            }
            Self::Zsh => {
                for name in [".zshenv", ".zprofile", ".zlogin"] {
                    write(folder, name, &ZSH_PASSED_ON.replace("NAME", name))?;
                }
                write(folder, ".zshrc", &ZSH.replace("KEY", key))?;
                let mut environment = vec![(word("ZDOTDIR"), folder.as_os_str().to_owned())];
                environment.extend(zdotdir.map(|own| (word("AISH_ZDOTDIR"), own.to_owned())));
                Ok(Launch {
                    arguments: vec![word("-i")],
                    environment,
                })
            }
            Self::Fish => {
                let file = write(folder, "aish.fish", &FISH.replace("KEY", key))?;
                let mut source = word("source ");
                source.push(quoted(&file));
                Ok(Launch {
                    arguments: vec![word("-i"), word("-C"), source],
                    environment: Vec::new(),
                })
            }
        }
    }
}

/// Accepts a line in fish, which says by itself neither that a line is not whole nor that it is wrong.
const FISH_ACCEPT: &[u8] = b"\x1b[9990~";

/// `PS0` is written before each command runs. The prompt names the secret by a variable, as `PS1` is often exported.
const BASH: &str = r#"[ -f /etc/bash.bashrc ] && . /etc/bash.bashrc
[ -f ~/.bashrc ] && . ~/.bashrc
__aish_key=KEY
__aish_keep() { __aish_status=$?; return $__aish_status; }
__aish_mark() {
  PS0='\e]133;C;k=${__aish_key}\a' PS1='\[\e]133;B;k=${__aish_key}\a\]' PS2='\[\e]133;P;k=${__aish_key}\a\]'
  printf '\e]133;D;k=%s;%s\a\e]133;W;k=%s;%s\a' "$__aish_key" "$__aish_status" "$__aish_key" "$PWD"
}
shopt -s promptvars
PROMPT_COMMAND=(__aish_keep "${PROMPT_COMMAND[@]}" __aish_mark)
HISTCONTROL=${HISTCONTROL:+$HISTCONTROL:}ignorespace
bind 'set enable-bracketed-paste on' 2>/dev/null
"#;

/// The user's file of that name, from where zsh would have read it.
const ZSH_PASSED_ON: &str = r#"__aish_own=$ZDOTDIR
if [ -n "$AISH_ZDOTDIR" ]; then ZDOTDIR=$AISH_ZDOTDIR; else unset ZDOTDIR; fi
[ -f "${ZDOTDIR:-$HOME}/NAME" ] && . "${ZDOTDIR:-$HOME}/NAME"
[ -n "$ZDOTDIR" ] && AISH_ZDOTDIR=$ZDOTDIR
ZDOTDIR=$__aish_own
"#;

const ZSH: &str = r#"if [ -n "$AISH_ZDOTDIR" ]; then ZDOTDIR=$AISH_ZDOTDIR; else unset ZDOTDIR; fi
unset AISH_ZDOTDIR __aish_own
[ -f "${ZDOTDIR:-$HOME}/.zshrc" ] && . "${ZDOTDIR:-$HOME}/.zshrc"
__aish_begun() { print -n '\e]133;C;k=KEY\a' }
__aish_keep() { __aish_status=$? }
__aish_mark() {
  print -n "\e]133;D;k=KEY;$__aish_status\a"
  print -rn $'\e]133;W;k=KEY;'"$PWD"$'\a'
  PS1=$'%{\e]133;B;k=KEY\a%}' RPS1= PS2=$'%{\e]133;P;k=KEY\a%}' RPS2=
}
precmd_functions=(__aish_keep $precmd_functions __aish_mark)
preexec_functions+=(__aish_begun)
unsetopt prompt_sp prompt_cr
setopt hist_ignore_space
"#;

/// fish draws its prompt again whenever it likes, so the end of a command is marked by its event.
const FISH: &str = r#"function __aish_begun --on-event fish_preexec
    printf '\e]133;C;k=KEY\a'
end
function __aish_mark --on-event fish_postexec
    printf '\e]133;D;k=KEY;%s\a\e]133;W;k=KEY;%s\a' $status $PWD
end
function __aish_accept
    commandline --is-valid
    switch $status
        case 0
            commandline -f execute
        case 2
            printf '\e]133;P;k=KEY\a'
        case '*'
            printf '\e]133;X;k=KEY\a'
    end
end
bind \e\[9990~ __aish_accept
bind -M insert \e\[9990~ __aish_accept
function fish_prompt
    printf '\e]133;B;k=KEY\a'
end
function fish_right_prompt
end
function fish_greeting
end
function fish_title
end
"#;

fn write(folder: &Path, name: &str, text: &str) -> io::Result<PathBuf> {
    let path = folder.join(name);
    std::fs::write(&path, text)?;
    Ok(path)
}

/// In single quotes, as fish reads them.
fn quoted(path: &Path) -> OsString {
    let text = path.display().to_string().replace('\\', "\\\\").replace('\'', "\\'");
    OsString::from(format!("'{text}'"))
}
