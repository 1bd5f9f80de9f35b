//! The clipboard of the terminal (OSC 52): text is put there by an escape sequence, wherever the terminal is, `ssh` or not.
//!
//! No terminal says whether it did as asked, and none is asked what its clipboard holds.

use crate::paths::Environment;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Terminals cut or drop longer sequences.
const SEQUENCE_BYTES_MAX: usize = 100_000;
/// Puts what follows, in base64, on the clipboard
/// (XTerm Control Sequences, "Operating System Commands", Ps = 52: <https://invisible-island.net/xterm/ctlseqs/ctlseqs.html>).
const START: &str = "\x1b]52;c;";
/// Ends it: the end that is one character in every terminal.
const END: &str = "\x07";
/// Through tmux to the terminal outside, where `allow-passthrough` is on; every escape character inside is doubled
/// (tmux(1), `allow-passthrough`).
const TMUX_START: &str = "\x1bPtmux;";
const TMUX_END: &str = "\x1b\\";

/// A text too long for the clipboard of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} KB is more than a terminal's clipboard takes; at most {} KB", bytes.div_ceil(1_000), text_bytes_max() / 1_000)]
pub struct TooLong {
    /// How long it is.
    bytes: usize,
}

/// What puts a text on the clipboard, written to the terminal.
///
/// # Errors
/// It is too long.
pub fn sequence(text: &str, environment: &Environment) -> Result<String, TooLong> {
    if text.len() > text_bytes_max() {
        return Err(TooLong { bytes: text.len() });
    }
    let own = format!("{START}{}{END}", STANDARD.encode(text));
    Ok(match environment.text("TMUX") {
        // tmux takes the first for its own clipboard, or passes on the second; which one is its user's setting.
        Some(_) => format!("{own}{TMUX_START}{}{TMUX_END}", own.replace('\x1b', "\x1b\x1b")),
        None => own,
    })
}

/// Base64 makes four characters of three bytes.
fn text_bytes_max() -> usize {
    (SEQUENCE_BYTES_MAX - START.len() - END.len()) / 4 * 3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inside(tmux: &str) -> Environment {
        Environment::from_pairs([("TMUX", tmux)])
    }

    /// SPEC 8.8: whatever is copied, nothing of it acts on the terminal on its way.
    #[test]
    fn sequences() {
        assert_eq!(sequence("ls\n", &inside("")), Ok("\x1b]52;c;bHMK\x07".to_owned()));
        assert_eq!(
            sequence("\x1b\x07", &inside("/tmp/tmux-1,2,3")),
            Ok("\x1b]52;c;Gwc=\x07\x1bPtmux;\x1b\x1b]52;c;Gwc=\x07\x1b\\".to_owned())
        );
    }

    /// SPEC 12: what a terminal would cut is not sent at all.
    #[test]
    fn bounded() {
        let longest = "x".repeat(text_bytes_max());
        let sent = sequence(&longest, &inside("")).map(|sequence| sequence.len());
        assert!(sent.is_ok_and(|bytes| bytes <= SEQUENCE_BYTES_MAX && bytes > SEQUENCE_BYTES_MAX - 8));
        let refused = sequence(&format!("{longest}x"), &inside("")).map_err(|error| error.to_string());
        let message = "75 KB is more than a terminal's clipboard takes; at most 74 KB";
        assert_eq!(refused, Err(message.to_owned()));
    }
}
