//! A request as the Responses API wants it.
//!
//! Nothing is stored at the provider: each request carries the whole conversation, and reasoning comes and goes encrypted.
//! Which models can be asked for that is told by their names, because the others refuse the whole request:
//! <https://github.com/pydantic/pydantic-ai/issues/2865>, <https://github.com/pydantic/pydantic-ai/issues/3326>.

use super::PATH;
use super::input::{self, Item};
use crate::codec::names::WireNames;
use crate::codec::structured::{self, ReplySchema};
use crate::codec::{Encoded, handover, host, schema, words};
use crate::profile::{CallsPerReply, Format, ModelProfile, ProviderTool, Reasoning, Support, SystemRole};
use crate::{ProviderError, Request};
use aish_core::message::{ToolChoice, ToolSpec};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;

/// The least that OpenAI takes for `max_output_tokens`.
const OUTPUT_TOKENS_MIN: u64 = 16;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    instructions: &'a str,
    input: Vec<Item<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Effort>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Text<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    include: &'static [&'static str],
    store: bool,
    stream: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Tool<'a> {
    Function {
        name: String,
        description: &'a str,
        parameters: Cow<'a, Value>,
        strict: bool,
    },
    WebSearch,
}

#[derive(Serialize)]
struct Effort {
    effort: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'static str>,
}

#[derive(Serialize)]
struct Text<'a> {
    format: TextFormat<'a>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "json_schema")]
struct TextFormat<'a> {
    name: &'static str,
    schema: Cow<'a, Value>,
    strict: bool,
}

/// Writes a request.
pub(super) fn encode(request: Request<'_>, profile: &ModelProfile) -> Result<Encoded, ProviderError> {
    let messages = handover::for_model(request.messages, request.model, Format::OpenaiResponses);
    let names = WireNames::of(profile.wire_names, request.tools, &messages);
    let is_openai = host::is_openai(&profile.base_url);
    let reply_schema = ReplySchema::of(request, profile);
    let mut system = request.system.to_owned();
    words::join(&mut system, &reply_schema.words);
    let tools = tools(&request, profile, &names);
    let has_functions = tools.iter().any(|tool| matches!(tool, Tool::Function { .. }));
    let max_output_tokens = profile.output_tokens(request.max_output_tokens);
    let is_reasoning = profile.reasoning.is_some() || (is_openai && is_reasoning_model(&profile.model));
    let is_encrypted = is_reasoning && profile.encrypted_reasoning.is_yes();
    let body = Body {
        model: &profile.model,
        instructions: match profile.system_role {
            SystemRole::System => &system,
            SystemRole::Developer | SystemRole::User => "",
        },
        input: input::items(&system, &messages, profile, &names),
        tool_choice: (request.tool_choice == ToolChoice::None && !tools.is_empty()).then_some("none"),
        parallel_tool_calls: (profile.calls == CallsPerReply::One && profile.parallel_field.is_yes() && has_functions)
            .then_some(false),
        tools,
        temperature: profile.temperature,
        max_output_tokens: max_output_tokens.map(|tokens| {
            if is_openai {
                tokens.max(OUTPUT_TOKENS_MIN)
            } else {
                tokens
            }
        }),
        reasoning: profile.reasoning.map(|reasoning| effort(reasoning, profile)),
        text: reply_schema.field.map(text),
        include: if is_encrypted {
            &["reasoning.encrypted_content"]
        } else {
            &[]
        },
        store: false,
        stream: profile.streaming.is_yes(),
    };
    Encoded::json(PATH, &body, names)
}

fn tools<'a>(request: &Request<'a>, profile: &ModelProfile, names: &WireNames) -> Vec<Tool<'a>> {
    if profile.tools == Support::No {
        return Vec::new();
    }
    let functions = request.tools.iter().map(|tool| function(tool, profile, names));
    let own = profile.provider_tools.iter().map(|tool| match tool {
        ProviderTool::WebSearch => Tool::WebSearch,
    });
    functions.chain(own).collect()
}

fn function<'a>(tool: &'a ToolSpec, profile: &ModelProfile, names: &WireNames) -> Tool<'a> {
    Tool::Function {
        name: names.wire(&tool.name).into_owned(),
        description: &tool.description,
        parameters: schema::project(&tool.input_schema, profile.schemas),
        // Strict mode refuses most schemas that were not written for it.
        strict: false,
    }
}

fn text(schema: Cow<'_, Value>) -> Text<'_> {
    Text {
        format: TextFormat {
            name: structured::NAME,
            strict: schema::is_strict(&schema),
            schema,
        },
    }
}

fn effort(reasoning: Reasoning, profile: &ModelProfile) -> Effort {
    let summary = profile.reasoning_summary.is_yes().then_some("auto");
    match reasoning {
        Reasoning::Off => Effort {
            effort: least_effort(&profile.model),
            summary: None,
        },
        Reasoning::Low => Effort { effort: "low", summary },
        Reasoning::Medium => Effort {
            effort: "medium",
            summary,
        },
        Reasoning::High => Effort {
            effort: "high",
            summary,
        },
    }
}

/// The least a model can think. `none` is known since GPT-5.1, `minimal` to GPT-5 only, neither to the models before it
/// and to those made for code (OpenAI's reference, "Reasoning effort").
fn least_effort(model: &str) -> &'static str {
    let name = bare_name(model);
    let is_first = name == "gpt-5" || name.starts_with("gpt-5-");
    match name {
        _ if is_o_series(name) || name.contains("codex") => "low",
        _ if is_first => "minimal",
        _ => "none",
    }
}

/// Whether a model of OpenAI's thinks, and so has reasoning to encrypt.
fn is_reasoning_model(model: &str) -> bool {
    let name = bare_name(model);
    let is_gpt = name.strip_prefix("gpt-").is_some_and(|rest| {
        let version: String = rest.chars().take_while(char::is_ascii_digit).collect();
        version.parse::<u32>().is_ok_and(|version| version >= 5)
    });
    (is_gpt || is_o_series(name) || name.starts_with("codex")) && !name.contains("-chat")
}

/// `o1`, `o3-mini`, `o4-mini`, …
fn is_o_series(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next() == Some('o') && chars.next().is_some_and(|c| c.is_ascii_digit())
}

/// A model's name without its maker (`openai/gpt-5`) and without the word that it was tuned (`ft:gpt-5:…`).
fn bare_name(model: &str) -> &str {
    let name = model.rsplit('/').next().unwrap_or(model);
    name.strip_prefix("ft:").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 7.2: what only thinking models take is told by their names.
    #[test]
    fn models_that_think() {
        for model in [
            "o1",
            "o3-mini",
            "gpt-5",
            "gpt-5.1-codex",
            "ft:gpt-5:x",
            "codex-mini-latest",
            "openai/o4-mini",
        ] {
            assert!(is_reasoning_model(model), "{model}");
        }
        for model in [
            "gpt-4o",
            "gpt-4.1-mini",
            "gpt-5-chat-latest",
            "chatgpt-4o-latest",
            "omni",
            "llama",
            "gpt-",
        ] {
            assert!(!is_reasoning_model(model), "{model}");
        }
        let least = ["gpt-5", "gpt-5-mini", "gpt-5.1", "gpt-5-codex", "o3", "qwen3"].map(least_effort);
        assert_eq!(least, ["minimal", "minimal", "none", "low", "low", "none"]);
    }
}
