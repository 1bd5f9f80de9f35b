//! Alt-.: the last word of the last command, put into the line; pressed again, that of the command before it (SPEC 8.9).

use super::recall::Recall;
use crossterm::event::Event;
use reedline::{EditCommand, EditMode, KeyCode, KeyModifiers, PromptEditMode, ReedlineEvent, ReedlineRawEvent};

/// A mode of the editor with last words.
pub struct LastWords<M> {
    mode: M,
    recall: Recall,
    /// What the key put in, if it was the key before.
    put: Option<Put>,
}

/// A word that was put in.
struct Put {
    word: String,
    /// The line it is from.
    number: i64,
}

impl<M> LastWords<M> {
    /// Around `mode`, from that history.
    pub fn new(mode: M, recall: Recall) -> Self {
        Self {
            mode,
            recall,
            put: None,
        }
    }

    fn put_next(&mut self, before: Option<Put>) -> ReedlineEvent {
        // What is no ASCII may be fewer characters to the editor than to us, and nothing else must be taken out.
        let is_countable = before.as_ref().is_none_or(|put| put.word.is_ascii());
        let next = self.recall.last_word(before.as_ref().map(|put| put.number));
        let Some((number, word)) = next.filter(|_| is_countable) else {
            self.put = before;
            return ReedlineEvent::None;
        };
        let taken_out = before.map_or(0, |put| put.word.len());
        let mut edits = vec![EditCommand::Backspace; taken_out];
        edits.push(EditCommand::InsertString(word.clone()));
        self.put = Some(Put { word, number });
        ReedlineEvent::Edit(edits)
    }
}

impl<M: EditMode> EditMode for LastWords<M> {
    fn parse_event(&mut self, event: ReedlineRawEvent) -> ReedlineEvent {
        let before = self.put.take();
        let event = Event::from(event);
        if let Event::Key(key) = &event
            && key.code == KeyCode::Char('.')
            && key.modifiers == KeyModifiers::ALT
        {
            return self.put_next(before);
        }
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
