#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing
)]
use aish_core::secret::Secret;
use aish_mcp::host::*;
use aish_mcp::*;
use futures_util::future::BoxFuture;
use serde_json::*;
use std::sync::Arc;
use std::time::*;
struct H;
impl Host for H {
    fn ask<'a>(&'a self, _s: &'a Alias, q: Question) -> BoxFuture<'a, Reply> {
        println!("    ASK {}", format!("{q:?}").chars().take(150).collect::<String>());
        Box::pin(std::future::ready(Reply::Accepted(Map::from_iter([(
            "word".to_owned(),
            json!("blue"),
        )]))))
    }
    fn sample<'a>(&'a self, _s: &'a Alias, p: Value) -> BoxFuture<'a, Result<Value, String>> {
        println!("    SAMPLE {}", p.to_string().chars().take(100).collect::<String>());
        Box::pin(std::future::ready(Ok(
            json!({"role":"assistant","model":"m","content":{"type":"text","text":"42"}}),
        )))
    }
    fn news(&self, s: &Alias, n: News) {
        println!(
            "    NEWS {s} {}",
            format!("{n:?}").chars().take(150).collect::<String>()
        );
    }
}
async fn run(alias: &str, endpoint: Endpoint, era: Era, calls: &[(&str, Value)]) {
    let config = ServerConfig {
        alias: Alias::parse(alias).unwrap(),
        endpoint,
        timeout: Duration::from_secs(20),
        era,
        enabled_tools: vec![],
        disabled_tools: vec![],
        is_required: false,
        is_trusted: false,
    };
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .tls_certs_only([])
        .build()
        .unwrap();
    let t = Instant::now();
    let peer = match connect::connect(&config, &client, Arc::new(H)).await {
        Ok(p) => p,
        Err(e) => {
            println!("{alias}: FAILED {:?} {e}", e.kind);
            return;
        }
    };
    println!(
        "{alias} {:?}: connected in {:?}: {} {} protocol {}",
        config.era,
        t.elapsed(),
        peer.about().name,
        peer.about().version,
        peer.about().protocol
    );
    let t = Instant::now();
    let list = peer
        .request("tools/list", Map::new(), Duration::from_secs(10), None)
        .await
        .unwrap();
    println!(
        "  {} tools in {:?}",
        list["tools"].as_array().unwrap().len(),
        t.elapsed()
    );
    for (name, args) in calls {
        let p = json!({"name": name, "arguments": args}).as_object().unwrap().clone();
        let t = Instant::now();
        let watch: peer::Watch = Arc::new(|p| println!("    PROGRESS {p:?}"));
        let r = peer
            .request("tools/call", p, Duration::from_secs(10), Some(watch))
            .await;
        println!(
            "  {name} in {:?}: {}",
            t.elapsed(),
            match r {
                Ok(v) => v.to_string(),
                Err(e) => format!("ERR {:?} {e}", e.kind),
            }
            .chars()
            .take(240)
            .collect::<String>()
        );
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let t = Instant::now();
    peer.close().await;
    println!("  closed in {:?}; {}", t.elapsed(), peer.ended().await);
}
fn stdio(command: &[&str], env: &[(&str, &str)]) -> Endpoint {
    let mut environment: Vec<(String, Secret)> = vec![
        ("PATH".into(), Secret::new(std::env::var("PATH").unwrap())),
        ("HOME".into(), Secret::new("/tmp/j".to_owned())),
    ];
    environment.extend(env.iter().map(|(k, v)| ((*k).to_owned(), Secret::new((*v).to_owned()))));
    Endpoint::Stdio(StdioEndpoint {
        command: command.iter().map(|s| (*s).to_owned()).collect(),
        environment,
        directory: "/tmp/j".into(),
    })
}
fn http(url: &str) -> Endpoint {
    Endpoint::Http(HttpEndpoint {
        url: url.to_owned(),
        token: None,
        headers: vec![],
    })
}
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn manual() {
    let v = |n: &str| std::env::var(n).unwrap();
    let node = v("AISH_MCP_NODE");
    run(
        "everything",
        stdio(&[&node, &v("AISH_MCP_EVERYTHING")], &[]),
        Era::Unknown,
        &[
            ("get-sum", json!({"a":2,"b":3})),
            ("get-structured-content", json!({"location":"Chicago"})),
            ("get-tiny-image", json!({})),
            ("trigger-long-running-operation", json!({"duration":1,"steps":3})),
            ("trigger-elicitation-request", json!({})),
            ("trigger-url-elicitation", json!({"url":"https://a.example/"})),
            (
                "trigger-url-elicitation",
                json!({"url":"https://a.example/","errorPath":true}),
            ),
            ("trigger-sampling-request", json!({"prompt":"x","maxTokens":9})),
            ("toggle-simulated-logging", json!({})),
        ],
    )
    .await;
    run(
        "filesystem",
        stdio(&[&node, &v("AISH_MCP_FILESYSTEM"), "/tmp/j"], &[]),
        Era::Unknown,
        &[
            ("list_directory", json!({"path":"/tmp/j"})),
            ("read_text_file", json!({"path":"/etc/passwd"})),
        ],
    )
    .await;
    run(
        "memory",
        stdio(
            &[&node, &v("AISH_MCP_MEMORY")],
            &[("MEMORY_FILE_PATH", "/tmp/j/mem.jsonl")],
        ),
        Era::Unknown,
        &[("read_graph", json!({}))],
    )
    .await;
    for era in [Era::Unknown, Era::Stateless, Era::Initialize(None)] {
        run(
            "git",
            stdio(&[&v("AISH_MCP_GIT"), "--repository", "/tmp/j"], &[]),
            era,
            &[("git_status", json!({"repo_path":"/tmp/j"})), ("nope", json!({}))],
        )
        .await;
    }
    run(
        "time",
        stdio(&[&v("AISH_MCP_TIME"), "--local-timezone", "UTC"], &[]),
        Era::Unknown,
        &[("get_current_time", json!({"timezone":"UTC"}))],
    )
    .await;
    for (var, extra) in [
        ("J_EV", "everything-http"),
        ("J_FM", "fastmcp"),
        ("J_FMJ", "fastmcp-json"),
    ] {
        let Ok(port) = std::env::var(var) else { continue };
        let url = format!("http://127.0.0.1:{port}/mcp");
        for era in [Era::Unknown, Era::Initialize(None)] {
            run(
                extra,
                http(&url),
                era,
                &[
                    ("get-sum", json!({"a":2,"b":3})),
                    ("trigger-long-running-operation", json!({"duration":1,"steps":2})),
                    ("trigger-elicitation-request", json!({})),
                    ("add", json!({"a":1,"b":2})),
                    ("count", json!({"steps":3})),
                    ("ask_user", json!({"question":"q?"})),
                    ("ask_model", json!({"question":"q?"})),
                    ("grow", json!({"name":format!("n{}", std::process::id())})),
                ],
            )
            .await;
        }
    }
    run("nothing", http("http://127.0.0.1:9/mcp"), Era::Unknown, &[]).await;
    run("missing", stdio(&["/nonexistent/server"], &[]), Era::Unknown, &[]).await;
    run(
        "exits",
        stdio(&["/bin/sh", "-c", "echo cannot work >&2; exit 3"], &[]),
        Era::Unknown,
        &[],
    )
    .await;
}
