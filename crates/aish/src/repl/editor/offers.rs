//! The menu of completions: the editor's own, but for what the prompt says beside it and what is said where there is nothing.

use super::face::indicator;
use crate::repl::router::Router;
use reedline::{ColumnarMenu, Completer, Editor, Menu, MenuBuilder, MenuEvent, MenuSettings, Painter, Suggestion};

/// Columns of the menu.
const COLUMNS: u16 = 4;
/// What is said where nothing completes.
const NOTHING: &str = "nothing completes this";

/// The menu of completions.
pub struct OfferMenu {
    menu: ColumnarMenu,
    router: Option<Router>,
    /// As the prompt would have it without a menu.
    indicator: &'static str,
}

impl OfferMenu {
    /// Known to the editor by that name.
    pub fn new(name: &str, router: Option<Router>) -> Self {
        let menu = ColumnarMenu::default().with_name(name).with_columns(COLUMNS);
        let indicator = indicator(&router.as_ref().map(Router::seen).unwrap_or_default());
        Self {
            menu,
            router,
            indicator,
        }
    }

    fn look(&mut self) {
        if let Some(router) = &self.router {
            self.indicator = indicator(&router.seen());
        }
    }
}

impl Menu for OfferMenu {
    fn settings(&self) -> &MenuSettings {
        self.menu.settings()
    }

    fn indicator(&self) -> &str {
        self.indicator
    }

    fn is_active(&self) -> bool {
        self.menu.is_active()
    }

    fn set_active(&mut self, active: bool) {
        self.menu.set_active(active);
    }

    fn clear_input(&mut self) {
        self.menu.clear_input();
    }

    fn on_activate(&mut self) {
        self.menu.on_activate();
    }

    fn on_deactivate(&mut self) {
        self.menu.on_deactivate();
    }

    fn handle_menu_event(&mut self, event: &MenuEvent) {
        self.menu.handle_menu_event(event);
    }

    fn menu_event(&mut self, event: MenuEvent) {
        self.look();
        self.menu.menu_event(event);
    }

    fn can_quick_complete(&self) -> bool {
        self.menu.can_quick_complete()
    }

    fn can_partially_complete(&mut self, updated: bool, editor: &mut Editor, completer: &mut dyn Completer) -> bool {
        self.menu.can_partially_complete(updated, editor, completer)
    }

    fn update_values(&mut self, editor: &mut Editor, completer: &mut dyn Completer) {
        self.menu.update_values(editor, completer);
        self.look();
    }

    fn reset_position(&mut self) {
        self.menu.reset_position();
    }

    fn reload(&mut self, updated: bool, editor: &mut Editor, completer: &mut dyn Completer) {
        self.menu.reload(updated, editor, completer);
    }

    fn update_working_details(&mut self, editor: &mut Editor, completer: &mut dyn Completer, painter: &Painter) {
        self.menu.update_working_details(editor, completer, painter);
        self.look();
    }

    fn replace_in_buffer(&self, editor: &mut Editor) {
        self.menu.replace_in_buffer(editor);
    }

    fn menu_required_lines(&self, terminal_columns: u16) -> u16 {
        self.menu.menu_required_lines(terminal_columns)
    }

    fn menu_string(&self, available_lines: u16, use_ansi_coloring: bool) -> String {
        if self.get_values().is_empty() && !self.is_awaiting_first_answer() {
            return NOTHING.to_owned();
        }
        self.menu.menu_string(available_lines, use_ansi_coloring)
    }

    fn min_rows(&self) -> u16 {
        self.menu.min_rows()
    }

    fn get_values(&self) -> &[Suggestion] {
        self.menu.get_values()
    }

    fn results_are_provisional(&self) -> bool {
        self.menu.results_are_provisional()
    }

    fn is_awaiting_first_answer(&self) -> bool {
        self.menu.is_awaiting_first_answer()
    }

    fn set_cursor_pos(&mut self, pos: (u16, u16)) {
        self.menu.set_cursor_pos(pos);
    }
}
