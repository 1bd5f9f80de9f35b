//! Marks in what the shell writes: where its prompt is, where a command begins and ends (OSC 133, as terminals read it).
//!
//! Each mark carries a secret of this shell (`k=`), so that a program that writes marks of its own, or a file that holds some,
//! is passed through as what it is: output. Marks of ours are taken out; every other byte stays as it came, in order.
//!
//! There are two secrets ([`Keys`]), since a shell keeps its prompts in variables, and whoever has it list them (`set`) has what
//! stands in them: in the output, and then in the hands of a model. That one proves no more than a prompt.

/// What the shell said between its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It waits for a command (`133;B`).
    Ready,
    /// It waits for the rest of one (`133;P`).
    More,
    /// What was typed is none (`133;X`).
    Wrong,
    /// What was typed runs (`133;C`).
    Begun,
    /// It is over, with this status (`133;D`); the shell may read nothing until it is told to.
    Ended {
        /// As `$?`; 128 and the signal's number for one that was killed.
        status: i32,
        /// The number under which the shell waits to be told to go on.
        waits: Option<u32>,
    },
    /// A hidden line was run (`133;Q`).
    Answered,
    /// What stood in its line editor, which is empty now (`133;L`).
    Taken(Vec<u8>),
}

/// A piece of what the shell wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Output, to be shown.
    Output(Vec<u8>),
    /// A mark of ours.
    Mark(Mark),
}

/// The line that a bash runs before each prompt, and that it shows where it was told to show what it reads (`set -v`).
pub const HOOK: &str = "{ __aish_prompt; } >/dev/null 2>&1";
/// What a terminal makes of the end of a line.
const LINE_END: &[u8] = b"\r\n";
/// What every mark begins with.
const BEGIN: &[u8] = b"\x1b]133;";
/// Bytes of a mark; a longer one is none of ours. The longest has what stood in the line editor.
const MARK_BYTES_MAX: usize = 128 * 1024;
/// So much of [`HOOK`] must be there before it is held back: a brace alone may be the echo of a key.
const HOOK_BYTES_MIN: usize = 4;

/// The secrets of a shell: letters and digits.
#[derive(Clone, Debug)]
pub struct Keys {
    /// In its prompts, so that any line can show it: it proves that the shell waits, or has begun, which counts only while that is
    /// what it is expected to do.
    pub open: String,
    /// In a file of its private folder, read for each mark: it proves everything.
    pub closed: String,
}

/// Reads pieces out of a stream that may be cut anywhere.
#[derive(Debug)]
pub struct Marks {
    open: Vec<u8>,
    closed: Vec<u8>,
    /// What may become a mark.
    held: Vec<u8>,
}

impl Marks {
    /// For marks with those secrets.
    pub fn new(keys: &Keys) -> Self {
        Self {
            open: format!("k={}", keys.open).into_bytes(),
            closed: format!("k={}", keys.closed).into_bytes(),
            held: Vec::new(),
        }
    }

    /// Takes the next bytes; gives the pieces that are whole.
    pub fn read(&mut self, bytes: &[u8]) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut output = Vec::new();
        let held = std::mem::take(&mut self.held);
        let joined;
        let mut rest = if held.is_empty() {
            bytes
        } else {
            joined = [held.as_slice(), bytes].concat();
            joined.as_slice()
        };
        while let Some(at) = rest.iter().position(|byte| *byte == 0x1b || *byte == b'{') {
            let (before, from) = rest.split_at(at);
            output.extend_from_slice(before);
            match self.at(from) {
                At::Mark { inside, len } => {
                    let (whole, after) = from.split_at(len);
                    match self.mark(inside) {
                        Some(mark) => {
                            flush(&mut output, &mut pieces);
                            pieces.push(Piece::Mark(mark));
                        }
                        None => output.extend_from_slice(whole),
                    }
                    rest = after;
                }
                At::Hook { len } => rest = from.split_at(len).1,
                At::None => {
                    let (first, after) = from.split_at(1);
                    output.extend_from_slice(first);
                    rest = after;
                }
                At::Unfinished => {
                    self.held = from.to_vec();
                    rest = &[];
                }
            }
        }
        output.extend_from_slice(rest);
        flush(&mut output, &mut pieces);
        pieces
    }

    /// What begins at an escape or a brace.
    fn at<'a>(&self, bytes: &'a [u8]) -> At<'a> {
        if bytes.first() == Some(&b'{') {
            return hook_at(bytes);
        }
        let known = bytes.len().min(BEGIN.len());
        if bytes.get(..known) != BEGIN.get(..known) {
            return At::None;
        }
        let inside = bytes.get(BEGIN.len()..).unwrap_or_default();
        match inside.iter().position(|byte| *byte == 0x07 || *byte == 0x1b) {
            Some(end) if inside.get(end) == Some(&0x07) => At::Mark {
                inside: inside.get(..end).unwrap_or_default(),
                len: BEGIN.len() + end + 1,
            },
            // Ours end with a bell; another escape within is somebody else's.
            Some(_) => At::None,
            // What is nobody's mark is not held back until it ends, which may be never.
            None if bytes.len() < MARK_BYTES_MAX && self.may_be_ours(inside) => At::Unfinished,
            None => At::None,
        }
    }

    /// Whether the beginning of a mark has our secret so far.
    fn may_be_ours(&self, inside: &[u8]) -> bool {
        let Some((_, after)) = inside.split_first() else {
            return true;
        };
        let Some((first, proof)) = after.split_first() else {
            return true;
        };
        let has = |secret: &[u8]| {
            let len = secret.len().min(proof.len());
            proof.get(..len) == secret.get(..len)
        };
        *first == b';' && (has(&self.closed) || has(&self.open))
    }

    /// What is held back because it might have become a mark: the stream is over, so it is output.
    pub fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }

    /// The mark, if it is one of ours: `LETTER;k=SECRET` and perhaps `;VALUE`.
    fn mark(&self, inside: &[u8]) -> Option<Mark> {
        let (letter, after) = inside.split_first()?;
        let after = after.strip_prefix(b";")?;
        let end = after.iter().position(|byte| *byte == b';').unwrap_or(after.len());
        let (proof, value) = after.split_at(end);
        let value = value.strip_prefix(b";").unwrap_or_default();
        let is_prompt = matches!(letter, b'B' | b'C' | b'P');
        if proof != self.closed && !(is_prompt && proof == self.open) {
            return None;
        }
        match letter {
            b'B' => Some(Mark::Ready),
            b'P' => Some(Mark::More),
            b'X' => Some(Mark::Wrong),
            b'C' => Some(Mark::Begun),
            b'D' => {
                let value = std::str::from_utf8(value).ok()?;
                let (status, waits) = match value.split_once(';') {
                    Some((status, number)) => (status, Some(number.parse().ok()?)),
                    None => (value, None),
                };
                let status = status.parse().ok()?;
                Some(Mark::Ended { status, waits })
            }
            b'Q' => Some(Mark::Answered),
            b'L' => Some(Mark::Taken(numbered(&unprocessed(value)))),
            _ => None,
        }
    }
}

/// As the shell wrote it: a terminal puts a carriage return before each end of a line.
fn unprocessed(value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(value.len());
    for (at, byte) in value.iter().enumerate() {
        if *byte != b'\r' || value.get(at + 1) != Some(&b'\n') {
            bytes.push(*byte);
        }
    }
    bytes
}

/// With the characters that are written by their numbers (`%1b`).
fn numbered(value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value;
    while let [first, behind @ ..] = rest {
        let number = behind
            .get(..2)
            .filter(|_| *first == b'%')
            .and_then(|digits| str::from_utf8(digits).ok());
        match number.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = behind.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    bytes
}

fn flush(output: &mut Vec<u8>, pieces: &mut Vec<Piece>) {
    if !output.is_empty() {
        pieces.push(Piece::Output(std::mem::take(output)));
    }
}

enum At<'a> {
    /// A whole one, so many bytes long.
    Mark { inside: &'a [u8], len: usize },
    /// [`HOOK`], a line of its own.
    Hook { len: usize },
    /// No mark begins here.
    None,
    /// One may begin here.
    Unfinished,
}

/// Whether [`HOOK`] begins at a brace.
fn hook_at<'a>(bytes: &[u8]) -> At<'a> {
    let hook = HOOK.bytes().chain(LINE_END.iter().copied());
    let len = HOOK.len() + LINE_END.len();
    match hook.zip(bytes).all(|(expected, byte)| expected == *byte) {
        true if bytes.len() >= len => At::Hook { len },
        true if bytes.len() >= HOOK_BYTES_MIN => At::Unfinished,
        true | false => At::None,
    }
}

#[cfg(test)]
mod tests;
