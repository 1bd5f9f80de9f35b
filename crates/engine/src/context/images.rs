//! Images of results in a request: how many of them go along, and what stands for the others.
//!
//! A question brings as many images as a person named. A tool that looks at a screen brings one with each call, and a
//! provider refuses the request of too many bytes, and with it all later ones of the session. So only the newest go along.

use aish_core::image::{IMAGE_BASE64_BYTES_MAX, IMAGES_MAX, Image, RESULT_IMAGES_BASE64_BYTES_MAX};
use aish_core::message::{Message, Part};

/// Images of results in one request.
const RESULT_IMAGES_MAX: usize = IMAGES_MAX;
/// The parts of either bound that are freed at once: with each new image another old one would go, and no two requests
/// would begin alike.
const STEPS: usize = 4;

// The newest image always fits.
const _: () = assert!(IMAGE_BASE64_BYTES_MAX < RESULT_IMAGES_BASE64_BYTES_MAX / STEPS * (STEPS - 1));

/// Leaves out the oldest images of results where there are too many; gives how many.
pub(super) fn keep_newest(messages: &mut [Message]) -> usize {
    let sizes: Vec<usize> = messages
        .iter()
        .flat_map(of_result)
        .map(|image| image.data.len())
        .collect();
    let count_excess = stepped(sizes.len(), RESULT_IMAGES_MAX);
    let chars_excess = stepped(sizes.iter().sum(), RESULT_IMAGES_BASE64_BYTES_MAX);
    let (mut dropped, mut chars) = (0, 0);
    for size in &sizes {
        if dropped >= count_excess && chars >= chars_excess {
            break;
        }
        dropped += 1;
        chars += size;
    }
    leave_out(messages, dropped, "newer ones took its place");
    dropped
}

/// Leaves out that many images of results, the oldest first, and says in their results why.
pub(super) fn leave_out(messages: &mut [Message], count: usize, why: &str) {
    let mut left = count;
    for message in messages {
        let Message::Tool { output, parts, .. } = message else {
            continue;
        };
        parts.retain(|part| {
            let Some(image) = Image::of(part).filter(|_| left > 0) else {
                return true;
            };
            left -= 1;
            if !output.is_empty() && !output.ends_with('\n') {
                output.push('\n');
            }
            output.push_str(&format!("[{}, left out: {why}]", image.name()));
            false
        });
    }
}

/// The images of a result, in order; none for other messages.
pub(super) fn of_result(message: &Message) -> impl Iterator<Item = Image<'_>> {
    let parts: &[Part] = match message {
        Message::Tool { parts, .. } => parts,
        Message::User { .. } | Message::Assistant { .. } => &[],
    };
    Image::all(parts)
}

/// What is to be freed where there is more than the bound: whole steps.
fn stepped(amount: usize, max: usize) -> usize {
    let step = (max / STEPS).max(1);
    amount.saturating_sub(max).div_ceil(step) * step
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::{IMAGE_CHARS, can_shrink, fit};
    use super::*;
    use aish_core::id::CallId;

    fn result(sizes: &[usize]) -> Message {
        let image = |size: &usize| Part::Image {
            media_type: "image/png".into(),
            data: "A".repeat(*size),
        };
        Message::Tool {
            call_id: CallId::nth(1, 1),
            provider_id: None,
            name: "screen.look".into(),
            output: "seen".into(),
            success: true,
            parts: sizes.iter().map(image).collect(),
        }
    }

    fn check(sizes: &[&[usize]], kept: &[usize]) {
        let mut messages: Vec<Message> = sizes.iter().map(|sizes| result(sizes)).collect();
        let all: usize = sizes.iter().map(|sizes| sizes.len()).sum();
        let dropped = keep_newest(&mut messages);
        let left: Vec<usize> = messages.iter().map(|message| of_result(message).count()).collect();
        assert_eq!((dropped, left.as_slice()), (all - kept.iter().sum::<usize>(), kept));
        let said = format!("{messages:?}").matches("left out: newer ones").count();
        assert_eq!(said, dropped);
    }

    /// SPEC 3.7, 6.5: the newest images of results go along; older ones are named, some at once.
    #[test]
    fn the_newest_are_kept() {
        check(&[&[4][..]; 20], &[1; 20]);
        check(&[&[4][..]; 21], &[&[0; 5][..], &[1; 16]].concat());
        check(&[&[3_000_000, 3_000_000], &[], &[3_000_000, 3_000_000]], &[1, 0, 2]);
        check(&[&[5 << 20], &[5 << 20]], &[1, 1]);
        check(&[&[5 << 20], &[5 << 20], &[1]], &[0, 1, 1]);
    }

    /// SPEC 3.7, 6.5: images of results count for what they are; they go with old results, and last of all with new ones.
    #[test]
    fn images_make_room() {
        let user = |text: &str| Message::User {
            parts: vec![Part::text(text)],
        };
        let answer = |text: &str| Message::Assistant {
            parts: vec![Part::text(text)],
            calls: Vec::new(),
            model: None,
        };
        let mut messages = vec![
            user("a"),
            result(&[4, 4]),
            answer("b"),
            user("c"),
            answer("d"),
            result(&[4, 4, 4]),
        ];
        let counts = |messages: &[Message]| {
            let mut each = messages.iter().map(|message| of_result(message).count());
            (each.clone().sum::<usize>(), each.next_back().unwrap_or_default())
        };
        fit(&mut messages, 4 * IMAGE_CHARS);
        assert_eq!(counts(&messages), (3, 3));
        assert!(can_shrink(&messages));
        fit(&mut messages, 2 * IMAGE_CHARS);
        assert_eq!(counts(&messages), (1, 1));
        fit(&mut messages, 10);
        assert_eq!(counts(&messages), (0, 0));
        let said = format!("{messages:?}").matches("does not fit the context").count();
        assert_eq!(said, 3);
    }
}
