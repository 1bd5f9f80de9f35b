//! Commands that a reply proposes for the person's own shell (SPEC 8.4): what policy says of one, and what is recorded of those
//! that did not run. Which they are is for whoever renders the reply to say; running them, for whoever has the shell.

use crate::driver::Driver;
use crate::{Engine, EngineError};
use aish_core::action::Action;
use aish_core::event::{Body, CallSource, Draft, Refused, ReplyStop};
use aish_core::id::ReplyId;
use aish_core::policy::{Grant, Judgement, SoFar};
use aish_core::turn::StopReason;
use aish_store::Durability;
use serde_json::json;

/// The tool that runs commands.
const COMMANDS: &str = "bash";

/// Whether a model is told that it may propose commands for the person's own shell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Proposals {
    /// There is no such shell, or nobody at it: what looks like a proposal is text.
    #[default]
    NotOffered,
    /// It is told how.
    Offered,
}

/// The last reply of a turn that went well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastReply {
    /// Which.
    pub reply_id: ReplyId,
    /// What the model said in it, and nothing of what anybody else did.
    pub text: String,
}

/// What policy says of a command.
#[derive(Clone, Debug)]
pub struct JudgedCommand {
    /// What it would do.
    pub action: Action,
    /// Allow, ask or deny, and why.
    pub judgement: Judgement,
}

impl Engine {
    /// What policy says of a command, as a call of the tool that runs commands. `doubt` is why a shell may read it otherwise, one
    /// line; then it is allowed only as a whole. `grants` are the approvals of a session.
    ///
    /// # Errors
    /// It is no command; one line.
    pub fn judge_command(&self, line: &str, doubt: Option<&str>, grants: &[Grant]) -> Result<JudgedCommand, String> {
        let settings = self.settings();
        let tools = self.tools.now();
        let tool = tools.get(COMMANDS).ok_or("there is no bash tool here")?;
        let mut action = tool.inspect(&json!({ "command": line }), &settings.context)?;
        if let Some(doubt) = doubt {
            action.doubt(doubt);
        }
        let judgement = settings
            .policy
            .judge(&action, CallSource::Builtin, settings.mode, SoFar::granted(grants));
        Ok(JudgedCommand { action, judgement })
    }
}

impl Driver {
    /// What the model said last, once its turn is over. `None` while the turn is open, and where the reply was cut, withheld or
    /// stopped: half a command is none.
    pub fn last_reply(&self) -> Option<LastReply> {
        let turn = self.session.turn()?;
        match turn.ended()? {
            StopReason::End | StopReason::Limit | StopReason::Declined => {}
            StopReason::Cancelled | StopReason::Truncated | StopReason::ModelFailed => return None,
        }
        let number = turn.number();
        let events = self.session.events().iter().rev();
        let last = events.filter(|event| event.turn == number).find_map(|event| {
            if let Body::Assistant(reply) = &event.body {
                (reply.stop != ReplyStop::Closing).then(|| reply.clone())
            } else {
                None
            }
        })?;
        match last.stop {
            ReplyStop::End => Some(LastReply {
                reply_id: last.reply_id,
                text: self.finished_turn(number).said,
            }),
            ReplyStop::ToolCalls
            | ReplyStop::Paused
            | ReplyStop::Length
            | ReplyStop::Truncated
            | ReplyStop::Refused
            | ReplyStop::Interrupted
            | ReplyStop::Closing => None,
        }
    }

    /// What policy says of a command for the person's shell, in the directory of that shell and with the approvals of this session
    /// (SPEC 5); see [`Engine::judge_command`].
    ///
    /// # Errors
    /// It is no command; one line.
    pub fn judge_command(&self, line: &str, doubt: Option<&str>) -> Result<JudgedCommand, String> {
        self.engine.judge_command(line, doubt, self.session.grants())
    }

    /// Records that a proposed command did not run; the next question says so to the model.
    ///
    /// # Errors
    /// The ledger refuses.
    pub async fn record_refused(&mut self, refused: &Refused) -> Result<(), EngineError> {
        let content = format!("not run: {} ({})", refused.line, refused.words());
        let draft = Draft::new(0, content, Body::Note(refused.note()));
        self.append(vec![draft], Durability::Committed).await
    }
}
