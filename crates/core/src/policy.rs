//! The standing rules, and the one place that says whether a call may run (SPEC 5).
//!
//! | order | what | verdict |
//! |---|---|---|
//! | 1 | a deny rule matches | deny, in every mode |
//! | 2 | this exact command was approved for the session | allow |
//! | 3 | an ask rule matches | ask (allow in `full`) |
//! | 4 | an allow rule, `auto_approve` or an approval of this tool for the session matches | allow |
//! | 5 | it only reads, inside the working tree, nothing that looks secret (a rule the user can remove) | allow |
//! | 6 | mode `full` | allow |
//! | 7 | mode `auto`, and it is not destructive: reads of nothing secret, writes inside the tree | allow |
//! | 8 | everything else | ask |
//!
//! A pattern in an **allow** rule must cover everything the call touches, and a command only as its exact whole text. A
//! pattern in a **deny** or **ask** rule errs to the other side: it matches if any one thing the call touches fits, and a
//! command from the start of any word in it.

use crate::action::{Action, Effect};
use crate::event::CallSource;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

/// When calls are asked about (SPEC 5.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalMode {
    /// Everything that is not proven harmless asks.
    #[default]
    Ask,
    /// Non-destructive calls run, destructive or unknown ones ask.
    Auto,
    /// Nothing asks; deny rules still hold.
    Full,
}

impl ApprovalMode {
    /// The word used in configuration and on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Auto => "auto",
            Self::Full => "full",
        }
    }
}

/// What the gate says of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It may run.
    Allow,
    /// A person must say yes first.
    Ask,
    /// It may not run.
    Deny,
    /// It cannot run at all: bad arguments, unknown tool.
    Invalid,
}

/// A verdict with the rule that gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// Allow, ask or deny.
    pub verdict: Verdict,
    /// Which rule said so, readable.
    pub rule: String,
}

/// One rule: `tool`, `alias.*`, `*`, or any of these with a pattern in parentheses, in which `*` stands for any text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    tool: String,
    pattern: Option<String>,
}

impl Rule {
    /// Reads a rule such as `file_write`, `git.*` or `bash(git push*)`.
    ///
    /// # Errors
    /// One line that says what is wrong and what a rule looks like.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (tool, pattern) = match text.split_once('(') {
            None => (text, None),
            Some((tool, rest)) => match rest.strip_suffix(')') {
                Some(pattern) => (tool, Some(pattern.to_owned())),
                None => {
                    return Err(format!(
                        "rule `{text}` has no closing parenthesis; write e.g. `bash(git push*)`"
                    ));
                }
            },
        };
        let named = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '*');
        if tool.is_empty() || !tool.chars().all(named) {
            return Err(format!(
                "rule `{text}` does not begin with a tool's name; write e.g. `file_write`, `git.*` or `bash(git push*)`"
            ));
        }
        Ok(Self {
            tool: tool.to_owned(),
            pattern,
        })
    }

    /// The rule that allows exactly this call's like again: the exact command, or the tool.
    pub fn allowing(action: &Action) -> Self {
        Self {
            tool: action.tool.clone(),
            pattern: action.command().map(str::to_owned),
        }
    }

    /// True for a rule on commands whose pattern holds a `*`, which an allow rule takes literally.
    pub fn is_command_pattern(&self) -> bool {
        self.tool == "bash" && self.pattern.as_deref().is_some_and(|pattern| pattern.contains('*'))
    }

    fn covers_tool(&self, tool: &str) -> bool {
        wildcard(&self.tool, tool)
    }

    /// For allow rules: everything the call touches fits.
    fn covers(&self, action: &Action, root: &Path) -> bool {
        let Some(pattern) = &self.pattern else {
            return self.covers_tool(&action.tool);
        };
        self.covers_tool(&action.tool)
            && !action.effects.is_empty()
            && action.effects.iter().all(|effect| match effect {
                Effect::Execute { command, .. } => command == pattern,
                Effect::Read { path } | Effect::Write { path } => path_fits(pattern, path, root),
                Effect::Fetch { url } => wildcard(pattern, url),
                Effect::Remote | Effect::Internal => false,
            })
    }

    /// For deny and ask rules: anything the call touches fits.
    fn touches(&self, action: &Action, root: &Path) -> bool {
        let Some(pattern) = &self.pattern else {
            return self.covers_tool(&action.tool);
        };
        self.covers_tool(&action.tool)
            && action.effects.iter().any(|effect| match effect {
                Effect::Execute { command, .. } => word_starts(command).any(|rest| wildcard(pattern, rest)),
                Effect::Read { path } | Effect::Write { path } => path_fits(pattern, path, root),
                Effect::Fetch { url } => wildcard(pattern, url),
                Effect::Remote | Effect::Internal => false,
            })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pattern {
            Some(pattern) => write!(f, "{}({pattern})", self.tool),
            None => f.write_str(&self.tool),
        }
    }
}

/// An approval a person gave for the rest of a session; a view of its `call_answered` events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The tool.
    pub tool: String,
    /// For commands: the exact command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

impl Grant {
    /// What an approval of this call for the session covers.
    pub fn of(action: &Action) -> Self {
        Self {
            tool: action.tool.clone(),
            command: action.command().map(str::to_owned),
        }
    }
}

/// The standing rules of a session.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Never, in any mode.
    pub deny: Vec<Rule>,
    /// Always ask, except in mode `full`.
    pub ask: Vec<Rule>,
    /// Do not ask.
    pub allow: Vec<Rule>,
    /// `[mcp.auto_approve]`: a tool's name, `alias.*` or a built-in's bare name, and yes or no (SPEC 5.4).
    pub auto_approve: Vec<(String, bool)>,
    /// The default rule: reading inside the working tree is not asked about.
    pub read_only_inside_tree: bool,
    /// The working tree; absolute, links resolved.
    pub root: PathBuf,
}

impl Policy {
    /// No rules but the default one.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            deny: Vec::new(),
            ask: Vec::new(),
            allow: Vec::new(),
            auto_approve: Vec::new(),
            read_only_inside_tree: true,
            root: root.into(),
        }
    }

    /// Judges one call by the table at the top of this file.
    pub fn judge(&self, action: &Action, source: CallSource, mode: ApprovalMode, grants: &[Grant]) -> Judgement {
        if let Some(denied) = self.denial(action) {
            return denied;
        }
        let judged = |verdict, rule: String| Judgement { verdict, rule };
        let command = action.command();
        let granted = |grant: &&Grant| grant.tool == action.tool && grant.command.as_deref() == command;
        let grant = grants.iter().find(granted);
        if grant.is_some() && command.is_some() {
            return judged(Verdict::Allow, "approved for this session".to_owned());
        }
        if mode != ApprovalMode::Full
            && let Some(rule) = self.ask.iter().find(|rule| rule.touches(action, &self.root))
        {
            return judged(Verdict::Ask, format!("ask rule {rule}"));
        }
        if let Some(rule) = self.allow.iter().find(|rule| rule.covers(action, &self.root)) {
            return judged(Verdict::Allow, format!("allow rule {rule}"));
        }
        if let Some(key) = self.auto_approved(&action.tool) {
            return judged(Verdict::Allow, format!("auto_approve {key}"));
        }
        if grant.is_some() {
            return judged(Verdict::Allow, "approved for this session".to_owned());
        }
        if self.read_only_inside_tree && source == CallSource::Builtin && self.reads_inside_tree(action) {
            return judged(Verdict::Allow, "default: read-only inside the working tree".to_owned());
        }
        match mode {
            ApprovalMode::Full => judged(Verdict::Allow, "mode full".to_owned()),
            ApprovalMode::Auto if source == CallSource::Builtin && self.is_gentle(action) => {
                judged(Verdict::Allow, "mode auto: not destructive".to_owned())
            }
            ApprovalMode::Auto => judged(Verdict::Ask, "mode auto: destructive or unknown".to_owned()),
            ApprovalMode::Ask => judged(Verdict::Ask, self.why_asked(action)),
        }
    }

    /// The deny rules alone: checked once more just before a call starts (SPEC 3.4).
    pub fn denial(&self, action: &Action) -> Option<Judgement> {
        let rule = self.deny.iter().find(|rule| rule.touches(action, &self.root))?;
        Some(Judgement {
            verdict: Verdict::Deny,
            rule: format!("deny rule {rule}"),
        })
    }

    /// The key that approves a tool; an exact `false` overrides a `*`.
    fn auto_approved(&self, tool: &str) -> Option<&str> {
        if let Some((key, yes)) = self.auto_approve.iter().find(|(key, _)| key == tool) {
            return yes.then_some(key.as_str());
        }
        self.auto_approve
            .iter()
            .find(|(key, yes)| *yes && key.ends_with(".*") && wildcard(key, tool))
            .map(|(key, _)| key.as_str())
    }

    fn reads_inside_tree(&self, action: &Action) -> bool {
        action.effects.iter().all(|effect| match effect {
            Effect::Read { path } => path.starts_with(&self.root) && !is_secret_path(path),
            Effect::Internal => true,
            Effect::Write { .. } | Effect::Execute { .. } | Effect::Fetch { .. } | Effect::Remote => false,
        })
    }

    fn is_gentle(&self, action: &Action) -> bool {
        action.effects.iter().all(|effect| match effect {
            Effect::Read { path } => !is_secret_path(path),
            Effect::Write { path } => {
                path.strip_prefix(&self.root)
                    .is_ok_and(|inside| !is_protected_path(inside))
                    && !is_secret_path(path)
            }
            Effect::Internal => true,
            Effect::Execute { .. } | Effect::Fetch { .. } | Effect::Remote => false,
        })
    }

    fn why_asked(&self, action: &Action) -> String {
        let secret = |effect: &Effect| matches!(effect, Effect::Read { path } if is_secret_path(path));
        let outside = |effect: &Effect| matches!(effect, Effect::Read { path } if !path.starts_with(&self.root));
        if action.effects.iter().any(secret) {
            "mode ask: the file looks secret".to_owned()
        } else if action.effects.iter().any(outside) {
            "mode ask: outside the working tree".to_owned()
        } else {
            "mode ask".to_owned()
        }
    }
}

/// True for files that usually hold keys or passwords, by name alone.
pub fn is_secret_path(path: &Path) -> bool {
    const FOLDERS: &[&str] = &[
        ".ssh",
        ".gnupg",
        ".aws",
        ".azure",
        ".kube",
        ".docker",
        "gcloud",
        ".password-store",
    ];
    const NAMES: &[&str] = &[
        ".netrc",
        "_netrc",
        ".npmrc",
        ".pypirc",
        ".pgpass",
        ".my.cnf",
        ".htpasswd",
        ".git-credentials",
        ".vault-token",
        "credentials",
        "credentials.json",
        "credentials.toml",
        "secrets.json",
        "secrets.yaml",
        "secrets.yml",
        "secrets.toml",
        "shadow",
        "gshadow",
        "master.key",
        ".envrc",
    ];
    const STEMS: &[&str] = &["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"];
    const ENDINGS: &[&str] = &[
        "pem", "key", "p12", "pfx", "kdbx", "keystore", "jks", "ppk", "asc", "gpg",
    ];
    let lower = |part: &std::ffi::OsStr| part.to_string_lossy().to_ascii_lowercase();
    let mut parts = path.iter().map(lower);
    if parts.any(|part| FOLDERS.contains(&part.as_str())) {
        return true;
    }
    let Some(name) = path.file_name().map(lower) else {
        return false;
    };
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    let environment =
        name == ".env" || (name.starts_with(".env.") && !name.ends_with(".example") && !name.ends_with(".sample"));
    environment
        || NAMES.contains(&name.as_str())
        || (STEMS.iter().any(|stem| name.starts_with(stem)) && ending != Some("pub"))
        || ending.is_some_and(|ending| ENDINGS.contains(&ending))
}

/// True for places inside a tree where a write can come to run as code or change the rules; relative to the tree.
fn is_protected_path(inside: &Path) -> bool {
    const NAMES: &[&str] = &[".git", ".aish", ".hg", ".svn", ".vscode", ".idea", ".husky", ".direnv"];
    inside
        .iter()
        .any(|part| NAMES.contains(&part.to_string_lossy().as_ref()))
}

fn path_fits(pattern: &str, path: &Path, root: &Path) -> bool {
    let whole = wildcard(pattern, &path.to_string_lossy());
    let inside = path
        .strip_prefix(root)
        .is_ok_and(|inside| wildcard(pattern.strip_prefix("./").unwrap_or(pattern), &inside.to_string_lossy()));
    whole || inside
}

/// The text from the start of each word on: where a command could begin.
fn word_starts(command: &str) -> impl Iterator<Item = &str> {
    let mut between = true;
    command.char_indices().filter_map(move |(at, c)| {
        let separator = c.is_whitespace() || "\"'`;&|(){}$<>=\\".contains(c);
        let starts = between && !separator;
        between = separator;
        if starts { command.get(at..) } else { None }
    })
}

/// Whether text fits a pattern in which `*` stands for any text, possibly none. Linear in time but for its stars.
pub fn wildcard(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    loop {
        match (pattern.get(p), text.get(t)) {
            (Some(b'*'), _) => {
                retry = Some((p + 1, t));
                p += 1;
            }
            (Some(want), Some(got)) if want == got => {
                p += 1;
                t += 1;
            }
            (None, None) => return true,
            (Some(_) | None, _) => match retry {
                Some((after_star, from)) if from < text.len() => {
                    retry = Some((after_star, from + 1));
                    p = after_star;
                    t = from + 1;
                }
                Some(_) | None => return false,
            },
        }
    }
}

#[cfg(test)]
mod tests;
