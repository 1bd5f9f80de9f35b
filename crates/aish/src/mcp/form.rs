//! Forms of servers: the flat schemas of `elicitation/create` read into fields, and what a person types held against them.
//!
//! The kinds of fields are those of the protocol (2025-11-25, "Requested Schema", with the enumerations of SEP-1330 and the
//! defaults of SEP-1034): text, numbers, yes or no, one of several and some of several. A schema that has anything else is
//! refused as a whole: a person must not fill in what cannot be sent.

use serde_json::{Number, Value};

mod read;
mod secret;

#[cfg(test)]
mod tests;

/// Fields of a form.
const FIELDS_MAX: usize = 32;
/// Choices of a field.
const CHOICES_MAX: usize = 100;
/// Characters of a title, a name or a choice; names are sent as they are, and must not be longer.
const LABEL_CHARS_MAX: usize = 200;
/// Characters of a description.
const DESCRIPTION_CHARS_MAX: usize = 600;
/// What separates several choices in an answer.
const BETWEEN_CHOICES: [char; 2] = [',', ' '];
/// What leaves an optional field out that would have its default otherwise.
pub const LEAVES_OUT: &str = "-";

/// A form, all text as the server wrote it.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    /// Its fields: those that are required, then the others, each by name.
    pub fields: Vec<Field>,
}

/// A field.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// What its value is sent as.
    pub name: String,
    /// What a person calls it; the name where there is no title.
    pub title: String,
    /// What it is for; empty where nothing is said.
    pub description: String,
    /// Whether the form may be sent without it.
    pub need: Need,
    /// What is sent where nothing is typed.
    pub default: Option<Value>,
    /// Which values it takes.
    pub kind: Kind,
}

/// Whether a field must have a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// It must.
    Required,
    /// It may be left out.
    Optional,
}

/// Which values a field takes.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Text, its length in characters.
    Text {
        /// At least.
        chars_min: Option<u64>,
        /// At most.
        chars_max: Option<u64>,
        /// What it has to look like.
        format: Option<Format>,
    },
    /// A number.
    Number {
        /// Which numbers.
        numbers: Numbers,
        /// At least.
        min: Option<f64>,
        /// At most.
        max: Option<f64>,
    },
    /// Yes or no.
    Boolean,
    /// One of these.
    One(Vec<Choice>),
    /// Some of these.
    Several {
        /// What may be chosen.
        choices: Vec<Choice>,
        /// At least so many.
        items_min: Option<u64>,
        /// At most so many.
        items_max: Option<u64>,
    },
}

/// Which numbers a field takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// Whole ones.
    Whole,
    /// Any.
    Any,
}

/// What text has to look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// An address of electronic mail.
    Email,
    /// An address.
    Uri,
    /// `2026-07-28`.
    Date,
    /// `2026-07-28T12:00:00Z`.
    DateTime,
}

/// Something that may be chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// What is sent.
    pub value: String,
    /// What a person reads.
    pub title: String,
}

/// What a typed line came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Typed {
    /// This value is sent.
    Value(Value),
    /// The field is left out.
    LeftOut,
}

impl Form {
    /// Reads the schema of a form.
    ///
    /// # Errors
    /// It is none that the protocol has; one line, not escaped.
    pub fn read(schema: &Value) -> Result<Self, String> {
        read::form(schema)
    }

    /// The names of the fields that seem to ask for a secret.
    pub fn secrets(&self) -> Vec<String> {
        let fields = self.fields.iter().filter(|field| field.asks_for_secret());
        fields.map(|field| field.name.clone()).collect()
    }
}

impl Field {
    /// What a person is told of the values it takes, e.g. `text, 3 to 10 characters` or `whole number, at least 1`.
    pub fn takes(&self) -> String {
        match &self.kind {
            Kind::Text {
                chars_min,
                chars_max,
                format,
            } => {
                let what = match format {
                    Some(Format::Email) => "email address",
                    Some(Format::Uri) => "address (URI)",
                    Some(Format::Date) => "date, like 2026-07-28",
                    Some(Format::DateTime) => "date and time, like 2026-07-28T12:00:00Z",
                    None => "text",
                };
                with_range(what, (*chars_min, *chars_max), " characters")
            }
            Kind::Number { numbers, min, max } => {
                let what = match numbers {
                    Numbers::Whole => "whole number",
                    Numbers::Any => "number",
                };
                with_range(what, (*min, *max), "")
            }
            Kind::Boolean => "y or n".to_owned(),
            Kind::One(_) => "the number of one".to_owned(),
            Kind::Several {
                items_min, items_max, ..
            } => with_range("numbers, separated by commas", (*items_min, *items_max), " of them"),
        }
    }

    /// What may be chosen; empty for fields that are typed.
    pub fn choices(&self) -> &[Choice] {
        match &self.kind {
            Kind::One(choices) | Kind::Several { choices, .. } => choices,
            Kind::Text { .. } | Kind::Number { .. } | Kind::Boolean => &[],
        }
    }

    /// The default as a person would type it; `None` where there is none.
    pub fn default_text(&self) -> Option<String> {
        let number_of = |value: &Value| {
            let at = self.choices().iter().position(|choice| *value == choice.value);
            at.map(|at| (at + 1).to_string())
        };
        let default = self.default.as_ref()?;
        match default {
            Value::Bool(yes) => Some(if *yes { "y" } else { "n" }.to_owned()),
            Value::String(text) if self.choices().is_empty() => Some(text.clone()),
            Value::String(_) => number_of(default),
            Value::Array(items) => Some(items.iter().filter_map(number_of).collect::<Vec<_>>().join(", ")),
            Value::Null | Value::Number(_) | Value::Object(_) => Some(default.to_string()),
        }
    }

    /// Whether [`LEAVES_OUT`] is what leaves it out: nothing typed takes its default.
    pub fn has_word_to_leave_out(&self) -> bool {
        self.need == Need::Optional && self.default.is_some()
    }

    /// What a typed line means: nothing takes the default, or leaves out what may be left out.
    ///
    /// # Errors
    /// It is no value of this field; says what it must be.
    pub fn check(&self, line: &str) -> Result<Typed, String> {
        let text = line.trim();
        if text.is_empty() {
            return match (&self.default, self.need) {
                (Some(default), _) => Ok(Typed::Value(default.clone())),
                (None, Need::Optional) => Ok(Typed::LeftOut),
                (None, Need::Required) => Err("a value is needed".to_owned()),
            };
        }
        if text == LEAVES_OUT && self.has_word_to_leave_out() {
            return Ok(Typed::LeftOut);
        }
        let value = match &self.kind {
            Kind::Text {
                chars_min,
                chars_max,
                format,
            } => text_value(text, (*chars_min, *chars_max), *format)?,
            Kind::Number { numbers, min, max } => number_value(text, *numbers, (*min, *max))?,
            Kind::Boolean => match text.chars().next() {
                Some('y' | 'Y') => Value::Bool(true),
                Some('n' | 'N') => Value::Bool(false),
                Some(_) | None => return Err("y or n".to_owned()),
            },
            Kind::One(choices) => Value::from(chosen(text, choices)?),
            Kind::Several {
                choices,
                items_min,
                items_max,
            } => some_of(text, choices, (*items_min, *items_max))?,
        };
        Ok(Typed::Value(value))
    }
}

fn text_value(text: &str, (min, max): (Option<u64>, Option<u64>), format: Option<Format>) -> Result<Value, String> {
    let chars = u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
    if min.is_some_and(|min| chars < min) || max.is_some_and(|max| chars > max) {
        let range = with_range("it must have", (min, max), " characters").replace("have, ", "have ");
        return Err(format!("{range}; these are {chars}"));
    }
    match format {
        Some(format) if !format.fits(text) => Err(format!("that is no {}", format.name())),
        Some(_) | None => Ok(Value::from(text)),
    }
}

fn number_value(text: &str, numbers: Numbers, (min, max): (Option<f64>, Option<f64>)) -> Result<Value, String> {
    let whole = text.parse::<i64>().ok();
    let number = match (numbers, whole) {
        (_, Some(whole)) => Some(Number::from(whole)),
        (Numbers::Any, None) => text.parse::<f64>().ok().and_then(Number::from_f64),
        (Numbers::Whole, None) => None,
    };
    let number = number.ok_or_else(|| match numbers {
        Numbers::Whole => "that is no whole number".to_owned(),
        Numbers::Any => "that is no number".to_owned(),
    })?;
    number_fits(&number, (min, max))?;
    Ok(Value::Number(number))
}

fn number_fits(number: &Number, (min, max): (Option<f64>, Option<f64>)) -> Result<(), String> {
    let value = number.as_f64().unwrap_or(f64::NAN);
    if min.is_some_and(|min| value < min) || max.is_some_and(|max| value > max) {
        return Err(with_range("it must be", (min, max), "").replace("be, ", "be "));
    }
    Ok(())
}

/// The choice of that number, or of exactly these words.
fn chosen(text: &str, choices: &[Choice]) -> Result<String, String> {
    let by_number = text.parse::<usize>().ok().and_then(|n| choices.get(n.checked_sub(1)?));
    let by_words = || {
        let fits = |choice: &&Choice| choice.value == text || choice.title == text;
        choices.iter().find(fits)
    };
    let choice = by_number.or_else(by_words);
    let choice = choice.ok_or_else(|| format!("a number from 1 to {}", choices.len()))?;
    Ok(choice.value.clone())
}

fn some_of(text: &str, choices: &[Choice], (min, max): (Option<u64>, Option<u64>)) -> Result<Value, String> {
    let mut values: Vec<String> = Vec::new();
    for word in text.split(BETWEEN_CHOICES).filter(|word| !word.is_empty()) {
        let value = chosen(word, choices).map_err(|_| format!("numbers from 1 to {}, like 1,2", choices.len()))?;
        if !values.contains(&value) {
            values.push(value);
        }
    }
    count_fits(values.len(), (min, max))?;
    Ok(Value::from(values))
}

fn count_fits(items: usize, (min, max): (Option<u64>, Option<u64>)) -> Result<(), String> {
    let items = u64::try_from(items).unwrap_or(u64::MAX);
    if min.is_some_and(|min| items < min) || max.is_some_and(|max| items > max) {
        return Err(with_range("choose", (min, max), " of them").replace("choose, ", "choose "));
    }
    Ok(())
}

impl Format {
    /// What the schema calls it.
    fn name(self) -> &'static str {
        match self {
            Self::Email => "email address",
            Self::Uri => "address (URI)",
            Self::Date => "date (like 2026-07-28)",
            Self::DateTime => "date and time (like 2026-07-28T12:00:00Z)",
        }
    }

    fn fits(self, text: &str) -> bool {
        let format = match self {
            Self::Email => "email",
            Self::Uri => "uri",
            Self::Date => "date",
            Self::DateTime => "date-time",
        };
        let schema = serde_json::json!({ "format": format });
        let validator = jsonschema::options().should_validate_formats(true).build(&schema);
        validator.is_ok_and(|validator| validator.is_valid(&Value::from(text)))
    }
}

/// `what, 3 to 10 unit`, `what, at least 3 unit`, `what, at most 10 unit`, or `what`.
fn with_range<T: std::fmt::Display>(what: &str, range: (Option<T>, Option<T>), unit: &str) -> String {
    match range {
        (Some(min), Some(max)) => format!("{what}, {min} to {max}{unit}"),
        (Some(min), None) => format!("{what}, at least {min}{unit}"),
        (None, Some(max)) => format!("{what}, at most {max}{unit}"),
        (None, None) => what.to_owned(),
    }
}
