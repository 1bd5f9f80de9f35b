//! Where the calls of a turn run: in the directory the turn began in, whoever goes on with it and from wherever. What was
//! approved was approved there; anywhere else it would be another action, and its approval void (SPEC 3.3).

use crate::failure::Failure;
use aish_core::session::Session;
use aish_engine::Engine;
use std::path::{Path, PathBuf};

/// The directory of a turn is not what it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot go on with the turn: it began in {}, which is not there any more", .0.display())]
pub struct Gone(PathBuf);

impl From<Gone> for Failure {
    fn from(gone: Gone) -> Self {
        Self::usage(gone.to_string()).hint("make it again, or end the turn at a terminal: aish resume ID")
    }
}

/// Where the program works while a turn is driven that began elsewhere.
#[must_use = "the program stays there until it is led back"]
pub struct Elsewhere {
    directory: PathBuf,
    before: Places,
}

/// What a directory decides.
struct Places {
    directory: PathBuf,
    rules: PathBuf,
    root: PathBuf,
}

/// Works where the open turn of the session began; `None` if it is here that it began, or no turn is open.
///
/// # Errors
/// That directory is gone, or another one has taken its place.
pub fn enter(engine: &Engine, session: &Session) -> Result<Option<Elsewhere>, Gone> {
    let Some(recorded) = session.open_turn().and_then(|turn| turn.settings().directory) else {
        return Ok(None);
    };
    let here = engine.settings();
    // As it was recorded: a name that is not UTF-8 has lost something, and is still the same place.
    if here.context.directory.to_string_lossy() == recorded {
        return Ok(None);
    }
    let directory = PathBuf::from(recorded);
    // A link in its place leads where nobody approved anything.
    if !directory
        .canonicalize()
        .is_ok_and(|real| real == directory && real.is_dir())
    {
        return Err(Gone(directory));
    }
    let before = Places {
        directory: here.context.directory,
        rules: here.policy.directory,
        root: here.policy.root,
    };
    let there = |path: &Path| path.to_owned();
    set(
        engine,
        Places {
            directory: there(&directory),
            rules: there(&directory),
            root: there(&directory),
        },
    );
    Ok(Some(Elsewhere { directory, before }))
}

impl Elsewhere {
    /// What the person is told.
    pub fn line(&self) -> String {
        format!("working in {}, where this turn began", self.directory.display())
    }

    /// The turn is over or left: what comes next is done here again.
    pub fn leave(self, engine: &Engine) {
        set(engine, self.before);
    }
}

fn set(engine: &Engine, places: Places) {
    engine.update(|settings| {
        settings.context.directory = places.directory;
        settings.policy.directory = places.rules;
        settings.policy.root = places.root;
    });
}
