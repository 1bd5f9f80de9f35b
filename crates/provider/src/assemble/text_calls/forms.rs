//! The forms in which models write calls, as one table.
//!
//! | form | whose |
//! |---|---|
//! | `<tool_call>{"name","arguments"}</tool_call>`, `<tools>`, `<function_call>` | Hermes, Qwen; Qwen2.5-Coder |
//! | `<tool_call>name<arg_key>…</arg_key><arg_value>…</arg_value></tool_call>` | GLM |
//! | `<tool_call><function=name><parameter=x>…</parameter></function></tool_call>` | Qwen3-Coder |
//! | `<function=name>{…}</function>` | Llama 3.1 |
//! | <code><&#124;python_tag&#124;>{"name","parameters"}; {…}</code> | Llama 3 |
//! | `[TOOL_CALLS][{…}]`, `[TOOL_CALLS]name{…}`, `[TOOL_CALLS]name[ARGS]{…}` | Mistral |
//! | <code><&#124;tool_call&#124;>[{…}]</code>, `functools[{…}]` | Granite, Phi-4 |
//! | `<｜tool▁calls▁begin｜>…` | DeepSeek V3, R1 |
//! | `<｜DSML｜function_calls><｜DSML｜invoke name="…">…` | DeepSeek V3.2 |
//! | <code><&#124;tool_calls_section_begin&#124;>…</code> | Kimi K2 |
//! | <code><&#124;channel&#124;>commentary to=functions.name<&#124;message&#124;>{…}<&#124;call&#124;></code> | gpt-oss |
//! | `<minimax:tool_call><invoke name="…">…`, `<function_calls><invoke …>` | MiniMax |
//! | <code><&#124;tool_call_start&#124;>[name(x="…")]<&#124;tool_call_end&#124;></code> | LFM2 |
//! | `[name(x="…"), …]`, as the whole reply | Llama 4, Llama 3.2 |
//! | a block fenced as `tool_code`, `name(x="…")` in each line, as the last of the reply | Gemma |
//! | `[call: name]` and an object | our own words for earlier calls (SPEC 7.5) |
//! | `{"name","arguments"}`, a list of them, or one fenced block of them, as the whole reply | Llama, xLAM, small models |

use super::reader::{Miss, Optional, Parsed, Reader};
use super::{Callable, Tools};
use crate::ReplyCall;
use crate::assemble::calls::CALLS_MAX;
use crate::assemble::lines::Place;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;

mod python;
mod tags;
mod tokens;

/// A form: what it begins with, where that may stand, and what reads the rest.
struct Form {
    open: &'static str,
    place: Place,
    read: fn(&mut Calls<'_>) -> Parsed<()>,
}

const fn form(place: Place, open: &'static str, read: fn(&mut Calls<'_>) -> Parsed<()>) -> Form {
    Form { open, place, read }
}

const FORMS: &[Form] = &[
    form(Place::Line, "<tool_call>", |calls| calls.tagged("</tool_call>")),
    form(Place::Line, "<function_call>", |calls| calls.tagged("</function_call>")),
    form(Place::Line, "<tools>", |calls| calls.tagged("</tools>")),
    form(Place::Line, "<function=", |calls| calls.function_alone()),
    form(Place::Line, "<function_calls>", |calls| {
        calls.invokes("", "</function_calls>")
    }),
    form(Place::Line, "<minimax:tool_call>", |calls| {
        calls.invokes("", "</minimax:tool_call>")
    }),
    form(Place::Line, "functools", |calls| calls.json()),
    form(Place::Line, "[call: ", |calls| calls.ours()),
    form(Place::Anywhere, "[TOOL_CALLS]", |calls| calls.mistral()),
    form(Place::Anywhere, "<|python_tag|>", |calls| calls.python_tag()),
    form(Place::Anywhere, "<|tool_call|>", |calls| {
        calls.json_until("<|/tool_call|>")
    }),
    form(Place::Anywhere, "<｜tool▁calls▁begin｜>", |calls| {
        calls.deepseek('｜')
    }),
    form(Place::Anywhere, "<|tool▁calls▁begin|>", |calls| calls.deepseek('|')),
    form(Place::Anywhere, "<｜DSML｜function_calls>", |calls| {
        calls.invokes("｜DSML｜", "</｜DSML｜function_calls>")
    }),
    form(Place::Anywhere, "<|tool_calls_section_begin|>", |calls| calls.kimi()),
    form(Place::Anywhere, "<|tool_call_start|>", |calls| {
        calls.python_until("<|tool_call_end|>")
    }),
    form(Place::Anywhere, "<|start|>assistant", |calls| calls.harmony()),
    form(Place::Anywhere, "<|channel|>commentary", |calls| calls.harmony()),
    form(Place::Line, "```tool_code", |calls| calls.tool_code()),
    form(Place::Reply, "```", |calls| calls.fenced()),
    form(Place::Reply, "{", |calls| calls.bare()),
    form(Place::Reply, "[", |calls| calls.bare()),
    form(Place::Reply, "[", |calls| calls.python_list()),
];

/// Tokens that may stand behind the last call, when a server lets them through.
const ENDS: &[&str] = &[
    "<|eom_id|>",
    "<|eot_id|>",
    "<|eot|>",
    "<|im_end|>",
    "<|end|>",
    "</s>",
    "<｜end▁of▁sentence｜>",
];

/// The keys that an object without any markup around it begins with when it is a call.
const FIRST_KEYS: &[&str] = &[
    "\"name\"",
    "\"tool_name\"",
    "\"arguments\"",
    "\"parameters\"",
    "\"type\"",
    "\"id\"",
    "\"function\"",
    "\"tool_calls\"",
];

/// True where a form may begin with this text, as far as it is there.
pub(super) fn may_begin(text: &str, place: Place) -> bool {
    FORMS
        .iter()
        .any(|form| form.place <= place && (text.starts_with(form.open) || form.open.starts_with(text)))
}

/// Reads a text that is nothing but calls.
pub(super) fn read(text: &str, place: Place, tools: Tools<'_>) -> Parsed<Vec<ReplyCall>> {
    let mut calls = Calls {
        reader: Reader { rest: text },
        from: text,
        tools,
        found: Vec::new(),
    };
    let mut place = place;
    loop {
        calls.one(place)?;
        if calls.found.len() > CALLS_MAX {
            return Err(Miss::Never);
        }
        calls.reader.spaces();
        while calls.reader.optional(ENDS)? == Optional::There {
            calls.reader.spaces();
        }
        if calls.reader.is_empty() {
            return if calls.found.is_empty() {
                Err(Miss::Never)
            } else {
                Ok(calls.found)
            };
        }
        place = Place::Line;
    }
}

/// The calls read so far, and the rest of the text.
struct Calls<'t> {
    reader: Reader<'t>,
    /// The same, before what the form under way begins with.
    from: &'t str,
    tools: Tools<'t>,
    found: Vec<ReplyCall>,
}

/// A call as an object; models disagree about the keys.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Written<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    tool_name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    function: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    parameters: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_calls: Option<&'a RawValue>,
}

/// Whether a call may have no arguments at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Without {
    /// It may: its markup says that it is one.
    Arguments,
    /// Nothing else says that it is one.
    Nothing,
}

impl<'t> Calls<'t> {
    /// Reads what one form holds: the first form that fits.
    fn one(&mut self, place: Place) -> Parsed<()> {
        let (start, count) = (self.reader, self.found.len());
        let mut miss = Miss::Never;
        for form in FORMS.iter().filter(|form| form.place <= place) {
            self.reader = start;
            self.from = start.rest;
            self.found.truncate(count);
            match self.reader.token(form.open).and_then(|()| (form.read)(self)) {
                Ok(()) => return Ok(()),
                Err(Miss::NotYet) => miss = Miss::NotYet,
                Err(Miss::Never) => {}
            }
        }
        Err(miss)
    }

    /// Adds a call whose arguments are JSON.
    fn add(&mut self, name: &str, arguments: &str) -> Parsed<()> {
        let tool = self.tools.declared(name).ok_or(Miss::Never)?;
        self.found.push(ReplyCall {
            provider_id: None,
            name: tool.name.clone(),
            arguments: object(arguments).ok_or(Miss::Never)?.into_owned(),
        });
        Ok(())
    }

    fn add_all(&mut self, tool: &Callable, arguments: Map<String, Value>) {
        self.found.push(ReplyCall {
            provider_id: None,
            name: tool.name.clone(),
            arguments: Value::Object(arguments).to_string(),
        });
    }

    /// One object, or a list of them.
    fn json(&mut self) -> Parsed<()> {
        let value = self.reader.json()?;
        self.value(value, Without::Arguments)
    }

    fn json_until(&mut self, close: &str) -> Parsed<()> {
        self.json()?;
        self.reader.spaces();
        self.reader.optional(&[close]).map(drop)
    }

    fn value(&mut self, value: &str, without: Without) -> Parsed<()> {
        if value.starts_with('[') {
            let list: Vec<&RawValue> = serde_json::from_str(value).map_err(|_| Miss::Never)?;
            if list.is_empty() {
                return Err(Miss::Never);
            }
            return list.into_iter().try_for_each(|item| self.value(item.get(), without));
        }
        let written: Written<'_> = serde_json::from_str(value).map_err(|_| Miss::Never)?;
        if let Some(calls) = written.tool_calls {
            return self.value(calls.get(), without);
        }
        let arguments = written.arguments.or(written.parameters).map(RawValue::get);
        let function = written.function.map(RawValue::get).unwrap_or_default();
        if function.starts_with('{') {
            let inner: Written<'_> = serde_json::from_str(function).map_err(|_| Miss::Never)?;
            let arguments = inner.arguments.or(inner.parameters).map(RawValue::get).or(arguments);
            return self.named(inner.name.as_deref(), arguments, without);
        }
        let by_function: Option<String> = serde_json::from_str(function).ok();
        let name = written.name.or(written.tool_name).or(by_function.map(Cow::Owned));
        self.named(name.as_deref(), arguments, without)
    }

    fn named(&mut self, name: Option<&str>, arguments: Option<&str>, without: Without) -> Parsed<()> {
        match (name, arguments, without) {
            (Some(name), Some(arguments), _) => self.add(name, arguments),
            (Some(name), None, Without::Arguments) => self.add(name, "{}"),
            (Some(_), None, Without::Nothing) | (None, _, _) => Err(Miss::Never),
        }
    }

    /// Our own words for an earlier call, which models that were told of one repeat.
    fn ours(&mut self) -> Parsed<()> {
        let name = self.reader.until("]")?;
        let arguments = self.reader.json()?;
        self.add(name, arguments)
    }

    /// One fenced block, if it is the whole reply.
    fn fenced(&mut self) -> Parsed<()> {
        let language = self.reader.until("\n")?.trim();
        if !["", "json", "tool_call", "tool_calls", "tool_code"].contains(&language) {
            return Err(Miss::Never);
        }
        loop {
            self.reader.spaces();
            self.object_or_list()?;
            self.reader.spaces();
            match self.reader.token("```") {
                Ok(()) => return self.is_all(),
                Err(Miss::NotYet) => return Err(Miss::NotYet),
                Err(Miss::Never) => {}
            }
        }
    }

    /// Objects or a list without any markup, if they are the whole reply.
    fn bare(&mut self) -> Parsed<()> {
        self.reader = Reader { rest: self.from };
        self.object_or_list()?;
        self.is_all()
    }

    fn object_or_list(&mut self) -> Parsed<()> {
        // Looked at first, so that other JSON is shown while it comes.
        let mut ahead = self.reader;
        ahead.optional(&["["])?;
        ahead.spaces();
        ahead.token("{")?;
        ahead.spaces();
        ahead.one_of(FIRST_KEYS)?;
        let value = self.reader.json()?;
        self.value(value, Without::Nothing)
    }

    fn is_all(&mut self) -> Parsed<()> {
        self.reader.spaces();
        if self.reader.is_empty() {
            Ok(())
        } else {
            Err(Miss::Never)
        }
    }
}

/// Arguments as an object; some models write them as a string, as they are on the wire.
fn object(arguments: &str) -> Option<Cow<'_, str>> {
    match arguments.as_bytes().first()? {
        b'{' => Some(Cow::Borrowed(arguments)),
        b'n' => Some(Cow::Borrowed("{}")),
        b'"' => {
            let inner: String = serde_json::from_str(arguments).ok()?;
            let _checked: Map<String, Value> = serde_json::from_str(&inner).ok()?;
            Some(Cow::Owned(inner))
        }
        _ => None,
    }
}
