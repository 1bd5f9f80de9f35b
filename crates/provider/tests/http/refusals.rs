//! Servers that refuse a part of a request and say which.

use super::server::{Server, Step, response};
use super::{STOP, ask, events, provider, read, refused, request, text};
use aish_core::id::CallId;
use aish_core::message::{Message, MessageCall, Part, text_of};
use aish_provider::{ErrorKind, Provider, Request};

/// SPEC 7.5: after a template error the conversation is written without tool messages, once and from then on.
#[tokio::test]
async fn template_errors() {
    let refusal = response(
        "500 Internal Server Error",
        "",
        r#"{"error":{"message":"Jinja Exception: unknown role"}}"#,
    );
    let fine = || vec![events(&(text("yes") + STOP))];
    let server = Server::start(vec![vec![Step::Write(refusal)], fine(), fine()]).await;
    let provider = provider(&server);
    let id = CallId::nth(1, 1);
    let messages = [
        Message::Assistant {
            parts: Vec::new(),
            calls: vec![MessageCall {
                id: id.clone(),
                provider_id: None,
                name: "now".to_owned(),
                arguments: "{}".to_owned(),
            }],
            model: None,
        },
        Message::Tool {
            call_id: id,
            provider_id: None,
            name: "now".to_owned(),
            output: "noon".to_owned(),
            success: true,
        },
    ];
    for remarks in [1, 0] {
        let (reply, _) = read(provider.send(request(&messages)).await.unwrap()).await;
        assert_eq!((text_of(&reply.parts).as_str(), reply.remarks.len()), ("yes", remarks));
    }
    let is_native: Vec<bool> = server
        .requests()
        .iter()
        .map(|asked| asked.contains("\"role\":\"tool\""))
        .collect();
    assert_eq!(is_native, [true, false, false]);
    assert!(server.requests()[1].contains("[tool: now]\\nnoon"));
}

fn refusal(status: &str, words: &str) -> Step {
    let body = format!("{{\"error\":{{\"message\":\"{words}\"}}}}");
    Step::Write(response(status, "content-type: application/json\r\n", &body))
}

/// SPEC 7.4: what a server refuses is left out at once, one thing after another, told once and remembered.
#[tokio::test]
async fn refused_fields() {
    let fine = || vec![events(&(text("yes") + STOP))];
    let server = Server::start(vec![
        vec![refusal(
            "400 Bad Request",
            "'temperature' does not support 0.2 with this model",
        )],
        vec![refusal(
            "422 Unprocessable Entity",
            "stream_options: Extra inputs are not permitted",
        )],
        fine(),
        fine(),
    ])
    .await;
    let provider = provider(&server);
    let (reply, _) = ask(&provider).await;
    let begins = [
        "the server refuses temperature: ",
        "the server refuses stream_options: ",
    ];
    assert_eq!(reply.remarks.len(), 2, "{:?}", reply.remarks);
    assert!(
        reply
            .remarks
            .iter()
            .zip(begins)
            .all(|(remark, begin)| remark.starts_with(begin))
    );
    assert_eq!(ask(&provider).await.0.remarks, Vec::<String>::new());
    let asked = server.requests();
    let has = |field: &str| asked.iter().map(|asked| asked.contains(field)).collect::<Vec<_>>();
    assert_eq!(has("\"temperature\""), [true, false, false, false]);
    assert_eq!(has("\"stream_options\""), [true, true, false, false]);
}

/// SPEC 7.4, 12: a server that refuses everything is asked five times and no more, and its last words are told; nothing is
/// learned from a request that was never taken. A key or a limit is never answered in another way.
#[tokio::test]
async fn refusals_end() {
    let words = [
        "temperature is not supported",
        "stream_options is not supported",
        "System role not supported",
        "streaming is not supported",
        "max_tokens is not supported",
        "nothing is supported, not even 'system'",
    ];
    let scripts = words.map(|words| vec![refusal("400 Bad Request", words)]);
    let server = Server::start(scripts.to_vec()).await;
    let provider = provider(&server);
    let messages = [Message::User {
        parts: vec![Part::text("hi")],
    }];
    let with_system = Request {
        system: "Be brief.",
        ..request(&messages)
    };
    let error = provider.send(with_system).await.err().unwrap();
    assert_eq!((error.kind, server.connections()), (ErrorKind::Status(400), 5));
    assert!(
        error.message.ends_with("400 Bad Request: max_tokens is not supported"),
        "{}",
        error.message
    );
    let _refused = refused(&provider).await;
    assert!(server.requests()[5].contains("\"temperature\""));

    for status in ["401 Unauthorized", "429 Too Many Requests"] {
        let server = Server::start(vec![vec![refusal(status, "temperature is not supported")]]).await;
        let _refused = refused(&super::provider(&server)).await;
        assert_eq!(server.connections(), 1, "{status}");
    }
}

/// SPEC 7.5, 7.6: a refusal that comes inside an answer with status 200, as LM Studio's, is learned from, and worth asking
/// again: <https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/2180>.
#[tokio::test]
async fn refusals_in_the_stream() {
    let error = "event: error\ndata: {\"error\":{\"code\":400,\"message\":\"System role not supported\"}}\n\n";
    let late = text("so far") + error;
    let fine = || vec![events(&(text("yes") + STOP))];
    let server = Server::start(vec![vec![events(&late)], vec![events(error)], fine()]).await;
    let provider = provider(&server);
    let messages = [Message::User {
        parts: vec![Part::text("hi")],
    }];
    let with_system = Request {
        system: "Be brief.",
        ..request(&messages)
    };
    let mut replies = Vec::new();
    for _ in 0..3 {
        replies.push(read(provider.send(with_system).await.unwrap()).await.0);
    }
    let kinds: Vec<_> = replies
        .iter()
        .map(|reply| reply.error.as_ref().map(|error| error.kind))
        .collect();
    assert_eq!(kinds, [Some(ErrorKind::Status(400)), Some(ErrorKind::Stream), None]);
    let remarks: Vec<_> = replies.iter().map(|reply| reply.remarks.len()).collect();
    assert_eq!(remarks, [0, 1, 0]);
    assert!(!server.requests()[2].contains("\"role\":\"system\""));
}
