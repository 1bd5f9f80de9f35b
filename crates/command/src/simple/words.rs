//! What a word says, as far as it can be told without running anything.

use aish_core::parts::Word;
use tree_sitter::Node;

/// One that says what it looks like.
pub(super) fn plain(text: &str) -> Word {
    Word {
        text: text.to_owned(),
        value: Some(text.to_owned()),
        expands: false,
    }
}

/// `NAME=value` in front of a command, as one word.
pub(super) fn setting(source: &str, node: &Node<'_>) -> Word {
    let text = source.get(node.byte_range()).unwrap_or_default();
    let value = node.child_by_field_name("value").map(|value| word(source, &value));
    let (value, expands) = value.map_or((Some(String::new()), false), |word| (word.value, word.expands));
    let name = text.split_once('=').map_or(text, |(name, _)| name);
    Word {
        text: text.to_owned(),
        value: value.map(|value| format!("{name}={value}")),
        expands,
    }
}

/// One more word or several, which only running it would tell.
pub(super) fn unknown(text: &str) -> Word {
    Word {
        text: text.to_owned(),
        value: None,
        expands: true,
    }
}

/// The word a node of `source` is.
pub(super) fn word(source: &str, node: &Node<'_>) -> Word {
    let text = source.get(node.byte_range()).unwrap_or_default();
    let mut value = String::new();
    let mut expands = false;
    let told = tell(source, node, &mut value, &mut expands);
    Word {
        text: text.to_owned(),
        value: told.then_some(value),
        expands,
    }
}

/// Adds what a node says; false if that cannot be told.
fn tell(source: &str, node: &Node<'_>, value: &mut String, expands: &mut bool) -> bool {
    let text = source.get(node.byte_range()).unwrap_or_default();
    match node.kind() {
        "raw_string" => value.push_str(between(text, "'", "'")),
        "string" => {
            let mut cursor = node.walk();
            let only_text = node
                .named_children(&mut cursor)
                .all(|child| child.kind() == "string_content");
            if !only_text {
                return false;
            }
            unescape_double(between(text, "\"", "\""), value);
        }
        // It is translated, where there are translations: the shell's own are not of names.
        "translated_string" => {
            return node
                .named_child(0)
                .is_some_and(|string| tell(source, &string, value, expands));
        }
        "ansi_c_string" => return unescape_ansi(between(text, "$'", "'"), value),
        "concatenation" | "command_name" => {
            let mut cursor = node.walk();
            let mut end = node.start_byte();
            for child in node.children(&mut cursor) {
                // What lies between is no word of the tree's: nobody knows what it is.
                if child.start_byte() != end || !tell(source, &child, value, expands) {
                    return false;
                }
                end = child.end_byte();
            }
        }
        "word" | "number" | "variable_name" | "brace_expression" | "regex" | "extglob_pattern" | "test_operator" => {
            unescape_plain(text, value, expands);
        }
        // Words of the grammar that stand as words.
        _ if !node.is_named() && node.child_count() == 0 && !text.starts_with(['$', '`']) => {
            unescape_plain(text, value, expands);
        }
        _ => return false,
    }
    true
}

fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
    let text = text.strip_prefix(begin).unwrap_or(text);
    text.strip_suffix(end).unwrap_or(text)
}

/// A word without quotes.
fn unescape_plain(text: &str, value: &mut String, expands: &mut bool) {
    *expands |= text.starts_with('~');
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => match characters.next() {
                Some('\n') | None => {}
                Some(next) => value.push(next),
            },
            _ => {
                *expands |= matches!(c, '*' | '?' | '[' | '{');
                value.push(c);
            }
        }
    }
}

/// What is between double quotes, where nothing is substituted.
fn unescape_double(text: &str, value: &mut String) {
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match characters.next_if(|next| c == '\\' && matches!(next, '"' | '\\' | '$' | '`' | '\n')) {
            Some('\n') => {}
            Some(next) => value.push(next),
            None => value.push(c),
        }
    }
}

/// What is between `$'` and `'`; false for escapes that stand for no character.
fn unescape_ansi(text: &str, value: &mut String) -> bool {
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('\\') {
        value.push_str(before);
        let Some(c) = behind.chars().next() else {
            return false;
        };
        let behind_c = behind.get(c.len_utf8()..).unwrap_or_default();
        let (number, digits_max, radix) = match c {
            'x' => (behind_c, 2, 16),
            'u' => (behind_c, 4, 16),
            'U' => (behind_c, 8, 16),
            '0'..='7' => (behind, 3, 8),
            _ => {
                let Some(said) = escaped_letter(c) else {
                    return false;
                };
                value.push(said);
                rest = behind_c;
                continue;
            }
        };
        let digits = number
            .chars()
            .take(digits_max)
            .take_while(|digit| digit.is_digit(radix))
            .count();
        let said = number
            .get(..digits)
            .and_then(|digits| u32::from_str_radix(digits, radix).ok());
        // A byte beyond ASCII is part of a character nobody spells like that.
        let Some(said) = said.filter(|code| *code > 0 && (c == 'u' || c == 'U' || *code < 0x80)) else {
            return false;
        };
        let Some(said) = char::from_u32(said) else {
            return false;
        };
        value.push(said);
        rest = number.get(digits..).unwrap_or_default();
    }
    value.push_str(rest);
    true
}

fn escaped_letter(c: char) -> Option<char> {
    Some(match c {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'a' => '\u{7}',
        'b' => '\u{8}',
        'e' | 'E' => '\u{1b}',
        'f' => '\u{c}',
        'v' => '\u{b}',
        '\\' | '\'' | '"' | '?' => c,
        _ => return None,
    })
}
