//! What the marks of a shell mean, phase by phase.

use super::*;
use proptest::prelude::*;

fn out(text: &str) -> Piece {
    Piece::Output(text.as_bytes().to_vec())
}

fn show(text: &str) -> Step {
    Step::Show(text.as_bytes().to_vec())
}

const BEGUN: Piece = Piece::Mark(Mark::Begun);
const READY: Piece = Piece::Mark(Mark::Ready);

fn ended(status: i32) -> Piece {
    Piece::Mark(Mark::Ended { status, waits: None })
}

/// What comes of these pieces behind a line that was typed.
fn check(pieces: impl IntoIterator<Item = Piece>, expect: &[Step]) -> Phase {
    let mut phase = Phase::Typed(Vec::new());
    let steps = pieces.into_iter().map(|piece| phase.step(piece));
    let told: Vec<Step> = steps.filter(|step| *step != Step::None).collect();
    assert_eq!(told, expect);
    phase
}

/// SPEC 8.2: of what the shell writes, what lies between its marks is the command's.
#[test]
fn a_command() {
    let pieces = [
        out("ls\r\n"),
        BEGUN,
        out("a b\r\n"),
        BEGUN,
        out("c\r\n"),
        ended(3),
        out("\x1b[?2004h"),
        READY,
        READY,
    ];
    let phase = check(
        pieces,
        &[
            show("a b\r\n"),
            show("c\r\n"),
            Step::Beside(b"\x1b[?2004h".to_vec()),
            Step::Prompted(Outcome::Ran(3)),
        ],
    );
    assert_eq!(phase, Phase::Idle);
}

/// A line that the shell does not understand never begins; what it says of it is shown, the echo is not.
#[test]
fn a_syntax_error() {
    for (echo, between) in [("echo )\r\n\x1b[?2004l\r", ""), ("echo )\x1b[?1l\x1b[?20", "04l\r\r\n")] {
        check(
            [out(echo), out(between), out("no such syntax\r\n"), ended(2), READY],
            &[show("no such syntax\r\n"), Step::Prompted(Outcome::Refused(Some(2)))],
        );
    }
}

/// SPEC 8.2: an event that is not in the history, or is to be looked at before it runs: bash is back at its prompt without a word
/// of an end. A prompt that is drawn again while the line is still edited is no such thing.
#[test]
fn back_at_the_prompt() {
    let said = "bash: !x: event not found\r\n";
    let pieces = [
        READY,
        out("echo !x\r\n\x1b[?2004l\r"),
        out(said),
        out("\x1b[?2004h"),
        READY,
    ];
    let phase = check(pieces, &[Step::Refused(said.as_bytes().to_vec())]);
    assert_eq!(phase, Phase::Idle);
    check([out("\x1b[?2004l\r\x1b[?2004h"), READY], &[Step::Refused(Vec::new())]);
}

/// SPEC 8.2: what a shell asks before it runs a line is shown once it has waited, and then as it comes.
#[test]
fn a_question() {
    let mut phase = check([out("ehco\x1b[?2004l\r\r\ncorrect? ")], &[]);
    assert_eq!(phase.question(), show("correct? "));
    assert_eq!(phase.question(), Step::None);
    assert_eq!(phase.step(out("y\r\n")), show("y\r\n"));
    assert_eq!(phase.step(BEGUN), Step::None);
    assert_eq!(phase, Phase::Running);
    let mut silent = check([out("sleep 1\x1b[?2004l\r\r\n")], &[]);
    assert_eq!(silent.question(), Step::None);
}

/// What is not whole is withdrawn.
#[test]
fn an_unfinished_line() {
    for echo in ["echo '\r\n", "echo '\r\n\x1b[?2004l\r"] {
        check(
            [out(echo), Piece::Mark(Mark::More), out("^C"), ended(130), READY],
            &[Step::Withdraw, Step::Prompted(Outcome::Withdrawn(NotRun::Incomplete))],
        );
    }
}

/// Keys pressed too early run something; its end is not the next command's.
#[test]
fn typed_ahead() {
    let mut phase = Phase::Idle;
    let pieces = [BEGUN, out("early\r\n"), ended(0), READY];
    let told: Vec<Step> = pieces.into_iter().map(|piece| phase.step(piece)).collect();
    let beside = Step::Beside(b"early\r\n".to_vec());
    assert_eq!(told, [Step::None, beside, Step::None, Step::None]);
    assert_eq!(phase, Phase::Idle);
}

fn pieces() -> impl Strategy<Value = Vec<Piece>> {
    let mark = prop_oneof![
        Just(Mark::Ready),
        Just(Mark::More),
        Just(Mark::Wrong),
        Just(Mark::Begun),
        (0..200i32).prop_map(|status| Mark::Ended { status, waits: Some(1) }),
        Just(Mark::Answered),
        Just(Mark::Taken(b"line\n".to_vec())),
    ];
    let piece = prop_oneof![
        mark.prop_map(Piece::Mark),
        prop_oneof![Just("text"), Just("\x1b[?2004l")].prop_map(out),
    ];
    prop::collection::vec(piece, 0..40)
}

proptest! {
    /// SPEC 8.2: a command is told as over only when it was typed, and once, whatever order marks come in: a program that writes some
    /// ends no command but its own.
    #[test]
    fn one_end(pieces in pieces()) {
        let mut phase = Phase::Typed(Vec::new());
        let steps: Vec<Step> = pieces.into_iter().map(|piece| phase.step(piece)).collect();
        let is_end = |step: &&Step| matches!(step, Step::Prompted(_) | Step::Refused(_) | Step::Taken { .. });
        prop_assert!(steps.iter().filter(is_end).count() <= 1, "{steps:?}");
    }
}
