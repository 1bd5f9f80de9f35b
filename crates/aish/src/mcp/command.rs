//! `aish mcp …`: what is configured, what it offers, and changes to the configuration.

use crate::app::App;
use crate::cli::{Mcp as What, Output};
use crate::failure::{DONE, Failure};
use crate::mcp::{Mcp, list, login, serve};
use crate::sessions;

/// Does it.
///
/// # Errors
/// What was asked for cannot be done; says why and what to do.
pub async fn run(app: &App, what: &What, output: Output) -> Result<u8, Failure> {
    match what {
        What::List | What::Tools | What::Tool { .. } => look(app, what, output).await,
        What::Add(_) | What::Remove { .. } | What::Import(_) => Err(Failure::failed("not there yet")),
        What::Login { alias } => login::run(app, alias).await,
        What::Serve { http } => serve::run(app, *http).await,
    }
}

async fn look(app: &App, what: &What, _output: Output) -> Result<u8, Failure> {
    let (engine, registry) = app.engine_without_model();
    let mcp = Mcp::start(app, &engine, &registry);
    let redactor = engine.redactor.clone();
    mcp.listen(std::sync::Arc::new(move |line| {
        crate::oneshot::eprint_line(&redactor.redact(line));
    }));
    mcp.settled().await;
    let servers = mcp.servers().list();
    let told = match what {
        What::Tools => sessions::print(&list::tools(&servers)),
        What::Tool { name } => match list::tool(&servers, name) {
            Some(text) => sessions::print(&text),
            None => Err(Failure::failed(format!("there is no tool {name}")).hint("`aish mcp tools` lists them")),
        },
        What::List | What::Add(_) | What::Remove { .. } | What::Login { .. } | What::Import(_) | What::Serve { .. } => {
            sessions::print(&list::servers(&servers))
        }
    };
    mcp.close().await;
    told.map(|_| DONE)
}
