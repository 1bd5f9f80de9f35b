//! A glob as a model writes it → where to start walking, how deep, and what to match.
//!
//! `*` and `?` stay within one name; `**` crosses folders, as in a shell with `globstar`. The leading names without
//! wildcards are split off, so that `src/lib/*.c` reads one folder and not the tree.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

/// A compiled glob.
#[derive(Debug)]
pub(super) struct Pattern {
    /// The leading names without wildcards, as written, without a slash at the end; possibly empty.
    base: String,
    matcher: GlobSet,
    /// The names of the pattern that start with a dot; what is hidden must match one of them.
    hidden: Option<GlobSet>,
    depth_max: Option<usize>,
    wants: Wants,
    sense: Sense,
}

/// What a pattern lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wants {
    /// Everything but folders.
    Files,
    /// Folders: the pattern ends in a slash.
    Folders,
}

/// Whether what matches is meant, or what does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sense {
    Matching,
    Other,
}

impl Pattern {
    /// A pattern that names files below the folder [`Pattern::base`].
    ///
    /// # Errors
    /// `Invalid pattern: …`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut rest = text;
        while let Some(shorter) = rest.strip_prefix("./") {
            rest = shorter;
        }
        let trimmed = rest.trim_end_matches('/');
        let wants = if trimmed.len() < rest.len() {
            Wants::Folders
        } else {
            Wants::Files
        };
        let (base, glob) = split_base(trimmed);
        if glob.is_empty() {
            return Err(format!("Invalid pattern: {text:?} names no file"));
        }
        Self::compile(base, glob, wants, Sense::Matching).map_err(|error| invalid(&error, text))
    }

    /// A filter over files at any depth: `*.rs` looks at names, `src/**` at paths, and a leading `!` turns it round.
    ///
    /// # Errors
    /// `Invalid pattern: …`.
    pub(super) fn filter(text: &str) -> Result<Self, String> {
        let (sense, glob) = match text.strip_prefix('!') {
            Some(glob) => (Sense::Other, glob),
            None => (Sense::Matching, text),
        };
        let glob = glob.trim_start_matches("./");
        let anywhere = if glob.contains('/') {
            glob.to_owned()
        } else {
            format!("**/{glob}")
        };
        let mut pattern = Self::compile("", anywhere.trim_start_matches('/'), Wants::Files, sense)
            .map_err(|error| invalid(&error, text))?;
        if sense == Sense::Other {
            (pattern.depth_max, pattern.hidden) = (None, None);
        }
        Ok(pattern)
    }

    fn compile(base: &str, glob: &str, wants: Wants, sense: Sense) -> Result<Self, globset::Error> {
        let hidden: Vec<&str> = glob.split('/').filter(|name| is_hidden_glob(name)).collect();
        Ok(Self {
            base: base.to_owned(),
            matcher: set_of(&[glob])?,
            hidden: if hidden.is_empty() {
                None
            } else {
                Some(set_of(&hidden)?)
            },
            depth_max: depth_of(glob),
            wants,
            sense,
        })
    }

    /// Where to start, as written; empty for the folder the pattern is relative to.
    pub(super) fn base(&self) -> &str {
        &self.base
    }

    /// What it lists.
    pub(super) fn wants(&self) -> Wants {
        self.wants
    }

    /// Levels below the base that can match; `None` for all.
    pub(super) fn depth_max(&self) -> Option<usize> {
        self.depth_max
    }

    /// True when hidden names have to be looked at.
    pub(super) fn names_hidden(&self) -> bool {
        self.hidden.is_some()
    }

    /// True when the last name of a path is not hidden, or is one the pattern names.
    pub(super) fn admits_hidden(&self, relative: &Path) -> bool {
        let Some(hidden) = &self.hidden else { return true };
        match relative.components().next_back() {
            Some(Component::Normal(name)) if name.as_bytes().starts_with(b".") => hidden.is_match(name),
            Some(_) | None => true,
        }
    }

    /// True when a path relative to the base is meant.
    pub(super) fn is_match(&self, relative: &Path) -> bool {
        match self.sense {
            Sense::Matching => self.matcher.is_match(relative),
            Sense::Other => !self.matcher.is_match(relative),
        }
    }
}

/// A set of one or more globs; a set knows quick ways (by extension, by name) that a single glob does not.
fn set_of(globs: &[&str]) -> Result<GlobSet, globset::Error> {
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        set.add(
            GlobBuilder::new(glob)
                .literal_separator(true)
                .empty_alternates(true)
                .build()?,
        );
    }
    set.build()
}

/// Splits off the leading names without wildcards; the last name always stays in the glob.
fn split_base(text: &str) -> (&str, &str) {
    let first_wild = text.find(['*', '?', '[', '{', '\\']).unwrap_or(text.len());
    let literal = text.get(..first_wild).unwrap_or_default();
    match literal.rfind('/') {
        Some(0) => ("/", text.get(1..).unwrap_or_default()),
        Some(slash) => (
            text.get(..slash).unwrap_or_default(),
            text.get(slash + 1..).unwrap_or_default(),
        ),
        None => ("", text),
    }
}

/// How many levels a glob can reach.
fn depth_of(glob: &str) -> Option<usize> {
    let slash_in_braces = glob
        .split('{')
        .skip(1)
        .any(|rest| rest.split('}').next().is_some_and(|b| b.contains('/')));
    let is_bounded = !glob.contains("**") && !slash_in_braces;
    is_bounded.then(|| glob.matches('/').count() + 1)
}

/// `.x`, or `{.x,y}`.
fn is_hidden_glob(name: &str) -> bool {
    let starts = |text: &str| text.starts_with('.') && text != "." && text != "..";
    starts(name) || name.contains("{.") || name.contains(",.")
}

fn invalid(error: &globset::Error, text: &str) -> String {
    format!("Invalid pattern: {} in {text:?}", error.kind())
}

/// Where the paths of a result start: at the folder as it was written, so that another call can use them as they are.
pub(super) fn shown_folder(written: &str) -> String {
    match written.trim_start_matches("./").trim_end_matches('/') {
        "" | "." if written.starts_with('/') => "/".to_owned(),
        "" | "." => String::new(),
        folder => folder.to_owned(),
    }
}

/// The name of a folder entry joined to what it is shown under.
pub(super) fn shown_path(prefix: &str, relative: &OsStr) -> String {
    let relative = relative.to_string_lossy();
    match prefix {
        "" => relative.into_owned(),
        _ if prefix.ends_with('/') => format!("{prefix}{relative}"),
        _ => format!("{prefix}/{relative}"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn check(text: &str, base: &str, depth_max: Option<usize>, matching: &[&str], other: &[&str]) {
        let pattern = Pattern::parse(text).unwrap();
        assert_eq!((pattern.base(), pattern.depth_max()), (base, depth_max), "{text}");
        for path in matching {
            assert!(pattern.is_match(Path::new(path)), "{text} should match {path}");
        }
        for path in other {
            assert!(!pattern.is_match(Path::new(path)), "{text} should not match {path}");
        }
    }

    /// SPEC 4: recursive `**`; a bare pattern stays in its folder, as shells do.
    #[test]
    fn patterns_split_and_match() {
        check("*.rs", "", Some(1), &["a.rs"], &["b/a.rs", "a.c"]);
        check("**/*.rs", "", None, &["a.rs", "b/c/a.rs"], &["a.c"]);
        check("src/*.c", "src", Some(1), &["a.c"], &["x/a.c"]);
        check("src/main.c", "src", Some(1), &["main.c"], &["amain.c"]);
        check("./src/**", "src", None, &["a", "b/c"], &[]);
        check("/etc/*", "/etc", Some(1), &["passwd"], &[]);
        check("/*", "/", Some(1), &["etc"], &["etc/x"]);
        check("../*/x", "..", Some(2), &["a/x"], &["x"]);
        check("{a,b/c}/*.x", "", None, &["a/1.x", "b/c/1.x"], &["b/1.x"]);
        check("a[0-9]?", "", Some(1), &["a1z"], &["a1", "a1/"]);
    }

    /// SPEC 4: hidden files count only where the pattern names them.
    #[test]
    fn hidden_names_are_admitted_by_name() {
        let pattern = Pattern::parse("**/.env*").unwrap();
        assert!(pattern.names_hidden() && pattern.admits_hidden(Path::new("a/.env.local")));
        assert!(!pattern.admits_hidden(Path::new(".git")));
        assert!(!Pattern::parse("**/*").unwrap().names_hidden());
        assert!(Pattern::parse("{.a,b}").unwrap().names_hidden());
    }

    /// SPEC 4.2: `Invalid pattern: …`.
    #[test]
    fn bad_patterns_are_named() {
        assert!(
            Pattern::parse("a[")
                .unwrap_err()
                .starts_with("Invalid pattern: unclosed character class")
        );
        assert!(Pattern::parse("").unwrap_err().starts_with("Invalid pattern: "));
        assert!(Pattern::filter("{a").unwrap_err().starts_with("Invalid pattern: "));
    }

    /// SPEC 4: the `glob` of a search looks at names at any depth and can be turned round.
    #[test]
    fn filters_match_anywhere() {
        let is_match = |filter: &str, path: &str| Pattern::filter(filter).unwrap().is_match(Path::new(path));
        assert!(is_match("*.rs", "a/b.rs") && !is_match("*.rs", "a/b.c"));
        assert!(!is_match("!*.rs", "a/b.rs") && is_match("!*.rs", "a/b.c"));
        assert!(is_match("src/**", "src/x/y") && !is_match("src/**", "lib/y"));
    }
}
