//! Tests of finding a model.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::client::{Network, Timeouts, client};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

fn names(vars: &[(&str, &str)]) -> Vec<(&'static str, String)> {
    let found = from_vars(|name| vars.iter().find(|var| var.0 == name).map(|var| var.1.to_owned()));
    found
        .into_iter()
        .map(|candidate| (candidate.name, candidate.base_url))
        .collect()
}

/// SPEC 7.7: our own variable comes first, an unset or empty key names nobody.
#[test]
fn order_of_the_environment() {
    let all = names(&[
        ("OPENROUTER_API_KEY", "k"),
        ("OPENAI_API_KEY", "k"),
        ("AISH_BASE_URL", "http://desk:8080/v1"),
        ("XAI_API_KEY", " "),
    ]);
    let expect = [
        ("aish", "http://desk:8080/v1"),
        ("openai", "https://api.openai.com/v1"),
        ("openrouter", "https://openrouter.ai/api/v1"),
    ];
    assert_eq!(all, expect.map(|(name, url)| (name, url.to_owned())));
    assert_eq!(names(&[]), []);
    assert_eq!(
        names(&[("OPENAI_BASE_URL", "http://a/v1")]),
        [("openai", "http://a/v1".to_owned())]
    );
}

/// SPEC 7.7: a key is named by its variable, never held.
#[test]
fn keys_are_named() {
    let found = from_vars(|name| (name == "OPENROUTER_API_KEY").then(|| "secret".to_owned()));
    assert_eq!(found[0].key_env, Some("OPENROUTER_API_KEY"));
    assert!(!format!("{found:?}").contains("secret"));
}

/// Answers every connection with these bytes and closes it, or says nothing at all.
async fn server(answer: Option<&'static str>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let _read = socket.read(&mut request).await;
            match answer {
                Some(answer) => socket.write_all(answer.as_bytes()).await.unwrap(),
                None => kept.push(socket),
            }
        }
    });
    format!("http://{address}/v1")
}

const MODELS: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n\
    {\"object\":\"list\",\"data\":[{\"id\":\"one\",\"object\":\"model\",\
    \"meta\":{\"n_ctx\":4096,\"n_params\":134515008}},{\"id\":\"two\"}]}";

/// SPEC 7.7: servers that answer are found, in the order of the table; one that hangs or is something else is not.
#[tokio::test]
async fn local_servers() {
    let client = client(&Timeouts::default(), &Network::default()).unwrap();
    let hanging = server(None).await;
    let other = server(Some("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n<html>hello</html>")).await;
    let missing = server(Some("HTTP/1.1 404 Not Found\r\nconnection: close\r\n\r\n")).await;
    let (a, b) = (server(Some(MODELS)).await, server(Some(MODELS)).await);
    let table = [
        ("hanging", hanging.as_str()),
        ("b", b.as_str()),
        ("other", other.as_str()),
        ("missing", missing.as_str()),
        ("refusing", "http://127.0.0.1:1/v1"),
        ("a", a.as_str()),
    ];
    let found = probe_all(&client, &table).await;
    let names: Vec<_> = found.iter().map(|(candidate, _)| candidate.name).collect();
    assert_eq!(names, ["b", "a"]);
    let ids: Vec<&str> = found[0].1.iter().map(|model| model.id.as_str()).collect();
    assert_eq!(ids, ["one", "two"]);
    // What llama.cpp's server tells of a model besides its name.
    let told = (found[0].1[0].context_window, found[0].1[0].parameters);
    assert_eq!(told, (Some(4096), Some(134_515_008)));
    assert_eq!(found[0].0.default_model.as_deref(), Some("one"));
}
