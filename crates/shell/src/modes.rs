//! What a program has changed about a terminal and not changed back: the alternate screen, a hidden cursor, a scroll region, another
//! character set, reported mouse moves. A program that is killed leaves them behind, and so does noise that was shown as text;
//! whoever lent it a terminal undoes them.
//!
//! [`Modes`] knows what each change means; [`told`] takes what is written apart.

pub mod told;

use told::{Reader, Told};

/// A mode, and whether a terminal has it on by itself.
struct Mode {
    number: u16,
    usual: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    On,
    Off,
}

const fn on(number: u16) -> Mode {
    let usual = State::On;
    Mode { number, usual }
}

const fn off(number: u16) -> Mode {
    let usual = State::Off;
    Mode { number, usual }
}

/// The private modes (DECSET) that are undone, in this order: the screen is left last, as what is undone on it stays there.
const PRIVATE: [Mode; 26] = [
    // What the cursor keys, the keypad and the key that erases send.
    off(1),
    off(66),
    off(67),
    // Reverse video, origin, wrapping, the cursor, margins at the sides.
    off(5),
    off(ORIGIN),
    on(7),
    on(25),
    off(69),
    // What is reported: the mouse, the focus, pastes, colours, sizes, keys.
    off(9),
    off(1000),
    off(1001),
    off(1002),
    off(1003),
    off(1004),
    off(1005),
    off(1006),
    off(1015),
    off(1016),
    off(2004),
    off(2031),
    off(2048),
    off(9001),
    // Drawing that is held back.
    off(2026),
    off(47),
    off(1047),
    off(1049),
];
/// Those of them that are another screen.
const ALTERNATE: [u16; 3] = [47, 1047, 1049];
/// Rows are counted within the scroll region; switched either way, it moves the cursor.
const ORIGIN: u16 = 6;
/// The other modes (SM) that are undone: a locked keyboard, inserting, no echo of what is typed, a return at each line feed.
const ANSI: [Mode; 4] = [off(2), off(4), on(12), off(20)];

/// Gives up a sequence that was begun.
const CANCEL: &str = "\x18";
/// The whole screen scrolls; the cursor, which that would move, stays.
const SCROLLS_WHOLE: &str = "\x1b7\x1b[r\x1b8";
/// The same where nobody knows any more where the cursor was: what comes next begins a line at the bottom.
const SCROLLS_WHOLE_BELOW: &str = "\x1b[r\x1b[999;1H\n";

/// Where the next text stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Column {
    #[default]
    First,
    Later,
}

/// Follows what is written to a terminal.
#[derive(Clone, Debug, Default)]
pub struct Modes {
    reader: Reader,
    state: Changes,
}

/// What is not as a terminal has it by itself.
#[derive(Clone, Debug, Default)]
struct Changes {
    /// One for each of [`PRIVATE`].
    private: [bool; PRIVATE.len()],
    /// One for each of [`ANSI`].
    ansi: [bool; ANSI.len()],
    /// Only a part of the rows scrolls (DECSTBM).
    region: bool,
    /// Characters come from another set: shifted (SO), the set that is in use without (`ESC (`), and how bytes are read (`ESC %`).
    shifted: bool,
    characters: bool,
    encoding: bool,
    /// The keypad sends its own codes (DECKPAM).
    keypad: bool,
    /// Keys with modifiers send their own codes (modifyOtherKeys of xterm).
    modifiers: bool,
    /// The cursor has another shape (DECSCUSR).
    shape: bool,
    /// Characters may be coloured.
    styled: bool,
    /// Keyboard protocols that were pushed and not popped, on the main screen and on the alternate one, which count apart.
    keyboards: [u16; 2],
    column: Column,
    /// The same for the main screen while the alternate one is shown.
    column_left: Column,
    was_full_screen: bool,
}

impl Modes {
    /// Takes the next bytes that are written.
    pub fn read(&mut self, bytes: &[u8]) {
        let Self { reader, state } = self;
        reader.read(bytes, |told| state.told(told));
    }

    /// True when a program has had the whole screen.
    pub fn was_full_screen(&self) -> bool {
        self.state.was_full_screen
    }

    /// True when a program has it now.
    pub fn is_full_screen(&self) -> bool {
        self.state.is_alternate()
    }

    /// True when what is written next begins a line, all of [`Self::undo`] being undone.
    pub fn is_at_line_start(&self) -> bool {
        let state = &self.state;
        let column = match (state.is_alternate(), state.is_private(ORIGIN)) {
            (true, _) => state.column_left,
            (false, true) => Column::First,
            (false, false) => state.column,
        };
        column == Column::First
    }

    /// What undoes all of it; empty where nothing has to be.
    pub fn undo(&self) -> String {
        let mut undo = String::new();
        if self.reader.is_within() {
            undo.push_str(CANCEL);
        }
        self.state.undo(&mut undo);
        undo
    }
}

impl Changes {
    fn told(&mut self, told: Told<'_>) {
        match told {
            Told::Text(text) => self.text(text),
            Told::Escape(between, end) => self.escape(between, end),
            Told::Control(parameters, end) => self.control(parameters, end),
        }
    }

    fn text(&mut self, text: &[u8]) {
        if let Some(shift) = text.iter().rfind(|byte| matches!(byte, 0x0e | 0x0f)) {
            self.shifted = *shift == 0x0e;
        }
        // Of control characters only those of the line move the cursor to another column.
        let moves = |byte: &&u8| matches!(byte, b'\n' | b'\r' | b'\t' | 0x20..=0x7e | 0x80..);
        match text.iter().rfind(moves) {
            Some(b'\n' | b'\r') => self.column = Column::First,
            Some(_) => self.column = Column::Later,
            None => {}
        }
    }

    fn escape(&mut self, between: Option<u8>, end: u8) {
        match (between, end) {
            (None, b'=') => self.keypad = true,
            (None, b'>') => self.keypad = false,
            (None, b'E') => self.column = Column::First,
            (None, b'n' | b'o') => self.shifted = true,
            (Some(b'('), set) => self.characters = set != b'B',
            (Some(b'%'), coding) => self.encoding = coding != b'G',
            // A full reset.
            (None, b'c') => {
                *self = Self {
                    was_full_screen: self.was_full_screen,
                    ..Self::default()
                }
            }
            _ => {}
        }
    }

    fn control(&mut self, parameters: &[u8], end: u8) {
        match (parameters, end) {
            ([b'?', numbers @ ..], b'h') => self.set_private(numbers, State::On),
            ([b'?', numbers @ ..], b'l') => self.set_private(numbers, State::Off),
            ([b'>', ..], b'u') => {
                let pushed = self.keyboards();
                *pushed = pushed.saturating_add(1);
            }
            ([b'<', count @ ..], b'u') => {
                let pushed = self.keyboards();
                *pushed = pushed.saturating_sub(number(count).unwrap_or(1));
            }
            ([b'>', b'4', level @ ..], b'm') => self.modifiers = !matches!(level, b"" | b";" | b";0"),
            ([shape @ .., b' '], b'q') => self.shape = !matches!(shape, b"" | b"0"),
            (b"!", b'p') => self.soft_reset(),
            ([] | [b'0'..=b'9' | b';' | b':', ..], _) => self.plain_control(parameters, end),
            _ => {}
        }
    }

    /// A control sequence with nothing but numbers.
    fn plain_control(&mut self, parameters: &[u8], end: u8) {
        let mut numbers = parameters.split(|byte| *byte == b';').map(number);
        match end {
            b'm' => self.styled = !matches!(parameters, b"" | b"0"),
            b'h' => self.set_ansi(parameters, State::On),
            b'l' => self.set_ansi(parameters, State::Off),
            b'r' => {
                self.region = !parameters.is_empty();
                self.column = Column::First;
            }
            b'E' | b'F' => self.column = Column::First,
            b'G' | b'`' => self.column = column(numbers.next()),
            b'H' | b'f' => self.column = column(numbers.nth(1)),
            _ => {}
        }
    }

    fn keyboards(&mut self) -> &mut u16 {
        let is_alternate = self.is_alternate();
        let [main, alternate] = &mut self.keyboards;
        if is_alternate { alternate } else { main }
    }

    fn is_alternate(&self) -> bool {
        let mut modes = PRIVATE.iter().zip(self.private);
        modes.any(|(mode, changed)| changed && ALTERNATE.contains(&mode.number))
    }

    fn is_private(&self, number: u16) -> bool {
        let mut modes = PRIVATE.iter().zip(self.private);
        modes.any(|(mode, changed)| mode.number == number && changed)
    }

    fn set_private(&mut self, numbers: &[u8], state: State) {
        for wanted in numbers.split(|byte| *byte == b';').filter_map(number) {
            let was_alternate = self.is_alternate();
            set(&PRIVATE, &mut self.private, wanted, state);
            match (was_alternate, self.is_alternate()) {
                (false, true) => {
                    self.column_left = self.column;
                    self.was_full_screen = true;
                }
                (true, false) => self.column = self.column_left,
                (true, true) | (false, false) => {}
            }
        }
    }

    fn set_ansi(&mut self, numbers: &[u8], state: State) {
        for wanted in numbers.split(|byte| *byte == b';').filter_map(number) {
            set(&ANSI, &mut self.ansi, wanted, state);
        }
    }

    /// What DECSTR puts right of all this.
    fn soft_reset(&mut self) {
        for (number, state) in [(1, State::Off), (ORIGIN, State::Off), (25, State::On), (66, State::Off)] {
            set(&PRIVATE, &mut self.private, number, state);
        }
        *self = Self {
            private: self.private,
            modifiers: self.modifiers,
            shape: self.shape,
            keyboards: self.keyboards,
            column: self.column,
            column_left: self.column_left,
            was_full_screen: self.was_full_screen,
            ..Self::default()
        };
    }

    fn undo(&self, undo: &mut String) {
        let [main, alternate] = self.keyboards;
        let mut put = |is_changed: bool, text: &str| {
            if is_changed {
                undo.push_str(text);
            }
        };
        put(self.is_alternate() && alternate > 0, &format!("\x1b[<{alternate}u"));
        put(self.shifted, "\x0f");
        put(self.characters, "\x1b(B");
        put(self.encoding, "\x1b%G");
        for (mode, changed) in ANSI.iter().zip(self.ansi) {
            put(changed, &format!("\x1b[{}{}", mode.number, mode.usual.end()));
        }
        for (mode, changed) in PRIVATE.iter().zip(self.private) {
            put(changed, &format!("\x1b[?{}{}", mode.number, mode.usual.end()));
        }
        // Leaving the alternate screen brings the cursor back to where it was on the main one.
        let is_lost = self.is_private(ORIGIN) && !self.is_alternate();
        put(is_lost, SCROLLS_WHOLE_BELOW);
        put(self.region && !is_lost, SCROLLS_WHOLE);
        put(self.keypad, "\x1b>");
        put(main > 0, &format!("\x1b[<{main}u"));
        put(self.modifiers, "\x1b[>4m");
        put(self.shape, "\x1b[0 q");
        put(self.styled, "\x1b[0m");
    }
}

impl State {
    /// What a sequence that sets it ends with.
    fn end(self) -> char {
        match self {
            Self::On => 'h',
            Self::Off => 'l',
        }
    }
}

fn set(modes: &[Mode], changed: &mut [bool], wanted: u16, state: State) {
    for (mode, changed) in modes.iter().zip(changed) {
        if mode.number == wanted {
            *changed = state != mode.usual;
        }
    }
}

/// Where a move to that column goes.
fn column(number: Option<Option<u16>>) -> Column {
    match number.flatten() {
        None | Some(..=1) => Column::First,
        Some(_) => Column::Later,
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

    fn check(written: &str, undo: &str) {
        assert_eq!(after(written).undo(), undo, "{written:?}");
    }

    /// SPEC 8.7: what a program left behind is undone, and nothing else.
    #[test]
    fn left_behind() {
        check("", "");
        check("plain\r\n\x1b[2J\x1b[1;1H", "");
        check("\x1b[?1049h\x1b[?25l in an editor", "\x1b[?25h\x1b[?1049l");
        check("\x1b[?1049h\x1b[?1h\x1b=\x1b[?1049l\x1b[?1l\x1b>", "");
        check("\x1b[?1000;1006h", "\x1b[?1000l\x1b[?1006l");
        check("\x1b[31mred", "\x1b[0m");
        check("\x1b[31mred\x1b[0m", "");
        check("\x1b[31mred\x1b[m", "");
        check("\x1b[?1049h\x1bc", "");
        check("\x1b[?99999999999h\x1b[?;;h\x1b[?25\x1b[?25l", "\x1b[?25h");
        check("\x1b[2;5;12l\x1b[4h", "\x1b[4l\x1b[12h");
        check("\x1b[5 q", "\x1b[0 q");
        check("\x1b[5 q\x1b[ q", "");
    }

    /// SPEC 8.7: what keys send is as before, on either screen.
    #[test]
    fn keys() {
        check("\x1b[>1u\x1b[>1u\x1b[<u", "\x1b[<1u");
        check("\x1b[>1u\x1b[?1049h\x1b[>1u\x1b[>1u", "\x1b[<2u\x1b[?1049l\x1b[<1u");
        check("\x1b[?1049h\x1b[>1u\x1b[?1049l", "");
        check("\x1b[>4;2m", "\x1b[>4m");
        check("\x1b[>4;2m\x1b[>4;0m", "");
        check("\x1b[?66h\x1b=", "\x1b[?66l\x1b>");
    }

    /// SPEC 8.7: text is letters again: no drawing characters, nothing that waits for the rest of a sequence.
    #[test]
    fn letters() {
        check("\x1b(0", "\x1b(B");
        check("\x1b(0\x1b(B", "");
        // What ncurses prepares for its lines is no change by itself.
        check("\x1b)0", "");
        check("a\x0eqqq", "\x0f");
        check("a\x0eqqq\x0f", "");
        check("\x1b%@", "\x1b%G");
        check("\x1b]0;a title", "\x18");
        check("\x1b]0;a title\x07", "");
        check("\x1b[31", "\x18");
    }

    /// SPEC 8.7: all of the screen scrolls, and the cursor is where it can be.
    #[test]
    fn rows() {
        check("\x1b[2;10r", "\x1b7\x1b[r\x1b8");
        check("\x1b[2;10r\x1b[r", "");
        check("\x1b[2;10r\x1b[!p", "");
        check("\x1b[?6h", "\x1b[?6l\x1b[r\x1b[999;1H\n");
        check("\x1b[?1049h\x1b[2;10r\x1b[?6h", "\x1b[?6l\x1b[?1049l\x1b7\x1b[r\x1b8");
    }

    /// SPEC 8.2: whether a program had the whole screen, and where the cursor was left.
    #[test]
    fn screens_and_lines() {
        assert!(after("\x1b[?1049h\x1b[?1049l").was_full_screen());
        assert!(!after("\x1b[?1049h\x1b[?1049l").is_full_screen());
        assert!(after("\x1b[?1049h").is_full_screen());
        assert!(!after("\x1b[?25l").was_full_screen());
        for (written, at_start) in [
            ("", true),
            ("a", false),
            ("\t", false),
            ("a\r\n", true),
            ("a\r\n\x1b[0m", true),
            ("a\n$ ", false),
            ("\x07", true),
            ("\x1b]0;a title\x07", true),
            ("a\r\n\x1b]133;D;0\x1b\\\x1b[?25h", true),
            ("a\x1b[H", true),
            ("a\x1b[3;7H", false),
            ("\x1b[5G", false),
            ("\x1b[?1049h in an editor", true),
            ("a\x1b[?1049h\r\n\x1b[?1049l", false),
            ("a\x1b[?6h", true),
        ] {
            assert_eq!(after(written).is_at_line_start(), at_start, "{written:?}");
        }
    }
}
