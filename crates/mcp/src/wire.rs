//! The wire: the SDK's service behind [`crate::Peer`].
//!
//! [`raw`] keeps what a server said whole, [`Session`] is what everything of one connection shares, [`listener`] hears the
//! server, [`call`] asks it, [`WirePeer`] is the whole of it. How a connection begins is [`crate::connect`]'s.

mod answer;
mod call;
mod listener;
mod news;
mod pace;
mod peer;
pub(crate) mod raw;
mod required;
mod rounds;
mod session;
mod values;

pub(crate) use call::rpc_error;
pub(crate) use listener::client_config;
pub(crate) use news::of as news_of;
pub(crate) use peer::WirePeer;
pub(crate) use session::{Session, Tap, Trouble};
pub(crate) use values::{VALUES_MAX, count_values};
