//! Completing the path of a mention while it is typed.

use super::words::{mention_of_directory, mention_of_file, words};
use super::{Places, placed};
use aish_mcp::Alias;

/// Names of a directory that are looked at: Tab must not take seconds in one of a million files. Where there are more nothing is
/// offered: what all that fit have in common is not known.
const LOOKED_AT_MAX: usize = 200_000;

/// What may stand where a line ends in a mention: where that mention begins, and what could replace it from there on. A
/// directory ends with `/`: there is more to complete.
pub fn completions(line: &str, places: Places<'_>) -> Option<(usize, Vec<String>)> {
    let (start, typed) = open_mention(line)?;
    let (folder, prefix) = match typed.rfind('/') {
        Some(slash) => typed.split_at(slash + 1),
        None => ("", typed.as_str()),
    };
    let mut names = Vec::new();
    let entries = std::fs::read_dir(placed(folder, places)).ok()?;
    for (n, entry) in entries.flatten().enumerate() {
        if n == LOOKED_AT_MAX {
            return None;
        }
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let is_hidden = name.starts_with('.') && !prefix.starts_with('.');
        if name.starts_with(prefix) && !is_hidden {
            let is_directory = std::fs::metadata(entry.path()).is_ok_and(|metadata| metadata.is_dir());
            let path = format!("{folder}{name}");
            names.extend(if is_directory {
                mention_of_directory(&path)
            } else {
                mention_of_file(&path)
            });
        }
    }
    names.sort_unstable();
    Some((start, names))
}

/// The mention a line ends in, where it may be of a resource: where it begins, and what was typed of `alias:uri`.
pub fn open_reference(line: &str) -> Option<(usize, String)> {
    open_mention(line).filter(|(_, typed)| {
        let alias = typed.split_once(':').map_or(typed.as_str(), |(alias, _)| alias);
        alias.is_empty() || Alias::parse(alias).is_ok()
    })
}

/// The mention a line ends in: where it begins, and the path typed so far. While a line is typed, an open quote goes on.
fn open_mention(line: &str) -> Option<(usize, String)> {
    words(line)
        .find(|word| word.end == line.len() && !word.is_quoted())
        .map(|word| (word.at, word.path))
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
            servers: &[],
        };
        let check = |line: &str, expect: Option<(usize, &[&str])>| {
            let expect = expect.map(|(at, names)| (at, names.iter().map(|name| (*name).to_owned()).collect()));
            assert_eq!(completions(line, places), expect, "{line:?}");
        };
        check("see @n", Some((4, &["@\"nice picture.png\"", "@notes.md"])));
        check("(@s", Some((1, &["@src/"])));
        check("@src/", Some((0, &["@src/main.rs"])));
        check("@~/src/m", Some((0, &["@~/src/main.rs"])));
        check(r"@a\ b/", Some((0, &["@\"a b/c.md\""])));
        check("@q", Some((0, &[r#"@quo\"te"#])));
        check(
            r#"@"a b/c.md" @"n"#,
            Some((12, &["@\"nice picture.png\"", "@notes.md"])),
        );
        check("@\"a b/", Some((0, &["@\"a b/c.md\""])));
        check("@a", Some((0, &["@\"a b/"])));
        check("@.", Some((0, &["@.env"])));
        check(
            "@",
            Some((
                0,
                &["@\"a b/", "@\"nice picture.png\"", "@notes.md", r#"@quo\"te"#, "@src/"],
            )),
        );
        check("@x", Some((0, &[])));
        check("@nowhere/x", None);
        check("me@n", None);
        check("@notes.md and", None);
        check("@\"notes.md\" ", None);
        check("no mention", None);
    }
}
