//! `aish mcp …`: what is configured, what it offers, and changes to the configuration.

use crate::app::App;
use crate::cli::Mcp as What;
use crate::failure::{DONE, Failure};
use crate::mcp::{Mcp, list};
use crate::sessions;

/// Does it.
///
/// # Errors
/// What was asked for cannot be done; says why and what to do.
pub async fn run(app: &App, what: &What) -> Result<u8, Failure> {
    let (engine, registry) = app.engine_without_model();
    let mcp = Mcp::start(app, &engine, &registry);
    let redactor = engine.redactor.clone();
    mcp.listen(std::sync::Arc::new(move |line| {
        crate::oneshot::eprint_line(&redactor.redact(line));
    }));
    mcp.settled().await;
    let servers = mcp.servers().list();
    let told = match what {
        What::List => sessions::print(&list::servers(&servers)),
        What::Tools => sessions::print(&list::tools(&servers)),
        What::Tool { name } => match list::tool(&servers, name) {
            Some(text) => sessions::print(&text),
            None => Err(Failure::usage(format!("there is no tool {name}")).hint("`aish mcp tools` lists them")),
        },
    };
    mcp.close().await;
    told.map(|_| DONE)
}
