//! What the pieces of a line are.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use aish_command::{Class, NotParsed, PARSED_BYTES_MAX, parse};

/// The pieces of `text` that are something, as `class:text`.
fn pieces(text: &str) -> Vec<String> {
    let syntax = parse(text).unwrap();
    let pieces = syntax.pieces();
    let told = pieces.iter().filter(|piece| piece.class != Class::Plain);
    told.map(|piece| format!("{:?}:{}", piece.class, &text[piece.bytes.clone()]))
        .collect()
}

fn check(text: &str, expect: &[&str]) {
    assert_eq!(pieces(text), expect, "{text:?}");
}

/// SPEC 8.9: commands, options, quotes, variables and operators are told apart.
#[test]
fn classes() {
    check("ls -l", &["Command:ls", "Option:-l"]);
    check(
        "FOO=1 ls \"a $HOME b\" 'c' | wc -l > out # why",
        &[
            "Variable:FOO",
            "Operator:=",
            "Command:ls",
            "Quoted:\"a ",
            "Variable:$HOME",
            "Quoted: b\"",
            "Quoted:'c'",
            "Operator:|",
            "Command:wc",
            "Option:-l",
            "Redirect:>",
            "Comment:# why",
        ],
    );
    check(
        "for f in *; do echo ${f%.rs}; done",
        &[
            "Keyword:for",
            "Variable:f",
            "Keyword:in",
            "Operator:;",
            "Keyword:do",
            "Command:echo",
            "Variable:${f%.rs}",
            "Operator:;",
            "Keyword:done",
        ],
    );
    check(
        "a && b || ! c; (d)",
        &[
            "Command:a",
            "Operator:&&",
            "Command:b",
            "Operator:||",
            "Operator:!",
            "Command:c",
            "Operator:;",
            "Operator:(",
            "Command:d",
            "Operator:)",
        ],
    );
    check(
        "echo \"$(ls -a)\" `id` <(x)",
        &[
            "Command:echo",
            "Quoted:\"",
            "Operator:$(",
            "Command:ls",
            "Option:-a",
            "Operator:)",
            "Quoted:\"",
            "Operator:`",
            "Command:id",
            "Operator:`",
            "Operator:<(",
            "Command:x",
            "Operator:)",
        ],
    );
    check(
        "cat <<EOF 2>&1\na $x\nEOF",
        &[
            "Command:cat",
            "Redirect:<<EOF",
            "Redirect:2>&",
            "Quoted:a ",
            "Variable:$x",
            "Quoted:\n",
            "Redirect:EOF",
        ],
    );
    check("export A=b", &["Keyword:export", "Variable:A", "Operator:="]);
    check("[ -f x ]", &["Keyword:[", "Option:-f", "Keyword:]"]);
}

/// What is still being typed has its colours already.
#[test]
fn unfinished_lines() {
    check("echo \"a", &["Command:echo", "Quoted:\"a"]);
    check("ls |", &["Command:ls", "Operator:|"]);
    assert!(parse("ls | | wc").unwrap().is_malformed());
    assert!(!parse("ls | wc").unwrap().is_malformed());
}

/// Every byte is in one piece, whatever the text is.
#[test]
fn nothing_is_left_out() {
    for text in [
        "",
        "é 'ü' 漢字 | 🦀",
        "))((",
        "\0\u{1b}[2J",
        "a\\",
        "`$(\"${",
        "\u{202e}x",
    ] {
        let syntax = parse(text).unwrap();
        let joined: String = syntax.pieces().iter().map(|piece| &text[piece.bytes.clone()]).collect();
        assert_eq!(joined, text);
    }
}

/// SPEC 5.7: there are limits, and what is beyond them is said.
#[test]
fn limits() {
    let long = "x".repeat(PARSED_BYTES_MAX + 1);
    assert_eq!(parse(&long).err(), Some(NotParsed::TooLong { bytes: long.len() }));
    for unit in [
        "(",
        "$(",
        "\"$(",
        "{ ",
        "if ",
        "[[ ",
        "`",
        "<<a ",
        "a|",
        "${a:-",
        "((",
        "case a in ",
        "'",
        "x=(",
    ] {
        let deep = unit.repeat(PARSED_BYTES_MAX / unit.len());
        match parse(&deep) {
            Ok(syntax) => drop(syntax.pieces()),
            Err(error) => assert_eq!(error, NotParsed::TooInvolved),
        }
    }
}
