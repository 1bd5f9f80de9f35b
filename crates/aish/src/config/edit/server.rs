//! MCP servers in the user's file: whole `[mcp.servers.ALIAS]` tables that are added or taken out.

use super::{EditError, Edited, accepted, edit, parse, text_value};
use crate::config::{ConfigError, Layer, Overrides, Source, resolve};
use crate::paths::Environment;
use aish_core::secret::Secret;
use std::path::Path;
use toml_edit::{Array, InlineTable, Item, Table, TableLike, Value};

/// A server that is not in the file yet. What is empty or absent is not written.
#[derive(Clone, Debug, PartialEq)]
pub struct NewServer {
    /// What it is called.
    pub alias: String,
    /// Where it is.
    pub place: Place,
    /// The bearer token itself.
    pub auth_token: Option<Secret>,
    /// The variable that holds the bearer token.
    pub auth_env: Option<String>,
    /// Further headers, name and value.
    pub headers: Vec<(String, Secret)>,
    /// Variables of a child, name and value.
    pub env: Vec<(String, Secret)>,
    /// Seconds one request may take.
    pub timeout_s: Option<u64>,
    /// The version of the protocol.
    pub protocol: Option<String>,
    /// Only these tools.
    pub enabled_tools: Vec<String>,
    /// Never these tools.
    pub disabled_tools: Vec<String>,
    /// `required`.
    pub required: bool,
    /// `trusted`.
    pub trusted: bool,
    /// Where a child starts.
    pub cwd: Option<String>,
    /// `enabled`.
    pub enabled: bool,
}

/// Where a new server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// At an address.
    Url(String),
    /// A program, then its arguments.
    Command(Vec<String>),
}

impl NewServer {
    /// A server about which nothing else is known.
    pub fn at(alias: impl Into<String>, place: Place) -> Self {
        Self {
            alias: alias.into(),
            place,
            auth_token: None,
            auth_env: None,
            headers: Vec::new(),
            env: Vec::new(),
            timeout_s: None,
            protocol: None,
            enabled_tools: Vec::new(),
            disabled_tools: Vec::new(),
            required: false,
            trusted: false,
            cwd: None,
            enabled: true,
        }
    }

    /// As it would be written, with the values of headers, variables and tokens hidden, and what is secret in an address.
    pub fn shown(&self) -> String {
        let hidden = |secret: &Secret| {
            let is_reference = secret.expose().contains("${");
            if is_reference {
                secret.expose().to_owned()
            } else {
                Secret::REDACTED.to_owned()
            }
        };
        let mut table = self.table(hidden);
        if let Place::Url(url) = &self.place {
            let secrets = aish_provider::http::secrets_of(url);
            let shown = secrets
                .iter()
                .fold(url.clone(), |url, secret| url.replace(secret, Secret::REDACTED));
            table.insert("url", Item::Value(text_value(&shown)));
        }
        format!("[mcp.servers.{}]\n{table}", self.alias)
    }

    /// Values that would stand in the file as they are, by the names of what they are values of: none that is a `${VARIABLE}`.
    pub fn literals(&self) -> impl Iterator<Item = (&str, &Secret)> {
        let token = self.auth_token.iter().map(|token| ("auth_token", token));
        let pairs = self.headers.iter().chain(&self.env);
        let named = pairs.map(|(name, value)| (name.as_str(), value));
        token.chain(named).filter(|(_, value)| !value.expose().contains("${"))
    }

    /// What is wrong with it, so that a file with it would not be accepted: one line without secrets.
    pub fn problem(&self) -> Option<String> {
        let source = Source {
            name: String::new(),
            text: with_servers("", std::slice::from_ref(self)).ok()??,
            layer: Layer::User,
        };
        match resolve(Some(source), None, &Environment::default(), &Overrides::default()) {
            Err(ConfigError::Invalid(found)) => found.first().map(|diagnostic| diagnostic.message.clone()),
            Ok(_) | Err(ConfigError::Read { .. }) => None,
        }
    }

    fn table(&self, secret: impl Fn(&Secret) -> String) -> Table {
        let mut table = Table::new();
        match &self.place {
            Place::Url(url) => set(&mut table, "url", text_value(url)),
            Place::Command(words) => set(&mut table, "command", texts(words)),
        }
        let pairs = |pairs: &[(String, Secret)]| {
            let values = pairs
                .iter()
                .map(|(name, value)| (name.as_str(), text_value(&secret(value))));
            Value::InlineTable(InlineTable::from_iter(values))
        };
        if let Some(token) = &self.auth_token {
            set(&mut table, "auth_token", text_value(&secret(token)));
        }
        if let Some(variable) = &self.auth_env {
            set(&mut table, "auth_env", text_value(variable));
        }
        if !self.headers.is_empty() {
            set(&mut table, "headers", pairs(&self.headers));
        }
        if !self.env.is_empty() {
            set(&mut table, "env", pairs(&self.env));
        }
        if let Some(directory) = &self.cwd {
            set(&mut table, "cwd", text_value(directory));
        }
        if let Some(seconds) = self.timeout_s {
            set(
                &mut table,
                "timeout_s",
                i64::try_from(seconds).unwrap_or(i64::MAX).into(),
            );
        }
        if let Some(version) = &self.protocol {
            set(&mut table, "protocol", text_value(version));
        }
        for (key, tools) in [
            ("enabled_tools", &self.enabled_tools),
            ("disabled_tools", &self.disabled_tools),
        ] {
            if !tools.is_empty() {
                set(&mut table, key, texts(tools));
            }
        }
        for (key, is_set) in [("required", self.required), ("trusted", self.trusted)] {
            if is_set {
                set(&mut table, key, true.into());
            }
        }
        if !self.enabled {
            set(&mut table, "enabled", false.into());
        }
        table
    }
}

fn set(table: &mut Table, key: &str, value: Value) {
    table.insert(key, Item::Value(value));
}

fn texts(words: &[String]) -> Value {
    Value::Array(Array::from_iter(words.iter().map(|word| text_value(word))))
}

/// Adds servers to a configuration file, all of them or none: nothing is changed where one of their aliases is taken.
/// `environment` is what the file is read together with.
///
/// # Errors
/// The file cannot be read or written, is not the TOML it should be, or would not be accepted with the addition.
pub fn add_servers(path: &Path, servers: &[NewServer], environment: &Environment) -> Result<Edited, EditError> {
    let check = |text: &str| accepted(path, text, environment);
    edit(path, |text| with_servers(text, servers), check)
}

/// Takes a server out of a configuration file, with the comment right above it; nothing is changed where there is none.
///
/// # Errors
/// The file cannot be read or written, is not the TOML it should be, or would not be accepted without it.
pub fn remove_server(path: &Path, alias: &str, environment: &Environment) -> Result<Edited, EditError> {
    let check = |text: &str| accepted(path, text, environment);
    edit(path, |text| without_server(text, alias), check)
}

/// Whether a server is connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// It is.
    On,
    /// It is not, and stays where it is configured.
    Off,
}

/// Switches a server of a configuration file on or off; nothing is changed where there is none of that alias.
///
/// # Errors
/// The file cannot be read or written, is not the TOML it should be, or would not be accepted with the change.
pub fn switch_server(path: &Path, alias: &str, switch: Switch, environment: &Environment) -> Result<Edited, EditError> {
    let check = |text: &str| accepted(path, text, environment);
    edit(path, |text| with_switch(text, alias, switch), check)
}

/// The text with that server switched, or `None` if there is none. Pure.
fn with_switch(text: &str, alias: &str, switch: Switch) -> Result<Option<String>, String> {
    let mut document = parse(text)?;
    let mcp = document.get_mut("mcp").and_then(Item::as_table_like_mut);
    let servers = mcp.and_then(|mcp| mcp.get_mut("servers")?.as_table_like_mut());
    let Some(server) = servers.and_then(|servers| servers.get_mut(alias)?.as_table_like_mut()) else {
        return Ok(None);
    };
    let is_on = switch == Switch::On;
    match server.get_mut("enabled").and_then(Item::as_value_mut) {
        // What stands around the old value is the user's.
        Some(value) => {
            let decor = value.decor().clone();
            *value = Value::from(is_on);
            *value.decor_mut() = decor;
        }
        None => {
            server.insert("enabled", Item::Value(is_on.into()));
        }
    }
    Ok(Some(document.to_string()))
}

/// The text with the servers added, or `None` if one of the aliases is taken. Pure.
fn with_servers(text: &str, new: &[NewServer]) -> Result<Option<String>, String> {
    let mut document = parse(text)?;
    let implicit = || {
        let mut table = Table::new();
        // `[mcp]` above `[mcp.servers.ALIAS]` would say nothing.
        table.set_implicit(true);
        Item::Table(table)
    };
    let mcp = document.entry("mcp").or_insert_with(implicit);
    let mcp: &mut dyn TableLike = mcp.as_table_like_mut().ok_or("`mcp` is not a table")?;
    let servers = mcp.entry("servers").or_insert_with(implicit);
    let servers: &mut dyn TableLike = servers.as_table_like_mut().ok_or("`mcp.servers` is not a table")?;
    for server in new {
        if servers.contains_key(&server.alias) {
            return Ok(None);
        }
        let table = server.table(|secret| secret.expose().to_owned());
        servers.insert(&server.alias, Item::Table(table));
    }
    Ok(Some(document.to_string()))
}

/// The text without that server, or `None` if there is none. Pure.
fn without_server(text: &str, alias: &str) -> Result<Option<String>, String> {
    let mut document = parse(text)?;
    let mcp = document.get_mut("mcp").and_then(Item::as_table_like_mut);
    let servers = mcp.and_then(|mcp| mcp.get_mut("servers")?.as_table_like_mut());
    let Some(removed) = servers.and_then(|servers| servers.remove(alias)) else {
        return Ok(None);
    };
    if let Item::Table(table) = &removed
        && let Some(comments) = comments_of_others(table)
    {
        let next = table.position().and_then(|at| next_position(document.as_table(), at));
        match next {
            Some(next) => prepend(document.as_table_mut(), next, &comments),
            None => {
                let trailing = document.trailing().as_str().unwrap_or("").to_owned();
                document.set_trailing(format!("{comments}{trailing}"));
            }
        }
    }
    Ok(Some(document.to_string()))
}

/// What stands above a table and does not belong to it: all but the paragraph right above its header.
fn comments_of_others(table: &Table) -> Option<String> {
    let above = table.decor().prefix()?.as_str()?;
    let (others, _) = above.rsplit_once("\n\n")?;
    others.contains('#').then(|| format!("{others}\n"))
}

/// The place in the file of the table that comes after that one.
fn next_position(table: &Table, after: isize) -> Option<isize> {
    let below = table.iter().filter_map(|(_, item)| item.as_table());
    let each = below.filter_map(|table| {
        let own = table.position().filter(|at| *at > after && !table.is_implicit());
        own.into_iter().chain(next_position(table, after)).min()
    });
    each.min()
}

/// Puts a text above the table at that place.
fn prepend(table: &mut Table, position: isize, text: &str) {
    for (_, item) in table.iter_mut() {
        let Some(below) = item.as_table_mut() else { continue };
        if below.position() == Some(position) && !below.is_implicit() {
            let own = below
                .decor()
                .prefix()
                .and_then(|prefix| prefix.as_str())
                .unwrap_or("\n")
                .to_owned();
            below.decor_mut().set_prefix(format!("{text}{own}"));
        }
        prepend(below, position, text);
    }
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
