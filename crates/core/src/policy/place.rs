//! Places in the file system, by name alone: what a rule's path means, what looks secret, what must not be written unasked.

use super::rule::wildcard;
use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

/// Where paths are counted from.
pub(super) struct Places<'a> {
    /// The working tree.
    pub(super) root: &'a Path,
    /// Where relative paths of calls start.
    pub(super) directory: &'a Path,
    /// The user's home, if known.
    pub(super) home: Option<&'a Path>,
}

impl Places<'_> {
    /// Whether a path (absolute) fits a rule's pattern: as a whole, or relative to the tree. `~/`, `./` and `..` in the
    /// pattern mean what they mean in a shell.
    pub(super) fn fits(&self, pattern: &str, path: &Path) -> bool {
        let pattern: Cow<'_, str> = if pattern.starts_with('~') || pattern.split('/').any(|part| part == "..") {
            normal(&self.counted_from(self.root, pattern))
                .to_string_lossy()
                .into_owned()
                .into()
        } else {
            pattern.strip_prefix("./").unwrap_or(pattern).into()
        };
        let inside = path.strip_prefix(self.root).ok();
        wildcard(&pattern, &path.to_string_lossy())
            || inside.is_some_and(|inside| wildcard(&pattern, &inside.to_string_lossy()))
    }

    /// The path a call names, absolute, links unresolved.
    pub(super) fn absolute(&self, named: &str) -> PathBuf {
        normal(&self.counted_from(self.directory, named))
    }

    fn counted_from(&self, start: &Path, text: &str) -> PathBuf {
        match (text.strip_prefix("~/"), self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            (Some(_) | None, _) => start.join(text),
        }
    }

    /// True inside the tree. A tree that is the whole file system has no inside: everything would be.
    pub(super) fn is_inside(&self, path: &Path) -> bool {
        self.root.parent().is_some() && path.starts_with(self.root)
    }

    /// True for what lies in a hidden folder or file right under the home: settings, histories, keys. A tree inside such a
    /// folder is there to be worked in.
    pub(super) fn is_private(&self, path: &Path) -> bool {
        let Some(home) = self.home else { return false };
        let Some(first) = path
            .strip_prefix(home)
            .ok()
            .and_then(|inside| inside.components().next())
        else {
            return false;
        };
        let is_hidden = first.as_os_str().to_string_lossy().starts_with('.');
        is_hidden && !self.root.starts_with(home.join(first))
    }
}

/// A path without `.` and `..`, by its text alone: where it would lead if no part of it were a link.
pub fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => out.push(part),
        }
    }
    out
}

/// True for files that usually hold keys or passwords, by name alone.
pub fn is_secret_path(path: &Path) -> bool {
    const FOLDERS: &[&str] = &[
        ".ssh",
        ".gnupg",
        ".aws",
        ".azure",
        ".kube",
        ".docker",
        "gcloud",
        ".password-store",
    ];
    const NAMES: &[&str] = &[
        ".netrc",
        "_netrc",
        ".npmrc",
        ".pypirc",
        ".pgpass",
        ".my.cnf",
        ".htpasswd",
        ".git-credentials",
        ".vault-token",
        "credentials",
        "credentials.json",
        "credentials.toml",
        "secrets.json",
        "secrets.yaml",
        "secrets.yml",
        "secrets.toml",
        "shadow",
        "gshadow",
        "master.key",
        ".envrc",
    ];
    const STEMS: &[&str] = &["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"];
    const ENDINGS: &[&str] = &[
        "pem", "key", "p12", "pfx", "kdbx", "keystore", "jks", "ppk", "asc", "gpg",
    ];
    let lower = |part: &std::ffi::OsStr| part.to_string_lossy().to_ascii_lowercase();
    let mut parts = path.iter().map(lower);
    if parts.any(|part| FOLDERS.contains(&part.as_str())) {
        return true;
    }
    let Some(name) = path.file_name().map(lower) else {
        return false;
    };
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    let environment =
        name == ".env" || (name.starts_with(".env.") && !name.ends_with(".example") && !name.ends_with(".sample"));
    environment
        || NAMES.contains(&name.as_str())
        || (STEMS.iter().any(|stem| name.starts_with(stem)) && ending != Some("pub"))
        || ending.is_some_and(|ending| ENDINGS.contains(&ending))
}

/// True for places where a write can come to run as code or change the rules, wherever the tree begins.
pub(super) fn is_protected_path(path: &Path) -> bool {
    const NAMES: &[&str] = &[
        ".git",
        ".aish",
        ".hg",
        ".svn",
        ".vscode",
        ".idea",
        ".husky",
        ".direnv",
        ".bashrc",
        ".bash_profile",
        ".bash_login",
        ".bash_logout",
        ".bash_aliases",
        ".profile",
        ".zshrc",
        ".zshenv",
        ".zprofile",
        ".zlogin",
        ".zlogout",
        ".cshrc",
        ".tcshrc",
        ".kshrc",
        ".inputrc",
        ".gitconfig",
        ".vimrc",
        ".exrc",
        ".xprofile",
        ".xinitrc",
        ".xsession",
    ];
    path.iter().any(|part| NAMES.contains(&part.to_string_lossy().as_ref()))
}
