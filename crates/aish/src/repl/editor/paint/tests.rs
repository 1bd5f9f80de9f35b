//! Lines and their colours.

use super::*;
use aish_shell::route::Corrections;

fn painter(colour: Colour) -> Painter {
    let known = Knowledge::of_bash(["git", "ls", "make", "wc"]);
    let router = Router::new(known, Corrections::default());
    Painter::new(Some(router), colour, Background::Dark)
}

/// The pieces of a line that have a style, by its name.
fn styled(painter: &Painter, line: &str) -> Vec<String> {
    let palette = Palette::of(Background::Dark);
    let names = [
        (palette.command, "command"),
        (palette.keyword, "keyword"),
        (palette.option, "option"),
        (palette.quoted, "quoted"),
        (palette.variable, "variable"),
        (palette.operator, "bold"),
        (palette.comment, "comment"),
        (palette.wrong, "wrong"),
        (Style::new().underline(), "path"),
    ];
    let text = painter.highlight(line, 0);
    assert_eq!(text.raw_string().len(), line.len(), "{line:?}");
    let named = text.buffer.iter().filter(|(style, _)| *style != Style::new());
    named
        .map(|(style, text)| {
            let name = names
                .iter()
                .find(|(named, _)| named == style)
                .map_or("?", |(_, name)| name);
            format!("{name}:{text}")
        })
        .collect()
}

fn check(line: &str, expect: &[&str]) {
    assert_eq!(styled(&painter(Colour::On), line), expect, "{line:?}");
}

/// SPEC 8.9: a command is coloured by its syntax, and one that is not known is seen at once.
#[test]
fn commands() {
    check("git status -s", &["command:git", "option:-s"]);
    check(
        "ls \"$HOME\" | wc -l # all",
        &[
            "command:ls",
            "quoted:\"",
            "variable:$HOME",
            "quoted:\"",
            "bold:|",
            "command:wc",
            "option:-l",
            "comment:# all",
        ],
    );
    check(
        "ls && nosuch -x",
        &["command:ls", "bold:&&", "wrong:nosuch", "option:-x"],
    );
    check("!nosuch", &["bold:!", "wrong:nosuch"]);
    check("ls / /nosuch", &["command:ls", "path:/"]);
    check(
        "for x in /; do make $x; done",
        &[
            "keyword:for",
            "variable:x",
            "keyword:in",
            "path:/",
            "bold:;",
            "keyword:do",
            "command:make",
            "variable:$x",
            "bold:;",
            "keyword:done",
        ],
    );
}

/// SPEC 8.1: a question is plain but for what it mentions; a mistyped command is seen.
#[test]
fn questions() {
    check("why did that fail?", &[]);
    check("what is in @Cargo.toml here?", &["option:@Cargo.toml"]);
    check("?ls -l", &["bold:?"]);
    check("gti status", &["wrong:gti"]);
    check("", &[]);
}

/// SPEC 8.9: meta commands show whether there is one of that name.
#[test]
fn meta_commands() {
    check(":mod", &["bold::mod"]);
    check(":model desk", &["bold::model"]);
    check(":modle desk", &["bold::", "wrong:modle"]);
    check(":server.prompt a=b", &["bold::server.prompt"]);
}

/// SPEC 8.9: without colours there is no style, and a long line is plain.
#[test]
fn plain_lines() {
    assert_eq!(styled(&painter(Colour::Off), "git status -s | wc"), [""; 0]);
    let long = format!("ls {}", "x ".repeat(PAINTED_BYTES_MAX));
    assert_eq!(styled(&painter(Colour::On), &long), [""; 0]);
}

/// SPEC 8.8: what was pasted cannot control the terminal, and keeps its length.
#[test]
fn control_characters() {
    for line in ["ls \u{1b}[2J", "why \u{202e}x\u{9b}", "a\nb\tc\r"] {
        let shown = painter(Colour::On).highlight(line, 0).raw_string();
        assert_eq!(shown.len(), line.len());
        assert!(!shown.contains(['\u{1b}', '\u{202e}', '\u{9b}', '\r']), "{shown:?}");
    }
}

/// SPEC 8.9: on a light background nothing is yellow or cyan.
#[test]
fn light_background() {
    let palette = Palette::of(Background::Light);
    for style in [palette.quoted, palette.variable, palette.option] {
        assert!(!matches!(
            style.foreground,
            Some(Color::Yellow | Color::Cyan | Color::LightBlue)
        ));
    }
}
