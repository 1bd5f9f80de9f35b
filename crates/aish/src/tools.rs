//! The built-in tools as this program has them: those of the tools' crate, and those that need something of the program.

use aish_engine::SearchMemory;
use aish_provider::client::{self, Network, Timeouts};
use aish_store::Store;
use aish_tools::Tool;
use aish_tools::set::ToolSet;
use aish_tools::web::{Proxies, WebGetTool};
use std::sync::Arc;

/// The tools, in their fixed order. Nothing is connected to or opened yet.
pub fn builtin(network: Network, ledger: Arc<dyn Store>) -> ToolSet {
    let mut tools = ToolSet::builtin();
    let more: [Arc<dyn Tool>; 2] = [Arc::new(web_get(network)), Arc::new(SearchMemory::over(ledger))];
    for tool in more {
        // Each has a name of its own.
        let _unique = tools.append(tool);
    }
    tools
}

/// Those of these that other programs may call: what a person said is theirs.
pub fn for_other_programs(tools: &ToolSet) -> ToolSet {
    let mut tools = tools.clone();
    tools.retain(|name| name != SearchMemory::NAME);
    tools
}

/// Pages come over the same network as models, by a client of its own: what a page may do, a model's server may not, and the
/// other way round.
fn web_get(network: Network) -> WebGetTool {
    let proxies = Proxies(network.proxy_hosts());
    let make = move || client::builder(&Timeouts::default(), &network).map_err(|error| error.to_string());
    WebGetTool::new(make, proxies)
}
