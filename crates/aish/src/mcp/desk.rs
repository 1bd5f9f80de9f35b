//! The desk at which questions of servers wait for whoever has the terminal (SPEC 6.9).
//!
//! Servers ask whenever they like, from tasks of their own; there is one terminal, and one person at it. So a question is put
//! on the desk, and whoever has the terminal takes one after the other ([`Desk::next`]) while the desk is open ([`Desk::open`]).
//! A desk that is not open takes nothing: at the prompt, the line that is being typed is the person's, and a question that
//! came up in the middle of it would be answered by keys that were meant for something else.

use aish_mcp::Alias;
use aish_mcp::host::Question;
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, oneshot};

/// Questions that wait at a time, of all servers; further ones are refused.
const WAITING_MAX: usize = 16;

/// What a server wants. All text is the server's: hostile until escaped.
#[derive(Clone, Debug, PartialEq)]
pub enum Matter {
    /// Something of the person (`elicitation/create`).
    Elicit(Question),
    /// Something of a model (`sampling/createMessage`): its parameters.
    Sample(Value),
}

/// How a question was answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Yes: the values of a form, the result of a model; empty for an address.
    Given(Given),
    /// No.
    Declined,
    /// The person stopped the turn instead.
    Dismissed,
    /// Nobody is here who could answer.
    Nobody,
    /// It came while nobody waits for anything of a server: at the prompt.
    Untimely,
    /// Too many others wait.
    Crowded,
    /// What was asked of the server was over before anybody answered.
    Over,
    /// The server took it back, or is gone.
    Withdrawn,
    /// The person did not answer in time.
    Late,
    /// It cannot be answered; one line, escaped.
    Failed(String),
}

/// What a server is sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Given {
    /// The members of the answer.
    pub members: Map<String, Value>,
    /// Members that the ledger does not keep the values of.
    pub unkept: Vec<String>,
    /// Tokens that were used for it.
    pub usage: Option<aish_core::event::Usage>,
}

/// A question on its way to the person.
#[derive(Debug)]
pub struct Ticket {
    /// Who asks.
    pub server: Alias,
    /// What.
    pub matter: Matter,
    answer: oneshot::Sender<Answer>,
}

impl Ticket {
    /// Answers it. A server that took its question back hears nothing.
    pub fn answer(self, answer: Answer) {
        let _ = self.answer.send(answer);
    }

    /// Completes when nobody waits for the answer any more.
    pub async fn withdrawn(&mut self) {
        self.answer.closed().await;
    }
}

/// Where questions wait.
#[derive(Default)]
pub struct Desk {
    state: Mutex<State>,
    came: Notify,
}

#[derive(Default)]
struct State {
    open: usize,
    waiting: VecDeque<Ticket>,
}

impl Desk {
    /// Puts a question on the desk and waits for its answer: that it has one soon is for whoever took it. Dropping the future
    /// withdraws the question.
    pub async fn put(&self, server: &Alias, matter: Matter) -> Answer {
        let (answer, answered) = oneshot::channel();
        {
            let mut state = self.state();
            if state.open == 0 {
                return Answer::Untimely;
            }
            if state.waiting.len() >= WAITING_MAX {
                return Answer::Crowded;
            }
            state.waiting.push_back(Ticket {
                server: server.clone(),
                matter,
                answer,
            });
        }
        self.came.notify_one();
        answered.await.unwrap_or(Answer::Over)
    }

    /// Opens the desk until what is given back is dropped. Whoever opens it takes what comes; what nobody took by then is
    /// answered with [`Answer::Over`].
    pub fn open(self: &Arc<Self>) -> Open {
        self.state().open += 1;
        Open(Arc::clone(self))
    }

    /// The next question that somebody still waits for.
    pub async fn next(&self) -> Ticket {
        loop {
            {
                let mut state = self.state();
                while let Some(ticket) = state.waiting.pop_front() {
                    if !ticket.answer.is_closed() {
                        return ticket;
                    }
                }
            }
            self.came.notified().await;
        }
    }

    /// A lock that a panic poisoned still guards a whole queue.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The desk is open.
pub struct Open(Arc<Desk>);

impl Drop for Open {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.open = state.open.saturating_sub(1);
        if state.open == 0 {
            // Their senders go with them: whoever waits hears of it.
            state.waiting.clear();
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::time::Duration;

    fn alias() -> Alias {
        Alias::parse("one").unwrap()
    }

    fn matter(n: u64) -> Matter {
        Matter::Sample(json!(n))
    }

    async fn taken(desk: &Desk) -> Ticket {
        tokio::time::timeout(Duration::from_secs(20), desk.next())
            .await
            .expect("a question")
    }

    /// SPEC 6.9: a question that comes while nobody has the terminal is answered at once.
    #[tokio::test]
    async fn a_closed_desk_takes_nothing() {
        let desk = Arc::new(Desk::default());
        assert_eq!(desk.put(&alias(), matter(1)).await, Answer::Untimely);
        drop(desk.open());
        assert_eq!(desk.put(&alias(), matter(1)).await, Answer::Untimely);
    }

    /// SPEC 6.9: questions are answered one after the other, each with its own answer, and what is left over with none.
    #[tokio::test]
    async fn one_after_the_other() {
        let desk = Arc::new(Desk::default());
        let open = desk.open();
        let putting = |n| {
            let desk = Arc::clone(&desk);
            tokio::spawn(async move { desk.put(&alias(), matter(n)).await })
        };
        let first = putting(1);
        let ticket = taken(&desk).await;
        let (second, third) = (putting(2), putting(3));
        ticket.answer(Answer::Declined);
        assert_eq!(first.await.unwrap(), Answer::Declined);
        taken(&desk).await.answer(Answer::Late);
        let left = [second, third];
        while desk.state().waiting.len() + usize::from(left.iter().any(|it| it.is_finished())) < 2 {
            tokio::task::yield_now().await;
        }
        drop(open);
        let [second, third] = left;
        let mut answers = [second.await.unwrap(), third.await.unwrap()];
        answers.sort_by_key(|answer| *answer == Answer::Over);
        assert_eq!(answers, [Answer::Late, Answer::Over]);
    }

    /// SPEC 6.9: a question that was taken back is not put to the person, and one that is being put is known to be.
    #[tokio::test]
    async fn withdrawn() {
        let desk = Arc::new(Desk::default());
        let _open = desk.open();
        let putting = |n| {
            let desk = Arc::clone(&desk);
            tokio::spawn(async move { desk.put(&alias(), matter(n)).await })
        };
        let shown = putting(1);
        let mut ticket = taken(&desk).await;
        shown.abort();
        ticket.withdrawn().await;
        let gone = putting(2);
        while desk.state().waiting.is_empty() {
            tokio::task::yield_now().await;
        }
        gone.abort();
        let _ = gone.await;
        let _kept = putting(3);
        assert_eq!(taken(&desk).await.matter, matter(3));
    }
}
