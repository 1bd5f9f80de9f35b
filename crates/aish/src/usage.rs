//! Tokens and money: what the ledger says was used, by model, and the words it is told in.
//!
//! A [`Tally`] sums the `usage` events of a turn or of a whole session; costs come from [`Prices`], and a reply that nobody
//! can price makes a sum "at least" what the others cost, never less. A [`Gauge`] watches replies go by and says when the
//! context is nearly full.

use crate::prices::{Prices, Tariff};
use aish_core::event::{Body, Event, Usage};
use aish_engine::{ContextFill, Models, Notice};
use std::sync::Arc;

/// The part of a context, in percent, above which a person is told that it fills up.
const FILL_WARNED_PERCENT: u64 = 80;
/// A cost below this many US dollars is not written out: its digits would be noise.
const USD_SHOWN_MIN: f64 = 0.0001;
/// From this many US dollars on, cents are enough.
const USD_CENTS_FROM: f64 = 1.0;
/// What stands for a model the ledger does not name.
const UNNAMED_MODEL: &str = "(not named)";

/// What replies cost together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// US dollars of those with a price; `None` when there is none among them.
    pub usd: Option<f64>,
    /// True when there are others, whose price nobody knows.
    pub is_partial: bool,
}

impl Cost {
    fn add(&mut self, tariff: Tariff) {
        match tariff {
            Tariff::Local => {}
            Tariff::Usd(usd) => self.usd = Some(self.usd.unwrap_or_default() + usd),
            Tariff::Unknown => self.is_partial = true,
        }
    }

    /// What a program is told: to a millionth of a dollar, and only when every reply has a price.
    pub fn exact_usd(&self) -> Option<f64> {
        let usd = self.usd.filter(|_| !self.is_partial)?;
        Some((usd * 1e6).round() / 1e6)
    }

    /// `$0.0041`, `at least $1.20`; nothing where nothing is known.
    pub fn text(&self) -> Option<String> {
        let usd = self.usd?;
        let amount = if usd >= USD_CENTS_FROM {
            format!("${usd:.2}")
        } else if usd >= USD_SHOWN_MIN {
            format!("${usd:.4}")
        } else {
            format!("under ${USD_SHOWN_MIN}")
        };
        Some(if self.is_partial {
            format!("at least {amount}")
        } else {
            amount
        })
    }
}

/// What one model was used for.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The model, by its configured name where the ledger has it.
    pub model: String,
    /// Replies that were counted.
    pub replies: u64,
    /// Their tokens.
    pub usage: Usage,
    /// What they cost.
    pub cost: Cost,
}

impl Row {
    fn new(model: &str) -> Self {
        Self {
            model: model.to_owned(),
            replies: 0,
            usage: Usage::default(),
            cost: Cost::default(),
        }
    }

    fn add(&mut self, usage: &Usage, tariff: Tariff) {
        self.replies += 1;
        add(&mut self.usage, usage);
        self.cost.add(tariff);
    }
}

fn add(sum: &mut Usage, usage: &Usage) {
    let pairs = [
        (&mut sum.input_tokens, usage.input_tokens),
        (&mut sum.output_tokens, usage.output_tokens),
        (&mut sum.cached_tokens, usage.cached_tokens),
        (&mut sum.cache_write_tokens, usage.cache_write_tokens),
        (&mut sum.reasoning_tokens, usage.reasoning_tokens),
    ];
    for (sum, tokens) in pairs {
        // Counts come from servers, and a server may count anything.
        *sum = sum.saturating_add(tokens);
    }
}

/// What was used, by model, in the order the models were first asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// One row a model.
    pub rows: Vec<Row>,
}

impl Tally {
    /// Of these events.
    pub fn of<'a>(events: impl IntoIterator<Item = &'a Event>, prices: &Prices) -> Self {
        let mut tally = Self::default();
        // The reply stands before its usage, and knows the model by the name people know it by.
        let mut answered: Option<&str> = None;
        for event in events {
            if let Body::Assistant(reply) = &event.body {
                answered = reply.model.as_deref();
            } else if let Body::Usage(usage) = &event.body {
                let name = answered.or(usage.model.as_deref()).unwrap_or(UNNAMED_MODEL);
                tally.add(name, usage, prices.tariff(answered, usage));
            } else if let Body::ServerAnswered(answer) = &event.body
                && let Some(usage) = &answer.usage
            {
                // What a server had a model say was paid for by the same person.
                let model = usage.model.as_deref();
                tally.add(model.unwrap_or(UNNAMED_MODEL), usage, prices.tariff(model, usage));
            }
        }
        tally
    }

    /// Of the turn of that number.
    pub fn of_turn(events: &[Event], turn: u64, prices: &Prices) -> Self {
        Self::of(events.iter().filter(|event| event.turn == turn), prices)
    }

    fn add(&mut self, model: &str, usage: &Usage, tariff: Tariff) {
        if let Some(row) = self.rows.iter_mut().find(|row| row.model == model) {
            return row.add(usage, tariff);
        }
        let mut row = Row::new(model);
        row.add(usage, tariff);
        self.rows.push(row);
    }

    /// All of it in one row.
    pub fn total(&self) -> Row {
        let mut total = Row::new("total");
        for row in &self.rows {
            total.replies += row.replies;
            add(&mut total.usage, &row.usage);
            total.cost.usd = match (total.cost.usd, row.cost.usd) {
                (None, other) | (other, None) => other,
                (Some(before), Some(more)) => Some(before + more),
            };
            total.cost.is_partial |= row.cost.is_partial;
        }
        total
    }

    /// The line after a turn, e.g. `1,204 in (900 cached) · 310 out · $0.0041 · context 34% of 32,768`; `None` when nothing
    /// was counted.
    pub fn line(&self, fill: Option<ContextFill>) -> Option<String> {
        let total = self.total();
        if total.replies == 0 {
            return None;
        }
        let usage = &total.usage;
        let cached = match usage.cached_tokens {
            0 => String::new(),
            tokens => format!(" ({} cached)", grouped(tokens)),
        };
        let mut parts = vec![
            format!("{} in{cached}", grouped(usage.input_tokens)),
            format!("{} out", grouped(usage.output_tokens)),
        ];
        parts.extend(total.cost.text());
        parts.extend(fill.and_then(fill_text).map(|fill| format!("context {fill}")));
        Some(parts.join(" · "))
    }
}

/// `34% of 32,768`; `None` without a window.
fn fill_text(fill: ContextFill) -> Option<String> {
    let window = fill.window_tokens?;
    Some(format!("{}% of {}", percent(fill.used_tokens, window), grouped(window)))
}

fn percent(used: u64, window: u64) -> u64 {
    used.saturating_mul(100) / window.max(1)
}

/// `1,204`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// What `:usage` shows: the last turn, the session by model, and how full the context is.
pub fn report(turn: &Tally, session: &Tally, fill: Option<ContextFill>) -> String {
    if session.rows.is_empty() {
        return "no reply has been counted yet\n".to_owned();
    }
    let mut rows = vec![["", "replies", "in", "cached", "written", "out", "thinking", "cost"].map(str::to_owned)];
    let cells = |name: &str, row: &Row| {
        let usage = &row.usage;
        let name = aish_core::sanitize::single_line(name).into_owned();
        let tokens = [
            row.replies,
            usage.input_tokens,
            usage.cached_tokens,
            usage.cache_write_tokens,
            usage.output_tokens,
            usage.reasoning_tokens,
        ];
        let [replies, input, cached, written, output, thinking] = tokens.map(grouped);
        let cost = row.cost.text().unwrap_or_default();
        [name, replies, input, cached, written, output, thinking, cost]
    };
    rows.push(cells("last turn", &turn.total()));
    rows.extend(session.rows.iter().map(|row| cells(&row.model, row)));
    if session.rows.len() > 1 {
        rows.push(cells("session", &session.total()));
    }
    let mut out = table(&rows);
    out.push_str(&match fill {
        Some(fill) => match fill_text(fill) {
            Some(text) => format!("  context: {} tokens, {text}\n", grouped(fill.used_tokens)),
            None => format!("  context: {} tokens\n", grouped(fill.used_tokens)),
        },
        None => "  context: empty, or not counted\n".to_owned(),
    });
    out
}

/// Columns as wide as they must be; the first to the left, the others to the right. One that says nothing is left out.
fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let says_something = |n: usize| {
        let below = rows.iter().skip(1).filter_map(|row| row.get(n));
        n == 0 || below.clone().any(|cell| !cell.is_empty() && cell != "0")
    };
    let width = |n: usize| {
        let cells = rows.iter().filter_map(|row| row.get(n));
        cells
            .map(|cell| unicode_width::UnicodeWidthStr::width(cell.as_str()))
            .max()
            .unwrap_or(0)
    };
    let columns: Vec<(usize, usize)> = (0..N).filter(|n| says_something(*n)).map(|n| (n, width(n))).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (n, width) in &columns {
            let cell = row.get(*n).map(String::as_str).unwrap_or_default();
            let pad = " ".repeat(width.saturating_sub(unicode_width::UnicodeWidthStr::width(cell)));
            line.push_str("  ");
            line.push_str(&if *n == 0 {
                format!("{cell}{pad}")
            } else {
                format!("{pad}{cell}")
            });
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// Watches the context fill up, and says so once until it has emptied again.
pub struct Gauge {
    models: Arc<dyn Models>,
    /// The window of the model that is being asked.
    window_tokens: Option<u64>,
    is_warned: bool,
}

impl Gauge {
    /// For models of this process.
    pub fn new(models: Arc<dyn Models>) -> Self {
        Self {
            models,
            window_tokens: None,
            is_warned: false,
        }
    }

    /// Looks at what goes by; gives the line a person should read now, if there is one.
    pub fn notice(&mut self, notice: &Notice) -> Option<String> {
        if let Notice::Asking { model } = notice {
            let asked = self.models.model(model).ok();
            self.window_tokens = asked.and_then(|model| model.context_window);
            None
        } else if let Notice::Usage(usage) = notice {
            let used_tokens = usage.input_tokens.saturating_add(usage.output_tokens);
            self.fill(used_tokens)
        } else {
            None
        }
    }

    fn fill(&mut self, used_tokens: u64) -> Option<String> {
        let window = self.window_tokens?;
        let is_full = percent(used_tokens, window) >= FILL_WARNED_PERCENT;
        let is_news = is_full && !self.is_warned;
        self.is_warned = is_full;
        is_news.then(|| {
            format!(
                "the context is {}% full; old tool results are left out of requests first, then old exchanges; :clear empties it",
                percent(used_tokens, window)
            )
        })
    }
}

#[cfg(test)]
mod tests;
