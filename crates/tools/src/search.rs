//! The tools that find files by name and lines by pattern: [`GlobTool`], [`GrepTool`].
//!
//! Both walk the tree with ripgrep's own walker, on all cores, with its rules: ignore files count (`.gitignore` inside a
//! git repository), hidden files do not unless the pattern names them, links are not followed. Results are gathered in
//! any order and come out sorted, within a bound on memory that does not depend on the tree.

mod glob;
mod grep;
mod hits;
mod pattern;
mod render;

pub use glob::GlobTool;
pub use grep::GrepTool;

use crate::Hidden;
use crate::work::Stop;
use ignore::{DirEntry, WalkBuilder, WalkState};
use pattern::Pattern;
use rustix::fd::OwnedFd;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// An open folder to walk, and the path it was judged by.
struct Root<'a> {
    path: &'a Path,
    /// Leads to the open folder whatever is put in the place of the path.
    walked: PathBuf,
    _open: &'a OwnedFd,
}

impl<'a> Root<'a> {
    fn new(path: &'a Path, open: &'a OwnedFd) -> Self {
        let walked = crate::open::path_of(open);
        Self {
            path,
            walked,
            _open: open,
        }
    }
}

/// Walks a folder on all cores; `visitor` makes one function per thread, called with every entry below `root` that the
/// ignore rules let through, and its path relative to `root`.
fn walk<'a>(
    root: &Root<'a>,
    pattern: Option<&'a Pattern>,
    hidden: &'a Hidden,
    stop: &'a Stop,
    visitor: impl Fn() -> Visitor<'a>,
) {
    let mut builder = WalkBuilder::new(&root.walked);
    builder.hidden(!pattern.is_some_and(Pattern::names_hidden));
    builder.max_depth(pattern.and_then(Pattern::depth_max));
    // The path that is walked ends in a slash.
    let root_len = root.walked.as_os_str().len();
    let judged = root.path;
    builder.build_parallel().run(|| {
        let mut visit = visitor();
        Box::new(move |entry| {
            if stop.is_set() {
                return WalkState::Quit;
            }
            // What cannot be read below the root is passed over, as a shell's own globbing does.
            let Ok(entry) = entry else {
                return WalkState::Continue;
            };
            if entry.depth() == 0 {
                return WalkState::Continue;
            }
            let relative = entry.path().as_os_str().as_bytes().get(root_len..).unwrap_or_default();
            let relative = Path::new(OsStr::from_bytes(relative));
            if pattern.is_some_and(|pattern| !pattern.admits_hidden(relative)) {
                return WalkState::Skip;
            }
            if hidden.covers(&judged.join(relative)) {
                return WalkState::Skip;
            }
            visit(&entry, relative);
            WalkState::Continue
        })
    });
}

/// What one thread of a walk does with an entry.
type Visitor<'a> = Box<dyn FnMut(&DirEntry, &Path) + Send + 'a>;
