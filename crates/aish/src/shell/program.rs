//! Which shell is the user's: the one of the configuration, else `$SHELL`, else the first that can be driven.

use crate::paths::Environment;
use aish_core::sanitize;
use aish_shell::Dialect;
use std::path::{Path, PathBuf};

/// Shells that are looked for where `$SHELL` is none that can be kept running; the most common first.
const OTHERS: [&str; 3] = ["bash", "zsh", "fish"];

/// The shell that is begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its program; absolute.
    pub program: PathBuf,
    /// What a person should know of the choice, one line.
    pub remark: Option<String>,
}

/// Says which; `None` where there is no shell that can be driven. `wanted` is the configuration's.
pub fn choose(wanted: Option<&Path>, environment: &Environment) -> Option<Choice> {
    let asked_for = match wanted {
        Some(wanted) => Some(("shell.program", wanted)),
        None => environment.path("SHELL").map(|shell| ("$SHELL", shell)),
    };
    let Some((named, program)) = asked_for else {
        return any(environment).map(|program| Choice { program, remark: None });
    };
    let why = match (find(program, environment), Dialect::of(program)) {
        (Some(program), Some(_)) => return Some(Choice { program, remark: None }),
        (None, _) => "is not there",
        (Some(_), None) => "cannot be kept running here",
    };
    let shown = program.display().to_string();
    let instead = any(environment)?;
    let remark = format!(
        "{named}: {} {why}; commands run in {}",
        sanitize::single_line(&shown),
        instead.display()
    );
    Some(Choice {
        program: instead,
        remark: Some(remark),
    })
}

fn any(environment: &Environment) -> Option<PathBuf> {
    OTHERS.iter().find_map(|name| find(Path::new(name), environment))
}

/// Where a program is: itself, or in `PATH` where it is a bare name.
fn find(program: &Path, environment: &Environment) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return (program.is_absolute() && is_program(program)).then(|| program.to_owned());
    }
    let path = environment.path("PATH")?;
    let mut places = std::env::split_paths(path).filter(|place| place.is_absolute());
    places.find_map(|place| Some(place.join(program)).filter(|found| is_program(found)))
}

fn is_program(path: &Path) -> bool {
    use rustix::fs::{Access, access};
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    /// SPEC 8.2: the user's own shell; where it cannot be driven another one, and that is said.
    #[test]
    fn the_users_shell() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["bash", "zsh", "nu"] {
            let path = folder.path().join(name);
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let at = |name: &str| folder.path().join(name);
        let environment = |shell: Option<PathBuf>| {
            let path = ("PATH", folder.path().to_owned());
            Environment::from_pairs(std::iter::once(path).chain(shell.map(|shell| ("SHELL", shell))))
        };
        let check = |wanted: Option<&str>, shell: Option<&str>, expect: &str, remark: Option<&str>| {
            let environment = environment(shell.map(at));
            let chosen = choose(wanted.map(Path::new), &environment).unwrap();
            assert_eq!(chosen.program, at(expect));
            let said = chosen.remark.unwrap_or_default();
            assert!(said.contains(remark.unwrap_or_default()), "{said}");
            assert_eq!(said.is_empty(), remark.is_none(), "{said}");
        };
        check(None, Some("zsh"), "zsh", None);
        check(None, None, "bash", None);
        check(
            None,
            Some("nu"),
            "bash",
            Some("nu cannot be kept running here; commands run in"),
        );
        check(None, Some("fish"), "bash", Some("fish is not there"));
        check(Some("zsh"), Some("bash"), "zsh", None);
        check(
            Some("fish"),
            Some("zsh"),
            "bash",
            Some("shell.program: fish is not there"),
        );
        let nothing = Environment::from_pairs([("PATH", "/nowhere"), ("SHELL", "/nowhere/bash")]);
        assert_eq!(choose(None, &nothing), None);
    }
}
