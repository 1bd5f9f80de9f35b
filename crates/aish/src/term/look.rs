//! How things look: the size of the terminal, whether it takes colours, whether anybody draws rules for it.

use super::abilities;
use crate::paths::Environment;
pub use aish_markdown::{Background, Links};
use anstyle::{AnsiColor, Style};

/// Set off from what matters: tool output, thinking, status lines.
pub(super) const DIM: Style = Style::new().dimmed();
/// Something failed.
pub(super) const RED: Style = AnsiColor::Red.on_default();
/// What the person is asked.
pub(super) const BOLD: Style = Style::new().bold();

/// Columns assumed where a terminal does not tell.
const COLUMNS_USUAL: usize = 80;
/// Rows assumed where a terminal does not tell.
const ROWS_USUAL: usize = 24;
/// Fewer columns than these are not worth laying out for: the terminal may break the lines itself.
const COLUMNS_MIN: usize = 20;
/// Rows of a screen that are not filled with one result: its frame, the question before it, the prompt after it.
const ROWS_KEPT_FREE: usize = 6;
/// A result always gets this many rows.
const RESULT_ROWS_MIN: usize = 8;

/// Whether colours and other styles are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// As escape sequences.
    On,
    /// Not at all.
    Off,
}

/// Whether text is laid out for a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Rules across the width, rows broken at it.
    Framed,
    /// For files and dumb terminals: ASCII marks, lines as they are.
    Plain,
}

/// Whether text can be italic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slant {
    /// It can.
    Italic,
    /// What is written so is shown in a strange colour, or the wrong way round.
    Upright,
}

/// How the person wants things to look, whatever the terminal says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// What text stands on.
    pub background: Option<Background>,
    /// Whether text is laid out.
    pub form: Option<Form>,
}

/// How things look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Columns of the terminal.
    pub columns: usize,
    /// Rows of the terminal.
    pub rows: usize,
    /// Whether styles are written.
    pub colour: Colour,
    /// Whether text is laid out.
    pub form: Form,
    /// Whether italic and struck out text looks so, and not worse.
    pub slant: Slant,
    /// How links are written.
    pub links: Links,
    /// Which colours can be read.
    pub background: Background,
}

impl Look {
    /// For something that is no terminal.
    pub const PLAIN: Self = Self {
        columns: COLUMNS_USUAL,
        rows: ROWS_USUAL,
        colour: Colour::Off,
        form: Form::Plain,
        slant: Slant::Upright,
        links: Links::Plain,
        background: Background::Dark,
    };

    /// For the terminal behind `fd`; plain where there is none, or one that takes no escape sequences (SPEC 8.9).
    pub fn detect(environment: &Environment, fd: impl rustix::fd::AsFd) -> Self {
        let dumb = environment.text("TERM").is_none_or(|term| term == "dumb");
        if dumb || !rustix::termios::isatty(&fd) {
            return Self::PLAIN;
        }
        let colour = match environment.text("NO_COLOR") {
            Some(_) => Colour::Off,
            None => Colour::On,
        };
        let look = Self {
            colour,
            form: Form::Framed,
            slant: abilities::slant(environment),
            links: abilities::links(environment),
            background: abilities::background(environment),
            ..Self::PLAIN
        };
        look.resized(fd)
    }

    /// The same as the person wants it. What is not laid out has no styles either, but still rows that end.
    pub fn wished(self, wishes: Wishes) -> Self {
        let background = wishes.background.unwrap_or(self.background);
        match wishes.form.unwrap_or(self.form) {
            Form::Framed => Self { background, ..self },
            Form::Plain => Self {
                columns: self.columns,
                rows: self.rows,
                ..Self::PLAIN
            },
        }
    }

    /// The same for the size the terminal behind `fd` has now.
    pub fn resized(self, fd: impl rustix::fd::AsFd) -> Self {
        let Ok(size) = rustix::termios::tcgetwinsize(fd) else {
            return self;
        };
        // A terminal that was never told its size says 0.
        let told = |cells: u16, usual: usize| if cells == 0 { usual } else { usize::from(cells) };
        Self {
            columns: told(size.ws_col, COLUMNS_USUAL).max(COLUMNS_MIN),
            rows: told(size.ws_row, ROWS_USUAL),
            ..self
        }
    }

    /// Columns text may take; the last one stays free, since writing into it makes terminals differ. No end of them where text
    /// is not laid out.
    pub fn width(self) -> usize {
        match self.form {
            Form::Framed => self.columns.max(COLUMNS_MIN) - 1,
            Form::Plain => usize::MAX,
        }
    }

    /// The same for a reply.
    pub(super) fn markdown(self) -> aish_markdown::Look {
        let colour = match (self.colour, self.slant) {
            (Colour::Off, _) => aish_markdown::Colour::None,
            (Colour::On, Slant::Upright) => aish_markdown::Colour::Basic,
            (Colour::On, Slant::Italic) => aish_markdown::Colour::Rich,
        };
        aish_markdown::Look {
            columns: self.width(),
            colour,
            links: self.links,
            background: self.background,
        }
    }

    /// Rows of a result that are shown (SPEC 8.5: up to a screenful).
    pub(super) fn result_rows_max(self) -> usize {
        self.rows.saturating_sub(ROWS_KEPT_FREE).max(RESULT_ROWS_MIN)
    }

    /// The text in that style, which ends with it: nothing that is written later is coloured by it.
    pub fn paint(self, style: Style, text: &str) -> String {
        match self.colour {
            Colour::On if !text.is_empty() => format!("{}{text}{}", style.render(), style.render_reset()),
            Colour::On | Colour::Off => text.to_owned(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// SPEC 8.9: a file, a dumb terminal and one nobody named get the plain look.
    #[test]
    fn files_are_plain() {
        let file = tempfile::tempfile().unwrap();
        for pairs in [vec![("TERM", "xterm")], vec![("TERM", "dumb")], vec![]] {
            assert_eq!(Look::detect(&Environment::from_pairs(pairs), &file), Look::PLAIN);
        }
    }

    /// SPEC 8.9: `NO_COLOR` turns styles off and leaves the layout.
    #[test]
    fn no_color() {
        let (_master, slave) = pty_process::blocking::open().unwrap();
        drop(slave);
        let (master, _slave) = pty_process::blocking::open().unwrap();
        let with = |pairs: &[(&str, &str)]| Look::detect(&Environment::from_pairs(pairs.iter().copied()), &master);
        assert_eq!(with(&[("TERM", "xterm")]).colour, Colour::On);
        let look = with(&[("TERM", "xterm"), ("NO_COLOR", "1")]);
        assert_eq!((look.colour, look.form), (Colour::Off, Form::Framed));
        assert_eq!(with(&[("TERM", "dumb")]).form, Form::Plain);
    }

    /// SPEC 8.9: the size is the terminal's own; one that does not know it is taken for 80 by 24.
    #[test]
    fn sizes() {
        let (master, _slave) = pty_process::blocking::open().unwrap();
        let size = |look: Look| (look.columns, look.rows);
        assert_eq!(size(Look::PLAIN.resized(&master)), (80, 24));
        master.resize(pty_process::Size::new(10, 132)).unwrap();
        assert_eq!(size(Look::PLAIN.resized(&master)), (132, 10));
    }

    /// SPEC 8.9: what the person says of the terminal, or wants, comes before what the terminal says.
    #[test]
    fn wishes() {
        let able = Look {
            columns: 132,
            colour: Colour::On,
            form: Form::Framed,
            ..Look::PLAIN
        };
        assert_eq!(able.wished(Wishes::default()), able);
        let light = Wishes {
            background: Some(Background::Light),
            ..Wishes::default()
        };
        assert_eq!(able.wished(light).background, Background::Light);
        let plain = Wishes {
            form: Some(Form::Plain),
            ..Wishes::default()
        };
        let look = able.wished(plain);
        assert_eq!((look.form, look.colour, look.columns), (Form::Plain, Colour::Off, 132));
        assert_eq!(look.width(), usize::MAX, "the terminal breaks its lines itself");
    }
}
