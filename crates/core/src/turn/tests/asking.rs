//! Calls that stop in the middle to ask something (SPEC 6.9).

use super::check;

/// A call that runs, of two.
const RUNS: &str = "call a b\n gate a allow\n gate b allow\n start a\n";

/// SPEC 6.9, 3.1: a call that asks waits, and those after it with it; once taken up it runs, and may ask again.
#[test]
fn a_call_that_asks_waits() {
    check(&format!("{RUNS} asks a"), "person a run");
    check(
        &format!("{RUNS} asks a\n !start b\n !start a\n !asks a\n !say"),
        "person a run",
    );
    check(&format!("{RUNS} asks a\n taken a\n asks a"), "person a run");
    check(&format!("{RUNS} asks a\n taken a\n result a"), "do b run");
    check(
        &format!("{RUNS} asks a\n taken a\n result a\n start b\n result b"),
        "model 1",
    );
    check("call a\n gate a allow\n !asks a", "do a run");
    check(&format!("{RUNS} !taken a\n result a\n !asks a\n !taken a"), "do b run");
}

/// SPEC 6.9, 3.3: of two that take a call up one is refused, and what goes on is what was started.
#[test]
fn a_call_goes_on_once() {
    let doubt = r#"{"error":"interrupted: the call was started and its end is not known; it may have taken effect"}"#;
    check(
        &format!("{RUNS} asks a\n !taken a wrong\n taken a\n !taken a"),
        &format!("do a Interrupted {doubt}, b run"),
    );
}

/// SPEC 6.9, 3.3: a no ends the call as declined, whatever was said to its start; the same no again changes nothing.
#[test]
fn a_question_is_declined() {
    let asked = "call a\n gate a ask\n yes a\n start a\n asks a\n";
    let declined = r#"do a Declined {"error":"declined by the user"}"#;
    check(&format!("{asked} yes a"), "person a run");
    check(&format!("{asked} !no a wrong"), "person a run");
    check(&format!("{asked} no a"), declined);
    check(&format!("{asked} no a\n no a\n !yes a\n !taken a"), declined);
    check(
        &format!("{asked} no a because"),
        r#"do a Declined {"error":"declined by the user: too risky"}"#,
    );
    check(
        &format!("{asked} no a\n !result a denied\n result a declined"),
        "model 1",
    );
    check(&format!("{asked} no a\n result a declined\n say"), "done declined");
    check(&format!("{asked} taken a\n !no a\n result a"), "model 1");
    // Where no person was asked whether it may run, a yes answers nothing.
    check(&format!("{RUNS} asks a\n !yes a\n no a"), &format!("{declined}, b run"));
}

/// SPEC 6.9, 3.4: rules of now hold before it goes on, and not after.
#[test]
fn a_waiting_call_can_be_denied() {
    check(&format!("{RUNS} asks a\n result a denied"), "do b run");
    check(&format!("{RUNS} asks a\n result a invalid"), "do b run");
    check(&format!("{RUNS} asks a\n !result a declined"), "person a run");
    check(
        &format!("{RUNS} asks a\n taken a\n !result a denied\n result a"),
        "do b run",
    );
}

/// SPEC 3.4: what only reads was started beside it and keeps its result.
#[test]
fn those_beside_it_end() {
    let reads = "call a b\n gate a allow reads\n gate b allow reads\n start a\n start b\n";
    check(&format!("{reads} asks a\n result b"), "person a reads");
    check(&format!("{reads} asks a\n result b\n taken a\n result a"), "model 1");
    check(&format!("{reads} asks a\n asks b"), "person a reads, b reads");
}

/// SPEC 3.5a, 3.7: a turn that waits takes no message, and can be cancelled.
#[test]
fn a_turn_that_is_asked_can_be_stopped() {
    check(
        &format!("{RUNS} asks a\n !steer\n suspend x\n resume x"),
        "person a run",
    );
    check(&format!("{RUNS} asks a\n cancel"), "done cancelled");
    check(&format!("{RUNS} asks a\n no a\n cancel"), "done cancelled");
    check(&format!("{RUNS} cancelled\n !asks a"), "done cancelled");
    check(
        &format!("{RUNS} asks a\n cancelled\n !taken a\n !no a\n close"),
        "done cancelled",
    );
}
