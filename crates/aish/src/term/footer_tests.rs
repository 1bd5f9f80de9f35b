//! The footer through a terminal emulator: what it says, and that it leaves nothing behind.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use super::super::render::Renderer;
use super::super::{Colour, Form};
use super::*;
use aish_core::event::ResultEnd;
use proptest::prelude::*;
use std::num::NonZeroU16;

const ROWS: u16 = 12;
const MARK: &str = "❯ ";
const SCROLLBACK_ROWS_MAX: usize = 1_000;

fn look(columns: usize) -> Look {
    Look {
        columns,
        rows: usize::from(ROWS),
        ..Look::PLAIN
    }
}

fn framed(columns: usize) -> Look {
    Look {
        colour: Colour::Off,
        form: Form::Framed,
        ..look(columns)
    }
}

fn cells(number: usize) -> NonZeroU16 {
    NonZeroU16::new(u16::try_from(number).unwrap()).unwrap()
}

/// A terminal with a stream, and maybe a footer below it.
struct Screen {
    emulator: vt100::Parser,
    renderer: Renderer,
    footer: Option<Footer>,
    typed: String,
    now: Duration,
}

impl Screen {
    fn new(columns: usize, footer: Option<Footer>) -> Self {
        Self {
            emulator: vt100::Parser::new(NonZeroU16::new(ROWS).unwrap(), cells(columns), SCROLLBACK_ROWS_MAX),
            renderer: Renderer::new(framed(columns), Redactor::default()),
            footer,
            typed: String::new(),
            now: Duration::ZERO,
        }
    }

    fn with_footer(columns: usize) -> Self {
        let mut footer = Footer::new(Redactor::default());
        footer.begin(Duration::ZERO);
        Self::new(columns, Some(footer))
    }

    fn write(&mut self, out: Output, is_over: bool) {
        let look = self.renderer.look();
        let place = Place {
            column: self.renderer.column(),
            now: self.now,
        };
        let out = match &mut self.footer {
            Some(footer) => {
                let typed = Typed {
                    mark: MARK,
                    before: &self.typed,
                    ..Typed::default()
                };
                let line = footer.line(typed, self.now, look).filter(|_| !is_over);
                footer.over(out, line, place, look)
            }
            None => out,
        };
        for (_, text) in out.pieces() {
            // As the terminal's driver does on the way.
            self.emulator.process(text.replace('\n', "\r\n").as_bytes());
        }
    }

    fn notice(&mut self, notice: &Notice) {
        let mut out = Output::new();
        self.renderer.notice(notice, self.now, &mut out);
        if let Some(footer) = &mut self.footer {
            footer.heard(notice, self.now);
        }
        self.write(out, false);
    }

    fn resize(&mut self, columns: usize) {
        self.emulator
            .screen_mut()
            .set_size(NonZeroU16::new(ROWS).unwrap(), cells(columns));
        self.renderer.set_look(framed(columns));
        if let Some(footer) = &mut self.footer {
            footer.forget();
        }
        self.write(Output::new(), false);
    }

    fn end(&mut self) {
        let mut out = Output::new();
        self.renderer.turn_over(&mut out);
        self.write(out, true);
    }

    /// All rows, those that scrolled away too, without empty ones at the end.
    fn history(&mut self) -> String {
        let screen = self.emulator.screen_mut();
        screen.set_scrollback(usize::MAX);
        let mut rows: Vec<String> = Vec::new();
        let columns = screen.size().1.get();
        for offset in (1..=screen.scrollback()).rev() {
            screen.set_scrollback(offset);
            rows.extend(screen.rows(0, columns).next());
        }
        screen.set_scrollback(0);
        rows.extend(screen.rows(0, columns));
        rows.join("\n").trim_end().to_owned()
    }

    fn shown(&self) -> String {
        self.emulator.screen().contents()
    }
}

fn call() -> CallId {
    CallId::nth(1, 1)
}

fn started() -> Notice {
    Notice::CallStarted {
        call: call(),
        readable: "bash(command=\"make\")".into(),
    }
}

fn ended() -> Notice {
    Notice::CallEnded {
        call: call(),
        readable: "bash(command=\"make\")".into(),
        output: "all\ndone\n".into(),
        summary: "exit 0".into(),
        success: true,
        end: ResultEnd::Completed,
    }
}

/// SPEC 3.5a: what is waited for, since when, and what is typed meanwhile, below the stream and below an open row.
#[test]
fn what_it_says() {
    let mut screen = Screen::with_footer(72);
    screen.notice(&Notice::Asking { model: "desk".into() });
    assert_eq!(screen.shown(), "", "what is over at once is not shown");
    screen.now = Duration::from_secs(3);
    screen.write(Output::new(), false);
    insta::assert_snapshot!(screen.shown(), @"⠋ desk · 3 s · type ahead · Esc stops");
    screen.notice(&Notice::Text("Half a line".into()));
    screen.typed = "and the tests?\nall".into();
    screen.now = Duration::from_secs(75);
    screen.write(Output::new(), false);
    insta::assert_snapshot!(screen.shown(), @r"
    Half a
    ⠋ desk · 1 min 15 s ❯ and the tests?⏎all▏
    ");
    screen.notice(&Notice::Text(".\n\n".into()));
    screen.notice(&started());
    screen.typed = "x".into();
    screen.write(Output::new(), false);
    insta::assert_snapshot!(screen.shown(), @r#"
    Half a line.
    ─── bash(command="make") ──────────────────────────────────────────────
    ⠋ bash · 0 s ❯ x▏  Enter queues · Alt-Enter steers · Esc stops
    "#);
    screen.notice(&ended());
    screen.end();
    insta::assert_snapshot!(screen.shown(), @r#"
    Half a line.
    ─── bash(command="make") ──────────────────────────────────────────────
        all
        done
    ─── exit 0 ────────────────────────────────────────────────────────────
    "#);
    assert!(!screen.emulator.screen().hide_cursor());
}

/// SPEC 8.9: it is one row however narrow the terminal is, and shows where the person types.
#[test]
fn it_is_one_row() {
    let line = |columns, before: &str, behind: &str| {
        let mut footer = Footer::new(Redactor::default());
        footer.begin(Duration::ZERO);
        footer.heard(
            &Notice::Asking {
                model: "a-model-of-a-very-long-name".into(),
            },
            Duration::ZERO,
        );
        let typed = Typed {
            mark: MARK,
            before,
            behind,
            queued: 2,
        };
        footer.line(typed, Duration::from_secs(5), framed(columns)).unwrap()
    };
    insta::assert_snapshot!(line(40, "", ""), @"⠋ a-model-of-a-very-l… · 5 s · 2 queued");
    insta::assert_snapshot!(line(40, "what about the other tests", " here"), @"⠋ 5 s · 2 queued ❯ …ut the other tests▏");
    insta::assert_snapshot!(line(20, "日本語日本語日本語", ""), @"⠋ 5 s · 2… ❯ …本語▏");
    insta::assert_snapshot!(line(60, "日本", "語 and more"), @"⠋ a-model-of… · 5 s · 2 queued ❯ 日本▏語 and more");
    for columns in 20..90 {
        for text in [
            "",
            "x",
            "\t日本語\u{202e}\u{1b}[2J\nand a lot more than fits",
            "e\u{301}\u{301}",
        ] {
            let line = line(columns, text, text);
            assert!(line.width() < columns, "{columns} {line:?}");
            assert!(!line.contains(['\n', '\t', '\u{1b}', '\u{202e}']), "{line:?}");
        }
    }
}

/// SPEC 8.8: the name of a tool, which a model makes up, is escaped.
#[test]
fn names_are_escaped() {
    let mut screen = Screen::with_footer(60);
    screen.now = Duration::from_secs(1);
    screen.notice(&Notice::CallStarted {
        call: call(),
        readable: "\x1b[2J\u{202e}x(a=1)".into(),
    });
    assert!(
        screen.shown().contains("⠋ \\x1b[2J\\u{202e}x · 0 s"),
        "{}",
        screen.shown()
    );
}

/// DESIGN, cost rules: what does not change is not written again.
#[test]
fn nothing_new_is_nothing_written() {
    let mut footer = Footer::new(Redactor::default());
    footer.begin(Duration::ZERO);
    let place = |millis| Place {
        column: 0,
        now: Duration::from_millis(millis),
    };
    let line = |footer: &Footer, millis| footer.line(Typed::default(), place(millis).now, framed(40));
    assert_eq!(line(&footer, 100), None);
    assert_eq!(footer.due(), Duration::from_millis(SHOWN_AFTER_MS));
    let first = line(&footer, 200);
    assert!(!footer.over(Output::new(), first, place(200), framed(40)).is_empty());
    assert_eq!(footer.due(), Duration::from_millis(200 + TICK_MS));
    let same = line(&footer, 290);
    assert!(footer.over(Output::new(), same, place(290), framed(40)).is_empty());
    footer.touch();
    assert_eq!(footer.due(), Duration::ZERO);
    assert!(!footer.over(Output::new(), None, place(300), framed(40)).is_empty());
    assert!(footer.over(Output::new(), None, place(300), framed(40)).is_empty());
}

/// SPEC 8.6: a row that is exactly full is not drawn below of: the end of it would be lost.
#[test]
fn full_rows() {
    let mut footer = Footer::new(Redactor::default());
    footer.touch();
    let mut stream = Output::new();
    stream.push(Stream::Reply, &"x".repeat(40));
    let place = Place {
        column: 40,
        now: Duration::from_secs(1),
    };
    let line = footer.line(Typed::default(), place.now, framed(40));
    assert!(line.is_some());
    assert_eq!(footer.over(stream, line, place, framed(40)).text(), "x".repeat(40));
    assert!(footer.due() > place.now, "it is not tried again at once");
}

/// What happens in a turn.
#[derive(Clone, Debug)]
enum Happens {
    Notice(Notice),
    Typed(String),
    Passes(u64),
    Resized(usize),
}

fn happens() -> impl Strategy<Value = Happens> {
    let text = "(word |日本語 |\\*\\*bold\\*\\* |`code` |😀 |- item|\n|\n\n|# head\n|longer than that, by far, ){0,4}";
    let printed = "(ok |日本|\n|a longer line of what it prints ){0,5}";
    prop_oneof![
        8 => text.prop_map(|text| Happens::Notice(Notice::Text(text))),
        2 => text.prop_map(|text| Happens::Notice(Notice::Thinking(text))),
        1 => Just(Happens::Notice(Notice::ReplyEnded)),
        1 => Just(Happens::Notice(started())),
        2 => printed.prop_map(|text| Happens::Notice(Notice::ToolOutput { call: call(), text })),
        1 => Just(Happens::Notice(ended())),
        1 => Just(Happens::Notice(Notice::Status("something to know".into()))),
        1 => Just(Happens::Notice(Notice::Beside("[1]+  Done  make".into()))),
        1 => Just(Happens::Notice(Notice::Asking { model: "desk".into() })),
        4 => ".{0,30}".prop_map(Happens::Typed),
        4 => (0_u64..400).prop_map(Happens::Passes),
    ]
}

fn play(screen: &mut Screen, all: &[Happens]) {
    for one in all {
        match one {
            Happens::Notice(notice) => screen.notice(notice),
            Happens::Typed(text) => {
                screen.typed.clone_from(text);
                screen.footer.iter_mut().for_each(Footer::touch);
                screen.write(Output::new(), false);
            }
            Happens::Passes(millis) => {
                screen.now += Duration::from_millis(*millis);
                screen.write(Output::new(), false);
            }
            Happens::Resized(columns) => screen.resize(*columns),
        }
    }
    screen.end();
}

proptest! {
    /// SPEC 8.6: whatever is written, typed and waited for, what is on the terminal afterwards is what there would be without the
    /// line below.
    #[test]
    fn it_leaves_no_trace(all in proptest::collection::vec(happens(), 0..60), columns in 20_usize..90) {
        let mut with = Screen::with_footer(columns);
        let mut without = Screen::new(columns, None);
        play(&mut with, &all);
        play(&mut without, &all);
        prop_assert_eq!(with.history(), without.history());
        prop_assert!(!with.emulator.screen().hide_cursor());
    }

    /// SPEC 8.9: nothing of it is left behind when the terminal grows and shrinks under it.
    #[test]
    fn resized_under_it(
        all in proptest::collection::vec(prop_oneof![3 => happens(), 1 => (20_usize..90).prop_map(Happens::Resized)], 0..40),
    ) {
        let mut screen = Screen::with_footer(60);
        play(&mut screen, &all);
        let history = screen.history();
        for trace in ["▏", "Esc stops", "⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"] {
            prop_assert!(!history.contains(trace), "{trace} in\n{history}");
        }
        prop_assert!(!screen.emulator.screen().hide_cursor());
    }
}
