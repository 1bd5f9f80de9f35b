//! What is below the stream while something runs: the footer, the keys typed into it, and messages on their way into the turn.

use super::steer::{Sent, Steer};
use crate::repl::complete::Whole;
use crate::repl::router::Router;
use crate::repl::typing::{Heard, Lull, TypeAhead, Wish};
use crate::term::footer::{Footer, Place};
use crate::term::guard::Guard;
use crate::term::{Look, Output, Stream};
use aish_core::redact::Redactor;
use aish_engine::Notice;
use std::io;
use std::time::Duration;

/// What is pasted comes between brackets, or does not.
const BRACKETED: (&str, &str) = ("\x1b[?2004h", "\x1b[?2004l");

/// Who has the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// The prompt: it shows the footer and reads keys.
    Prompt,
    /// A question, or whatever else was lent it.
    Other,
}

/// Whether there is a footer at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Footing {
    /// It is drawn, and what is typed meanwhile is read.
    Drawn,
    /// Nothing is ever drawn; what is typed meanwhile waits in the terminal.
    None,
}

/// What the person wants, or what became of it.
#[derive(Debug, PartialEq, Eq)]
pub enum News {
    /// What is shown has to change.
    Changed,
    /// What runs is to stop.
    Stop,
    /// That message is in the turn.
    Steered(String),
    /// It could not be written, and waits instead; one line.
    Failed(String),
}

/// The part of the screen that is not the stream's.
pub struct Below {
    footer: Footer,
    router: Option<Router>,
    pub(super) ahead: TypeAhead,
    pub(super) steer: Steer,
    holder: Holder,
    footing: Footing,
    /// Whether the terminal was told to bracket what is pasted.
    brackets: bool,
}

impl Below {
    /// To be called within the runtime; `router` says where a line that is typed goes.
    ///
    /// # Errors
    /// The terminal or its signals cannot be waited for.
    pub fn open(redactor: Redactor, router: Option<Router>, footing: Footing) -> io::Result<Self> {
        let whole = Whole { router: router.clone() };
        Ok(Self {
            router,
            footer: Footer::new(redactor),
            ahead: TypeAhead::open(whole)?,
            steer: Steer::default(),
            holder: Holder::Other,
            footing,
            brackets: false,
        })
    }

    /// Something begins to run.
    pub fn begin(&mut self, now: Duration) {
        self.footer.begin(now);
    }

    /// Somebody else has the terminal now. What that changes on it goes along with the next batch.
    pub fn hand_over(&mut self, holder: Holder) {
        self.holder = match self.footing {
            Footing::Drawn => holder,
            Footing::None => Holder::Other,
        };
    }

    /// What a question has to wait for; `None` where nobody types, or where what is typed is not read meanwhile.
    pub fn lull(&self) -> Option<Lull> {
        match self.footing {
            Footing::Drawn => self.ahead.lull(),
            Footing::None => None,
        }
    }

    /// A notice is being shown.
    pub fn noticed(&mut self, notice: &Notice, now: Duration) {
        self.footer.heard(notice, now);
    }

    /// When the footer is to be drawn next; `None` while it is not to be.
    pub fn due(&self) -> Option<Duration> {
        (self.holder == Holder::Prompt).then(|| self.footer.due())
    }

    /// The batch with the footer taken away before and drawn again behind it, as whoever has the terminal wants it.
    pub fn over(&mut self, out: Output, place: Place, look: Look, guard: &Guard) -> Output {
        let line = match self.holder {
            Holder::Prompt => {
                let typed = self.ahead.shown(self.router.as_ref());
                self.footer.line(typed, place.now, look)
            }
            Holder::Other => None,
        };
        let mut all = Output::new();
        let brackets = self.holder == Holder::Prompt;
        if std::mem::replace(&mut self.brackets, brackets) != brackets {
            let (on, off) = BRACKETED;
            all.push(Stream::Frame, if brackets { on } else { off });
            if brackets {
                guard.footer_begins();
            }
        }
        let out = self.footer.over(out, line, place, look);
        out.pieces().for_each(|(stream, text)| all.push(stream, text));
        all
    }

    /// The next thing the person does, or the end of what they asked for. Never anything while somebody else has the terminal.
    /// Nothing is lost when it is dropped.
    pub async fn news(&mut self) -> News {
        if self.holder == Holder::Other {
            return std::future::pending().await;
        }
        tokio::select! {
            sent = self.steer.sent() => self.sent(sent),
            heard = self.ahead.heard() => self.heard(heard),
        }
    }

    fn heard(&mut self, heard: Heard) -> News {
        self.footer.touch();
        match heard {
            Heard::Screen => {
                self.footer.forget();
                self.brackets = false;
                News::Changed
            }
            Heard::Keys(wishes) => {
                let mut news = News::Changed;
                for wish in wishes {
                    match wish {
                        Wish::Steer(line) => {
                            if let Err(line) = self.steer.push(line) {
                                self.ahead.put(line);
                            }
                        }
                        Wish::Stop => {
                            self.hold_back();
                            news = News::Stop;
                        }
                    }
                }
                news
            }
        }
    }

    fn sent(&mut self, sent: Sent) -> News {
        self.footer.touch();
        match sent {
            Sent::Taken(line) => News::Steered(line),
            Sent::Late(line) => {
                self.ahead.put(line);
                News::Changed
            }
            Sent::Failed(line, problem) => {
                self.ahead.put(line);
                News::Failed(format!("not told yet, so that it comes after the turn: {problem}"))
            }
        }
    }

    /// The person stops what runs: what was to come after it is theirs again.
    pub fn hold_back(&mut self) {
        self.steer.rest().into_iter().for_each(|line| self.ahead.put(line));
        self.ahead.hold_back();
    }

    /// What ran is over. All that is on its way arrives; what is not told by then waits.
    pub async fn settle(&mut self) -> Vec<News> {
        if self.holder == Holder::Other {
            return Vec::new();
        }
        self.ahead.settle().await;
        let mut news = Vec::new();
        let rest = self.steer.rest();
        if let Some(sent) = self.steer.settle().await {
            news.push(self.sent(sent));
        }
        rest.into_iter().for_each(|line| self.ahead.put(line));
        news
    }
}
