//! `grep`: lines by regular expression.

use super::hits::Hits;
use super::pattern::{Pattern, shown_folder, shown_path};
use super::render::LineSink;
use super::walk;
use crate::files::{counted, text_argument};
use crate::path::{io_message, resolve};
use crate::work::{CANCELLED, Stop, run_blocking};
use crate::{Cancel, Hidden, Progress, Tool, ToolContext, ToolOutput};
use aish_core::action::{Action, Effect};
use aish_core::message::ToolSpec;
use aish_core::policy::is_secret_path;
use futures_util::future::BoxFuture;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use serde::Serialize;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Most lines of context.
const CONTEXT_LINES_MAX: usize = 50;
/// Memory of one thread for the line it is at; a file with a longer line is passed over.
const LINE_MEMORY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Memory of a compiled pattern.
const PATTERN_MEMORY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// What ends the search of a file as binary.
const BINARY_BYTE: u8 = 0;

/// Searches files.
pub struct GrepTool {
    spec: ToolSpec,
}

#[derive(Serialize)]
struct Matches {
    output: String,
    count: u64,
}

/// A search as asked for.
struct Search {
    matcher: RegexMatcher,
    filter: Option<Pattern>,
    context_lines: usize,
    /// Where to look, resolved: a file or a folder.
    root: PathBuf,
    /// What stands before a path relative to the root.
    prefix: String,
    kind: Kind,
    hidden: Hidden,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Folder,
}

impl GrepTool {
    /// The tool.
    pub fn new() -> Self {
        Self {
            spec: ToolSpec {
                name: "grep".into(),
                description: "Search file contents line by line with a regular expression. Results: file:line: text."
                    .into(),
                input_schema: json!({
                    "type": "object",
                    "properties": {
                        "pattern": {"type": "string", "description": "Regular expression, such as fn \\w+\\("},
                        "path": {"type": "string", "description": "File or folder; default: the current folder"},
                        "glob": {"type": "string", "description": "Only files with such names, e.g. *.py"},
                        "context": {
                            "type": "integer", "minimum": 0, "maximum": CONTEXT_LINES_MAX,
                            "description": "Lines to show around each match",
                        },
                        "ignore_case": {"type": "boolean"},
                    },
                    "required": ["pattern"],
                    "additionalProperties": false,
                }),
            },
        }
    }

    fn search(&self, arguments: &Value, context: &ToolContext) -> Result<Search, String> {
        let text = |name| {
            arguments
                .get(name)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
        };
        let case = match arguments.get("ignore_case").and_then(Value::as_bool) {
            Some(true) => Case::Ignored,
            Some(false) | None => Case::Exact,
        };
        let matcher = compile(text_argument(arguments, "pattern")?, case)?;
        let shown = text("path").unwrap_or(".");
        let root = resolve(shown, context)?;
        let metadata = root.metadata().map_err(|error| io_message(shown, &error))?;
        let kind = match (metadata.is_dir(), metadata.is_file()) {
            (true, _) => Kind::Folder,
            (false, true) => Kind::File,
            (false, false) => return Err(format!("Not a regular file: {shown}")),
        };
        let context_lines = arguments.get("context").and_then(Value::as_u64).unwrap_or(0);
        Ok(Search {
            matcher,
            filter: text("glob").map(Pattern::filter).transpose()?,
            context_lines: usize::try_from(context_lines)
                .unwrap_or(CONTEXT_LINES_MAX)
                .min(CONTEXT_LINES_MAX),
            root,
            prefix: match kind {
                Kind::Folder => shown_folder(shown),
                Kind::File => shown.to_owned(),
            },
            kind,
            hidden: context.hidden.clone(),
        })
    }
}

impl Default for GrepTool {
    fn default() -> Self {
        Self::new()
    }
}

impl Tool for GrepTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn inspect(&self, arguments: &Value, context: &ToolContext) -> Result<Action, String> {
        let search = self.search(arguments, context)?;
        Ok(Action {
            tool: self.spec.name.clone(),
            arguments: arguments.clone(),
            effects: vec![Effect::Read { path: search.root }],
        })
    }

    fn run<'a>(
        &'a self,
        arguments: &'a Value,
        context: &'a ToolContext,
        _progress: &'a dyn Progress,
        cancel: Cancel,
    ) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let search = match self.search(arguments, context) {
                Ok(search) => search,
                Err(message) => return ToolOutput::error(message),
            };
            let bytes_max = context.output_bytes_max;
            run_blocking(cancel, move |stop| {
                let hits = match search.kind {
                    Kind::File => search_file(&search, bytes_max, stop),
                    Kind::Folder => search_folder(&search, bytes_max, stop),
                };
                match hits {
                    Ok(_) if stop.is_set() => ToolOutput::error(CANCELLED),
                    Ok(hits) => matches(hits),
                    Err(message) => ToolOutput::error(message),
                }
            })
            .await
        })
    }
}

/// How letters compare.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    Exact,
    Ignored,
}

fn compile(pattern: &str, case: Case) -> Result<RegexMatcher, String> {
    RegexMatcherBuilder::new()
        .case_insensitive(case == Case::Ignored)
        .multi_line(true)
        .line_terminator(Some(b'\n'))
        .size_limit(PATTERN_MEMORY_BYTES_MAX)
        .build(pattern)
        .map_err(|error| format!("Invalid pattern: {}", reason(&error)))
}

/// Why a pattern does not compile, in one line, with what to do where that is known.
#[expect(clippy::wildcard_enum_match_arm, reason = "the kinds are open-ended")]
fn reason(error: &grep_regex::Error) -> String {
    let text = error.to_string();
    let last = text
        .lines()
        .map(|line| line.trim_start_matches("error: "))
        .next_back()
        .unwrap_or_default();
    let hint = match error.kind() {
        grep_regex::ErrorKind::NotAllowed(_) => return "lines are searched one by one, so \\n cannot match".to_owned(),
        grep_regex::ErrorKind::Regex(_) => match last {
            last if last.contains("unclosed group") || last.contains("unopened group") => {
                "; to find a parenthesis write \\( or \\)"
            }
            last if last.contains("unclosed character class") => "; to find a bracket write \\[",
            last if last.contains("repetition") => "; to find the character itself put \\ before it",
            _ => "",
        },
        _ => "",
    };
    format!("{last}{hint}")
}

fn searcher(search: &Search) -> Searcher {
    SearcherBuilder::new()
        .line_number(true)
        .before_context(search.context_lines)
        .after_context(search.context_lines)
        .binary_detection(BinaryDetection::quit(BINARY_BYTE))
        .heap_limit(Some(LINE_MEMORY_BYTES_MAX))
        .build()
}

fn empty_hits(search: &Search, bytes_max: usize) -> Hits {
    let separator = if search.context_lines > 0 { "\n--\n" } else { "\n" };
    Hits::new(bytes_max, separator)
}

/// A file that was named is searched whatever it is called.
fn search_file(search: &Search, bytes_max: usize, stop: &Stop) -> Result<Hits, String> {
    let shown = &search.prefix;
    let mut hits = empty_hits(search, bytes_max);
    let mut sink = LineSink::new(shown, &search.matcher, stop, bytes_max);
    let searched = searcher(search).search_path(&search.matcher, &search.root, &mut sink);
    searched.map_err(|error| io_message(shown, &error))?;
    if sink.is_binary() {
        let size = search.root.metadata().map_or(0, |metadata| metadata.len());
        let kind = infer::get_from_path(&search.root).ok().flatten();
        let kind = kind.map_or("binary data", |kind| kind.mime_type());
        return Err(format!("Not a text file: {shown} ({size} bytes, {kind})"));
    }
    if let Some(found) = sink.into_hits() {
        hits.insert(shown.clone(), found);
    }
    Ok(hits)
}

fn search_folder(search: &Search, bytes_max: usize, stop: &Stop) -> Result<Hits, String> {
    std::fs::read_dir(&search.root).map_err(|error| io_message(&search.prefix, &error))?;
    let hits = Mutex::new(empty_hits(search, bytes_max));
    walk(&search.root, search.filter.as_ref(), &search.hidden, stop, || {
        let mut searcher = searcher(search);
        let hits = &hits;
        Box::new(move |entry, relative| {
            // What looks like it holds secrets is searched only when it is named, which policy asks about.
            let is_searched = entry.file_type().is_some_and(|kind| kind.is_file())
                && search.filter.as_ref().is_none_or(|filter| filter.is_match(relative))
                && !is_secret_path(entry.path());
            if !is_searched {
                return;
            }
            let shown = shown_path(&search.prefix, relative.as_os_str());
            let mut sink = LineSink::new(&shown, &search.matcher, stop, bytes_max);
            // A file that cannot be read is passed over: it was not named.
            let _ = searcher.search_path(&search.matcher, entry.path(), &mut sink);
            if let Some(found) = sink.into_hits() {
                hits.lock().unwrap_or_else(PoisonError::into_inner).insert(shown, found);
            }
        })
    });
    Ok(hits.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn matches(hits: Hits) -> ToolOutput {
    let count = hits.matches;
    let noun = if count == 1 { "match" } else { "matches" };
    let summary = format!("{count} {noun} in {}", counted(hits.file_count, "file"));
    let output = serde_json::to_string(&Matches {
        output: hits.into_output(),
        count,
    });
    ToolOutput {
        output: output.unwrap_or_default(),
        summary,
        success: true,
    }
}
