//! The syntax of command lines: what is in one, and whether it is whole.
//!
//! [`parse`] gives the [`Syntax`] of a line: what to colour ([`Syntax::pieces`]) and whether the grammar takes it
//! ([`Syntax::is_malformed`]). [`open`] says, much cheaper and for fish too, whether a shell would wait for more.
//! [`simple_commands`] gives all that would run, for whoever judges it. Nothing here
//! runs, expands or looks up anything: a line is text, and what is said of it depends on nothing else but the limit of time.
//!
//! ```
//! use aish_command::{Class, Grammar, Opened, open, parse};
//!
//! assert_eq!(open("for f in *; do echo $f", Grammar::Bash), Some(Opened::Block));
//! assert_eq!(open("echo done", Grammar::Bash), None);
//!
//! let syntax = parse("ls -l | wc")?;
//! let classes: Vec<Class> = syntax.pieces().iter().map(|piece| piece.class).collect();
//! assert_eq!(
//!     classes,
//!     [Class::Command, Class::Plain, Class::Option, Class::Plain, Class::Operator, Class::Plain, Class::Command],
//! );
//! # Ok::<(), aish_command::NotParsed>(())
//! ```

mod open;
mod pieces;
mod simple;

pub use open::{Grammar, Opened, open};
pub use pieces::{Class, Piece};
pub use simple::{NotUnderstood, simple_commands};

use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use tree_sitter::{ParseOptions, ParseState, Parser, Tree};

/// The longest text that is parsed.
pub const PARSED_BYTES_MAX: usize = 64 * 1024;
/// How long [`parse`] may take, in milliseconds. Ordinary text of [`PARSED_BYTES_MAX`] takes a fifth of that; the time for
/// thousands of pipes in a row grows with their square.
pub const PARSE_MS_MAX: u64 = 100;

/// Why a text has no syntax.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotParsed {
    /// It is longer than [`PARSED_BYTES_MAX`].
    #[error("a command line of {bytes} bytes is not parsed (the limit is {PARSED_BYTES_MAX})")]
    TooLong {
        /// How long.
        bytes: usize,
    },
    /// It takes too long.
    #[error("the command line is too involved to be parsed")]
    TooInvolved,
    /// The grammar and the parser do not fit together: a fault of this program.
    #[error("the grammar of command lines cannot be used")]
    Grammar,
}

/// The syntax of a command line, by bash's grammar.
pub struct Syntax<'a> {
    text: &'a str,
    tree: Tree,
}

impl Syntax<'_> {
    /// The grammar does not take it as it is. A line that is not whole is malformed too: ask [`open`] first.
    pub fn is_malformed(&self) -> bool {
        self.tree.root_node().has_error()
    }
}

/// Parses a command line. Whatever the text is, there is a syntax, if need be one with errors in it.
///
/// # Errors
/// It is too long, or takes longer than [`PARSE_MS_MAX`].
pub fn parse(text: &str) -> Result<Syntax<'_>, NotParsed> {
    parse_within(text, Duration::from_millis(PARSE_MS_MAX))
}

/// [`parse`] for whoever has less time.
///
/// # Errors
/// It is too long, or takes longer than `limit`.
pub fn parse_within(text: &str, limit: Duration) -> Result<Syntax<'_>, NotParsed> {
    if text.len() > PARSED_BYTES_MAX {
        return Err(NotParsed::TooLong { bytes: text.len() });
    }
    let mut parser = Parser::new();
    let set = parser.set_language(&tree_sitter_bash::LANGUAGE.into());
    set.map_err(|_| NotParsed::Grammar)?;
    let begun = Instant::now();
    // Asked every hundred steps of the parser.
    let mut progress = |_: &ParseState| {
        if begun.elapsed() < limit {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    };
    let bytes = text.as_bytes();
    let tree = parser.parse_with_options(
        &mut |at, _| bytes.get(at..).unwrap_or_default(),
        None,
        Some(ParseOptions::new().progress_callback(&mut progress)),
    );
    let tree = tree.ok_or(NotParsed::TooInvolved)?;
    Ok(Syntax { text, tree })
}
