//! The thread that looks after one shell: it alone reads and writes the shell's terminal.

use crate::capture::Capture;
use crate::dialect::Dialect;
use crate::live::{Ended, Ran, Relay, Shared, Size, Stage, directory_of};
use crate::marks::Marks;
use crate::phase::{NotRun, Phase, Step};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::collections::VecDeque;
use std::io;
use std::process::Child;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::sync::oneshot;

/// Bytes read at once.
const PIECE_BYTES: usize = 64 * 1024;
/// Bytes of keys that wait for a program to read them; more are left in the terminal.
const KEYS_WAITING_MAX: usize = 64 * 1024;
/// How long a typed command may take to begin. A shell that was waiting for more (fish does not say so) never begins.
const BEGIN_MAX_MS: u64 = 3_000;
/// Quiet after which what a job printed is told.
const QUIET_MS: u64 = 40;
/// How often Ctrl-C is pressed to withdraw a line: one that comes while the shell sets its terminal up is lost.
const WITHDRAW_AGAIN_MS: u64 = 30;
/// How often it is looked whether the shell is still there, while nothing happens.
const LOOK_MS: u64 = 1_000;
/// Between hanging up and killing.
const HANG_UP_GRACE_MS: u64 = 500;
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

/// What the keeper is told.
pub enum Order {
    Type(Typed),
    Interrupt,
    Resize(Size),
    HangUp,
}

/// The command that is at the shell.
struct Current {
    typed: Typed,
    began: Instant,
    output: Capture,
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
    current: Option<Current>,
    queue: VecDeque<Typed>,
    /// What is still to be written to the shell.
    pending: VecDeque<u8>,
    /// What came while no command ran.
    aside: Capture,
    aside_since: Option<Instant>,
    /// When Ctrl-C was last pressed to withdraw a line.
    withdrawn_at: Option<Instant>,
    beside: Box<dyn FnMut(&str) + Send>,
    size: Option<Size>,
    buffer: Vec<u8>,
}

impl Keeper {
    pub fn new(
        (terminal, child): (OwnedFd, Child),
        dialect: Dialect,
        key: &str,
        beside: Box<dyn FnMut(&str) + Send>,
    ) -> io::Result<Self> {
        let flags = rustix::fs::fcntl_getfl(&terminal)?;
        rustix::fs::fcntl_setfl(&terminal, flags | OFlags::NONBLOCK)?;
        Ok(Self {
            terminal,
            child,
            dialect,
            marks: Marks::new(key),
            phase: Phase::Starting,
            current: None,
            queue: VecDeque::new(),
            pending: VecDeque::new(),
            aside: Capture::new(),
            aside_since: None,
            withdrawn_at: None,
            beside,
            size: None,
            buffer: vec![0; PIECE_BYTES],
        })
    }

    /// Starts the thread. `folder` has the start-up files, and goes when the shell has gone.
    pub fn keep(
        mut self,
        orders: Receiver<Order>,
        wake: Arc<OwnedFd>,
        shared: Arc<Shared>,
        folder: TempDir,
    ) -> io::Result<()> {
        let thread = std::thread::Builder::new()
            .name("shell".to_owned())
            .stack_size(STACK_BYTES);
        thread.spawn(move || {
            let _folder = folder;
            while self.turn(&orders, &wake, &shared) == Next::GoOn {}
            self.end(&shared);
        })?;
        Ok(())
    }

    /// Sleeps until something happens, and does what follows.
    fn turn(&mut self, orders: &Receiver<Order>, wake: &OwnedFd, shared: &Shared) -> Next {
        self.sleep(wake);
        loop {
            match orders.try_recv() {
                Ok(Order::Type(typed)) => self.queue.push_back(typed),
                Ok(Order::Interrupt) => self.pending.push_back(CTRL_C),
                Ok(Order::Resize(size)) => self.resize(size),
                Ok(Order::HangUp) | Err(TryRecvError::Disconnected) => return Next::Leave,
                Err(TryRecvError::Empty) => break,
            }
        }
        if self.read(shared) == Next::Leave || self.has_exited() {
            return Next::Leave;
        }
        self.type_next();
        self.take_keys();
        self.write();
        self.look_at_the_clock();
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

    /// When something has to happen though nothing did.
    fn next_look(&self, now: Instant) -> Instant {
        let look = now + Duration::from_millis(LOOK_MS);
        let quiet = self.aside_since.map(|since| since + Duration::from_millis(QUIET_MS));
        let begin = self.must_begin_by();
        let withdraw = self
            .withdrawn_at
            .map(|at| at + Duration::from_millis(WITHDRAW_AGAIN_MS));
        [quiet, begin, withdraw].into_iter().flatten().fold(look, Instant::min)
    }

    fn must_begin_by(&self) -> Option<Instant> {
        match (&self.phase, &self.current) {
            (Phase::Typed(_), Some(current)) => Some(current.began + Duration::from_millis(BEGIN_MAX_MS)),
            (
                Phase::Starting
                | Phase::Idle
                | Phase::Typed(_)
                | Phase::Running
                | Phase::Over(_)
                | Phase::Withdrawn(_)
                | Phase::Ahead,
                _,
            ) => None,
        }
    }

    /// Where keys come from now: while a command runs, or start-up files perhaps ask for something.
    fn keys(&self) -> Option<&OwnedFd> {
        let relay = match self.phase {
            Phase::Running => self.current.as_ref().map(|current| &current.typed.relay),
            Phase::Starting => self.queue.front().map(|typed| &typed.relay),
            Phase::Idle | Phase::Typed(_) | Phase::Over(_) | Phase::Withdrawn(_) | Phase::Ahead => None,
        };
        let has_room = self.pending.len() < KEYS_WAITING_MAX;
        relay.and_then(|relay| relay.keys.as_ref()).filter(|_| has_room)
    }

    fn take_keys(&mut self) {
        let Some(keys) = self.keys() else { return };
        let mut sources = [PollFd::new(keys, PollFlags::IN)];
        let now = Timespec::default();
        let _ = poll(&mut sources, Some(&now));
        if !sources.iter().any(|source| source.revents().contains(PollFlags::IN)) {
            return;
        }
        let mut pressed = [0; 4096];
        if let Ok(len) = rustix::io::read(keys, &mut pressed) {
            self.pending.extend(pressed.get(..len).unwrap_or_default());
        }
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
    fn read(&mut self, shared: &Shared) -> Next {
        match rustix::io::read(self.terminal.as_fd(), &mut *self.buffer) {
            Ok(0) => Next::Leave,
            Ok(len) => {
                let pieces = self.marks.read(self.buffer.get(..len).unwrap_or_default());
                for piece in pieces {
                    let step = self.phase.step(piece);
                    self.act(step, shared);
                }
                Next::GoOn
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Next::GoOn,
            // The last one who had the terminal open has closed it.
            Err(_) => Next::Leave,
        }
    }

    fn act(&mut self, step: Step, shared: &Shared) {
        match step {
            Step::None | Step::Started => {}
            Step::Show(bytes) => {
                if let Some(current) = &mut self.current {
                    current.output.push(&bytes);
                    current.typed.relay.screen.show(&bytes);
                }
            }
            Step::Beside(bytes) => self.beside(&bytes),
            Step::Finished(status) => self.finish(Ended::Exited(status), shared),
            Step::Withdraw => self.withdraw(),
            Step::NotRun(why) => self.finish(Ended::NotRun(why), shared),
            Step::Moved(path) => {
                if let Some(path) = directory_of(&path) {
                    shared.moved(path);
                }
            }
        }
    }

    /// What comes while no command runs. While start-up files are read and somebody waits, it is theirs to see at once.
    fn beside(&mut self, bytes: &[u8]) {
        if self.phase == Phase::Starting
            && let Some(waiting) = self.queue.front_mut()
        {
            waiting.relay.screen.show(bytes);
            return;
        }
        self.aside.push(bytes);
        self.aside_since = Some(Instant::now());
    }

    /// Types the next command, if the shell waits for one.
    fn type_next(&mut self) {
        if self.phase != Phase::Idle {
            return;
        }
        let Some(typed) = self.queue.pop_front() else {
            return;
        };
        self.tell_aside();
        self.pending.extend(PASTE_BEGIN);
        self.pending.extend(typed.command.as_bytes());
        self.pending.extend(PASTE_END);
        self.pending.extend(self.dialect.accept());
        self.phase = Phase::Typed(Vec::new());
        self.current = Some(Current {
            typed,
            began: Instant::now(),
            output: Capture::new(),
        });
    }

    fn look_at_the_clock(&mut self) {
        let now = Instant::now();
        if self.must_begin_by().is_some_and(|by| now >= by) {
            self.phase = Phase::Withdrawn(NotRun::Incomplete);
            self.withdraw();
        }
        let again = Duration::from_millis(WITHDRAW_AGAIN_MS);
        if self.withdrawn_at.is_some_and(|at| now >= at + again) {
            self.withdraw();
        }
        let quiet = Duration::from_millis(QUIET_MS);
        if self.aside_since.is_some_and(|since| now >= since + quiet) {
            self.tell_aside();
        }
    }

    /// Presses Ctrl-C, to be pressed again until the prompt is there.
    fn withdraw(&mut self) {
        self.pending.push_back(CTRL_C);
        self.withdrawn_at = Some(Instant::now());
    }

    fn tell_aside(&mut self) {
        self.aside_since = None;
        let aside = std::mem::take(&mut self.aside);
        let text = aside.text(self.size);
        if !text.trim().is_empty() {
            (self.beside)(&text);
        }
    }

    fn finish(&mut self, ended: Ended, shared: &Shared) {
        self.withdrawn_at = None;
        let Some(current) = self.current.take() else { return };
        let ran = Ran {
            ended,
            output: current.output,
            elapsed: current.began.elapsed(),
            directory: shared.directory(),
        };
        // Whoever does not wait any more has no use for it.
        let _ = current.typed.done.send(ran);
    }

    fn resize(&mut self, size: Size) {
        self.size = Some(size);
        let window = rustix::termios::Winsize {
            ws_row: size.rows,
            ws_col: size.columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let _ = rustix::termios::tcsetwinsize(&self.terminal, window);
    }

    fn has_exited(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)) | Err(_))
    }

    /// Takes what the shell still wrote, ends it if it is still there, and tells whoever waits.
    fn end(mut self, shared: &Shared) {
        if !self.has_exited() {
            self.hang_up();
        }
        while self.read_rest(shared) {}
        let rest = self.marks.rest();
        if self.phase == Phase::Running {
            self.act(Step::Show(rest), shared);
        }
        let stage = match self.phase {
            Phase::Starting => Stage::Starting,
            Phase::Idle | Phase::Typed(_) | Phase::Running | Phase::Over(_) | Phase::Withdrawn(_) | Phase::Ahead => {
                Stage::Started
            }
        };
        let end = shared.ended(self.child.wait(), stage);
        self.tell_aside();
        self.finish(Ended::ShellEnded(end), shared);
    }

    fn read_rest(&mut self, shared: &Shared) -> bool {
        let mut sources = [PollFd::new(&self.terminal, PollFlags::IN)];
        let now = Timespec::default();
        let _ = poll(&mut sources, Some(&now));
        let has_more = sources.iter().any(|source| source.revents().contains(PollFlags::IN));
        has_more && self.read(shared) == Next::GoOn
    }

    /// As a terminal that is closed does; a shell that does not mind is killed.
    fn hang_up(&mut self) {
        let Ok(id) = i32::try_from(self.child.id()) else { return };
        let Some(pid) = Pid::from_raw(id) else { return };
        let _ = kill_process(pid, Signal::HUP);
        let until = Instant::now() + Duration::from_millis(HANG_UP_GRACE_MS);
        while !self.has_exited() {
            if Instant::now() >= until {
                let _ = kill_process_group(pid, Signal::KILL);
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
