//! Tool calls, put together from fragments.
//!
//! Servers number calls from zero, from one, not at all, or all with the same number; they send ids with the first
//! fragment, later, never, or a new one with each fragment; names whole, in pieces or again and again. This file owns
//! the one question behind all of that: does a fragment continue a call, or begin another (SPEC 7.4)? Indices are only
//! compared, never allocated for.

use crate::ReplyCall;
use crate::codec::CallFragment;
use crate::codec::names::WireNames;

/// Calls of one reply.
pub const CALLS_MAX: usize = 128;

/// Bytes of the arguments of one call: more than any tool takes.
pub const ARGUMENT_BYTES_MAX: usize = 8 << 20;

/// Bytes of a call's name.
const NAME_BYTES_MAX: usize = 1 << 10;

/// Bytes of a call's id; some gateways hide a signature in it.
const ID_BYTES_MAX: usize = 64 << 10;

/// A bound was passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallsError {
    /// Too many calls.
    #[error("the reply has more than {CALLS_MAX} tool calls")]
    TooMany,
    /// A call too long.
    #[error("a tool call is longer than {ARGUMENT_BYTES_MAX} bytes")]
    TooLong,
}

/// What a fragment did.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// Bytes that were kept.
    pub bytes: usize,
    /// The name for people, once it is sure.
    pub begun: Option<String>,
}

/// The calls of a reply so far.
#[derive(Debug, Default)]
pub struct Calls(Vec<Call>);

#[derive(Debug, Default)]
struct Call {
    index: Option<u64>,
    id: Option<String>,
    name: String,
    arguments: String,
    scan: ObjectScan,
    is_announced: bool,
}

impl Calls {
    /// True while no call has begun.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True when the arguments of every call are one whole object or nothing.
    pub fn are_whole_json(&self) -> bool {
        self.0
            .iter()
            .all(|call| call.scan.is_whole() || call.arguments.trim().is_empty())
    }

    /// The calls as they stand, in the order they began.
    pub fn into_calls(self, names: &WireNames) -> Vec<ReplyCall> {
        let calls = self.0.into_iter();
        calls
            .map(|call| ReplyCall {
                name: call.tool(names).to_owned(),
                provider_id: call.id,
                arguments: call.arguments,
            })
            .collect()
    }

    /// True when this fragment begins another call.
    pub fn begins_another(&self, fragment: &CallFragment<'_>, names: &WireNames) -> bool {
        self.continued(fragment, names).is_none() && fragment.name.is_some()
    }

    /// How many calls have begun.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes the next fragment.
    ///
    /// # Errors
    /// A bound was passed.
    pub fn add(&mut self, fragment: &CallFragment<'_>, names: &WireNames) -> Result<Added, CallsError> {
        let at = match self.continued(fragment, names) {
            Some(at) => at,
            None if fragment.id.is_none() && fragment.name.is_none() && text(fragment).is_empty() => {
                return Ok(Added::default());
            }
            None if self.0.len() == CALLS_MAX => return Err(CallsError::TooMany),
            None => {
                let name = self.repeated_name(fragment).unwrap_or_default();
                self.0.push(Call {
                    name,
                    ..Call::default()
                });
                self.0.len() - 1
            }
        };
        match self.0.get_mut(at) {
            Some(call) => call.take(fragment, names),
            None => Ok(Added::default()),
        }
    }

    /// The tool of the call that a fragment without a name follows, where that call is whole and the fragment opens another
    /// object: some gateways put the second call of a tool on the first one's index.
    fn repeated_name(&self, fragment: &CallFragment<'_>) -> Option<String> {
        let last = self.0.last().filter(|_| fragment.name.is_none())?;
        last.is_repeated_by(fragment).then(|| last.name.clone())
    }

    /// The call a fragment continues.
    fn continued(&self, fragment: &CallFragment<'_>, names: &WireNames) -> Option<usize> {
        let last = self.0.len().checked_sub(1);
        let by = |same: &dyn Fn(&Call) -> bool| self.0.iter().rposition(same);
        let by_index = fragment.index.and_then(|index| by(&|call| call.index == Some(index)));
        let by_id = || {
            fragment
                .id
                .as_deref()
                .and_then(|id| by(&|call| call.id.as_deref() == Some(id)))
        };
        let at = match (fragment.index, by_index) {
            (Some(_), Some(at)) => Some(at),
            // An index that was not there before: another call, unless its fragments began without one.
            (Some(_), None) => last
                .filter(|_| fragment.name.is_none())
                .filter(|at| self.is_unnumbered(*at)),
            // Without an index: by id; and a fragment without a name belongs to the call under way.
            (None, _) => by_id().or_else(|| last.filter(|at| self.may_go_on(*at, fragment))),
        };
        at.filter(|at| self.0.get(*at).is_some_and(|call| !call.is_over_with(fragment, names)))
    }

    fn is_unnumbered(&self, at: usize) -> bool {
        self.0.get(at).is_some_and(|call| call.index.is_none())
    }

    /// Whether a fragment without an index, whose id is unknown or missing, may continue the last call.
    fn may_go_on(&self, at: usize, fragment: &CallFragment<'_>) -> bool {
        self.0.get(at).is_some_and(|call| match fragment.name.as_deref() {
            None => true,
            Some(name) => call.name == name && (call.id.is_none() || fragment.id.is_none()),
        })
    }
}

impl Call {
    /// Whether a fragment that has this call's index or id begins another one all the same.
    fn is_over_with(&self, fragment: &CallFragment<'_>, names: &WireNames) -> bool {
        let Some(name) = fragment.name.as_deref() else {
            return self.is_repeated_by(fragment);
        };
        let is_other_tool = self.name != name && names.knows(&self.name) && names.knows(name);
        let is_other_id = match (self.id.as_deref(), fragment.id.as_deref()) {
            (Some(old), Some(new)) => old != new,
            (Some(_) | None, Some(_) | None) => false,
        };
        let opens = text(fragment).trim_start().starts_with('{');
        if is_other_tool {
            true
        } else if self.scan.is_whole() {
            self.is_repeated_by(fragment) || (is_other_id && (opens || self.name != name))
        } else {
            is_other_id && (opens || self.arguments.trim().is_empty())
        }
    }

    /// Whether a fragment opens another object behind a whole one. The same object under the same index says it again, and
    /// an empty one was only a placeholder.
    fn is_repeated_by(&self, fragment: &CallFragment<'_>) -> bool {
        let text = text(fragment);
        let is_same = text == self.arguments && fragment.index.is_some();
        self.scan.is_whole() && text.trim_start().starts_with('{') && !is_same && !self.is_placeholder()
    }

    fn is_placeholder(&self) -> bool {
        self.arguments.trim() == "{}"
    }

    fn take(&mut self, fragment: &CallFragment<'_>, names: &WireNames) -> Result<Added, CallsError> {
        let mut added = Added::default();
        self.index = self.index.or(fragment.index);
        if let (None, Some(id)) = (&self.id, &fragment.id) {
            if id.len() > ID_BYTES_MAX {
                return Err(CallsError::TooLong);
            }
            added.bytes += id.len();
            self.id = Some(id.to_string());
        }
        if let Some(name) = fragment.name.as_deref() {
            added.bytes += self.take_name(name, names)?;
        }
        let arguments = text(fragment);
        // Some servers repeat the whole text with their last fragment.
        if !(arguments.is_empty() || self.scan.is_whole() && arguments == self.arguments) {
            if self.arguments.len() + arguments.len() > ARGUMENT_BYTES_MAX {
                return Err(CallsError::TooLong);
            }
            if self.is_placeholder() && arguments.trim_start().starts_with('{') {
                self.arguments.clear();
            }
            self.arguments.push_str(arguments);
            self.scan.feed(arguments);
            added.bytes += arguments.len();
        }
        // A name may come in pieces: it is sure when it names a tool or the arguments have begun.
        let is_sure = !self.name.is_empty() && (names.knows(&self.name) || !self.arguments.is_empty());
        if is_sure && !self.is_announced {
            self.is_announced = true;
            added.begun = Some(self.tool(names).to_owned());
        }
        Ok(added)
    }

    /// The tool as people name it. Tokens of a model's template may hang on the name: `glob<|channel|>commentary`.
    fn tool<'n>(&'n self, names: &'n WireNames) -> &'n str {
        let before_token = self.name.split('<').next().unwrap_or_default().trim_end();
        if !names.knows(&self.name) && names.knows(before_token) {
            return names.people(before_token);
        }
        names.people(&self.name)
    }

    /// Sets or completes the name; returns the bytes kept.
    fn take_name(&mut self, name: &str, names: &WireNames) -> Result<usize, CallsError> {
        let is_piece = || {
            // Repeated names are common, names in pieces are rare: join only what makes sense joined.
            self.arguments.is_empty()
                && self.name != name
                && (names.knows(&format!("{}{name}", self.name)) || !names.knows(&self.name))
        };
        if !(self.name.is_empty() || is_piece()) {
            return Ok(0);
        }
        if self.name.len() + name.len() > NAME_BYTES_MAX {
            return Err(CallsError::TooLong);
        }
        self.name.push_str(name);
        Ok(name.len())
    }
}

fn text<'f>(fragment: &'f CallFragment<'_>) -> &'f str {
    fragment.arguments.as_deref().unwrap_or_default()
}

/// Watches an object go by and says whether it is closed, looking at each byte once. It judges brackets and strings
/// only, which is enough to tell a whole text from a cut one.
#[derive(Debug, Default)]
struct ObjectScan {
    depth: usize,
    has_opened: bool,
    in_string: bool,
    after_backslash: bool,
}

impl ObjectScan {
    fn feed(&mut self, text: &str) {
        for byte in text.bytes() {
            if self.in_string {
                match byte {
                    _ if self.after_backslash => self.after_backslash = false,
                    b'\\' => self.after_backslash = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => {
                    self.depth += 1;
                    self.has_opened = true;
                }
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    fn is_whole(&self) -> bool {
        self.has_opened && self.depth == 0 && !self.in_string
    }
}
