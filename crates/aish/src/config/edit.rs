//! Writing into the user's configuration, which is theirs: comments, order and layout stay, one rule (SPEC 5.3, answer `s`) or
//! the settings of one model are added, and the file is replaced whole or not at all.

use super::read_text;
use crate::paths::{lock_dir_of, write_private};
use aish_core::policy::Rule;
use std::io;
use std::path::{Path, PathBuf};
use toml_edit::{Array, DocumentMut, Item, TableLike, Value};

/// A list of rules in `[approval]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleList {
    /// Never runs.
    Deny,
    /// Is always asked about.
    Ask,
    /// Runs unasked.
    Allow,
}

impl RuleList {
    /// Its key in `[approval]`.
    pub fn key(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Ask => "ask",
            Self::Allow => "allow",
        }
    }
}

/// What adding a rule did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// The file has it now.
    Added,
    /// The file had it already and was left alone.
    AlreadyThere,
}

/// Why nothing was added. The file is as it was.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// It cannot be read, locked or written.
    #[error("cannot save in {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// What it says cannot be added to.
    #[error("cannot save in {}: {message}; correct the file first", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
}

/// Adds a rule to a list of a configuration file. Makes the file, private to its user, where there is none.
///
/// # Errors
/// The file cannot be read or written, or is not the TOML it should be.
pub fn add_rule(path: &Path, list: RuleList, rule: &Rule) -> Result<Added, EditError> {
    edit(path, |text| with_rule(text, list, &rule.to_string()))
}

/// Sets settings of a model in a configuration file, in `[models.NAME]`, which is made where there is none.
///
/// # Errors
/// The file cannot be read or written, or is not the TOML it should be.
pub fn set_model(path: &Path, name: &str, settings: &[ModelSetting]) -> Result<Added, EditError> {
    edit(path, |text| with_model(text, name, settings))
}

/// A setting of a model: its key in the model's table, and its value.
pub type ModelSetting = (&'static str, Value);

/// Changes a file by a function from its text to another, or to none where it is as it should be.
fn edit(path: &Path, change: impl FnOnce(&str) -> Result<Option<String>, String>) -> Result<Added, EditError> {
    let io_error = |source| EditError::Io {
        path: path.to_owned(),
        source,
    };
    // Two shells may save at once; nothing of either may get lost.
    let _lock = lock_dir_of(path).map_err(io_error)?;
    let text = match read_text(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(io_error(error)),
    };
    let changed = change(&text).map_err(|message| EditError::Malformed {
        path: path.to_owned(),
        message,
    })?;
    match changed {
        None => Ok(Added::AlreadyThere),
        Some(text) => write_private(path, text.as_bytes())
            .map(|()| Added::Added)
            .map_err(io_error),
    }
}

fn parse(text: &str) -> Result<DocumentMut, String> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        let line = error
            .span()
            .map_or(1, |span| text.get(..span.start).unwrap_or("").matches('\n').count() + 1);
        format!("line {line} is not TOML: {}", error.message())
    })
}

/// The text with the settings of a model in it, or `None` if they are there already. A value that is there is replaced where
/// it stands, its comment kept. Pure.
///
/// # Errors
/// What is wrong with the text.
pub fn with_model(text: &str, name: &str, settings: &[ModelSetting]) -> Result<Option<String>, String> {
    let mut document = parse(text)?;
    let models = document.entry("models").or_insert_with(|| {
        let mut table = toml_edit::Table::new();
        // `[models]` above `[models.NAME]` would say nothing.
        table.set_implicit(true);
        Item::Table(table)
    });
    let models: &mut dyn TableLike = models.as_table_like_mut().ok_or("`models` is not a table")?;
    let model = models.entry(name).or_insert_with(toml_edit::table);
    let model: &mut dyn TableLike = model
        .as_table_like_mut()
        .ok_or_else(|| format!("`models.{name}` is not a table"))?;
    let mut is_changed = model.is_empty();
    for (key, value) in settings {
        match model.get_mut(key) {
            Some(Item::Value(old)) if is_same(old, value) => {}
            Some(Item::Value(old)) => {
                let decor = old.decor().clone();
                *old = value.clone();
                *old.decor_mut() = decor;
                is_changed = true;
            }
            Some(Item::None | Item::Table(_) | Item::ArrayOfTables(_)) | None => {
                model.insert(key, Item::Value(value.clone()));
                is_changed = true;
            }
        }
    }
    Ok(is_changed.then(|| document.to_string()))
}

/// The text with the rule added, or `None` if it is there already. Pure.
///
/// # Errors
/// What is wrong with the text.
pub fn with_rule(text: &str, list: RuleList, rule: &str) -> Result<Option<String>, String> {
    let mut document = parse(text)?;
    let approval = document.entry("approval").or_insert_with(toml_edit::table);
    let approval: &mut dyn TableLike = approval.as_table_like_mut().ok_or("`approval` is not a table")?;
    let rules = approval
        .entry(list.key())
        .or_insert_with(|| Item::Value(Value::Array(Array::new())));
    let rules = rules
        .as_array_mut()
        .ok_or_else(|| format!("`approval.{}` is not a list", list.key()))?;
    if rules.iter().any(|old| old.as_str() == Some(rule)) {
        return Ok(None);
    }
    push(rules, rule);
    Ok(Some(document.to_string()))
}

/// Whether two values say the same; comments and white space around them say nothing.
fn is_same(one: &Value, other: &Value) -> bool {
    let bare = |value: &Value| {
        let mut value = value.clone();
        value.decor_mut().clear();
        value.to_string()
    };
    bare(one) == bare(other)
}

/// Adds an item in the layout of the list: on a line of its own where the others are, and below the comment that belongs to
/// the item before it.
fn push(rules: &mut Array, rule: &str) {
    let last_prefix = rules
        .iter()
        .last()
        .and_then(|last| last.decor().prefix()?.as_str().map(str::to_owned));
    let trailing = rules.trailing().as_str().unwrap_or("").to_owned();
    let mut item = Value::from(rule);
    let indent = last_prefix
        .as_deref()
        .and_then(|prefix| Some(prefix.rsplit_once('\n')?.1.to_owned()));
    match indent {
        Some(indent) => {
            let comment = trailing.trim_end();
            item.decor_mut().set_prefix(format!("{comment}\n{indent}"));
            rules.push_formatted(item);
            rules.set_trailing("\n");
            rules.set_trailing_comma(true);
        }
        None if trailing.contains('#') => {
            item.decor_mut().set_prefix(trailing);
            rules.push_formatted(item);
            rules.set_trailing("\n");
        }
        None => rules.push(item),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;

    fn allow(text: &str) -> String {
        let edited = with_rule(text, RuleList::Allow, "bash(make test)").unwrap().unwrap();
        let read = edited.parse::<DocumentMut>().unwrap();
        let rules = read["approval"]["allow"].as_array().unwrap();
        assert_eq!(rules.iter().last().unwrap().as_str(), Some("bash(make test)"));
        edited
    }

    /// SPEC 5.3, 10.1: saving a rule keeps every comment and the layout.
    #[test]
    fn comments_survive() {
        insta::assert_snapshot!(allow(r#"# mine
default_model = "desk"   # the one on the desk

[approval] # careful
mode = "ask"
# what I trust
allow = [
    "file_write(notes/*)", # my notes
    # only this one
    "bash(cargo test)", # often
]  # end

[shell]
confirm_cmd = true
"#), @r#"
# mine
default_model = "desk"   # the one on the desk

[approval] # careful
mode = "ask"
# what I trust
allow = [
    "file_write(notes/*)", # my notes
    # only this one
    "bash(cargo test)", # often
    "bash(make test)",
]  # end

[shell]
confirm_cmd = true
"#);
    }

    #[test]
    fn every_layout_takes_a_rule() {
        let layouts = [
            "",
            "# only a comment",
            "[approval]",
            "[approval]\nallow = []",
            "[approval]\nallow = [\"a\"] # why",
            "[approval]\nallow = [\"a\", ]",
            "[approval]\nallow = [ # why\n]",
            "[approval]\nallow = [\n  \"a\" # no comma\n]",
            "[approval]\nallow = [\n\t\"a\",\n\t# last words\n]",
            "approval = { mode = \"ask\" }",
            "approval.mode = \"ask\"",
            "approval.allow = [\"a\"]",
            "[shell]\nconfirm_cmd = true\n[mcp]",
        ];
        for text in layouts {
            let edited = allow(text);
            for comment in text.split('#').skip(1) {
                assert!(edited.contains(comment.lines().next().unwrap()), "{text}\n{edited}");
            }
        }
        assert_eq!(
            allow("[approval]\nallow = [\"a\"]\n"),
            "[approval]\nallow = [\"a\", \"bash(make test)\"]\n"
        );
    }

    /// SPEC 7.1, 10.1: what a model was found to be is written beside what stands there; comments and order stay.
    #[test]
    fn settings_of_a_model() {
        let set = |text: &str, name: &str| {
            let settings = [("images", Value::from(false)), ("context_window", Value::from(8192))];
            with_model(text, name, &settings)
        };
        let text =
            "# mine\n[models.desk] # the desk\nmodel = \"m\"\nimages = true # I hope\n\n[shell]\nconfirm_cmd = true\n";
        let edited = set(text, "desk").unwrap().unwrap();
        insta::assert_snapshot!(edited, @r#"
        # mine
        [models.desk] # the desk
        model = "m"
        images = false # I hope
        context_window = 8192

        [shell]
        confirm_cmd = true
        "#);
        assert_eq!(set(&edited, "desk"), Ok(None));
        insta::assert_snapshot!(set("default_model = \"x\"\n", "llama.cpp/m").unwrap().unwrap(), @r#"
        default_model = "x"

        [models."llama.cpp/m"]
        images = false
        context_window = 8192
        "#);
        for odd in [
            "models.desk.model = 'm'",
            "models = { desk = { model = 'm' } }",
            "[models]\ndesk = { model = 'm' }",
        ] {
            let edited = set(odd, "desk").unwrap().unwrap();
            let read: DocumentMut = edited.parse().unwrap();
            assert_eq!(
                read["models"]["desk"]["context_window"].as_integer(),
                Some(8192),
                "{edited}"
            );
            assert_eq!(read["models"]["desk"]["model"].as_str(), Some("m"), "{edited}");
        }
        assert_eq!(set("models = 3", "desk").unwrap_err(), "`models` is not a table");
        assert_eq!(
            set("models.desk = 3", "desk").unwrap_err(),
            "`models.desk` is not a table"
        );
    }

    #[test]
    fn a_rule_is_added_once() {
        let text = allow("");
        assert_eq!(with_rule(&text, RuleList::Allow, "bash(make test)"), Ok(None));
        assert!(with_rule(&text, RuleList::Deny, "bash(make test)").unwrap().is_some());
    }

    /// SPEC 10.4: a file that cannot be added to is left alone, and the error says where.
    #[test]
    fn a_malformed_file_is_left_alone() {
        let wrong = |text| with_rule(text, RuleList::Allow, "x").unwrap_err();
        assert!(wrong("a = 1\nb = = 2").starts_with("line 2 is not TOML: "));
        assert_eq!(wrong("approval = 3"), "`approval` is not a table");
        assert_eq!(wrong("[approval]\nallow = \"x\""), "`approval.allow` is not a list");
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("config.toml");
        fs::write(&file, "a = = 1").unwrap();
        let rule = Rule::parse("bash(ls)").unwrap();
        assert!(add_rule(&file, RuleList::Allow, &rule).is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), "a = = 1");
    }

    /// SPEC 10.1, 10.5: the file is made where there is none, private; many writers lose nothing.
    #[test]
    fn writers_at_once_lose_nothing() {
        use std::os::unix::fs::PermissionsExt as _;
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("new/config.toml");
        std::thread::scope(|scope| {
            for n in 0..8 {
                let file = &file;
                scope.spawn(move || {
                    let rule = Rule::parse(&format!("bash(echo {n})")).unwrap();
                    assert_eq!(add_rule(file, RuleList::Allow, &rule).unwrap(), Added::Added);
                });
            }
        });
        let text = fs::read_to_string(&file).unwrap();
        assert!((0..8).all(|n| text.contains(&format!("\"bash(echo {n})\""))), "{text}");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
