//! A request as Anthropic Messages wants it.
//!
//! This file owns what stands beside the messages: instructions, tools, how the reply must look, and the marks for the
//! provider's cache. The messages are written by `messages`, thinking is decided by `thinking`.

use super::messages::{Writer, Written};
use super::thinking::{self, Thinking};
use super::wire::{Block, Body, Choice, OutputConfig, OutputFormat, Role, Tool};
use super::{INTERLEAVED_THINKING, PATH, VERSION};
use crate::codec::names::WireNames;
use crate::codec::structured::ReplySchema;
use crate::codec::{Encoded, handover, schema, words};
use crate::profile::{CallsPerReply, Format, ModelProfile, ProviderTool, SystemRole, ToolRole};
use crate::{ProviderError, Request};
use aish_core::message::{ToolChoice, ToolSpec};
use serde_json::Value;
use std::borrow::Cow;

/// Messages of the user whose end is marked for the cache: the last one, for the next request, and the one before, which the
/// last request marked. With the instructions and the tools these are the four marks the API takes.
const MARKED_MESSAGES: usize = 2;

/// Writes a request.
pub(super) fn encode(request: Request<'_>, profile: &ModelProfile) -> Result<Encoded, ProviderError> {
    let messages = handover::for_model(request.messages, request.model, Format::Anthropic);
    let names = WireNames::of(profile.wire_names, request.tools, &messages);
    let mut tools = tools(request, profile, &names);
    let mut system = request.system.to_owned();
    let reply_schema = ReplySchema::of(request, profile);
    words::join(&mut system, &reply_schema.words);
    let (mut system_blocks, instructions) = match profile.system_role {
        SystemRole::System | SystemRole::Developer if system.trim().is_empty() => (Vec::new(), ""),
        SystemRole::System | SystemRole::Developer => (vec![Block::text(&system)], ""),
        SystemRole::User => (Vec::new(), system.as_str()),
    };
    // The API refuses calls in a conversation that offers no tools.
    let tool_role = if tools.is_empty() {
        ToolRole::Text
    } else {
        profile.tool_role
    };
    let mut written = Writer::new(request.model, profile, &names, tool_role).write(instructions, &messages);
    if profile.cache_marks.is_yes() {
        mark(&mut system_blocks, &mut tools, &mut written);
    }
    let max_tokens = profile.output_tokens(request.max_output_tokens);
    let plan = thinking::plan(profile, max_tokens, &written);
    let is_thinking = matches!(
        plan.thinking,
        Some(Thinking::Enabled { .. } | Thinking::Adaptive { .. })
    );
    let is_interleaved = plan.is_interleaved && !tools.is_empty();
    let format = reply_schema.field.map(|schema| OutputFormat::JsonSchema { schema });
    let output_config = OutputConfig {
        effort: plan.effort,
        format,
    };
    let body = Body {
        model: &profile.model,
        max_tokens: plan.max_tokens,
        system: system_blocks,
        messages: written.messages,
        tool_choice: tool_choice(request.tool_choice, &tools, profile),
        tools,
        thinking: plan.thinking,
        output_config: (output_config.effort.is_some() || output_config.format.is_some()).then_some(output_config),
        // The API refuses both together.
        temperature: profile.temperature.filter(|_| !is_thinking),
        stream: profile.streaming.is_yes(),
    };
    let encoded = Encoded::json(PATH, &body, names)?.with_header("anthropic-version", VERSION);
    Ok(if is_interleaved {
        encoded.with_header("anthropic-beta", INTERLEAVED_THINKING)
    } else {
        encoded
    })
}

/// The provider's tools first: ours may grow by more at the end while what the cache holds stays as it is.
fn tools<'a>(request: Request<'a>, profile: &ModelProfile, names: &WireNames) -> Vec<Tool<'a>> {
    if !profile.tools.is_yes() {
        return Vec::new();
    }
    let servers: Vec<(&str, &str)> = profile.provider_tools.iter().map(|tool| server_tool(*tool)).collect();
    let mut tools = Vec::with_capacity(servers.len() + request.tools.len());
    for (kind, name) in &servers {
        tools.push(Tool::Server {
            r#type: kind,
            name,
            cache_control: None,
        });
    }
    for tool in request.tools {
        let name = names.wire(&tool.name).into_owned();
        // Two tools of one name are refused; whoever switched the provider's on wants that one.
        if !servers.iter().any(|(_, server)| *server == name) {
            tools.push(Tool::Own {
                name,
                description: &tool.description,
                input_schema: input_schema(tool, profile),
                cache_control: None,
            });
        }
    }
    tools
}

/// The type and the name of a provider's tool.
fn server_tool(tool: ProviderTool) -> (&'static str, &'static str) {
    match tool {
        ProviderTool::WebSearch => ("web_search_20250305", "web_search"),
    }
}

/// A tool's schema; without `"type": "object"` the API refuses it.
fn input_schema<'a>(tool: &'a ToolSpec, profile: &ModelProfile) -> Cow<'a, Value> {
    let mut schema = schema::project(&tool.input_schema, profile.schemas);
    if schema.get("type").and_then(Value::as_str) == Some("object") {
        return schema;
    }
    if !schema.is_object() {
        schema = Cow::Owned(Value::Object(serde_json::Map::new()));
    }
    if let Value::Object(fields) = schema.to_mut() {
        fields.insert("type".to_owned(), Value::from("object"));
    }
    schema
}

fn tool_choice(choice: ToolChoice, tools: &[Tool<'_>], profile: &ModelProfile) -> Option<Choice> {
    let is_one = profile.calls == CallsPerReply::One && profile.parallel_field.is_yes();
    match choice {
        _ if tools.is_empty() => None,
        ToolChoice::None => Some(Choice::None),
        ToolChoice::Auto => is_one.then_some(Choice::Auto {
            disable_parallel_tool_use: true,
        }),
    }
}

/// Marks what the next request will begin with again (the API's reference, "Prompt caching").
fn mark(system: &mut [Block<'_>], tools: &mut [Tool<'_>], written: &mut Written<'_>) {
    if let Some(last) = tools.last_mut() {
        last.mark();
    }
    if let Some(last) = system.last_mut() {
        last.mark();
    }
    let questions = written.messages.iter_mut().rev().filter(|wire| wire.role == Role::User);
    for wire in questions.take(MARKED_MESSAGES) {
        if let Some(last) = wire.content.last_mut() {
            last.mark();
        }
    }
}
