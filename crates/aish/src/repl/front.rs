//! What stands between a driver and the person: notices are shown as they come, Ctrl-C reaches the driver at once.
//!
//! [`Front::watch`] runs anything that reports through notices. It never waits for the terminal while it could drive, and
//! never drives blindly: batches are rendered when the one before is written. At a terminal with an editor a line below the
//! stream says what is waited for and takes what is typed meanwhile ([`below`]).

mod below;
mod steer;

use super::router::Router;
use super::typing::{Lull, TypeAhead};
use crate::mcp::clerk::{Busy, Clerk, answered, give_back, next_question};
use crate::mcp::desk::{Open, Ticket};
use crate::paths::Environment;
use crate::term::countdown::StatusLine;
use crate::term::footer::Place;
use crate::term::guard::{Guard, Leaving, Quiet};
use crate::term::render::Renderer;
use crate::term::screen::{Screen, Written};
use crate::term::{Form, Look, Output, Stream};
use crate::usage::Gauge;
use aish_core::redact::Redactor;
use aish_engine::{Notices, Steering};
use aish_tools::{Cancel, cancelled};
use below::{Below, Footing, Holder, News};
use futures_util::FutureExt as _;
use std::future::Future;
use std::io;
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// Stands before what went into the turn.
const STEERED_MARK: &str = "❯";

/// The person's side.
pub struct Front {
    /// Turns notices into text.
    pub renderer: Renderer,
    /// What is told.
    pub notices: Notices,
    /// Keeps the terminal from echoing between two lines; goes before the guard, which has the last word.
    _quiet: Option<Quiet>,
    /// How the terminal was found.
    pub guard: Guard,
    /// Answers servers that ask while something runs.
    clerk: Option<Clerk>,
    gauge: Gauge,
    screen: Screen,
    interrupts: Signal,
    leaving: Leaving,
    began: Instant,
    /// The line below the stream; `None` where there is no editor that could go on with what is typed.
    below: Option<Below>,
    /// Messages that went into the turn and were not shown yet.
    steered: Vec<String>,
}

impl Front {
    /// Takes the terminal that is guarded. `environment` says how it wants things to look, `gauge` when the context is nearly full.
    ///
    /// # Errors
    /// Signals or threads are not to be had.
    pub fn take(guard: Guard, environment: &Environment, redactor: Redactor, gauge: Gauge) -> io::Result<Self> {
        let leaving = guard.leaving();
        let look = Look::detect(environment, rustix::stdio::stdout());
        let mut renderer = Renderer::new(look, redactor);
        if rustix::termios::isatty(rustix::stdio::stderr()) {
            renderer.set_status_line(StatusLine::Rewritten);
        }
        Ok(Self {
            renderer,
            notices: Notices::new(),
            clerk: None,
            gauge,
            screen: Screen::start()?,
            interrupts: signal(SignalKind::interrupt())?,
            leaving,
            guard,
            began: Instant::now(),
            below: None,
            _quiet: None,
            steered: Vec::new(),
        })
    }

    /// From now on the terminal does not echo, between two lines of the editor neither: no key is lost to the terminal's own line
    /// editing.
    pub fn keep_quiet(&mut self) {
        self._quiet = Some(self.guard.quiet());
    }

    /// From now on what is typed while something runs is kept, and shown below it where the screen is drawn on; `router` says where
    /// it goes.
    ///
    /// # Errors
    /// The terminal cannot be waited for.
    pub fn type_ahead(&mut self, redactor: Redactor, router: Option<Router>) -> io::Result<()> {
        // A line that is drawn again and again says nothing to who listens.
        let footing = match self.renderer.look().form {
            Form::Framed => Footing::Drawn,
            Form::Plain => Footing::None,
        };
        self.below = Some(Below::open(redactor, router, footing)?);
        Ok(())
    }

    /// What is typed ahead; `None` where nobody types at a terminal.
    pub fn ahead(&mut self) -> Option<&mut TypeAhead> {
        self.below.as_mut().map(|below| &mut below.ahead)
    }

    /// What was to come before them was given up: the lines that wait, messages to the turn too, are the person's again.
    pub fn hold_back(&mut self) {
        if let Some(below) = &mut self.below {
            below.hold_back();
        }
    }

    /// A turn begins that what is typed can go into, or ends with `None`.
    pub fn lead(&mut self, hand: Option<Steering>) {
        if let Some(below) = &mut self.below {
            below.steer.lead(hand);
        }
    }

    /// Who answers servers from now on.
    pub fn attend(&mut self, clerk: Clerk) {
        self.clerk = Some(clerk);
    }

    /// Lets questions of servers wait until what is given back is dropped, whether or not something is being watched.
    pub fn keep_questions(&self) -> Option<Open> {
        self.clerk.as_ref().map(Clerk::open)
    }

    /// Writes lines of our own, which are safe already.
    pub async fn print(&mut self, text: &str) {
        let mut out = Output::new();
        self.renderer.finish(&mut out);
        out.push(Stream::Frame, text);
        self.screen.write(out).await;
    }

    /// Writes a status line.
    pub async fn say(&mut self, text: &str) {
        let mut out = Output::new();
        self.renderer.status(text, &mut out);
        self.screen.write(out).await;
    }

    /// Lets `draw` render something, and writes it.
    pub async fn draw(&mut self, draw: impl FnOnce(&mut Renderer, &mut Output)) {
        self.fit();
        let mut out = Output::new();
        draw(&mut self.renderer, &mut out);
        self.screen.write(out).await;
    }

    /// Shows what was told and not yet shown.
    pub async fn catch_up(&mut self) {
        let out = self.render();
        self.screen.write(out).await;
    }

    /// What was told and not yet shown, as a terminal shows it: for whoever shows it in another place.
    pub fn told(&mut self) -> String {
        let mut out = self.render();
        self.renderer.finish(&mut out);
        out.pieces().map(|(_, text)| text).collect()
    }

    /// The status to leave with, if a signal asked for it.
    pub fn leave_status(&self) -> Option<u8> {
        *self.leaving.borrow()
    }

    /// Waits until a signal asks to leave.
    pub fn leaving(&self) -> Leaving {
        self.leaving.clone()
    }

    /// Waits for Ctrl-C, where the terminal makes it a signal.
    pub async fn interrupted(&mut self) {
        self.interrupts.recv().await;
    }

    /// Forgets a Ctrl-C that came while nothing ran: it was meant for nothing that comes.
    pub fn forget_interrupts(&mut self) {
        while self.interrupts.recv().now_or_never().is_some() {}
    }

    /// Drives what `run` makes to its end, showing what comes. Ctrl-C, and a signal to leave, cancel it; it is waited for
    /// all the same, since whoever is cancelled has to write down how it ended. What servers ask meanwhile is put to the
    /// person, one question after the other, with nothing drawn in between.
    pub async fn watch<F: Future>(&mut self, run: impl FnOnce(Notices, Cancel) -> F) -> F::Output {
        self.watch_with(Holder::Prompt, self.clerk.clone(), run).await
    }

    /// The same for what has the terminal itself: servers wait, nothing is drawn below, and no key is read. A line that is being
    /// typed is typed on first; where it is stopped, what `run` makes is cancelled from the beginning.
    pub async fn watch_asking<F: Future>(&mut self, run: impl FnOnce(Notices, Cancel) -> F) -> F::Output {
        let stopped = match self.let_type_on().await {
            Wanted::Nothing => None,
            Wanted::Stop => Some(watch::channel(true).1),
        };
        self.watch_with(Holder::Other, None, |notices, cancel| {
            run(notices, stopped.unwrap_or(cancel))
        })
        .await
    }

    /// The same at once, also in the middle of a line: what is being typed is for `run` to take.
    pub async fn watch_alone<F: Future>(&mut self, run: impl FnOnce(Notices, Cancel) -> F) -> F::Output {
        self.watch_with(Holder::Other, None, run).await
    }

    /// Reads and shows keys until the person does not type, or stops what comes.
    async fn let_type_on(&mut self) -> Wanted {
        let Some(mut lull) = self.below.as_ref().and_then(Below::lull) else {
            return Wanted::Nothing;
        };
        let typing = |_, mut cancel| async move {
            tokio::select! {
                biased;
                () = cancelled(&mut cancel) => Wanted::Stop,
                () = lull.over() => Wanted::Nothing,
            }
        };
        let wanted = self.watch_with(Holder::Prompt, None, typing).await;
        self.make_room().await;
        wanted
    }

    async fn watch_with<F: Future>(
        &mut self,
        holder: Holder,
        clerk: Option<Clerk>,
        run: impl FnOnce(Notices, Cancel) -> F,
    ) -> F::Output {
        let _open = clerk.as_ref().map(Clerk::open);
        let mut busy: Option<Busy> = None;
        let mut next: Option<(Ticket, Option<Lull>)> = None;
        let _quiet = self.guard.quiet();
        let (canceller, cancel) = watch::channel(false);
        let running = run(self.notices.clone(), cancel);
        tokio::pin!(running);
        let notices = self.notices.clone();
        let mut leaving = self.leaving.clone();
        let mut written = self.begin_below(holder);
        let output = loop {
            let until_tick = self.until_tick();
            // What is told while somebody else asks would stand in the row of the question, behind what is being answered.
            let is_free = written.is_none() && busy.is_none() && holder == Holder::Prompt;
            let wanted = tokio::select! {
                biased;
                _ = self.interrupts.recv() => self.stop(),
                // The guard is gone only when the program is: then nothing is left to cancel.
                Ok(_) = leaving.wait_for(Option::is_some), if !*canceller.borrow() => self.leave(),
                () = done(&mut written) => { written = None; Wanted::Nothing }
                () = answered(&mut busy) => {
                    busy = None;
                    written = self.resume_below();
                    Wanted::Nothing
                }
                news = news(&mut self.below) => self.heard(news),
                ticket = next_question(clerk.as_ref()), if is_free && next.is_none() => {
                    next = Some((ticket, self.below.as_ref().and_then(Below::lull)));
                    Wanted::Nothing
                }
                () = may_ask(&mut next), if is_free => {
                    self.make_room().await;
                    busy = clerk.as_ref().zip(next.take()).map(|(clerk, (ticket, _))| clerk.begin(ticket));
                    Wanted::Nothing
                }
                () = notices.changed(), if is_free => { written = self.show_news(); Wanted::Nothing }
                () = due(until_tick), if is_free => { written = self.show_news(); Wanted::Nothing }
                output = &mut running => break output,
            };
            if wanted == Wanted::Stop {
                canceller.send_replace(true);
                busy.iter().for_each(Busy::take_back);
            }
        };
        give_back(busy).await;
        done_now(written).await;
        self.end_below().await;
        output
    }

    /// Shows what was told, and how much time has passed.
    fn show_news(&mut self) -> Option<Written> {
        let mut out = self.render();
        self.renderer.tick(self.began.elapsed(), &mut out);
        self.begin(out)
    }

    /// Begins to write a batch, with what is below around it.
    fn begin(&mut self, out: Output) -> Option<Written> {
        let out = self.with_below(out);
        (!out.is_empty()).then(|| self.screen.begin(out))
    }

    fn with_below(&mut self, out: Output) -> Output {
        let place = Place {
            column: self.renderer.column(),
            now: self.began.elapsed(),
        };
        let look = self.renderer.look();
        match &mut self.below {
            Some(below) => below.over(out, place, look, &self.guard),
            None => out,
        }
    }

    /// From now on keys are read and something is drawn below the stream, if nobody else has the terminal.
    fn begin_below(&mut self, holder: Holder) -> Option<Written> {
        let now = self.began.elapsed();
        self.below.as_mut()?.begin(now);
        match holder {
            Holder::Prompt => self.resume_below(),
            Holder::Other => None,
        }
    }

    fn resume_below(&mut self) -> Option<Written> {
        if self.leave_status().is_none() {
            self.below.as_mut()?.hand_over(Holder::Prompt);
        }
        self.begin(Output::new())
    }

    /// What ran is over: what came last is shown, and nothing is left below it.
    async fn end_below(&mut self) {
        let news = match &mut self.below {
            Some(below) => below.settle().await,
            None => Vec::new(),
        };
        for news in news {
            self.heard(news);
        }
        self.hand_over();
        let out = self.render();
        let out = self.with_below(out);
        self.screen.write(out).await;
        if self.below.is_some() {
            self.guard.footer_ended();
        }
    }

    fn hand_over(&mut self) {
        if let Some(below) = &mut self.below {
            below.hand_over(Holder::Other);
        }
    }

    /// The person stops what runs.
    fn stop(&mut self) -> Wanted {
        self.hold_back();
        Wanted::Stop
    }

    /// The program is told to leave: the terminal is given back already.
    fn leave(&mut self) -> Wanted {
        self.hand_over();
        Wanted::Stop
    }

    fn heard(&mut self, news: News) -> Wanted {
        match news {
            News::Changed => Wanted::Nothing,
            News::Stop => Wanted::Stop,
            News::Steered(line) => {
                self.steered.push(line);
                Wanted::Nothing
            }
            News::Failed(problem) => {
                self.notices.status(problem);
                Wanted::Nothing
            }
        }
    }

    /// Shows what came so far, and leaves an empty line to write on.
    async fn make_room(&mut self) {
        self.hand_over();
        let mut out = self.render();
        self.renderer.finish(&mut out);
        let out = self.with_below(out);
        self.screen.write(out).await;
    }

    /// How long until something on the screen counts down by one.
    fn until_tick(&self) -> Option<Duration> {
        let below = self.below.as_ref().and_then(Below::due);
        let due = self.renderer.tick_due().into_iter().chain(below).min()?;
        Some(due.saturating_sub(self.began.elapsed()))
    }

    /// The terminal's size may have changed.
    pub(super) fn fit(&mut self) {
        let look = self.renderer.look();
        if look.form == Form::Framed {
            self.renderer.set_look(look.resized(rustix::stdio::stdout()));
        }
    }

    fn render(&mut self) -> Output {
        self.fit();
        let now = self.began.elapsed();
        let mut out = Output::new();
        for notice in self.notices.drain() {
            self.renderer.notice(&notice, now, &mut out);
            if let Some(below) = &mut self.below {
                below.noticed(&notice, now);
            }
            if let Some(warning) = self.gauge.notice(&notice) {
                self.renderer.status(&warning, &mut out);
            }
        }
        for line in self.steered.drain(..) {
            self.renderer.steered(STEERED_MARK, &line, &mut out);
        }
        out
    }
}

/// What the loop has to do about what happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Nothing,
    Stop,
}

/// What the person does below the stream; never anything where there is nothing below.
async fn news(below: &mut Option<Below>) -> News {
    match below {
        Some(below) => below.news().await,
        None => std::future::pending().await,
    }
}

/// Resolves when the question can be put: nobody types; never, without one.
async fn may_ask(next: &mut Option<(Ticket, Option<Lull>)>) {
    match next {
        Some((_, Some(lull))) => lull.over().await,
        Some((_, None)) => {}
        None => std::future::pending().await,
    }
}

/// Resolves after that pause; never, without one.
async fn due(pause: Option<Duration>) {
    match pause {
        // A timer would take a millisecond at least.
        Some(Duration::ZERO) => {}
        Some(pause) => tokio::time::sleep(pause).await,
        None => std::future::pending().await,
    }
}

/// Resolves when the batch is written; never, when none is being written.
async fn done(written: &mut Option<Written>) {
    match written {
        Some(written) => {
            let _ = written.await;
        }
        None => std::future::pending().await,
    }
}

async fn done_now(written: Option<Written>) {
    if let Some(written) = written {
        let _ = written.await;
    }
}
