//! What a model's name says of it: the generations differ in how thinking is asked for and in what goes together.
//!
//! | | before 2.5 | 2.5 | 3 and later |
//! |---|---|---|---|
//! | thinking | no | `thinkingBudget`, in tokens | `thinkingLevel` |
//! | Google Search beside functions | no | no | yes, with `includeServerSideToolInvocations` |
//! | a schema for the reply beside functions | no | no | yes |
//! | calls without a signature | taken | taken | refused in the turn under way |
//! | images in the response of a function | no | no | yes |
//!
//! A name without a number (`gemini-flash-latest`) means the newest.

use crate::profile::Reasoning;
use serde::Serialize;

/// A generation, as far as requests differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Generation {
    /// Older, or no Gemini at all (Gemma).
    Old,
    /// 2.5.
    Second,
    /// 3 and later.
    Third,
}

/// Words in names of models that are made for something else than thinking and talking.
const SPECIAL: &[&str] = &["image", "tts", "live", "audio", "embedding", "robotics", "computer-use"];

/// Tokens to think with, by how hard. 128 is the least that 2.5 Pro takes, which cannot be switched off; 24,576 the most
/// that 2.5 Flash takes.
const BUDGET_LEAST_OF_PRO: u32 = 128;
const BUDGET_LOW: u32 = 1024;
const BUDGET_MEDIUM: u32 = 8192;
const BUDGET_HIGH: u32 = 24_576;

/// How thinking is asked for: by a budget or by a level, never both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThinkingConfig {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    include_thoughts: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_level: Option<&'static str>,
}

/// A model's name without the folder it may come with.
pub(super) fn bare(model: &str) -> &str {
    model.trim().trim_start_matches('/').trim_start_matches("models/")
}

impl Generation {
    /// Of a model of that name.
    pub(super) fn of(model: &str) -> Self {
        let Some(rest) = bare(model).strip_prefix("gemini-") else {
            return Self::Old;
        };
        let number: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
        let mut digits = number.split('.').map(|digits| digits.parse::<u32>().unwrap_or(0));
        match (digits.next(), digits.next()) {
            _ if number.is_empty() => Self::Third,
            (Some(3..), _) => Self::Third,
            (Some(2), Some(5..)) => Self::Second,
            _ => Self::Old,
        }
    }

    /// What is asked of a model's thinking. Without a wish only its thoughts are asked for, where it surely thinks.
    pub(super) fn thinking(self, model: &str, reasoning: Option<Reasoning>) -> Option<ThinkingConfig> {
        let name = bare(model);
        if SPECIAL.iter().any(|word| name.contains(word)) {
            return None;
        }
        let is_pro = name.contains("pro");
        let is_lite = name.contains("lite");
        let (thinking_budget, thinking_level) = match (self, reasoning) {
            (Self::Old, _) => return None,
            // Unless told to, the small one does not think, and refuses to show what it does not do.
            (Self::Second, None) if is_lite => return None,
            (_, None) => (None, None),
            (Self::Second, Some(reasoning)) => (Some(budget(reasoning, is_pro)), None),
            (Self::Third, Some(reasoning)) => (None, Some(level(reasoning, name, is_pro))),
        };
        Some(ThinkingConfig {
            include_thoughts: reasoning != Some(Reasoning::Off),
            thinking_budget,
            thinking_level,
        })
    }
}

fn budget(reasoning: Reasoning, is_pro: bool) -> u32 {
    match reasoning {
        Reasoning::Off if is_pro => BUDGET_LEAST_OF_PRO,
        Reasoning::Off => 0,
        Reasoning::Low => BUDGET_LOW,
        Reasoning::Medium => BUDGET_MEDIUM,
        Reasoning::High => BUDGET_HIGH,
    }
}

fn level(reasoning: Reasoning, name: &str, is_pro: bool) -> &'static str {
    match reasoning {
        Reasoning::Off if !is_pro => "minimal",
        Reasoning::Off | Reasoning::Low => "low",
        // The first of them knows two levels only.
        Reasoning::Medium if name.starts_with("gemini-3-pro") => "high",
        Reasoning::Medium => "medium",
        Reasoning::High => "high",
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (model, generation) in [
            ("gemini-1.5-pro", Generation::Old),
            ("gemini-2.0-flash", Generation::Old),
            ("models/gemini-2.5-flash-lite", Generation::Second),
            ("gemini-2.5-pro", Generation::Second),
            ("gemini-3-pro-preview", Generation::Third),
            ("gemini-3.8-flash", Generation::Third),
            ("gemini-10-ultra", Generation::Third),
            ("gemini-flash-latest", Generation::Third),
            ("gemma-3-27b-it", Generation::Old),
            ("gemini-99999999999999999999", Generation::Old),
        ] {
            assert_eq!(Generation::of(model), generation, "{model}");
        }
    }

    #[track_caller]
    fn check(model: &str, reasoning: Option<Reasoning>, expect: &str) {
        let thinking = Generation::of(model).thinking(model, reasoning);
        assert_eq!(serde_json::to_string(&thinking).unwrap(), expect, "{model}");
    }

    #[test]
    fn thinking() {
        check("gemini-2.0-flash", Some(Reasoning::High), "null");
        check("gemini-2.5-flash", None, r#"{"includeThoughts":true}"#);
        check("gemini-2.5-flash-lite", None, "null");
        check("gemini-2.5-flash-image", Some(Reasoning::Low), "null");
        check("gemini-2.5-flash", Some(Reasoning::Off), r#"{"thinkingBudget":0}"#);
        check("gemini-2.5-pro", Some(Reasoning::Off), r#"{"thinkingBudget":128}"#);
        check(
            "gemini-2.5-pro",
            Some(Reasoning::Medium),
            r#"{"includeThoughts":true,"thinkingBudget":8192}"#,
        );
        check(
            "gemini-3.8-flash",
            Some(Reasoning::Off),
            r#"{"thinkingLevel":"minimal"}"#,
        );
        check(
            "gemini-3-pro-preview",
            Some(Reasoning::Medium),
            r#"{"includeThoughts":true,"thinkingLevel":"high"}"#,
        );
        check(
            "gemini-3.1-pro-preview",
            Some(Reasoning::Medium),
            r#"{"includeThoughts":true,"thinkingLevel":"medium"}"#,
        );
        check(
            "gemini-3.1-pro-preview",
            Some(Reasoning::Off),
            r#"{"thinkingLevel":"low"}"#,
        );
    }
}
