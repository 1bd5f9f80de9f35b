//! The configuration as the rest of the program sees it: plain values, every default filled in, every cross reference
//! checked. Nothing here knows files, layers or key names; those are [`super::settings`] and [`mod@super::resolve`].

use crate::term::{Background, Form, Wishes};
use aish_core::action::Reach;
use aish_core::policy::{ApprovalMode, Rule};
use aish_core::secret::Secret;
use aish_engine::Routing;
use aish_provider::ModelProfile;
use aish_provider::price::Price;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The whole configuration in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The name of the model to start with, as configured. [`Config::start_model`] fills in the obvious choice.
    pub default_model: Option<String>,
    /// Whether a model is looked for where none is configured (SPEC 7.7).
    pub discover: bool,
    /// Rounds of tool calls in one turn (SPEC 3.6).
    pub max_tool_turns: u32,
    /// How often a request is made again (SPEC 7.6).
    pub retries: u32,
    /// The registry of models, in the order they were written.
    pub models: Vec<ModelConfig>,
    /// Which model is asked for what, where nobody named one.
    pub routing: Routing,
    /// The standing rules.
    pub approval: ApprovalConfig,
    /// The user's own shell.
    pub shell: ShellConfig,
    /// Bounds of every tool.
    pub tools: ToolsConfig,
    /// How things look.
    pub ui: UiConfig,
    /// MCP servers.
    pub mcp: McpConfig,
    /// Served mode.
    pub serve: ServeConfig,
}

impl Config {
    /// The model of that name.
    #[cfg(test)]
    pub fn model(&self, name: &str) -> Option<&ModelConfig> {
        self.models.iter().find(|model| model.name == name)
    }

    /// The name of the model to start with: the default, else the first one written; `None` when none is configured
    /// (SPEC 7.7). A default may name one that is not configured: `PRESET/MODEL`, or one that is found.
    pub fn start_model(&self) -> Option<&str> {
        let first = || self.models.first().map(|model| model.name.as_str());
        self.default_model.as_deref().or_else(first)
    }

    /// Every secret that stands in the configuration as a literal, for the redactor (SPEC 10.5). Keys named by
    /// `key_env` are not among them: they are read when used, by [`crate::models::Registry`].
    pub fn secrets(&self) -> impl Iterator<Item = &Secret> {
        self.mcp
            .servers
            .iter()
            .flat_map(|server| {
                let literals = server.headers.values().chain(server.env.values());
                server.auth_token.iter().chain(literals)
            })
            .filter(|secret| secret.expose().len() >= SECRET_LEN_MIN)
    }
}

/// Header and environment values shorter than this many bytes are no secrets: hiding every `1` would hide everything.
const SECRET_LEN_MIN: usize = 8;

/// One model of the registry, `[models.<name>]` (SPEC 7.1).
#[derive(Clone, Debug, PartialEq)]
pub struct ModelConfig {
    /// The name it is chosen by.
    pub name: String,
    /// Where it is and how to talk to it; its address has no slash at the end.
    pub profile: ModelProfile,
    /// The environment variable that holds the key; `None` when no key is sent.
    pub key_env: Option<String>,
    /// What it costs, where the user told.
    pub price: Option<Price>,
    /// Models tried in this order when this one fails.
    pub fallback: Vec<String>,
}

/// `[approval]` (SPEC 5.1, 5.2).
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalConfig {
    /// What happens to a call no rule speaks of.
    pub mode: ApprovalMode,
    /// Calls that never run.
    pub deny: Vec<Rule>,
    /// Calls that are always asked about.
    pub ask: Vec<Rule>,
    /// Calls that run unasked.
    pub allow: Vec<Rule>,
    /// The visible default rule: what only reads inside the working tree runs unasked.
    pub read_only_inside_tree: bool,
}

/// `[shell]`.
#[derive(Clone, Debug, PartialEq)]
pub struct ShellConfig {
    /// Ask before a `CMD:` line of a reply is run (SPEC 8.4).
    pub confirm_cmd: bool,
    /// The shell commands run in, where it is not `$SHELL`.
    pub program: Option<PathBuf>,
    /// Which keys edit the line.
    pub edit_mode: EditMode,
}

/// Which keys edit the line being typed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EditMode {
    /// Those of Emacs, as in most shells.
    #[default]
    Emacs,
    /// Those of vi.
    Vi,
}

/// `[ui]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UiConfig {
    /// What text stands on; `None`: what the terminal says.
    pub background: Option<Background>,
    /// Words instead of rules and layout.
    pub plain: bool,
    /// Hint at the rest of a line as it was typed before (SPEC 8.9).
    pub hints: bool,
}

impl UiConfig {
    /// The same for a terminal.
    pub fn wishes(self) -> Wishes {
        Wishes {
            background: self.background,
            form: self.plain.then_some(Form::Plain),
        }
    }
}

/// `[tools]`.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolsConfig {
    /// Bytes captured of one result (SPEC 4.3).
    pub max_output_size: usize,
    /// Characters of one result the model sees; `None`: what its context allows.
    pub max_result_chars: Option<usize>,
    /// Read-only calls of one reply may run side by side (SPEC 3.4).
    pub parallel: bool,
    /// What pages may be fetched from.
    pub web: Reach,
}

/// `[serve]`.
#[derive(Clone, Debug, PartialEq)]
pub struct ServeConfig {
    /// Where to listen, as written.
    pub listen: String,
    /// Where sessions are kept, as written; `None`: in the ledger of this machine.
    pub store: Option<String>,
    /// Further names of this server.
    pub hosts: Vec<String>,
    /// How long a turn waits, in seconds (SPEC 9.4).
    pub pending_ttl_s: u64,
    /// Whether an answer must name its call (SPEC 9.3).
    pub strict_call_id: bool,
    /// Turns that run at once.
    pub turns_max: usize,
    /// Where a collector takes traces; `None`: there is none.
    pub otlp_endpoint: Option<String>,
}

/// `[mcp]`.
#[derive(Clone, Debug, PartialEq)]
pub struct McpConfig {
    /// Rounds that contain an MCP call in one turn (SPEC 3.6).
    pub max_tool_depth: u32,
    /// The servers, in the order they were written.
    pub servers: Vec<McpServer>,
    /// `alias.tool`, `alias.*` or a built-in's name → runs unasked; an exact `false` overrides a `*` (SPEC 5.4).
    pub auto_approve: BTreeMap<String, bool>,
}

/// One MCP server, `[mcp.servers.<alias>]`.
#[derive(Clone, Debug, PartialEq)]
pub struct McpServer {
    /// What its tools' names begin with.
    pub alias: String,
    /// How it is reached.
    pub transport: McpTransport,
    /// A bearer token written into the file.
    pub auth_token: Option<Secret>,
    /// The environment variable that holds the bearer token.
    pub auth_env: Option<String>,
    /// Further HTTP headers.
    pub headers: BTreeMap<String, Secret>,
    /// Environment of a child process, on top of a minimal one.
    pub env: BTreeMap<String, Secret>,
    /// Seconds one request may take.
    pub timeout_s: u64,
    /// The protocol version to speak; `None` finds out.
    pub protocol: Option<String>,
    /// Only these tools; empty: all.
    pub enabled_tools: Vec<String>,
    /// Never these tools.
    pub disabled_tools: Vec<String>,
    /// Whether one-shot use fails when it cannot be reached.
    pub required: bool,
    /// Whether its own hints about its tools are believed (SPEC 5.8).
    pub trusted: bool,
    /// Whether it is connected to.
    pub enabled: bool,
}

/// How an MCP server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpTransport {
    /// Streamable HTTP, or plain POSTs.
    Http {
        /// The endpoint.
        url: String,
    },
    /// A child process that speaks on its stdin and stdout.
    Stdio {
        /// The program, then its arguments; never empty, and never given to a shell.
        command: Vec<String>,
        /// Where it starts; `None`: where aish works.
        cwd: Option<Cwd>,
    },
}

/// The directory a child starts in, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cwd {
    /// Absolute, below `~`, or relative; with its variables.
    pub path: String,
    /// What a relative one begins at.
    pub base: CwdBase,
}

/// What a relative directory begins at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CwdBase {
    /// The directory of the user's file.
    Configuration,
    /// The directory of the trusted project whose file says so.
    Project,
}
