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
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Arguments that leave a shell the one a person would have at a terminal, with the usual start-up files.
const USUAL: [&[u8]; 6] = [b"-i", b"-l", b"-il", b"-li", b"--login", b"--interactive"];

/// Bytes of arguments or variables that are expected.
const IMAGE_BYTES: usize = 64 * 1024;
/// Bytes of them that a process can have: Linux gives both together 6 MiB at most.
const IMAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

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
    // By far the most looks end here: a shell that is ours by its arguments need not have its variables read.
    if has(
        &read_at_once(&place(process, "cmdline"))?,
        folder.as_os_str().as_bytes(),
    ) {
        return None;
    }
    let image = Image::read(process)?;
    if image.names(folder) || !image.lasts(process) {
        return None;
    }
    // Its file may have been replaced meanwhile.
    let program = processes::named(&image.program);
    if Dialect::of(&program).is_some() && is_usual(&image.arguments) {
        return Some(Became::Shell(Successor {
            program,
            directory: fs::read_link(place(process, "cwd")).ok()?,
            environment: variables(&image.environment)?,
        }));
    }
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    Some(Became::Program(name.chars().filter(|c| !c.is_control()).collect()))
}

/// What a process runs, as the system tells it: each of its answers may be of another program, when one takes the place of the
/// other between them.
#[derive(Debug, PartialEq, Eq)]
struct Image {
    program: PathBuf,
    arguments: Vec<u8>,
    environment: Vec<u8>,
}

impl Image {
    /// `None` for a process that ends or is just being replaced: of that one there is nothing to see.
    fn read(process: Pid) -> Option<Self> {
        let filled = |name| read_at_once(&place(process, name)).filter(|text| !text.is_empty());
        Some(Self {
            program: processes::program(process)?,
            arguments: filled("cmdline")?,
            environment: filled("environ")?,
        })
    }

    fn names(&self, folder: &Path) -> bool {
        let folder = folder.as_os_str().as_bytes();
        has(&self.arguments, folder) || has(&self.environment, folder)
    }

    /// Whether the process still is what it was when this was read.
    fn lasts(&self, process: Pid) -> bool {
        Self::read(process).is_some_and(|now| now == *self)
    }
}

fn place(process: Pid, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{}/{name}", process.as_raw_nonzero()))
}

/// A file of the system's about a process, taken in one read: what is read in pieces ends in the middle when the process becomes
/// another program between two of them. `None` where it cannot be read, or is longer than arguments and variables can be.
fn read_at_once(path: &Path) -> Option<Vec<u8>> {
    let mut room = IMAGE_BYTES;
    while room <= IMAGE_BYTES_MAX {
        let mut text = vec![0; room];
        let len = fs::File::open(path).ok()?.read(&mut text).ok()?;
        if len < room {
            text.truncate(len);
            return Some(text);
        }
        room = room.saturating_mul(4);
    }
    None
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

/// `NAME=VALUE`, each ended by a zero; `None` where one is something else. While it takes over its variables, a shell has a zero in
/// the place of the `=` in one after the other.
fn variables(environment: &[u8]) -> Option<Vec<(OsString, OsString)>> {
    let environment = environment.strip_suffix(b"\0")?;
    let pairs = environment.split(|byte| *byte == 0).map(|variable| {
        let at = variable.iter().position(|byte| *byte == b'=').filter(|at| *at > 0)?;
        let (name, value) = variable.split_at(at);
        let value = value.get(1..).unwrap_or_default();
        Some((OsStr::from_bytes(name).to_owned(), OsStr::from_bytes(value).to_owned()))
    });
    pairs.collect()
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

    /// Looks at a shell that is another one every few milliseconds; many a look is in the middle of that.
    const LOOKS: usize = 20_000;

    /// SPEC 8.2: variables are whole, or there are none.
    #[test]
    fn whole_variables() {
        let check = |environment: &str, expect: Option<&[(&str, &str)]>| {
            let pair = |(name, value): &(&str, &str)| (OsString::from(name), OsString::from(value));
            let expect = expect.map(|pairs| pairs.iter().map(pair).collect::<Vec<_>>());
            assert_eq!(variables(environment.as_bytes()), expect, "{environment:?}");
        };
        check("A=1\0B=x=y\0C=\0", Some(&[("A", "1"), ("B", "x=y"), ("C", "")]));
        check("", None);
        check("A=1\0B=x", None);
        check("A\x001\0B=2\0", None);
        check("A=1\0B\0x=y\0", None);
        check("A=1\0=2\0", None);
    }

    /// SPEC 8.2: of a shell that replaces itself all the time all variables are known, or none: it is never begun anew with a part
    /// of them.
    #[test]
    fn in_the_middle_of_an_exec() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join(".bashrc"), "exec /bin/bash -i\n").unwrap();
        // More than is read at once by whoever does not know how much there is.
        let long = "x".repeat(5_000);
        let mut child = Command::new("/bin/bash")
            .arg("-i")
            .env_clear()
            .envs([
                ("HOME", home.path().as_os_str()),
                ("LONG", OsStr::new(&long)),
                ("ZERO", OsStr::new("0")),
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let id = Pid::from_child(&child);
        let (mut seen, mut wrong) = (0, Vec::new());
        for _ in 0..LOOKS {
            let Some(found) = became(id, Path::new("/our/folder")) else {
                continue;
            };
            seen += 1;
            let Became::Shell(next) = found else {
                wrong.push(format!("{found:?}"));
                continue;
            };
            let has = |name: &str, value: &OsStr| next.environment.contains(&(OsString::from(name), value.to_owned()));
            let is_whole =
                has("HOME", home.path().as_os_str()) && has("LONG", OsStr::new(&long)) && has("ZERO", OsStr::new("0"));
            if !is_whole {
                wrong.push(format!("{} variables", next.environment.len()));
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(seen > 0, "it was never a shell");
        assert!(wrong.is_empty(), "{} of {seen}: {:?}", wrong.len(), wrong.first());
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
