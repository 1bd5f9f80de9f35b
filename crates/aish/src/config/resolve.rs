//! From checked to resolved: the layers put on top of each other, the defaults below them, and what can only be judged as a
//! whole: names that must exist, settings that need or exclude each other.

use super::borrowed::borrowed;
use super::check::{Assigned, Checked, Named, check_environment, check_file};
use super::edit::RuleList;
use super::error::{ConfigError, Diagnostic, Layer, Origin, Shown, Source};
use super::layers::Layers;
use super::models;
use super::reach;
use super::resolved::{
    ApprovalConfig, Config, Cwd, CwdBase, EditMode, McpConfig, McpServer, McpTransport, ModelConfig, ServeConfig,
    ShellConfig, ToolsConfig, UiConfig,
};
use super::settings::find;
use super::value::{Value, toml_path};
use crate::paths::Environment;
use crate::term::{Background, Form};
use aish_core::action::Reach;
use aish_core::policy::{ApprovalMode, Rule};
use aish_core::secret::Secret;
use aish_engine::Routing;
use std::path::PathBuf;
use std::sync::Arc;

/// What the command line says about settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `--model`.
    pub model: Option<String>,
    /// `--approval`.
    pub approval: Option<ApprovalMode>,
    /// `--plain`.
    pub form: Option<Form>,
}

/// A configuration and how it came about.
#[derive(Debug)]
pub struct Resolved {
    /// What is in force.
    pub config: Config,
    /// What is odd, one line each, without `[aish]`.
    pub warnings: Vec<String>,
    /// Who set what.
    pub layers: Layers,
}

/// Puts the layers together. Pure.
///
/// # Errors
/// Everything that is wrong in any of them.
pub fn resolve(
    user: Option<Source>,
    project: Option<Source>,
    environment: &Environment,
    overrides: &Overrides,
) -> Result<Resolved, ConfigError> {
    let mut resolver = Resolver::default();
    for source in user.into_iter().chain(project) {
        let layer = source.layer;
        resolver.add(check_file(&Arc::new(source)), Some(layer));
    }
    resolver.add(check_environment(environment), None);
    resolver.add(command_line(overrides), None);
    if !resolver.diagnostics.is_empty() {
        return Err(ConfigError::Invalid(resolver.diagnostics));
    }
    let config = resolver.config(environment);
    if !resolver.diagnostics.is_empty() {
        return Err(ConfigError::Invalid(resolver.diagnostics));
    }
    Ok(Resolved {
        config,
        warnings: resolver.warnings,
        layers: resolver.layers,
    })
}

fn command_line(overrides: &Overrides) -> Checked {
    let model = overrides.model.clone().map(|name| ("default_model", name, "--model"));
    let approval = overrides
        .approval
        .map(|mode| ("approval.mode", mode.word().to_owned(), "--approval"));
    let texts = model.into_iter().chain(approval);
    let mut given: Vec<_> = texts.map(|(key, text, flag)| (key, Value::Text(text), flag)).collect();
    if overrides.form == Some(Form::Plain) {
        given.push(("ui.plain", Value::Bool(true), "--plain"));
    }
    let mut checked = Checked::default();
    for (key, value, flag) in given {
        let path: Vec<String> = key.split('.').map(str::to_owned).collect();
        if let Some(setting) = find(&path) {
            checked.assigned.push(Assigned {
                path,
                setting,
                value,
                origin: Origin::Flag(flag),
            });
        }
    }
    checked
}

#[derive(Default)]
struct Resolver {
    layers: Layers,
    diagnostics: Vec<Diagnostic>,
    warnings: Vec<String>,
}

impl Resolver {
    fn add(&mut self, checked: Checked, layer: Option<Layer>) {
        self.diagnostics.extend(checked.diagnostics);
        self.warnings.extend(checked.warnings);
        for assigned in checked.assigned {
            self.layers
                .values
                .entry(assigned.path.clone())
                .or_default()
                .push(assigned);
        }
        for named in checked.named {
            let known = self.layers.named.iter().any(|other| other.path == named.path);
            if known && layer == Some(Layer::Project) {
                // The user's key must not follow an address the project puts in place of theirs, be it only another
                // provider's own.
                let message = format!(
                    "[{}] stands in your own file; choose another name",
                    toml_path(&named.path)
                );
                self.report(&named.origin, message);
            }
            if !known {
                self.layers.named.push(named);
            }
        }
    }

    fn report(&mut self, origin: &Origin, message: String) {
        self.diagnostics.push(Diagnostic {
            origin: origin.clone(),
            message,
            shown: Shown::Value,
        });
    }

    fn config(&mut self, environment: &Environment) -> Config {
        let root = self.layers.section(&[]);
        let (default_model, max_tool_turns) = (root.text("default_model"), root.count("max_tool_turns"));
        let approval = self.approval();
        let shell = self.layers.section(&["shell"]);
        let shell = ShellConfig {
            confirm_cmd: shell.yes("confirm_cmd"),
            program: shell.text("program").map(PathBuf::from),
            edit_mode: match shell.text("edit_mode").as_deref() {
                Some("vi") => EditMode::Vi,
                // What is neither was told.
                Some(_) | None => EditMode::Emacs,
            },
        };
        let tools = self.layers.section(&["tools"]);
        let tools = ToolsConfig {
            max_output_size: tools.count("max_output_size"),
            max_result_chars: tools.number("max_result_chars"),
            parallel: tools.yes("parallel"),
            web: if tools.yes("web_private") {
                Reach::Anywhere
            } else {
                Reach::Public
            },
        };
        let (models, routing) = (self.models(environment), self.routing());
        self.check_names(&models, default_model.as_deref(), &routing);
        for (origin, message) in reach::beyond(&self.layers, &models)
            .into_iter()
            .chain(borrowed(&self.layers))
        {
            // What is no model at all was told.
            let place = origin.to_string();
            if !self.diagnostics.iter().any(|told| told.origin.to_string() == place) {
                self.report(&origin, message);
            }
        }
        Config {
            default_model,
            discover: self.layers.section(&[]).yes("discover"),
            max_tool_turns,
            retries: self.layers.section(&[]).count("retries"),
            models,
            routing,
            approval,
            shell,
            tools,
            ui: self.ui(),
            mcp: self.mcp(),
            serve: self.serve(),
        }
    }

    fn serve(&self) -> ServeConfig {
        let section = self.layers.section(&["serve"]);
        ServeConfig {
            listen: section.text("listen").unwrap_or_default(),
            store: section.text("store"),
            hosts: section.texts("hosts"),
            pending_ttl_s: section.count("pending_ttl_s"),
            strict_call_id: section.yes("strict_call_id"),
            turns_max: section.count("turns_max"),
            otlp_endpoint: section.text("otlp_endpoint"),
        }
    }

    fn ui(&self) -> UiConfig {
        let section = self.layers.section(&["ui"]);
        UiConfig {
            background: match section.text("background").as_deref() {
                Some("dark") => Some(Background::Dark),
                Some("light") => Some(Background::Light),
                Some(_) | None => None,
            },
            plain: section.yes("plain"),
            hints: section.yes("hints"),
        }
    }

    fn approval(&mut self) -> ApprovalConfig {
        let allow = self.rules(RuleList::Allow);
        for less in allow.iter().filter_map(Rule::allows_less_than_it_says) {
            self.warnings.push(format!("approval.allow: {less}"));
        }
        let section = self.layers.section(&["approval"]);
        let mode = match section.text("mode").as_deref() {
            Some("auto") => ApprovalMode::Auto,
            Some("full") => ApprovalMode::Full,
            Some(_) | None => ApprovalMode::Ask,
        };
        let read_only_inside_tree = section.yes("read_only_inside_tree");
        ApprovalConfig {
            mode,
            deny: self.rules(RuleList::Deny),
            ask: self.rules(RuleList::Ask),
            allow,
            read_only_inside_tree,
        }
    }

    fn rules(&self, list: RuleList) -> Vec<Rule> {
        let texts = self.layers.section(&["approval"]).texts(list.key());
        texts.iter().filter_map(|text| Rule::parse(text).ok()).collect()
    }

    /// The tables named below this path, in order.
    fn names_below(&self, prefix: &[&str]) -> Vec<(String, Origin)> {
        let below = |named: &Named| {
            let (name, parent) = named.path.split_last()?;
            (parent == prefix).then(|| (name.clone(), named.origin.clone()))
        };
        self.layers.named.iter().filter_map(below).collect()
    }

    fn models(&mut self, environment: &Environment) -> Vec<ModelConfig> {
        let names = self.names_below(&["models"]);
        let mut read = Vec::with_capacity(names.len());
        for (name, origin) in names {
            match models::model(&self.layers, &name, environment) {
                Ok(model) => read.push(model),
                Err(wrong) => self.report(&origin, format!("[{}] {wrong}", toml_path(&["models", &name]))),
            }
        }
        read
    }

    fn routing(&self) -> Routing {
        let section = self.layers.section(&["routing"]);
        Routing {
            quick: section.text("quick"),
            quick_chars_max: section.count("quick_chars_max"),
            work: section.text("work"),
            summary: section.text("summary"),
        }
    }

    /// Names of models that other settings speak of must exist, or be of the form `PRESET/MODEL`. With no model configured at
    /// all they may name one that is found at start (SPEC 7.7), so nothing is said then.
    fn check_names(&mut self, models: &[ModelConfig], default_model: Option<&str>, routing: &Routing) {
        let named: Vec<String> = self
            .names_below(&["models"])
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        if named.is_empty() {
            return;
        }
        let root = [
            (default_model, &["default_model"][..]),
            (routing.quick.as_deref(), &["routing", "quick"]),
            (routing.work.as_deref(), &["routing", "work"]),
            (routing.summary.as_deref(), &["routing", "summary"]),
        ];
        let spoken = root.into_iter().filter_map(|(name, path)| Some((name?, path.to_vec())));
        let fallbacks = models.iter().flat_map(|model| {
            let path = vec!["models", model.name.as_str(), "fallback"];
            model.fallback.iter().map(move |name| (name.as_str(), path.clone()))
        });
        let mut wrong: Vec<(Vec<&str>, String)> = Vec::new();
        for (name, path) in spoken.chain(fallbacks) {
            wrong.extend(models::unknown_name(name, &named).map(|why| (path, why)));
        }
        let mut round: Vec<String> = Vec::new();
        for model in models.iter().filter(|model| !model.fallback.is_empty()) {
            // A round is told once, not from each of its models.
            if round.contains(&model.name) {
                continue;
            }
            if let Some(way) = models::fallback_cycle(models, &model.name) {
                let path = vec!["models", model.name.as_str(), "fallback"];
                wrong.push((path, format!("the fallbacks go round in a circle: {}", way.join(", "))));
                round.extend(way);
            }
        }
        let found: Vec<(Origin, String)> = wrong
            .into_iter()
            .filter_map(|(path, why)| {
                Some((
                    self.layers.origin(&path)?.clone(),
                    format!("{}: {why}", toml_path(&path)),
                ))
            })
            .collect();
        for (origin, message) in found {
            self.report(&origin, message);
        }
    }

    fn mcp(&mut self) -> McpConfig {
        let mut servers = Vec::new();
        for (alias, origin) in self.names_below(&["mcp", "servers"]) {
            match self.layers.server(&alias) {
                Ok(server) => servers.push(server),
                Err(wrong) => {
                    let path = toml_path(&["mcp", "servers", &alias]);
                    self.report(&origin, format!("[{path}] {wrong}"));
                }
            }
        }
        let flag = |value: Value| match value {
            Value::Bool(yes) => Some(yes),
            Value::Text(_) | Value::Integer(_) | Value::Float(_) | Value::Texts(_) => None,
        };
        McpConfig {
            max_tool_depth: self.layers.section(&["mcp"]).count("max_tool_depth"),
            servers,
            auto_approve: self.layers.map(&["mcp", "auto_approve"], flag),
        }
    }
}

impl Layers {
    /// A server, or what is wrong with it.
    fn server(&self, alias: &str) -> Result<McpServer, &'static str> {
        let section = self.section(&["mcp", "servers", alias]);
        let secret = |value: Value| match value {
            Value::Text(text) => Some(Secret::new(text)),
            Value::Bool(_) | Value::Integer(_) | Value::Float(_) | Value::Texts(_) => None,
        };
        let headers = self.map(&["mcp", "servers", alias, "headers"], secret);
        let env = self.map(&["mcp", "servers", alias, "env"], secret);
        let (auth_token, auth_env) = (section.text("auth_token").map(Secret::new), section.text("auth_env"));
        let transport = match (section.text("url"), section.get("command")) {
            (Some(_), Some(_)) => return Err("has both a `url` and a `command`; keep one"),
            (None, None) => {
                return Err("has neither a `url` nor a `command`; e.g. url = \"http://127.0.0.1:8080/mcp\"");
            }
            (Some(url), None) => McpTransport::Http { url },
            (None, Some(_)) => McpTransport::Stdio {
                command: section.texts("command"),
                cwd: self.cwd(alias),
            },
        };
        match &transport {
            McpTransport::Http { .. } if !env.is_empty() => return Err("has an `env`, which only a `command` can use"),
            McpTransport::Http { .. } if self.cwd(alias).is_some() => {
                return Err("has a `cwd`, which only a `command` can use");
            }
            McpTransport::Stdio { command, .. } if command.first().is_none_or(String::is_empty) => {
                return Err("has a `command` without a program; e.g. command = [\"mcp-server-git\"]");
            }
            McpTransport::Stdio { .. } if !headers.is_empty() || auth_token.is_some() || auth_env.is_some() => {
                return Err(
                    "has headers or a token, which only a `url` can use; give a `command` its secrets in `env`",
                );
            }
            McpTransport::Http { .. } | McpTransport::Stdio { .. } => {}
        }
        Ok(McpServer {
            alias: alias.to_owned(),
            transport,
            auth_token,
            auth_env,
            headers,
            env,
            timeout_s: section.count("timeout_s"),
            protocol: section.text("protocol"),
            enabled_tools: section.texts("enabled_tools"),
            disabled_tools: section.texts("disabled_tools"),
            required: section.yes("required"),
            trusted: section.yes("trusted"),
            enabled: section.yes("enabled"),
        })
    }

    /// Where a server starts, if somebody said so.
    fn cwd(&self, alias: &str) -> Option<Cwd> {
        let path = ["mcp", "servers", alias, "cwd"];
        let base = if self.origin(&path)?.is_project() {
            CwdBase::Project
        } else {
            CwdBase::Configuration
        };
        let path = self.section(&["mcp", "servers", alias]).text("cwd")?;
        Some(Cwd { path, base })
    }
}
