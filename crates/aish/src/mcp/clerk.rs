//! Whoever has the terminal and answers servers there: takes one question from the desk, puts it to the person, and says what
//! came of it.
//!
//! A [`Clerk`] belongs to a front, which lets it work while it shows nothing else: [`Clerk::next`] gives the next question,
//! [`Clerk::begin`] puts it, [`Busy`] is the question that is being put.

use super::address::Address;
use super::desk::{Answer, Desk, Given, Matter, Open, Ticket};
use super::evidence::shortened;
use super::form::Form;
use super::patience::{Patient, Presence};
use super::{Say, browser, sampling};
use crate::paths::Environment;
use crate::term::Look;
use crate::term::questions::{Asking, Filled, Said};
use crate::term::tty::{Person, Tty};
use aish_engine::Engine;
use aish_mcp::host::Question;
use aish_tools::{Cancel, cancelled};
use futures_util::future::BoxFuture;
use std::io;
use std::sync::Arc;
use tokio::sync::watch;

/// Answers servers at the controlling terminal.
#[derive(Clone)]
pub struct Clerk {
    desk: Arc<Desk>,
    engine: Arc<Engine>,
    environment: Environment,
    say: Say,
    presence: Arc<Presence>,
}

/// A question that is being put to the person.
pub struct Busy {
    work: BoxFuture<'static, ()>,
    take_back: watch::Sender<bool>,
}

impl Clerk {
    /// For questions at that desk; `say` tells the person one line.
    pub fn new(desk: Arc<Desk>, engine: Arc<Engine>, environment: Environment, say: Say) -> Self {
        Self {
            desk,
            engine,
            environment,
            say,
            presence: Arc::default(),
        }
    }

    /// Takes questions until what is given back is dropped. Whoever opens the desk does so because the person typed something.
    pub fn open(&self) -> Open {
        self.presence.seen();
        self.desk.open()
    }

    /// The next question.
    pub async fn next(&self) -> Ticket {
        self.desk.next().await
    }

    /// Begins to put it to the person. Nothing else may write to the terminal until [`Busy::done`].
    pub fn begin(&self, ticket: Ticket) -> Busy {
        let (take_back, cancel) = watch::channel(false);
        let clerk = self.clone();
        Busy {
            work: Box::pin(async move { clerk.put(ticket, cancel).await }),
            take_back,
        }
    }

    /// Puts a question and answers it. The person's terminal is theirs again when it returns.
    async fn put(&self, mut ticket: Ticket, mut cancel: Cancel) {
        let Some(tty) = Tty::open() else {
            return ticket.answer(Answer::Nobody);
        };
        if self.presence.is_away() {
            return ticket.answer(Answer::Late);
        }
        let (withdraw, withdrawn) = watch::channel(false);
        let look = Look::detect(&self.environment, tty.file());
        let patient = Patient(&tty);
        let asking = Asking {
            person: &patient,
            look,
            cancel: &withdrawn,
        };
        let server = ticket.server.to_string();
        let matter = ticket.matter.clone();
        let answer = {
            let answering = self.answer(&asking, &server, matter);
            tokio::pin!(answering);
            let is_withdrawn = tokio::select! {
                answer = &mut answering => Err(answer),
                () = cancelled(&mut cancel) => Ok(false),
                () = ticket.withdrawn() => Ok(true),
            };
            match is_withdrawn {
                Err(answer) => answer,
                Ok(is_withdrawn) => {
                    withdraw.send_replace(true);
                    let answer = answering.await;
                    if is_withdrawn {
                        (self.say)(&format!("mcp: {server}: took its question back"));
                    }
                    answer
                }
            }
        };
        ticket.answer(answer);
    }

    async fn answer<P: Person>(&self, asking: &Asking<'_, P>, server: &str, matter: Matter) -> Answer {
        let answered = match &matter {
            Matter::Elicit(Question::Form { message, schema }) => fill(asking, server, message, schema).await,
            Matter::Elicit(Question::Url { message, url, .. }) => self.open_page(asking, server, message, url).await,
            Matter::Sample(params) => sampling::sample(asking, server, params, &self.engine).await,
        };
        match answered {
            Ok(answer) => answer,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                self.presence.missed();
                Answer::Late
            }
            Err(error) => Answer::Failed(format!("the terminal could not be asked: {error}")),
        }
    }

    /// Asks whether to open a page, and opens it.
    async fn open_page<P: Person>(
        &self,
        asking: &Asking<'_, P>,
        server: &str,
        message: &str,
        url: &str,
    ) -> io::Result<Answer> {
        let address = match Address::read(url) {
            Ok(address) => address,
            Err(problem) => return Ok(Answer::Failed(problem)),
        };
        Ok(match asking.open(server, message, &address).await? {
            Said::Yes => {
                let environment = self.engine.settings().context.environment;
                if let Err(problem) = browser::open(&address.url, &environment).await {
                    let problem = shortened(&problem);
                    (self.say)(&format!(
                        "no browser was started ({problem}); open it yourself: {}",
                        address.shown()
                    ));
                }
                Answer::Given(Given::default())
            }
            Said::No => Answer::Declined,
            Said::Stopped => Answer::Dismissed,
        })
    }
}

impl Busy {
    /// Completes when the question has its answer and the terminal is free again.
    pub async fn done(&mut self) {
        (&mut self.work).await;
    }

    /// Whether it was not taken back yet.
    pub fn is_open(&self) -> bool {
        !*self.take_back.borrow()
    }

    /// Takes the question back; [`Busy::done`] completes soon after.
    pub fn take_back(&self) {
        self.take_back.send_replace(true);
    }
}

/// Resolves when the question has its answer; never, when none is being put.
pub async fn answered(busy: &mut Option<Busy>) {
    match busy {
        Some(busy) => busy.done().await,
        None => std::future::pending().await,
    }
}

/// The next question of a server; never one, where nobody answers.
pub async fn next_question(clerk: Option<&Clerk>) -> Ticket {
    match clerk {
        Some(clerk) => clerk.next().await,
        None => std::future::pending().await,
    }
}

/// Takes back what is still being asked, because nobody waits for the answer any more; returns when the terminal is free.
pub async fn give_back(busy: Option<Busy>) {
    if let Some(mut busy) = busy {
        busy.take_back();
        busy.done().await;
    }
}

async fn fill<P: Person>(
    asking: &Asking<'_, P>,
    server: &str,
    message: &str,
    schema: &serde_json::Value,
) -> io::Result<Answer> {
    let form = match Form::read(schema) {
        Ok(form) => form,
        Err(problem) => return Ok(Answer::Failed(shortened(&problem))),
    };
    Ok(match asking.fill(server, message, &form).await? {
        Filled::Sent(members) => Answer::Given(Given {
            members,
            unkept: form.secrets(),
            usage: None,
        }),
        Filled::Declined => Answer::Declined,
        Filled::Stopped => Answer::Dismissed,
    })
}
