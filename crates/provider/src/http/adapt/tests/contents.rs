//! Refusals of what a conversation has in it, and of how much it asks for.

#![allow(clippy::panic)]

use super::super::super::way::OwnReplies;
use super::*;
use std::collections::BTreeSet;

fn way(format: Format) -> Way {
    let mut profile = ModelProfile::new(format, "https://models.example/v1", "m");
    profile.reasoning = Some(Reasoning::High);
    Way::of(profile)
}

/// The way after a refusal in these words, and nothing but the way's images or replies changed.
#[track_caller]
fn after(words: &str, way: &Way, asked: &Asked) -> Way {
    let adapted = adapted(400, words, way, asked).unwrap_or_else(|| panic!("nothing changed: {words}"));
    assert_eq!(adapted.way.profile, way.profile, "{words}");
    Way::clone(&adapted.way)
}

/// SPEC 3.7: an image that cannot be read is told in words; the model is not taken for one that sees nothing.
#[test]
fn images() {
    for words in [
        // https://github.com/anthropics/claude-code/issues/46127
        "messages.0.content.0: Could not process image",
        "You uploaded an unsupported image. Please make sure your image is valid.",
        "Unable to process input image. Please retry or report in https://developers.generativeai.google/guide",
        "Invalid image data",
        "The image data you provided does not represent a valid image. Please check your input and try again",
        // https://github.com/gsd-build/gsd-2/pull/3075
        "messages.0.content.1.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000",
        "messages.2.content.0.image.source.base64: The image was specified using the image/png media type, but the image \
            appears to be a image/jpeg image",
        // llama.cpp, tools/mtmd
        "Failed to load image or audio file",
    ] {
        let way = after(words, &way(Format::Anthropic), &everything());
        assert_eq!(way.refused_images, BTreeSet::from([1]), "{words}");
        assert!(adapted(400, words, &way, &everything()).is_none(), "twice: {words}");
    }
    let remark = adapted(400, "Invalid image data", &way(Format::Gemini), &everything()).map(|adapted| adapted.remark);
    assert_eq!(
        remark.as_deref(),
        Some("the server refuses an image: told in words; other images are still sent")
    );
}

/// SPEC 3.7: a request of too many bytes is too large for its images, if it has any; less conversation would not help.
#[test]
fn images_that_are_too_many() {
    for (status, words) in [
        (413, "Request exceeds the maximum size"),
        (413, "Request Entity Too Large"),
        (400, "Request payload size exceeds the limit: 20971520 bytes."),
    ] {
        let adapted = adapted(status, words, &way(Format::Gemini), &everything());
        let refused = adapted.map(|adapted| adapted.way.refused_images.clone());
        assert_eq!(refused, Some(BTreeSet::from([1])), "{words}");
    }
    let tokens = "Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 7000";
    assert!(adapted(413, tokens, &way(Format::OpenaiChat), &everything()).is_none());
}

/// SPEC 3.7: of several images the one is meant whose size the words name, else one the server has not taken before.
#[test]
fn which_image_is_meant() {
    let sized = |mark, data_bytes, was_taken| SentImage {
        mark,
        data_bytes,
        was_taken,
    };
    let mut asked = everything();
    asked.images = vec![
        sized(1, 6_000_096, false),
        sized(2, 4000, true),
        sized(3, 8000, false),
        sized(4, 7_000_000, true),
    ];
    for (words, meant) in [
        ("image exceeds 5 MB maximum: 6000096 bytes > 5242880 bytes", vec![1, 4]),
        // The size of the file instead.
        ("image exceeds 5 MB maximum: 4500070 bytes > 4000000 bytes", vec![1, 4]),
        ("Could not process image", vec![1, 3]),
    ] {
        let way = after(words, &way(Format::Anthropic), &asked);
        assert_eq!(way.refused_images, BTreeSet::from_iter(meant), "{words}");
    }
    asked.images = vec![sized(1, 10, true), sized(2, 10, true)];
    let all = after("Could not process image", &way(Format::Anthropic), &asked);
    assert_eq!(all.refused_images, BTreeSet::from([1, 2]));
}

/// SPEC 3.7, 7.6: thinking whose signature is not accepted any more is told as another model's.
#[test]
fn own_thinking() {
    for words in [
        // https://github.com/lbjlaq/Antigravity-Manager/issues/498
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        // https://github.com/anthropics/claude-code/issues/63284
        "messages.5.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.",
        // https://github.com/lbjlaq/Antigravity-Manager/issues/139
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is \
            enabled, a final `assistant` message must start with a thinking block.",
        // https://github.com/Wei-Shaw/sub2api/issues/2863
        "The encrypted content gAAA... could not be verified. Reason: Encrypted content could not be decrypted or parsed.",
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
        "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'.",
        "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.",
        // https://github.com/decolua/9router/issues/301
        "Unable to submit request because Thought signature is not valid.. Learn more: https://cloud.google.com",
        // https://github.com/BigPizzaV3/CodexPlusPlus/issues/332
        "Function call is missing a thought_signature in functionCall parts.",
        // https://github.com/heyhuynhgiabuu/proxypal/issues/119
        "Corrupted thought signature.",
    ] {
        let way = after(words, &way(Format::OpenaiResponses), &everything());
        assert_eq!(way.own_replies, OwnReplies::Refused(BTreeSet::from([1])), "{words}");
        assert!(
            adapted(400, words, &way, &everything()).is_none_or(|adapted| adapted.way.own_replies == way.own_replies),
            "twice: {words}"
        );
        let mut more = everything();
        more.own_replies = vec![1, 2];
        assert_eq!(after(words, &way, &more).own_replies, OwnReplies::AllRefused, "{words}");
    }
}

/// SPEC 7.4: a reply may be as long as the server says, whoever asks for more.
#[test]
fn shorter_replies() {
    let words =
        "max_tokens: 8192 > 4096, which is the maximum allowed number of output tokens for claude-3-haiku-20240307";
    for (asked_for, expect) in [
        (None, Some(4096)),
        (Some(8192), Some(4096)),
        (Some(4096), None),
        (Some(100), None),
    ] {
        let mut asked = everything();
        asked.output_tokens = asked_for;
        let adapted = adapted(400, words, &way(Format::Anthropic), &asked);
        let tokens = adapted
            .as_ref()
            .and_then(|adapted| adapted.way.profile.output_tokens_max);
        assert_eq!(tokens, expect, "{asked_for:?}");
        if let Some(adapted) = adapted {
            assert_eq!(
                adapted.remark,
                "the server refuses so long a reply: asked for a shorter one (`max_output_tokens = 4096` for this model \
                 asks so at once)"
            );
        }
    }
}

/// SPEC 3.7: where the reply asked for fills the window, no conversation would ever fit:
/// <https://github.com/ogx-ai/ogx/issues/4534>.
#[test]
fn room_for_a_conversation() {
    let words = "This model's maximum context length is 6048 tokens. However, you requested 6616 tokens (568 in the messages, \
        6048 in the completion). Please reduce the length of the messages or completion.";
    for (asked_for, expect) in [(Some(6048), Some(1512)), (Some(3000), None), (None, None)] {
        let mut asked = everything();
        asked.output_tokens = asked_for;
        let adapted = adapted(400, words, &way(Format::OpenaiChat), &asked);
        let tokens = adapted.and_then(|adapted| adapted.way.profile.output_tokens_max);
        assert_eq!(tokens, expect, "{asked_for:?}");
    }
    let mut asked = everything();
    asked.output_tokens = Some(32_768);
    let prompt = "request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it";
    assert!(adapted(400, prompt, &way(Format::OpenaiChat), &asked).is_none());
}

/// SPEC 7.4: of reasoning only that is left out which is refused, and in the other formats, which lack it, all of it.
#[test]
fn parts_of_reasoning() {
    // https://github.com/OpenHands/software-agent-sdk/issues/987
    let summary = "Your organization must be verified to generate reasoning summaries. Please go to: https://platform";
    let encrypted = "Encrypted content is not supported with this model.";
    let responses = way(Format::OpenaiResponses);
    let mut expect = ModelProfile::clone(&responses.profile);
    expect.reasoning_summary = Support::No;
    let changed = |words, way: &Way| {
        let adapted = adapted(400, words, way, &everything());
        adapted.map(|adapted| ModelProfile::clone(&adapted.way.profile))
    };
    assert_eq!(changed(summary, &responses).as_ref(), Some(&expect));
    expect.reasoning_summary = Support::Yes;
    expect.encrypted_reasoning = Support::No;
    assert_eq!(changed(encrypted, &responses).as_ref(), Some(&expect));
    assert!(changed(encrypted, &way(Format::OpenaiChat)).is_none());
}

/// SPEC 7.4: the advice is one that helps: another temperature only where just that one is taken.
#[test]
fn advice_for_temperature() {
    let only_one = "'temperature' does not support 0.2 with this model. Only the default (1) value is supported.";
    let none = "Unsupported parameter: 'temperature' is not supported with this model.";
    for (format, temperature, words, key) in [
        (
            Format::OpenaiChat,
            Some(0.2),
            only_one,
            " (`temperature = 1` for this model asks so at once)",
        ),
        (Format::OpenaiChat, Some(0.2), none, ""),
        (
            Format::OpenaiChat,
            Some(0.3),
            none,
            " (remove `temperature` of this model to ask so at once)",
        ),
        (
            Format::OpenaiResponses,
            Some(1.0),
            none,
            " (remove `temperature` of this model to ask so at once)",
        ),
    ] {
        let mut profile = ModelProfile::new(format, "https://models.example/v1", "m");
        profile.temperature = temperature;
        let remark = adapted(400, words, &Way::of(profile), &everything()).map(|adapted| adapted.remark);
        let expect = format!("the server refuses temperature: asked without it{key}");
        assert_eq!(remark, Some(expect), "{format:?} {temperature:?}");
    }
}
