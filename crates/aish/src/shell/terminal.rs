//! The person's terminal, lent to a command: raw while it lasts, its size followed, given back as it was.

/// A terminal that is lent.
pub struct Lent;
