//! `aish serve`: conversations over HTTP (SPEC 9).
//!
//! The server is [`aish_server`]; here is what it is given: where to listen, who is let in, which ledger, which model and tools.

use crate::app::{App, begin_with};
use crate::cli::Serve;
use crate::failure::{DONE, Failure};
use crate::mcp::{Begin, Mcp};
use crate::oneshot::eprint_line;
use crate::signals;
use crate::token::{Entry, Wanted};
use aish_engine::{Conversations, ConversationsSettings};
use aish_server::Settings;
use ledger::Ledger;
use rustix::process::{Resource, getrlimit, setrlimit};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;

pub mod ledger;
mod watched;

/// Open files that connections may need. Commands that a model runs inherit the limit, and some look at every number below it.
const OPEN_FILES: u64 = 16_384;
/// The file that holds the token, beside the ledger.
const TOKEN_FILE: &str = "serve-token";

/// Serves until somebody asks this program to end.
///
/// # Errors
/// It cannot listen there, the ledger cannot be used, or the token is not there.
pub async fn run(app: &App, wanted: &Serve) -> Result<u8, Failure> {
    let stop = signals::end_asked();
    let address = address(app, wanted)?;
    let token = Wanted::of(wanted.token_env.as_deref(), wanted.no_token);
    let usual = || Entry::in_file(&app.paths.data_dir.join(TOKEN_FILE));
    let entry = Entry::find(&token, address, &app.environment, usual)?;
    let ledger = Ledger::open(app, wanted.store.as_deref()).await?;
    let (engine, registry) = app.engine_over(Arc::clone(&ledger.store));
    entry.hide(&engine);
    ledger.hide(&engine);
    match registry.choose(app.wanted_model()).await {
        Ok(Some(chosen)) => {
            for remark in chosen.remarks() {
                eprint_line(&engine.redactor.redact(&remark));
            }
            begin_with(&engine, chosen.name, app.config().tools.max_result_chars);
        }
        Ok(None) => eprint_line("no model is configured or found; requests have to name one that is"),
        Err(_) => return Err(registry.absence().failure(&engine.redactor)),
    }
    let log = watched::log(wanted.log)?;
    let traces = watched::traces(app.config().serve.otlp_endpoint.as_deref(), &registry)?;
    let cannot = |error| Failure::failed(format!("cannot serve at {address}: {error}"));
    allow_open_files();
    let listener = TcpListener::bind(address).await.map_err(cannot)?;
    let bound = listener.local_addr().map_err(cannot)?;
    let mcp = Mcp::start(app, &engine, &registry, Begin::AtOnce);
    let redactor = engine.redactor.clone();
    mcp.listen(Arc::new(move |line| eprint_line(&redactor.redact(line))));
    let config = &app.config().serve;
    let conversations = Conversations::new(
        engine,
        ConversationsSettings {
            pending_ttl_ms: Some(config.pending_ttl_s.saturating_mul(1_000)),
            strict_call_id: config.strict_call_id,
            turns_max: config.turns_max,
        },
    );
    entry.tell(bound);
    eprint_line(&format!("listening on http://{bound}"));
    let settings = Settings {
        token: entry.into_token(),
        hosts: config.hosts.clone(),
        log,
        traces,
    };
    let served = aish_server::serve(conversations, listener, settings, stop).await;
    mcp.close().await;
    served.map_err(cannot)?;
    Ok(DONE)
}

/// Raises this process's limit on open files as far as it may, and no further than is of use: shells usually set 1024.
fn allow_open_files() {
    let mut limits = getrlimit(Resource::Nofile);
    let most = limits.maximum.map_or(OPEN_FILES, |most| most.min(OPEN_FILES));
    if limits.current.is_some_and(|current| current < most) {
        limits.current = Some(most);
        // With fewer, connections wait for their turn.
        let _ = setrlimit(Resource::Nofile, limits);
    }
}

fn address(app: &App, wanted: &Serve) -> Result<SocketAddr, Failure> {
    let text = &app.config().serve.listen;
    wanted.listen.map_or_else(
        || {
            text.parse().map_err(|_| {
                Failure::usage(format!("serve.listen: {text:?} is no address with a port"))
                    .hint("e.g. 127.0.0.1:8765, or [::1]:8765")
            })
        },
        Ok,
    )
}
