//! Keys that were read with a line and came behind it: made bytes again, for whoever reads next.
//!
//! The editor's library takes from the terminal what is there, and keeps what it does not use. A terminal would have kept it for
//! the program that the line starts (`vim x`, Enter, `ihello`); so it is taken out again.

use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::time::Duration;

/// Bytes that are taken; more are left for the editor's next line.
const UNREAD_BYTES_MAX: usize = 1 << 20;
const ESCAPE: u8 = 0x1b;
/// What a terminal writes around a paste, once it was asked to.
const PASTE: (&[u8], &[u8]) = (b"\x1b[200~", b"\x1b[201~");

/// Takes the keys that the editor has read and not used.
pub fn take() -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < UNREAD_BYTES_MAX && matches!(event::poll(Duration::ZERO), Ok(true)) {
        match event::read() {
            Ok(event) => write(&event, &mut bytes),
            Err(_) => break,
        }
    }
    bytes
}

fn write(event: &Event, bytes: &mut Vec<u8>) {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => write_key(*key, bytes),
        Event::Paste(text) => {
            let (begin, end) = PASTE;
            bytes.extend(begin);
            bytes.extend(text.as_bytes());
            bytes.extend(end);
        }
        Event::Key(_) | Event::FocusGained | Event::FocusLost | Event::Mouse(_) | Event::Resize(..) => {}
    }
}

/// As terminals send it that were asked for nothing special.
fn write_key(key: KeyEvent, bytes: &mut Vec<u8>) {
    let sequence = match key.code {
        KeyCode::Up => (1, 'A'),
        KeyCode::Down => (1, 'B'),
        KeyCode::Right => (1, 'C'),
        KeyCode::Left => (1, 'D'),
        KeyCode::Home => (1, 'H'),
        KeyCode::End => (1, 'F'),
        KeyCode::BackTab => (1, 'Z'),
        KeyCode::Insert => (2, '~'),
        KeyCode::Delete => (3, '~'),
        KeyCode::PageUp => (5, '~'),
        KeyCode::PageDown => (6, '~'),
        KeyCode::F(number @ 1..=5) => (10 + number, '~'),
        KeyCode::F(number @ 6..=10) => (11 + number, '~'),
        KeyCode::F(number @ 11..=12) => (12 + number, '~'),
        KeyCode::Char(c) => return write_character(c, key.modifiers, bytes),
        KeyCode::Enter => return write_character('\r', key.modifiers - KeyModifiers::CONTROL, bytes),
        KeyCode::Tab => return write_character('\t', key.modifiers - KeyModifiers::CONTROL, bytes),
        KeyCode::Backspace => return write_character('\x7f', key.modifiers - KeyModifiers::CONTROL, bytes),
        KeyCode::Esc => return write_character(char::from(ESCAPE), key.modifiers, bytes),
        // Keys that only a terminal sends which was asked to tell all of them apart.
        KeyCode::F(_)
        | KeyCode::Null
        | KeyCode::CapsLock
        | KeyCode::ScrollLock
        | KeyCode::NumLock
        | KeyCode::PrintScreen
        | KeyCode::Pause
        | KeyCode::Menu
        | KeyCode::KeypadBegin
        | KeyCode::Media(_)
        | KeyCode::Modifier(_) => return,
    };
    let (number, last) = sequence;
    let held = [KeyModifiers::SHIFT, KeyModifiers::ALT, KeyModifiers::CONTROL];
    let modifiers: u8 = held
        .iter()
        .zip([1, 2, 4])
        .filter(|(one, _)| key.modifiers.contains(**one))
        .map(|(_, bit)| bit)
        .sum();
    let text = match (number, modifiers, last) {
        (1, 0, _) | (1, 1, 'Z') => format!("[{last}"),
        (_, 0, _) => format!("[{number}{last}"),
        (_, _, _) => format!("[{number};{}{last}", modifiers + 1),
    };
    bytes.push(ESCAPE);
    bytes.extend(text.as_bytes());
}

fn write_character(c: char, modifiers: KeyModifiers, bytes: &mut Vec<u8>) {
    if modifiers.contains(KeyModifiers::ALT) {
        bytes.push(ESCAPE);
    }
    let control = match (modifiers.contains(KeyModifiers::CONTROL), c) {
        (true, ' ') => Some(0),
        (true, 'a'..='z' | 'A'..='Z' | '[' | '\\' | ']' | '^' | '_') => u8::try_from(c).ok().map(|c| c & 0x1f),
        // What the library calls the codes behind Escape.
        (true, '4'..='7') => u8::try_from(c).ok().map(|c| c - b'4' + 0x1c),
        (true | false, _) => None,
    };
    match control {
        Some(byte) => bytes.push(byte),
        None => bytes.extend(c.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(code: KeyCode, modifiers: KeyModifiers, expect: &str) {
        let mut bytes = Vec::new();
        write(&Event::Key(KeyEvent::new(code, modifiers)), &mut bytes);
        assert_eq!(String::from_utf8_lossy(&bytes), expect, "{code:?} {modifiers:?}");
    }

    /// SPEC 8.2: a key that came too early is for the next reader what it was.
    #[test]
    fn keys_are_bytes_again() {
        let (none, alt, control) = (KeyModifiers::NONE, KeyModifiers::ALT, KeyModifiers::CONTROL);
        check(KeyCode::Char('é'), none, "é");
        check(KeyCode::Char('A'), KeyModifiers::SHIFT, "A");
        check(KeyCode::Char('b'), alt, "\x1bb");
        check(KeyCode::Char('c'), control, "\x03");
        check(KeyCode::Char('4'), control, "\x1c");
        check(KeyCode::Char(' '), control, "\0");
        check(KeyCode::Char('j'), control, "\n");
        check(KeyCode::Enter, none, "\r");
        check(KeyCode::Enter, alt, "\x1b\r");
        check(KeyCode::Tab, none, "\t");
        check(KeyCode::Backspace, none, "\x7f");
        check(KeyCode::Esc, none, "\x1b");
        check(KeyCode::Up, none, "\x1b[A");
        check(KeyCode::Right, control, "\x1b[1;5C");
        check(KeyCode::BackTab, KeyModifiers::SHIFT, "\x1b[Z");
        check(KeyCode::Delete, none, "\x1b[3~");
        check(KeyCode::Delete, alt, "\x1b[3;3~");
        check(KeyCode::F(1), none, "\x1b[11~");
        check(KeyCode::F(5), none, "\x1b[15~");
        check(KeyCode::F(6), none, "\x1b[17~");
        check(KeyCode::F(12), none, "\x1b[24~");
        check(KeyCode::CapsLock, none, "");
    }

    /// SPEC 8.9: a paste stays one.
    #[test]
    fn pastes_stay_pastes() {
        let mut bytes = Vec::new();
        write(&Event::Paste("a\nb".into()), &mut bytes);
        assert_eq!(bytes, b"\x1b[200~a\nb\x1b[201~");
    }
}
