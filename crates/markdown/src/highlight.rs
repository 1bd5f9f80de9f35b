//! Colours of code, by the syntaxes that come with `syntect`.
//!
//! The patterns of a language take tens of milliseconds to compile, so that is done when code of it is first shown, on a thread
//! of its own; until then lines are plain. A block that was begun plain gets its colours with the line after that.

use crate::look::Palette;
use anstyle::Style;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

/// So much of a block is kept to be read again once its language is ready: a few milliseconds' worth.
const REPLAYED_BYTES_MAX: usize = 4 * 1024;
/// Code of further languages is plain: each takes a thread for a moment, and memory for good.
const LANGUAGES_MAX: usize = 64;
/// The name of the thread that makes a language ready.
const THREAD_NAME: &str = "syntaxes";
/// Looking for anything in these lines compiles the patterns most code needs.
const WARM_UP: [&str; 4] = [
    "fn f(a, b) { return a + 1; }",
    "x = \"s\" # c",
    "if (x) { 'y' } // c",
    "<a b=\"c\">{\"d\": [1, true]}</a>",
];

/// Names that models write and the syntaxes do not know, and what is close enough.
const OTHER_NAMES: [(&str, &str); 25] = [
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
    languages: Mutex<BTreeMap<String, Readiness>>,
    waiting: Waiting,
}

/// Who waits for the patterns of a language.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Waiting {
    /// A thread.
    #[default]
    Behind,
    /// Whoever shows code of it.
    InPlace,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Readiness {
    Begun,
    Ready,
}

struct Loaded {
    set: SyntaxSet,
    kinds: Vec<(Scope, Kind)>,
}

impl Syntaxes {
    /// Nothing is read yet: the first code that is shown begins to.
    pub fn new() -> Self {
        Self::default()
    }

    /// Read now; code is coloured from its first line, which waits for the patterns of its language.
    pub fn loaded() -> Self {
        let shared = Shared {
            waiting: Waiting::InPlace,
            ..Shared::default()
        };
        shared.loaded.get_or_init(Loaded::read);
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Whether code of that language would be coloured at once.
    pub fn are_ready(&self, language: &str) -> bool {
        self.shared.waiting == Waiting::InPlace || self.shared.languages().get(language) == Some(&Readiness::Ready)
    }

    /// Begins to make that language ready, unless somebody has.
    pub fn begin(&self, language: &str) {
        {
            let mut languages = self.shared.languages();
            let is_known = languages.contains_key(language) || languages.len() >= LANGUAGES_MAX;
            if is_known || self.shared.waiting == Waiting::InPlace {
                return;
            }
            languages.insert(language.to_owned(), Readiness::Begun);
        }
        let (shared, language) = (Arc::clone(&self.shared), language.to_owned());
        let thread = std::thread::Builder::new().name(THREAD_NAME.to_owned());
        let ready = move || {
            shared.loaded.get_or_init(Loaded::read).warm_up(&language);
            shared.languages().insert(language, Readiness::Ready);
        };
        // Where no thread can be had, code stays plain.
        drop(thread.spawn(ready));
    }
}

impl Shared {
    fn languages(&self) -> MutexGuard<'_, BTreeMap<String, Readiness>> {
        self.languages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Syntaxes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Syntaxes")
            .field("languages", &self.shared.languages())
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

    fn warm_up(&self, language: &str) {
        let Some(syntax) = self.syntax(language) else {
            return;
        };
        for line in WARM_UP {
            let (mut state, mut stack) = (ParseState::new(syntax), ScopeStack::new());
            // What comes of it is of no interest.
            drop(read(self, &mut state, &mut stack, line));
        }
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
    /// The language is not ready yet; these lines came by.
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
        syntaxes.begin(language);
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
        let is_ready = match &self.state {
            State::Waiting { language, .. } => self.syntaxes.are_ready(language),
            State::Reading(_) | State::Plain => true,
        };
        let shared = Arc::clone(&self.syntaxes.shared);
        let Some(loaded) = shared.loaded.get().filter(|_| is_ready) else {
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
            // What is left of the block stays plain; the next one has its colours.
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::look::{Background, Colour, Links, Look};
    use std::time::{Duration, Instant};

    /// A language is ready long before.
    const READY_S_MAX: u64 = 60;

    /// SPEC 8.6: code that was begun plain gets its colours in the middle, the same as if it had had them from the start.
    #[test]
    fn colours_come_later() {
        let look = Look {
            columns: 80,
            colour: Colour::Rich,
            links: Links::Plain,
            background: Background::Dark,
        };
        let syntaxes = Syntaxes::new();
        let mut late = Highlighter::new("rust", look.palette(), &syntaxes);
        let mut early = Highlighter::new("rust", look.palette(), &Syntaxes::loaded());
        late.remember("/* a comment");
        early.line("/* a comment");
        let begun = Instant::now();
        while !syntaxes.are_ready("rust") && begun.elapsed() < Duration::from_secs(READY_S_MAX) {
            std::thread::yield_now();
        }
        let line = "that goes on */ let x = 1;";
        assert_eq!(late.line(line), early.line(line));
        assert_eq!(late.line(line).len(), early.line(line).len());
        assert!(late.line("let x = 1;").len() > 1);
    }

    /// SPEC 8.6: a language nobody knows is plain.
    #[test]
    fn unknown_languages() {
        let syntaxes = Syntaxes::loaded();
        let loaded = syntaxes.shared.loaded.get().unwrap();
        assert!(loaded.syntax("klingon").is_none() && loaded.syntax("").is_none());
        for (name, _) in OTHER_NAMES {
            let known = loaded.syntax(name);
            assert!(known.is_some(), "{name}");
        }
        assert_eq!(loaded.kinds.len(), SCOPES.len());
    }
}
