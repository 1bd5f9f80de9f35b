//! A line cut into words and operators as a shell would, without running or expanding anything.
//!
//! It never fails: what a shell would refuse or go on reading after Enter (a quote that is not closed) still gives words. An
//! apostrophe between letters is read as one (`don't`), since that is what it is at a prompt for both kinds of line.

/// How much of a word is in quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quotes {
    /// None of it.
    Bare,
    /// Some, or a substitution such as `$(…)`.
    Some,
}

/// A word, as it was typed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word<'a> {
    /// With its quotes.
    pub text: &'a str,
    /// Whether it has any.
    pub quotes: Quotes,
    /// Where it begins in the line, in bytes.
    pub start: usize,
}

/// What stands between two simple commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Between {
    /// Nothing: the first of the line.
    Start,
    /// A pipe, `&&`, `||`, `;` or `&`.
    Operator,
    /// An opening parenthesis after a space.
    Open,
    /// An opening parenthesis that touches the word before it, as in `print(`.
    OpenGlued,
    /// A closing parenthesis.
    Close,
    /// The end of a line.
    Newline,
}

/// A simple command, or a piece of a sentence.
#[derive(Clone, Debug)]
pub(super) struct Piece<'a> {
    /// What comes before it.
    pub between: Between,
    /// Its words, without the targets of redirections.
    pub words: Vec<Word<'a>>,
    /// How many redirections it has.
    pub redirections: usize,
    /// Whether its first redirection comes before any word.
    pub redirected_first: bool,
}

impl Piece<'_> {
    fn new(between: Between) -> Self {
        Self {
            between,
            words: Vec::new(),
            redirections: 0,
            redirected_first: false,
        }
    }
}

/// Cuts `line`. The pieces are in order; none is left out, also if it is empty.
pub(super) fn pieces(line: &str) -> Vec<Piece<'_>> {
    let mut lexer = Lexer {
        line,
        bytes: line.as_bytes(),
        at: 0,
        done: Vec::new(),
        piece: Piece::new(Between::Start),
    };
    lexer.run();
    let Lexer { mut done, piece, .. } = lexer;
    done.push(piece);
    done
}

struct Lexer<'a> {
    line: &'a str,
    bytes: &'a [u8],
    at: usize,
    done: Vec<Piece<'a>>,
    piece: Piece<'a>,
}

impl<'a> Lexer<'a> {
    fn run(&mut self) {
        // The delimiters of here-documents whose text begins after this line.
        let mut documents: Vec<&'a str> = Vec::new();
        while let Some(byte) = self.peek(0) {
            match byte {
                b'\n' => {
                    self.at += 1;
                    for delimiter in documents.drain(..) {
                        self.skip_document(delimiter);
                    }
                    self.end(Between::Newline);
                }
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'\\' if self.peek(1) == Some(b'\n') => self.at += 2,
                b'#' => self.skip_line(),
                _ if self.in_test() => self.word(),
                b'<' if self.here_document(&mut documents) => {}
                b'<' | b'>' => self.redirection(),
                b'&' if self.peek(1) == Some(b'>') => self.redirection(),
                b'|' | b';' | b'&' => self.operator(byte),
                b'(' if self.peek(1) == Some(b'(') && self.begins() => self.word(),
                b'(' => {
                    let touches = self.at > 0 && !self.before().is_ascii_whitespace() && !self.piece.words.is_empty();
                    self.at += 1;
                    self.end(if touches { Between::OpenGlued } else { Between::Open });
                }
                b')' => {
                    self.at += 1;
                    self.end(Between::Close);
                }
                _ => self.word(),
            }
        }
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn before(&self) -> u8 {
        self.at
            .checked_sub(1)
            .and_then(|at| self.bytes.get(at))
            .copied()
            .unwrap_or(b' ')
    }

    fn end(&mut self, next: Between) {
        let piece = std::mem::replace(&mut self.piece, Piece::new(next));
        self.done.push(piece);
    }

    /// Inside `[[ … ]]`, where operators are words.
    fn in_test(&self) -> bool {
        let mut words = self.piece.words.iter();
        words.next().is_some_and(|word| word.text == "[[") && !words.any(|word| word.text == "]]")
    }

    /// Where a command stands, or after `for`: there `((` is arithmetic.
    fn begins(&self) -> bool {
        let before = |word: &Word<'_>| matches!(word.text, "!" | "elif" | "for" | "if" | "time" | "until" | "while");
        self.piece.words.iter().all(before)
    }

    fn operator(&mut self, byte: u8) {
        self.at += 1;
        if self.peek(0) == Some(byte) || (byte == b'|' && self.peek(0) == Some(b'&')) {
            self.at += 1;
        }
        self.end(Between::Operator);
    }

    fn skip_line(&mut self) {
        while self.peek(0).is_some_and(|byte| byte != b'\n') {
            self.at += 1;
        }
    }

    /// Takes `<<WORD`, noting the delimiter; `false` for any other `<`.
    fn here_document(&mut self, documents: &mut Vec<&'a str>) -> bool {
        if self.peek(1) != Some(b'<') || self.peek(2) == Some(b'<') {
            return false;
        }
        self.at += if self.peek(2) == Some(b'-') { 3 } else { 2 };
        self.piece.redirections += 1;
        while self.peek(0) == Some(b' ') {
            self.at += 1;
        }
        if let Some(word) = self.take() {
            documents.push(word.text.trim_matches(['\'', '"', '\\']));
        }
        true
    }

    fn skip_document(&mut self, delimiter: &str) {
        while self.at < self.bytes.len() {
            let start = self.at;
            self.skip_line();
            let line = self.line.get(start..self.at).unwrap_or_default();
            self.at += 1;
            if line.trim() == delimiter {
                break;
            }
        }
        self.at = self.at.min(self.bytes.len());
    }

    /// Takes a redirection and the word it goes to. `<(…)` is a word.
    fn redirection(&mut self) {
        if self.peek(1) == Some(b'(') {
            return self.word();
        }
        self.piece.redirections += 1;
        self.piece.redirected_first |= self.piece.words.is_empty();
        while matches!(self.peek(0), Some(b'<' | b'>' | b'&' | b'|')) {
            self.at += 1;
        }
        while self.peek(0) == Some(b' ') {
            self.at += 1;
        }
        if self.peek(0).is_some_and(|byte| !is_end(byte)) {
            self.take();
        }
    }

    fn word(&mut self) {
        if let Some(word) = self.take() {
            // `2>file`: the number says which stream.
            let stream =
                matches!(self.peek(0), Some(b'<' | b'>')) && word.text.bytes().all(|byte| byte.is_ascii_digit());
            if !stream {
                self.piece.words.push(word);
            } else if self.piece.words.is_empty() {
                self.piece.redirected_first = true;
            }
        }
    }

    /// Takes a word from here on.
    fn take(&mut self) -> Option<Word<'a>> {
        let start = self.at;
        if start >= self.bytes.len() {
            return None;
        }
        let mut quotes = Quotes::Bare;
        let free = self.in_test();
        while let Some(byte) = self.peek(0) {
            match byte {
                b'\\' => self.at += 2,
                b'\'' if self.is_apostrophe(start) => self.at += 1,
                b'\'' | b'"' | b'`' => {
                    if self.quoted(byte) {
                        quotes = Quotes::Some;
                    }
                }
                b'$' if matches!(self.peek(1), Some(b'(' | b'{')) => {
                    self.at += 1;
                    self.balanced();
                    quotes = Quotes::Some;
                }
                b'<' | b'>' if self.peek(1) == Some(b'(') && self.at == start => {
                    self.at += 1;
                    self.balanced();
                    quotes = Quotes::Some;
                }
                b'(' if self.at == start || (self.before() == b'=' && self.at > start) => {
                    self.balanced();
                    quotes = Quotes::Some;
                }
                _ if free && !byte.is_ascii_whitespace() => self.at += 1,
                _ if is_end(byte) => break,
                _ => self.at += 1,
            }
        }
        self.at = self.at.min(self.bytes.len());
        // A byte that ends no word and begins none.
        if self.at == start {
            self.at += 1;
        }
        // `\` before a character of several bytes.
        while self.at < self.bytes.len() && !self.line.is_char_boundary(self.at) {
            self.at += 1;
        }
        self.line.get(start..self.at).map(|text| Word { text, quotes, start })
    }

    /// Whether the `'` here is an apostrophe: after a letter of a word that is no option or assignment, and before a letter or
    /// the end of the word.
    fn is_apostrophe(&self, start: usize) -> bool {
        let so_far = self.bytes.get(start..self.at).unwrap_or_default();
        let after_letter = self.before().is_ascii_alphanumeric() || self.before() >= 0x80;
        let before_letter = self
            .peek(1)
            .is_none_or(|byte| byte.is_ascii_alphabetic() || byte >= 0x80 || is_end(byte));
        let option =
            so_far.first() == Some(&b'-') || so_far.iter().any(|byte| matches!(byte, b'=' | b'$' | b'/' | b':'));
        !so_far.is_empty() && after_letter && before_letter && !option
    }

    /// Takes a quoted piece; one that is not closed is taken to the end. But a `'` then is a letter like others, unless a word
    /// begins with it: the other quote is still to be typed, on this line or another.
    fn quoted(&mut self, quote: u8) -> bool {
        let begins_word = self.at > 0 && (self.before().is_ascii_whitespace() || self.before() == b'=');
        let goes_on = quote == b'"' || (quote == b'\'' && begins_word);
        let mut at = self.at + 1;
        while let Some(&byte) = self.bytes.get(at) {
            if byte == quote {
                self.at = at + 1;
                return true;
            }
            at += if byte == b'\\' && quote != b'\'' { 2 } else { 1 };
        }
        self.at = if goes_on { self.bytes.len() } else { self.at + 1 };
        goes_on
    }

    /// Takes `(…)` or `{…}` with what is nested in it.
    fn balanced(&mut self) {
        let mut depth = 0_usize;
        while let Some(byte) = self.peek(0) {
            match byte {
                b'\\' => self.at += 1,
                b'(' | b'{' => depth += 1,
                b')' | b'}' => depth = depth.saturating_sub(1),
                b'\'' | b'"' => {
                    self.quoted(byte);
                    self.at -= 1;
                }
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                break;
            }
        }
    }
}

/// Whether `byte` ends a word.
fn is_end(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b'|' | b'&' | b';' | b'<' | b'>' | b'(' | b')')
}
