//! What a text proposes (SPEC 8.4): the lines that begin with `CMD:` where a terminal shows them as prose, and whether each can be
//! asked about as it is.

use crate::term::{Look as TerminalLook, proposal};
use aish_core::sanitize;
use aish_markdown::{Background, Colour, Extent, Links, Look, Markdown};

/// What begins the line that proposes a command.
const MARK: &str = "CMD:";
/// Columns of a screen that nobody sees.
const COLUMNS: usize = 80;
/// Characters of a command that is put to the person, and blanks in a row within it: nobody reads more, however large the screen.
const LINE_CHARS_MAX: usize = 1_200;
const BLANKS_MAX: usize = 40;

/// A command that was proposed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The line as it was shown.
    pub line: String,
    /// Whether it is the line the model wrote: what cannot be shown as it is must not run.
    pub shown: Shown,
}

/// Whether what is shown is what would run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// It is.
    AsItIs,
    /// Something in it is shown as an escape, or is not seen at all.
    Escaped,
    /// It is longer than a command may be, and this is its beginning.
    Cut,
}

/// What a text proposes, as a terminal would have shown it.
pub fn proposed(text: &str) -> Vec<Proposal> {
    if !text.contains(MARK) {
        return Vec::new();
    }
    let mut markdown = Markdown::new(Look {
        columns: COLUMNS,
        colour: Colour::None,
        links: Links::Plain,
        background: Background::Dark,
    });
    let mut screen = String::new();
    markdown.push(text, &mut screen);
    markdown.finish(&mut screen);
    let escaped: Vec<String> = text.split_inclusive('\n').filter_map(escaped_command).collect();
    let commands = markdown.commands().iter();
    commands
        .map(|command| Proposal {
            line: command.line.clone(),
            shown: match command.extent {
                Extent::Beginning => Shown::Cut,
                Extent::Whole if escaped.contains(&command.line) || !is_shown_as_it_is(&command.line) => Shown::Escaped,
                Extent::Whole => Shown::AsItIs,
            },
        })
        .collect()
}

/// Nothing in it is escaped, no blank is one that a shell takes for a letter, and nothing is there that nobody sees.
fn is_shown_as_it_is(line: &str) -> bool {
    let is_seen = |c: char| c == ' ' || (!c.is_whitespace() && !is_unseen(c));
    sanitize::single_line(line) == line && line.chars().all(is_seen)
}

/// What has no picture of its own and builds those of others, which no command needs.
fn is_unseen(c: char) -> bool {
    matches!(c, '\u{180b}'..='\u{180f}' | '\u{200d}' | '\u{2800}' | '\u{fe00}'..='\u{fe0f}' | '\u{fffc}')
}

/// Whether its beginning stays on the screen with the question that shows it, and no gap pushes one part out of sight.
pub fn is_seen_whole(line: &str, look: TerminalLook) -> bool {
    line.chars().count() <= LINE_CHARS_MAX && !line.contains(&" ".repeat(BLANKS_MAX + 1)) && proposal::fits(line, look)
}

/// The command of a line, with its end, that could not be shown as it was written, as it was shown.
fn escaped_command(line: &str) -> Option<String> {
    let written = without_end(line).strip_prefix(MARK)?;
    let shown = sanitize::multi_line(written);
    (shown != written).then(|| shown.trim().to_owned())
}

/// A line without its end. A carriage return belongs to it only before a newline: at the end of a text it is shown, escaped.
fn without_end(line: &str) -> &str {
    match line.strip_suffix('\n') {
        Some(row) => row.strip_suffix('\r').unwrap_or(row),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<(String, Shown)> {
        proposed(text)
            .into_iter()
            .map(|found| (found.line, found.shown))
            .collect()
    }

    /// SPEC 8.4: lines of the text that begin with the mark propose; quoted ones, code and anything in the middle do not.
    #[test]
    fn what_is_proposed() {
        let plain = |line: &str| (line.to_owned(), Shown::AsItIs);
        assert_eq!(
            lines("Do this:\nCMD: cd /srv\nCMD:make  -j2 \r\nand see.\n"),
            [plain("cd /srv"), plain("make  -j2")]
        );
        for text in [
            "",
            "say CMD: ls",
            "```\nCMD: ls\n```",
            "> CMD: ls",
            "- CMD: ls",
            "    CMD: ls",
            "`CMD: ls`",
            "CMD:\n",
            "cmd: ls",
            "**CMD:** ls",
            "```\nCMD: ls",
        ] {
            assert_eq!(lines(text), [], "{text:?}");
        }
    }

    /// SPEC 8.4: a command that is too long is one that is not offered, and stands among the others in its place.
    #[test]
    fn what_is_too_long() {
        let found = lines(&format!("CMD: a\nCMD: {}\nCMD: b\n", "é".repeat(8_000)));
        let shown: Vec<Shown> = found.iter().map(|(_, shown)| *shown).collect();
        assert_eq!(shown, [Shown::AsItIs, Shown::Cut, Shown::AsItIs]);
        assert!(found.iter().all(|(line, _)| line.len() <= 100));
    }

    /// SPEC 8.8: what is shown is what runs: a command that could not be shown as it is does not run.
    #[test]
    fn what_cannot_be_shown() {
        #[rustfmt::skip]
        let all = ["ls\u{1b}[2K; rm x", "ls \u{202e}fdr-", "l\u{200b}s", "a\rb", "a\tb", "a\0b", "r\u{200d}m x", "echo a\u{fe0f}"];
        for hostile in all {
            let found = lines(&format!("CMD: {hostile}\n"));
            assert_eq!(found.len(), 1, "{hostile:?}");
            assert!(found.iter().all(|(_, shown)| *shown == Shown::Escaped), "{hostile:?}");
        }
        // At the end of a text a carriage return ends no line.
        for cut in ["CMD: ls\r", "CMD: \r"] {
            assert!(lines(cut).iter().all(|(_, shown)| *shown == Shown::Escaped), "{cut:?}");
        }
        let is_seen = |line: &str| is_seen_whole(line, TerminalLook::PLAIN);
        assert!(is_seen("rm x") && !is_seen(&format!("rm x;{}ls", " ".repeat(200))));
        assert!(is_seen(&"x".repeat(1_200)) && !is_seen(&"x".repeat(2_000)));
        // What only looks like an escape is as it is shown.
        assert_eq!(
            lines("CMD: printf '\\x1b[0m'"),
            [("printf '\\x1b[0m'".to_owned(), Shown::AsItIs)]
        );
    }

    /// Pieces of which texts are made that try to pass for something else.
    const PIECES: &[&str] = &[
        "CMD: ",
        "CMD:",
        "ls",
        "\n",
        "\r\n",
        "\r",
        "```\n",
        "~~~\n",
        "> ",
        "- ",
        "    ",
        "\t",
        "\u{1b}[2K",
        "\u{202e}",
        "\u{a0}",
        "\\x1b",
        "é",
        "`",
        "|a|\n|-|\n",
        "<!--",
        "-->",
        "1. ",
        "# ",
        "&lt;",
        "\\",
        "*",
        "[a](b)",
        "\0",
    ];

    proptest::proptest! {
        /// SPEC 8.4, 3.3: whatever the text, what may run stands in it as it is, on a line that begins with the mark, and all of it
        /// can be shown.
        #[test]
        fn what_may_run_was_written(picks in proptest::collection::vec(0..PIECES.len(), 0..60)) {
            let text: String = picks.iter().filter_map(|pick| PIECES.get(*pick).copied()).collect();
            let written = |line: &str| {
                let marked = text.split_inclusive('\n').filter_map(|row| without_end(row).strip_prefix(MARK));
                marked.map(str::trim).any(|command| command == line)
            };
            for (line, shown) in lines(&text) {
                if shown == Shown::AsItIs {
                    proptest::prop_assert!(written(&line), "{text:?}: {line:?}");
                    proptest::prop_assert!(line.chars().all(|c| !sanitize::is_hostile(c)), "{text:?}: {line:?}");
                }
            }
        }
    }
}
