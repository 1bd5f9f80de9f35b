//! vi keys that come in one piece: each does what it does in the mode it was pressed in.
//!
//! The editor reads all keys that are there, then does what they say; meanwhile it asks for the mode, and is told that of the last
//! key. Text that a key back to normal mode follows at once would be inserted as in normal mode, where the cursor cannot stand
//! behind the last letter. So a change of mode that is not the first thing of such a piece is told when the editor gets there: by
//! an event for a menu that never opens ([`ModeMark`]).

use crossterm::event::{Event, KeyEvent};
use reedline::{
    Completer, EditMode, Editor, KeyCode, KeyModifiers, Menu, MenuEvent, MenuSettings, Painter, PromptEditMode,
    PromptViMode, ReedlineEvent, ReedlineMenu, ReedlineRawEvent, Suggestion,
};
use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The modes, and the names the editor knows their marks by.
const MARKS: [(PromptViMode, &str); 3] = [
    (PromptViMode::Normal, "vi normal"),
    (PromptViMode::Insert, "vi insert"),
    (PromptViMode::Visual, "vi visual"),
];

/// The mode of what the editor does now.
#[derive(Clone, Default)]
pub struct Shown {
    state: Arc<Mutex<State>>,
}

struct State {
    mode: PromptEditMode,
    line: Line,
}

/// Whether the next key is the first of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Begins,
    GoesOn,
}

impl Default for State {
    fn default() -> Self {
        Self {
            mode: PromptEditMode::Vi(PromptViMode::Insert),
            line: Line::Begins,
        }
    }
}

impl Shown {
    /// A line begins: as in a shell in insert mode, whatever mode the one before was left in.
    pub fn begin(&self) {
        *self.lock() = State::default();
    }

    /// The menus that tell it; to be given to the editor.
    pub fn marks(&self) -> Vec<ReedlineMenu> {
        let mark = |(mode, name): (PromptViMode, &str)| {
            ReedlineMenu::EngineCompleter(Box::new(ModeMark {
                settings: MenuSettings::default().with_name(name),
                mode: PromptEditMode::Vi(mode),
                shown: self.clone(),
            }))
        };
        MARKS.map(mark).into()
    }

    fn get(&self) -> PromptEditMode {
        self.lock().mode.clone()
    }

    fn set(&self, mode: PromptEditMode) {
        self.lock().mode = mode;
    }

    fn take_line(&self) -> Line {
        std::mem::replace(&mut self.lock().line, Line::GoesOn)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// vi's modes, each told when its keys are done.
pub struct Steady<M> {
    mode: M,
    shown: Shown,
    /// The editor asked for the mode since the last key: the next one begins another piece.
    is_asked: Cell<bool>,
}

impl<M> Steady<M> {
    /// Around `mode`; the editor must have the marks of `shown`.
    pub fn new(mode: M, shown: Shown) -> Self {
        Self {
            mode,
            shown,
            is_asked: Cell::new(true),
        }
    }
}

impl<M: EditMode> Steady<M> {
    /// Brings the mode to what a line begins in. It moves by its own keys only; what they do to a line is not wanted.
    fn begin_line(&mut self) {
        if self.mode.edit_mode() == PromptEditMode::Vi(PromptViMode::Insert) {
            return;
        }
        for code in [KeyCode::Esc, KeyCode::Char('i')] {
            if let Ok(key) = ReedlineRawEvent::try_from(Event::Key(KeyEvent::new(code, KeyModifiers::NONE))) {
                self.mode.parse_event(key);
            }
        }
    }
}

impl<M: EditMode> EditMode for Steady<M> {
    fn parse_event(&mut self, event: ReedlineRawEvent) -> ReedlineEvent {
        if self.shown.take_line() == Line::Begins {
            self.begin_line();
        }
        let before = self.mode.edit_mode();
        let is_first = self.is_asked.take();
        let event = self.mode.parse_event(event);
        let after = self.mode.edit_mode();
        if is_first {
            // What an event lost on the way would have told, too.
            self.shown.set(after);
            return event;
        }
        match mark_of(&after).filter(|_| before != after) {
            Some(mark) => marked(event, ReedlineEvent::Menu(mark.to_owned())),
            None => event,
        }
    }

    fn edit_mode(&self) -> PromptEditMode {
        self.is_asked.set(true);
        self.shown.get()
    }
}

fn mark_of(mode: &PromptEditMode) -> Option<&'static str> {
    let marks = MARKS
        .into_iter()
        .find(|(marked, _)| *mode == PromptEditMode::Vi(marked.clone()));
    marks.map(|(_, name)| name)
}

/// The event with its mark before all that it changes, but behind an Esc: an open menu would keep others from opening.
fn marked(event: ReedlineEvent, mark: ReedlineEvent) -> ReedlineEvent {
    if let ReedlineEvent::Multiple(mut events) = event {
        let at = usize::from(events.first() == Some(&ReedlineEvent::Esc));
        events.insert(at, mark);
        return ReedlineEvent::Multiple(events);
    }
    ReedlineEvent::Multiple(vec![mark, event])
}

/// A menu that never opens: the event that would open it tells the mode.
struct ModeMark {
    settings: MenuSettings,
    mode: PromptEditMode,
    shown: Shown,
}

impl Menu for ModeMark {
    fn settings(&self) -> &MenuSettings {
        &self.settings
    }

    fn is_active(&self) -> bool {
        false
    }

    fn set_active(&mut self, _active: bool) {}

    fn clear_input(&mut self) {}

    fn menu_event(&mut self, event: MenuEvent) {
        if let MenuEvent::Activate(_) = event {
            self.shown.set(self.mode.clone());
        }
    }

    fn can_quick_complete(&self) -> bool {
        false
    }

    fn can_partially_complete(&mut self, _updated: bool, _editor: &mut Editor, _completer: &mut dyn Completer) -> bool {
        false
    }

    fn update_values(&mut self, _editor: &mut Editor, _completer: &mut dyn Completer) {}

    fn reset_position(&mut self) {}

    fn update_working_details(&mut self, _editor: &mut Editor, _completer: &mut dyn Completer, _painter: &Painter) {}

    fn replace_in_buffer(&self, _editor: &mut Editor) {}

    fn menu_required_lines(&self, _columns: u16) -> u16 {
        0
    }

    fn menu_string(&self, _available_rows: u16, _styled: bool) -> String {
        String::new()
    }

    fn min_rows(&self) -> u16 {
        0
    }

    fn get_values(&self) -> &[Suggestion] {
        &[]
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use reedline::Vi;

    fn press(steady: &mut Steady<Vi>, code: KeyCode) -> ReedlineEvent {
        let key = Event::Key(KeyEvent::new(code, KeyModifiers::NONE));
        steady.parse_event(ReedlineRawEvent::try_from(key).unwrap())
    }

    /// SPEC 8.9: of keys that came together the mode changes where they say, of one key at once.
    #[test]
    fn told_when_it_is_reached() {
        let shown = Shown::default();
        let mut steady = Steady::new(Vi::default(), shown.clone());
        let insert = PromptEditMode::Vi(PromptViMode::Insert);
        let normal = PromptEditMode::Vi(PromptViMode::Normal);
        press(&mut steady, KeyCode::Char('a'));
        let escape = press(&mut steady, KeyCode::Esc);
        assert_eq!(steady.edit_mode(), insert);
        let ReedlineEvent::Multiple(events) = escape else {
            unreachable!("{escape:?}");
        };
        let mark = ReedlineEvent::Menu("vi normal".to_owned());
        assert_eq!(events.get(..2), Some([ReedlineEvent::Esc, mark].as_slice()));
        // As the editor does when it gets there.
        shown.set(normal.clone());
        assert_eq!(steady.edit_mode(), normal);
        press(&mut steady, KeyCode::Char('i'));
        assert_eq!(steady.edit_mode(), insert);
        press(&mut steady, KeyCode::Esc);
        assert_eq!(steady.edit_mode(), normal);
        shown.begin();
        assert_eq!(steady.edit_mode(), insert);
        let typed = press(&mut steady, KeyCode::Char('d'));
        assert_eq!(typed, ReedlineEvent::Edit(vec![reedline::EditCommand::InsertChar('d')]));
    }
}
