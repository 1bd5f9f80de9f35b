//! What a server asks, put to the person: forms field by field, addresses, texts for a model (SPEC 6.9).
//!
//! The first line is ours and says who asks. All that is the server's stands behind a mark of ours or in quotes, escaped and
//! bounded, so that no server can draw a question of ours. A yes is typed; nothing else is one, but for what the person has
//! just seen and said yes to before.

use super::look::{BOLD, DIM, Look};
use super::quote::{LINE_START, WRAP_START};
use super::rows::Rows;
use super::tty::{Line, Person};
use crate::mcp::address::Address;
use crate::mcp::form::{Field, Form, LEAVES_OUT, Need, Typed};
use aish_core::sanitize;
use aish_tools::Cancel;
use serde_json::{Map, Value};
use std::io;

/// Rows of a server's text that are shown unasked.
const ROWS_MAX: usize = 16;
/// Characters of a server's text that are shown unasked.
const CHARS_MAX: usize = 2_000;
/// The same where the person asked for all of it.
const WHOLE_CHARS_MAX: usize = 100_000;
/// Characters of a title or a default in a line of ours.
const TITLE_CHARS_MAX: usize = 80;
/// How often a field is asked for before the form is given up: a terminal that answers by itself must not be asked for ever.
const TRIES_MAX: usize = 20;

/// What a yes-or-no question came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// Yes.
    Yes,
    /// No, or the end of input.
    No,
    /// The question was taken back.
    Stopped,
}

/// What an empty line means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usual {
    /// `[Y/n]`
    Yes,
    /// `[y/N]`
    No,
}

/// What filling in a form came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Filled {
    /// These values are sent.
    Sent(Map<String, Value>),
    /// The person does not answer.
    Declined,
    /// The question was taken back.
    Stopped,
}

/// Somebody who is asked, and how their terminal looks.
pub struct Asking<'a, P> {
    /// Who.
    pub person: &'a P,
    /// How it looks there.
    pub look: Look,
    /// Takes the question back.
    pub cancel: &'a Cancel,
}

impl<P: Person> Asking<'_, P> {
    /// Fills in a form: whether at all, each field, and whether to send it.
    ///
    /// # Errors
    /// The terminal failed.
    pub async fn fill(&self, server: &str, message: &str, form: &Form) -> io::Result<Filled> {
        let mut head = self.head(&format!("mcp: {server} asks:")) + &self.quoted(message, Shown::Beginning);
        for name in form.secrets() {
            head += &self.warning(&format!(
                "'{}' looks like a secret, which no server may ask for",
                short(&name)
            ));
        }
        match self.yes_or_no(&head, "answer it?", Usual::No, None).await? {
            Said::Yes => {}
            Said::No => return Ok(Filled::Declined),
            Said::Stopped => return Ok(Filled::Stopped),
        }
        let mut values = Map::new();
        for (n, field) in form.fields.iter().enumerate() {
            match self.field(field, (n + 1, form.fields.len())).await? {
                Some(Typed::Value(value)) => {
                    values.insert(field.name.clone(), value);
                }
                Some(Typed::LeftOut) => {}
                None if *self.cancel.borrow() => return Ok(Filled::Stopped),
                None => return Ok(Filled::Declined),
            }
        }
        let mut shown = String::new();
        let all = format!(
            "send: {}",
            sanitize::single_line(&Value::Object(values.clone()).to_string())
        );
        let mut rows = Rows::new("", WRAP_START, self.look.width());
        rows.push(&all, &mut shown);
        let said = self.yes_or_no(&(shown + "\n"), "send it?", Usual::Yes, None).await?;
        Ok(match said {
            Said::Yes => Filled::Sent(values),
            Said::No => Filled::Declined,
            Said::Stopped => Filled::Stopped,
        })
    }

    /// Whether to open an address.
    ///
    /// # Errors
    /// The terminal failed.
    pub async fn open(&self, server: &str, message: &str, address: &Address) -> io::Result<Said> {
        let mut shown = self.head(&format!("mcp: {server} asks to open a page:"));
        shown += &self.quoted(message, Shown::Beginning);
        let mut rows = Rows::new("  ", "    ", self.look.width());
        let mut line = String::new();
        rows.push(&address.shown(), &mut line);
        rows.break_row(&mut line);
        shown += &line;
        shown += &format!("  host: {}\n", self.look.paint(BOLD, &address.host));
        for warning in &address.warnings {
            shown += &self.warning(warning);
        }
        self.yes_or_no(&shown, "open it?", Usual::No, None).await
    }

    /// Whether a server may have this text: asked with its beginning, all of it where the person wants to see it.
    ///
    /// # Errors
    /// The terminal failed.
    pub async fn may_pass(&self, head: &str, text: &str, question: &str, usual: Usual) -> io::Result<Said> {
        let shown = self.head(head) + &self.quoted(text, Shown::Beginning);
        let whole = self.quoted(text, Shown::Whole);
        self.yes_or_no(&shown, question, usual, Some(&whole)).await
    }

    /// A line of ours.
    fn head(&self, text: &str) -> String {
        let mut out = String::new();
        Rows::new("", "  ", self.look.width()).push(text, &mut out);
        self.look.paint(BOLD, &out) + "\n"
    }

    /// Something to mind before saying yes; a safe line.
    fn warning(&self, text: &str) -> String {
        let mut out = String::new();
        Rows::new("  ", "    ", self.look.width()).push(&format!("careful: {text}"), &mut out);
        self.look.paint(BOLD, &out) + "\n"
    }

    /// A server's text, each line behind our mark.
    fn quoted(&self, text: &str, shown: Shown) -> String {
        let (chars_max, rows_max) = match shown {
            Shown::Beginning => (CHARS_MAX, ROWS_MAX),
            Shown::Whole => (WHOLE_CHARS_MAX, usize::MAX),
        };
        let cut: String = text.chars().take(chars_max).collect();
        let mut rows = Rows::new(LINE_START, WRAP_START, self.look.width()).at_most(rows_max);
        let mut out = String::new();
        rows.push(sanitize::multi_line(&cut).trim_end(), &mut out);
        rows.break_row(&mut out);
        if rows.hidden() > 0 || text.chars().nth(chars_max).is_some() {
            out += &self.look.paint(DIM, "  … and more\n");
        }
        out
    }

    /// `question [y/N] ` below what is shown; `?` shows `whole`, where there is more to see.
    async fn yes_or_no(&self, shown: &str, question: &str, usual: Usual, whole: Option<&str>) -> io::Result<Said> {
        let choices = match (usual, whole) {
            (Usual::Yes, None) => "[Y/n]",
            (Usual::No, None) => "[y/N]",
            (Usual::Yes, Some(_)) => "[Y/n/?]",
            (Usual::No, Some(_)) => "[y/N/?]",
        };
        let ask = self.look.paint(BOLD, question) + &format!(" {choices} ");
        let mut prompt = format!("{shown}{ask}");
        for _ in 0..TRIES_MAX {
            let line = match self.person.ask_line(prompt, self.cancel.clone()).await? {
                Line::Said(line) => line,
                Line::End => return Ok(Said::No),
                Line::Cancelled => return Ok(Said::Stopped),
            };
            match (line.trim(), usual, whole) {
                ("?", _, Some(whole)) => prompt = format!("{whole}{ask}"),
                ("", Usual::Yes, _) => return Ok(Said::Yes),
                (text, _, _) if text.starts_with(['y', 'Y']) => return Ok(Said::Yes),
                (_, _, _) => return Ok(Said::No),
            }
        }
        Ok(Said::No)
    }

    /// One field, until what is typed fits; `None` where the person stopped answering.
    async fn field(&self, field: &Field, place: (usize, usize)) -> io::Result<Option<Typed>> {
        let mut prompt = self.about(field, place) + &ask_for(field);
        for _ in 0..TRIES_MAX {
            let line = match self.person.ask_line(prompt, self.cancel.clone()).await? {
                Line::Said(line) => line,
                Line::End | Line::Cancelled => return Ok(None),
            };
            match field.check(&line) {
                Ok(typed) => return Ok(Some(typed)),
                Err(problem) => prompt = format!("  {problem}\n{}", ask_for(field)),
            }
        }
        Ok(None)
    }

    /// What a person has to know to fill in a field.
    fn about(&self, field: &Field, (n, of): (usize, usize)) -> String {
        let need = match field.need {
            Need::Required => "required",
            Need::Optional => "may be left out",
        };
        let mut out = String::new();
        let mut rows = Rows::new("", "  ", self.look.width());
        rows.push(
            &format!("{n} of {of}, '{}': {}, {need}", short(&field.title), field.takes()),
            &mut out,
        );
        rows.break_row(&mut out);
        if !field.description.trim().is_empty() {
            out += &self.quoted(&field.description, Shown::Beginning);
        }
        for (n, choice) in field.choices().iter().enumerate() {
            out += &format!("  {:>3}  {}\n", n + 1, short(&choice.title));
        }
        out
    }
}

/// How much of a text is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    Beginning,
    Whole,
}

/// `'title' [default]: `, or `'title' [default; - leaves it out]: `
fn ask_for(field: &Field) -> String {
    let way_out = if field.has_word_to_leave_out() {
        format!("; {LEAVES_OUT} leaves it out")
    } else {
        String::new()
    };
    let default = field.default_text().map(|text| format!(" [{}{way_out}]", short(&text)));
    format!("'{}'{}: ", short(&field.title), default.unwrap_or_default())
}

/// Text of a server in a line of ours.
fn short(text: &str) -> String {
    let cut: String = text.chars().take(TITLE_CHARS_MAX).collect();
    let more = if cut.len() < text.len() { "…" } else { "" };
    format!("{}{more}", sanitize::single_line(&cut))
}

#[cfg(test)]
#[path = "questions_tests.rs"]
mod tests;
