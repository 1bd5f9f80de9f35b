//! Every setting, declared once: its key, type and range, what it does, its default, its environment variable and what a
//! project may do with it. The check of files and variables, the defaults, `aish config`, and `docs/configuration.md` all
//! come from [`SETTINGS`]; nothing else spells a key, except [`mod@super::resolve`] where it reads one.
//!
//! A key is a path such as `models.<name>.base_url`; a segment in angle brackets stands for a name the user chooses.

/// One setting.
#[derive(Debug)]
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
    /// A list of approval rules. The only kind whose layers add up: a later layer adds rules and removes none.
    Rules,
}

/// What the file of a trusted project may do with a setting. Trusting a project means its file was looked at, not that every
/// line of it was weighed: what would send a key elsewhere or answer for the user stays out of its reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Project {
    /// Set it.
    Open,
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

/// The setting at a path of a file.
pub fn find(path: &[impl AsRef<str>]) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.is_at(path))
}

/// True for a segment that stands for a name the user chooses.
pub fn is_placeholder(segment: &str) -> bool {
    segment.starts_with('<')
}

/// Limits of a number of rounds.
const ROUNDS: Kind = Kind::Integer(1, 1000);
/// Limits of a number of tokens: more than any model has, small enough to compute with.
const TOKENS: Kind = Kind::Integer(1, 100_000_000);
const NO_KEYS: Project = Project::Refused("it would let the project choose where your keys and conversations go");
const NO_MODE: Project = Project::Refused("what runs unasked is yours to decide");

/// Every setting there is, in the order of the reference.
pub const SETTINGS: &[Setting] = &[
    Setting::new(
        "default_model",
        Kind::Text,
        r#""desk""#,
        "The model a session starts with, by its name in `[models]`. Without it, the first model written. `--model` and \
         `:model` choose another.",
    )
    .env("AISH_MODEL"),
    Setting::new(
        "discover",
        Kind::Bool,
        "false",
        "Look for a model where none is configured: keys in the environment, then servers on this machine at their usual \
         ports.",
    )
    .default("true")
    .env("AISH_DISCOVER"),
    Setting::new(
        "max_tool_turns",
        ROUNDS,
        "50",
        "Rounds of tool calls one turn may take, over all tools. At the limit the model is asked once more, to sum up.",
    )
    .default("50")
    .env("AISH_MAX_TOOL_TURNS"),
    Setting::new(
        "models.<name>.provider",
        Kind::Choice(&["openai-chat", "openai-responses", "anthropic", "gemini"]),
        r#""openai-chat""#,
        "The wire format. `openai-chat` is what llama.cpp, Ollama, vLLM, LM Studio and most providers speak.",
    )
    .default(r#""openai-chat""#),
    Setting::new(
        "models.<name>.base_url",
        Kind::Url,
        r#""http://127.0.0.1:8080/v1""#,
        "Where the model is: with `/v1` for the OpenAI formats, the bare origin for Anthropic and Gemini. Without it, the \
         provider's own address.",
    )
    .project(NO_KEYS),
    Setting::new(
        "models.<name>.model",
        Kind::Text,
        r#""qwen2.5-coder-7b""#,
        "The provider's name for the model. Required.",
    ),
    Setting::new(
        "models.<name>.key_env",
        Kind::Variable,
        r#""OPENROUTER_API_KEY""#,
        "The environment variable that holds the key; the key itself never stands in the file. Without it, the provider's \
         usual variable is used, but only with the provider's own address: a `base_url` of yours gets no key you did not name.",
    )
    .project(NO_KEYS),
    Setting::new(
        "models.<name>.temperature",
        Kind::Float(0.0, 2.0),
        "0.2",
        "Sampling temperature. Without it, 0.2 for `openai-chat`, and for the others whatever the provider chooses.",
    ),
    Setting::new(
        "models.<name>.context_window",
        TOKENS,
        "32768",
        "Tokens the model's context holds, where aish cannot find out.",
    ),
    Setting::new(
        "models.<name>.max_output_tokens",
        TOKENS,
        "4096",
        "Tokens one reply may have. Without it, the server decides.",
    ),
    Setting::new(
        "models.<name>.use_tool_role",
        Kind::Bool,
        "false",
        "Whether results are sent in the wire format's own place for them. `false` sends them as text, for servers whose \
         templates know no tool role.",
    )
    .default("true"),
    Setting::new(
        "models.<name>.wire_names",
        Kind::Choice(&["underscore", "dot"]),
        r#""dot""#,
        "How the model sees the name of an MCP tool: `alias__tool`, which every provider accepts, or `alias.tool`.",
    )
    .default(r#""underscore""#),
    Setting::new(
        "models.<name>.fallback",
        Kind::Texts,
        r#"["cloud"]"#,
        "Models to try, in this order, when this one cannot be reached.",
    )
    .default("[]"),
    Setting::new(
        "approval.mode",
        Kind::Choice(&["ask", "auto", "full"]),
        r#""auto""#,
        "What happens to a call no rule speaks of. `ask` asks about everything not proven harmless, `auto` only about what is \
         destructive or unknown, `full` about nothing; deny rules hold in every mode. `--approval` overrides it.",
    )
    .default(r#""ask""#)
    .env("AISH_APPROVAL")
    .project(NO_MODE),
    Setting::new(
        "approval.deny",
        Kind::Rules,
        r#"["bash(git push --force*)"]"#,
        "Calls that never run, in any mode. A rule is a tool's name, `alias.*`, or either with a pattern in parentheses in \
         which `*` stands for any text.",
    )
    .default("[]"),
    Setting::new(
        "approval.ask",
        Kind::Rules,
        r#"["bash(git push*)"]"#,
        "Calls that are always asked about, except in mode `full`.",
    )
    .default("[]"),
    Setting::new(
        "approval.allow",
        Kind::Rules,
        r#"["file_write(notes/*)", "bash(make test)"]"#,
        "Calls that run unasked, unless a deny or ask rule matches too. A command here is one exact command.",
    )
    .default("[]"),
    Setting::new(
        "approval.read_only_inside_tree",
        Kind::Bool,
        "false",
        "The default rule: what only reads, inside the working tree, and looks like no secret, runs unasked. `false` asks \
         about that too.",
    )
    .default("true")
    .env("AISH_APPROVAL_READ_ONLY_INSIDE_TREE")
    .project(Project::OnlyStricter(false)),
    Setting::new(
        "shell.confirm_cmd",
        Kind::Bool,
        "false",
        "Ask before a `CMD:` line of a reply is run in your shell. `false` skips only this question; the rules still apply.",
    )
    .default("true")
    .env("AISH_SHELL_CONFIRM_CMD")
    .project(Project::OnlyStricter(true)),
    Setting::new(
        "tools.max_output_size",
        Kind::Integer(1024, 104_857_600),
        "1048576",
        "Bytes kept of one result, 1 KiB to 100 MiB. What is cut is said.",
    )
    .default("1048576")
    .env("AISH_TOOLS_MAX_OUTPUT_SIZE"),
    Setting::new(
        "tools.max_result_chars",
        Kind::Integer(500, 100_000_000),
        "24000",
        "Characters of one result the model sees; head and tail are kept. Without it, what the model's context allows.",
    )
    .env("AISH_TOOLS_MAX_RESULT_CHARS"),
    Setting::new(
        "tools.parallel",
        Kind::Bool,
        "false",
        "Let calls of one reply that only read run side by side.",
    )
    .default("true")
    .env("AISH_TOOLS_PARALLEL"),
    Setting::new(
        "mcp.max_tool_depth",
        ROUNDS,
        "8",
        "Rounds with a call to an MCP server one turn may take; they count towards `max_tool_turns` too.",
    )
    .default("8")
    .env("AISH_MCP_MAX_TOOL_DEPTH"),
    Setting::new(
        "mcp.servers.<alias>.url",
        Kind::Url,
        r#""http://boltzmann.example:8080/mcp""#,
        "The address of a server that is reached over HTTP. A server has either a `url` or a `command`.",
    ),
    Setting::new(
        "mcp.servers.<alias>.command",
        Kind::Texts,
        r#"["mcp-server-git", "--repository", "."]"#,
        "The program of a server that runs here, then its arguments. It is started as it stands; no shell reads it.",
    ),
    Setting::new(
        "mcp.servers.<alias>.auth_token",
        Kind::Text,
        r#""…""#,
        "The bearer token itself. Prefer `auth_env`.",
    )
    .secret(),
    Setting::new(
        "mcp.servers.<alias>.auth_env",
        Kind::Variable,
        r#""BOLTZMANN_MCP_TOKEN""#,
        "The environment variable that holds the bearer token, where there is no `auth_token`.",
    )
    .project(NO_KEYS),
    Setting::new(
        "mcp.servers.<alias>.headers.<header>",
        Kind::Text,
        r#""${TEAM:-tools}""#,
        "A further HTTP header. `${VAR}` and `${VAR:-default}` stand for environment variables, except in a project's file.",
    )
    .secret(),
    Setting::new(
        "mcp.servers.<alias>.env.<variable>",
        Kind::AnyText,
        r#""/srv/notes""#,
        "A variable of the child's environment, which is otherwise minimal. `${VAR}` works as in `headers`.",
    )
    .secret(),
    Setting::new(
        "mcp.servers.<alias>.timeout_s",
        Kind::Integer(1, 3600),
        "30",
        "Seconds one request may take.",
    )
    .default("30"),
    Setting::new(
        "mcp.servers.<alias>.protocol",
        Kind::Choice(&["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]),
        r#""2025-03-26""#,
        "The protocol version to speak. Without it, aish finds out.",
    ),
    Setting::new(
        "mcp.servers.<alias>.enabled_tools",
        Kind::Texts,
        r#"["read_file"]"#,
        "Only these tools of the server, by their bare names; an empty list means all.",
    )
    .default("[]"),
    Setting::new(
        "mcp.servers.<alias>.disabled_tools",
        Kind::Texts,
        r#"["delete_file"]"#,
        "Never these tools of the server.",
    )
    .default("[]"),
    Setting::new(
        "mcp.servers.<alias>.required",
        Kind::Bool,
        "true",
        "Whether one-shot use fails when the server cannot be reached.",
    )
    .default("false"),
    Setting::new(
        "mcp.servers.<alias>.trusted",
        Kind::Bool,
        "true",
        "Whether the server's own word on which of its tools only read is believed in mode `auto`.",
    )
    .default("false")
    .project(NO_MODE),
    Setting::new(
        "mcp.auto_approve.<tool>",
        Kind::Bool,
        "true",
        "Whether a tool runs unasked: `\"alias.tool\"`, `\"alias.*\"` for all tools of a server, or a built-in's name. An \
         exact `false` overrides a `*`. Quote names with a dot.",
    )
    .project(NO_MODE),
];

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

    /// SPEC 10.1: a variable is `AISH_` and the key, but for the two that are typed often; names and rules have none.
    #[test]
    fn variables_are_named_after_keys() {
        for setting in SETTINGS {
            let expected = match setting.key {
                "default_model" => Some("AISH_MODEL".to_owned()),
                "approval.mode" => Some("AISH_APPROVAL".to_owned()),
                _ if setting.is_named() || setting.kind == Kind::Rules => None,
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
