//! Images as models take them: which kinds there are, how large they may be, and how one is named where it is not shown.
//!
//! Both sources of images, files that a person names and results of tools, are held to the same limits: a provider refuses
//! the whole request for one image that is not what it says, and it would stay in the conversation (SPEC 3.7).

use crate::message::Part;

/// Bytes of one image in base64: the lowest limit of the four wire formats (Anthropic: "image exceeds 5 MB maximum" counts the
/// encoded text).
pub const IMAGE_BASE64_BYTES_MAX: usize = 5 << 20;
/// Bytes of base64 of all images of one result, and of all results in one request: Anthropic refuses requests above 32 MB, and
/// a question may bring 20 MB.
pub const RESULT_IMAGES_BASE64_BYTES_MAX: usize = 2 * IMAGE_BASE64_BYTES_MAX;
/// Images of one question or one result: with more, Anthropic takes only small ones.
pub const IMAGES_MAX: usize = 20;

/// A kind of image: its media type, and the bytes that stand in it at these places.
type Kind = (&'static str, &'static [(usize, &'static [u8])]);

/// The kinds that at least three of the four wire formats take, told by their content and not by what they are called.
const KINDS: [Kind; 4] = [
    ("image/png", &[(0, b"\x89PNG")]),
    ("image/jpeg", &[(0, b"\xff\xd8\xff")]),
    ("image/gif", &[(0, b"GIF8")]),
    // A sound begins with the same four bytes.
    ("image/webp", &[(0, b"RIFF"), (8, b"WEBP")]),
];

/// The media type of an image that begins with these bytes; none for what models do not take.
pub fn image_type(head: &[u8]) -> Option<&'static str> {
    let stands = |(at, bytes): &(usize, &[u8])| head.get(*at..).is_some_and(|rest| rest.starts_with(bytes));
    let kind = KINDS.iter().find(|(_, marks)| marks.iter().all(stands))?;
    Some(kind.0)
}

/// An image among other parts of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image<'a> {
    /// Its media type, e.g. `image/png`.
    pub media_type: &'a str,
    /// Its bytes in base64.
    pub data: &'a str,
}

impl<'a> Image<'a> {
    /// The image that a part is, if it is one.
    pub fn of(part: &'a Part) -> Option<Self> {
        match part {
            Part::Image { media_type, data } => Some(Self { media_type, data }),
            Part::Text { .. }
            | Part::Thinking { .. }
            | Part::Context { .. }
            | Part::Provider { .. }
            | Part::Call { .. }
            | Part::PartialCall { .. } => None,
        }
    }

    /// The images among these parts, in order.
    pub fn all(parts: &'a [Part]) -> impl Iterator<Item = Self> {
        parts.iter().filter_map(Self::of)
    }

    /// What it is called in words: `image image/png, 12 KB`. The media type of an imported log may be any text.
    pub fn name(&self) -> String {
        format!(
            "image {}, {} KB",
            self.media_type,
            decoded_bytes(self.data).div_ceil(1_000)
        )
    }
}

/// How large the bytes behind base64 text are.
pub fn decoded_bytes(base64: &str) -> usize {
    base64.trim_end_matches('=').len().saturating_mul(3) / 4
}

/// A text and, a line each, the names of the images that came with it: `[image image/png, 12 KB]`.
pub fn with_image_names(text: &str, parts: &[Part]) -> String {
    let mut shown = text.to_owned();
    for image in Image::all(parts) {
        if !shown.is_empty() && !shown.ends_with('\n') {
            shown.push('\n');
        }
        shown.push_str(&format!("[{}]", image.name()));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 6.5: an image is what its bytes say.
    #[test]
    fn kinds() {
        for (head, expect) in [
            (&b"\x89PNG\r\n"[..], Some("image/png")),
            (b"\xff\xd8\xff\xe0", Some("image/jpeg")),
            (b"GIF89a", Some("image/gif")),
            (b"RIFF\x01\x02\x03\x04WEBPVP8 ", Some("image/webp")),
            (b"RIFF\x01\x02\x03\x04WAVEfmt ", None),
            (b"RIFF", None),
            (b"BM", None),
            (b"", None),
        ] {
            assert_eq!(image_type(head), expect, "{head:?}");
        }
    }

    /// SPEC 6.5: where an image is not shown it is named, with its size.
    #[test]
    fn names() {
        let image = |data: &str| Part::Image {
            media_type: "image/png".into(),
            data: data.into(),
        };
        assert_eq!((decoded_bytes("AAAA"), decoded_bytes("AA==")), (3, 1));
        let parts = [image(&"AAAA".repeat(4_000)), Part::text("other"), image("AA==")];
        let names = "[image image/png, 12 KB]\n[image image/png, 1 KB]";
        assert_eq!(with_image_names("", &parts), names);
        assert_eq!(with_image_names("one\n", &parts), format!("one\n{names}"));
        assert_eq!(with_image_names("one", &parts), format!("one\n{names}"));
        assert_eq!(with_image_names("one", &[]), "one");
    }
}
