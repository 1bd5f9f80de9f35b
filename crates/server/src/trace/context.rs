//! The trace that a request belongs to, as its client says (W3C Trace Context, `traceparent`).

use super::{Place, SPAN_CHARS, TRACE_CHARS};
use http::{HeaderMap, HeaderName};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// The flag that says that the client records its part.
const SAMPLED: u8 = 1;

/// The span of the client's that a request is a part of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parent(pub(crate) Place);

/// What a request is a part of, if its client records that; a header that is none says nothing.
pub(crate) fn parent(headers: &HeaderMap) -> Option<Parent> {
    let mut given = headers.get_all(&TRACEPARENT).iter();
    let text = given.next().filter(|_| given.next().is_none())?.to_str().ok()?;
    let mut fields = text.split('-');
    let (version, trace, span, flags) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    let is_known = is_hex(version, 2) && version != "ff" && (version != "00" || fields.next().is_none());
    let is_id = |text: &str, chars| is_hex(text, chars) && text.bytes().any(|byte| byte != b'0');
    if !is_known || !is_id(trace, TRACE_CHARS) || !is_id(span, SPAN_CHARS) || !is_hex(flags, 2) {
        return None;
    }
    let flags = u8::from_str_radix(flags, 16).ok()?;
    (flags & SAMPLED != 0).then(|| {
        Parent(Place {
            trace: trace.to_owned(),
            span: span.to_owned(),
        })
    })
}

fn is_hex(text: &str, chars: usize) -> bool {
    text.len() == chars && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Trace Context, 3.2: what is a parent, and what is passed over.
    #[test]
    fn parents() {
        let read = |text: &str| parent(&HeaderMap::from_iter([(TRACEPARENT, text.parse().unwrap())]));
        let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
        let good = read(&format!("00-{trace}-{span}-01")).unwrap();
        assert_eq!((good.0.trace.as_str(), good.0.span.as_str()), (trace, span));
        assert!(read(&format!("cc-{trace}-{span}-03-what-comes-later")).is_some());
        for bad in [
            format!("00-{trace}-{span}-00"),
            format!("ff-{trace}-{span}-01"),
            format!("00-{trace}-{span}-01-more"),
            format!("00-{}-{span}-01", "0".repeat(32)),
            format!("00-{trace}-{}-01", "0".repeat(16)),
            format!("00-{}-{span}-01", trace.to_uppercase()),
            format!("00-{trace}-{span}"),
            String::new(),
        ] {
            assert_eq!(read(&bad), None, "{bad}");
        }
        assert_eq!(parent(&HeaderMap::new()), None);
    }
}
