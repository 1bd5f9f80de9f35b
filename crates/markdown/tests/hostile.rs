//! What a reply may be at its worst: no panic, bounded memory, every byte looked at a bounded number of times.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "support/mod.rs"]
mod support;

use aish_markdown::{Background, Colour, Links, Look, Markdown};

/// Text without end.
const LONG_BYTES: usize = 200 * 1024;
/// What may be held of a text that is not complete: a table, a line of code, and the words around them.
const HELD_BYTES_MAX: usize = 128 * 1024;

const LOOK: Look = Look {
    columns: 80,
    colour: Colour::Rich,
    links: Links::Osc8,
    background: Background::Dark,
};

/// Pushes `start` and then `piece` over and over, and tells that what comes out keeps up with what goes in.
fn check(start: &str, piece: &str) {
    let mut markdown = Markdown::new(LOOK);
    let mut out = String::new();
    markdown.push(start, &mut out);
    let chunk = piece.repeat(1000 / piece.len() + 1);
    let (mut pushed, mut written, mut silent) = (0, 0, 0);
    while pushed < LONG_BYTES {
        out.clear();
        markdown.push(&chunk, &mut out);
        pushed += chunk.len();
        written += out.len();
        silent = if out.is_empty() { silent + chunk.len() } else { 0 };
        assert!(
            silent <= HELD_BYTES_MAX,
            "{piece:?}: {silent} bytes came and nothing was shown"
        );
    }
    out.clear();
    markdown.finish(&mut out);
    assert!(
        out.len() <= 4 * HELD_BYTES_MAX,
        "{piece:?}: {} bytes were held",
        out.len()
    );
    assert!(written > 0, "{piece:?}");
}

/// SPEC 12: a line, a word, a piece of code without end.
#[test]
fn without_end() {
    for start in [
        "",
        "# ",
        "- ",
        "> ",
        "```\n",
        "```rust\n",
        "    ",
        "CMD: ",
        "<div>",
        "| ",
    ] {
        for piece in ["x", "word ", "日本", "e\u{301}", "\u{301}"] {
            check(start, piece);
        }
    }
}

/// SPEC 12: what opens and never closes.
#[test]
fn never_closed() {
    for piece in [
        "*a ",
        "**a ",
        "_a ",
        "~~a ",
        "`a ",
        "``a",
        "[a ",
        "[",
        "![",
        "<a ",
        "<!-- ",
        "[a](",
        "[a](b ",
        "\\",
        "*",
        "`",
        "***a**b_c ",
        "&",
        "<",
        "*a*b",
        "(",
        "[a](b) ",
        "**a** ",
        "a*\u{3000}",
    ] {
        check("", piece);
    }
}

/// SPEC 12: lines of nothing but marks, over and over.
#[test]
fn marks_alone() {
    for piece in [
        "> ",
        ">",
        "- ",
        "1. ",
        "#",
        "-",
        "= ",
        "|",
        "| a ",
        "a\n",
        "- a\n",
        "> a\n",
        "# a\n",
        "---\n",
        "| a | b |\n",
        "```\n",
        "~",
        "<!--\n",
        "- - - a\n",
        ">>>>>> a\n",
        "\ta\n",
        "* * ",
        "[x] ",
        "CMD: a\n",
    ] {
        check("", piece);
    }
}

/// SPEC 12: white space is shown as little as it can be, and is not held.
#[test]
fn nothing_but_white_space() {
    for piece in [" ", "\n", "\t", " \n", "\r\n"] {
        for start in ["", "a", "- ", "```\n", "    a\n"] {
            let mut markdown = Markdown::new(LOOK);
            let mut out = String::new();
            markdown.push(start, &mut out);
            for _ in 0..10 {
                markdown.push(&piece.repeat(10_000), &mut out);
            }
            markdown.push("b", &mut out);
            markdown.finish(&mut out);
            assert!(out.contains('b'));
        }
    }
}

/// SPEC 12: a table of a million cells, wide or long.
#[test]
fn big_tables() {
    check("| a | b |\n|---|---|\n", "| 1 | 2 |\n");
    check("| a | b |\n|---|---|\n", "|x\n");
    let columns = 60;
    let head = format!("|{}\n|{}\n", "a|".repeat(columns), "-|".repeat(columns));
    check(&head, "| 1 | 2 | 3\n");
    let wide = format!("|{}\n|{}\n", "a|".repeat(10_000), "-|".repeat(10_000));
    check(&wide, "| 1 | 2 | 3\n");
}

/// SPEC 12: a hundred thousand quotations inside each other.
#[test]
fn deep_quotes() {
    let text = "> ".repeat(100_000) + "deep\n" + &"- ".repeat(100_000) + "deep\n";
    let out = support::at_once(&text, LOOK);
    assert!(out.contains("deep") && out.len() < 8 * text.len());
}

/// SPEC 8.6: a terminal of any width, down to none.
#[test]
fn narrow_terminals() {
    let text = "# Title\n\n- one\n  - two\n    1. three\n\n> quote\n\n| a | b |\n|---|---|\n| long cell | 日本語 |\n\n```rust\nfn\n```\n日本語👩‍🚀";
    for columns in 0..30 {
        let out = support::at_once(text, Look { columns, ..LOOK });
        assert!(support::shown(&out).contains("fn"));
    }
}
