//! Keys that are two keys, and pastes: what is the same in every mode of the editor, and no binding of one key.

use super::keys::EDIT;
use crossterm::event::{Event, KeyEvent};
use reedline::{EditMode, KeyCode, KeyModifiers, PromptEditMode, ReedlineEvent, ReedlineRawEvent};

/// A mode of the editor with chords: Ctrl-X Ctrl-E opens the line in the person's editor.
pub struct Chords<M> {
    mode: M,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    None,
    /// Ctrl-X was pressed; the next key says for what.
    Begun,
}

impl<M> Chords<M> {
    /// Around `mode`.
    pub fn new(mode: M) -> Self {
        Self {
            mode,
            state: State::None,
        }
    }
}

impl<M: EditMode> EditMode for Chords<M> {
    fn parse_event(&mut self, event: ReedlineRawEvent) -> ReedlineEvent {
        let event = match Event::from(event) {
            Event::Key(key) => match (std::mem::replace(&mut self.state, State::None), key) {
                (State::None, key) if is_control(key, 'x') => {
                    self.state = State::Begun;
                    return ReedlineEvent::None;
                }
                (State::Begun, key) if is_control(key, 'e') => {
                    return ReedlineEvent::ExecuteHostCommand(EDIT.to_owned());
                }
                // Nothing else begins so; the key does what it does.
                (State::None | State::Begun, key) => Event::Key(key),
            },
            Event::Paste(text) => Event::Paste(harmless(&text)),
            event @ (Event::FocusGained | Event::FocusLost | Event::Mouse(_) | Event::Resize(..)) => event,
        };
        match ReedlineRawEvent::try_from(event) {
            Ok(event) => self.mode.parse_event(event),
            // A key that is let go of; none of them get here.
            Err(()) => ReedlineEvent::None,
        }
    }

    fn edit_mode(&self) -> PromptEditMode {
        self.mode.edit_mode()
    }
}

fn is_control(key: KeyEvent, letter: char) -> bool {
    key.code == KeyCode::Char(letter) && key.modifiers == KeyModifiers::CONTROL
}

/// A paste without what would act: on this terminal when it is drawn, or as keys on the one the shell has.
fn harmless(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    text.chars()
        .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 8.9: what is pasted is text, whatever is in it.
    #[test]
    fn pastes() {
        assert_eq!(harmless("a\r\nb\rc\td"), "a\nb\nc\td");
        assert_eq!(harmless("ls\x1b[201~\x03\x04\u{9b}x\x7f"), "ls[201~x");
        assert_eq!(harmless("日本 👩‍💻"), "日本 👩‍💻");
    }
}
