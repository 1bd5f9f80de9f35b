//! The settings of how things look.

use super::{Kind, Setting};

/// `[ui]`, in the order of the reference.
pub const SETTINGS: &[Setting] = &[
    Setting::new(
        "ui.background",
        Kind::Choice(&["auto", "dark", "light"]),
        r#""light""#,
        "What text stands on, so that colours can be read. `auto` believes `COLORFGBG` where the terminal sets it, and takes \
         everything else for dark.",
    )
    .default(r#""auto""#)
    .env("AISH_UI_BACKGROUND"),
    Setting::new(
        "ui.plain",
        Kind::Bool,
        "true",
        "Words instead of rules, colours and layout, and nothing that is written twice: for screen readers and slow lines. \
         `--plain` does the same once.",
    )
    .default("false")
    .env("AISH_UI_PLAIN"),
    Setting::new(
        "ui.hints",
        Kind::Bool,
        "false",
        "Show the rest of the line, dimmed, as it was typed before. Nothing is shown where no styles are.",
    )
    .default("true")
    .env("AISH_UI_HINTS"),
];
