//! Paths as a model writes them → absolute paths with every link resolved, and errors that name them (SPEC 4.2).
//!
//! What policy judges and what a tool opens must be the same file, so `..`, `~/` and links are resolved here, once, for
//! every tool. A path that does not exist yet resolves to where it would be made.

use crate::ToolContext;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Links followed for one path before it counts as a loop; the kernel's own bound.
const LINKS_MAX: usize = 40;

/// The absolute path of what `text` names, links resolved; it need not exist.
///
/// # Errors
/// A message for the model: the path is empty, goes through something unreadable, or through a loop of links.
pub(crate) fn resolve(text: &str, context: &ToolContext) -> Result<PathBuf, String> {
    if text.is_empty() {
        return Err("Path is empty".to_owned());
    }
    if text.contains('\0') {
        return Err("Path contains a NUL character".to_owned());
    }
    let path = context.directory.join(expand_home(text, context));
    match path.canonicalize() {
        Ok(path) => Ok(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            resolve_missing(&path).map_err(|error| io_message(text, &error))
        }
        Err(error) => Err(io_message(text, &error)),
    }
}

/// Replaces a leading `~` or `~/` by the home directory of the call's environment; any other `~` is a name.
fn expand_home(text: &str, context: &ToolContext) -> PathBuf {
    let home = || {
        let (_, value) = context.environment.iter().find(|(name, _)| name == "HOME")?;
        (!value.is_empty()).then(|| PathBuf::from(value))
    };
    match (text.strip_prefix("~/"), text) {
        (Some(rest), _) => home().map(|home| home.join(rest)),
        (None, "~") => home(),
        (None, _) => None,
    }
    .unwrap_or_else(|| PathBuf::from(text))
}

/// Resolves as the kernel would, component by component, and goes on by name from the first one that is missing: a
/// dangling link leads to the target it names.
fn resolve_missing(path: &Path) -> io::Result<PathBuf> {
    let mut resolved = PathBuf::from("/");
    let mut rest: VecDeque<OsString> = names(path);
    let mut links = 0;
    while let Some(name) = rest.pop_front() {
        if name == ".." {
            resolved.pop();
            continue;
        }
        let next = resolved.join(&name);
        match next.symlink_metadata() {
            Ok(metadata) if metadata.is_symlink() => {
                links += 1;
                if links > LINKS_MAX {
                    return Err(io::Error::other("too many levels of symbolic links"));
                }
                let target = next.read_link()?;
                if target.is_absolute() {
                    resolved = PathBuf::from("/");
                }
                let mut target = names(&target);
                target.append(&mut rest);
                rest = target;
            }
            Ok(_) => resolved = next,
            Err(error) if error.kind() == io::ErrorKind::NotFound => resolved = next,
            Err(error) => return Err(error),
        }
    }
    Ok(resolved)
}

/// The components that lead somewhere, `..` among them.
fn names(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
        })
        .collect()
}

/// An error of the file system in the words of SPEC 4.2, naming the path as the model wrote it.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the kinds are open-ended: the rest keeps the system's words"
)]
pub(crate) fn io_message(shown: &str, error: &io::Error) -> String {
    let what = match error.kind() {
        io::ErrorKind::NotFound => "File not found",
        io::ErrorKind::PermissionDenied => "Permission denied",
        io::ErrorKind::IsADirectory => "Is a directory",
        io::ErrorKind::NotADirectory => "Not a directory",
        io::ErrorKind::StorageFull => "No space left on device",
        io::ErrorKind::QuotaExceeded => "Disk quota exceeded",
        io::ErrorKind::ReadOnlyFilesystem => "Read-only file system",
        io::ErrorKind::InvalidFilename => "File name too long",
        _ => return format!("Cannot access {shown}: {error}"),
    };
    format!("{what}: {shown}")
}

/// Checks that a path that exists is a regular file.
///
/// # Errors
/// `File not found: p`, `Is a directory: p`, `Not a regular file: p` (a FIFO, socket or device, which could hang or act).
pub(crate) fn require_regular(path: &Path, shown: &str) -> Result<std::fs::Metadata, String> {
    let metadata = path.metadata().map_err(|error| io_message(shown, &error))?;
    if metadata.is_dir() {
        return Err(format!("Is a directory: {shown}"));
    }
    if !metadata.is_file() {
        return Err(format!("Not a regular file: {shown}"));
    }
    Ok(metadata)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::sync::Arc;

    fn context(directory: &Path) -> ToolContext {
        ToolContext {
            directory: directory.to_owned(),
            environment: Arc::new(vec![(
                "HOME".into(),
                directory.with_file_name("home").display().to_string(),
            )]),
            output_bytes_max: 1 << 20,
            hidden: crate::Hidden::default(),
            web: crate::WebAccess::default(),
            place: None,
        }
    }

    /// SPEC 5.2: what leaves the tree is seen to leave it, by `..`, `~` or a link, existing or not.
    #[test]
    fn links_dots_and_home_are_resolved() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("tree/in")).unwrap();
        std::fs::create_dir(root.join("home")).unwrap();
        std::fs::write(root.join("secret"), "x").unwrap();
        symlink(&root, root.join("tree/out")).unwrap();
        symlink("../made-later", root.join("tree/dangling")).unwrap();
        let context = context(&root.join("tree"));
        let check =
            |text: &str, expect: &str| assert_eq!(resolve(text, &context).unwrap(), root.join(expect), "{text}");
        check("in", "tree/in");
        check("./in/../in", "tree/in");
        check("../secret", "secret");
        check("out/secret", "secret");
        check("out/new/file", "new/file");
        check("dangling", "made-later");
        check("new/../../secret", "secret");
        check("~/x", "home/x");
        check("~", "home");
        check("~user", "tree/~user");
    }

    /// SPEC 4.2: errors name the thing.
    #[test]
    fn loops_are_errors() {
        let dir = tempfile::tempdir().unwrap();
        symlink("b", dir.path().join("a")).unwrap();
        symlink("a", dir.path().join("b")).unwrap();
        assert!(
            resolve("a", &context(dir.path()))
                .unwrap_err()
                .starts_with("Cannot access a: ")
        );
        assert_eq!(resolve("", &context(dir.path())).unwrap_err(), "Path is empty");
    }

    /// SPEC 4.2: a file where a folder should be is named.
    #[test]
    fn a_file_is_no_folder() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("f"), "").unwrap();
        assert_eq!(
            resolve("f/x", &context(dir.path())).unwrap_err(),
            "Not a directory: f/x"
        );
    }
}
