//! Why requests failed, in our words: what the SDK's errors lose on their way is kept here by the request's id.

use crate::McpError;
use rmcp::model::RequestId;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Failures that wait to be read. Those of requests that nobody waits for any more are never read; the oldest make room.
const FAILURES_MAX: usize = 64;

/// The failures of one connection; clones share them.
///
/// When the SDK reports a request as failed, [`Failures::take`] says why; without an entry the server itself answered with an
/// error, or the connection ended. An entry may be there for a request that is answered after all: only look after a failure.
#[derive(Clone, Debug, Default)]
pub struct Failures(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    of_requests: VecDeque<(RequestId, McpError)>,
    latest: Option<McpError>,
}

impl Failures {
    /// Why this request failed.
    pub fn take(&self, request: &RequestId) -> Option<McpError> {
        let mut kept = self.kept();
        let at = kept.of_requests.iter().position(|(id, _)| id == request)?;
        kept.of_requests.remove(at).map(|(_, error)| error)
    }

    /// The last failure of all, be it that of a notification: why there is no connection, where no request is known to ask for.
    pub fn take_latest(&self) -> Option<McpError> {
        self.kept().latest.take()
    }

    /// Keeps a failure; `None` is whatever is no request.
    pub(super) fn put(&self, request: Option<&RequestId>, error: McpError) {
        let mut kept = self.kept();
        kept.latest = Some(error.clone());
        if let Some(request) = request {
            kept.of_requests.retain(|(id, _)| id != request);
            if kept.of_requests.len() >= FAILURES_MAX {
                kept.of_requests.pop_front();
            }
            kept.of_requests.push_back((request.clone(), error));
        }
    }

    /// A lock that a panic poisoned still guards a whole value: entries are put and taken in one step.
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    /// A failure is read once, and by the request that it belongs to.
    #[test]
    fn each_request_has_its_own() {
        let failures = Failures::default();
        failures.put(
            Some(&RequestId::Number(1)),
            McpError::new(ErrorKind::Status(500), "one"),
        );
        failures.put(Some(&RequestId::Number(2)), McpError::new(ErrorKind::Closed, "two"));
        assert_eq!(failures.take(&RequestId::Number(1)).unwrap().message, "one");
        assert_eq!(failures.take(&RequestId::Number(1)), None);
        assert_eq!(failures.take_latest().unwrap().message, "two");
        assert_eq!(failures.take(&RequestId::Number(2)).unwrap().kind, ErrorKind::Closed);
    }

    /// SPEC 12: failures that nobody reads are bounded.
    #[test]
    fn unread_failures_make_room() {
        let failures = Failures::default();
        for number in 0..1000 {
            failures.put(
                Some(&RequestId::Number(number)),
                McpError::new(ErrorKind::Closed, "gone"),
            );
        }
        assert_eq!(failures.kept().of_requests.len(), FAILURES_MAX);
        assert!(failures.take(&RequestId::Number(999)).is_some());
    }
}
