//! A terminal's screen as an SVG picture: text stays text, each run of one style at its own place.

use std::fmt::Write as _;

/// Width of a cell, height of a row and size of the letters, in units of the picture.
const CELL_WIDTH: f32 = 8.4;
const ROW_HEIGHT: usize = 18;
const FONT_SIZE: usize = 14;
/// Around the text.
const MARGIN: usize = 14;
/// From a row's top to the line its letters stand on.
const BASELINE: usize = 13;
const BACKGROUND: &str = "#1b1d23";
const FOREGROUND: &str = "#d8dbe2";
/// The sixteen colours a terminal has names for.
const PALETTE: [&str; 16] = [
    "#3b4048", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#abb2bf", "#5c6370", "#ff7b86",
    "#b1d996", "#f0d399", "#80c4ff", "#d99bec", "#7fd3de", "#ffffff",
];
/// The steps of the colour cube behind the sixteen.
const CUBE: [u8; 6] = [0, 95, 135, 175, 215, 255];
const CUBE_FIRST: u8 = 16;
const GREYS_FIRST: u8 = 232;

/// How a run of cells looks.
#[derive(Clone, PartialEq)]
struct Style {
    foreground: String,
    background: Option<String>,
    is_bold: bool,
    is_dim: bool,
    is_italic: bool,
    is_underlined: bool,
}

/// The rows of the screen that hold anything, up to the last one.
pub fn svg(screen: &vt100::Screen) -> String {
    let (rows, columns) = size(screen);
    let last = (0..rows).rev().find(|row| !line(screen, *row).trim_end().is_empty());
    let rows = last.map_or(0, |last| last + 1);
    let width = f32::from(columns).mul_add(CELL_WIDTH, 2.0 * MARGIN as f32).ceil();
    let height = usize::from(rows) * ROW_HEIGHT + 2 * MARGIN;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"{FONT_SIZE}\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n"
    );
    for row in 0..rows {
        for (column, text, cells, style) in runs(screen, row, columns) {
            draw(&mut out, (row, column, cells), &text, &style);
        }
    }
    out.push_str("</svg>\n");
    out
}

fn size(screen: &vt100::Screen) -> (u16, u16) {
    let (rows, columns) = screen.size();
    (rows.get(), columns.get())
}

/// The text of a row.
pub fn line(screen: &vt100::Screen, row: u16) -> String {
    let (_, columns) = size(screen);
    screen.rows(0, columns).nth(usize::from(row)).unwrap_or_default()
}

fn draw(out: &mut String, (row, column, cells): (u16, u16, u16), text: &str, style: &Style) {
    let x = f32::from(column).mul_add(CELL_WIDTH, MARGIN as f32);
    let y = usize::from(row) * ROW_HEIGHT + MARGIN;
    let width = f32::from(cells) * CELL_WIDTH;
    if let Some(background) = &style.background {
        let _ = writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"{ROW_HEIGHT}\" fill=\"{background}\"/>"
        );
    }
    if text.trim().is_empty() {
        return;
    }
    let mut attributes = String::new();
    for (wanted, attribute) in [
        (style.is_bold, " font-weight=\"bold\""),
        (style.is_dim, " opacity=\"0.6\""),
        (style.is_italic, " font-style=\"italic\""),
        (style.is_underlined, " text-decoration=\"underline\""),
    ] {
        if wanted {
            attributes.push_str(attribute);
        }
    }
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{}\" textLength=\"{width:.1}\" lengthAdjust=\"spacingAndGlyphs\" xml:space=\"preserve\" \
         fill=\"{}\"{attributes}>{}</text>",
        y + BASELINE,
        style.foreground,
        escaped(text)
    );
}

/// Runs of one style: where each begins, its text, its cells.
fn runs(screen: &vt100::Screen, row: u16, columns: u16) -> Vec<(u16, String, u16, Style)> {
    let mut runs: Vec<(u16, String, u16, Style)> = Vec::new();
    for column in 0..columns {
        let Some(cell) = screen.cell(row, column) else { continue };
        let style = style(cell);
        let text = match (cell.is_wide_continuation(), cell.has_contents()) {
            (true, _) => "",
            (false, true) => cell.contents(),
            (false, false) => " ",
        };
        match runs.last_mut() {
            Some((_, run, cells, of)) if *of == style => {
                run.push_str(text);
                *cells += 1;
            }
            Some(_) | None => runs.push((column, text.to_owned(), 1, style)),
        }
    }
    runs
}

fn style(cell: &vt100::Cell) -> Style {
    let (mut foreground, mut background) = (colour(cell.fgcolor()), colour(cell.bgcolor()));
    if cell.inverse() {
        (foreground, background) = (
            Some(background.unwrap_or_else(|| BACKGROUND.to_owned())),
            Some(foreground.unwrap_or_else(|| FOREGROUND.to_owned())),
        );
    }
    Style {
        foreground: foreground.unwrap_or_else(|| FOREGROUND.to_owned()),
        background,
        is_bold: cell.bold(),
        is_dim: cell.dim(),
        is_italic: cell.italic(),
        is_underlined: cell.underline(),
    }
}

/// `None` for the terminal's own.
fn colour(colour: vt100::Color) -> Option<String> {
    match colour {
        vt100::Color::Default => None,
        vt100::Color::Rgb(red, green, blue) => Some(format!("#{red:02x}{green:02x}{blue:02x}")),
        vt100::Color::Idx(index) if index < CUBE_FIRST => Some(PALETTE[usize::from(index)].to_owned()),
        vt100::Color::Idx(index) if index < GREYS_FIRST => {
            let index = usize::from(index - CUBE_FIRST);
            let [red, green, blue] = [CUBE[index / 36], CUBE[index / 6 % 6], CUBE[index % 6]];
            Some(format!("#{red:02x}{green:02x}{blue:02x}"))
        }
        vt100::Color::Idx(index) => {
            let grey = 8 + 10 * u16::from(index - GREYS_FIRST);
            Some(format!("#{grey:02x}{grey:02x}{grey:02x}"))
        }
    }
}

fn escaped(text: &str) -> String {
    text.trim_end_matches('\u{0}')
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
