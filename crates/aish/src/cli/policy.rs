//! `aish policy …`: what the rules make of commands.

use clap::Subcommand;
use std::path::PathBuf;

/// `aish policy`.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum Policy {
    /// Print the verdict on a command, its rule and parts; run nothing
    Explain {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
        /// The command line, as one argument
        #[arg(allow_hyphen_values = true)]
        command: String,
    },
    /// Check a table of expectations: a verdict and a command on each line
    #[command(after_help = TEST_EXAMPLES)]
    Test {
        /// The table
        file: PathBuf,
    },
}

const TEST_EXAMPLES: &str = "\
A table looks like this:
  # what must never run
  deny   cd /tmp && rm -rf x
  ask    git push
  allow  cargo test

Exit codes: 0 all hold, 1 some do not, 2 the table cannot be read.";
