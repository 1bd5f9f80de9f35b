//! The models of the random conversations: every format, with each quirk switched on somewhere, and who looks at its requests.

use aish_provider::ModelProfile;
use aish_provider::preset;
use aish_provider::profile::{
    Alternation, CallsPerReply, Format, ProviderTool, Reasoning, Support, SystemRole, ThinkingBack, ToolRole,
    WireCallIds,
};
use aish_provider::strict::Api;

/// A model as the configuration would name it.
#[derive(Clone)]
pub struct Desk {
    pub name: String,
    pub api: Api,
    pub profile: ModelProfile,
    /// Tokens that fit; few, so that conversations are cut to fit.
    pub context_window: Option<u64>,
}

/// One quirk.
type Quirk = fn(&mut ModelProfile);

const OPENAI: &str = "https://api.openai.com/v1";
const LOCAL: &str = "http://127.0.0.1:8080/v1";
const ANTHROPIC: &str = "https://api.anthropic.com";
const GOOGLE: &str = "https://generativelanguage.googleapis.com";

/// Every model.
pub fn all() -> Vec<Desk> {
    let mut all = Vec::new();
    chat(&mut all);
    templates(&mut all);
    signed(&mut all);
    for name in [
        "openai/gpt-5.1",
        "anthropic/claude-x",
        "google/gemini-3-pro",
        "mistral/large",
        "llama.cpp/qwen",
    ] {
        let (preset, model) = preset::split(name).unwrap();
        let mut profile = preset.profile(model);
        let api = match name {
            "mistral/large" => Api::MistralTemplate,
            "llama.cpp/qwen" => Api::LlamaCpp,
            _ => native(profile.format),
        };
        if api == Api::LlamaCpp {
            profile.images = Support::No;
        }
        push(&mut all, name, api, profile);
    }
    all
}

fn native(format: Format) -> Api {
    match format {
        Format::OpenaiChat => Api::OpenaiChat,
        Format::OpenaiResponses => Api::OpenaiResponses,
        Format::Anthropic => Api::Anthropic,
        Format::Gemini => Api::Gemini,
    }
}

fn push(all: &mut Vec<Desk>, name: &str, api: Api, profile: ModelProfile) {
    // Every fourth is a small one.
    let context_window = (all.len() % 4 == 3).then_some(2_500);
    all.push(Desk {
        name: name.to_owned(),
        api,
        profile,
        context_window,
    });
}

fn of(format: Format, base_url: &str, model: &str, quirk: Quirk) -> ModelProfile {
    let mut profile = ModelProfile::new(format, base_url, model);
    quirk(&mut profile);
    profile
}

/// OpenAI's chat completions.
fn chat(all: &mut Vec<Desk>) {
    let quirks: [(&str, Quirk); 8] = [
        ("chat", |_| {}),
        ("chat-developer", |p| p.system_role = SystemRole::Developer),
        ("chat-user", |p| p.system_role = SystemRole::User),
        ("chat-one-call", |p| p.calls = CallsPerReply::One),
        ("chat-text", |p| p.tool_role = ToolRole::Text),
        ("chat-no-tools", |p| p.tools = Support::No),
        ("chat-blind", |p| {
            p.images = Support::No;
            p.structured_output = Support::No;
            p.choice_none = Support::No;
        }),
        ("chat-whole", |p| {
            p.streaming = Support::No;
            p.max_output_tokens = Some(1);
            p.reasoning = Some(Reasoning::High);
        }),
    ];
    for (name, quirk) in quirks {
        push(
            all,
            name,
            Api::OpenaiChat,
            of(Format::OpenaiChat, OPENAI, "gpt-4o", quirk),
        );
    }
}

/// Chat completions in front of templates.
fn templates(all: &mut Vec<Desk>) {
    let quirks: [(&str, Api, Quirk); 7] = [
        ("template", Api::Template, |p| p.alternation = Alternation::Strict),
        ("template-thinking", Api::Template, |p| {
            p.alternation = Alternation::Strict;
            p.thinking_back = ThinkingBack::ReasoningContent;
            p.system_role = SystemRole::User;
        }),
        ("template-no-tools", Api::Template, |p| p.tools = Support::No),
        ("mistral-template", Api::MistralTemplate, |p| {
            p.alternation = Alternation::Strict;
            p.wire_call_ids = WireCallIds::NineCharacters;
        }),
        ("gemma-template", Api::GemmaTemplate, |p| {
            p.system_role = SystemRole::User;
            p.tool_role = ToolRole::Text;
        }),
        ("llama", Api::LlamaCpp, |p| {
            p.images = Support::No;
            p.thinking_back = ThinkingBack::ReasoningContent;
        }),
        ("llama-text", Api::LlamaCpp, |p| {
            p.images = Support::No;
            p.tool_role = ToolRole::Text;
            p.calls = CallsPerReply::One;
        }),
    ];
    for (name, api, quirk) in quirks {
        push(all, name, api, of(Format::OpenaiChat, LOCAL, "local", quirk));
    }
}

/// The formats that sign what a model thought.
fn signed(all: &mut Vec<Desk>) {
    let quirks: [(&str, Quirk); 8] = [
        ("", |_| {}),
        ("-thinking", |p| p.reasoning = Some(Reasoning::High)),
        ("-brief", |p| {
            p.reasoning = Some(Reasoning::Medium);
            p.max_output_tokens = Some(100);
        }),
        ("-not-thinking", |p| p.reasoning = Some(Reasoning::Off)),
        ("-search", |p| {
            p.provider_tools = vec![ProviderTool::WebSearch];
            p.reasoning = Some(Reasoning::Low);
        }),
        ("-text", |p| {
            p.tool_role = ToolRole::Text;
            p.system_role = SystemRole::User;
            p.temperature = Some(0.2);
        }),
        ("-blind", |p| {
            p.images = Support::No;
            p.structured_output = Support::No;
            p.calls = CallsPerReply::One;
            p.cache_marks = Support::No;
        }),
        ("-no-tools", |p| {
            p.tools = Support::No;
            p.reasoning = Some(Reasoning::High);
        }),
    ];
    for (format, base_url, model, short) in [
        (Format::OpenaiResponses, OPENAI, "gpt-5", "responses"),
        (Format::Anthropic, ANTHROPIC, "claude-sonnet-4-5", "anthropic"),
        (Format::Gemini, GOOGLE, "gemini-2.5-flash", "gemini"),
        (Format::Gemini, GOOGLE, "gemini-3-pro", "gemini-3"),
    ] {
        for (suffix, quirk) in quirks {
            let name = format!("{short}{suffix}");
            push(all, &name, native(format), of(format, base_url, model, quirk));
        }
    }
}
