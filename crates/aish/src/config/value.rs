//! A value on its way from text to type: read from TOML or from an environment variable, checked against the
//! [`Kind`] its setting declares. What is wrong is said with what was expected.

use super::settings::{Kind, Secrecy, Setting};
use aish_core::policy::Rule;
use aish_core::sanitize;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeArray, DeInteger, DeValue};

/// A checked value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Text, a word of a choice, an address, a variable's name.
    Text(String),
    /// Yes or no.
    Bool(bool),
    /// A whole number in range.
    Integer(i64),
    /// A number in range.
    Float(f64),
    /// A list of texts; rules are texts that parse.
    Texts(Vec<String>),
}

impl Value {
    /// The value as it would be written in a file.
    pub fn to_toml(&self) -> String {
        match self {
            Self::Text(text) => toml_text(text),
            Self::Bool(yes) => yes.to_string(),
            Self::Integer(number) => number.to_string(),
            Self::Float(number) => toml::Value::Float(*number).to_string(),
            Self::Texts(texts) => {
                let texts: Vec<String> = texts.iter().map(|text| toml_text(text)).collect();
                format!("[{}]", texts.join(", "))
            }
        }
    }
}

/// A text as TOML writes it: quoted, on one line, with everything escaped that cannot be seen or acts on a terminal.
pub fn toml_text(text: &str) -> String {
    // JSON's escapes are TOML's too, and unlike the TOML writer JSON never answers with several lines.
    let quoted = serde_json::Value::from(text).to_string();
    let mut escaped = String::with_capacity(quoted.len());
    for c in quoted.chars() {
        match u32::from(c) {
            _ if !sanitize::is_hostile(c) => escaped.push(c),
            code if code <= 0xffff => escaped.push_str(&format!("\\u{code:04x}")),
            code => escaped.push_str(&format!("\\U{code:08x}")),
        }
    }
    escaped
}

/// A path as TOML writes it: `mcp.auto_approve."git.*"`.
pub fn toml_path(path: &[impl AsRef<str>]) -> String {
    let bare = |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    let quote = |name: &str| if bare(name) { name.to_owned() } else { toml_text(name) };
    let segments: Vec<String> = path.iter().map(|name| quote(name.as_ref())).collect();
    segments.join(".")
}

/// A value that does not fit its setting.
#[derive(Debug, PartialEq, Eq)]
pub struct Misfit {
    /// What was expected and what was found instead.
    pub message: String,
    /// What to do about it, where an example of the setting is not the best advice.
    pub hint: Option<String>,
    /// Which bytes are to blame, where that is less than the whole value.
    pub span: Option<Range<usize>>,
}

impl Misfit {
    fn new(setting: &Setting, found: &str) -> Self {
        Self {
            message: format!("expected {}, found {found}", expectation(setting.kind)),
            hint: None,
            span: None,
        }
    }
}

/// Reads a value of a file.
///
/// # Errors
/// It is not of the setting's kind, or out of its range.
pub fn from_toml(setting: &Setting, value: &DeValue<'_>) -> Result<Value, Misfit> {
    let misfit = || Misfit::new(setting, &describe(setting, value));
    match setting.kind {
        Kind::Text | Kind::AnyText | Kind::Url | Kind::Variable | Kind::Choice(_) => {
            let text = value.as_str().ok_or_else(misfit)?;
            check_text(setting, text)
        }
        Kind::Bool => value.as_bool().map(Value::Bool).ok_or_else(misfit),
        Kind::Integer(min, max) => {
            let number = value.as_integer().and_then(integer).ok_or_else(misfit)?;
            in_range(number, min, max).map(Value::Integer).ok_or_else(misfit)
        }
        Kind::Float(min, max) => {
            let number = match value {
                DeValue::Float(float) => float.as_str().parse().ok(),
                // A temperature of 1 is 1.0; nobody should have to know.
                DeValue::Integer(whole) => integer(whole).map(|whole| whole as f64),
                DeValue::String(_) | DeValue::Boolean(_) | DeValue::Datetime(_) => None,
                DeValue::Array(_) | DeValue::Table(_) => None,
            };
            let number = number.and_then(|number| in_range(number, min, max));
            number.map(Value::Float).ok_or_else(misfit)
        }
        Kind::Texts => texts(setting, value.as_array().ok_or_else(misfit)?, |_| Ok(())),
        Kind::Words(words) => {
            let check = |text: &str| {
                words
                    .contains(&text)
                    .then_some(())
                    .ok_or_else(|| unknown_word(text, words))
            };
            texts(setting, value.as_array().ok_or_else(misfit)?, check)
        }
        Kind::Rules => {
            let check = |text: &str| Rule::parse(text).map(|_| ());
            texts(setting, value.as_array().ok_or_else(misfit)?, check)
        }
    }
}

/// Reads the value of an environment variable.
///
/// # Errors
/// It is not of the setting's kind, or out of its range.
pub fn from_variable(setting: &Setting, text: &str) -> Result<Value, Misfit> {
    let misfit = || Misfit::new(setting, &format!("\"{text}\""));
    match setting.kind {
        Kind::Text | Kind::AnyText | Kind::Url | Kind::Variable | Kind::Choice(_) => check_text(setting, text),
        Kind::Bool => match text {
            "true" | "1" => Ok(Value::Bool(true)),
            "false" | "0" => Ok(Value::Bool(false)),
            _ => Err(misfit()),
        },
        Kind::Integer(min, max) => {
            let number = text.parse().ok().and_then(|number| in_range(number, min, max));
            number.map(Value::Integer).ok_or_else(misfit)
        }
        Kind::Float(min, max) => {
            let number = text.parse().ok().and_then(|number| in_range(number, min, max));
            number.map(Value::Float).ok_or_else(misfit)
        }
        Kind::Texts | Kind::Words(_) | Kind::Rules => Err(misfit()),
    }
}

/// What a kind of value looks like, to follow "expected".
pub fn expectation(kind: Kind) -> String {
    match kind {
        Kind::Text => "one line of text that is not empty".to_owned(),
        Kind::AnyText => "text".to_owned(),
        Kind::Url => "an http or https address without a user or password in it".to_owned(),
        Kind::Variable => "the name of an environment variable, not the secret it holds".to_owned(),
        Kind::Choice(words) => format!("one of {}", listed(words)),
        Kind::Words(words) => format!("a list of {}", listed(words)),
        Kind::Bool => "true or false".to_owned(),
        Kind::Integer(min, max) => format!("a whole number from {min} to {max}"),
        Kind::Float(min, max) => format!("a number from {min} to {max}"),
        Kind::Texts => "a list of texts".to_owned(),
        Kind::Rules => "a list of rules".to_owned(),
    }
}

/// Words as they are written in a file.
fn listed(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| toml_text(word)).collect();
    words.join(", ")
}

/// What is said of a word that is none of a list's, and what to do.
fn unknown_word(word: &str, words: &[&str]) -> String {
    format!("unknown word {}; known here: {}", toml_text(word), listed(words))
}

/// The candidate that was probably meant.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // The distance takes time by the product of both lengths; no key is this long.
    const WORD_CHARS_MAX: usize = 64;
    let length = word.chars().count();
    if length > WORD_CHARS_MAX {
        return None;
    }
    let lower = word.to_lowercase();
    let distance = |candidate: &str| strsim::damerau_levenshtein(&lower, &candidate.to_lowercase());
    let scored = candidates.into_iter().map(|candidate| (distance(candidate), candidate));
    let (distance, candidate) = scored.min_by_key(|(distance, _)| *distance)?;
    (distance <= (length / 3).max(1)).then_some(candidate)
}

fn check_text(setting: &Setting, text: &str) -> Result<Value, Misfit> {
    let fits = match setting.kind {
        // Put together when it is used, and judged then.
        Kind::Url if setting.key.starts_with("mcp.servers.") && text.starts_with("${") => {
            !text.contains(char::is_control)
        }
        Kind::Url => {
            return url(text)
                .map(Value::Text)
                .ok_or_else(|| Misfit::new(setting, "something else"));
        }
        Kind::Variable => is_variable(text),
        Kind::Choice(words) => words.contains(&text),
        Kind::Text => !text.trim().is_empty() && !text.contains(char::is_control),
        Kind::AnyText => true,
        Kind::Bool | Kind::Integer(..) | Kind::Float(..) | Kind::Texts | Kind::Words(_) | Kind::Rules => false,
    };
    if fits {
        return Ok(Value::Text(text.to_owned()));
    }
    // Somebody who takes `key_env` for the key must not find it in an error.
    let hidden = setting.kind == Kind::Variable || setting.secrecy == Secrecy::Secret;
    let found = if hidden {
        "something else".to_owned()
    } else {
        toml_text(text)
    };
    let mut misfit = Misfit::new(setting, &found);
    if let Kind::Choice(words) = setting.kind
        && let Some(word) = nearest(text, words.iter().copied())
    {
        misfit.hint = Some(format!("did you mean \"{word}\"?"));
    }
    Err(misfit)
}

/// The address without the slash at its end, if it is one.
fn url(text: &str) -> Option<String> {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"))?;
    let host = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let odd = |c: char| c.is_whitespace() || c.is_control() || c == '\\';
    let good = !host.is_empty() && !host.starts_with(':') && !host.contains('@') && !text.contains(odd);
    good.then(|| text.trim_end_matches('/').to_owned())
}

fn is_variable(text: &str) -> bool {
    let mut bytes = text.bytes();
    let begins = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    begins && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn integer(number: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}

fn in_range<T: PartialOrd>(number: T, min: T, max: T) -> Option<T> {
    (min <= number && number <= max).then_some(number)
}

fn texts(setting: &Setting, array: &DeArray<'_>, check: impl Fn(&str) -> Result<(), String>) -> Result<Value, Misfit> {
    let text = |item: &Spanned<DeValue<'_>>| {
        let found = || Misfit {
            message: format!("expected text, found {}", describe(setting, item.get_ref())),
            hint: None,
            span: Some(item.span()),
        };
        let text = item.get_ref().as_str().ok_or_else(found)?;
        check(text).map_err(|message| {
            // A rule that does not parse comes with advice of its own.
            let (message, hint) = match message.split_once("; ") {
                Some((message, hint)) => (message.to_owned(), Some(hint.to_owned())),
                None => (message, None),
            };
            let span = Some(item.span());
            Misfit { message, hint, span }
        })?;
        Ok(text.to_owned())
    };
    let texts: Result<Vec<String>, Misfit> = array.iter().map(text).collect();
    texts.map(Value::Texts)
}

/// What a value is, to follow "found"; never the text of a secret.
fn describe(setting: &Setting, value: &DeValue<'_>) -> String {
    /// Longer texts are not repeated in a message.
    const TEXT_CHARS_MAX: usize = 40;
    match value {
        DeValue::String(text) => {
            let hidden = setting.secrecy == Secrecy::Secret || text.chars().count() > TEXT_CHARS_MAX;
            if hidden {
                "text".to_owned()
            } else {
                format!("the text {}", toml_text(text))
            }
        }
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(yes) => yes.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::settings::{SETTINGS, find};
    use super::*;

    fn read(key: &str, text: &str) -> Result<Value, String> {
        let path: Vec<&str> = key.split('.').collect();
        let value = DeValue::parse(text).unwrap();
        from_toml(find(&path).unwrap(), value.get_ref()).map_err(|misfit| misfit.message)
    }

    /// SPEC 10.1: what is declared as default and example is of the declared kind and range.
    #[test]
    fn defaults_and_examples_fit_their_settings() {
        for setting in SETTINGS {
            for text in setting.default.into_iter().chain([setting.example]) {
                let value = DeValue::parse(text).unwrap();
                let value = from_toml(setting, value.get_ref());
                assert!(value.is_ok(), "{} = {text}: {value:?}", setting.key);
            }
        }
    }

    /// SPEC 10.1: numbers keep to their range, ends included, in any notation.
    #[test]
    fn ranges_hold_at_both_ends() {
        for (text, good) in [
            ("0", false),
            ("1", true),
            ("1000", true),
            ("1001", false),
            ("0x10", true),
            ("1_0", true),
        ] {
            assert_eq!(read("max_tool_turns", text).is_ok(), good, "{text}");
        }
        for (text, good) in [
            ("1023", false),
            ("1024", true),
            ("104857600", true),
            ("104857601", false),
        ] {
            assert_eq!(read("tools.max_output_size", text).is_ok(), good, "{text}");
        }
        for (text, good) in [
            ("-0.1", false),
            ("0", true),
            ("2.0", true),
            ("2.1", false),
            ("nan", false),
        ] {
            assert_eq!(read("models.desk.temperature", text).is_ok(), good, "{text}");
        }
        assert_eq!(
            read("max_tool_turns", "99999999999999999999").unwrap_err(),
            "expected a whole number from 1 to 1000, found 99999999999999999999"
        );
    }

    /// SPEC 10.1, 10.5: an address holds no password, and a key is not taken for a variable's name nor repeated.
    #[test]
    fn addresses_and_variables() {
        let urls = [
            ("http://127.0.0.1:8080/v1", true),
            ("https://x", true),
            ("ftp://x", false),
            ("http://", false),
            ("http://:80", false),
            ("http://me:pw@x", false),
            ("http://x y", false),
            ("localhost:8080", false),
        ];
        for (text, good) in urls {
            let value = read("models.desk.base_url", &toml_text(text));
            assert_eq!(value.is_ok(), good, "{text}");
        }
        let slash = read("models.desk.base_url", "'http://x/v1/'");
        assert_eq!(slash, Ok(Value::Text("http://x/v1".into())));
        let pasted = read("models.desk.key_env", "'sk-ant-123'").unwrap_err();
        assert!(
            pasted.contains("name of an environment variable") && !pasted.contains("sk-ant"),
            "{pasted}"
        );
    }

    /// SPEC 8.8: what cannot be seen is written so that it can, and read as what it was.
    #[test]
    fn what_cannot_be_seen_is_escaped() {
        let text = "a\u{202e}b\u{200b}c\u{9b}d\u{e0041}\n\u{7f}ü";
        let written = toml_text(text);
        assert_eq!(written, r#""a\u202eb\u200bc\u009bd\U000e0041\n\u007fü""#);
        assert_eq!(DeValue::parse(&written).unwrap().get_ref().as_str(), Some(text));
    }

    #[test]
    fn the_nearest_word_is_near() {
        assert_eq!(
            nearest("defualt_model", ["default_model", "models"]),
            Some("default_model")
        );
        assert_eq!(nearest("Auto", ["ask", "auto", "full"]), Some("auto"));
        assert_eq!(nearest("yolo", ["ask", "auto", "full"]), None);
        assert_eq!(nearest(&"x".repeat(100), ["xx"]), None);
    }

    #[test]
    fn values_are_written_as_they_are_read() {
        for text in [r#""a\"b\n\u007f""#, "true", "7", "0.2", "1.0", r#"["a", "b"]"#] {
            let key = match text.chars().next() {
                Some('"') => "mcp.servers.x.env.A",
                Some('t') => "tools.parallel",
                Some('7') => "max_tool_turns",
                Some('[') => "models.x.fallback",
                _ => "models.x.temperature",
            };
            let value = read(key, text).unwrap();
            assert_eq!(value.to_toml(), text);
            assert_eq!(read(key, &value.to_toml()).unwrap(), value);
        }
        assert_eq!(
            toml_path(&["mcp", "auto_approve", "git.*"]),
            "mcp.auto_approve.\"git.*\""
        );
    }
}
