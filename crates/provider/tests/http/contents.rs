//! Servers that refuse what a conversation has in it: no later request may be refused for it again.

use super::refusals::refusal;
use super::server::{Server, Step, response};
use super::{STOP, events, provider, read, request, text, timeouts};
use aish_core::message::{Message, Part};
use aish_provider::client::{Network, client};
use aish_provider::profile::Format;
use aish_provider::{HttpProvider, ModelProfile, Provider, Request};

fn image(data: &str) -> Part {
    Part::Image {
        media_type: "image/png".to_owned(),
        data: data.to_owned(),
    }
}

fn user(parts: Vec<Part>) -> Message {
    Message::User { parts }
}

/// Which of these are in each request.
fn seen(server: &Server, what: &[&str]) -> Vec<Vec<bool>> {
    let requests = server.requests();
    let in_request = |asked: &String| what.iter().map(|what| asked.contains(what)).collect();
    requests.iter().map(in_request).collect()
}

/// SPEC 3.7: an image that was refused is told in words from then on; images that were taken, and new ones, are sent.
#[tokio::test]
async fn refused_images() {
    let fine = || vec![events(&(text("yes") + STOP))];
    let bad = || vec![refusal("400 Bad Request", "You uploaded an unsupported image.")];
    let server = Server::start(vec![fine(), bad(), fine(), fine()]).await;
    let provider = provider(&server);
    let mut messages = vec![user(vec![Part::text("one"), image("GOOD")])];
    for (data, remarks) in [("BADIMAGE", 0), ("NEWIMAGE", 1), ("", 0)] {
        let (reply, _) = read(provider.send(request(&messages)).await.unwrap()).await;
        assert_eq!(reply.remarks.len(), remarks, "{:?}", reply.remarks);
        messages.push(user(vec![Part::text("more"), image(data)]));
    }
    let expect = [
        [true, false, false, false],
        [true, true, false, false],
        [true, false, false, true],
        [true, false, true, true],
    ];
    assert_eq!(
        seen(&server, &["GOOD", "BADIMAGE", "NEWIMAGE", "image left out"]),
        expect
    );
}

const ANTHROPIC_REPLY: &str =
    r#"{"type":"message","role":"assistant","content":[{"type":"text","text":"yes"}],"stop_reason":"end_turn"}"#;

fn thought(signature: &str) -> Message {
    Message::Assistant {
        parts: vec![
            Part::Thinking {
                text: "I weigh it.".to_owned(),
                signature: Some(signature.to_owned()),
                format: Some(Format::Anthropic.name().to_owned()),
            },
            Part::text("so"),
        ],
        calls: Vec::new(),
        model: Some("tested".to_owned()),
    }
}

/// SPEC 3.7: thinking whose signature is not accepted any more is told as another model's, and newer thinking sent as it was;
/// when that is refused too, all of it is told.
#[tokio::test]
async fn refused_signatures() {
    let fine = || {
        vec![Step::Write(response(
            "200 OK",
            "content-type: application/json\r\n",
            ANTHROPIC_REPLY,
        ))]
    };
    let bad = || {
        let words = "messages.1.content.0: Invalid `signature` in `thinking` block";
        vec![refusal("400 Bad Request", words)]
    };
    let server = Server::start(vec![bad(), fine(), fine(), bad(), fine(), fine()]).await;
    let profile = ModelProfile::new(Format::Anthropic, server.base_url(), "m");
    let client = client(&timeouts(), &Network::default()).unwrap();
    let provider = HttpProvider::new(client, profile, None, timeouts());
    let ask = || user(vec![Part::text("go on")]);
    let mut messages = vec![ask()];
    for (signature, remarks) in [
        ("SIGNATURE1", 1),
        ("SIGNATURE2", 0),
        ("SIGNATURE3", 1),
        ("SIGNATURE4", 0),
    ] {
        messages.extend([thought(signature), ask()]);
        let (reply, _) = read(provider.send(request(&messages)).await.unwrap()).await;
        assert_eq!(reply.remarks.len(), remarks, "{:?}", reply.remarks);
    }
    let expect = [
        [true, false, false, false],
        [false, false, false, false],
        [false, true, false, false],
        [false, true, true, false],
        [false, false, false, false],
        [false, false, false, false],
    ];
    let signatures = ["SIGNATURE1", "SIGNATURE2", "SIGNATURE3", "SIGNATURE4"];
    assert_eq!(seen(&server, &signatures), expect);
    assert!(server.requests()[1].contains("<thinking>\\nI weigh it."));
}

/// SPEC 3.7, 7.4: a reply that was asked to be too long is asked for as long as the server allows, in every format.
#[tokio::test]
async fn replies_too_long() {
    for format in Format::ALL {
        let words = "max_tokens: 90000 > 70001, which is the maximum allowed number of output tokens for m";
        let bad = |words| vec![refusal("400 Bad Request", words)];
        let server = Server::start(vec![bad(words), bad("no")]).await;
        let client = client(&timeouts(), &Network::default()).unwrap();
        let profile = ModelProfile::new(format, server.base_url(), "m");
        let provider = HttpProvider::new(client, profile, None, timeouts());
        let messages = [user(vec![Part::text("hi")])];
        let asked = Request {
            max_output_tokens: Some(90_000),
            ..request(&messages)
        };
        let error = provider.send(asked).await.err().unwrap();
        assert!(
            error
                .message
                .ends_with(": no (refused before and changed: so long a reply)"),
            "{}",
            error.message
        );
        assert_eq!(
            seen(&server, &[":90000", ":70001"]),
            [[true, false], [false, true]],
            "{format:?}"
        );
    }
}
