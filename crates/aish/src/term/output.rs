//! What a renderer makes: text on three streams, in order.

/// What a piece of output is, so that a front end can send it where it belongs: a terminal shows all of it, a pipe gets
/// the reply and nothing else (SPEC 10.3, 10.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// What the model says.
    Reply,
    /// What happens around it: thinking, calls and what they print.
    Frame,
    /// `[aish] …`.
    Status,
}

/// Text in the order it is to be written. Safe for a terminal: whoever adds to it has escaped what is not ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    pieces: Vec<(Stream, String)>,
}

impl Output {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds text; adjacent text of one stream becomes one piece.
    pub fn push(&mut self, stream: Stream, text: &str) {
        if text.is_empty() {
            return;
        }
        match self.pieces.last_mut() {
            Some((last, before)) if *last == stream => before.push_str(text),
            Some(_) | None => self.pieces.push((stream, text.to_owned())),
        }
    }

    /// True when there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The pieces, in order.
    pub fn pieces(&self) -> impl Iterator<Item = (Stream, &str)> {
        self.pieces.iter().map(|(stream, text)| (*stream, text.as_str()))
    }

    /// Everything in order, as a terminal shows it.
    #[cfg(test)]
    pub fn text(&self) -> String {
        self.pieces().map(|(_, text)| text).collect()
    }

    /// What went to one stream.
    #[cfg(test)]
    pub fn only(&self, stream: Stream) -> String {
        self.pieces()
            .filter(|(which, _)| *which == stream)
            .map(|(_, text)| text)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 10.3: the reply can be told from everything around it.
    #[test]
    fn streams_are_kept_apart() {
        let mut output = Output::new();
        output.push(Stream::Reply, "a");
        output.push(Stream::Reply, "b\n");
        output.push(Stream::Status, "[aish] x\n");
        output.push(Stream::Reply, "c\n");
        assert_eq!(output.pieces().count(), 3);
        assert_eq!(output.only(Stream::Reply), "ab\nc\n");
        assert_eq!(output.text(), "ab\n[aish] x\nc\n");
    }
}
