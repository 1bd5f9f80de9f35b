//! Colours of code, by the syntaxes that come with `syntect`.
//!
//! Reading the syntaxes takes some ten milliseconds, so that is done when code is first shown, on a thread of its own; until
//! then lines are plain. A block that was begun plain gets its colours with the line after that.

use crate::look::Palette;
use anstyle::Style;
use std::fmt;
use std::sync::{Arc, OnceLock};
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

/// So much of a block is kept to be read again once the syntaxes are there.
const REPLAYED_BYTES_MAX: usize = 32 * 1024;
/// The name of the thread that reads the syntaxes.
const THREAD_NAME: &str = "syntaxes";

/// Names that models write and the syntaxes do not know, and what is close enough.
const OTHER_NAMES: [(&str, &str); 26] = [
    ("typescript", "js"),
    ("ts", "js"),
    ("tsx", "js"),
    ("jsx", "js"),
    ("mjs", "js"),
    ("node", "js"),
    ("shell", "sh"),
    ("shellscript", "sh"),
    ("console", "sh"),
    ("terminal", "sh"),
    ("ksh", "sh"),
    ("fish", "sh"),
    ("shell-session", "sh"),
    ("py3", "py"),
    ("python3", "py"),
    ("golang", "go"),
    ("kotlin", "java"),
    ("kt", "java"),
    ("csharp", "cs"),
    ("c#", "cs"),
    ("c++", "cpp"),
    ("jsonc", "json"),
    ("json5", "json"),
    ("toml", "properties"),
    ("ini", "properties"),
    ("rust,no_run", "rs"),
];

/// The first part of a scope's name and what it is; the longest that fits decides.
const SCOPES: [(&str, Kind); 26] = [
    ("comment", Kind::Comment),
    ("punctuation.definition.comment", Kind::Comment),
    ("string", Kind::String),
    ("punctuation.definition.string", Kind::String),
    ("constant", Kind::Number),
    ("constant.other", Kind::Plain),
    ("keyword", Kind::Keyword),
    ("keyword.operator", Kind::Plain),
    ("keyword.operator.word", Kind::Keyword),
    ("storage", Kind::Keyword),
    ("storage.type.function", Kind::Keyword),
    ("variable.language", Kind::Keyword),
    ("variable.function", Kind::Function),
    ("entity.name.function", Kind::Function),
    ("support.function", Kind::Function),
    ("support.macro", Kind::Function),
    ("entity.name.tag", Kind::Function),
    ("entity.name", Kind::Type),
    ("entity.other.attribute-name", Kind::Type),
    ("entity.other.inherited-class", Kind::Type),
    ("support.type", Kind::Type),
    ("support.class", Kind::Type),
    ("support.constant", Kind::Number),
    ("markup.inserted", Kind::Inserted),
    ("markup.deleted", Kind::Deleted),
    ("markup.heading", Kind::Keyword),
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Plain,
    Comment,
    String,
    Number,
    Keyword,
    Function,
    Type,
    Inserted,
    Deleted,
}

/// The syntaxes of a program: read once, shared by all that is shown.
#[derive(Clone, Default)]
pub struct Syntaxes {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    loaded: OnceLock<Loaded>,
    begun: OnceLock<()>,
}

struct Loaded {
    set: SyntaxSet,
    kinds: Vec<(Scope, Kind)>,
}

impl Syntaxes {
    /// Not read yet: the first code that is shown begins to.
    pub fn new() -> Self {
        Self::default()
    }

    /// Read now, on this thread.
    pub fn loaded() -> Self {
        let syntaxes = Self::new();
        syntaxes.shared.loaded.get_or_init(Loaded::read);
        syntaxes
    }

    /// Whether code would be coloured at once.
    pub fn are_loaded(&self) -> bool {
        self.shared.loaded.get().is_some()
    }

    /// Begins to read them, unless somebody has.
    pub fn begin(&self) {
        if self.are_loaded() || self.shared.begun.set(()).is_err() {
            return;
        }
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new().name(THREAD_NAME.to_owned());
        // Where no thread can be had, code stays plain.
        drop(thread.spawn(move || shared.loaded.get_or_init(Loaded::read).kinds.len()));
    }
}

impl fmt::Debug for Syntaxes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Syntaxes")
            .field("are_loaded", &self.are_loaded())
            .finish()
    }
}

impl Loaded {
    fn read() -> Self {
        let kinds = SCOPES
            .iter()
            .filter_map(|(name, kind)| Some((Scope::new(name).ok()?, *kind)));
        Self {
            set: SyntaxSet::load_defaults_newlines(),
            kinds: kinds.collect(),
        }
    }

    fn syntax(&self, language: &str) -> Option<&SyntaxReference> {
        let other = OTHER_NAMES.iter().find(|(name, _)| *name == language);
        let name = other.map_or(language, |(_, other)| *other);
        let syntax = self.set.find_syntax_by_token(name)?;
        (syntax.name != self.set.find_syntax_plain_text().name).then_some(syntax)
    }

    fn kind(&self, stack: &ScopeStack) -> Kind {
        let of_scope = |scope: &Scope| {
            self.kinds
                .iter()
                .filter(|(prefix, _)| prefix.is_prefix_of(*scope))
                .max_by_key(|(prefix, _)| prefix.len())
                .map(|(_, kind)| *kind)
        };
        stack.as_slice().iter().rev().find_map(of_scope).unwrap_or(Kind::Plain)
    }
}

/// Colours the lines of one block.
pub(crate) struct Highlighter {
    palette: Palette,
    syntaxes: Syntaxes,
    state: State,
}

enum State {
    /// The syntaxes are not there yet; these lines came by.
    Waiting {
        language: String,
        before: String,
    },
    Reading(Box<(ParseState, ScopeStack)>),
    /// No syntax, or too much came by before there was one.
    Plain,
}

impl Highlighter {
    pub(crate) fn new(language: &str, palette: Palette, syntaxes: &Syntaxes) -> Self {
        syntaxes.begin();
        Self {
            palette,
            syntaxes: syntaxes.clone(),
            state: State::Waiting {
                language: language.to_owned(),
                before: String::new(),
            },
        }
    }

    /// The next line, in pieces of one style.
    pub(crate) fn line<'a>(&mut self, line: &'a str) -> Vec<(Style, &'a str)> {
        let shared = Arc::clone(&self.syntaxes.shared);
        let Some(loaded) = shared.loaded.get() else {
            self.remember(line);
            return vec![(Style::new(), line)];
        };
        self.catch_up(loaded);
        let State::Reading(reading) = &mut self.state else {
            return vec![(Style::new(), line)];
        };
        let (state, stack) = reading.as_mut();
        match read(loaded, state, stack, line) {
            Some(pieces) => pieces
                .into_iter()
                .map(|(kind, text)| (self.style(kind), text))
                .collect(),
            None => {
                self.state = State::Plain;
                vec![(Style::new(), line)]
            }
        }
    }

    fn remember(&mut self, line: &str) {
        let State::Waiting { before, .. } = &mut self.state else {
            return;
        };
        if before.len() + line.len() >= REPLAYED_BYTES_MAX {
            self.state = State::Plain;
            return;
        }
        before.push_str(line);
        before.push('\n');
    }

    /// Reads again what came before the syntaxes were there.
    fn catch_up(&mut self, loaded: &Loaded) {
        let State::Waiting { language, before } = &self.state else {
            return;
        };
        let Some(syntax) = loaded.syntax(language) else {
            self.state = State::Plain;
            return;
        };
        let mut reading = Box::new((ParseState::new(syntax), ScopeStack::new()));
        let (state, stack) = reading.as_mut();
        let is_read = before.lines().all(|line| read(loaded, state, stack, line).is_some());
        self.state = if is_read { State::Reading(reading) } else { State::Plain };
    }

    fn style(&self, kind: Kind) -> Style {
        match kind {
            Kind::Plain => Style::new(),
            Kind::Comment => self.palette.comment,
            Kind::String => self.palette.string,
            Kind::Number => self.palette.number,
            Kind::Keyword => self.palette.keyword,
            Kind::Function => self.palette.function,
            Kind::Type => self.palette.type_name,
            Kind::Inserted => self.palette.inserted,
            Kind::Deleted => self.palette.deleted,
        }
    }
}

impl fmt::Debug for Highlighter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Highlighter").finish_non_exhaustive()
    }
}

/// One line; `None` where its syntax cannot go on.
fn read<'a>(
    loaded: &Loaded,
    state: &mut ParseState,
    stack: &mut ScopeStack,
    line: &'a str,
) -> Option<Vec<(Kind, &'a str)>> {
    let whole = format!("{line}\n");
    let changes = state.parse_line(&whole, &loaded.set).ok()?;
    let mut pieces: Vec<(Kind, std::ops::Range<usize>)> = Vec::new();
    let mut add = |kind: Kind, from: usize, to: usize| match pieces.last_mut() {
        _ if from >= to => {}
        Some((last, range)) if *last == kind => range.end = to,
        Some(_) | None => pieces.push((kind, from..to)),
    };
    let mut from = 0;
    for (at, change) in changes {
        let at = at.min(line.len());
        add(loaded.kind(stack), from, at);
        from = at;
        stack.apply(&change).ok()?;
    }
    add(loaded.kind(stack), from, line.len());
    pieces
        .into_iter()
        .map(|(kind, range)| Some((kind, line.get(range)?)))
        .collect()
}
