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
use crate::codec::{Encoded, handover, words};
use crate::profile::{CallsPerReply, Format, MaxTokensField, ModelProfile, Reasoning, Support};
use crate::{ProviderError, Request};
use aish_core::message::{ToolChoice, ToolSpec};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use std::net::IpAddr;

/// The name that a schema for the reply is given: the API wants one, nobody reads it.
const SCHEMA_NAME: &str = "reply";

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

/// What llama.cpp, vLLM and SGLang hand to the chat template.
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
    let max_tokens = request.max_output_tokens.or(profile.max_output_tokens);
    let (max_tokens, max_completion_tokens) = match profile.max_tokens_field {
        MaxTokensField::MaxTokens => (max_tokens, None),
        MaxTokensField::MaxCompletionTokens => (None, max_tokens),
    };
    let is_streamed = profile.streaming.is_yes();
    let body = Body {
        model: &profile.model,
        messages: Writer::new(profile, &names).write(system(request, profile), &messages),
        tools: tools
            .iter()
            .map(|tool| wire_tool(tool, &names, profile.schemas))
            .collect(),
        tool_choice: (request.tool_choice == ToolChoice::None && !tools.is_empty()).then_some("none"),
        parallel_tool_calls: (profile.calls == CallsPerReply::One
            && profile.parallel_field.is_yes()
            && !tools.is_empty())
        .then_some(false),
        response_format: response_format(request, profile),
        reasoning_effort: profile.reasoning.map(effort),
        chat_template_kwargs: (profile.reasoning == Some(Reasoning::Off) && is_nearby(&profile.base_url))
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

/// The standing instructions, and the schema where there is no field for it.
fn system(request: Request<'_>, profile: &ModelProfile) -> String {
    let mut system = request.system.to_owned();
    if let Some(schema) = request.schema.filter(|_| !profile.structured_output.is_yes()) {
        words::join(&mut system, &words::schema(schema));
    }
    system
}

fn response_format<'a>(request: Request<'a>, profile: &ModelProfile) -> Option<ResponseFormat<'a>> {
    let schema = request.schema.filter(|_| profile.structured_output.is_yes())?;
    Some(ResponseFormat {
        r#type: "json_schema",
        json_schema: NamedSchema {
            name: SCHEMA_NAME,
            schema: schema::project(schema, profile.schemas),
        },
    })
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

/// True for an address of this machine or its network. The servers people run there ignore fields they do not know or hand
/// `chat_template_kwargs` to the template, where Qwen's and others switch their thinking off by it; clouds refuse it.
fn is_nearby(base_url: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(base_url) else {
        return false;
    };
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    match host.parse() {
        Ok(IpAddr::V4(address)) => address.is_loopback() || address.is_private(),
        Ok(IpAddr::V6(address)) => address.is_loopback() || address.is_unique_local(),
        Err(_) => host == "localhost" || host.ends_with(".local"),
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
