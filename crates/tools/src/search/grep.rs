//! `grep`: lines by regular expression.

use super::hits::Hits;
use super::pattern::{Pattern, shown_folder, shown_path};
use super::render::LineSink;
use super::{Root, walk};
use crate::files::{counted, text_argument};
use crate::open;
use crate::path::{io_message, resolve};
use crate::work::{CANCELLED, Stop, run_blocking};
use crate::{Cancel, Hidden, Progress, Tool, ToolContext, ToolOutput, touched_path};
use aish_core::action::{Action, Effect};
use aish_core::message::ToolSpec;
use aish_core::policy::is_secret_path;
use futures_util::future::BoxFuture;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use rustix::fd::OwnedFd;
use rustix::fs::FileType;
use serde::Serialize;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Most lines of context.
const CONTEXT_LINES_MAX: usize = 50;
/// Memory of one thread for the line it is at; a file with a longer line is passed over.
const LINE_MEMORY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Memory of a compiled pattern.
const PATTERN_MEMORY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bytes that tell what kind of file it is.
const KIND_SAMPLE_BYTES: u64 = 8 * 1024;
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
    /// The same as it was written.
    shown: String,
    hidden: Hidden,
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

    /// Where to look, resolved.
    fn root(arguments: &Value, context: &ToolContext) -> Result<PathBuf, String> {
        let shown = path_argument(arguments);
        let root = resolve(shown, context)?;
        let metadata = root.metadata().map_err(|error| io_message(shown, &error))?;
        if metadata.is_dir() || metadata.is_file() {
            return Ok(root);
        }
        Err(format!("Not a regular file: {shown}"))
    }

    /// The search of a root that was judged, as far as the arguments say it.
    fn search(root: PathBuf, arguments: &Value, context: &ToolContext) -> Result<Search, String> {
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
        let context_lines = arguments.get("context").and_then(Value::as_u64).unwrap_or(0);
        Ok(Search {
            matcher,
            filter: text("glob").map(Pattern::filter).transpose()?,
            context_lines: usize::try_from(context_lines)
                .unwrap_or(CONTEXT_LINES_MAX)
                .min(CONTEXT_LINES_MAX),
            root,
            shown: path_argument(arguments).to_owned(),
            hidden: context.hidden.clone(),
        })
    }
}

/// The file or folder a call names; the current folder if none.
fn path_argument(arguments: &Value) -> &str {
    let named = arguments.get("path").and_then(Value::as_str);
    named.filter(|path| !path.is_empty()).unwrap_or(".")
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
        let path = Self::root(arguments, context)?;
        // A pattern that does not compile is told before anybody is asked.
        Self::search(path.clone(), arguments, context)?;
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
            run_blocking(cancel, move |stop| match search_root(&search, bytes_max, stop) {
                Ok(_) if stop.is_set() => ToolOutput::error(CANCELLED),
                Ok(hits) => matches(hits),
                Err(message) => ToolOutput::error(message),
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

/// What a search came to.
struct Found {
    hits: Hits,
    /// Files that look like they hold secrets, and would have been searched otherwise.
    secret_files: u64,
}

fn search_root(search: &Search, bytes_max: usize, stop: &Stop) -> Result<Found, String> {
    let opened = open::readable(&search.root).map_err(|error| open::message(&search.shown, error))?;
    let stat = rustix::fs::fstat(&opened).map_err(|error| open::message(&search.shown, error))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => search_folder(search, &opened, bytes_max, stop),
        FileType::RegularFile => search_file(search, File::from(opened), bytes_max, stop),
        FileType::Symlink
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Fifo
        | FileType::Socket
        | FileType::Unknown => Err(format!("Not a regular file: {}", search.shown)),
    }
}

/// A file that was named is searched whatever it is called.
fn search_file(search: &Search, mut file: File, bytes_max: usize, stop: &Stop) -> Result<Found, String> {
    let shown = &search.shown;
    let mut hits = empty_hits(search, bytes_max);
    let mut sink = LineSink::new(shown, &search.matcher, stop, bytes_max);
    let reader = Stoppable { file: &file, stop };
    let searched = searcher(search).search_reader(&search.matcher, reader, &mut sink);
    searched.map_err(|error| io_message(shown, &error))?;
    if sink.is_binary() {
        let size = file.metadata().map_or(0, |metadata| metadata.len());
        return Err(format!(
            "Not a text file: {shown} ({size} bytes, {})",
            kind_of(&mut file)
        ));
    }
    if let Some(found) = sink.into_hits() {
        hits.insert(shown.clone(), found);
    }
    Ok(Found { hits, secret_files: 0 })
}

/// A file that ends in an error when nobody waits for it any more, however long it is.
struct Stoppable<'a> {
    file: &'a File,
    stop: &'a Stop,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_set() {
            return Err(io::Error::other(CANCELLED));
        }
        self.file.read(buffer)
    }
}

/// What a file that is no text is, by its first bytes.
fn kind_of(file: &mut File) -> &'static str {
    let mut sample = Vec::new();
    let read = file
        .rewind()
        .and_then(|()| file.take(KIND_SAMPLE_BYTES).read_to_end(&mut sample));
    let kind = read.ok().and_then(|_| infer::get(&sample));
    kind.map_or("binary data", |kind| kind.mime_type())
}

fn search_folder(search: &Search, opened: &OwnedFd, bytes_max: usize, stop: &Stop) -> Result<Found, String> {
    let root = Root::new(&search.root, opened);
    let prefix = shown_folder(&search.shown);
    let hits = Mutex::new(empty_hits(search, bytes_max));
    let secret_files = AtomicU64::new(0);
    walk(&root, search.filter.as_ref(), &search.hidden, stop, || {
        let mut searcher = searcher(search);
        let (hits, prefix, secret_files) = (&hits, &prefix, &secret_files);
        Box::new(move |entry, relative| {
            let is_searched = entry.file_type().is_some_and(|kind| kind.is_file())
                && search.filter.as_ref().is_none_or(|filter| filter.is_match(relative));
            if !is_searched {
                return;
            }
            // What looks like it holds secrets is searched only when it is named, which policy asks about. The names above
            // the root say nothing: they were judged with it.
            if is_secret_path(relative) {
                secret_files.fetch_add(1, Ordering::Relaxed);
                return;
            }
            let shown = shown_path(prefix, relative.as_os_str());
            let mut sink = LineSink::new(&shown, &search.matcher, stop, bytes_max);
            // A file that cannot be read is passed over: it was not named.
            if let Ok((file, _)) = open::regular_file_in(opened, relative, &shown) {
                let reader = Stoppable { file: &file, stop };
                let _ = searcher.search_reader(&search.matcher, reader, &mut sink);
            }
            if let Some(found) = sink.into_hits() {
                hits.lock().unwrap_or_else(PoisonError::into_inner).insert(shown, found);
            }
        })
    });
    Ok(Found {
        hits: hits.into_inner().unwrap_or_else(PoisonError::into_inner),
        secret_files: secret_files.into_inner(),
    })
}

/// The result, which says in a last line what was passed over: "nothing found" would be read as "nothing there".
fn matches(found: Found) -> ToolOutput {
    let Found { hits, secret_files } = found;
    let count = hits.matches;
    let noun = if count == 1 { "match" } else { "matches" };
    let mut summary = format!("{count} {noun} in {}", counted(hits.file_count, "file"));
    let mut text = hits.into_output();
    if secret_files > 0 {
        let passed_over = format!("{} passed over", counted(secret_files, "secret-looking file"));
        summary.push_str(&format!(", {passed_over}"));
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&format!("[{passed_over}; to search one, name it in path]"));
    }
    let output = serde_json::to_string(&Matches { output: text, count });
    ToolOutput {
        output: output.unwrap_or_default(),
        summary,
        success: true,
        parts: Vec::new(),
    }
}
