//! What the terminal can do, and the styles that follow from it.

use anstyle::{AnsiColor, Color, Effects, Style};

/// Whether styles are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// None at all: the marks of Markdown stay where they carry a meaning.
    None,
    /// The sixteen colours, bold, dim and underlined.
    Basic,
    /// Italic and struck out as well.
    Rich,
}

/// How links are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// The address in parentheses behind the text.
    Plain,
    /// As hyperlinks of the terminal.
    Osc8,
}

/// What the terminal's background is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// Light text on it.
    Dark,
    /// Dark text on it.
    Light,
}

/// What text is laid out for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Columns a row may take.
    pub columns: usize,
    /// Whether styles are written.
    pub colour: Colour,
    /// How links are.
    pub links: Links,
    /// Which colours can be read.
    pub background: Background,
}

/// Styles by what they say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Palette {
    pub strong: Style,
    pub emphasis: Style,
    pub strike: Style,
    pub code: Style,
    pub link: Style,
    pub command: Style,
    /// Rules, marks, frames.
    pub faint: Style,
    pub title: Style,
    pub heading: Style,
    pub keyword: Style,
    pub string: Style,
    pub number: Style,
    pub function: Style,
    pub type_name: Style,
    pub comment: Style,
    pub inserted: Style,
    pub deleted: Style,
    pub place: Style,
}

impl Look {
    pub(crate) fn palette(self) -> Palette {
        let colour = |dark: AnsiColor, light: AnsiColor| {
            let colour = match self.background {
                Background::Dark => dark,
                Background::Light => light,
            };
            self.style(Effects::new(), Some(colour))
        };
        let effect = |effects| self.style(effects, None);
        let rich = |rich: Effects, basic: Effects| {
            effect(match self.colour {
                Colour::Rich => rich,
                Colour::None | Colour::Basic => basic,
            })
        };
        Palette {
            strong: effect(Effects::BOLD),
            emphasis: rich(Effects::ITALIC, Effects::UNDERLINE),
            strike: rich(Effects::STRIKETHROUGH, Effects::DIMMED),
            code: colour(AnsiColor::Cyan, AnsiColor::Blue),
            link: effect(Effects::UNDERLINE),
            command: effect(Effects::BOLD),
            faint: effect(Effects::DIMMED),
            title: effect(Effects::BOLD | Effects::UNDERLINE),
            heading: effect(Effects::BOLD),
            keyword: colour(AnsiColor::Magenta, AnsiColor::Magenta),
            string: colour(AnsiColor::Green, AnsiColor::Green),
            number: colour(AnsiColor::Yellow, AnsiColor::Red),
            function: colour(AnsiColor::BrightBlue, AnsiColor::Blue),
            type_name: colour(AnsiColor::Cyan, AnsiColor::Blue),
            comment: rich(Effects::DIMMED | Effects::ITALIC, Effects::DIMMED),
            inserted: colour(AnsiColor::Green, AnsiColor::Green),
            deleted: colour(AnsiColor::Red, AnsiColor::Red),
            place: colour(AnsiColor::Cyan, AnsiColor::Blue),
        }
    }

    fn style(self, effects: Effects, colour: Option<AnsiColor>) -> Style {
        match self.colour {
            Colour::None => Style::new(),
            Colour::Basic | Colour::Rich => Style::new().effects(effects).fg_color(colour.map(Color::Ansi)),
        }
    }
}
