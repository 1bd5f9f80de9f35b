//! `file_edit`: replace exact text in a file, once or everywhere, and show the difference.
//!
//! What the edit does not name stays as it was, byte for byte: encoding, mark, line ends, mode. Models write `\n`; in a
//! file of `\r\n` lines that means `\r\n`.

use super::atomic;
use super::text::{Encoding, SAMPLE_BYTES};
use super::{counted, refuse_redacted, text_argument};
use crate::capture::Capture;
use crate::open::regular_file;
use crate::path::{io_message, require_regular, resolve};
use crate::work::{CANCELLED, Stop, run_blocking};
use crate::{Cancel, Progress, Tool, ToolContext, ToolOutput, inspect_and_run, touched_path};
use aish_core::action::{Action, Effect};
use aish_core::message::ToolSpec;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::{Value, json};
use similar::TextDiff;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

/// The largest file that is edited; it is held in memory whole.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Unchanged lines shown around a change.
const DIFF_CONTEXT_LINES: usize = 3;
/// When the search for the smallest difference gives way to any difference.
const DIFF_TIME_MS: u64 = 300;

/// Edits a file.
pub struct FileEditTool {
    spec: ToolSpec,
}

#[derive(Serialize)]
struct Edited {
    output: String,
    replacements: usize,
}

/// An edit as asked for.
struct Edit {
    shown: String,
    old: String,
    new: String,
    scope: Scope,
}

/// How many places are meant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// Exactly one, or it is an error.
    Once,
    /// Every one.
    All,
}

impl FileEditTool {
    /// The tool.
    pub fn new() -> Self {
        Self {
            spec: ToolSpec {
                name: "file_edit".into(),
                description:
                    "Replace text in a file. old must match the file exactly and occur once; include lines around \
                              it to make it unique, or set all."
                        .into(),
                input_schema: json!({
                    "type": "object",
                    "properties": {
                        "path": {"type": "string", "description": "File path"},
                        "old": {"type": "string", "description": "Exact text to replace, whitespace included"},
                        "new": {"type": "string", "description": "Text to put there"},
                        "all": {"type": "boolean", "description": "Replace every occurrence"},
                    },
                    "required": ["path", "old", "new"],
                    "additionalProperties": false,
                }),
            },
        }
    }

    /// The edit that is asked for, once nothing in it speaks against it.
    fn edit(arguments: &Value) -> Result<Edit, String> {
        let shown = text_argument(arguments, "path")?;
        let old = text_argument(arguments, "old")?;
        let new = text_argument(arguments, "new")?;
        refuse_redacted("new", new)?;
        refuse_redacted("old", old)?;
        if old.is_empty() {
            return Err("Parameter old must not be empty; to make a file use file_write".to_owned());
        }
        if old == new {
            return Err("Parameters old and new are the same: nothing to change".to_owned());
        }
        let scope = match arguments.get("all").and_then(Value::as_bool) {
            Some(true) => Scope::All,
            Some(false) | None => Scope::Once,
        };
        Ok(Edit {
            shown: shown.to_owned(),
            old: old.to_owned(),
            new: new.to_owned(),
            scope,
        })
    }
}

impl Default for FileEditTool {
    fn default() -> Self {
        Self::new()
    }
}

impl Tool for FileEditTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn inspect(&self, arguments: &Value, context: &ToolContext) -> Result<Action, String> {
        let edit = Self::edit(arguments)?;
        let path = resolve(&edit.shown, context)?;
        require_regular(&path, &edit.shown)?;
        Ok(Action {
            tool: self.spec.name.clone(),
            arguments: arguments.clone(),
            effects: vec![Effect::Read { path: path.clone() }, Effect::Write { path }],
        })
    }

    fn run<'a>(
        &'a self,
        arguments: &'a Value,
        context: &'a ToolContext,
        progress: &'a dyn Progress,
        cancel: Cancel,
    ) -> BoxFuture<'a, ToolOutput> {
        Box::pin(inspect_and_run(self, arguments, context, progress, cancel))
    }

    fn run_inspected<'a>(
        &'a self,
        action: &'a Action,
        arguments: &'a Value,
        context: &'a ToolContext,
        _progress: &'a dyn Progress,
        cancel: Cancel,
    ) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let (path, edit) = match Self::edit(arguments).and_then(|edit| Ok((touched_path(action)?, edit))) {
                Ok(named) => named,
                Err(message) => return ToolOutput::error(message),
            };
            let bytes_max = context.output_bytes_max;
            run_blocking(cancel, move |stop| {
                edit_file(&path, &edit, bytes_max, stop).unwrap_or_else(ToolOutput::error)
            })
            .await
        })
    }
}

fn edit_file(path: &Path, edit: &Edit, bytes_max: usize, stop: &Stop) -> Result<ToolOutput, String> {
    let shown = &edit.shown;
    let (mut file, size) = regular_file(path, shown)?;
    if size > FILE_BYTES_MAX {
        return Err(format!(
            "File too large to edit: {shown} ({size} bytes, at most {FILE_BYTES_MAX})"
        ));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)
        .map_err(|error| io_message(shown, &error))?;
    let not_text = |what: &str| format!("Not a text file: {shown} ({} bytes, {what})", bytes.len());
    let sample = bytes.get(..SAMPLE_BYTES).unwrap_or(&bytes);
    let encoding = Encoding::detect(sample).map_err(|what| not_text(what.0))?;
    // Text that cannot be decoded and encoded back to the same bytes would be changed beyond the edit.
    let before = encoding
        .decode(&bytes)
        .filter(|text| encoding.encode(text).as_deref() == Some(&bytes))
        .ok_or_else(|| not_text("mixed encodings"))?;
    let (after, replacements) = apply(&before, edit)?;
    let encoded = encoding
        .encode(&after)
        .ok_or_else(|| format!("Parameter new has characters that the encoding of {shown} (Windows-1252) lacks"))?;
    let diff = unified_diff(&before, &after, shown);
    if stop.is_set() {
        return Err(CANCELLED.to_owned());
    }
    atomic::write(path, shown, &encoded)?;
    let output = serde_json::to_string(&Edited {
        output: Capture::of(&diff, bytes_max).finish(),
        replacements,
    });
    Ok(ToolOutput {
        output: output.unwrap_or_default(),
        summary: format!("{} in {shown}", counted(replacements as u64, "replacement")),
        success: true,
    })
}

/// The text after the edit, and how many places changed.
fn apply(before: &str, edit: &Edit) -> Result<(String, usize), String> {
    let (old, new) = with_line_ends(before, &edit.old, &edit.new);
    let count = before.matches(old.as_str()).count();
    match (count, edit.scope) {
        (0, Scope::Once | Scope::All) => Err(not_found(before, edit)),
        (1, Scope::Once) => Ok((before.replacen(old.as_str(), &new, 1), 1)),
        (_, Scope::All) => Ok((before.replace(old.as_str(), &new), count)),
        (_, Scope::Once) => Err(format!(
            "Text occurs {count} times in {}: add lines around it to old to make it unique, or set all",
            edit.shown
        )),
    }
}

/// Old and new with the line ends of the file: `\r\n` where the file has it and the model wrote `\n`.
fn with_line_ends(before: &str, old: &str, new: &str) -> (String, String) {
    let crlf = |text: &str| text.replace("\r\n", "\n").replace('\n', "\r\n");
    let has_crlf = before.contains("\r\n");
    let is_all_crlf = has_crlf && before.matches('\n').count() == before.matches("\r\n").count();
    if is_all_crlf {
        return (crlf(old), crlf(new));
    }
    if has_crlf && !old.contains('\r') && old.contains('\n') && !before.contains(old) {
        return (crlf(old), crlf(new));
    }
    (old.to_owned(), new.to_owned())
}

/// Says that the text is not there, and where something is that differs from it only in white space.
fn not_found(before: &str, edit: &Edit) -> String {
    let shown = &edit.shown;
    let first = edit
        .old
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    let near = before
        .lines()
        .position(|line| !first.is_empty() && line.trim() == first);
    match near {
        Some(index) => format!(
            "Text not found in {shown}. Line {} is like the first line of old but the text there differs in white space or further \
             down; read it again and copy it exactly",
            index + 1
        ),
        None => format!("Text not found in {shown}: read the file again and copy the text exactly"),
    }
}

fn unified_diff(before: &str, after: &str, shown: &str) -> String {
    let diff = TextDiff::configure()
        .timeout(Duration::from_millis(DIFF_TIME_MS))
        .diff_lines(before, after);
    diff.unified_diff()
        .context_radius(DIFF_CONTEXT_LINES)
        .header(shown, shown)
        .to_string()
}
