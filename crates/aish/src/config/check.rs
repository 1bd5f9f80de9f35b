//! From raw to checked: every key of a file known, every value of its kind and in range, nothing set that its layer may not
//! set. Everything wrong is collected, in the order of the file; the rest is checked all the same.

use super::error::{Diagnostic, Layer, Origin, Place, Shown, Source};
use super::settings::{Kind, Project, SETTINGS, Secrecy, Setting, find, is_placeholder};
use super::value::{Value, from_toml, from_variable, nearest, toml_path};
use crate::paths::Environment;
use aish_core::sanitize;
use std::ops::Range;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Why a project's file has no variables put in.
const NO_VARIABLES: &str = "use environment variables in {key}; set it in your own file";

/// A setting that somebody set.
#[derive(Clone, Debug)]
pub struct Assigned {
    /// Its path, with the user's names in it.
    pub path: Vec<String>,
    /// Its declaration.
    pub setting: &'static Setting,
    /// To what.
    pub value: Value,
    /// Where.
    pub origin: Origin,
}

/// A table the user named: a model or a server.
#[derive(Clone, Debug)]
pub struct Named {
    /// Its path, e.g. `models`, `desk`.
    pub path: Vec<String>,
    /// Where it begins.
    pub origin: Origin,
}

/// One layer, checked.
#[derive(Debug, Default)]
pub struct Checked {
    /// What is set, in the order of the text.
    pub assigned: Vec<Assigned>,
    /// Which tables the user named, in the order of the text; a table without settings is among them.
    pub named: Vec<Named>,
    /// What is wrong.
    pub diagnostics: Vec<Diagnostic>,
    /// What is odd, one line each.
    pub warnings: Vec<String>,
}

/// Checks a file.
pub fn check_file(source: &Arc<Source>) -> Checked {
    let mut walk = Walk {
        source,
        checked: Checked::default(),
    };
    // An editor of another world may begin a file with a byte order mark; the parser passes over it.
    let (table, errors) = DeTable::parse_recoverable(&source.text);
    for error in &errors {
        let span = error.span().unwrap_or(0..0);
        walk.report(span, Shown::Unparsed, format!("not TOML: {}", error.message()));
    }
    if errors.is_empty() {
        walk.table(&mut Vec::new(), table.get_ref());
    }
    let mut checked = walk.checked;
    // The parser sorts keys; people expect the order of their file.
    checked.assigned.sort_by_key(|assigned| start(&assigned.origin));
    checked.named.sort_by_key(|named| start(&named.origin));
    checked.diagnostics.sort_by_key(|diagnostic| start(&diagnostic.origin));
    checked
}

/// Checks the environment: every variable some setting is declared with.
pub fn check_environment(environment: &Environment) -> Checked {
    let mut checked = Checked::default();
    for setting in SETTINGS {
        let Some((variable, text)) = setting.env.and_then(|name| Some((name, environment.text(name)?))) else {
            continue;
        };
        let origin = Origin::Variable(variable);
        match from_variable(setting, text) {
            Ok(value) => checked.assigned.push(Assigned {
                path: setting.segments().map(str::to_owned).collect(),
                setting,
                value,
                origin,
            }),
            Err(misfit) => {
                let example = || format!("e.g. {variable}={}", setting.example.trim_matches('"'));
                let hint = misfit.hint.unwrap_or_else(example);
                checked.diagnostics.push(Diagnostic {
                    origin,
                    message: format!("{}; {hint}", misfit.message),
                    shown: Shown::Value,
                });
            }
        }
    }
    let declared = SETTINGS.iter().filter_map(|setting| setting.env);
    let known: Vec<&str> = declared.chain(["AISH_HOME", "AISH_CONFIG"]).collect();
    let unknown = |name: &&str| name.starts_with("AISH_") && !known.contains(name);
    for name in environment.names().filter(unknown) {
        // Other programs may use the prefix too: only what looks like a slip is worth a line.
        if let Some(meant) = nearest(name, known.iter().copied()) {
            checked
                .warnings
                .push(format!("${name} is not a variable of aish; did you mean {meant}?"));
        }
    }
    checked
}

fn start(origin: &Origin) -> usize {
    match origin {
        Origin::File(place) => place.span.start,
        Origin::Default | Origin::Variable(_) | Origin::Flag(_) => 0,
    }
}

/// The walk over the tables of a file.
struct Walk<'a> {
    source: &'a Arc<Source>,
    checked: Checked,
}

impl Walk<'_> {
    fn origin(&self, span: Range<usize>) -> Origin {
        Origin::File(Place {
            source: Arc::clone(self.source),
            span,
        })
    }

    fn report(&mut self, span: Range<usize>, shown: Shown, message: String) {
        self.checked.diagnostics.push(Diagnostic {
            origin: self.origin(span),
            message,
            shown,
        });
    }

    /// Checks a table at a path that some setting begins with.
    fn table(&mut self, path: &mut Vec<String>, table: &DeTable<'_>) {
        for (key, value) in table.iter() {
            path.push(key.get_ref().to_string());
            self.entry(path, key.span(), value);
            path.pop();
        }
    }

    fn entry(&mut self, path: &mut Vec<String>, key: Range<usize>, value: &Spanned<DeValue<'_>>) {
        if !SETTINGS.iter().any(|setting| setting.begins_with(path)) {
            return self.report(key, Shown::Key, unknown(path));
        }
        if let Some(wrong) = wrong_name(path) {
            return self.report(key, Shown::Key, wrong);
        }
        match (find(path), value.get_ref()) {
            (Some(setting), _) => self.setting(setting, path, key, value),
            (None, DeValue::Table(table)) => {
                if placeholder_at(path).is_some() {
                    let origin = self.origin(key);
                    self.checked.named.push(Named {
                        path: path.clone(),
                        origin,
                    });
                }
                self.table(path, table);
            }
            (None, _) => {
                let next = |setting: &Setting| setting.segments().nth(path.len());
                let next = SETTINGS.iter().find(|setting| setting.begins_with(path)).and_then(next);
                let path = toml_path(path);
                let header = match next.filter(|segment| is_placeholder(segment)) {
                    Some(segment) => format!("{path}.{segment}"),
                    None => path.clone(),
                };
                let message = format!("{path} is a table; write [{header}] and its settings below");
                self.report(key, Shown::Key, message);
            }
        }
    }

    fn setting(&mut self, setting: &'static Setting, path: &[String], key: Range<usize>, value: &Spanned<DeValue<'_>>) {
        let project = self.source.layer == Layer::Project;
        let shown = match (setting.secrecy, setting.kind, value.get_ref().as_str()) {
            // Where a variable's name belongs people paste the key, and into an address they write passwords and keys.
            (Secrecy::Secret, _, _) | (Secrecy::Open, Kind::Variable, _) => Shown::Hidden,
            (Secrecy::Open, Kind::Url, Some(text)) if text.contains(['@', '?']) => Shown::Hidden,
            (Secrecy::Open, _, _) => Shown::Value,
        };
        let read = match from_toml(setting, value.get_ref()) {
            Ok(read) => read,
            Err(misfit) => {
                let example = example(setting, &toml_path(path.last().as_slice()));
                let hint = match (misfit.hint, value.get_ref()) {
                    (Some(hint), _) => hint,
                    (None, DeValue::Table(_)) if setting.leaf() == "<tool>" => {
                        format!("quote a name with a dot: {example}")
                    }
                    (None, _) => format!("e.g. {example}"),
                };
                let message = format!("{}: {}; {hint}", toml_path(path), misfit.message);
                return self.report(misfit.span.unwrap_or(value.span()), shown, message);
            }
        };
        if project && let Some(refusal) = refusal(setting, &read) {
            let message = format!("a project's file may not {refusal}");
            return self.report(key, Shown::Key, message.replace("{key}", &toml_path(path)));
        }
        let origin = self.origin(value.span());
        self.checked.assigned.push(Assigned {
            path: path.to_vec(),
            setting,
            value: read,
            origin,
        });
    }
}

/// The line a message about a setting gives as an example; `name` is its key as written.
fn example(setting: &Setting, name: &str) -> String {
    match setting.leaf() {
        "<tool>" => format!("\"alias.tool\" = {}", setting.example),
        _ => format!("{name} = {}", setting.example),
    }
}

/// Why a project's file may not set this, to follow "may not"; `{key}` stands for the key.
fn refusal(setting: &Setting, value: &Value) -> Option<String> {
    match setting.project {
        Project::Refused(why) => Some(format!("set {{key}}: {why}; set it in your own file")),
        Project::OnlyStricter(to) if *value != Value::Bool(to) => {
            Some(format!("set {{key}} to anything but {to}; set it in your own file"))
        }
        Project::Open | Project::WithinReach | Project::OnlyStricter(_) => match value {
            // Expanded, it would carry any variable of the user's to an address or a program of the project's.
            Value::Text(text) if is_expanded(setting) && text.contains("${") => Some(NO_VARIABLES.to_owned()),
            Value::Texts(texts) if is_expanded(setting) && texts.iter().any(|text| text.contains("${")) => {
                Some(NO_VARIABLES.to_owned())
            }
            Value::Text(_) | Value::Bool(_) | Value::Integer(_) | Value::Float(_) | Value::Texts(_) => None,
        },
    }
}

/// Whether `${VAR}` is put in where this setting is used.
fn is_expanded(setting: &Setting) -> bool {
    setting.secrecy == Secrecy::Secret || setting.key.starts_with("mcp.servers.")
}

/// The message for a key no setting has.
fn unknown(path: &[String]) -> String {
    let (parent, leaf) = match path.split_last() {
        Some((leaf, parent)) => (parent, leaf.as_str()),
        None => (path, ""),
    };
    let below = SETTINGS.iter().filter(|setting| setting.begins_with(parent));
    let siblings: Vec<&str> = below
        .filter_map(|setting| setting.segments().nth(parent.len()))
        .filter(|segment| !is_placeholder(segment))
        .collect();
    let section = if parent.is_empty() {
        String::new()
    } else {
        format!(" in [{}]", toml_path(parent))
    };
    let unknown = format!("unknown key {}{section}", super::value::toml_text(leaf));
    let elsewhere = || SETTINGS.iter().find(|setting| setting.leaf() == leaf);
    match nearest(leaf, siblings.iter().copied()) {
        Some(meant) => format!("{unknown}; did you mean \"{meant}\"?"),
        None => match elsewhere() {
            Some(setting) if setting.section().is_empty() => {
                format!("{unknown}; did you mean the one at the top of the file, above every [table]?")
            }
            Some(setting) => format!("{unknown}; did you mean the one in [{}]?", setting.section()),
            None => format!("{unknown}; known here: {}", known(siblings)),
        },
    }
}

fn known(mut siblings: Vec<&str>) -> String {
    siblings.dedup();
    siblings.join(", ")
}

/// The placeholder the last segment of a path stands in for.
fn placeholder_at(path: &[String]) -> Option<&'static str> {
    let setting = SETTINGS.iter().find(|setting| setting.begins_with(path))?;
    let segment = setting.segments().nth(path.len().checked_sub(1)?)?;
    is_placeholder(segment).then_some(segment)
}

/// Whether a character may stand in the name of a model.
pub fn is_in_model_name(c: char) -> bool {
    !c.is_whitespace() && !sanitize::is_hostile(c)
}

/// What is wrong with a name the user chose.
fn wrong_name(path: &[String]) -> Option<String> {
    let name = path.last()?;
    let alphanumeric = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    let (good, rule) = match placeholder_at(path)? {
        "<name>" => (
            !name.is_empty() && name.chars().all(is_in_model_name),
            "the name of a model has no spaces and nothing that cannot be seen",
        ),
        "<alias>" => (
            name.starts_with(|c: char| c.is_ascii_lowercase())
                && name.bytes().all(|b| alphanumeric(b) && !b.is_ascii_uppercase()),
            "the alias of a server begins with a small letter; then small letters, digits, _ and - follow",
        ),
        "<tool>" => (
            {
                let bare = name.strip_suffix(".*").unwrap_or(name);
                !bare.is_empty()
                    && bare
                        .split('.')
                        .all(|part| !part.is_empty() && part.bytes().all(alphanumeric))
            },
            "write \"alias.tool\", \"alias.*\" or the name of a built-in tool",
        ),
        "<header>" => (
            !name.is_empty() && name.bytes().all(|b| alphanumeric(b) || b"!#$%&'*+.^`|~".contains(&b)),
            "this is not the name of an HTTP header",
        ),
        _ => (
            !name.is_empty() && name.bytes().all(|b| alphanumeric(b) && b != b'-'),
            "this is not the name of an environment variable",
        ),
    };
    (!good).then(|| format!("wrong name {}: {rule}", super::value::toml_text(name)))
}
