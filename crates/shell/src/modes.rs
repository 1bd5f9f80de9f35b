//! What a program has changed about a terminal and not changed back: the alternate screen, a hidden cursor, reported mouse
//! moves. A program that is killed leaves them behind; whoever lent it a terminal undoes them.

/// Bytes of one control sequence; a longer one is none that counts here.
const SEQUENCE_BYTES_MAX: usize = 32;

/// A private mode (DECSET), and whether a terminal has it on by itself.
struct Private {
    number: u16,
    usual: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    On,
    Off,
}

const fn private(number: u16, usual: State) -> Private {
    Private { number, usual }
}

/// The modes that are undone, in this order: the screen is left last, as what is undone on it stays there.
const PRIVATE: [Private; 16] = [
    private(1, State::Off),
    private(7, State::On),
    private(25, State::On),
    private(1000, State::Off),
    private(1001, State::Off),
    private(1002, State::Off),
    private(1003, State::Off),
    private(1004, State::Off),
    private(1005, State::Off),
    private(1006, State::Off),
    private(1015, State::Off),
    private(2004, State::Off),
    private(2026, State::Off),
    private(47, State::Off),
    private(1047, State::Off),
    private(1049, State::Off),
];
/// Those of them that are another screen.
const ALTERNATE: [u16; 3] = [47, 1047, 1049];

/// Where the reading of a sequence stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum At {
    #[default]
    Text,
    Escape,
    /// Within a control sequence, with its parameters so far.
    Sequence(Vec<u8>),
}

/// Follows what is written to a terminal.
#[derive(Clone, Debug, Default)]
pub struct Modes {
    at: At,
    /// One for each of [`PRIVATE`] that is not as usual.
    changed: [bool; PRIVATE.len()],
    /// The keypad sends its own codes (DECKPAM).
    keypad: bool,
    /// Characters may be coloured.
    styled: bool,
    /// Keyboard protocols that were pushed and not popped.
    keyboards: u16,
    was_full_screen: bool,
    /// The last byte that is no part of a control sequence.
    last: Option<u8>,
}

impl Modes {
    /// Takes the next bytes that are written.
    pub fn read(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.at == At::Text {
                let text = bytes.iter().position(|byte| *byte == 0x1b).unwrap_or(bytes.len());
                let (before, after) = bytes.split_at(text);
                self.last = before.last().copied().or(self.last);
                bytes = after;
            }
            let Some((byte, after)) = bytes.split_first() else {
                return;
            };
            self.step(*byte);
            bytes = after;
        }
    }

    /// True when a program has had the whole screen.
    pub fn was_full_screen(&self) -> bool {
        self.was_full_screen
    }

    /// True when what was written last ended a line, or nothing was written.
    pub fn is_at_line_start(&self) -> bool {
        self.last.is_none_or(|last| last == b'\n' || last == b'\r')
    }

    /// What undoes all of it; empty where nothing has to be.
    pub fn undo(&self) -> String {
        let mut undo = String::new();
        for (mode, _) in PRIVATE.iter().zip(self.changed).filter(|(_, changed)| *changed) {
            let end = match mode.usual {
                State::On => 'h',
                State::Off => 'l',
            };
            undo.push_str(&format!("\x1b[?{}{end}", mode.number));
        }
        if self.keypad {
            undo.push_str("\x1b>");
        }
        if self.keyboards > 0 {
            undo.push_str(&format!("\x1b[<{}u", self.keyboards));
        }
        if self.styled {
            undo.push_str("\x1b[0m");
        }
        undo
    }

    fn step(&mut self, byte: u8) {
        match std::mem::take(&mut self.at) {
            At::Text => {
                if byte == 0x1b {
                    self.at = At::Escape;
                }
            }
            At::Escape => match byte {
                b'[' => self.at = At::Sequence(Vec::new()),
                b'=' => self.keypad = true,
                b'>' => self.keypad = false,
                // A full reset.
                b'c' => {
                    *self = Self {
                        was_full_screen: self.was_full_screen,
                        ..Self::default()
                    }
                }
                0x1b => self.at = At::Escape,
                _ => {}
            },
            At::Sequence(mut parameters) => match byte {
                0x1b => self.at = At::Escape,
                0x40..=0x7e => self.sequence(&parameters, byte),
                _ if parameters.len() < SEQUENCE_BYTES_MAX => {
                    parameters.push(byte);
                    self.at = At::Sequence(parameters);
                }
                _ => {}
            },
        }
    }

    fn sequence(&mut self, parameters: &[u8], end: u8) {
        match (parameters.split_first(), end) {
            (Some((b'?', numbers)), b'h') => self.set(numbers, State::On),
            (Some((b'?', numbers)), b'l') => self.set(numbers, State::Off),
            (Some((b'>', _)), b'u') => self.keyboards = self.keyboards.saturating_add(1),
            (Some((b'<', count)), b'u') => {
                let count = number(count).unwrap_or(1);
                self.keyboards = self.keyboards.saturating_sub(count);
            }
            (None, b'm') => self.styled = false,
            (Some((b'0'..=b'9' | b';', _)), b'm') => self.styled = parameters != b"0",
            _ => {}
        }
    }

    fn set(&mut self, numbers: &[u8], state: State) {
        for wanted in numbers.split(|byte| *byte == b';').filter_map(number) {
            for (mode, changed) in PRIVATE.iter().zip(&mut self.changed) {
                if mode.number == wanted {
                    *changed = state != mode.usual;
                }
            }
            self.was_full_screen |= state == State::On && ALTERNATE.contains(&wanted);
        }
    }
}

fn number(digits: &[u8]) -> Option<u16> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(written: &str) -> Modes {
        let mut modes = Modes::default();
        // However it is cut.
        written.bytes().for_each(|byte| modes.read(&[byte]));
        let mut whole = Modes::default();
        whole.read(written.as_bytes());
        assert_eq!(whole.undo(), modes.undo());
        modes
    }

    /// SPEC 8.7: what a program left behind is undone, and nothing else.
    #[test]
    fn left_behind() {
        let check = |written: &str, undo: &str| assert_eq!(after(written).undo(), undo, "{written:?}");
        check("", "");
        check("plain\r\n\x1b[2J\x1b[1;1H", "");
        check("\x1b[?1049h\x1b[?25l in an editor", "\x1b[?25h\x1b[?1049l");
        check("\x1b[?1049h\x1b[?1h\x1b=\x1b[?1049l\x1b[?1l\x1b>", "");
        check("\x1b[?1000;1006h", "\x1b[?1000l\x1b[?1006l");
        check("\x1b[31mred", "\x1b[0m");
        check("\x1b[31mred\x1b[0m", "");
        check("\x1b[31mred\x1b[m", "");
        check("\x1b[>1u\x1b[>1u\x1b[<u", "\x1b[<1u");
        check("\x1b[?1049h\x1bc", "");
        check("\x1b[?99999999999h\x1b[?;;h\x1b[?25\x1b[?25l", "\x1b[?25h");
    }

    /// SPEC 8.2: whether a program had the whole screen, and where the cursor was left.
    #[test]
    fn screens_and_lines() {
        assert!(after("\x1b[?1049h\x1b[?1049l").was_full_screen());
        assert!(!after("\x1b[?25l").was_full_screen());
        for (written, at_start) in [
            ("", true),
            ("a", false),
            ("a\r\n", true),
            ("a\r\n\x1b[0m", true),
            ("a\n$ ", false),
        ] {
            assert_eq!(after(written).is_at_line_start(), at_start, "{written:?}");
        }
    }
}
