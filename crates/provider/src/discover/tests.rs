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

/// SPEC 7.7, 10.4: servers that answer are found, in the order of the table, and so is why one does not tell its models; what is
/// no server of models is passed over.
#[tokio::test]
async fn local_servers() {
    let client = client(&Timeouts::default(), &Network::default()).unwrap();
    let hanging = server(None).await;
    let other = server(Some("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n<html>hello</html>")).await;
    let missing = server(Some("HTTP/1.1 404 Not Found\r\nconnection: close\r\n\r\n")).await;
    let locked = server(Some("HTTP/1.1 401 Unauthorized\r\nconnection: close\r\n\r\n{}")).await;
    let (a, b) = (server(Some(MODELS)).await, server(Some(MODELS)).await);
    let table = [
        ("hanging", hanging.as_str()),
        ("b", b.as_str()),
        ("other", other.as_str()),
        ("missing", missing.as_str()),
        ("locked", locked.as_str()),
        ("refusing", "http://127.0.0.1:1/v1"),
        ("a", a.as_str()),
    ];
    let candidates = table.map(|(name, base_url)| Candidate {
        name,
        base_url: base_url.to_owned(),
        ..Candidate::of_preset(preset::find("llama.cpp").unwrap(), |_| false)
    });
    let found = probe_all(&client, candidates.into()).await;
    let names: Vec<_> = found.iter().map(|(candidate, _)| candidate.name).collect();
    assert_eq!(names, ["hanging", "b", "locked", "a"]);
    let kind = |at: usize| found[at].1.as_ref().unwrap_err().kind;
    assert_eq!((kind(0), kind(2)), (ErrorKind::Timeout, ErrorKind::Auth));
    let listed = found[1].1.as_ref().unwrap();
    let ids: Vec<&str> = listed.iter().map(|model| model.id.as_str()).collect();
    assert_eq!(ids, ["one", "two"]);
    // What llama.cpp's server tells of a model besides its name.
    let told = (listed[0].context_window, listed[0].parameters);
    assert_eq!(told, (Some(4096), Some(134_515_008)));
    let profiles: Vec<CallsPerReply> = listed.iter().map(|model| found[1].0.profile(model).calls).collect();
    assert_eq!(profiles, [CallsPerReply::One, CallsPerReply::Any]);
}

/// SPEC 7.7: an address that the environment names for a provider goes with its key; it may be a server of another kind.
#[test]
fn addresses_of_the_environment() {
    let one = |vars: &[(&str, &str)]| {
        let mut all = from_vars(|name| vars.iter().find(|var| var.0 == name).map(|var| var.1.to_owned()));
        assert_eq!(all.len(), 1);
        let found = all.remove(0);
        (found.format, found.base_url, found.key_env)
    };
    assert_eq!(
        one(&[("OPENAI_API_KEY", "k")]),
        (
            Format::OpenaiResponses,
            "https://api.openai.com/v1".to_owned(),
            Some("OPENAI_API_KEY")
        )
    );
    assert_eq!(
        one(&[("OPENAI_BASE_URL", "http://desk:1/v1/")]),
        (Format::OpenaiChat, "http://desk:1/v1".to_owned(), None)
    );
    assert_eq!(
        one(&[("ANTHROPIC_BASE_URL", "http://proxy"), ("ANTHROPIC_API_KEY", "k")]),
        (Format::Anthropic, "http://proxy".to_owned(), Some("ANTHROPIC_API_KEY"))
    );
    assert_eq!(one(&[("GOOGLE_API_KEY", "k")]).2, Some("GOOGLE_API_KEY"));
}

/// SPEC 7.7: at its own address a provider has a model to begin with; a proxy in its place is asked which it has.
#[test]
fn models_to_begin_with() {
    let begin = |vars: &[(&str, &str)]| {
        let mut all = from_vars(|name| vars.iter().find(|var| var.0 == name).map(|var| var.1.to_owned()));
        all.remove(0).default_model
    };
    assert_eq!(begin(&[("OPENAI_API_KEY", "k")]).as_deref(), Some("gpt-5.1"));
    assert_eq!(
        begin(&[("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", "http://desk/v1")]),
        None
    );
}

/// SPEC 10.4: what is no address is told before it is asked.
#[test]
fn addresses() {
    for good in ["http://h", "https://h/v1", " http://[::1]:8080/v1 ", "http://bob:pw@h"] {
        assert!(is_address(good), "{good}");
    }
    for bad in ["127.0.0.1:18801", "localhost:8080/v1", "h", "ftp://h", "http://", ""] {
        assert!(!is_address(bad), "{bad}");
    }
}

/// SPEC 7.2, 7.4: each format's list, with what servers add to it; entries that are none are passed over.
#[test]
fn lists_of_each_format() {
    let read = |format, body: &str| {
        let page = listing::read_page(format, body.as_bytes()).unwrap();
        let models: Vec<_> = page
            .models
            .into_iter()
            .map(|model| (model.id, model.context_window))
            .collect();
        (models, page.next)
    };
    let id = |id: &str, window| (id.to_owned(), window);
    for (body, window) in [
        (r#"{"data":[{"id":"m","max_model_len":10},{"id":7},null]}"#, Some(10)),
        (r#"{"data":[{"id":"m","context_length":10,"meta":null}]}"#, Some(10)),
        (r#"[{"id":"m","context_window":"many"}]"#, None),
    ] {
        assert_eq!(read(Format::OpenaiChat, body), (vec![id("m", window)], None));
    }
    let more = r#"{"data":[{"type":"model","id":"claude"}],"has_more":true,"last_id":"claude"}"#;
    assert_eq!(
        read(Format::Anthropic, more),
        (vec![id("claude", None)], Some("claude".to_owned()))
    );
    let last = r#"{"data":[],"has_more":false,"last_id":"claude"}"#;
    assert_eq!(read(Format::Anthropic, last), (vec![], None));
    let gemini = r#"{"models":[{"name":"models/gemini-x","inputTokenLimit":9,"supportedGenerationMethods":["generateContent"]},
        {"name":"models/embed","supportedGenerationMethods":["embedContent"]}],"nextPageToken":"t&x=1"}"#;
    assert_eq!(
        read(Format::Gemini, gemini),
        (vec![id("gemini-x", Some(9))], Some("t&x=1".to_owned()))
    );
    for broken in ["", "<html>", "{}", "7", r#"{"data":{}}"#] {
        assert!(
            listing::read_page(Format::OpenaiChat, broken.as_bytes()).is_err(),
            "{broken}"
        );
    }
}

/// SPEC 7.1, 7.7: the list is asked for where questions go, whatever of the address people wrote.
#[test]
fn the_address_of_the_list() {
    let check = |format, base_url: &str, expect: &str| {
        let endpoint = Endpoint {
            format,
            base_url,
            key: None,
        };
        assert_eq!(endpoint.url(None), expect, "{base_url}");
    };
    for base in ["http://h/v1", " http://h/v1/", "http://h/v1/chat/completions"] {
        check(Format::OpenaiChat, base, "http://h/v1/models");
    }
    check(Format::OpenaiResponses, "http://h/v1/responses", "http://h/v1/models");
    check(
        Format::OpenaiChat,
        "http://h/v1/chat/completions?api-version=1",
        "http://h/v1/models?api-version=1",
    );
    for base in ["http://h", "http://h/v1", "http://h/v1/", "http://h/v1/messages"] {
        check(Format::Anthropic, base, "http://h/v1/models?limit=1000");
    }
    for base in [
        "http://h",
        "http://h/v1beta/",
        "http://h/v1beta/models",
        "http://h/v1beta/models/gemini-x:streamGenerateContent?alt=sse",
    ] {
        let query = if base.contains('?') { "alt=sse&" } else { "" };
        check(
            Format::Gemini,
            base,
            &format!("http://h/v1beta/models?{query}pageSize=1000"),
        );
    }
}

/// SPEC 10.4: a web server is told from an endpoint that has no list, whatever the status.
#[tokio::test]
async fn web_pages() {
    let client = client(&Timeouts::default(), &Network::default()).unwrap();
    for (answer, expect) in [
        (
            "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n\n<!DOCTYPE html>",
            ErrorKind::Protocol,
        ),
        (
            "HTTP/1.1 404 Not Found\r\nconnection: close\r\n\r\n<html>",
            ErrorKind::Protocol,
        ),
        (
            "HTTP/1.1 404 Not Found\r\nconnection: close\r\n\r\n{\"error\":{\"message\":\"no\"}}",
            ErrorKind::Status(404),
        ),
    ] {
        let base_url = server(Some(answer)).await;
        let endpoint = Endpoint {
            format: Format::OpenaiChat,
            base_url: &base_url,
            key: None,
        };
        let error = list(&client, endpoint, Duration::from_secs(5)).await.unwrap_err();
        assert_eq!(error.kind, expect, "{}", error.message);
        let is_page = error.message.contains("a web page, no list of models");
        assert_eq!(is_page, expect == ErrorKind::Protocol, "{}", error.message);
    }
}

/// What OpenRouter's list says of prices, per million; a price that depends is none.
#[test]
fn listed_prices() {
    let price = |pricing: &str| {
        let body = format!(r#"{{"data":[{{"id":"m","pricing":{pricing}}}]}}"#);
        listing::read_page(Format::OpenaiChat, body.as_bytes())
            .unwrap()
            .models
            .remove(0)
            .price
    };
    let told = price(r#"{"prompt":"0.000003","completion":"0.000015","input_cache_read":"0"}"#).unwrap();
    assert!((told.input - 3.0).abs() < 1e-9 && (told.output - 15.0).abs() < 1e-9);
    assert_eq!((told.cached, told.cache_write), (Some(0.0), None));
    for none in [
        r#"{"prompt":"-1","completion":"-1"}"#,
        r#"{"prompt":"x"}"#,
        "null",
        r#"{"prompt":"nan","completion":"1"}"#,
        r#"{"prompt":"1e300","completion":"1"}"#,
        r#"{"prompt":"1","completion":"1.1"}"#,
    ] {
        assert_eq!(price(none), None, "{none}");
    }
}

/// SPEC 12: an id that is no name, but a flood, is left out.
#[test]
fn ids_of_any_length() {
    let ids = |format: Format, long: usize| {
        let long = "x".repeat(long);
        let body = match format {
            Format::Gemini => format!(r#"{{"models":[{{"name":"models/{long}"}},{{"name":"models/m"}}]}}"#),
            Format::OpenaiChat | Format::OpenaiResponses | Format::Anthropic => {
                format!(r#"{{"data":[{{"id":"{long}"}},{{"id":"m"}}]}}"#)
            }
        };
        listing::read_page(format, body.as_bytes()).unwrap().models.len()
    };
    for format in [Format::OpenaiChat, Format::Anthropic, Format::Gemini] {
        assert_eq!((ids(format, 512), ids(format, 513)), (2, 1), "{format:?}");
    }
}

/// SPEC 10.4, 10.5: a list that is not to be had says what was asked and why, without the key and what else may be secret.
#[tokio::test]
async fn why_there_is_no_list() {
    let client = client(&Timeouts::default(), &Network::default()).unwrap();
    let refusing = server(Some(
        "HTTP/1.1 401 Unauthorized\r\nconnection: close\r\n\r\n{\"error\":{\"message\":\"bad key test-key-123\"}}",
    ))
    .await;
    let ask = |base_url: &str| {
        let (client, base_url) = (client.clone(), base_url.to_owned());
        async move {
            let endpoint = Endpoint {
                format: Format::OpenaiChat,
                base_url: &base_url,
                key: Some("test-key-123"),
            };
            list(&client, endpoint, Duration::from_secs(5)).await.unwrap_err()
        }
    };
    let error = ask(&refusing).await;
    assert_eq!(error.kind, ErrorKind::Auth);
    assert_eq!(
        error.message,
        format!("GET {refusing}/models: 401 Unauthorized: bad key [redacted]")
    );
    assert_eq!(ask("http://127.0.0.1:1/v1").await.kind, ErrorKind::Connect);
    assert_eq!(ask("nonsense").await.kind, ErrorKind::Protocol);
}
