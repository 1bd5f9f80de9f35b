//! The reference of the configuration, `docs/configuration.md` and `aish config reference`: made from [`SETTINGS`], so that it
//! cannot say anything else than the program does.

use super::settings::{Kind, Project, SETTINGS, Secrecy, Setting};
use super::value::expectation;
use std::fmt::Write as _;

/// The whole reference, in Markdown.
pub fn reference() -> String {
    let mut text = String::from(INTRODUCTION);
    let mut section = None;
    for setting in SETTINGS {
        let heading = heading(setting.section());
        if section.as_ref() != Some(&heading) {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n## {heading}\n");
            section = Some(heading);
        }
        entry(&mut text, setting);
    }
    text
}

fn heading(section: &str) -> String {
    match section {
        "" => "At the top of the file".to_owned(),
        section => format!("`[{section}]`"),
    }
}

fn entry(text: &mut String, setting: &Setting) {
    let leaf = setting.leaf();
    let written = match leaf {
        "<tool>" => "\"alias.tool\"",
        "<header>" => "X-Team",
        "<variable>" => "NOTES_DIR",
        leaf => leaf,
    };
    let mut facts = vec![
        ("value", expectation(setting.kind).replace('"', "`")),
        (
            "default",
            setting
                .default
                .map_or("none".to_owned(), |default| format!("`{default}`")),
        ),
        ("example", format!("`{written} = {}`", setting.example)),
    ];
    if let Some(variable) = setting.env {
        facts.push(("environment", format!("`{variable}`")));
    }
    if setting.kind == Kind::Rules {
        facts.push(("layers", "add up: each adds rules, none removes one".to_owned()));
    }
    match setting.project {
        Project::Open => {}
        Project::WithinReach => facts.push((
            "in a project's file",
            "only what is on this machine, or a model that your own file has".to_owned(),
        )),
        Project::OnlyStricter(to) => facts.push(("in a project's file", format!("only `{to}`"))),
        Project::Refused(why) => facts.push(("in a project's file", format!("refused: {why}"))),
    }
    if setting.secrecy == Secrecy::Secret {
        facts.push(("shown", "never".to_owned()));
    }
    let _ = write!(text, "\n### `{}`\n\n{}\n\n", setting.key, setting.doc);
    for (name, fact) in facts {
        let _ = writeln!(text, "- {name}: {fact}");
    }
}

/// What stands above the settings.
const INTRODUCTION: &str = r#"<!-- Made from the program (crates/aish/src/config/settings.rs); `UPDATE_DOCS=1` with its test writes it anew. -->

# Configuration

aish runs without any configuration. What you set stands in one TOML file:

| which file | when |
|---|---|
| `--config FILE` | given on the command line |
| `$AISH_CONFIG` | set |
| `$AISH_HOME/config.toml` | `AISH_HOME` is set, which also moves the ledger (`data/ledger.db`) and the cache (`cache/`) |
| `$XDG_CONFIG_HOME/aish/config.toml` | otherwise; `~/.config/aish/config.toml` where that is not set |

`aish config path` prints which one it is, `aish config show` every setting in force and where it comes from,
`aish config reference` this text.

```toml
default_model = "desk"

[models.desk]
base_url = "http://127.0.0.1:8080/v1"
model = "qwen2.5-coder-7b"
fallback = ["cloud"]

[models.cloud]
provider = "anthropic"
model = "claude-sonnet-4-5"

[approval]
deny = ["bash(git push --force*)"]
ask = ["bash(git push*)"]
allow = ["bash(cargo test)"]

[mcp.servers.git]
command = ["mcp-server-git", "--repository", "."]

[mcp.auto_approve]
"git.*" = true
"git.push" = false
```

Later layers win over earlier ones: the defaults, your file, the file of a trusted project, the environment, the command line.
The lists of rules in `[approval]` add up instead.

**Keys** never stand in the file: `key_env` names the variable that holds one. A `base_url` of yours is sent no key that you did
not name.

**Projects.** A directory with `.aish/config.toml` or `AGENTS.md` is a project; the nearest one upwards counts, up to the root of a
git repository or your home. Nothing of it is read before you say `aish trust`, which holds for the configuration as it is then: a
changed one asks again. Even so a project cannot do everything. It may add models, servers and rules, also rules that allow; it may
not choose where a key or a conversation is sent (a model on the network must be one that your own file has), change the approval
mode, approve tools of MCP servers, take the name of one of your models or servers, or switch off a question.
`in a project's file` below says what is refused.

**Mistakes** are all reported at once, each with line and column, and nothing is guessed: with an unknown key or a wrong value aish
does not start (exit code 2).
"#;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::super::{Layer, Overrides, Source, resolve};
    use super::*;
    use crate::paths::Environment;

    /// SPEC 10.1: the reference in `docs/` is what the program says; `UPDATE_DOCS=1` writes it.
    #[test]
    fn the_reference_is_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, reference()).unwrap();
        }
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            committed == reference(),
            "docs/configuration.md is out of date; run this test with UPDATE_DOCS=1"
        );
    }

    /// SPEC 10.1: the example people copy works as it stands.
    #[test]
    fn the_example_works() {
        let text = INTRODUCTION
            .split("```toml\n")
            .nth(1)
            .unwrap()
            .split("```")
            .next()
            .unwrap();
        let source = Source {
            name: "config.toml".into(),
            text: text.into(),
            layer: Layer::User,
        };
        let resolved = resolve(Some(source), None, &Environment::default(), &Overrides::default());
        let resolved = resolved.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(resolved.warnings, Vec::<String>::new());
        assert_eq!(resolved.config.models.len(), 2);
    }

    #[test]
    fn every_setting_is_in_the_reference() {
        let text = reference();
        for setting in SETTINGS {
            assert!(text.contains(&format!("### `{}`", setting.key)), "{}", setting.key);
        }
    }
}
