//! `search_memory`: what was said before, in this session or another, found by its words (SPEC 4).
//!
//! A turn of a client somewhere else finds what was said in this session, and in others that clients began what was said in turns of
//! clients: what a person said at a terminal of this machine is not for whoever talks to it from elsewhere (SPEC 9).
//!
//! The model is given lines that say when, where and by whom something was said, with a piece of it; never a whole session. The
//! turn that asks is left out: it would find its own question. The text is redacted on its way to the model like any result.

use aish_core::action::{Action, Effect};
use aish_core::event::Body;
use aish_core::id::SessionId;
use aish_core::message::ToolSpec;
use aish_core::moment;
use aish_core::sanitize::single_line;
use aish_store::{Hit, RawEvent, SessionFilter, SessionSummary, Store, StoreError};
use aish_tools::{BegunBy, CANCELLED, Cancel, Place, Progress, Tool, ToolContext, ToolOutput, cancelled};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// The most places that are told.
const HITS_MAX: usize = 12;
/// How many more are looked for: the turn that asks may be among them, whatever it repeats of its question.
const OWN_HITS_MAX: usize = 24;
/// How many more are looked for where a client asks: what is in the best places may be other people's.
const OTHERS_HITS_MAX: usize = 400;
/// How far the beginning of a turn is looked for, in events before what was found in it; what is further away no client is told.
const TURN_EVENTS_MAX: u64 = 4_096;
/// By how much further it is looked each time it was not there.
const TURN_EVENTS_FACTOR: u64 = 8;
/// Characters of a session's title.
const TITLE_CHARS_MAX: usize = 60;

/// Searches the ledger.
pub struct SearchMemory {
    spec: ToolSpec,
    store: Arc<dyn Store>,
}

impl SearchMemory {
    /// The tool's name.
    pub const NAME: &str = "search_memory";

    /// The tool over that ledger.
    pub fn over(store: Arc<dyn Store>) -> Self {
        Self {
            spec: ToolSpec {
                name: Self::NAME.into(),
                description: "Search earlier conversations with the user, and the commands they ran, by words.".into(),
                input_schema: json!({
                    "type": "object",
                    "properties": {
                        "query": {"type": "string", "description": "Words that must all occur; \"a phrase\" in quotes"},
                    },
                    "required": ["query"],
                    "additionalProperties": false,
                }),
            },
            store,
        }
    }

    async fn search(&self, query: &str, place: Option<&Place>) -> Result<ToolOutput, StoreError> {
        let client = place.filter(|place| place.begun_by == BegunBy::Client);
        let others_max = client.map_or(0, |_| OTHERS_HITS_MAX);
        let mut hits = self.store.search(query, HITS_MAX + OWN_HITS_MAX + others_max).await?;
        hits.retain(|hit| !place.is_some_and(|place| hit.session == place.session && hit.seq >= place.turn_start));
        if let Some(place) = client {
            hits = self.of_clients(hits, place).await?;
        }
        hits.truncate(HITS_MAX);
        let mut sessions: Vec<SessionId> = hits.iter().map(|hit| hit.session.clone()).collect();
        sessions.sort_unstable();
        sessions.dedup();
        let filter = SessionFilter {
            only: Some(sessions),
            ..SessionFilter::default()
        };
        let summaries = if hits.is_empty() {
            Vec::new()
        } else {
            self.store.list(filter).await?
        };
        let count = hits.len();
        let output = Value::String(told(&hits, &summaries, place));
        let noun = if count == 1 { "place" } else { "places" };
        Ok(ToolOutput {
            output: format!(r#"{{"output":{output},"count":{count}}}"#),
            summary: format!("{count} {noun} found"),
            success: true,
            parts: Vec::new(),
        })
    }

    /// The first of these, as many as are told, that are in this session, or in a client's turn of one that a client began.
    async fn of_clients(&self, hits: Vec<Hit>, place: &Place) -> Result<Vec<Hit>, StoreError> {
        let mut of_clients = HashMap::from([(place.session.clone(), true)]);
        let mut kept = Vec::new();
        for hit in hits {
            let is_known = of_clients.get(&hit.session).copied();
            let is_of_client = match is_known {
                Some(known) => known,
                None => {
                    let first = self.store.load_raw(&hit.session, 0, 1).await?.pop();
                    let begun = first.is_some_and(|first| is_begun_by_client(&first));
                    of_clients.insert(hit.session.clone(), begun);
                    begun
                }
            };
            // A person may have gone on with it at a terminal.
            if is_of_client && (hit.session == place.session || self.is_in_turn_of_client(&hit).await?) {
                kept.push(hit);
            }
            if kept.len() == HITS_MAX {
                break;
            }
        }
        Ok(kept)
    }

    /// Whether a client began the turn of an event: nearly always that is a few events before.
    async fn is_in_turn_of_client(&self, hit: &Hit) -> Result<bool, StoreError> {
        let mut before = 1;
        loop {
            let after = hit.seq.saturating_sub(before + 1);
            let limit = usize::try_from(hit.seq - after).unwrap_or(usize::MAX);
            let events = self.store.load_raw(&hit.session, after, limit).await?;
            let turn = events.last().map_or(0, |found| found.turn);
            let mut of_turn = events.iter().filter(|event| event.turn == turn);
            // What a person ran or noted is of no turn.
            if turn == 0 {
                return Ok(false);
            }
            if let Some(start) = of_turn.find(|event| event.kind == "turn_started") {
                return Ok(is_begun_by_client(start));
            }
            if after == 0 || before >= TURN_EVENTS_MAX {
                return Ok(false);
            }
            before *= TURN_EVENTS_FACTOR;
        }
    }
}

/// Whether what begins with this event, a session or a turn, was begun by a client. A session is whose it was first: its title is what
/// was said first.
fn is_begun_by_client(first: &RawEvent) -> bool {
    match Body::decode(&first.kind, &first.data) {
        Ok(Body::TurnStarted(began)) => began.served.is_some(),
        // What cannot be read is nobody's to see.
        Ok(_) | Err(_) => false,
    }
}

/// The places, two lines each.
fn told(hits: &[Hit], summaries: &[SessionSummary], place: Option<&Place>) -> String {
    let mut out = String::new();
    for hit in hits {
        let is_here = place.is_some_and(|place| place.session == hit.session);
        let session = match summaries.iter().find(|summary| summary.id == hit.session) {
            _ if is_here => "this session".to_owned(),
            Some(summary) => {
                let title = on_one_line(&summary.title);
                let title: String = title.chars().take(TITLE_CHARS_MAX).collect();
                format!("session {} ({title})", hit.session)
            }
            None => format!("session {}", hit.session),
        };
        if !out.is_empty() {
            out.push('\n');
        }
        let (when, snippet) = (moment::utc(hit.time), on_one_line(&hit.snippet));
        let _ = write!(out, "{when} UTC, {session}, {}:\n  {snippet}", said_by(&hit.kind));
    }
    out
}

/// Lines joined, and nothing in them that acts on whatever shows them.
fn on_one_line(text: &str) -> String {
    single_line(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into()
}

/// Whose words an event of that kind holds.
fn said_by(kind: &str) -> &str {
    match kind {
        "user" => "the user said",
        "assistant" => "the model said",
        "command" => "the user ran",
        other => other,
    }
}

impl Tool for SearchMemory {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn inspect(&self, arguments: &Value, _context: &ToolContext) -> Result<Action, String> {
        Ok(Action {
            tool: self.spec.name.clone(),
            arguments: arguments.clone(),
            effects: vec![Effect::Recall],
        })
    }

    fn run<'a>(
        &'a self,
        action: &'a Action,
        context: &'a ToolContext,
        _progress: &'a dyn Progress,
        mut cancel: Cancel,
    ) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let query = action
                .arguments
                .get("query")
                .and_then(Value::as_str)
                .unwrap_or_default();
            tokio::select! {
                biased;
                () = cancelled(&mut cancel) => ToolOutput::error(CANCELLED),
                found = self.search(query, context.place.as_ref()) => {
                    found.unwrap_or_else(|error| ToolOutput::error(format!("Cannot search the ledger: {error}")))
                }
            }
        })
    }
}
