//! Every frame as it stands on the screen, through a terminal emulator: each state, narrow and wide, with names and text of any script.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::render_tests::{call, ended, failed, look, printed, rendered, said, started};
use super::{Background, Colour, Look};
use aish_core::event::ResultEnd;
use aish_engine::Notice;
use insta::assert_snapshot;
use std::num::NonZeroU16;

/// Rows enough for every frame here.
const ROWS: NonZeroU16 = NonZeroU16::new(60).unwrap();
const READ: &str = r#"file_read(path="notes.txt")"#;
/// Arguments in scripts that are wide, that join, and that run from right to left.
const SCRIPTS: &str = r#"file_write(path="日本語/☀️ 👩‍🚀.txt", content="שלום עולם, مرحبا بالعالم, naïve")"#;

/// The screen after these notices, without what is empty at its end.
fn screen(look: Look, notices: &[Notice]) -> vt100::Parser {
    let columns = NonZeroU16::new(u16::try_from(look.columns).unwrap()).unwrap();
    let mut parser = vt100::Parser::new(ROWS, columns, 0);
    let text = rendered(look, notices).text().replace('\n', "\r\n");
    parser.process(text.as_bytes());
    parser
}

fn at(columns: usize, notices: &[Notice]) -> String {
    screen(look(columns, Colour::Off), notices).screen().contents()
}

/// The same notices at the three widths.
fn widths(notices: &[Notice]) -> String {
    let shown = [40, 80, 200].map(|columns| at(columns, notices));
    shown.join("\n\n")
}

fn lines(count: usize) -> String {
    (1..=count).map(|n| format!("line {n}\n")).collect()
}

fn output(text: &str) -> String {
    serde_json::json!({ "output": text }).to_string()
}

/// SPEC 8.5: a call that runs: what it is, whole, and what it printed so far.
#[test]
fn running() {
    assert_snapshot!(widths(&[started("bash(command=\"make\")"), printed("cc a.c\ncc b")]), @r#"
    ─── bash(command="make") ──────────────
        cc a.c
        cc b

    ─── bash(command="make") ──────────────────────────────────────────────────────
        cc a.c
        cc b

    ─── bash(command="make") ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
        cc a.c
        cc b
    "#);
}

/// SPEC 8.5: a call that went well.
#[test]
fn done() {
    assert_snapshot!(widths(&[started(READ), ended(READ, &output("one\ntwo\n"), "2 lines")]), @r#"
    ─── file_read(path="notes.txt") ───────
        one
        two
    ─── 2 lines · 1.5 s ───────────────────

    ─── file_read(path="notes.txt") ───────────────────────────────────────────────
        one
        two
    ─── 2 lines · 1.5 s ───────────────────────────────────────────────────────────

    ─── file_read(path="notes.txt") ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
        one
        two
    ─── 2 lines · 1.5 s ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    "#);
}

/// SPEC 8.5: a failed call, and each way of not having run.
#[test]
fn not_done() {
    let ends = [
        ("File not found: notes.txt", ResultEnd::Completed),
        ("declined by the user: not this one", ResultEnd::Declined),
        ("denied by policy: deny file_read(*.txt)", ResultEnd::Denied),
        ("Unknown tool: file_raed", ResultEnd::Invalid),
        ("the turn was cancelled", ResultEnd::NotRun),
        ("it was running when aish ended", ResultEnd::Interrupted),
        ("Tool call limit reached (50)", ResultEnd::Limit),
        ("see call_1_1", ResultEnd::Duplicate),
    ];
    let notices: Vec<Notice> = ends.iter().map(|(summary, end)| failed(READ, summary, *end)).collect();
    assert_snapshot!(at(40, &notices), @r#"
    ─── file_read(path="notes.txt") ───────
    ─── failed: File not found: notes.txt ─
    ─── file_read(path="notes.txt") ───────
    ─── declined by the user: not this one
    ─── file_read(path="notes.txt") ───────
    ─── denied by policy: deny file_read(*.
        txt) ──────────────────────────────
    ─── file_read(path="notes.txt") ───────
    ─── not run: Unknown tool: file_raed ──
    ─── file_read(path="notes.txt") ───────
    ─── not run: the turn was cancelled ───
    ─── file_read(path="notes.txt") ───────
    ─── in doubt: it was running when aish 
        ended ─────────────────────────────
    ─── file_read(path="notes.txt") ───────
    ─── limit reached: Tool call limit reac
        hed (50) ──────────────────────────
    ─── file_read(path="notes.txt") ───────
    ─── same call as before: see call_1_1 ─
    "#);
    assert_snapshot!(at(80, &notices), @r#"
    ─── file_read(path="notes.txt") ───────────────────────────────────────────────
    ─── failed: File not found: notes.txt ─────────────────────────────────────────
    ─── file_read(path="notes.txt") ───────────────────────────────────────────────
    ─── declined by the user: not this one ────────────────────────────────────────
    ─── file_read(path="notes.txt") ───────────────────────────────────────────────
    ─── denied by policy: deny file_read(*.txt) ───────────────────────────────────
    ─── file_read(path="notes.txt") ───────────────────────────────────────────────
    ─── not run: Unknown tool: file_raed ──────────────────────────────────────────
    ─── file_read(path="notes.txt") ───────────────────────────────────────────────
    ─── not run: the turn was cancelled ───────────────────────────────────────────
    ─── file_read(path="notes.txt") ───────────────────────────────────────────────
    ─── in doubt: it was running when aish ended ──────────────────────────────────
    ─── file_read(path="notes.txt") ───────────────────────────────────────────────
    ─── limit reached: Tool call limit reached (50) ───────────────────────────────
    ─── file_read(path="notes.txt") ───────────────────────────────────────────────
    ─── same call as before: see call_1_1 ─────────────────────────────────────────
    "#);
}

/// SPEC 8.5: up to a screenful of a result, then how much more there is and what shows it.
#[test]
fn long_results() {
    assert_snapshot!(at(40, &[started(READ), ended(READ, &output(&lines(30)), "30 lines")]), @r#"
    ─── file_read(path="notes.txt") ───────
        line 1
        line 2
        line 3
        line 4
        line 5
        line 6
        line 7
        line 8
        … 22 more lines (:show call_1_2)
    ─── 30 lines · 1.5 s ──────────────────
    "#);
    let wide = "x".repeat(500);
    assert_snapshot!(at(80, &[started(READ), ended(READ, &output(&wide), "1 line")]), @r#"
    ─── file_read(path="notes.txt") ───────────────────────────────────────────────
        xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
        xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
        xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
        xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
        xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
        xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
        xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
    ─── 1 line · 1.5 s ────────────────────────────────────────────────────────────
    "#);
}

/// SPEC 8.5, 8.9: arguments are whole in any script, and no row is wider than the terminal.
#[test]
fn any_script() {
    let notices = [
        started(SCRIPTS),
        ended(
            SCRIPTS,
            &output("👩‍🚀☀️ 日本語の長い行はここで折り返されます שלום"),
            "日本 ✅",
        ),
    ];
    assert_snapshot!(widths(&notices), @r#"
    ─── file_write(path="日本語/☀️ 👩‍🚀.txt
        ", content="שלום עולם, مرحبا بالعال
        م, naïve") ────────────────────────
        👩‍🚀☀️ 日本語の長い行はここで折り返
        されます שלום
    ─── 日本 ✅ · 1.5 s ───────────────────

    ─── file_write(path="日本語/☀️ 👩‍🚀.txt", content="שלום עולם, مرحبا بالعالم, na
        ïve") ─────────────────────────────────────────────────────────────────────
        👩‍🚀☀️ 日本語の長い行はここで折り返されます שלום
    ─── 日本 ✅ · 1.5 s ───────────────────────────────────────────────────────────

    ─── file_write(path="日本語/☀️ 👩‍🚀.txt", content="שלום עולם, مرحبا بالعالم, naïve") ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────
        👩‍🚀☀️ 日本語の長い行はここで折り返されます שלום
    ─── 日本 ✅ · 1.5 s ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    "#);
}

/// SPEC 8.5: a name of 300 characters is shown to its end.
#[test]
fn long_names() {
    let readable = format!("server.{}(x=1)", "long_name_".repeat(30));
    let notices = [started(&readable), ended(&readable, "ok", "ok")];
    assert_snapshot!(widths(&notices), @"
    ─── server.long_name_long_name_long_nam
        e_long_name_long_name_long_name_lon
        g_name_long_name_long_name_long_nam
        e_long_name_long_name_long_name_lon
        g_name_long_name_long_name_long_nam
        e_long_name_long_name_long_name_lon
        g_name_long_name_long_name_long_nam
        e_long_name_long_name_long_name_lon
        g_name_long_name_long_name_(x=1) ──
    ─── ok · 1.5 s ────────────────────────

    ─── server.long_name_long_name_long_name_long_name_long_name_long_name_long_nam
        e_long_name_long_name_long_name_long_name_long_name_long_name_long_name_lon
        g_name_long_name_long_name_long_name_long_name_long_name_long_name_long_nam
        e_long_name_long_name_long_name_long_name_long_name_long_name_long_name_lon
        g_name_(x=1) ──────────────────────────────────────────────────────────────
    ─── ok · 1.5 s ────────────────────────────────────────────────────────────────

    ─── server.long_name_long_name_long_name_long_name_long_name_long_name_long_name_long_name_long_name_long_name_long_name_long_name_long_name_long_name_long_name_long_name_long_name_long_name_long_nam
        e_long_name_long_name_long_name_long_name_long_name_long_name_long_name_long_name_long_name_long_name_long_name_(x=1) ─────────────────────────────────────────────────────────────────────────────
    ─── ok · 1.5 s ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    ");
}

/// SPEC 8.8: what a call and its result would do to a terminal is shown.
#[test]
fn hostile() {
    let notices = [
        started("bash(command=\"\u{1b}]0;x\u{7}\u{202e}ls\")"),
        ended(
            "x",
            &output("\u{1b}[2J\u{9b}1m\ra\u{200b}b"),
            "\u{1b}[31mok\n[aish] not ours",
        ),
    ];
    assert_snapshot!(at(80, &notices), @r#"
    ─── bash(command="\x1b]0;x\x07\u{202e}ls") ────────────────────────────────────
        \x1b[2J\u{9b}1m\ra\u{200b}b
    ─── \x1b[31mok\n[aish] not ours · 1.5 s ───────────────────────────────────────
    "#);
}

/// SPEC 8.5: dim, and red where it failed; with `NO_COLOR` neither, and the background changes nothing.
#[test]
fn styles() {
    let bytes = |look: Look, notices: &[Notice]| rendered(look, notices).text().replace('\x1b', "␛");
    let well = [started(READ), ended(READ, &output("one"), "1 line")];
    let badly = [failed(READ, "File not found: notes.txt", ResultEnd::Completed)];
    let coloured = look(40, Colour::On);
    assert_snapshot!(bytes(coloured, &well), @r#"
    ␛[2m─── file_read(path="notes.txt") ───────␛[0m
    ␛[2m    one␛[0m
    ␛[2m─── 1 line · 1.5 s ────────────────────␛[0m
    "#);
    assert_snapshot!(bytes(coloured, &badly), @r#"
    ␛[2m─── file_read(path="notes.txt") ───────␛[0m
    ␛[31m─── failed: File not found: notes.txt ─␛[0m
    "#);
    let light = Look {
        background: Background::Light,
        ..coloured
    };
    assert_eq!(bytes(light, &badly), bytes(coloured, &badly));
    assert!(!bytes(look(40, Colour::Off), &badly).contains('␛'));
}

/// SPEC 8.6: the colours of a reply can be read on what it stands on; without colours what is bold still reads.
#[test]
fn replies_by_background() {
    let reply = [said("# Title\n**bold** `code` *slanted* https://a.example/b\n")];
    let bytes = |look: Look| rendered(look, &reply).text().replace('\x1b', "␛");
    let coloured = look(40, Colour::On);
    assert_snapshot!(bytes(coloured), @"
    ␛[1m␛[4mTitle␛[0m

    ␛[1mbold␛[0m ␛[36mcode␛[0m ␛[4mslanted␛[0m https://a.example/b
    ");
    let light = Look {
        background: Background::Light,
        ..coloured
    };
    assert_snapshot!(bytes(light), @"
    ␛[1m␛[4mTitle␛[0m

    ␛[1mbold␛[0m ␛[34mcode␛[0m ␛[4mslanted␛[0m https://a.example/b
    ");
    assert_snapshot!(bytes(look(40, Colour::Off)), @"
    # Title

    **bold** `code` *slanted*
    https://a.example/b
    ");
}

/// SPEC 8.9: a terminal that changes its size while a frame is open has rows that fit from then on.
#[test]
fn resized() {
    let mut renderer = super::render_tests::renderer(look(80, Colour::Off));
    let mut out = super::Output::new();
    let mut tell = |renderer: &mut super::render::Renderer, notice: &Notice| {
        renderer.notice(notice, std::time::Duration::ZERO, &mut out);
    };
    tell(&mut renderer, &started("bash(command=\"x\")"));
    tell(&mut renderer, &printed(&"a".repeat(60)));
    assert_eq!(renderer.column(), 64);
    renderer.set_look(look(40, Colour::Off));
    tell(&mut renderer, &printed(&format!("\n{}日本", "b".repeat(40))));
    assert_eq!(renderer.column(), 13);
    renderer.turn_over(&mut out);
    assert_eq!(renderer.column(), 0);
    assert_snapshot!(out.text(), @r#"
    ─── bash(command="x") ─────────────────────────────────────────────────────────
        aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
        bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
        bbbbb日本
    "#);
    assert_eq!(call().as_str(), "call_1_2");
}
