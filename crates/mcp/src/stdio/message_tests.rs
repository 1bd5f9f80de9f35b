//! Messages as servers write them: what is read, what is passed over, what is told.

#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;
use proptest::prelude::*;

fn line(text: impl Into<Vec<u8>>) -> Read {
    read(&Line::Whole(text.into()))
}

/// What each message is, in a word, and how many faults there are.
fn told(text: &str) -> (Vec<String>, usize) {
    let read = line(text);
    let words = read.messages.iter().map(|message| match message {
        ServerJsonRpcMessage::Request(request) => format!("request {}", request.id),
        ServerJsonRpcMessage::Response(response) => format!("response {}", response.id),
        ServerJsonRpcMessage::Notification(_) => "notification".to_owned(),
        ServerJsonRpcMessage::Error(error) => {
            let id = error.id.as_ref().map(ToString::to_string).unwrap_or_default();
            format!("error {id} {} {}", error.error.code.0, error.error.message)
        }
    });
    (words.collect(), read.faults.len())
}

fn check(text: &str, expect: &[&str], faults: usize) {
    let (words, found) = told(text);
    assert_eq!(
        (words.iter().map(String::as_str).collect::<Vec<_>>().as_slice(), found),
        (expect, faults),
        "{text}"
    );
}

/// SPEC 6.6: what is a message, and what is passed over.
#[test]
fn messages_and_faults() {
    check(r#"{"jsonrpc":"2.0","id":1,"result":{"x":1}}"#, &["response 1"], 0);
    check(
        "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{}} ",
        &["response a"],
        0,
    );
    check(
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
        &["notification"],
        0,
    );
    check(r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#, &["request 0"], 0);
    let batch = r#"[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":{}},7]"#;
    check(batch, &["response 1", "response 2"], 1);
    check("   ", &[], 0);
    for none in [
        "Server ready on stdio",
        "{",
        "7",
        "null",
        "{}",
        r#"{"level":"info","msg":"hi"}"#,
        "\u{1b}[2J",
        "[1]",
    ] {
        check(none, &[], 1);
    }
    check(&"[".repeat(1_000), &[], 1);
}

/// SPEC 6.6: an error reply that lacks what it must have is one all the same.
#[test]
fn sloppy_errors() {
    check(
        r#"{"jsonrpc":"2.0","id":4,"error":{"message":"no"}}"#,
        &["error 4 -31002 no"],
        1,
    );
    check(r#"{"jsonrpc":"2.0","id":4,"error":"no"}"#, &["error 4 -31002 no"], 1);
    check(
        r#"{"jsonrpc":"2.0","id":5,"error":{"code":-32601,"message":"no"}}"#,
        &["error 5 -32601 no"],
        0,
    );
    let (words, _) = told(r#"{"jsonrpc":"2.0","id":6}"#);
    assert!(
        words.first().is_some_and(|word| word.starts_with("error 6 -31002")),
        "{words:?}"
    );
}

/// SPEC 12: a reply too large to be read is answered for by an error with its id, wherever the server writes it.
#[test]
fn too_large_is_told_by_id() {
    let ends = |head: &str, tail: &str| {
        let read = read(&Line::TooLong {
            head: head.into(),
            tail: tail.into(),
        });
        assert_eq!(read.faults.len(), 1);
        read.messages.into_iter().next().map(|message| match &message {
            ServerJsonRpcMessage::Error(error) if error.error.code.0 == TOO_LARGE_CODE => {
                error.id.clone().unwrap().to_string()
            }
            ServerJsonRpcMessage::Error(_)
            | ServerJsonRpcMessage::Request(_)
            | ServerJsonRpcMessage::Response(_)
            | ServerJsonRpcMessage::Notification(_) => panic!("{message:?}"),
        })
    };
    let id = |text: &str| Some(text.to_owned());
    assert_eq!(ends(r#"{"jsonrpc":"2.0","id":7,"result":{"con"#, "xxx"), id("7"));
    assert_eq!(ends(r#"{ "id" : "q" , "jsonrpc":"2.0","re"#, "xxx"), id("q"));
    assert_eq!(
        ends(r#"{"result":{"con"#, r#"xxx"}]},"jsonrpc":"2.0","id":8}"#),
        id("8")
    );
    assert_eq!(
        ends(r#"{"result":{"con"#, r#"xxx"}]},"id":9,"jsonrpc":"2.0"}"#),
        id("9")
    );
    // The id of something inside the result is not the reply's.
    assert_eq!(ends(r#"{"result":{"id":3,"#, r#"xxx","id":8}}"#), None);
    assert_eq!(ends("xxx", "xxx"), None);
}

/// SPEC 12: many small values take no memory.
#[test]
fn too_many_values() {
    let many = format!(r#"{{"jsonrpc":"2.0","id":3,"result":[{}0]}}"#, "0,".repeat(VALUES_MAX));
    let expect = format!("error 3 {TOO_LARGE_CODE} its answer is of more than {VALUES_MAX} values");
    check(&many, &[expect.as_str()], 1);
    // Text may hold as many commas as it likes.
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":3,"result":{{"t":"\"{}"}}}}"#,
        ",".repeat(VALUES_MAX)
    );
    check(&text, &["response 3"], 0);
}

/// SPEC 8.8, 12: a fault is short and cannot control a terminal.
#[test]
fn faults_are_harmless() {
    let read = line(format!("\u{1b}[2J\u{202e}{}", "x".repeat(100_000)));
    let Some(Fault(text)) = read.faults.first() else {
        panic!("no fault")
    };
    assert!(
        text.starts_with("passed over, not JSON: \\x1b[2J") && text.len() < 400,
        "{text}"
    );
    assert!(!text.contains(char::is_control) && !text.contains('\u{202e}'));
}

proptest! {
    /// SPEC 12: no line ends the program.
    #[test]
    fn any_line(bytes in proptest::collection::vec(any::<u8>(), 0..300), tail in proptest::collection::vec(any::<u8>(), 0..60)) {
        let _ = read(&Line::TooLong { head: bytes.clone(), tail });
        let _ = line(bytes);
    }
}
