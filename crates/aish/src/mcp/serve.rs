//! `aish mcp serve`: aish's own tools for other MCP clients (SPEC 6.10), behind the same gate and in the same ledger as a model's
//! calls.
//!
//! The protocol is [`aish_mcp::serve`]; here is what stands behind it: which tools (`offer`), what a call is for the engine
//! (`caller`, `lane`), and which calls run or wait (`calls`). Standard output carries the protocol and nothing else.

use crate::app::App;
use crate::failure::{DONE, Failure};
use crate::oneshot::eprint_line;
use crate::signals;
use crate::token::{Entry, Wanted};
use aish_engine::Engine;
use aish_mcp::serve::{Backend, http, stdio};
use aish_tools::Cancel;
use calls::Calls;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;

mod caller;
mod calls;
mod lane;
mod offer;

pub use caller::CALLER;

/// Where the token is taken from when nothing else is named.
const TOKEN_VARIABLE: &str = "AISH_MCP_SERVE_TOKEN";

/// How clients come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Door {
    /// One, over standard input and output.
    Stdio,
    /// Any number, over HTTP.
    Http {
        /// At this address.
        address: SocketAddr,
        /// Showing this.
        token: Wanted,
    },
}

impl Door {
    /// As the command line says it: `--http`, `--token-env`, `--no-token`.
    pub fn of(http: Option<SocketAddr>, token_variable: Option<&str>, is_open: bool) -> Self {
        http.map_or(Self::Stdio, |address| Self::Http {
            address,
            token: Wanted::of(token_variable, is_open),
        })
    }
}

/// Serves until the client goes, or somebody asks this program to end.
///
/// # Errors
/// It cannot serve there, or the token is not there.
pub async fn run(app: &App, door: &Door) -> Result<u8, Failure> {
    for remark in &app.remarks {
        eprint_line(remark);
    }
    let stop = signals::end_asked();
    let (engine, _) = app.engine_without_model();
    let place = Place::of(app, door, &engine).await?;
    let calls = Calls::new(engine, app.paths.config_file.clone());
    let served = place.serve(Arc::new(calls.clone()), stop).await;
    calls.close().await;
    served.map(|()| DONE)
}

/// Where clients come to.
enum Place {
    Stdio,
    Http { listener: TcpListener, entry: Entry },
}

impl Place {
    /// Listens where that door is, and says so; the token is kept from what the engine runs.
    async fn of(app: &App, door: &Door, engine: &Engine) -> Result<Self, Failure> {
        let Door::Http { address, token } = door else {
            return Ok(Self::Stdio);
        };
        let usual = || Entry::in_variable(&app.environment, TOKEN_VARIABLE)?.map_or_else(Entry::made, Ok);
        let entry = Entry::find(token, *address, &app.environment, usual)?;
        entry.hide(engine);
        let cannot = |error| Failure::failed(format!("cannot serve at {address}: {error}"));
        let listener = TcpListener::bind(address).await.map_err(cannot)?;
        let bound = listener.local_addr().map_err(cannot)?;
        eprint_line(&format!("serving MCP at http://{bound}{}", http::PATH));
        entry.tell(bound);
        Ok(Self::Http { listener, entry })
    }

    async fn serve(self, backend: Arc<dyn Backend>, stop: Cancel) -> Result<(), Failure> {
        match self {
            Self::Stdio => stdio::serve(backend, std::io::stdin(), std::io::stdout(), stop)
                .await
                .map_err(|error| Failure::failed(format!("cannot serve on standard input and output: {error}"))),
            Self::Http { listener, entry } => http::serve(backend, listener, entry.into_token(), stop)
                .await
                .map_err(|error| Failure::failed(format!("cannot serve over HTTP: {error}"))),
        }
    }
}
