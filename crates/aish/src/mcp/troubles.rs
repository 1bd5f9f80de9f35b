//! Which trouble with which server a person knows of: each is told once, by whoever comes to it first.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The last trouble that was told of each server, by alias.
#[derive(Default)]
pub(super) struct Troubles(Mutex<HashMap<String, String>>);

impl Troubles {
    /// True for whoever is to tell this one: nobody has.
    pub(super) fn is_news(&self, alias: &str, problem: &str) -> bool {
        let mut told = self.lock();
        if told.get(alias).is_some_and(|known| known == problem) {
            return false;
        }
        told.insert(alias.to_owned(), problem.to_owned());
        true
    }

    /// The trouble is over, or the server gone; true where one had been told.
    pub(super) fn is_over(&self, alias: &str) -> bool {
        self.lock().remove(alias).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 6.4: a failure is one status line.
    #[test]
    fn told_once() {
        let troubles = Troubles::default();
        assert!(!troubles.is_over("git"));
        assert!(troubles.is_news("git", "gone"));
        assert!(!troubles.is_news("git", "gone"));
        assert!(troubles.is_news("time", "gone") && troubles.is_news("git", "slow"));
        assert!(troubles.is_over("git"));
        assert!(troubles.is_news("git", "slow"));
    }
}
