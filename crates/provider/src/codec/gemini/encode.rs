//! A request as Gemini wants it.
//!
//! This file owns what stands beside the conversation: the path, instructions, tools, how the reply must look. Tools go as
//! `parameters` in the API's subset of OpenAPI, which every version of it and every proxy knows; one that the subset cannot
//! hold (an object within, whose properties are not named) goes as `parametersJsonSchema`, as do all where the profile says
//! that the endpoint takes JSON Schema. A function without parameters has neither: an object without properties is refused.

use super::PATH;
use super::contents::Writer;
use super::generation::{Generation, bare};
use super::wire::{
    Body, Function, FunctionCallingConfig, GenerationConfig, Instruction, Mode, Parameters, Part, Tool, ToolConfig,
};
use crate::codec::names::WireNames;
use crate::codec::schema::{self, SchemaDialect};
use crate::codec::{Encoded, handover, words};
use crate::profile::{Format, ModelProfile, ProviderTool, SystemRole};
use crate::{ProviderError, Request};
use aish_core::message::{ToolChoice, ToolSpec};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt::Write as _;

/// Writes a request.
pub(super) fn encode(request: Request<'_>, profile: &ModelProfile) -> Result<Encoded, ProviderError> {
    let messages = handover::for_model(request.messages, request.model, Format::Gemini);
    let names = WireNames::of(profile.wire_names, request.tools, &messages);
    let generation = Generation::of(&profile.model);
    let tools = tools(request, profile, generation, &names);
    let has_functions = tools.iter().any(|tool| matches!(tool, Tool::FunctionDeclarations(_)));
    let takes_schema = profile.structured_output.is_yes() && (!has_functions || generation >= Generation::Third);
    let mut system = request.system.to_owned();
    if let Some(schema) = request.schema.filter(|_| !takes_schema) {
        words::join(&mut system, &words::schema(schema));
    }
    let (instruction, first) = match profile.system_role {
        _ if system.trim().is_empty() => (None, ""),
        SystemRole::System | SystemRole::Developer => (Some(system.as_str()), ""),
        SystemRole::User => (None, system.as_str()),
    };
    let response_json_schema = request.schema.filter(|_| takes_schema);
    let body = Body {
        system_instruction: instruction.map(|text| Instruction {
            parts: [Part::text(text)],
        }),
        contents: Writer::new(request.model, profile, generation, &names).write(first, &messages),
        tool_config: tool_config(request.tool_choice, &tools),
        tools,
        generation_config: GenerationConfig {
            temperature: profile.temperature,
            max_output_tokens: profile.output_tokens(request.max_output_tokens),
            thinking_config: generation.thinking(&profile.model, profile.reasoning),
            response_mime_type: response_json_schema.map(|_| "application/json"),
            response_json_schema,
        },
    };
    Encoded::json(path(profile), &body, names)
}

fn path(profile: &ModelProfile) -> String {
    let mut path = PATH.to_owned();
    for byte in bare(&profile.model).bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            path.push(char::from(byte));
        } else {
            // A string takes whatever is written into it.
            let _infallible = write!(path, "%{byte:02X}");
        }
    }
    path.push_str(if profile.streaming.is_yes() {
        ":streamGenerateContent?alt=sse"
    } else {
        ":generateContent"
    });
    path
}

/// Functions first: they are what the conversation goes on with where both do not go together.
fn tools<'a>(request: Request<'a>, profile: &ModelProfile, generation: Generation, names: &WireNames) -> Vec<Tool<'a>> {
    let mut tools = Vec::new();
    if !profile.tools.is_yes() {
        return tools;
    }
    if !request.tools.is_empty() {
        let functions = request.tools.iter().map(|tool| Function {
            name: names.wire(&tool.name).into_owned(),
            description: &tool.description,
            parameters: parameters(tool, profile.schemas),
        });
        tools.push(Tool::FunctionDeclarations(functions.collect()));
    }
    for tool in &profile.provider_tools {
        match tool {
            ProviderTool::WebSearch if tools.is_empty() || generation >= Generation::Third => {
                tools.push(Tool::GoogleSearch {});
            }
            ProviderTool::WebSearch => {}
        }
    }
    tools
}

fn parameters(tool: &ToolSpec, dialect: SchemaDialect) -> Option<Parameters<'_>> {
    let has_properties = |schema: &Value| {
        let properties = schema.get("properties").and_then(Value::as_object);
        properties.is_some_and(|properties| !Map::is_empty(properties))
    };
    let projected = |dialect| schema::project(&tool.input_schema, dialect);
    let as_json_schema = |schema: Cow<'_, Value>| has_properties(&schema) || is_open(&schema);
    match dialect {
        SchemaDialect::Gemini => {
            let subset = projected(SchemaDialect::Gemini);
            if has_properties(&subset) && !schema::has_open_object(&subset) {
                return Some(Parameters::Subset(subset));
            }
            let schema = projected(SchemaDialect::Grammar);
            as_json_schema(Cow::Borrowed(&schema)).then_some(Parameters::JsonSchema(schema))
        }
        SchemaDialect::Full | SchemaDialect::Grammar => {
            let schema = projected(dialect);
            as_json_schema(Cow::Borrowed(&schema)).then_some(Parameters::JsonSchema(schema))
        }
    }
}

/// True for an object that says of the properties it does not name that they are welcome.
fn is_open(schema: &Value) -> bool {
    let others = schema.get("additionalProperties");
    others.is_some_and(|others| *others != Value::Bool(false))
}

fn tool_config(choice: ToolChoice, tools: &[Tool<'_>]) -> Option<ToolConfig> {
    let has_functions = tools.iter().any(|tool| matches!(tool, Tool::FunctionDeclarations(_)));
    let is_mixed = has_functions && tools.len() > 1;
    let mode = match choice {
        // Without functions the API refuses to be told of them.
        _ if !has_functions => None,
        ToolChoice::None => Some(Mode::None),
        ToolChoice::Auto => is_mixed.then_some(Mode::Validated),
    };
    let config = ToolConfig {
        function_calling_config: mode.map(|mode| FunctionCallingConfig { mode }),
        include_server_side_tool_invocations: is_mixed,
    };
    (mode.is_some() || is_mixed).then_some(config)
}
