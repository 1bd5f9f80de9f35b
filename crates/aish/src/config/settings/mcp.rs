//! The settings of MCP servers and of what their tools may do.

use super::table::{NO_KEYS, NO_MODE, ROUNDS};
use super::{Kind, Setting};

/// `[mcp]`, in the order of the reference.
pub const SETTINGS: &[Setting] = &[
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
        "mcp.servers.<alias>.cwd",
        Kind::Text,
        r#""~/notes""#,
        "The directory a `command` starts in: absolute, below `~/`, or relative to the directory of your configuration file, in a \
         project's file to the project. `${VAR}` works as in `headers`. Without it, where aish works.",
    ),
    Setting::new(
        "mcp.servers.<alias>.enabled",
        Kind::Bool,
        "false",
        "Whether the server is connected to. `false` keeps it, listed as disabled.",
    )
    .default("true"),
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
         exact `false` overrides a `*`. Quote names with a dot. As with `approval.allow`, this speaks of your own servers, never \
         of a project's.",
    )
    .project(NO_MODE),
];
