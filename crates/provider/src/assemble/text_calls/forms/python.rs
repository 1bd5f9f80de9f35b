//! Calls as Python writes them: `[f(a=1, b="x"), g()]`, or one a line in a `tool_code` block. Arguments are named and
//! literals; whatever would have to be computed is no call.

use super::super::reader::{Miss, Optional, Parsed, Reader};
use super::Calls;
use serde_json::{Map, Number, Value};

/// Lists and dictionaries within each other.
const DEPTH_MAX: usize = 32;

/// What Gemini's and Gemma's prompts call the module of the tools.
const MODULE: &str = "default_api.";

impl Calls<'_> {
    /// `[f(a=1), g()]`, behind its bracket, if it is the whole reply.
    pub(super) fn python_list(&mut self) -> Parsed<()> {
        self.python_items()?;
        self.is_all()
    }

    /// The same between tokens; some write JSON there.
    pub(super) fn python_until(&mut self, close: &str) -> Parsed<()> {
        self.reader.spaces();
        let begin = self.reader;
        if self.reader.choice(["[", "{"])? == 1 || self.reader.rest.trim_start().starts_with('{') {
            self.reader = begin;
            return self.json_until(close);
        }
        self.python_items()?;
        self.reader.close(&[close])
    }

    /// A fenced block of calls, one a line, if it is the last of the reply.
    pub(super) fn tool_code(&mut self) -> Parsed<()> {
        self.reader.token("\n")?;
        loop {
            self.reader.spaces();
            match self.reader.optional(&["["])? {
                Optional::There => self.python_items()?,
                Optional::Missing => self.python_call()?,
            }
            self.reader.spaces();
            match self.reader.token("```") {
                Ok(()) => return self.is_all(),
                Err(Miss::NotYet) => return Err(Miss::NotYet),
                Err(Miss::Never) => {}
            }
        }
    }

    /// Calls up to the bracket that ends their list.
    fn python_items(&mut self) -> Parsed<()> {
        loop {
            self.reader.spaces();
            self.python_call()?;
            self.reader.spaces();
            if self.reader.choice([",", "]"])? == 1 {
                return Ok(());
            }
        }
    }

    fn python_call(&mut self) -> Parsed<()> {
        let name = self.reader.name()?;
        let tool = self.tools.declared(name.strip_prefix(MODULE).unwrap_or(name));
        let tool = tool.ok_or(Miss::Never)?;
        self.reader.token("(")?;
        let mut arguments = Map::new();
        loop {
            self.reader.spaces();
            if self.reader.optional(&[")"])? == Optional::There {
                break;
            }
            let key = self.reader.name()?;
            self.reader.spaces();
            self.reader.token("=")?;
            let value = literal(&mut self.reader, 0)?;
            if arguments.insert(key.to_owned(), value).is_some() {
                return Err(Miss::Never);
            }
            self.reader.spaces();
            if self.reader.choice([",", ")"])? == 1 {
                break;
            }
        }
        self.add_all(tool, arguments);
        Ok(())
    }
}

fn literal(reader: &mut Reader<'_>, depth: usize) -> Parsed<Value> {
    reader.spaces();
    let first = reader.rest.chars().next().ok_or(Miss::NotYet)?;
    match first {
        '"' | '\'' => string(reader).map(Value::from),
        '[' | '{' if depth == DEPTH_MAX => Err(Miss::Never),
        '[' => {
            reader.token("[")?;
            list(reader, depth)
        }
        '{' => {
            reader.token("{")?;
            dictionary(reader, depth)
        }
        _ => word(reader),
    }
}

fn list(reader: &mut Reader<'_>, depth: usize) -> Parsed<Value> {
    let mut items = Vec::new();
    loop {
        reader.spaces();
        if reader.optional(&["]"])? == Optional::There {
            return Ok(Value::Array(items));
        }
        items.push(literal(reader, depth + 1)?);
        reader.spaces();
        if reader.choice([",", "]"])? == 1 {
            return Ok(Value::Array(items));
        }
    }
}

fn dictionary(reader: &mut Reader<'_>, depth: usize) -> Parsed<Value> {
    let mut fields = Map::new();
    loop {
        reader.spaces();
        if reader.optional(&["}"])? == Optional::There {
            return Ok(Value::Object(fields));
        }
        let key = string(reader)?;
        reader.spaces();
        reader.token(":")?;
        fields.insert(key, literal(reader, depth + 1)?);
        reader.spaces();
        if reader.choice([",", "}"])? == 1 {
            return Ok(Value::Object(fields));
        }
    }
}

/// A number or one of the constants. What ends it must be there: more of it may come.
fn word(reader: &mut Reader<'_>) -> Parsed<Value> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let bytes = reader.rest.find(|c| !is_word(c)).ok_or(Miss::NotYet)?;
    let (word, rest) = reader.rest.split_at_checked(bytes).ok_or(Miss::Never)?;
    let value = match word {
        "True" | "true" => Value::Bool(true),
        "False" | "false" => Value::Bool(false),
        "None" | "null" => Value::Null,
        number => Value::Number(number.parse::<Number>().map_err(|_| Miss::Never)?),
    };
    reader.rest = rest;
    Ok(value)
}

/// A string in either quotation marks. Escapes that JSON lacks, three quotation marks and lines in a string are left to
/// people: what they come to is no guess to run.
fn string(reader: &mut Reader<'_>) -> Parsed<String> {
    let mark = reader.choice(["\"", "'"])?;
    let mark = if mark == 0 { '"' } else { '\'' };
    let mut text = String::new();
    let mut letters = reader.rest.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\n' => return Err(Miss::Never),
            '\\' => text.push(match letters.next().ok_or(Miss::NotYet)?.1 {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                plain @ ('\\' | '"' | '\'') => plain,
                _ => return Err(Miss::Never),
            }),
            end if end == mark => {
                reader.rest = reader.rest.get(at + letter.len_utf8()..).unwrap_or_default();
                let is_doubled = text.is_empty() && reader.rest.starts_with(mark);
                return if is_doubled { Err(Miss::Never) } else { Ok(text) };
            }
            other => text.push(other),
        }
    }
    Err(Miss::NotYet)
}
