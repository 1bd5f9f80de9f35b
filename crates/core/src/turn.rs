//! placeholder
use serde::{Deserialize, Serialize};
/// Why a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model answered.
    End,
    /// A limit was reached and the model summed up.
    Limit,
    /// Every call of the last round was refused, and the model answered.
    Declined,
    /// No reply could be had.
    ModelFailed,
    /// The reply was cut off.
    Truncated,
    /// Somebody cancelled it.
    Cancelled,
}
