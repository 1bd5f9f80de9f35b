//! Rounds of calls: order, duplicates, crashes, client calls, limits, steering.

use super::check;

/// SPEC 3.1, 3.5: the model is asked until a reply has no calls.
#[test]
fn a_turn_goes_round_until_a_reply_has_no_calls() {
    check("", "model 1");
    check("say", "done end");
    check("call a", "gate a");
    check("call a\n gate a allow", "do a run");
    check("call a\n gate a allow\n start a\n result a", "model 1");
    check("call a\n gate a allow\n start a\n result a\n say", "done end");
}

/// SPEC 3.2: started before it runs; a start whose end is not known is never run again.
#[test]
fn a_started_call_is_never_run_again() {
    let interrupted =
        r#"{"error":"interrupted: the call was started and its end is not known; it may have taken effect"}"#;
    check(
        "call a\n gate a allow\n start a",
        &format!("do a Interrupted {interrupted}"),
    );
    check(
        "call a\n gate a allow\n start a\n !start a",
        &format!("do a Interrupted {interrupted}"),
    );
    check(
        "call a\n gate a allow\n start a\n result a interrupted\n !start a",
        "model 1",
    );
    check("call a\n gate a allow\n !result a", "do a run");
    check("call a\n gate a allow\n !result a interrupted", "do a run");
}

/// SPEC 3.4: one after another; what only reads may run side by side, and its results come as they come.
#[test]
fn calls_run_in_order_unless_they_only_read() {
    let writes = "call a b\n gate a allow\n gate b allow\n";
    check(writes, "do a run, b run");
    check(
        &format!("{writes} !start b\n start a\n !start b\n result a\n start b\n result b"),
        "model 1",
    );
    let reads = "call a b\n gate a allow reads\n gate b allow reads\n";
    check(&format!("{reads} start a\n start b\n result b\n result a"), "model 1");
    let mixed = "call a b\n gate a allow reads\n gate b allow\n start a\n !start b";
    check(&format!("{mixed}\n result a"), "do b run");
}

/// SPEC 7.4: the same call twice in one reply runs once and is answered twice.
#[test]
fn a_repeated_call_runs_once() {
    let twice = "call a:{\"x\":1} b:{\"x\":\t1}";
    check(twice, "gate a");
    check(
        &format!("{twice}\n !gate b allow\n gate a allow"),
        "do a run, b same as a",
    );
    check(
        &format!("{twice}\n gate a allow\n !start b\n !result b duplicate\n start a\n result a"),
        "do b same as a",
    );
    check(
        &format!("{twice}\n gate a allow\n start a\n result a\n result b duplicate"),
        "model 1",
    );
    check(
        "call a:x b\n gate a allow\n gate b allow\n !result b duplicate",
        "do a run, b run",
    );
}

/// SPEC 9.6: strict call order, stopping at each client call; what was refused of them is answered here.
#[test]
fn client_calls_wait_for_the_client() {
    let three = "call a b c\n gate a allow\n gate b allow client\n gate c allow\n";
    check(three, "do a run");
    check(&format!("{three} !result b\n start a\n result a"), "client b");
    check(
        &format!("{three} start a\n result a\n !start b\n !start c\n result b"),
        "do c run",
    );
    check("call a b\n gate a allow client\n gate b allow client", "client a b");
    check(
        "call a\n gate a deny client",
        r#"do a Denied {"error":"denied by policy: a rule"}"#,
    );
    check("call a\n gate a ask client", "ask a");
    check("call a\n gate a ask client\n !result a\n yes a", "client a");
}

/// SPEC 3.6: at the limit the last result says so and the model is asked once more, without tools.
#[test]
fn at_the_limit_the_model_sums_up() {
    let round = "call a\n gate a allow\n start a\n result a\n";
    let last = "call b c\n gate b allow\n gate c allow\n";
    check(&format!("{round}{last}"), "do b run, c run limit 2");
    let done = format!("{round}{last} start b\n result b\n start c\n result c\n");
    check(&done, "model 1 without tools");
    check(&format!("{done} fail"), "model 2 without tools");
    check(&format!("{done} say"), "done limit");
}

/// SPEC 3.6: rounds with MCP calls have a limit of their own; the limit reached first is the one that is told.
#[test]
fn rounds_with_mcp_calls_have_their_own_limit() {
    let mcp = "call a\n gate a allow mcp\n";
    check(mcp, "do a run limit 1");
    let done = format!("{mcp} start a\n result a\n");
    check(&done, "model 1 without tools");
    let limit = r#"{"error":"Tool call limit reached (1). Stopping tool loop."}"#;
    check(&format!("{done} call b"), &format!("do b Limit {limit}"));
}

/// SPEC 3.6: calls after the limit are answered with it, not even judged, and the turn ends.
#[test]
fn calls_after_the_limit_are_not_run() {
    let round = |id: &str| format!("call {id}\n gate {id} allow\n start {id}\n result {id}\n");
    let after = format!("{}{}call c d\n", round("a"), round("b"));
    let limit = r#"{"error":"Tool call limit reached (2). Stopping tool loop."}"#;
    check(&after, &format!("do c Limit {limit}, d Limit {limit}"));
    check(
        &format!("{after} gate c allow\n !start c\n !steer"),
        &format!("do c Limit {limit}, d Limit {limit}"),
    );
    check(&format!("{after} result c limit\n result d limit"), "done limit");
    check(
        &format!("{after} result c limit\n result d limit\n close"),
        "done limit",
    );
}

/// SPEC 3.5a: a message typed while the turn runs is seen by the next reply, also where there would have been none.
#[test]
fn steering_is_answered_in_the_turn() {
    check("call a\n steer\n gate a allow\n start a\n steer\n result a", "model 1");
    check("steer\n say unseen", "model 1");
    check("steer\n say", "done end");
    check("say\n steer", "model 1");
    check("steer\n say unseen\n say", "done end");
}

/// SPEC 3.5a: a turn that waits for an answer, or that nobody will drive to another reply, takes no message.
#[test]
fn a_message_nobody_would_see_is_refused() {
    check("call a\n gate a ask\n !steer", "ask a");
    check("call a\n gate a allow client\n !steer", "client a");
    check("fail fatal\n !steer", "done model_failed");
    check("cancel\n !steer", "done cancelled");
}

/// SPEC 3.5b: a reply that has not seen the last results comes from a driver that lost its place.
#[test]
fn a_late_reply_of_another_driver_is_refused() {
    check("call a\n gate a allow\n start a\n result a\n !say unseen", "model 1");
    check("say\n !say", "done end");
    check("call a\n !say\n !fail", "gate a");
    check("call a\n gate a allow\n !call more b\n start a\n result a", "model 1");
    check("call a\n !call more a", "gate a");
    check("say\n command", "done end");
}

/// SPEC 7.3: a call of a reply that was cut is never one.
#[test]
fn calls_of_a_cut_reply_are_refused() {
    check("cut\n !call more a", "model 2");
}
