//! What holds for every text, however it is cut: the same bytes, rows that fit, nothing that acts on the terminal, and the
//! words `pulldown-cmark` reads in the whole.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "support/mod.rs"]
mod support;

use aish_markdown::{Colour, Links};
use proptest::prelude::*;
use support::{PLAIN, at_once, in_pieces, shown, text_of, whole_text};

/// Paragraphs of this length are never too long to be held.
const HELD_BYTES_MAX: usize = 256;
/// Texts that are tried.
const CASES: u32 = 1000;

/// Pieces of text as models write them, and as nobody should.
const FRAGMENTS: [&str; 64] = [
    "word ",
    "two words ",
    "a",
    " ",
    "  ",
    "\n",
    "\n\n",
    "\n",
    "**",
    "*",
    "_",
    "__",
    "~~",
    "~",
    "`",
    "``",
    "```",
    "~~~",
    "```rust\n",
    "fn main() {}\n",
    "[",
    "]",
    "(",
    ")",
    "](https://a.example/b)",
    "![",
    "<",
    ">",
    "<b>",
    "</div>\n",
    "<div>\n",
    "<!-- ",
    "-->",
    "- ",
    "* ",
    "+ ",
    "1. ",
    "2) ",
    "12. ",
    "> ",
    ">",
    "# ",
    "### ",
    "#",
    "---\n",
    "***\n",
    "===\n",
    "- - -\n",
    "| a | b |\n",
    "|---|:-:|\n",
    "|",
    "    ",
    "\t",
    "\\",
    "\\\n",
    "&amp;",
    "&#27;",
    "日本語",
    "。",
    "👩‍🚀 ",
    "é",
    "\r\n",
    "CMD: ls\n",
    "[x] ",
];

/// What must not act on a terminal.
const HOSTILE: [&str; 8] = [
    "\u{1b}[31m",
    "\u{1b}]8;;x\u{7}",
    "\u{9b}",
    "\r",
    "\u{202e}",
    "\u{7f}",
    "&#x1b;",
    "[a](https://x.example/\u{9c}b)",
];

fn any_text() -> impl Strategy<Value = String> {
    let fragment = prop_oneof![
        9 => prop::sample::select(FRAGMENTS.to_vec()).prop_map(str::to_owned),
        1 => "[a-z ]{1,12}",
        1 => any::<char>().prop_map(String::from),
        1 => prop::sample::select(HOSTILE.to_vec()).prop_map(str::to_owned),
    ];
    prop::collection::vec(fragment, 0..60).prop_map(|fragments| fragments.concat())
}

fn any_look() -> impl Strategy<Value = aish_markdown::Look> {
    let colours = prop::sample::select(vec![Colour::None, Colour::Basic, Colour::Rich]);
    let links = prop::sample::select(vec![Links::Plain, Links::Osc8]);
    (20_usize..120, colours, links).prop_map(|(columns, colour, links)| aish_markdown::Look {
        columns,
        colour,
        links,
        ..PLAIN
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, max_global_rejects: 100_000, ..ProptestConfig::with_cases(CASES) })]

    /// SPEC 8.6: the same text gives the same bytes, however it is cut.
    #[test]
    fn cuts_change_nothing(text in any_text(), look in any_look(), sizes in prop::collection::vec(1_usize..9, 1..40)) {
        let whole = at_once(&text, look);
        prop_assert_eq!(&in_pieces(&text, look, &sizes), &whole);
        prop_assert_eq!(&in_pieces(&text, look, &[1]), &whole);
    }

    /// SPEC 8.8: nothing of the text acts on the terminal: every control character that comes out is the renderer's own.
    #[test]
    fn nothing_of_the_text_acts(text in any_text(), look in any_look()) {
        let bare = shown(&at_once(&text, look));
        prop_assert!(bare.chars().all(|c| c == '\n' || !aish_core::sanitize::is_hostile(c)), "{:?}", bare);
        if look.colour == Colour::None && look.links == Links::Plain {
            let has_escape = at_once(&text, look).contains('\u{1b}');
            prop_assert!(!has_escape);
        }
    }

    /// SPEC 8.9: rows fit the terminal, but for code and commands, which it wraps itself.
    #[test]
    fn rows_fit(text in any_text(), look in any_look()) {
        let mut in_code = false;
        for row in shown(&at_once(&text, look)).lines() {
            in_code |= row.contains('┌');
            let fits = support::columns(row) <= look.columns;
            prop_assert!(in_code || fits || row.contains("CMD:"), "{} columns: {:?}", support::columns(row), row);
            in_code &= !row.contains('└');
        }
    }
}

fn words() -> impl Strategy<Value = String> {
    "[a-z]{1,9}( [a-zA-Z0-9,]{1,9}){0,3}"
}

/// A line of a paragraph.
fn prose() -> impl Strategy<Value = String> {
    let inline = prop_oneof![
        4 => words(),
        1 => words().prop_map(|words| format!("**{words}**")),
        1 => words().prop_map(|words| format!("*{words}*")),
        1 => words().prop_map(|words| format!("***{words}***:")),
        1 => words().prop_map(|words| format!("~~{words}~~")),
        1 => words().prop_map(|words| format!("`{words}`")),
        1 => words().prop_map(|words| format!("`` {words} ` ``")),
        1 => words().prop_map(|words| format!("[{words}](https://a.example/b \"title\")")),
        1 => words().prop_map(|words| format!("**[{words}](<https://a.example/b c>)** and *{words}*")),
        1 => words().prop_map(|words| format!("**{words} *and {words}* more**")),
        1 => Just("<https://auto.example/x_y_z>".to_owned()),
        1 => prop::sample::select(vec!["2 * 3", "snake_case_name", "a < b", "x && y", "\\*not\\*", "5*3*2", "C:\\dir", "&lt;b&gt;",
            "**unclosed", "_private", "a ` tick", "[not a link]", "[a] (b)", "Vec<String>", "<br>", "[ref][1]", "日本**語**です"])
            .prop_map(str::to_owned),
    ];
    prop::collection::vec(inline, 1..4).prop_map(|inlines| inlines.join(" "))
}

fn indented(text: &str, by: usize) -> String {
    let indent = format!("\n{}", " ".repeat(by));
    text.replace('\n', &indent).replace(&format!("{indent}\n"), "\n\n")
}

fn block() -> impl Strategy<Value = String> {
    let code = prop::collection::vec("[ -~]{0,30}", 0..4).prop_map(|lines| {
        let safe: Vec<String> = lines.iter().map(|line| line.replace(['`', '~'], "")).collect();
        safe.join("\n")
    });
    let leaf = prop_oneof![
        4 => prop::collection::vec(prose(), 1..4).prop_map(|lines| lines.join("\n")),
        1 => (1_usize..7, prose()).prop_map(|(level, text)| format!("{} {text}", "#".repeat(level))),
        1 => prose().prop_map(|text| format!("{text}\n===")),
        1 => code.clone().prop_map(|code| format!("```rust\n{code}\n```")),
        1 => code.prop_map(|code| format!("~~~\n{code}\n~~~")),
        1 => Just("***".to_owned()),
        1 => prop::collection::vec((words(), words()), 1..4).prop_map(|rows| {
            let rows: Vec<String> = rows.iter().map(|(one, other)| format!("| {one} | **{other}** |")).collect();
            // After a list without an empty line it would be the list's text for one of the two.
            format!("so:\n\n| head | `code` |\n|---|---:|\n{}", rows.join("\n"))
        }),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(|items| {
                let items: Vec<String> = items.iter().map(|item| format!("- {}", indented(item, 2))).collect();
                items.join("\n")
            }),
            prop::collection::vec(inner.clone(), 1..4).prop_map(|items| {
                let items: Vec<String> = items
                    .iter()
                    .enumerate()
                    .map(|(n, item)| format!("{}. {}", n + 1, indented(item, 3)))
                    .collect();
                items.join("\n\n")
            }),
            prop::collection::vec(inner, 1..3)
                .prop_map(|blocks| { format!("> {}", blocks.join("\n\n").replace('\n', "\n> ")) }),
            words().prop_map(|words| format!("- [x] {words}\n- [ ] {words}")),
        ]
    })
}

fn document() -> impl Strategy<Value = String> {
    (
        prop::collection::vec(block(), 1..6),
        prop::sample::select(vec!["\n\n", "\n"]),
    )
        .prop_map(|(blocks, between)| blocks.join(between))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, max_global_rejects: 100_000, ..ProptestConfig::with_cases(CASES) })]

    /// SPEC 8.6: what is shown while it streams is what a reader of the whole text finds in it, in that order.
    #[test]
    fn the_words_of_the_whole(text in document()) {
        // What is open for longer is shown as text.
        prop_assume!(text.split("\n\n").all(|paragraph| paragraph.len() < HELD_BYTES_MAX));
        prop_assert_eq!(text_of(&text), whole_text(&text), "{}", text);
    }
}
