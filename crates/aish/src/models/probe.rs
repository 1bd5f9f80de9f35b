//! `aish models probe`.

use crate::app::App;
use crate::cli::Output;
use crate::failure::Failure;

/// Whether what was found is written into the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    /// A person is asked.
    Asked,
    /// It is.
    AtOnce,
    /// It is not.
    Never,
}

/// Probes a model.
pub async fn run(_app: &App, _name: Option<&str>, _writing: Writing, _output: Output) -> Result<u8, Failure> {
    Err(Failure::failed("not yet"))
}
