//! The lines found, file by file, in the order of their paths, within a bound.
//!
//! Threads search files in any order; the output is the first bytes of the list sorted by path. A file's lines can be
//! dropped as soon as the files before it fill the output: those that come later only push it further out.

use crate::capture::Capture;
use std::collections::BTreeMap;

/// The lines found in one file.
#[derive(Debug)]
pub(super) struct FileHits {
    /// Its lines, without a line end after the last.
    pub(super) text: String,
    /// How long the text would be if nothing had been left out.
    pub(super) bytes_total: u64,
    /// Matching lines.
    pub(super) matches: u64,
}

/// All files with matches.
#[derive(Debug)]
pub(super) struct Hits {
    files: BTreeMap<String, FileHits>,
    bytes_kept: usize,
    bytes_max: usize,
    separator: &'static str,
    /// Matching lines, of files dropped too.
    pub(super) matches: u64,
    /// Files with matches, dropped ones too.
    pub(super) file_count: u64,
    bytes_total: u64,
}

impl Hits {
    /// Keeps what can be among the first `bytes_max` bytes; `separator` goes between files.
    pub(super) fn new(bytes_max: usize, separator: &'static str) -> Self {
        Self {
            files: BTreeMap::new(),
            bytes_kept: 0,
            bytes_max,
            separator,
            matches: 0,
            file_count: 0,
            bytes_total: 0,
        }
    }

    /// Adds the lines of a file.
    pub(super) fn insert(&mut self, shown: String, hits: FileHits) {
        if self.file_count > 0 {
            self.bytes_total += self.separator.len() as u64;
        }
        self.file_count += 1;
        self.matches += hits.matches;
        self.bytes_total += hits.bytes_total;
        self.bytes_kept += hits.text.len();
        self.files.insert(shown, hits);
        while let Some(last) = self.files.last_entry() {
            let without = self.bytes_kept - last.get().text.len();
            if without <= self.bytes_max {
                break;
            }
            last.remove();
            self.bytes_kept = without;
        }
    }

    /// The sorted list, cut where the bound is.
    pub(super) fn into_output(self) -> String {
        let mut capture = Capture::new(self.bytes_max);
        let mut bytes_pushed = 0;
        for (index, file) in self.files.values().enumerate() {
            if index > 0 {
                capture.push(self.separator);
                bytes_pushed += self.separator.len() as u64;
            }
            capture.push(&file.text);
            bytes_pushed += file.text.len() as u64;
            if file.bytes_total > file.text.len() as u64 {
                break;
            }
        }
        capture.skip(self.bytes_total - bytes_pushed);
        capture.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 4.6: the order in which threads finish changes nothing, within any bound.
    #[test]
    fn output_is_independent_of_order() {
        let file = |name: &str| {
            let text = format!("{name}:1: x\n{name}:2: y");
            let bytes_total = text.len() as u64;
            (
                name.to_owned(),
                FileHits {
                    text,
                    bytes_total,
                    matches: 2,
                },
            )
        };
        let names = ["a", "b", "c", "d", "e", "f"];
        let output = |order: &[usize], bytes_max| {
            let mut hits = Hits::new(bytes_max, "\n");
            for index in order {
                let (name, hit) = file(names.get(*index).copied().unwrap_or_default());
                hits.insert(name, hit);
            }
            assert_eq!((hits.matches, hits.file_count), (12, 6));
            hits.into_output()
        };
        let whole = output(&[0, 1, 2, 3, 4, 5], 1000);
        assert_eq!(whole.lines().count(), 12);
        for bytes_max in [0, 5, 13, 14, 20, 27, 28, whole.len() - 1, whole.len()] {
            let expect = Capture::of(&whole, bytes_max).finish();
            for order in [[0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [3, 0, 5, 1, 4, 2]] {
                assert_eq!(output(&order, bytes_max), expect, "{order:?} at {bytes_max}");
            }
        }
    }
}
