//! Reading a reply the way the HTTP layer does, without HTTP: bytes through the event-stream parser, a format's decoder
//! and the assembler.

use aish_core::event::ReplyStop;
use aish_provider::assemble::{Assembler, Ending};
use aish_provider::codec::names::WireNames;
use aish_provider::codec::{Decoder, codec_of};
use aish_provider::profile::{Format, WireNaming};
use aish_provider::{Delta, ProviderError, Reply, sse};

/// A reply and what was shown of it while it came.
#[derive(Debug)]
pub struct Heard {
    /// The reply.
    pub reply: Reply,
    /// The deltas, in order.
    pub shown: Vec<Delta>,
}

impl Heard {
    /// The text that was shown.
    pub fn shown_text(&self) -> String {
        let text = self.shown.iter().filter_map(|delta| match delta {
            Delta::Text(text) => Some(text.as_str()),
            Delta::Thinking(_) | Delta::CallBegun { .. } => None,
        });
        text.collect()
    }

    /// True when the reply has calls that would be run.
    pub fn has_calls(&self) -> bool {
        assert_eq!(
            self.reply.stop == ReplyStop::ToolCalls,
            !self.reply.calls.is_empty(),
            "a reply waits for its calls exactly when it has some"
        );
        !self.reply.calls.is_empty()
    }
}

/// What reads one reply.
pub struct Ear {
    decoder: Box<dyn Decoder>,
    parser: sse::Parser,
    assembler: Assembler,
    shown: Vec<Delta>,
    /// What came, while it may be one JSON document.
    document: Option<Vec<u8>>,
    begun: bool,
}

impl Ear {
    /// For the reply to a request of this format with these tools, as people name them.
    pub fn new(format: Format, tools: &[String]) -> Self {
        let names = WireNames::new(WireNaming::Underscore, tools.iter().map(String::as_str));
        Self {
            decoder: codec_of(format).decoder(),
            parser: sse::Parser::new(),
            assembler: Assembler::new(names, tools.to_vec()),
            shown: Vec::new(),
            document: None,
            begun: false,
        }
    }

    /// Takes the next chunk.
    pub fn hear(&mut self, chunk: &[u8]) {
        let first = chunk
            .iter()
            .find(|byte| !(byte.is_ascii_whitespace() || b"\xEF\xBB\xBF".contains(byte)));
        if let (false, Some(first)) = (self.begun, first) {
            self.begun = true;
            self.document = b"{[".contains(first).then(Vec::new);
        }
        if let Some(document) = &mut self.document {
            document.extend_from_slice(chunk);
            return;
        }
        let (decoder, assembler, shown) = (&mut self.decoder, &mut self.assembler, &mut self.shown);
        let fed = self.parser.feed(chunk, |event| {
            if !assembler.has_failed()
                && let Err(error) = decoder.event(&event, &mut |piece| assembler.push(piece, shown))
            {
                assembler.fail(error);
            }
        });
        if let Err(error) = fed {
            self.assembler.fail(ProviderError {
                kind: aish_provider::ErrorKind::TooLarge,
                message: error.to_string(),
                retry_after: None,
            });
        }
    }

    /// Nothing more comes.
    pub fn end(mut self, ending: Ending) -> Heard {
        let (decoder, assembler, shown) = (&mut self.decoder, &mut self.assembler, &mut self.shown);
        if let Some(document) = self.document.take() {
            let text = String::from_utf8_lossy(&document);
            if let Err(error) = decoder.body(&text, &mut |piece| assembler.push(piece, shown)) {
                assembler.fail(error);
            }
        } else {
            // What is left of an event may be cut, which is no fault of the server's; a bound that was passed before is known.
            let _known = self.parser.finish(|event| {
                if !assembler.has_failed() {
                    let _cut = decoder.event(&event, &mut |piece| assembler.push(piece, shown));
                }
            });
        }
        self.assembler.flush(&mut self.shown);
        Heard {
            reply: self.assembler.finish(ending),
            shown: self.shown,
        }
    }
}

/// The reply that comes in these chunks and then ends.
pub fn read<'c>(format: Format, tools: &[String], chunks: impl IntoIterator<Item = &'c [u8]>) -> Heard {
    let mut ear = Ear::new(format, tools);
    for chunk in chunks {
        ear.hear(chunk);
    }
    ear.end(Ending::Read)
}
