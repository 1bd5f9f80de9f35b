//! `aish mcp …`: MCP servers on the command line.

use clap::{ArgGroup, Args, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;

/// `aish mcp`.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum Mcp {
    /// List the servers: where they are, how many tools, how they do
    List,
    /// List the tools of all servers
    Tools,
    /// Show one tool in full: what it says of itself, its schemas
    Tool {
        /// ALIAS.NAME, as `aish mcp tools` lists it
        name: String,
    },
    /// Write a server into the configuration, and try it
    #[command(after_help = ADD_EXAMPLES)]
    Add(Add),
    /// Take a server out of the configuration
    Remove {
        /// What it is called
        alias: String,
    },
    /// Connect to a server again that was disabled
    Enable {
        /// What it is called
        alias: String,
    },
    /// Keep a server in the configuration, and do not connect to it
    Disable {
        /// What it is called
        alias: String,
    },
    /// Log in at a server that asks for it
    Login(Login),
    /// Take servers over from another client's configuration
    #[command(after_help = IMPORT_EXAMPLES)]
    Import(Import),
    /// Offer aish's own tools to another client, on stdin and stdout
    Serve {
        /// Over HTTP instead, at this address of this machine
        #[arg(long, value_name = "ADDR")]
        http: Option<SocketAddr>,
        /// The token of clients is in this environment variable
        #[arg(long, value_name = "VAR", requires = "http")]
        token_env: Option<String>,
        /// Let every program of this machine in, without a token
        #[arg(long, requires = "http", conflicts_with = "token_env")]
        no_token: bool,
    },
}

/// `aish mcp login`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Login {
    /// What it is called
    pub alias: String,
    /// Forget the login instead
    #[arg(long, conflicts_with = "client_id")]
    pub forget: bool,
    /// The id of aish there, where it was registered by hand
    #[arg(long, value_name = "ID")]
    pub client_id: Option<String>,
    /// The secret of that client is in this environment variable
    #[arg(long, value_name = "VAR", requires = "client_id")]
    pub client_secret_env: Option<String>,
}

/// `aish mcp add`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(group = ArgGroup::new("place").required(true).args(["url", "command"]))]
pub struct Add {
    /// What its tools' names begin with: small letters, digits, _ and -
    pub alias: String,
    /// Where it is, http:// or https://
    pub url: Option<String>,
    /// Or: the program that is started, and its arguments
    #[arg(last = true)]
    pub command: Vec<String>,
    /// The bearer token is in this environment variable
    #[arg(long, value_name = "VAR", conflicts_with = "command")]
    pub token_env: Option<String>,
    /// Send this header, 'NAME: VALUE'; may be repeated
    #[arg(long = "header", value_name = "HEADER", value_parser = parse_header, conflicts_with = "command")]
    pub headers: Vec<(String, String)>,
    /// Give the program this variable; may be repeated
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = parse_variable, conflicts_with = "url")]
    pub env: Vec<(String, String)>,
    /// Start the program in this directory
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    pub cwd: Option<PathBuf>,
    /// How long one request may take
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<u64>,
    /// Speak this version, e.g. 2025-06-18
    #[arg(long, value_name = "VERSION")]
    pub protocol: Option<String>,
    /// Offer only this tool; may be repeated
    #[arg(long = "tool", value_name = "NAME")]
    pub only: Vec<String>,
    /// Never offer this tool; may be repeated
    #[arg(long = "no-tool", value_name = "NAME")]
    pub never: Vec<String>,
    /// Believe what it says of its tools
    #[arg(long)]
    pub trusted: bool,
    /// A prompt asked with -p fails without it
    #[arg(long)]
    pub required: bool,
}

/// `aish mcp import`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Import {
    /// .mcp.json, claude_desktop_config.json, mcp.json, config.toml
    pub file: PathBuf,
    /// Write without asking
    #[arg(long, conflicts_with = "dry_run")]
    pub yes: bool,
    /// Write nothing, and do not ask
    #[arg(long)]
    pub dry_run: bool,
}

const ADD_EXAMPLES: &str = "\
Examples:
  aish mcp add boltzmann http://boltzmann.example:8080/mcp --token-env BOLTZMANN
  aish mcp add git -- mcp-server-git --repository .
  aish mcp add files --no-tool write_file -- npx -y \\
      @modelcontextprotocol/server-filesystem ~/notes

A value may be '${NAME}' or '${NAME:-default}': it is looked up in the
environment when the server is connected to, and stays out of the file.";

const IMPORT_EXAMPLES: &str = "\
Examples:
  aish mcp import .mcp.json
  aish mcp import ~/.codex/config.toml --dry-run

Known are files with mcpServers (Claude Code and Desktop, Cursor, Windsurf),
servers (VS Code's mcp.json) and [mcp_servers] (Codex).";

/// Reads `NAME: VALUE`.
fn parse_header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("write the header as 'NAME: VALUE'")?;
    named(name, value.trim(), "write the header as 'NAME: VALUE'")
}

/// Reads `NAME=VALUE`.
fn parse_variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write the variable as NAME=VALUE")?;
    named(name, value, "write the variable as NAME=VALUE")
}

fn named(name: &str, value: &str, usage: &str) -> Result<(String, String), String> {
    let name = name.trim();
    let is_name = !name.is_empty() && name.chars().all(|letter| letter.is_ascii_graphic() && letter != '=');
    if !is_name {
        return Err(usage.to_owned());
    }
    Ok((name.to_owned(), value.to_owned()))
}
