//! Served mode (SPEC 9): conversations over HTTP that wait for their client.
//!
//! The turns are the engine's ([`Conversations`]); what stands between a socket and a request is [`aish_listen`]'s. Here is what is
//! between them: which path does what (`routes`), what a request must say (`request`, `json`, `query`) and is answered (`envelope`),
//! how every refusal looks ([`ApiError`]), how a session is read and followed (`batches`, `stream`, `standings`), what is said of it all
//! (`telemetry`, `ready`), and the page. What the API is, for programs, is `docs/openapi.json`: generated from the types of this crate,
//! and a test says when it is not theirs any more.
//!
//! Nothing here reads the configuration, and the ledger is reached through the engine.

mod batches;
mod envelope;
mod error;
mod gateway;
mod json;
mod log;
mod metrics;
#[cfg(test)]
mod openapi_tests;
mod page;
mod query;
mod ready;
mod request;
mod routes;
mod standings;
mod stream;
mod telemetry;
mod trace;

pub use error::{ApiError, ErrorKind};
pub use log::{Log, LogForm};
pub use trace::Traces;

use aish_core::secret::Secret;
use aish_engine::{Conversations, Observer};
use aish_listen::{Guard, Limits, Stop};
use axum::Router;
use gateway::Gateway;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use telemetry::Telemetry;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Connections at once. Most of them follow a session and do nothing.
const CONNECTIONS_MAX: usize = 8_192;
/// Of them such as have shown no token: each may hold a head of 64 KB.
const NEWCOMERS_MAX: usize = 512;
/// How long a connection has until a first request of it is let in.
const ADMISSION_TIMEOUT_S: u64 = 10;
/// How long answers may take to be sent once all turns have been left.
const DRAIN_TIMEOUT_MS: u64 = 1_000;

/// Who is let in, and who is told what happens.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The bearer token; `None` lets everybody in who is on this machine.
    pub token: Option<Secret>,
    /// Further names the server is known by: those of a proxy that speaks TLS in front of it.
    pub hosts: Vec<String>,
    /// Where a line for each request and each run of a turn goes.
    pub log: Option<Log>,
    /// Where traces go.
    pub traces: Option<Traces>,
}

/// Serves until `stop` turns true. Then it is not ready any more and begins no turn, those that run come to a point where they can
/// be left (seconds at most), and what is left of connections is cut.
///
/// # Errors
/// The listener has no address, or one that others can reach and there is no token.
pub async fn serve(
    conversations: Arc<Conversations>,
    listener: TcpListener,
    settings: Settings,
    mut stop: Stop,
) -> io::Result<()> {
    let guard = Guard::new(listener.local_addr()?, settings.token, settings.hosts)?;
    let limits = Limits {
        connections_max: CONNECTIONS_MAX,
        newcomers_max: NEWCOMERS_MAX,
        admission_timeout: Duration::from_secs(ADMISSION_TIMEOUT_S),
        drain_timeout: Duration::from_millis(DRAIN_TIMEOUT_MS),
        ..Limits::default()
    };
    let telemetry = Telemetry::new(&conversations, settings.log, settings.traces);
    let router = observed(&conversations, &telemetry);
    let gateway = Gateway::new(router, routes::is_open, Arc::clone(&telemetry));
    let (close, closed) = watch::channel(false);
    let serving = aish_listen::serve(gateway, listener, (guard, limits), closed);
    let draining = async {
        if stop.wait_for(|stop| *stop).await.is_err() {
            // Nobody can say so any more.
            std::future::pending::<()>().await;
        }
        // Whoever asks meanwhile is told to come again, or to ask another server.
        conversations.drain().await;
        close.send_replace(true);
        std::future::pending::<()>().await;
    };
    let keeping = async {
        Arc::clone(&conversations).keep().await;
        std::future::pending::<()>().await;
    };
    let served = tokio::select! {
        served = serving => served,
        () = draining => Ok(()),
        () = keeping => Ok(()),
        () = telemetry.run() => Ok(()),
    };
    telemetry.finish().await;
    served
}

/// All routes, without what lets requests in: for tests, and for programs that bring their own listener.
pub fn router(conversations: Arc<Conversations>) -> Router {
    observed(&conversations, &Telemetry::new(&conversations, None, None))
}

fn observed(conversations: &Arc<Conversations>, telemetry: &Arc<Telemetry>) -> Router {
    conversations.observe(Arc::clone(telemetry) as Arc<dyn Observer>);
    routes::router(Arc::clone(conversations), Arc::clone(telemetry))
}
