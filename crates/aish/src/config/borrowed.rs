//! Names of a project's servers that would borrow what the user allowed another server (SPEC 12): a rule such as `git.*` speaks
//! of the server that had that name when it was written, not of whichever project takes the name while it is free.

use super::error::Origin;
use super::layers::Layers;
use super::value::{Value, toml_path};
use aish_core::policy::wildcard;

/// Each server of the project whose name a rule of the user's lets through: where it is named, and why that may not be.
pub fn borrowed(layers: &Layers) -> Vec<(Origin, String)> {
    let rules = user_rules(layers);
    let servers = layers.named.iter().filter(|named| named.origin.is_project());
    let refusals = servers.filter_map(|named| {
        let [mcp, servers, alias] = named.path.as_slice() else {
            return None;
        };
        let (key, rule) = rules
            .iter()
            .filter(|_| mcp == "mcp" && servers == "servers")
            .find(|(_, rule)| names_server(rule, alias))?;
        let message = format!(
            "[{}] would run unasked: your {key} speaks of `{rule}`; choose another name",
            toml_path(&named.path)
        );
        Some((named.origin.clone(), message))
    });
    refusals.collect()
}

/// The patterns of tools that the user lets run unasked, each with the setting that says so.
fn user_rules(layers: &Layers) -> Vec<(&'static str, String)> {
    let mut rules = Vec::new();
    for (path, assigned) in &layers.values {
        for assigned in assigned.iter().filter(|assigned| !assigned.origin.is_project()) {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            match (path.as_slice(), &assigned.value) {
                (["approval", "allow"], Value::Texts(texts)) => {
                    rules.extend(texts.iter().map(|text| ("approval.allow", text.clone())));
                }
                (["mcp", "auto_approve", tool], Value::Bool(true)) => {
                    rules.push(("mcp.auto_approve", (*tool).to_owned()));
                }
                _other_setting => {}
            }
        }
    }
    rules
}

/// Whether a rule fits a tool of that server by more than stars. One that begins with a star alone speaks of no server: the
/// policy keeps it from a project's.
fn names_server(rule: &str, alias: &str) -> bool {
    let tools = rule.split_once('(').map_or(rule, |(tools, _)| tools).trim();
    let begins = format!("{alias}.");
    // Whatever follows the dot: the part of the pattern up to the dot itself, or up to a star that stands for it too.
    let parts = tools.char_indices().filter(|(_, letter)| matches!(letter, '.' | '*'));
    parts
        .filter_map(|(at, _)| tools.get(..=at))
        .any(|part| part.contains(|letter| !matches!(letter, '*' | '.')) && wildcard(part, &begins))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 12: a rule is of a server whose name it spells, whole or in part.
    #[test]
    fn rules_that_name_a_server() {
        for rule in ["git.*", "git.push", "gi*", "g*.push", "*it.push", "git.*(x)", "git*"] {
            assert!(names_server(rule, "git"), "{rule}");
        }
        for rule in [
            "*",
            "*.*",
            "*.git",
            "*.push",
            "bash",
            "git",
            "github.*",
            "bash(git.*)",
            "gi.*",
        ] {
            assert!(!names_server(rule, "git"), "{rule}");
        }
    }
}
