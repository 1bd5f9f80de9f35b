//! Typing ahead: the keys that are pressed while something runs (SPEC 3.5a).
//!
//! A [`TypeAhead`] is there at a terminal with an editor, and reads it while the editor does not. [`keys`] makes keys of bytes,
//! [`draft`] is the line they edit, [`typed`] the lines that wait. What is to be done about a key that is more than text comes out
//! of [`TypeAhead::heard`]; lines that wait are taken one by one with [`TypeAhead::next`] once nothing runs.

mod draft;
mod keys;
mod lull;
mod tap;
mod typed;

pub use lull::Lull;
pub use typed::Wish;

use super::Repl;
use super::complete::{Behind, Whole};
use super::editor::face;
use super::prompt::PromptText;
use super::route::{Route, route};
use super::router::Router;
use crate::term::footer;
use keys::{Key, Keys};
use lull::Presses;
use rustix::process::Signal;
use std::io;
use std::time::Duration;
use tap::Tap;
use tokio::signal::unix::{self, SignalKind, signal};
use tokio::time::{Instant, timeout};
use typed::Typed;

/// Escape that nothing follows for so long is a key of its own.
const ESCAPE_ALONE_MS: u64 = 50;
/// A paste whose end does not come for so long has none.
const PASTE_END_MS: u64 = 500;
/// How long all that is on its way when a turn ends is waited for.
const SETTLE_MS_MAX: u64 = 3_000;

impl Repl {
    /// The next line that was typed ahead and sent, once it stands at the prompt as if it had been typed there. Without one, the
    /// next line begins with what was not sent.
    pub(super) async fn typed_ahead(&mut self, prompt: &PromptText) -> Option<String> {
        // A line that is offered is the person's to decide on first.
        if !self.prefill.is_empty() {
            return None;
        }
        let line = self.next_typed().await;
        let dropped_bytes = self.front.ahead().map_or(0, TypeAhead::take_dropped);
        if dropped_bytes > 0 {
            let text = format!("{dropped_bytes} bytes that were typed ahead are lost: there was no room for them");
            self.front.say(&text).await;
        }
        let Some(line) = line else {
            self.prefill = self.front.ahead().map(TypeAhead::take_draft).unwrap_or_default();
            return None;
        };
        self.recall.sent(&line);
        // The mark is to say where the line goes, which the shell may know better than a guess.
        if let Route::Open(text) = route(&line) {
            self.be_told(&text).await;
        }
        let look = self.front.renderer.look();
        let shown = face::left_behind(prompt, self.router.as_ref(), look, &line);
        self.front.print(&shown).await;
        Some(line)
    }

    /// Takes the first line that waits. Where it may have been meant for a program that is gone, it is only sent if it is ours or the
    /// shell's; else it and all behind it are the person's to send.
    async fn next_typed(&mut self) -> Option<String> {
        let (line, addressee) = self.front.ahead()?.first()?;
        let line = line.to_owned();
        let is_sent = match addressee {
            Addressee::Prompt => true,
            Addressee::Anybody => {
                self.is_surely_no_question(&line) || {
                    // The shell may know better: the line before has perhaps defined what this one runs.
                    self.hear_shell().await;
                    self.is_surely_no_question(&line)
                }
            }
        };
        if is_sent {
            return self.front.ahead()?.next();
        }
        self.front.hold_back();
        None
    }

    /// A password that came too late is no question to a model.
    fn is_surely_no_question(&self, line: &str) -> bool {
        match route(line) {
            Route::Nothing | Route::Meta(Ok(_)) | Route::Shell(_) => true,
            Route::Meta(Err(_)) | Route::Model(_) | Route::Why => false,
            Route::Open(text) => self.router.as_ref().is_some_and(|router| router.is_command(&text)),
        }
    }
}

/// What happened at the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Keys that ask for something, in order; none where they only changed what is typed.
    Keys(Vec<Wish>),
    /// The screen is not as it was: it has another size, or was somebody else's for a while.
    Screen,
}

/// To whom a line was typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressee {
    /// To the prompt: it was shown that it waits there.
    Prompt,
    /// Perhaps to the program that had the terminal.
    Anybody,
}

/// What is typed while something runs.
pub struct TypeAhead {
    tap: Tap,
    keys: Keys,
    typed: Typed,
    /// When a beginning of a key that is held is none any more.
    alone: Option<Instant>,
    presses: Presses,
    resized: unix::Signal,
    continued: unix::Signal,
}

impl TypeAhead {
    /// Reads nothing yet; `whole` says where a line ends. To be called within the runtime.
    ///
    /// # Errors
    /// Standard input or signals cannot be waited for.
    pub fn open(whole: Whole) -> io::Result<Self> {
        Ok(Self {
            tap: Tap::open()?,
            keys: Keys::default(),
            typed: Typed::new(whole),
            alone: None,
            presses: Presses::default(),
            resized: signal(SignalKind::window_change())?,
            continued: signal(SignalKind::from_raw(Signal::CONT.as_raw()))?,
        })
    }

    /// The next thing that happens. Nothing is lost when it is dropped.
    pub async fn heard(&mut self) -> Heard {
        tokio::select! {
            bytes = self.tap.bytes() => {
                self.presses.heard();
                Heard::Keys(self.take(&bytes))
            }
            () = until(self.alone) => {
                self.alone = None;
                let key = self.keys.pause();
                Heard::Keys(self.press(key.into_iter().collect()))
            }
            _ = self.resized.recv() => Heard::Screen,
            _ = self.continued.recv() => Heard::Screen,
        }
    }

    /// What whoever wants to ask has to wait for, where a line is being typed: the rest of it would be the answer. `None` where
    /// nobody types.
    pub fn lull(&self) -> Option<Lull> {
        let is_typing = self.typed.has_draft() || self.presses.are_recent() || self.tap.has_bytes();
        is_typing.then(|| self.presses.lull())
    }

    /// What was running is over: a key or a paste that is half read is read to its end, for whoever reads next could only take
    /// the rest of it for something else.
    pub async fn settle(&mut self) {
        let end = Instant::now() + Duration::from_millis(SETTLE_MS_MAX);
        while (self.keys.is_unfinished() || self.keys.is_pasting()) && Instant::now() < end {
            let pause_ms = if self.keys.is_pasting() {
                PASTE_END_MS
            } else {
                ESCAPE_ALONE_MS
            };
            match timeout(Duration::from_millis(pause_ms), self.tap.bytes()).await {
                // Nothing runs any more that could be stopped; what was to steer waits like the rest.
                Ok(bytes) => {
                    for wish in self.take(&bytes) {
                        self.put_off(wish);
                    }
                }
                Err(_) => break,
            }
        }
        self.end_keys();
    }

    /// Nothing comes any more of a key or a paste that is half read.
    fn end_keys(&mut self) {
        let rest = self.keys.end_paste().or_else(|| self.keys.pause());
        self.alone = None;
        for wish in self.press(rest.into_iter().collect()) {
            self.put_off(wish);
        }
    }

    /// What asks for something that nobody can do any more.
    fn put_off(&mut self, wish: Wish) {
        match wish {
            Wish::Steer(line) => self.typed.put(line),
            Wish::Stop => {}
        }
    }

    /// A line that could not go where it was sent waits for the end of the turn.
    pub fn put(&mut self, line: String) {
        self.typed.put(line);
    }

    /// The lines that wait are the person's again: what they were to come after was stopped.
    pub fn hold_back(&mut self) {
        let returned = self.tap.take_all_returned();
        self.press_returned(&returned);
        self.end_keys();
        self.typed.hold_back();
    }

    /// The first line that waits, which goes on waiting, and to whom it was typed.
    pub fn first(&mut self) -> Option<(&str, Addressee)> {
        let addressee = match self.typed.first() {
            Some(_) => Addressee::Prompt,
            None => Addressee::Anybody,
        };
        while self.typed.first().is_none() {
            let Some(byte) = self.tap.take_returned() else {
                self.end_keys();
                break;
            };
            self.press_returned(&[byte]);
        }
        self.typed.first().map(|line| (line, addressee))
    }

    /// Takes the first line that waits.
    pub fn next(&mut self) -> Option<String> {
        self.typed.next()
    }

    /// What asks for something came too late for it.
    fn press_returned(&mut self, bytes: &[u8]) {
        for wish in self.take(bytes) {
            self.put_off(wish);
        }
    }

    /// Bytes come back that somebody else read, and that nobody had a use for.
    pub fn give_back(&mut self, bytes: &[u8]) {
        self.tap.give_back(bytes);
    }

    /// Text that nobody has sent comes behind what came back. Several rows of it may be anybody's, so that nothing of it or before
    /// it is sent by itself.
    pub fn go_on_with(&mut self, draft: &str) {
        let text = keys::text_of(draft.as_bytes());
        if text.contains('\n') {
            self.hold_back();
            self.press(vec![Key::Pasted(text)]);
        } else {
            self.tap.give_back(text.as_bytes());
        }
    }

    /// Takes the bytes that came back, for a program that has the terminal now.
    pub fn unread(&mut self) -> Vec<u8> {
        self.tap.take_all_returned()
    }

    /// Takes the number of bytes there was no room for.
    pub fn take_dropped(&mut self) -> usize {
        self.tap.take_dropped() + self.typed.take_dropped()
    }

    /// Takes the line that is not done.
    pub fn take_draft(&mut self) -> String {
        self.typed.take_draft()
    }

    /// As the footer shows it.
    pub fn shown(&self, router: Option<&Router>) -> footer::Typed<'_> {
        self.typed.shown(router)
    }

    fn take(&mut self, bytes: &[u8]) -> Vec<Wish> {
        let keys = self.keys.push(bytes);
        let is_open = self.keys.is_unfinished();
        self.alone = is_open.then(|| Instant::now() + Duration::from_millis(ESCAPE_ALONE_MS));
        self.press(keys)
    }

    fn press(&mut self, keys: Vec<Key>) -> Vec<Wish> {
        let mut keys = keys.iter().peekable();
        let mut wishes = Vec::new();
        while let Some(key) = keys.next() {
            let behind = match (keys.peek(), self.tap.has_returned()) {
                (None, false) => Behind::Nothing,
                (Some(_), _) | (None, true) => Behind::More,
            };
            wishes.extend(self.typed.key(key, behind));
        }
        wishes
    }
}

/// Resolves then; never, without a time.
async fn until(then: Option<Instant>) {
    match then {
        Some(then) => tokio::time::sleep_until(then).await,
        None => std::future::pending().await,
    }
}
