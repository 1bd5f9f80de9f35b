//! What the editor asks of its history: [`reedline::History`], over a [`Recall`].

use super::{Line, Lines, MarkTyped, Recall, split};
use crate::repl::route::Mark;
use reedline::{
    CommandLineSearch, History, HistoryItem, HistoryItemId, HistorySessionId, ReedlineError, ReedlineErrorVariants,
    Result, SearchDirection, SearchQuery,
};

/// What errors call this history.
const NAME: &str = "the ledger";

fn unsupported(feature: &'static str) -> ReedlineError {
    ReedlineError(ReedlineErrorVariants::HistoryFeatureUnsupported { history: NAME, feature })
}

fn failed(why: &'static str) -> ReedlineError {
    ReedlineError(ReedlineErrorVariants::OtherHistoryError(why))
}

impl History for Recall {
    fn save(&mut self, item: HistoryItem) -> Result<HistoryItem> {
        let added = self.add(&item.command_line);
        let id = added.map_err(|_| failed("the file of : lines cannot be written"))?;
        Ok(HistoryItem {
            id: id.map(HistoryItemId::new),
            ..item
        })
    }

    fn load(&self, id: HistoryItemId) -> Result<HistoryItem> {
        let lines = self.lock();
        let line = lines.numbered(id.0).ok_or(failed("no such line"))?;
        Ok(lines.item(line, MarkTyped::No))
    }

    fn count(&self, query: SearchQuery) -> Result<i64> {
        Ok(i64::try_from(self.search(query)?.len()).unwrap_or(i64::MAX))
    }

    fn search(&self, query: SearchQuery) -> Result<Vec<HistoryItem>> {
        if query.start_time.is_some() || query.end_time.is_some() {
            return Err(unsupported("a search by time"));
        }
        let filter = &query.filter;
        if filter.hostname.is_some() || filter.exit_successful.is_some() || filter.cwd_prefix.is_some() {
            return Err(unsupported("a search by what a line is not kept with"));
        }
        let is_there = |line: &Line| filter.cwd_exact.as_ref().is_none_or(|there| line.directory == *there);
        let limit = query
            .limit
            .map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(0));
        let mut lines = self.lock();
        let only_commands = std::mem::take(&mut lines.expects_command);
        let item = |line: &Line| {
            if only_commands {
                return (line.goes == Mark::Shell).then(|| HistoryItem::from_command_line(&line.text));
            }
            let wanted = fits(line, filter.command_line.as_ref())?;
            is_there(line).then(|| lines.item(line, wanted))
        };
        let (start, end) = (query.start_id, query.end_id);
        Ok(match query.direction {
            SearchDirection::Backward => {
                let between = lines.between(end, start).iter().rev();
                between.filter_map(item).take(limit).collect()
            }
            SearchDirection::Forward => {
                let between = lines.between(start, end).iter();
                between.filter_map(item).take(limit).collect()
            }
        })
    }

    fn update(&mut self, _id: HistoryItemId, _change: &dyn Fn(HistoryItem) -> HistoryItem) -> Result<()> {
        Err(unsupported("a change of what was typed"))
    }

    fn clear(&mut self) -> Result<()> {
        Err(unsupported("forgetting"))
    }

    fn delete(&mut self, _id: HistoryItemId) -> Result<()> {
        Err(unsupported("forgetting"))
    }

    fn sync(&mut self) -> std::io::Result<()> {
        // Everything is written when it is added.
        Ok(())
    }

    fn session(&self) -> Option<HistorySessionId> {
        None
    }
}

impl Lines {
    /// The lines between two, which are left out.
    fn between(&self, older: Option<HistoryItemId>, newer: Option<HistoryItemId>) -> &[Line] {
        let from = older.map_or(0, |older| self.lines.partition_point(|line| line.number <= older.0));
        let to = newer.map_or(self.lines.len(), |newer| {
            self.lines.partition_point(|line| line.number < newer.0)
        });
        self.lines.get(from..to).unwrap_or_default()
    }

    fn item(&self, line: &Line, wanted: MarkTyped) -> HistoryItem {
        HistoryItem {
            id: Some(HistoryItemId::new(line.number)),
            cwd: Some(line.directory.clone()),
            ..HistoryItem::from_command_line(self.as_typed(line, wanted))
        }
    }
}

/// Whether a line is one of those looked for, and then whether its mark was asked for.
fn fits(line: &Line, search: Option<&CommandLineSearch>) -> Option<MarkTyped> {
    let Some(search) = search else {
        return Some(MarkTyped::No);
    };
    let does_fit: fn(&str, &str) -> bool = match search {
        CommandLineSearch::Prefix(_) => |line, text| line.starts_with(text),
        CommandLineSearch::Substring(_) => |line, text| line.contains(text),
        CommandLineSearch::Exact(_) => |line, text| line == text,
    };
    let (CommandLineSearch::Prefix(text) | CommandLineSearch::Substring(text) | CommandLineSearch::Exact(text)) =
        search;
    let (wanted, text) = split(text);
    let is_wanted = wanted.is_none_or(|wanted| line.goes == wanted) && does_fit(&line.text, text);
    let asked = if wanted.is_some() {
        MarkTyped::Yes
    } else {
        MarkTyped::No
    };
    is_wanted.then_some(asked)
}
