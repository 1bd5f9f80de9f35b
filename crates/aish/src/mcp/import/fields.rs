//! What another client says of one server, taken out field by field, so that what nobody took is known in the end.

use super::variables::Variables;
use super::{listed, shown};
use crate::config::edit::{NewServer, Place};
use aish_core::secret::Secret;
use serde_json::{Map, Value};

/// The fields that are left, and what was found out on the way.
pub(super) struct Fields {
    left: Map<String, Value>,
    /// Fields of a wrong type.
    odd: Vec<String>,
    pub(super) variables: Variables,
    pub(super) remarks: Vec<String>,
}

impl Fields {
    /// Of this server; values are read as that client does.
    pub(super) fn new(all: Map<String, Value>, variables: Variables) -> Self {
        Self {
            left: all,
            odd: Vec::new(),
            variables,
            remarks: Vec::new(),
        }
    }

    /// A field, whatever it is; null counts as absent.
    fn take(&mut self, name: &str) -> Option<Value> {
        self.left.remove(name).filter(|value| !value.is_null())
    }

    /// A field of that type; of another it is remarked on.
    fn typed<T>(&mut self, name: &str, read: impl FnOnce(&Value) -> Option<T>) -> Option<T> {
        let value = self.take(name)?;
        let read = read(&value);
        if read.is_none() {
            self.odd.push(name.to_owned());
        }
        read
    }

    /// A text as it stands.
    pub(super) fn word(&mut self, name: &str) -> Option<String> {
        self.typed(name, |value| value.as_str().map(str::to_owned))
    }

    /// A text with variables in it.
    ///
    /// # Errors
    /// One of them is unknown here.
    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, String> {
        let text = self.word(name);
        text.map(|text| self.variables.translated(&text)).transpose()
    }

    /// Yes or no.
    pub(super) fn flag(&mut self, name: &str) -> Option<bool> {
        self.typed(name, Value::as_bool)
    }

    /// A number.
    pub(super) fn number(&mut self, name: &str) -> Option<f64> {
        self.typed(name, Value::as_f64)
    }

    /// A list of texts as they stand.
    pub(super) fn words(&mut self, name: &str) -> Option<Vec<String>> {
        let word = |value: &Value| value.as_str().map(str::to_owned);
        self.typed(name, |value| value.as_array()?.iter().map(word).collect())
    }

    /// A list of texts with variables in them; empty when absent.
    ///
    /// # Errors
    /// One of them is unknown here.
    pub(super) fn texts(&mut self, name: &str) -> Result<Vec<String>, String> {
        let words = self.words(name).unwrap_or_default();
        words.iter().map(|word| self.variables.translated(word)).collect()
    }

    /// Names and their values with variables in them; numbers and yes or no are texts too; empty when absent.
    ///
    /// # Errors
    /// One of the variables is unknown here.
    pub(super) fn pairs(&mut self, name: &str) -> Result<Vec<(String, Secret)>, String> {
        let plain = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        };
        let pair = |(name, value): (&String, &Value)| Some((name.clone(), plain(value)?));
        let pairs: Option<Vec<(String, String)>> =
            self.typed(name, |value| value.as_object()?.iter().map(pair).collect());
        let pairs = pairs.unwrap_or_default().into_iter();
        pairs
            .map(|(name, value)| Ok((name, Secret::new(self.variables.translated(&value)?))))
            .collect()
    }

    /// Forgets fields that say nothing about the server.
    pub(super) fn forget(&mut self, names: &[&str]) {
        for name in names {
            self.left.remove(*name);
        }
    }

    /// A field that cannot be taken over, and why.
    pub(super) fn refuse(&mut self, name: &str, why: &str) {
        if self.take(name).is_some_and(|value| !is_empty(&value)) {
            self.remarks.push(format!("not taken over: {name} ({why})"));
        }
    }

    /// Where a server is that has a command or an address; what the other kind could use is remarked on.
    ///
    /// # Errors
    /// It has neither, or one that is of no use here.
    pub(super) fn place(&mut self, urls: &[&str]) -> Result<Place, String> {
        let command = self.text("command")?;
        let arguments = self.texts("args")?;
        let mut url = None;
        for name in urls {
            let found = self.text(name)?;
            url = url.or(found);
        }
        match (command.filter(|command| !command.is_empty()), url) {
            (Some(_), Some(_)) => Err("it has both a command and an address".to_owned()),
            (Some(command), None) => {
                let words = std::iter::once(command).chain(arguments);
                Ok(Place::Command(words.collect()))
            }
            (None, Some(url)) => Ok(Place::Url(url)),
            (None, None) => Err("it has neither a command nor an address".to_owned()),
        }
    }

    /// Headers of an address or variables of a command, and nothing of the other's.
    pub(super) fn give(&mut self, server: &mut NewServer, headers: Vec<(String, Secret)>, env: Vec<(String, Secret)>) {
        let misplaced = match &server.place {
            Place::Url(_) => {
                server.headers = headers;
                (!env.is_empty()).then_some("not taken over: env (an address has no environment)")
            }
            Place::Command(_) => {
                server.env = env;
                (!headers.is_empty()).then_some("not taken over: headers (a command has none)")
            }
        };
        self.remarks.extend(misplaced.map(str::to_owned));
    }

    /// Where a command starts. A relative directory is taken over from nobody: each client begins it somewhere else.
    ///
    /// # Errors
    /// A variable in it is unknown here.
    pub(super) fn starts_in(&mut self, server: &mut NewServer) -> Result<(), String> {
        let directory = self.text("cwd")?.filter(|directory| !directory.is_empty());
        // The workspace is where aish starts a command anyway.
        let Some(directory) = directory.filter(|directory| directory != ".") else {
            return Ok(());
        };
        let why_not = match &server.place {
            Place::Url(_) => Some("an address starts nowhere"),
            Place::Command(_) if directory.starts_with(['/', '~', '$']) => None,
            Place::Command(_) => Some("write the whole path"),
        };
        match why_not {
            Some(why) => self.remarks.push(format!("not taken over: cwd ({why})")),
            None => server.cwd = Some(directory),
        }
        Ok(())
    }

    /// All remarks, with one on what nobody took.
    pub(super) fn finish(mut self) -> Vec<String> {
        if !self.odd.is_empty() {
            self.remarks.push(format!("not understood: {}", listed(&self.odd)));
        }
        let left = self.left.into_iter().filter(|(_, value)| !is_empty(value));
        let left: Vec<String> = left.map(|(name, _)| name).collect();
        if !left.is_empty() {
            self.remarks.push(format!("not taken over: {}", listed(&left)));
        }
        self.remarks.extend(self.variables.remarks());
        self.remarks.iter().map(|remark| shown_whole(remark)).collect()
    }
}

/// Remarks are ours, but for the names in them.
fn shown_whole(remark: &str) -> String {
    aish_core::sanitize::single_line(remark).into_owned()
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(yes) => !yes,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Number(_) => false,
    }
}

/// A word that is repeated in a reason.
pub(super) fn quoted(word: &str) -> String {
    format!("\"{}\"", shown(word))
}
