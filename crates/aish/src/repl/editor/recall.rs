//! What was typed before (SPEC 8.9): the editor's history.
//!
//! A [`Recall`] is one list for both kinds of line. Its older part comes from the ledger, which has every command and question of
//! every session, and from a small file of `:` lines, which the ledger has not ([`kept`]); it is brought in the background
//! ([`Recall::look_back`]), so that the first prompt waits for nothing. What is typed now is added as it is sent. Each text is in it
//! once, where it was typed last.
//!
//! A line is kept without the mark that said where it goes. Recalled, it gets one where it would not go there by itself: what ran
//! in the shell never reaches the model because somebody pressed Up.

mod asked;
mod kept;

use super::rank::{Query, fold};
use crate::mcp::serve::CALLER;
use crate::repl::complete::typed::typed;
use crate::repl::route::{Mark, mark};
use crate::repl::router::{Router, Way};
use aish_core::sanitize;
use aish_engine::{Notices, now_ms};
use aish_store::{Store, TYPED_CHARS_MAX, TypedKind, TypedLine};
use kept::Kept;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Lines that begin with this are not kept.
pub const NOT_KEPT_PREFIX: &str = " ";
/// Lines that are kept in memory.
const LINES_MAX: usize = 10_000;
/// Lines a hint may not use, because they would go somewhere else as they stand, before the search for one is given up.
const UNFIT_MAX: usize = 4;

/// The history, shared by the editor's thread and whoever brings the older part.
#[derive(Clone)]
pub struct Recall {
    shared: Arc<Mutex<Lines>>,
}

/// Has what is shown drawn again, soon.
type Draw = Box<dyn Fn() + Send + Sync>;

struct Lines {
    /// The oldest first; their numbers grow.
    lines: Vec<Line>,
    /// How often older lines came.
    came: u32,
    /// Draws the line being typed again.
    draw: Option<Draw>,
    /// The next question of the editor is about commands only.
    expects_command: bool,
    /// Of the next line that is typed. What comes from the ledger has negative numbers.
    next: i64,
    /// Where the person is.
    directory: String,
    router: Option<Router>,
    kept: Kept,
}

/// A line of the history.
struct Line {
    number: i64,
    /// Without its mark, unless it is a `:` line.
    text: String,
    /// The same, as a search that ignores case looks at it.
    folded: String,
    goes: Mark,
    typed: MarkTyped,
    /// Milliseconds since the Unix epoch; 0 if unknown.
    time: u64,
    /// Where it was typed last; empty if unknown.
    directory: String,
}

/// Whether the person typed the mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MarkTyped {
    Yes,
    No,
}

/// A line that a search found, as it is to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Which one; for [`Recall::line`].
    pub number: i64,
    /// Without its mark, unless it is a `:` line.
    pub text: String,
    /// Where it went.
    pub goes: Mark,
    /// Milliseconds since the Unix epoch; 0 if unknown.
    pub time: u64,
}

impl Recall {
    /// With nothing in it yet. `:` lines are kept in the file `path`; `router` says where a line would go by itself.
    pub fn new(path: PathBuf, router: Option<Router>) -> Self {
        let lines = Lines {
            lines: Vec::new(),
            came: 0,
            draw: None,
            expects_command: false,
            next: 1,
            directory: String::new(),
            router,
            kept: Kept::new(path),
        };
        Self {
            shared: Arc::new(Mutex::new(lines)),
        }
    }

    /// What draws the line being typed again when older lines come; called while they are held, so it must not ask for any.
    pub fn show_with(&self, draw: impl Fn() + Send + Sync + 'static) {
        self.lock().draw = Some(Box::new(draw));
    }

    /// Brings what was typed before, while the first line is typed already.
    pub fn look_back(&self, store: Arc<dyn Store>, notices: Notices) {
        let recall = self.clone();
        tokio::spawn(async move {
            if let Some(trouble) = recall.load(store.as_ref()).await {
                notices.status(trouble);
            }
        });
    }

    /// Brings what was typed before now; gives what a person should know if that cannot be had.
    async fn load(&self, store: &dyn Store) -> Option<String> {
        let typed = store.typed(LINES_MAX, CALLER).await;
        let (typed, mut trouble) = match typed {
            Ok(typed) => (typed, None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        // Nobody who types waits for a file, nor for the sorting.
        let kept = self.lock().kept.clone();
        let kept = tokio::task::spawn_blocking(move || kept.read()).await;
        let kept = match kept.map_err(|error| error.to_string()).flatten() {
            Ok(kept) => kept,
            Err(error) => {
                trouble.get_or_insert(error);
                Vec::new()
            }
        };
        let mut older: Vec<Line> = typed.into_iter().map(Line::of_ledger).collect();
        older.extend(kept.into_iter().map(|(time, text)| Line::new(text, Mark::Meta, time)));
        older.retain(|line| is_kept(&line.text));
        older.sort_by_key(|line| line.time);
        self.lock().put_before(unique(older));
        trouble.map(|trouble| format!("not all of the history is there: {}", sanitize::single_line(&trouble)))
    }

    /// The person is there now: what was typed there is offered first.
    pub fn stand_in(&self, directory: &Path) {
        self.lock().directory = directory.to_string_lossy().into_owned();
    }

    /// A line was sent that was not typed in the editor. One that begins with a space is not kept.
    pub fn sent(&self, line: &str) {
        if !line.starts_with(NOT_KEPT_PREFIX) {
            // What cannot be written is there as long as this process is.
            let _ = self.add(line);
        }
    }

    /// Adds a line that was sent. The error is that of the file of `:` lines.
    fn add(&self, line: &str) -> Result<Option<i64>, String> {
        let line = line.trim();
        if !is_kept(line) {
            return Ok(None);
        }
        self.lock().add(line, now_ms()).map(Some)
    }

    /// What would make a line of what was typed so far: the rest of the newest line that begins so, preferring those of this
    /// directory. One row only: nobody takes what they have not seen.
    pub fn rest(&self, typed: &str) -> Option<String> {
        self.lock().rest(typed)
    }

    /// The lines that a search finds, the best first; their numbers.
    pub fn find(&self, query: &str) -> Vec<i64> {
        let (wanted, query) = split(query);
        let query = Query::new(query);
        let lines = self.lock();
        let newest_first = lines.lines.iter().rev();
        let wanted_lines = newest_first.filter(|line| wanted.is_none_or(|wanted| line.goes == wanted));
        let mut found: Vec<(u32, i64)> = wanted_lines
            .filter_map(|line| Some((query.points(&line.text, &line.folded)?, line.number)))
            .collect();
        // Stable: of equally good ones the newest stays first.
        found.sort_by_key(|(points, _)| std::cmp::Reverse(*points));
        found.into_iter().map(|(_, number)| number).collect()
    }

    /// The last word of the newest command, or of the newest that is older than the line of that number; with its own number.
    pub fn last_word(&self, before: Option<i64>) -> Option<(i64, String)> {
        let lines = self.lock();
        let older = lines
            .lines
            .iter()
            .rev()
            .filter(|line| before.is_none_or(|before| line.number < before));
        let mut words = older.filter(|line| line.goes == Mark::Shell).filter_map(|line| {
            let word = typed(&line.text).words.pop()?;
            let word = line.text.get(word.start..).filter(|word| !word.is_empty())?;
            Some((line.number, word.to_owned()))
        });
        words.next()
    }

    /// Changes when lines came that a search did not see.
    pub fn came(&self) -> u32 {
        self.lock().came
    }

    /// The next search of the editor finds commands only, as the shell runs them.
    pub fn expect_command(&self) {
        self.lock().expects_command = true;
    }

    /// Those of `numbers` that are still there.
    pub fn look_up(&self, numbers: &[i64]) -> Vec<Found> {
        let lines = self.lock();
        let found = numbers.iter().filter_map(|number| lines.numbered(*number));
        found
            .map(|line| Found {
                number: line.number,
                text: line.text.clone(),
                goes: line.goes,
                time: line.time,
            })
            .collect()
    }

    /// That line as it would have to be typed.
    pub fn line(&self, number: i64) -> Option<String> {
        let lines = self.lock();
        lines.numbered(number).map(|line| lines.as_typed(line, MarkTyped::No))
    }

    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    fn new(text: String, goes: Mark, time: u64) -> Self {
        Self {
            number: 0,
            folded: fold(&text),
            text,
            goes,
            typed: MarkTyped::No,
            time,
            directory: String::new(),
        }
    }

    fn of_ledger(line: TypedLine) -> Self {
        let goes = match line.kind {
            TypedKind::Command => Mark::Shell,
            TypedKind::Message => Mark::Model,
        };
        Self {
            directory: line.directory,
            ..Self::new(line.text.trim().to_owned(), goes, line.time)
        }
    }
}

impl Lines {
    /// Older lines, the oldest first and each once, unless they are there already.
    fn put_before(&mut self, older: Vec<Line>) {
        let known: HashSet<&str> = self.lines.iter().map(|line| line.text.as_str()).collect();
        let room = LINES_MAX.saturating_sub(self.lines.len());
        let mut before: Vec<Line> = older;
        before.retain(|line| !known.contains(line.text.as_str()));
        before.drain(..before.len().saturating_sub(room));
        for (line, number) in before.iter_mut().rev().zip((i64::MIN..0).rev()) {
            line.number = number;
        }
        before.append(&mut self.lines);
        self.lines = before;
        self.came += 1;
        if let Some(draw) = &self.draw {
            // A search may be open, or a line typed that there is a hint for now.
            draw();
        }
    }

    fn add(&mut self, line: &str, time: u64) -> Result<i64, String> {
        let (goes, text, typed) = match mark(line) {
            Some((Mark::Meta, _)) => (Mark::Meta, line, MarkTyped::No),
            Some((goes, rest)) => (goes, rest, MarkTyped::Yes),
            None => (self.goes(line), line, MarkTyped::No),
        };
        self.lines.retain(|old| old.text != text);
        if self.lines.len() >= LINES_MAX {
            self.lines.remove(0);
        }
        let number = self.next;
        self.next += 1;
        self.lines.push(Line {
            number,
            typed,
            directory: self.directory.clone(),
            ..Line::new(text.to_owned(), goes, time)
        });
        match goes {
            Mark::Meta => self.kept.add(time, text).map(|()| number),
            Mark::Shell | Mark::Model => Ok(number),
        }
    }

    /// Where a line without a mark goes that is sent now.
    fn goes(&self, line: &str) -> Mark {
        let Some(router) = &self.router else {
            return Mark::Model;
        };
        router.shown(line);
        match router.seen().way {
            Way::Shell | Way::Mistyped(_) => Mark::Shell,
            Way::Model | Way::Nothing | Way::Meta => Mark::Model,
        }
    }

    /// True if a line without a mark goes there.
    fn goes_by_itself(&self, text: &str, to: Mark) -> bool {
        use aish_shell::route::Route;
        if to == Mark::Meta {
            return true;
        }
        if mark(text).is_some() {
            return false;
        }
        match &self.router {
            None => to == Mark::Model,
            Some(router) => match router.guessed(text) {
                Route::Command => to == Mark::Shell,
                Route::Question => to == Mark::Model,
                Route::Mistyped { .. } | Route::Nothing => false,
            },
        }
    }

    /// True if a line, as it stands, does what it did. Of one that was mistyped that is to be asked whether something else was
    /// meant.
    fn goes_again(&self, line: &Line) -> bool {
        use aish_shell::route::Route;
        let is_of_now = line.number > 0;
        let is_mistyped = |router: &Router| matches!(router.guessed(&line.text), Route::Mistyped { .. });
        self.goes_by_itself(&line.text, line.goes) || (is_of_now && self.router.as_ref().is_some_and(is_mistyped))
    }

    /// A line as it has to be typed; with its mark where that is needed, was typed then, or is `wanted` now.
    fn as_typed(&self, line: &Line, wanted: MarkTyped) -> String {
        let is_plain = line.typed == MarkTyped::No && wanted == MarkTyped::No;
        if line.goes == Mark::Meta || (is_plain && self.goes_again(line)) {
            return line.text.clone();
        }
        format!("{}{}", line.goes.character(), line.text)
    }

    fn rest(&self, typed: &str) -> Option<String> {
        let (wanted, begun) = split(typed);
        // Whoever begins with a space does not want to be remembered, nor reminded.
        if begun.is_empty() || typed.starts_with(' ') {
            return None;
        }
        let here = |line: &&Line| !line.directory.is_empty() && line.directory == self.directory;
        self.rest_among(wanted, begun, here)
            .or_else(|| self.rest_among(wanted, begun, |_| true))
    }

    fn rest_among(&self, wanted: Option<Mark>, begun: &str, is_among: impl Fn(&&Line) -> bool) -> Option<String> {
        let rest_of = |line: &Line| {
            let rest = line.text.strip_prefix(begun)?;
            let is_wanted = wanted.is_none_or(|wanted| line.goes == wanted);
            (is_wanted && !rest.is_empty() && !rest.contains('\n')).then(|| rest.to_owned())
        };
        let lines = self.lines.iter().rev().filter(|line| is_among(line));
        let fits = lines.filter_map(|line| rest_of(line).map(|rest| (line, rest)));
        let is_plain = |line: &Line| line.typed == MarkTyped::No && self.goes_by_itself(&line.text, line.goes);
        let is_fit = |line: &Line| wanted.is_some() || is_plain(line);
        fits.take(UNFIT_MAX)
            .find(|(line, _)| is_fit(line))
            .map(|(_, rest)| rest)
    }

    fn numbered(&self, number: i64) -> Option<&Line> {
        let at = self.lines.binary_search_by_key(&number, |line| line.number).ok()?;
        self.lines.get(at)
    }
}

/// Of lines with the same text the last.
fn unique(lines: Vec<Line>) -> Vec<Line> {
    let mut known = HashSet::new();
    let is_last: Vec<bool> = lines
        .iter()
        .rev()
        .map(|line| known.insert(line.text.as_str()))
        .collect();
    let mut is_last = is_last.into_iter().rev();
    let mut lines = lines;
    lines.retain(|_| is_last.next().unwrap_or(false));
    lines
}

/// The mark that a line begins with and what follows it, space at the end included. The colon of a `:` line belongs to it.
pub fn split(line: &str) -> (Option<Mark>, &str) {
    match mark(line) {
        Some((goes @ (Mark::Shell | Mark::Model), _)) => {
            let mut rest = line.trim_start().chars();
            rest.next();
            (Some(goes), rest.as_str().trim_start())
        }
        Some((Mark::Meta, _)) | None => (None, line),
    }
}

/// Whether a line may be offered again: what acts on a terminal must not, for the editor writes its line as it is.
fn is_kept(line: &str) -> bool {
    let acts = |c: char| c != '\n' && c != '\t' && sanitize::is_hostile(c);
    !line.is_empty() && line.chars().nth(TYPED_CHARS_MAX).is_none() && !line.chars().any(acts)
}

#[cfg(test)]
mod tests;
