//! `aish serve`.

use clap::{Args, ValueEnum};
use std::net::SocketAddr;

/// `aish serve`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(after_help = EXAMPLES)]
pub struct Serve {
    /// Listen here instead of at 127.0.0.1:8765; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// Keep sessions there, shared with other servers
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// Take the bearer token from this variable
    #[arg(long, value_name = "NAME", conflicts_with = "no_token")]
    pub token_env: Option<String>,
    /// Let in everybody on this machine
    #[arg(long)]
    pub no_token: bool,
    /// Write a line for each request and each turn to stderr
    #[arg(long, value_enum, value_name = "FORM")]
    pub log: Option<LogForm>,
}

/// How a line of the log looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogForm {
    /// An object of JSON.
    Json,
    /// Words.
    Text,
}

const EXAMPLES: &str = "\
Examples:
  aish serve                              for programs of this machine
  aish serve --listen 0.0.0.0:8765        behind a proxy that speaks TLS
  aish serve --store postgres://aish@db/aish

The API: docs/serve.md, and GET /openapi.json. The page: http://127.0.0.1:8765/";
