//! Any text at all: nothing panics, and what is said of it holds together.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use aish_command::{Grammar, open, parse, simple_commands};
use proptest::prelude::*;

/// Text made of what a shell gives a meaning to.
fn shellish() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "if", "then", "fi", "for", "in", "do", "done", "case", "esac", "while", "{", "}", "(", ")", "((", "))", "[[",
        "]]", "'", "\"", "`", "$(", "${", "$((", "<<E", "E", "\n", " ", ";", ";;", "|", "||", "&", "&&", "<", ">",
        "\\", "#", "a", "$'", "é", "=", "x=(", "function", "end", "begin", "else", "*", "!",
    ]);
    prop::collection::vec(words, 0..40).prop_map(|words| words.concat())
}

proptest! {
    /// SPEC 5.7: no text brings the parser down, and its pieces are the text.
    #[test]
    fn any_text_is_cut(text in prop_oneof![shellish(), any::<String>()]) {
        let syntax = parse(&text).unwrap();
        let mut end = 0;
        for piece in syntax.pieces() {
            prop_assert_eq!(piece.bytes.start, end);
            end = piece.bytes.end;
        }
        prop_assert_eq!(end, text.len());
    }

    /// SPEC 5.7: the commands of any text are told, or it is said why not.
    #[test]
    fn any_text_has_parts(text in prop_oneof![shellish(), any::<String>()]) {
        let parts = simple_commands(&text);
        prop_assert!(parts.doubt.is_some() || parts.commands.iter().all(|command| !command.words.is_empty()));
    }

    /// What lacks nothing is whole still with a comment and an empty line behind it.
    #[test]
    fn a_whole_line_stays_whole(text in shellish()) {
        for grammar in [Grammar::Bash, Grammar::Zsh, Grammar::Fish] {
            if open(&text, grammar).is_none() {
                prop_assert_eq!(open(&format!("{text}\n"), grammar), None);
            }
        }
    }
}
