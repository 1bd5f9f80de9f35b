//! Which model is asked for the next reply: routing by what is asked, and the chain of those that stand in when one fails.
//!
//! Both are decided anew for each request, from the settings in force and the fold, so that a turn another process takes over
//! goes on in the same way. What a failed request is handed over to is written beside the failure ([`ModelFailed::fallback`]):
//! the fold only follows it, and an old turn never depends on today's chains.
//!
//! [`ModelFailed::fallback`]: aish_core::event::ModelFailed::fallback

use crate::context::Prompt;
use crate::driver::Driver;
use crate::{EngineError, Model, Settings};
use aish_core::Turn;
use aish_core::event::{Body, Event};
use aish_core::message::ToolChoice;

/// Which model is asked for what (`[routing]`); empty routes nothing. It does not hold where a person named a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routing {
    /// For short questions, until the turn has called tools.
    pub quick: Option<String>,
    /// Characters of a question that count as short.
    pub quick_chars_max: usize,
    /// For the rest of a turn that has called tools.
    pub work: Option<String>,
    /// For summing up where a turn's limit is reached.
    pub summary: Option<String>,
}

/// The model for a request.
pub(crate) struct Choice {
    pub(crate) model: Model,
    /// It was routed to: the session's own model is there to give way to.
    pub(crate) is_routed: bool,
    /// What it is sent first, where that had to be built to choose it.
    pub(crate) prompt: Option<Prompt>,
}

impl Routing {
    /// The name that the routing gives for a request, if it gives one.
    fn route(&self, turn: &Turn, question: Option<&Event>, tool_choice: ToolChoice) -> Option<&str> {
        if tool_choice == ToolChoice::None {
            return self.summary.as_deref();
        }
        if turn.rounds() > 0 {
            return self.work.as_deref();
        }
        // What comes along with a question (a file, an image, command output) makes it more than a short one.
        let is_short = question.is_some_and(|event| {
            let is_plain = matches!(&event.body, Body::User(data) if data.parts.is_empty());
            is_plain && event.content.chars().take(self.quick_chars_max + 1).count() <= self.quick_chars_max
        });
        self.quick.as_deref().filter(|_| is_short)
    }
}

impl Driver {
    /// The model for the next request. `handed_to` is the one the turn was handed over to, if it was.
    ///
    /// # Errors
    /// It cannot be asked at all, and nothing was routed to that could be left out.
    pub(crate) fn choose_model(
        &self,
        settings: &Settings,
        tool_choice: ToolChoice,
        handed_to: Option<&str>,
    ) -> Result<Choice, EngineError> {
        let models = &self.engine.models;
        let routed = self.route(settings, tool_choice);
        if let Some(name) = routed.filter(|name| handed_to.is_none() && *name != settings.model) {
            match models.model(name) {
                Ok(model) => {
                    let prompt = self.prompt_for(&model, settings);
                    // What it would have to leave out, the session's own may have room for.
                    if prompt.left_out == 0 && (model.images || !prompt.has_images()) {
                        return Ok(Choice {
                            model,
                            is_routed: true,
                            prompt: Some(prompt),
                        });
                    }
                }
                Err(why) => self.say_once(&format!("routing is left out: {why}")),
            }
        }
        let model = models.model(handed_to.unwrap_or(&settings.model));
        let model = model.map_err(EngineError::Model)?;
        Ok(Choice {
            model,
            is_routed: false,
            prompt: None,
        })
    }

    /// The name that the routing gives for the next request, if it gives one.
    fn route<'s>(&self, settings: &'s Settings, tool_choice: ToolChoice) -> Option<&'s str> {
        let turn = self.session.turn()?;
        let question = self
            .turn_events(turn)
            .filter(|event| matches!(event.body, Body::User(_)));
        settings.routing.route(turn, question.last(), tool_choice)
    }

    /// The events of a turn that is the last one, the newest first.
    fn turn_events(&self, turn: &Turn) -> impl Iterator<Item = &Event> {
        let number = turn.number();
        let events = self.session.events().iter().rev();
        events.take_while(move |event| event.turn == number)
    }

    /// The model to ask instead of one that fails: the first of its chain, then of the chains before it, then the one the
    /// session is with, that has not failed in this turn and can be asked at all.
    pub(crate) fn stand_in(&self, failed: &Model) -> Option<String> {
        let models = &self.engine.models;
        let turn = self.session.turn()?;
        let first = self.engine.settings().model;
        let mut chains = vec![failed.fallback.clone()];
        let earlier = turn.handed_to().iter().rev().chain(std::iter::once(&first));
        chains.extend(
            earlier
                .filter_map(|name| models.model(name).ok())
                .map(|model| model.fallback),
        );
        // One that was only routed to is not all there is.
        chains.push(vec![first]);
        let has_failed = |name: &String| {
            let is_of =
                |event: &Event| matches!(&event.body, Body::ModelFailed(data) if data.model.as_ref() == Some(name));
            self.turn_events(turn).any(is_of)
        };
        let tried = |name: &String| *name == failed.name || turn.handed_to().contains(name) || has_failed(name);
        chains
            .into_iter()
            .flatten()
            .filter(|name| !tried(name))
            .find(|name| match models.model(name) {
                Ok(_) => true,
                Err(why) => {
                    self.say_once(&format!("{name} cannot stand in: {why}"));
                    false
                }
            })
    }
}
