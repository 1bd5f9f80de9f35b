//! The thread that looks after one shell: it alone reads and writes the shell's terminal.
//!
//! Commands wait in a queue until the shell waits for one; [`beside`] is about what is written meanwhile, [`ask`] about hidden
//! lines, [`patience`] about what has to happen though nothing came, and about the person who would not wait; [`ahead`] about keys
//! that no program took, [`pause`] about the moment in which they are taken back, [`held`] about those that were pressed before, and
//! [`reading`] about who wants them; [`interrupt`] about a Ctrl-C that a shell loses, [`process`] about a shell that is stopped or
//! becomes another program, [`mend`] about a prompt without marks, [`leave`] about the end.

mod ahead;
mod ask;
mod beside;
mod held;
mod interrupt;
mod leave;
mod mend;
mod patience;
mod pause;
mod process;
mod reading;

use crate::capture::Capture;
use crate::dialect::Dialect;
use crate::folder::{self, Folder};
use crate::live::{Ended, Ran, Relay, Shared, Size};
use crate::marks::{Keys, Mark, Marks, Piece};
use crate::phase::{Outcome, Phase, Step};
use crate::processes;
use ahead::{Ahead, Taking, nonblocking};
use beside::Aside;
use held::Held;
use interrupt::Pressed;
use mend::LineEditor;
pub use pause::Pause;
pub use process::Stops;
use process::Watched;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::process::{Pid, Signal, kill_process_group};
use rustix::termios::LocalModes;
use std::collections::VecDeque;
use std::io;
use std::mem::discriminant;
use std::process::Child;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::oneshot;

/// Bytes read at once.
const PIECE_BYTES: usize = 64 * 1024;
/// Bytes of keys that wait for a program to read them; more are left in the terminal.
const KEYS_WAITING_MAX: usize = 64 * 1024;
/// Stack of the thread.
const STACK_BYTES: usize = 512 * 1024;
/// Around what is pasted, so that the shell's line editor takes it as it is.
const PASTE_BEGIN: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";
const CTRL_C: u8 = 0x03;

/// A command to type.
pub struct Typed {
    pub command: String,
    pub relay: Relay,
    pub done: oneshot::Sender<Ran>,
}

/// A line to run unseen.
pub struct Asked {
    pub line: String,
    /// Nobody waits for longer.
    pub until: Instant,
    pub done: oneshot::Sender<Option<Vec<u8>>>,
}

/// What the keeper is told.
pub enum Order {
    Type(Typed),
    Ask(Asked),
    Resize(Size),
    HangUp,
}

/// The command that is at the shell.
struct Current {
    typed: Typed,
    began: Instant,
    /// How long it took, once it is over.
    took: Option<Duration>,
    output: Capture,
    /// Keys that were pressed before it ran.
    early: Vec<u8>,
    /// Keys that were pressed before it was typed.
    held: Held,
    /// Keys that went to it, and for which its terminal had no room.
    unwritten: Vec<u8>,
    ahead: Ahead,
}

/// Whether the keeper goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    GoOn,
    Leave,
}

pub struct Keeper {
    terminal: OwnedFd,
    child: Child,
    dialect: Dialect,
    marks: Marks,
    phase: Phase,
    /// Since when it is in that phase.
    since: Instant,
    current: Option<Current>,
    queue: VecDeque<Typed>,
    asking: Option<Asked>,
    asks: Vec<Asked>,
    /// What is still to be written to the shell.
    pending: VecDeque<u8>,
    aside: Aside,
    /// When Ctrl-C was last pressed to withdraw a line; of the one that is withdrawn now, in that phase.
    withdrawn_at: Option<Instant>,
    taking: Taking,
    /// A Ctrl-C of the person's that nobody may have got.
    pressed: Option<Pressed>,
    line_editor: LineEditor,
    watched: Watched,
    pause: Pause,
    /// Ctrl-C that gave up a command for which the start-up files were not done.
    start_interrupts: u32,
    beside: Box<dyn FnMut(&str) + Send>,
    size: Option<Size>,
    buffer: Vec<u8>,
    /// Has the start-up files, and goes when the shell has gone.
    folder: Folder,
    shared: Arc<Shared>,
}

/// What a keeper is made of.
pub struct Kept {
    pub terminal: OwnedFd,
    pub child: Child,
    pub dialect: Dialect,
    pub keys: Keys,
    pub folder: Folder,
    pub pause: Pause,
    pub shared: Arc<Shared>,
    pub beside: Box<dyn FnMut(&str) + Send>,
}

impl Keeper {
    pub fn new(kept: Kept) -> io::Result<Self> {
        nonblocking(&kept.terminal)?;
        Ok(Self {
            terminal: kept.terminal,
            child: kept.child,
            dialect: kept.dialect,
            marks: Marks::new(&kept.keys),
            phase: Phase::Starting,
            since: Instant::now(),
            current: None,
            queue: VecDeque::new(),
            asking: None,
            asks: Vec::new(),
            pending: VecDeque::new(),
            aside: Aside::default(),
            withdrawn_at: None,
            taking: Taking::Answered,
            pressed: None,
            line_editor: LineEditor::default(),
            watched: Watched::new(),
            pause: kept.pause,
            start_interrupts: 0,
            beside: kept.beside,
            size: None,
            buffer: vec![0; PIECE_BYTES],
            folder: kept.folder,
            shared: kept.shared,
        })
    }

    /// Starts the thread.
    pub fn keep(mut self, orders: Receiver<Order>, wake: Arc<OwnedFd>) -> io::Result<()> {
        let thread = std::thread::Builder::new()
            .name("shell".to_owned())
            .stack_size(STACK_BYTES);
        thread.spawn(move || {
            // Here nobody waits for it: the shell reads its start-up files meanwhile.
            folder::sweep(&std::env::temp_dir(), SystemTime::now());
            while self.turn(&orders, &wake) == Next::GoOn {}
            self.end();
        })?;
        Ok(())
    }

    /// Its process.
    fn shell(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sleeps until something happens, and does what follows.
    fn turn(&mut self, orders: &Receiver<Order>, wake: &OwnedFd) -> Next {
        self.sleep(wake);
        loop {
            match orders.try_recv() {
                Ok(Order::Type(typed)) => self.queue.push_back(typed),
                Ok(Order::Ask(asked)) => self.asks.push(asked),
                Ok(Order::Resize(size)) => self.resize(size),
                Ok(Order::HangUp) | Err(TryRecvError::Disconnected) => return Next::Leave,
                Err(TryRecvError::Empty) => break,
            }
        }
        if self.look_at_process() == Next::Leave || self.read() == Next::Leave || self.has_exited() {
            return Next::Leave;
        }
        if let Some(prompt) = self.believed_prompt() {
            self.take(prompt);
        }
        self.type_next();
        self.ask_next();
        self.take_keys();
        self.give_held(Instant::now());
        self.look_at_the_clock();
        self.note_interrupt();
        self.write();
        Next::GoOn
    }

    fn sleep(&self, wake: &OwnedFd) {
        let now = Instant::now();
        let until = self.next_look(now);
        let timeout = Timespec::try_from(until.saturating_duration_since(now)).ok();
        let mut interest = PollFlags::IN;
        if !self.pending.is_empty() {
            interest |= PollFlags::OUT;
        }
        let mut sources = vec![PollFd::new(&self.terminal, interest), PollFd::new(wake, PollFlags::IN)];
        if let Some(keys) = self.keys() {
            sources.push(PollFd::new(keys, PollFlags::IN));
        }
        // Interrupted or not, every source is looked at.
        let _ = poll(&mut sources, timeout.as_ref());
        let mut count = [0; 8];
        let _ = rustix::io::read(wake, &mut count);
    }

    fn write(&mut self) {
        while !self.pending.is_empty() {
            let (first, _) = self.pending.as_slices();
            match rustix::io::write(self.terminal.as_fd(), first) {
                Ok(len) => drop(self.pending.drain(..len)),
                // The rest when there is room; a terminal that is gone is seen when it is read.
                Err(_) => return,
            }
        }
    }

    /// Reads what is there, one piece at most, so that keys and orders are never starved.
    fn read(&mut self) -> Next {
        match rustix::io::read(self.terminal.as_fd(), &mut *self.buffer) {
            Ok(0) => Next::Leave,
            Ok(len) => {
                let pieces = self.marks.read(self.buffer.get(..len).unwrap_or_default());
                for piece in pieces {
                    if !self.is_doubtful(&piece) {
                        self.take(piece);
                    }
                }
                Next::GoOn
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Next::GoOn,
            // The last one who had the terminal open has closed it.
            Err(_) => Next::Leave,
        }
    }

    fn take(&mut self, piece: Piece) {
        if let Piece::Output(bytes) = &piece {
            self.line_editor.read(bytes);
        }
        let waits = match piece {
            Piece::Mark(Mark::Ended { waits, .. }) => waits,
            Piece::Mark(_) | Piece::Output(_) => None,
        };
        let before = discriminant(&self.phase);
        let step = self.phase.step(piece);
        if discriminant(&self.phase) != before {
            self.entered();
        }
        self.act(step);
        if let Some(number) = waits {
            self.paused(number);
        }
    }

    /// The shell is told to do something else.
    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.entered();
    }

    /// The shell does something else now.
    fn entered(&mut self) {
        self.since = Instant::now();
        if matches!(self.phase, Phase::Typed(_) | Phase::Running) {
            self.line_editor.forget();
        }
        // As the system knows it: any name, and nobody has to say it.
        if matches!(self.phase, Phase::Over(_) | Phase::Idle)
            && let Some(directory) = processes::directory(self.shell())
        {
            self.shared.moved(&directory);
        }
        match (&self.phase, &mut self.current) {
            (Phase::Running | Phase::Questioned, Some(current)) => {
                let early = std::mem::take(&mut current.early);
                if !early.is_empty() {
                    self.press(&early);
                }
            }
            (Phase::Over(_), Some(current)) => {
                current.took = Some(current.began.elapsed());
                current.unwritten.extend(self.pending.drain(..));
            }
            (
                Phase::Starting
                | Phase::Idle
                | Phase::Typed(_)
                | Phase::Accepted(_)
                | Phase::Questioned
                | Phase::Running
                | Phase::Over(_)
                | Phase::Taking(..)
                | Phase::Withdrawn(_)
                | Phase::Ahead
                | Phase::Asked,
                _,
            ) => {}
        }
    }

    fn act(&mut self, step: Step) {
        match step {
            Step::None => {}
            Step::Show(bytes) => {
                if let Some(current) = &mut self.current {
                    current.output.push(&bytes);
                    current.typed.relay.screen.show(&bytes);
                }
            }
            Step::Beside(bytes) => self.beside(&bytes),
            Step::Prompted(outcome) => self.prompted(outcome),
            Step::Refused(said) => {
                self.act(Step::Show(said));
                self.prompted(Outcome::Refused(None));
            }
            Step::Taken { outcome, text, beside } => {
                self.beside(&beside);
                self.taken(outcome, text);
            }
            Step::Withdraw => self.withdraw(),
            Step::Answered => self.answered(),
        }
    }

    /// Types the next command, if the shell waits for one.
    fn type_next(&mut self) {
        if self.phase != Phase::Idle || self.current.is_some() {
            return;
        }
        let Some(mut typed) = self.queue.pop_front() else {
            return;
        };
        self.tell_aside();
        self.pending.extend(PASTE_BEGIN);
        self.pending.extend(typed.command.as_bytes());
        self.pending.extend(PASTE_END);
        self.pending.extend(self.dialect.accept());
        self.enter(Phase::Typed(Vec::new()));
        self.current = Some(Current {
            held: Held::new(std::mem::take(&mut typed.relay.ahead), Instant::now()),
            unwritten: Vec::new(),
            typed,
            began: Instant::now(),
            took: None,
            output: Capture::new(),
            early: Vec::new(),
            ahead: Ahead::default(),
        });
    }

    /// Presses Ctrl-C, to be pressed again until the prompt is there.
    fn withdraw(&mut self) {
        self.pending.push_back(CTRL_C);
        // A key of ours may have begun a program while the terminal makes no signals of keys. Two would end the next line too.
        let settings = rustix::termios::tcgetattr(&self.terminal);
        let makes_signals = settings.is_ok_and(|settings| settings.local_modes.contains(LocalModes::ISIG));
        if !makes_signals && let Ok(group) = rustix::termios::tcgetpgrp(&self.terminal) {
            let _ = kill_process_group(group, Signal::INT);
        }
        // A fish whose line is empty says nothing at Ctrl-C, and everything at this.
        match self.dialect {
            Dialect::Fish => self.pending.extend(self.dialect.take()),
            Dialect::Bash | Dialect::Zsh => {}
        }
        self.withdrawn_at = Some(Instant::now());
    }

    fn finish(&mut self, ended: Ended) {
        let Some(mut current) = self.current.take() else { return };
        current.unwritten.extend(current.held.take());
        let (typed_ahead, draft) = current.ahead.told(&self.terminal);
        let ran = Ran {
            ended,
            output: current.output,
            elapsed: current.took.unwrap_or_else(|| current.began.elapsed()),
            directory: self.shared.directory(),
            typed_ahead,
            draft,
            unread: current.unwritten,
            stops: std::mem::take(&mut self.watched.stops),
        };
        // Whoever does not wait any more has no use for it.
        let _ = current.typed.done.send(ran);
    }

    fn resize(&mut self, size: Size) {
        if self.size == Some(size) {
            return;
        }
        self.size = Some(size);
        let window = rustix::termios::Winsize {
            ws_row: size.rows,
            ws_col: size.columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let _ = rustix::termios::tcsetwinsize(&self.terminal, window);
    }
}
