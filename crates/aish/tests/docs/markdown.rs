//! Just enough of Markdown to check documents: code spans, fenced blocks, links, headings and the first cells of tables.

/// A document, its fenced blocks apart from its prose.
pub struct Document {
    prose: Vec<String>,
    fences: Vec<String>,
}

impl Document {
    /// Takes a text apart.
    pub fn new(text: &str) -> Self {
        let (mut prose, mut fences) = (Vec::new(), Vec::new());
        let mut fence: Option<String> = None;
        for line in text.lines() {
            let is_mark = line.trim_start().starts_with("```");
            fence = match (fence, is_mark) {
                (None, true) => Some(String::new()),
                (Some(block), true) => {
                    fences.push(block);
                    None
                }
                (Some(block), false) => Some(block + line + "\n"),
                (None, false) => {
                    prose.push(line.to_owned());
                    None
                }
            };
        }
        assert!(fence.is_none(), "a fenced block has no end");
        Self { prose, fences }
    }

    /// What stands between single backticks.
    pub fn spans(&self) -> impl Iterator<Item = &str> {
        self.prose.iter().flat_map(|line| line.split('`').skip(1).step_by(2))
    }

    /// The fenced blocks.
    pub fn fences(&self) -> impl Iterator<Item = &str> {
        self.fences.iter().map(String::as_str)
    }

    /// Where its links lead, as written.
    pub fn links(&self) -> impl Iterator<Item = &str> {
        self.prose
            .iter()
            .flat_map(|line| line.split("](").skip(1).filter_map(|rest| rest.split(')').next()))
    }

    /// The headings, in the form links name them by.
    pub fn headings(&self) -> impl Iterator<Item = String> {
        let headings = self.prose.iter().filter(|line| line.starts_with('#'));
        headings.map(|line| {
            let text = line.trim_start_matches('#').trim().to_lowercase();
            let kept = text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
    }

    /// The names in backticks in the first cell of each table row.
    pub fn first_cells(&self) -> impl Iterator<Item = String> {
        let cells = self
            .prose
            .iter()
            .filter_map(|line| line.strip_prefix('|')?.split('|').next());
        cells.flat_map(|cell| {
            cell.split('`')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
    }
}

/// A text cut where a shell or a sentence would cut it.
pub fn words_in(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || "[](),;'\"|<>=".contains(c))
}
