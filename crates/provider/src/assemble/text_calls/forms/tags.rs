//! Calls between tags: objects, functions with parameters, keys with values.

use super::super::Callable;
use super::super::reader::{Miss, Parsed};
use super::Calls;
use serde_json::{Map, Value};

impl Calls<'_> {
    /// What stands between tags: objects, functions, or a name with keys and values.
    pub(super) fn tagged(&mut self, close: &'static str) -> Parsed<()> {
        self.reader.spaces();
        match self.reader.rest.chars().next() {
            None => return Err(Miss::NotYet),
            Some('{' | '[') => {
                self.json()?;
                return self.reader.close(&[close]);
            }
            Some('<') => self.reader.token("<function=")?,
            Some(_) => return self.keys_and_values(close),
        }
        loop {
            self.function()?;
            if self.reader.choice(["<function=", close])? == 1 {
                return Ok(());
            }
        }
    }

    pub(super) fn keys_and_values(&mut self, close: &str) -> Parsed<()> {
        let tool = self.reader.name()?;
        let tool = self.tools.declared(tool).ok_or(Miss::Never)?;
        let mut arguments = Map::new();
        self.reader.spaces();
        while self.reader.choice(["<arg_key>", close])? == 0 {
            let key = self.reader.until("</arg_key>")?.trim();
            self.reader.spaces();
            self.reader.token("<arg_value>")?;
            let value = self.reader.until("</arg_value>")?;
            arguments.insert(key.to_owned(), typed(tool, key, value));
            self.reader.spaces();
        }
        self.add_all(tool, arguments);
        Ok(())
    }

    pub(super) fn function_alone(&mut self) -> Parsed<()> {
        self.function()?;
        // Qwen3-Coder forgets the tag before, not the one behind.
        self.reader.optional(&["</tool_call>"]).map(drop)
    }

    /// `name>{…}</function>` or `name><parameter=x>…</parameter></function>`.
    pub(super) fn function(&mut self) -> Parsed<()> {
        let name = self.reader.until(">")?.trim_matches(['"', '\'', ' ']);
        self.reader.spaces();
        if self.reader.rest.starts_with('{') {
            let arguments = self.reader.json()?;
            self.add(name, arguments)?;
            self.reader.close(&["</function>"])?;
        } else {
            let tool = self.tools.declared(name).ok_or(Miss::Never)?;
            let mut arguments = Map::new();
            loop {
                self.reader.spaces();
                if self.reader.choice(["<parameter=", "</function>"])? == 1 {
                    break;
                }
                let key = self.reader.until(">")?.trim_matches(['"', '\'', ' ']);
                let value = self.reader.until("</parameter>")?;
                arguments.insert(key.to_owned(), typed(tool, key, value));
            }
            self.add_all(tool, arguments);
        }
        self.reader.spaces();
        Ok(())
    }

    /// `<invoke name="…"><parameter name="…" string="true">…</parameter></invoke>…`, their names behind a prefix.
    pub(super) fn invokes(&mut self, prefix: &str, close: &str) -> Parsed<()> {
        let tags = ["invoke name=\"", "/invoke>", "parameter name=\"", "/parameter>"];
        let [invoke, invoked, parameter, parameter_end] = tags.map(|tag| match tag.strip_prefix('/') {
            Some(tag) => format!("</{prefix}{tag}"),
            None => format!("<{prefix}{tag}"),
        });
        self.reader.spaces();
        self.reader.token(&invoke)?;
        loop {
            let tool = self.reader.until("\">")?;
            let tool = self.tools.declared(tool).ok_or(Miss::Never)?;
            let mut arguments = Map::new();
            loop {
                self.reader.spaces();
                if self.reader.choice([&parameter, &invoked])? == 1 {
                    break;
                }
                let key = self.reader.until("\"")?;
                let is_text = self.reader.until(">")?.contains("string=\"true\"");
                let value = self.reader.until(&parameter_end)?;
                let value = if is_text {
                    Value::from(value)
                } else {
                    typed(tool, key, value)
                };
                arguments.insert(key.to_owned(), value);
            }
            self.add_all(tool, arguments);
            self.reader.spaces();
            if self.reader.choice([&invoke, close])? == 1 {
                return Ok(());
            }
        }
    }
}

/// A value that stands between tags, where nothing says of what type it is: text where the tool wants text, else what it
/// reads as.
fn typed(tool: &Callable, key: &str, value: &str) -> Value {
    let value = value.strip_prefix('\n').unwrap_or(value);
    let value = value.strip_suffix('\n').unwrap_or(value);
    if tool.texts.iter().any(|name| name == key) {
        return Value::from(value);
    }
    match serde_json::from_str(value) {
        Ok(Value::String(_)) | Err(_) => Value::from(value),
        Ok(other) => other,
    }
}
