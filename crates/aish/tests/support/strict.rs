//! How much the fake server minds: which of the real servers' rules it answers by, see [`aish_provider::strict`].

use aish_provider::strict::{Api, Refusal, check};
use serde_json::Value;

/// How much the fake server minds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strictness {
    /// Takes anything.
    #[default]
    Lenient,
    /// The rules of the chat-completions API: calls and results match, no empty `tools`, valid arguments and names.
    Api,
    /// Also the rules of strict chat templates: user and assistant alternate, a user comes first and an assistant never
    /// last.
    Template,
}

/// How a server of that strictness would refuse this request body; `None` when it would not.
pub fn refusal(body: &Value, strictness: Strictness) -> Option<Refusal> {
    let api = match strictness {
        Strictness::Lenient => return None,
        Strictness::Api => Api::OpenaiChat,
        Strictness::Template => Api::Template,
    };
    check(api, "/chat/completions", [], body).err()
}

/// Why a server of that strictness would refuse this request body; `None` when it would not.
pub fn violation(body: &Value, strictness: Strictness) -> Option<String> {
    refusal(body, strictness).map(|refusal| refusal.message)
}
