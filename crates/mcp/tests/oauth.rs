//! Logging in at a server, with an authorization server that follows a script: the way it should go, and each way it should not.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm
)]

#[path = "oauth/shared.rs"]
mod shared;
#[path = "oauth/world.rs"]
mod world;

use aish_core::redact::Redactor;
use aish_mcp::connect::{Network, connect_over};
use aish_mcp::host::Nobody;
use aish_mcp::oauth::Keyring;
use aish_mcp::{ErrorKind, McpError, Peer};
use serde_json::{Map, Value};
use shared::SharedShelf;
use std::sync::Arc;
use std::time::Duration;
use world::{Trick, World, network, query, secrets};

async fn connect(world: &World, network: &Network) -> Result<Arc<dyn Peer>, McpError> {
    connect_over(&world.config(), network, Arc::new(Nobody)).await
}

async fn call(peer: &Arc<dyn Peer>) -> Result<Value, McpError> {
    let params = Map::from_iter([("name".to_owned(), Value::from("t"))]);
    peer.request("tools/call", params, Duration::from_secs(20), None).await
}

fn challenge(error: &McpError) -> Option<&str> {
    match &error.kind {
        ErrorKind::Unauthorized { challenge } => challenge.as_deref(),
        other => panic!("{other:?}"),
    }
}

/// SPEC 6.3: connecting says that a login is needed and asks nobody; after it the token goes along, made for this server alone.
#[tokio::test]
async fn from_the_refusal_to_the_answer() {
    let (world, network) = (World::start(Trick::Nothing).await, network());
    let refused = connect(&world, &network).await.err().unwrap();
    assert_eq!(
        refused.message,
        "needs login; `:mcp login srv` (or `aish mcp login srv`)"
    );
    assert!(world.heard("/authorize").is_empty());
    world.login(&network, challenge(&refused)).await.unwrap();
    let peer = connect(&world, &network).await.unwrap();
    assert_eq!(call(&peer).await.unwrap()["content"][0]["text"], "done");

    let asked = query(world.heard("/authorize")[0].path.split_once('?').unwrap().1);
    let paid = query(&world.heard("/token")[0].body);
    assert_eq!(
        (asked["resource"].as_str(), paid["resource"].as_str()),
        (world.url.as_str(), world.url.as_str())
    );
    assert_eq!(
        (asked["code_challenge_method"].as_str(), asked["scope"].as_str()),
        ("S256", "base")
    );
    assert!(paid["code_verifier"].len() >= 43, "RFC 7636");
    assert_eq!(asked["redirect_uri"], paid["redirect_uri"]);
    assert!(asked["redirect_uri"].starts_with("http://127.0.0.1:"));
}

/// SPEC 6.3: a token belongs to the alias and the address it was made for.
#[tokio::test]
async fn a_changed_address_gets_nothing() {
    let (world, network) = (World::start(Trick::Nothing).await, network());
    world.login(&network, None).await.unwrap();
    let mut config = world.config();
    let aish_mcp::Endpoint::Http(endpoint) = &mut config.endpoint else {
        panic!()
    };
    endpoint.url = format!("{}/mcp", world.other);
    let refused = connect_over(&config, &network, Arc::new(Nobody)).await.err().unwrap();
    assert!(challenge(&refused).is_some());
    let sent: Vec<_> = world
        .heard("/mcp")
        .into_iter()
        .filter_map(|heard| heard.authorization)
        .collect();
    assert_eq!(sent, Vec::<String>::new());
    assert!(network.keyring.forget("srv").await.unwrap());
    assert!(secrets(&network).is_empty());
}

/// SPEC 6.3: what ends is refreshed without asking: before it ends, and when it is refused early.
#[tokio::test]
async fn refreshed_by_itself() {
    let (world, network) = (World::start(Trick::Nothing).await, network());
    world.set_lifetime_s(5);
    world.login(&network, None).await.unwrap();
    world.set_lifetime_s(3_600);
    let peer = connect(&world, &network).await.unwrap();
    let refreshed = query(&world.heard("/token")[1].body);
    assert_eq!(
        (refreshed["grant_type"].as_str(), refreshed["refresh_token"].as_str()),
        ("refresh_token", "refresh-token-1")
    );
    assert_eq!(refreshed["resource"], world.url);
    // Two calls at once find it refused: one refreshes, both are answered.
    let before = world.heard("/token").len();
    world.revoke();
    let (one, other) = tokio::join!(call(&peer), call(&peer));
    assert_eq!((one.is_ok(), other.is_ok()), (true, true));
    assert_eq!(world.heard("/token").len() - before, 1);
    assert_eq!(world.heard("/authorize").len(), 1);
}

/// SPEC 6.6, 6.3: when refreshing is refused, the call fails with what a person can do, once; nothing is tried again and again.
#[tokio::test]
async fn a_refresh_that_is_refused() {
    let (world, network) = (World::start(Trick::Nothing).await, network());
    world.login(&network, None).await.unwrap();
    let peer = connect(&world, &network).await.unwrap();
    world.turn(Trick::NoRefresh);
    world.revoke();
    for _ in 0..3 {
        let refused = call(&peer).await.unwrap_err();
        assert!(refused.message.contains("needs login"), "{refused}");
        assert!(!refused.message.contains("access-token"), "{refused}");
    }
    assert_eq!(world.heard("/token").len(), 2, "the code and one try");
}

/// SPEC 6.3, 6.6: a page in place of a token is nobody's refusal: the person is told, and the next call tries again.
#[tokio::test]
async fn a_refresh_that_fails_for_now() {
    let (world, network) = (World::start(Trick::Nothing).await, network());
    world.login(&network, None).await.unwrap();
    let peer = connect(&world, &network).await.unwrap();
    world.turn(Trick::PageForRefresh);
    world.revoke();
    let refused = call(&peer).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Unreachable, "{refused}");
    assert!(refused.message.contains("cannot be refreshed now"), "{refused}");
    assert!(!refused.message.contains("refresh-token"), "{refused}");
    world.turn(Trick::Nothing);
    call(&peer).await.unwrap();
    assert_eq!(world.heard("/authorize").len(), 1);
}

/// SPEC 6.3: of two processes whose token ends one refreshes it, with the refresh token that is good once; the other uses what came.
#[tokio::test]
async fn two_processes_at_once() {
    let (world, shelf) = (World::start(Trick::Nothing).await, SharedShelf::default());
    let processes: [Network; 2] = std::array::from_fn(|_| Network {
        keyring: Keyring::on(shelf.clone(), Redactor::default()),
        ..network()
    });
    world.login(&processes[0], None).await.unwrap();
    let one = connect(&world, &processes[0]).await.unwrap();
    let other = connect(&world, &processes[1]).await.unwrap();
    for round in 1..=3 {
        world.revoke();
        let (first, second) = tokio::join!(call(&one), call(&other));
        assert_eq!((first.is_ok(), second.is_ok()), (true, true));
        let refreshed = world.heard("/token");
        assert_eq!(refreshed.len(), 1 + round);
        // Each with the one that the last brought.
        let spent: Vec<_> = refreshed.iter().map(|heard| query(&heard.body)).collect();
        let tokens: std::collections::HashSet<_> = spent.iter().map(|form| form.get("refresh_token")).collect();
        assert_eq!(tokens.len(), 1 + round, "none is spent twice");
    }
}

/// SPEC 6.3: whoever stops waiting for a call does not lose the next refresh token.
#[tokio::test]
async fn nobody_waits_for_the_refresh() {
    let (world, network) = (World::start(Trick::Nothing).await, network());
    world.login(&network, None).await.unwrap();
    let peer = connect(&world, &network).await.unwrap();
    world.turn(Trick::TokenHangs);
    world.revoke();
    tokio::select! {
        done = call(&peer) => panic!("{done:?}"),
        () = world.reached_times("/token", 2) => {}
    }
    world.release();
    // Waits until the refresh is over.
    call(&peer).await.unwrap();
    assert_eq!(world.heard("/token").len(), 2);
}

/// SPEC 6.3: what a request in the middle was refused with is asked for at the next login.
#[tokio::test]
async fn refused_in_the_middle() {
    let (world, network) = (World::start(Trick::Nothing).await, network());
    world.login(&network, None).await.unwrap();
    let peer = connect(&world, &network).await.unwrap();
    world.turn(Trick::CallsRefused);
    let refused = call(&peer).await.unwrap_err();
    assert!(refused.message.contains("needs login"), "{refused}");
    world.login(&network, None).await.unwrap();
    let asked = query(world.heard("/authorize")[1].path.split_once('?').unwrap().1);
    assert_eq!(asked["scope"], "base calls");
}

/// SPEC 6.3: a scope that is missing is asked for at the next login, with all that was allowed before.
#[tokio::test]
async fn more_is_asked_for() {
    let (world, network) = (World::start(Trick::NeedsMore).await, network());
    world.login(&network, None).await.unwrap();
    let peer = connect(&world, &network).await.unwrap();
    let refused = call(&peer).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Forbidden);
    assert!(refused.message.contains("allowed more (more)"), "{refused}");
    world.login(&network, None).await.unwrap();
    let asked = query(world.heard("/authorize")[1].path.split_once('?').unwrap().1);
    assert_eq!(asked["scope"], "base more");
    call(&peer).await.unwrap();
}

/// SPEC 6.6: a server that is never content does not make a person log in for ever.
#[tokio::test]
async fn never_enough() {
    let (world, network) = (World::start(Trick::NeverEnough).await, network());
    world.login(&network, None).await.unwrap();
    let peer = connect(&world, &network).await.unwrap();
    let refused = call(&peer).await.unwrap_err();
    assert!(
        refused.message.contains("logging in again would change nothing"),
        "{refused}"
    );
    assert_eq!(world.heard("/authorize").len(), 1);
}

/// SPEC 6.11, 12: what does not hold together ends the login, before anything secret has left.
#[tokio::test]
async fn what_ends_a_login() {
    for (trick, said, tokens_asked) in [
        (Trick::WrongState, "not those of this login", 0),
        (Trick::WrongIssuer, "another issuer answered", 0),
        (Trick::TwoCodes, "has no code", 0),
        (Trick::Denied, "not allowed: access_denied", 0),
        (Trick::HugeMetadata, "more than 256 KB", 0),
        (Trick::NoDocuments, "it says nowhere how to log in", 0),
        (Trick::NoRegistration, "registers nobody by itself", 0),
        (Trick::NoPkce, "does not offer PKCE", 0),
        (Trick::PlainToken, "a login needs https", 0),
        (Trick::TokenElsewhere, "it redirects", 1),
        (Trick::TokenEchoes, "400 without a token", 1),
    ] {
        let (world, network) = (World::start(trick).await, network());
        let error = world.login(&network, None).await.unwrap_err();
        assert!(error.message.contains(said), "{trick:?}: {error}");
        assert!(!error.message.contains("code-one-secret"), "{trick:?}: {error}");
        assert_eq!(world.heard("/token").len(), tokens_asked, "{trick:?}");
        assert!(world.heard("/stolen").is_empty(), "{trick:?}");
        assert!(secrets(&network).is_empty(), "{trick:?}");
    }
}

/// SPEC 6.3, 12: a request that somebody else sends ends no login, and the browser says how it ended.
#[tokio::test]
async fn what_the_browser_shows() {
    let (world, network) = (World::start(Trick::StrayFirst).await, network());
    world.login(&network, None).await.unwrap();
    let pages = world.pages(2).await;
    assert_eq!((pages[0].0, pages[1].0), (400, 200), "{pages:?}");
    assert!(pages[1].1.contains("has the answer"), "{pages:?}");
    world.turn(Trick::Denied);
    world.login(&network, None).await.unwrap_err();
    let (status, text) = world.pages(3).await.remove(2);
    assert!(
        status == 200 && text.contains("Not allowed; see the terminal"),
        "{text}"
    );
}

/// SPEC 12: a token endpoint that never answers is not waited for for ever.
#[tokio::test]
async fn a_token_endpoint_that_hangs() {
    let (world, network) = (World::start(Trick::TokenHangs).await, network());
    let hanging = async {
        world.reached("/token").await;
        // From here on nothing happens but time.
        tokio::time::pause();
        std::future::pending::<()>().await;
    };
    let error = tokio::select! {
        done = world.login(&network, None) => done.unwrap_err(),
        () = hanging => unreachable!(),
    };
    assert_eq!(error.kind, ErrorKind::Timeout, "{error}");
}
