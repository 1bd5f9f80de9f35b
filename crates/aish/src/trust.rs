//! Which project directories the user trusts. Nothing is read from a project before (SPEC 10.1, 12): not its
//! `.aish/config.toml`, not its `AGENTS.md`.
//!
//! Trust is given to a directory *and* to what its `.aish/config.toml` said then: the list holds the digest of that file, and
//! a file that changed is asked about again. `AGENTS.md` is not part of the digest: it is text for the model, whose calls
//! pass the gate like any other. The list is `trusted.toml` in the data directory, private to its user.

use crate::config::{Layer, Source, read_text};
use crate::paths::{CONFIG_NAME, lock_dir_of, write_private};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// The directory of a project that holds what aish reads.
pub const PROJECT_DIR: &str = ".aish";
/// The file of a project that is read into the system prompt.
pub const AGENTS_FILE: &str = "AGENTS.md";

/// What stands in the list for a directory that had no configuration when it was trusted.
const NO_CONFIG: &str = "none";

/// Whether a project may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// It may: the user said so, of exactly this configuration.
    Trusted,
    /// The user said so, but its configuration was another then.
    Changed,
    /// The user was not asked yet.
    Unknown,
    /// There is no project here, or nothing in it that aish would read.
    Nothing,
}

/// The answer to one question about a directory.
#[derive(Debug, PartialEq, Eq)]
pub struct Checked {
    /// Whether it may be read.
    pub trust: Trust,
    /// Its configuration, exactly the bytes the answer is about; `None` unless it is trusted and has one.
    pub config: Option<Source>,
}

/// Why a question about trust has no answer.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// A file or directory cannot be read or written.
    #[error("cannot {attempt} {}: {source}", path.display())]
    Io {
        /// What was tried.
        attempt: &'static str,
        /// With what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The list is not what aish wrote.
    #[error("{} is damaged: {message}; repair or remove it", path.display())]
    Damaged {
        /// The list.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// A name the list cannot hold.
    #[error("cannot trust {}: its name is not UTF-8", path.display())]
    NotUtf8 {
        /// The directory.
        path: PathBuf,
    },
    /// There is nothing in the directory that would be read.
    #[error("nothing to trust in {}: it has neither .aish/config.toml nor AGENTS.md", path.display())]
    Nothing {
        /// The directory.
        path: PathBuf,
    },
}

/// The project around a directory: the nearest one upwards with `.aish/` or `AGENTS.md`. The search ends at the root of a git
/// repository and at `home`, both included, so that a file further up cannot speak for it.
pub fn project_dir(cwd: &Path, home: Option<&Path>) -> Option<PathBuf> {
    // The working directory comes without links; the home may have some.
    let real_home = home.and_then(|home| home.canonicalize().ok());
    for dir in cwd.ancestors() {
        if dir.join(PROJECT_DIR).is_dir() || dir.join(AGENTS_FILE).is_file() {
            return Some(dir.to_owned());
        }
        if dir.join(".git").exists() || Some(dir) == home || Some(dir) == real_home.as_deref() {
            return None;
        }
    }
    None
}

/// The configuration of a project.
pub fn project_config(dir: &Path) -> PathBuf {
    dir.join(PROJECT_DIR).join(CONFIG_NAME)
}

/// The list of trusted directories.
#[derive(Clone, Debug)]
pub struct TrustStore {
    file: PathBuf,
}

impl TrustStore {
    /// The list in this file, see [`crate::paths::Paths::trusted`]. Nothing is read yet.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self { file: file.into() }
    }

    /// Whether a project may be read, and its configuration if so. The file is read once: what was compared is what is used.
    /// Of a directory that is not in the list, no file is opened: whatever stands in the place of one can do nothing then.
    ///
    /// # Errors
    /// The list cannot be read; or the configuration of a directory in it.
    pub fn check(&self, dir: &Path) -> Result<Checked, TrustError> {
        let refused = |trust| Ok(Checked { trust, config: None });
        let has_instructions = dir.join(AGENTS_FILE).is_file();
        if !has_instructions && project_config(dir).symlink_metadata().is_err() {
            return refused(Trust::Nothing);
        }
        let Some(then) = self.read()?.remove(&key(dir)?) else {
            return refused(Trust::Unknown);
        };
        let config = read_config(dir)?;
        if config.is_none() && !has_instructions {
            return refused(Trust::Nothing);
        }
        if then != digest(config.as_deref()) {
            return refused(Trust::Changed);
        }
        Ok(Checked {
            trust: Trust::Trusted,
            config: config.map(|text| Source {
                name: project_config(dir).display().to_string(),
                text,
                layer: Layer::Project,
            }),
        })
    }

    /// Trusts a directory with the configuration it has now.
    ///
    /// # Errors
    /// There is nothing to trust, or the list cannot be written; nothing changed then.
    pub fn trust(&self, dir: &Path) -> Result<(), TrustError> {
        let key = key(dir)?;
        let config = read_config(dir)?;
        if config.is_none() && !dir.join(AGENTS_FILE).is_file() {
            return Err(TrustError::Nothing { path: dir.to_owned() });
        }
        let _lock = self.lock()?;
        let mut list = self.read()?;
        list.insert(key, digest(config.as_deref()));
        self.write(&list)
    }

    /// Forgets a directory, which may be gone already. Says whether it was in the list.
    ///
    /// # Errors
    /// The list cannot be read or written; nothing changed then.
    pub fn untrust(&self, dir: &Path) -> Result<bool, TrustError> {
        let key = key(dir).or_else(|error| dir.to_str().map(str::to_owned).ok_or(error))?;
        let _lock = self.lock()?;
        let mut list = self.read()?;
        let found = list.remove(&key).is_some();
        if found {
            self.write(&list)?;
        }
        Ok(found)
    }

    fn lock(&self) -> Result<std::fs::File, TrustError> {
        lock_dir_of(&self.file).map_err(|source| io_error("lock", &self.file, source))
    }

    fn read(&self) -> Result<BTreeMap<String, String>, TrustError> {
        let text = match read_text(&self.file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(source) => return Err(io_error("read", &self.file, source)),
        };
        let file: TrustFile = toml::from_str(&text).map_err(|error| TrustError::Damaged {
            path: self.file.clone(),
            message: error.message().to_owned(),
        })?;
        Ok(file.directories)
    }

    fn write(&self, list: &BTreeMap<String, String>) -> Result<(), TrustError> {
        let mut text = String::from(HEADER);
        for (dir, digest) in list {
            let dir = crate::config::value::toml_text(dir);
            text += &format!("{dir} = \"{digest}\"\n");
        }
        write_private(&self.file, text.as_bytes()).map_err(|source| io_error("write", &self.file, source))
    }
}

const HEADER: &str = "\
# The project directories aish may read, with the digest of their .aish/config.toml.
# `aish trust DIR` adds one, `aish trust --remove DIR` removes one.

[directories]
";

/// The shape of the list.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct TrustFile {
    #[serde(default)]
    directories: BTreeMap<String, String>,
}

/// What a directory is called in the list: its real path, so that no link can borrow another's trust.
fn key(dir: &Path) -> Result<String, TrustError> {
    let real = dir.canonicalize().map_err(|source| io_error("find", dir, source))?;
    let text = real.to_str().map(str::to_owned);
    text.ok_or(TrustError::NotUtf8 { path: real })
}

fn read_config(dir: &Path) -> Result<Option<String>, TrustError> {
    let path = project_config(dir);
    match read_text(&path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(source) => Err(io_error("read", &path, source)),
    }
}

fn digest(config: Option<&str>) -> String {
    let Some(text) = config else {
        return NO_CONFIG.to_owned();
    };
    let hash = Sha256::digest(text.as_bytes());
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

fn io_error(attempt: &'static str, path: &Path, source: io::Error) -> TrustError {
    TrustError::Io {
        attempt,
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;

    struct Scene {
        root: tempfile::TempDir,
        store: TrustStore,
    }

    impl Scene {
        /// A project with this configuration, and an empty list.
        fn new(config: Option<&str>) -> Self {
            let root = tempfile::tempdir().unwrap();
            fs::create_dir_all(root.path().join("project/.aish")).unwrap();
            let store = TrustStore::new(root.path().join("data/trusted.toml"));
            let scene = Self { root, store };
            if let Some(text) = config {
                fs::write(project_config(&scene.project()), text).unwrap();
            }
            scene
        }

        fn project(&self) -> PathBuf {
            self.root.path().join("project")
        }

        fn trust(&self) -> Trust {
            self.store.check(&self.project()).unwrap().trust
        }
    }

    /// SPEC 10.1, 12: a project's file is handed out only once trusted, and a changed file asks again.
    #[test]
    fn trust_is_bound_to_the_content() {
        let scene = Scene::new(Some("max_tool_turns = 5\n"));
        let project = scene.project();
        let refused = scene.store.check(&project).unwrap();
        assert_eq!((refused.trust, refused.config), (Trust::Unknown, None));

        scene.store.trust(&project).unwrap();
        let trusted = scene.store.check(&project).unwrap();
        assert_eq!(trusted.trust, Trust::Trusted);
        let config = trusted.config.unwrap();
        assert_eq!(
            (config.text.as_str(), config.layer),
            ("max_tool_turns = 5\n", Layer::Project)
        );

        fs::write(project_config(&project), "max_tool_turns = 6\n").unwrap();
        let changed = scene.store.check(&project).unwrap();
        assert_eq!((changed.trust, changed.config), (Trust::Changed, None));
        fs::remove_file(project_config(&project)).unwrap();
        assert_eq!(scene.trust(), Trust::Nothing);
    }

    #[test]
    fn trust_is_taken_back() {
        let scene = Scene::new(Some(""));
        scene.store.trust(&scene.project()).unwrap();
        assert_eq!(scene.trust(), Trust::Trusted);
        assert!(scene.store.untrust(&scene.project()).unwrap());
        assert_eq!(scene.trust(), Trust::Unknown);
        assert!(!scene.store.untrust(&scene.project()).unwrap());
        let gone = scene.root.path().join("gone");
        assert!(!scene.store.untrust(&gone).unwrap());
    }

    /// A project with only an AGENTS.md is trusted as it is; a configuration that comes later asks.
    #[test]
    fn a_configuration_that_comes_later_asks() {
        let scene = Scene::new(None);
        assert_eq!(scene.trust(), Trust::Nothing);
        let error = scene.store.trust(&scene.project()).unwrap_err();
        assert!(error.to_string().starts_with("nothing to trust in "), "{error}");
        fs::write(scene.project().join(AGENTS_FILE), "Be brief.").unwrap();
        assert_eq!(scene.trust(), Trust::Unknown);
        scene.store.trust(&scene.project()).unwrap();
        assert_eq!(scene.trust(), Trust::Trusted);
        fs::write(project_config(&scene.project()), "").unwrap();
        assert_eq!(scene.trust(), Trust::Changed);
    }

    /// A link to a trusted directory is that directory; a directory put in its place is not.
    #[test]
    fn links_borrow_no_trust() {
        let scene = Scene::new(Some("a"));
        let link = scene.root.path().join("link");
        std::os::unix::fs::symlink(scene.project(), &link).unwrap();
        scene.store.trust(&link).unwrap();
        assert_eq!(scene.trust(), Trust::Trusted);
        let other = scene.root.path().join("other");
        fs::create_dir_all(other.join(PROJECT_DIR)).unwrap();
        fs::write(project_config(&other), "a").unwrap();
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(&other, &link).unwrap();
        assert_eq!(scene.store.check(&link).unwrap().trust, Trust::Unknown);
    }

    /// SPEC 12: of a directory nobody trusted no file is opened; in a trusted one a pipe is an error and not waited for.
    #[test]
    fn a_pipe_is_not_waited_for() {
        let scene = Scene::new(Some(""));
        let pipe = project_config(&scene.project());
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        let make_pipe = || {
            fs::remove_file(&pipe).unwrap();
            rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, mode).unwrap();
        };
        make_pipe();
        assert_eq!(scene.trust(), Trust::Unknown);
        fs::remove_file(&pipe).unwrap();
        fs::write(&pipe, "").unwrap();
        scene.store.trust(&scene.project()).unwrap();
        make_pipe();
        let error = scene.store.check(&scene.project()).unwrap_err().to_string();
        assert!(error.ends_with("it is not a regular file"), "{error}");
    }

    /// SPEC 10.4: a list that cannot be understood is said to be so, and trusts nothing.
    #[test]
    fn a_damaged_list_is_an_error() {
        let scene = Scene::new(Some(""));
        scene.store.trust(&scene.project()).unwrap();
        fs::write(&scene.store.file, "directories = 3").unwrap();
        let error = scene.store.check(&scene.project()).unwrap_err().to_string();
        assert!(
            error.contains("is damaged") && error.ends_with("repair or remove it"),
            "{error}"
        );
    }

    #[test]
    fn the_list_is_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let scene = Scene::new(Some(""));
        scene.store.trust(&scene.project()).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&scene.store.file), 0o600);
        assert_eq!(mode(scene.store.file.parent().unwrap()), 0o700);
    }

    /// SPEC 10.1: the project is the nearest directory upwards, and a repository's root or the home ends the search.
    #[test]
    fn the_nearest_project_is_found() {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join("home");
        let deep = home.join("repo/src/deep");
        fs::create_dir_all(&deep).unwrap();
        let find = || project_dir(&deep, Some(&home));
        fs::write(root.path().join(AGENTS_FILE), "").unwrap();
        assert_eq!(find(), None, "above the home");
        fs::write(home.join(AGENTS_FILE), "").unwrap();
        assert_eq!(find(), Some(home.clone()));
        fs::create_dir(home.join("repo/.git")).unwrap();
        assert_eq!(find(), None, "above the repository");
        fs::create_dir(home.join("repo/.aish")).unwrap();
        assert_eq!(find(), Some(home.join("repo")));
        let linked = root.path().join("linked-home");
        std::os::unix::fs::symlink(&home, &linked).unwrap();
        fs::remove_file(home.join(AGENTS_FILE)).unwrap();
        assert_eq!(
            project_dir(&home, Some(&linked)),
            None,
            "above the home by another name"
        );
        fs::write(home.join("repo/src/AGENTS.md"), "").unwrap();
        assert_eq!(find(), Some(home.join("repo/src")));
    }
}
