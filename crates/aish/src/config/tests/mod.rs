//! The configuration from the outside: texts and variables in, values or messages out.

#![allow(clippy::unwrap_used, clippy::panic)]

mod layering;
mod mistakes;
mod project;
mod reach;

use super::resolved::{
    ApprovalConfig, Cwd, CwdBase, EditMode, McpConfig, McpTransport, ServeConfig, ShellConfig, ToolsConfig, UiConfig,
};
use super::*;
use crate::paths::Environment;
use crate::term::{Background, Form};
use aish_core::secret::Secret;

fn source(layer: Layer, text: &str) -> Source {
    let name = match layer {
        Layer::User => "config.toml",
        Layer::Project => ".aish/config.toml",
    };
    Source {
        name: name.to_owned(),
        text: text.to_owned(),
        layer,
    }
}

/// Resolves a user's file alone.
fn user(text: &str) -> Result<Resolved, ConfigError> {
    let source = source(Layer::User, text);
    resolve(Some(source), None, &Environment::default(), &Overrides::default())
}

/// The configuration of a user's file that is right.
fn config(text: &str) -> Config {
    user(text).unwrap_or_else(|error| panic!("{error}")).config
}

/// The messages about a user's file that is wrong.
fn errors(text: &str) -> String {
    user(text).unwrap_err().to_string()
}

/// Resolves every layer.
fn layered(
    user: &str,
    project: &str,
    variables: &[(&str, &str)],
    overrides: &Overrides,
) -> Result<Resolved, ConfigError> {
    let (user, project) = (source(Layer::User, user), source(Layer::Project, project));
    let environment = Environment::from_pairs(variables.iter().copied());
    resolve(Some(user), Some(project), &environment, overrides)
}

/// The messages about a project's file that is wrong, beside a user's file with one model and one server.
fn project_errors(project: &str) -> String {
    let user = "models.desk.model = 'm'\nmcp.servers.git.command = ['git-mcp']";
    let result = layered(user, project, &[], &Overrides::default());
    result
        .map(|resolved| format!("{:?}", resolved.config))
        .unwrap_err()
        .to_string()
}
