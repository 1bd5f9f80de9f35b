//! Images of servers: what models take, told by their content and not by what a server calls them.

use aish_core::image::{IMAGE_BASE64_BYTES_MAX, image_type};
use aish_core::message::Part;
use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

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
    let media_type = image_type(&bytes).ok_or("models do not take its kind")?;
    Ok(Part::Image {
        media_type: media_type.to_owned(),
        data: LENIENT.encode(bytes),
    })
}
