//! The command line: what may be typed after `aish`, and nothing of what it does.
//!
//! Help is written to fit 80 columns, options before commands, examples at the end. A wrong command line is exit code 2 with
//! the usage (SPEC 10.2); [`parse`] answers with clap's error, which knows its code and where to print.

use aish_core::id::CallId;
use aish_core::policy::ApprovalMode;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

mod mcp;
mod policy;
mod serve;

pub use mcp::{Add, Import, Login, Mcp};
pub use policy::Policy;
pub use serve::{LogForm, Serve};

/// The whole command line.
#[derive(Clone, Debug, PartialEq, Parser)]
#[command(
    name = "aish",
    version,
    about = "A shell you can also talk to: commands and questions at one prompt.",
    after_help = EXAMPLES,
    subcommand_help_heading = "Commands",
    disable_help_subcommand = true,
    max_term_width = 80
)]
pub struct Cli {
    /// Answer one prompt and exit; - reads it from stdin
    #[arg(short = 'p', long, value_name = "PROMPT")]
    pub prompt: Option<String>,

    /// Go on with the session used last
    #[arg(long = "continue", conflicts_with = "resume")]
    pub continue_last: bool,

    /// Go on with this session, or the one used last
    #[arg(long, value_name = "ID", num_args = 0..=1)]
    resume: Option<Option<String>>,

    /// The answer is JSON that fits this JSON Schema
    #[arg(long, value_name = "FILE", requires = "prompt")]
    pub schema: Option<PathBuf>,

    /// Options that go with commands too.
    #[command(flatten)]
    pub common: Common,

    /// What to do instead of talking.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Options that go with every command.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct Common {
    /// How the answer is written: text, json or jsonl
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "FORMAT",
        default_value_t,
        hide_default_value = true,
        hide_possible_values = true
    )]
    pub output: Output,

    /// Use this model of the configuration, or PRESET/MODEL
    #[arg(long, global = true, value_name = "NAME")]
    pub model: Option<String>,

    /// What to ask about: ask, auto or full
    #[arg(long, global = true, value_name = "MODE", value_parser = approval_mode(), hide_possible_values = true)]
    pub approval: Option<ApprovalMode>,

    /// Offer the model no tools
    #[arg(long, global = true)]
    pub no_tools: bool,

    /// Words instead of layout, for screen readers
    #[arg(long, global = true)]
    pub plain: bool,

    /// Read this configuration file
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Work in this directory
    #[arg(long, global = true, value_name = "DIR")]
    pub cd: Option<PathBuf>,
}

/// How an answer is written to stdout (SPEC 10.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// The text of the reply.
    #[default]
    Text,
    /// One JSON object at the end.
    Json,
    /// One event a line, as they happen.
    Jsonl,
}

/// Which session a prompt goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// A new one.
    New,
    /// The one used last.
    Last,
    /// One the user chooses from a list.
    Choose,
    /// This one; an id or the beginning of one, as typed.
    Session(String),
}

impl Cli {
    /// Which session a prompt goes to.
    pub fn start(&self) -> Start {
        match (&self.resume, self.continue_last) {
            (Some(Some(id)), _) => Start::Session(id.clone()),
            (Some(None), _) => Start::Choose,
            (None, true) => Start::Last,
            (None, false) => Start::New,
        }
    }
}

impl Cli {
    /// Whether somebody waits for the one object of `--output json`.
    pub fn wants_json(&self) -> bool {
        let drives_a_turn = self.prompt.is_some() || matches!(self.command, Some(Command::Resume(_)));
        drives_a_turn && self.common.output == Output::Json
    }
}

/// What to do instead of talking.
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum Command {
    /// Go on with a session, answering what it waits for
    #[command(after_help = RESUME_EXAMPLES)]
    Resume(Resume),
    /// List, show or export sessions
    Sessions {
        /// Those of `aish serve`, where its store is another
        #[arg(long, global = true)]
        served: bool,
        /// What to do with them
        #[command(subcommand)]
        what: Sessions,
    },
    /// List models, or find out what one can do
    #[command(subcommand)]
    Models(Models),
    /// List, add or import MCP servers, or be one
    #[command(subcommand)]
    Mcp(Mcp),
    /// Serve apps that run tools of their own, over HTTP
    Serve(Serve),
    /// Say what the rules make of a command
    #[command(subcommand)]
    Policy(Policy),
    /// Check everything aish needs, and say what to do
    Doctor {
        /// Ask the model a question too (costs a few tokens)
        #[arg(long)]
        probe: bool,
    },
    /// Show the configuration, where it is, or what can be set
    Config {
        /// What to print; show when left out
        #[command(subcommand)]
        what: Option<ConfigCommand>,
    },
    /// Trust a project directory: read its .aish/ and AGENTS.md
    Trust {
        /// The directory; this one when left out
        dir: Option<PathBuf>,
        /// Trust it no longer
        #[arg(long)]
        remove: bool,
    },
    /// Print completions for bash, zsh or fish
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: CompletionShell,
    },
    /// Print the manual page, or write all of them
    Man {
        /// Write every page into this directory
        dir: Option<PathBuf>,
    },
}

/// A shell that can be given completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CompletionShell {
    /// For `~/.local/share/bash-completion/completions/aish`.
    Bash,
    /// For a file `_aish` in a directory of `$fpath`.
    Zsh,
    /// For `~/.config/fish/completions/aish.fish`.
    Fish,
}

/// `aish resume`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct Resume {
    /// The session
    pub id: String,
    /// Let this call run; the digest makes sure it is the one you saw
    #[arg(long, value_name = "CALL_ID[:DIGEST]", value_parser = parse_approval)]
    pub approve: Vec<Approval>,
    /// Refuse this call, and tell the model why
    #[arg(long, value_name = "CALL_ID[:REASON]", value_parser = parse_denial)]
    pub deny: Vec<Denial>,
}

/// A yes to one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// Which.
    pub call: CallId,
    /// The digest it must have, or the beginning of it, as typed.
    pub digest: Option<String>,
}

/// A no to one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// Which.
    pub call: CallId,
    /// What the model is told.
    pub reason: Option<String>,
}

/// `aish sessions`.
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum Sessions {
    /// List all sessions, the latest first
    List,
    /// Print the conversation of a session
    Show {
        /// The session
        id: String,
    },
    /// Write a session out
    Export {
        /// The session
        id: String,
        /// jsonl (one event a line) or markdown
        #[arg(
            long,
            value_enum,
            value_name = "FORMAT",
            default_value_t,
            hide_default_value = true,
            hide_possible_values = true
        )]
        format: ExportFormat,
        /// Write to this file instead of stdout
        #[arg(short = 'o', long = "to", value_name = "FILE")]
        file: Option<PathBuf>,
    },
}

/// How a session is exported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// One event a line: complete, can be imported.
    #[default]
    Jsonl,
    /// To be read by people.
    Markdown,
}

/// `aish models`.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum Models {
    /// List the models of the configuration, and those that are found
    List,
    /// Ask a model a few short questions and write down what it can do
    Probe {
        /// The model, or PRESET/MODEL; the one in use when left out
        name: Option<String>,
        /// Write it into the configuration without asking
        #[arg(long, conflicts_with = "dry_run")]
        save: bool,
        /// Write nothing, and do not ask
        #[arg(long)]
        dry_run: bool,
    },
}

/// `aish config`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Subcommand)]
pub enum ConfigCommand {
    /// Print every setting in force and where it comes from
    Show,
    /// Print where the configuration file is
    Path,
    /// Print what can be set
    Reference,
}

const EXAMPLES: &str = "\
Examples:
  aish                                    open the shell
  aish -p 'what is in this folder?'       ask once
  git diff | aish -p 'review this'        ask about what a command printed
  aish --continue                         go on where you left off
  aish resume ID --approve call_1_1       answer a call that waits
  aish --model anthropic/claude-opus-4-5  another model; the key is all it needs
  aish doctor                             what is wrong, and what to do
  aish config reference                   everything that can be set

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 an approval is
needed, 130 interrupted.";

const RESUME_EXAMPLES: &str = "\
Examples:
  aish resume ID                          answer at the terminal
  aish resume ID --approve call_1_1:3f9a1c22b07d
  aish resume ID --deny 'call_1_2:use the staging host'

--approve and --deny may be given several times. While other calls still wait,
the exit code is 3.";

/// What the command line is, for whoever makes something from it.
pub fn description() -> clap::Command {
    Cli::command()
}

/// Reads a command line, the program's name first. Help and version come as errors too, with exit code 0.
///
/// # Errors
/// What clap has to say; `exit()` on it prints and ends the process with the right code.
pub fn parse(args: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Result<Cli, clap::Error> {
    let cli = Cli::try_parse_from(args)?;
    match conflict(&cli) {
        None => Ok(cli),
        Some(message) => Err(Cli::command().error(ErrorKind::ArgumentConflict, message)),
    }
}

/// What clap cannot express about options that exclude each other.
fn conflict(cli: &Cli) -> Option<String> {
    let talk = [
        (cli.prompt.is_some(), "--prompt"),
        (cli.continue_last, "--continue"),
        (cli.resume.is_some(), "--resume"),
    ];
    let given = talk.iter().find(|(given, _)| *given).map(|(_, name)| name);
    match (&cli.command, given) {
        (Some(_), Some(name)) => Some(format!("{name} does not go with a command")),
        (None, _) if cli.prompt.is_none() && cli.common.output != Output::Text => {
            Some("--output needs a --prompt, or goes with resume".to_owned())
        }
        (Some(Command::Resume(resume)), None) => {
            let twice = resume
                .deny
                .iter()
                .find(|denial| resume.approve.iter().any(|yes| yes.call == denial.call));
            twice.map(|denial| format!("{} is both approved and denied", denial.call))
        }
        (
            Some(
                Command::Sessions { .. }
                | Command::Models(_)
                | Command::Mcp(_)
                | Command::Serve(_)
                | Command::Policy(_)
                | Command::Doctor { .. }
                | Command::Config { .. }
                | Command::Trust { .. }
                | Command::Completions { .. }
                | Command::Man { .. },
            )
            | None,
            _,
        ) => None,
    }
}

fn approval_mode() -> impl clap::builder::TypedValueParser<Value = ApprovalMode> {
    let modes = [ApprovalMode::Ask, ApprovalMode::Auto, ApprovalMode::Full];
    PossibleValuesParser::new(modes.map(ApprovalMode::word)).map(move |word| {
        let mode = modes.into_iter().find(|mode| mode.word() == word);
        mode.unwrap_or_default()
    })
}

fn parse_approval(text: &str) -> Result<Approval, String> {
    let (call, digest) = call_and_rest(text)?;
    // A script whose digest came out empty must not approve whatever there is by now.
    if digest.is_none() && text.contains(':') {
        return Err("there is no digest behind the colon; leave it out to approve without one".to_owned());
    }
    if let Some(digest) = &digest
        && !(digest.bytes().all(|b| b.is_ascii_hexdigit()) && digest.len() >= aish_core::Digest::SHORT_LEN)
    {
        let digits = aish_core::Digest::SHORT_LEN;
        return Err(format!(
            "a digest is at least {digits} hex digits, as shown with the call"
        ));
    }
    let digest = digest.map(|digest| digest.to_ascii_lowercase());
    Ok(Approval { call, digest })
}

fn parse_denial(text: &str) -> Result<Denial, String> {
    let (call, reason) = call_and_rest(text)?;
    Ok(Denial { call, reason })
}

/// Splits at the first colon; call ids have none.
fn call_and_rest(text: &str) -> Result<(CallId, Option<String>), String> {
    let (call, rest) = match text.split_once(':') {
        Some((call, rest)) => (call, Some(rest.trim().to_owned()).filter(|rest| !rest.is_empty())),
        None => (text, None),
    };
    if call.is_empty() || call.contains(char::is_whitespace) {
        return Err("write the id of a call first, e.g. call_1_1".to_owned());
    }
    Ok((CallId::new(call), rest))
}

#[cfg(test)]
mod tests;
