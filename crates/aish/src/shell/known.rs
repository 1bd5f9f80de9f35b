//! What the user's shell can run: its builtins, functions and aliases, and the programs in `PATH`.

use aish_shell::route::{Kind, Known};
use std::sync::{Arc, PoisonError, RwLock};

/// What is known, shared by the prompt's threads: the editor asks while a line is typed, the loop brings it up to date.
#[derive(Clone, Default)]
pub struct Knowledge {
    shared: Arc<RwLock<Facts>>,
}

#[derive(Default)]
struct Facts {
    names: std::collections::HashMap<Box<str>, Kind>,
    nearest: aish_shell::route::Names,
    directory: std::path::PathBuf,
}

impl Known for Knowledge {
    fn kind(&self, word: &str) -> Option<Kind> {
        self.read().names.get(word).copied()
    }

    fn is_path(&self, word: &str) -> bool {
        let path = self.read().directory.join(word);
        path.exists()
    }

    fn near(&self, word: &str) -> Option<String> {
        self.read().nearest.nearest(word).map(str::to_owned)
    }
}

impl Knowledge {
    fn read(&self) -> std::sync::RwLockReadGuard<'_, Facts> {
        self.shared.read().unwrap_or_else(PoisonError::into_inner)
    }
}
