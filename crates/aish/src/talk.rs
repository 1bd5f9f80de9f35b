//! Opens the conversational prompt.

use crate::app::App;
use crate::cli::Start;
use crate::failure::Failure;

/// Opens the prompt on a session.
///
/// # Errors
/// The session cannot be opened.
pub async fn open(_app: &App, _start: &Start) -> Result<u8, Failure> {
    Err(Failure::failed("the prompt is not there yet"))
}
