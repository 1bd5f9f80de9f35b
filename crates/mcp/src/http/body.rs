//! A response's body: bounded, and looked at before it is believed to be what its content type says.

use super::reading::excerpt;
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;

/// Bytes of an answer that is one JSON text, decompressed.
pub(super) const BODY_BYTES_MAX: usize = 8 << 20;
/// Bytes of blanks that an answer may begin with.
const BLANK_BYTES_MAX: usize = 1 << 10;

const EVENT_STREAM: &[u8] = b"text/event-stream";

/// How event streams begin, if they have no byte-order mark.
const EVENT_STARTS: [&[u8]; 5] = [b"data:", b"event:", b"id:", b"retry:", b":"];

/// A body under way.
pub(crate) struct Body {
    /// What was read to find out what it is.
    head: Option<Vec<u8>>,
    response: Response,
}

/// What a body is, by its content type or else by how it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// There is none.
    Empty,
    /// An event stream.
    Events,
    /// JSON, or something that is to be reported as none.
    Text,
}

/// Why there is no whole body.
#[derive(Debug)]
pub(crate) enum BodyError {
    /// It is larger than was allowed.
    TooLarge,
    /// It broke off.
    Broken(reqwest::Error),
}

impl Body {
    pub(crate) fn new(response: Response) -> Self {
        Self { head: None, response }
    }

    /// The next piece; `None` at the end.
    pub(super) async fn chunk(&mut self) -> Result<Option<Vec<u8>>, reqwest::Error> {
        if let Some(head) = self.head.take() {
            return Ok(Some(head));
        }
        Ok(self.response.chunk().await?.map(|chunk| chunk.to_vec()))
    }

    /// Its content type in words, for an error.
    pub(super) fn content_type(&self) -> String {
        match self.response.headers().get(CONTENT_TYPE) {
            Some(value) => excerpt(&String::from_utf8_lossy(value.as_bytes())),
            None => "no content type".to_owned(),
        }
    }

    /// Whether its content type says that it is an event stream.
    pub(super) fn is_event_stream(&self) -> bool {
        let content_type = self.response.headers().get(CONTENT_TYPE).map(|value| value.as_bytes());
        let begin = content_type.and_then(|value| value.get(..EVENT_STREAM.len()));
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(EVENT_STREAM))
    }

    /// Finds out what it is. Servers send event streams without their content type, and JSON without any.
    pub(super) async fn form(&mut self) -> Result<Form, reqwest::Error> {
        if self.is_event_stream() {
            return Ok(Form::Events);
        }
        let mut head = Vec::new();
        let form = loop {
            if let Some(form) = form_of(&head) {
                break form;
            }
            match self.response.chunk().await? {
                Some(chunk) => head.extend_from_slice(&chunk),
                None if head.trim_ascii().is_empty() => break Form::Empty,
                None => break Form::Text,
            }
        };
        self.head = Some(head);
        Ok(form)
    }

    /// All of it, at most `bytes_max`.
    pub(crate) async fn whole(mut self, bytes_max: usize) -> Result<Vec<u8>, BodyError> {
        let announced = self.response.content_length().unwrap_or(0);
        if usize::try_from(announced).map_or(true, |announced| announced > bytes_max) {
            return Err(BodyError::TooLarge);
        }
        let mut whole = Vec::new();
        while let Some(chunk) = self.chunk().await.map_err(BodyError::Broken)? {
            if whole.len() + chunk.len() > bytes_max {
                return Err(BodyError::TooLarge);
            }
            whole.extend_from_slice(&chunk);
        }
        Ok(whole)
    }

    /// As much of it as comes before it ends, breaks off or is more than `bytes_max`, into `text`, so that whoever stops waiting
    /// has what came.
    pub(super) async fn beginning(mut self, bytes_max: usize, text: &mut Vec<u8>) {
        while let Ok(Some(chunk)) = self.chunk().await {
            let room = bytes_max.saturating_sub(text.len());
            text.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
            if text.len() >= bytes_max {
                return;
            }
        }
    }
}

/// What a body is that begins so; `None` while that may be anything.
fn form_of(head: &[u8]) -> Option<Form> {
    let begun = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head).trim_ascii_start();
    if begun.is_empty() {
        return (head.len() > BLANK_BYTES_MAX).then_some(Form::Text);
    }
    if EVENT_STARTS.iter().any(|start| begun.starts_with(start)) {
        Some(Form::Events)
    } else if EVENT_STARTS.iter().any(|start| start.starts_with(begun)) {
        None
    } else {
        Some(Form::Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 6.2: what a body is shows in how it begins.
    #[test]
    fn forms() {
        for (head, form) in [
            ("", None),
            (" \r\n", None),
            ("da", None),
            ("data:", Some(Form::Events)),
            ("\n\nid: 1", Some(Form::Events)),
            (": hello", Some(Form::Events)),
            ("{", Some(Form::Text)),
            ("dax", Some(Form::Text)),
            ("<html>", Some(Form::Text)),
        ] {
            assert_eq!(form_of(head.as_bytes()), form, "{head:?}");
        }
        assert_eq!(form_of(&[b' '; BLANK_BYTES_MAX + 1]), Some(Form::Text));
    }
}
