//! The block that is open, whatever it is, and which lines belong to it.

use crate::code::Code;
use crate::html::HtmlEnd;
use crate::inline::Inline;
use crate::start::{Fence, Line, Tip};
use crate::table::Table;

/// The block that is open.
#[derive(Debug)]
pub(crate) enum Body {
    /// None: the next line begins one.
    None,
    Paragraph(Inline),
    TableHead {
        /// The paragraph it would belong to.
        paragraph: Option<Inline>,
        row: String,
        cells: usize,
    },
    Table(Table),
    Fenced(Fence, Code),
    Indented(Code),
    Html {
        end: HtmlEnd,
        line: String,
    },
    Heading {
        level: u8,
        text: String,
    },
    /// A heading too long to be held.
    LongHeading(Inline),
    Command(String),
}

/// How a block stands among others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// Follows other text without an empty row, unless the text has one.
    Plain,
    /// Has an empty row around it.
    SetOff,
}

impl Body {
    /// The same as it concerns the next line.
    pub(crate) fn tip(&self) -> Tip {
        match self {
            Self::None | Self::Heading { .. } | Self::LongHeading(_) | Self::Command(_) => Tip::None,
            Self::Paragraph(_) => Tip::Paragraph,
            Self::TableHead { cells, .. } => Tip::TableHead { cells: *cells },
            Self::Table(_) => Tip::Table,
            Self::Fenced(fence, _) => Tip::Fence(*fence),
            Self::Indented(_) => Tip::Indented,
            Self::Html { end, .. } => Tip::Html(*end),
        }
    }

    /// Whether it is text in which a comment is open.
    pub(crate) fn in_comment(&self) -> bool {
        matches!(self, Self::Paragraph(inline) if inline.in_comment())
    }

    /// Whether the line belongs to the body that is open.
    pub(crate) fn takes(&self, line: &Line) -> bool {
        match line {
            Line::Text | Line::Lazy | Line::Underline(_) => matches!(self, Self::Paragraph(_)),
            Line::TableHead(..) => matches!(self, Self::Paragraph(_)),
            Line::Verbatim { .. } | Line::FenceClose | Line::TableRule(_) | Line::TableRow(_) => true,
            Line::Blank => matches!(self, Self::Indented(_)),
            Line::Indented { .. }
            | Line::Html(_)
            | Line::FenceOpen(..)
            | Line::Heading(_)
            | Line::Rule
            | Line::Command => false,
        }
    }
}

impl Kind {
    /// Of the block that line begins.
    pub(crate) fn of(line: &Line) -> Self {
        match line {
            Line::Heading(_) | Line::FenceOpen(..) | Line::Rule | Line::Indented { .. } | Line::TableRule(_) => {
                Self::SetOff
            }
            Line::TableRow(_)
            | Line::Blank
            | Line::Text
            | Line::Lazy
            | Line::Verbatim { .. }
            | Line::Html(_)
            | Line::FenceClose
            | Line::Underline(_)
            | Line::TableHead(..)
            | Line::Command => Self::Plain,
        }
    }
}
