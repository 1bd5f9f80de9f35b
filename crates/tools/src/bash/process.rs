//! One running command: started, read, timed, and ended to the last process.
//!
//! Each command has a thread of its own that waits (in one `poll`) for output, for the first process to exit, for the
//! time limit and for being told to stop. It does not depend on anybody waiting for the result: a call that is dropped,
//! or cancelled and answered at once, is still cleaned up behind it. [`Running`] is the handle the rest of the crate
//! holds.

use super::sleep::{Exited, Watched};
use super::tree::{Ending, STRAGGLER_TICK_MS, TAG_NAME, Tree, nested_tag, new_tag};
use super::watcher::{Listed, Watcher};
use crate::capture::Capture;
use crate::files::text::{Last, decode_piece};
use process_wrap::std::{ChildWrapper, CommandWrap, ProcessSession};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io::{self, PipeReader};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};

/// Bytes read from the pipe at a time.
const PIECE_BYTES: usize = 64 * 1024;
/// Pieces that are read at once when the first process has exited; a pipe holds no more unless somebody writes on.
const PIECES_AFTER_EXIT_MAX: usize = 16;
/// Pieces of progress that may wait for a slow watcher; later ones are not reported.
const PROGRESS_PIECES_MAX: usize = 64;
/// How long what outlives the command may go on writing to its pipe, e.g. the `cat` of `> >(cat)`.
const LINGER: Duration = Duration::from_millis(150);
/// How long it may when it is still at work then, e.g. on a machine under load.
const LINGER_BUSY: Duration = Duration::from_secs(1);
/// Stack of the thread; it holds one buffer and calls nothing deep.
const STACK_BYTES: usize = 256 * 1024;

/// A command as it is to be run.
pub(super) struct Spawn {
    pub(super) command: String,
    pub(super) directory: PathBuf,
    pub(super) environment: Arc<Vec<(String, String)>>,
    pub(super) output_bytes_max: usize,
    pub(super) time_max: Option<Duration>,
    pub(super) watcher: Arc<Watcher>,
}

/// How a command ended.
#[derive(Clone, Debug)]
pub(super) enum End {
    /// By itself, or by somebody else's signal.
    Exited(ExitStatus),
    /// By the time limit.
    TimedOut,
    /// Because it was told to.
    Stopped(Option<ExitStatus>),
    /// It never started; says why.
    Failed(String),
}

/// A command that was started, and its output so far.
pub(super) struct Running {
    state: Mutex<State>,
    changed: Condvar,
    ended: watch::Sender<bool>,
    /// Wakes the thread when it is told to stop.
    wake: OwnedFd,
}

struct State {
    capture: Capture,
    output_bytes_max: usize,
    stop: Option<Urgency>,
    end: Option<End>,
}

/// How a command is made to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Urgency {
    /// It is asked first and has a moment to clean up.
    Ask,
    /// At once.
    Kill,
}

impl Running {
    /// Starts a command. Pieces of its output come through the receiver, which closes when it has ended.
    ///
    /// # Errors
    /// Why there is no thread or event descriptor for it.
    pub(super) fn start(spawn: Spawn) -> io::Result<(Arc<Self>, mpsc::Receiver<String>)> {
        let running = Arc::new(Self {
            state: Mutex::new(State {
                capture: Capture::new(spawn.output_bytes_max),
                output_bytes_max: spawn.output_bytes_max,
                stop: None,
                end: None,
            }),
            changed: Condvar::new(),
            ended: watch::Sender::new(false),
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        });
        let (pieces, receiver) = mpsc::channel(PROGRESS_PIECES_MAX);
        let handle = Arc::clone(&running);
        std::thread::Builder::new()
            .name("command".into())
            .stack_size(STACK_BYTES)
            .spawn(move || run(&spawn, &handle, pieces))?;
        Ok((running, receiver))
    }

    /// Tells the command to stop; returns at once.
    pub(super) fn stop(&self, urgency: Urgency) {
        let mut state = self.lock();
        state.stop = state.stop.max(Some(urgency));
        drop(state);
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    /// Takes the output that was not taken yet.
    pub(super) fn take_output(&self) -> String {
        let mut state = self.lock();
        let empty = Capture::new(state.output_bytes_max);
        std::mem::replace(&mut state.capture, empty).finish()
    }

    /// How it ended, if it has.
    pub(super) fn end(&self) -> Option<End> {
        self.lock().end.clone()
    }

    /// Waits until it has ended, with everything it started.
    pub(super) async fn ended(&self) {
        // The sender lives as long as this handle, so waiting can only end well.
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
    }

    /// Blocks until it has ended or the moment has passed.
    pub(super) fn wait_until(&self, deadline: Instant) {
        let mut state = self.lock();
        while state.end.is_none() {
            let Some(left) = deadline.checked_duration_since(Instant::now()) else {
                return;
            };
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_end(&self, end: End) {
        self.lock().end = Some(end);
        self.changed.notify_all();
        self.ended.send_replace(true);
    }
}

/// The thread's work from start to end.
fn run(spawn: &Spawn, running: &Running, pieces: mpsc::Sender<String>) {
    spawn.watcher.prepare();
    match start_child(spawn) {
        Err(message) => running.set_end(End::Failed(message)),
        Ok((child, pipe, tag)) => match Supervisor::new(child, pipe, tag, spawn, running, pieces) {
            Ok(supervisor) => supervisor.run(),
            Err(message) => running.set_end(End::Failed(message)),
        },
    }
}

/// Starts `bash -c` in a session of its own (so that nothing it runs can reach our terminal), with both outputs into one
/// pipe.
fn start_child(spawn: &Spawn) -> Result<(Box<dyn ChildWrapper>, PipeReader, String), String> {
    if !spawn.directory.is_dir() {
        return Err(format!("Not a directory: {}", spawn.directory.display()));
    }
    #[expect(clippy::wildcard_enum_match_arm, reason = "the kinds are open-ended")]
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => "bash is not installed, or not in PATH".to_owned(),
        io::ErrorKind::ArgumentListTooLong => {
            format!(
                "Command too long ({} bytes): put it into a file and run that",
                spawn.command.len()
            )
        }
        _ => format!("Cannot start bash: {error}"),
    };
    let (reader, writer) = io::pipe().map_err(failed)?;
    let errors = writer.try_clone().map_err(failed)?;
    let tag = new_tag().map_err(|error| format!("Cannot start bash: {error}"))?;
    let outer_tag = spawn.environment.iter().find(|(name, _)| name == TAG_NAME);
    let mut command = Command::new("bash");
    command
        .arg("-c")
        .arg(&spawn.command)
        .current_dir(&spawn.directory)
        .env_clear()
        .envs(spawn.environment.iter().map(|(name, value)| (name, value)))
        .env(TAG_NAME, nested_tag(outer_tag.map(|(_, outer)| outer.as_str()), &tag))
        .stdin(Stdio::null())
        .stdout(writer)
        .stderr(errors);
    let mut wrapped = CommandWrap::from(command);
    wrapped.wrap(ProcessSession);
    // The command holds our copies of the pipe's writing end; the pipe ends for the reader only once it is dropped.
    let child = wrapped.spawn().map_err(failed)?.into_inner();
    Ok((child, reader, tag))
}

/// Where a command is on its way to its end.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// It runs.
    Running,
    /// Its first process has exited at that moment, something still holds the pipe.
    Lingering(Instant),
    /// Its processes are being ended.
    Ending(Ending),
}

/// Why a command is being ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Exit,
    Timeout,
    Stop,
}

struct Supervisor<'a> {
    child: Box<dyn ChildWrapper>,
    /// Readable once the first process has exited, while it keeps its id until it is waited for.
    exit: OwnedFd,
    pipe: Option<PipeReader>,
    tree: Tree,
    /// Has the command ended should this process be killed.
    listed: Option<Listed>,
    decoder: encoding_rs::Decoder,
    buffer: Vec<u8>,
    running: &'a Running,
    pieces: mpsc::Sender<String>,
    deadline: Option<Instant>,
    phase: Phase,
    cause: Cause,
    has_exited: bool,
    urgency: Option<Urgency>,
}

impl<'a> Supervisor<'a> {
    fn new(
        mut child: Box<dyn ChildWrapper>,
        pipe: PipeReader,
        tag: String,
        spawn: &Spawn,
        running: &'a Running,
        pieces: mpsc::Sender<String>,
    ) -> Result<Self, String> {
        let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let opened = id.ok_or(rustix::io::Errno::SRCH).and_then(|id| {
            rustix::io::ioctl_fionbio(&pipe, true)?;
            Ok((id, pidfd_open(id, PidfdFlags::empty())?))
        });
        let (id, exit) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                let _ = child.kill();
                return Err(format!("Cannot watch the command: {error}"));
            }
        };
        Ok(Self {
            child,
            exit,
            pipe: Some(pipe),
            listed: Some(spawn.watcher.list(id, &tag)),
            tree: Tree::new(id, tag),
            decoder: encoding_rs::UTF_8.new_decoder_without_bom_handling(),
            buffer: vec![0; PIECE_BYTES],
            running,
            pieces,
            deadline: spawn.time_max.and_then(|time| Instant::now().checked_add(time)),
            phase: Phase::Running,
            cause: Cause::Exit,
            has_exited: false,
            urgency: None,
        })
    }

    fn run(mut self) {
        loop {
            self.wait();
            self.read();
            self.heed_stop();
            if self.advance() {
                break;
            }
        }
        self.drain();
        self.finish();
    }

    /// Sleeps until something happens or the phase may have to change.
    fn wait(&mut self) {
        let now = Instant::now();
        let tick = Duration::from_millis(STRAGGLER_TICK_MS);
        let until = match self.phase {
            Phase::Running => self.deadline,
            Phase::Lingering(since) if now < since + LINGER => Some(since + LINGER),
            Phase::Lingering(_) => Some(now + tick),
            Phase::Ending(ending) => Some(ending.next_look()),
        };
        let watched = Watched {
            wake: &self.running.wake,
            exit: (!self.has_exited).then_some(&self.exit),
            output: self.pipe.as_ref(),
        };
        self.has_exited |= watched.sleep(until) == Exited::Yes;
    }

    /// Takes one piece from the pipe, if there is one, and drops the pipe at its end.
    fn read(&mut self) -> Progressed {
        let Some(pipe) = &self.pipe else {
            return Progressed::No;
        };
        match rustix::io::read(pipe, &mut *self.buffer) {
            Ok(0) => {
                self.pipe = None;
                self.publish(0, Last::Yes);
                Progressed::No
            }
            Ok(len) => {
                self.publish(len, Last::No);
                Progressed::Yes
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Progressed::No,
            Err(_) => {
                self.pipe = None;
                Progressed::No
            }
        }
    }

    /// Decodes the first `len` bytes of the buffer, keeps them, and reports what was kept.
    fn publish(&mut self, len: usize, is_last: Last) {
        let mut text = String::new();
        decode_piece(
            &mut self.decoder,
            self.buffer.get(..len).unwrap_or_default(),
            &mut text,
            is_last,
        );
        let mut state = self.running.lock();
        let kept = state.capture.push(&text);
        if !kept.is_empty() {
            // A watcher that is slow misses pieces; the result has them all.
            let _ = self.pieces.try_send(kept.to_owned());
        }
    }

    fn heed_stop(&mut self) {
        let wanted = self.running.lock().stop;
        if wanted <= self.urgency {
            return;
        }
        if self.urgency.is_none() && self.cause == Cause::Exit && !self.has_exited {
            self.cause = Cause::Stop;
        }
        self.urgency = wanted;
        match wanted {
            Some(Urgency::Kill) => self.kill(),
            Some(Urgency::Ask) => self.ask(),
            None => {}
        }
    }

    /// Goes to the next phase where it is time to; true when nothing is left to do.
    fn advance(&mut self) -> bool {
        let now = Instant::now();
        match self.phase {
            Phase::Running if self.has_exited => {
                // What was written before the exit is in the pipe already. Children that write on must not keep us here.
                let _ = (0..PIECES_AFTER_EXIT_MAX).all(|_| self.read() == Progressed::Yes);
                match self.pipe {
                    Some(_) => self.phase = Phase::Lingering(now),
                    None if self.tree.has_others() => self.ask(),
                    None => return true,
                }
            }
            Phase::Running if self.deadline.is_some_and(|deadline| now >= deadline) => {
                self.cause = Cause::Timeout;
                self.ask();
            }
            Phase::Running => {}
            Phase::Lingering(_) if self.pipe.is_none() && !self.tree.has_others() => return true,
            Phase::Lingering(_) if self.pipe.is_none() => self.ask(),
            Phase::Lingering(_) if self.deadline.is_some_and(|deadline| now >= deadline) => self.ask(),
            Phase::Lingering(since) if now < since + LINGER => {}
            Phase::Lingering(since) if now < since + LINGER_BUSY && self.tree.has_busy_others() => {}
            Phase::Lingering(_) => self.ask(),
            Phase::Ending(ending) => match ending.advance(&self.tree, self.has_exited) {
                Some(ending) => self.phase = Phase::Ending(ending),
                None => return true,
            },
        }
        false
    }

    fn ask(&mut self) {
        self.phase = Phase::Ending(Ending::ask(&self.tree));
    }

    fn kill(&mut self) {
        self.phase = Phase::Ending(Ending::kill(&self.tree));
    }

    /// Takes what is left in the pipe when nobody writes any more; bounded, in case somebody does.
    fn drain(&mut self) {
        let deadline = Instant::now() + LINGER;
        while self.read() == Progressed::Yes && Instant::now() < deadline {}
        if self.pipe.take().is_some() {
            self.publish(0, Last::Yes);
        }
    }

    /// Waits for the first process, so that no zombie stays, and tells how it ended.
    fn finish(mut self) {
        // What could be ended has been; from here on the id may come to belong to somebody else.
        self.listed = None;
        let status = match self.has_exited {
            true => self.child.wait().ok(),
            false => self.child.try_wait().ok().flatten(),
        };
        let end = match (self.cause, status) {
            (Cause::Timeout, _) => End::TimedOut,
            (Cause::Stop, status) => End::Stopped(status),
            (Cause::Exit, Some(status)) => End::Exited(status),
            (Cause::Exit, None) => End::Failed("The command's exit status is not known".to_owned()),
        };
        self.running.set_end(end);
        drop(self.pieces);
        if status.is_none() {
            // The kernel holds it: this thread waits for it, nobody else does.
            let _ = self.child.wait();
        }
    }
}

/// Whether a read brought anything.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progressed {
    No,
    Yes,
}
