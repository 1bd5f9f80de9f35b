//! `file_read`: a text file, or some lines of it.
//!
//! The file is read in pieces, decoded, narrowed to the wanted lines and captured up to the bound; of a huge file only
//! what is needed is read.

use super::text::{self, Encoding, Last};
use super::{counted, text_argument};
use crate::capture::Capture;
use crate::open::regular_file;
use crate::path::{io_message, require_regular, resolve};
use crate::work::{CANCELLED, Stop, run_blocking};
use crate::{Cancel, Progress, Tool, ToolContext, ToolOutput, touched_path};
use aish_core::action::{Action, Effect};
use aish_core::message::ToolSpec;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::{Value, json};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes read at a time.
const PIECE_BYTES: usize = 64 * 1024;

/// Reads a text file.
pub struct FileReadTool {
    spec: ToolSpec,
}

#[derive(Serialize)]
struct Contents {
    output: String,
}

/// Which lines are wanted, counted from 1.
#[derive(Clone, Copy)]
struct Lines {
    first: u64,
    count_max: Option<u64>,
}

impl FileReadTool {
    /// The tool.
    pub fn new() -> Self {
        Self {
            spec: ToolSpec {
                name: "file_read".into(),
                description: "Read a text file. For a long file read part of it with offset and limit.".into(),
                input_schema: json!({
                    "type": "object",
                    "properties": {
                        "path": {"type": "string", "description": "File path"},
                        "offset": {"type": "integer", "minimum": 0, "description": "First line to read, from 1"},
                        "limit": {"type": "integer", "minimum": 1, "description": "How many lines"},
                    },
                    "required": ["path"],
                    "additionalProperties": false,
                }),
            },
        }
    }
}

impl Default for FileReadTool {
    fn default() -> Self {
        Self::new()
    }
}

impl Tool for FileReadTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn inspect(&self, arguments: &Value, context: &ToolContext) -> Result<Action, String> {
        let shown = text_argument(arguments, "path")?;
        let path = resolve(shown, context)?;
        require_regular(&path, shown)?;
        Ok(Action {
            tool: self.spec.name.clone(),
            arguments: arguments.clone(),
            effects: vec![Effect::Read { path }],
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
            let (shown, path) =
                match text_argument(arguments, "path").and_then(|p| Ok((p.to_owned(), touched_path(action)?))) {
                    Ok(named) => named,
                    Err(message) => return ToolOutput::error(message),
                };
            let lines = Lines {
                first: arguments.get("offset").and_then(Value::as_u64).unwrap_or(1).max(1),
                count_max: arguments.get("limit").and_then(Value::as_u64),
            };
            let bytes_max = context.output_bytes_max;
            run_blocking(cancel, move |stop| {
                read(&path, &shown, lines, bytes_max, stop).unwrap_or_else(ToolOutput::error)
            })
            .await
        })
    }
}

fn read(path: &Path, shown: &str, lines: Lines, bytes_max: usize, stop: &Stop) -> Result<ToolOutput, String> {
    let (mut file, size) = regular_file(path, shown)?;
    let mut buffer = vec![0; PIECE_BYTES];
    let mut filled = fill(&mut file, &mut buffer, text::SAMPLE_BYTES, shown)?;
    let sample = buffer.get(..filled.min(text::SAMPLE_BYTES)).unwrap_or_default();
    let encoding =
        Encoding::detect(sample).map_err(|what| format!("Not a text file: {shown} ({size} bytes, {})", what.0))?;
    let mut window = Window::new(lines, bytes_max);
    let mut decoder = encoding.decoder();
    let mut decoded = String::new();
    let mut bytes_read = filled as u64;
    let mut skip = encoding.mark().len();
    loop {
        let is_last = if filled == 0 { Last::Yes } else { Last::No };
        decoded.clear();
        text::decode_piece(
            &mut decoder,
            buffer.get(skip..filled).unwrap_or_default(),
            &mut decoded,
            is_last,
        );
        skip = 0;
        window.push(&decoded);
        if is_last == Last::Yes || window.is_done() {
            break;
        }
        // The rest of a UTF-8 file is as long in text as in bytes, so there is no need to read it to say how long it is.
        if window.capture.is_full() && lines.count_max.is_none() && encoding.is_utf8() && size > bytes_read {
            window.capture.skip(size - bytes_read);
            break;
        }
        if stop.is_set() {
            return Err(CANCELLED.to_owned());
        }
        filled = file.read(&mut buffer).map_err(|error| io_message(shown, &error))?;
        bytes_read += filled as u64;
    }
    let summary = window.summary(shown);
    let output = serde_json::to_string(&Contents {
        output: window.capture.finish(),
    });
    Ok(ToolOutput {
        output: output.unwrap_or_default(),
        summary,
        success: true,
        parts: Vec::new(),
    })
}

/// Reads until at least `wanted` bytes are there or the file ends.
fn fill(file: &mut File, buffer: &mut [u8], wanted: usize, shown: &str) -> Result<usize, String> {
    let mut filled = 0;
    while filled < wanted {
        let rest = buffer.get_mut(filled..).unwrap_or_default();
        match file.read(rest).map_err(|error| io_message(shown, &error))? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

/// Lets the wanted lines through to a capture.
struct Window {
    lines: Lines,
    capture: Capture,
    /// The line the next byte belongs to, from 1.
    line: u64,
    lines_shown: u64,
    is_in_line: bool,
}

impl Window {
    fn new(lines: Lines, bytes_max: usize) -> Self {
        Self {
            lines,
            capture: Capture::new(bytes_max),
            line: 1,
            lines_shown: 0,
            is_in_line: false,
        }
    }

    fn push(&mut self, text: &str) {
        for piece in text.split_inclusive('\n') {
            if self.is_done() {
                return;
            }
            if self.line >= self.lines.first {
                self.capture.push(piece);
                if !self.is_in_line {
                    self.lines_shown += 1;
                }
            }
            self.is_in_line = !piece.ends_with('\n');
            if !self.is_in_line {
                self.line += 1;
            }
        }
    }

    /// True when no later line is wanted.
    fn is_done(&self) -> bool {
        let past = |count| self.line >= self.lines.first.saturating_add(count);
        self.lines.count_max.is_some_and(past)
    }

    fn summary(&self, shown: &str) -> String {
        if self.capture.is_cut() {
            return format!(
                "read the first {} of {shown}",
                counted(self.capture.text().len() as u64, "byte")
            );
        }
        format!("read {} of {shown}", counted(self.lines_shown, "line"))
    }
}
