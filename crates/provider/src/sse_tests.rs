//! Tests of the event-stream parser.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use proptest::prelude::*;

type Owned = (String, String, String);

fn parse(chunks: &[&[u8]]) -> Vec<Owned> {
    let mut parser = Parser::new();
    let mut out = Vec::new();
    let mut sink =
        |event: Event<'_>| out.push((event.name.into_owned(), event.data.into_owned(), event.id.into_owned()));
    for chunk in chunks {
        parser.feed(chunk, &mut sink).unwrap();
    }
    parser.finish(&mut sink).unwrap();
    out
}

/// What a stream's data must be, whole, byte by byte, and cut in two anywhere.
fn check(stream: &[u8], expect: &[&str]) {
    let data = |events: Vec<Owned>| events.into_iter().map(|event| event.1).collect::<Vec<_>>();
    assert_eq!(data(parse(&[stream])), expect, "whole");
    let bytes: Vec<&[u8]> = stream.chunks(1).collect();
    assert_eq!(data(parse(&bytes)), expect, "byte by byte");
    for at in 0..=stream.len() {
        let (a, b) = stream.split_at(at);
        assert_eq!(data(parse(&[a, b])), expect, "cut at {at}");
    }
}

/// SPEC 7.4: LF, CR and CRLF end a line, also mixed and split.
#[test]
fn line_ends() {
    check(b"data: a\n\ndata: b\n\n", &["a", "b"]);
    check(b"data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]);
    check(b"data: a\r\rdata: b\r\r", &["a", "b"]);
    check(b"data: a\r\n\ndata: b\n\rdata: c\r\r\n", &["a", "b", "c"]);
}

/// SPEC 7.4: a byte-order mark is skipped, at the beginning only.
#[test]
fn byte_order_mark() {
    check(b"\xEF\xBB\xBFdata: a\n\n\xEF\xBB\xBFdata: lost\n\n", &["a"]);
    check(b"\xEF\xBB\xBF\ndata: a\n\n", &["a"]);
}

/// SPEC 7.4: comments and unknown fields are ignored, inside events too.
#[test]
fn comments_and_unknown_fields() {
    check(
        b": ping\n\ndata: a\n: ping\nretry: 3\nfoo: bar\ndatax: no\ndata: b\n\n:\n\n",
        &["a\nb"],
    );
}

#[test]
fn data_lines_are_joined_and_one_space_is_dropped() {
    check(b"data:a\ndata:  b\ndata\ndata:\n\n", &["a\n b\n\n"]);
    check(b"data\n\ndata:\n\n", &["", ""]);
    check(b"event: x\n\ndata: a\n\n", &["a"]);
}

#[test]
fn names_belong_to_one_event_and_ids_stay() {
    let events = parse(&[b"id: 7\nevent: error\ndata: a\n\ndata: b\nid: no\0\n\nid\ndata: c\n\n"]);
    let expect = [("error", "a", "7"), ("", "b", "7"), ("", "c", "")];
    assert_eq!(
        events,
        expect.map(|(n, d, i)| (n.to_owned(), d.to_owned(), i.to_owned()))
    );
}

/// SPEC 7.4: a character split over chunks is whole again; invalid bytes do not end the stream.
#[test]
fn utf8_split_and_invalid() {
    check("data: žluťoučký 🐎\n\n".as_bytes(), &["žluťoučký 🐎"]);
    check(b"data: a\xFFb\n\ndata: c\xF0\x9F\n\n", &["a\u{FFFD}b", "c\u{FFFD}"]);
}

/// SPEC 7.4: the last event counts although its empty line is missing.
#[test]
fn the_end_ends_the_event() {
    check(b"data: a\n\ndata: b", &["a", "b"]);
    check(b"data: a\n\ndata: b\n", &["a", "b"]);
    check(b"data: a\r\rdata: b\r", &["a", "b"]);
    check(b"", &[]);
}

#[test]
fn an_event_in_one_chunk_is_not_copied() {
    let mut parser = Parser::new();
    let chunk = b"event: x\ndata: hello\n\ndata: two\n\n";
    let mut inside = 0;
    parser
        .feed(chunk, |event| {
            let range = chunk.as_ptr_range();
            assert!(range.contains(&event.data.as_ptr()), "{event:?}");
            inside += 1;
        })
        .unwrap();
    assert_eq!(inside, 2);
}

/// SPEC 12: a line without end does not fill the memory, and the error stays.
#[test]
fn a_long_line_is_refused() {
    let mut parser = Parser::new();
    let chunk = vec![b'x'; 1 << 16];
    let mut fed = 0;
    let error = loop {
        match parser.feed(&chunk, |_| panic!("no event")) {
            Ok(()) => fed += chunk.len(),
            Err(error) => break error,
        }
        assert!(fed <= LINE_BYTES_MAX);
    };
    assert_eq!(error, SseError::LineTooLong);
    assert_eq!(parser.feed(b"data: a\n\n", |_| panic!("no event")), Err(error));
    assert!(parser.line.capacity() == 0);

    let mut whole = vec![b'x'; LINE_BYTES_MAX + 1];
    whole.extend_from_slice(b"\n\n");
    assert_eq!(Parser::new().feed(&whole, |_| {}), Err(SseError::LineTooLong));
}

/// SPEC 12: nor does an event of many lines.
#[test]
fn a_long_event_is_refused() {
    let mut parser = Parser::new();
    let mut line = b"data: ".to_vec();
    line.resize(1 << 20, b'x');
    line.push(b'\n');
    let outcomes: Vec<_> = (0..9).map(|_| parser.feed(&line, |_| {})).collect();
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 8);
    assert_eq!(outcomes.last(), Some(&Err(SseError::EventTooLong)));
}

/// Text that is likely to hit the rules.
fn streams() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"data: ".to_vec()),
        Just(b"data:".to_vec()),
        Just(b"data".to_vec()),
        Just(b"event: e".to_vec()),
        Just(b"id: 1".to_vec()),
        Just(b": c".to_vec()),
        Just(b"\n".to_vec()),
        Just(b"\n\n".to_vec()),
        Just(b"\r".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"\r\n\r\n".to_vec()),
        Just(b"\xEF\xBB\xBF".to_vec()),
        Just("ž🐎".as_bytes().to_vec()),
        proptest::collection::vec(any::<u8>(), 0..4),
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// The same rules written the slow and obvious way.
fn reference(stream: &[u8]) -> Vec<Owned> {
    let text = stream.strip_prefix(BYTE_ORDER_MARK).unwrap_or(stream);
    let mut lines = Vec::new();
    let (mut line, mut at) = (Vec::new(), 0);
    while at < text.len() {
        match text[at] {
            b'\r' | b'\n' => {
                lines.push(std::mem::take(&mut line));
                at += usize::from(text[at..].starts_with(b"\r\n"));
            }
            byte => line.push(byte),
        }
        at += 1;
    }
    lines.push(line);
    lines.push(Vec::new());
    let (mut out, mut name, mut id, mut data) = (Vec::new(), Vec::new(), Vec::new(), Vec::<Vec<u8>>::new());
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    for line in lines {
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let mut value = line.get(colon + 1..).unwrap_or_default();
        if value.first() == Some(&b' ') {
            value = &value[1..];
        }
        match &line[..colon] {
            b"data" => data.push(value.to_vec()),
            b"event" => name = value.to_vec(),
            b"id" if !value.contains(&0) => id = value.to_vec(),
            _ => {}
        }
        if line.is_empty() {
            if !data.is_empty() {
                out.push((lossy(&name), lossy(&data.join(&b"\n"[..])), lossy(&id)));
            }
            (name, data) = (Vec::new(), Vec::new());
        }
    }
    out
}

proptest! {
    /// SPEC 7.4: however a stream is cut into chunks, its events are those of the plain rules.
    #[test]
    fn any_chunking_gives_the_same_events(stream in streams(), cuts in proptest::collection::vec(0usize..64, 0..8)) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
        cuts.sort_unstable();
        cuts.push(stream.len());
        let mut chunks = Vec::new();
        let mut from = 0;
        for cut in cuts {
            chunks.push(&stream[from..cut]);
            from = cut;
        }
        prop_assert_eq!(parse(&chunks), reference(&stream));
    }
}
