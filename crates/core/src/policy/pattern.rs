//! Patterns on command lines: text in which `*` stands for any text, `\*` for a star and `\\` for a backslash.
//!
//! A command is matched as [`Text`]: letters, and holes where only running it would tell what stands there. A hole is nothing a
//! pattern can be held to: only a star covers it.

/// What can be told of a command's text: a byte, or a hole of any length.
pub(super) type Text = Vec<Option<u8>>;

/// Symbols of a text that are held against a pattern where it may fit; beyond them it is a hole.
const MAY_FIT_SYMBOLS_MAX: usize = 1_000;

/// A pattern on commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    /// What stands between its stars: one more than there are stars.
    between: Vec<String>,
}

impl Pattern {
    pub(super) fn new(text: &str) -> Self {
        let mut between = vec![String::new()];
        let mut characters = text.chars().peekable();
        while let Some(c) = characters.next() {
            let escaped = (c == '\\')
                .then(|| characters.next_if(|next| matches!(next, '*' | '\\')))
                .flatten();
            match (escaped, c, between.last_mut()) {
                (None, '*', _) => between.push(String::new()),
                (Some(c), _, Some(part)) | (None, c, Some(part)) => part.push(c),
                (Some(_) | None, _, None) => {}
            }
        }
        Self { between }
    }

    /// The pattern that fits exactly this text, as it is written.
    pub(super) fn exactly(text: &str) -> String {
        let mut pattern = String::with_capacity(text.len());
        let mut characters = text.chars().peekable();
        while let Some(c) = characters.next() {
            let is_escape = c == '\\' && characters.peek().is_some_and(|next| matches!(next, '*' | '\\'));
            if c == '*' || is_escape {
                pattern.push('\\');
            }
            pattern.push(c);
        }
        pattern
    }

    /// The one text it fits; `None` where it has stars.
    pub(super) fn exact(&self) -> Option<&str> {
        match self.between.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Whether the whole text fits, whatever its holes become.
    pub(super) fn fits(&self, text: &[Option<u8>]) -> bool {
        let Some((first, rest)) = self.between.split_first() else {
            return false;
        };
        let Some((last, middle)) = rest.split_last() else {
            return is_text(text, first);
        };
        let Some(mut text) = text
            .get(first.len()..)
            .filter(|_| text.get(..first.len()).is_some_and(|t| is_text(t, first)))
        else {
            return false;
        };
        for part in middle {
            let found = (0..=text.len()).find(|at| text.get(*at..at + part.len()).is_some_and(|t| is_text(t, part)));
            match found.and_then(|at| text.get(at + part.len()..)) {
                Some(behind) => text = behind,
                None => return false,
            }
        }
        let end = text.len().checked_sub(last.len());
        end.and_then(|at| text.get(at..))
            .is_some_and(|text| is_text(text, last))
    }

    /// Whether the whole text may fit, for something that its holes may become.
    pub(super) fn may_fit(&self, text: &[Option<u8>]) -> bool {
        let mut pattern: Text = Vec::new();
        for (n, part) in self.between.iter().enumerate() {
            if n > 0 {
                pattern.push(None);
            }
            pattern.extend(part.bytes().map(Some));
        }
        let (text, cut) = text.split_at(text.len().min(MAY_FIT_SYMBOLS_MAX));
        let hole = (!cut.is_empty()).then_some(None);
        // Which beginnings of the pattern what was read so far of the text may fit; a star and a hole may both be empty.
        let mut fitting = vec![false; pattern.len() + 1];
        if let Some(nothing) = fitting.first_mut() {
            *nothing = true;
        }
        pass_stars(&pattern, &mut fitting);
        for symbol in text.iter().copied().chain(hole) {
            let before = fitting.clone();
            let was = |at: Option<usize>| at.and_then(|at| before.get(at)).copied().unwrap_or(false);
            match symbol {
                // It may become whatever the pattern wants next, and more of it.
                None => {
                    let from = before.iter().position(|fits| *fits).unwrap_or(before.len());
                    fitting.iter_mut().skip(from).for_each(|fits| *fits = true);
                }
                Some(byte) => {
                    for (at, fits) in fitting.iter_mut().enumerate() {
                        let last = at.checked_sub(1).and_then(|at| pattern.get(at));
                        *fits = match last {
                            None => false,
                            Some(None) => was(Some(at)),
                            Some(Some(wanted)) => *wanted == byte && was(at.checked_sub(1)),
                        };
                    }
                }
            }
            pass_stars(&pattern, &mut fitting);
            if !fitting.contains(&true) {
                return false;
            }
        }
        fitting.last().copied().unwrap_or(false)
    }

    /// Whether it fits from the start of any word in a line, up to the end of the line or of that command. Linear: where the
    /// leftmost start does not lead to a fit, no later one does.
    pub(super) fn fits_from_a_word(&self, line: &str) -> bool {
        let (first, rest) = match self.between.split_first() {
            None => return false,
            Some((only, [])) => {
                return behind_words(line, only).any(is_command_end);
            }
            Some((first, rest)) if first.is_empty() => return fits_on(rest, line),
            Some(parts) => parts,
        };
        let start = behind_words(line, first).next();
        start.is_some_and(|text| fits_on(rest, text))
    }
}

/// A star may stand for nothing.
fn pass_stars(pattern: &[Option<u8>], fitting: &mut [bool]) {
    let mut before = false;
    for (at, fits) in fitting.iter_mut().enumerate() {
        let is_star = at.checked_sub(1).is_some_and(|at| pattern.get(at) == Some(&None));
        *fits |= is_star && before;
        before = *fits;
    }
}

fn is_text(symbols: &[Option<u8>], text: &str) -> bool {
    symbols.len() == text.len()
        && symbols
            .iter()
            .zip(text.bytes())
            .all(|(symbol, byte)| *symbol == Some(byte))
}

/// What may follow a command in a line without belonging to it.
const COMMAND_ENDS: &str = ";&|)}`'\"<>#\n";

/// Whether what is left of a pattern behind a star fits somewhere in the text.
fn fits_on(between: &[String], text: &str) -> bool {
    let mut text = text;
    let mut parts = between.iter().peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return part.is_empty()
                || text
                    .match_indices(part.as_str())
                    .any(|(at, _)| text.get(at + part.len()..).is_some_and(is_command_end));
        }
        match text.find(part.as_str()).and_then(|at| text.get(at + part.len()..)) {
            Some(after) => text = after,
            None => return false,
        }
    }
    true
}

fn is_command_end(after: &str) -> bool {
    after
        .trim_start_matches([' ', '\t'])
        .chars()
        .next()
        .is_none_or(|next| COMMAND_ENDS.contains(next))
}

/// What stands behind each place where a text begins and a word does, which is where a command could begin.
fn behind_words<'a>(line: &'a str, text: &'a str) -> impl Iterator<Item = &'a str> {
    let begins_word = text.chars().next().is_some_and(|first| !separates(first));
    let mut from = 0;
    std::iter::from_fn(move || {
        if !begins_word {
            return None;
        }
        loop {
            let at = from + line.get(from..)?.find(text)?;
            from = at + line.get(at..)?.chars().next()?.len_utf8();
            if line.get(..at)?.chars().next_back().is_none_or(separates) {
                return line.get(at + text.len()..);
            }
        }
    })
}

/// Whether a character stands between words, where a command could begin behind it.
fn separates(c: char) -> bool {
    c.is_whitespace() || "\"'`;&|(){}$<>=\\".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `?` is a hole.
    fn text(text: &str) -> Text {
        text.bytes().map(|byte| (byte != b'?').then_some(byte)).collect()
    }

    /// SPEC 5.7: what a pattern fits for certain, and what it may fit.
    #[test]
    fn holes() {
        #[rustfmt::skip]
        let table = [
            ("rm", "rm", true, true), ("rm", "rmdir", false, false), ("rm *", "rm x", true, true), ("rm *", "rm", false, false),
            ("rm *", "rm ?", true, true), ("rm -rf *", "rm ?", false, true), ("rm -rf *", "rm ?.o", false, true),
            ("rm -rf *", "rm -r? x", false, true), ("git push*", "git ?", false, true), ("git push*", "git log ?", false, false),
            ("*", "", true, true), ("*--force*", "git push ?", false, true), ("a*b*c", "abbc", true, true),
            ("a*b*c", "ac", false, false), ("a*c", "a?", false, true), ("a*c", "?c", false, true), ("x", "?", false, true),
            (r"rm \*.o", "rm *.o", true, true), (r"rm \*.o", "rm a.o", false, false), (r"a\\*", r"a\b", true, true),
            ("", "", true, true), ("", "a", false, false), ("", "?", false, true), ("ab*ab", "ab", false, false),
        ];
        for (pattern, line, fits, may_fit) in table {
            let pattern = Pattern::new(pattern);
            assert_eq!(pattern.fits(&text(line)), fits, "{pattern:?} {line}");
            assert_eq!(pattern.may_fit(&text(line)), may_fit, "{pattern:?} {line}");
        }
        let long = text(&"a".repeat(100_000));
        assert!(!Pattern::new("b*").may_fit(&long));
        assert!(
            Pattern::new("a*b").may_fit(&long),
            "beyond the limit anything may stand"
        );
    }

    proptest::proptest! {
        /// SPEC 5.3: the pattern that is saved for a text fits that text, and is exact.
        #[test]
        fn exactly_one_text(line in r"[\\* a]{0,12}", other in r"[\\* a]{0,12}") {
            let pattern = Pattern::new(&Pattern::exactly(&line));
            proptest::prop_assert_eq!(pattern.exact(), Some(line.as_str()));
            let symbols: Text = other.bytes().map(Some).collect();
            proptest::prop_assert_eq!(pattern.fits(&symbols), line == other);
        }

        /// SPEC 5.7: what fits for certain may fit, and goes on to fit whatever a hole becomes.
        #[test]
        fn certain_is_possible(pattern in "[ab*]{0,6}", line in "[ab?]{0,6}", became in "[ab]{0,3}") {
            let pattern = Pattern::new(&pattern);
            let whole = text(&line.replace('?', &became));
            if pattern.fits(&text(&line)) {
                proptest::prop_assert!(pattern.fits(&whole));
            }
            if pattern.fits(&whole) {
                proptest::prop_assert!(pattern.may_fit(&text(&line)));
            }
        }
    }
}
