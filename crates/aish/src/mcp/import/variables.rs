//! `${…}` in the values of other clients, as aish writes it: `${NAME}` and `${NAME:-default}` stay what they are.

use super::fields::quoted;
use crate::mcp::expand::is_name;
use std::collections::BTreeMap;

/// Which client's values are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// `${NAME}`, and the editors' `${env:NAME}`, `${input:id}`, `${userHome}`, `${workspaceFolder}`.
    Editors,
    /// None at all: what looks like one is text.
    Literal,
}

/// Translates values, and remembers what is to be said of them.
pub(super) struct Variables {
    dialect: Dialect,
    /// Variables that have to be set here, and what the other client asks a person for instead.
    asked: BTreeMap<String, String>,
    is_folder_used: bool,
    is_text_taken: bool,
}

impl Variables {
    /// Of that client's values.
    pub(super) fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            asked: BTreeMap::new(),
            is_folder_used: false,
            is_text_taken: false,
        }
    }

    /// A value with its variables as aish writes them.
    ///
    /// # Errors
    /// One of them has no counterpart here.
    pub(super) fn translated(&mut self, text: &str) -> Result<String, String> {
        if self.dialect == Dialect::Literal {
            self.is_text_taken |= text.contains("${");
            return Ok(text.to_owned());
        }
        let mut translated = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, from)) = rest.split_once("${") {
            let Some((inside, after)) = from.split_once('}') else {
                return Err(format!("{} has no end", quoted(&format!("${{{from}"))));
            };
            translated.push_str(before);
            translated.push_str(&self.one(inside)?);
            rest = after;
        }
        translated.push_str(rest);
        Ok(translated)
    }

    fn one(&mut self, inside: &str) -> Result<String, String> {
        if let Some(name) = inside.strip_prefix("env:")
            && is_name(name)
        {
            return Ok(format!("${{{name}}}"));
        }
        if let Some(id) = inside.strip_prefix("input:") {
            let name = variable_of(id);
            self.asked.insert(name.clone(), id.to_owned());
            return Ok(format!("${{{name}}}"));
        }
        let name = inside.split_once(":-").map_or(inside, |(name, _)| name);
        match inside {
            "userHome" => Ok("${HOME}".to_owned()),
            "workspaceFolder" | "workspaceRoot" | "cwd" => {
                self.is_folder_used = true;
                Ok(".".to_owned())
            }
            "pathSeparator" | "/" => Ok("/".to_owned()),
            // What the editors compute has a small letter in front and no counterpart.
            "workspaceFolderBasename" | "file" | "relativeFile" => Err(unknown(inside)),
            _ if is_name(name) => Ok(format!("${{{inside}}}")),
            _ => Err(unknown(inside)),
        }
    }

    /// What is to be said of them.
    pub(super) fn remarks(&self) -> Vec<String> {
        let asked = self
            .asked
            .iter()
            .map(|(name, id)| format!("export {name}: the other client asks for {} itself", quoted(id)));
        let folder = "the workspace is the directory aish is started in";
        let text = "it has ${…} in it, which aish takes for a variable";
        asked
            .chain(self.is_folder_used.then(|| folder.to_owned()))
            .chain(self.is_text_taken.then(|| text.to_owned()))
            .collect()
    }
}

fn unknown(inside: &str) -> String {
    format!("aish has no {}", quoted(&format!("${{{inside}}}")))
}

/// The variable that stands in for what a client asks a person for: `github-token` is `GITHUB_TOKEN`.
fn variable_of(id: &str) -> String {
    let letters = id.trim().chars().map(|letter| match letter {
        _ if letter.is_ascii_alphanumeric() => letter.to_ascii_uppercase(),
        _ => '_',
    });
    let name: String = letters.take(super::NAME_CHARS_MAX).collect();
    if is_name(&name) { name } else { format!("INPUT_{name}") }
}
