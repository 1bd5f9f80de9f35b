//! The tokens of this person: for each server what was allowed, by whom and to whom, kept where the program wants them.
//!
//! A token belongs to an alias *and* an address: a server that is configured to be somewhere else gets nothing. The file is read
//! back as if anybody had written it.

use super::client::{Client, Method};
use super::grant::Grant;
use crate::http::credentials::of_token;
use aish_core::redact::Redactor;
use aish_core::secret::Secret;
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use url::Url;

/// Servers that tokens are kept for; the oldest make room.
const ENTRIES_MAX: usize = 200;
/// The form of the file.
const FORM: u32 = 1;

/// Where the text with the tokens is kept. Whatever keeps it must keep it from everybody else.
pub trait Shelf: Send + Sync {
    /// The text; `None` when there is none yet. Bounded.
    ///
    /// # Errors
    /// It cannot be read.
    fn read(&self) -> io::Result<Option<String>>;

    /// Puts another text in its place, whole or not at all.
    ///
    /// # Errors
    /// It cannot be written.
    fn write(&self, text: &str) -> io::Result<()>;

    /// Keeps other processes from changing it until the answer is dropped. May block for a short while.
    ///
    /// # Errors
    /// Somebody else had it for too long.
    fn lock(&self) -> io::Result<Box<dyn Send>>;
}

/// All tokens; clones share them.
#[derive(Clone)]
pub struct Keyring(Arc<Shared>);

struct Shared {
    shelf: Option<Box<dyn Shelf>>,
    /// What is known; `None` before the shelf was read.
    entries: Mutex<Option<Vec<Entry>>>,
    /// Held while one is refreshed: a refresh token is good for one use.
    changing: tokio::sync::Mutex<()>,
    /// What requests were last refused with in this process, by server; bounded by the servers there are.
    challenges: Mutex<Vec<(Place, String)>>,
    /// Hears of every secret that is kept here.
    redactor: Redactor,
}

/// Whose token it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    alias: String,
    /// The address without query and credentials.
    url: String,
}

impl Place {
    pub(super) fn new(alias: &str, url: &Url) -> Self {
        Self {
            alias: alias.to_owned(),
            url: crate::http::without_credentials(url),
        }
    }
}

/// What is kept of one login.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) place: Place,
    /// The server's own name, which every request for a token carries.
    pub(super) resource: String,
    /// Who gave the tokens, and where. They are shown to nobody else.
    pub(super) token_endpoint: Url,
    pub(super) client: Client,
    pub(super) grant: Grant,
    /// What the server asked for beyond that; the next login asks for it too.
    pub(super) wanted: Vec<String>,
}

/// The file's whole form.
#[derive(Serialize, Deserialize)]
struct Written {
    form: u32,
    servers: Vec<WrittenEntry>,
}

#[derive(Serialize, Deserialize)]
struct WrittenEntry {
    #[serde(flatten)]
    place: Place,
    resource: String,
    token_endpoint: String,
    client_id: String,
    client_secret: Option<String>,
    client_auth: String,
    access_token: String,
    refresh_token: Option<String>,
    expires_at_s: Option<u64>,
    scopes: Vec<String>,
    #[serde(default)]
    wanted: Vec<String>,
}

impl Keyring {
    /// Tokens that end with the process.
    pub fn in_memory() -> Self {
        Self::new(None, Redactor::default())
    }

    /// Tokens that are kept. What `redactor` takes out of texts is taken out of the errors of logins and connections too, and it
    /// learns every secret as soon as it is known here: one that is kept, that a server gives, or that another process got.
    pub fn on(shelf: impl Shelf + 'static, redactor: Redactor) -> Self {
        Self::new(Some(Box::new(shelf)), redactor)
    }

    fn new(shelf: Option<Box<dyn Shelf>>, redactor: Redactor) -> Self {
        Self(Arc::new(Shared {
            shelf,
            entries: Mutex::default(),
            changing: tokio::sync::Mutex::default(),
            challenges: Mutex::default(),
            redactor,
        }))
    }

    /// What takes the secrets out of texts.
    pub(super) fn redactor(&self) -> &Redactor {
        &self.0.redactor
    }

    /// Forgets every token of an alias, wherever its server was; false when there was none.
    ///
    /// # Errors
    /// It cannot be written down.
    pub async fn forget(&self, alias: &str) -> io::Result<bool> {
        // Where there is nothing, nothing is written either.
        if !self.reload().iter().any(|entry| entry.place.alias == alias) {
            return Ok(false);
        }
        let _changing = self.change().await?;
        let mut entries = self.reload();
        let count = entries.len();
        entries.retain(|entry| entry.place.alias != alias);
        let had_one = entries.len() < count;
        self.keep(entries)?;
        Ok(had_one)
    }

    /// Reads what is kept, unless it is known: the redactor knows it from then on.
    pub fn look(&self) {
        drop(self.entries());
    }

    /// Every token there is, for whoever takes secrets out of texts: a name and the token.
    pub fn secrets(&self) -> Vec<(String, Secret)> {
        let entries = self.entries();
        entries.iter().flatten().flat_map(Entry::secrets).collect()
    }

    /// Remembers what a request to a server was refused with.
    pub(super) fn refused(&self, place: &Place, challenge: &str) {
        let mut challenges = self.0.challenges.lock().unwrap_or_else(PoisonError::into_inner);
        challenges.retain(|(other, _)| other != place);
        let excess = (challenges.len() + 1).saturating_sub(ENTRIES_MAX);
        challenges.drain(..excess);
        challenges.push((place.clone(), challenge.to_owned()));
    }

    /// What a request to a server was last refused with.
    pub(super) fn challenge(&self, place: &Place) -> Option<String> {
        let challenges = self.0.challenges.lock().unwrap_or_else(PoisonError::into_inner);
        let found = challenges.iter().find(|(other, _)| other == place);
        found.map(|(_, challenge)| challenge.clone())
    }

    /// Keeps other tasks and other processes from changing the tokens.
    pub(super) async fn change(&self) -> io::Result<Changing<'_>> {
        let turn = self.0.changing.lock().await;
        let shared = Arc::clone(&self.0);
        let lock = move || shared.shelf.as_ref().map(|shelf| shelf.lock()).transpose();
        let lock = tokio::task::spawn_blocking(lock).await.map_err(io::Error::other)??;
        Ok(Changing {
            _turn: turn,
            _lock: lock,
        })
    }

    /// What is kept for a server, as far as it is known.
    pub(super) fn get(&self, place: &Place) -> Option<Entry> {
        let entries = self.entries();
        let entry = entries.iter().flatten().find(|entry| entry.place == *place);
        entry.cloned()
    }

    /// The same, after another process may have changed it.
    pub(super) fn get_anew(&self, place: &Place) -> Option<Entry> {
        let entries = self.reload();
        let entry = entries.iter().find(|entry| entry.place == *place).cloned();
        self.know(entries);
        entry
    }

    /// Keeps an entry, in place of the one that was there. Call it while changing.
    pub(super) fn put(&self, entry: Entry, _changing: &Changing<'_>) -> io::Result<()> {
        let mut entries = self.reload();
        entries.retain(|other| other.place != entry.place);
        let excess = (entries.len() + 1).saturating_sub(ENTRIES_MAX);
        entries.drain(..excess);
        entries.push(entry);
        self.keep(entries)
    }

    fn keep(&self, entries: Vec<Entry>) -> io::Result<()> {
        let servers = entries.iter().map(Entry::write).collect();
        let text = serde_json::to_string_pretty(&Written { form: FORM, servers })?;
        // Known even where it cannot be kept: the person has logged in.
        self.know(entries);
        match &self.0.shelf {
            Some(shelf) => shelf.write(&text),
            None => Ok(()),
        }
    }

    /// What is kept now; what cannot be read counts as nothing.
    fn reload(&self) -> Vec<Entry> {
        let Some(shelf) = &self.0.shelf else {
            return self.lock_entries().clone().unwrap_or_default();
        };
        let text = shelf.read().ok().flatten().unwrap_or_default();
        let written: Option<Written> = serde_json::from_str(&text).ok();
        let servers = written
            .filter(|written| written.form == FORM)
            .map(|written| written.servers);
        let entries = servers.unwrap_or_default().into_iter().filter_map(WrittenEntry::read);
        entries.take(ENTRIES_MAX).collect()
    }

    fn entries(&self) -> MutexGuard<'_, Option<Vec<Entry>>> {
        let is_known = self.lock_entries().is_some();
        if !is_known {
            self.know(self.reload());
        }
        self.lock_entries()
    }

    /// From now on this is what is kept.
    fn know(&self, entries: Vec<Entry>) {
        for (name, secret) in entries.iter().flat_map(Entry::secrets) {
            if let Some((name, value)) = of_token(&name, secret.expose()) {
                self.0.redactor.learn(&name, &value);
            }
        }
        *self.lock_entries() = Some(entries);
    }

    /// Entries are exchanged whole: a poisoned lock guards a whole list.
    fn lock_entries(&self) -> MutexGuard<'_, Option<Vec<Entry>>> {
        self.0.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What stands in place of a token.
fn token_name(alias: &str) -> String {
    format!("token of {alias}")
}

/// What stands in place of the secret that a client shows.
pub(super) fn client_name(alias: &str) -> String {
    format!("client secret of {alias}")
}

/// Nobody else changes the tokens while this is held.
pub(super) struct Changing<'a> {
    _turn: tokio::sync::MutexGuard<'a, ()>,
    _lock: Option<Box<dyn Send>>,
}

impl Entry {
    /// What nobody may see of it, each with what it is called.
    pub(super) fn secrets(&self) -> Vec<(String, Secret)> {
        let alias = &self.place.alias;
        let tokens = [Some(&self.grant.access), self.grant.refresh.as_ref()];
        let tokens = tokens.into_iter().flatten().map(|token| (token_name(alias), token));
        // Named otherwise: tokens are replaced all the time, and push one another out of what is known.
        let client = self.client.secret.iter().map(|secret| (client_name(alias), secret));
        let all = tokens.chain(client);
        all.map(|(name, secret)| (name, secret.clone())).collect()
    }

    fn write(&self) -> WrittenEntry {
        let text = |secret: &Option<Secret>| secret.as_ref().map(|secret| secret.expose().to_owned());
        WrittenEntry {
            place: self.place.clone(),
            resource: self.resource.clone(),
            token_endpoint: self.token_endpoint.to_string(),
            client_id: self.client.id.clone(),
            client_secret: text(&self.client.secret),
            client_auth: self.client.method.name().to_owned(),
            access_token: self.grant.access.expose().to_owned(),
            refresh_token: text(&self.grant.refresh),
            expires_at_s: self.grant.expires_at_s,
            scopes: self.grant.scopes.clone(),
            wanted: self.wanted.clone(),
        }
    }
}

impl WrittenEntry {
    fn read(self) -> Option<Entry> {
        let client = Client {
            id: self.client_id,
            secret: self.client_secret.map(Secret::new),
            method: Method::of_name(&self.client_auth)?,
        };
        let grant = Grant {
            access: Secret::new(self.access_token),
            refresh: self.refresh_token.map(Secret::new),
            expires_at_s: self.expires_at_s,
            scopes: self.scopes,
        };
        Some(Entry {
            place: self.place,
            resource: self.resource,
            token_endpoint: Url::parse(&self.token_endpoint).ok()?,
            client,
            grant,
            wanted: self.wanted,
        })
    }
}
