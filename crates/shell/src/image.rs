//! What the process of a shell runs: still our shell, or what it has become by `exec`.
//!
//! A shell that replaces itself forgets all that we have told it: its prompt has no marks, and nothing would say when a command is
//! over. Another one of the three can be begun anew in its place, with what it had exported and where it worked; every other
//! program is the person's own business, until it ends.

use crate::dialect::Dialect;
use crate::processes;
use rustix::process::Pid;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Arguments that leave a shell the one a person would have at a terminal, with the usual start-up files.
const USUAL: [&[u8]; 6] = [b"-i", b"-l", b"-il", b"-li", b"--login", b"--interactive"];

/// What a shell has become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Became {
    /// An interactive shell that can be driven, to be begun anew in its place.
    Shell(Successor),
    /// Any other program; its name, without control characters.
    Program(String),
}

/// A shell to be begun in the place of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Successor {
    /// Its program; absolute.
    pub program: PathBuf,
    /// Where it is to work.
    pub directory: PathBuf,
    /// All its variables.
    pub environment: Vec<(OsString, OsString)>,
}

/// Looks; `None` while it is the shell that was started with its files in that folder, or nobody can tell.
pub fn became(process: Pid, folder: &Path) -> Option<Became> {
    let place = |name: &str| format!("/proc/{}/{name}", process.as_raw_nonzero());
    // Of one that ends, or is just being replaced, there is nothing to see.
    let is_ours_or_nothing = |text: &[u8]| text.is_empty() || has(text, folder.as_os_str().as_bytes());
    let arguments = fs::read(place("cmdline")).ok()?;
    if is_ours_or_nothing(&arguments) {
        return None;
    }
    let environment = fs::read(place("environ")).ok()?;
    if is_ours_or_nothing(&environment) {
        return None;
    }
    // Its file may have been replaced meanwhile.
    let program = processes::named(&processes::program(process)?);
    if Dialect::of(&program).is_some() && is_usual(&arguments) {
        return Some(Became::Shell(Successor {
            program,
            directory: fs::read_link(place("cwd")).ok()?,
            environment: variables(&environment),
        }));
    }
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    Some(Became::Program(name.chars().filter(|c| !c.is_control()).collect()))
}

fn has(all: &[u8], part: &[u8]) -> bool {
    all.windows(part.len().max(1)).any(|window| window == part)
}

/// Whether these arguments, the first of which is the name, are those of a shell at a terminal.
fn is_usual(arguments: &[u8]) -> bool {
    let arguments = arguments.strip_suffix(b"\0").unwrap_or(arguments);
    let mut words = arguments.split(|byte| *byte == 0);
    words.next();
    words.all(|word| USUAL.contains(&word))
}

/// `NAME=VALUE`, each ended by a zero.
fn variables(environment: &[u8]) -> Vec<(OsString, OsString)> {
    let pairs = environment.split(|byte| *byte == 0).filter_map(|variable| {
        let at = variable.iter().position(|byte| *byte == b'=')?;
        let (name, value) = variable.split_at(at);
        Some((name, value.get(1..).unwrap_or_default()))
    });
    let named = pairs.filter(|(name, _)| !name.is_empty());
    named
        .map(|(name, value)| (OsStr::from_bytes(name).to_owned(), OsStr::from_bytes(value).to_owned()))
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    /// Looks for a program that was just started, 5 ms apart.
    const POLLS_MAX: usize = 4_000;

    fn started(program: &str, arguments: &[&str]) -> Child {
        Command::new(program)
            .args(arguments)
            .current_dir("/usr/bin")
            .env_clear()
            .env("COLOUR", "blue")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    fn seen(child: &mut Child, folder: &str) -> Option<Became> {
        let found = (0..POLLS_MAX).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            became(Pid::from_child(child), Path::new(folder))
        });
        child.kill().unwrap();
        child.wait().unwrap();
        found
    }

    /// SPEC 8.2: a shell that became another one is known, with what it needs to be begun anew.
    #[test]
    fn another_shell() {
        let Some(Became::Shell(next)) = seen(&mut started("/bin/bash", &["-i"]), "/our/folder") else {
            panic!("no shell");
        };
        assert_eq!(next.program.file_name().unwrap(), "bash");
        assert_eq!(next.directory, Path::new("/usr/bin").canonicalize().unwrap());
        assert_eq!(next.environment, [(OsString::from("COLOUR"), OsString::from("blue"))]);
    }

    /// SPEC 8.2: what runs a file or a line, or is no such shell, is a program like any other.
    #[test]
    fn other_programs() {
        for (program, arguments, name) in [
            ("/bin/bash", ["--norc", "-i"], "bash"),
            ("/bin/bash", ["-c", "read x"], "bash"),
            ("/bin/sleep", ["1000", "0"], "sleep"),
        ] {
            let found = seen(&mut started(program, &arguments), "/our/folder");
            let Some(Became::Program(found)) = found else {
                panic!("{arguments:?}: {found:?}");
            };
            assert!(found.contains(name), "{found}");
        }
    }

    /// A process with our folder among its arguments or variables is still ours; one that is gone is nobody's.
    #[test]
    fn ours() {
        let mut child = started("/bin/sleep", &["1000"]);
        let id = Pid::from_child(&child);
        let there = (0..POLLS_MAX).any(|_| became(id, Path::new("/nowhere")).is_some());
        assert!(there);
        assert_eq!(became(id, Path::new("blue")), None);
        assert_eq!(became(id, Path::new("1000")), None);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(became(id, Path::new("/nowhere")), None);
    }
}
