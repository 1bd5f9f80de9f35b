//! What servers say when they refuse, in their own words and shapes.

use super::*;
use std::time::Duration;

#[track_caller]
fn check(status: u16, body: &str, kind: ErrorKind, message: &str) {
    let error = of_status(status, body);
    assert_eq!((error.kind, error.message.as_str()), (kind, message));
}

/// SPEC 10.4: the server's own words, whatever shape they come in.
#[test]
fn shapes() {
    for (status, body, message) in [
        (400, r#"{"error":{"message":"bad","code":404}}"#, "bad"),
        (400, r#"{"error":"model\nbusy"}"#, "model busy"),
        (400, r#"{"object":"error","message":"bad","code":400}"#, "bad"),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"bad"}}"#,
            "bad",
        ),
        (
            400,
            r#"[{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}]"#,
            "bad",
        ),
        (
            400,
            r#"{"code":"Client specified an invalid argument","error":"bad"}"#,
            "bad",
        ),
        (400, r#"{"Message":"bad"}"#, "bad"),
        (
            400,
            r#"{"statusCode":400,"error":"Bad Request","message":"bad"}"#,
            "bad",
        ),
        (400, r#"{"errors":[{"message":"bad"}],"success":false}"#, "bad"),
        (404, r#"{"detail":"Not Found"}"#, "Not Found"),
        (422, r#"{"detail":[{"msg":"x"}]}"#, "x"),
        (
            422,
            r#"{"message":{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}}"#,
            "stream_options: Extra inputs are not permitted",
        ),
        (400, r#"{"error":{"message":null}}"#, r#"{"error":{"message":null}}"#),
        (400, "null", ""),
        (502, "<html>Bad gateway", "the server answered with a web page"),
        (503, "", ""),
        (500, "plain words", "plain words"),
    ] {
        check(status, body, ErrorKind::Status(status), message);
    }
    check(401, r#"{"error":{"message":"bad key"}}"#, ErrorKind::Auth, "bad key");
}

/// SPEC 10.4: who passes an error on is not who made it: <https://github.com/charmbracelet/crush/issues/279>.
#[test]
fn errors_that_are_passed_on() {
    let body = r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"object\":\"error\",\"message\":\"Unexpected role 'tool' after role 'user'\",\"code\":\"3230\"}","provider_name":"Mistral"}}}"#;
    check(
        400,
        body,
        ErrorKind::Status(400),
        "Mistral: Unexpected role 'tool' after role 'user'",
    );
    let plain =
        r#"{"error":{"message":"Provider returned error","metadata":{"raw":"out of luck","provider_name":"X"}}}"#;
    check(400, plain, ErrorKind::Status(400), "X: out of luck");
    let quoted = r#"{"error":{"message":"{\"error\":{\"message\":\"inner\",\"code\":\"context_length_exceeded\"}}"}}"#;
    check(400, quoted, ErrorKind::ContextOverflow, "inner");
    let deep = format!("{}\"x\"{}", "{\"error\":".repeat(50), "}".repeat(50));
    assert_eq!(of_status(400, &deep).kind, ErrorKind::Status(400));
}

/// SPEC 7.4: a conversation that does not fit is told apart from other refusals.
#[test]
fn overflow() {
    for body in [
        r#"{"error":{"code":400,"message":"no room","type":"exceed_context_size_error","n_ctx":4096}}"#,
        r#"{"error":{"code":"context_length_exceeded","message":"no room"}}"#,
        r#"{"error":{"message":"no room: This model's maximum context length is 8192 tokens"}}"#,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 215000 tokens > 200000 maximum"}}"#,
        r#"{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#,
        r#"{"object":"error","message":"The decoder prompt (length 9000) is longer than the maximum model length of 8192."}"#,
        r#"{"error":"Trying to keep the first 5000 tokens when context overflows. However, the model is loaded with context length of only 4096 tokens"}"#,
        r#"{"message":"Input is too long for requested model."}"#,
        r#"{"error":"This model's maximum prompt length is 131072 but the request contains 140000 tokens."}"#,
    ] {
        assert_eq!(of_status(400, body).kind, ErrorKind::ContextOverflow, "{body}");
        assert_eq!(of_status(429, body).kind, ErrorKind::Status(429), "{body}");
    }
}

/// SPEC 7.4: the window is in the message even where the server says it in a field only, and said once.
#[test]
fn windows_in_fields() {
    let body = r#"{"error":{"code":400,"message":"no room","type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}}"#;
    check(400, body, ErrorKind::ContextOverflow, "no room (n_ctx: 4096)");
    let twice = r#"{"error":{"message":"exceeds the available context size (4096 tokens)","n_ctx":4096}}"#;
    let once = "exceeds the available context size (4096 tokens)";
    check(400, twice, ErrorKind::ContextOverflow, once);
    check(400, r#"{"message":"bad","n_ctx":4096}"#, ErrorKind::Status(400), "bad");
    for words in [
        "Your request exceeded model token limit: 131072",
        "Range of input length should be [1, 30720]",
    ] {
        assert_eq!(of_status(400, words).kind, ErrorKind::ContextOverflow, "{words}");
    }
}

/// SPEC 7.4: which field a refusal is about may stand beside its words only.
#[test]
fn tags_of_refusals() {
    let body = r#"{"error":{"message":"no","type":"invalid_request_error","code":"Unsupported_Value","param":"reasoning.summary"}}"#;
    let tags = tags(body);
    assert_eq!(
        tags.split_whitespace().collect::<Vec<_>>(),
        ["unsupported_value", "reasoning.summary"]
    );
    assert_eq!(super::tags("plain words"), "");
}

/// SPEC 7.6: waiting helps against a full minute, not against an empty account.
#[test]
fn quota() {
    let empty = r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","code":"insufficient_quota"}}"#;
    let anthropic = r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}"#;
    for (status, body) in [(429, empty), (400, anthropic)] {
        let error = of_status(status, body);
        assert_eq!((error.kind, error.kind.is_retryable()), (ErrorKind::Status(402), false));
    }
    let full =
        r#"{"error":{"message":"Rate limit reached for gpt-5: Limit 30000, Used 29000","code":"rate_limit_exceeded"}}"#;
    assert!(of_status(429, full).kind.is_retryable());
}

/// SPEC 7.6: Google says in the body how long to wait, and asks for one's plan even when a minute is full.
#[test]
fn google_waits() {
    let body = r#"[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"You exceeded your current quota.",
        "details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure"},
        {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]}}]"#;
    let error = of_status(429, body);
    assert_eq!(
        (error.kind, error.retry_after),
        (ErrorKind::Status(429), Some(Duration::from_millis(34_500)))
    );
    let absurd = r#"{"error":{"code":429,"details":[{"retryDelay":"-1s"}]}}"#;
    assert_eq!(of_status(429, absurd).retry_after, None);
}

/// SPEC 7.6: a call that the server could not read was the model's slip, which may be asked again:
/// <https://github.com/groq/groq-typescript/issues/28>.
#[test]
fn calls_that_could_not_be_read() {
    let body = r#"{"error":{"message":"Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"x"}}"#;
    assert!(of_status(400, body).kind.is_retryable());
    let stream = r#"{"message":"Failed to call a function.","type":"invalid_request_error","code":"tool_use_failed","status_code":400}"#;
    assert_eq!(kind_in_stream(stream), ErrorKind::Stream);
}

/// SPEC 10.4: a model that is not there is said with where to look; a key that is wrong is a key that is wrong.
#[test]
fn models_and_keys() {
    let advice = "(`aish models list` shows what there is)";
    for (status, body) in [
        (
            404,
            r#"{"error":{"message":"The model `gpt-9` does not exist","code":"model_not_found"}}"#,
        ),
        (404, r#"{"error":"model \"llama9\" not found, try pulling it first"}"#),
        (
            404,
            r#"{"type":"error","error":{"type":"not_found_error","message":"model: claude-9 not found"}}"#,
        ),
        (
            400,
            r#"{"error":{"message":"gpt-9 is not a valid model ID","code":400}}"#,
        ),
    ] {
        let message = of_status(status, body).message;
        assert!(message.ends_with(advice), "{message}");
    }
    assert!(!of_status(404, "404 page not found").message.contains(advice));
    let google = r#"[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]"#;
    assert_eq!(of_status(400, google).kind, ErrorKind::Auth);
}

fn kind_in_stream(json: &str) -> ErrorKind {
    of_stream(&serde_json::from_str(json).unwrap_or_default()).kind
}

/// SPEC 7.4: an error inside a stream keeps its meaning.
#[test]
fn inside_a_stream() {
    for (json, kind) in [
        (r#"{"code":500,"message":"x"}"#, ErrorKind::Stream),
        (r#"{"code":"429","message":"x"}"#, ErrorKind::Status(429)),
        (
            r#"{"code":400,"type":"exceed_context_size_error"}"#,
            ErrorKind::ContextOverflow,
        ),
        (r#"{"error":{"code":401,"message":"x"}}"#, ErrorKind::Auth),
        (r#""overloaded""#, ErrorKind::Stream),
        (
            r#"{"type":"overloaded_error","message":"Overloaded"}"#,
            ErrorKind::Stream,
        ),
    ] {
        assert_eq!(kind_in_stream(json), kind, "{json}");
    }
}
