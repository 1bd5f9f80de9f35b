//! What servers really said, each with where it was reported, and what is done about it.

use super::super::way::SentImage;
use super::change::Change;
use super::*;
use crate::codec::failure;
use crate::codec::schema::SchemaDialect;
use crate::profile::{
    Alternation, CallsPerReply, Format, MaxTokensField, ModelProfile, ProviderTool, Reasoning, Support, SystemRole,
    ThinkingBack, ToolRole, WireCallIds, WireNaming,
};

mod contents;

fn image(mark: u64) -> SentImage {
    SentImage {
        mark,
        data_bytes: 8,
        was_taken: false,
    }
}

/// A request that has everything a refusal can be about.
fn everything() -> Asked {
    Asked {
        has_system: true,
        has_tools: true,
        has_calls: true,
        has_steering: true,
        has_schema: true,
        has_max_tokens: true,
        is_choice_none: true,
        output_tokens: None,
        images: vec![image(1)],
        own_replies: vec![1],
    }
}

/// A profile that sends everything that can be refused.
fn sending() -> ModelProfile {
    let mut profile = ModelProfile::new(Format::OpenaiChat, "https://models.example/v1", "m");
    profile.calls = CallsPerReply::One;
    profile.wire_names = WireNaming::Dot;
    profile.schemas = SchemaDialect::Full;
    profile.reasoning = Some(Reasoning::High);
    profile.provider_tools = vec![ProviderTool::WebSearch];
    profile.cache_marks = Support::Yes;
    profile
}

/// The change that a refusal makes, as the name of what it is about.
fn changed(status: u16, words: &str, profile: &ModelProfile) -> Option<ModelProfile> {
    let adapted = adapted(status, words, &Way::of(profile.clone()), &everything())?;
    Some(ModelProfile::clone(&adapted.way.profile))
}

fn adapted(status: u16, words: &str, way: &Way, asked: &Asked) -> Option<Adapted> {
    let body = serde_json::json!({"error": {"message": words}}).to_string();
    let error = failure::of_status(status, &body);
    let adapted = adapt(error.kind, &error.message, way, asked)?;
    assert!(adapted.remark.starts_with("the server refuses "), "{}", adapted.remark);
    assert!(!adapted.remark.contains('\n'));
    Some(adapted)
}

/// Asserts that the words change this of the profile and nothing else, and that they change nothing once it is so.
#[track_caller]
fn check(words: &str, change: impl FnOnce(&mut ModelProfile)) {
    let mut expect = sending();
    change(&mut expect);
    let got = changed(400, words, &sending());
    assert_eq!(got.as_ref(), Some(&expect), "{words}");
}

/// SPEC 10.4: the name of a model that is gone refuses nothing that its name speaks of.
#[test]
fn names_of_models() {
    let words = "The model `llama-3.2-11b-vision-preview` has been decommissioned and is no longer supported.";
    let gone = ModelProfile {
        model: "llama-3.2-11b-vision-preview".to_owned(),
        ..sending()
    };
    assert_eq!(changed(400, words, &gone), None);
    assert!(changed(400, words, &sending()).is_some());
}

/// SPEC 7.1, 7.4: fields of the request.
#[test]
fn fields() {
    // https://github.com/QwenLM/qwen-code/issues/921
    check(
        "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported.",
        |profile| profile.temperature = None,
    );
    // https://github.com/FlowiseAI/Flowise/issues/2866
    check("Extra inputs are not permitted, field: 'stream_options'", |profile| {
        profile.stream_usage = Support::No;
    });
    // https://github.com/microsoft/semantic-kernel/issues/10510
    check(
        "Validation error at #/stream_options: Extra inputs are not permitted",
        |profile| {
            profile.stream_usage = Support::No;
        },
    );
    // https://github.com/langchain-ai/langchain/issues/29416
    check(
        "Unsupported parameter: 'parallel_tool_calls' is not supported with this model.",
        |profile| profile.parallel_field = Support::No,
    );
    // https://github.com/tenstorrent/tt-example-apps/issues/1
    check(
        "Value error, `tool_choice` must either be a named tool or \"auto\". `tool_choice=\"none\" is not supported.",
        |profile| profile.choice_none = Support::No,
    );
    // https://github.com/BeehiveInnovations/pal-mcp-server/issues/134
    check(
        "Your organization must be verified to stream this model. Please go to: https://platform.openai.com/settings",
        |profile| profile.streaming = Support::No,
    );
    // https://github.com/ollama/ollama/issues/12561
    check("think value \"medium\" is not supported for this model", |profile| {
        profile.reasoning = None;
    });
    // https://github.com/Wei-Shaw/claude-relay-service/issues/934
    check("Unsupported parameter: reasoning_effort", |profile| {
        profile.reasoning = None
    });
    // https://github.com/taketwo/llm-ollama/pull/54
    check(
        "registry.ollama.ai/library/gemma3n:e4b-it-q8_0 does not support thinking",
        |profile| {
            profile.reasoning = None;
        },
    );
    // https://github.com/caozhiyuan/copilot-api/issues/145
    check(
        "system.1.cache_control.ephemeral.scope: Extra inputs are not permitted",
        |profile| {
            profile.cache_marks = Support::No;
        },
    );
}

/// SPEC 7.4: the field for the reply's length has two names, and either may be refused.
#[test]
fn length_of_the_reply() {
    // https://github.com/teilomillet/gollm/issues/33
    let words =
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
    check(words, |profile| {
        profile.max_tokens_field = MaxTokensField::MaxCompletionTokens
    });
    let mut newer = sending();
    newer.max_tokens_field = MaxTokensField::MaxCompletionTokens;
    let older = changed(422, "max_completion_tokens: Extra inputs are not permitted", &newer);
    assert_eq!(
        older.map(|profile| profile.max_tokens_field),
        Some(MaxTokensField::MaxTokens)
    );
}

/// SPEC 7.5: tools, their schemas and names.
#[test]
fn tools() {
    for words in [
        // https://github.com/ollama/ollama/issues/11131
        "registry.ollama.ai/library/deepseek-r1:14b does not support tools",
        // https://github.com/Kilo-Org/kilocode/issues/9006
        "No endpoints found that support tool use. Try disabling \"bash\".",
        // https://github.com/vllm-project/vllm/issues/9986
        "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set",
        // https://github.com/defilantech/LLMKube/issues/126
        "tools param requires --jinja flag",
        // https://github.com/ggml-org/llama.cpp/issues/10920
        "Unsupported param: tools",
    ] {
        let mut forced = sending();
        forced.choice_none = Support::No;
        let mut expect = forced.clone();
        expect.tools = Support::No;
        assert_eq!(changed(404, words, &forced), Some(expect), "{words}");
    }
    check("web search is not enabled for this organization", |profile| {
        profile.provider_tools.clear();
    });
    // https://github.com/ggml-org/llama.cpp/issues/26596
    check("Failed to initialize samplers: failed to parse grammar", |profile| {
        profile.schemas = SchemaDialect::Grammar;
    });
    // https://github.com/openai/openai-agents-python/issues/1023
    check(
        "Invalid schema for function 'bash': In context=(), 'additionalProperties' is required to be supplied",
        |profile| profile.schemas = SchemaDialect::Grammar,
    );
    // https://github.com/nanbingxyz/5ire/issues/33
    check(
        "Invalid 'tools[0].function.name': string does not match pattern. Expected a string that matches '^[a-zA-Z0-9_-]+$'.",
        |profile| profile.wire_names = WireNaming::Underscore,
    );
    // https://github.com/anomalyco/opencode/issues/1680
    check(
        "Tool call id was call_PTLP8xhu3uwZk4l3nlnrrJha but must be a-z, A-Z, 0-9, with a length of 9.",
        |profile| profile.wire_call_ids = WireCallIds::NineCharacters,
    );
}

/// SPEC 7.5: roles, and the templates behind them.
#[test]
fn roles() {
    for words in [
        // https://github.com/vllm-project/vllm/issues/6862
        "After the optional system message, conversation roles must alternate user/assistant/user/assistant/...",
        // https://github.com/mistralai/mistral-common/issues/169
        "Unexpected role 'user' after role 'tool'",
        // https://github.com/0xPlaygrounds/rig/pull/1130
        "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant",
    ] {
        check(words, |profile| profile.alternation = Alternation::Strict);
    }
    for words in [
        // https://github.com/0xPlaygrounds/rig/issues/788
        "Developer instruction is not enabled for models/gemma-3-27b-it",
        // https://github.com/sgl-project/sglang/issues/1342
        "System role not supported",
        // https://github.com/janhq/jan/issues/4392
        "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
    ] {
        check(words, |profile| profile.system_role = SystemRole::User);
    }
    let mut developer = sending();
    developer.system_role = SystemRole::Developer;
    let unknown = changed(
        400,
        "Invalid value: 'developer'. Supported values are: 'system', 'assistant'",
        &developer,
    );
    assert_eq!(unknown.map(|profile| profile.system_role), Some(SystemRole::System));
    // A template that knows no tools says the same of the order of roles, whatever the order is.
    let mut strict = sending();
    strict.alternation = Alternation::Strict;
    let text = changed(
        500,
        "Jinja Exception: Conversation roles must alternate user/assistant",
        &strict,
    );
    assert_eq!(text.map(|profile| profile.tool_role), Some(ToolRole::Text));
    // https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/2180
    check(
        "Error rendering prompt with jinja template: \"Unknown test: sequence\".",
        |profile| {
            profile.tool_role = ToolRole::Text;
        },
    );
}

/// SPEC 6.5, 7.2: images and structured output.
#[test]
fn content() {
    for words in [
        // https://github.com/llamastash/llamastash/issues/13
        "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
        // https://github.com/rikkahub/rikkahub/issues/1433
        "Failed to deserialize the JSON body into the target type: messages[1]: unknown variant `image_url`, expected `text`",
        // https://github.com/JohnnyZ93/oai-compatible-copilot/issues/229
        "No endpoints found that support image input",
    ] {
        check(words, |profile| profile.images = Support::No);
    }
    for words in [
        // llama.cpp, tools/server/server-common.cpp
        "Cannot use custom grammar constraints with tools.",
        // https://github.com/langchain-ai/langchain/issues/31490
        "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
        // https://github.com/symfony/ai/issues/1777
        "Function calling with a response mime type: 'application/json' is unsupported",
    ] {
        check(words, |profile| profile.structured_output = Support::No);
    }
    let mut grammar = sending();
    grammar.schemas = SchemaDialect::Grammar;
    let words = changed(400, "failed to parse grammar", &grammar);
    assert_eq!(words.map(|profile| profile.structured_output), Some(Support::No));
}

/// SPEC 7.4: thinking that must come back, or must not.
#[test]
fn thinking() {
    for words in [
        // https://github.com/continuedev/continue/issues/11285
        "Missing `reasoning_content` field in the assistant message at message index 46.",
        // https://github.com/anomalyco/opencode/issues/10996
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
        // https://github.com/earendil-works/pi/issues/3636
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
    ] {
        check(words, |profile| profile.thinking_back = ThinkingBack::ReasoningContent);
    }
    let mut back = sending();
    back.thinking_back = ThinkingBack::ReasoningContent;
    let dropped = changed(
        422,
        "messages.1.reasoning_content: Extra inputs are not permitted",
        &back,
    );
    assert_eq!(
        dropped.map(|profile| profile.thinking_back),
        Some(ThinkingBack::Dropped)
    );
}

/// SPEC 7.6: keys, limits, bills and overflows are no refusals of a field, and neither is what a request has not.
#[test]
fn other_failures() {
    let words = "Unsupported value: 'temperature' does not support 0.2";
    for status in [401, 403, 402, 408, 429, 502, 503] {
        assert_eq!(changed(status, words, &sending()), None, "{status}");
    }
    for words in [
        "temperature: prompt is too long",
        "insufficient_quota: temperature not supported",
        "out of memory",
        "The model `tools` does not exist",
        "",
    ] {
        assert_eq!(changed(400, words, &sending()), None, "{words}");
    }
    let error = failure::of_status(400, "does not support tools, image_url or response_format");
    assert!(adapt(error.kind, &error.message, &Way::of(sending()), &Asked::default()).is_none());
}

/// SPEC 12: no refusal can be answered for ever: what is changed already is not changed again.
#[test]
fn every_change_ends() {
    for rule in RULES {
        let words = rule.fields.iter().map(|field| format!("{field} is not supported"));
        for words in words.chain(rule.phrases.iter().map(|phrase| (*phrase).to_owned())) {
            let mut way = Way::of(sending());
            let mut seen = vec![way.clone()];
            while let Some(next) = adapted(400, &words, &way, &everything()).map(|adapted| Way::clone(&adapted.way)) {
                // The two names of one field may be refused in turn; who asks remembers what was tried.
                if seen.contains(&next) {
                    assert_eq!(rule.change, Change::MaxTokensField, "{words}");
                    break;
                }
                seen.push(next.clone());
                way = next;
            }
            assert!(seen.len() <= RULES.len(), "{words}");
        }
    }
}
