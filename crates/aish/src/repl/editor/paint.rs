//! The line being typed in colours: a command by its syntax, a question plain but for what it mentions, a meta command by whether
//! there is one of that name.
//!
//! [`Painter`] is called for each key, before the prompt is drawn around the line, and tells the [`Router`] what is shown. It does
//! not change the line: each byte comes back in the same place, but for control characters, which nobody's terminal is to obey and
//! which show as `?`.

use crate::mentions;
use crate::repl::meta::COMMANDS;
use crate::repl::route::{Mark, mark};
use crate::repl::router::{Router, Seen, Way};
use crate::shell::known::Knowledge;
use crate::term::{Background, Colour};
use aish_command::{Class, Grammar, open, parse_within};
use aish_core::sanitize::is_hostile;
use aish_shell::route::Known as _;
use nu_ansi_term::{Color, Style};
use reedline::{Highlighter, StyledText};
use std::cell::RefCell;
use std::ops::Range;
use std::time::Duration;

/// Longer lines are shown plain, in bytes: nobody reads them for their colours.
const PAINTED_BYTES_MAX: usize = 2_048;
/// How long a line may take to be parsed. Ordinary ones take a twentieth of it.
const PARSE_MS_MAX: u64 = 4;
/// Words that are looked for among the files: each asks the file system.
const PATHS_MAX: usize = 16;

/// Paints the line being typed.
pub struct Painter {
    router: Option<Router>,
    known: Knowledge,
    palette: Option<Palette>,
    /// The last line, and what came of it: the editor draws it more than once.
    last: RefCell<Option<(Seen, StyledText)>>,
}

impl Painter {
    /// Without styles, where none are to be written.
    pub fn new(router: Option<Router>, colour: Colour, background: Background) -> Self {
        Self {
            known: router.as_ref().map(Router::known).unwrap_or_default(),
            router,
            palette: match colour {
                Colour::On => Some(Palette::of(background)),
                Colour::Off => None,
            },
            last: RefCell::default(),
        }
    }

    fn seen(&self, line: &str) -> Seen {
        if let Some(router) = &self.router {
            router.shown(line);
            return router.seen();
        }
        let way = match mark(line) {
            Some((Mark::Meta, _)) => Way::Meta,
            Some((Mark::Shell, _)) => Way::Shell,
            Some((Mark::Model, _)) | None => Way::Model,
        };
        Seen {
            line: line.to_owned(),
            way,
            ..Seen::default()
        }
    }

    fn paint(&self, seen: &Seen) -> StyledText {
        let line = seen.line.as_str();
        let mut paint = Paint::plain(line);
        if let Some(palette) = self.palette
            && line.len() <= PAINTED_BYTES_MAX
        {
            let marked = paint.mark();
            match &seen.way {
                Way::Nothing => {}
                Way::Meta => paint.meta(marked, palette),
                Way::Model => paint.question(palette),
                Way::Shell => paint.command(marked, palette, &self.known),
                Way::Mistyped(_) => paint.first_word(palette.wrong),
            }
        }
        paint.done()
    }
}

impl Highlighter for Painter {
    fn highlight(&self, line: &str, _cursor: usize) -> StyledText {
        let seen = self.seen(line);
        let mut last = self.last.borrow_mut();
        if let Some((painted, text)) = last.as_ref()
            && *painted == seen
        {
            return text.clone();
        }
        let text = self.paint(&seen);
        *last = Some((seen, text.clone()));
        text
    }
}

/// The styles of what is told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Palette {
    command: Style,
    keyword: Style,
    option: Style,
    quoted: Style,
    variable: Style,
    operator: Style,
    comment: Style,
    mention: Style,
    meta: Style,
    /// What nobody would run.
    wrong: Style,
}

impl Palette {
    /// Of the sixteen colours everybody has chosen for their terminal, those that can be read on that background.
    fn of(background: Background) -> Self {
        let (quoted, variable, option) = match background {
            Background::Dark => (Color::Yellow, Color::LightBlue, Color::Cyan),
            Background::Light => (Color::Blue, Color::Purple, Color::Default),
        };
        Self {
            command: Color::Green.normal(),
            keyword: Color::Purple.bold(),
            option: option.normal(),
            quoted: quoted.normal(),
            variable: variable.normal(),
            operator: Style::new().bold(),
            comment: Style::new().dimmed(),
            mention: Color::Cyan.normal(),
            meta: Style::new().bold(),
            wrong: Color::Red.underline(),
        }
    }

    fn of_class(&self, class: Class) -> Style {
        match class {
            Class::Plain => Style::new(),
            Class::Command => self.command,
            Class::Keyword => self.keyword,
            Class::Option => self.option,
            Class::Quoted => self.quoted,
            Class::Variable => self.variable,
            Class::Operator | Class::Redirect => self.operator,
            Class::Comment => self.comment,
            Class::Error => self.wrong,
        }
    }
}

/// A line with a style for each of its bytes.
struct Paint<'a> {
    line: &'a str,
    styles: Vec<Style>,
}

impl<'a> Paint<'a> {
    fn plain(line: &'a str) -> Self {
        Self {
            line,
            styles: vec![Style::new(); line.len()],
        }
    }

    fn style(&mut self, bytes: Range<usize>, style: Style) {
        if let Some(styles) = self.styles.get_mut(bytes) {
            styles.fill(style);
        }
    }

    /// Makes the mark of the line bold, if it has one; gives where the line goes on behind it.
    fn mark(&mut self) -> usize {
        if mark(self.line).is_none() {
            return 0;
        }
        let at = self.line.len() - self.line.trim_start().len();
        self.style(at..at + 1, Style::new().bold());
        at + 1
    }

    /// The word that begins behind `from`, without space before it.
    fn word(&self, from: usize) -> Range<usize> {
        let rest = self.line.get(from..).unwrap_or_default();
        let begin = from + (rest.len() - rest.trim_start().len());
        let length = rest.trim_start().find(char::is_whitespace);
        begin..length.map_or(self.line.len(), |length| begin + length)
    }

    fn first_word(&mut self, style: Style) {
        self.style(self.word(0), style);
    }

    fn meta(&mut self, from: usize, palette: Palette) {
        let name = self.word(from);
        let typed = self.line.get(name.clone()).unwrap_or_default();
        // While it is typed, the beginning of one is right; what has a dot is a prompt of a server.
        let is_done = name.end < self.line.len();
        let mut named = COMMANDS.iter().map(|command| command.name);
        let is_right = typed.contains('.') || named.any(|name| name == typed || (!is_done && name.starts_with(typed)));
        // Another server may be meant still.
        let style = if is_right || !is_done {
            palette.meta
        } else {
            palette.wrong
        };
        self.style(name, style);
    }

    fn question(&mut self, palette: Palette) {
        for mention in mentions::spans(self.line) {
            self.style(mention, palette.mention);
        }
    }

    fn command(&mut self, from: usize, palette: Palette, known: &Knowledge) {
        let text = self.line.get(from..).unwrap_or_default();
        let Ok(syntax) = parse_within(text, Duration::from_millis(PARSE_MS_MAX)) else {
            return;
        };
        let grammar = known.grammar();
        // What is only not whole yet is not wrong, and bash's grammar knows nothing of what is wrong elsewhere.
        let shows_errors = grammar == Grammar::Bash && syntax.is_malformed() && open(text, grammar).is_none();
        let mut paths_left = PATHS_MAX;
        for piece in syntax.pieces() {
            let bytes = from + piece.bytes.start..from + piece.bytes.end;
            match piece.class {
                Class::Plain => self.paths(bytes, known, &mut paths_left),
                Class::Command => {
                    let name = self.line.get(bytes.clone()).unwrap_or_default();
                    let style = if is_known(name, known) {
                        palette.command
                    } else {
                        palette.wrong
                    };
                    self.style(bytes, style);
                }
                Class::Error if !shows_errors => {}
                Class::Keyword
                | Class::Option
                | Class::Quoted
                | Class::Variable
                | Class::Operator
                | Class::Redirect
                | Class::Comment
                | Class::Error => self.style(bytes, palette.of_class(piece.class)),
            }
        }
    }

    /// Underlines the words that name something that is there.
    fn paths(&mut self, bytes: Range<usize>, known: &Knowledge, left: &mut usize) {
        let mut at = bytes.start;
        while at < bytes.end && *left > 0 {
            let word = self.word(at);
            let word = word.start..word.end.min(bytes.end);
            let text = self.line.get(word.clone()).unwrap_or_default();
            at = word.end.max(at + 1);
            if text.is_empty() {
                continue;
            }
            *left -= 1;
            if known.is_path(text) {
                self.style(word, Style::new().underline());
            }
        }
    }

    fn done(self) -> StyledText {
        let mut text = StyledText::new();
        let mut run: Option<(Style, String)> = None;
        for (at, character) in self.line.char_indices() {
            let style = self.styles.get(at).copied().unwrap_or_default();
            if run.as_ref().is_none_or(|(current, _)| *current != style) {
                text.buffer.extend(run.take());
            }
            let (_, shown) = run.get_or_insert((style, String::new()));
            match character {
                '\n' | '\t' => shown.push(character),
                // As many bytes as before: the editor counts them to find the cursor.
                _ if is_hostile(character) => shown.extend(std::iter::repeat_n('?', character.len_utf8())),
                _ => shown.push(character),
            }
        }
        // Of an empty line, too, there is a piece.
        text.buffer.push(run.unwrap_or_default());
        text
    }
}

/// Whether a name can be run. What is quoted, escaped or expanded may be anything.
fn is_known(name: &str, known: &Knowledge) -> bool {
    if name.contains(['\\', '\'', '"', '$', '`', '*', '?', '[', '{', '(']) || !known.is_complete() {
        return true;
    }
    known.kind(name).is_some() || ((name.contains('/') || name.starts_with('~')) && known.is_path(name))
}

#[cfg(test)]
mod tests;
