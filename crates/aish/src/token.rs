//! Who is let in by those who serve: the bearer token, from a variable, from a file, or made anew, and what is said of it.
//!
//! [`Wanted`] is what the command line asks for, [`Entry`] what came of it. Nobody but clients learns of a token: [`Entry::hide`]
//! keeps it from the model, from the commands it runs, and out of all that is said.

use crate::failure::Failure;
use crate::oneshot::eprint_line;
use crate::paths::{Environment, OTHERS_MODE_MASK, create_private};
use aish_core::secret::Secret;
use aish_engine::Engine;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::fs;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Characters of a token that somebody chose: fewer can be guessed.
const TOKEN_CHARS_MIN: usize = 16;
/// Random bytes of a token that is made here.
const TOKEN_BYTES: usize = 32;

/// What a token is called where it would be shown.
const TOKEN_NAME: &str = "serve-token";

/// What the command line says of the token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Nothing: it is where such a token usually is.
    Usual,
    /// `--token-env`: it is in this variable.
    Variable(String),
    /// `--no-token`: everybody on this machine is let in.
    Nobody,
}

impl Wanted {
    /// As `--token-env` and `--no-token` say it, of which there is one at most.
    pub fn of(variable: Option<&str>, is_open: bool) -> Self {
        match variable {
            Some(name) => Self::Variable(name.to_owned()),
            None if is_open => Self::Nobody,
            None => Self::Usual,
        }
    }
}

/// Where a token is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Variable(String),
    File(PathBuf),
    /// Nowhere but here: it was made for this process.
    Here,
}

/// Who is let in.
#[derive(Debug)]
pub struct Entry {
    token: Option<(Secret, Place)>,
}

impl Entry {
    /// For those who listen at that address; `usual` is asked where the command line says nothing.
    ///
    /// # Errors
    /// The token is not there, or there is to be none at an address that others reach.
    pub fn find(
        wanted: &Wanted,
        address: SocketAddr,
        environment: &Environment,
        usual: impl FnOnce() -> Result<Self, Failure>,
    ) -> Result<Self, Failure> {
        match wanted {
            Wanted::Usual => usual(),
            Wanted::Variable(name) => Self::in_variable(environment, name)?
                .ok_or_else(|| Failure::usage(format!("--token-env: ${name} is not set"))),
            Wanted::Nobody if address.ip().is_loopback() => Ok(Self { token: None }),
            Wanted::Nobody => {
                let message = format!("--no-token is for this machine itself; {} is not", address.ip());
                Err(Failure::usage(message).hint("listen at 127.0.0.1, or leave out --no-token"))
            }
        }
    }

    /// The token in a variable, if it is set.
    ///
    /// # Errors
    /// It is too short to be one.
    pub fn in_variable(environment: &Environment, name: &str) -> Result<Option<Self>, Failure> {
        let set = environment.text(name).map(str::trim).filter(|set| !set.is_empty());
        let token = set.map(|set| checked(set, &format!("${name}"))).transpose()?;
        Ok(token.map(|token| Self::at(token, Place::Variable(name.to_owned()))))
    }

    /// The token in a file, which is made (mode 0600) with a new one if it is not there. Of several who make it at once all have
    /// the same.
    ///
    /// # Errors
    /// The file cannot be read or made, or holds something else.
    pub fn in_file(path: &Path) -> Result<Self, Failure> {
        let cannot = |what: &str, error: std::io::Error| {
            Failure::failed(format!("cannot {what} the token in {}: {error}", path.display()))
                .hint("name a variable that holds one: --token-env NAME")
        };
        match fs::exists(path) {
            Ok(true) => {}
            Ok(false) => {
                let made = create_private(path, format!("{}\n", fresh()?.expose()).as_bytes());
                match made {
                    Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(cannot("write", error)),
                    // Made here, or by somebody else just now: what is there holds.
                    Ok(()) | Err(_) => {}
                }
            }
            Err(error) => return Err(cannot("read", error)),
        }
        let text = fs::read_to_string(path).map_err(|error| cannot("read", error))?;
        close_to_others(path).map_err(|error| cannot("keep", error))?;
        let token = checked(text.trim(), &path.display().to_string())?;
        Ok(Self::at(token, Place::File(path.to_owned())))
    }

    /// A new token, which holds until this process ends.
    ///
    /// # Errors
    /// The machine has no random numbers.
    pub fn made() -> Result<Self, Failure> {
        fresh().map(|token| Self::at(token, Place::Here))
    }

    fn at(token: Secret, place: Place) -> Self {
        Self {
            token: Some((token, place)),
        }
    }

    /// Keeps the token from all but clients: from text that leaves the process, and from the commands of models and clients.
    pub fn hide(&self, engine: &Engine) {
        let Some((token, place)) = &self.token else { return };
        engine.redactor.learn(TOKEN_NAME, token.expose());
        match place {
            Place::Variable(name) => withhold(engine, name),
            Place::File(_) | Place::Here => {}
        }
    }

    /// Says what clients need, and what is not safe about it.
    pub fn tell(&self, bound: SocketAddr) {
        match &self.token {
            Some((_, Place::Variable(_))) => {}
            Some((_, Place::File(file))) => eprint_line(&format!("clients show the token in {}", file.display())),
            Some((token, Place::Here)) => eprint_line(&format!(
                "clients show this token, which holds until this program ends: {}",
                token.expose()
            )),
            None => {
                eprint_line(
                    "NO TOKEN: every program and every user of this machine is let in, and may use aish's tools",
                );
            }
        }
        if !bound.ip().is_loopback() {
            eprint_line("what is said is not encrypted, the token included: put a TLS proxy in front of it");
        }
    }

    /// The token itself, for whoever checks it.
    pub fn into_token(self) -> Option<Secret> {
        self.token.map(|(token, _)| token)
    }
}

fn fresh() -> Result<Secret, Failure> {
    let mut bytes = [0; TOKEN_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| {
        Failure::failed(format!("cannot make a token: {error}"))
            .hint("name a variable that holds one: --token-env NAME")
    })?;
    Ok(Secret::new(URL_SAFE_NO_PAD.encode(bytes)))
}

/// A file that others could read is closed to them, and its owner is told: whoever read it has the token still.
fn close_to_others(path: &Path) -> std::io::Result<()> {
    let mode = fs::metadata(path)?.permissions().mode();
    if mode & OTHERS_MODE_MASK != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(mode & !OTHERS_MODE_MASK & 0o777))?;
        eprint_line(&format!(
            "{} could be read by others and is closed to them now; remove it to have a new token made",
            path.display()
        ));
    }
    Ok(())
}

/// Keeps a variable that holds a secret from the commands of models and clients.
pub fn withhold(engine: &Engine, name: &str) {
    engine.update(|settings| {
        let environment = settings.context.environment.iter();
        let others = environment.filter(|(other, _)| other != name).cloned().collect();
        settings.context.environment = Arc::new(others);
    });
}

fn checked(text: &str, place: &str) -> Result<Secret, Failure> {
    if text.chars().count() < TOKEN_CHARS_MIN {
        let message = format!("the token in {place} is too short: at least {TOKEN_CHARS_MIN} characters");
        return Err(Failure::usage(message).hint("`openssl rand -hex 32` makes one"));
    }
    Ok(Secret::new(text))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    /// Servers that are started at once, and how often.
    const SERVERS: usize = 8;
    const TIMES: usize = 50;

    /// SPEC 9.8: servers that share a home and are started at once, for the first time, all let in by the same token.
    #[test]
    fn first_starts_at_once() {
        for _ in 0..TIMES {
            let home = tempfile::tempdir().unwrap();
            let (file, start) = (home.path().join("data/serve-token"), Barrier::new(SERVERS));
            let tokens: Vec<String> = std::thread::scope(|scope| {
                let run = || {
                    start.wait();
                    let token = Entry::in_file(&file).unwrap().into_token().unwrap();
                    token.expose().to_owned()
                };
                let threads: Vec<_> = (0..SERVERS).map(|_| scope.spawn(run)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            let kept = fs::read_to_string(&file).unwrap();
            assert!(tokens.iter().all(|token| token == kept.trim()), "{tokens:?}: {kept}");
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
            assert_eq!(
                fs::read_dir(file.parent().unwrap()).unwrap().count(),
                1,
                "left beside it"
            );
        }
    }
}
