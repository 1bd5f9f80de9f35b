//! What the model says, as it comes: Markdown laid out on a screen, the text as it is everywhere else (SPEC 8.6).
//!
//! Takes text that is safe already ([`super::clean`] makes it so): a key that is cut in two by the stream must be whole before it
//! can be found, and Markdown writes words as soon as they are.

use super::look::{Form, Look};
use super::rows::width_of;
use aish_markdown::{Markdown, Syntaxes};

/// One stretch of a reply.
pub enum Prose {
    /// Laid out.
    Markdown(Box<Markdown>),
    /// As it is.
    Text {
        /// False until something visible was said: models begin with empty lines.
        begun: bool,
        /// Columns written in the current row.
        column: usize,
    },
}

impl Prose {
    /// The beginning of one, for that look.
    pub fn new(look: Look, syntaxes: &Syntaxes) -> Self {
        match look.form {
            Form::Framed => Self::Markdown(Box::new(Markdown::with_syntaxes(look.markdown(), syntaxes))),
            Form::Plain => Self::Text {
                begun: false,
                column: 0,
            },
        }
    }

    /// The next piece; safe already.
    pub fn push(&mut self, text: &str, shown: &mut String) {
        match self {
            Self::Markdown(markdown) => markdown.push(text, shown),
            Self::Text { begun, column } => {
                let visible = if *begun { text } else { text.trim_start_matches('\n') };
                *begun |= !visible.is_empty();
                shown.push_str(visible);
                *column = match visible.rsplit_once('\n') {
                    Some((_, row)) => width_of(row),
                    None => *column + width_of(visible),
                };
            }
        }
    }

    /// Whatever comes next is on a row of its own; the text goes on after it.
    pub fn break_row(&mut self, shown: &mut String) {
        match self {
            Self::Markdown(markdown) => markdown.break_row(shown),
            Self::Text { column, .. } => {
                if std::mem::take(column) > 0 {
                    shown.push('\n');
                }
            }
        }
    }

    /// It is over.
    pub fn finish(&mut self, shown: &mut String) {
        match self {
            Self::Markdown(markdown) => markdown.finish(shown),
            Self::Text { .. } => self.break_row(shown),
        }
    }

    /// The terminal has another size now.
    pub fn resize(&mut self, look: Look) {
        match self {
            Self::Markdown(markdown) => markdown.resize(look.width()),
            Self::Text { .. } => {}
        }
    }

    /// Columns written in the current row.
    pub fn column(&mut self) -> usize {
        match self {
            Self::Markdown(markdown) => markdown.column(),
            Self::Text { column, .. } => *column,
        }
    }
}
