//! The ways in which the same stream may arrive: what a proxy, a kernel or a server may change without changing what is
//! said (WHATWG HTML, "Server-sent events", for line ends, comments and the byte-order mark).

/// A way to arrive.
#[derive(Debug)]
pub struct Arrival {
    /// For messages.
    pub how: String,
    /// The bytes, in the chunks they come in.
    pub chunks: Vec<Vec<u8>>,
}

/// Random chunkings of each stream.
const CHUNKINGS: u64 = 6;

/// Every way for a stream; for a body that is one JSON document only its chunks differ.
pub fn of(body: &[u8]) -> Vec<Arrival> {
    let mut ways = chunkings(body, "as sent");
    if is_document(body) {
        ways.push(whole("after white space", [b"\r\n \n".as_slice(), body].concat()));
        ways.push(whole(
            "with a byte-order mark",
            [b"\xEF\xBB\xBF".as_slice(), body].concat(),
        ));
        return ways;
    }
    let text = String::from_utf8_lossy(body).into_owned();
    if !body.contains(&b'\r') {
        let crlf = text.replace('\n', "\r\n");
        ways.push(bytewise("CRLF, byte by byte", crlf.as_bytes()));
        ways.push(whole("CRLF", crlf.into_bytes()));
        let cr = text.replace('\n', "\r");
        ways.push(bytewise("CR, byte by byte", cr.as_bytes()));
        ways.push(whole("CR", cr.into_bytes()));
    }
    let commented = comments(&text);
    ways.push(bytewise("with comments, byte by byte", commented.as_bytes()));
    ways.push(whole("with comments", commented.into_bytes()));
    if !body.starts_with(b"\xEF\xBB\xBF") {
        let marked = [b"\xEF\xBB\xBF".as_slice(), body].concat();
        ways.push(bytewise("with a byte-order mark, byte by byte", &marked));
        ways.push(whole("with a byte-order mark", marked));
    }
    ways
}

/// In one piece, byte by byte, in halves of every size that is a power of two, and in random pieces.
pub fn chunkings(body: &[u8], what: &str) -> Vec<Arrival> {
    let mut ways = vec![
        whole(what, body.to_vec()),
        bytewise(&format!("{what}, byte by byte"), body),
    ];
    ways.extend((0..CHUNKINGS).map(|seed| Arrival {
        how: format!("{what}, in random pieces (seed {seed})"),
        chunks: pieces(body, seed),
    }));
    ways
}

/// A body that is no event stream.
pub fn is_document(body: &[u8]) -> bool {
    let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
    first.is_some_and(|first| b"{[".contains(first))
}

fn whole(how: &str, body: Vec<u8>) -> Arrival {
    Arrival {
        how: how.to_owned(),
        chunks: vec![body],
    }
}

fn bytewise(how: &str, body: &[u8]) -> Arrival {
    Arrival {
        how: how.to_owned(),
        chunks: body.chunks(1).map(<[u8]>::to_vec).collect(),
    }
}

/// A keep-alive of each kind before the first event, between any two, and inside of each.
fn comments(text: &str) -> String {
    let mut out = String::from(": OPENROUTER PROCESSING\n\n");
    for line in text.split_inclusive('\n') {
        if line.starts_with("data:") {
            out.push_str(":\nretry: 3000\n");
        }
        out.push_str(line);
        if line.trim_end().is_empty() {
            out.push_str(": ping\n\n");
        }
    }
    out
}

/// Pieces of 0 to 40 bytes, by a linear congruential generator: the same ones for the same seed.
fn pieces(body: &[u8], seed: u64) -> Vec<Vec<u8>> {
    let mut state = seed;
    let mut rest = body;
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let bytes = usize::try_from((state >> 33) % 41).unwrap_or(0).min(rest.len());
        let (piece, tail) = rest.split_at(bytes);
        pieces.push(piece.to_vec());
        rest = tail;
    }
    pieces
}
