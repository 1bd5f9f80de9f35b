//! The built-in tools as this program has them: those of the tools' crate, and those that need something of the program.

use aish_provider::client::{self, Network, Timeouts};
use aish_tools::set::ToolSet;
use aish_tools::web::{Proxies, WebGetTool};
use std::sync::Arc;

/// The tools, in their fixed order. Nothing is connected to yet.
pub fn builtin(network: Network) -> ToolSet {
    let mut tools = ToolSet::builtin();
    // Its name is nobody else's.
    let _unique = tools.append(Arc::new(web_get(network)));
    tools
}

/// Pages come over the same network as models, by a client of its own: what a page may do, a model's server may not, and the
/// other way round.
fn web_get(network: Network) -> WebGetTool {
    let proxies = Proxies(network.proxy_hosts());
    let make = move || client::builder(&Timeouts::default(), &network).map_err(|error| error.to_string());
    WebGetTool::new(make, proxies)
}
