//! The prompt: where we are, whom we talk to, and what is out of the ordinary.

use aish_core::policy::ApprovalMode;
use aish_core::sanitize;
use std::path::Path;

/// The end of the prompt's first line.
pub const INDICATOR: &str = "❯ ";
/// Before each further line of a message.
pub const INDICATOR_MORE: &str = "· ";

/// Whether everything said so far is in the ledger (SPEC 2.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saved {
    /// It is.
    Yes,
    /// The disk refuses; it is in memory only.
    No,
}

/// What the prompt says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptText {
    /// The directory, shortened.
    pub directory: String,
    /// The model asked.
    pub model: String,
    /// When calls are asked about; the usual mode is not mentioned.
    pub mode: ApprovalMode,
    /// Whether the ledger has everything.
    pub saved: Saved,
}

impl PromptText {
    /// What stands before the indicator, e.g. `~/src desk `.
    pub fn left(&self) -> String {
        let mut left = sanitize::single_line(&self.directory).into_owned();
        left.push(' ');
        match self.saved {
            Saved::Yes => {}
            Saved::No => left.push_str("[unsaved] "),
        }
        match self.mode {
            ApprovalMode::Ask => {}
            ApprovalMode::Auto | ApprovalMode::Full => {
                left.push_str(&format!("[{}] ", self.mode.word()));
            }
        }
        if !self.model.is_empty() {
            left.push_str(&sanitize::single_line(&self.model));
            left.push(' ');
        }
        left
    }
}

/// A directory as people write it: `~` for the home directory.
pub fn shortened(directory: &Path, home: Option<&Path>) -> String {
    match home.and_then(|home| directory.strip_prefix(home).ok()) {
        Some(below) if below.as_os_str().is_empty() => "~".to_owned(),
        Some(below) => format!("~/{}", below.display()),
        None => directory.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 2.5: a session that is not saved says so in the prompt. SPEC 5.2: so does an unusual mode.
    #[test]
    fn prompts() {
        let usual = PromptText {
            directory: shortened(Path::new("/home/u/src"), Some(Path::new("/home/u"))),
            model: "desk".into(),
            mode: ApprovalMode::Ask,
            saved: Saved::Yes,
        };
        assert_eq!(usual.left(), "~/src desk ");
        let unusual = PromptText {
            mode: ApprovalMode::Full,
            saved: Saved::No,
            directory: shortened(Path::new("/tmp/a\x1b[2J"), Some(Path::new("/home/u"))),
            model: String::new(),
        };
        assert_eq!(unusual.left(), "/tmp/a\\x1b[2J [unsaved] [full] ");
        assert_eq!(shortened(Path::new("/home/u"), Some(Path::new("/home/u"))), "~");
    }
}
