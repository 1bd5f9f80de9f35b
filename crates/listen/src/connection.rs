//! One connection from its first byte to its last.

use crate::guard::{Admitted, Guard};
use crate::newcomers::{Newcomer, Newcomers};
use crate::wire::{Linger, Wire};
use crate::{Limits, REQUEST_ID, RequestId, Service, Stop, stopped};
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
        let mut answer = match self.guard.admit(request.headers()) {
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
            Ok(Admitted::Stranger) => self.service.refuse(crate::Refusal::Token, &id),
            Err(refusal) => self.service.refuse(refusal, &id),
        };
        answer.headers_mut().insert(REQUEST_ID, id.header());
        answer
    }
}
