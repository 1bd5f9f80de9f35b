//! aish's pure heart: what a session is, and what must happen next in it.
//!
//! This crate owns the events of the ledger ([`event`]), the turn as a fold over them ([`turn`]), the
//! session they make up ([`session`]), the projection of a session to what a model is sent
//! ([`projection`]), the standing rules ([`policy`]) over what a call would do ([`action`], [`parts`]), and the two
//! filters every text passes on its way out: [`sanitize`] (terminals) and [`redact`] (secrets).
//!
//! Nothing in here does IO, reads a clock or the environment, or awaits: time, ids, randomness and limits
//! come in as data. Two processes that hold the same events therefore hold the same state.
//!
//! ```
//! use aish_core::event::{Draft, TurnStarted};
//! use aish_core::id::SessionId;
//! use aish_core::session::Session;
//! use aish_core::turn::Step;
//!
//! let mut session = Session::new(SessionId::from_parts(0, 7));
//! session.append(0, vec![Draft::turn_started(1, TurnStarted::default()), Draft::user(1, "hello")]).unwrap();
//! assert!(matches!(session.open_turn().unwrap().next(), Step::CallModel { attempt: 1, .. }));
//! ```

pub mod action;
pub mod event;
pub mod id;
pub mod image;
pub mod limits;
pub mod message;
pub mod moment;
pub mod parts;
pub mod policy;
pub mod projection;
pub mod redact;
pub mod sanitize;
pub mod secret;
pub mod session;
pub mod turn;

pub use action::{Action, Digest};
pub use event::{Body, Draft, Event};
pub use id::{CallId, ContinuationId, ReplyId, SessionId};
pub use limits::Limits;
pub use message::{Message, Part, ToolChoice, ToolSpec};
pub use policy::{ApprovalMode, Policy, Verdict};
pub use session::Session;
pub use turn::{InvalidEvent, Step, StopReason, Turn};
