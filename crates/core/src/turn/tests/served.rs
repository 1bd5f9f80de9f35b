//! Turns that wait for a client somewhere else.

use super::check;

/// SPEC 9.4: a turn waits under one id at a time, and that ends with what it waited for, whichever way it comes.
#[test]
fn suspensions() {
    let waiting = "call a b\n gate a allow client\n gate b allow client\n suspend br-1 a";
    let then = |more: &str| format!("{waiting}\n{more}");
    check(&then("! suspend br-2 a"), "client a b");
    check(&then("! resume br-2"), "client a b");
    check(
        &then("resume br-1\n result a\n suspend br-2 b\n ! resume br-1"),
        "client b",
    );
    check(&then("result a\n ! resume br-1\n suspend br-2 b"), "client b");
    check(&then("resume br-1\n result a\n result b\n ! suspend br-2 b"), "model 1");
}
