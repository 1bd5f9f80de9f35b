//! Which key does what: the editor's own bindings, and the keys that are ours in every one of its modes.

use super::steady::{Shown, Steady};
use crate::repl::router::Router;
use reedline::{
    EditCommand, EditMode, Emacs, KeyCode, KeyModifiers, Keybindings, PromptEditMode, ReedlineEvent, ReedlineRawEvent,
    Vi, default_emacs_keybindings, default_vi_insert_keybindings, default_vi_normal_keybindings,
    default_vi_visual_keybindings,
};

/// The name the editor knows the completion menu by.
pub const MENU: &str = "completion";
/// What the editor gives back for the key that asks why the last command failed.
pub const WHY: &str = "why";
/// What the editor gives back for the keys that open the line in another editor.
pub const EDIT: &str = "edit";
/// What the flip key stands for, between the bindings and [`Flipping`].
const FLIP: &str = "flip";

/// Emacs bindings with ours.
pub fn emacs(router: Option<Router>) -> Flipping<Emacs> {
    let mut keys = default_emacs_keybindings();
    bind_ours(&mut keys);
    Flipping::new(Emacs::new(keys), router)
}

/// vi bindings with ours; they begin in insert mode. The editor must have the marks of `shown`.
pub fn vi(router: Option<Router>, shown: Shown) -> Flipping<Steady<Vi>> {
    let mut insert = default_vi_insert_keybindings();
    let mut normal = default_vi_normal_keybindings();
    for keys in [&mut insert, &mut normal] {
        bind_ours(keys);
    }
    let vi = Vi::new(insert, normal, default_vi_visual_keybindings());
    Flipping::new(Steady::new(vi, shown), router)
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
    // As in a shell: to the last space. The editor's own stops at each sign of a path.
    keys.add_binding(
        KeyModifiers::CONTROL,
        KeyCode::Char('w'),
        ReedlineEvent::Edit(vec![EditCommand::CutBigWordLeft]),
    );
    // In a shell it stops what runs; at the prompt nothing does, and nothing of the line is to go.
    keys.remove_binding(KeyModifiers::CONTROL, KeyCode::Char('z'));
    // Terminals send Ctrl-_ as what is read as Ctrl-7.
    keys.add_binding(
        KeyModifiers::CONTROL,
        KeyCode::Char('7'),
        ReedlineEvent::Edit(vec![EditCommand::Undo]),
    );
    for (modifier, key) in [(KeyModifiers::CONTROL, 'o'), (KeyModifiers::ALT, 'e')] {
        let edit = ReedlineEvent::ExecuteHostCommand(EDIT.to_owned());
        keys.add_binding(modifier, KeyCode::Char(key), edit);
    }
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
        let event = self.mode.parse_event(event);
        let flips = matches!(&event, ReedlineEvent::ExecuteHostCommand(command) if command == FLIP);
        if !flips {
            return event;
        }
        self.router.iter().for_each(Router::flip);
        ReedlineEvent::Repaint
    }

    fn edit_mode(&self) -> PromptEditMode {
        self.mode.edit_mode()
    }
}
