//! A request as chat completions want it.
//!
//! Written straight to bytes from borrowed structures. Choices that real servers forced, see the recorded exchanges: an
//! assistant message with calls has `content: ""` (null breaks some templates, a missing one some servers), argument
//! text is never empty (llama.cpp answers 500 for ever), and there is no `tools` field without tools (SPEC 6.7). The profile
//! says of each optional field whether this endpoint takes it; the messages are written by `messages`.

use super::PATH;
use super::messages::Writer;
use super::wire::Wire;
use crate::codec::names::WireNames;
use crate::codec::schema::{self, SchemaDialect};
use crate::codec::structured::{self, ReplySchema};
use crate::codec::{Encoded, handover, host, words};
use crate::profile::{CallsPerReply, Format, MaxTokensField, ModelProfile, Reasoning, Support};
use crate::{ProviderError, Request};
use aish_core::message::{ToolChoice, ToolSpec};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Wire<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chat_template_kwargs: Option<TemplateArguments>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

/// What llama.cpp, vLLM and SGLang hand to the chat template, where Qwen's and others switch their thinking off by it; clouds
/// refuse it.
#[derive(Serialize)]
struct TemplateArguments {
    enable_thinking: bool,
}

#[derive(Serialize)]
struct ResponseFormat<'a> {
    r#type: &'static str,
    json_schema: NamedSchema<'a>,
}

#[derive(Serialize)]
struct NamedSchema<'a> {
    name: &'static str,
    schema: Cow<'a, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: ToolFunction<'a>,
}

#[derive(Serialize)]
struct ToolFunction<'a> {
    name: String,
    description: &'a str,
    parameters: Cow<'a, Value>,
}

/// Writes a request.
pub(super) fn encode(request: Request<'_>, profile: &ModelProfile) -> Result<Encoded, ProviderError> {
    let messages = handover::for_model(request.messages, request.model, Format::OpenaiChat);
    let names = WireNames::of(profile.wire_names, request.tools, &messages);
    let tools = offered(request, profile);
    let reply_schema = ReplySchema::of(request, profile);
    let mut system = request.system.to_owned();
    words::join(&mut system, &reply_schema.words);
    let max_tokens = profile.output_tokens(request.max_output_tokens);
    let (max_tokens, max_completion_tokens) = match profile.max_tokens_field {
        MaxTokensField::MaxTokens => (max_tokens, None),
        MaxTokensField::MaxCompletionTokens => (None, max_tokens),
    };
    let is_streamed = profile.streaming.is_yes();
    let body = Body {
        model: &profile.model,
        messages: Writer::new(profile, &names).write(system, &messages),
        tools: tools
            .iter()
            .map(|tool| wire_tool(tool, &names, profile.schemas))
            .collect(),
        tool_choice: (request.tool_choice == ToolChoice::None && !tools.is_empty()).then_some("none"),
        parallel_tool_calls: (profile.calls == CallsPerReply::One
            && profile.parallel_field.is_yes()
            && !tools.is_empty())
        .then_some(false),
        response_format: reply_schema.field.map(|schema| response_format(schema, profile)),
        reasoning_effort: profile.reasoning.map(effort),
        chat_template_kwargs: (profile.reasoning == Some(Reasoning::Off) && host::is_nearby(&profile.base_url))
            .then_some(TemplateArguments { enable_thinking: false }),
        temperature: profile.temperature,
        max_tokens,
        max_completion_tokens,
        stream: is_streamed,
        stream_options: (is_streamed && profile.stream_usage.is_yes()).then_some(StreamOptions { include_usage: true }),
    };
    Encoded::json(PATH, &body, names)
}

/// The tools of the request's field: none where the endpoint takes none, or cannot be told that none may be called.
fn offered<'a>(request: Request<'a>, profile: &ModelProfile) -> &'a [ToolSpec] {
    let is_forbidden = request.tool_choice == ToolChoice::None;
    match (profile.tools, profile.choice_none) {
        (Support::No, _) => &[],
        (Support::Yes, Support::No) if is_forbidden => &[],
        (Support::Yes, Support::Yes | Support::No) => request.tools,
    }
}

fn response_format<'a>(schema: Cow<'a, Value>, profile: &ModelProfile) -> ResponseFormat<'a> {
    ResponseFormat {
        r#type: "json_schema",
        json_schema: NamedSchema {
            name: structured::NAME,
            // Others take the word and then refuse what their own strict mode lacks.
            strict: host::is_openai(&profile.base_url).then(|| schema::is_strict(&schema)),
            schema,
        },
    }
}

/// The word for how hard to think. `none` is OpenAI's since GPT-5.1, Ollama's and vLLM's; who refuses it is asked without.
fn effort(reasoning: Reasoning) -> &'static str {
    match reasoning {
        Reasoning::Off => "none",
        Reasoning::Low => "low",
        Reasoning::Medium => "medium",
        Reasoning::High => "high",
    }
}

fn wire_tool<'a>(tool: &'a ToolSpec, names: &WireNames, dialect: SchemaDialect) -> Tool<'a> {
    Tool {
        r#type: "function",
        function: ToolFunction {
            name: names.wire(&tool.name).into_owned(),
            description: &tool.description,
            parameters: schema::project(&tool.input_schema, dialect),
        },
    }
}
