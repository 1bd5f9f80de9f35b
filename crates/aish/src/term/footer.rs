//! The one line below a stream while something runs: what is waited for, since when, and what the person types meanwhile.
//!
//! Everything else on the screen is append-only; this line is not, and leaves no trace. The terminal's own cursor stays at the end
//! of the stream, hidden, and the line is drawn below it: so taking the line away is erasing all that is below the cursor, however
//! the terminal has broken it into rows since. [`Footer::over`] does both around what is written to the stream; whoever shows the
//! footer calls it for every batch, and with no line before anybody else writes to the terminal.

use super::columns::cut;
use super::look::{DIM, Look};
use super::{Output, Stream};
use aish_core::id::CallId;
use aish_core::redact::Redactor;
use aish_core::sanitize;
use aish_engine::Notice;
use std::time::Duration;
use unicode_width::UnicodeWidthStr as _;

/// A batch that a terminal shows at once, where it knows how (<https://gist.github.com/christianparpart/d8a62cc1ab659194337d73e399004036>).
const AT_ONCE: (&str, &str) = ("\x1b[?2026h", "\x1b[?2026l");
/// All below and behind the cursor goes.
const ERASE: &str = "\x1b[J";
const CURSOR_HIDDEN: &str = "\x1b[?25l";
const CURSOR_SHOWN: &str = "\x1b[?25h";
/// The cursor's place is kept, and gone back to.
const PLACE: (&str, &str) = ("\x1b7", "\x1b8");
/// One row down in the same column, scrolling on the last one, and up again: there is a row below now. A vertical tab does that
/// on terminals; a line feed would be made a carriage return as well on its way there.
const ROW_BELOW: &str = "\x0b\x1b[A";
/// The beginning of the row below.
const TO_ROW_BELOW: &str = "\x0b\r";
/// What takes the line away, and the terminal's modes back, wherever the cursor stands: for whoever has to leave at once.
pub const GONE: &str = "\x1b[?2026l\x1b[?2004l\x1b[?25h\x1b[J";

/// How often the line is drawn anew while nothing else is.
const TICK_MS: u64 = 100;
/// What is over sooner is shown without the line: it would only flicker.
const SHOWN_AFTER_MS: u64 = 150;
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// Columns of a name.
const NAME_COLUMNS_MAX: usize = 24;
/// What is waited for has the whole row divided by this, once something is typed.
const WAITED_SHARE: usize = 2;
/// Columns of a name that still say something.
const NAME_COLUMNS_MIN: usize = 3;
/// The cursor.
const CURSOR: &str = "▏";
/// Stands for a line end in what is typed.
const LINE_END: &str = "⏎";
/// Stands for what is left out.
const ELLIPSIS: &str = "…";
const GAP: &str = "  ";
/// What keys do, while nothing is typed and while something is.
const HINT_IDLE: &str = "type ahead · Esc stops";
const HINT_TYPED: &str = "Enter queues · Alt-Enter steers · Esc stops";

/// What the person has typed so far, as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Typed<'a> {
    /// Stands before it: where it would go.
    pub mark: &'a str,
    /// Before the cursor.
    pub before: &'a str,
    /// Behind it.
    pub behind: &'a str,
    /// Lines that wait for the end of the turn.
    pub queued: usize,
}

/// The line, and what it says.
pub struct Footer {
    redactor: Redactor,
    /// The model that is being asked, or was last.
    model: String,
    /// Calls that run, by the names of their tools.
    running: Vec<(CallId, String)>,
    /// Since when that is waited for.
    since: Duration,
    /// When the whole wait began.
    began: Duration,
    /// What is on the screen.
    drawn: Option<String>,
    /// When that was last thought of.
    looked: Duration,
    /// Something changed since.
    is_stale: bool,
}

impl Footer {
    /// Nothing is drawn yet. `redactor` keeps secrets off the screen (SPEC 10.5).
    pub fn new(redactor: Redactor) -> Self {
        Self {
            redactor,
            model: String::new(),
            running: Vec::new(),
            since: Duration::ZERO,
            began: Duration::ZERO,
            drawn: None,
            looked: Duration::ZERO,
            is_stale: false,
        }
    }

    /// Something begins to be waited for.
    pub fn begin(&mut self, now: Duration) {
        self.model.clear();
        self.running.clear();
        (self.since, self.began, self.looked) = (now, now, now);
        self.is_stale = false;
    }

    /// What is waited for may be another thing now.
    pub fn heard(&mut self, notice: &Notice, now: Duration) {
        match notice {
            Notice::Asking { model } => {
                self.model = self.shown(model);
                self.running.clear();
                self.since = now;
            }
            Notice::CallStarted { call, readable } => {
                let tool = readable.split_once('(').map_or(readable.as_str(), |(tool, _)| tool);
                self.running.push((call.clone(), self.shown(tool)));
                self.since = now;
            }
            Notice::CallEnded { call, .. } => {
                let before = self.running.len();
                self.running.retain(|(running, _)| running != call);
                if before > 0 && self.running.is_empty() {
                    self.since = now;
                }
            }
            Notice::Text(_)
            | Notice::Thinking(_)
            | Notice::CallBegun { .. }
            | Notice::ReplyEnded
            | Notice::ToolOutput { .. }
            | Notice::CallStep { .. }
            | Notice::CommandOutput(_)
            | Notice::Beside(_)
            | Notice::Retrying { .. }
            | Notice::Usage(_)
            | Notice::Recorded(_)
            | Notice::Status(_) => {}
        }
    }

    /// What is shown of what is typed has changed: it is drawn at once.
    pub fn touch(&mut self) {
        self.is_stale = true;
    }

    /// The terminal was somebody else's, or has another size: what was drawn is not to be relied on.
    pub fn forget(&mut self) {
        self.is_stale = true;
        if let Some(drawn) = &mut self.drawn {
            drawn.clear();
        }
    }

    /// When the line is to be drawn next.
    pub fn due(&self) -> Duration {
        if self.is_stale {
            return Duration::ZERO;
        }
        (self.looked + Duration::from_millis(TICK_MS)).max(self.shown_from())
    }

    /// The line as it is to be now; `None` while it is not to be shown.
    pub fn line(&self, typed: Typed<'_>, now: Duration, look: Look) -> Option<String> {
        if self.drawn.is_none() && !self.is_stale && now < self.shown_from() {
            return None;
        }
        let tick = usize::try_from(now.as_millis() / u128::from(TICK_MS)).unwrap_or_default();
        let spinner = SPINNER.get(tick % SPINNER.len()).copied().unwrap_or_default();
        let width = look.width();
        let room = width.saturating_sub(spinner.width() + " ".len());
        if typed.before.is_empty() && typed.behind.is_empty() {
            let head = format!("{spinner} {}", self.waited_for(typed.queued, now, room));
            let line = with_hint(&head, HINT_IDLE, " · ", width);
            return Some(look.paint(DIM, &line));
        }
        let head = format!("{spinner} {}", self.waited_for(typed.queued, now, room / WAITED_SHARE));
        let taken = head.width() + " ".len() + typed.mark.width() + CURSOR.width();
        let text = window(typed, width.saturating_sub(taken));
        let used = head.width() + " ".len() + text.width();
        let hint = with_hint("", HINT_TYPED, GAP, width.saturating_sub(used));
        Some(format!("{} {text}{}", look.paint(DIM, &head), look.paint(DIM, &hint)))
    }

    /// What is to be written so that `out` comes at the end of the stream, with that line below it; without a line, none is left.
    /// `column` is where the stream's row stands afterwards.
    pub fn over(&mut self, out: Output, line: Option<String>, place: Place, look: Look) -> Output {
        let was_drawn = self.drawn.take();
        // A row that is exactly full has the cursor nowhere: what is drawn below would be drawn over its end.
        let is_full = place.column > 0 && place.column.is_multiple_of(look.columns);
        let line = line.filter(|_| !is_full);
        self.is_stale = false;
        self.looked = place.now;
        if out.is_empty() && was_drawn == line {
            self.drawn = line;
            return out;
        }
        if was_drawn.is_none() && line.is_none() {
            return out;
        }
        let (begin, end) = AT_ONCE;
        let mut all = Output::new();
        all.push(Stream::Frame, begin);
        if was_drawn.is_some() {
            all.push(Stream::Frame, ERASE);
        }
        // An empty line is one that was forgotten, and maybe the cursor's state with it.
        if was_drawn.is_none_or(|line| line.is_empty()) {
            all.push(Stream::Frame, CURSOR_HIDDEN);
        }
        out.pieces().for_each(|(stream, text)| all.push(stream, text));
        match line {
            Some(line) => {
                let (keep, back) = PLACE;
                let (room, down) = if place.column == 0 {
                    ("", "")
                } else {
                    (ROW_BELOW, TO_ROW_BELOW)
                };
                all.push(Stream::Frame, &format!("{room}{keep}{down}{line}{back}"));
                self.drawn = Some(line);
            }
            None => all.push(Stream::Frame, CURSOR_SHOWN),
        }
        all.push(Stream::Frame, end);
        all
    }

    fn shown_from(&self) -> Duration {
        self.began + Duration::from_millis(SHOWN_AFTER_MS)
    }

    /// `desk · 12 s`, `glob and 2 more · 3 s · 1 queued`, in so many columns: the name is what gives way.
    fn waited_for(&self, queued: usize, now: Duration, columns: usize) -> String {
        let name = match self.running.as_slice() {
            [] if self.model.is_empty() => "working".to_owned(),
            [] => self.model.clone(),
            [(_, tool)] => tool.clone(),
            [(_, tool), more @ ..] => format!("{tool} and {} more", more.len()),
        };
        let seconds = now.saturating_sub(self.since).as_secs();
        let mut rest = match seconds {
            0..60 => format!("{seconds} s"),
            60.. => format!("{} min {} s", seconds / 60, seconds % 60),
        };
        if queued > 0 {
            rest += &format!(" · {queued} queued");
        }
        let room = columns.saturating_sub(" · ".width() + rest.width());
        if room < NAME_COLUMNS_MIN {
            return cut(&rest, columns);
        }
        format!("{} · {rest}", cut(&name, room))
    }

    fn shown(&self, name: &str) -> String {
        cut(&sanitize::single_line(&self.redactor.redact(name)), NAME_COLUMNS_MAX)
    }
}

/// Where a stream stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Columns written in the row that is open.
    pub column: usize,
    /// On any clock that only grows.
    pub now: Duration,
}

/// The hint behind the text, where all of it fits.
fn with_hint(text: &str, hint: &str, gap: &str, width: usize) -> String {
    if text.width() + gap.width() + hint.width() <= width {
        format!("{text}{gap}{hint}")
    } else {
        text.to_owned()
    }
}

/// As much of what is typed as fits into that many columns around the cursor, behind its mark.
fn window(typed: Typed<'_>, columns: usize) -> String {
    let before = nearest(typed.before.chars().rev(), columns);
    let left = columns.saturating_sub(before.iter().map(|shown| shown.width()).sum());
    let behind = nearest(typed.behind.chars(), left);
    let before: String = before.into_iter().rev().collect();
    format!("{}{before}{CURSOR}{}", typed.mark, behind.concat())
}

/// These characters as they are shown, until the columns are used up; then an ellipsis in the last of them.
fn nearest(characters: impl Iterator<Item = char>, columns: usize) -> Vec<String> {
    let mut shown: Vec<String> = Vec::new();
    let mut used = 0;
    for character in characters {
        let text = match character {
            '\n' => LINE_END.to_owned(),
            '\t' => " ".to_owned(),
            other => sanitize::single_line(other.encode_utf8(&mut [0; 4])).into_owned(),
        };
        used += text.width();
        shown.push(text);
        if used > columns {
            while used + ELLIPSIS.width() > columns {
                let Some(last) = shown.pop() else {
                    return shown;
                };
                used -= last.width();
            }
            shown.push(ELLIPSIS.to_owned());
            return shown;
        }
    }
    shown
}

#[cfg(test)]
#[path = "footer_tests.rs"]
mod tests;
