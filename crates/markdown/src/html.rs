//! Where HTML begins and ends (CommonMark 4.6). It is shown as the text it is; this only keeps Markdown out of it.

use crate::cursor::{Cursor, More};

/// A longer name is no tag's.
const NAME_BYTES_MAX: usize = 32;

/// What ends HTML.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum HtmlEnd {
    /// A line with this in it, whatever the case.
    Text(&'static str),
    /// The end of one of [`VERBATIM_TAGS`].
    VerbatimTag,
    /// An empty line.
    Blank,
}

/// Tags whose content is not HTML.
const VERBATIM_TAGS: [&str; 4] = ["script", "pre", "style", "textarea"];

/// Tags that begin a block wherever they stand.
const BLOCK_TAGS: [&str; 62] = [
    "address",
    "article",
    "aside",
    "base",
    "basefont",
    "blockquote",
    "body",
    "caption",
    "center",
    "col",
    "colgroup",
    "dd",
    "details",
    "dialog",
    "dir",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "frame",
    "frameset",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "header",
    "hr",
    "html",
    "iframe",
    "legend",
    "li",
    "link",
    "main",
    "menu",
    "menuitem",
    "nav",
    "noframes",
    "ol",
    "optgroup",
    "option",
    "p",
    "param",
    "search",
    "section",
    "summary",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "title",
    "tr",
    "track",
    "ul",
];

impl HtmlEnd {
    /// Whether that line is the last one.
    pub(crate) fn is_in(self, line: &str) -> bool {
        match self {
            Self::Text(end) => line.contains(end),
            Self::VerbatimTag => {
                let line = line.to_ascii_lowercase();
                VERBATIM_TAGS.iter().any(|tag| line.contains(&format!("</{tag}>")))
            }
            Self::Blank => false,
        }
    }
}

/// What ends the HTML that begins at the cursor, if some does.
pub(crate) fn start(mut cursor: Cursor<'_>, in_paragraph: bool) -> Result<Option<HtmlEnd>, More> {
    cursor.skip_white();
    cursor.skip_byte();
    for (mark, end) in [("!--", "-->"), ("?", "?>"), ("![CDATA[", "]]>")] {
        if cursor.clone().begins_with(mark)? {
            return Ok(Some(HtmlEnd::Text(end)));
        }
    }
    if cursor.peek()? == Some(b'!') {
        cursor.skip_byte();
        let declares = cursor.peek()?.is_some_and(|byte| byte.is_ascii_alphabetic());
        return Ok(declares.then_some(HtmlEnd::Text(">")));
    }
    let closes = cursor.begins_with("/")?;
    let name = name(&mut cursor)?;
    let next = cursor.peek()?;
    let is_delimited = matches!(next, None | Some(b' ' | b'\t' | b'>'));
    if !closes && is_delimited && VERBATIM_TAGS.contains(&name.as_str()) {
        return Ok(Some(HtmlEnd::VerbatimTag));
    }
    if (is_delimited || next == Some(b'/')) && BLOCK_TAGS.contains(&name.as_str()) {
        return Ok(Some(HtmlEnd::Blank));
    }
    if in_paragraph || name.is_empty() || !(is_delimited || next == Some(b'/')) {
        return Ok(None);
    }
    let Some(rest) = cursor.rest_of_line()? else {
        return Ok(None);
    };
    Ok(is_rest_of_tag(rest.trim_end()).then_some(HtmlEnd::Blank))
}

fn name(cursor: &mut Cursor<'_>) -> Result<String, More> {
    let mut name = String::new();
    while let Some(byte) = cursor.peek()? {
        let fits = byte.is_ascii_alphabetic() || (!name.is_empty() && (byte.is_ascii_digit() || byte == b'-'));
        if !fits || name.len() >= NAME_BYTES_MAX {
            break;
        }
        name.push(char::from(byte.to_ascii_lowercase()));
        cursor.skip_byte();
    }
    Ok(name)
}

/// Whether a tag's rest is all that is on the line. Attributes are believed to be right unless they cannot be.
fn is_rest_of_tag(rest: &str) -> bool {
    let Some(attributes) = rest.strip_suffix('>') else {
        return false;
    };
    let mut quote = None;
    for c in attributes.chars() {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            (None, '<' | '>' | '`' | '*') => return false,
            (None | Some(_), _) => {}
        }
    }
    quote.is_none()
}
