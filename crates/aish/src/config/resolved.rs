//! The configuration as the rest of the program sees it: plain values, every default filled in, every cross reference
//! checked. Nothing here knows files, layers or key names; those are [`super::settings`] and [`mod@super::resolve`].

use crate::paths::Environment;
use aish_core::policy::{ApprovalMode, Rule};
use std::collections::BTreeMap;
use std::fmt;

/// The whole configuration in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The name of the model to start with, as configured. [`Config::start_model`] fills in the obvious choice.
    pub default_model: Option<String>,
    /// Whether a model is looked for where none is configured (SPEC 7.7).
    pub discover: bool,
    /// Rounds of tool calls in one turn (SPEC 3.6).
    pub max_tool_turns: u32,
    /// The registry of models, in the order they were written.
    pub models: Vec<ModelConfig>,
    /// The standing rules.
    pub approval: ApprovalConfig,
    /// The user's own shell.
    pub shell: ShellConfig,
    /// Bounds of every tool.
    pub tools: ToolsConfig,
    /// MCP servers.
    pub mcp: McpConfig,
}

impl Config {
    /// The model of that name.
    pub fn model(&self, name: &str) -> Option<&ModelConfig> {
        self.models.iter().find(|model| model.name == name)
    }

    /// The model to start with: the default, else the first one written; `None` when none is configured (SPEC 7.7).
    pub fn start_model(&self) -> Option<&ModelConfig> {
        match &self.default_model {
            Some(name) => self.model(name),
            None => self.models.first(),
        }
    }

    /// Every secret that stands in the configuration as a literal, for the redactor (SPEC 10.5). Keys named by
    /// `key_env` are not among them: they are read when used, by [`ModelConfig::key`].
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
    /// The wire format it speaks.
    pub provider: ProviderKind,
    /// Where: with `/v1` for the OpenAI formats, the bare origin for Anthropic and Gemini; no slash at the end.
    pub base_url: String,
    /// The provider's name for the model.
    pub model: String,
    /// The environment variable that holds the key; `None` when no key is sent.
    pub key_env: Option<String>,
    /// Sampling temperature; `None` sends none.
    pub temperature: Option<f64>,
    /// Tokens the model's context holds, where the user told.
    pub context_window: Option<u64>,
    /// Tokens one reply may have; `None` leaves it to the server.
    pub max_output_tokens: Option<u64>,
    /// How results are handed back.
    pub result_role: ResultRole,
    /// How tool names look on the wire.
    pub wire_names: WireNames,
    /// Models tried in this order when this one fails.
    pub fallback: Vec<String>,
}

impl ModelConfig {
    /// The key to send, read from the environment now.
    ///
    /// # Errors
    /// The variable the user named is not set, or is empty.
    pub fn key(&self, environment: &Environment) -> Result<Option<Secret>, MissingKey> {
        let Some(variable) = &self.key_env else {
            return Ok(None);
        };
        match environment.text(variable) {
            Some(key) if !key.trim().is_empty() => Ok(Some(Secret::new(key.trim()))),
            Some(_) | None => Err(MissingKey {
                model: self.name.clone(),
                variable: variable.clone(),
            }),
        }
    }
}

/// The variable that should hold a model's key does not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "model \"{model}\" needs a key: the environment variable {variable} is not set; set it with: export {variable}=…"
)]
pub struct MissingKey {
    /// The model's name in the registry.
    pub model: String,
    /// The variable to set.
    pub variable: String,
}

/// A wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderKind {
    /// OpenAI chat completions, and everything that speaks it.
    OpenAiChat,
    /// OpenAI Responses.
    OpenAiResponses,
    /// Anthropic Messages.
    Anthropic,
    /// Google Gemini.
    Gemini,
}

impl ProviderKind {
    /// The word it is configured by.
    pub fn word(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    /// The provider's own address, used where the user gives none.
    pub fn official_base_url(self) -> &'static str {
        match self {
            Self::OpenAiChat | Self::OpenAiResponses => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com",
            Self::Gemini => "https://generativelanguage.googleapis.com",
        }
    }

    /// The variable the provider's own tools read their key from. It is used with the official address only, so that
    /// a key never goes to an address its owner did not pair it with.
    pub fn official_key_env(self) -> &'static str {
        match self {
            Self::OpenAiChat | Self::OpenAiResponses => "OPENAI_API_KEY",
            Self::Anthropic => "ANTHROPIC_API_KEY",
            Self::Gemini => "GEMINI_API_KEY",
        }
    }
}

/// How results are handed back to a model (SPEC 7.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultRole {
    /// In the wire format's own place for results.
    Tool,
    /// As text of a user message, for templates that know no tool role.
    User,
}

/// How a tool name is written on the wire (SPEC 6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireNames {
    /// `alias__tool`: accepted everywhere.
    Underscore,
    /// `alias.tool`: as people see it.
    Dot,
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
    },
}

/// Text that must not be shown. Its `Debug` and `Display` hide it; [`Secret::expose`] is the one way to it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// What stands in its place wherever it would be shown.
    pub const REDACTED: &'static str = "[redacted]";

    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself: only for the peer it belongs to, and for the redactor.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::REDACTED)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::REDACTED)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn model(key_env: Option<&str>) -> ModelConfig {
        ModelConfig {
            name: "cloud".into(),
            provider: ProviderKind::Anthropic,
            base_url: "https://example.test".into(),
            model: "m".into(),
            key_env: key_env.map(str::to_owned),
            temperature: None,
            context_window: None,
            max_output_tokens: None,
            result_role: ResultRole::Tool,
            wire_names: WireNames::Underscore,
            fallback: Vec::new(),
        }
    }

    /// SPEC 10.1, 10.4: an unset key variable is an error at use that names the variable and what to do.
    #[test]
    fn a_missing_key_names_its_variable() {
        let environment = Environment::from_pairs([("CLOUD_KEY", " sk-1\n"), ("EMPTY", ""), ("BLANK", " \n")]);
        let key = model(Some("CLOUD_KEY")).key(&environment).unwrap();
        assert_eq!(key.unwrap().expose(), "sk-1");
        for unset in ["EMPTY", "BLANK", "NOT_THERE"] {
            let error = model(Some(unset)).key(&environment).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!(
                    "model \"cloud\" needs a key: the environment variable {unset} is not set; \
                     set it with: export {unset}=…"
                )
            );
        }
        assert_eq!(model(None).key(&environment), Ok(None));
    }

    /// SPEC 10.5: a secret cannot be shown by accident.
    #[test]
    fn a_secret_does_not_show_itself() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret} {secret:?}"), "[redacted] [redacted]");
    }
}
