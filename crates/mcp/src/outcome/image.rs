//! Images of servers: what models take, told by their content and not by what a server calls them.
//!
//! A provider refuses the whole request for one image that is not what it says, and it would stay in the conversation.

use aish_core::message::Part;
use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Bytes of an image in base64: the lowest limit of the four wire formats.
const IMAGE_BASE64_BYTES_MAX: usize = 5 << 20;

/// Images that all four wire formats take, and how they begin.
const IMAGES: [(&str, &[u8]); 4] = [
    ("image/png", b"\x89PNG"),
    ("image/jpeg", b"\xff\xd8\xff"),
    ("image/gif", b"GIF8"),
    ("image/webp", b"RIFF"),
];

/// Base64 as servers write it: with or without its padding.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// An image from its base64 text, which may have line breaks.
///
/// # Errors
/// Why it is none, as the end of a sentence.
pub(super) fn part(data: &str) -> Result<Part, &'static str> {
    // White space may double the text at most.
    if data.len() > IMAGE_BASE64_BYTES_MAX * 2 {
        return Err("it is too large");
    }
    let compact: String = data.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    if compact.len() > IMAGE_BASE64_BYTES_MAX {
        return Err("it is too large");
    }
    let bytes = LENIENT.decode(compact).map_err(|_| "its base64 is broken")?;
    let known = IMAGES.iter().find(|(_, begin)| bytes.starts_with(begin));
    let (media_type, _) = known.ok_or("models do not take its kind")?;
    Ok(Part::Image {
        media_type: (*media_type).to_owned(),
        data: LENIENT.encode(bytes),
    })
}

/// How large the bytes behind base64 text are, about.
pub(super) fn decoded_bytes(base64: &str) -> usize {
    base64.trim_end_matches('=').len().saturating_mul(3) / 4
}
