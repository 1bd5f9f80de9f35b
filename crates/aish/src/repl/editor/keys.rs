//! Which key does what: the editor's own bindings, and the keys that are ours.

use reedline::{EditCommand, Emacs, KeyCode, KeyModifiers, ReedlineEvent, default_emacs_keybindings};

/// The name the editor knows the completion menu by.
pub const MENU: &str = "completion";

/// Emacs bindings with ours.
pub fn emacs() -> Emacs {
    let mut keys = default_emacs_keybindings();
    keys.add_binding(
        KeyModifiers::NONE,
        KeyCode::Tab,
        ReedlineEvent::UntilFound(vec![ReedlineEvent::Menu(MENU.to_owned()), ReedlineEvent::MenuNext]),
    );
    keys.add_binding(KeyModifiers::SHIFT, KeyCode::BackTab, ReedlineEvent::MenuPrevious);
    keys.add_binding(
        KeyModifiers::ALT,
        KeyCode::Enter,
        ReedlineEvent::Edit(vec![EditCommand::InsertNewline]),
    );
    Emacs::new(keys)
}
