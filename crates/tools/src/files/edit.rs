//! `file_edit`: replace exact text in a file, once or everywhere, and show the difference.
//!
//! What the edit does not name stays as it was, byte for byte: encoding, mark, line ends, mode. Models write `\n`; in a
//! file of `\r\n` lines that means `\r\n`.

use super::atomic;
use super::diff::Replacement;
use super::text::{Encoding, SAMPLE_BYTES};
use super::{counted, refuse_redacted, text_argument};
use crate::open::regular_file;
use crate::path::{io_message, require_regular, resolve};
use crate::work::{CANCELLED, Stop, run_blocking};
use crate::{Cancel, Progress, Tool, ToolContext, ToolOutput, touched_path};
use aish_core::action::{Action, Effect};
use aish_core::message::ToolSpec;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::{Value, json};
use std::io::Read;
use std::path::Path;

/// The largest file that is edited, and the largest an edit may make: a few of it are held in memory.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// The longest text such a file may be; other encodings can take fewer bytes than the text does here.
const TEXT_BYTES_MAX: u64 = FILE_BYTES_MAX / 2 * 3;

/// Bytes read at a time.
const PIECE_BYTES: usize = 64 * 1024;

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
        action: &'a Action,
        context: &'a ToolContext,
        _progress: &'a dyn Progress,
        cancel: Cancel,
    ) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let arguments = &action.arguments;
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
    let bytes = read_whole(path, shown)?;
    let size = bytes.len();
    let not_text = |what: &str| format!("Not a text file: {shown} ({size} bytes, {what})");
    let sample = bytes.get(..SAMPLE_BYTES).unwrap_or(&bytes);
    let encoding = Encoding::detect(sample).map_err(|what| not_text(what.0))?;
    // Text that cannot be decoded and encoded back to the same bytes would be changed beyond the edit.
    let before = encoding.decode(bytes).ok_or_else(|| not_text("mixed encodings"))?;
    let place = find(&before, edit)?;
    require_size(&place, encoding, size, before.len(), shown)?;
    let after = before.replace(&place.old, &place.new);
    let diff = Replacement {
        before: &before,
        after: &after,
        old: &place.old,
        new: &place.new,
    }
    .diff(shown, bytes_max);
    drop(before);
    let encoded = encoding
        .encode(&after)
        .ok_or_else(|| format!("Parameter new has characters that the encoding of {shown} (Windows-1252) lacks"))?;
    if stop.is_set() {
        return Err(CANCELLED.to_owned());
    }
    atomic::write(path, shown, &encoded)?;
    let output = serde_json::to_string(&Edited {
        output: diff,
        replacements: place.count,
    });
    Ok(ToolOutput {
        output: output.unwrap_or_default(),
        summary: format!("{} in {shown}", counted(place.count as u64, "replacement")),
        success: true,
        parts: Vec::new(),
    })
}

/// The bytes of a file, which is never longer than may be edited whatever size it claims.
fn read_whole(path: &Path, shown: &str) -> Result<Vec<u8>, String> {
    let (mut file, size) = regular_file(path, shown)?;
    let too_large = |size: u64| {
        let size = if size > FILE_BYTES_MAX {
            format!("{size} bytes, ")
        } else {
            String::new()
        };
        format!("File too large to edit: {shown} ({size}at most {FILE_BYTES_MAX})")
    };
    if size > FILE_BYTES_MAX {
        return Err(too_large(size));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    // In even pieces: some files of the kernel's can be read in no other way.
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = file.read(&mut piece).map_err(|error| io_message(shown, &error))?;
        if read == 0 {
            return Ok(bytes);
        }
        if (bytes.len() + read) as u64 > FILE_BYTES_MAX {
            return Err(too_large(0));
        }
        bytes.extend_from_slice(piece.get(..read).unwrap_or_default());
    }
}

/// What is replaced by what, with the line ends of the file, and in how many places.
struct Place {
    old: String,
    new: String,
    count: usize,
}

/// Finds the text that is to be replaced.
fn find(before: &str, edit: &Edit) -> Result<Place, String> {
    let (old, new) = with_line_ends(before, &edit.old, &edit.new);
    let count = before.matches(old.as_str()).count();
    match (count, edit.scope) {
        (0, Scope::Once | Scope::All) => Err(not_found(before, edit)),
        (1, Scope::Once) | (_, Scope::All) => Ok(Place { old, new, count }),
        (_, Scope::Once) => Err(format!(
            "Text occurs {count} times in {}: add lines around it to old to make it unique, or set all",
            edit.shown
        )),
    }
}

/// Refuses an edit whose result would be longer than may be edited, before any of it is made: few bytes put in the place
/// of one, a million times, are more than there is memory.
fn require_size(place: &Place, encoding: Encoding, size: usize, text_len: usize, shown: &str) -> Result<(), String> {
    let after = |len: usize, old: usize, new: usize| {
        let removed = len.checked_sub(old.checked_mul(place.count)?)?;
        removed.checked_add(new.checked_mul(place.count)?)
    };
    let (old, new) = (encoding.encoded_len(&place.old), encoding.encoded_len(&place.new));
    let bytes = after(size, old, new);
    let text = after(text_len, place.old.len(), place.new.len());
    let is_within = |len: Option<usize>, max: u64| len.is_some_and(|len| len as u64 <= max);
    if is_within(bytes, FILE_BYTES_MAX) && is_within(text, TEXT_BYTES_MAX) {
        return Ok(());
    }
    let bytes = bytes.or(text).map_or_else(
        || "more than can be counted".to_owned(),
        |bytes| format!("{bytes} bytes"),
    );
    Err(format!(
        "The edit would make {shown} too large ({} make it {bytes}, at most {FILE_BYTES_MAX})",
        counted(place.count as u64, "replacement")
    ))
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
