//! Where a line without a mark goes (SPEC 8.1): guessed while it is typed, flipped by a key, learnt from.
//!
//! One [`Router`] is shared: the editor's thread asks it to show the route of the line being typed and tells it of the flip key;
//! the loop asks it where the line goes once it was sent. Both see the same answer, so what was shown is what happens.

use crate::shell::known::Knowledge;
use aish_shell::route::{Corrections, Guess, Sent};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where lines go.
#[derive(Clone)]
pub struct Router {
    known: Knowledge,
    shared: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    corrections: Corrections,
    /// Where the person turned the line being typed.
    flipped: Option<Sent>,
}

impl Router {
    /// By what the shell knows, and what the person said before.
    pub fn new(known: Knowledge) -> Self {
        Self {
            known,
            shared: Arc::default(),
        }
    }

    /// Where that line would go now.
    pub fn shown(&self, line: &str) -> (Guess, Option<Sent>) {
        let state = self.lock();
        (state.corrections.guess(line, &self.known), state.flipped)
    }

    /// The flip key: the line being typed goes the other way.
    pub fn flip(&self, line: &str) {
        let (guess, flipped) = self.shown(line);
        let now = flipped.unwrap_or(match guess.route {
            aish_shell::route::Route::Command => Sent::Shell,
            aish_shell::route::Route::Question
            | aish_shell::route::Route::Mistyped { .. }
            | aish_shell::route::Route::Nothing => Sent::Model,
        });
        self.lock().flipped = Some(match now {
            Sent::Shell => Sent::Model,
            Sent::Model => Sent::Shell,
        });
    }

    /// Where a line that was sent goes; the next line begins without a flip. A flip that changed the route is learnt.
    pub fn decide(&self, line: &str) -> Guess {
        let guess = self.shown(line).0;
        let mut state = self.lock();
        let Some(sent) = state.flipped.take() else {
            return guess;
        };
        state.corrections.learn(line, sent);
        state.corrections.guess(line, &self.known)
    }

    /// The line being typed was given up.
    pub fn given_up(&self) {
        self.lock().flipped = None;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
