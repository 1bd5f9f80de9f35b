//! Ctrl-R: the lines of the history that what is typed finds, below the line, the best first (SPEC 8.9).
//!
//! The line itself is what is searched for. [`SearchMenu`] is a menu of the editor, which makes room for it and wipes it off;
//! [`keys::Searching`] gives the keys another meaning meanwhile. The two talk through the editor's own events, in the order in
//! which keys come, so that keys may come faster than they are drawn:
//!
//! | event | means |
//! |---|---|
//! | `Menu(SEARCH)` | the search begins; sent again after each change of the line, for the editor closes menus over an empty one |
//! | `MenuDown`, `MenuUp`, pages | another line is chosen |
//! | `MenuAccept` | the chosen line is taken into the editor's; it does not run |
//! | `MenuLeft`, then `MenuAccept` | the line becomes what it was before the search |

mod keys;
mod rows;

use super::recall::Recall;
use aish_engine::now_ms;
pub use keys::Searching;
use reedline::{Completer, Editor, LineBuffer, Menu, MenuEvent, MenuSettings, Painter, Suggestion, UndoBehavior};
use rows::{Choice, Row};
use std::cell::Cell;

/// The name the editor knows the search by.
pub const SEARCH: &str = "history";
/// What stands before the line while it is searched for.
const INDICATOR: &str = "search ❯ ";
/// Rows of lines that are shown at most.
const ROWS_MAX: u16 = 12;
/// The search takes at most one part in so many of the screen's rows.
const SHARE: u16 = 2;
/// Rows that stand below the lines: how many there are.
const COUNT_ROWS: u16 = 1;

/// The search as a menu of the editor.
pub struct SearchMenu {
    recall: Recall,
    settings: MenuSettings,
    is_active: bool,
    /// The line before the search, and where the cursor was; it stays while the editor closes the menu over an empty line.
    before: Option<LineBuffer>,
    /// What `found` was searched for.
    query: Option<String>,
    /// What [`Recall::came`] said then.
    came: u32,
    /// The numbers of the lines, the best first.
    found: Vec<i64>,
    /// Which of them is chosen.
    chosen: usize,
    /// How it ends.
    ending: Ending,
    /// Whether a line was put in its place since it began.
    is_done: Cell<bool>,
    /// Rows of lines, and columns, there are room for.
    rows: u16,
    columns: u16,
    /// The editor asks whether there is something to take: there always is.
    always: [Suggestion; 1],
}

/// What becomes of the line when the search ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// It becomes the chosen one.
    Taken,
    /// It becomes what it was.
    GivenUp,
}

impl SearchMenu {
    /// Over that history.
    pub fn new(recall: Recall) -> Self {
        Self {
            recall,
            settings: MenuSettings::default().with_name(SEARCH).with_marker(INDICATOR),
            is_active: false,
            before: None,
            query: None,
            came: 0,
            found: Vec::new(),
            chosen: 0,
            ending: Ending::Taken,
            is_done: Cell::new(false),
            rows: ROWS_MAX,
            columns: 0,
            always: [Suggestion::default()],
        }
    }

    fn remember(&mut self, editor: &Editor) {
        if self.before.is_none() {
            self.before = Some(editor.line_buffer().clone());
        }
    }

    /// Searches again if the line changed; the best is chosen then.
    fn search(&mut self, line: &str) {
        let came = self.recall.came();
        if self.query.as_deref() != Some(line) || self.came != came {
            self.came = came;
            self.found = self.recall.find(line);
            self.query = Some(line.to_owned());
            self.chosen = 0;
        }
        self.chosen = self.chosen.min(self.found.len().saturating_sub(1));
    }

    /// The line that is to be taken, also where keys came faster than the search.
    fn taken(&self, line: &str) -> Option<String> {
        let number = if self.query.as_deref() == Some(line) {
            self.found.get(self.chosen).copied()
        } else {
            self.recall.find(line).first().copied()
        };
        self.recall.line(number?)
    }

    fn shown_rows(&self) -> u16 {
        u16::try_from(self.found.len()).unwrap_or(u16::MAX).clamp(1, self.rows)
    }

    /// The rows, at most `room` of them, with the chosen one among them.
    fn lines(&self, room: u16, styled: bool) -> Vec<String> {
        let room = usize::from(room.min(self.shown_rows()).max(1));
        let first = self.chosen.saturating_sub(room - 1);
        let numbers = self.found.get(first..).unwrap_or_default();
        let found = self.recall.look_up(numbers.get(..room).unwrap_or(numbers));
        let look = rows::Look {
            columns: usize::from(self.columns),
            styled,
            now: now_ms(),
        };
        let query = self.query.as_deref().unwrap_or_default();
        let row = |(at, found)| {
            let choice = if first + at == self.chosen {
                Choice::Chosen
            } else {
                Choice::Other
            };
            Row::new(found, query).drawn(choice, look)
        };
        let mut lines: Vec<String> = found.iter().enumerate().map(row).collect();
        let count = match self.found.len() {
            0 => "nothing like it was typed before".to_owned(),
            count => format!("{}/{count}  Enter takes it, Esc goes back", self.chosen + 1),
        };
        lines.push(rows::dimmed(&count, look));
        lines
    }
}

impl Menu for SearchMenu {
    fn settings(&self) -> &MenuSettings {
        &self.settings
    }

    fn is_active(&self) -> bool {
        self.is_active
    }

    fn set_active(&mut self, active: bool) {
        self.is_active = active;
    }

    fn clear_input(&mut self) {}

    fn menu_event(&mut self, event: MenuEvent) {
        let last = self.found.len().saturating_sub(1);
        let page = usize::from(self.rows.max(1));
        match event {
            MenuEvent::Activate(_) => self.is_active = true,
            MenuEvent::Deactivate => {
                self.is_active = false;
                if self.is_done.take() {
                    self.before = None;
                    self.query = None;
                    self.found = Vec::new();
                    self.chosen = 0;
                    self.ending = Ending::Taken;
                }
            }
            MenuEvent::Edit(_) => {}
            MenuEvent::NextElement | MenuEvent::MoveDown => self.chosen = (self.chosen + 1).min(last),
            MenuEvent::PreviousElement | MenuEvent::MoveUp => self.chosen = self.chosen.saturating_sub(1),
            MenuEvent::NextPage => self.chosen = (self.chosen + page).min(last),
            MenuEvent::PreviousPage => self.chosen = self.chosen.saturating_sub(page),
            MenuEvent::MoveLeft => self.ending = Ending::GivenUp,
            MenuEvent::MoveRight => {}
        }
    }

    fn can_quick_complete(&self) -> bool {
        false
    }

    /// Called as the search begins, with the line as it was: nothing is ever completed here.
    fn can_partially_complete(&mut self, _updated: bool, editor: &mut Editor, _completer: &mut dyn Completer) -> bool {
        self.remember(editor);
        false
    }

    fn update_values(&mut self, _editor: &mut Editor, _completer: &mut dyn Completer) {}

    fn reset_position(&mut self) {
        self.chosen = 0;
    }

    fn update_working_details(&mut self, editor: &mut Editor, _completer: &mut dyn Completer, painter: &Painter) {
        self.remember(editor);
        self.search(editor.get_buffer());
        self.columns = painter.screen_width();
        let share = painter.screen_height() / SHARE;
        self.rows = share.saturating_sub(COUNT_ROWS).clamp(1, ROWS_MAX);
    }

    fn replace_in_buffer(&self, editor: &mut Editor) {
        let line = match self.ending {
            Ending::Taken => self.taken(editor.get_buffer()).as_deref().map(LineBuffer::from),
            Ending::GivenUp => self.before.clone(),
        };
        if let Some(line) = line {
            editor.edit_buffer(|buffer| *buffer = line, UndoBehavior::CreateUndoPoint);
        }
        self.is_done.set(true);
    }

    fn menu_required_lines(&self, _columns: u16) -> u16 {
        self.shown_rows() + COUNT_ROWS
    }

    fn menu_string(&self, available_rows: u16, styled: bool) -> String {
        let room = available_rows.saturating_sub(COUNT_ROWS).max(1);
        self.lines(room, styled).join("\r\n")
    }

    fn min_rows(&self) -> u16 {
        self.shown_rows() + COUNT_ROWS
    }

    fn get_values(&self) -> &[Suggestion] {
        &self.always
    }
}
