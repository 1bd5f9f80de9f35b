//! Carrying out a [`Reply`] on a socket: framing, pieces, stalls and the ways a connection breaks.

use std::io::{self, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::fake_server::Shared;
use super::reply::{Action, Cut, Framing, Reply};
use super::wire::reason_phrase;

/// How often a stalled answer looks whether its client has gone, in milliseconds.
const GONE_PROBE_MS: u64 = 10;

/// Whether a connection can carry another exchange.
#[derive(PartialEq, Eq)]
pub(super) enum After {
    /// It can.
    Open,
    /// It is to be closed in order.
    Closed,
    /// It is to be dropped without a word.
    Reset,
}

/// An answer on its way out.
pub(super) struct Answer<'a> {
    stream: &'a TcpStream,
    shared: &'a Shared,
    framing: Framing,
    body_bytes: usize,
    head_sent: bool,
}

impl<'a> Answer<'a> {
    /// Nothing is sent yet.
    pub(super) fn new(stream: &'a TcpStream, shared: &'a Shared, framing: Framing) -> Self {
        Self {
            stream,
            shared,
            framing,
            body_bytes: 0,
            head_sent: false,
        }
    }

    /// Does what the reply says, to its end or to where it breaks the connection.
    pub(super) fn perform(&mut self, reply: &Reply) -> io::Result<After> {
        for action in &reply.actions {
            let after = match action {
                Action::Head => self.head(reply)?,
                Action::Body(bytes) => self.body(bytes, 1, reply)?,
                Action::Repeat(bytes, times) => self.body(bytes, *times, reply)?,
                Action::Raw(bytes) => self.raw(bytes)?,
                Action::Sleep(pause) => {
                    std::thread::sleep(*pause);
                    After::Open
                }
                Action::Stall => self.stall()?,
                Action::Cut(cut) => self.cut(*cut)?,
            };
            if after != After::Open {
                return Ok(after);
            }
        }
        self.head(reply)?;
        if self.framing == Framing::Chunked {
            self.stream.write_all(b"0\r\n\r\n")?;
        }
        self.shared.reply_sent();
        Ok(After::Open)
    }

    fn head(&mut self, reply: &Reply) -> io::Result<After> {
        if std::mem::replace(&mut self.head_sent, true) {
            return Ok(After::Open);
        }
        let mut head = format!("HTTP/1.1 {} {}\r\n", reply.status, reason_phrase(reply.status));
        for (name, value) in &reply.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        match reply.framing {
            Framing::Chunked => head.push_str("transfer-encoding: chunked\r\n"),
            Framing::Length => head.push_str(&format!("content-length: {}\r\n", reply.body_bytes())),
            Framing::DeclaredLength(length) => head.push_str(&format!("content-length: {length}\r\n")),
            Framing::Close => head.push_str("connection: close\r\n"),
        }
        head.push_str("\r\n");
        self.raw(head.as_bytes())
    }

    fn raw(&mut self, bytes: &[u8]) -> io::Result<After> {
        self.stream.write_all(bytes)?;
        Ok(After::Open)
    }

    /// Writes body bytes so many times, cut into pieces and broken off where the reply says so.
    fn body(&mut self, bytes: &[u8], times: usize, reply: &Reply) -> io::Result<After> {
        self.head(reply)?;
        let piece_bytes = reply.piece_bytes.unwrap_or(usize::MAX);
        for _ in 0..times {
            let limit = reply.cut_after.map_or(usize::MAX, |(limit, _)| limit);
            let fitting = bytes.len().min(limit.saturating_sub(self.body_bytes));
            for piece in bytes.get(..fitting).unwrap_or_default().chunks(piece_bytes) {
                self.frame(piece)?;
            }
            self.body_bytes += fitting;
            if let Some((limit, cut)) = reply.cut_after
                && self.body_bytes >= limit
            {
                return self.cut(cut);
            }
        }
        Ok(After::Open)
    }

    fn frame(&mut self, piece: &[u8]) -> io::Result<()> {
        if self.framing != Framing::Chunked {
            return self.stream.write_all(piece);
        }
        // One write a chunk, so that a piece is a packet.
        let mut framed = format!("{:x}\r\n", piece.len()).into_bytes();
        framed.extend_from_slice(piece);
        framed.extend_from_slice(b"\r\n");
        self.stream.write_all(&framed)
    }

    fn cut(&self, cut: Cut) -> io::Result<After> {
        match cut {
            Cut::Fin => Ok(After::Closed),
            Cut::Reset => {
                // With no time to linger, closing drops what is queued and tells the peer so with a reset.
                rustix::net::sockopt::set_socket_linger(self.stream, Some(Duration::ZERO))?;
                Ok(After::Reset)
            }
        }
    }

    /// Waits for a release; a client that goes away meanwhile ends the answer.
    fn stall(&self) -> io::Result<After> {
        while !self.shared.take_release(Duration::from_millis(GONE_PROBE_MS)) {
            if client_gone(self.stream)? {
                return Err(io::ErrorKind::ConnectionReset.into());
            }
        }
        Ok(After::Open)
    }
}

fn client_gone(stream: &TcpStream) -> io::Result<bool> {
    stream.set_nonblocking(true)?;
    let seen = stream.peek(&mut [0]);
    stream.set_nonblocking(false)?;
    match seen {
        Ok(bytes) => Ok(bytes == 0),
        Err(error) => Ok(error.kind() != io::ErrorKind::WouldBlock),
    }
}
