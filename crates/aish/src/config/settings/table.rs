//! The settings of the models and of what is done with them. Their order is that of the reference; sections stand together.

use super::{Kind, Project, Setting};
use aish_provider::price::PRICE_USD_MAX;

/// Limits of a number of rounds.
pub const ROUNDS: Kind = Kind::Integer(1, 1000);
/// Limits of a number of tokens: more than any model has, small enough to compute with.
const TOKENS: Kind = Kind::Integer(1, 100_000_000);
/// A price.
const DOLLARS: Kind = Kind::Float(0.0, PRICE_USD_MAX);
/// The names in [`aish_provider::preset::PRESETS`]; a test holds them against it.
const PRESET_NAMES: &[&str] = &[
    "openai",
    "anthropic",
    "google",
    "openrouter",
    "xai",
    "meta",
    "mistral",
    "deepseek",
    "groq",
    "llama.cpp",
    "ollama",
    "lmstudio",
    "vllm",
];
/// Why a project does not choose where conversations go.
pub const WHY_NOT_ELSEWHERE: &str = "it would let the project choose where your keys and conversations go";
/// A project does not set where a key goes.
pub const NO_KEYS: Project = Project::Refused(WHY_NOT_ELSEWHERE);
/// A project does not set what runs unasked.
pub const NO_MODE: Project = Project::Refused("what runs unasked is yours to decide");

/// All but those of MCP servers and of how things look, in the order of the reference.
pub const SETTINGS: &[Setting] = &[
    Setting::new(
        "default_model",
        Kind::Text,
        r#""desk""#,
        "The model a session starts with, by its name in `[models]`. Without it, the first model written. `--model` and \
         `:model` choose another.",
    )
    .env("AISH_MODEL")
    .project(Project::WithinReach),
    Setting::new(
        "discover",
        Kind::Bool,
        "false",
        "Look for a model where none is configured: keys in the environment, then servers on this machine at their usual \
         ports.",
    )
    .default("true")
    .env("AISH_DISCOVER"),
    Setting::new(
        "max_tool_turns",
        ROUNDS,
        "50",
        "Rounds of tool calls one turn may take, over all tools. At the limit the model is asked once more, to sum up.",
    )
    .default("50")
    .env("AISH_MAX_TOOL_TURNS"),
    Setting::new(
        "retries",
        Kind::Integer(0, 20),
        "1",
        "How often a request is made again when a model cannot be reached, is busy or breaks off before any text was shown. The \
         pauses grow; what a server asks for is honoured.",
    )
    .default("3")
    .env("AISH_RETRIES"),
    Setting::new(
        "models.<name>.preset",
        Kind::Choice(PRESET_NAMES),
        r#""mistral""#,
        "A provider that aish knows: gives `provider`, `base_url`, `key_env` and what the provider insists on, each of which you \
         may still set. Without configuration, `--model PRESET/MODEL` does the same.",
    )
    .project(Project::WithinReach),
    Setting::new(
        "models.<name>.provider",
        Kind::Choice(&["openai-chat", "openai-responses", "anthropic", "gemini"]),
        r#""openai-chat""#,
        "The wire format. `openai-chat` is what llama.cpp, Ollama, vLLM, LM Studio and most providers speak. Without it, the \
         `preset`'s, else `openai-chat`.",
    )
    .project(Project::WithinReach),
    Setting::new(
        "models.<name>.base_url",
        Kind::Url,
        r#""http://127.0.0.1:8080/v1""#,
        "Where the model is: with `/v1` for the OpenAI formats, the bare origin for Anthropic and Gemini. Without it, the \
         `preset`'s or the provider's own address.",
    )
    .project(NO_KEYS),
    Setting::new(
        "models.<name>.model",
        Kind::Text,
        r#""qwen2.5-coder-7b""#,
        "The provider's name for the model. Required.",
    ),
    Setting::new(
        "models.<name>.key_env",
        Kind::Variable,
        r#""OPENROUTER_API_KEY""#,
        "The environment variable that holds the key; the key itself never stands in the file. Without it, the provider's \
         usual variable is used, but only with the provider's own address: a `base_url` of yours gets no key you did not name.",
    )
    .project(NO_KEYS),
    Setting::new(
        "models.<name>.temperature",
        Kind::Float(0.0, 2.0),
        "0.2",
        "Sampling temperature. Without it, 0.2 for `openai-chat`, and for the others whatever the provider chooses.",
    ),
    Setting::new(
        "models.<name>.context_window",
        TOKENS,
        "32768",
        "Tokens the model's context holds, where aish cannot find out.",
    ),
    Setting::new(
        "models.<name>.max_output_tokens",
        TOKENS,
        "4096",
        "Tokens one reply may have. Without it, the server decides.",
    ),
    Setting::new(
        "models.<name>.use_tool_role",
        Kind::Bool,
        "false",
        "Whether results are sent in the wire format's own place for them. `false` sends them as text, for servers whose \
         templates know no tool role.",
    )
    .default("true"),
    Setting::new(
        "models.<name>.wire_names",
        Kind::Choice(&["underscore", "dot"]),
        r#""dot""#,
        "How the model sees the name of an MCP tool: `alias__tool`, which every provider accepts, or `alias.tool`.",
    )
    .default(r#""underscore""#),
    Setting::new(
        "models.<name>.fallback",
        Kind::Texts,
        r#"["cloud"]"#,
        "Models to try, in this order, when this one cannot be reached, keeps failing, or has no room for the conversation: names \
         of `[models]`, or `PRESET/MODEL`.",
    )
    .default("[]")
    .project(Project::WithinReach),
    Setting::new(
        "models.<name>.reasoning",
        Kind::Choice(&["off", "low", "medium", "high"]),
        r#""low""#,
        "How hard the model thinks before it answers, where it can be told. Without it, the provider decides.",
    ),
    Setting::new(
        "models.<name>.provider_tools",
        Kind::Words(&["web_search"]),
        r#"["web_search"]"#,
        "Tools that the provider runs itself, on its own machines and its own bill; aish does not gate them. For `anthropic`, \
         `openai-responses` and `gemini`.",
    )
    .default("[]"),
    Setting::new(
        "models.<name>.system_role",
        Kind::Choice(&["system", "developer", "user"]),
        r#""developer""#,
        "Who gives the standing instructions. `user` puts them into the first message, for templates without a system role. \
         Without it, what fits the provider and the model.",
    ),
    Setting::new(
        "models.<name>.strict_alternation",
        Kind::Bool,
        "true",
        "Whether a result must be followed by the assistant before the user speaks, as Mistral's templates demand.",
    ),
    Setting::new(
        "models.<name>.call_ids",
        Kind::Choice(&["own", "nine"]),
        r#""nine""#,
        "Which ids calls have on the wire: the provider's `own`, or `nine` letters and digits, as Mistral's templates demand.",
    ),
    Setting::new(
        "models.<name>.parallel_calls",
        Kind::Bool,
        "false",
        "Whether one reply may hold several calls. `false` holds it to one, for very small models that would go on and on.",
    ),
    Setting::new(
        "models.<name>.tools",
        Kind::Bool,
        "false",
        "Whether the model is offered tools. `false` is for models and servers that refuse a request with tools.",
    ),
    Setting::new(
        "models.<name>.images",
        Kind::Bool,
        "false",
        "Whether the model is sent images. `false` names them in words.",
    ),
    Setting::new(
        "models.<name>.stream",
        Kind::Bool,
        "false",
        "Whether replies are streamed. `false` is for servers that cannot; the text then comes in one piece.",
    ),
    Setting::new(
        "models.<name>.structured_output",
        Kind::Bool,
        "false",
        "Whether a schema for the reply is sent as such. `false` tells it in words.",
    ),
    Setting::new(
        "models.<name>.prompt_cache",
        Kind::Bool,
        "true",
        "Whether what stays the same is marked for the provider's cache (`anthropic`). Without it, only at Anthropic's own address.",
    ),
    Setting::new(
        "models.<name>.thinking_back",
        Kind::Bool,
        "true",
        "Whether the model's thinking is sent back with its calls (`openai-chat`), which some providers insist on.",
    ),
    Setting::new(
        "models.<name>.schema",
        Kind::Choice(&["full", "grammar", "gemini"]),
        r#""grammar""#,
        "How the schemas of tools are written: `full`, in what `grammar`-bound local servers can hold, or in what `gemini` takes. \
         Without it, what fits the provider. Arguments are always checked against the whole schema.",
    ),
    Setting::new(
        "models.<name>.price.input",
        DOLLARS,
        "3.0",
        "US dollars for a million tokens sent. With `output`, it is what the cost of a turn is reckoned by; it goes before the price aish knows.",
    ),
    Setting::new(
        "models.<name>.price.output",
        DOLLARS,
        "15.0",
        "US dollars for a million tokens of replies, thinking included.",
    ),
    Setting::new(
        "models.<name>.price.cached",
        DOLLARS,
        "0.3",
        "US dollars for a million tokens sent that the provider read from its cache. Without it, as `input`.",
    ),
    Setting::new(
        "models.<name>.price.cache_write",
        DOLLARS,
        "3.75",
        "US dollars for a million tokens sent that the provider wrote into its cache. Without it, as `input`.",
    ),
    Setting::new(
        "routing.quick",
        Kind::Text,
        r#""small""#,
        "The model for short questions: a name of `[models]`, or `PRESET/MODEL`. A model chosen by `--model` or `:model` answers everything.",
    )
    .env("AISH_ROUTING_QUICK")
    .project(Project::WithinReach),
    Setting::new(
        "routing.quick_chars_max",
        Kind::Integer(1, 100_000),
        "120",
        "Characters up to which a question is short.",
    )
    .default("200")
    .env("AISH_ROUTING_QUICK_CHARS_MAX"),
    Setting::new(
        "routing.work",
        Kind::Text,
        r#""large""#,
        "The model that goes on with a turn once it has called tools.",
    )
    .env("AISH_ROUTING_WORK")
    .project(Project::WithinReach),
    Setting::new(
        "routing.summary",
        Kind::Text,
        r#""small""#,
        "The model that sums up.",
    )
    .env("AISH_ROUTING_SUMMARY")
    .project(Project::WithinReach),
    Setting::new(
        "approval.mode",
        Kind::Choice(&["ask", "auto", "full"]),
        r#""auto""#,
        "What happens to a call no rule speaks of. `ask` asks about everything not proven harmless, `auto` only about what is \
         destructive or unknown, `full` about nothing; deny rules hold in every mode. `--approval` overrides it.",
    )
    .default(r#""ask""#)
    .env("AISH_APPROVAL")
    .project(NO_MODE),
    Setting::new(
        "approval.deny",
        Kind::Rules,
        r#"["bash(git push --force*)"]"#,
        "Calls that never run, in any mode. A rule is a tool's name, `alias.*`, or either with a pattern in parentheses in \
         which `*` stands for any text.",
    )
    .default("[]"),
    Setting::new(
        "approval.ask",
        Kind::Rules,
        r#"["bash(git push*)"]"#,
        "Calls that are always asked about, except in mode `full`.",
    )
    .default("[]"),
    Setting::new(
        "approval.allow",
        Kind::Rules,
        r#"["file_write(notes/*)", "bash(cargo test*)"]"#,
        "Calls that run unasked, unless a deny or ask rule matches too. A command line runs where every command in it is \
         allowed, or the whole line is exactly the rule's; `\\*` is a star that stands for itself. \
         A rule speaks of your own MCP servers: it lets no tool of a project's server through, and a project cannot bring a \
         server whose name it spells.",
    )
    .default("[]"),
    Setting::new(
        "approval.read_only_inside_tree",
        Kind::Bool,
        "false",
        "The default rule: what only reads, inside the working tree, and looks like no secret, runs unasked. `false` asks \
         about that too.",
    )
    .default("true")
    .env("AISH_APPROVAL_READ_ONLY_INSIDE_TREE")
    .project(Project::OnlyStricter(false)),
    Setting::new(
        "shell.confirm_cmd",
        Kind::Bool,
        "false",
        "Ask before a `CMD:` line of a reply is run in your shell. `false` skips only this question; the rules still apply.",
    )
    .default("true")
    .env("AISH_SHELL_CONFIRM_CMD")
    .project(Project::OnlyStricter(true)),
    Setting::new(
        "shell.program",
        Kind::Text,
        r#""zsh""#,
        "The shell that commands run in: bash, zsh or fish, by name or by an absolute path. `$SHELL` where nothing is set.",
    )
    .env("AISH_SHELL_PROGRAM")
    .project(NO_MODE),
    Setting::new(
        "shell.edit_mode",
        Kind::Choice(&["emacs", "vi"]),
        r#""vi""#,
        "Which keys edit the line: those of Emacs, or those of vi.",
    )
    .default(r#""emacs""#)
    .env("AISH_SHELL_EDIT_MODE"),
    Setting::new(
        "tools.max_output_size",
        Kind::Integer(1024, 104_857_600),
        "1048576",
        "Bytes kept of one result, 1 KiB to 100 MiB. What is cut is said.",
    )
    .default("1048576")
    .env("AISH_TOOLS_MAX_OUTPUT_SIZE"),
    Setting::new(
        "tools.max_result_chars",
        Kind::Integer(500, 100_000_000),
        "24000",
        "Characters of one result the model sees; head and tail are kept. Without it, what the model's context allows.",
    )
    .env("AISH_TOOLS_MAX_RESULT_CHARS"),
    Setting::new(
        "tools.parallel",
        Kind::Bool,
        "false",
        "Let calls of one reply that only read run side by side.",
    )
    .default("true")
    .env("AISH_TOOLS_PARALLEL"),
    Setting::new(
        "tools.web_private",
        Kind::Bool,
        "true",
        "Let `web_get` fetch pages of this machine and its own network too, where they may be anything: the settings of a router, \
         the credentials of a cloud. Then mode `auto` asks about every page that no rule allows.",
    )
    .default("false")
    .env("AISH_TOOLS_WEB_PRIVATE")
    .project(Project::OnlyStricter(false)),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 7.1: every provider that is known can be named in the configuration.
    #[test]
    fn presets_are_those_of_the_table() {
        let names: Vec<_> = aish_provider::preset::PRESETS
            .iter()
            .map(|preset| preset.name)
            .collect();
        assert_eq!(names, PRESET_NAMES);
    }
}
