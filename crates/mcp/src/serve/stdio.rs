//! Serving the one client that started this program, over its standard input and output: a message is a line.
//!
//! A line that is no message is answered with an error and ends nothing; the end of the input ends it all (MCP, transports,
//! stdio). Standard output carries the protocol and nothing else.
//!
//! Each end has a thread that blocks: the streams are shared with whoever started the program, and waiting for them in any
//! other way would change them for that one too.

use super::Backend;
use super::handler::Handler;
use crate::stdio::lines::{LINE_BYTES_MAX, Line, Lines};
use crate::wire::{VALUES_MAX, count_values};
use aish_tools::Cancel;
use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::service::{ServerInitializeError, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use std::future::Future;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};

/// Bytes read at a time.
const PIECE_BYTES: usize = 64 * 1024;
/// Pieces that may wait to be looked at.
const PIECES_MAX: usize = 4;
/// Messages that may wait for a client that does not read.
const OUTGOING_MAX: usize = 256;
/// How long a client may take to read a message.
const WRITE_TIMEOUT_S: u64 = 60;
/// How long calls may still take when the client says no more: one that only wrote what it wants reads the answers.
const DRAIN_MS: u64 = 500;
/// How long the last messages may take to be read when it all ends.
const FLUSH_TIMEOUT_MS: u64 = 1_000;

/// Serves until the input ends, or `stop` turns true.
///
/// # Errors
/// A thread could not be started, or the client spoke something else.
pub async fn serve(
    backend: Arc<dyn Backend>,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    stop: Cancel,
) -> io::Result<()> {
    let (incoming, pieces) = mpsc::channel(PIECES_MAX);
    let (outgoing, queue) = mpsc::channel(OUTGOING_MAX);
    let (ended, flushed) = oneshot::channel::<()>();
    thread::Builder::new()
        .name("mcp-in".to_owned())
        .spawn(move || read_pieces(input, &incoming))?;
    thread::Builder::new().name("mcp-out".to_owned()).spawn(move || {
        write_lines(output, queue);
        drop(ended);
    })?;
    let spoken = speak(backend, Pipe::new(pieces, outgoing), stop).await;
    // The transport is gone, and its queue with it: what is left is written, unless nobody reads it.
    let _ = tokio::time::timeout(Duration::from_millis(FLUSH_TIMEOUT_MS), flushed).await;
    spoken
}

async fn speak(backend: Arc<dyn Backend>, pipe: Pipe, mut stop: Cancel) -> io::Result<()> {
    let (hang_up, hung_up) = watch::channel(false);
    let mut input_ended = pipe.input_ended.subscribe();
    let begun = tokio::select! {
        begun = rmcp::serve_server(Handler::new(backend, hung_up), pipe) => begun,
        () = aish_tools::cancelled(&mut stop) => return Ok(()),
    };
    let running = match begun {
        Ok(running) => running,
        // Started and never spoken to.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(io::Error::other(error)),
    };
    let end = running.cancellation_token();
    let mut waiting = std::pin::pin!(running.waiting());
    let input_over = async {
        aish_tools::cancelled(&mut input_ended).await;
        tokio::time::sleep(Duration::from_millis(DRAIN_MS)).await;
    };
    let ended = tokio::select! {
        ended = &mut waiting => ended,
        () = input_over => {
            hang_up.send_replace(true);
            waiting.await
        }
        () = aish_tools::cancelled(&mut stop) => {
            hang_up.send_replace(true);
            end.cancel();
            waiting.await
        }
    };
    ended.map(|_| ()).map_err(io::Error::other)
}

/// Reads until the input ends or nobody wants it any more.
fn read_pieces(mut input: impl Read, pieces: &mpsc::Sender<Vec<u8>>) {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = match input.read(&mut piece) {
            Ok(0) => return,
            Ok(bytes) => piece.get(..bytes).unwrap_or_default().to_vec(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        if pieces.blocking_send(read).is_err() {
            return;
        }
    }
}

/// Writes what is sent, in order, until nobody sends any more or nobody reads.
fn write_lines(mut output: impl Write, mut queue: mpsc::Receiver<Outgoing>) {
    while let Some(Outgoing { line, written }) = queue.blocking_recv() {
        if output.write_all(&line).and_then(|()| output.flush()).is_err() {
            return;
        }
        // Whoever sent it may be gone.
        let _ = written.send(());
    }
}

/// A line on its way to the client, and who waits for it to be written.
struct Outgoing {
    line: Vec<u8>,
    written: oneshot::Sender<()>,
}

/// The transport: lines in, lines out.
struct Pipe {
    pieces: mpsc::Receiver<Vec<u8>>,
    /// Turns true when nothing more comes.
    input_ended: watch::Sender<bool>,
    /// What was read; from `unread_at` on, it has not been looked at.
    piece: Vec<u8>,
    unread_at: usize,
    lines: Lines,
    has_begun: bool,
    outgoing: mpsc::Sender<Outgoing>,
}

impl Pipe {
    fn new(pieces: mpsc::Receiver<Vec<u8>>, outgoing: mpsc::Sender<Outgoing>) -> Self {
        Self {
            pieces,
            input_ended: watch::Sender::new(false),
            piece: Vec::new(),
            unread_at: 0,
            lines: Lines::default(),
            has_begun: false,
            outgoing,
        }
    }

    /// The next line of what was read, if it holds a whole one.
    fn line(&mut self) -> Option<Line> {
        let mut rest = self.piece.get(self.unread_at..).unwrap_or_default();
        if rest.is_empty() {
            return None;
        }
        let line = self.lines.take(&mut rest);
        self.unread_at = self.piece.len() - rest.len();
        line
    }

    /// The message of a line. What is none is answered at once.
    fn message(&mut self, line: &Line) -> Option<ClientJsonRpcMessage> {
        match read(line) {
            Ok(Some(message)) => {
                // The SDK takes anything but a request for the end while none has come.
                self.has_begun |= matches!(message, ClientJsonRpcMessage::Request(_));
                self.has_begun.then_some(message)
            }
            Ok(None) => None,
            Err((error, id)) => {
                let (written, _) = oneshot::channel();
                if let Ok(line) = line_of(&ServerJsonRpcMessage::error(error, id)) {
                    // A client that sends nonsense faster than it reads the answers misses some.
                    let _ = self.outgoing.try_send(Outgoing { line, written });
                }
                None
            }
        }
    }
}

impl Transport<RoleServer> for Pipe {
    type Error = io::Error;

    fn send(&mut self, item: TxJsonRpcMessage<RoleServer>) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let line = line_of(&item);
        let outgoing = self.outgoing.clone();
        async move {
            let (written, done) = oneshot::channel();
            let line = line?;
            let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
            let sending = async {
                outgoing.send(Outgoing { line, written }).await.map_err(|_| gone())?;
                done.await.map_err(|_| gone())
            };
            let patience = Duration::from_secs(WRITE_TIMEOUT_S);
            tokio::time::timeout(patience, sending).await.map_err(|_| gone())?
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            while let Some(line) = self.line() {
                if let Some(message) = self.message(&line) {
                    return Some(message);
                }
            }
            let Some(piece) = self.pieces.recv().await else {
                self.input_ended.send_replace(true);
                return None;
            };
            self.piece = piece;
            self.unread_at = 0;
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What a line holds: a message, nothing, or what to answer and to whom.
fn read(line: &Line) -> Result<Option<ClientJsonRpcMessage>, (ErrorData, Option<RequestId>)> {
    let refuse = |code, message: String, id| Err((ErrorData::new(code, message, None), id));
    let bytes = match line {
        Line::Whole(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => return Ok(None),
        Line::Whole(bytes) => bytes,
        Line::TooLong { .. } => {
            let message = format!("a message longer than {LINE_BYTES_MAX} bytes");
            return refuse(ErrorCode::INVALID_REQUEST, message, None);
        }
    };
    if count_values(bytes) > VALUES_MAX {
        let message = format!("a message of more than {VALUES_MAX} values");
        return refuse(ErrorCode::INVALID_REQUEST, message, None);
    }
    let value: Value = match serde_json::from_slice(bytes) {
        Ok(value) => value,
        Err(error) => return refuse(ErrorCode::PARSE_ERROR, format!("not JSON: {error}"), None),
    };
    let id = value.get("id").and_then(|id| serde_json::from_value(id.clone()).ok());
    match serde_json::from_value(value) {
        Ok(message) => Ok(Some(message)),
        Err(_) => refuse(
            ErrorCode::INVALID_REQUEST,
            "not a message of the protocol".to_owned(),
            id,
        ),
    }
}

fn line_of(message: &ServerJsonRpcMessage) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}
