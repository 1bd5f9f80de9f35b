//! Servers that are started, spoken to and ended over and over, and will not go by themselves: nothing of them is left (SPEC 12).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "stdio/bench.rs"]
#[allow(dead_code, reason = "what is shared is not all needed here")]
mod bench;

use aish_core::secret::Secret;
use aish_mcp::connect::connect;
use aish_mcp::host::Nobody;
use aish_mcp::memory::Memory;
use aish_mcp::servers::{Connector, Servers, State};
use aish_mcp::{Alias, Endpoint, Era, Host, McpError, Peer, ServerConfig};
use bench::{children, eventually, is_alive, sh};
use futures_util::future::BoxFuture;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Servers that run side by side, and how often each is started.
const LANES: usize = 8;
const CYCLES: usize = 8;

/// Speaks the protocol, ignores SIGTERM and the end of its input, and has started three others: one of its own group, one in a
/// session of its own that ignores SIGTERM too, and one whose parent has gone. All write their ids into the file `$IDS`.
const STUBBORN: &str = r#"
trap '' TERM
echo $$ >> "$IDS"
(echo $BASHPID >> "$IDS"; exec sleep 300) &
setsid sh -c 'echo $$ >> "$IDS"; trap "" TERM; while :; do sleep 1; done' &
(setsid sh -c 'echo $$ >> "$IDS"; exec sleep 300' &)
while read -r line; do
  [[ $line =~ \"id\":([0-9]+) ]] || continue
  begin="{\"jsonrpc\":\"2.0\",\"id\":${BASH_REMATCH[1]},"
  case $line in
    *'"initialize"'*) echo "$begin\"result\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}}" ;;
    *'"tools/list"'*) echo "$begin\"result\":{\"tools\":[{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\"}}]}}" ;;
    *) echo "$begin\"error\":{\"code\":-32601,\"message\":\"Method not found\"}}" ;;
  esac
done
while :; do sleep 1; done
"#;

/// The program's own way of connecting.
struct Dial(reqwest::Client);

impl Connector for Dial {
    fn connect<'a>(
        &'a self,
        config: &'a ServerConfig,
        host: Arc<dyn Host>,
    ) -> BoxFuture<'a, Result<Arc<dyn Peer>, McpError>> {
        Box::pin(connect(config, &self.0, host))
    }
}

fn dial() -> Dial {
    // A second test of the process finds it installed.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    Dial(reqwest::Client::builder().no_proxy().build().unwrap())
}

fn stubborn(ids: &Path) -> ServerConfig {
    let mut endpoint = sh("");
    endpoint.command = ["bash", "-c", STUBBORN].map(str::to_owned).to_vec();
    let path = ids.to_str().unwrap().to_owned();
    endpoint.environment.push(("IDS".to_owned(), Secret::new(path)));
    ServerConfig {
        alias: Alias::parse("stubborn").unwrap(),
        endpoint: Endpoint::Stdio(endpoint),
        timeout: Duration::from_secs(30),
        era: Era::Initialize(None),
        enabled_tools: Vec::new(),
        disabled_tools: Vec::new(),
        is_required: false,
        is_trusted: false,
    }
}

/// Everything that servers have started.
fn started(ids: &Path) -> Vec<i32> {
    let text = std::fs::read_to_string(ids).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// SPEC 12: servers that ignore SIGTERM and the end of their input, with children that have left their group, their session and their
/// parent. When a server has been taken away nothing of it runs, however often it is started.
#[tokio::test]
async fn stubborn_servers_over_and_over() {
    let folder = tempfile::tempdir().unwrap();
    let lane = async |lane: usize| {
        let ids = folder.path().join(format!("ids{lane}"));
        for cycle in 1..=CYCLES {
            let servers = Servers::new(Arc::new(dial()), Arc::new(Nobody), Memory::none());
            servers.add(stubborn(&ids)).unwrap();
            servers.peer("stubborn").await.unwrap();
            assert_eq!(servers.get("stubborn").unwrap().status.state, State::Ready);
            // It answers while those it starts are still on their way: all are waited for, so that there is something to end.
            while started(&ids).len() < 4 * cycle {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            if (lane + cycle).is_multiple_of(2) {
                assert!(servers.remove("stubborn").await);
            } else {
                servers.close().await;
            }
            let left: Vec<i32> = started(&ids).into_iter().filter(|id| is_alive(*id)).collect();
            assert!(left.is_empty(), "lane {lane}, cycle {cycle}: {left:?} still run");
        }
    };
    futures_util::future::join_all((0..LANES).map(lane)).await;
    eventually("no child, and no zombie", || children().is_empty());
}

/// SPEC 12: the same where nobody closes anything: the list of servers is dropped, and they end behind our back.
#[tokio::test]
async fn dropped_while_they_connect_and_while_they_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let ids = folder.path().join("ids");
    for cycle in 1..=CYCLES {
        let servers = Servers::new(Arc::new(dial()), Arc::new(Nobody), Memory::none());
        servers.add(stubborn(&ids)).unwrap();
        if cycle.is_multiple_of(2) {
            servers.peer("stubborn").await.unwrap();
        } else {
            tokio::task::yield_now().await;
        }
    }
    // The runtime must run meanwhile: it is who lets go of what was aborted.
    while started(&ids).into_iter().any(is_alive) || !children().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
