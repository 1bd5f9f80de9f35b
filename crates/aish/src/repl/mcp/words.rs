//! The words of a line, with quotes as in a shell: what follows `:alias.prompt`.

/// A word, its quotes taken off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// What is in it.
    pub text: String,
    /// How it begins.
    pub beginning: Beginning,
}

/// How a word begins: `key=value` means an argument of that name only where it is not quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// With a plain letter.
    Bare,
    /// With a quote or a backslash: what follows stands for itself.
    Quoted,
}

/// A quote that nothing closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a quote ({0}) is not closed; \\{0} stands for the character itself")]
pub struct OpenQuote(char);

/// Splits a line at white space that is neither quoted nor behind a backslash.
///
/// # Errors
/// A quote is not closed.
pub fn split(line: &str) -> Result<Vec<Word>, OpenQuote> {
    let mut words = Vec::new();
    let mut current: Option<Word> = None;
    let mut quote = None;
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        let beginning = if matches!(c, '\'' | '"' | '\\') {
            Beginning::Quoted
        } else {
            Beginning::Bare
        };
        if quote.is_none() && c.is_whitespace() {
            words.extend(current.take());
            continue;
        }
        let word = current.get_or_insert(Word {
            text: String::new(),
            beginning,
        });
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            (None, '\\') => word.text.extend(characters.next()),
            (Some('"'), '\\') => match characters.next() {
                Some(next @ ('"' | '\\')) => word.text.push(next),
                next => {
                    word.text.push('\\');
                    word.text.extend(next);
                }
            },
            (None | Some(_), c) => word.text.push(c),
        }
    }
    words.extend(current);
    match quote {
        Some(open) => Err(OpenQuote(open)),
        None => Ok(words),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// SPEC 6.9: arguments of prompts are written as at a shell.
    #[test]
    fn words() {
        let check = |line: &str, expect: &[&str]| {
            let words: Vec<String> = split(line).unwrap().into_iter().map(|word| word.text).collect();
            assert_eq!(words, expect, "{line:?}");
        };
        check("", &[]);
        check("  a  b ", &["a", "b"]);
        check(r#"a "b c" 'd "e'"#, &["a", "b c", "d \"e"]);
        check(r#"city="New York" x"#, &["city=New York", "x"]);
        check(r#"a\ b \" "\n\"\\" '\n'"#, &["a b", "\"", "\\n\"\\", "\\n"]);
        check(r#""" ''"#, &["", ""]);
        check("end\\", &["end"]);
    }

    /// What is quoted from its beginning names no argument; SPEC 10.4: an open quote is told.
    #[test]
    fn beginnings_and_mistakes() {
        let beginnings: Vec<Beginning> = split(r#"a=b 'a=b' \a=b a'='b"#)
            .unwrap()
            .into_iter()
            .map(|word| word.beginning)
            .collect();
        use Beginning::{Bare, Quoted};
        assert_eq!(beginnings, [Bare, Quoted, Quoted, Bare]);
        assert_eq!(split("don't").unwrap_err(), OpenQuote('\''));
        assert_eq!(
            split("don't").unwrap_err().to_string(),
            "a quote (') is not closed; \\' stands for the character itself"
        );
    }
}
