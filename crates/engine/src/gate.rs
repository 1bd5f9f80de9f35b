//! The gate: each call of a reply is looked at before any of them runs (SPEC 3.4, 5).
//!
//! This is where a call's arguments are checked and its [`Action`] is made; policy alone decides over it.

use crate::client;
use crate::driver::Driver;
use crate::lease::asked;
use crate::offered::named_in;
use crate::{EngineError, Pending, SearchMemory, Settings};
use aish_core::action::Action;
use aish_core::event::{Body, CallGated, CallSource, Draft, Event, Function, ResultEnd, readable_call};
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

/// A call that was judged, and what is told of it beside the verdict.
pub(crate) struct Judged {
    gated: CallGated,
    remark: Option<String>,
}

impl Judged {
    /// A call that cannot be run. The error is for the model.
    fn invalid(id: &CallId, error: String) -> Self {
        let gated = CallGated {
            call_id: id.clone(),
            verdict: Verdict::Invalid,
            rule: error.clone(),
            digest: None,
            source: CallSource::Builtin,
            read_only: false,
            error: Some(json!({ "error": error }).to_string()),
        };
        Self { gated, remark: None }
    }

    /// One line for a person.
    pub(crate) fn remark(&self) -> Option<&str> {
        self.remark.as_deref()
    }

    /// As it stands in the ledger.
    pub(crate) fn into_draft(self, turn: u64) -> Draft {
        let gated = self.gated;
        let content = format!("{}: {:?} ({})", gated.call_id, gated.verdict, gated.rule);
        Draft::new(turn, content.to_lowercase(), Body::CallGated(gated))
    }
}

/// How sure these verdicts must be: a question that a person may answer tomorrow must survive until then.
pub(crate) fn durability_of(judged: &[Judged]) -> Durability {
    if judged.iter().any(|judged| judged.gated.verdict == Verdict::Ask) {
        Durability::Synced
    } else {
        Durability::Committed
    }
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
            if self.is_in_doubt(&call.function, &settings) {
                let mut stop = stop.clone();
                tokio::select! {
                    () = self.engine.tools.arrive(&call.function.name) => {}
                    () = asked(&mut stop) => return,
                }
            }
        }
    }

    /// Whether the tool of a call may be known from before only.
    pub(crate) fn is_in_doubt(&self, call: &Function, settings: &Settings) -> bool {
        let tools = self.tools(settings);
        match named_in(&tools, self.known_as(&tools, &call.name)) {
            None => true,
            Some(_) => self
                .inspect(&call.name, &call.arguments, settings)
                .is_ok_and(|inspected| inspected.action.changed().is_some()),
        }
    }

    /// Judges calls and records the verdicts, all at once.
    pub(crate) async fn gate(&mut self, calls: &[CallId]) -> Result<(), EngineError> {
        let settings = self.engine.settings();
        let judged: Vec<Judged> = calls
            .iter()
            .map(|id| match self.session.call_event(id) {
                Some(call) => self.judge(id, &call.function, &settings),
                None => Judged::invalid(id, format!("no call {id} in the ledger")),
            })
            .collect();
        let remarks: Vec<String> = judged.iter().filter_map(Judged::remark).map(str::to_owned).collect();
        let turn = self.session.turn().map_or(0, aish_core::Turn::number);
        let durability = durability_of(&judged);
        let drafts = judged.into_iter().map(|judged| judged.into_draft(turn)).collect();
        self.append(drafts, durability).await?;
        remarks.into_iter().for_each(|remark| self.say(remark));
        Ok(())
    }

    /// The verdict on a call, by what holds now.
    pub(crate) fn judge(&self, id: &CallId, call: &Function, settings: &Settings) -> Judged {
        let mode = self.mode(settings);
        let inspected = match self.inspect(&call.name, &call.arguments, settings) {
            Ok(inspected) => inspected,
            Err(error) => {
                let remark = error
                    .starts_with("Invalid JSON arguments")
                    .then(|| format!("{}: {error}; the call was not run", call.name));
                return Judged {
                    remark,
                    ..Judged::invalid(id, error)
                };
            }
        };
        let judged = settings
            .policy
            .judge(&inspected.action, inspected.source, mode, self.so_far());
        let is_changed = inspected.action.changed().is_some() && judged.verdict == Verdict::Allow;
        let remark = is_changed.then(|| {
            format!(
                "{}: its definition changed since it was approved; it is not asked about ({})",
                single_line(&call.name),
                judged.rule
            )
        });
        let gated = CallGated {
            call_id: id.clone(),
            verdict: judged.verdict,
            rule: judged.rule,
            digest: Some(inspected.action.digest()),
            source: inspected.source,
            read_only: inspected.action.is_read_only(),
            error: None,
        };
        Judged { gated, remark }
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
