//! Yes or no to something that was shown, at the terminal that was typed at.

use crate::failure::Failure;
use aish_core::sanitize;
use std::io::{BufRead as _, IsTerminal as _, Write as _};

/// What a person said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// Yes.
    Yes,
    /// Anything else.
    No,
    /// There is no terminal: nobody can say anything.
    Nobody,
}

/// Shows a text, escaped, and asks. `question` is ours; the answer that is no is the usual one.
///
/// # Errors
/// The terminal failed.
pub fn agreed(shown: &str, question: &str) -> Result<Agreement, Failure> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Ok(Agreement::Nobody);
    }
    let text = format!("{}\n{question} [y/N] ", sanitize::multi_line(shown));
    let failed = |error: std::io::Error| Failure::failed(format!("cannot ask: {error}"));
    std::io::stderr().write_all(text.as_bytes()).map_err(failed)?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).map_err(failed)?;
    Ok(match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Agreement::Yes,
        _ => Agreement::No,
    })
}
