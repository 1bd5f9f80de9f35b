//! What of a page is passed over: what is no text, what a browser does not show, and what is about other pages.

use super::tokens::Tag;

/// Elements whose content is no text of the page.
const NO_TEXT: [&str; 6] = ["script", "style", "iframe", "noembed", "noframes", "textarea"];
/// Elements that hold nothing to read.
const SILENT: [&str; 11] = [
    "template",
    "svg",
    "object",
    "canvas",
    "audio",
    "video",
    "map",
    "select",
    "datalist",
    "button",
    "annotation",
];
/// Elements that end where their tag says, so that what is in one that is not shown can be passed over.
const CONTAINERS: [&str; 14] = [
    "div", "section", "span", "ul", "ol", "header", "footer", "aside", "details", "form", "table", "dialog", "a", "nav",
];

/// Whether the parts of a page that are about other pages, or not shown, are passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asides {
    /// They are.
    Left,
    /// They are read like the rest.
    Read,
}

/// An element whose content is passed over.
pub(super) struct Silence {
    pub(super) name: String,
    /// How many of that name are open.
    pub(super) depth: usize,
}

/// Whether an element holds nothing to read.
pub(super) fn is_silent(tag: &Tag<'_>, asides: Asides) -> bool {
    let name = tag.name.as_ref();
    if NO_TEXT.contains(&name) {
        return true;
    }
    if asides == Asides::Read {
        return false;
    }
    if SILENT.contains(&name) {
        return true;
    }
    if !CONTAINERS.contains(&name) {
        return false;
    }
    let is = |attribute, value: &str| {
        let found = tag.attribute(attribute);
        found.is_some_and(|found| found.trim().eq_ignore_ascii_case(value))
    };
    let is_undisplayed = || {
        let style = tag.attribute("style").unwrap_or_default();
        style.replace(' ', "").to_ascii_lowercase().contains("display:none")
    };
    name == "nav"
        || (name == "dialog" && tag.attribute("open").is_none())
        || tag.attribute("hidden").is_some()
        || is("aria-hidden", "true")
        || is("role", "navigation")
        || is_undisplayed()
}
