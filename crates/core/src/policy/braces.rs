//! What braces make of a word: `{rm,x}` is two words, `r{m,}` is `rm` and `r`.

/// Words that are made of one, at most.
const MADE_MAX: usize = 64;
/// The longest word whose braces are read.
const BRACED_BYTES_MAX: usize = 256;

/// The words that a shell makes of one whose quotes were taken off before; the word itself where that is beyond the limits. For
/// quoted braces too: rather some too many.
pub(super) fn expanded(word: &str) -> Vec<String> {
    if word.len() > BRACED_BYTES_MAX {
        return vec![word.to_owned()];
    }
    let whole = word;
    let mut made = Vec::new();
    // Words that may have braces yet, and where in them to look for some.
    let mut waiting = vec![(word.to_owned(), 0)];
    while let Some((word, from)) = waiting.pop() {
        if made.len() + waiting.len() > MADE_MAX {
            return vec![whole.to_owned()];
        }
        let opening = word.get(from..).and_then(|rest| rest.find('{')).map(|at| from + at);
        let Some(opening) = opening else {
            made.push(word);
            continue;
        };
        let (before, behind) = (
            word.get(..opening).unwrap_or_default(),
            word.get(opening + 1..).unwrap_or_default(),
        );
        match alternatives(behind) {
            Some((alternatives, rest)) => {
                // The first is to come first.
                let words = alternatives.iter().rev().map(|said| format!("{before}{said}{rest}"));
                waiting.extend(words.map(|word| (word, opening)));
            }
            None => waiting.push((word, opening + 1)),
        }
    }
    made
}

/// What stands in braces that are open, and what follows them; `None` where they are none.
fn alternatives(text: &str) -> Option<(Vec<String>, &str)> {
    let mut depth = 0_usize;
    let mut begun = 0;
    let mut found: Vec<&str> = Vec::new();
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                found.push(text.get(begun..at)?);
                begun = at + 1;
                if c == '}' {
                    let rest = text.get(begun..)?;
                    let said = match found.as_slice() {
                        [only] => sequence(only)?,
                        several => several.iter().map(|said| (*said).to_owned()).collect(),
                    };
                    return Some((said, rest));
                }
            }
            _ => {}
        }
    }
    None
}

/// `a..e`. One of numbers is in no name.
fn sequence(text: &str) -> Option<Vec<String>> {
    let (first, last) = text.split_once("..")?;
    let letter = |text: &str| text.parse().ok().filter(char::is_ascii_alphabetic);
    let (first, last): (char, char) = (letter(first)?, letter(last)?);
    Some((first.min(last)..=first.max(last)).map(String::from).collect())
}

#[cfg(test)]
mod tests {
    use super::expanded;

    /// SPEC 5.7: what is written in braces is known by all it becomes.
    #[test]
    fn braces() {
        for (word, words) in [
            ("rm", "rm"),
            ("{rm,x}", "rm x"),
            ("r{,}m", "rm rm"),
            ("{r,}m", "rm m"),
            ("r{m..n}", "rm rn"),
            ("{a{b,c},d}e", "abe ace de"),
            ("a{b}c", "a{b}c"),
            ("{}", "{}"),
            ("{a,b", "{a,b"),
            ("{{a,b}", "{a {b"),
        ] {
            assert_eq!(expanded(word).join(" "), words, "{word}");
        }
        let many = "{a,b}".repeat(30);
        assert_eq!(expanded(&many), [many]);
    }
}
