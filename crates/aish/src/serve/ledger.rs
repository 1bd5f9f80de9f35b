//! The ledger that is served: SQLite in the data directory, or PostgreSQL at an address, whose password stays here.

use crate::app::App;
use crate::failure::Failure;
use crate::token::withhold;
use aish_engine::Engine;
use aish_store::postgres::{PostgresStore, PostgresUrl};
use aish_store::{SessionFilter, Store, StoreError};
use std::sync::Arc;

/// The setting that says where the ledger is, which is what its secrets are called.
pub const SETTING: &str = "serve.store";
/// Where PostgreSQL's own programs find a password.
const PASSWORD_VARIABLE: &str = "PGPASSWORD";

/// Whose a variable with a password is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variable {
    /// The ledger's: it is no business of a command.
    Ours,
    /// The commands': the ledger has no use for it.
    Theirs,
}

/// A ledger that is open.
pub struct Ledger {
    /// It.
    pub store: Arc<dyn Store>,
    /// Where it is, for people: a path, or an address without its password.
    pub place: String,
    variable: Variable,
}

impl Ledger {
    /// Opens the one of `--store`, else of the configuration, else the usual one: one that cannot be used is told before anybody is
    /// served. From then on its password is in no text that leaves the process.
    ///
    /// # Errors
    /// The address is none, or the ledger there cannot be used.
    pub async fn open(app: &App, wanted: Option<&str>) -> Result<Self, Failure> {
        let Some(address) = wanted.or(app.config().serve.store.as_deref()) else {
            return Self::usual(app).await;
        };
        let variable = |name: &str| app.environment.text(name).map(str::to_owned);
        let unreadable = |error: StoreError| Failure::usage(error.to_string());
        let written = PostgresUrl::parse(address).map_err(unreadable)?;
        let url = written.clone().with_environment(variable).map_err(unreadable)?;
        let password = url.password().map(str::to_owned);
        let is_from_variable = written.password().is_none() && app.environment.text(PASSWORD_VARIABLE).is_some();
        for secret in secrets_of(address).iter().chain(&password) {
            app.redactor().learn(SETTING, secret);
        }
        let place = url.to_string();
        let store = PostgresStore::new(url)?;
        store.check().await.map_err(|error| {
            Failure::failed(error.to_string())
                .hint("check that the database runs and lets this machine in, as `psql` does")
        })?;
        Ok(Self {
            store: Arc::new(store),
            place,
            variable: if is_from_variable {
                Variable::Ours
            } else {
                Variable::Theirs
            },
        })
    }

    async fn usual(app: &App) -> Result<Self, Failure> {
        let store = app.store();
        let one = SessionFilter {
            limit: Some(1),
            ..SessionFilter::default()
        };
        store.list(one).await?;
        Ok(Self {
            store,
            place: app.paths.ledger.display().to_string(),
            variable: Variable::Theirs,
        })
    }

    /// Keeps its password from the commands of models.
    pub fn hide(&self, engine: &Engine) {
        match self.variable {
            Variable::Ours => withhold(engine, PASSWORD_VARIABLE),
            Variable::Theirs => {}
        }
    }
}

/// The passwords that an address of PostgreSQL has in it, as they are written there and as they are meant.
pub fn secrets_of(address: &str) -> Vec<String> {
    let parsed = PostgresUrl::parse(address).ok();
    let Some(password) = parsed.as_ref().and_then(PostgresUrl::password) else {
        // Without one the user's name would pass for it.
        return Vec::new();
    };
    let mut secrets = aish_provider::http::secrets_of(address);
    secrets.push(password.to_owned());
    secrets
}
