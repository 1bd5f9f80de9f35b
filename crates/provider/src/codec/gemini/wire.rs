//! A request's shapes on the wire (<https://ai.google.dev/api/generate-content>, <https://ai.google.dev/api/caching>).

use super::generation::ThinkingConfig;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A request.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_instruction: Option<Instruction<'a>>,
    pub contents: Vec<Content<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_config: Option<ToolConfig>,
    #[serde(skip_serializing_if = "GenerationConfig::is_empty")]
    pub generation_config: GenerationConfig<'a>,
}

/// The standing instructions.
#[derive(Serialize)]
pub(super) struct Instruction<'a> {
    pub parts: [Part<'a>; 1],
}

/// A message.
#[derive(Serialize)]
pub(super) struct Content<'a> {
    pub role: Role,
    pub parts: Vec<Part<'a>>,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    User,
    Model,
}

/// A block of a message.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Part<'a> {
    /// Text, a thought or a signature without either.
    #[serde(rename_all = "camelCase")]
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        thought: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<&'a str>,
    },
    #[serde(rename_all = "camelCase")]
    Image { inline_data: InlineData<'a> },
    #[serde(rename_all = "camelCase")]
    Call {
        function_call: FunctionCall<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<&'a str>,
    },
    #[serde(rename_all = "camelCase")]
    Response { function_response: FunctionResponse<'a> },
    /// A block of the provider's own, as it came.
    Verbatim(&'a Value),
}

impl<'a> Part<'a> {
    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text {
            text: text.into(),
            thought: false,
            thought_signature: None,
        }
    }
}

/// Bytes in base64.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InlineData<'a> {
    pub mime_type: &'a str,
    pub data: &'a str,
}

#[derive(Serialize)]
pub(super) struct FunctionCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<&'a str>,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<&'a RawValue>,
}

#[derive(Serialize)]
pub(super) struct FunctionResponse<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<&'a str>,
    pub name: String,
    pub response: Response<'a>,
    /// Images, for models that take them here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<ResponsePart<'a>>,
}

/// An image of a response.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResponsePart<'a> {
    pub inline_data: InlineData<'a>,
}

/// What a function answered; the API's documentation names these two fields.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Response<'a> {
    Output(Cow<'a, str>),
    Error(Cow<'a, str>),
}

/// One entry of `tools`: all functions, or one of the provider's tools.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Tool<'a> {
    FunctionDeclarations(Vec<Function<'a>>),
    GoogleSearch {},
}

#[derive(Serialize)]
pub(super) struct Function<'a> {
    pub name: String,
    pub description: &'a str,
    #[serde(flatten)]
    pub parameters: Option<Parameters<'a>>,
}

/// A function's parameters: in the API's own subset of OpenAPI, or as JSON Schema.
#[derive(Serialize)]
pub(super) enum Parameters<'a> {
    #[serde(rename = "parameters")]
    Subset(Cow<'a, Value>),
    #[serde(rename = "parametersJsonSchema")]
    JsonSchema(Cow<'a, Value>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function_calling_config: Option<FunctionCallingConfig>,
    /// Must be there, and true, where the provider's tools stand beside functions.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub include_server_side_tool_invocations: bool,
}

#[derive(Serialize)]
pub(super) struct FunctionCallingConfig {
    pub mode: Mode,
}

/// Whether functions are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum Mode {
    /// As the model likes, held to the schemas: what is asked for beside the provider's tools.
    Validated,
    None,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GenerationConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_config: Option<ThinkingConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_json_schema: Option<&'a Value>,
}

impl GenerationConfig<'_> {
    fn is_empty(&self) -> bool {
        self.temperature.is_none()
            && self.max_output_tokens.is_none()
            && self.thinking_config.is_none()
            && self.response_json_schema.is_none()
    }
}
