//! Completing the path of a mention while it is typed.

use super::{OPENING, Places, placed};
use aish_core::sanitize::is_hostile;

/// Names offered at once; more are no choice.
const OFFERED_MAX: usize = 200;
/// Names of a directory that are looked at: Tab must not take seconds in one of a million files.
const LOOKED_AT_MAX: usize = 10_000;

/// What may stand where a line ends in a mention: where that mention begins, and what could replace it from there on. A
/// directory ends with `/`: there is more to complete.
pub fn completions(line: &str, places: Places<'_>) -> Option<(usize, Vec<String>)> {
    let (start, typed) = open_mention(line)?;
    let (folder, prefix) = match typed.rfind('/') {
        Some(slash) => typed.split_at(slash + 1),
        None => ("", typed),
    };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(placed(folder, places))
        .ok()?
        .take(LOOKED_AT_MAX)
        .flatten()
    {
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let is_hidden = name.starts_with('.') && !prefix.starts_with('.');
        let can_be_typed = !name.chars().any(|c| is_hostile(c) || c == '"');
        if name.starts_with(prefix) && !is_hidden && can_be_typed {
            let is_directory = std::fs::metadata(entry.path()).is_ok_and(|metadata| metadata.is_dir());
            names.push(mention(&format!("{folder}{name}"), is_directory));
        }
    }
    names.sort_unstable();
    names.truncate(OFFERED_MAX);
    Some((start, names))
}

/// A path as it is mentioned. The quotes of one in a directory stay open: it goes on.
fn mention(path: &str, is_directory: bool) -> String {
    match (path.contains(char::is_whitespace), is_directory) {
        (false, false) => format!("@{path}"),
        (false, true) => format!("@{path}/"),
        (true, false) => format!("@\"{path}\""),
        (true, true) => format!("@\"{path}/"),
    }
}

/// The mention a line ends in: where it begins, and the path typed so far.
fn open_mention(line: &str) -> Option<(usize, &str)> {
    let begins_word = |at: usize| {
        let before = line.get(..at).and_then(|before| before.chars().next_back());
        before.is_none_or(|c| c.is_whitespace() || OPENING.contains(&c))
    };
    let at = line.rmatch_indices('@').map(|(at, _)| at).find(|at| begins_word(*at))?;
    let rest = line.get(at + 1..)?;
    let (typed, ends) = match rest.strip_prefix('"') {
        Some(quoted) => (quoted, quoted.contains('"')),
        None => (rest, rest.contains(char::is_whitespace)),
    };
    (!ends).then_some((at, typed))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// SPEC 8.9: paths complete behind an `@` that begins a word, level by level; hidden ones when asked for.
    #[test]
    fn paths() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "notes.md",
            "nice picture.png",
            "src/main.rs",
            "a b/c.md",
            ".env",
            "esc\u{1b}ape",
            "quo\"te",
        ] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        let places = Places {
            directory: folder.path(),
            home: Some(folder.path()),
        };
        let check = |line: &str, expect: Option<(usize, &[&str])>| {
            let expect = expect.map(|(at, names)| (at, names.iter().map(|name| (*name).to_owned()).collect()));
            assert_eq!(completions(line, places), expect, "{line:?}");
        };
        check("see @n", Some((4, &["@\"nice picture.png\"", "@notes.md"])));
        check("(@s", Some((1, &["@src/"])));
        check("@src/", Some((0, &["@src/main.rs"])));
        check("@~/src/m", Some((0, &["@~/src/main.rs"])));
        check("@\"a b/", Some((0, &["@\"a b/c.md\""])));
        check("@a", Some((0, &["@\"a b/"])));
        check("@.", Some((0, &["@.env"])));
        check(
            "@",
            Some((0, &["@\"a b/", "@\"nice picture.png\"", "@notes.md", "@src/"])),
        );
        check("@x", Some((0, &[])));
        check("@nowhere/x", None);
        check("me@n", None);
        check("@notes.md and", None);
        check("@\"notes.md\" ", None);
        check("no mention", None);
    }
}
