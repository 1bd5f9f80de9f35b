//! What stands between a driver and the person: notices are shown as they come, Ctrl-C reaches the driver at once.
//!
//! [`Front::watch`] runs anything that reports through notices. It never waits for the terminal while it could drive, and
//! never drives blindly: batches are rendered when the one before is written.

use crate::mcp::clerk::{Busy, Clerk, answered, give_back, next_question};
use crate::mcp::desk::Open;
use crate::paths::Environment;
use crate::term::countdown::StatusLine;
use crate::term::guard::{Guard, Leaving};
use crate::term::render::Renderer;
use crate::term::screen::{Screen, Written};
use crate::term::{Look, Output, Stream};
use crate::usage::Gauge;
use aish_core::redact::Redactor;
use aish_engine::Notices;
use aish_tools::Cancel;
use futures_util::FutureExt as _;
use std::future::Future;
use std::io;
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// The person's side.
pub struct Front {
    /// Turns notices into text.
    pub renderer: Renderer,
    /// What is told.
    pub notices: Notices,
    /// How the terminal was found.
    pub guard: Guard,
    /// Answers servers that ask while something runs.
    clerk: Option<Clerk>,
    gauge: Gauge,
    screen: Screen,
    interrupts: Signal,
    leaving: Leaving,
    began: Instant,
}

impl Front {
    /// Takes the terminal. `environment` says how it wants things to look, `gauge` when the context is nearly full.
    ///
    /// # Errors
    /// Signals or threads are not to be had.
    pub fn take(environment: &Environment, redactor: Redactor, gauge: Gauge) -> io::Result<Self> {
        let guard = Guard::install()?;
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
        })
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
        let clerk = self.clerk.clone();
        self.watch_with(clerk, run).await
    }

    /// The same for what has the terminal itself: servers wait.
    pub async fn watch_asking<F: Future>(&mut self, run: impl FnOnce(Notices, Cancel) -> F) -> F::Output {
        self.watch_with(None, run).await
    }

    async fn watch_with<F: Future>(
        &mut self,
        clerk: Option<Clerk>,
        run: impl FnOnce(Notices, Cancel) -> F,
    ) -> F::Output {
        let _open = clerk.as_ref().map(Clerk::open);
        let mut busy: Option<Busy> = None;
        let _quiet = self.guard.quiet();
        let (canceller, cancel) = watch::channel(false);
        let running = run(self.notices.clone(), cancel);
        tokio::pin!(running);
        let notices = self.notices.clone();
        let mut leaving = self.leaving.clone();
        let mut written: Option<Written> = None;
        let output = loop {
            let until_tick = self.until_tick();
            tokio::select! {
                biased;
                _ = self.interrupts.recv() => {
                    canceller.send_replace(true);
                    busy.iter().for_each(Busy::take_back);
                }
                left = leaving.wait_for(Option::is_some), if !*canceller.borrow() => {
                    // The guard is gone only when the program is: then nothing is left to cancel.
                    if left.is_ok() {
                        canceller.send_replace(true);
                        busy.iter().for_each(Busy::take_back);
                    }
                }
                () = done(&mut written) => { written = None; }
                () = answered(&mut busy) => { busy = None; }
                ticket = next_question(clerk.as_ref()), if busy.is_none() && written.is_none() => {
                    self.make_room().await;
                    busy = clerk.as_ref().map(|clerk| clerk.begin(ticket));
                }
                () = notices.changed(), if written.is_none() && busy.is_none() => {
                    let out = self.render();
                    if !out.is_empty() {
                        written = Some(self.screen.begin(out));
                    }
                }
                () = due(until_tick), if written.is_none() && busy.is_none() => {
                    let mut out = Output::new();
                    self.renderer.tick(self.began.elapsed(), &mut out);
                    written = Some(self.screen.begin(out));
                }
                output = &mut running => break output,
            }
        };
        give_back(busy).await;
        done_now(written).await;
        self.catch_up().await;
        output
    }

    /// Shows what came so far, and leaves an empty line to write on.
    async fn make_room(&mut self) {
        let mut out = self.render();
        self.renderer.finish(&mut out);
        self.screen.write(out).await;
    }

    /// How long until something on the screen counts down by one.
    fn until_tick(&self) -> Option<Duration> {
        let due = self.renderer.tick_due()?;
        Some(due.saturating_sub(self.began.elapsed()))
    }

    /// The terminal's size may have changed.
    fn fit(&mut self) {
        let look = self.renderer.look();
        if look.form == crate::term::Form::Framed {
            self.renderer.set_look(look.resized(rustix::stdio::stdout()));
        }
    }

    fn render(&mut self) -> Output {
        self.fit();
        let now = self.began.elapsed();
        let mut out = Output::new();
        for notice in self.notices.drain() {
            self.renderer.notice(&notice, now, &mut out);
            if let Some(warning) = self.gauge.notice(&notice) {
                self.renderer.status(&warning, &mut out);
            }
        }
        out
    }
}

/// Resolves after that pause; never, without one.
async fn due(pause: Option<Duration>) {
    match pause {
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
