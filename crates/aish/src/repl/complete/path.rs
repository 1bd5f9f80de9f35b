//! Completing a path on a command line.

use super::typed::{Quote, Word, escaped};
use aish_core::sanitize::is_hostile;
use std::fs::DirEntry;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Names of a directory that are looked at: Tab must not take seconds in one of a million files. Where there are more nothing is
/// offered: what all that fit have in common is not known.
const LOOKED_AT_MAX: usize = 200_000;

/// The users of this machine, a row each.
const USERS: &str = "/etc/passwd";
/// The most of it that is read.
const USERS_BYTES_MAX: u64 = 1 << 20;
/// Where in a row the home is, from 0.
const HOME_COLUMN: usize = 5;

/// What is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Only {
    /// Everything.
    Anything,
    /// Directories, for `cd`.
    Directories,
    /// Directories, and what can be run.
    Programs,
}

/// Where paths are looked for.
#[derive(Clone, Copy, Debug)]
pub struct From<'a> {
    /// What relative ones begin at.
    pub directory: &'a Path,
    /// What `~` stands for.
    pub home: Option<&'a Path>,
}

impl From<'_> {
    /// Whether there is a directory of that name.
    pub fn has_directory(self, name: &str) -> bool {
        placed(name, self).is_some_and(|path| path.is_dir())
    }
}

/// All that the last word of a line, as it was `typed`, could become as a path. A directory ends in `/`, and what is quoted stays open
/// behind one: there is more to complete. What is hidden is offered to who typed a dot.
pub fn paths(word: &Word, typed: &str, from: From<'_>, only: Only) -> Vec<String> {
    let (Some(folder), Some(prefix), Some(before)) = (
        word.value.get(..word.directory.value_bytes),
        word.value.get(word.directory.value_bytes..),
        typed.get(..word.directory.typed_bytes),
    ) else {
        return Vec::new();
    };
    let Some(entries) = placed(folder, from).and_then(|folder| std::fs::read_dir(folder).ok()) else {
        return Vec::new();
    };
    // A quote is opened anew where it was not open at the last slash.
    let (opening, quote) = match word.directory.quote {
        Quote::None => (word.quote.mark(), word.quote),
        quote @ (Quote::Single | Quote::Double) => ("", quote),
    };
    let mut offered = Vec::new();
    for (n, entry) in entries.flatten().enumerate() {
        if n == LOOKED_AT_MAX {
            return Vec::new();
        }
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let is_hidden = name.starts_with('.') && !prefix.starts_with('.');
        if !name.starts_with(prefix) || is_hidden || name.chars().any(is_hostile) {
            continue;
        }
        let is_directory = leads_to_directory(&entry);
        let fits = match only {
            Only::Anything => true,
            Only::Directories => is_directory,
            Only::Programs => is_directory || std::fs::metadata(entry.path()).is_ok_and(|it| can_be_run(&it)),
        };
        if fits {
            let end = if is_directory { "/" } else { quote.mark() };
            offered.push(format!("{before}{opening}{}{end}", escaped(&name, quote)));
        }
    }
    offered.sort_unstable();
    offered
}

/// Whether it is a directory, or a link to one: what counts is what is behind it.
fn leads_to_directory(entry: &DirEntry) -> bool {
    match entry.file_type() {
        Ok(kind) if !kind.is_symlink() => kind.is_dir(),
        Ok(_) | Err(_) => std::fs::metadata(entry.path()).is_ok_and(|metadata| metadata.is_dir()),
    }
}

fn can_be_run(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.is_file() && metadata.permissions().mode() & 0o111 != 0
}

/// Where a word's directories are; `None` where only a shell could say.
fn placed(folder: &str, from: From<'_>) -> Option<PathBuf> {
    for begin in ["~/", "$HOME/", "${HOME}/"] {
        if let Some(below) = folder.strip_prefix(begin) {
            return Some(from.home?.join(below));
        }
    }
    if let Some(below) = folder.strip_prefix('~') {
        let (user, below) = below.split_once('/')?;
        return Some(home_of(user, Path::new(USERS))?.join(below));
    }
    (!folder.contains('$')).then(|| from.directory.join(folder))
}

/// Where a user of this machine is at home; who comes from a directory service is not found.
fn home_of(user: &str, users: &Path) -> Option<PathBuf> {
    let mut text = String::new();
    let file = std::fs::File::open(users).ok()?;
    file.take(USERS_BYTES_MAX).read_to_string(&mut text).ok()?;
    let mut rows = text.lines().map(|row| row.split(':'));
    let mut row = rows.find(|row| row.clone().next() == Some(user))?;
    row.nth(HOME_COLUMN)
        .map(PathBuf::from)
        .filter(|home| home.is_absolute())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::typed::typed;
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    /// SPEC 8.9: `~user/` is the home of that user, where there is one.
    #[test]
    fn homes_of_others() {
        let folder = tempfile::tempdir().unwrap();
        let users = folder.path().join("users");
        let rows = "root:x:0:0::/root:/bin/sh\nann:x:1:1::/home/ann:/bin/sh\nodd\nbad:::::x:\n";
        std::fs::write(&users, rows).unwrap();
        assert_eq!(home_of("ann", &users), Some(PathBuf::from("/home/ann")));
        for user in ["an", "", "odd", "bad"] {
            assert_eq!(home_of(user, &users), None, "{user}");
        }
        assert_eq!(home_of("ann", Path::new("/no/such")), None);
    }

    /// SPEC 8.9: paths complete level by level, quoted as they were begun; hidden ones when asked for.
    #[test]
    fn levels_and_quotes() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "notes.md",
            "nice picture.png",
            "src/main.rs",
            "a b/c$d",
            ".env",
            "esc\u{1b}ape",
        ] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        std::fs::set_permissions(folder.path().join("notes.md"), std::fs::Permissions::from_mode(0o755)).unwrap();
        let from = From {
            directory: folder.path(),
            home: Some(folder.path()),
        };
        let offered = |line: &str, only: Only| {
            let typed = typed(line);
            let word = typed.words.last().unwrap();
            paths(word, &line[word.start..], from, only)
        };
        let check = |line: &str, expect: &[&str]| assert_eq!(offered(line, Only::Anything), expect, "{line:?}");
        check("cat n", &[r"nice\ picture.png", "notes.md"]);
        check("cat \"n", &["\"nice picture.png\"", "\"notes.md\""]);
        check("cat 'ni", &["'nice picture.png'"]);
        check(r"cat nice\ p", &[r"nice\ picture.png"]);
        check("cat ", &[r"a\ b/", r"nice\ picture.png", "notes.md", "src/"]);
        check("cat src/", &["src/main.rs"]);
        check("cat ~/src/m", &["~/src/main.rs"]);
        check("cat $HOME/src/m", &["$HOME/src/main.rs"]);
        check(r"cat a\ b/", &[r"a\ b/c\$d"]);
        check("cat \"a b/", &["\"a b/c\\$d\""]);
        check("cat a\" b/\"c", &["a\" b/c\\$d\""]);
        check("cat .", &[".env"]);
        check("cat x", &[]);
        check("cat nowhere/x", &[]);
        check("cat $x/m", &[]);
        check("cat ~nobody/m", &[]);
        assert_eq!(offered("cd ", Only::Directories), [r"a\ b/", "src/"]);
        assert_eq!(offered("./", Only::Programs), ["./a\\ b/", "./notes.md", "./src/"]);
    }
}
