//! One server in a list: what is said of it, laid out for a terminal or as JSON.

use super::written::{By, Place, Written};
use crate::term::columns::cut;
use aish_core::sanitize;
use aish_mcp::servers::{Server, State};
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr as _;

/// Columns between the parts of a line.
const GAP: &str = "  ";
/// Columns that a place has at least, however narrow the terminal.
const PLACE_COLUMNS_MIN: usize = 16;
/// Columns of a place in a sentence.
const FACTS_PLACE_COLUMNS: usize = 60;
/// Parts of a path that are shown where all of it is too long.
const PATH_PARTS_MAX: usize = 3;
/// Characters of a problem that are shown.
const PROBLEM_CHARS_MAX: usize = 300;

/// How a server does, in one word for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Connected,
    Connecting,
    Waiting,
    Failed,
    /// The configuration cannot be used: a variable is not set, say.
    Unusable,
    /// The configuration says `enabled = false`.
    Disabled,
}

impl Doing {
    fn word(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Connecting => "connecting",
            Self::Waiting => "waiting",
            Self::Failed => "failed",
            Self::Unusable => "unusable",
            Self::Disabled => "disabled",
        }
    }
}

/// What is said of one server. All of it may be a server's own words: hostile until it is laid out.
#[derive(Clone, Debug)]
pub struct Row {
    alias: String,
    place: Place,
    by: By,
    /// How many tools it offers, or offered when it was last there.
    tools: usize,
    doing: Doing,
    /// How it does, for people: a few words.
    state: String,
    problem: Option<String>,
    /// What was left out of what it offers, and what the configuration wants of it that it does not; escaped.
    remarks: Vec<String>,
    protocol: Option<String>,
    /// What it calls itself, and its version.
    calls_itself: Option<(String, String)>,
}

impl Row {
    /// A server that is connected to, or was tried.
    pub fn of(server: &Server, written: &Written) -> Self {
        let (place, by) = written.find(&server.config);
        let about = server.status.peer.as_ref().map(|peer| peer.about().clone());
        let protocol = about.as_ref().map(|about| about.protocol.clone());
        let (doing, state, problem) = match &server.status.state {
            State::Connecting => (Doing::Connecting, "still connecting".to_owned(), None),
            State::Ready => {
                let protocol = protocol.as_deref().unwrap_or_default();
                (Doing::Connected, format!("connected {protocol}"), None)
            }
            State::Waiting { problem, again_in_ms } => {
                let state = format!("trying again in {} s", again_in_ms.div_ceil(1_000));
                (Doing::Waiting, state, Some(problem.message.clone()))
            }
            State::Failed(problem) => (Doing::Failed, "failed".to_owned(), Some(problem.message.clone())),
        };
        Self {
            alias: server.config.alias.to_string(),
            place,
            by,
            tools: server.status.offer.tools.len(),
            doing,
            state: state.trim_end().to_owned(),
            problem: problem.map(|problem| problem.chars().take(PROBLEM_CHARS_MAX).collect()),
            remarks: server.status.offer.remarks.clone(),
            protocol,
            calls_itself: about.map(|about| (about.name, about.version)),
        }
    }

    /// A server of the configuration that cannot be used; `None` where the configuration has none of that alias.
    pub fn unusable(alias: &str, problem: &str, written: &Written) -> Option<Self> {
        let row = Self::untried(alias, Doing::Unusable, written)?;
        Some(Self {
            problem: Some(problem.to_owned()),
            ..row
        })
    }

    /// A server that the configuration switches off; `None` where it has none of that alias.
    pub fn disabled(alias: &str, written: &Written) -> Option<Self> {
        Self::untried(alias, Doing::Disabled, written)
    }

    fn untried(alias: &str, doing: Doing, written: &Written) -> Option<Self> {
        let (place, by) = written.named(alias)?;
        let state = if doing == Doing::Disabled {
            "disabled"
        } else {
            "not set up"
        };
        Some(Self {
            alias: alias.to_owned(),
            place,
            by,
            tools: 0,
            doing,
            state: state.to_owned(),
            problem: None,
            remarks: Vec::new(),
            protocol: None,
            calls_itself: None,
        })
    }

    /// All of it, for `--output json`.
    pub fn json(&self) -> Value {
        let (url, command) = match &self.place {
            Place::Url(url) => (Some(url), None),
            Place::Command(command) => (None, Some(command)),
        };
        let (by, at) = match &self.by {
            By::User(at) => ("user", Some(at)),
            By::Project(at) => ("project", Some(at)),
            By::Session => ("session", None),
        };
        let (name, version) = self.calls_itself.clone().unzip();
        json!({
            "alias": self.alias,
            "url": url,
            "command": command,
            "tools": self.tools,
            "state": self.doing.word(),
            "problem": self.problem,
            "remarks": self.remarks,
            "protocol": self.protocol,
            "server_name": name,
            "server_version": version,
            "configured_by": by,
            "configured_at": at,
        })
    }

    /// What it is called.
    pub fn alias(&self) -> &str {
        &self.alias
    }

    /// What is wrong with it.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// What was left out of what it offers: a line each, escaped.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Where it is, how many tools it has and which protocol it speaks, or how it does: one line, without its alias.
    pub fn facts(&self) -> String {
        let place = shortened(&self.place, FACTS_PLACE_COLUMNS);
        format!("{place}, {}, {}", self.count(), self.state)
    }

    fn count(&self) -> String {
        match self.tools {
            1 => "1 tool".to_owned(),
            count => format!("{count} tools"),
        }
    }

    /// Lines below it: what is wrong, what was left out, and who configures it if that is not the user's own file.
    fn below(&self) -> Vec<String> {
        let by = match &self.by {
            By::User(_) => None,
            By::Project(at) => Some(format!("of the project, {at}")),
            By::Session => Some("of this session; `aish mcp add` keeps it".to_owned()),
        };
        let said = self.problem.iter().chain(&self.remarks);
        said.cloned().chain(by).collect()
    }
}

/// Lays rows out below each other.
pub fn table(rows: &[Row], columns: usize) -> String {
    let widest = |of: fn(&Row) -> String| rows.iter().map(|row| of(row).width()).max().unwrap_or(0);
    let alias = widest(|row| row.alias.clone());
    let (count, state) = (widest(Row::count), widest(|row| row.state.clone()));
    let taken = alias + count + state + 3 * GAP.len();
    let room = columns.saturating_sub(taken).max(PLACE_COLUMNS_MIN);
    let places: Vec<String> = rows.iter().map(|row| shortened(&row.place, room)).collect();
    let place = places.iter().map(|place| place.width()).max().unwrap_or(0);
    let mut text = String::new();
    for (row, shown) in rows.iter().zip(&places) {
        let line = [
            padded(&row.alias, alias),
            padded(shown, place),
            format!("{:>count$}", row.count()),
            sanitize::single_line(&row.state).into_owned(),
        ];
        text.push_str(line.join(GAP).trim_end());
        text.push('\n');
        for below in row.below() {
            text.push_str(&format!("{:alias$}{GAP}{}\n", "", sanitize::single_line(&below)));
        }
    }
    text
}

fn padded(text: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(text.width());
    format!("{text}{}", " ".repeat(missing))
}

/// A place in so many columns, escaped: the program without its folders, and where that is still too long, arguments that are
/// paths without theirs; what is left over is cut.
fn shortened(place: &Place, columns: usize) -> String {
    let words = match place {
        Place::Url(url) => return cut(&sanitize::single_line(url), columns),
        Place::Command(words) => words,
    };
    let whole = line(
        words,
        |at, word| if at == 0 { last_part(word) } else { word.to_owned() },
    );
    if whole.width() <= columns {
        return whole;
    }
    let with_parts = |parts: usize| {
        line(words, |at, word| match at {
            0 => last_part(word),
            _ => end_of_path(word, parts),
        })
    };
    let mut shorter = (1..=PATH_PARTS_MAX).rev().map(with_parts);
    shorter
        .find(|line| line.width() <= columns)
        .unwrap_or_else(|| cut(&with_parts(1), columns))
}

/// The last parts of an absolute path; anything else, and a path that has no more parts, as it stands.
fn end_of_path(word: &str, parts: usize) -> String {
    let cut = word.rmatch_indices('/').nth(parts.saturating_sub(1));
    match cut {
        Some((at, _)) if at > 0 && word.starts_with('/') => format!("…{}", word.get(at..).unwrap_or_default()),
        Some(_) | None => word.to_owned(),
    }
}

/// Words of a command in a line; quoted where it would not be seen where one ends.
fn line(words: &[String], shown: impl Fn(usize, &str) -> String) -> String {
    let words = words.iter().enumerate().map(|(at, word)| {
        let word = sanitize::single_line(&shown(at, word)).into_owned();
        let is_plain = !word.is_empty() && !word.contains(char::is_whitespace);
        if is_plain { word } else { format!("'{word}'") }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn last_part(path: &str) -> String {
    let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    if last.is_empty() {
        path.to_owned()
    } else {
        last.to_owned()
    }
}

#[cfg(test)]
#[path = "row_tests.rs"]
mod tests;
