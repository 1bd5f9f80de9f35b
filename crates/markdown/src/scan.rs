//! How much of a paragraph's text can be shown before the rest is known.
//!
//! [`Scanner`] follows what CommonMark 6 calls inlines far enough to say where nothing is open that a later character could
//! still close: no emphasis, no code, no link, no tag. Where it is not sure it takes something for open, so that text is
//! shown later and not otherwise. What is inside is not its business: [`crate::inline`] has that read once it is complete.

use crate::rows::is_wide;
use pulldown_cmark::{Event, Options, Parser, Tag};

/// A link's target may have this many parentheses inside each other.
const PARENTHESES_MAX: usize = 32;

/// Where text can be cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cut {
    /// In front of this white space.
    White(usize),
    /// Between two letters.
    Letters(usize),
}

/// Follows text that is not shown yet.
#[derive(Debug)]
pub(crate) struct Scanner {
    at: usize,
    mode: Mode,
    runs: Vec<Run>,
    brackets: Vec<Bracket>,
    /// The character before [`Self::at`].
    previous: char,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Text,
    /// In code that this many backticks end; or in text, if none come.
    Code {
        open: usize,
        length: usize,
    },
    /// Behind a `<` at that place.
    Angle {
        open: usize,
        quote: Option<char>,
    },
    /// In what follows a link's text.
    Target {
        open: usize,
        close: usize,
        depth: usize,
        quote: Option<char>,
    },
}

/// Characters that may open emphasis.
#[derive(Clone, Copy, Debug)]
struct Run {
    at: usize,
    mark: char,
    left: usize,
    length: usize,
    closes: bool,
}

#[derive(Clone, Copy, Debug)]
struct Bracket {
    at: usize,
    /// Runs that were open before it.
    runs: usize,
}

impl Scanner {
    /// For text that follows this character.
    pub(crate) fn after(previous: char) -> Self {
        Self {
            at: 0,
            mode: Mode::Text,
            runs: Vec::new(),
            brackets: Vec::new(),
            previous,
        }
    }

    /// Whether something is open that is seldom long.
    pub(crate) fn only_emphasis(&self) -> bool {
        self.mode == Mode::Text && self.brackets.is_empty()
    }

    /// The first thing that is open and begins there or later.
    pub(crate) fn first_open_from(&self, at: usize) -> Option<usize> {
        let mode = match self.mode {
            Mode::Text => None,
            Mode::Code { open, .. } | Mode::Angle { open, .. } | Mode::Target { open, .. } => Some(open),
        };
        let runs = self.runs.iter().map(|run| run.at);
        let brackets = self.brackets.iter().map(|bracket| bracket.at);
        runs.chain(brackets).chain(mode).filter(|open| *open >= at).min()
    }

    /// Goes on in the text, up to the first place where it can be cut.
    pub(crate) fn next_cut(&mut self, text: &str) -> Option<Cut> {
        while let Some(rest) = text.get(self.at..)
            && let Some(c) = rest.chars().next()
        {
            let stepped = match self.mode {
                Mode::Text => self.text(text, rest, c)?,
                Mode::Code { length, .. } => self.code(rest, c, length)?,
                Mode::Angle { open, quote } => self.angle(text, c, open, quote),
                Mode::Target { .. } => self.target(text, c),
            };
            match stepped {
                Step::On(bytes) => {
                    self.previous = rest.get(..bytes)?.chars().next_back()?;
                    self.at += bytes;
                }
                Step::Back(to) => {
                    self.at = to;
                    self.previous = text.get(..to)?.chars().next_back()?;
                }
                Step::Cut(cut) => return Some(cut),
            }
        }
        None
    }

    /// Nothing that could be closed is open.
    fn is_clear(&self) -> bool {
        self.runs.is_empty() && self.brackets.is_empty()
    }

    fn text(&mut self, text: &str, rest: &str, c: char) -> Option<Step> {
        let next = || rest.chars().nth(1);
        Some(match c {
            ' ' | '\t' | '\n' if self.is_clear() => Step::Cut(Cut::White(self.at)),
            '\\' => Step::On(1 + next()?.len_utf8()),
            '`' => {
                let length = run_length(rest, c)?;
                self.mode = Mode::Code { open: self.at, length };
                Step::On(length)
            }
            '*' | '_' | '~' => {
                let length = run_length(rest, c)?;
                let after = rest.get(length..)?.chars().next()?;
                self.run(c, length, after);
                Step::On(length)
            }
            '[' => {
                self.brackets.push(Bracket {
                    at: self.at,
                    runs: self.runs.len(),
                });
                Step::On(1)
            }
            ']' if !self.brackets.is_empty() => {
                if next()? == '(' {
                    self.mode = Mode::Target {
                        open: self.brackets.last().map_or(0, |bracket| bracket.at),
                        close: self.at,
                        depth: 0,
                        quote: None,
                    };
                } else {
                    self.brackets.pop();
                }
                Step::On(1)
            }
            '<' => {
                let next = next()?;
                if next.is_ascii_alphabetic() || matches!(next, '/' | '!' | '?') {
                    self.mode = Mode::Angle {
                        open: self.at,
                        quote: None,
                    };
                }
                Step::On(1)
            }
            c if is_wide(c) && self.is_clear() && self.at + c.len_utf8() < text.len() => {
                let after = self.at + c.len_utf8();
                let next = next()?;
                // What is joined to it is no letter of its own.
                if next.is_alphanumeric() {
                    return Some(Step::Cut(Cut::Letters(after)));
                }
                Step::On(c.len_utf8())
            }
            c => Step::On(c.len_utf8()),
        })
    }

    fn code(&mut self, rest: &str, c: char, length: usize) -> Option<Step> {
        if c != '`' {
            return Some(Step::On(c.len_utf8()));
        }
        let run = run_length(rest, c)?;
        if run == length {
            self.mode = Mode::Text;
        }
        Some(Step::On(run))
    }

    fn angle(&mut self, text: &str, c: char, open: usize, quote: Option<char>) -> Step {
        match (quote, c) {
            (None, '>') => {
                self.mode = Mode::Text;
                let end = self.at + 1;
                let inside = text.get(open..end).unwrap_or_default();
                let ends = [("<!--", "-->"), ("<?", "?>"), ("<![CDATA[", "]]>")];
                let unfinished = ends
                    .iter()
                    .any(|(start, end)| inside.starts_with(start) && !inside.ends_with(end));
                if unfinished {
                    self.mode = Mode::Angle { open, quote };
                } else if !is_one(inside, |event| {
                    matches!(event, Event::InlineHtml(_) | Event::Start(Tag::Link { .. }))
                }) {
                    return Step::Back(open + 1);
                }
            }
            // A comment may have anything in it; nothing else has one of these.
            (None, '<') if !text.get(open..).unwrap_or_default().starts_with("<!--") => {
                self.mode = Mode::Text;
                return Step::Back(open + 1);
            }
            (None, '"' | '\'') if self.previous == '=' => self.mode = Mode::Angle { open, quote: Some(c) },
            (Some(mark), c) if mark == c => self.mode = Mode::Angle { open, quote: None },
            (None | Some(_), _) => {}
        }
        Step::On(c.len_utf8())
    }

    fn target(&mut self, text: &str, c: char) -> Step {
        let Mode::Target {
            open,
            close,
            mut depth,
            mut quote,
        } = self.mode
        else {
            return Step::On(c.len_utf8());
        };
        match (quote, c) {
            (None, '(') => depth += 1,
            (None, ')') => depth -= 1,
            (None, '"' | '\'') if self.previous.is_whitespace() => quote = Some(c),
            (None, '<') if self.previous == '(' && depth == 1 => quote = Some('>'),
            (Some(mark), c) if mark == c && self.previous != '\\' => quote = None,
            (None | Some(_), _) => {}
        }
        self.mode = Mode::Target {
            open,
            close,
            depth,
            quote,
        };
        if depth > PARENTHESES_MAX {
            return self.no_link(close);
        }
        if depth == 0 {
            let link = text.get(open..=self.at).unwrap_or_default();
            if !is_one(link, |event| matches!(event, Event::Start(Tag::Link { .. }))) {
                return self.no_link(close);
            }
            self.mode = Mode::Text;
            if let Some(bracket) = self.brackets.pop() {
                self.runs.truncate(bracket.runs);
            }
        }
        Step::On(c.len_utf8())
    }

    /// What was taken for a link's target is text.
    fn no_link(&mut self, close: usize) -> Step {
        self.mode = Mode::Text;
        self.brackets.pop();
        Step::Back(close + 1)
    }

    /// The algorithm of CommonMark's appendix, "process emphasis", as far as it says what stays open.
    fn run(&mut self, mark: char, length: usize, next: char) {
        let (opens, closes) = flanks(mark, self.previous, next);
        // Strikethrough takes two; a single one is a home directory.
        if mark == '~' && length != 2 {
            return;
        }
        let mut left = length;
        let bottom = self.brackets.last().map_or(0, |bracket| bracket.runs);
        while closes && left > 0 {
            let matching = |run: &Run| {
                let thirds = (run.closes || opens)
                    && (run.length + length).is_multiple_of(3)
                    && !(run.length.is_multiple_of(3) && length.is_multiple_of(3));
                run.mark == mark && !thirds && (mark != '~' || run.length == length)
            };
            let inside = self.runs.get(bottom..).unwrap_or_default();
            let Some(at) = inside.iter().rposition(matching) else {
                break;
            };
            self.runs.truncate(bottom + at + 1);
            let Some(run) = self.runs.last_mut() else {
                break;
            };
            let used = if run.left >= 2 && left >= 2 { 2 } else { 1 };
            run.left -= used;
            left -= used;
            if run.left == 0 {
                self.runs.pop();
            }
        }
        if opens && left > 0 {
            self.runs.push(Run {
                at: self.at,
                mark,
                left,
                length,
                closes,
            });
        }
    }
}

enum Step {
    On(usize),
    Back(usize),
    Cut(Cut),
}

/// How long a run is; `None` while it may grow.
fn run_length(rest: &str, mark: char) -> Option<usize> {
    rest.find(|c| c != mark)
}

/// Whether a run may open and whether it certainly may close (CommonMark 6.2). Not every punctuation is known here: what may be
/// some opens and does not close.
fn flanks(mark: char, previous: char, next: char) -> (bool, bool) {
    let unknown = |c: char| !c.is_ascii() && !c.is_alphanumeric() && !c.is_whitespace();
    let punctuation = |c: char| c.is_ascii_punctuation() || unknown(c);
    let left = !next.is_whitespace()
        && (!punctuation(next) || unknown(next) || previous.is_whitespace() || punctuation(previous));
    let right =
        !previous.is_whitespace() && (!punctuation(previous) || next.is_whitespace() || next.is_ascii_punctuation());
    let (opens, closes) = match mark {
        '_' => (
            left && (!right || punctuation(previous)),
            right && (!left || next.is_ascii_punctuation()),
        ),
        '~' => (!next.is_whitespace(), !previous.is_whitespace()),
        _ => (left, right),
    };
    (opens, closes && !unknown(previous) && !unknown(next))
}

/// Whether the text is one inline of that kind and nothing else.
fn is_one(text: &str, kind: fn(&Event<'_>) -> bool) -> bool {
    let shielded = format!("x{text}");
    let mut events = Parser::new_ext(&shielded, Options::ENABLE_STRIKETHROUGH).into_offset_iter();
    events.any(|(event, range)| kind(&event) && range == (1..shielded.len()))
}
