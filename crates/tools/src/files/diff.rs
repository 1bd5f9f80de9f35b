//! The difference a replacement makes, as a unified diff.
//!
//! Where a text changed is known, so the whole texts are never compared: around each place the lines are, within a bound
//! on work, and beyond it the changed lines are shown as they were and as they are. Memory is bounded by the lines of one
//! hunk and by the bytes that are kept, time by the length of the two texts.

use crate::capture::Capture;
use similar::{ChangeTag, TextDiff};
use std::ops::Range;

/// Unchanged lines shown around a change.
const CONTEXT_LINES: usize = 3;
/// Bytes of one hunk whose lines are compared; a longer one is shown without.
const HUNK_BYTES_MAX: usize = 64 * 1024;
/// Pairs of lines that may be compared for one diff, over all its hunks; a count and not a time, so that the same edit
/// always answers the same.
const LINE_PAIRS_MAX: usize = 8_000_000;

/// Two texts of which the second came from the first by putting `new` in the place of `old`.
pub(super) struct Replacement<'a> {
    /// The first text.
    pub(super) before: &'a str,
    /// The second.
    pub(super) after: &'a str,
    /// What was replaced: every place that does not overlap an earlier one.
    pub(super) old: &'a str,
    /// What by.
    pub(super) new: &'a str,
}

/// A part of both texts, in whole lines.
#[derive(Clone, Debug)]
struct Block {
    before: Range<usize>,
    after: Range<usize>,
}

impl Replacement<'_> {
    /// The diff, of which at most `bytes_max` bytes are kept.
    pub(super) fn diff(&self, shown: &str, bytes_max: usize) -> String {
        let mut writer = Writer {
            texts: self,
            capture: Capture::new(bytes_max),
            line_pairs_left: LINE_PAIRS_MAX,
            seen: Block {
                before: 0..0,
                after: 0..0,
            },
            lines_before: 0,
            lines_after: 0,
        };
        writer.capture.push(&format!("--- {shown}\n+++ {shown}\n"));
        let mut hunk: Option<Block> = None;
        self.each_block(|block| match &mut hunk {
            Some(open) if self.belongs(open, &block) => {
                open.before.end = block.before.end;
                open.after.end = block.after.end;
            }
            open => {
                if let Some(whole) = open.replace(block.clone()) {
                    writer.hunk(&whole, block.before.start);
                }
            }
        });
        if let Some(last) = hunk {
            writer.hunk(&last, self.before.len());
        }
        writer.capture.finish()
    }

    /// Calls `found` with the changed lines, in order; places on the same line are one block.
    fn each_block(&self, mut found: impl FnMut(Block)) {
        let mut block: Option<Block> = None;
        // Where the place before this one ended, in both texts; between two places the texts are the same.
        let (mut before_end, mut after_end) = (0, 0);
        for (start, _) in self.before.match_indices(self.old) {
            let after_start = after_end + (start - before_end);
            before_end = start + self.old.len();
            after_end = after_start + self.new.len();
            if block.as_ref().is_none_or(|open| start >= open.before.end) {
                let floor = block.as_ref().map_or(0, |open| open.before.end);
                let lead = lead_of(self.before, floor, start);
                if let Some(whole) = block.take() {
                    found(whole);
                }
                block = Some(Block {
                    before: start - lead..before_end,
                    after: after_start - lead..after_end,
                });
            }
            if let Some(open) = &mut block {
                let rest = match open.before.end > before_end {
                    true => open.before.end - before_end,
                    false => self.rest_of_line(before_end, after_end),
                };
                open.before.end = before_end + rest;
                open.after.end = after_end + rest;
            }
        }
        if let Some(last) = block {
            found(last);
        }
    }

    /// Bytes from the end of a place to the end of its line; none if a line ends there in both texts.
    fn rest_of_line(&self, before_end: usize, after_end: usize) -> usize {
        let ends = |text: &str, at: usize| text.as_bytes().get(..at).is_some_and(|text| text.ends_with(b"\n"));
        if ends(self.before, before_end) && (ends(self.after, after_end) || after_end == 0) {
            return 0;
        }
        let rest = part(self.before, before_end..self.before.len());
        rest.find('\n').map_or(rest.len(), |at| at + 1)
    }

    /// True when a block is so close to a hunk that their surroundings touch, and the two are not too long together.
    fn belongs(&self, hunk: &Block, block: &Block) -> bool {
        let bytes = block.before.end.max(block.after.end) - hunk.before.start.min(hunk.after.start);
        let gap = part(self.before, hunk.before.end..block.before.start);
        bytes <= HUNK_BYTES_MAX && gap.split_inclusive('\n').take(2 * CONTEXT_LINES + 1).count() <= 2 * CONTEXT_LINES
    }
}

struct Writer<'a> {
    texts: &'a Replacement<'a>,
    capture: Capture,
    line_pairs_left: usize,
    /// The texts up to the end of the last hunk (the ends count), and the lines there are in them.
    seen: Block,
    lines_before: usize,
    lines_after: usize,
}

impl Writer<'_> {
    /// Writes one hunk with its surroundings, which end where the next one's changes begin.
    fn hunk(&mut self, changed: &Block, next_start: usize) {
        let texts = self.texts;
        let lead = context_before(part(texts.before, self.seen.before.end..changed.before.start));
        let tail = context_after(part(texts.before, changed.before.end..next_start));
        let around = Block {
            before: changed.before.start - lead..changed.before.end + tail,
            after: changed.after.start - lead..changed.after.end + tail,
        };
        let is_short = around.before.len().max(around.after.len()) <= HUNK_BYTES_MAX && !self.capture.is_cut();
        if !is_short || !self.write_compared(&around) {
            self.write_whole(changed);
        }
    }

    /// Writes only the lines that differ, and those around them; false if that would be too much work.
    fn write_compared(&mut self, around: &Block) -> bool {
        let texts = self.texts;
        let old: Vec<&str> = part(texts.before, around.before.clone())
            .split_inclusive('\n')
            .collect();
        let new: Vec<&str> = part(texts.after, around.after.clone()).split_inclusive('\n').collect();
        let Some(left) = self.line_pairs_left.checked_sub(old.len() * new.len()) else {
            return false;
        };
        self.line_pairs_left = left;
        self.skip_to(around.before.start, around.after.start);
        let diff = TextDiff::configure().diff_slices(&old, &new);
        for group in diff.grouped_ops(CONTEXT_LINES) {
            let (Some(first), Some(last)) = (group.first(), group.last()) else {
                continue;
            };
            let before = first.old_range().start..last.old_range().end;
            let after = first.new_range().start..last.new_range().end;
            self.write_header(before, after);
            for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
                let sign = match change.tag() {
                    ChangeTag::Equal => " ",
                    ChangeTag::Delete => "-",
                    ChangeTag::Insert => "+",
                };
                self.write_line(sign, change.value());
            }
        }
        self.pass(around, old.len(), new.len());
        true
    }

    /// Writes all lines of a block as they were, then as they are.
    fn write_whole(&mut self, block: &Block) {
        let texts = self.texts;
        self.skip_to(block.before.start, block.after.start);
        let old = part(texts.before, block.before.clone());
        let new = part(texts.after, block.after.clone());
        let (old_lines, new_lines) = (old.split_inclusive('\n').count(), new.split_inclusive('\n').count());
        self.write_header(0..old_lines, 0..new_lines);
        for line in old.split_inclusive('\n') {
            self.write_line("-", line);
        }
        for line in new.split_inclusive('\n') {
            self.write_line("+", line);
        }
        self.pass(block, old_lines, new_lines);
    }

    /// Counts the unchanged lines up to a hunk.
    fn skip_to(&mut self, before: usize, after: usize) {
        let lines = part(self.texts.before, self.seen.before.end..before)
            .matches('\n')
            .count();
        self.lines_before += lines;
        self.lines_after += lines;
        (self.seen.before.end, self.seen.after.end) = (before, after);
    }

    fn pass(&mut self, block: &Block, old_lines: usize, new_lines: usize) {
        self.lines_before += old_lines;
        self.lines_after += new_lines;
        (self.seen.before.end, self.seen.after.end) = (block.before.end, block.after.end);
    }

    /// The header of lines counted from where the hunk begins.
    fn write_header(&mut self, before: Range<usize>, after: Range<usize>) {
        let before = range_text(self.lines_before + before.start, before.len());
        let after = range_text(self.lines_after + after.start, after.len());
        self.capture.push(&format!("@@ -{before} +{after} @@\n"));
    }

    fn write_line(&mut self, sign: &str, line: &str) {
        self.capture.push(sign);
        self.capture.push(line);
        if !line.ends_with('\n') {
            self.capture.push("\n\\ No newline at end of file\n");
        }
    }
}

/// Lines as a header names them: the first one from 1 and how many, which is left out if it is one. Of none, the line
/// before is named.
fn range_text(lines_before: usize, count: usize) -> String {
    match count {
        0 => format!("{lines_before},0"),
        1 => format!("{}", lines_before + 1),
        _ => format!("{},{count}", lines_before + 1),
    }
}

/// Bytes between the start of a line and a place on it; `floor` is the start of some line.
fn lead_of(text: &str, floor: usize, at: usize) -> usize {
    let gap = part(text, floor..at);
    gap.len() - gap.rfind('\n').map_or(0, |newline| newline + 1)
}

/// Bytes of the last lines of a text, as many as are shown before a change.
fn context_before(text: &str) -> usize {
    text.split_inclusive('\n').rev().take(CONTEXT_LINES).map(str::len).sum()
}

/// Bytes of the first lines of a text, as many as are shown after a change.
fn context_after(text: &str) -> usize {
    text.split_inclusive('\n').take(CONTEXT_LINES).map(str::len).sum()
}

fn part(text: &str, range: Range<usize>) -> &str {
    text.get(range).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn diff(before: &str, old: &str, new: &str) -> String {
        let after = before.replace(old, new);
        let texts = Replacement {
            before,
            after: &after,
            old,
            new,
        };
        texts.diff("f", usize::MAX)
    }

    fn check(before: &str, old: &str, new: &str, expect: &str) {
        assert_eq!(
            diff(before, old, new),
            format!("--- f\n+++ f\n{expect}"),
            "{before:?}: {old:?} to {new:?}"
        );
    }

    /// SPEC 4: an edit shows the lines that changed, and what is around them.
    #[test]
    fn hunks_are_lines() {
        check("a\nb\nc\n", "b", "x", "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n");
        check("a b b\n", "b", "x", "@@ -1 +1 @@\n-a b b\n+a x x\n");
        check("a\nb\nc\n", "b\n", "", "@@ -1,3 +1,2 @@\n a\n-b\n c\n");
        check(
            "a\nb\nc",
            "\nc",
            "\n",
            "@@ -1,3 +1,2 @@\n a\n b\n-c\n\\ No newline at end of file\n",
        );
        check("a\nb\n", "a\n", "a", "@@ -1,2 +1 @@\n-a\n-b\n+ab\n");
        check("a\n", "a\n", "", "@@ -1 +0,0 @@\n-a\n");
        check(
            "1\n2\nx\n3\n4\n",
            "1\n2\nx\n3",
            "1\n2\ny\n3",
            "@@ -1,5 +1,5 @@\n 1\n 2\n-x\n+y\n 3\n 4\n",
        );
    }

    /// SPEC 4: changes far from each other are hunks of their own, with the lines counted in each text.
    #[test]
    fn far_changes_are_apart() {
        let before = "x\n1\n2\n3\n4\n5\n6\n7\nx\n";
        let expect = "@@ -1,4 +1,5 @@\n-x\n+y\n+y\n 1\n 2\n 3\n@@ -6,4 +7,5 @@\n 5\n 6\n 7\n-x\n+y\n+y\n";
        check(before, "x", "y\ny", expect);
    }

    /// SPEC 12: a line that is a whole file is shown as it is, and nothing takes longer than reading it.
    #[test]
    fn long_lines_and_many_places_are_bounded() {
        let before = "x".repeat(1 << 20);
        let after = "y".repeat(1 << 20);
        check(
            &before,
            "x",
            "y",
            &format!("@@ -1 +1 @@\n-{before}\n\\ No newline at end of file\n+{after}\n\\ No newline at end of file\n"),
        );
        let before = "x\n".repeat(1 << 18);
        let text = diff(&before, "x", "y");
        let count = |sign| text.lines().filter(|line| *line == sign).count();
        assert_eq!((count("-x"), count("+y"), count(" x")), (1 << 18, 1 << 18, 0));
    }

    /// Puts the lines of a diff together again: what was, and what is, outside of what it leaves out.
    fn apply(before: &str, diff: &str) -> String {
        let lines: Vec<&str> = before.split_inclusive('\n').collect();
        let mut out = String::new();
        let mut at = 0;
        let mut has_newline_to_drop = false;
        for line in diff.split_inclusive('\n').skip(2) {
            let rest = line.get(1..).unwrap_or_default();
            match line.as_bytes().first() {
                Some(b'@') => {
                    let range = line.split(['-', ' ']).nth(2).unwrap_or_default();
                    let mut numbers = range.split(',').map(|n| n.parse::<usize>().unwrap_or_default());
                    let (first, count) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or(1));
                    let start = if count == 0 { first } else { first - 1 };
                    out.extend(lines.get(at..start).unwrap_or_default().iter().copied());
                    at = start;
                }
                Some(b'-') => {
                    at += 1;
                    has_newline_to_drop = false;
                }
                Some(b'+' | b' ') => {
                    at += usize::from(line.starts_with(' '));
                    out.push_str(rest);
                    has_newline_to_drop = true;
                }
                _ if has_newline_to_drop => {
                    out.pop();
                }
                _ => {}
            }
        }
        out.extend(lines.get(at..).unwrap_or_default().iter().copied());
        out
    }

    proptest! {
        /// SPEC 4: the diff of any replacement leads from the one text to the other.
        #[test]
        fn a_diff_can_be_applied(
            lines in prop::collection::vec("[abc]{0,3}\n?", 0..40),
            old in "[abc\n]{1,3}",
            new in "[abcd\n]{0,4}",
        ) {
            let before = lines.concat();
            prop_assume!(old != new && before.contains(&old));
            let diff = diff(&before, &old, &new);
            prop_assert_eq!(apply(&before, &diff), before.replace(&old, &new), "{}", diff);
        }
    }
}
