//! Servers that refuse a part of a request and say which.

use super::server::{Server, Step, response};
use super::{STOP, ask, events, provider, read, refused, request, text};
use aish_core::id::CallId;
use aish_core::message::{Message, MessageCall, Part, text_of};
use aish_provider::profile::Support;
use aish_provider::{ErrorKind, Provider, Request};

/// A conversation with a call and its result.
fn after_a_call() -> [Message; 2] {
    let id = CallId::nth(1, 1);
    [
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
            parts: Vec::new(),
        },
    ]
}

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
    let messages = after_a_call();
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

pub(super) fn refusal(status: &str, words: &str) -> Step {
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

/// SPEC 7.4, 10.4, 12: a server that refuses everything is asked nine times and no more. Its last words are told, with what it
/// had refused before; what it went on from is remembered. A key or a limit is never answered in another way.
#[tokio::test]
async fn refusals_end() {
    let words = [
        "temperature is not supported",
        "stream_options is not supported",
        "System role not supported",
        "streaming is not supported",
        "unknown field: max_completion_tokens",
        "response_format is not supported",
        "this model does not support tools",
        "image_url is not supported",
        "ids must have a length of 9",
        "no",
    ];
    let scripts = words.map(|words| vec![refusal("400 Bad Request", words)]);
    let server = Server::start(scripts.to_vec()).await;
    let provider = provider(&server);
    let mut messages = after_a_call().to_vec();
    messages.push(Message::User {
        parts: vec![Part::Image {
            media_type: "image/png".to_owned(),
            data: "AAAA".to_owned(),
        }],
    });
    let schema = serde_json::json!({"type": "object"});
    let everything = Request {
        system: "Be brief.",
        max_output_tokens: Some(100),
        schema: Some(&schema),
        ..request(&messages)
    };
    let error = provider.send(everything).await.err().unwrap();
    assert_eq!((error.kind, server.connections()), (ErrorKind::Status(400), 9));
    assert!(
        error.message.ends_with(
            "400 Bad Request: ids must have a length of 9 (refused before and changed: temperature, stream_options, \
             the system role, streaming, the field for the reply's length, structured output, tools, images)"
        ),
        "{}",
        error.message
    );
    let learned = provider.learned();
    assert_eq!((learned.temperature, learned.tools), (None, Support::No));
    // Of the last change nothing is known.
    assert_eq!(learned.images, Support::Yes);
    let again = refused(&provider).await;
    assert!(again.message.ends_with("400 Bad Request: no"), "{}", again.message);

    for status in ["401 Unauthorized", "429 Too Many Requests"] {
        let server = Server::start(vec![vec![refusal(status, "temperature is not supported")]]).await;
        let _refused = refused(&super::provider(&server)).await;
        assert_eq!(server.connections(), 1, "{status}");
    }
}

/// SPEC 7.4: which field is refused may stand beside the words only.
#[tokio::test]
async fn fields_beside_the_words() {
    let body = r#"{"error":{"message":"No.","type":"invalid_request_error","code":"unsupported_value","param":"temperature"}}"#;
    let no = Step::Write(response("400 Bad Request", "content-type: application/json\r\n", body));
    let server = Server::start(vec![vec![no], vec![events(&(text("yes") + STOP))]]).await;
    let (reply, _) = ask(&provider(&server)).await;
    assert_eq!(reply.remarks, ["the server refuses temperature: asked without it"]);
}

/// SPEC 10.4: a status without a name is told without one.
#[tokio::test]
async fn statuses_without_a_name() {
    let server = Server::start(vec![vec![refusal("529 ", "Overloaded")]]).await;
    let error = refused(&provider(&server)).await;
    assert!(error.message.ends_with(": 529: Overloaded"), "{}", error.message);
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
