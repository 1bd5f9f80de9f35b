//! Where aish's own files are, from the environment alone: `AISH_HOME` moves all of them together, else the XDG base
//! directories hold them (SPEC 10.1). Also how such a file is written: private to its user, whole or not at all.
//!
//! [`Environment`] is a copy of the process's variables taken once at start, so that everything that depends on one can
//! be tested with another.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The bits that let others read or write a file.
pub const OTHERS_MODE_MASK: u32 = 0o077;

/// The environment variables of the process, or of a test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// What this process was given.
    pub fn of_process() -> Self {
        Self(std::env::vars_os().collect())
    }

    /// These variables and no others.
    pub fn from_pairs<K: Into<OsString>, V: Into<OsString>>(pairs: impl IntoIterator<Item = (K, V)>) -> Self {
        Self(
            pairs
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        )
    }

    /// A variable's value. One that is set but empty counts as unset, as the XDG specification wants it and as
    /// `AISH_MODEL= aish` suggests. A value that is not UTF-8 counts as unset too; use [`Environment::path`] for paths.
    pub fn text(&self, name: &str) -> Option<&str> {
        let value = self.0.get(OsStr::new(name))?.to_str()?;
        (!value.is_empty()).then_some(value)
    }

    /// A variable's value as a path; set but empty counts as unset.
    pub fn path(&self, name: &str) -> Option<&Path> {
        let value = self.0.get(OsStr::new(name))?;
        (!value.is_empty()).then_some(Path::new(value))
    }

    /// The same without one variable.
    pub fn without(&self, name: &str) -> Self {
        let mut less = self.clone();
        less.0.remove(OsStr::new(name));
        less
    }

    /// All of them, sorted by name.
    pub fn pairs(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.0.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// The names of all variables that are UTF-8, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().filter_map(|name| name.to_str())
    }
}

/// Where aish's own files are. All paths are absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// The user's configuration file.
    pub config_file: PathBuf,
    /// Who chose that file: one chosen by name must exist.
    pub config_choice: ConfigChoice,
    /// What must not be lost: the ledger, what was trusted.
    pub data_dir: PathBuf,
    /// What can be made again.
    pub cache_dir: PathBuf,
    /// The ledger's SQLite file.
    pub ledger: PathBuf,
    /// Which project directories the user trusts, see [`mod@crate::trust`].
    pub trusted: PathBuf,
}

/// How the configuration file was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigChoice {
    /// The usual place; the file may be missing.
    Usual,
    /// `--config`; the file must exist.
    Flag,
    /// `$AISH_CONFIG`; the file must exist.
    Variable,
}

/// No place for aish's files can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot tell where to keep {what}: neither AISH_HOME, {xdg} nor HOME is set; set HOME, or AISH_HOME to a directory for aish's files"
)]
pub struct NoHome {
    what: &'static str,
    xdg: &'static str,
}

impl Paths {
    /// Finds the places. `cwd` (absolute) completes relative paths of `AISH_HOME`, `AISH_CONFIG` and `--config`; relative
    /// XDG variables are ignored, as their specification demands. Touches no file.
    ///
    /// # Errors
    /// `HOME` is needed and not set.
    pub fn find(environment: &Environment, config_flag: Option<&Path>, cwd: &Path) -> Result<Self, NoHome> {
        let home = environment.path("AISH_HOME").map(|home| cwd.join(home));
        let data_dir = match &home {
            Some(home) => home.join("data"),
            None => xdg_dir(environment, &XDG_DATA)?,
        };
        let cache_dir = match &home {
            Some(home) => home.join("cache"),
            None => xdg_dir(environment, &XDG_CACHE)?,
        };
        let (config_file, config_choice) = match (config_flag, environment.path("AISH_CONFIG"), &home) {
            (Some(flag), _, _) => (cwd.join(flag), ConfigChoice::Flag),
            (None, Some(variable), _) => (cwd.join(variable), ConfigChoice::Variable),
            (None, None, Some(home)) => (home.join(CONFIG_NAME), ConfigChoice::Usual),
            (None, None, None) => (
                xdg_dir(environment, &XDG_CONFIG)?.join(CONFIG_NAME),
                ConfigChoice::Usual,
            ),
        };
        Ok(Self {
            config_file,
            config_choice,
            ledger: data_dir.join("ledger.db"),
            trusted: data_dir.join("trusted.toml"),
            data_dir,
            cache_dir,
        })
    }
}

/// The name of the configuration file, the user's and a project's.
pub const CONFIG_NAME: &str = "config.toml";

/// One of the XDG base directories: what aish keeps there, its variable and its place under `HOME`.
struct Xdg {
    what: &'static str,
    variable: &'static str,
    under_home: &'static str,
}

const XDG_CONFIG: Xdg = Xdg {
    what: "the configuration",
    variable: "XDG_CONFIG_HOME",
    under_home: ".config",
};
const XDG_DATA: Xdg = Xdg {
    what: "the ledger",
    variable: "XDG_DATA_HOME",
    under_home: ".local/share",
};
const XDG_CACHE: Xdg = Xdg {
    what: "the cache",
    variable: "XDG_CACHE_HOME",
    under_home: ".cache",
};

fn xdg_dir(environment: &Environment, xdg: &Xdg) -> Result<PathBuf, NoHome> {
    let base = match environment.path(xdg.variable).filter(|path| path.is_absolute()) {
        Some(base) => base.to_owned(),
        None => environment
            .path("HOME")
            .filter(|path| path.is_absolute())
            .ok_or(NoHome {
                what: xdg.what,
                xdg: xdg.variable,
            })?
            .join(xdg.under_home),
    };
    Ok(base.join("aish"))
}

/// Replaces a file by these bytes: whole or not at all, on disk when this returns. A new file is readable by its user only;
/// one that exists keeps its mode, and a link is followed (people link their configuration from elsewhere). Missing
/// directories are made, private too.
///
/// # Errors
/// The system's, with nothing changed.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let target = match path.canonicalize() {
        Ok(target) => target,
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
        Err(error) => return Err(error),
    };
    let (file, dir) = written_beside(&target, bytes)?;
    match std::fs::metadata(&target) {
        Ok(old) => file.as_file().set_permissions(old.permissions())?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    file.as_file().sync_all()?;
    file.persist(&target).map_err(|error| error.error)?;
    dir.sync_all()
}

/// Makes a file of these bytes, readable by its user only: whole or not at all, on disk when this returns. Of several who make it at
/// once one does. Missing directories are made, private too.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] where there is one, which stays as it is; the system's, with nothing changed.
pub fn create_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (file, dir) = written_beside(path, bytes)?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path).map_err(|error| error.error)?;
    dir.sync_all()
}

/// A file with these bytes that has no name of its own yet, beside that path; and the directory of both.
fn written_beside(path: &Path, bytes: &[u8]) -> io::Result<(tempfile::NamedTempFile, std::fs::File)> {
    let dir = path.parent().unwrap_or(Path::new("."));
    make_private_dir(dir)?;
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    file.write_all(bytes)?;
    Ok((file, std::fs::File::open(dir)?))
}

/// Makes a directory and its parents; those made are entered by their user only.
///
/// # Errors
/// The system's.
pub fn make_private_dir(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Locks the directory of a file, which is made if missing, until the answer is dropped: for reading, changing and writing a
/// private file while others may do the same.
///
/// # Errors
/// The system's, or somebody held the lock for too long.
pub fn lock_dir_of(path: &Path) -> io::Result<std::fs::File> {
    let dir = path.parent().unwrap_or(Path::new("."));
    make_private_dir(dir)?;
    let lock = std::fs::File::open(dir)?;
    for _ in 0..LOCK_ATTEMPTS_MAX {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(std::fs::TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            Err(std::fs::TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::Error::new(
        io::ErrorKind::TimedOut,
        "another aish is writing it and does not finish",
    ))
}

/// How often a lock is tried: with the pause between, two seconds.
const LOCK_ATTEMPTS_MAX: u32 = 200;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    fn find(pairs: &[(&str, &str)], flag: Option<&str>) -> Result<Paths, NoHome> {
        let environment = Environment::from_pairs(pairs.iter().copied());
        Paths::find(&environment, flag.map(Path::new), Path::new("/cwd"))
    }

    /// SPEC 10.1: `AISH_HOME` moves configuration, data and cache together.
    #[test]
    fn aish_home_moves_everything() {
        let paths = find(
            &[("AISH_HOME", "/a"), ("HOME", "/home/u"), ("XDG_DATA_HOME", "/x")],
            None,
        )
        .unwrap();
        assert_eq!(paths.config_file, Path::new("/a/config.toml"));
        assert_eq!(paths.ledger, Path::new("/a/data/ledger.db"));
        assert_eq!(paths.trusted, Path::new("/a/data/trusted.toml"));
        assert_eq!(paths.cache_dir, Path::new("/a/cache"));
        assert_eq!(
            find(&[("AISH_HOME", "here")], None).unwrap().data_dir,
            Path::new("/cwd/here/data")
        );
    }

    /// SPEC 10.1: otherwise the XDG directories, relative ones ignored, their defaults below the home.
    #[test]
    fn xdg_directories_are_used() {
        let paths = find(
            &[
                ("HOME", "/home/u"),
                ("XDG_CONFIG_HOME", "/c"),
                ("XDG_CACHE_HOME", "rel"),
            ],
            None,
        )
        .unwrap();
        assert_eq!(paths.config_file, Path::new("/c/aish/config.toml"));
        assert_eq!(paths.ledger, Path::new("/home/u/.local/share/aish/ledger.db"));
        assert_eq!(paths.cache_dir, Path::new("/home/u/.cache/aish"));
    }

    /// SPEC 10.1, 10.3: `--config`, then `$AISH_CONFIG`, then the usual place.
    #[test]
    fn the_configuration_file_is_chosen() {
        let both = [("AISH_HOME", "/a"), ("AISH_CONFIG", "/b.toml")];
        let chosen = |flag| {
            let paths = find(&both, flag).unwrap();
            (paths.config_file, paths.config_choice)
        };
        assert_eq!(chosen(Some("c.toml")), ("/cwd/c.toml".into(), ConfigChoice::Flag));
        assert_eq!(chosen(None), ("/b.toml".into(), ConfigChoice::Variable));
        let empty = find(&[("AISH_HOME", "/a"), ("AISH_CONFIG", "")], None).unwrap();
        assert_eq!(
            (empty.config_file, empty.config_choice),
            ("/a/config.toml".into(), ConfigChoice::Usual)
        );
    }

    /// SPEC 10.4: without a home the error says what to set.
    #[test]
    fn no_home_says_what_to_set() {
        let error = find(&[], None).unwrap_err();
        insta::assert_snapshot!(error, @"cannot tell where to keep the ledger: neither AISH_HOME, XDG_DATA_HOME nor HOME is set; set HOME, or AISH_HOME to a directory for aish's files");
        assert!(find(&[("HOME", "relative")], None).is_err());
        let all = [
            ("XDG_CONFIG_HOME", "/c"),
            ("XDG_DATA_HOME", "/d"),
            ("XDG_CACHE_HOME", "/e"),
        ];
        assert!(find(&all, None).is_ok());
    }

    /// SPEC 10.5: a new file is private; an old one keeps its mode, and a link stays a link.
    #[test]
    fn files_are_written_privately() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("new/dir/file");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        write_private(&file, b"1").unwrap();
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));

        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        let link = root.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write_private(&link, b"2").unwrap();
        assert_eq!((mode(&file), fs::read(&file).unwrap()), (0o644, b"2".to_vec()));
        assert!(link.is_symlink());
        assert_eq!(
            fs::read_dir(file.parent().unwrap()).unwrap().count(),
            1,
            "nothing is left beside it"
        );
    }
}
