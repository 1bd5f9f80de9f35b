//! Commands a reply proposed for the person's own shell (SPEC 8.4): judged, asked about and run there, one by one, once the turn
//! is over.
//!
//! What is proposed is said by the text as it was shown: lines of the last reply that begin with `CMD:`, outside of code and
//! quotations. Policy judges each as it judges the tool that runs commands (SPEC 5), in the directory the shell is in by then.
//!
//! | policy | `confirm_cmd` | |
//! |---|---|---|
//! | deny | | said, with the rule; the person's `!` remains |
//! | mode `full` | | runs |
//! | allow | false | runs |
//! | allow | true | asked |
//! | ask | | asked |
//!
//! What runs without a question runs only while all goes well: after one that failed, the next may mean another place.

mod doubt;
mod written;

use super::reader::Input;
use super::route::{self, Mark, Route};
use super::{Repl, ReplError};
use crate::shell::UserShell;
use crate::term::proposal::{self, Reply};
use aish_command::{Grammar, open};
use aish_core::event::{AnsweredBy, Proposed, Refusal, Refused};
use aish_core::id::ReplyId;
use aish_core::policy::{ApprovalMode, Verdict};
use aish_core::redact::PLACEHOLDER_START;
use aish_core::sanitize;
use aish_engine::{JudgedCommand, LastReply};
use aish_shell::recalls_history;
use doubt::Told;
use written::{Proposal, Shown, is_seen_whole, proposed};

/// Commands of one reply that are put to the person; nobody reads more of them.
const PROPOSALS_MAX: usize = 10;
/// Why a command is not offered whose text is not what it looks like.
const CANNOT_BE_SHOWN: &str = "it holds characters that cannot be shown";
/// Why a command is not offered whose beginning would be out of sight when it is asked about.
const TOO_LONG: &str = "it is too long to be seen whole; it stands in the reply";
/// Why a command is not offered that was written around a key (SPEC 10.5).
const CARRIES_PLACEHOLDER: &str = "it carries a placeholder for a value that the model was not shown";
/// Why a command is not offered that the shell would make another one of.
const CALLS_HISTORY: &str = "the shell would put something from its history in place of a part of it";
/// Why a command is not offered that its shell would wait for more of.
const NOT_WHOLE: &str = "it is not whole";
/// Why one that would run without a question does not.
const AFTER_A_FAILURE: &str = "one before it failed or did not run";

/// Whether a proposed command that policy allows is asked about all the same (`shell.confirm_cmd`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirm {
    /// It is.
    Always,
    /// Only where policy asks.
    WherePolicyAsks,
}

/// One of them, as it is put to the person.
struct Offer<'a> {
    reply_id: &'a ReplyId,
    proposal: &'a Proposal,
    /// Which of how many, from 1.
    place: (usize, usize),
    before: Before,
}

/// What came of those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// All ran, and well.
    AllWell,
    /// One failed, or did not run.
    Broken,
}

/// What the person decided.
enum Decision {
    /// This runs: the proposed line, or what they made of it.
    Run(String),
    /// It does not.
    Decline { reason: Option<String> },
    /// Neither it nor those after it.
    Quit,
}

/// What comes after a proposal.
enum After {
    /// The next one.
    Next(Before),
    /// None: the person said so.
    Quit,
    /// None: there is no shell, or no program, to go on in.
    Leave,
}

impl Repl {
    /// Puts what the reply of the turn that just ended proposes to the person, and runs what may run.
    pub(super) async fn offer_proposals(&mut self) -> Result<(), ReplError> {
        if self.shell.is_none() {
            return Ok(());
        }
        let Some(LastReply { reply_id, text }) = self.driver.last_reply() else {
            return Ok(());
        };
        let all = proposed(&text);
        let (offered, surplus) = all.split_at(all.len().min(PROPOSALS_MAX));
        let mut before = Before::AllWell;
        for (n, proposal) in offered.iter().enumerate() {
            let offer = Offer {
                reply_id: &reply_id,
                proposal,
                place: (n + 1, offered.len()),
                before,
            };
            match self.offer(&offer).await? {
                After::Next(so_far) => before = so_far,
                After::Quit => {
                    for rest in offered.get(n..).unwrap_or_default() {
                        self.refused(&reply_id, &rest.line, Refusal::Declined, None).await;
                    }
                    return Ok(());
                }
                After::Leave => return Ok(()),
            }
        }
        // One word for all of them: what ran must not drown in what did not.
        if let Some(first) = surplus.first() {
            let count = surplus.len();
            let why = format!("only {PROPOSALS_MAX} commands of a reply are offered");
            self.front.say(&format!("{count} more not offered: {why}")).await;
            let reason = format!("nor any after it, {count} in all: {why}");
            self.refused(&reply_id, &first.line, Refusal::NotOffered, Some(reason))
                .await;
        }
        Ok(())
    }

    async fn offer(&mut self, offer: &Offer<'_>) -> Result<After, ReplError> {
        let line = offer.proposal.line.as_str();
        if let Some(obstacle) = self.obstacle(offer.proposal) {
            return Ok(self.pass_over(offer, Refusal::NotOffered, obstacle).await);
        }
        let doubt = self.doubt(line).await;
        let judged = match self.driver.judge_command(line, doubt.as_deref()) {
            Ok(judged) => judged,
            Err(problem) => return Ok(self.pass_over(offer, Refusal::NotOffered, &problem).await),
        };
        let settings = self.engine.settings();
        let asks = match judged.judgement.verdict {
            Verdict::Deny | Verdict::Invalid => {
                return Ok(self.pass_over(offer, Refusal::Denied, &judged.judgement.rule).await);
            }
            Verdict::Ask => true,
            Verdict::Allow => settings.mode != ApprovalMode::Full && self.options.confirm == Confirm::Always,
        };
        if asks {
            return self.ask_and_run(offer, &judged).await;
        }
        if offer.before == Before::Broken {
            return Ok(self.pass_over(offer, Refusal::NotOffered, AFTER_A_FAILURE).await);
        }
        let shown = format!("runs {} ({})", sanitize::single_line(line), judged.judgement.rule);
        self.front.say(&shown).await;
        self.run_proposed(offer, line, AnsweredBy::Rule, judged).await
    }

    /// Why what would run is not what is shown, or not what was meant. What the person makes of a line is theirs.
    fn obstacle(&self, proposal: &Proposal) -> Option<&'static str> {
        let line = proposal.line.as_str();
        let shell = self.shell.as_ref();
        let dialect = shell.and_then(UserShell::dialect);
        let grammar = shell.map_or(Grammar::Bash, |shell| shell.known().grammar());
        // The size it has now: it may have changed while nothing was drawn.
        let look = self.front.renderer.look().resized(rustix::stdio::stdout());
        match proposal.shown {
            Shown::Escaped => Some(CANNOT_BE_SHOWN),
            Shown::Cut => Some(TOO_LONG),
            Shown::AsItIs if !is_seen_whole(line, look) => Some(TOO_LONG),
            Shown::AsItIs if open(line, grammar).is_some() => Some(NOT_WHOLE),
            Shown::AsItIs if line.contains(PLACEHOLDER_START) => Some(CARRIES_PLACEHOLDER),
            Shown::AsItIs => dialect
                .is_some_and(|dialect| recalls_history(dialect, line))
                .then_some(CALLS_HISTORY),
        }
    }

    /// Why the shell may read a line otherwise than it looks.
    async fn doubt(&mut self, line: &str) -> Option<String> {
        self.hear_shell().await;
        let shell = self.shell.as_ref()?;
        let known = shell.known();
        let told = if known.is_outdated() { Told::Before } else { Told::All };
        doubt::doubt(line, &known, told)
    }

    /// Asks, and asks again after an explanation; runs what the person wants to run.
    async fn ask_and_run(&mut self, offer: &Offer<'_>, judged: &JudgedCommand) -> Result<After, ReplError> {
        let line = offer.proposal.line.as_str();
        let wanted = match self.decide_on(offer, judged).await? {
            _ if self.front.leave_status().is_some() => return Ok(After::Leave),
            Decision::Run(wanted) => wanted,
            Decision::Quit => return Ok(After::Quit),
            Decision::Decline { reason } => {
                self.refused(offer.reply_id, line, Refusal::Declined, reason).await;
                return Ok(After::Next(Before::Broken));
            }
        };
        // What the person made of it is another command, and rules may have come since it was asked about.
        let now = match self.driver.judge_command(&wanted, None) {
            Ok(now) if now.judgement.verdict != Verdict::Deny => now,
            Ok(now) => {
                let rule = &now.judgement.rule;
                return Ok(self.pass_over_line(offer, &wanted, Refusal::Denied, rule).await);
            }
            Err(problem) => {
                return Ok(self.pass_over_line(offer, &wanted, Refusal::NotOffered, &problem).await);
            }
        };
        self.run_proposed(offer, &wanted, AnsweredBy::Terminal, now).await
    }

    async fn decide_on(&mut self, offer: &Offer<'_>, judged: &JudgedCommand) -> Result<Decision, ReplError> {
        let line = offer.proposal.line.as_str();
        let look = self.front.renderer.look();
        let rule = &judged.judgement.rule;
        let why = match judged.judgement.verdict {
            Verdict::Allow => format!("allowed by: {rule}"),
            Verdict::Ask | Verdict::Deny | Verdict::Invalid => format!("asked because: {rule}"),
        };
        let mut question = proposal::prompt(line, &why, offer.place, look);
        loop {
            let Some(answer) = self.ask_line(&question).await else {
                return Ok(Decision::Quit);
            };
            match proposal::parse(&answer) {
                Reply::Run => return Ok(Decision::Run(line.to_owned())),
                Reply::Edit => return self.edit_proposal(line).await,
                Reply::No { reason } => return Ok(Decision::Decline { reason }),
                Reply::Quit => return Ok(Decision::Quit),
                Reply::Explain => question = proposal::explanation(look) + &proposal::question(line, look),
            }
        }
    }

    /// Lets the person change it at the prompt, where it stands as a line for the shell.
    async fn edit_proposal(&mut self, line: &str) -> Result<Decision, ReplError> {
        let typed_ahead = std::mem::replace(&mut self.prefill, format!("{}{line}", Mark::Shell.character()));
        let input = self.read().await?;
        self.prefill = typed_ahead;
        let Input::Line(text) = input else {
            return Ok(Decision::Quit);
        };
        Ok(match route::route(&text) {
            Route::Shell(command) | Route::Open(command) => Decision::Run(command),
            Route::Nothing => Decision::Decline { reason: None },
            Route::Meta(_) | Route::Model(_) | Route::Why => {
                // It is no command any more: it waits for its own Enter.
                self.prefill = text;
                Decision::Decline { reason: None }
            }
        })
    }

    async fn run_proposed(
        &mut self,
        offer: &Offer<'_>,
        line: &str,
        allowed: AnsweredBy,
        judged: JudgedCommand,
    ) -> Result<After, ReplError> {
        let original = offer.proposal.line.as_str();
        let proposed = Proposed {
            reply_id: offer.reply_id.clone(),
            allowed,
            rule: judged.judgement.rule,
            digest: judged.action.digest(),
            instead_of: (line != original).then(|| original.to_owned()),
        };
        let ran = self.run_live(line, Some(proposed)).await?;
        if let Some(shell) = &self.shell {
            shell.known().outdate();
        }
        if self.left_shell.is_some() || self.front.leave_status().is_some() || self.shell.is_none() {
            return Ok(After::Leave);
        }
        Ok(After::Next(match ran {
            Some(command) if command.status == Some(0) => offer.before,
            Some(_) => Before::Broken,
            None => {
                let why = "the shell did not run it".to_owned();
                self.refused(offer.reply_id, line, Refusal::NotOffered, Some(why)).await;
                Before::Broken
            }
        }))
    }

    /// Says why it does not run, without having asked.
    async fn pass_over(&mut self, offer: &Offer<'_>, why: Refusal, reason: &str) -> After {
        self.pass_over_line(offer, offer.proposal.line.as_str(), why, reason)
            .await
    }

    /// The same of what the person made of it.
    async fn pass_over_line(&mut self, offer: &Offer<'_>, line: &str, why: Refusal, reason: &str) -> After {
        let refused = refusal(offer.reply_id, line, why, Some(reason.to_owned()));
        self.front
            .say(&format!(
                "not run: {} ({})",
                sanitize::single_line(line),
                refused.words()
            ))
            .await;
        self.record_refusal(&refused).await;
        After::Next(Before::Broken)
    }

    /// Keeps that it did not run, so that the model hears of it with the next question.
    async fn refused(&mut self, reply_id: &ReplyId, line: &str, why: Refusal, reason: Option<String>) {
        self.record_refusal(&refusal(reply_id, line, why, reason)).await;
    }

    async fn record_refusal(&mut self, refused: &Refused) {
        if let Err(error) = self.driver.record_refused(refused).await {
            self.front.say(&error.to_string()).await;
        }
    }
}

fn refusal(reply_id: &ReplyId, line: &str, why: Refusal, reason: Option<String>) -> Refused {
    Refused {
        line: line.to_owned(),
        reply_id: reply_id.clone(),
        why,
        reason,
    }
}
