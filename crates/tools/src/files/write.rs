//! `file_write`: the whole contents of a file, in one step.

use super::atomic::{self, Target};
use super::{counted, refuse_redacted, text_argument};
use crate::path::resolve;
use crate::work::{CANCELLED, run_blocking};
use crate::{Cancel, Progress, Tool, ToolContext, ToolOutput, touched_path};
use aish_core::action::{Action, Effect};
use aish_core::message::ToolSpec;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Writes a file.
pub struct FileWriteTool {
    spec: ToolSpec,
}

#[derive(Serialize)]
struct Written {
    output: String,
    bytes: usize,
}

impl FileWriteTool {
    /// The tool.
    pub fn new() -> Self {
        Self {
            spec: ToolSpec {
                name: "file_write".into(),
                description:
                    "Create a file or replace all of it. Missing folders are made. To change part of a file use \
                              file_edit."
                        .into(),
                input_schema: json!({
                    "type": "object",
                    "properties": {
                        "path": {"type": "string", "description": "File path"},
                        "content": {"type": "string", "description": "The whole new content"},
                    },
                    "required": ["path", "content"],
                    "additionalProperties": false,
                }),
            },
        }
    }

    /// Where the call would write, once nothing speaks against it.
    fn target(&self, arguments: &Value, context: &ToolContext) -> Result<PathBuf, String> {
        let shown = text_argument(arguments, "path")?;
        refuse_redacted("content", text_argument(arguments, "content")?)?;
        let path = resolve(shown, context)?;
        Target::of(&path, shown)?;
        Ok(path)
    }
}

impl Default for FileWriteTool {
    fn default() -> Self {
        Self::new()
    }
}

impl Tool for FileWriteTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn inspect(&self, arguments: &Value, context: &ToolContext) -> Result<Action, String> {
        let path = self.target(arguments, context)?;
        Ok(Action {
            tool: self.spec.name.clone(),
            arguments: arguments.clone(),
            effects: vec![Effect::Write { path }],
        })
    }

    fn run<'a>(
        &'a self,
        action: &'a Action,
        _context: &'a ToolContext,
        _progress: &'a dyn Progress,
        cancel: Cancel,
    ) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let arguments = &action.arguments;
            let path = match touched_path(action) {
                Ok(path) => path,
                Err(message) => return ToolOutput::error(message),
            };
            let text = |name| text_argument(arguments, name).unwrap_or_default().to_owned();
            let (shown, content) = (text("path"), text("content"));
            run_blocking(cancel, move |stop| {
                if stop.is_set() {
                    return ToolOutput::error(CANCELLED);
                }
                match atomic::write(&path, &shown, content.as_bytes()) {
                    Ok(()) => written(&shown, content.len()),
                    Err(message) => ToolOutput::error(message),
                }
            })
            .await
        })
    }
}

fn written(shown: &str, bytes: usize) -> ToolOutput {
    let output = serde_json::to_string(&Written {
        output: format!("Wrote {bytes} bytes to {shown}"),
        bytes,
    });
    ToolOutput {
        output: output.unwrap_or_default(),
        summary: format!("wrote {} to {shown}", counted(bytes as u64, "byte")),
        success: true,
        parts: Vec::new(),
    }
}
