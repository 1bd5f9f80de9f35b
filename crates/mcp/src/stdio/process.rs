//! The process of a server: started in a session of its own, watched, and ended to the last process it started.
//!
//! A thread does the waiting, as with commands ([`aish_tools::bash`]): what a server leaves behind is ended whether or not
//! anybody waits for that, and whatever became of the runtime. Should this process be killed, a watcher ends the server.

use super::tail::Tail;
use crate::host::News;
use crate::{Alias, ErrorKind, Host, McpError, StdioEndpoint};
use aish_tools::bash::sleep::{Exited, Watched};
use aish_tools::bash::tree::{Ending, TAG_NAME, Tree, nested_tag, new_tag};
use aish_tools::bash::watcher::{Listed, Watcher};
use process_wrap::std::{ChildWrapper, CommandWrap, ProcessSession};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io;
use std::process::{ChildStderr, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{oneshot, watch};

/// Between the end of its input, which is how a server is told to end (MCP, lifecycle, shutdown), and asking it to.
const INPUT_END_GRACE_MS: u64 = 500;
/// Bytes read from standard error at a time.
const PIECE_BYTES: usize = 16 * 1024;
/// Pieces read at once when the server has exited; a pipe holds no more unless somebody writes on.
const PIECES_AFTER_EXIT_MAX: usize = 64;
/// Stack of the thread; it calls nothing deep but the host that hears of a line.
const STACK_BYTES: usize = 256 * 1024;

/// The two ends that are spoken through.
pub(super) struct Pipes {
    /// What is written here is the server's standard input.
    pub(super) input: OwnedFd,
    /// Its standard output.
    pub(super) output: OwnedFd,
}

/// A server's process, from start to end: how it is told to end, and what became of it.
pub struct Process {
    state: Mutex<State>,
    over: watch::Sender<bool>,
    /// Wakes the thread when it is to end the server.
    wake: OwnedFd,
}

#[derive(Default)]
struct State {
    tail: Tail,
    is_stopped: bool,
    /// What made us end it, other than being told to.
    fault: Option<String>,
    /// How it ended, if it did by itself.
    status: Option<ExitStatus>,
}

impl Process {
    /// Starts a server's program.
    ///
    /// # Errors
    /// There is no such program, or it cannot be started.
    pub(super) async fn start(
        alias: &Alias,
        endpoint: &StdioEndpoint,
        host: Arc<dyn Host>,
    ) -> Result<(Arc<Self>, Pipes), McpError> {
        let process = Arc::new(Self {
            state: Mutex::default(),
            over: watch::Sender::new(false),
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
                .map_err(|error| cannot_start("it", error))?,
        });
        let (sender, receiver) = oneshot::channel();
        let (handle, endpoint, alias) = (Arc::clone(&process), endpoint.clone(), alias.clone());
        std::thread::Builder::new()
            .name("mcp server".into())
            .stack_size(STACK_BYTES)
            .spawn(move || run(&endpoint, alias, host, &handle, sender))
            .map_err(|error| cannot_start("it", error))?;
        // The thread answers in every case; that it should have ended without is one more way not to have started.
        let unclaimed = Unclaimed(&process);
        let started = receiver.await.map_err(|error| cannot_start("it", error))?;
        // From here on whoever has the process ends it.
        std::mem::forget(unclaimed);
        Ok((process, started?))
    }

    /// Has it ended; returns at once. Its input must be closed by whoever holds it.
    pub(super) fn stop(&self) {
        self.lock().is_stopped = true;
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    /// Has it ended because of something that it did.
    pub(super) fn stop_because(&self, fault: &str) {
        self.lock().fault.get_or_insert_with(|| fault.to_owned());
        self.stop();
    }

    /// Waits until it has ended with everything it started, which takes a few seconds at most once it was stopped.
    pub async fn over(&self) {
        // The sender lives as long as this handle, so waiting can only end well.
        let _ = self.over.subscribe().wait_for(|is_over| *is_over).await;
    }

    /// True once [`over`](Self::over) would return at once.
    pub(super) fn is_over(&self) -> bool {
        *self.over.borrow()
    }

    /// Why there is no connection any more: how it ended and what it said last. Meaningful once it is [`over`](Self::over).
    pub fn why(&self) -> McpError {
        let state = self.lock();
        let what = match (&state.fault, state.status) {
            (Some(fault), _) => fault.clone(),
            (None, Some(status)) => format!("its program ended ({status})"),
            (None, None) if state.is_stopped => "it was closed".to_owned(),
            (None, None) => "its program ended".to_owned(),
        };
        let quote = state.tail.quote();
        let message = if quote.is_empty() {
            what
        } else {
            format!("{what}; it said: {quote}")
        };
        McpError::new(ErrorKind::Closed, message)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn cannot_start(name: &str, error: impl std::fmt::Display) -> McpError {
    McpError::new(ErrorKind::Unreachable, format!("cannot start {name}: {error}"))
}

/// Ends a process that is started for somebody who stops waiting, also in the moment between the thread's answer and its reading.
struct Unclaimed<'a>(&'a Process);

impl Drop for Unclaimed<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// The thread's work from start to end.
fn run(
    endpoint: &StdioEndpoint,
    alias: Alias,
    host: Arc<dyn Host>,
    process: &Process,
    sender: oneshot::Sender<Result<Pipes, McpError>>,
) {
    let watcher = Arc::new(Watcher::default());
    watcher.prepare();
    match Supervisor::start(endpoint, alias, host, process, &watcher) {
        Ok((supervisor, pipes)) => {
            // Nobody waits for it any more: it ends before it was spoken to. The pipes are dropped with the answer.
            if sender.send(Ok(pipes)).is_err() {
                process.stop();
            }
            supervisor.run(watcher);
        }
        Err(error) => {
            let _ = sender.send(Err(error));
        }
    }
    process.over.send_replace(true);
}

/// Where a server is on its way to its end.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// It runs.
    Running,
    /// Its input has ended; its processes are asked to end then.
    InputEnded(Instant),
    /// Its processes are being ended.
    Ending(Ending),
}

struct Supervisor<'a> {
    child: Box<dyn ChildWrapper>,
    /// Readable once the server's own process has exited, which keeps its id until it is waited for.
    exit: OwnedFd,
    stderr: Option<ChildStderr>,
    buffer: Vec<u8>,
    tree: Tree,
    listed: Listed,
    phase: Phase,
    has_exited: bool,
    process: &'a Process,
    alias: Alias,
    host: Arc<dyn Host>,
}

impl<'a> Supervisor<'a> {
    fn start(
        endpoint: &StdioEndpoint,
        alias: Alias,
        host: Arc<dyn Host>,
        process: &'a Process,
        watcher: &Arc<Watcher>,
    ) -> Result<(Self, Pipes), McpError> {
        let name = endpoint.command.first().map_or("", String::as_str);
        let tag = new_tag().map_err(|error| cannot_start(name, error))?;
        let mut child = spawn(endpoint, &tag)?;
        let input = child.stdin().take().map(OwnedFd::from);
        let output = child.stdout().take().map(OwnedFd::from);
        let stderr = child.stderr().take();
        let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let opened = id.zip(input).zip(output).zip(stderr).ok_or(rustix::io::Errno::SRCH);
        let watched = opened.and_then(|(((id, input), output), stderr)| {
            rustix::io::ioctl_fionbio(&stderr, true)?;
            Ok((
                id,
                Pipes { input, output },
                stderr,
                pidfd_open(id, PidfdFlags::empty())?,
            ))
        });
        let (id, pipes, stderr, exit) = match watched {
            Ok(watched) => watched,
            Err(error) => {
                let _ = child.kill();
                return Err(cannot_start(name, format_args!("it cannot be watched: {error}")));
            }
        };
        let supervisor = Self {
            child,
            exit,
            stderr: Some(stderr),
            buffer: vec![0; PIECE_BYTES],
            listed: watcher.list(id, &tag),
            tree: Tree::new(id, tag),
            phase: Phase::Running,
            has_exited: false,
            process,
            alias,
            host,
        };
        Ok((supervisor, pipes))
    }

    fn run(mut self, watcher: Arc<Watcher>) {
        loop {
            self.wait();
            self.read();
            if self.advance() {
                break;
            }
        }
        self.read_rest();
        self.finish(watcher);
    }

    /// Sleeps until something happens or the phase may have to change.
    fn wait(&mut self) {
        let until = match self.phase {
            Phase::Running => None,
            Phase::InputEnded(until) => Some(until),
            Phase::Ending(ending) => Some(ending.next_look()),
        };
        let watched = Watched {
            wake: &self.process.wake,
            exit: (!self.has_exited).then_some(&self.exit),
            output: self.stderr.as_ref(),
        };
        self.has_exited |= watched.sleep(until) == Exited::Yes;
    }

    /// Takes one piece of standard error, if there is one; true if there was.
    fn read(&mut self) -> bool {
        let Some(stderr) = &self.stderr else { return false };
        match rustix::io::read(stderr, &mut *self.buffer) {
            Ok(len) if len > 0 => {
                let lines = self
                    .process
                    .lock()
                    .tail
                    .push(self.buffer.get(..len).unwrap_or_default());
                self.tell(lines);
                true
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => false,
            Ok(_) | Err(_) => {
                self.stderr = None;
                false
            }
        }
    }

    /// Takes what is left of standard error; bounded, in case somebody writes on.
    fn read_rest(&mut self) {
        let _ = (0..PIECES_AFTER_EXIT_MAX).all(|_| self.read());
        self.stderr = None;
        let last = self.process.lock().tail.end_line();
        self.tell(last);
    }

    fn tell(&self, lines: impl IntoIterator<Item = String>) {
        for text in lines {
            self.host.news(&self.alias, News::Stderr { text });
        }
    }

    /// Goes to the next phase where it is time to; true when nothing is left to do.
    fn advance(&mut self) -> bool {
        match self.phase {
            Phase::Running | Phase::InputEnded(_) if self.has_exited => {
                if !self.tree.has_others() {
                    return true;
                }
                self.phase = Phase::Ending(Ending::ask(&self.tree));
            }
            Phase::Running if self.process.lock().is_stopped => {
                self.phase = Phase::InputEnded(Instant::now() + Duration::from_millis(INPUT_END_GRACE_MS));
            }
            Phase::Running => {}
            Phase::InputEnded(until) if Instant::now() >= until => {
                self.phase = Phase::Ending(Ending::ask(&self.tree));
            }
            Phase::InputEnded(_) => {}
            Phase::Ending(ending) => match ending.advance(&self.tree, self.has_exited) {
                Some(ending) => self.phase = Phase::Ending(ending),
                None => return true,
            },
        }
        false
    }

    /// Waits for the first process and the watcher, so that no zombie stays, and tells how the server ended.
    fn finish(mut self, watcher: Arc<Watcher>) {
        // What could be ended has been; from here on the id may come to belong to somebody else.
        drop(self.listed);
        drop(watcher);
        let status = match self.has_exited {
            true => self.child.wait().ok(),
            false => self.child.try_wait().ok().flatten(),
        };
        let mut state = self.process.lock();
        if !state.is_stopped {
            state.status = status;
        }
        drop(state);
        if status.is_none() {
            // The kernel holds it: this thread waits for it, nobody else does.
            self.process.over.send_replace(true);
            let _ = self.child.wait();
        }
    }
}

/// Starts the program, in a session of its own so that nothing it runs can reach our terminal.
fn spawn(endpoint: &StdioEndpoint, tag: &str) -> Result<Box<dyn ChildWrapper>, McpError> {
    let unreachable = |message| McpError::new(ErrorKind::Unreachable, message);
    let Some((program, arguments)) = endpoint.command.split_first() else {
        return Err(unreachable("cannot start it: no command is given".to_owned()));
    };
    let directory = &endpoint.directory;
    if !directory.is_dir() {
        return Err(unreachable(format!(
            "cannot start {program}: not a directory: {}",
            directory.display()
        )));
    }
    let outer_tag = endpoint.environment.iter().find(|(name, _)| name == TAG_NAME);
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(directory)
        .env_clear()
        .envs(endpoint.environment.iter().map(|(name, value)| (name, value.expose())))
        .env(TAG_NAME, nested_tag(outer_tag.map(|(_, outer)| outer.expose()), tag))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut wrapped = CommandWrap::from(command);
    wrapped.wrap(ProcessSession);
    #[expect(clippy::wildcard_enum_match_arm, reason = "the kinds are open-ended")]
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => unreachable(format!("cannot start {program}: not found; is it installed?")),
        io::ErrorKind::PermissionDenied => unreachable(format!(
            "cannot start {program}: permission denied; may it be executed?"
        )),
        _ => cannot_start(program, error),
    };
    Ok(wrapped.spawn().map_err(failed)?.into_inner())
}
