//! The configuration: what may be set, from where, and what comes of it (SPEC 10.1).
//!
//! Every setting is declared once, in [`settings`]. A file goes through three stages: *raw* (keys and values with their
//! places in the text), *checked* ([`check`]: each known, typed and in range) and *resolved* ([`mod@resolve`]: [`Config`],
//! plain values). Layers, later over earlier: defaults, the user's file, a trusted project's file, the environment, the
//! command line.

mod borrowed;
pub mod check;
pub mod edit;
pub mod error;
pub mod layers;
pub mod models;
pub mod reach;
pub mod reference;
pub mod resolve;
pub mod resolved;
pub mod settings;
pub mod show;
pub mod value;

pub use edit::{ModelSetting, RuleList, add_rule, set_model, text_value};
pub use error::{ConfigError, Layer, Source};
pub use reference::reference;
pub use resolve::{Overrides, Resolved, resolve};
pub use resolved::{Config, ModelConfig};
pub use show::show;

use crate::paths::{ConfigChoice, Environment, Paths};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Bytes a configuration file may have; the largest sensible one is a hundredth of it.
const CONFIG_BYTES_MAX: u64 = 1 << 20;

/// Reads the user's file and puts all layers together. `project` is the file of a trusted project, see
/// [`crate::trust::TrustStore::check`].
///
/// # Errors
/// The file cannot be read, or something in some layer is wrong.
pub fn load(
    paths: &Paths,
    project: Option<Source>,
    environment: &Environment,
    overrides: &Overrides,
) -> Result<Resolved, ConfigError> {
    let read = match paths.config_choice {
        ConfigChoice::Usual => read_text(&paths.config_file),
        // `--config <(…)` is a pipe, and meant so.
        ConfigChoice::Flag | ConfigChoice::Variable => std::fs::File::open(&paths.config_file).and_then(read_bounded),
    };
    let text = match (read, paths.config_choice) {
        (Ok(text), _) => Some(text),
        // Without a file of their own people get the defaults; a file they asked for by name must be there.
        (Err(error), ConfigChoice::Usual) if error.kind() == io::ErrorKind::NotFound => None,
        (Err(source), choice) => {
            let hint = match choice {
                ConfigChoice::Usual => "",
                ConfigChoice::Flag => "; it was chosen by --config",
                ConfigChoice::Variable => "; it was chosen by $AISH_CONFIG",
            };
            return Err(ConfigError::Read {
                path: paths.config_file.clone(),
                source,
                hint,
            });
        }
    };
    let user = text.map(|text| Source {
        name: paths.config_file.display().to_string(),
        text,
        layer: Layer::User,
    });
    resolve(user, project, environment, overrides)
}

/// Reads a text file that somebody else may have put there: a regular file of a sensible size in UTF-8. Anything else, such as a
/// pipe nobody writes to, is refused without waiting for it.
///
/// # Errors
/// The system's, or it is not such a file.
pub fn read_text(path: &Path) -> io::Result<String> {
    let no_wait = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = std::fs::File::options().read(true).custom_flags(no_wait).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    read_bounded(file)
}

fn read_bounded(file: std::fs::File) -> io::Result<String> {
    let mut text = String::new();
    file.take(CONFIG_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > CONFIG_BYTES_MAX {
        let message = format!("it is larger than {CONFIG_BYTES_MAX} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
