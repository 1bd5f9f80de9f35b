//! Which key does what: the editor's own bindings, and the keys that are ours in every one of its modes.

use crate::repl::router::Router;
use reedline::{
    EditCommand, EditMode, Emacs, KeyCode, KeyModifiers, Keybindings, PromptEditMode, ReedlineEvent, ReedlineRawEvent,
    default_emacs_keybindings,
};

/// The name the editor knows the completion menu by.
pub const MENU: &str = "completion";
/// What the editor gives back for the key that asks why the last command failed.
pub const WHY: &str = "why";
/// What the flip key stands for, between the bindings and [`Flipping`].
const FLIP: &str = "flip";

/// Emacs bindings with ours.
pub fn emacs(router: Option<Router>) -> Flipping<Emacs> {
    let mut keys = default_emacs_keybindings();
    bind_ours(&mut keys);
    Flipping::new(Emacs::new(keys), router)
}

/// Adds our keys to those of a mode.
pub fn bind_ours(keys: &mut Keybindings) {
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
    keys.add_binding(
        KeyModifiers::CONTROL,
        KeyCode::Char('t'),
        ReedlineEvent::ExecuteHostCommand(FLIP.to_owned()),
    );
    keys.add_binding(
        KeyModifiers::ALT,
        KeyCode::Char('w'),
        ReedlineEvent::ExecuteHostCommand(WHY.to_owned()),
    );
}

/// A mode of the editor whose flip key turns the route of the line being typed, and stays in the line.
///
/// It cannot pass on [`ReedlineEvent::SwitchMode`], whose answer has a type the editor keeps for itself: no binding may use that.
pub struct Flipping<M> {
    mode: M,
    router: Option<Router>,
}

impl<M> Flipping<M> {
    /// Around `mode`, whose keys were bound by [`bind_ours`]. Without a router there is nothing to flip.
    pub fn new(mode: M, router: Option<Router>) -> Self {
        Self { mode, router }
    }
}

impl<M: EditMode> EditMode for Flipping<M> {
    fn parse_event(&mut self, event: ReedlineRawEvent) -> ReedlineEvent {
        match self.mode.parse_event(event) {
            ReedlineEvent::ExecuteHostCommand(command) if command == FLIP => {
                if let Some(router) = &self.router {
                    router.flip();
                }
                ReedlineEvent::Repaint
            }
            event => event,
        }
    }

    fn edit_mode(&self) -> PromptEditMode {
        self.mode.edit_mode()
    }
}
