//! What a command printed, as text: bounded while it comes, cleaned when it is over.
//!
//! The beginning and the end are kept, since both say what happened. Cleaning plays the bytes on a terminal emulator:
//! colours go, a progress bar is what it was at last, and a full-screen program leaves nothing.

use crate::live::Size;
use std::collections::VecDeque;
use std::num::NonZeroU16;

/// Bytes kept from the beginning.
const HEAD_BYTES: usize = 64 * 1024;
/// Bytes kept from the end.
const TAIL_BYTES: usize = 192 * 1024;
/// Rows of the emulated terminal when the real ones are not known.
const ROWS_DEFAULT: NonZeroU16 = vt100::Parser::DEFAULT_ROWS;
/// And its columns.
const COLUMNS_DEFAULT: NonZeroU16 = vt100::Parser::DEFAULT_COLS;

/// What came, bounded.
#[derive(Clone, Debug, Default)]
pub struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// All bytes, those left out too.
    total: u64,
}

impl Capture {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = HEAD_BYTES - self.head.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        // Of more than fits only the end can stay.
        let rest = rest.get(rest.len().saturating_sub(TAIL_BYTES)..).unwrap_or_default();
        let over = (self.tail.len() + rest.len()).saturating_sub(TAIL_BYTES);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    /// Bytes that came.
    pub fn total_bytes(&self) -> u64 {
        self.total
    }

    /// True when nothing had to be left out.
    pub fn is_whole(&self) -> bool {
        self.total == (self.head.len() + self.tail.len()) as u64
    }

    /// The text a person would have read on a terminal of that size, without the spaces at line ends.
    pub fn text(&self, size: Option<Size>) -> String {
        let size = size.unwrap_or(Size { rows: 0, columns: 0 });
        let size = (
            NonZeroU16::new(size.rows).unwrap_or(ROWS_DEFAULT),
            NonZeroU16::new(size.columns).unwrap_or(COLUMNS_DEFAULT),
        );
        let (first, second) = self.tail.as_slices();
        let left_out = self.total - (self.head.len() + self.tail.len()) as u64;
        if left_out == 0 {
            return played(&[&self.head, first, second], size);
        }
        let head = played(&[&self.head], size);
        let tail = played(&[first, second], size);
        format!("{head}\n… {left_out} bytes left out …\n{tail}")
    }
}

/// What an emulated terminal shows of these bytes, and what scrolled off it.
fn played(parts: &[&[u8]], size: (NonZeroU16, NonZeroU16)) -> String {
    if parts.iter().all(|part| part.is_empty()) {
        return String::new();
    }
    let (rows, columns) = size;
    let mut parser = vt100::Parser::new_with_callbacks(rows, columns, 0, Scrolled::default());
    for part in parts {
        parser.process(part);
    }
    let mut scrolled = std::mem::take(parser.callbacks_mut());
    // What is on the screen comes behind what has left it, in the same form. Writing to a text cannot fail.
    let _ = parser.screen().write_contents_formatted_basic(
        &mut scrolled.text,
        vt100::capture::BasicFormattedCaptureRange::Full(&mut scrolled.state),
    );
    let plain: String = vt100::capture::basic_formatted_to_plain(&scrolled.text).collect();
    let lines: Vec<&str> = plain.lines().map(str::trim_end).collect();
    lines.join("\n").trim_end().to_owned()
}

/// Collects the lines that leave the screen at its top.
#[derive(Default)]
struct Scrolled {
    text: String,
    state: vt100::capture::BasicFormattedCaptureState,
}

impl vt100::Callbacks for Scrolled {
    fn on_scroll(&mut self, row: vt100::capture::RowContents<'_>, alternate_screen: bool) {
        // What an editor scrolls is not what the command printed.
        if !alternate_screen {
            let _ = row.write_formatted_basic(&mut self.text, &mut self.state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(printed: &str) -> String {
        let mut capture = Capture::new();
        capture.push(printed.as_bytes());
        capture.text(None)
    }

    /// SPEC 8.3: clean text: no colours, the last state of a progress bar, nothing of a full-screen program.
    #[test]
    fn clean_text() {
        for (printed, expect) in [
            ("", ""),
            ("one\r\ntwo\r\n", "one\ntwo"),
            ("\x1b[1;31mred\x1b[0m plain\r\n", "red plain"),
            ("10%\r50%\r100%\r\ndone\r\n", "100%\ndone"),
            ("abc\x08\x08X\r\n", "aXc"),
            ("line\r\n\x1b[1A\x1b[2Kother\r\n", "other"),
            ("before\r\n\x1b[?1049h\x1b[Hin vim\x1b[?1049lafter\r\n", "before\nafter"),
            ("a\r\n\r\n\r\nb   \r\n\r\n", "a\n\n\nb"),
            ("\x1b]0;title\x07text", "text"),
            ("wide 日本 é\r\n", "wide 日本 é"),
        ] {
            assert_eq!(text(printed), expect, "{printed:?}");
        }
    }

    /// A line longer than the terminal is one line.
    #[test]
    fn long_lines_stay_whole() {
        let line = "0123456789".repeat(40);
        assert_eq!(text(&format!("{line}\r\nnext\r\n")), format!("{line}\nnext"));
    }

    /// Lines that have scrolled away are kept, in order.
    #[test]
    fn many_lines() {
        let printed: String = (0..2_000).map(|n| format!("line {n}\r\n")).collect();
        let lines: Vec<String> = (0..2_000).map(|n| format!("line {n}")).collect();
        assert_eq!(text(&printed), lines.join("\n"));
    }

    /// SPEC 8.3, 12: bounded whatever comes; beginning and end stay.
    #[test]
    fn bounded() {
        let mut capture = Capture::new();
        capture.push(b"first line\r\n");
        for n in 0..100_000 {
            capture.push(format!("{n:>40}\r\n").as_bytes());
        }
        capture.push(b"last line\r\n");
        assert!(capture.head.len() + capture.tail.len() <= HEAD_BYTES + TAIL_BYTES);
        let text = capture.text(None);
        assert!(text.starts_with("first line\n"));
        assert!(text.ends_with("99999\nlast line"), "{}", &text[text.len() - 100..]);
        assert!(text.contains("bytes left out"));
        assert_eq!(capture.total_bytes(), 12 + 42 * 100_000 + 11);
    }

    /// Binary output is no fault.
    #[test]
    fn binary() {
        let bytes: Vec<u8> = (0..=255).cycle().take(50_000).collect();
        let mut capture = Capture::new();
        capture.push(&bytes);
        assert!(!capture.text(None).contains('\x1b'));
    }
}
