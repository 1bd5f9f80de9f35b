//! An HTTP/1 listener that may be left open: what stands between a socket and whoever answers requests.
//!
//! A [`Service`] answers; [`serve`] brings it requests that were let in: the right `Host` and `Origin`, the token ([`Guard`]),
//! a head that came in time and is not too long, no more connections than there is room for, and among those that have shown
//! nothing yet the oldest goes first (`newcomers`). [`Bodies`] reads bodies within their bounds. A peer that takes nothing of its
//! answer is cut (`wire`). Every request has an id ([`RequestId`]) and every answer says it.
//!
//! What hyper itself refuses, a head that is no HTTP or too long, is answered with its status and no body.
//!
//! ```no_run
//! # use aish_listen::{Guard, Limits, Refusal, RequestId, Service, serve};
//! # use http::{Request, Response};
//! # use http_body_util::Full;
//! # use hyper::body::{Bytes, Incoming};
//! struct Echo;
//!
//! impl Service for Echo {
//!     type Body = Full<Bytes>;
//!     async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
//!         Response::new(Full::from(request.uri().path().to_owned()))
//!     }
//!     fn refuse(&self, refusal: Refusal, _: &RequestId) -> Response<Full<Bytes>> {
//!         refusal.answer(Full::from(refusal.message()))
//!     }
//! }
//!
//! # async fn run(stop: tokio::sync::watch::Receiver<bool>) -> std::io::Result<()> {
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! let guard = Guard::new(listener.local_addr()?, None, Vec::new())?;
//! serve(Echo, listener, (guard, Limits::default()), stop).await
//! # }
//! ```

mod body;
mod connection;
mod guard;
mod newcomers;
mod refusal;
mod request_id;
mod wire;

pub use body::Bodies;
pub use guard::Guard;
pub use refusal::Refusal;
pub use request_id::{REQUEST_ID, RequestId};

use connection::Shared;
use http::{Request, Response};
use hyper::body::{Body, Bytes, Incoming};
use newcomers::Newcomers;
use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

/// Turns true when something is to end.
pub type Stop = watch::Receiver<bool>;

/// How long to wait after no connection could be accepted, e.g. for want of file descriptors.
const ACCEPT_PAUSE_MS: u64 = 100;

/// Whoever answers requests that were let in.
pub trait Service: Send + Sync + 'static {
    /// What its answers carry.
    type Body: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static;

    /// Answers a request. Its [`RequestId`] is among its extensions. The future is dropped when the client hangs up.
    fn answer(&self, request: Request<Incoming>) -> impl Future<Output = Response<Self::Body>> + Send;

    /// How a refusal looks; see [`Refusal::answer`].
    fn refuse(&self, refusal: Refusal, id: &RequestId) -> Response<Self::Body>;

    /// So many connections are open now, for whoever counts.
    fn connections(&self, _count: usize) {}

    /// Whether a path needs no token. `Host` and `Origin` are checked all the same, and a connection that asks for nothing else stays
    /// a newcomer: it goes first when room is short.
    fn is_open(&self, _path: &str) -> bool {
        false
    }
}

/// What clients may take; the defaults are for a few clients that are programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once; more wait, or take the place of a newcomer.
    pub connections_max: usize,
    /// Connections at once of which no request was let in with the token: what they send is held in memory for nothing.
    pub newcomers_max: usize,
    /// How long a connection has until a first request of it is let in.
    pub admission_timeout: Duration,
    /// How long the head of a request may take to arrive, and how long a connection may lie idle.
    pub head_timeout: Duration,
    /// Bytes of the head of a request, and of what is read at a time.
    pub head_bytes_max: usize,
    /// How long a peer may take no byte of what is sent to it.
    pub write_timeout: Duration,
    /// How long open requests may take when it all ends.
    pub drain_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 64,
            newcomers_max: 64,
            admission_timeout: Duration::from_secs(3),
            head_timeout: Duration::from_secs(10),
            head_bytes_max: 64 * 1024,
            write_timeout: Duration::from_secs(30),
            drain_timeout: Duration::from_secs(1),
        }
    }
}

/// Serves until `stop` turns true; then no connection is accepted any more, requests that are being answered have
/// [`Limits::drain_timeout`] to come to their end, and the rest is cut.
pub async fn serve<S: Service>(
    service: S,
    listener: TcpListener,
    (guard, limits): (Guard, Limits),
    mut stop: Stop,
) -> io::Result<()> {
    let newcomers = Arc::new(Newcomers::new(limits.newcomers_max, limits.admission_timeout));
    let room = Arc::new(Semaphore::new(limits.connections_max));
    let shared = Arc::new(Shared {
        service,
        guard,
        limits,
        newcomers,
    });
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = stopped(&mut stop) => break,
            accepted = accept(&listener, &room, &shared.newcomers) => accepted,
        };
        let Some((stream, place)) = accepted else { continue };
        let (shared, stop, room) = (Arc::clone(&shared), stop.clone(), Arc::clone(&room));
        connections.spawn(async move {
            shared.count(&room);
            shared.connection(stream, stop).await;
            drop(place);
            shared.count(&room);
        });
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    let drain = async { while connections.join_next().await.is_some() {} };
    // What is not over by then is dropped with the set.
    let _ = tokio::time::timeout(shared.limits.drain_timeout, drain).await;
    Ok(())
}

/// The next connection, once there is room for it; `None` when it could not be had.
async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
    newcomers: &Newcomers,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let Ok((stream, _)) = listener.accept().await else {
        tokio::time::sleep(Duration::from_millis(ACCEPT_PAUSE_MS)).await;
        return None;
    };
    // An answer goes out in small pieces as it comes; that this cannot be said of a socket costs milliseconds only.
    let _ = stream.set_nodelay(true);
    if let Ok(place) = Arc::clone(room).try_acquire_owned() {
        return Some((stream, place));
    }
    newcomers.make_room();
    let place = Arc::clone(room).acquire_owned().await.ok()?;
    Some((stream, place))
}

/// Ready when it is to end; never when nobody can say so any more.
async fn stopped(stop: &mut Stop) {
    if stop.wait_for(|is_over| *is_over).await.is_err() {
        std::future::pending::<()>().await;
    }
}
