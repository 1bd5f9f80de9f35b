//! One connection from its first byte to its last.

use crate::guard::{Admitted, Guard};
use crate::newcomers::{Newcomer, Newcomers};
use crate::wire::{Linger, Wire};
use crate::{Limits, REQUEST_ID, Refusal, RequestId, Service, Stop, stopped};
use http::header::CONNECTION;
use http::{Request, Response};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

/// What all connections share.
pub(crate) struct Shared<S> {
    pub(crate) service: S,
    pub(crate) guard: Guard,
    pub(crate) limits: Limits,
    pub(crate) newcomers: Arc<Newcomers>,
}

/// Bytes of a header besides its name and value, and of a head besides method, path and headers.
const HEADER_BYTES: usize = ": \r\n".len();
const HEAD_BYTES: usize = "  HTTP/1.1\r\n\r\n".len();

/// Whether a request said more than was read of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sent {
    HeadOnly,
    Body,
}

impl<S: Service> Shared<S> {
    /// Answers the requests of one connection. That it broke is the client's affair.
    pub(crate) async fn connection(&self, stream: TcpStream, mut stop: Stop) {
        let (newcomer, sent_away) = self.newcomers.arrive();
        let linger = Linger::default();
        let answering = service_fn(|request: Request<Incoming>| async {
            let sent = match request.body().is_end_stream() {
                true => Sent::HeadOnly,
                false => Sent::Body,
            };
            let answer = self.answer(request, &newcomer).await;
            // What is still on its way would reset the connection, and the answer be lost with it.
            if sent == Sent::Body && answer.headers().contains_key(CONNECTION) {
                linger.ask();
            }
            Ok::<_, Infallible>(answer)
        });
        let wire = Wire::new(stream, self.limits.write_timeout, linger.clone());
        let serving = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.head_timeout)
            .max_buf_size(self.limits.head_bytes_max)
            .serve_connection(TokioIo::new(wire), answering);
        let mut serving = std::pin::pin!(serving);
        tokio::select! {
            _ = &mut serving => return,
            () = sent_away => return,
            () = stopped(&mut stop) => serving.as_mut().graceful_shutdown(),
        }
        let _ = serving.await;
    }

    /// Says how many connections there are.
    pub(crate) fn count(&self, room: &Semaphore) {
        let open = self.limits.connections_max.saturating_sub(room.available_permits());
        self.service.connections(open);
    }

    async fn answer(&self, mut request: Request<Incoming>, newcomer: &Newcomer) -> Response<S::Body> {
        let id = RequestId::of(request.headers());
        let is_open = self.service.is_open(request.uri().path());
        // What is read at a time may hold more than a head may have.
        let admitted = if head_bytes(&request) > self.limits.head_bytes_max {
            Err(Refusal::HeadTooLong)
        } else {
            self.guard.admit(request.headers())
        };
        let mut answer = match admitted {
            Ok(Admitted::Known) => {
                newcomer.admit();
                request.extensions_mut().insert(id.clone());
                self.service.answer(request).await
            }
            Ok(Admitted::Stranger) if is_open => {
                newcomer.stay();
                request.extensions_mut().insert(id.clone());
                self.service.answer(request).await
            }
            Ok(Admitted::Stranger) => self.service.refuse(Refusal::Token, &id),
            Err(refusal) => self.service.refuse(refusal, &id),
        };
        answer.headers_mut().insert(REQUEST_ID, id.header());
        answer
    }
}

/// The length of a request's head as it is usually written.
fn head_bytes<B>(request: &Request<B>) -> usize {
    let path = request.uri().path_and_query().map_or(0, |path| path.as_str().len());
    let headers = request.headers().iter();
    let lines = headers.map(|(name, value)| name.as_str().len() + value.len() + HEADER_BYTES);
    request.method().as_str().len() + path + HEAD_BYTES + lines.sum::<usize>()
}
