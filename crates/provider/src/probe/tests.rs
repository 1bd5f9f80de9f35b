//! Tests of the battery's judgement, as far as no server is needed; the whole of it is tried in the program's own tests.
#![allow(clippy::unwrap_used)]

use super::*;

fn error(kind: ErrorKind) -> ProviderError {
    ProviderError {
        kind,
        message: String::new(),
        retry_after: None,
    }
}

/// SPEC 7.5: only a refusal of the request itself says something of the endpoint; a server that is away or busy does not.
#[test]
fn what_a_refusal_is() {
    for status in [400, 422, 500, 501] {
        assert!(is_refusal(&error(ErrorKind::Status(status))), "{status}");
    }
    for kind in [
        ErrorKind::Status(429),
        ErrorKind::Status(503),
        ErrorKind::Connect,
        ErrorKind::Timeout,
        ErrorKind::Auth,
    ] {
        assert!(!is_refusal(&error(kind)), "{kind:?}");
    }
}

/// A reply keeps to the schema when it is such JSON and nothing else.
#[test]
fn what_keeps_to_the_schema() {
    assert!(questions::fits(" {\"answer\": 4}\n"));
    for odd in [
        "4",
        "{\"answer\": \"4\"}",
        "```json\n{\"answer\": 4}\n```",
        "",
        "{\"answer\": 4} yes",
    ] {
        assert!(!questions::fits(odd), "{odd}");
    }
}

/// A server that is not there ends the battery with its first question.
#[tokio::test]
async fn nobody_there() {
    let client = crate::client::client(&Timeouts::default(), &crate::client::Network::default()).unwrap();
    let profile = ModelProfile::openai_chat("http://127.0.0.1:1/v1", "m");
    let mut told = Vec::new();
    let probed = run(&client, profile.clone(), None, &mut |finding| {
        told.push(finding.clone())
    })
    .await;
    assert_eq!(probed.failure.unwrap().kind, ErrorKind::Connect);
    assert_eq!((probed.profile, probed.findings.len()), (profile, 1));
    assert_eq!(told, probed.findings);
}
