//! `aish serve`: conversations over HTTP (SPEC 9).
//!
//! The server is [`aish_server`]; here is what it is given: where to listen, who is let in, which ledger, which model and tools.

use crate::app::{App, begin_with};
use crate::cli::Serve;
use crate::failure::{DONE, Failure};
use crate::mcp::{Begin, Mcp};
use crate::oneshot::eprint_line;
use crate::{signals, token};
use aish_core::secret::Secret;
use aish_engine::{Conversations, ConversationsSettings};
use aish_server::Settings;
use aish_store::postgres::{PostgresStore, PostgresUrl};
use aish_store::{SessionFilter, Store};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::TcpListener;

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
    let entry = Entry::of(app, wanted, address)?;
    let store = open_store(app, wanted).await?;
    let (engine, registry) = app.engine_over(store);
    if let Some(token) = &entry.token {
        engine.redactor.learn(TOKEN_FILE, token.expose());
    }
    if let Some(name) = &wanted.token_env {
        token::withhold(&engine, name);
    }
    // The ledger's password is no business of a command.
    token::withhold(&engine, "PGPASSWORD");
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
    let settings = Settings {
        token: entry.token,
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

/// Who is let in.
struct Entry {
    token: Option<Secret>,
    /// Where clients find it, if it is in a file.
    file: Option<PathBuf>,
}

impl Entry {
    fn of(app: &App, wanted: &Serve, address: SocketAddr) -> Result<Self, Failure> {
        if wanted.no_token {
            if !address.ip().is_loopback() {
                let message = format!("--no-token is for this machine itself; {} is not", address.ip());
                return Err(Failure::usage(message).hint("e.g. --listen 127.0.0.1:8765"));
            }
            return Ok(Self {
                token: None,
                file: None,
            });
        }
        if let Some(name) = &wanted.token_env {
            let token = Some(token::named(&app.environment, name)?);
            return Ok(Self { token, file: None });
        }
        let file = app.paths.data_dir.join(TOKEN_FILE);
        Ok(Self {
            token: Some(token::in_file(&file)?),
            file: Some(file),
        })
    }

    fn tell(&self, bound: SocketAddr) {
        if let Some(file) = &self.file {
            eprint_line(&format!("clients show the token in {}", file.display()));
        }
        if self.token.is_none() {
            eprint_line(
                "NO TOKEN: every program and every user of this machine may talk to it, and through it use its tools",
            );
        }
        if !bound.ip().is_loopback() {
            eprint_line("what is said is not encrypted, the token included: put a TLS proxy in front of it");
        }
        eprint_line(&format!("listening on http://{bound}"));
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

/// The ledger: one that cannot be used is told before anybody is served.
async fn open_store(app: &App, wanted: &Serve) -> Result<Arc<dyn Store>, Failure> {
    let url = wanted.store.as_ref().or(app.config().serve.store.as_ref());
    let Some(url) = url else {
        let store = app.store();
        let one = SessionFilter {
            limit: Some(1),
            ..SessionFilter::default()
        };
        store.list(one).await?;
        return Ok(store);
    };
    let variable = |name: &str| app.environment.text(name).map(str::to_owned);
    let address = PostgresUrl::parse(url).and_then(|address| address.with_environment(variable));
    let address = address.map_err(|error| Failure::usage(error.to_string()))?;
    let store = PostgresStore::new(address)?;
    let unusable = |error: aish_store::StoreError| {
        Failure::failed(error.to_string()).hint("check that the database runs and lets this machine in, as `psql` does")
    };
    store.check().await.map_err(unusable)?;
    Ok(Arc::new(store))
}
