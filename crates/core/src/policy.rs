//! The standing rules, and the one place that says whether a call may run (SPEC 5).
//!
//! | order | what | verdict |
//! |---|---|---|
//! | 1 | a deny rule matches | deny, in every mode |
//! | 2 | its tool is no longer the one that was approved: the definition changed (SPEC 6.8) | ask (allow in `full`) |
//! | 3 | this exact command was approved for the session | allow |
//! | 4 | an ask rule matches | ask (allow in `full`) |
//! | 5 | it touches aish's own files | ask (allow in `full`) |
//! | 6 | an allow rule covers all it touches; of a command, the exact whole line | allow |
//! | 7 | a command may be what a deny or ask rule speaks of, or may run it, and that cannot be told (SPEC 5.7) | ask (allow in `full`) |
//! | 8 | allow rules cover every part of a command (SPEC 5.7), `auto_approve` or an approval of this tool for the session matches (the rules of the user's own servers only) | allow |
//! | 9 | it only reads, inside the working tree, nothing that looks secret or private, or in the ledger by search (a rule the user can remove) | allow |
//! | 10 | the client executes it (SPEC 9.2): it has a person of its own to ask | allow |
//! | 11 | mode `full` | allow |
//! | 12 | mode `auto`, it fetches from the network, and the conversation holds what was found in others (an address can carry it away) | ask |
//! | 13 | mode `auto`, and it is not destructive: reads of nothing secret, writes inside the tree, pages at public addresses, what a trusted server says reads or only adds (SPEC 5.8) | allow |
//! | 14 | everything else | ask |
//!
//! A pattern in an **allow** rule must cover everything the call touches. A pattern in a **deny** or **ask** rule errs to the
//! other side: it matches if any one thing the call touches fits, and a command from the start of any word in it. What that
//! means for the parts of a command line is the table of `policy/command.rs`.

use crate::action::{Action, Effect, Hint, Reach};
use crate::event::CallSource;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

mod braces;
mod command;
mod onward;
mod options;
mod pattern;
mod place;
mod rule;

use command::{ByParts, Looked};
pub use onward::Onward;
use place::{Places, is_protected_path};
pub use place::{is_secret_path, normal};
pub use rule::{Rule, wildcard};

/// The rule of a call whose tool is no longer the one that was approved.
const CHANGED: &str = "its definition changed since it was approved";

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

/// What a session adds to the standing rules: a view of its events.
#[derive(Clone, Copy, Debug, Default)]
pub struct SoFar<'s> {
    /// The approvals given for the rest of it.
    pub grants: &'s [Grant],
    /// What its conversation holds of other conversations.
    pub recalled: Recalled,
}

impl<'s> SoFar<'s> {
    /// Nothing but these approvals.
    pub fn granted(grants: &'s [Grant]) -> Self {
        Self {
            grants,
            recalled: Recalled::Nothing,
        }
    }
}

/// What a model was shown of other conversations, in one that it may be talked into carrying away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recalled {
    /// Nothing.
    #[default]
    Nothing,
    /// What it searched for in the ledger.
    Words,
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
    /// Servers that a project brings, by their aliases: what the user allows speaks of the user's own servers, so neither `allow`
    /// nor `auto_approve` lets a tool of these through. What is denied or asked about holds for them too.
    pub guests: Vec<String>,
    /// The default rule: reading inside the working tree is not asked about.
    pub read_only_inside_tree: bool,
    /// The working tree; absolute, links resolved.
    pub root: PathBuf,
    /// Where relative paths of calls start: the tree's root, unless the person went elsewhere.
    pub directory: PathBuf,
    /// The user's home, for `~/` in rules; absolute.
    pub home: Option<PathBuf>,
    /// aish's own files and folders (configuration, ledger, trust): outside mode `full` always asked about.
    pub own: Vec<PathBuf>,
}

impl Policy {
    /// No rules but the default one.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        Self {
            deny: Vec::new(),
            ask: Vec::new(),
            allow: Vec::new(),
            auto_approve: Vec::new(),
            guests: Vec::new(),
            read_only_inside_tree: true,
            directory: root.clone(),
            root,
            home: None,
            own: Vec::new(),
        }
    }

    /// Judges one call by the table at the top of this file.
    pub fn judge(&self, action: &Action, source: CallSource, mode: ApprovalMode, so_far: SoFar<'_>) -> Judgement {
        let looked = self.looked(action);
        if let Some(denied) = self.denial_of(&looked) {
            return denied;
        }
        let judged = |verdict, rule: String| Judgement { verdict, rule };
        if mode != ApprovalMode::Full && action.changed().is_some() {
            return judged(Verdict::Ask, CHANGED.to_owned());
        }
        let command = action.command();
        let granted = |grant: &&Grant| grant.tool == action.tool && grant.command.as_deref() == command;
        let grant = so_far.grants.iter().find(granted);
        if grant.is_some() && command.is_some() {
            return judged(Verdict::Allow, "approved for this session".to_owned());
        }
        if mode != ApprovalMode::Full
            && let Some(rule) = self.ask.iter().find(|rule| rule.touches(&looked, &self.places()))
        {
            return judged(Verdict::Ask, format!("ask rule {rule}"));
        }
        if mode != ApprovalMode::Full && self.touches_own(action) {
            return judged(Verdict::Ask, "aish's own files".to_owned());
        }
        let mut allow = self.allow.iter().filter(|_| !self.is_of_guest(&action.tool));
        if let Some(rule) = allow.find(|rule| rule.covers(action, &self.places())) {
            return judged(Verdict::Allow, format!("allow rule {rule}"));
        }
        let by_parts = self.by_parts(action);
        match &by_parts {
            Some(ByParts::MayBe { rule }) if mode != ApprovalMode::Full => return judged(Verdict::Ask, rule.clone()),
            Some(ByParts::Allowed { rules }) => {
                return judged(Verdict::Allow, format!("allow rule {}", rules.join(", ")));
            }
            Some(ByParts::MayBe { .. } | ByParts::Lacks { .. } | ByParts::Nothing) | None => {}
        }
        if let Some(key) = self.auto_approved(&action.tool) {
            return judged(Verdict::Allow, format!("auto_approve {key}"));
        }
        if grant.is_some() {
            return judged(Verdict::Allow, "approved for this session".to_owned());
        }
        if !action.effects.is_empty() && action.effects.iter().all(|effect| matches!(effect, Effect::Internal)) {
            return judged(Verdict::Allow, "touches nothing outside this session".to_owned());
        }
        if self.read_only_inside_tree && source == CallSource::Builtin && self.reads_inside_tree(action) {
            return judged(Verdict::Allow, "default: read-only inside the working tree".to_owned());
        }
        if source == CallSource::Client {
            return judged(Verdict::Allow, "the client executes it".to_owned());
        }
        match mode {
            ApprovalMode::Full => judged(Verdict::Allow, "mode full".to_owned()),
            ApprovalMode::Auto if so_far.recalled == Recalled::Words && action.fetches() => judged(
                Verdict::Ask,
                "mode auto: an address can carry away what was found in other conversations".to_owned(),
            ),
            ApprovalMode::Auto if self.is_gentle(action) => {
                judged(Verdict::Allow, "mode auto: not destructive".to_owned())
            }
            ApprovalMode::Auto => judged(Verdict::Ask, "mode auto: destructive or unknown".to_owned()),
            ApprovalMode::Ask => judged(Verdict::Ask, self.why_asked(action, by_parts.as_ref())),
        }
    }

    fn places(&self) -> Places<'_> {
        Places {
            root: &self.root,
            directory: &self.directory,
            home: self.home.as_deref(),
        }
    }

    fn touches_own(&self, action: &Action) -> bool {
        action.effects.iter().any(|effect| match effect {
            Effect::Read { path } | Effect::Write { path } => self.own.iter().any(|own| path.starts_with(own)),
            Effect::Execute { .. }
            | Effect::Fetch { .. }
            | Effect::Remote
            | Effect::Delegate { .. }
            | Effect::Recall
            | Effect::Internal => false,
        })
    }

    /// Whether a tool that walks a folder must pass a file over, because a rule would deny it or ask about it by name.
    /// Searching the folder above must not be a way around a rule.
    pub fn hides(&self, tool: &str, path: &Path) -> bool {
        let places = self.places();
        self.deny
            .iter()
            .chain(&self.ask)
            .any(|rule| rule.hides(tool, path, &places))
            || self.own.iter().any(|own| path.starts_with(own))
            || places.is_private(path)
    }

    /// The deny rules alone: checked once more just before a call starts (SPEC 3.4).
    pub fn denial(&self, action: &Action) -> Option<Judgement> {
        self.denial_of(&self.looked(action))
    }

    fn denial_of(&self, looked: &Looked<'_>) -> Option<Judgement> {
        let rule = self.deny.iter().find(|rule| rule.touches(looked, &self.places()))?;
        Some(Judgement {
            verdict: Verdict::Deny,
            rule: format!("deny rule {rule}"),
        })
    }

    /// Whether a tool is of a server that a project brings.
    pub fn is_of_guest(&self, tool: &str) -> bool {
        let server = tool.split_once('.').map(|(server, _)| server);
        server.is_some_and(|server| self.guests.iter().any(|guest| guest == server))
    }

    /// The key that approves a tool; an exact `false` overrides a `*`.
    fn auto_approved(&self, tool: &str) -> Option<&str> {
        if self.is_of_guest(tool) {
            return None;
        }
        if let Some((key, yes)) = self.auto_approve.iter().find(|(key, _)| key == tool) {
            return yes.then_some(key.as_str());
        }
        self.auto_approve
            .iter()
            .find(|(key, yes)| *yes && key.ends_with(".*") && wildcard(key, tool))
            .map(|(key, _)| key.as_str())
    }

    fn reads_inside_tree(&self, action: &Action) -> bool {
        let places = self.places();
        action.effects.iter().all(|effect| match effect {
            Effect::Read { path } => places.is_inside(path) && !is_secret_path(path) && !places.is_private(path),
            Effect::Recall | Effect::Internal => true,
            Effect::Write { .. }
            | Effect::Execute { .. }
            | Effect::Fetch { .. }
            | Effect::Remote
            | Effect::Delegate { .. } => false,
        })
    }

    fn is_gentle(&self, action: &Action) -> bool {
        let places = self.places();
        let is_sensitive = |path: &Path| is_secret_path(path) || places.is_private(path);
        action.effects.iter().all(|effect| match effect {
            Effect::Read { path } => !is_sensitive(path),
            Effect::Write { path } => places.is_inside(path) && !is_protected_path(path) && !is_sensitive(path),
            Effect::Recall | Effect::Internal => true,
            Effect::Delegate { hint, .. } => match hint {
                Hint::ReadOnly | Hint::Additive => true,
                Hint::Unknown => false,
            },
            Effect::Fetch { reach, .. } => match reach {
                Reach::Public => true,
                Reach::Anywhere => false,
            },
            Effect::Execute { .. } | Effect::Remote => false,
        })
    }

    fn why_asked(&self, action: &Action, by_parts: Option<&ByParts>) -> String {
        if let Some(ByParts::Lacks { what }) = by_parts {
            return format!("mode ask: {what}");
        }
        let places = self.places();
        let reads = |is: &dyn Fn(&Path) -> bool| {
            action
                .effects
                .iter()
                .any(|effect| matches!(effect, Effect::Read { path } if is(path)))
        };
        if reads(&|path| is_secret_path(path) || places.is_private(path)) {
            "mode ask: the file looks secret".to_owned()
        } else if reads(&|path| !places.is_inside(path)) {
            "mode ask: outside the working tree".to_owned()
        } else if action.fetches() {
            "mode ask: from the network".to_owned()
        } else {
            "mode ask".to_owned()
        }
    }
}

#[cfg(test)]
mod tests;
