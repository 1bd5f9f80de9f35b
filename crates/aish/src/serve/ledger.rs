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

/// A ledger that is open.
pub struct Ledger {
    /// It.
    pub store: Arc<dyn Store>,
    /// Where it is, for people: a path, or an address without its password.
    pub place: String,
    /// The variable that the ledger's password is in: it is no business of a command.
    withheld: Option<&'static str>,
}

/// What is found by those who only look.
pub enum Looked {
    /// A ledger.
    There(Ledger),
    /// A database without one, which is there.
    NotYet {
        /// Its address without its password.
        place: String,
    },
}

impl Ledger {
    /// Opens the one of `--store`, else of the configuration, else the usual one: one that cannot be used is told before anybody is
    /// served. From then on its password is in no text that leaves the process.
    ///
    /// # Errors
    /// The address is none, or the ledger there cannot be used.
    pub async fn open(app: &App, wanted: Option<&str>) -> Result<Self, Failure> {
        let Some(database) = Database::find(app, wanted)? else {
            return Self::usual(app).await;
        };
        let store = PostgresStore::new(database.url.clone())?;
        store.check().await.map_err(refused)?;
        Ok(database.holding(store))
    }

    /// Opens the one of the configuration, else the usual one, only to look: others may share a database, so nothing is made
    /// or changed there.
    ///
    /// # Errors
    /// As of [`Ledger::open`], and where the tables are of another version.
    pub async fn look(app: &App) -> Result<Looked, Failure> {
        let Some(database) = Database::find(app, None)? else {
            return Self::usual(app).await.map(Looked::There);
        };
        let store = PostgresStore::only_looking(database.url.clone())?;
        Ok(match store.has_tables().await.map_err(refused)? {
            true => Looked::There(database.holding(store)),
            false => Looked::NotYet {
                place: database.url.to_string(),
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
            withheld: None,
        })
    }

    /// Keeps its password from the commands of models.
    pub fn hide(&self, engine: &Engine) {
        if let Some(variable) = self.withheld {
            withhold(engine, variable);
        }
    }
}

/// Where a database is, and how one gets in.
struct Database {
    url: PostgresUrl,
    withheld: Option<&'static str>,
}

impl Database {
    /// That of an address, else of the configuration, if there is one. From then on its password is in no text that leaves
    /// the process.
    fn find(app: &App, wanted: Option<&str>) -> Result<Option<Self>, Failure> {
        let Some(address) = wanted.or(app.config().serve.store.as_deref()) else {
            return Ok(None);
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
        Ok(Some(Self {
            url,
            // Otherwise it is the commands' own: the ledger has no use for it.
            withheld: is_from_variable.then_some(PASSWORD_VARIABLE),
        }))
    }

    fn holding(self, store: PostgresStore) -> Ledger {
        Ledger {
            store: Arc::new(store),
            place: self.url.to_string(),
            withheld: self.withheld,
        }
    }
}

/// What is said of a database that cannot be used.
fn refused(error: StoreError) -> Failure {
    let failure = Failure::failed(error.to_string());
    if matches!(error, StoreError::Io { .. }) {
        return failure.hint("check that the database runs and lets this machine in, as `psql` does");
    }
    // The others say themselves what to do.
    failure
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
