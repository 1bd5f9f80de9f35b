//! Calls behind the tokens of a model's own template, which a server let through as text.

use super::super::reader::{Miss, Optional, Parsed, Reader};
use super::Calls;

impl Calls<'_> {
    pub(super) fn python_tag(&mut self) -> Parsed<()> {
        self.json()?;
        self.reader.spaces();
        while self.reader.optional(&[";"])? == Optional::There {
            self.json()?;
            self.reader.spaces();
        }
        Ok(())
    }

    pub(super) fn mistral(&mut self) -> Parsed<()> {
        self.reader.spaces();
        if self.reader.rest.starts_with(['{', '[']) {
            return self.json();
        }
        let name = self.reader.name()?;
        if !self.reader.rest.starts_with('{') && self.reader.choice(["[ARGS]", "[CALL_ID]"])? == 1 {
            self.reader.until("[ARGS]")?;
        }
        let arguments = self.reader.json()?;
        self.add(name, arguments)
    }

    pub(super) fn deepseek(&mut self, bar: char) -> Parsed<()> {
        let token = |words: &str| format!("<{bar}{words}{bar}>");
        let [begin, separator] = ["tool▁call▁begin", "tool▁sep"].map(token);
        let [end, all_end] = ["tool▁call▁end", "tool▁calls▁end"].map(token);
        self.reader.spaces();
        self.reader.token(&begin)?;
        loop {
            let mut name = self.reader.until(&separator)?.trim();
            let is_fenced = name == "function";
            if is_fenced {
                name = self.reader.until("\n")?;
                self.reader.spaces();
                self.reader.token("```")?;
                self.reader.until("\n")?;
            }
            let arguments = self.reader.json()?;
            self.add(name, arguments)?;
            if is_fenced {
                self.reader.spaces();
                self.reader.token("```")?;
            }
            self.reader.close(&[&end])?;
            self.reader.spaces();
            if self.reader.is_empty() || self.reader.choice([&begin, &all_end])? == 1 {
                return Ok(());
            }
        }
    }

    pub(super) fn kimi(&mut self) -> Parsed<()> {
        self.reader.spaces();
        self.reader.token("<|tool_call_begin|>")?;
        loop {
            let id = self.reader.until("<|tool_call_argument_begin|>")?;
            // `functions.name:0`
            let name = id.trim().rsplit_once(':').map_or(id, |(name, _)| name);
            let arguments = self.reader.json()?;
            self.add(name, arguments)?;
            self.reader.close(&["<|tool_call_end|>"])?;
            self.reader.spaces();
            let next = ["<|tool_call_begin|>", "<|tool_calls_section_end|>"];
            if self.reader.is_empty() || self.reader.choice(next)? == 1 {
                return Ok(());
            }
        }
    }

    /// The header of a message, which names who it is for, and the message.
    pub(super) fn harmony(&mut self) -> Parsed<()> {
        let header = self.reader.until("<|message|>")?;
        let (_, name) = header.split_once("to=functions.").ok_or(Miss::Never)?;
        let name = Reader {
            rest: &format!("{name} "),
        }
        .name()?
        .to_owned();
        let arguments = self.reader.json()?;
        self.add(&name, arguments)?;
        self.reader.spaces();
        self.reader.optional(&["<|call|>"]).map(drop)
    }
}
