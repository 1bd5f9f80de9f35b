//! The tools that are offered now: another set takes the place of the last one when an MCP server comes or goes.

use aish_tools::Tool;
use aish_tools::set::ToolSet;
use futures_util::future::BoxFuture;
use std::sync::{Arc, PoisonError, RwLock, Weak};

/// The dot between a server and its tool, as most models are told it.
const ON_THE_WIRE: &str = "__";

/// Whoever keeps the set up to date, where what it says may be from before.
pub trait Supply: Send + Sync {
    /// Returns once the tool of that name, as a model called it, is in the set as it is now, or is known not to come. Has a
    /// deadline of its own; returns at once where nothing better is to be had.
    fn arrive<'a>(&'a self, tool: &'a str) -> BoxFuture<'a, ()>;

    /// Whether a tool of that name, as a model called it, could only be of a server that is configured here, there or not.
    fn is_of_server(&self, tool: &str) -> bool;
}

/// Holds a whole set at a time. A call that is running keeps the tool it began with; one that is judged or started finds the
/// set of that moment.
pub struct Offered {
    set: RwLock<Arc<ToolSet>>,
    /// Weak: whoever supplies tools may hold the engine that offers them.
    supply: RwLock<Option<Weak<dyn Supply>>>,
}

impl Offered {
    /// These, to begin with.
    pub fn new(tools: ToolSet) -> Self {
        Self {
            set: RwLock::new(Arc::new(tools)),
            supply: RwLock::default(),
        }
    }

    /// What is offered now.
    pub fn now(&self) -> Arc<ToolSet> {
        // A set is exchanged in one assignment: a poisoned lock holds a whole one.
        Arc::clone(&self.set.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Offers these from now on.
    pub fn replace(&self, tools: ToolSet) {
        *self.set.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(tools);
    }

    /// Who is asked from now on when a call needs a tool that is not there, or is no longer what was approved.
    pub fn supplied_by(&self, supply: Weak<dyn Supply>) {
        *self.supply.write().unwrap_or_else(PoisonError::into_inner) = Some(supply);
    }

    /// Waits for a tool, as [`Supply::arrive`] does.
    pub(crate) async fn arrive(&self, tool: &str) {
        if let Some(supply) = self.supply() {
            supply.arrive(tool).await;
        }
    }

    /// Whether nobody else may answer for a tool of that name, as [`Supply::is_of_server`] says.
    pub(crate) fn is_of_server(&self, tool: &str) -> bool {
        self.supply().is_some_and(|supply| supply.is_of_server(tool))
    }

    fn supply(&self) -> Option<Arc<dyn Supply>> {
        let supply = self.supply.read().unwrap_or_else(PoisonError::into_inner);
        supply.as_ref().and_then(Weak::upgrade)
    }
}

/// The tool of that name. A model calls one that it knows from earlier by the name it had on the wire, which is read as a
/// tool's only where that was offered (SPEC 6.1): one that came since is found by it too.
pub(crate) fn named_in<'a>(tools: &'a ToolSet, name: &str) -> Option<&'a Arc<dyn Tool>> {
    tools
        .get(name)
        .or_else(|| tools.get(&name.replacen(ON_THE_WIRE, ".", 1)))
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
