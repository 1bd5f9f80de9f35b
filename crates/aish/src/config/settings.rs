//! Every setting, declared once: its key, type and range, what it does, its default, its environment variable and what a
//! project may do with it. The check of files and variables, the defaults, `aish config`, and `docs/configuration.md` all
//! come from [`SETTINGS`]; nothing else spells a key, except [`mod@super::resolve`] and [`super::models`] where they read one.
//!
//! A key is a path such as `models.<name>.base_url`; a segment in angle brackets stands for a name the user chooses.

mod mcp;
mod serve;
mod table;
mod ui;

pub use table::WHY_NOT_ELSEWHERE;

/// Every setting there is, in the order of the reference.
pub const SETTINGS: &[Setting] = &joined::<{ FIRST.len() + LAST.len() }>(FIRST, LAST);

/// Those of models, tools and servers.
const FIRST: &[Setting] = &joined::<{ table::SETTINGS.len() + mcp::SETTINGS.len() }>(table::SETTINGS, mcp::SETTINGS);

/// Those of served mode, and of how things look.
const LAST: &[Setting] = &joined::<{ serve::SETTINGS.len() + ui::SETTINGS.len() }>(serve::SETTINGS, ui::SETTINGS);

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The path, e.g. `tools.max_output_size`; `<…>` stands for a name of the user's.
    pub key: &'static str,
    /// What values it takes.
    pub kind: Kind,
    /// What it does, in sentences; Markdown.
    pub doc: &'static str,
    /// A value as it would be written in the file.
    pub example: &'static str,
    /// The default as it would be written in the file; `None` where the doc says what happens instead.
    pub default: Option<&'static str>,
    /// The environment variable that sets it.
    pub env: Option<&'static str>,
    /// What a trusted project's file may do with it.
    pub project: Project,
    /// Whether its value may be shown.
    pub secrecy: Secrecy,
}

/// What values a setting takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// One line of text that is not empty.
    Text,
    /// Any text at all.
    AnyText,
    /// An `http` or `https` address without a user or password in it.
    Url,
    /// The name of an environment variable, never the secret it holds.
    Variable,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// `true` or `false`.
    Bool,
    /// A whole number in this range, ends included.
    Integer(i64, i64),
    /// A number in this range, ends included.
    Float(f64, f64),
    /// A list of texts.
    Texts,
    /// A list of some of these words.
    Words(&'static [&'static str]),
    /// A list of approval rules. The only kind whose layers add up: a later layer adds rules and removes none.
    Rules,
}

/// What the file of a trusted project may do with a setting. Trusting a project means its file was looked at, not that every
/// line of it was weighed: what would send a key elsewhere or answer for the user stays out of its reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Project {
    /// Set it.
    Open,
    /// Name models with it that are on this machine or in the user's own configuration; judged in [`super::reach`].
    WithinReach,
    /// Set it to this value only, the stricter one.
    OnlyStricter(bool),
    /// Not touch it, because…
    Refused(&'static str),
}

/// Whether a setting's value may be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrecy {
    /// It may.
    Open,
    /// It is shown as `[redacted]` everywhere.
    Secret,
}

impl Setting {
    const fn new(key: &'static str, kind: Kind, example: &'static str, doc: &'static str) -> Self {
        Self {
            key,
            kind,
            doc,
            example,
            default: None,
            env: None,
            project: Project::Open,
            secrecy: Secrecy::Open,
        }
    }

    const fn default(self, default: &'static str) -> Self {
        Self {
            default: Some(default),
            ..self
        }
    }

    const fn env(self, env: &'static str) -> Self {
        Self { env: Some(env), ..self }
    }

    const fn project(self, project: Project) -> Self {
        Self { project, ..self }
    }

    const fn secret(self) -> Self {
        Self {
            secrecy: Secrecy::Secret,
            ..self
        }
    }

    /// The segments of the key.
    pub fn segments(&self) -> impl Iterator<Item = &'static str> {
        self.key.split('.')
    }

    /// The last segment of the key: what stands before the `=` in its table.
    pub fn leaf(&self) -> &'static str {
        self.key.rsplit('.').next().unwrap_or(self.key)
    }

    /// The key without its last segment; empty at the top.
    pub fn section(&self) -> &'static str {
        self.key.rsplit_once('.').map_or("", |(section, _)| section)
    }

    /// True when a segment is a name the user chooses.
    pub fn is_named(&self) -> bool {
        self.segments().any(is_placeholder)
    }

    /// True when the path is this setting.
    pub fn is_at(&self, path: &[impl AsRef<str>]) -> bool {
        self.segments().count() == path.len() && self.begins_with(path)
    }

    /// True when this setting lies at or below the path.
    pub fn begins_with(&self, path: &[impl AsRef<str>]) -> bool {
        let mut segments = self.segments();
        path.iter().all(|name| {
            segments
                .next()
                .is_some_and(|segment| is_placeholder(segment) || segment == name.as_ref())
        })
    }
}

/// One list of two that are not empty; as long as both.
const fn joined<const LEN: usize>(first: &[Setting], second: &[Setting]) -> [Setting; LEN] {
    let mut all = [first[0]; LEN];
    let mut at = 0;
    while at < LEN {
        all[at] = if at < first.len() {
            first[at]
        } else {
            second[at - first.len()]
        };
        at += 1;
    }
    all
}

/// The setting at a path of a file.
pub fn find(path: &[impl AsRef<str>]) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.is_at(path))
}

/// True for a segment that stands for a name the user chooses.
pub fn is_placeholder(segment: &str) -> bool {
    segment.starts_with('<')
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// SPEC 10.1: each setting is declared once, under one key and one variable.
    #[test]
    fn keys_and_variables_are_unique() {
        let keys: BTreeSet<_> = SETTINGS.iter().map(|setting| setting.key).collect();
        assert_eq!(keys.len(), SETTINGS.len());
        let variables: Vec<_> = SETTINGS.iter().filter_map(|setting| setting.env).collect();
        assert_eq!(variables.iter().collect::<BTreeSet<_>>().len(), variables.len());
    }

    /// SPEC 10.1: a variable is `AISH_` and the key, but for the two that are typed often; names, rules and lists have none.
    #[test]
    fn variables_are_named_after_keys() {
        for setting in SETTINGS {
            let expected = match setting.key {
                "default_model" => Some("AISH_MODEL".to_owned()),
                "approval.mode" => Some("AISH_APPROVAL".to_owned()),
                _ if setting.is_named() || matches!(setting.kind, Kind::Rules | Kind::Texts) => None,
                key => Some(format!("AISH_{}", key.replace('.', "_").to_uppercase())),
            };
            assert_eq!(setting.env, expected.as_deref(), "{}", setting.key);
        }
    }

    /// SPEC 10.1: each setting is documented in sentences.
    #[test]
    fn every_setting_is_documented() {
        for setting in SETTINGS {
            assert!(setting.doc.ends_with('.'), "{}", setting.key);
        }
    }

    #[test]
    fn paths_find_their_setting() {
        assert_eq!(
            find(&["models", "desk", "model"]).map(|setting| setting.key),
            Some("models.<name>.model")
        );
        assert_eq!(
            find(&["mcp", "auto_approve", "git.*"]).map(|setting| setting.key),
            Some("mcp.auto_approve.<tool>")
        );
        assert!(find(&["models", "desk"]).is_none());
        assert!(find(&["models", "desk", "modle"]).is_none());
    }
}
