//! Bytes into lines, bounded: of a line that is too long only its two ends are kept, however long it goes on.

/// Bytes of one line, i.e. of one message.
pub const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bytes kept of each end of a line that is too long: the id of a reply is in one of them, as servers write it.
const END_BYTES_MAX: usize = 256;

/// A line without its line end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// All of it.
    Whole(Vec<u8>),
    /// The ends of one that was longer than [`LINE_BYTES_MAX`].
    TooLong {
        /// How it begins.
        head: Vec<u8>,
        /// How it ends.
        tail: Vec<u8>,
    },
}

/// The line that is being read.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// The line so far; once it is too long, its beginning only.
    begun: Vec<u8>,
    /// The end so far of one that is too long.
    tail: Option<Vec<u8>>,
}

impl Lines {
    /// Takes bytes off the front of the piece, up to the end of a line, which is returned, or all of them.
    pub(crate) fn take(&mut self, piece: &mut &[u8]) -> Option<Line> {
        let (bytes, rest, has_end) = match piece.iter().position(|byte| *byte == b'\n') {
            Some(at) => {
                let (bytes, rest) = piece.split_at(at);
                (bytes, rest.get(1..).unwrap_or_default(), true)
            }
            None => (*piece, &[] as &[u8], false),
        };
        *piece = rest;
        self.push(bytes);
        if has_end { Some(self.end()) } else { None }
    }

    /// What was begun and has no line end when nothing more comes.
    pub(crate) fn finish(&mut self) -> Option<Line> {
        (!self.begun.is_empty()).then(|| self.end())
    }

    fn push(&mut self, bytes: &[u8]) {
        if self.tail.is_none() && self.begun.len() + bytes.len() <= LINE_BYTES_MAX {
            self.begun.extend_from_slice(bytes);
            return;
        }
        let begun = &mut self.begun;
        let tail = self.tail.get_or_insert_with(|| {
            let last = begun.len().saturating_sub(END_BYTES_MAX);
            let tail = begun.get(last..).unwrap_or_default().to_vec();
            begun.truncate(END_BYTES_MAX);
            begun.shrink_to_fit();
            tail
        });
        let surplus = bytes.len().saturating_sub(END_BYTES_MAX);
        tail.extend_from_slice(bytes.get(surplus..).unwrap_or_default());
        tail.drain(..tail.len().saturating_sub(END_BYTES_MAX));
    }

    fn end(&mut self) -> Line {
        let mut head = std::mem::take(&mut self.begun);
        match self.tail.take() {
            Some(mut tail) => {
                drop_return(&mut tail);
                Line::TooLong { head, tail }
            }
            None => {
                drop_return(&mut head);
                Line::Whole(head)
            }
        }
    }
}

/// Drops the carriage return of a line that ended with both.
fn drop_return(line: &mut Vec<u8>) {
    if line.last() == Some(&b'\r') {
        line.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], piece_bytes: usize) -> Vec<Line> {
        let mut lines = Lines::default();
        let mut out = Vec::new();
        for mut piece in bytes.chunks(piece_bytes) {
            while !piece.is_empty() {
                out.extend(lines.take(&mut piece));
            }
        }
        out.extend(lines.finish());
        out
    }

    /// SPEC 6.6: lines are the same however the bytes come; a carriage return belongs to the line end.
    #[test]
    fn lines_however_cut() {
        let expect: Vec<Line> = ["{}", "", "a\rb", "last"].map(|line| Line::Whole(line.into())).into();
        for piece_bytes in 1..16 {
            assert_eq!(read(b"{}\r\n\na\rb\nlast", piece_bytes), expect);
        }
    }

    /// SPEC 12: of a line that is too long only its ends are kept, and the next one is whole.
    #[test]
    fn too_long() {
        let mut bytes = b"begin".to_vec();
        bytes.resize(LINE_BYTES_MAX * 2, b'x');
        bytes.extend_from_slice(b"end\r\nnext\n");
        let lines = read(&bytes, 64 * 1024);
        assert!(
            matches!(lines.as_slice(), [Line::TooLong { head, tail }, Line::Whole(next)]
            if head.starts_with(b"begin") && tail.ends_with(b"xend") && next == b"next"
                && head.len() == END_BYTES_MAX && tail.len() < END_BYTES_MAX)
        );
    }
}
