//! The gate: each call of a reply is looked at before any of them runs (SPEC 3.4, 5).
//!
//! This is where a call's arguments are checked and its [`Action`] is made; policy alone decides over it.

use crate::client;
use crate::driver::Driver;
use crate::lease::asked;
use crate::offered::named_in;
use crate::{EngineError, Pending, SearchMemory, Settings};
use aish_core::action::Action;
use aish_core::event::{Body, CallGated, CallSource, Draft, Event, ResultEnd, readable_call};
use aish_core::id::CallId;
use aish_core::policy::{ApprovalMode, Recalled, SoFar, Verdict};
use aish_core::sanitize::single_line;
use aish_store::Durability;
use aish_tools::web::Ahead;
use aish_tools::{BegunBy, Cancel, Place, Tool};
use serde_json::json;
use std::sync::Arc;

/// A call that can run: what it would do, and where.
pub(crate) struct Inspected {
    pub(crate) action: Action,
    pub(crate) source: CallSource,
    /// What was asked about it, and what runs: by the same name there may be another by then.
    pub(crate) tool: Arc<dyn Tool>,
}

impl Driver {
    /// Waits for the tools of these calls that may be known from before only: nobody is asked about a change that is none any
    /// more, and no tool is unknown that is on its way (SPEC 6.4, 6.8). Returns early when asked to stop.
    pub(crate) async fn await_tools(&self, calls: &[CallId], stop: &Cancel) {
        let settings = self.engine.settings();
        for id in calls {
            let Some(call) = self.session.call_event(id).filter(|_| settings.tools) else {
                continue;
            };
            let (name, arguments) = (&call.function.name, &call.function.arguments);
            let tools = self.tools(&settings);
            let is_in_doubt = match named_in(&tools, self.known_as(&tools, name)) {
                None => true,
                Some(_) => self
                    .inspect(name, arguments, &settings)
                    .is_ok_and(|inspected| inspected.action.changed().is_some()),
            };
            if is_in_doubt {
                let mut stop = stop.clone();
                tokio::select! {
                    () = self.engine.tools.arrive(name) => {}
                    () = asked(&mut stop) => return,
                }
            }
        }
    }

    /// Judges calls and records the verdicts, all at once.
    pub(crate) async fn gate(&mut self, calls: &[CallId]) -> Result<(), EngineError> {
        let settings = self.engine.settings();
        let turn = self.session.turn().map_or(0, aish_core::Turn::number);
        let mut drafts = Vec::with_capacity(calls.len());
        let mut asks = false;
        for id in calls {
            let gated = self.judge(id, &settings);
            asks |= gated.verdict == Verdict::Ask;
            let content = format!("{id}: {:?} ({})", gated.verdict, gated.rule).to_lowercase();
            drafts.push(Draft::new(turn, content, Body::CallGated(gated)));
        }
        // A question that a person may answer tomorrow must survive until then.
        let durability = if asks {
            Durability::Synced
        } else {
            Durability::Committed
        };
        self.append(drafts, durability).await
    }

    fn judge(&self, id: &CallId, settings: &Settings) -> CallGated {
        let invalid = |error: String| CallGated {
            call_id: id.clone(),
            verdict: Verdict::Invalid,
            rule: error.clone(),
            digest: None,
            source: CallSource::Builtin,
            read_only: false,
            error: Some(json!({ "error": error }).to_string()),
        };
        let Some(call) = self.session.call_event(id) else {
            return invalid(format!("no call {id} in the ledger"));
        };
        let mode = self.mode(settings);
        match self.inspect(&call.function.name, &call.function.arguments, settings) {
            Err(error) => {
                if error.starts_with("Invalid JSON arguments") {
                    self.say(format!("{}: {error}; the call was not run", call.function.name));
                }
                invalid(error)
            }
            Ok(inspected) => {
                let judged = settings
                    .policy
                    .judge(&inspected.action, inspected.source, mode, self.so_far());
                if inspected.action.changed().is_some() && judged.verdict == Verdict::Allow {
                    self.say(format!(
                        "{}: its definition changed since it was approved; it is not asked about ({})",
                        single_line(&call.function.name),
                        judged.rule
                    ));
                }
                CallGated {
                    call_id: id.clone(),
                    verdict: judged.verdict,
                    rule: judged.rule,
                    digest: Some(inspected.action.digest()),
                    source: inspected.source,
                    read_only: inspected.action.is_read_only(),
                    error: None,
                }
            }
        }
    }

    /// The mode in force: that of the turn.
    fn mode(&self, settings: &Settings) -> ApprovalMode {
        self.session.turn().map_or(settings.mode, |turn| turn.settings().mode)
    }

    /// What the session adds to the standing rules.
    pub fn so_far(&self) -> SoFar<'_> {
        // What stands before a clearing no model is shown any more.
        let mut shown = self
            .session
            .events()
            .iter()
            .rev()
            .take_while(|event| !matches!(event.body, Body::Clear));
        let has_searched = shown.any(|event| {
            let result = event.tool_result();
            result.is_some_and(|result| result.name == SearchMemory::NAME && result.end == ResultEnd::Completed)
        });
        SoFar {
            grants: self.session.grants(),
            recalled: if has_searched {
                Recalled::Words
            } else {
                Recalled::Nothing
            },
        }
    }

    /// What these rules say of where a call is led on to while it runs; for what fetches nothing there is nothing to say.
    pub(crate) fn ahead(&self, call: &Inspected, settings: &Settings) -> Ahead {
        if !call.action.fetches() {
            return Ahead::default();
        }
        let (policy, mode, source) = (settings.policy.clone(), self.mode(settings), call.source);
        let so_far = self.so_far();
        let (grants, recalled) = (so_far.grants.to_vec(), so_far.recalled);
        Ahead::by(move |action| {
            let so_far = SoFar {
                grants: &grants,
                recalled,
            };
            policy.onward(action, source, mode, so_far)
        })
    }

    /// Where the current turn is in the ledger.
    pub(crate) fn place(&self) -> Place {
        let begins = |event: &&Event| matches!(event.body, Body::TurnStarted(_));
        let start = self.session.events().iter().rev().find(begins);
        Place {
            session: self.session.id().clone(),
            turn_start: start.map_or(0, |event| event.seq),
            begun_by: if self.is_served() {
                BegunBy::Client
            } else {
                BegunBy::Person
            },
        }
    }

    /// What a call would do. The error is for the model.
    pub(crate) fn inspect(&self, name: &str, arguments: &str, settings: &Settings) -> Result<Inspected, String> {
        let tools = self.tools(settings);
        let tool = match (named_in(&tools, self.known_as(&tools, name)), self.is_served()) {
            (Some(tool), _) => tool,
            (None, true) if self.engine.tools.is_of_server(name) => {
                return Err(format!("{name} is of a server that is not connected"));
            }
            (None, true) => return client::undeclared(name, arguments, settings),
            (None, false) => return Err(format!("Unknown tool: {name}")),
        };
        let arguments = tools.validate(&tool.spec().name, arguments)?;
        let action = tool.inspect(&arguments, &settings.context)?;
        Ok(Inspected {
            action,
            source: tool.source(),
            tool: Arc::clone(tool),
        })
    }

    /// The calls among these, as a person is shown them.
    pub(crate) fn pending_of(&self, calls: &[CallId]) -> Vec<Pending> {
        calls.iter().filter_map(|id| self.pending_call(id)).collect()
    }

    fn pending_call(&self, id: &CallId) -> Option<Pending> {
        let gated = self.session.turn()?.call(id)?.gated.as_ref()?;
        let call = self.session.call_event(id)?;
        Some(Pending {
            call_id: id.clone(),
            tool: call.function.name.clone(),
            arguments: call.function.arguments.clone(),
            readable: readable_call(&call.function.name, &call.function.arguments),
            digest: gated.digest.clone()?,
            rule: gated.rule.clone(),
        })
    }
}
