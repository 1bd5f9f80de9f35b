//! Patterns that a grammar can hold.
//!
//! Servers turn `^…$` into rules character by character and judge little: look-around fails the request, shorthand classes
//! are copied unread, and what matches a quotation mark lets a string never end. So only what is certain is kept: literals,
//! classes of named characters, groups, alternatives within groups, greedy repetition. `\d` and `\w` are written out, as
//! ECMA-262 means them. Everything else, however common, is a hint lost.

use super::REPEAT_MAX;
use std::iter::Peekable;
use std::str::Chars;

/// Bytes of a pattern worth a grammar.
const PATTERN_BYTES_MAX: usize = 512;

/// Groups within each other.
const GROUPS_MAX: usize = 16;

/// Characters that a backslash makes plain.
const MADE_PLAIN: &str = "^$.[]()|{}*+?";

/// The pattern as a grammar can hold it, if it can.
pub(super) fn for_grammar(pattern: &str) -> Option<String> {
    let inner = pattern.strip_prefix('^')?.strip_suffix('$')?;
    let is_plain = |c: char| c.is_ascii() && !c.is_ascii_control() && c != '"';
    if inner.is_empty() || pattern.len() > PATTERN_BYTES_MAX || !inner.chars().all(is_plain) {
        return None;
    }
    let mut writer = Writer {
        rest: inner.chars().peekable(),
        out: "^".to_owned(),
        groups: vec![Group::default()],
    };
    while let Some(c) = writer.rest.next() {
        writer.next(c)?;
    }
    let is_balanced = writer.groups.len() == 1 && writer.last()?.operand.is_some();
    writer.out.push('$');
    is_balanced.then_some(writer.out)
}

struct Writer<'p> {
    rest: Peekable<Chars<'p>>,
    out: String,
    /// The groups that are open, the whole pattern first.
    groups: Vec<Group>,
}

#[derive(Default)]
struct Group {
    /// What a repetition would repeat: how often it is repeated inside; none at a beginning.
    operand: Option<u64>,
    is_repeated: bool,
    /// The most that anything in the group is repeated.
    most: u64,
}

impl Writer<'_> {
    fn last(&mut self) -> Option<&mut Group> {
        self.groups.last_mut()
    }

    fn next(&mut self, c: char) -> Option<()> {
        match c {
            '(' => {
                if self.rest.next_if_eq(&'?').is_some() {
                    self.rest.next_if_eq(&':')?;
                }
                self.out.push('(');
                self.groups.push(Group::default());
                (self.groups.len() <= GROUPS_MAX).then_some(())
            }
            ')' => {
                let group = self.groups.pop()?;
                group.operand?;
                self.out.push(')');
                self.operand(group.most.max(1))
            }
            '|' => {
                // Outside of groups the anchors would belong to its two sides.
                if self.groups.len() == 1 {
                    return None;
                }
                self.last()?.operand.take()?;
                self.out.push('|');
                Some(())
            }
            '*' | '+' | '?' => {
                self.repeat(1)?;
                self.out.push(c);
                Some(())
            }
            '{' => self.count(),
            '[' => {
                let class = class(&mut self.rest)?;
                self.out.push_str(&class);
                self.operand(1)
            }
            '\\' => match self.rest.next()? {
                'd' => self.push("[0-9]"),
                'w' => self.push("[A-Za-z0-9_]"),
                c @ ('-' | '/' | ':' | '@' | '#' | ',' | ' ') => self.push(c.encode_utf8(&mut [0; 4])),
                c if MADE_PLAIN.contains(c) => {
                    self.out.push('\\');
                    self.push(c.encode_utf8(&mut [0; 4]))
                }
                _ => None,
            },
            // A quotation mark is among what a dot matches.
            '.' | '^' | '$' | ']' | '}' => None,
            c => self.push(c.encode_utf8(&mut [0; 4])),
        }
    }

    fn push(&mut self, literal: &str) -> Option<()> {
        self.out.push_str(literal);
        self.operand(1)
    }

    fn operand(&mut self, repeated: u64) -> Option<()> {
        let group = self.last()?;
        group.operand = Some(repeated);
        group.is_repeated = false;
        group.most = group.most.max(repeated);
        Some(())
    }

    /// Repeats the operand. A second sign behind the first would mean something else.
    fn repeat(&mut self, times: u64) -> Option<()> {
        let group = self.last()?;
        let times = group.operand?.checked_mul(times.max(1))?;
        if group.is_repeated || times > REPEAT_MAX {
            return None;
        }
        group.is_repeated = true;
        group.most = group.most.max(times);
        Some(())
    }

    fn count(&mut self) -> Option<()> {
        let mut text = String::new();
        loop {
            match self.rest.next()? {
                '}' => break,
                c => text.push(c),
            }
        }
        let (least, most) = match text.split_once(',') {
            Some((least, most)) => (least, most),
            None => (text.as_str(), text.as_str()),
        };
        let least: u64 = digits(least)?;
        let most = if most.is_empty() { least } else { digits(most)? };
        if least > most {
            return None;
        }
        self.repeat(most)?;
        self.out.push('{');
        self.out.push_str(&text);
        self.out.push('}');
        Some(())
    }
}

fn digits(text: &str) -> Option<u64> {
    // A sign is no digit, though a number may have one.
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())?
}

/// What stands in a class.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Atom {
    Char(char),
    /// A hyphen that may stand for a range.
    Hyphen,
    Written(&'static str),
}

/// Reads a class to its end and writes it with ranges of letters and digits only, a hyphen last.
fn class(rest: &mut Peekable<Chars<'_>>) -> Option<String> {
    let mut atoms = Vec::new();
    loop {
        atoms.push(match rest.next()? {
            ']' => break,
            '^' if atoms.is_empty() => return None,
            '-' => Atom::Hyphen,
            '\\' => match rest.next()? {
                'd' => Atom::Written("0-9"),
                'w' => Atom::Written("A-Za-z0-9_"),
                c @ ('-' | '/' | ':' | '@' | '#' | ',' | ' ') => Atom::Char(c),
                c if MADE_PLAIN.contains(c) => Atom::Char(c),
                _ => return None,
            },
            c => Atom::Char(c),
        });
    }
    let mut out = String::new();
    let mut has_hyphen = false;
    let mut at = 0;
    while let Some(atom) = atoms.get(at) {
        let range = (atoms.get(at + 1), atoms.get(at + 2));
        match (*atom, range) {
            (Atom::Char(first), (Some(Atom::Hyphen), Some(Atom::Char(last)))) => {
                let is_range = first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() && first <= *last;
                if !is_range {
                    return None;
                }
                out.extend([first, '-', *last]);
                at += 3;
                continue;
            }
            (Atom::Char('-'), _) => has_hyphen = true,
            (Atom::Hyphen, _) if at == 0 || at + 1 == atoms.len() => has_hyphen = true,
            (Atom::Hyphen, _) => return None,
            // First in a class it would turn the class around.
            (Atom::Char('^'), _) if out.is_empty() => return None,
            (Atom::Char(c @ ('[' | ']')), _) => out.extend(['\\', c]),
            (Atom::Char(c), _) => out.push(c),
            (Atom::Written(text), _) => out.push_str(text),
        }
        at += 1;
    }
    if has_hyphen {
        out.push('-');
    }
    (!out.is_empty()).then(|| format!("[{out}]"))
}
