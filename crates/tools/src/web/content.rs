//! What an answer holds, as text: which types are text, in which encoding they are, and what is made of each.

use super::fetch::Response;
use super::html;
use crate::capture::Capture;
use crate::files::text::{self, NotText};
use crate::work::Stop;
use encoding_rs::{CoderResult, Encoding, UTF_8};

/// Bytes that a decoder wants free even where it has little to write.
const DECODER_SLACK_BYTES: usize = 64;

/// What a content type says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A page.
    Html,
    /// Text that stays as it is: plain, Markdown, JSON, code.
    Text,
    /// Nothing: the bytes say it.
    Unknown,
    /// No text.
    Other,
}

/// What kind of content a type is of.
pub(super) fn kind(content_type: &str) -> Kind {
    let essence = content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    match essence.as_str() {
        "text/html" | "application/xhtml+xml" => Kind::Html,
        "" | "application/octet-stream" | "binary/octet-stream" | "application/unknown" => Kind::Unknown,
        "application/json"
        | "application/xml"
        | "application/javascript"
        | "application/ecmascript"
        | "application/yaml"
        | "application/toml"
        | "application/sql"
        | "application/graphql"
        | "application/x-sh"
        | "application/x-yaml"
        | "application/x-ndjson"
        | "application/jsonl"
        | "application/x-javascript"
        | "application/x-tex"
        | "application/rtf"
        | "image/svg+xml"
        | "message/rfc822" => Kind::Text,
        other if other.starts_with("text/") || other.ends_with("+json") || other.ends_with("+xml") => Kind::Text,
        _ => Kind::Other,
    }
}

/// The readable text of an answer, cut at so many bytes.
///
/// # Errors
/// It is no text; a message for the model.
pub(super) fn text(
    response: &Response,
    body_bytes_max: usize,
    bytes_max: usize,
    stop: &Stop,
) -> Result<String, String> {
    let (page, is_whole) = decoded(response, body_bytes_max)?;
    let is_html = match kind(&response.content_type) {
        Kind::Html => true,
        Kind::Text | Kind::Other => false,
        Kind::Unknown => looks_like_html(&page),
    };
    let mut capture = Capture::new(bytes_max);
    if response.is_redirected {
        capture.push(&format!("[redirected to {}]\n\n", response.url));
    }
    if is_html {
        let text = html::text(&page, &response.url, bytes_max, stop);
        if text.is_empty() && !page.trim().is_empty() {
            capture.push("[The page has no text; it may need to run scripts to have any]");
        }
        capture.push(&text);
    } else {
        capture.push(&page);
    }
    if response.is_cut || !is_whole {
        capture.push(&format!(
            "\n[Only the first {body_bytes_max} bytes of the page were read]"
        ));
    }
    Ok(capture.finish())
}

fn looks_like_html(page: &str) -> bool {
    let start = page.trim_start().get(..15).unwrap_or_default().to_ascii_lowercase();
    start.starts_with("<!doctype html") || start.starts_with("<html")
}

/// The text of a body, and whether all of it: text takes more room than some encodings, and no more of it is held than of a body.
/// What the bytes begin with counts more than what is said of them, and what the server says more than what
/// the page does (WHATWG HTML, section 13.2.3.1).
fn decoded(response: &Response, bytes_max: usize) -> Result<(String, bool), String> {
    let body = response.body.as_slice();
    if let Some((encoding, mark)) = Encoding::for_bom(body) {
        return Ok(within(encoding, body.get(mark..).unwrap_or_default(), bytes_max));
    }
    let is_html = kind(&response.content_type) != Kind::Text;
    let said = charset(&response.content_type)
        .or_else(|| is_html.then(|| html::declared_encoding(body)).flatten())
        .filter(|encoding| !encoding.is_ascii_compatible() || !body.contains(&0));
    let encoding = match said {
        Some(encoding) => encoding,
        None => guessed(body).map_err(|NotText(what)| {
            let more = if response.is_cut { "more than " } else { "" };
            format!("Not a text page: {} ({more}{} bytes, {what})", response.url, body.len())
        })?,
    };
    Ok(within(encoding, body, bytes_max))
}

/// As much text as fits into about so many bytes, and whether that is all.
fn within(encoding: &'static Encoding, body: &[u8], bytes_max: usize) -> (String, bool) {
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let needed = decoder.max_utf8_buffer_length(body.len()).unwrap_or(usize::MAX);
    let mut text = String::with_capacity(needed.min(bytes_max.saturating_add(DECODER_SLACK_BYTES)));
    let (result, _, _) = decoder.decode_to_string(body, &mut text, true);
    (text, result == CoderResult::InputEmpty)
}

/// The encoding that a content type names.
fn charset(content_type: &str) -> Option<&'static Encoding> {
    let parameter = content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then_some(value)
    })?;
    Encoding::for_label(parameter.trim().trim_matches(['"', '\'']).as_bytes())
}

/// The encoding that bytes are in by the look of them.
fn guessed(body: &[u8]) -> Result<&'static Encoding, NotText> {
    if std::str::from_utf8(body).is_ok() && !body.contains(&0) {
        return Ok(UTF_8);
    }
    let sample = body.get(..text::SAMPLE_BYTES).unwrap_or(body);
    Ok(text::Encoding::detect(sample)?.coding())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 4 (`web_get`): which types are read, and how.
    #[test]
    fn kinds() {
        for (content_type, expect) in [
            ("text/html; charset=utf-8", Kind::Html),
            ("Application/XHTML+XML", Kind::Html),
            ("application/json", Kind::Text),
            ("application/problem+json;v=1", Kind::Text),
            ("application/rss+xml", Kind::Text),
            ("text/markdown", Kind::Text),
            ("", Kind::Unknown),
            ("application/octet-stream", Kind::Unknown),
            ("application/pdf", Kind::Other),
            ("image/png", Kind::Other),
        ] {
            assert_eq!(kind(content_type), expect, "{content_type}");
        }
    }

    fn check(content_type: &str, body: &[u8], expect: Result<&str, &str>) {
        let response = Response {
            url: reqwest::Url::parse("https://a.example/x").unwrap_or_else(|_| unreachable!()),
            is_redirected: false,
            status: 200,
            content_type: content_type.to_owned(),
            body: body.to_vec(),
            is_cut: false,
        };
        let got = text(&response, 100, 1000, &Stop::default());
        assert_eq!(got.as_deref().map_err(String::as_str), expect, "{content_type}");
    }

    /// SPEC 4 (`web_get`): the encoding is what the bytes, the server or the page say, in this order.
    #[test]
    fn encodings() {
        check("text/html", "<p>é".as_bytes(), Ok("é"));
        check("text/html; charset=\"ISO-8859-2\"", b"<p>\xB9", Ok("š"));
        check("text/html", b"<meta charset=windows-1251><p>\xEF", Ok("п"));
        check(
            "text/html; charset=utf-8",
            b"<meta charset=windows-1251><p>\xD0\xBF",
            Ok("п"),
        );
        check("text/html", b"<p>caf\xE9", Ok("café"));
        check("text/html; charset=nonsense", b"<p>caf\xE9", Ok("café"));
        check("text/plain; charset=utf-8", b"caf\xE9", Ok("caf\u{FFFD}"));
        check("text/plain; charset=latin1", b"\xEF\xBB\xBFcaf\xC3\xA9", Ok("café"));
        check("text/plain", b"\xFF\xFEa\0", Ok("a"));
        check("text/plain; charset=utf-16le", b"a\0b\0", Ok("ab"));
    }

    /// SPEC 4.2: what is no text says what it is.
    #[test]
    fn no_text() {
        check("", b"<!DOCTYPE html><p>x</p>", Ok("x"));
        check("", b"# x <p>", Ok("# x <p>"));
        check("application/json", b"{\"a\": 1}\n", Ok("{\"a\": 1}\n"));
        let png = b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR";
        let error = Err("Not a text page: https://a.example/x (16 bytes, image/png)");
        check("application/octet-stream", png, error);
        check("text/plain; charset=utf-8", png, error);
        check("", b"", Ok(""));
        check(
            "text/html",
            b"<script>x</script>",
            Ok("[The page has no text; it may need to run scripts to have any]"),
        );
    }
}
