//! `aish mcp …`: what is configured, what it offers, and changes to the configuration.

use crate::app::App;
use crate::cli::{Mcp as What, Output};
use crate::config::edit::Switch;
use crate::failure::Failure;
use crate::mcp::{login, serve};

mod change;
mod look;
mod take_over;

pub use look::{End, Tried, try_all};

/// Does it.
///
/// # Errors
/// What was asked for cannot be done; says why and what to do.
pub async fn run(app: &App, what: &What, output: Output) -> Result<u8, Failure> {
    match what {
        What::List => look::servers(app, output).await,
        What::Tools => look::tools(app, output).await,
        What::Tool { name } => look::tool(app, name, output).await,
        What::Add(server) => change::add(app, server).await,
        What::Remove { alias } => change::remove(app, alias).await,
        What::Enable { alias } => change::switch(app, alias, Switch::On),
        What::Disable { alias } => change::switch(app, alias, Switch::Off),
        What::Import(import) => take_over::run(app, import),
        What::Login(wanted) => login::run(app, wanted).await,
        What::Serve {
            http,
            token_env,
            no_token,
        } => serve::run(app, &serve::Door::of(*http, token_env.as_deref(), *no_token)).await,
    }
}
