//! The tools that read and change files: [`FileReadTool`], [`FileWriteTool`], [`FileEditTool`].
//!
//! Text is decoded and encoded in `text`, written in `atomic` so that no reader ever sees half a file. Paths are
//! resolved once, when a call is inspected: links are followed there and never replaced. What then runs opens the
//! resolved path and follows no link.

mod atomic;
mod diff;
mod edit;
mod read;
pub(crate) mod text;
mod write;

pub use edit::FileEditTool;
pub use read::FileReadTool;
pub use write::FileWriteTool;

/// How text looks whose secret was taken out before a model saw it. Writing it back would destroy the secret (SPEC 10.5).
const REDACTION_MARK: &str = "[redacted:";

/// Refuses text that carries a redaction placeholder.
fn refuse_redacted(parameter: &str, text: &str) -> Result<(), String> {
    if text.contains(REDACTION_MARK) {
        return Err(format!(
            "Parameter {parameter} carries a redaction placeholder ({REDACTION_MARK}…]): the hidden value is not known to you, so \
             writing it would lose it. Edit only the lines around it, with file_edit"
        ));
    }
    Ok(())
}

/// A string argument that the schema requires.
pub(crate) fn text_argument<'a>(arguments: &'a serde_json::Value, name: &str) -> Result<&'a str, String> {
    let value = arguments.get(name).and_then(serde_json::Value::as_str);
    value.ok_or_else(|| format!("Missing required parameter: {name}"))
}

/// `1 line`, `2 lines`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}
