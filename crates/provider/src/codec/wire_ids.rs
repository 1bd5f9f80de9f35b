//! Ids of calls on the wire: within one request each is unique, in the letters its format takes, and the same every time.
//!
//! A call keeps its provider's own id while it can. A conversation holds ids of several providers, of servers that number
//! their calls from zero in every reply, and of imported sessions; formats refuse some of them.

use super::names::fnv1a;
use crate::profile::WireCallIds;
use aish_core::id::CallId;
use aish_core::message::MessageCall;
use std::collections::{HashMap, HashSet};

/// Characters of an id that every format takes: OpenAI's chat completions refuse the 41st
/// (<https://github.com/agno-agi/agno/issues/5382>), Responses the 65th.
const ID_CHARS_MAX: usize = 40;

/// The ids of one request, in the order its calls are written.
#[derive(Debug)]
pub(crate) struct WireIds<'a> {
    naming: WireCallIds,
    taken: HashSet<String>,
    by_call: HashMap<&'a CallId, String>,
}

impl<'a> WireIds<'a> {
    pub(crate) fn new(naming: WireCallIds) -> Self {
        Self {
            naming,
            taken: HashSet::new(),
            by_call: HashMap::new(),
        }
    }

    /// The id a call is written with: `[A-Za-z0-9_-]{1,40}`.
    pub(crate) fn call(&mut self, call: &'a MessageCall) -> String {
        let ours = call.id.as_str();
        let candidates = match self.naming {
            WireCallIds::Own => [call.provider_id.as_deref(), Some(ours)],
            WireCallIds::NineCharacters => [None, None],
        };
        let kept = candidates
            .into_iter()
            .flatten()
            .find(|id| is_plain(id) && !self.taken.contains(*id))
            .map(str::to_owned);
        let id = kept.or_else(|| {
            // As many as there are ids taken, and one more: one of them is free.
            (0..=u64::try_from(self.taken.len()).unwrap_or(u64::MAX))
                .map(|salt| match self.naming {
                    WireCallIds::Own => format!("call_{:016x}", fnv1a(ours, salt)),
                    WireCallIds::NineCharacters => nine_characters(ours, salt),
                })
                .find(|id| !self.taken.contains(id))
        });
        let id = id.unwrap_or_else(|| ours.to_owned());
        self.taken.insert(id.clone());
        self.by_call.insert(&call.id, id.clone());
        id
    }

    /// The id of the call that a result answers, once: a second result, or one without a call, has none.
    pub(crate) fn result(&mut self, call_id: &CallId) -> Option<String> {
        self.by_call.remove(call_id)
    }
}

fn is_plain(id: &str) -> bool {
    (1..=ID_CHARS_MAX).contains(&id.len())
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// Nine letters and digits that stand for an id, the same ones each time (SPEC 7.5).
fn nine_characters(id: &str, salt: u64) -> String {
    let mut rest = fnv1a(id, salt);
    let digits = (0..9).filter_map(|_| {
        let digit = u32::try_from(rest % 36).ok();
        rest /= 36;
        digit.and_then(|digit| char::from_digit(digit, 36))
    });
    digits.collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn call(id: &str, provider_id: Option<&str>) -> MessageCall {
        MessageCall {
            id: CallId::new(id),
            provider_id: provider_id.map(str::to_owned),
            name: "t".to_owned(),
            arguments: String::new(),
        }
    }

    /// SPEC 2.4: the provider's own id while it is unique and plain, else ours, else one made from ours.
    #[test]
    fn ids_are_unique_and_plain() {
        let calls = [
            call("call_1_1", Some("toolu_01")),
            call("call_2_1", Some("toolu_01")),
            call("call_3_1", Some("functions.read:0")),
            call("no id", Some(&"x".repeat(41))),
            call("call_5_1", Some("")),
        ];
        let mut ids = WireIds::new(WireCallIds::Own);
        let written: Vec<String> = calls.iter().map(|call| ids.call(call)).collect();
        assert_eq!(written.get(..3).unwrap(), ["toolu_01", "call_2_1", "call_3_1"]);
        assert!(written.iter().all(|id| is_plain(id)), "{written:?}");
        let distinct: HashSet<&String> = written.iter().collect();
        assert_eq!(distinct.len(), calls.len());
        let mut again = WireIds::new(WireCallIds::Own);
        assert_eq!(calls.iter().map(|call| again.call(call)).collect::<Vec<_>>(), written);
    }

    /// SPEC 2.7: one result to a call.
    #[test]
    fn a_result_has_the_id_of_its_call_once() {
        let one = call("call_1_1", None);
        let mut ids = WireIds::new(WireCallIds::Own);
        assert_eq!(ids.result(&one.id), None);
        let id = ids.call(&one);
        assert_eq!(ids.result(&one.id), Some(id));
        assert_eq!(ids.result(&one.id), None);
    }

    /// SPEC 7.5: nine letters and digits.
    #[test]
    fn nine() {
        let mut ids = WireIds::new(WireCallIds::NineCharacters);
        let id = ids.call(&call("call_1_1", Some("toolu_01")));
        assert!(
            id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
            "{id}"
        );
    }
}
