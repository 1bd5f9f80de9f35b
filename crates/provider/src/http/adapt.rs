//! Endpoints that refuse a part of a request, and what is done about it (SPEC 3.7, 7.4, 7.5).
//!
//! Servers of one format differ in what they take, and only say so when asked. This module reads such a refusal and changes the
//! [`Way`] of asking, so that the same request can be written again, now and from then on. [`rules`] is a table from words to
//! a [`Change`](change::Change): the first row that fits the words and would change anything counts, so that nothing is tried
//! twice. Only a refusal of the request itself is read: never a key or a limit, an overflow only where images or the reply that
//! is asked for are what does not fit, and nothing after a reply has begun.

use super::way::Way;
use crate::ErrorKind;
use std::sync::Arc;

mod asked;
mod change;
mod rules;
#[cfg(test)]
mod tests;

pub(super) use asked::Asked;
use rules::{OVERFLOW_RULES, RULES};

/// Bytes of a model's name from which on it is taken out of a server's words: a shorter one may be a part of any word.
const MODEL_NAME_BYTES_MIN: usize = 6;

/// How often one request is written anew.
pub(super) const ADAPTATIONS_MAX: usize = 8;

/// Another way to ask, and what to tell the person.
#[derive(Debug)]
pub(super) struct Adapted {
    pub(super) way: Arc<Way>,
    /// One line.
    pub(super) remark: String,
    /// What was refused, in a word or two.
    pub(super) refused: &'static str,
}

/// How to ask instead, where the server says what it does not take. `said` is its words and tags with nothing around them.
pub(super) fn adapt(kind: ErrorKind, said: &str, way: &Way, asked: &Asked) -> Option<Adapted> {
    let rules = match kind {
        ErrorKind::Status(400 | 404 | 422 | 500 | 501) | ErrorKind::Stream => RULES,
        ErrorKind::ContextOverflow | ErrorKind::Status(413) => OVERFLOW_RULES,
        ErrorKind::Status(_)
        | ErrorKind::Connect
        | ErrorKind::Broken
        | ErrorKind::Timeout
        | ErrorKind::Auth
        | ErrorKind::Protocol
        | ErrorKind::TooLarge => return None,
    };
    // A model's name may hold the name of what it can do: `…-vision-preview has been decommissioned` refuses no image.
    let model = way.profile.model.to_ascii_lowercase();
    let words = said.to_ascii_lowercase();
    let words = if model.len() < MODEL_NAME_BYTES_MIN {
        words
    } else {
        words.replace(&model, "")
    };
    rules.iter().filter(|rule| rule.fits(&words)).find_map(|rule| {
        let mut changed = way.clone();
        rule.change.make(&mut changed, asked, &words);
        (changed != *way).then(|| Adapted {
            remark: rule.change.remark(&way.profile, &changed.profile, &words),
            refused: rule.change.refused(),
            way: Arc::new(changed),
        })
    })
}
