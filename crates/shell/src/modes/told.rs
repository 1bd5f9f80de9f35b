//! What is written to a terminal, taken apart as terminals do (ECMA-48, and the state machine of the VT500 series): text, escape
//! sequences, control sequences. What strings hold (a title, a link) is told to nobody. Pure, and the same however it is cut.

/// Bytes of the parameters of a control sequence that are kept; of a longer one nothing counts here.
const PARAMETERS_BYTES_MAX: usize = 32;

const ESCAPE: u8 = 0x1b;
const BELL: u8 = 0x07;
/// Both give up what was begun.
const CANCEL: u8 = 0x18;
const SUBSTITUTE: u8 = 0x1a;

/// A piece of what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told<'a> {
    /// Characters, and the control characters between them; never empty.
    Text(&'a [u8]),
    /// An escape sequence: the byte between `ESC` and its last one, if there is one, and the last one.
    Escape(Option<u8>, u8),
    /// A control sequence: all between `CSI` and its last byte, and that.
    Control(&'a [u8], u8),
}

/// Where the reading stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum At {
    #[default]
    Text,
    /// Behind `ESC`, and what came between.
    Escape(Option<u8>),
    /// Within a control sequence, with its parameters so far.
    Control(Vec<u8>),
    /// Within a string that ends with `ESC \`.
    String,
    /// Within one that a bell ends as well (OSC).
    Command,
}

/// Takes apart what is written.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    at: At,
}

impl Reader {
    /// Takes the next bytes, and tells what is whole.
    pub fn read(&mut self, mut bytes: &[u8], mut tell: impl FnMut(Told<'_>)) {
        while let Some((byte, after)) = bytes.split_first() {
            if self.at == At::Text {
                let text = bytes.iter().position(|byte| *byte == ESCAPE).unwrap_or(bytes.len());
                let (text, rest) = bytes.split_at(text);
                if !text.is_empty() {
                    tell(Told::Text(text));
                    bytes = rest;
                    continue;
                }
            }
            self.step(*byte, &mut tell);
            bytes = after;
        }
    }

    /// True when the terminal waits for the rest of a sequence: what is written next is taken for it.
    pub fn is_within(&self) -> bool {
        self.at != At::Text
    }

    /// One byte, where it is no text.
    fn step(&mut self, byte: u8, tell: &mut impl FnMut(Told<'_>)) {
        let at = std::mem::take(&mut self.at);
        self.at = match (byte, at) {
            (ESCAPE, _) => At::Escape(None),
            (CANCEL | SUBSTITUTE, _) | (BELL, At::Command) | (_, At::Text) => At::Text,
            (_, at @ (At::String | At::Command)) => at,
            // Control characters are obeyed within a sequence, which goes on behind them.
            (..0x20, at @ (At::Escape(_) | At::Control(_))) => at,
            (b'[', At::Escape(None)) => At::Control(Vec::new()),
            (b']', At::Escape(None)) => At::Command,
            // DCS, SOS, PM, APC, and a title as `screen` has it.
            (b'P' | b'X' | b'^' | b'_' | b'k', At::Escape(None)) => At::String,
            (0x20..=0x2f, At::Escape(_)) => At::Escape(Some(byte)),
            (_, At::Escape(between)) => {
                tell(Told::Escape(between, byte));
                At::Text
            }
            (0x40..=0x7e, At::Control(parameters)) => {
                if parameters.len() < PARAMETERS_BYTES_MAX {
                    tell(Told::Control(&parameters, byte));
                }
                At::Text
            }
            (_, At::Control(mut parameters)) => {
                if parameters.len() < PARAMETERS_BYTES_MAX {
                    parameters.push(byte);
                }
                At::Control(parameters)
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told of it, in words, and whether something is left open.
    fn told(pieces: &[&[u8]]) -> (String, bool) {
        let mut reader = Reader::default();
        let mut words = String::new();
        for piece in pieces {
            reader.read(piece, |told| {
                words.push_str(&match told {
                    Told::Text(text) => String::from_utf8_lossy(text).into_owned(),
                    Told::Escape(between, end) => {
                        let between = between.map(char::from).map(String::from).unwrap_or_default();
                        format!("<ESC {between}{}>", char::from(end))
                    }
                    Told::Control(parameters, end) => {
                        format!("<CSI {}{}>", String::from_utf8_lossy(parameters), char::from(end))
                    }
                });
            });
        }
        (words, reader.is_within())
    }

    fn check(written: &str, expect: &str, is_within: bool) {
        let expect = (expect.to_owned(), is_within);
        assert_eq!(told(&[written.as_bytes()]), expect, "{written:?}");
        let bytes: Vec<&[u8]> = written.as_bytes().chunks(1).collect();
        assert_eq!(told(&bytes), expect, "{written:?}, cut");
    }

    /// SPEC 8.7: what is written is taken apart as a terminal does, however it comes.
    #[test]
    fn pieces() {
        check("", "", false);
        check("a\r\n", "a\r\n", false);
        check("a\x1b[1;31mb", "a<CSI 1;31m>b", false);
        check("\x1b(0\x1b>\x1b%G", "<ESC (0><ESC >><ESC %G>", false);
        check("\x1b]0;a title\x07b\x1b]8;;x\x1b\\c", "b<ESC \\>c", false);
        check(
            "\x1bPq a picture\x07 of it\x1b\\d\x1bka title\x1b\\",
            "<ESC \\>d<ESC \\>",
            false,
        );
        check("\x1b[3\x18a\x1b]0;\x1ab", "ab", false);
        check("\x1b[3\x1b[4\nm", "<CSI 4m>", false);
        check(&format!("\x1b[{}ma", "1".repeat(4_000)), "a", false);
        for begun in ["\x1b", "\x1b(", "\x1b[?2", "\x1b]0;a title", "\x1bP", "\x1b]0;\x1b"] {
            check(begun, "", true);
        }
    }
}
