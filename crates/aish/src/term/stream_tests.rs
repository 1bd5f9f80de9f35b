//! What holds for every stream: the same screen however it was cut, and nothing hostile on it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::render::Renderer;
use super::render_tests::{ended, look, printed, rendered, said, started};
use super::{Background, Colour, Form, Look, Output, Stream};
use aish_core::redact::Redactor;
use aish_engine::Notice;
use aish_markdown::{Links, Syntaxes};
use proptest::prelude::*;
use std::time::Duration;

/// Texts that are tried.
const CASES: u32 = 512;
/// Pieces of replies as models write them, and as nobody should.
const MARKDOWN: [&str; 24] = [
    "words of a line ",
    "**bold** and `code` ",
    "\n",
    "\n\n",
    "# Title\n",
    "- item\n",
    "  1. inner\n",
    "> said\n",
    "```sh\nls -l # all\n",
    "```\n",
    "| a | b |\n|---|--:|\n| 日本 | 1 |\n",
    "[text](https://a.example/b) ",
    "https://bare.example/x ",
    "CMD: make\n",
    "**",
    "`",
    "_",
    "👩\u{200d}🚀 ☀\u{fe0f} ",
    "日本語の文章です。",
    "שלום عالم ",
    "a-very-long-word-that-does-not-fit-into-forty-columns-at-all ",
    "hunter2hunter2 ",
    "\x1b[31m",
    "\r\n",
];

/// The only escape sequences that may be written: styles, and links that lead where they say.
fn without_sequences(text: &str) -> String {
    let mut bare = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\x1b') {
        bare.push_str(before);
        let style = after.strip_prefix('[').and_then(|style| style.split_once('m'));
        let link = after.strip_prefix("]8;").and_then(|link| link.split_once("\x1b\\"));
        rest = match (style, link) {
            (Some((style, rest)), _) if style.chars().all(|c| c.is_ascii_digit() || c == ';') => rest,
            (_, Some((link, rest))) if link.chars().all(|c| c.is_ascii_graphic()) => rest,
            // Not ours: it stays, to be found.
            _ => return bare + "\x1b" + after,
        };
    }
    bare + rest
}

fn hostile_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z ]{0,12}",
        Just("\x1b[2J\x1b]0;x\x07".to_owned()),
        Just("\r\n".to_owned()),
        Just("\r".to_owned()),
        Just("\n\t".to_owned()),
        Just("日本\u{202e}語\u{9b}".to_owned()),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

fn reply() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => prop::sample::select(MARKDOWN.to_vec()).prop_map(str::to_owned),
        1 => "[a-z ]{1,12}",
        1 => any::<char>().prop_map(String::from),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// Cuts a text between characters at these places.
fn cut<'a>(text: &'a str, places: &[prop::sample::Index]) -> Vec<&'a str> {
    let bounds: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let mut at: Vec<usize> = places
        .iter()
        .filter(|_| !bounds.is_empty())
        .map(|place| *place.get(&bounds))
        .collect();
    at.sort_unstable();
    let mut pieces = Vec::new();
    let mut rest = text;
    for place in at.into_iter().rev() {
        let (before, piece) = rest.split_at(place);
        pieces.insert(0, piece);
        rest = before;
    }
    pieces.insert(0, rest);
    pieces
}

/// Something that happens while a reply comes.
#[derive(Clone, Debug)]
enum Between {
    Status,
    Resized(usize),
}

fn between() -> impl Strategy<Value = Between> {
    prop_oneof![
        Just(Between::Status),
        prop::sample::select(vec![40_usize, 80, 200]).prop_map(Between::Resized)
    ]
}

/// The whole of a reply whose halves come in these pieces, with something in between.
fn interrupted(halves: [&[&str]; 2], between: &Between, look: Look, syntaxes: &Syntaxes) -> String {
    let secrets = Redactor::new([("DESK_KEY".to_owned(), "hunter2hunter2".to_owned())]);
    let mut renderer = Renderer::new(look, secrets).with_syntaxes(syntaxes.clone());
    let mut out = Output::new();
    let [before, after] = halves;
    for piece in before {
        renderer.notice(&said(piece), Duration::ZERO, &mut out);
    }
    match between {
        Between::Status => renderer.status("something else", &mut out),
        Between::Resized(columns) => renderer.set_look(Look {
            columns: *columns,
            ..look
        }),
    }
    for piece in after {
        renderer.notice(&said(piece), Duration::ZERO, &mut out);
    }
    renderer.turn_over(&mut out);
    out.text()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    /// SPEC 8.6: text looks the same however its stream was cut.
    #[test]
    fn cuts_do_not_show(text in hostile_text(), places in proptest::collection::vec(any::<prop::sample::Index>(), 0..6)) {
        for make in [said as fn(&str) -> Notice, |text| Notice::Thinking(text.to_owned()), printed] {
            for look in [look(40, Colour::On), look(40, Colour::Off), Look::PLAIN] {
                let pieces: Vec<Notice> = cut(&text, &places).into_iter().map(make).collect();
                let whole = rendered(look, &[started("x()"), make(&text)]).text();
                let mut notices = vec![started("x()")];
                notices.extend(pieces);
                prop_assert_eq!(without_sequences(&whole), without_sequences(&rendered(look, &notices).text()));
            }
        }
    }

    /// SPEC 8.6: a reply in Markdown gives the same bytes however it was cut, with a status line in its middle or another size of the
    /// terminal from there on; SPEC 10.5: no cut brings a key to light, and neither does what comes in between.
    #[test]
    fn a_reply_looks_the_same(
        halves in (reply(), reply()),
        places in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
        between in between(),
        columns in prop::sample::select(vec![40_usize, 80, 200]),
    ) {
        let syntaxes = Syntaxes::loaded();
        let (before, after) = halves;
        let rich = Look { links: Links::Osc8, background: Background::Light, ..look(columns, Colour::On) };
        for look in [rich, look(columns, Colour::Off)] {
            let whole = interrupted([&[&before], &[&after]], &between, look, &syntaxes);
            let pieces = interrupted([&cut(&before, &places), &cut(&after, &places)], &between, look, &syntaxes);
            prop_assert_eq!(&pieces, &whole);
            prop_assert!(!without_sequences(&whole).contains('\x1b'), "{:?}", whole);
            let is_split = before.len() + after.len() > 0 && format!("{before}{after}").matches("hunter2hunter2").count()
                > before.matches("hunter2hunter2").count() + after.matches("hunter2hunter2").count();
            prop_assert!(is_split || !whole.contains("hunter2hunter2"), "{:?}", whole);
        }
    }

    /// SPEC 8.8: whatever a notice holds, only our own styles reach the terminal. SPEC 8.9: no frame row is too wide.
    #[test]
    fn nothing_hostile_comes_out(text in hostile_text()) {
        let notices = [
            Notice::Asking { model: "desk".into() },
            Notice::Asking { model: text.clone() },
            said(&text),
            Notice::Thinking(text.clone()),
            Notice::CallBegun { name: text.clone() },
            started(&text),
            printed(&text),
            Notice::Status(text.clone()),
            printed(&text),
            ended(&text, &serde_json::json!({ "output": text }).to_string(), &text),
            ended(&text, &text, &text),
            Notice::CommandOutput(text.clone()),
            Notice::Beside(text.clone()),
            Notice::Retrying { attempt: 2, wait_ms: 0, problem: text.clone() },
        ];
        for look in [look(40, Colour::On), look(40, Colour::Off), Look::PLAIN] {
            let out = rendered(look, &notices);
            let shown = without_sequences(&out.text());
            prop_assert!(shown.chars().all(|c| c == '\n' || c == '\t' || !c.is_control()), "{:?}", shown);
            prop_assert_eq!(shown.find('\u{202e}'), None);
            if look.form == Form::Framed {
                let frames = without_sequences(&out.only(Stream::Frame));
                let is_row = |line: &&str| ["    ", "───", "┊", "thinking:"].iter().any(|start| line.starts_with(start));
                let framed = frames.lines().filter(is_row);
                for line in framed {
                    prop_assert!(unicode_width::UnicodeWidthStr::width(line) < 40, "{line:?}");
                }
            }
        }
    }
}
