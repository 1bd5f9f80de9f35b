//! Writing into the user's configuration, which is theirs: comments, order, line ends and layout stay, one rule (SPEC 5.3,
//! answer `s`), the settings of one model or MCP servers are added, nothing is overwritten, and the file is replaced whole or
//! not at all.

use super::value::toml_text;
use super::{Layer, Overrides, Source, read_text, resolve};
use crate::paths::{Environment, lock_dir_of, write_private};
use aish_core::policy::Rule;
use std::io;
use std::path::{Path, PathBuf};
use toml_edit::{Array, DocumentMut, Item, TableLike, Value};

mod server;

pub use server::{NewServer, Place, Switch, add_servers, remove_server, switch_server};

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

/// What came of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edited {
    /// The file has it now.
    Written,
    /// The file was as it should be, or not as the change supposes, and was left alone.
    Unchanged,
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
pub fn add_rule(path: &Path, list: RuleList, rule: &Rule) -> Result<Edited, EditError> {
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
) -> Result<Edited, EditError> {
    let check = |text: &str| accepted(path, text, environment);
    edit(path, |text| with_model(text, name, settings), check)
}

/// Whether aish would start with that text for the user's file; else what is wrong with it.
fn accepted(path: &Path, text: &str, environment: &Environment) -> Result<(), String> {
    let source = Source {
        name: path.display().to_string(),
        text: text.to_owned(),
        layer: Layer::User,
    };
    match resolve(Some(source), None, environment, &Overrides::default()) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
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
) -> Result<Edited, EditError> {
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
        return Ok(Edited::Unchanged);
    };
    let changed = with_line_ends_of(&text, changed);
    check(&changed).map_err(|message| EditError::Wrong {
        path: path.to_owned(),
        message,
    })?;
    write_private(path, changed.as_bytes()).map_err(io_error)?;
    Ok(Edited::Written)
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
mod tests;
