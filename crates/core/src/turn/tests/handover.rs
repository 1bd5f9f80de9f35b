//! Handing a turn over to another model, and replies that their provider paused.

use super::check;

/// SPEC 7.6: once a model may not be asked again, the one beside its failure is, from its first attempt on; the turn stays
/// with it.
#[test]
fn a_failed_model_hands_over() {
    check("fail else=b", "model 2");
    check("fail else=b\n fail second else=b", "model 1 as b");
    check("fail fatal else=b", "model 1 as b");
    let round = "call a\n gate a allow\n start a\n result a";
    check(&format!("fail fatal else=b\n {round}"), "model 1 as b");
    check("fail fatal else=b\n fail", "model 2 as b");
    check("fail fatal else=b\n say", "done end");
    check("fail fatal", "done model_failed");
}

/// SPEC 7.6: what was shown is not asked for again from another; two models that name each other end the turn.
#[test]
fn a_hand_over_ends() {
    check("cut shown\n fail shown else=b", "done model_failed");
    check("fail fatal else=b\n fail fatal else=b", "done model_failed");
    check(
        "fail fatal else=b\n fail fatal else=c\n fail fatal else=b",
        "done model_failed",
    );
}

/// SPEC 3.5: a model that says nothing hands over as well, when it may not be asked again.
#[test]
fn a_model_that_says_nothing_hands_over() {
    check("empty else=b\n empty else=b", "model 1 as b");
    check("cut else=b\n cut else=b", "model 1 as b");
    check("empty\n empty", "done model_failed");
    check("empty else=b\n empty else=b\n say", "done end");
}

/// SPEC 7.6: a paused reply goes on, no more often than the turn may have rounds; nothing it called can run.
#[test]
fn a_paused_reply_goes_on() {
    check("pause", "model 1");
    check("pause\n say", "done end");
    check("pause\n pause\n pause", "done truncated");
    check("pause\n !call more a", "model 1");
}
