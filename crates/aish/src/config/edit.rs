//! Writing into the user's configuration, which is theirs: comments, order, line ends and layout stay, one rule (SPEC 5.3,
//! answer `s`) or the settings of one model are added, nothing is overwritten, and the file is replaced whole or not at all.

use super::value::toml_text;
use super::{Layer, Overrides, Source, read_text, resolve};
use crate::paths::{Environment, lock_dir_of, write_private};
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
    /// With the addition no aish would start.
    #[error("not saved in {}: with it the file would be wrong:\n{message}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// What would be wrong with it.
        message: String,
    },
}

/// Adds a rule to a list of a configuration file. Makes the file, private to its user, where there is none.
///
/// # Errors
/// The file cannot be read or written, or is not the TOML it should be.
pub fn add_rule(path: &Path, list: RuleList, rule: &Rule) -> Result<Added, EditError> {
    edit(path, |text| with_rule(text, list, &rule.to_string()), |_| Ok(()))
}

/// Adds settings of a model to a configuration file, in `[models.NAME]`, which is made where there is none. A setting that is
/// there is the user's and stays. `environment` is what the file is read together with.
///
/// # Errors
/// The file cannot be read or written, is not the TOML it should be, or would not be accepted with the addition.
pub fn set_model(
    path: &Path,
    name: &str,
    settings: &[ModelSetting],
    environment: &Environment,
) -> Result<Added, EditError> {
    let check = |text: &str| {
        let source = Source {
            name: path.display().to_string(),
            text: text.to_owned(),
            layer: Layer::User,
        };
        match resolve(Some(source), None, environment, &Overrides::default()) {
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    };
    edit(path, |text| with_model(text, name, settings), check)
}

/// A setting of a model: its key in the model's table, and its value.
pub type ModelSetting = (&'static str, Value);

/// A text as a value; what cannot be seen in it is escaped.
pub fn text_value(text: &str) -> Value {
    toml_text(text).parse().unwrap_or_else(|_| Value::from(text))
}

/// Changes a file by a function from its text to another, or to none where it is as it should be; `check` says what is wrong
/// with the other.
fn edit(
    path: &Path,
    change: impl FnOnce(&str) -> Result<Option<String>, String>,
    check: impl FnOnce(&str) -> Result<(), String>,
) -> Result<Added, EditError> {
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
    let Some(changed) = changed else {
        return Ok(Added::AlreadyThere);
    };
    let changed = with_line_ends_of(&text, changed);
    check(&changed).map_err(|message| EditError::Wrong {
        path: path.to_owned(),
        message,
    })?;
    write_private(path, changed.as_bytes()).map_err(io_error)?;
    Ok(Added::Added)
}

/// A changed text with the line ends of the text it was made of: the editor knows only one kind.
fn with_line_ends_of(text: &str, changed: String) -> String {
    let is_crlf = text.split_once('\n').is_some_and(|(first, _)| first.ends_with('\r'));
    if is_crlf {
        changed.replace("\r\n", "\n").replace('\n', "\r\n")
    } else {
        changed
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

/// The text with the settings of a model in it, or `None` if they are there already, with whatever values. Pure.
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
        if model.get(key).is_none_or(Item::is_none) {
            model.insert(key, Item::Value(value.clone()));
            is_changed = true;
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

    /// SPEC 7.1, 10.1: what a model was found to be is written beside what stands there; comments, order and what the user
    /// insists on stay.
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
        images = true # I hope
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

    /// SPEC 10.1: a file of another world keeps its line ends.
    #[test]
    fn line_ends_survive() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("config.toml");
        let text = "# mine\r\n[models.desk]\r\nmodel = 'm' # this\r\n\r\n[shell]\r\nconfirm_cmd = true\r\n";
        fs::write(&file, text).unwrap();
        let rule = Rule::parse("bash(ls)").unwrap();
        add_rule(&file, RuleList::Allow, &rule).unwrap();
        let settings = [("images", Value::from(false))];
        set_model(&file, "desk", &settings, &Environment::default()).unwrap();
        let edited = fs::read_to_string(&file).unwrap();
        assert_eq!(
            edited.matches('\n').count(),
            edited.matches("\r\n").count(),
            "{edited:?}"
        );
        assert!(
            edited.contains("model = 'm' # this\r\nimages = false\r\n"),
            "{edited:?}"
        );
        assert_eq!(
            edited.matches("\r\n").count(),
            text.matches("\r\n").count() + 4,
            "{edited:?}"
        );
    }

    /// SPEC 10.1, 10.4: nothing is written that aish would not start with; the file stays as it was, and is told why.
    #[test]
    fn what_would_be_wrong_is_not_written() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("config.toml");
        fs::write(&file, "default_model = 'found'\n").unwrap();
        let set = |name: &str, key: &'static str, value: Value| {
            let settings = [("model", Value::from("m")), (key, value)];
            set_model(&file, name, &settings, &Environment::default())
                .unwrap_err()
                .to_string()
        };
        for (message, expect) in [
            (set("a b", "images", false.into()), "wrong name \"a b\""),
            (
                set("x", "base_url", "http://bob:hunter2@h".into()),
                "base_url: expected an http or https address",
            ),
            (
                set("x", "context_window", 0.into()),
                "context_window: expected a whole number",
            ),
            (set("x", "images", false.into()), "default_model: no model \"found\""),
        ] {
            assert!(
                message.contains("not saved in ") && message.contains(expect),
                "{message}"
            );
            assert!(!message.contains("hunter2"), "{message}");
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "default_model = 'found'\n");
    }

    /// SPEC 8.8: a name out of a hostile list cannot hide in the file.
    #[test]
    fn what_cannot_be_seen_is_written_as_an_escape() {
        let settings = [("model", text_value("a\u{202e}b"))];
        let text = with_model("", "x", &settings).unwrap().unwrap();
        assert_eq!(text, "[models.x]\nmodel = \"a\\u202eb\"\n");
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
