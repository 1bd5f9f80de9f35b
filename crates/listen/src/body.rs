//! Bodies read whole: each within its bounds, and all that are under way within theirs.

use crate::Refusal;
use http::Request;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body as _, Bytes, Incoming};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Reads the bodies of requests.
#[derive(Clone, Debug)]
pub struct Bodies {
    bytes_max: usize,
    timeout: Duration,
    room: Arc<Semaphore>,
}

/// The room that a body takes; it rides on the request, so that the room is free again when the request was read.
#[derive(Clone)]
struct Room {
    _bytes: Arc<OwnedSemaphorePermit>,
}

impl Bodies {
    /// Takes bodies of `bytes_max` each and `together_bytes_max` at once (never less than one body), each within `timeout`.
    pub fn new(bytes_max: usize, together_bytes_max: usize, timeout: Duration) -> Self {
        let together = together_bytes_max.clamp(bytes_max, Semaphore::MAX_PERMITS);
        Self {
            bytes_max,
            timeout,
            room: Arc::new(Semaphore::new(together)),
        }
    }

    /// The request with its body read whole.
    ///
    /// # Errors
    /// The body is too long, too late, or broke off; or so much is on its way that there was no room in time.
    pub async fn read(&self, request: Request<Incoming>) -> Result<Request<Bytes>, Refusal> {
        let (mut head, body) = request.into_parts();
        if body.is_end_stream() {
            return Ok(Request::from_parts(head, Bytes::new()));
        }
        let hint = body.size_hint();
        let least = usize::try_from(hint.lower()).unwrap_or(usize::MAX);
        if least > self.bytes_max {
            return Err(Refusal::BodyTooLong);
        }
        // One that does not say how long it is may become as long as any.
        let most = hint.exact().map_or(self.bytes_max, |_| least);
        let started = tokio::time::Instant::now();
        let wanted = Arc::clone(&self.room).acquire_many_owned(u32::try_from(most).unwrap_or(u32::MAX));
        let room = match tokio::time::timeout(self.timeout, wanted).await {
            Ok(Ok(room)) => room,
            Ok(Err(_)) | Err(_) => return Err(Refusal::Busy),
        };
        let reading = Limited::new(body, self.bytes_max).collect();
        let bytes = match tokio::time::timeout_at(started + self.timeout, reading).await {
            Ok(Ok(read)) => read.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => return Err(Refusal::BodyTooLong),
            Ok(Err(_)) => return Err(Refusal::BodyBroken),
            Err(_) => return Err(Refusal::BodyLate),
        };
        head.extensions.insert(Room { _bytes: Arc::new(room) });
        Ok(Request::from_parts(head, bytes))
    }
}
