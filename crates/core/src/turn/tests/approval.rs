//! Verdicts and answers.

use super::check;

const DECLINED: &str = r#"do a Declined {"error":"declined by the user"}"#;

/// SPEC 3.4: the whole batch is judged and asked about before any of it runs.
#[test]
fn nothing_runs_until_all_are_answered() {
    check("call a b\n gate a allow\n !start a", "gate b");
    check("call a b\n gate a allow\n gate b ask\n !start a", "ask b");
    check("call a b\n gate a ask\n gate b ask\n yes b", "ask a");
    check("call a b\n gate a ask\n gate b ask\n yes b\n yes a", "do a run, b run");
    check("call a b\n gate a allow client\n gate b ask\n !result a", "ask b");
}

/// SPEC 3.3: what was shown is what runs.
#[test]
fn answers_and_starts_quote_what_was_shown() {
    check("call a\n gate a ask\n !yes a wrong", "ask a");
    check("call a\n gate a ask\n yes a\n !start a wrong", "do a run");
    check("call a\n gate a allow\n !start a wrong", "do a run");
    check("call a\n !gate a allow undigested", "gate a");
}

/// SPEC 3.3: the same answer again changes nothing; another one is a conflict, also when all is over.
#[test]
fn the_first_answer_counts() {
    check("call a\n gate a ask\n yes a\n yes a\n !no a", "do a run");
    check("call a\n gate a ask\n no a\n no a\n !yes a\n !start a", DECLINED);
    check("call a\n gate a ask\n yes a\n cancel\n yes a\n !no a", "done cancelled");
    check("call a\n gate a ask\n cancel\n !yes a", "done cancelled");
    check("call a\n gate a allow\n !yes a", "do a run");
    check("call a\n !yes a", "gate a");
    check("!yes nobody", "model 1");
    check(
        "call a\n gate a deny\n !yes a\n !gate a allow\n !start a",
        r#"do a Denied {"error":"denied by policy: a rule"}"#,
    );
}

/// SPEC 3.7, 3.9: what may not run is answered, with the reason.
#[test]
fn what_may_not_run_is_answered() {
    check("call a\n gate a ask\n no a", DECLINED);
    check(
        "call a\n gate a ask\n no a because",
        r#"do a Declined {"error":"declined by the user: too risky"}"#,
    );
    check(
        "call a\n gate a invalid\n !start a",
        r#"do a Invalid {"error":"Unknown tool: x"}"#,
    );
}

/// SPEC 10.2: a round in which everything was refused ends as declined, repeated calls included.
#[test]
fn a_turn_whose_last_round_was_refused_is_declined() {
    check("call a\n gate a deny\n result a denied\n say", "done declined");
    check(
        "call a:x b:x\n gate a ask\n no a\n result a declined\n result b duplicate\n say",
        "done declined",
    );
    check(
        "call a b\n gate a deny\n gate b allow\n result a denied\n start b\n result b\n say",
        "done end",
    );
    check("call a\n gate a deny\n result a denied\n empty\n say", "done declined");
}

/// SPEC 9.4, 3.5b: only a turn that waits can be suspended, and only by its own continuation be resumed.
#[test]
fn only_a_waiting_turn_is_suspended() {
    check("!suspend x", "model 1");
    check(
        "call a\n gate a ask\n suspend x\n !resume y\n resume x\n !resume x",
        "ask a",
    );
    check("call a\n gate a ask\n yes a\n !suspend x", "do a run");
    check("call a\n gate a ask\n suspend x\n cancel\n !resume x", "done cancelled");
}
