//! What is wrong with a configuration, shown the way a compiler would: the place, what is wrong, what was expected, and the
//! line itself with a caret under it. A line is shown without the values that could be secrets (SPEC 10.5), and cannot
//! control the terminal (SPEC 8.8).

use aish_core::sanitize;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file could not be read.
    #[error("cannot read the configuration {}: {source}{hint}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
        /// What to do; empty or beginning with "; ".
        hint: &'static str,
    },
    /// Some of it is wrong: everything found, not only the first.
    #[error("{}", join(.0))]
    Invalid(Vec<Diagnostic>),
}

/// One thing wrong with one value.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// Where the value came from.
    pub origin: Origin,
    /// What is wrong, one line, without the place.
    pub message: String,
    /// How much of the line may be shown.
    pub shown: Shown,
}

/// Where a value came from.
#[derive(Clone, Debug)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// A file.
    File(Place),
    /// An environment variable.
    Variable(&'static str),
    /// An option of the command line.
    Flag(&'static str),
}

/// A stretch of a file.
#[derive(Clone, Debug)]
pub struct Place {
    /// The file.
    pub source: Arc<Source>,
    /// The bytes of its text.
    pub span: Range<usize>,
}

/// A configuration file that was read.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// How messages call it: its path.
    pub name: String,
    /// What it holds.
    pub text: String,
    /// Whose it is.
    pub layer: Layer,
}

/// Whose file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// The user's own.
    User,
    /// A trusted project's.
    Project,
}

/// How much of the line a diagnostic is about may be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The caret is under a key; what it is set to does not matter.
    Key,
    /// The caret is under a value that may be seen.
    Value,
    /// The caret is under a value that may not be seen.
    Hidden,
    /// The line is not TOML; nobody knows what is key and what is value.
    Unparsed,
}

impl Place {
    /// Line and column of its beginning, both counted from 1, the column in characters.
    pub fn line_column(&self) -> (usize, usize) {
        let text = &self.source.text;
        let before = text.get(..self.span.start.min(text.len())).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or(before).chars().count() + 1;
        (line, column)
    }

    /// The line it begins on.
    fn line(&self) -> &str {
        let text = &self.source.text;
        let start = self.span.start.min(text.len());
        let from = text
            .get(..start)
            .and_then(|before| before.rfind('\n'))
            .map_or(0, |at| at + 1);
        let line = text.get(from..).and_then(|rest| rest.lines().next());
        line.unwrap_or("")
    }
}

impl Origin {
    /// Whether a project's file said it.
    pub fn is_project(&self) -> bool {
        match self {
            Self::File(place) => place.source.layer == Layer::Project,
            Self::Default | Self::Variable(_) | Self::Flag(_) => false,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(place) => {
                let (line, column) = place.line_column();
                write!(f, "{}:{line}:{column}", sanitize::single_line(&place.source.name))
            }
            Self::Variable(name) => write!(f, "${name}"),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, sanitize::single_line(&self.message))?;
        let Origin::File(place) = &self.origin else {
            return Ok(());
        };
        let (number, column) = place.line_column();
        let excerpt = Excerpt::new(
            place.line(),
            column,
            place.source.text.get(place.span.clone()),
            self.shown,
        );
        let gutter = number.to_string().len();
        let (indent, carets) = (" ".repeat(excerpt.caret), "^".repeat(excerpt.caret_len));
        write!(
            f,
            "\n  {number} | {}\n  {:gutter$} | {indent}{carets}",
            excerpt.text, ""
        )
    }
}

/// Characters of a line that are shown; longer lines are cut around the caret.
const LINE_CHARS_MAX: usize = 100;
/// Characters kept before the caret of a line that is cut.
const BEFORE_CARET_CHARS: usize = 60;
/// A line with one of these words in it shows no value at all.
const SUSPICIOUS: [&str; 8] = ["token", "secret", "passw", "auth", "key", "bearer", "header", "env"];

/// A line as it is shown, and where its caret is, in characters.
struct Excerpt {
    text: String,
    caret: usize,
    caret_len: usize,
}

impl Excerpt {
    /// `column` counts from 1; `pointed` is the text the caret is under.
    fn new(line: &str, column: usize, pointed: Option<&str>, shown: Shown) -> Self {
        let mut chars: Vec<char> = line.chars().map(|c| if c == '\t' { ' ' } else { c }).collect();
        let mut caret = (column - 1).min(chars.len());
        let pointed_len = pointed
            .and_then(|text| text.lines().next())
            .map_or(1, |text| text.chars().count());
        if let Some(end) = visible_end(&chars, caret, pointed_len, shown) {
            chars.truncate(end);
            chars.extend([' ', '…']);
            caret = caret.min(end + 1);
        }
        let skipped = if chars.len() > LINE_CHARS_MAX {
            caret.saturating_sub(BEFORE_CARET_CHARS)
        } else {
            0
        };
        let window: String = chars.iter().skip(skipped).take(LINE_CHARS_MAX).collect();
        let rest = (chars.len().saturating_sub(caret)).min(LINE_CHARS_MAX - BEFORE_CARET_CHARS);
        // Escaping makes a line longer; the caret moves with what stands before it.
        let before: String = window.chars().take(caret - skipped).collect();
        Self {
            text: sanitize::single_line(&window).into_owned(),
            caret: sanitize::single_line(&before).chars().count(),
            caret_len: pointed_len.clamp(1, rest.max(1)),
        }
    }
}

/// Where to cut a line so that no secret is shown; `None` shows all of it.
fn visible_end(chars: &[char], caret: usize, pointed_len: usize, shown: Shown) -> Option<usize> {
    let find_from = |from: usize, wanted: &[char]| {
        let found = chars.iter().enumerate().skip(from).find(|(_, c)| wanted.contains(c));
        found.map(|(at, _)| at)
    };
    let after_equals = |from: usize| find_from(from, &['=']).map(|at| at + 1);
    let lower = chars.iter().collect::<String>().to_lowercase();
    let first_equals = after_equals(0);
    if SUSPICIOUS.iter().any(|word| lower.contains(word)) && first_equals.is_some() {
        return first_equals;
    }
    match shown {
        Shown::Key => after_equals(caret + pointed_len),
        Shown::Value => None,
        Shown::Hidden => Some(caret),
        Shown::Unparsed => first_equals.and_then(|from| find_from(from, &['"', '\''])),
    }
}

fn join(diagnostics: &[Diagnostic]) -> String {
    let texts: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
    texts.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, pointed: &str, shown: Shown) -> String {
        let start = text.find(pointed).unwrap_or(0);
        let source = Arc::new(Source {
            name: "config.toml".into(),
            text: text.into(),
            layer: Layer::User,
        });
        let origin = Origin::File(Place {
            source,
            span: start..start + pointed.len(),
        });
        let message = "wrong".to_owned();
        Diagnostic { origin, message, shown }.to_string()
    }

    /// SPEC 10.1: an error has line, column, the line itself and a caret.
    #[test]
    fn the_caret_is_under_the_culprit() {
        insta::assert_snapshot!(shown("a = 1\n\tß = 22 # x", "22", Shown::Value), @r"
        config.toml:2:6: wrong
          2 |  ß = 22 # x
            |      ^^
        ");
        insta::assert_snapshot!(shown("abc = 1", "abc", Shown::Key), @r"
        config.toml:1:1: wrong
          1 | abc = …
            | ^^^
        ");
    }

    /// SPEC 10.5: what may be a secret is not shown with the error.
    #[test]
    fn no_secret_is_shown() {
        let hidden = [
            ("auth_tokn = \"hunter2\"", "auth_tokn", Shown::Key),
            ("x = { auth_token = 'hunter2', timeout = 0 }", "0", Shown::Value),
            ("X-Api = 'hunter2'", "'hunter2'", Shown::Hidden),
            ("pat = \"hunter2", "hunter2", Shown::Unparsed),
            ("Authorization: = hunter2", ":", Shown::Unparsed),
        ];
        for (text, pointed, show) in hidden {
            assert!(!shown(text, pointed, show).contains("hunter2"), "{text}");
        }
    }

    /// SPEC 8.8: a file cannot control the terminal through its errors.
    #[test]
    fn a_line_cannot_control_the_terminal() {
        let text = shown("\u{1b}[31m = 1", "1", Shown::Value);
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn long_lines_are_cut_around_the_caret() {
        let text = format!("x = [{} \"culprit\"]", "1, ".repeat(500));
        let text = shown(&text, "\"culprit\"", Shown::Value);
        assert!(
            text.contains("culprit") && text.lines().all(|line| line.chars().count() < 120),
            "{text}"
        );
    }

    /// A place at the very end, past it, and in an empty file.
    #[test]
    fn odd_places_do_not_panic() {
        for text in ["", "\n", "a", "a\n", "ä"] {
            for start in 0..4 {
                let source = Arc::new(Source {
                    name: "c".into(),
                    text: text.into(),
                    layer: Layer::User,
                });
                let origin = Origin::File(Place {
                    source,
                    span: start..start + 1,
                });
                let message = String::new();
                let shown = Shown::Unparsed;
                assert!(!Diagnostic { origin, message, shown }.to_string().is_empty());
            }
        }
    }
}
