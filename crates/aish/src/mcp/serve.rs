//! `aish mcp serve`: aish's own tools for other MCP clients (SPEC 6.10), behind the same gate and in the same ledger as a model's
//! calls.
//!
//! The protocol is [`aish_mcp::serve`]; here is what stands behind it: which tools (`offer`), what a call is for the engine
//! (`caller`, `lane`), and which calls run or wait (`calls`). Standard output carries the protocol and nothing else.

use crate::app::App;
use crate::failure::{DONE, Failure};
use crate::oneshot::eprint_line;
use crate::{signals, token};
use aish_core::secret::Secret;
use aish_mcp::serve::{Backend, http, stdio};
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
        token: Token,
    },
}

/// Where the token of HTTP clients comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// The usual variable, or else made anew and shown once.
    Usual,
    /// This variable.
    Variable(String),
    /// There is none: everybody on this machine is let in.
    Nobody,
}

impl Door {
    /// As the command line says it: `--http`, `--token-env`, `--no-token`.
    pub fn of(http: Option<SocketAddr>, token_variable: Option<&str>, is_open: bool) -> Self {
        let Some(address) = http else {
            return Self::Stdio;
        };
        let token = match token_variable {
            Some(name) => Token::Variable(name.to_owned()),
            None if is_open => Token::Nobody,
            None => Token::Usual,
        };
        Self::Http { address, token }
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
    let (engine, _) = app.engine_without_model();
    if let Door::Http {
        token: Token::Variable(name),
        ..
    } = door
    {
        token::withhold(&engine, name);
    }
    let calls = Calls::new(engine, app.paths.config_file.clone());
    let served = serve(app, door, Arc::new(calls.clone())).await;
    calls.close().await;
    served.map(|()| DONE)
}

async fn serve(app: &App, door: &Door, backend: Arc<dyn Backend>) -> Result<(), Failure> {
    let stop = signals::end_asked();
    match door {
        Door::Stdio => stdio::serve(backend, std::io::stdin(), std::io::stdout(), stop)
            .await
            .map_err(|error| Failure::failed(format!("cannot serve on standard input and output: {error}"))),
        Door::Http { address, token } => {
            let token = token_for(app, token)?;
            if token.is_none() && !address.ip().is_loopback() {
                let message = format!("--no-token is for this machine itself; {} is not", address.ip());
                return Err(Failure::usage(message).hint("e.g. --http 127.0.0.1:8764"));
            }
            let cannot = |error| Failure::failed(format!("cannot serve at {address}: {error}"));
            let listener = TcpListener::bind(address).await.map_err(cannot)?;
            let bound = listener.local_addr().map_err(cannot)?;
            tell(bound, token.as_ref());
            http::serve(backend, listener, token.map(|(token, _)| token), stop)
                .await
                .map_err(cannot)
        }
    }
}

/// Whether somebody knows the token already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Yes,
    No,
}

/// The token, and whether it must be shown.
fn token_for(app: &App, token: &Token) -> Result<Option<(Secret, Known)>, Failure> {
    let name = match token {
        Token::Nobody => return Ok(None),
        Token::Usual => TOKEN_VARIABLE,
        Token::Variable(name) => name,
    };
    match (token::in_variable(&app.environment, name)?, token) {
        (Some(set), _) => Ok(Some((set, Known::Yes))),
        (None, Token::Variable(name)) => token::named(&app.environment, name).map(|token| Some((token, Known::Yes))),
        (None, Token::Usual | Token::Nobody) => token::fresh().map(|token| Some((token, Known::No))),
    }
}

fn tell(bound: SocketAddr, token: Option<&(Secret, Known)>) {
    eprint_line(&format!("serving MCP at http://{bound}{}", http::PATH));
    match token {
        Some((token, Known::No)) => eprint_line(&format!(
            "clients show this token, which holds until this program ends: {}",
            token.expose()
        )),
        Some((_, Known::Yes)) => {}
        None => eprint_line("NO TOKEN: every program and every user of this machine may call aish's tools"),
    }
    if !bound.ip().is_loopback() {
        eprint_line("what is said is not encrypted, the token included: put a TLS proxy in front of it");
    }
}
