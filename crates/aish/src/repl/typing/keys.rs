//! Bytes of a terminal become keys: pure, for bytes that come cut anywhere.
//!
//! A [`Keys`] keeps what is not a whole key yet. Escape alone is a key only if nothing follows it: whoever reads tells of a pause
//! with [`Keys::pause`]. What is pasted between the terminal's brackets is one [`Key::Pasted`], whatever is in it.

/// Bytes of a paste that are kept; the rest of it is dropped.
const PASTE_BYTES_MAX: usize = 1 << 20;
/// Bytes of a sequence that no key is known to send more of.
const SEQUENCE_BYTES_MAX: usize = 64;
const ESCAPE: u8 = 0x1b;
/// Bytes of an answer of the terminal in words, e.g. of a colour; a longer one is none.
const ANSWER_BYTES_MAX: usize = 1024;
const BELL: u8 = 0x07;
/// How a terminal ends what is pasted.
const PASTE_END: &[u8] = b"\x1b[201~";

/// A key, by what it does here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Text(char),
    /// Several at once, line ends among them.
    Pasted(String),
    /// The line is done.
    Enter,
    /// The line is done, and urgent.
    AltEnter,
    /// The character before the cursor goes.
    Backspace,
    /// The one behind it goes.
    Delete,
    /// The word before the cursor goes.
    DeleteWord,
    /// All before the cursor goes.
    DeleteToStart,
    /// All behind it goes.
    DeleteToEnd,
    /// One character back.
    Left,
    /// One character on.
    Right,
    /// Before the first.
    Home,
    /// Behind the last.
    End,
    /// What came before this line.
    Up,
    /// Escape alone, and Ctrl-C where it is no signal.
    Stop,
}

/// Bytes on their way to become keys.
#[derive(Default)]
pub struct Keys {
    held: Vec<u8>,
    paste: Option<Vec<u8>>,
}

/// What stands at the beginning of the bytes held.
enum First {
    /// So many bytes, which are this key.
    Key(usize, Key),
    /// So many bytes of nothing that is of use here.
    Nothing(usize),
    /// So many bytes that begin a paste.
    Paste(usize),
    /// What is there may be the beginning of a key.
    Unfinished,
}

impl Keys {
    /// The keys that these bytes complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.held.extend_from_slice(bytes);
        let mut keys = Vec::new();
        loop {
            if let Some(paste) = &mut self.paste {
                let end = find(&self.held, PASTE_END);
                // Without its end, all but what may be the beginning of it belongs to the paste.
                let until = end.unwrap_or_else(|| self.held.len().saturating_sub(PASTE_END.len() - 1));
                let room = PASTE_BYTES_MAX.saturating_sub(paste.len());
                paste.extend(self.held.drain(..until).take(room));
                if end.is_none() {
                    return keys;
                }
                self.held.drain(..PASTE_END.len());
                keys.extend(self.paste.take().map(|text| pasted(&text)));
            }
            match first(&self.held) {
                First::Key(length, key) => {
                    self.held.drain(..length);
                    keys.push(key);
                }
                First::Nothing(length) => drop(self.held.drain(..length)),
                First::Paste(length) => {
                    self.held.drain(..length);
                    self.paste = Some(Vec::new());
                }
                First::Unfinished => return keys,
            }
        }
    }

    /// Nothing came for a while: Escape that nothing follows is a key, any other beginning is none. A paste goes on.
    pub fn pause(&mut self) -> Option<Key> {
        if self.paste.is_some() {
            return None;
        }
        let held = std::mem::take(&mut self.held);
        (held == [ESCAPE]).then_some(Key::Stop)
    }

    /// True where [`Self::pause`] would change something.
    pub fn is_unfinished(&self) -> bool {
        self.paste.is_none() && !self.held.is_empty()
    }

    /// True in the middle of a paste.
    pub fn is_pasting(&self) -> bool {
        self.paste.is_some()
    }

    /// Ends a paste whose end did not come.
    pub fn end_paste(&mut self) -> Option<Key> {
        let mut text = self.paste.take()?;
        text.append(&mut self.held);
        Some(pasted(&text))
    }
}

/// Terminals send the line ends of a paste as Enter.
fn pasted(text: &[u8]) -> Key {
    let text = String::from_utf8_lossy(text).replace("\r\n", "\n").replace('\r', "\n");
    Key::Pasted(
        text.chars()
            .filter(|c| *c == '\n' || *c == '\t' || !c.is_control())
            .collect(),
    )
}

/// The text among the keys that these bytes are, with its line ends.
pub fn text_of(bytes: &[u8]) -> String {
    let mut keys = Keys::default();
    let mut text = String::new();
    for key in keys.push(bytes).into_iter().chain(keys.end_paste()) {
        match key {
            Key::Text(c) => text.push(c),
            Key::Pasted(pasted) => text.push_str(&pasted),
            Key::Enter => text.push('\n'),
            Key::AltEnter
            | Key::Backspace
            | Key::Delete
            | Key::DeleteWord
            | Key::DeleteToStart
            | Key::DeleteToEnd
            | Key::Left
            | Key::Right
            | Key::Home
            | Key::End
            | Key::Up
            | Key::Stop => {}
        }
    }
    text
}

fn first(bytes: &[u8]) -> First {
    let key = |key| First::Key(1, key);
    match bytes {
        [] => First::Unfinished,
        [ESCAPE, rest @ ..] => escaped(rest),
        [b'\r' | b'\n', ..] => key(Key::Enter),
        [0x7f | 0x08, ..] => key(Key::Backspace),
        [0x01, ..] => key(Key::Home),
        [0x02, ..] => key(Key::Left),
        [0x03, ..] => key(Key::Stop),
        [0x05, ..] => key(Key::End),
        [0x06, ..] => key(Key::Right),
        [0x0b, ..] => key(Key::DeleteToEnd),
        [0x10, ..] => key(Key::Up),
        [0x15, ..] => key(Key::DeleteToStart),
        [0x17, ..] => key(Key::DeleteWord),
        [0x00..=0x1f, ..] => First::Nothing(1),
        _ => character(bytes),
    }
}

/// What follows Escape.
fn escaped(rest: &[u8]) -> First {
    let key = |key| First::Key(2, key);
    match rest {
        [] => First::Unfinished,
        // Two of them: the first is a key of its own.
        [ESCAPE, ..] => First::Key(1, Key::Stop),
        [b'\r' | b'\n', ..] => key(Key::AltEnter),
        [0x7f | 0x08, ..] => key(Key::DeleteWord),
        [b'O', last, ..] => named(2 + 1, &[], *last),
        [b'O'] => First::Unfinished,
        [b'[', sequence @ ..] => match sequence.iter().position(|byte| (0x40..=0x7e).contains(byte)) {
            Some(at) => match (sequence.get(..at), sequence.get(at)) {
                (Some(parameters), Some(last)) => named(2 + at + 1, parameters, *last),
                (_, _) => First::Unfinished,
            },
            None if sequence.len() > SEQUENCE_BYTES_MAX => First::Nothing(1 + rest.len()),
            None => First::Unfinished,
        },
        [b']' | b'P' | b'X' | b'^' | b'_', answer @ ..] => answered(answer),
        // Alt and a character: no key of ours.
        _ => match character(rest) {
            First::Key(length, _) | First::Nothing(length) => First::Nothing(1 + length),
            First::Paste(_) | First::Unfinished => First::Unfinished,
        },
    }
}

/// What follows the beginning of an answer that a program asked the terminal for and did not wait for: it ends in a bell or in
/// Escape and a backslash. With another control character in it, it was a key with Alt.
fn answered(answer: &[u8]) -> First {
    let begin = 2;
    let Some(at) = answer.iter().position(|byte| byte.is_ascii_control()) else {
        return if answer.len() > ANSWER_BYTES_MAX {
            First::Nothing(begin)
        } else {
            First::Unfinished
        };
    };
    match answer.get(at..).unwrap_or_default() {
        [BELL, ..] => First::Nothing(begin + at + 1),
        [ESCAPE, b'\\', ..] => First::Nothing(begin + at + 2),
        [ESCAPE] => First::Unfinished,
        _ => First::Nothing(begin),
    }
}

/// The key of a whole sequence of so many bytes.
fn named(length: usize, parameters: &[u8], last: u8) -> First {
    let key = match (parameters, last) {
        (b"200", b'~') => return First::Paste(length),
        // Enter with Alt, as terminals say it that tell all keys apart.
        (b"13;3", b'u') | (b"27;3;13", b'~') => Key::AltEnter,
        (b"27", b'u') => Key::Stop,
        (b"3", b'~') => Key::Delete,
        (b"1" | b"7", b'~') => Key::Home,
        (b"4" | b"8", b'~') => Key::End,
        (b"", b'A') => Key::Up,
        (b"", b'C') => Key::Right,
        (b"", b'D') => Key::Left,
        (b"", b'F') => Key::End,
        (b"", b'H') => Key::Home,
        (_, _) => return First::Nothing(length),
    };
    First::Key(length, key)
}

/// A character of UTF-8, whose bytes may come one by one.
fn character(bytes: &[u8]) -> First {
    let length = match bytes.first() {
        Some(0xc2..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf4) => 4,
        Some(_) => 1,
        None => return First::Unfinished,
    };
    let Some(whole) = bytes.get(..length) else {
        // What is there must still be able to become one.
        let is_open = bytes.iter().skip(1).all(|byte| (0x80..=0xbf).contains(byte));
        return if is_open { First::Unfinished } else { First::Nothing(1) };
    };
    match str::from_utf8(whole).ok().and_then(|text| text.chars().next()) {
        Some(c) if !c.is_control() => First::Key(length, Key::Text(c)),
        Some(_) => First::Nothing(length),
        None => First::Nothing(1),
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(text: &str) -> Vec<Key> {
        text.chars().map(Key::Text).collect()
    }

    fn check(bytes: &[u8], expect: &[Key]) {
        let mut keys = Keys::default();
        let mut whole = keys.push(bytes);
        whole.extend(keys.pause());
        assert_eq!(whole, expect, "{bytes:?}");
    }

    /// SPEC 3.5a: what a terminal sends is understood, and what is of no use does nothing.
    #[test]
    fn keys_of_terminals() {
        check("aä日😀".as_bytes(), &text("aä日😀"));
        check(
            b"\r\n\x7f\x08\x15\x17",
            &[
                Key::Enter,
                Key::Enter,
                Key::Backspace,
                Key::Backspace,
                Key::DeleteToStart,
                Key::DeleteWord,
            ],
        );
        check(
            b"\x1b\r\x1b[13;3u\x1b[27;3;13~",
            &[Key::AltEnter, Key::AltEnter, Key::AltEnter],
        );
        check(
            b"\x1b[A\x1bOA\x1b[D\x1b[3~\x1b[1;5C\x1b[15~",
            &[Key::Up, Key::Up, Key::Left, Key::Delete],
        );
        check(b"\x1b", &[Key::Stop]);
        check(b"\x1b\x1b", &[Key::Stop, Key::Stop]);
        check(b"\x1bx\x04\x00z", &text("z"));
        check(b"\xff\xc3(\xe2\x82", &text("("));
        check(b"\x1b[12", &[]);
    }

    /// SPEC 8.8: what a terminal answers to a program that has gone is no text; a key that looks like its beginning takes nothing along.
    #[test]
    fn answers_of_terminals() {
        for answer in [
            "\x1b[?62;22c",
            "\x1b[>41;354;0c",
            "\x1b[12;34R",
            "\x1b[?2026;2$y",
            "\x1b[?997;1n",
            "\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\",
            "\x1b]10;rgb:ffff/ffff/ffff\x07",
            "\x1bP1+r544e=78\x1b\\",
            "\x1b_Gi=31;OK\x1b\\",
        ] {
            check(format!("a{answer}b").as_bytes(), &text("ab"));
        }
        check(b"\x1b]x\ry", &[Key::Text('x'), Key::Enter, Key::Text('y')]);
        check(b"\x1b]", &[]);
        check(b"\x1b]11;rgb", &[]);
        assert_eq!(text_of(b"a\x1b[?1;2cb\x7f\x1b[200~c\rd"), "abc\nd");
    }

    /// SPEC 8.9: what is pasted is text: no line end in it sends anything, no escape in it is a key.
    #[test]
    fn pastes() {
        let pasted = |text: &str| Key::Pasted(text.to_owned());
        check(
            b"a\x1b[200~one\rtwo\r\nthree\x1b[A\x03\tx\x1b[201~b",
            &[Key::Text('a'), pasted("one\ntwo\nthree[A\tx"), Key::Text('b')],
        );
        let mut keys = Keys::default();
        assert_eq!(keys.push(b"\x1b[200~half\x1b[20"), []);
        assert!(keys.is_pasting() && !keys.is_unfinished());
        assert_eq!(keys.pause(), None);
        assert_eq!(keys.end_paste(), Some(pasted("half[20")));
        assert_eq!(keys.push(b"x"), text("x"));
    }

    /// SPEC 12: a paste without end does not fill the memory.
    #[test]
    fn pastes_are_bounded() {
        let mut keys = Keys::default();
        keys.push(b"\x1b[200~");
        for _ in 0..3 * PASTE_BYTES_MAX / 4096 {
            assert_eq!(keys.push(&[b'x'; 4096]), []);
        }
        let whole = keys.push(PASTE_END);
        assert!(matches!(whole.as_slice(), [Key::Pasted(text)] if text.len() == PASTE_BYTES_MAX));
    }

    proptest! {
        /// SPEC 8.8: any bytes are keys or nothing, the same however they are cut.
        #[test]
        fn cut_anywhere(bytes: Vec<u8>, pieces in proptest::collection::vec("(\x1b\\[20[01]~|\x1b\\[A|\x1b|é|x|\r)", 0..12), at: prop::sample::Index) {
            for bytes in [bytes, pieces.concat().into_bytes()] {
                let mut whole = Keys::default();
                let mut expect = whole.push(&bytes);
                let mut cut = Keys::default();
                let at = at.index(bytes.len() + 1);
                let mut keys = cut.push(&bytes[..at]);
                keys.extend(cut.push(&bytes[at..]));
                expect.extend(whole.pause());
                keys.extend(cut.pause());
                prop_assert_eq!(&keys, &expect);
            }
        }
    }
}
