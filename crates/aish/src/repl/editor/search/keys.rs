//! What keys mean while the history is searched, in whichever mode the editor is.

use super::SEARCH;
use crossterm::event::{Event, KeyEvent};
use reedline::{
    EditCommand, EditMode, KeyCode, KeyModifiers, PromptEditMode, PromptViMode, ReedlineEvent, ReedlineRawEvent,
};

/// A mode of the editor with a search.
pub struct Searching<M> {
    mode: M,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Typing,
    Searching,
}

impl<M: EditMode> Searching<M> {
    /// Around `mode`.
    pub fn new(mode: M) -> Self {
        Self {
            mode,
            state: State::Typing,
        }
    }

    fn begin(&mut self) -> ReedlineEvent {
        self.state = State::Searching;
        // Another menu would keep this one from opening.
        let mut events = vec![ReedlineEvent::Esc];
        if let PromptEditMode::Vi(PromptViMode::Normal | PromptViMode::Visual) = self.mode.edit_mode() {
            // The mode moves by its own keys only.
            let keys = [KeyCode::Esc, KeyCode::Char('i')].map(|code| KeyEvent::new(code, KeyModifiers::NONE));
            let raw = keys
                .into_iter()
                .filter_map(|key| ReedlineRawEvent::try_from(Event::Key(key)).ok());
            events.extend(raw.map(|key| self.mode.parse_event(key)));
        }
        events.push(ReedlineEvent::Menu(SEARCH.to_owned()));
        ReedlineEvent::Multiple(events)
    }

    fn end(&mut self, before: &[ReedlineEvent]) -> ReedlineEvent {
        self.state = State::Typing;
        let mut events = before.to_vec();
        events.push(ReedlineEvent::MenuAccept);
        ReedlineEvent::Multiple(events)
    }

    fn key(&mut self, key: KeyEvent) -> ReedlineEvent {
        let select = false;
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        match (key.code, control, alt) {
            (KeyCode::Esc, _, _) | (KeyCode::Char('c' | 'g'), true, false) => self.end(&[ReedlineEvent::MenuLeft]),
            (KeyCode::Enter | KeyCode::Tab, false, false) | (KeyCode::Char('j' | 'm'), true, false) => self.end(&[]),
            (KeyCode::Down, _, _) | (KeyCode::Char('r' | 'n'), true, false) => ReedlineEvent::MenuDown,
            (KeyCode::Up | KeyCode::BackTab, _, _) | (KeyCode::Char('s' | 'p'), true, false) => ReedlineEvent::MenuUp,
            (KeyCode::PageDown, _, _) => ReedlineEvent::MenuPageNext,
            (KeyCode::PageUp, _, _) => ReedlineEvent::MenuPagePrevious,
            (KeyCode::Left, _, _) | (KeyCode::Char('b'), true, false) => edit(EditCommand::MoveLeft { select }),
            (KeyCode::Right, _, _) | (KeyCode::Char('f'), true, false) => edit(EditCommand::MoveRight { select }),
            (KeyCode::Home, _, _) | (KeyCode::Char('a'), true, false) => edit(EditCommand::MoveToStart { select }),
            (KeyCode::End, _, _) | (KeyCode::Char('e'), true, false) => edit(EditCommand::MoveToEnd { select }),
            (KeyCode::Char('w'), true, false) | (KeyCode::Backspace, _, true) => changed(EditCommand::BackspaceWord),
            (KeyCode::Char('u'), true, false) => changed(EditCommand::Clear),
            (KeyCode::Backspace, _, false) | (KeyCode::Char('h'), true, false) => changed(EditCommand::Backspace),
            (KeyCode::Delete, _, _) | (KeyCode::Char('d'), true, false) => changed(EditCommand::Delete),
            (KeyCode::Char(c), false, false) => changed(EditCommand::InsertChar(c)),
            _ => ReedlineEvent::None,
        }
    }
}

fn edit(command: EditCommand) -> ReedlineEvent {
    ReedlineEvent::Edit(vec![command])
}

/// A change of the line; the editor closes menus over an empty one, so the search is opened again.
fn changed(command: EditCommand) -> ReedlineEvent {
    ReedlineEvent::Multiple(vec![edit(command), ReedlineEvent::Menu(SEARCH.to_owned())])
}

impl<M: EditMode> EditMode for Searching<M> {
    fn parse_event(&mut self, event: ReedlineRawEvent) -> ReedlineEvent {
        let event = Event::from(event);
        match (self.state, event) {
            (State::Searching, Event::Key(key)) => self.key(key),
            (State::Searching, Event::Paste(text)) => {
                let words: Vec<&str> = text.split_whitespace().collect();
                changed(EditCommand::InsertString(words.join(" ")))
            }
            (State::Typing, Event::Key(key)) if is_begun_by(key) => self.begin(),
            (State::Typing | State::Searching, event) => match ReedlineRawEvent::try_from(event) {
                Ok(event) => self.mode.parse_event(event),
                // Keys that are let go of, which never got here.
                Err(()) => ReedlineEvent::None,
            },
        }
    }

    fn edit_mode(&self) -> PromptEditMode {
        self.mode.edit_mode()
    }
}

fn is_begun_by(key: KeyEvent) -> bool {
    key.code == KeyCode::Char('r') && key.modifiers == KeyModifiers::CONTROL
}
