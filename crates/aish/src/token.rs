//! Bearer tokens of those who serve: from a variable, from a file, or made anew.

use crate::failure::Failure;
use crate::oneshot::eprint_line;
use crate::paths::{Environment, make_private_dir, write_private};
use aish_core::secret::Secret;
use aish_engine::Engine;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

/// Characters of a token that somebody chose: fewer can be guessed.
const TOKEN_CHARS_MIN: usize = 16;
/// The permissions of everybody but the owner.
const OTHERS: u32 = 0o077;
/// Random bytes of a token that is made here.
const TOKEN_BYTES: usize = 32;

/// The token in a variable, if it is set.
///
/// # Errors
/// It is too short to be one.
pub fn in_variable(environment: &Environment, name: &str) -> Result<Option<Secret>, Failure> {
    let set = environment.text(name).map(str::trim).filter(|set| !set.is_empty());
    set.map(|set| checked(set, &format!("${name}"))).transpose()
}

/// The token in a variable that somebody named.
///
/// # Errors
/// It is not set, or too short.
pub fn named(environment: &Environment, name: &str) -> Result<Secret, Failure> {
    let set = in_variable(environment, name)?;
    set.ok_or_else(|| Failure::usage(format!("--token-env: ${name} is not set")))
}

/// A new token.
///
/// # Errors
/// The machine has no random numbers.
pub fn fresh() -> Result<Secret, Failure> {
    let mut bytes = [0; TOKEN_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| {
        Failure::failed(format!("cannot make a token: {error}"))
            .hint("name a variable that holds one: --token-env NAME")
    })?;
    Ok(Secret::new(URL_SAFE_NO_PAD.encode(bytes)))
}

/// The token in a file, which is made (mode 0600) with a new one if it is not there.
///
/// # Errors
/// The file cannot be read or made, or holds something else.
pub fn in_file(path: &Path) -> Result<Secret, Failure> {
    let cannot = |what: &str, error: std::io::Error| {
        Failure::failed(format!("cannot {what} the token in {}: {error}", path.display()))
            .hint("name a variable that holds one: --token-env NAME")
    };
    match fs::read_to_string(path) {
        Ok(text) => {
            close_to_others(path).map_err(|error| cannot("keep", error))?;
            checked(text.trim(), &path.display().to_string())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let token = fresh()?;
            if let Some(dir) = path.parent() {
                make_private_dir(dir).map_err(|error| cannot("write", error))?;
            }
            write_private(path, format!("{}\n", token.expose()).as_bytes()).map_err(|error| cannot("write", error))?;
            Ok(token)
        }
        Err(error) => Err(cannot("read", error)),
    }
}

/// A file that others could read is closed to them, and its owner is told: whoever read it has the token still.
fn close_to_others(path: &Path) -> std::io::Result<()> {
    let mode = fs::metadata(path)?.permissions().mode();
    if mode & OTHERS != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(mode & !OTHERS & 0o777))?;
        eprint_line(&format!(
            "{} could be read by others and is closed to them now; remove it to have a new token made",
            path.display()
        ));
    }
    Ok(())
}

/// Keeps a variable that holds a token from the commands of models and clients.
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
