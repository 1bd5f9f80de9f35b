//! The tools that are offered now: another set takes the place of the last one when an MCP server comes or goes.

use aish_tools::set::ToolSet;
use std::sync::{Arc, PoisonError, RwLock};

/// Holds a whole set at a time. A call that is running keeps the tool it began with; one that is judged or started finds the
/// set of that moment.
pub struct Offered(RwLock<Arc<ToolSet>>);

impl Offered {
    /// These, to begin with.
    pub fn new(tools: ToolSet) -> Self {
        Self(RwLock::new(Arc::new(tools)))
    }

    /// What is offered now.
    pub fn now(&self) -> Arc<ToolSet> {
        // A set is exchanged in one assignment: a poisoned lock holds a whole one.
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Offers these from now on.
    pub fn replace(&self, tools: ToolSet) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(tools);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 6.4: who holds a set keeps it whole while another takes its place.
    #[test]
    fn a_set_is_kept_while_it_is_used() {
        let offered = Offered::new(ToolSet::builtin());
        let before = offered.now();
        offered.replace(ToolSet::new());
        assert!(before.get("bash").is_some());
        assert!(offered.now().is_empty());
    }
}
