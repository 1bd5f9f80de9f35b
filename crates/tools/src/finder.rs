//! Finding tools that are not in a request (SPEC 6.9): the tool `search_tools`.
//!
//! Where servers offer more than a model can be shown, their tools are left out of requests and this one is put in; what it finds
//! is offered from then on. Which tools those are is a view of the ledger: [`found`] reads a result back.
//!
//! Tools are ranked by the words of the query in their names and descriptions, rare words before common ones. All they say was
//! written by servers: it decides nothing but what is found.

use crate::{Cancel, Progress, Tool, ToolContext, ToolOutput};
use aish_core::action::{Action, Effect};
use aish_core::message::ToolSpec;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::OnceLock;

/// The tool's name.
pub const SEARCH_TOOLS: &str = "search_tools";

/// Tools that one search finds, unless it asks for fewer.
const FOUND_MAX: usize = 5;
/// Characters of a description that a result quotes; the request has all of it from then on.
const DESCRIPTION_CHARS_MAX: usize = 400;
/// Words of a query that count.
const QUERY_WORDS_MAX: usize = 32;
/// Letters that two words must begin with to be taken for alike.
const PREFIX_CHARS_MIN: usize = 3;
/// What a word in a name counts, of one in a description.
const NAME_WEIGHT: f64 = 3.0;
/// What a word that is alike counts, of the word itself.
const PREFIX_WEIGHT: f64 = 0.5;
/// The part of the best match's score below which a tool matches by chance, by words that are everywhere.
const SCORE_PART_MIN: f64 = 0.25;
/// Servers that the description names; the others are counted.
const SERVERS_MAX: usize = 20;

/// Searches among tools by what they say of themselves.
pub struct SearchTools {
    spec: ToolSpec,
    tools: Vec<ToolSpec>,
    /// The words of each tool, made when somebody searches.
    index: OnceLock<Index>,
}

/// The words of tools.
struct Index {
    /// For each tool the words of its name and of its description.
    words: Vec<(BTreeSet<String>, BTreeSet<String>)>,
    /// In how many tools a word occurs.
    occurrences: HashMap<String, usize>,
}

impl SearchTools {
    /// A search among these, in their order where nothing else tells them apart.
    pub fn over(tools: Vec<ToolSpec>) -> Self {
        let spec = ToolSpec {
            name: SEARCH_TOOLS.to_owned(),
            description: description_of(&tools),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "query": {
                        "type": "string",
                        "description": "Words of what is to be done, or the name of a tool.",
                    },
                    "limit": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": FOUND_MAX,
                        "description": format!("How many to find at most; {FOUND_MAX} if not given."),
                    },
                },
                "required": ["query"],
                "additionalProperties": false,
            }),
        };
        Self {
            spec,
            tools,
            index: OnceLock::new(),
        }
    }

    /// The best matches, the best first.
    fn search(&self, query: &str, limit: usize) -> Vec<&ToolSpec> {
        let index = self.index.get_or_init(|| Index::of(&self.tools));
        let words: BTreeSet<String> = words_of(query).take(QUERY_WORDS_MAX).collect();
        let mut scored: Vec<(f64, &ToolSpec)> = self
            .tools
            .iter()
            .zip(&index.words)
            .map(|(tool, (name, description))| {
                // Who knows the name wants that tool.
                let is_named = tool.name == query.trim();
                let score: f64 = words.iter().map(|word| index.score(word, name, description)).sum();
                (if is_named { f64::INFINITY } else { score }, tool)
            })
            .filter(|(score, _)| *score > 0.0)
            .collect();
        scored.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        let least = scored.first().map_or(0.0, |(best, _)| best * SCORE_PART_MIN);
        let matching = scored.into_iter().take_while(|(score, _)| *score >= least);
        matching.take(limit).map(|(_, tool)| tool).collect()
    }
}

impl Index {
    fn of(tools: &[ToolSpec]) -> Self {
        let words: Vec<(BTreeSet<String>, BTreeSet<String>)> = tools
            .iter()
            .map(|tool| (words_of(&tool.name).collect(), words_of(&tool.description).collect()))
            .collect();
        let mut occurrences = HashMap::new();
        for (name, description) in &words {
            for word in name.union(description) {
                *occurrences.entry(word.clone()).or_insert(0) += 1;
            }
        }
        Self { words, occurrences }
    }

    /// What one word of a query says for a tool.
    fn score(&self, word: &str, name: &BTreeSet<String>, description: &BTreeSet<String>) -> f64 {
        let in_one = |words: &BTreeSet<String>| {
            let whole = words.get(word).map(|word| self.rarity(word));
            whole.unwrap_or_else(|| self.alike(word, words))
        };
        NAME_WEIGHT * in_one(name) + in_one(description)
    }

    /// What a word says that is none of these, but the beginning of one, or begins with one: `rename` finds `renames`, and the
    /// other way round.
    fn alike(&self, word: &str, words: &BTreeSet<String>) -> f64 {
        if word.chars().count() < PREFIX_CHARS_MIN {
            return 0.0;
        }
        let longer = words.range(word.to_owned()..);
        let longer = longer.take_while(|longer| longer.starts_with(word));
        let ends = word.char_indices().map(|(at, _)| at).skip(PREFIX_CHARS_MIN);
        let shorter = ends.filter_map(|end| words.get(word.get(..end)?));
        let weights = longer.chain(shorter).map(|word| PREFIX_WEIGHT * self.rarity(word));
        weights.fold(0.0, f64::max)
    }

    /// The fewer tools have a word, the more it says; one that all have still says a little.
    fn rarity(&self, word: &str) -> f64 {
        let count = |n: usize| u32::try_from(n).map_or(f64::MAX, f64::from);
        let having = self.occurrences.get(word).copied().unwrap_or_default();
        (1.0 + count(self.words.len()) / count(having.max(1))).ln()
    }
}

impl Tool for SearchTools {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn inspect(&self, arguments: &Value, _context: &ToolContext) -> Result<Action, String> {
        Ok(Action {
            tool: SEARCH_TOOLS.to_owned(),
            arguments: arguments.clone(),
            effects: vec![Effect::Internal],
        })
    }

    fn run<'a>(
        &'a self,
        action: &'a Action,
        _context: &'a ToolContext,
        _progress: &'a dyn Progress,
        _cancel: Cancel,
    ) -> BoxFuture<'a, ToolOutput> {
        let query = action
            .arguments
            .get("query")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let limit = action.arguments.get("limit").and_then(Value::as_u64);
        let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(FOUND_MAX);
        let output = result_of(&self.search(query, limit.min(FOUND_MAX)));
        Box::pin(std::future::ready(output))
    }
}

/// The names that a result of `search_tools` found; none where the text is no such result.
pub fn found(output: &str) -> Vec<String> {
    let result: Value = serde_json::from_str(output).unwrap_or_default();
    let tools = result.get("tools").and_then(Value::as_array).into_iter().flatten();
    let names = tools.filter_map(|tool| tool.get("name")?.as_str());
    names.map(str::to_owned).collect()
}

/// Names and descriptions; the schemas are in the next request, and would only be there twice.
fn result_of(matches: &[&ToolSpec]) -> ToolOutput {
    let tools: Vec<Value> = matches
        .iter()
        .map(|tool| {
            let description: String = tool.description.chars().take(DESCRIPTION_CHARS_MAX).collect();
            json!({"name": tool.name, "description": description})
        })
        .collect();
    let summary = match tools.len() {
        1 => "1 tool found".to_owned(),
        count => format!("{count} tools found"),
    };
    let output = if tools.is_empty() {
        json!({"count": 0, "output": "No tool matches; other words may find one."})
    } else {
        let output = "They are in the tools field of the request from now on: call them by the names that stand there.";
        json!({"count": tools.len(), "output": output, "tools": tools})
    };
    ToolOutput {
        output: output.to_string(),
        summary,
        success: true,
        parts: Vec::new(),
    }
}

/// What the model is told of the search: how many tools of which servers there are to be found.
fn description_of(tools: &[ToolSpec]) -> String {
    let mut servers: BTreeMap<&str, usize> = BTreeMap::new();
    for tool in tools {
        let server = tool.name.split('.').next().unwrap_or_default();
        *servers.entry(server).or_default() += 1;
    }
    let named = servers.iter().take(SERVERS_MAX);
    let mut of: Vec<String> = named.map(|(server, count)| format!("{server} ({count})")).collect();
    if let Some(more) = servers.len().checked_sub(SERVERS_MAX).filter(|more| *more > 0) {
        of.push(format!("{more} more servers"));
    }
    format!(
        "Finds tools by what they do. {} further tools are not listed in this request: {}. Search before saying that something \
         cannot be done; what is found can be called from the next message on.",
        tools.len(),
        of.join(", ")
    )
}

/// The words of a text, small letters: `listUsers_v2` has `list`, `users` and `v2`.
fn words_of(text: &str) -> impl Iterator<Item = String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut was_small = false;
    for letter in text.chars() {
        let begins_another = letter.is_uppercase() && was_small;
        if (begins_another || !letter.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if letter.is_alphanumeric() {
            word.extend(letter.to_lowercase());
        }
        was_small = letter.is_lowercase();
    }
    if !word.is_empty() {
        words.push(word);
    }
    words.into_iter()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn tool(name: &str, description: &str) -> ToolSpec {
        ToolSpec {
            name: name.into(),
            description: description.into(),
            input_schema: json!({"type": "object", "properties": {}}),
        }
    }

    fn desk() -> SearchTools {
        SearchTools::over(vec![
            tool("git.commit", "Records changes to the repository"),
            tool("git.log", "Shows the history of the repository"),
            tool("mail.send", "Sends a message to somebody"),
            tool("mail.listFolders", "Names the folders of the mailbox"),
            tool("time.convert", "Converts a time between time zones"),
        ])
    }

    fn check(query: &str, expect: &[&str]) {
        let search = desk();
        let names: Vec<&str> = search
            .search(query, FOUND_MAX)
            .iter()
            .map(|tool| tool.name.as_str())
            .collect();
        assert_eq!(names, expect, "{query}");
    }

    /// SPEC 6.9: words of names count more than those of descriptions, rare ones more than common ones; a name finds itself.
    #[test]
    fn ranks() {
        check("send a message", &["mail.send"]);
        check("commit", &["git.commit"]);
        check("repository history", &["git.log", "git.commit"]);
        check("folders", &["mail.listFolders"]);
        check("LIST", &["mail.listFolders"]);
        check("fold", &["mail.listFolders"]);
        check("mail.send", &["mail.send"]);
        check("mail", &["mail.listFolders", "mail.send"]);
        check("converting timezones", &["time.convert"]);
        check("quantum", &[]);
        check("", &[]);
        check("\u{1b}[2J …", &[]);
    }

    /// SPEC 6.9: the model is told how many tools of which servers there are.
    #[test]
    fn says_what_there_is() {
        let said = desk().spec().description.clone();
        assert!(said.contains("5 further tools"), "{said}");
        assert!(said.contains("git (2), mail (2), time (1)."), "{said}");
        let many = (0..30).map(|n| tool(&format!("s{n:02}.t"), "")).collect();
        let said = SearchTools::over(many).spec().description.clone();
        assert!(said.contains("s19 (1), 10 more servers."), "{said}");
    }

    /// SPEC 6.9: what was found can be read back from a result; what is none names nothing.
    #[test]
    fn results() {
        let search = desk();
        let output = result_of(&search.search("repository", FOUND_MAX));
        assert_eq!(output.summary, "2 tools found");
        assert_eq!(found(&output.output), ["git.commit", "git.log"]);
        assert!(found(&result_of(&search.search("quantum", FOUND_MAX)).output).is_empty());
        for text in [
            "",
            "[]",
            "{\"tools\":7}",
            "{\"tools\":[{\"name\":7}]}",
            "{\"error\":\"x\"}",
        ] {
            assert!(found(text).is_empty(), "{text}");
        }
        let long = SearchTools::over(vec![tool("a.b", &"word ".repeat(5_000))]);
        assert!(result_of(&long.search("word", 1)).output.len() < 2 * DESCRIPTION_CHARS_MAX);
    }
}
