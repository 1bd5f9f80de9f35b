//! Where a call that was let through may go on to: what it fetches may lead it elsewhere (a redirect), and a yes to one address
//! is none to every address that one names.

use super::{ApprovalMode, Policy, SoFar, Verdict};
use crate::action::Action;
use crate::event::CallSource;

/// What the rules say of an address that a call is led on to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Onward {
    /// A call of that address would run unasked.
    Allowed,
    /// No rule speaks of it: it would be asked about for being what it is.
    Unspoken,
    /// A rule denies it, or wants it asked about.
    Against,
}

impl Policy {
    /// What the rules say of a call that was let through and is led on: `action` is the same call of the other address.
    pub fn onward(&self, action: &Action, source: CallSource, mode: ApprovalMode, so_far: SoFar<'_>) -> Onward {
        if self.judge(action, source, mode, so_far).verdict == Verdict::Allow {
            return Onward::Allowed;
        }
        let looked = self.looked(action);
        let mut rules = self.deny.iter().chain(&self.ask);
        if rules.any(|rule| rule.touches(&looked, &self.places())) {
            return Onward::Against;
        }
        Onward::Unspoken
    }
}
