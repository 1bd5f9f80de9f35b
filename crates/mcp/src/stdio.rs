//! The child-process half of a connection: a server of its own session, lines in and out, its whole tree ended at the end.
//!
//! [`Child`] is a transport of the SDK. A message is a line of JSON in each direction (MCP, transports, stdio), but servers
//! print banners, log to the wrong stream, send arrays, and write without end: all of that is passed over with a note
//! (`message`), within bounds (`lines`), and ends no connection. The process and what it starts are watched over by a
//! thread ([`Process`]), its standard error is told and its last lines are kept (`tail`).

pub(crate) mod lines;
pub(crate) mod message;
mod process;
mod tail;

pub use lines::LINE_BYTES_MAX;
pub use message::{TOO_LARGE_CODE, UNREADABLE_CODE};
pub use process::Process;
pub use tail::STDERR_BYTES_MAX;

use crate::host::News;
use crate::{Alias, ErrorKind, Host, McpError, StdioEndpoint};
use lines::{Line, Lines};
use process::Pipes;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::{RoleClient, service::TxJsonRpcMessage};
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Bytes read from the server at a time.
const PIECE_BYTES: usize = 64 * 1024;
/// Bytes that are still read when the server has ended; its pipe holds no more (the largest that Linux allows).
const BYTES_AFTER_END_MAX: usize = 1024 * 1024;
/// Messages that may wait for a server that does not read.
const OUTGOING_MAX: usize = 256;
/// How long a server may take to read a message.
const WRITE_TIMEOUT_MS: u64 = 60_000;
/// How long a server that has closed its output may take to end by itself.
const EXIT_WAIT_MS: u64 = 500;
/// How long closing waits; what takes longer is held by the kernel, and ended behind our back.
const CLOSE_TIMEOUT_MS: u64 = 5_000;
/// Notes of one connection about what was passed over.
const NOTES_MAX: usize = 100;

/// A connection to a server that is a program of this machine. Dropping it ends the server, with all that it started.
pub struct Child {
    alias: Alias,
    host: Arc<dyn Host>,
    process: Arc<Process>,
    outgoing: Option<mpsc::Sender<Outgoing>>,
    writer: JoinHandle<()>,
    output: Option<pipe::Receiver>,
    /// What was read; from `unread_at` on, it has not been looked at.
    piece: Vec<u8>,
    unread_at: usize,
    bytes_after_end: usize,
    lines: Lines,
    /// Messages of one line, in their order.
    ready: VecDeque<ServerJsonRpcMessage>,
    notes: usize,
}

/// A line on its way to the server, and who waits for it to be written.
struct Outgoing {
    line: Vec<u8>,
    written: oneshot::Sender<()>,
}

impl Child {
    /// Starts a server. Its standard error and notes about what was passed over are news to the host.
    ///
    /// To be called within a runtime that has IO and time.
    ///
    /// # Errors
    /// Its program is not there, or cannot be started.
    pub async fn start(alias: &Alias, endpoint: &StdioEndpoint, host: Arc<dyn Host>) -> Result<Self, McpError> {
        let (process, Pipes { input, output }) = Process::start(alias, endpoint, Arc::clone(&host)).await?;
        let opened =
            pipe::Sender::from_owned_fd(input).and_then(|input| Ok((input, pipe::Receiver::from_owned_fd(output)?)));
        let (input, output) = opened.map_err(|error| {
            process.stop();
            McpError::new(ErrorKind::Unreachable, format!("cannot speak to it: {error}"))
        })?;
        let (outgoing, queue) = mpsc::channel(OUTGOING_MAX);
        Ok(Self {
            alias: alias.clone(),
            host,
            writer: tokio::spawn(write(input, queue, Arc::clone(&process))),
            process,
            outgoing: Some(outgoing),
            output: Some(output),
            piece: Vec::new(),
            unread_at: 0,
            bytes_after_end: 0,
            lines: Lines::default(),
            ready: VecDeque::new(),
            notes: 0,
        })
    }

    /// The process, which outlives this handle: what became of it is asked there.
    pub fn process(&self) -> &Arc<Process> {
        &self.process
    }

    /// Looks at what was read until there is a message, or nothing left of it.
    fn look(&mut self) {
        while self.ready.is_empty() {
            let mut rest = self.piece.get(self.unread_at..).unwrap_or_default();
            if rest.is_empty() {
                return;
            }
            let line = self.lines.take(&mut rest);
            self.unread_at = self.piece.len() - rest.len();
            if let Some(line) = line {
                self.take(&line);
            }
        }
    }

    fn take(&mut self, line: &Line) {
        let read = message::read(line);
        self.ready.extend(read.messages);
        for message::Fault(text) in read.faults {
            self.note(text);
        }
    }

    fn note(&mut self, text: String) {
        self.notes += 1;
        let text = match self.notes {
            ..NOTES_MAX => text,
            NOTES_MAX => "more is passed over without a note".to_owned(),
            _ => return,
        };
        let level = "warning".to_owned();
        self.host.news(&self.alias, News::Log { level, text });
    }

    /// Reads more; false when no more comes. May be dropped at any moment without losing anything.
    async fn fill(&mut self) -> bool {
        let Some(output) = &mut self.output else { return false };
        self.piece.resize(PIECE_BYTES, 0);
        self.unread_at = PIECE_BYTES;
        let read = tokio::select! {
            biased;
            read = output.read(&mut self.piece) => read,
            // Something that escaped it may hold the pipe for ever: what is in there now is all that counts.
            () = self.process.over() => match rustix::io::read(&*output, &mut *self.piece) {
                Ok(len) => Ok(len),
                Err(error) => Err(io::Error::from(error)),
            },
        };
        let len = read.unwrap_or_default();
        self.bytes_after_end += if self.process.is_over() { len } else { 0 };
        self.piece.truncate(len);
        self.unread_at = 0;
        len > 0 && self.bytes_after_end <= BYTES_AFTER_END_MAX
    }

    /// Nothing more comes. Mostly because the server has ended; one that has only closed its output is ended.
    async fn output_ended(&mut self) {
        self.output = None;
        let wait = Duration::from_millis(EXIT_WAIT_MS);
        if tokio::time::timeout(wait, self.process.over()).await.is_err() {
            self.process.stop_because("it closed its output");
        }
    }
}

/// Writes lines until nobody has any more, or the server does not take them.
async fn write(mut input: pipe::Sender, mut queue: mpsc::Receiver<Outgoing>, process: Arc<Process>) {
    while let Some(Outgoing { line, written }) = queue.recv().await {
        let limit = Duration::from_millis(WRITE_TIMEOUT_MS);
        match tokio::time::timeout(limit, input.write_all(&line)).await {
            Ok(Ok(())) => {
                let _ = written.send(());
            }
            // It has closed its input, or ended: its output tells which.
            Ok(Err(_)) => return,
            Err(_) => return process.stop_because("it does not read what it is sent"),
        }
    }
}

impl Transport<RoleClient> for Child {
    type Error = McpError;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), McpError>> + Send + 'static {
        // It is in the queue when this returns, so messages are written in the order of the calls.
        let queued = self.queue(&message);
        let process = Arc::clone(&self.process);
        async move {
            let is_written = queued?.await.is_ok();
            if is_written { Ok(()) } else { Err(process.why()) }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            self.look();
            if let Some(message) = self.ready.pop_front() {
                return Some(message);
            }
            if self.fill().await {
                continue;
            }
            let Some(line) = self.lines.finish() else { break };
            self.take(&line);
        }
        self.output_ended().await;
        None
    }

    async fn close(&mut self) -> Result<(), McpError> {
        self.end();
        let limit = Duration::from_millis(CLOSE_TIMEOUT_MS);
        // Past the limit the thread goes on ending it without us.
        let _ = tokio::time::timeout(limit, self.process.over()).await;
        Ok(())
    }
}

impl Child {
    fn queue(&self, message: &ClientJsonRpcMessage) -> Result<oneshot::Receiver<()>, McpError> {
        let mut line = serde_json::to_vec(message)
            .map_err(|error| McpError::new(ErrorKind::Protocol, format!("cannot write a message: {error}")))?;
        line.push(b'\n');
        let (written, receiver) = oneshot::channel();
        let outgoing = self.outgoing.as_ref().ok_or_else(|| self.process.why())?;
        match outgoing.try_send(Outgoing { line, written }) {
            Ok(()) => Ok(receiver),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(self.process.why()),
            Err(mpsc::error::TrySendError::Full(_)) => {
                let message = format!("it has not read the last {OUTGOING_MAX} messages");
                Err(McpError::new(ErrorKind::Timeout, message))
            }
        }
    }

    /// Closes its input and has it ended.
    fn end(&mut self) {
        self.outgoing = None;
        self.output = None;
        self.writer.abort();
        self.process.stop();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.end();
    }
}
