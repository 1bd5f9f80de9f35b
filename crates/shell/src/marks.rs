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
    /// It is over, with this status (`133;D`).
    Ended {
        /// As `$?`; 128 and the signal's number for one that was killed.
        status: i32,
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
/// Bytes of a mark; a longer one is none of ours. A line of a terminal has at most 4,096 bytes.
const MARK_BYTES_MAX: usize = 8_192;

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
            match mark_at(from) {
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
                let status = std::str::from_utf8(value).ok()?.parse().ok()?;
                Some(Mark::Ended { status })
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

/// What begins at an escape or a brace.
fn mark_at(bytes: &[u8]) -> At<'_> {
    if bytes.first() == Some(&b'{') {
        let hook = || HOOK.bytes().chain(LINE_END.iter().copied());
        let len = HOOK.len() + LINE_END.len();
        return match hook().zip(bytes).all(|(expected, byte)| expected == *byte) {
            true if bytes.len() >= len => At::Hook { len },
            true => At::Unfinished,
            false => At::None,
        };
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
        None if bytes.len() < MARK_BYTES_MAX => At::Unfinished,
        None => At::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn marks() -> Marks {
        Marks::new(&Keys {
            open: "o".to_owned(),
            closed: "s".to_owned(),
        })
    }

    fn output(text: &str) -> Piece {
        Piece::Output(text.as_bytes().to_vec())
    }

    /// Marks are taken out, and everything else is left.
    #[test]
    fn marks_and_output() {
        let mut marks = marks();
        let pieces = marks
            .read(b"a\x1b]133;C;k=s\x07b\x1b[1mc\x1b]133;D;k=s;130\x07\x1b]133;L;k=s;a%1b %25b%\x07\x1b]133;B;k=o\x07");
        assert_eq!(
            pieces,
            [
                output("a"),
                Piece::Mark(Mark::Begun),
                output("b\x1b[1mc"),
                Piece::Mark(Mark::Ended { status: 130 }),
                Piece::Mark(Mark::Taken(b"a\x1b %b%".to_vec())),
                Piece::Mark(Mark::Ready),
            ]
        );
    }

    /// SPEC 8.8: whoever does not know the secret marks nothing.
    #[test]
    fn forged_marks_are_output() {
        for forged in [
            "\x1b]133;D;0\x07",
            "\x1b]133;D;k=t;0\x07",
            "\x1b]133;D;k=s2;0\x07",
            "\x1b]133;D;k=s;x\x07",
            "\x1b]133;Z;k=s\x07",
            // What a prompt proves is not the end of a command, nor a line.
            "\x1b]133;D;k=o;0\x07",
            "\x1b]133;L;k=o;ls\x07",
            "\x1b]133;Q;k=o\x07",
            "\x1b]133;X;k=o\x07",
            "\x1b]133;B;k=oo\x07",
            "\x1b]133;B;k=\x07",
            "\x1b]133;\x1b]133;\x07",
            "\x1b]133;\x07",
        ] {
            let mut marks = marks();
            let mut text = Vec::new();
            for piece in marks.read(forged.as_bytes()) {
                match piece {
                    Piece::Output(bytes) => text.extend(bytes),
                    Piece::Mark(mark) => assert_eq!(Some(mark), None, "{forged:?}"),
                }
            }
            text.extend(marks.rest());
            assert_eq!(text, forged.as_bytes());
        }
    }

    /// SPEC 8.2: the line of ours that a bash shows is not the user's; what only looks like it is.
    #[test]
    fn the_hook_does_not_show() {
        let text = format!("a\r\n{HOOK}\r\n{{ b; }}{HOOK} c{{");
        let expect = [output(&format!("a\r\n{{ b; }}{HOOK} c"))];
        let mut marks = marks();
        assert_eq!(marks.read(text.as_bytes()), expect);
        assert_eq!(marks.rest(), b"{");
        assert_eq!(
            join(&text.as_bytes().chunks(1).collect::<Vec<_>>()),
            join(&[text.as_bytes()])
        );
    }

    /// A mark that never ends is not held for ever.
    #[test]
    fn endless_marks() {
        let mut marks = marks();
        marks.read(b"\x1b]133;D;k=s;");
        for _ in 0..100 {
            marks.read(&[b'1'; 1000]);
            assert!(marks.held.len() <= MARK_BYTES_MAX);
        }
    }

    proptest! {
        /// However the stream is cut, the same comes of it.
        #[test]
        fn any_cut(text in "(a|\x1b|\\]133;|[BCDPL];|k=s|;|0|\x07|\x1b\\]133;D;k=s;7\x07){0,40}", cuts in prop::collection::vec(0usize..200, 0..8)) {
            let whole = join(&[text.as_bytes()]);
            let mut cuts = cuts;
            cuts.sort_unstable();
            let mut parts = Vec::new();
            let mut from = 0;
            for cut in cuts {
                let cut = cut.clamp(from, text.len());
                parts.push(text.as_bytes().get(from..cut).unwrap_or_default());
                from = cut;
            }
            parts.push(text.as_bytes().get(from..).unwrap_or_default());
            prop_assert_eq!(join(&parts), whole);
        }
    }

    /// The pieces, with neighbouring output joined.
    fn join(parts: &[&[u8]]) -> Vec<Piece> {
        let mut marks = marks();
        let mut all: Vec<Piece> = Vec::new();
        let mut pieces: Vec<Piece> = parts.iter().flat_map(|part| marks.read(part)).collect();
        let rest = marks.rest();
        if !rest.is_empty() {
            pieces.push(Piece::Output(rest));
        }
        for piece in pieces {
            match (all.last_mut(), piece) {
                (Some(Piece::Output(before)), Piece::Output(more)) => before.extend(more),
                (_, piece) => all.push(piece),
            }
        }
        all
    }
}
