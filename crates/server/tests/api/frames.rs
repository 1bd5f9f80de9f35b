//! An event stream as a client reads it, field by field (WHATWG HTML, "Server-sent events").

use crate::bench::{Bench, text};
use crate::support::within;
use axum::body::{Body, BodyDataStream};
use futures_util::{FutureExt as _, StreamExt as _};
use http::Request;
use serde_json::Value;

/// A frame that is not a comment.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// The place in its id: its own, or that of the event whose envelope it is.
    pub id: Option<u64>,
    pub event: String,
    pub data: Value,
}

/// A stream that is read frame by frame.
pub struct Frames {
    body: BodyDataStream,
    text: String,
}

impl Frames {
    /// Asks for a stream; a body makes it a POST.
    pub async fn open(bench: &Bench, path: &str, headers: &[(&str, &str)], body: Option<&Value>) -> Self {
        let mut request = Request::builder().uri(path).header("accept", "text/event-stream");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = match body {
            None => request.body(Body::empty()),
            Some(body) => request
                .method("POST")
                .header("content-type", "application/json")
                .body(Body::from(body.to_string())),
        };
        let response = bench.respond(request.unwrap()).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self {
            body: response.into_body().into_data_stream(),
            text: String::new(),
        }
    }

    /// The stream of a session after one of its events.
    pub async fn of(bench: &Bench, session: &str, after: u64) -> Self {
        let path = format!("/api/sessions/{session}/events");
        Self::open(bench, &path, &[("last-event-id", &after.to_string())], None).await
    }

    /// The next frame; `None` at the end.
    pub async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some((frame, rest)) = self.text.split_once("\n\n") {
                let (frame, rest) = (frame.to_owned(), rest.to_owned());
                self.text = rest;
                if let Some(frame) = read(&frame) {
                    return Some(frame);
                }
                continue;
            }
            let Some(piece) = within(self.body.next()).await else {
                assert_eq!(self.text, "", "cut in the middle of a frame");
                return None;
            };
            self.text.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
        }
    }

    /// Takes what is there already, so that it is told from here on: a stream whose body nobody takes has not begun to follow.
    pub fn settle(&mut self) {
        while let Some(Some(piece)) = self.body.next().now_or_never() {
            self.text.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
        }
    }

    /// What is there already, as it came.
    pub fn at_once(&mut self) -> String {
        self.settle();
        std::mem::take(&mut self.text)
    }

    /// What comes next, as it comes.
    pub async fn piece(&mut self) -> String {
        assert_eq!(self.text, "");
        let piece = within(self.body.next()).await.unwrap().unwrap();
        String::from_utf8(piece.to_vec()).unwrap()
    }

    /// Everything up to the end.
    pub async fn rest(&mut self) -> Vec<Frame> {
        let mut all = Vec::new();
        while let Some(frame) = self.next().await {
            all.push(frame);
        }
        all
    }

    /// Everything up to the envelope of this event, which is the last.
    pub async fn until_told(&mut self, seq: u64) -> Vec<Frame> {
        let mut all = Vec::new();
        while all.last().is_none_or(|last: &Frame| last.id != Some(seq)) {
            all.extend(self.until("envelope").await);
        }
        all
    }

    /// Everything up to the next frame of this name, which is the last.
    pub async fn until(&mut self, event: &str) -> Vec<Frame> {
        let mut all = Vec::new();
        loop {
            let frame = self.next().await;
            all.push(frame.unwrap_or_else(|| panic!("the stream ended: {all:?}")));
            if all.last().is_some_and(|last| last.event == event) {
                return all;
            }
        }
    }
}

fn read(frame: &str) -> Option<Frame> {
    let mut is_of_envelope = false;
    let mut read = Frame {
        id: None,
        event: String::new(),
        data: Value::Null,
    };
    for line in frame.lines() {
        let (field, value) = line.split_once(": ").unwrap();
        match field {
            "id" => {
                let of_envelope = value.strip_suffix(".e");
                is_of_envelope = of_envelope.is_some();
                read.id = Some(of_envelope.unwrap_or(value).parse().unwrap());
            }
            "event" => value.clone_into(&mut read.event),
            "data" => {
                assert_eq!(read.data, Value::Null, "two lines of data: {frame}");
                read.data = serde_json::from_str(value).unwrap();
            }
            "" => return None,
            other => panic!("{other}: {frame}"),
        }
    }
    let is_envelope = read.event == "envelope";
    assert!(read.id.is_none() || is_of_envelope == is_envelope, "{frame}");
    Some(read)
}

/// The places of the events among these frames.
pub fn places(frames: &[Frame]) -> Vec<u64> {
    of_the_ledger(frames).filter_map(|frame| frame.id).collect()
}

/// The data of the events among these frames.
pub fn events(frames: &[Frame]) -> Vec<Value> {
    of_the_ledger(frames).map(|frame| frame.data.clone()).collect()
}

fn of_the_ledger(frames: &[Frame]) -> impl Iterator<Item = &Frame> {
    let is_event = |frame: &&Frame| frame.id.is_some() && frame.event != "envelope";
    frames.iter().filter(is_event)
}

/// The places under which envelopes are among these frames.
pub fn told(frames: &[Frame]) -> Vec<Option<u64>> {
    let envelopes = frames.iter().filter(|frame| frame.event == "envelope");
    envelopes.map(|frame| frame.id).collect()
}

/// The text of the reply that these frames bring piece by piece.
pub fn said(frames: &[Frame]) -> String {
    let deltas = frames.iter().filter(|frame| frame.event == "delta");
    let pieces = deltas.filter(|frame| frame.data["type"] == "text");
    pieces.map(|frame| text(&frame.data["text"])).collect()
}
