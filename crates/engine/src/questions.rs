//! Questions of servers that are in the ledger and have no answer there yet (SPEC 6.9): a call that ends, or a turn that is
//! stopped, leaves none open behind it. Whoever asked the person hears that an answer that comes later was not written down.

use aish_core::event::{Body, Draft, ServerAnswered, ServerAsked, ServerOutcome};

/// Those of the calls that run.
#[derive(Default)]
pub(crate) struct OpenQuestions(Vec<Open>);

struct Open {
    turn: u64,
    asked: ServerAsked,
}

/// What ended a question that nobody answered.
#[derive(Clone, Copy)]
pub(crate) enum EndedBy {
    /// The last call of its server is over.
    Call,
    /// Somebody stopped the turn.
    Stop,
}

impl OpenQuestions {
    /// Hears what was written down.
    pub(crate) fn written(&mut self, turn: u64, body: &Body) {
        if let Body::ServerAsked(asked) = body {
            // Only its names are needed.
            let asked = ServerAsked {
                asked: serde_json::Value::Null,
                ..asked.clone()
            };
            self.0.push(Open { turn, asked });
        } else if let Body::ServerAnswered(answered) = body {
            self.0
                .retain(|open| open.asked.question != answered.question || open.asked.server != answered.server);
        }
    }

    /// Ends those of these servers: what is to be written down.
    pub(crate) fn end(&mut self, by: EndedBy, is_meant: impl Fn(&str) -> bool) -> Vec<Draft> {
        let ended = self.0.extract_if(.., |open| is_meant(&open.asked.server));
        ended.map(|open| dismissed(open, by)).collect()
    }
}

fn dismissed(open: Open, by: EndedBy) -> Draft {
    let reason = match by {
        EndedBy::Call => "its call was over first, dismissed",
        EndedBy::Stop => "the turn was stopped, dismissed",
    };
    let content = format!("{}: dismissed", open.asked.server);
    let data = ServerAnswered {
        question: open.asked.question,
        server: open.asked.server,
        call_id: open.asked.call_id,
        outcome: ServerOutcome::Dismissed,
        sent: serde_json::Value::Null,
        reason: Some(reason.to_owned()),
        usage: None,
    };
    Draft::new(open.turn, content, Body::ServerAnswered(data))
}
