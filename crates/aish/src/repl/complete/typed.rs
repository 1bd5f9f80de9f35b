//! What is being typed at the end of a command line: which word, how it is quoted, and what it is to its command.

/// How the end of a word is quoted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quote {
    /// Not at all.
    #[default]
    None,
    /// A single quote is open.
    Single,
    /// A double quote is open.
    Double,
}

/// A word of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// Where it begins in the line, in bytes.
    pub start: usize,
    /// What it says, its quotes taken off. What a shell would put in place of `$x` is not known here: it stays as it is.
    pub value: String,
    /// How its end is quoted.
    pub quote: Quote,
    /// How far the directories in it go.
    pub directory: Directory,
}

/// The part of a word up to its last slash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Directory {
    /// Bytes of its value.
    pub value_bytes: usize,
    /// Bytes as it was typed.
    pub typed_bytes: usize,
    /// How the slash was quoted.
    pub quote: Quote,
}

/// What the last word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// What is run.
    Command,
    /// Something for it.
    Argument,
    /// Where something goes to or comes from.
    File,
}

/// The command at the end of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Typed {
    /// Where it begins in the line, in bytes.
    pub start: usize,
    /// Its words, the one being typed last.
    pub words: Vec<Word>,
    /// What that one is.
    pub place: Place,
}

/// Words behind which a command stands.
const BEFORE_COMMANDS: [&str; 14] = [
    "!", "{", "if", "then", "else", "elif", "while", "until", "do", "time", "begin", "and", "or", "not",
];

/// What is being typed where `line` ends.
pub fn typed(line: &str) -> Typed {
    let mut reading = Reading::default();
    let mut characters = line.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        let next = characters.peek().map(|(_, next)| *next);
        if reading.character(at, c, next) == Taken::WithNext {
            characters.next();
        }
    }
    reading.end(line.len())
}

/// How much one step takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Taken {
    One,
    WithNext,
}

/// A command as far as it was read.
#[derive(Clone, Default)]
struct Level {
    start: Option<usize>,
    words: Vec<Word>,
    current: Option<Word>,
    /// The next word is a file's name.
    redirected: bool,
}

#[derive(Default)]
struct Reading {
    /// The commands around this one: it stands in a substitution of theirs.
    outer: Vec<Level>,
    now: Level,
}

impl Reading {
    fn quote(&self) -> Quote {
        self.now.current.as_ref().map(|word| word.quote).unwrap_or_default()
    }

    fn word(&mut self, at: usize) -> &mut Word {
        self.now.start.get_or_insert(at);
        self.now.current.get_or_insert_with(|| Word {
            start: at,
            ..Word::default()
        })
    }

    fn push(&mut self, at: usize, c: char) {
        let word = self.word(at);
        word.value.push(c);
        if c == '/' {
            word.directory = Directory {
                value_bytes: word.value.len(),
                typed_bytes: at + 1 - word.start,
                quote: word.quote,
            };
        }
    }

    fn character(&mut self, at: usize, c: char, next: Option<char>) -> Taken {
        match (self.quote(), c) {
            (Quote::Single, '\'') | (Quote::Double, '"') => self.word(at).quote = Quote::None,
            (Quote::Single, _) => self.push(at, c),
            (_, '$') if next == Some('(') => {
                self.word(at).value.push('$');
                self.step_in();
                return Taken::WithNext;
            }
            (Quote::Double, '\\') if matches!(next, Some('"' | '\\' | '$' | '`')) => return self.escaped(at, next),
            (Quote::Double, _) => self.push(at, c),
            (Quote::None, '\\') => return self.escaped(at, next),
            (Quote::None, '\'') => self.word(at).quote = Quote::Single,
            (Quote::None, '"') => self.word(at).quote = Quote::Double,
            (Quote::None, '`' | '(') => self.step_in(),
            (Quote::None, ')') => self.step_out(),
            (Quote::None, '<' | '>') => {
                self.finish();
                self.now.redirected = true;
            }
            // `>&`, `&>`: no end of the command.
            (Quote::None, '&') if self.now.redirected && self.now.current.is_none() || next == Some('>') => {}
            (Quote::None, ';' | '|' | '&' | '\n') => self.now = Level::default(),
            (Quote::None, ' ' | '\t' | '\r') => self.finish(),
            (Quote::None, _) => self.push(at, c),
        }
        Taken::One
    }

    fn escaped(&mut self, at: usize, next: Option<char>) -> Taken {
        match next {
            Some('\n') => {}
            Some(next) => self.word(at).value.push(next),
            None => {
                self.word(at);
            }
        }
        Taken::WithNext
    }

    fn step_in(&mut self) {
        self.outer.push(std::mem::take(&mut self.now));
    }

    fn step_out(&mut self) {
        self.now = self.outer.pop().unwrap_or_default();
    }

    /// A word has ended.
    fn finish(&mut self) {
        let Some(word) = self.now.current.take() else {
            return;
        };
        if std::mem::take(&mut self.now.redirected) {
            return;
        }
        let begins =
            self.now.words.is_empty() && (BEFORE_COMMANDS.contains(&word.value.as_str()) || is_assignment(&word));
        if begins {
            self.now.start = None;
        } else {
            self.now.words.push(word);
        }
    }

    fn end(mut self, at: usize) -> Typed {
        let place = match (self.now.redirected, self.now.words.is_empty()) {
            (true, _) => Place::File,
            (false, true) => Place::Command,
            (false, false) => Place::Argument,
        };
        self.word(at);
        let start = self.now.start.unwrap_or(at);
        self.now.words.extend(self.now.current);
        Typed {
            start,
            words: self.now.words,
            place,
        }
    }
}

fn is_assignment(word: &Word) -> bool {
    let Some((name, _)) = word.value.split_once('=') else {
        return false;
    };
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Characters that mean something to a shell.
const SPECIAL: &str = " \t\r\n\\'\"`$&;|<>()*?[]{}!#^";

/// A name as it is typed so that a shell reads just that, where such a quote is open. It stays open: more may follow.
pub fn escaped(name: &str, quote: Quote) -> String {
    let mut text = String::with_capacity(name.len());
    for (at, c) in name.char_indices() {
        match quote {
            Quote::None if SPECIAL.contains(c) || (at == 0 && matches!(c, '~' | '=')) => text.extend(['\\', c]),
            Quote::Double if matches!(c, '"' | '\\' | '$' | '`') => text.extend(['\\', c]),
            Quote::Single if c == '\'' => text.push_str("'\\''"),
            Quote::None | Quote::Double | Quote::Single => text.push(c),
        }
    }
    text
}

impl Quote {
    /// As it is typed.
    pub fn mark(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Single => "'",
            Self::Double => "\"",
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// SPEC 8.9: the word being typed is told, and what it is to its command.
    #[test]
    fn words_at_the_end() {
        let check = |line: &str, start: usize, words: &[&str], place: Place| {
            let typed = typed(line);
            let values: Vec<&str> = typed.words.iter().map(|word| word.value.as_str()).collect();
            assert_eq!(
                (typed.start, values.as_slice(), typed.place),
                (start, words, place),
                "{line:?}"
            );
        };
        check("", 0, &[""], Place::Command);
        check("gi", 0, &["gi"], Place::Command);
        check("git ch", 0, &["git", "ch"], Place::Argument);
        check("git  ", 0, &["git", ""], Place::Argument);
        check("ls | wc -", 5, &["wc", "-"], Place::Argument);
        check("ls && ", 6, &[""], Place::Command);
        check("a; b 'c d", 3, &["b", "c d"], Place::Argument);
        check("echo $(git ch", 7, &["git", "ch"], Place::Argument);
        check("echo \"$(git ch", 8, &["git", "ch"], Place::Argument);
        check("echo $(git ch) x", 0, &["echo", "$", "x"], Place::Argument);
        check("echo `ls x", 6, &["ls", "x"], Place::Argument);
        check("FOO=1 git ch", 6, &["git", "ch"], Place::Argument);
        check("if gi", 3, &["gi"], Place::Command);
        check("for f in *; do ca", 15, &["ca"], Place::Command);
        check("ls > fi", 0, &["ls", "fi"], Place::File);
        check("ls 2>&1 fi", 0, &["ls", "2", "fi"], Place::Argument);
        check("cat <fi", 0, &["cat", "fi"], Place::File);
        check("cat a\\ b\"c d", 0, &["cat", "a bc d"], Place::Argument);
        check("echo \"a'b", 0, &["echo", "a'b"], Place::Argument);
        check("echo \\", 0, &["echo", ""], Place::Argument);
        check("echo é'", 0, &["echo", "é"], Place::Argument);
    }

    /// SPEC 8.9: what a name is escaped to is read as that name again.
    #[test]
    fn escapes() {
        assert_eq!(escaped("a b$c'd", Quote::None), r"a\ b\$c\'d");
        assert_eq!(escaped("a b$c'd", Quote::Double), r"a b\$c'd");
        assert_eq!(escaped("a b$c'd", Quote::Single), r"a b$c'\''d");
        assert_eq!(escaped("~a", Quote::None), r"\~a");
    }

    proptest! {
        /// SPEC 8.9: any name, in any quotes, is read as it was meant; no line brings this down.
        #[test]
        fn any_name(name in "[^\n\u{0}]{1,20}", line in any::<String>()) {
            typed(&line);
            for quote in [Quote::None, Quote::Single, Quote::Double] {
                let line = format!("ls {}{}", quote.mark(), escaped(&name, quote));
                let last = typed(&line).words.pop().unwrap();
                prop_assert_eq!(&last.value, &name, "{}", line);
            }
        }
    }
}
