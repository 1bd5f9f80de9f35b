//! MCP: servers as sources of tools.
//!
//! A [`ServerConfig`] says how a server is reached. [`connect`] opens a [`Peer`] to it, whatever era of the protocol it speaks and
//! whichever transport. Everything a server offers is read leniently from the raw JSON of its replies, bounded, and believed
//! in nothing: its names, schemas and hints decide nothing that policy decides.
//!
//! The wire is the official SDK's (`rmcp`), behind [`Peer`], which is all that the rest of this crate knows of it. Its two
//! transports are our own halves: HTTP through the program's client ([`http`]) and a child process ([`stdio`]), because what
//! servers get wrong, and what must be bounded, is there.

mod alias;
mod asked;
pub mod connect;
mod error;
pub mod host;
pub mod http;
pub mod memory;
pub mod oauth;
mod offer;
mod outcome;
pub mod peer;
pub mod pin;
pub mod serve;
mod server;
pub mod servers;
pub mod stdio;
pub mod tool;
mod wire;

pub use alias::{Alias, InvalidAlias};
pub use asked::{InputRequired, KEPT_BYTES_MAX};
pub use error::{ErrorKind, McpError};
pub use host::Host;
pub use offer::{Argument, Definition, Filled, Hints, Offer, Prompt, PromptMessage, Resource, Role, Template};
pub use outcome::Outcome;
pub use peer::{About, Peer};
pub use pin::Pinned;
pub use server::{Endpoint, Era, HttpEndpoint, ServerConfig, StdioEndpoint};
pub use tool::McpTool;
