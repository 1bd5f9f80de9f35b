//! Servers that pour: whatever grows in a reply is bounded (SPEC 12: memory above 100 MB over idle from any peer's output).
//!
//! Each flood is a few hundred megabytes of well-formed events that all ask for something to be remembered. What the process
//! holds at most is read from the kernel, so that the decoder's own state counts too.

use super::random::bytes_of;
use super::reading::Ear;
use aish_provider::assemble::{CALLS_MAX, Ending, PARTS_MAX, REPLY_BYTES_MAX};
use aish_provider::profile::Format;

/// Kilobytes a flood may make the process hold beyond what it held before.
const GROWTH_KB_MAX: u64 = 100 << 10;

/// Bytes of the long piece in each event.
const PIECE_BYTES: usize = 128 << 10;

/// Events of a flood: 256 MB of pieces.
const EVENTS: usize = 2_048;

/// What each event of a flood asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flood {
    /// More text.
    Text,
    /// More thinking, with more signature.
    Thinking,
    /// Another call, at an index of its own far away, never finished.
    Calls,
    /// More arguments for one call.
    Arguments,
    /// Another block that only the provider understands, begun and never finished.
    Blocks,
}

impl Flood {
    const ALL: [Self; 5] = [Self::Text, Self::Thinking, Self::Calls, Self::Arguments, Self::Blocks];

    /// The `n`th event of it.
    fn event(self, format: Format, n: usize, piece: &str) -> String {
        let far = n as u64 * 1_000_000_007;
        let data = match (format, self) {
            (Format::OpenaiChat, Self::Text) => {
                format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{piece}"}}}}]}}"#)
            }
            (Format::OpenaiChat, Self::Thinking) => {
                format!(r#"{{"choices":[{{"index":0,"delta":{{"reasoning_content":"{piece}"}}}}]}}"#)
            }
            (Format::OpenaiChat, Self::Calls | Self::Blocks) => format!(
                r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{{"index":{far},"id":"{n}","function":{{"name":"bash","arguments":"{{\"{piece}"}}}}]}}}}]}}"#
            ),
            (Format::OpenaiChat, Self::Arguments) => format!(
                r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{{"index":0,"function":{{"arguments":"{piece}"}}}}]}}}}]}}"#
            ),
            (Format::OpenaiResponses, Self::Text) => {
                format!(
                    r#"{{"type":"response.output_text.delta","output_index":{far},"item_id":"m{n}","content_index":0,"delta":"{piece}"}}"#
                )
            }
            (Format::OpenaiResponses, Self::Thinking) => format!(
                r#"{{"type":"response.reasoning_summary_text.delta","output_index":{far},"item_id":"r{n}","summary_index":{n},"delta":"{piece}"}}"#
            ),
            (Format::OpenaiResponses, Self::Calls) => format!(
                r#"{{"type":"response.output_item.added","output_index":{far},"item":{{"type":"function_call","id":"f{n}{piece}","call_id":"c{n}{piece}","name":"bash","arguments":""}}}}"#
            ),
            (Format::OpenaiResponses, Self::Arguments) => {
                format!(
                    r#"{{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"f","delta":"{piece}"}}"#
                )
            }
            (Format::OpenaiResponses, Self::Blocks) => format!(
                r#"{{"type":"response.output_item.done","output_index":{far},"item":{{"type":"web_search_call","id":"w{n}","x":"{piece}"}}}}"#
            ),
            (Format::Anthropic, Self::Text) => {
                format!(
                    r#"{{"type":"content_block_delta","index":{far},"delta":{{"type":"text_delta","text":"{piece}"}}}}"#
                )
            }
            (Format::Anthropic, Self::Thinking) => {
                format!(
                    r#"{{"type":"content_block_delta","index":{far},"delta":{{"type":"signature_delta","signature":"{piece}"}}}}"#
                )
            }
            (Format::Anthropic, Self::Calls) => format!(
                r#"{{"type":"content_block_start","index":{far},"content_block":{{"type":"tool_use","id":"t{n}{piece}","name":"bash","input":{{}}}}}}"#
            ),
            (Format::Anthropic, Self::Arguments) => {
                format!(
                    r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"input_json_delta","partial_json":"{piece}"}}}}"#
                )
            }
            (Format::Anthropic, Self::Blocks) => format!(
                r#"{{"type":"content_block_start","index":{far},"content_block":{{"type":"server_tool_use","id":"s{n}","x":"{piece}"}}}}"#
            ),
            (Format::Gemini, Self::Text) => part(&format!(r#"{{"text":"{piece}"}}"#)),
            (Format::Gemini, Self::Thinking) => {
                part(&format!(r#"{{"text":"","thought":true,"thoughtSignature":"{piece}"}}"#))
            }
            (Format::Gemini, Self::Calls | Self::Arguments) => part(&format!(
                r#"{{"functionCall":{{"name":"bash","args":{{"n":{n},"x":"{piece}"}}}}}}"#
            )),
            (Format::Gemini, Self::Blocks) => part(&format!(r#"{{"executableCode":{{"n":{n},"code":"{piece}"}}}}"#)),
        };
        format!("data: {data}\n\n")
    }

    /// What must stand before it.
    fn begin(self, format: Format) -> &'static str {
        match (format, self) {
            (Format::OpenaiResponses, Self::Arguments) => {
                "data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"function_call\",\"id\":\"f\",\"call_id\":\"c\",\"name\":\"bash\",\"arguments\":\"\"}}\n\n"
            }
            (Format::Anthropic, Self::Arguments) => {
                "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"bash\",\"input\":{}}}\n\n"
            }
            (Format::OpenaiChat | Format::OpenaiResponses | Format::Anthropic | Format::Gemini, _) => "",
        }
    }
}

fn part(part: &str) -> String {
    format!(r#"{{"candidates":[{{"index":0,"content":{{"role":"model","parts":[{part}]}}}}]}}"#)
}

/// What the process held at most so far, in kilobytes; zero where the kernel does not say.
fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kb = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    kb.unwrap_or(0)
}

/// Pours a flood into a fresh reader.
fn pour(format: Format, flood: Flood) {
    let piece = "x".repeat(PIECE_BYTES);
    let before = peak_kb();
    let mut ear = Ear::new(format, &["bash".to_owned()]);
    ear.hear(flood.begin(format).as_bytes());
    for n in 0..EVENTS {
        ear.hear(flood.event(format, n, &piece).as_bytes());
    }
    let heard = ear.end(Ending::Read);
    let what = format!("{} of {}", EVENTS, format.name());
    assert!(!heard.has_calls(), "{what}: {flood:?}");
    let held: usize = heard.reply.parts.iter().map(bytes_of).sum();
    assert!(held <= REPLY_BYTES_MAX + PIECE_BYTES, "{what}: {flood:?}: {held} bytes");
    assert!(heard.reply.parts.len() <= PARTS_MAX + 2 * CALLS_MAX);
    assert!(
        heard.reply.error.is_some(),
        "{what}: {flood:?}: the reply is refused once it is too long"
    );
    let growth = peak_kb().saturating_sub(before);
    assert!(growth <= GROWTH_KB_MAX, "{what}: {flood:?}: {growth} KB more");
}

/// SPEC 12: a server that never stops does not fill the memory.
#[test]
fn memory_is_bounded() {
    for format in Format::ALL {
        for flood in Flood::ALL {
            pour(format, flood);
        }
    }
}
