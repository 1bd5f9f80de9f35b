//! Whether a command line is whole, or a shell would wait for more of it: a quote, a block or a here-document is open, or what
//! an operator joins is missing.
//!
//! The syntax tree cannot say: what it makes of a line that breaks off is a guess, another for each line. So the line is read as
//! a shell reads it, in one pass, with what is open on a stack ([`frames`]). What no shell would accept is called whole here: to
//! refuse it is the shell's part, and a person is never made to close what was not opened.

mod frames;
mod words;

use frames::{Case, Frame, Loop};
use words::Word;

/// Which grammar a line is read by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grammar {
    /// Of bash, and of the shells that are near it: sh, ksh.
    Bash,
    /// Of zsh: bash's, with blocks in braces.
    Zsh,
    /// Of fish: blocks end in `end`, there are no here-documents.
    Fish,
}

/// What a line that is not whole still lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// The other quote.
    Quote,
    /// The end of a `$(`, `${`, `((`, a subshell or a list in parentheses.
    Substitution,
    /// The line that ends a here-document.
    HereDocument,
    /// What comes behind `|`, `&&`, `||`, or the body of a function.
    Operator,
    /// The next line: this one ends in a backslash.
    Backslash,
    /// `fi`, `done`, `esac`, `end`, `}` or `]]`.
    Block,
}

/// What `text` still lacks; `None` if a shell would take it as it is, be it to run it or to call it wrong. Time and memory grow
/// with the text and nothing else.
pub fn open(text: &str, grammar: Grammar) -> Option<Opened> {
    let mut scan = Scan {
        bytes: text.as_bytes(),
        at: 0,
        grammar,
        frames: Vec::new(),
        documents: Vec::new(),
        lacking: None,
        place: Place::Command,
    };
    while scan.at < scan.bytes.len() {
        if let Some(opened) = scan.step() {
            return Some(opened);
        }
    }
    scan.at_the_end()
}

/// Where in a command the next word stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// It is the command.
    Command,
    /// It is the command, behind `else` of fish: an `if` there opens nothing.
    Else,
    /// It names the function that is defined.
    Name,
    /// Anything behind the command.
    Argument,
}

/// Whether a backslash escapes what follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Escapes {
    Known,
    Not,
}

/// A here-document that was announced.
struct Document {
    delimiter: Vec<u8>,
    /// Tabs before its lines do not count.
    indented: bool,
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
    grammar: Grammar,
    frames: Vec<Frame>,
    documents: Vec<Document>,
    /// What must still follow, whatever lines come between.
    lacking: Option<Opened>,
    place: Place,
}

impl Scan<'_> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn sees(&self, text: &str) -> bool {
        self.bytes
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with(text.as_bytes()))
    }

    fn at_the_end(&self) -> Option<Opened> {
        if let Some(frame) = self.frames.last() {
            return Some(frame.opened());
        }
        if !self.documents.is_empty() {
            return Some(Opened::HereDocument);
        }
        self.lacking
    }

    /// Reads one thing more; says what is lacking where the text ends in the middle of it.
    fn step(&mut self) -> Option<Opened> {
        match self.frames.last() {
            Some(Frame::Double) => self.in_double(),
            Some(Frame::Parameter) => self.in_text(b'}'),
            Some(Frame::List) => self.in_text(b')'),
            Some(Frame::Arithmetic { .. }) => self.in_arithmetic(),
            Some(
                Frame::Parens
                | Frame::Backtick
                | Frame::Brace
                | Frame::Test
                | Frame::If { .. }
                | Frame::Loop(_)
                | Frame::Case(_)
                | Frame::End,
            )
            | None => self.in_commands(),
        }
    }

    fn in_double(&mut self) -> Option<Opened> {
        match self.peek(0) {
            Some(b'"') => self.close(),
            _ => return self.common(),
        }
        None
    }

    /// In `${…}` or in a list: text, in which quotes count.
    fn in_text(&mut self, end: u8) -> Option<Opened> {
        match self.peek(0) {
            Some(b) if b == end => self.close(),
            Some(b'(') if end == b')' => self.push(Frame::List, 1),
            Some(b'#') if end == b')' && self.is_word_start() => self.skip_comment(),
            Some(b'\'') if !self.is_in_double() => return self.single(),
            Some(b'"') => self.push(Frame::Double, 1),
            _ => return self.common(),
        }
        None
    }

    fn in_arithmetic(&mut self) -> Option<Opened> {
        let Some(Frame::Arithmetic { depth }) = self.frames.last_mut() else {
            return None;
        };
        match (self.bytes.get(self.at), self.bytes.get(self.at + 1)) {
            (Some(b'('), _) => *depth += 1,
            (Some(b')'), _) if *depth > 0 => *depth -= 1,
            (Some(b')'), Some(b')')) => {
                self.at += 1;
                self.close();
                return None;
            }
            // It was a command in a command: `$((a) | b)`.
            (Some(b')'), _) => {
                self.close();
                return None;
            }
            _ => return self.common(),
        }
        self.at += 1;
        None
    }

    /// What means the same within double quotes, `${…}` and arithmetic.
    fn common(&mut self) -> Option<Opened> {
        if self.sees("\\") {
            if self.peek(1).is_none() {
                return Some(self.frames.last().map_or(Opened::Backslash, Frame::opened));
            }
            self.at += 2;
        } else if !self.begins_substitution() {
            self.at += 1;
        }
        None
    }

    /// Steps into a substitution that begins here.
    fn begins_substitution(&mut self) -> bool {
        let (frame, bytes) = if self.sees("$((") {
            (Frame::Arithmetic { depth: 0 }, 3)
        } else if self.sees("$(") {
            (Frame::Parens, 2)
        } else if self.sees("${") && self.grammar != Grammar::Fish {
            (Frame::Parameter, 2)
        } else if self.sees("`") && self.grammar != Grammar::Fish {
            if self.frames.contains(&Frame::Backtick) {
                self.close_down_to(&Frame::Backtick);
                return true;
            }
            (Frame::Backtick, 1)
        } else {
            return false;
        };
        self.push(frame, bytes);
        true
    }

    fn push(&mut self, frame: Frame, bytes: usize) {
        if frame.holds_commands() {
            self.place = Place::Command;
        }
        self.frames.push(frame);
        self.at += bytes;
        self.lacking = None;
    }

    /// The innermost frame ends with this byte.
    fn close(&mut self) {
        self.frames.pop();
        self.at += 1;
        self.place = Place::Argument;
        self.lacking = None;
    }

    /// The innermost frame of that kind ends with this byte, and so does what is open in it; nothing if there is none.
    fn close_down_to(&mut self, frame: &Frame) {
        match self.frames.iter().rposition(|open| open == frame) {
            Some(index) => {
                self.frames.truncate(index + 1);
                self.close();
            }
            None => self.at += 1,
        }
    }

    /// Within `"${…}"` a single quote is a character like any other.
    fn is_in_double(&self) -> bool {
        let around = self.frames.iter().rev().find(|frame| **frame != Frame::Parameter);
        around == Some(&Frame::Double)
    }

    fn is_word_start(&self) -> bool {
        let before = self.at.checked_sub(1).and_then(|at| self.bytes.get(at));
        before.is_none_or(u8::is_ascii_whitespace)
    }

    fn skip_comment(&mut self) {
        while self.peek(0).is_some_and(|b| b != b'\n') {
            self.at += 1;
        }
    }

    /// A string in single quotes, from its first quote on.
    fn single(&mut self) -> Option<Opened> {
        match self.grammar {
            Grammar::Bash | Grammar::Zsh => self.quoted(Escapes::Not),
            Grammar::Fish => self.quoted(Escapes::Known),
        }
    }

    /// A string that ends in a single quote.
    fn quoted(&mut self, escapes: Escapes) -> Option<Opened> {
        self.at += 1;
        loop {
            match self.peek(0) {
                None => return Some(Opened::Quote),
                Some(b'\\') if escapes == Escapes::Known => self.at += 2,
                Some(b'\'') => {
                    self.at += 1;
                    return None;
                }
                Some(_) => self.at += 1,
            }
        }
    }

    /// Where commands stand.
    fn in_commands(&mut self) -> Option<Opened> {
        match self.peek(0)? {
            b' ' | b'\t' | b'\r' => self.at += 1,
            b'\n' => return self.line_end(),
            b'#' => self.skip_comment(),
            b'\\' if self.sees("\\\n") => self.at += 2,
            b';' => self.separator(),
            b'|' => self.pipe(),
            b'&' => self.ampersand(),
            b'<' | b'>' => return self.redirect(),
            b'(' => self.parenthesis(),
            b')' => self.close_parenthesis(),
            _ => {
                let depth = self.frames.len();
                let word = match self.word() {
                    Ok(word) => word,
                    Err(opened) => return Some(opened),
                };
                // Where something was opened in it, what comes next stands there.
                if self.frames.len() == depth {
                    self.lacking = None;
                    self.take(&word);
                }
            }
        }
        None
    }

    fn line_end(&mut self) -> Option<Opened> {
        self.at += 1;
        if self.place == Place::Argument {
            self.place = Place::Command;
        }
        for document in std::mem::take(&mut self.documents) {
            if !self.skip_document(&document) {
                return Some(Opened::HereDocument);
            }
        }
        None
    }

    /// Steps over a here-document; false if it does not end.
    fn skip_document(&mut self, document: &Document) -> bool {
        while let Some(rest) = self.bytes.get(self.at..).filter(|rest| !rest.is_empty()) {
            let end = rest.iter().position(|b| *b == b'\n');
            let line = end.and_then(|end| rest.get(..end)).unwrap_or(rest);
            self.at += end.map_or(line.len(), |end| end + 1);
            let tabs = line.iter().take_while(|b| **b == b'\t').count();
            let line = if document.indented {
                line.get(tabs..)
            } else {
                Some(line)
            };
            if line == Some(document.delimiter.as_slice()) {
                return true;
            }
        }
        false
    }

    fn separator(&mut self) {
        let ends_case = self.sees(";;") || self.sees(";&");
        if ends_case && let Some(Frame::Case(case)) = self.frames.last_mut() {
            *case = Case::Pattern;
        }
        self.at += if ends_case { 2 } else { 1 };
        self.place = Place::Command;
        self.lacking = None;
    }

    fn pipe(&mut self) {
        self.at += if self.sees("||") || self.sees("|&") { 2 } else { 1 };
        self.place = Place::Command;
        let in_pattern = matches!(self.frames.last(), Some(Frame::Case(Case::Pattern)));
        if !in_pattern {
            self.lacking = Some(Opened::Operator);
        }
    }

    fn ampersand(&mut self) {
        if self.sees("&>") {
            self.at += 2;
            return;
        }
        let joins = self.sees("&&");
        self.at += if joins { 2 } else { 1 };
        self.lacking = joins.then_some(Opened::Operator);
        self.place = Place::Command;
    }

    /// `<`, `>` and what is made of them; the word behind them is read as any other.
    fn redirect(&mut self) -> Option<Opened> {
        if self.sees("<(") || self.sees(">(") {
            self.push(Frame::Parens, 2);
        } else if self.sees("<<<") {
            self.at += 3;
        } else if self.sees("<<") && self.grammar != Grammar::Fish {
            return self.announce_document();
        } else {
            self.at += 1;
            // `>&`, `>|`: neither joins commands.
            if matches!(self.peek(0), Some(b'&' | b'|')) {
                self.at += 1;
            }
        }
        None
    }

    fn announce_document(&mut self) -> Option<Opened> {
        self.at += 2;
        let indented = self.sees("-");
        self.at += usize::from(indented);
        while matches!(self.peek(0), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        let delimiter = match self.word() {
            Ok(word) => word.value,
            Err(opened) => return Some(opened),
        };
        if !delimiter.is_empty() {
            self.documents.push(Document { delimiter, indented });
        }
        None
    }

    fn parenthesis(&mut self) {
        let is_short_loop = self.frames.last() == Some(&Frame::Loop(Loop::Head)) && self.place == Place::Argument;
        if self.sees("((") && (self.place == Place::Command || is_short_loop) {
            self.push(Frame::Arithmetic { depth: 0 }, 2);
        } else if matches!(self.frames.last(), Some(Frame::Case(Case::Pattern))) {
            self.at += 1;
        } else if self.sees("()") {
            // A function: its body follows, on this line or another.
            self.at += 2;
            self.place = Place::Command;
            self.lacking = Some(Opened::Operator);
        } else if self.place == Place::Argument {
            if is_short_loop {
                // Of zsh: `for x (a b) command`.
                self.frames.pop();
            }
            self.push(Frame::List, 1);
        } else {
            self.push(Frame::Parens, 1);
        }
    }

    fn close_parenthesis(&mut self) {
        if let Some(Frame::Case(case @ Case::Pattern)) = self.frames.last_mut() {
            *case = Case::Body;
            self.at += 1;
            self.place = Place::Command;
        } else {
            self.close_down_to(&Frame::Parens);
        }
    }

    /// What a whole word means where it stands.
    fn take(&mut self, word: &Word) {
        let place = std::mem::replace(&mut self.place, Place::Argument);
        if place == Place::Name {
            self.place = Place::Command;
            self.lacking = Some(Opened::Operator);
            return;
        }
        if !word.is_plain {
            return;
        }
        let text = word.value.as_slice();
        match self.frames.last_mut() {
            Some(Frame::Test) if text == b"]]" => {
                self.frames.pop();
                return;
            }
            Some(Frame::Case(case @ Case::Subject)) if text == b"in" => {
                *case = Case::Pattern;
                return;
            }
            Some(Frame::Case(Case::Pattern)) if text == b"esac" => {
                self.frames.pop();
                return;
            }
            _ => {}
        }
        match (place, self.grammar) {
            (Place::Argument, Grammar::Zsh) if text == b"}" => self.keyword(text),
            (Place::Argument | Place::Name, _) => {}
            (Place::Command | Place::Else, Grammar::Bash | Grammar::Zsh) => self.keyword(text),
            (Place::Command | Place::Else, Grammar::Fish) => self.fish_keyword(text, place),
        }
    }
}
