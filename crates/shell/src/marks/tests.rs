//! Marks and output, apart and however they are cut.

use super::*;
use proptest::prelude::*;

fn marks() -> Marks {
    Marks::new(&Keys {
        open: "o".to_owned(),
        closed: "s".to_owned(),
    })
}

fn output(text: &str) -> Piece {
    Piece::Output(text.as_bytes().to_vec())
}

fn ended(status: i32, waits: Option<u32>) -> Piece {
    Piece::Mark(Mark::Ended { status, waits })
}

/// Marks are taken out, and everything else is left.
#[test]
fn marks_and_output() {
    let mut marks = marks();
    let pieces = marks
        .read(b"a\x1b]133;C;k=s\x07b\x1b[1mc\x1b]133;D;k=s;130\x07\x1b]133;D;k=s;1;42\x07\x1b]133;L;k=s;a%1b %25b%\x07\x1b]133;B;k=o\x07");
    assert_eq!(
        pieces,
        [
            output("a"),
            Piece::Mark(Mark::Begun),
            output("b\x1b[1mc"),
            ended(130, None),
            ended(1, Some(42)),
            Piece::Mark(Mark::Taken(b"a\x1b %b%".to_vec())),
            Piece::Mark(Mark::Ready),
        ]
    );
}

/// SPEC 8.8: whoever does not know the secret marks nothing.
#[test]
fn forged_marks_are_output() {
    for forged in [
        "\x1b]133;D;0\x07",
        "\x1b]133;D;k=t;0\x07",
        "\x1b]133;D;k=s2;0\x07",
        "\x1b]133;D;k=s;x\x07",
        "\x1b]133;D;k=s;0;x\x07",
        "\x1b]133;Z;k=s\x07",
        // What a prompt proves is not the end of a command, nor a line.
        "\x1b]133;D;k=o;0\x07",
        "\x1b]133;L;k=o;ls\x07",
        "\x1b]133;Q;k=o\x07",
        "\x1b]133;X;k=o\x07",
        "\x1b]133;B;k=oo\x07",
        "\x1b]133;B;k=\x07",
        "\x1b]133;\x1b]133;\x07",
        "\x1b]133;\x07",
    ] {
        let mut marks = marks();
        let mut text = Vec::new();
        for piece in marks.read(forged.as_bytes()) {
            match piece {
                Piece::Output(bytes) => text.extend(bytes),
                Piece::Mark(mark) => assert_eq!(Some(mark), None, "{forged:?}"),
            }
        }
        text.extend(marks.rest());
        assert_eq!(text, forged.as_bytes());
    }
}

/// SPEC 8.2: the line of ours that a bash shows is not the user's; what only looks like it is.
#[test]
fn the_hook_does_not_show() {
    let text = format!("a\r\n{HOOK}\r\n{{ b; }}{HOOK} c");
    let expect = [output(&format!("a\r\n{{ b; }}{HOOK} c"))];
    let mut marks = marks();
    assert_eq!(marks.read(text.as_bytes()), expect);
    // A brace that was typed is seen at once.
    assert_eq!(marks.read(b"{"), [output("{")]);
    assert_eq!(marks.rest(), b"");
    for at in 7..text.len() {
        let (before, behind) = text.as_bytes().split_at(at);
        assert_eq!(join(&[before, behind]), expect, "{at}");
    }
}

/// A mark that never ends is not held for ever, and what cannot be ours any more is not held at all.
#[test]
fn endless_marks() {
    let mut marks = marks();
    marks.read(b"\x1b]133;L;k=s;");
    for _ in 0..1_000 {
        marks.read(&[b'1'; 1000]);
        assert!(marks.held.len() <= MARK_BYTES_MAX);
    }
    assert_eq!(marks.rest(), b"");
    for foreign in ["\x1b]133;A", "\x1b]133;D;aid=7", "\x1b]133;L;k=t", "\x1b]13x"] {
        assert_eq!(join(&[foreign.as_bytes()]), [output(foreign)]);
        marks.read(foreign.as_bytes());
        let is_open = foreign == "\x1b]133;A";
        assert_eq!(marks.rest().is_empty(), !is_open, "{foreign:?}");
    }
}

/// SPEC 8.2: what stood in a line editor comes whole, as long as a line may be.
#[test]
fn long_marks() {
    let line = "x".repeat(100_000);
    let mark = format!("\x1b]133;L;k=s;{line}\x07");
    let parts: Vec<&[u8]> = mark.as_bytes().chunks(4_096).collect();
    assert_eq!(join(&parts), [Piece::Mark(Mark::Taken(line.into_bytes()))]);
}

/// A stretch of a stream, and the mark it is, if it is one.
fn stretch() -> impl Strategy<Value = (Vec<u8>, Option<Mark>)> {
    let text = |text: String| (text.into_bytes(), None);
    prop_oneof![
        "[a-z;\\]\r\n]{0,20}".prop_map(text),
        // Without the secret, with a wrong one, with one that proves less, ended otherwise, never ended, too long.
        "\x1b\\]133;[A-Z];(k=[a-z]{2,5}|k=|aid=1)?(;[0-9]{0,4})?\x07".prop_map(text),
        "\x1b\\]133;[DLQX];k=o;[0-9]{1,4}\x07".prop_map(text),
        "\x1b\\]133;[BCD];k=s(;[0-9]{1,3})?\x1b\\\\".prop_map(text),
        "\x1b\\]133;[BCD];k=s\x1b\\[1m".prop_map(text),
        (MARK_BYTES_MAX..MARK_BYTES_MAX + 100).prop_map(|len| {
            let mut endless = b"\x1b]133;L;k=s;".to_vec();
            endless.resize(len, b'x');
            endless.push(b'\n');
            (endless, None)
        }),
        Just((b"\x1b]133;B;k=o\x07".to_vec(), Some(Mark::Ready))),
        Just((b"\x1b]133;C;k=s\x07".to_vec(), Some(Mark::Begun))),
        (0..256i32).prop_map(|status| {
            let mark = format!("\x1b]133;D;k=s;{status}\x07");
            (mark.into_bytes(), Some(Mark::Ended { status, waits: None }))
        }),
    ]
}

proptest! {
    /// SPEC 8.8: every byte that is no mark of ours is passed on, in order, and every mark of ours is found, wherever the stream is
    /// cut and whatever else is in it.
    #[test]
    fn nothing_is_lost(stretches in prop::collection::vec(stretch(), 0..12), part_bytes in 64usize..5_000) {
        let stream: Vec<u8> = stretches.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
        let mut expect: Vec<Piece> = Vec::new();
        for (bytes, mark) in stretches {
            match (expect.last_mut(), mark) {
                (_, Some(mark)) => expect.push(Piece::Mark(mark)),
                (Some(Piece::Output(before)), None) => before.extend(bytes),
                (Some(Piece::Mark(_)) | None, None) if !bytes.is_empty() => expect.push(Piece::Output(bytes)),
                (Some(Piece::Mark(_)) | None, None) => {}
            }
        }
        let parts: Vec<&[u8]> = stream.chunks(part_bytes).collect();
        prop_assert_eq!(join(&parts), expect);
    }

    /// However the stream is cut, the same comes of it.
    #[test]
    fn any_cut(text in "(a|\x1b|\\]133;|[BCDPL];|k=s|;|0|\x07|\x1b\\]133;D;k=s;7\x07){0,40}", cuts in prop::collection::vec(0usize..200, 0..8)) {
        let whole = join(&[text.as_bytes()]);
        let mut cuts = cuts;
        cuts.sort_unstable();
        let mut parts = Vec::new();
        let mut from = 0;
        for cut in cuts {
            let cut = cut.clamp(from, text.len());
            parts.push(text.as_bytes().get(from..cut).unwrap_or_default());
            from = cut;
        }
        parts.push(text.as_bytes().get(from..).unwrap_or_default());
        prop_assert_eq!(join(&parts), whole);
    }
}

/// The pieces, with neighbouring output joined.
fn join(parts: &[&[u8]]) -> Vec<Piece> {
    let mut marks = marks();
    let mut all: Vec<Piece> = Vec::new();
    let mut pieces: Vec<Piece> = parts.iter().flat_map(|part| marks.read(part)).collect();
    let rest = marks.rest();
    if !rest.is_empty() {
        pieces.push(Piece::Output(rest));
    }
    for piece in pieces {
        match (all.last_mut(), piece) {
            (Some(Piece::Output(before)), Piece::Output(more)) => before.extend(more),
            (_, piece) => all.push(piece),
        }
    }
    all
}
