//! Bytes ↔ text: which encoding a file is in, or that it is no text at all.
//!
//! UTF-8 and UTF-16 are told by their marks or by being valid; anything else that has no control characters is taken
//! for Windows-1252, a superset of Latin-1 in which every byte is some character.

use encoding_rs::{Decoder, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// Bytes looked at to tell the encoding.
pub(crate) const SAMPLE_BYTES: usize = 8 * 1024;

/// An encoding, with the mark the file starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// UTF-8 without a mark.
    Utf8,
    /// UTF-8 after its mark.
    Utf8Marked,
    /// UTF-16, low byte first, after its mark.
    Utf16Le,
    /// UTF-16, high byte first, after its mark.
    Utf16Be,
    /// Windows-1252.
    Windows1252,
}

/// Not text; says what it is instead, e.g. `image/png`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotText(pub(crate) &'static str);

impl Encoding {
    /// Tells the encoding from the first bytes of a file.
    pub(crate) fn detect(sample: &[u8]) -> Result<Self, NotText> {
        for encoding in [Self::Utf8Marked, Self::Utf16Le, Self::Utf16Be] {
            if sample.starts_with(encoding.mark()) {
                return Ok(encoding);
            }
        }
        let known = || infer::get(sample).map(|kind| kind.mime_type());
        if sample.contains(&0) {
            return Err(NotText(known().unwrap_or("binary data")));
        }
        match Utf8Profile::of(sample) {
            profile if profile.invalid == 0 => Ok(Self::Utf8),
            _ if sample.iter().any(|byte| is_binary_control(*byte)) => Err(NotText(known().unwrap_or("binary data"))),
            profile => match infer::get(sample) {
                Some(kind) if kind.matcher_type() != infer::MatcherType::Text => Err(NotText(kind.mime_type())),
                // A few broken characters in much UTF-8 are damage, not another encoding.
                Some(_) | None if profile.wide > profile.invalid => Ok(Self::Utf8),
                Some(_) | None => Ok(Self::Windows1252),
            },
        }
    }

    /// The bytes a file in this encoding starts with.
    pub(super) fn mark(self) -> &'static [u8] {
        match self {
            Self::Utf8Marked => b"\xEF\xBB\xBF",
            Self::Utf16Le => b"\xFF\xFE",
            Self::Utf16Be => b"\xFE\xFF",
            Self::Utf8 | Self::Windows1252 => b"",
        }
    }

    /// True when one byte of file is one byte of text.
    pub(super) fn is_utf8(self) -> bool {
        match self {
            Self::Utf8 | Self::Utf8Marked => true,
            Self::Utf16Le | Self::Utf16Be | Self::Windows1252 => false,
        }
    }

    /// The same, for decoding.
    pub(crate) fn coding(self) -> &'static encoding_rs::Encoding {
        match self {
            Self::Utf8 | Self::Utf8Marked => UTF_8,
            Self::Utf16Le => UTF_16LE,
            Self::Utf16Be => UTF_16BE,
            Self::Windows1252 => WINDOWS_1252,
        }
    }

    /// A decoder of pieces; the mark is not among them.
    pub(super) fn decoder(self) -> Decoder {
        self.coding().new_decoder_without_bom_handling()
    }

    /// The text of a whole file, or `None` when some bytes of it are not in this encoding, or would not come back the same.
    pub(super) fn decode(self, mut bytes: Vec<u8>) -> Option<String> {
        if self.is_utf8() {
            // In place: a large file is not held twice.
            bytes
                .starts_with(self.mark())
                .then(|| bytes.drain(..self.mark().len()))?;
            return String::from_utf8(bytes).ok();
        }
        let body = bytes.strip_prefix(self.mark())?;
        let text = self
            .coding()
            .decode_without_bom_handling_and_without_replacement(body)?
            .into_owned();
        (self.encode(&text)? == bytes).then_some(text)
    }

    /// How many bytes [`Encoding::encode`] gives for a text, the mark left out.
    pub(super) fn encoded_len(self, text: &str) -> usize {
        match self {
            Self::Utf8 | Self::Utf8Marked => text.len(),
            Self::Utf16Le | Self::Utf16Be => 2 * text.chars().map(char::len_utf16).sum::<usize>(),
            Self::Windows1252 => text.chars().count(),
        }
    }

    /// The bytes of a whole file, mark included, or `None` when the encoding lacks a character of the text.
    pub(super) fn encode(self, text: &str) -> Option<Vec<u8>> {
        let mut bytes = Vec::with_capacity(self.mark().len() + self.encoded_len(text));
        bytes.extend_from_slice(self.mark());
        match self {
            Self::Utf8 | Self::Utf8Marked => bytes.extend_from_slice(text.as_bytes()),
            Self::Utf16Le => bytes.extend(text.encode_utf16().flat_map(u16::to_le_bytes)),
            Self::Utf16Be => bytes.extend(text.encode_utf16().flat_map(u16::to_be_bytes)),
            Self::Windows1252 => {
                let (encoded, _, has_unmappable) = WINDOWS_1252.encode(text);
                if has_unmappable {
                    return None;
                }
                bytes.extend_from_slice(&encoded);
            }
        }
        Some(bytes)
    }
}

/// Decodes one piece and appends it; broken bytes become replacement characters. `is_last` flushes what waits for more.
pub(crate) fn decode_piece(decoder: &mut Decoder, bytes: &[u8], out: &mut String, is_last: Last) {
    let needed = decoder.max_utf8_buffer_length(bytes.len()).unwrap_or(bytes.len() * 3);
    out.reserve(needed);
    let _ = decoder.decode_to_string(bytes, out, is_last == Last::Yes);
}

/// Whether a piece is the last one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Last {
    /// More may follow.
    No,
    /// Nothing follows.
    Yes,
}

/// How much of a sample is UTF-8.
struct Utf8Profile {
    /// Characters of more than one byte.
    wide: usize,
    /// Broken sequences, but for one the end of the sample may have cut.
    invalid: usize,
}

impl Utf8Profile {
    fn of(sample: &[u8]) -> Self {
        let mut profile = Self { wide: 0, invalid: 0 };
        let mut rest = sample;
        loop {
            let (valid, skip) = match std::str::from_utf8(rest) {
                Ok(text) => (text, None),
                Err(error) => {
                    let valid = rest.get(..error.valid_up_to()).unwrap_or_default();
                    let skip = error.error_len().map(|len| error.valid_up_to() + len);
                    // A sequence cut by the end of a full sample is not broken; at the end of a file it is.
                    if skip.is_none() && sample.len() < SAMPLE_BYTES {
                        profile.invalid += 1;
                    }
                    (std::str::from_utf8(valid).unwrap_or_default(), skip)
                }
            };
            profile.wide += valid.chars().filter(|c| !c.is_ascii()).count();
            let Some(skip) = skip else { return profile };
            profile.invalid += 1;
            rest = rest.get(skip..).unwrap_or_default();
        }
    }
}

/// A control character that text files do not have; bell, backspace, tab, the line ends and escape they may.
fn is_binary_control(byte: u8) -> bool {
    matches!(byte, 0..=6 | 14..=26 | 28..=31 | 127)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], expect: Result<Encoding, NotText>) {
        assert_eq!(
            Encoding::detect(bytes),
            expect,
            "{:?}",
            bytes.escape_ascii().to_string()
        );
    }

    /// SPEC 4.2: what is no text is told apart, and named where it is known.
    #[test]
    fn encodings_are_detected() {
        check(b"", Ok(Encoding::Utf8));
        check("grün".as_bytes(), Ok(Encoding::Utf8));
        check(b"\xEF\xBB\xBFx", Ok(Encoding::Utf8Marked));
        check(b"\xFF\xFEx\0", Ok(Encoding::Utf16Le));
        check(b"\xFE\xFF\0x", Ok(Encoding::Utf16Be));
        check(b"gr\xFCn\r\n", Ok(Encoding::Windows1252));
        check("much UTF-8: äöü, one broken: \u{e9}".as_bytes(), Ok(Encoding::Utf8));
        check(b"\xC3\xA4\xC3\xB6 \xFF", Ok(Encoding::Utf8));
        check(b"MZ is how this sentence starts", Ok(Encoding::Utf8));
        check(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", Err(NotText("image/png")));
        check(b"\x1f\x8b\x08\xff\xff", Err(NotText("application/gzip")));
        check(b"a\0b", Err(NotText("binary data")));
        check(b"\x01\xff\x02\xfe", Err(NotText("binary data")));
    }

    /// SPEC 4.1: an edit keeps a file's encoding, byte for byte.
    #[test]
    fn encodings_round_trip() {
        let files: [&[u8]; 4] = [
            b"\xEF\xBB\xBFa\xC3\xA4",
            b"\xFF\xFEa\0\xE4\0",
            b"\xFE\xFF\0a\0\xE4",
            b"a\xE4",
        ];
        for bytes in files {
            let encoding = Encoding::detect(bytes).unwrap();
            let text = encoding.decode(bytes.to_vec()).unwrap();
            assert_eq!(text, "aä", "{encoding:?}");
            assert_eq!(encoding.encode(&text).unwrap(), bytes);
            assert_eq!(encoding.mark().len() + encoding.encoded_len(&text), bytes.len());
        }
        assert_eq!(Encoding::Windows1252.encode("日"), None);
        assert_eq!(Encoding::Utf8.decode(b"\xFF".to_vec()), None);
    }
}
