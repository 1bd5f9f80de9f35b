//! What a person sees, through a terminal emulator, narrow and wide.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/mod.rs"]
mod support;

use aish_markdown::{Background, Colour, Links, Look, Markdown};
use insta::assert_snapshot;
use std::num::NonZeroU16;

/// Rows enough for every reply here.
const ROWS: NonZeroU16 = NonZeroU16::new(60).unwrap();

const REPLY: &str = "\
# Disk usage

The **three biggest** files are below; `du -sh *` shows them, and [the manual](https://man.example/du) says *why*.
**Total:** 4.2 GB
Steps:
1. Look first:
   ```sh
   du -sh *   # sizes
   ```
2. Then
   - remove `target/`
   - [x] done

> Be careful.
> - nothing is undone

| File | Size | What it is |
|------|-----:|------------|
| a.iso | 3.1 GB | an image of a disk that nobody needs |
| 日本.txt | 12 KB | ✅ notes |

CMD: rm -i *.iso
Done.
";

/// The screen after the text, and its rows without what is empty at the end.
fn screen(text: &str, look: Look) -> vt100::Parser {
    let columns = NonZeroU16::new(u16::try_from(look.columns).unwrap()).unwrap();
    let mut parser = vt100::Parser::new(ROWS, columns, 0);
    parser.process(support::at_once(text, look).replace('\n', "\r\n").as_bytes());
    parser
}

fn rows(text: &str, look: Look) -> String {
    screen(text, look).screen().contents()
}

fn plain(columns: usize) -> Look {
    Look {
        columns,
        ..support::PLAIN
    }
}

fn rich(columns: usize) -> Look {
    Look {
        columns,
        colour: Colour::Rich,
        links: Links::Osc8,
        background: Background::Dark,
    }
}

/// SPEC 8.6, 8.9: narrow, without colours: what is bold there still reads.
#[test]
fn forty_columns() {
    assert_snapshot!(rows(REPLY, plain(40)), @"
    # Disk usage

    The **three biggest** files are below;
    `du -sh *` shows them, and the manual
    (https://man.example/du) says *why*.
    **Total:** 4.2 GB
    Steps:
    1. Look first:
       ┌─ sh
       du -sh *   # sizes
       └─
    2. Then
       • remove `target/`
       [x] done

    │ Be careful.
    │ • nothing is undone

    File     │   Size │ What it is
    ─────────┼────────┼─────────────────────
    a.iso    │ 3.1 GB │ an image of a disk
             │        │ that nobody needs
    ─────────┼────────┼─────────────────────
    日本.txt │  12 KB │ ✅ notes

    CMD: rm -i *.iso
    Done.
    ");
}

/// SPEC 8.6, 8.9: a usual terminal, with colours.
#[test]
fn eighty_columns() {
    assert_snapshot!(rows(REPLY, rich(80)), @"
    Disk usage

    The three biggest files are below; du -sh * shows them, and the manual says why.
    Total: 4.2 GB
    Steps:
    1. Look first:
       ┌─ sh
       du -sh *   # sizes
       └─
    2. Then
       • remove target/
       [x] done

    │ Be careful.
    │ • nothing is undone

    File     │   Size │ What it is
    ─────────┼────────┼─────────────────────────────────────
    a.iso    │ 3.1 GB │ an image of a disk that nobody needs
    日本.txt │  12 KB │ ✅ notes

    CMD: rm -i *.iso
    Done.
    ");
}

/// SPEC 8.6, 8.9: a wide one.
#[test]
fn two_hundred_columns() {
    assert_snapshot!(rows(REPLY, rich(200)), @"
    Disk usage

    The three biggest files are below; du -sh * shows them, and the manual says why.
    Total: 4.2 GB
    Steps:
    1. Look first:
       ┌─ sh
       du -sh *   # sizes
       └─
    2. Then
       • remove target/
       [x] done

    │ Be careful.
    │ • nothing is undone

    File     │   Size │ What it is
    ─────────┼────────┼─────────────────────────────────────
    a.iso    │ 3.1 GB │ an image of a disk that nobody needs
    日本.txt │  12 KB │ ✅ notes

    CMD: rm -i *.iso
    Done.
    ");
}

/// SPEC 8.6: what is emphasised, code and a comment look so, and the terminal is plain behind them.
#[test]
fn styles() {
    let parser = screen(
        "**bold** *italic* `code` plain\n```rust\nlet a = 1; // why\n```",
        rich(80),
    );
    let cell = |row, column| parser.screen().cell(row, column).unwrap();
    assert!(cell(0, 0).bold() && !cell(0, 4).bold());
    assert!(cell(0, 5).italic());
    assert_eq!(cell(0, 12).fgcolor(), vt100::Color::Idx(6));
    assert_eq!(cell(0, 17).fgcolor(), vt100::Color::Default);
    assert_eq!(cell(3, 0).fgcolor(), vt100::Color::Idx(5), "a keyword");
    assert!(cell(3, 12).dim(), "a comment");
}

/// SPEC 8.6: a table that does not fit becomes records.
#[test]
fn too_narrow_for_a_table() {
    let table = "| one | two | three | four | five |\n|-|-|-|-|-|\n| alpha beta | gamma delta | epsilon zeta | eta theta | iota kappa |\n| a | b | | d | e |\n";
    assert_snapshot!(rows(table, plain(40)), @"
    one: alpha beta
    two: gamma delta
    three: epsilon zeta
    four: eta theta
    five: iota kappa

    one: a
    two: b
    four: d
    five: e
    ");
}

/// SPEC 8.6: words are there as soon as they are complete, lines of code when they are.
#[test]
fn as_it_streams() {
    let mut markdown = Markdown::new(plain(40));
    let mut shown = Vec::new();
    for piece in [
        "Some wor",
        "ds **of",
        " it** an",
        "d more\n",
        "```\ncode",
        "\nmo",
        "re\n```\n| a |\n",
        "|---|\n| 1",
        " |\n\n",
    ] {
        let mut out = String::new();
        markdown.push(piece, &mut out);
        shown.push(out);
    }
    assert_eq!(
        shown,
        [
            "Some",
            " words",
            " **of it**",
            " and more",
            "\n\n┌─\n",
            "code\n",
            "more\n└─\n",
            "\n",
            "a\n─\n1\n"
        ]
    );
}

/// SPEC 8.4: commands are proposed by lines of text, and not by code, quotations or lists.
#[test]
fn commands() {
    let mut markdown = Markdown::new(plain(80));
    let text = "CMD: ls *.rs | wc\ntext\nCMD: make\n> CMD: quoted\n\n```\nCMD: code\n```\n- CMD: item\n\n    CMD: indented\n\n CMD: not at the start\nCMD:\n";
    markdown.push(text, &mut String::new());
    markdown.finish(&mut String::new());
    let commands: Vec<&str> = markdown
        .commands()
        .iter()
        .map(|command| command.line.as_str())
        .collect();
    assert_eq!(commands, ["ls *.rs | wc", "make"]);
}

/// SPEC 8.4: what stands in HTML, in a comment or in a table is no line of text.
#[test]
fn no_commands() {
    for text in [
        "<div>\nCMD: a\n</div>\n",
        "<!-- x\nCMD: a\n-->\n",
        "<!--\n\nCMD: a\n-->\n",
        "text <!-- a\nCMD: a\n-->\n",
        "| a | b |\n|---|---|\nCMD: a\n",
        "| a | b |\n|---|---|\n| 1 | 2 |\nCMD: a\n",
    ] {
        let mut markdown = Markdown::new(plain(80));
        let mut screen = String::new();
        for c in text.chars() {
            markdown.push(c.encode_utf8(&mut [0; 4]), &mut screen);
        }
        markdown.push("\nCMD: b\n", &mut screen);
        markdown.finish(&mut screen);
        let commands: Vec<&str> = markdown.commands().iter().map(|it| it.line.as_str()).collect();
        assert_eq!(commands, ["b"], "{text:?}");
        assert!(screen.contains("CMD: a"), "{text:?}: {screen}");
    }
}

/// SPEC 8.8: a link does not hide where it leads.
#[test]
fn misleading_links() {
    let text = "[bank.example](https://evil.example/x) [here](javascript:alert) [fine](https://a.example/)";
    assert_eq!(
        rows(text, rich(200)),
        "bank.example (https://evil.example/x) here (javascript:alert) fine"
    );
}

/// SPEC 8.6: something else is written in the middle of a paragraph, and the terminal becomes narrower.
#[test]
fn interrupted() {
    let mut markdown = Markdown::new(plain(40));
    let mut out = String::new();
    markdown.push("- some 日本 that g", &mut out);
    assert_eq!(markdown.column(), 16);
    markdown.break_row(&mut out);
    assert_eq!(markdown.column(), 0);
    out.push_str("[status]\n");
    markdown.resize(12);
    markdown.push("oes on and on\n", &mut out);
    markdown.finish(&mut out);
    assert_eq!(out, "• some 日本 that\n[status]\n  goes on\n  and on\n");
}
