//! The readable text of an HTML page: its title, headings, paragraphs, lists, links, code and tables as plain text with the few
//! signs of Markdown that everybody reads. Scripts, styles, menus and what a browser does not show are left out.
//!
//! `tokens` cuts the page as browsers do, `silence` says what is left out, `reader` what becomes of each other element, and
//! `layout` sets the lines. All of it is one
//! pass (two where a page never ends what is left out), linear in the page, in a bounded amount of memory, without recursion.

mod code;
mod layout;
mod reader;
mod references;
mod silence;
mod tokens;

use crate::work::Stop;
use encoding_rs::{Encoding, UTF_8};
use reader::read;
use reqwest::Url;
use silence::Asides;
use tokens::{Token, Tokens};

/// Bytes of text kept of a page: its main part may begin behind much else. Addresses of links grow when they are told whole, so
/// that what a page becomes is not bounded by what it is.
const TEXT_BYTES_MAX: usize = 16 << 20;
/// How much of it for each byte that is told in the end.
const TEXT_BYTES_PER_BYTE: usize = 2;
/// Bytes in which a page says how it is encoded (WHATWG HTML, section 13.2.3.2).
const ENCODING_SAMPLE_BYTES: usize = 1024;

/// The text of a page that is at this address, of which `bytes_max` will be told.
pub(super) fn text(page: &str, base: &Url, bytes_max: usize, stop: &Stop) -> String {
    let kept_bytes_max = bytes_max.saturating_mul(TEXT_BYTES_PER_BYTE).min(TEXT_BYTES_MAX);
    let mut reading = read(page, base, Asides::Left, kept_bytes_max, stop);
    if reading.is_doubtful || reading.text.trim().is_empty() {
        // Better the menus, too, than half of the page.
        reading = read(page, base, Asides::Read, kept_bytes_max, stop);
    }
    let mut text = reading.text;
    let title = reading.title;
    let heading = text.lines().next().unwrap_or_default().trim_start_matches(['#', ' ']);
    if !title.is_empty() && heading != title {
        text = format!("{title}\n\n{text}");
    }
    text.truncate(text.trim_end().len());
    if reading.is_cut {
        text.push_str("\n[The rest of the page was left out]");
    }
    text
}

/// The encoding that a page says it is in.
pub(super) fn declared_encoding(page: &[u8]) -> Option<&'static Encoding> {
    let sample = page.get(..ENCODING_SAMPLE_BYTES).unwrap_or(page);
    let sample = String::from_utf8_lossy(sample);
    let declared = Tokens::of(&sample).find_map(|token| match token {
        Token::Start(tag) if tag.name == "meta" => {
            if let Some(charset) = tag.attribute("charset") {
                return Encoding::for_label(charset.as_bytes());
            }
            let content = tag.attribute("content")?;
            let (_, charset) = content.split_once("charset=")?;
            Encoding::for_label(charset.trim_matches(['"', '\'', ' ', ';']).as_bytes())
        }
        Token::Start(_) | Token::End(_) | Token::Text(_) => None,
    })?;
    // A declaration that could be read is in no encoding of two bytes.
    let is_wide = !declared.is_ascii_compatible();
    Some(if is_wide { UTF_8 } else { declared })
}

#[cfg(test)]
mod tests;
