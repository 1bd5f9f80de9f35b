//! The tools that the client of a served turn executes (SPEC 9.2): offered to the model beside those of this process, judged by
//! the same gate, and never run here.

use crate::Settings;
use crate::defer::wire_names;
use crate::driver::Driver;
use crate::gate::Inspected;
use aish_core::action::{Action, Effect};
use aish_core::event::CallSource;
use aish_core::message::ToolSpec;
use aish_tools::set::{ToolSet, served_name};
use aish_tools::{Cancel, Progress, Tool, ToolContext, ToolOutput};
use futures_util::future::{BoxFuture, FutureExt as _};
use serde_json::{Value, json};
use std::sync::{Arc, PoisonError};

/// A tool that somebody else executes.
struct ClientTool(ToolSpec);

impl Tool for ClientTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn source(&self) -> CallSource {
        CallSource::Client
    }

    fn inspect(&self, arguments: &Value, _context: &ToolContext) -> Result<Action, String> {
        Ok(Action {
            tool: self.0.name.clone(),
            arguments: arguments.clone(),
            effects: vec![Effect::Remote],
        })
    }

    fn run<'a>(
        &'a self,
        _action: &'a Action,
        _context: &'a ToolContext,
        _progress: &'a dyn Progress,
        _cancel: Cancel,
    ) -> BoxFuture<'a, ToolOutput> {
        // The fold never lets such a call start here.
        let output = ToolOutput::error(format!("{} is executed by the client", self.0.name));
        std::future::ready(output).boxed()
    }
}

/// A call of a tool that nobody declared and this process does not know: the client's, whatever it is.
pub(crate) fn undeclared(name: &str, arguments: &str, settings: &Settings) -> Result<Inspected, String> {
    let tool: Arc<dyn Tool> = Arc::new(ClientTool(ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        input_schema: json!({ "type": "object" }),
    }));
    let mut alone = ToolSet::new();
    // The first of a set is no duplicate.
    let _ = alone.append(Arc::clone(&tool));
    let arguments = alone.validate(name, arguments)?;
    let action = tool.inspect(&arguments, &settings.context)?;
    Ok(Inspected {
        action,
        source: CallSource::Client,
        tool,
    })
}

/// The tools of a turn, made once: schemas are compiled on first use, and a list is as long as its client likes.
pub(crate) struct Joined {
    turn: u64,
    base: Arc<ToolSet>,
    tools: Arc<ToolSet>,
}

impl Driver {
    /// Whether the turn's client is somewhere else.
    pub(crate) fn is_served(&self) -> bool {
        self.session.turn().is_some_and(|turn| turn.served().is_some())
    }

    /// The tools of the current turn: those of this process as they are now, unless none are to be offered, and its client's.
    pub(crate) fn tools(&self, settings: &Settings) -> Arc<ToolSet> {
        let base = if settings.tools {
            self.engine.tools.now()
        } else {
            Arc::default()
        };
        let turn = self.session.turn();
        let Some((turn, served)) = turn.and_then(|turn| Some((turn.number(), turn.served()?))) else {
            return base;
        };
        let mut joined = self.joined.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(joined) = joined.as_ref()
            && joined.turn == turn
            // Without tools of this process the base is made anew each time.
            && (Arc::ptr_eq(&joined.base, &base) || (joined.base.is_empty() && base.is_empty()))
        {
            return Arc::clone(&joined.tools);
        }
        let mut tools = ToolSet::clone(&base);
        let wire = wire_names(&base);
        for spec in &served.tools {
            // A client's tool never stands in for one of this process, not even one that came later, by either of its names.
            if wire.people(&spec.name) == spec.name {
                let _ = tools.append(Arc::new(ClientTool(spec.clone())));
            }
        }
        let tools = Arc::new(tools);
        *joined = Some(Joined {
            turn,
            base,
            tools: Arc::clone(&tools),
        });
        tools
    }

    /// The name a tool has here: a served turn knows some of them by other names as well (SPEC 4.5).
    pub(crate) fn known_as<'n>(&self, tools: &ToolSet, name: &'n str) -> &'n str {
        if tools.get(name).is_none() && self.is_served() {
            served_name(name)
        } else {
            name
        }
    }
}
