//! What a terminal can do beyond colours, told by the names it goes by: nothing is asked of it, since an answer that comes late would
//! stand among what the person types.
//!
//! A program behind `ssh` sees `TERM` and little else. What is not known for sure is taken for not there, because the other mistake
//! costs more: an address in a hyperlink the terminal does not know cannot be seen at all.

use super::look::{Background, Links, Slant};
use crate::paths::Environment;

/// Beginnings of `TERM` of terminals that know hyperlinks (OSC 8).
const LINKING_TERMS: [&str; 9] = [
    "xterm-kitty",
    "xterm-ghostty",
    "ghostty",
    "alacritty",
    "foot",
    "wezterm",
    "contour",
    "rio",
    "iterm2",
];
/// Values of `TERM_PROGRAM` of such terminals.
const LINKING_PROGRAMS: [&str; 8] = [
    "WezTerm",
    "iTerm.app",
    "vscode",
    "ghostty",
    "Hyper",
    "rio",
    "mintty",
    "Tabby",
];
/// Variables that only such terminals set.
const LINKING_VARIABLES: [&str; 5] = [
    "KITTY_WINDOW_ID",
    "ALACRITTY_WINDOW_ID",
    "KONSOLE_VERSION",
    "WT_SESSION",
    "DOMTERM",
];
/// The first VTE that shows hyperlinks and does not stumble over them: 0.50, as it writes that.
const VTE_LINKING_MIN: u32 = 5_000;
/// Beginnings of `TERM` of what sits between a program and the terminal, or has a font of one shape.
const UPRIGHT_TERMS: [&str; 6] = ["linux", "screen", "vt", "cons", "ansi", "eterm"];
/// Names of these go through a multiplexer, which may not pass on what it does not know.
const MULTIPLEXED_TERMS: [&str; 2] = ["screen", "tmux"];

/// Whether italic text looks so.
pub(super) fn slant(environment: &Environment) -> Slant {
    // tmux calls itself `screen` where nobody configured it, and can do what it can.
    if environment.text("TMUX").is_none() && term_begins_with(environment, &UPRIGHT_TERMS) {
        Slant::Upright
    } else {
        Slant::Italic
    }
}

/// Whether addresses can be hidden behind words.
pub(super) fn links(environment: &Environment) -> Links {
    let is_multiplexed = environment.text("TMUX").is_some() || term_begins_with(environment, &MULTIPLEXED_TERMS);
    if is_multiplexed || term_begins_with(environment, &UPRIGHT_TERMS) {
        return Links::Plain;
    }
    let vte = environment
        .text("VTE_VERSION")
        .and_then(|version| version.parse::<u32>().ok());
    let program = environment.text("TERM_PROGRAM");
    let knows = term_begins_with(environment, &LINKING_TERMS)
        || program.is_some_and(|program| LINKING_PROGRAMS.contains(&program))
        || LINKING_VARIABLES.iter().any(|name| environment.text(name).is_some())
        || vte.is_some_and(|version| version >= VTE_LINKING_MIN);
    if knows { Links::Osc8 } else { Links::Plain }
}

/// What text stands on, where the terminal says so: `COLORFGBG` ends in the number of its background among the sixteen colours. Most
/// terminals say nothing, and most are dark.
pub(super) fn background(environment: &Environment) -> Background {
    let said = environment
        .text("COLORFGBG")
        .and_then(|colours| colours.rsplit(';').next());
    match said.and_then(|number| number.parse::<u8>().ok()) {
        // White, and the bright colours but the grey one.
        Some(7 | 9..=15) => Background::Light,
        Some(_) | None => Background::Dark,
    }
}

fn term_begins_with(environment: &Environment, starts: &[&str]) -> bool {
    let term = environment.text("TERM").unwrap_or_default();
    starts.iter().any(|start| term.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 8.6: links are hidden behind words only where a click finds them; SPEC 8.9: nothing is written that a terminal chokes on.
    #[test]
    fn who_knows_links() {
        let check = |pairs: &[(&str, &str)], expect: Links| {
            assert_eq!(
                links(&Environment::from_pairs(pairs.iter().copied())),
                expect,
                "{pairs:?}"
            );
        };
        check(&[("TERM", "xterm-kitty")], Links::Osc8);
        check(&[("TERM", "foot-extra")], Links::Osc8);
        check(&[("TERM", "xterm-256color"), ("VTE_VERSION", "7600")], Links::Osc8);
        check(&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "vscode")], Links::Osc8);
        check(&[("TERM", "xterm-256color"), ("WT_SESSION", "1")], Links::Osc8);
        for pairs in [
            &[("TERM", "xterm-256color")] as &[_],
            &[("TERM", "xterm-256color"), ("VTE_VERSION", "4602")],
            &[("TERM", "xterm-256color"), ("TERM_PROGRAM", "Apple_Terminal")],
            &[("TERM", "linux"), ("KITTY_WINDOW_ID", "1")],
            &[("TERM", "screen.xterm-256color"), ("VTE_VERSION", "7600")],
            &[("TERM", "tmux-256color"), ("TMUX", "/tmp/t,1,0"), ("WT_SESSION", "1")],
            &[],
        ] {
            check(pairs, Links::Plain);
        }
    }

    /// SPEC 8.9: `COLORFGBG` is believed where it can be read.
    #[test]
    fn backgrounds() {
        let check = |value: &str, expect: Background| {
            let environment = Environment::from_pairs([("COLORFGBG", value)]);
            assert_eq!(background(&environment), expect, "{value:?}");
        };
        check("0;15", Background::Light);
        check("0;default;7", Background::Light);
        check("15;0", Background::Dark);
        check("7;8", Background::Dark);
        check("15;default", Background::Dark);
        check("", Background::Dark);
    }

    /// SPEC 8.9: italics where they are italics.
    #[test]
    fn slants() {
        let check = |pairs: &[(&str, &str)], expect: Slant| {
            assert_eq!(
                slant(&Environment::from_pairs(pairs.iter().copied())),
                expect,
                "{pairs:?}"
            );
        };
        check(&[("TERM", "xterm-256color")], Slant::Italic);
        check(&[("TERM", "screen"), ("TMUX", "/tmp/t,1,0")], Slant::Italic);
        check(&[("TERM", "screen")], Slant::Upright);
        check(&[("TERM", "linux")], Slant::Upright);
    }
}
