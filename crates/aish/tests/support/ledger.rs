//! What a run left in the ledger, read the way a user reads it: through `aish sessions`.

use serde_json::Value;

use super::sandbox::Sandbox;

/// The ids of all sessions, the latest first.
pub fn session_ids(sandbox: &Sandbox) -> Vec<String> {
    let list = sandbox.run(&["sessions", "list"]).success();
    let id = |line: &str| line.split_whitespace().next().expect("an id in the list").to_owned();
    list.stdout.lines().map(id).collect()
}

/// The id of the only session; fails when there are none or more.
pub fn only_session(sandbox: &Sandbox) -> String {
    let ids = session_ids(sandbox);
    assert_eq!(ids.len(), 1, "sessions: {ids:?}");
    ids.into_iter().next().expect("one id")
}

/// The events of a session, as exported.
pub fn export(sandbox: &Sandbox, id: &str) -> Vec<Value> {
    sandbox.run(&["sessions", "export", id]).success().json_lines()
}

/// The events of the only session.
pub fn only_export(sandbox: &Sandbox) -> Vec<Value> {
    export(sandbox, &only_session(sandbox))
}

/// The kinds of these events in order, joined by a space.
pub fn kinds(events: &[Value]) -> String {
    let kinds: Vec<&str> = events.iter().map(|event| text(&event["kind"])).collect();
    kinds.join(" ")
}

/// The events of that kind, in order.
pub fn of_kind<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["kind"] == kind).collect()
}

/// Why the last turn ended; fails when it is open.
pub fn end_of_last_turn(events: &[Value]) -> &str {
    let last = events.last().expect("an event");
    assert_eq!(last["kind"], "turn_ended", "the turn is open: {}", kinds(events));
    text(&last["data"]["reason"])
}

/// The text of the last assistant event.
pub fn last_words(events: &[Value]) -> &str {
    let said = of_kind(events, "assistant");
    text(&said.last().expect("something was said")["content"])
}

/// A JSON string.
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("not a string: {value}"))
}
