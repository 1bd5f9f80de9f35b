//! The checked settings of every layer put on top of each other, with the declared defaults below: who set what, and what is
//! in force. [`Section`] reads the settings of one table.

use super::check::{Assigned, Named};
use super::error::Origin;
use super::settings::{Kind, find};
use super::value::{Value, from_toml};
use std::collections::BTreeMap;
use toml::de::DeValue;

/// Every layer's settings, put on top of each other.
#[derive(Debug, Default)]
pub struct Layers {
    /// Path → what each layer set, the last one on top.
    pub values: BTreeMap<Vec<String>, Vec<Assigned>>,
    /// The models and servers somebody named, each once, in order.
    pub named: Vec<Named>,
}

impl Layers {
    /// What is in force at a path, and who set it; rules of all layers are added up.
    pub fn get(&self, path: &[impl AsRef<str>]) -> Option<Value> {
        let path: Vec<String> = path.iter().map(|name| name.as_ref().to_owned()).collect();
        let Some(assigned) = self.values.get(&path) else {
            return default(&path);
        };
        let top = assigned.last()?;
        if top.setting.kind != Kind::Rules {
            return Some(top.value.clone());
        }
        let mut rules: Vec<String> = Vec::new();
        for assigned in assigned {
            if let Value::Texts(texts) = &assigned.value {
                for text in texts {
                    if !rules.contains(text) {
                        rules.push(text.clone());
                    }
                }
            }
        }
        Some(Value::Texts(rules))
    }

    /// Who set what is in force at a path.
    pub fn origin(&self, path: &[impl AsRef<str>]) -> Option<&Origin> {
        let path: Vec<String> = path.iter().map(|name| name.as_ref().to_owned()).collect();
        Some(&self.values.get(&path)?.last()?.origin)
    }

    /// Who had a hand in what is in force at a path: the layer on top, or for rules every layer; empty for a default.
    pub fn origins(&self, path: &[String]) -> Vec<&Origin> {
        let Some(assigned) = self.values.get(path) else {
            return Vec::new();
        };
        let on_top = assigned.len().saturating_sub(1);
        let counts = |(at, assigned): &(usize, &Assigned)| assigned.setting.kind == Kind::Rules || *at == on_top;
        assigned
            .iter()
            .enumerate()
            .filter(counts)
            .map(|(_, assigned)| &assigned.origin)
            .collect()
    }

    /// Where a project's file names this table, if it does.
    pub fn project_origin(&self, path: &[&str]) -> Option<&Origin> {
        let named = self.named.iter().find(|named| named.path == path)?;
        named.origin.is_project().then_some(&named.origin)
    }

    /// The settings of the table at a path.
    pub fn section<'a>(&'a self, path: &[&'a str]) -> Section<'a> {
        Section {
            layers: self,
            path: path.to_vec(),
        }
    }

    /// The map whose keys the user chose, below this path.
    pub fn map<T>(&self, path: &[&str], read: impl Fn(Value) -> Option<T>) -> BTreeMap<String, T> {
        let below = |assigned: &Vec<String>| {
            let (name, parent) = assigned.split_last()?;
            (parent == path).then(|| Some((name.clone(), read(self.get(assigned)?)?)))?
        };
        self.values.keys().filter_map(below).collect()
    }
}

/// The declared default of the setting at a path.
fn default(path: &[String]) -> Option<Value> {
    let setting = find(path)?;
    let value = DeValue::parse(setting.default?).ok()?;
    from_toml(setting, value.get_ref()).ok()
}

/// The settings of one table, read by the last segment of their keys. Types and ranges were checked and defaults declared, so
/// what a reader falls back to is never seen; a test holds every declared default against the resolved one.
#[derive(Clone)]
pub struct Section<'a> {
    layers: &'a Layers,
    path: Vec<&'a str>,
}

impl Section<'_> {
    /// Whatever it is set to, or its default.
    pub fn get(&self, leaf: &str) -> Option<Value> {
        let mut path = self.path.clone();
        path.push(leaf);
        self.layers.get(&path)
    }

    /// A text.
    pub fn text(&self, leaf: &str) -> Option<String> {
        match self.get(leaf)? {
            Value::Text(text) => Some(text),
            Value::Bool(_) | Value::Integer(_) | Value::Float(_) | Value::Texts(_) => None,
        }
    }

    /// Yes, or no.
    pub fn yes(&self, leaf: &str) -> bool {
        self.get(leaf) == Some(Value::Bool(true))
    }

    /// Yes or no, if somebody said so.
    pub fn flag(&self, leaf: &str) -> Option<bool> {
        match self.get(leaf)? {
            Value::Bool(yes) => Some(yes),
            Value::Text(_) | Value::Integer(_) | Value::Float(_) | Value::Texts(_) => None,
        }
    }

    /// A number, if there is one.
    pub fn number<T: TryFrom<i64>>(&self, leaf: &str) -> Option<T> {
        match self.get(leaf)? {
            Value::Integer(number) => T::try_from(number).ok(),
            Value::Text(_) | Value::Bool(_) | Value::Float(_) | Value::Texts(_) => None,
        }
    }

    /// A number that has a default.
    pub fn count<T: TryFrom<i64> + Default>(&self, leaf: &str) -> T {
        self.number(leaf).unwrap_or_default()
    }

    /// A number with a fraction, if there is one.
    pub fn float(&self, leaf: &str) -> Option<f64> {
        match self.get(leaf)? {
            Value::Float(number) => Some(number),
            Value::Text(_) | Value::Bool(_) | Value::Integer(_) | Value::Texts(_) => None,
        }
    }

    /// A list.
    pub fn texts(&self, leaf: &str) -> Vec<String> {
        match self.get(leaf) {
            Some(Value::Texts(texts)) => texts,
            Some(Value::Text(_) | Value::Bool(_) | Value::Integer(_) | Value::Float(_)) | None => Vec::new(),
        }
    }
}
