//! Whether and how a model is asked to think before it answers.
//!
//! There are two ways to ask, and each model takes one of them (the API's reference, "Thinking"): up to Claude 4.5, and on
//! other servers that speak this format, a budget of tokens; from Claude 4.6 on, `adaptive`, with an effort. With a budget the
//! API wants every turn under way to begin with thinking that it signed itself: after a hand-over it is not there, so thinking
//! stays off until the turn ends (SPEC 7.6).

use super::messages::Written;
use crate::profile::{ModelProfile, Reasoning};
use serde::Serialize;

/// The least budget the API takes.
const BUDGET_TOKENS_MIN: u64 = 1_024;

/// Tokens to think with, by how hard.
const BUDGET_TOKENS_LOW: u64 = 2_048;
const BUDGET_TOKENS_MEDIUM: u64 = 8_192;
const BUDGET_TOKENS_HIGH: u64 = 24_576;

/// Tokens of a reply, thinking not counted, where nobody said how many: the format insists on a number.
pub(super) const REPLY_TOKENS_DEFAULT: u64 = 8_192;

/// The last version of Claude that thinks by budget.
const BUDGET_VERSION_LAST: (u32, u32) = (4, 5);

/// Claude models that always think: the request to leave it is refused.
const ALWAYS_THINKING: &[&str] = &["fable", "mythos"];

/// The `thinking` field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Thinking {
    /// Up to so many tokens.
    Enabled { budget_tokens: u64 },
    /// As the model sees fit. What it thought comes as a summary, which newer models leave out unless asked.
    Adaptive { display: &'static str },
    /// Not at all.
    Disabled,
}

/// What a request says of thinking and of the tokens it may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) max_tokens: u64,
    pub(super) thinking: Option<Thinking>,
    /// `output_config.effort`.
    pub(super) effort: Option<&'static str>,
    /// Whether it may also think between calls, which by budget must be asked for.
    pub(super) is_interleaved: bool,
}

/// Decides. `max_tokens` is what the request or the profile says.
pub(super) fn plan(profile: &ModelProfile, max_tokens: Option<u64>, written: &Written<'_>) -> Plan {
    let way = Way::of(&profile.model);
    let wanted = profile.reasoning.filter(|_| !way.must_be_off(written));
    let is_handed_over = profile.reasoning.is_some() && wanted.is_none();
    let room = profile.context_window.unwrap_or(u64::MAX);
    let max_tokens = max_tokens.unwrap_or_else(|| {
        // A prompt must fit too.
        (REPLY_TOKENS_DEFAULT + way.allowance(wanted)).min(room / 2)
    });
    let max_tokens = max_tokens.min(room).max(1);
    let plan = Plan {
        max_tokens,
        thinking: None,
        effort: None,
        is_interleaved: false,
    };
    let off = Plan {
        thinking: Some(Thinking::Disabled),
        ..plan
    };
    match (way, wanted) {
        (Way::Always, None) => plan,
        (_, None) if is_handed_over => off,
        (_, None) => plan,
        (Way::Always, Some(Reasoning::Off)) => Plan {
            effort: Some("low"),
            ..plan
        },
        (Way::Budget { .. } | Way::Adaptive, Some(Reasoning::Off)) => off,
        (Way::Adaptive | Way::Always, Some(level)) => Plan {
            thinking: Some(Thinking::Adaptive { display: "summarized" }),
            effort: effort(level),
            ..plan
        },
        (Way::Budget { is_claude }, Some(level)) => {
            // What is left after thinking is the answer's.
            let budget_tokens = budget(level).min(max_tokens / 2);
            if budget_tokens < BUDGET_TOKENS_MIN {
                return plan;
            }
            Plan {
                thinking: Some(Thinking::Enabled { budget_tokens }),
                is_interleaved: is_claude,
                ..plan
            }
        }
    }
}

/// How a model is asked to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// With a budget of tokens.
    Budget {
        /// Whether it is one of Anthropic's own.
        is_claude: bool,
    },
    /// With an effort.
    Adaptive,
    /// With an effort, and it cannot be left.
    Always,
}

impl Way {
    /// By the model's name at its provider, which may carry a maker and a date: `us.anthropic.claude-sonnet-4-5-20250929-v1:0`.
    fn of(model: &str) -> Self {
        let model = model.to_ascii_lowercase();
        let Some((_, name)) = model.split_once("claude-") else {
            return Self::Budget { is_claude: false };
        };
        if ALWAYS_THINKING.iter().any(|always| name.contains(always)) {
            return Self::Always;
        }
        // A date is no version: `claude-sonnet-4-20250514`.
        let mut numbers = name
            .split(|c: char| !c.is_ascii_alphanumeric())
            .skip_while(|word| version_number(word).is_none())
            .map_while(version_number);
        match (numbers.next(), numbers.next().unwrap_or(0)) {
            (Some(major), minor) if (major, minor) <= BUDGET_VERSION_LAST => Self::Budget { is_claude: true },
            (Some(_) | None, _) => Self::Adaptive,
        }
    }

    /// Whether this request may not ask for thinking. With a budget, a reply of the turn under way that does not begin with
    /// signed thinking forbids it. With an effort the API takes such a reply, but only of the model itself it is sure to.
    fn must_be_off(self, written: &Written<'_>) -> bool {
        match self {
            Self::Budget { .. } => written.is_thinking_missing,
            Self::Adaptive => written.is_handed_over,
            Self::Always => false,
        }
    }

    /// Tokens of a reply for thinking. A model that thinks unless told not to needs them unasked.
    fn allowance(self, wanted: Option<Reasoning>) -> u64 {
        match (self, wanted) {
            (Self::Budget { .. }, None) | (Self::Budget { .. } | Self::Adaptive, Some(Reasoning::Off)) => 0,
            (Self::Adaptive | Self::Always, None) | (Self::Always, Some(Reasoning::Off)) => BUDGET_TOKENS_HIGH,
            (_, Some(level)) => budget(level),
        }
    }
}

fn version_number(word: &str) -> Option<u32> {
    word.parse().ok().filter(|_| word.len() <= 2)
}

fn budget(level: Reasoning) -> u64 {
    match level {
        Reasoning::Off => 0,
        Reasoning::Low => BUDGET_TOKENS_LOW,
        Reasoning::Medium => BUDGET_TOKENS_MEDIUM,
        Reasoning::High => BUDGET_TOKENS_HIGH,
    }
}

fn effort(level: Reasoning) -> Option<&'static str> {
    match level {
        Reasoning::Off => None,
        Reasoning::Low => Some("low"),
        Reasoning::Medium => Some("medium"),
        Reasoning::High => Some("high"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 7.2: each model is asked to think in the way it takes.
    #[test]
    fn ways() {
        let claude = Way::Budget { is_claude: true };
        for (model, way) in [
            ("claude-3-7-sonnet-latest", claude),
            ("claude-sonnet-4-20250514", claude),
            ("claude-opus-4-1", claude),
            ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", claude),
            ("anthropic/claude-haiku-4.5", claude),
            ("claude-opus-4-6", Way::Adaptive),
            ("claude-sonnet-5", Way::Adaptive),
            ("claude-opus-5-5", Way::Adaptive),
            ("claude-latest", Way::Adaptive),
            ("claude-fable-5-1", Way::Always),
            ("claude-mythos-preview", Way::Always),
            ("qwen3-8b", Way::Budget { is_claude: false }),
        ] {
            assert_eq!(Way::of(model), way, "{model}");
        }
    }
}
