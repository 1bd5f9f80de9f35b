//! HTML cut into tags and text, as browsers cut it (WHATWG HTML, section 13.2.5), with what a reader of text has no use for
//! left out: doctypes, comments, the states of scripts within comments.
//!
//! One pass over the page: whatever does not end swallows the rest, as it does in a browser, so that nothing is looked at twice.
//! No tree is built; a page of a million open tags costs no more than one of a million closed ones.

use super::references::decoded;
use std::borrow::Cow;

/// Elements whose content is text whatever stands in it, up to their own end tag.
const RAW_ELEMENTS: [&str; 9] = [
    "script",
    "style",
    "title",
    "textarea",
    "iframe",
    "noembed",
    "noframes",
    "xmp",
    "plaintext",
];
/// Bytes of a tag's name that are kept: no element has a longer one.
const NAME_BYTES_MAX: usize = 32;

/// A piece of a page.
#[derive(Debug, PartialEq)]
pub(super) enum Token<'a> {
    /// Text as it stands there, references not yet read.
    Text(&'a str),
    /// The start of an element.
    Start(Tag<'a>),
    /// The end of an element: its name in lower case.
    End(Cow<'a, str>),
}

/// A start tag.
#[derive(Debug, PartialEq)]
pub(super) struct Tag<'a> {
    /// In lower case.
    pub(super) name: Cow<'a, str>,
    /// Everything between the name and the end of the tag.
    attributes: &'a str,
}

impl<'a> Tag<'a> {
    /// The value of an attribute; empty where it has none.
    pub(super) fn attribute(&self, name: &str) -> Option<Cow<'a, str>> {
        let mut rest = self.attributes;
        while let Some((found, value, after)) = next_attribute(rest) {
            if found.eq_ignore_ascii_case(name) {
                return Some(decoded(value));
            }
            rest = after;
        }
        None
    }

    /// Whether the tag ends in `/>`, which matters outside HTML only.
    pub(super) fn is_self_closing(&self) -> bool {
        self.attributes.ends_with('/')
    }
}

/// The pieces of a page, in order.
pub(super) struct Tokens<'a> {
    rest: &'a str,
    /// The element whose content is raw text, after its start tag.
    raw: Option<&'static str>,
}

impl<'a> Tokens<'a> {
    pub(super) fn of(page: &'a str) -> Self {
        Self { rest: page, raw: None }
    }

    /// Takes the next `len` bytes, which end at a character.
    fn take(&mut self, len: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(len).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    /// Passes over everything up to the end of this text, or over the rest where there is none.
    fn skip_past(&mut self, end: &str) {
        let len = self.rest.find(end).map_or(self.rest.len(), |at| at + end.len());
        self.take(len);
    }

    /// What begins here, if it is markup and not a bare `<`.
    fn markup(&mut self) -> Option<Markup<'a>> {
        let after = self.rest.strip_prefix('<')?;
        let is_letter = |text: &str| text.starts_with(|c: char| c.is_ascii_alphabetic());
        if after.starts_with("!--") {
            self.take("<!--".len());
            // `<!-->` and `<!--->` are whole.
            let is_whole = self.rest.starts_with('>') || self.rest.starts_with("->");
            self.skip_past(if is_whole { ">" } else { "-->" });
            return Some(Markup::Nothing);
        }
        if is_letter(after) {
            self.take(1);
            let name = self.name();
            let attributes = self.attributes()?;
            self.raw = RAW_ELEMENTS.into_iter().find(|raw| *raw == name);
            return Some(Markup::Token(Token::Start(Tag { name, attributes })));
        }
        match after.strip_prefix('/') {
            Some(name) if is_letter(name) => {
                self.take("</".len());
                let name = self.name();
                self.attributes()?;
                Some(Markup::Token(Token::End(name)))
            }
            Some(_) => {
                self.skip_past(">");
                Some(Markup::Nothing)
            }
            None if after.starts_with(['!', '?']) => {
                self.skip_past(">");
                Some(Markup::Nothing)
            }
            None => None,
        }
    }

    fn name(&mut self) -> Cow<'a, str> {
        let is_over = |c: char| c.is_ascii_whitespace() || matches!(c, '/' | '>');
        let len = self.rest.find(is_over).unwrap_or(self.rest.len());
        let name = self.take(len);
        let kept = name.get(..name.floor_char_boundary(NAME_BYTES_MAX)).unwrap_or(name);
        if kept.bytes().any(|byte| byte.is_ascii_uppercase()) {
            Cow::Owned(kept.to_ascii_lowercase())
        } else {
            Cow::Borrowed(kept)
        }
    }

    /// The attributes of a tag, past its end; `None` where it has none: then it is no tag, and everything is over.
    fn attributes(&mut self) -> Option<&'a str> {
        let Some(len) = attributes_len(self.rest) else {
            self.rest = "";
            return None;
        };
        let attributes = self.take(len);
        self.take(1);
        Some(attributes)
    }

    /// The content of an element that holds raw text; its end tag is next.
    fn raw_text(&mut self, name: &str) -> &'a str {
        let mut from = 0;
        while let Some(at) = self.rest.get(from..).and_then(|rest| rest.find("</")) {
            let at = from + at;
            let after = at + "</".len();
            let named = self.rest.get(after..after + name.len());
            let is_over = self.rest.as_bytes().get(after + name.len());
            let ends = is_over.is_none_or(|byte| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>'));
            if ends && named.is_some_and(|named| named.eq_ignore_ascii_case(name)) {
                return self.take(at);
            }
            from = after;
        }
        self.take(self.rest.len())
    }
}

/// What a `<` begins.
enum Markup<'a> {
    Token(Token<'a>),
    /// A comment or the like.
    Nothing,
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        if let Some(name) = self.raw.take() {
            let text = self.raw_text(name);
            if !text.is_empty() {
                return Some(Token::Text(text));
            }
        }
        while !self.rest.is_empty() {
            if !self.rest.starts_with('<') {
                let len = self.rest.find('<').unwrap_or(self.rest.len());
                return Some(Token::Text(self.take(len)));
            }
            match self.markup() {
                Some(Markup::Token(token)) => return Some(token),
                Some(Markup::Nothing) => {}
                None if self.rest.is_empty() => {}
                None => return Some(Token::Text(self.take(1))),
            }
        }
        None
    }
}

/// How long the attributes of a tag are, up to the `>` that ends it: one in quotes does not.
fn attributes_len(text: &str) -> Option<usize> {
    let mut rest = text;
    while let Some((_, _, after)) = next_attribute(rest) {
        rest = after;
    }
    let len = text.len() - rest.len();
    let at_end = rest.find('>')?;
    Some(len + at_end)
}

/// The first attribute of these, its value as it stands there, and what follows; `None` at the end of the tag.
fn next_attribute(text: &str) -> Option<(&str, &str, &str)> {
    let text = text.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
    if text.is_empty() || text.starts_with('>') {
        return None;
    }
    // A name may begin with `=`, oddly.
    let first = text.chars().next().map_or(0, char::len_utf8);
    let is_over = |c: char| c.is_ascii_whitespace() || matches!(c, '/' | '>' | '=');
    let len = text.get(first..)?.find(is_over).map_or(text.len(), |at| first + at);
    let (name, after) = text.split_at_checked(len)?;
    let Some(value) = after.trim_ascii_start().strip_prefix('=') else {
        return Some((name, "", after));
    };
    let value = value.trim_ascii_start();
    for quote in ['"', '\''] {
        if let Some(quoted) = value.strip_prefix(quote) {
            let (value, after) = quoted.split_once(quote).unwrap_or((quoted, ""));
            return Some((name, value, after));
        }
    }
    let len = value
        .find(|c: char| c.is_ascii_whitespace() || c == '>')
        .unwrap_or(value.len());
    let (value, after) = value.split_at_checked(len)?;
    Some((name, value, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(page: &str, expect: &str) {
        let shown: Vec<String> = Tokens::of(page)
            .map(|token| match token {
                Token::Text(text) => format!("{text:?}"),
                Token::Start(tag) => format!("<{}>", tag.name),
                Token::End(name) => format!("</{name}>"),
            })
            .collect();
        assert_eq!(shown.join(" "), expect, "{page}");
    }

    /// SPEC 4 (`web_get`): a page is cut where browsers cut it.
    #[test]
    fn pages_are_cut() {
        check("<!DOCTYPE html><P class=a>x</p >y", r#"<p> "x" </p> "y""#);
        check("a < b <3 </> </ x> c", r#""a " "<" " b " "<" "3 " " " " c""#);
        check("<!-- a > b --><b>", "<b>");
        check("<!--><b><!---><i>", "<b> <i>");
        check("<?xml version='1.0'?><b>", "<b>");
        check("<a title='>' href=\">\">x", r#"<a> "x""#);
        check("<a =x><br/><b/c>", "<a> <br> <b>");
        check("a<b", r#""a""#);
        check("a<b x=\"", r#""a""#);
        check("a<!-- b", r#""a""#);
        check("", "");
    }

    /// SPEC 4 (`web_get`): a script is text until its end tag, whatever is in it.
    #[test]
    fn raw_text() {
        check(
            "<script>if (a</b) '<p>'</SCRIPT >c",
            r#"<script> "if (a</b) '<p>'" </script> "c""#,
        );
        check("<title></titles></title>", r#"<title> "</titles>" </title>"#);
        check("<style></style>x", r#"<style> </style> "x""#);
        check("<script>a", r#"<script> "a""#);
    }

    #[test]
    fn attributes() {
        let of = |page, name| match Tokens::of(page).next() {
            Some(Token::Start(tag)) => tag.attribute(name).map(Cow::into_owned),
            Some(Token::Text(_) | Token::End(_)) | None => None,
        };
        let page = "<a HREF = 'a&amp;b' b=c/d checked x=\"\" href=other>";
        assert_eq!(of(page, "href").as_deref(), Some("a&b"));
        assert_eq!(of(page, "b").as_deref(), Some("c/d"));
        assert_eq!(of(page, "checked").as_deref(), Some(""));
        assert_eq!(of(page, "x").as_deref(), Some(""));
        assert_eq!(of(page, "c"), None);
        assert_eq!(of("<a b=c>", "b").as_deref(), Some("c"));
    }

    proptest::proptest! {
        /// SPEC 12: no page makes it fail, and no text is told twice.
        #[test]
        fn any_page_is_cut(page in r#"([<>/!"'=&; a-cé-]|<!--|-->|<script>|</script|<a |href=){0,60}"#) {
            let mut len = 0;
            for token in Tokens::of(&page) {
                match token {
                    Token::Text(text) => len += text.len(),
                    Token::Start(tag) => {
                        let _ = tag.attribute("href");
                    }
                    Token::End(_) => {}
                }
            }
            assert!(len <= page.len());
        }
    }
}
