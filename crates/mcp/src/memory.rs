//! What a server was like when it was last there: which era it spoke and what it offered, in a file of the cache directory.
//!
//! It only saves time: what is remembered is offered until the server has said it anew, and losing it changes nothing else.
//! Everything in the file was said by a server: it holds no secret of ours, and is as hostile as it was then.

use crate::offer::Offer;
use crate::{About, Endpoint, Era, ServerConfig};
use aish_core::action::canonical_json;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The largest file that is read back.
const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Where it is kept.
#[derive(Clone, Debug, Default)]
pub struct Memory(Option<PathBuf>);

/// What is known of a server from before.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Remembered {
    /// Whom this is about: a server that is reached otherwise now is another one.
    reached: String,
    /// The version of the protocol it spoke.
    protocol: String,
    /// What it offered.
    pub offer: Offer,
}

impl Remembered {
    /// How to speak to it next time.
    pub fn era(&self) -> Era {
        era_of(&self.protocol)
    }

    /// How a server was spoken to that said this of itself.
    pub fn era_of(about: &About) -> Era {
        era_of(&about.protocol)
    }
}

fn era_of(protocol: &str) -> Era {
    // Dates compare as text.
    if protocol >= "2026-07-28" {
        Era::Stateless
    } else {
        Era::Initialize(None)
    }
}

impl Memory {
    /// Nothing is remembered.
    pub fn none() -> Self {
        Self(None)
    }

    /// One file a server in that folder, which is made when there is something to keep.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self(Some(folder.into()))
    }

    /// What is known of that server; nothing where the file is missing, damaged or about another one.
    pub fn recall(&self, config: &ServerConfig) -> Option<Remembered> {
        let path = self.file(config)?;
        if std::fs::metadata(&path).ok()?.len() > FILE_BYTES_MAX {
            return None;
        }
        let remembered: Remembered = serde_json::from_slice(&std::fs::read(&path).ok()?).ok()?;
        (remembered.reached == reached(config)).then_some(remembered)
    }

    /// Keeps what a server offers. That it cannot be kept is no reason to trouble anybody.
    pub fn keep(&self, config: &ServerConfig, about: &About, offer: &Offer) {
        let Some(path) = self.file(config) else { return };
        let remembered = Remembered {
            reached: reached(config),
            protocol: about.protocol.clone(),
            offer: offer.clone(),
        };
        let _ = write(&path, &remembered);
    }

    /// How long ago what is known of a server was last kept, or [`Memory::tried`] last; `None` where nothing is known.
    pub fn age(&self, config: &ServerConfig) -> Option<Duration> {
        self.recall(config)?;
        let kept = std::fs::metadata(self.file(config)?).ok()?.modified().ok()?;
        // A clock that was put back: as if it had been kept now.
        Some(kept.elapsed().unwrap_or_default())
    }

    /// Notes that what is known was to be renewed now, and could not be.
    pub fn tried(&self, config: &ServerConfig) {
        let Some(path) = self.file(config) else { return };
        let file = std::fs::File::options().append(true).open(path);
        // Where it cannot be noted it is tried again.
        let _ = file.and_then(|file| file.set_modified(SystemTime::now()));
    }

    fn file(&self, config: &ServerConfig) -> Option<PathBuf> {
        Some(self.0.as_ref()?.join(format!("{}.json", config.alias)))
    }
}

fn write(path: &Path, remembered: &Remembered) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    // Several shells write at once: each its own file, put in place whole.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    serde_json::to_writer(&mut file, remembered)?;
    file.persist(path)?;
    Ok(())
}

/// A digest of how a server is reached, secrets and their values left out.
fn reached(config: &ServerConfig) -> String {
    let how = match &config.endpoint {
        Endpoint::Http(http) => {
            let headers: Vec<&str> = http.headers.iter().map(|(name, _)| name.as_str()).collect();
            json!({"url": http.url, "headers": headers})
        }
        Endpoint::Stdio(stdio) => {
            let names: Vec<&str> = stdio.environment.iter().map(|(name, _)| name.as_str()).collect();
            json!({"command": stdio.command, "directory": stdio.directory, "environment": names})
        }
    };
    let mut text = String::new();
    canonical_json(&how, &mut text);
    Sha256::digest(text.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
