//! What the model answers to the messages that the cases in the browser send: the same to the same, in whichever order they come.

use crate::support::fake_server::FakeServer;
use crate::support::reply::Reply;
use crate::support::wire::{Received, content_text};
use serde_json::{Value, json};

/// What a hostile file says, and with it the result of the call that reads it.
pub const HOSTILE_FILE: &str =
    "<script>window.hacked=3</script> \u{202e}txt.exe \u{200b}\n\u{1b}[2J\u{1b}]0;title\u{7}\n";

const HOSTILE_REPLY: &str = "<script>window.hacked=1</script> <img src=x onerror=\"window.hacked=1\"> [click](javascript:window.hacked=1) \
    [fine](https://example.com/a) [bank.example](https://evil.example/) ![picture](https://evil.example/pixel.png) \u{1b}[31mred\u{1b}[0m \
    evil\u{202e}gnp.exe zero\u{200b}width\n\n```html\n<b onclick=\"x\">\u{1b}]0;t\u{7}</b>\n```\n\n| a | b |\n|---|---|\n| <i>1</i> | 2 |";

/// Two values of one name, of which a reader that drops the first would show the second alone.
const HOSTILE_ARGUMENTS: &str = "{\"command\":\"touch hidden_by_the_second\",\"command\":\"touch second \
    \\u001b[2J\\u202e<script>window.hacked=2</script>\"}";

const REPORT: &str = r"## What the log says

The server answered **1,204 requests** in the last hour, and three things stand out:

1. `/api/chat` is slower since 14:05; the median went from 80 to 210 ms.
2. Nothing failed. There is *no* 5xx in the log.
3. The disk is at 71%. See [the runbook](https://docs.example/disk).

```rust
/// Requests of the last hour.
fn recent(log: &[Entry], now: u64) -> impl Iterator<Item = &Entry> {
    log.iter().filter(move |entry| now - entry.time < HOUR_S)
}
```

| route | requests | median |
|---|---|---|
| `/api/chat` | 840 | 210 ms |
| `/healthz` | 360 | 1 ms |

Shall I look into the index that was added at 14:05?";

/// The model, running.
pub fn start() -> FakeServer {
    FakeServer::builder().otherwise(answer).start()
}

fn answer(request: &Received) -> Reply {
    let messages = request.messages();
    let asked = messages
        .iter()
        .rposition(|message| message["role"] == "user")
        .unwrap_or(0);
    let message = messages
        .get(asked)
        .map_or_else(String::new, |message| content_text(&message["content"]));
    let results: Vec<&Value> = messages
        .iter()
        .skip(asked)
        .filter(|message| message["role"] == "tool")
        .collect();
    let said = |text: &str| Reply::stream().says(text).finish("stop").usage(412, 38).done();
    if let Some(result) = results.last() {
        return said(&after(&message, &content_text(&result["content"])));
    }
    if message.contains("be hostile") {
        return Reply::stream()
            .says(HOSTILE_REPLY)
            .call_begins(0, "c1", "file_read")
            .call_arguments(0, "{\"path\":\"hostile.txt\"}")
            .call_begins(1, "c2", "bash")
            .call_arguments(1, HOSTILE_ARGUMENTS)
            .finish("tool_calls")
            .usage(412, 38)
            .done();
    }
    if message.contains("halt in the middle") {
        let stream = Reply::stream()
            .says("The first half")
            .stalls()
            .says(" and the second half.");
        return stream.finish("stop").usage(412, 38).done();
    }
    if let Some((_, path)) = message.split_once("write the file ") {
        return Reply::call(
            "c1",
            "file_write",
            json!({"path": path, "content": "written by a model\n"}),
        );
    }
    if message.contains("write two files") {
        let file = |path: &str| json!({"path": path, "content": "one of two\n"});
        return Reply::calls(&[
            ("c1", "file_write", file("one.txt")),
            ("c2", "file_write", file("two.txt")),
        ]);
    }
    if message.contains("wait for the file") {
        let command = "echo first; until [ -e go.txt ]; do sleep 0.05; done; echo second";
        return Reply::call("c1", "bash", json!({"command": command, "timeout_s": 100}));
    }
    if message.contains("show the map") {
        let stream = Reply::stream().call_begins(0, "c1", "show_map");
        let stream = stream.call_arguments(0, "{\"place\":\"Bern\",\"id\":12345678901234567890}");
        return stream.finish("tool_calls").usage(412, 38).done();
    }
    if message.contains("warmest day") {
        let command = "sort -t, -k2 -n data/june.csv | tail -n 1 > warmest.txt";
        return Reply::call("c1", "bash", json!({"command": command, "timeout_s": 20}));
    }
    if message.contains("since two o'clock") {
        return Reply::stream()
            .thinks("The log has it: compare the hours.")
            .says(REPORT)
            .finish("stop")
            .usage(2310, 214)
            .done();
    }
    said(&format!("You said: {message}"))
}

/// What it says once its call has come to an end.
fn after(message: &str, result: &str) -> String {
    if message.contains("show the map") {
        format!("The app says: {result}")
    } else if message.contains("warmest day") {
        "It was the **28th**, with 24.9 degrees. It is in `warmest.txt`.".to_owned()
    } else {
        "So be it.".to_owned()
    }
}
