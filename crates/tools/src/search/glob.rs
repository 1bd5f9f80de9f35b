//! `glob`: files by name.

use super::pattern::{Pattern, Wants, shown_folder, shown_path};
use super::{Root, walk};
use crate::capture::Capture;
use crate::files::{counted, text_argument};
use crate::open;
use crate::path::{io_message, resolve};
use crate::work::{CANCELLED, Stop, run_blocking};
use crate::{Cancel, Hidden, Progress, Tool, ToolContext, ToolOutput, touched_path};
use aish_core::action::{Action, Effect};
use aish_core::message::ToolSpec;
use futures_util::future::BoxFuture;
use ignore::DirEntry;
use rustix::io::Errno;
use serde::Serialize;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// A thread sorts and drops what cannot be shown whenever its paths pass this many times the bound of the output.
const KEPT_FACTOR: usize = 4;

/// Finds files by name.
pub struct GlobTool {
    spec: ToolSpec,
}

#[derive(Serialize)]
struct Found {
    output: String,
    count: u64,
}

/// A search as asked for.
struct Search {
    pattern: Pattern,
    /// Where the walk starts, resolved.
    root: PathBuf,
    /// What stands before a path relative to the root.
    prefix: String,
    hidden: Hidden,
}

impl GlobTool {
    /// The tool.
    pub fn new() -> Self {
        Self {
            spec: ToolSpec {
                name: "glob".into(),
                description:
                    "Find files by name. *.c looks in one folder, **/*.c in all folders below. Results begin with path."
                        .into(),
                input_schema: json!({
                    "type": "object",
                    "properties": {
                        "pattern": {"type": "string", "description": "Such as **/*.py or src/*.c"},
                        "path": {"type": "string", "description": "Folder to start in; default: the current one"},
                    },
                    "required": ["pattern"],
                    "additionalProperties": false,
                }),
            },
        }
    }

    /// Where the walk starts, resolved.
    fn root(arguments: &Value, context: &ToolContext) -> Result<PathBuf, String> {
        let pattern = Pattern::parse(text_argument(arguments, "pattern")?)?;
        let folder = folder_argument(arguments);
        let start = resolve(folder, context)?;
        let metadata = start.metadata().map_err(|error| io_message(folder, &error))?;
        if !metadata.is_dir() {
            return Err(format!("Not a directory: {folder}"));
        }
        if pattern.base().is_empty() {
            return Ok(start);
        }
        let context = ToolContext {
            directory: start,
            ..context.clone()
        };
        resolve(pattern.base(), &context)
    }

    /// The search below a root that was judged.
    fn search(root: PathBuf, arguments: &Value, context: &ToolContext) -> Result<Search, String> {
        let pattern = Pattern::parse(text_argument(arguments, "pattern")?)?;
        let folder = folder_argument(arguments);
        let base = pattern.base().to_owned();
        // A pattern that begins at the root or at home says itself where its results are.
        let is_anchored = base.starts_with(['/', '~']);
        let folder = shown_folder(folder);
        let prefix = match (base.as_str(), is_anchored) {
            ("", _) => folder,
            (_, true) => base,
            (_, false) => shown_path(&folder, base.as_ref()),
        };
        Ok(Search {
            pattern,
            root,
            prefix,
            hidden: context.hidden.clone(),
        })
    }
}

/// The folder a call names; the current one if none.
fn folder_argument(arguments: &Value) -> &str {
    let named = arguments.get("path").and_then(Value::as_str);
    named.filter(|path| !path.is_empty()).unwrap_or(".")
}

impl Default for GlobTool {
    fn default() -> Self {
        Self::new()
    }
}

impl Tool for GlobTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn inspect(&self, arguments: &Value, context: &ToolContext) -> Result<Action, String> {
        let path = Self::root(arguments, context)?;
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
            let search = match touched_path(action).and_then(|root| Self::search(root, arguments, context)) {
                Ok(search) => search,
                Err(message) => return ToolOutput::error(message),
            };
            let bytes_max = context.output_bytes_max;
            run_blocking(cancel, move |stop| {
                find(&search, bytes_max, stop).unwrap_or_else(ToolOutput::error)
            })
            .await
        })
    }
}

fn find(search: &Search, bytes_max: usize, stop: &Stop) -> Result<ToolOutput, String> {
    let found = Mutex::new(Paths::new(bytes_max));
    match open::readable(&search.root) {
        Ok(root) => walk(
            &Root::new(&search.root, &root),
            Some(&search.pattern),
            &search.hidden,
            stop,
            || {
                let mut share = Share {
                    paths: Paths::new(bytes_max),
                    all: &found,
                };
                Box::new(move |entry, relative| {
                    if search.pattern.is_match(relative) && is_wanted(entry, search.pattern.wants()) {
                        share.paths.push(shown_path(&search.prefix, relative.as_os_str()));
                    }
                })
            },
        ),
        // A folder named by the pattern that is not there, or is a file, holds no match.
        Err(Errno::NOENT | Errno::NOTDIR) => {}
        Err(error) => return Err(open::message(&search.root.to_string_lossy(), error)),
    }
    if stop.is_set() {
        return Err(CANCELLED.to_owned());
    }
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let count = found.count;
    let output = serde_json::to_string(&Found {
        output: found.into_output(),
        count,
    });
    let noun = match search.pattern.wants() {
        Wants::Files => "file",
        Wants::Folders => "folder",
    };
    Ok(ToolOutput {
        output: output.unwrap_or_default(),
        summary: format!("{} found", counted(count, noun)),
        success: true,
        parts: Vec::new(),
    })
}

fn is_wanted(entry: &DirEntry, wants: Wants) -> bool {
    let is_folder = match entry.file_type() {
        Some(kind) if kind.is_symlink() => entry.path().is_dir(),
        Some(kind) => kind.is_dir(),
        None => false,
    };
    match wants {
        Wants::Files => !is_folder,
        Wants::Folders => is_folder,
    }
}

/// Paths found, all counted, those kept that can be among the first `bytes_max` bytes of the sorted list.
struct Paths {
    kept: Vec<String>,
    bytes_kept: usize,
    count: u64,
    bytes_total: u64,
    bytes_max: usize,
}

impl Paths {
    fn new(bytes_max: usize) -> Self {
        Self {
            kept: Vec::new(),
            bytes_kept: 0,
            count: 0,
            bytes_total: 0,
            bytes_max,
        }
    }

    fn push(&mut self, path: String) {
        self.count += 1;
        self.bytes_total += path.len() as u64 + 1;
        self.keep(path);
    }

    fn keep(&mut self, path: String) {
        self.bytes_kept += path.len() + 1;
        self.kept.push(path);
        if self.bytes_kept > self.bytes_max.saturating_mul(KEPT_FACTOR) {
            self.drop_unshown();
        }
    }

    fn merge(&mut self, other: &mut Self) {
        self.count += other.count;
        self.bytes_total += other.bytes_total;
        for path in other.kept.drain(..) {
            self.keep(path);
        }
    }

    /// Sorts, and keeps the paths up to the one that crosses the bound.
    fn drop_unshown(&mut self) {
        self.kept.sort_unstable();
        let mut bytes = 0;
        let mut shown = 0;
        for path in &self.kept {
            if bytes > self.bytes_max {
                break;
            }
            bytes += path.len() + 1;
            shown += 1;
        }
        self.kept.truncate(shown);
        self.bytes_kept = bytes;
    }

    fn into_output(mut self) -> String {
        self.kept.sort_unstable();
        let mut capture = Capture::new(self.bytes_max);
        let mut bytes_pushed = 0;
        for (index, path) in self.kept.iter().enumerate() {
            if index > 0 {
                capture.push("\n");
            }
            capture.push(path);
            bytes_pushed += path.len() as u64 + 1;
        }
        capture.skip(self.bytes_total - bytes_pushed);
        capture.finish()
    }
}

/// One thread's paths, handed over when its walk ends.
struct Share<'a> {
    paths: Paths,
    all: &'a Mutex<Paths>,
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.all
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .merge(&mut self.paths);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 4.3: what is dropped on the way never changes the output.
    #[test]
    fn dropping_early_changes_nothing() {
        let names: Vec<String> = (0..500).map(|n| format!("f{:03}", (n * 7919) % 500)).collect();
        let mut few = Paths::new(40);
        let mut all = Paths::new(100_000);
        for name in &names {
            few.push(name.clone());
            all.push(name.clone());
        }
        assert!(few.kept.len() < 60, "{} kept", few.kept.len());
        let all = all.into_output();
        assert_eq!(all.len(), 500 * 5 - 1);
        let expect = Capture::of(&all, 40).finish();
        assert_eq!(few.into_output(), expect);
    }
}
